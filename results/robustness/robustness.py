"""Compare robustness curves of networks with networkx, which removes site after site or bond.

    python results/robustness/robustness.py dolphins.gml football.gml ... > robustness.txt

The files are a user's own; networkx reads them without percolab.  After every removal four integers
are compared: clusters, largest, second largest, sum of squares; then Schneider's R, and the share
that is left where the second largest cluster is largest.  An adaptive order leaves ties to chance:
there the order is percolab's, and networkx finds each removed site or bond among the best of what
is left.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import click
import networkx
import numpy as np

import percolab
from percolab.analysis.maxima import measure_robustness
from percolab.bonds.words import GENERATORS, uniform_number
from percolab.coupled.adaptive import order_by_score
from percolab.coupled.one_by_one import ADAPTIVE_RANKS, list_openings, order_by_degree

OPTIONS = {"method": "microcanonical", "device": "cpu", "seed": 4, "workers": 1, "samples": 1}
#: Betweenness of what is left is found after every removal: of networks with so few sites.
MOST_SITES = 120


def site_numbers(task, sample):
    """Return the numbers u of the sites of a sample, in the order of the file."""
    graph = task.structure
    topology = graph.topology(task.shape)
    inner = graph.inner_numbers
    key = GENERATORS[task.rng], np.uint64(task.stream_seed), np.uint64(sample)
    at = range(graph.num_sites) if inner is None else inner.tolist()
    return [uniform_number(*key, topology.num_bond_words + n // 32, n % 32) for n in at]


def bond_numbers(task, sample):
    """Return the numbers u of the bonds of a sample, by their two sites."""
    key = GENERATORS[task.rng], np.uint64(task.stream_seed), np.uint64(sample)
    pairs = map(frozenset, task.structure.bonds.pairs.tolist())
    places = task.structure.bond_numbers().tolist()
    return {pair: uniform_number(*key, n // 32, n % 32) for pair, n in zip(pairs, places)}


def cluster_row(graph):
    """Return clusters, largest, second largest and sum of squares of a networkx graph."""
    sizes = sorted((len(part) for part in networkx.connected_components(graph)), reverse=True)
    first, second = [*sizes, 0, 0][:2]
    return [len(sizes), first, second, sum(size * size for size in sizes)]


def removed_one_by_one(graph, removed, check=None):
    """Return the rows before any removal and after each, int64[removals + 1, 4].

    removed: nodes, or edges as pairs, the first removed first.  check: is called with what is left
    and what is removed next
    """
    left, rows = graph.copy(), [cluster_row(graph)]
    for own in removed:
        if check:
            check(left, own)
        remove = left.remove_edges_from if isinstance(own, tuple) else left.remove_nodes_from
        remove([own])
        rows.append(cluster_row(left))
    return np.array(rows)


def by_score(scores: Mapping[Any, float], numbers) -> list[Any]:
    """Return nodes, or edges, the largest (score, number u) first.

    scores: of all nodes, or of all edges; numbers: as site_numbers or bond_numbers returns them
    """

    def value(own):
        return scores[own], numbers[frozenset(own) if isinstance(own, tuple) else own]

    return sorted(scores, key=value, reverse=True)


def collective_influence(graph, node) -> int:
    """Return a node's collective influence, with a ball of radius 2, by networkx."""
    steps = networkx.single_source_shortest_path_length(graph, node, cutoff=2)
    around = sum(graph.degree(other) - 1 for other, far in steps.items() if far == 2)
    return (graph.degree(node) - 1) * around


def stored_rows(results):
    """Return the rows of the one sample that was taken, from none removed to all, and its task."""
    (result,) = results.tasks.values()
    assert result.num_samples == 1
    names = ("clusters", "largest", "second_largest", "sum_squares")
    return np.stack([result.stacked(name)[0, ::-1] for name in names], axis=1), result


def rounded(values: Mapping[Any, float]) -> dict[Any, float]:
    """Return scores to nine digits of the largest, as percolab compares them."""
    most = max(values.values(), default=0) or 1
    return {key: round(value / most, 9) for key, value in values.items()}


def score(graph, order: str, model: str) -> dict[Any, float]:
    """Return the score of every node, or of every edge, by networkx."""
    if order == "random":
        return dict.fromkeys(graph.nodes if model == "site" else graph.edges, 0.0)
    degrees = dict(graph.degree)
    if order == "degree":
        products = {(i, j): degrees[i] * degrees[j] for i, j in graph.edges}
        return degrees if model == "site" else products
    if order == "influence":
        return {node: collective_influence(graph, node) for node in graph}
    if model == "site":
        return networkx.betweenness_centrality(graph)
    return networkx.edge_betweenness_centrality(graph)


