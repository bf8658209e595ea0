"""What a user can mend: errors whose text is one line, and arguments that exclude each other."""

import difflib
import importlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: An option of a text, --min-size or -L; the options of a command in it belong to that command.
_OPTION = re.compile(r"(percolab \w+ [^,;)]*)|(?<![^\s(])(?:--([a-z][a-z-]*)|-([pLTK])(?!\w))")
#: A number of NumPy among the values of a text, np.float64(0.5).
_NUMPY = re.compile(r"\bnp\.\w+\(([^()]*)\)")

#: The ends of lines in an array of NumPy among them.
_LINES = re.compile(r"\s*\n\s*")


class UserError(ValueError):
    """What a user can mend; its text is one line, which names options as a shell has them.

    Read in Python the line names arguments in their place, ``min_size`` for ``--min-size``.
    """

    #: Whether the command line reads the texts.
    _in_shell = False

    def __str__(self) -> str:
        """Return the line for whoever called."""
        text = _NUMPY.sub(r"\1", _LINES.sub(" ", super().__str__()))
        return text if UserError._in_shell else _OPTION.sub(_argument, text)

    @staticmethod
    @contextmanager
    def read_in_shell() -> Iterator[None]:
        """Keep options in texts until the end of the context."""
        before, UserError._in_shell = UserError._in_shell, True
        try:
            yield
        finally:
            UserError._in_shell = before


def _argument(match: re.Match[str]) -> str:
    command, name, letter = match.groups()
    return command or letter or name.replace("-", "_")


class InputError(UserError):
    """Input that cannot be used; its text is the one line a user should read.

    >>> print(InputError("the best fit is rejected: give --min-size, or more -L"))
    the best fit is rejected: give min_size, or more L
    >>> print(InputError("no trees: percolab sweep --method tree, or --method grid"))
    no trees: percolab sweep --method tree, or method grid
    >>> print(InputError("L = [np.float64(8.5)], but only integers are allowed"))
    L = [8.5], but only integers are allowed
    """


def refuse_mask(name: str, given: Any) -> None:
    """Raise InputError for an array of NumPy with a mask, which would be left out silently."""
    if hasattr(given, "mask") and hasattr(given, "filled"):
        how = "say what is under its mask (array.filled(value))"
        raise InputError(f"{name}: a masked array; {how}")


#: What names the first sample of percolation is as if it was not given.
USUAL_SAMPLE = {"sample": 0, "seed": 1, "rng": "xorwow", "model": "bond"}
#: Arguments of Python that are no options in a shell.
_NO_OPTIONS = ("configuration", "labels", "opened")


def is_given(name: str, value: Any) -> bool:
    """Return whether an argument is not None, False for a flag, or what it is anyway.

    >>> is_given("p", 0.0), is_given("tree", False), is_given("seed", 1)
    (True, False, False)
    """
    usual = USUAL_SAMPLE.get(name)
    is_usual = type(value) is type(usual) and value == usual
    return not (value is None or value is False or is_usual)


def flag(name: str) -> str:
    """Return an option as it is written: -L, -p, --min-size."""
    if name in _NO_OPTIONS:
        return name
    return f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"


def refuse_given(reason: str, **given: Any) -> None:
    """Raise InputError if one of these is given."""
    for name, value in given.items():
        if is_given(name, value):
            advice = "" if reason.endswith("out") else "; leave it out"
            raise InputError(f"{flag(name)}: {reason}{advice}")


def refuse_together(reasons: Mapping[str, Sequence[str]], given: Mapping[str, Any]) -> None:
    """Raise InputError for what does not go with something given.

    reasons: by the name of that a reason, then the names of what it excludes.
    """
    for kind, (reason, *names) in reasons.items():
        if is_given(kind, given[kind]):
            refuse_given(reason, **{name: given[name] for name in names})


def need_given(what: str, **given: Any) -> None:
    """Raise InputError unless all of these are given."""
    missing = [flag(name) for name, value in given.items() if value is None]
    if missing:
        raise InputError(f"{what} needs {' and '.join(missing)}")


def unreadable(path: object, error: Exception) -> InputError:
    """Return the line that says why a file was not opened.

    >>> print(unreadable("a.csv", FileNotFoundError()))
    a.csv: no such file
    """
    if isinstance(error, FileNotFoundError):
        return InputError(f"{path}: no such file")
    own = "permission denied" if isinstance(error, PermissionError) else None
    return InputError(f"{path}: cannot be read: {own or getattr(error, 'strerror', '') or error}")


def check_regular(path: Path) -> None:
    """Raise InputError for a device or pipe, which may never end."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: is not a regular file")


def one_line(error: Exception) -> str:
    """Return what an error of another package says, or its name, as one line."""
    return " ".join(str(error).split()) or type(error).__name__


def nearest(word: str, known: Collection[str]) -> str:
    """Return a hint naming the known word nearest to ``word``, or listing them all.

    >>> nearest("kagme", ["kagome", "square"]), nearest("x", ["y"]), nearest("x", [])
    ("did you mean 'kagome'?", 'known: y', 'known: none')
    """
    close = difflib.get_close_matches(str(word), known, n=1, cutoff=0.65)
    known_words = ", ".join(sorted(known)) or "none"
    return f"did you mean {close[0]!r}?" if close else f"known: {known_words}"


def import_networkx(why: str) -> Any:
    """Return networkx; InputError, which says first what it is for, where it is not installed."""
    try:
        return importlib.import_module("networkx")
    except ImportError as error:
        raise InputError(
            f"{why}: networkx is not installed; pip install 'percolab[graph]'"
        ) from error


class AnalysisError(UserError):
    """The data cannot answer the question; the message is one line that says what is missing."""
