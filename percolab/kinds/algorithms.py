"""The algorithms that find the clusters or the trees of samples, by name."""

from percolab.labelers import DEFAULT_LABELER, check_labeler, fitting_labeler, labeler_class
from percolab.lattices.structure import Structure
from percolab.tasks.kind import Algorithms
from percolab.tasks.values import check_choice
from percolab.trees import DEFAULT_TREE_METHOD, TREE_METHODS, tree_class


class Labelers(Algorithms):
    """The labelers."""

    def default(self, kind: str) -> str:
        return DEFAULT_LABELER[kind]

    def check(self, name: str) -> None:
        check_labeler(name)

    def choose(self, name: str | None, kind: str, structure: Structure) -> tuple[str, str]:
        chosen, note = fitting_labeler(name, kind, structure)
        labeler_class(chosen, kind)
        return chosen, note

    def most_points(self, name: str | None, kind: str, axes: int) -> int | None:
        """Return the most grid points of a labeler, whose words also contain the axes' flags."""
        return int(labeler_class(name, kind).most_points(axes))


class TreeMethods(Algorithms):
    """The ways to find spanning trees, each of which serves every structure."""

    def default(self, kind: str) -> str:
        return DEFAULT_TREE_METHOD[kind]

    def check(self, name: str) -> None:
        check_choice("tree method", name, TREE_METHODS)

    def choose(self, name: str | None, kind: str, structure: Structure) -> tuple[str, str]:
        chosen = name or self.default(kind)
        tree_class(chosen, kind)
        return chosen, ""
