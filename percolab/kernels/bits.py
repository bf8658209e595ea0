"""Bit counts of 32-bit words on CPU and CUDA: Numba has none on the CPU.

``llvm.ctpop`` and ``llvm.cttz`` compile to one or two instructions on x86-64, AArch64 and PTX.  The
Python bodies are for the CUDA simulator, which interprets kernels.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from percolab.kernels.inner import inner_overload


def popcount(word):
    """Return the number of ones in a uint32 word."""
    return int(word).bit_count()


def trailing_zeros(word):
    """Return the position of the lowest one in a uint32 word; 32 for the word 0."""
    word = int(word)
    return (word & -word).bit_length() - 1 if word else 32


def lowest_one(word):
    """Return the position of the lowest one in a uint32 word, which must not be 0."""
    return trailing_zeros(word)


def highest_one(word):
    """Return the position of the highest one in a uint32 word; -1 for the word 0."""
    return int(word).bit_length() - 1


def _intrinsic(instruction):
    """Return a function of a uint32 word that is one instruction; instruction: of builder, word."""

    @intrinsic
    def call(typingctx, word):
        def codegen(context, builder, signature, args):
            return instruction(builder, args[0])

        return types.uint32(types.uint32), codegen

    return call


_NO, _YES = (ir.Constant(ir.IntType(1), flag) for flag in (0, 1))
_ctpop = _intrinsic(lambda builder, word: builder.ctpop(word))
_cttz = _intrinsic(lambda builder, word: builder.cttz(word, _NO))
# Without the test for 0, as CUDA has no instruction for the case of 0.
_cttz_nonzero = _intrinsic(lambda builder, word: builder.cttz(word, _YES))
_ctlz = _intrinsic(lambda builder, word: builder.ctlz(word, _NO))


@inner_overload(popcount, target="generic")
def _popcount(word):
    return lambda word: types.int32(_ctpop(types.uint32(word)))


@inner_overload(trailing_zeros, target="generic")
def _trailing_zeros(word):
    return lambda word: types.int32(_cttz(types.uint32(word)))


@inner_overload(lowest_one, target="generic")
def _lowest_one(word):
    return lambda word: types.int32(_cttz_nonzero(types.uint32(word)))


@inner_overload(highest_one, target="generic")
def _highest_one(word):
    return lambda word: types.int32(31) - types.int32(_ctlz(types.uint32(word)))
