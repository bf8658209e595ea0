"""The decorator of functions that are called almost only by jitted functions.

Numba makes a library of every function that it compiles: wrappers for calls from Python and C,
optimized code, and machine code.  A function that calls an inner one gets a copy of its code,
optimizes that with its own and makes machine code of both.  An inner function therefore consists of
this code alone, which saves two fifths of the time of compiling.  Unless it makes arrays, it counts
no references to its array arguments (:mod:`percolab.kernels.uncounted`).

When Python calls it, it is compiled once more as an ordinary function; an exception is then printed
and not raised.  It cannot be cached.  CUDA makes no libraries, and compiles inner functions like
others.

Source: Numba's documentation, "Customizing the Compiler"; parts of ``numba.core.codegen`` are
replaced, tested with Numba 0.61.2 and 0.68.1.
"""

import ctypes
from functools import partial

from numba import njit, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import LoweringPass, register_pass
from numba.core.typed_passes import AnnotateTypes
from numba.extending import overload

from percolab.kernels.uncounted import UNCOUNTED


class _NoEngine:
    """Replaces the execution engine, as there is no machine code to load."""

    @staticmethod
    def set_env(name, environment):
        """Do nothing: only exceptions that are made when they are raised read an environment."""


_Wrapper = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
#: For each inner function, the compiled function that Python calls instead.
_called: dict = {}


class _InnerLibrary(JITCodeLibrary):
    """The unoptimized code of a function, in the form that its callers get."""

    def __init__(self, codegen, name, function):
        super().__init__(codegen, name)

        def call(_, arguments, __):
            if function not in _called:
                _called[function] = njit(function)
            return _called[function](*arguments)

        self._wrapper = _Wrapper(call)

    @property
    def codegen(self):
        return _NoEngine

    def _optimize_final_module(self): ...

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name):
        """Return the address of the function for calls from Python; nothing else has one."""
        self._ensure_finalized()
        return ctypes.cast(self._wrapper, ctypes.c_void_p).value


def _returned_types(state):
    """Yield the return types of the jitted functions that a function calls."""
    for block in state.func_ir.blocks.values():
        for call in block.find_exprs("call"):
            if isinstance(state.typemap[call.func.name], types.Dispatcher):
                yield state.calltypes[call].return_type


@register_pass(mutates_CFG=False, analysis_only=True)
class _MakeInnerLibrary(LoweringPass):
    _name = "make_inner_library"

    def __init__(self):
        super().__init__()

    def run_pass(self, state):
        function, models = state.func_id, state.targetctx.data_model_manager
        if not state.flags.nrt:
            # The caller would release a reference that was never counted.
            if models[state.return_type].contains_nrt_meminfo():
                raise TypeError(f"{function.func_qualname} returns an array: use inner_with_arrays")
            # The reference to a new array would never be released.
            if any(models[each].contains_nrt_meminfo() for each in _returned_types(state)):
                raise TypeError(f"{function.func_qualname} gets a new array from a function that "
                                "it calls: use inner_with_arrays")  # fmt: skip
        state.library = _InnerLibrary(
            state.targetctx.codegen(), function.func_qualname, function.func
        )
        return True


class _InnerCompiler(CompilerBase):
    def define_pipelines(self):
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_MakeInnerLibrary, AnnotateTypes)
        passes.finalize()
        return [passes]


#: Options of ``njit`` for an inner function that makes no arrays.
INNER = {
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": _InnerCompiler,
    **UNCOUNTED,
}
inner = njit(**INNER)
_WITH_ARRAYS = INNER | {"_nrt": True}
#: An inner function that makes arrays, or calls what returns new ones.
inner_with_arrays = njit(**_WITH_ARRAYS)
#: Like Numba's ``overload``, for implementations that are inner functions.
inner_overload = partial(overload, jit_options=INNER)
inner_overload_with_arrays = partial(overload, jit_options=_WITH_ARRAYS)
