"""The studies that come with percolab: files of ``configs/``, found by name.

A name is a file's path there without its suffix: ``quick``, ``thresholds/kagome``.  A built package
has the files in ``percolab/configs``, a checkout next to the package.
"""

from difflib import get_close_matches
from importlib import resources
from pathlib import Path

from percolab.errors import InputError
from percolab.lattices.lattice import lattice_names
from percolab.lattices.toml_table import read_text

_SUFFIX = ".toml"


def studies_folder() -> Path:
    package = Path(str(resources.files("percolab")))
    built = package / "configs"
    return built if built.is_dir() else package.parent / "configs"


def study_names() -> list[str]:
    """Return the names of all studies: those at the top first, then folder by folder."""
    folder = studies_folder()
    paths = [path.relative_to(folder).with_suffix("") for path in folder.rglob(f"*{_SUFFIX}")]
    return [path.as_posix() for path in sorted(paths, key=lambda path: (path.parent, path.name))]


def find_study(given: str) -> Path:
    """Return the study file of this path, or of this study; InputError if there is none."""
    path = Path(given)
    if given in study_names() and not path.is_file():
        return studies_folder() / f"{given}{_SUFFIX}"
    if not path.exists():
        lattice = " (a lattice goes with --lattice)" if given in lattice_names() else ""
        near = _near(path)
        raise InputError(f"{given}: no such file, and no study of this name; {near}{lattice}")
    if path.suffix != _SUFFIX:
        raise InputError(
            f"{given}: a study file ends in .toml; a lattice goes with --lattice, "
            "a network with --graph"
        )
    return path


def _near(path: Path) -> str:
    """Return a hint at names like this path, or at the command that lists all."""
    if path.suffix == _SUFFIX:
        path = path.with_suffix("")
    # A path in a checkout is meant as the study that it is there.
    word = "/".join(path.parts[1:] if path.parts[:1] == ("configs",) else path.parts)
    known = study_names()
    if word in known:
        return f"did you mean {word!r}?"
    parts = {name: name.rpartition("/")[2] for name in known}
    close = set(get_close_matches(word, [*known, *parts.values()], n=1))
    hints = [name for name, last in parts.items() if name in close or last in close]
    hints = hints or [name for name in known if word in name]
    if not hints:
        return "percolab studies lists them"
    return f"did you mean {' or '.join(map(repr, hints[:3]))}?"


def study_summary(name: str) -> str:
    """Return what a study is for: the comment it begins with, up to an empty line of it.

    >>> study_summary("quick")
    'The threshold of the honeycomb lattice to about 1e-3, within a minute on two CPU cores.'
    """
    words: list[str] = []
    for line in read_text(studies_folder() / f"{name}{_SUFFIX}").splitlines():
        text = line.removeprefix("#").strip()
        if not line.startswith("#") or not text:
            break
        words.append(text)
    return " ".join(words)
