"""What finds the clusters or the trees of samples, by name: labelers, and tree methods."""

from __future__ import annotations

from percolab.labelers import DEFAULT_LABELER, check_labeler, fitting_labeler, labeler_class
from percolab.lattices.structure import Structure
from percolab.tasks.values import check_choice
from percolab.trees import DEFAULT_TREE_METHOD, TREE_METHODS, tree_class


class Labelers:
    """The labelers (:class:`percolab.tasks.kind.Algorithms`)."""

    what = "labeler"

    def default(self, kind: str) -> str:
        """Return the name of the fastest on a kind of device, "cpu" or "cuda"."""
        return DEFAULT_LABELER[kind]

    def check(self, name: str) -> None:
        """Raise InputError unless there is a labeler of this name."""
        check_labeler(name)

    def choose(self, name: str | None, kind: str, structure: Structure) -> tuple[str, str]:
        """Return the labeler to use, and why it is not the one named, or ""."""
        chosen, note = fitting_labeler(name, kind, structure)
        labeler_class(chosen, kind)
        return chosen, note

    def most_points(self, name: str | None, kind: str, axes: int) -> int | None:
        """Return the most grid points that a labeler can have beside the flags of the axes."""
        most: int = labeler_class(name, kind).most_points(axes)
        return most


class TreeMethods:
    """The ways to find spanning trees (:class:`percolab.tasks.kind.Algorithms`)."""

    what = "tree method"

    def default(self, kind: str) -> str:
        """Return the name of the fastest on a kind of device, "cpu" or "cuda"."""
        return DEFAULT_TREE_METHOD[kind]

    def check(self, name: str) -> None:
        """Raise InputError unless there is a way of this name."""
        check_choice(self.what, name, TREE_METHODS)

    def choose(self, name: str | None, kind: str, structure: Structure) -> tuple[str, str]:
        """Return the way to use; every way serves every structure."""
        chosen = name or self.default(kind)
        tree_class(chosen, kind)
        return chosen, ""

    def most_points(self, name: str | None, kind: str, axes: int) -> int | None:
        """Return None: what bounds trees is the number of bonds, which memory bounds before."""
        return None