def adaptive_order(task, model: str) -> list[Any]:
    """Return the sites, or bonds as pairs, in the order in which percolab removes them."""
    structure = task.structure
    openings = list_openings(structure.topology(task.shape), sites=model == "site")
    openings = openings._replace(ranks=ADAPTIVE_RANKS[task.order])
    found = np.empty(task.num_openings, np.uint32)
    key = GENERATORS[task.rng], np.uint64(task.stream_seed), np.uint64(0)
    if model == "site" and task.order == "degree:adaptive":
        order_by_degree(*key, openings, found)
    else:
        order_by_score(*key, openings, structure.num_sites, found)
    numbers = structure.inner_numbers if model == "site" else structure.bond_numbers()
    if numbers is not None:
        found = np.argsort(numbers)[found]
    removed = found[::-1].tolist()
    pairs = structure.bonds.pairs.tolist()
    return removed if model == "site" else [tuple(pairs[n]) for n in removed]


def is_best(order: str, model: str) -> Callable[[Any, Any], None]:
    """Return a check that what is removed has the largest score of what is left."""

    def check(left, own):
        scores = score(left, order, model)
        value = scores[own] if own in scores else scores[own[::-1]]
        assert value >= (1 - 1e-9) * max(scores.values()), (own, value)

    return check


def compare(graph, source: Any, order: str, model: str, given: Any = None) -> tuple[float, float]:
    """Compare one curve and return R and the share that is left at the largest second cluster.

    graph: with nodes 0, 1, ...  source: what percolab reads.  order: a name, or "given" for the
    order in ``given``: its name for percolab, and the list of what is removed.
    AssertionError: something differs
    """
    name, removed = given or (order, None)
    results = percolab.sweep(graph=source, model=model, order=name, **OPTIONS)
    found, result = stored_rows(results)
    task, (kind, _, variant) = result.task, order.partition(":")
    check = None
    if variant == "adaptive":
        removed, check = adaptive_order(task, model), is_best(kind, model)
    elif removed is None:
        numbers = site_numbers(task, 0) if model == "site" else bond_numbers(task, 0)
        scores = rounded(score(graph, kind, model))
        sign = -1 if variant == "ascending" else 1
        removed = by_score({key: sign * value for key, value in scores.items()}, numbers)
    expected = removed_one_by_one(graph, removed, check)
    np.testing.assert_array_equal(found, expected)
    robustness = expected[1:, 1].sum() / len(graph) / len(removed)
    assert abs(measure_robustness(result).value - robustness) < 1e-12
    second = expected[::-1, 2].argmax() / len(removed)
    if order != "random":  # whose estimate is of a mean at p, not of rows
        (size,) = results.estimates()
        assert abs(size.estimates[0].p - second) < 1e-12
    return float(robustness), float(second)


def write_order(graph, names: list[str], model: str, path: Path) -> list[Any]:
    """Write an order that no score gives into a file, and return it by numbers."""
    removed = list(graph.nodes if model == "site" else graph.edges)
    np.random.default_rng(7).shuffle(removed)
    rows = [[own] if model == "site" else own for own in removed]
    text = "".join(",".join(f'"{names[n]}"' for n in row) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")
    return [tuple(own) if model == "bond" else own for own in removed]


def compare_all(path: Path) -> Iterable[str]:
    """Yield a line for every curve of a network in a GML file."""
    read = networkx.Graph(networkx.read_gml(path, label="id").to_undirected())
    read.remove_edges_from(list(networkx.selfloop_edges(read)))
    names = [str(data.get("label", node)) for node, data in read.nodes(data=True)]
    graph = networkx.convert_node_labels_to_integers(read)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    yield f"{path.name}: {len(graph)} sites, {graph.number_of_edges()} bonds; sha256 {digest}"
    for model in ("site", "bond"):
        count = len(graph) if model == "site" else graph.number_of_edges()
        for order in ("random", "degree", "degree:adaptive", "betweenness", "file"):
            given = None
            with tempfile.TemporaryDirectory() as folder:
                if order == "file":
                    file = Path(folder) / "order.csv"
                    given = str(file), write_order(graph, names, model, file)
                values = compare(graph, path, order, model, given)
            yield _line(model, order, count, values)
    if len(graph) <= MOST_SITES:
        values = compare(graph, path, "betweenness:adaptive", "site")
        yield _line("site", "betweenness:adaptive", len(graph), values)


def _line(model: str, order: str, count: int, values: tuple[float, float]) -> str:
    rows = f"{count + 1} rows of 4 equal"
    return f"  {model:5}{order:22}{rows:25}R = {values[0]:.6f}  second largest at {values[1]:.6f}"


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
def main(paths: tuple[Path, ...]) -> None:
    """Compare the curves of networks in GML files."""
    click.echo(f"percolab {percolab.__version__}, networkx {networkx.__version__}")
    for path in paths:
        for line in compare_all(path):
            click.echo(line)


if __name__ == "__main__":
    main()
