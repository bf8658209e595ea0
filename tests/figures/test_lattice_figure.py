"""Lattices, graphs and clusters as pictures: what is drawn, named, coloured and refused."""

import json
import subprocess
import sys

import networkx
import numpy as np
import pytest
from cli_support import answer, refusal, run
from helpers import PLANAR, TEXTS, slow, slow_but
from matplotlib.colors import same_color
from matplotlib.path import Path as Outline
from show_support import colour_of_labels, drawn, hexes, whole_cells

import percolab
from percolab.configurations import picture, random_configuration, site_configuration
from percolab.errors import InputError
from percolab.figures import COLOURS, save_figure
from percolab.figures.colours import LARGEST, MUTED, NO_SITE, SINGLE, SPANNING, choose_colours
from percolab.figures.lattice import plot_lattice
from percolab.figures.networks import network_places
from percolab.lattices.graph import make_graph
from percolab.lattices.lattice import Lattice, lattice_from_text, lattice_names, load_lattice

FLAT = [name for name in lattice_names() if load_lattice(name).dimension == 2]
#: Sites of the block that is drawn: cubes of one period along the axes, or two if it is short.
IN_SPACE = {"cubic": 27, "bcc": 9, "fcc": 14, "diamond": 18, "stacked-triangular": 24}
TOO_HIGH = [name for name in lattice_names() if load_lattice(name).dimension > 3]


def num_sites(item):
    return np.prod(item.cell) - len(item.vacant)


@pytest.mark.parametrize("name", FLAT)
def test_cell_is_drawn_with_one_copy_of_every_site_and_bond(name):
    item = load_lattice(name)
    axes = plot_lattice(item).axes[0]
    (_, own_bonds), (_, own_sites), (cell,) = axes.collections, axes.lines, axes.patches
    assert same_color(own_bonds.get_color()[0], COLOURS[0])
    assert len(own_bonds.get_segments()) == num_sites(item) * item.coordination_number / 2
    places = np.stack(own_sites.get_data(), axis=1)
    assert len(places) == num_sites(item)
    assert Outline(cell.get_xy()).contains_points(places).all()


def lattice_of_two(places):
    """Return a lattice whose unit cell has two sites at these places, in parts of its vectors."""
    return lattice_from_text(
        f"""name = "own"
        dimension = 2
        [unit_cell]
        vectors = [[1, 0], [0, 1]]
        sites = [{places}]
        bonds = [
            {{ from = 0, to = 1, cell = [0, 0] }},
            {{ from = 1, to = 0, cell = [1, 0] }},
            {{ from = 1, to = 0, cell = [0, 1] }},
        ]
        """,
        where="own",
    )


@pytest.mark.parametrize(
    "places", ["[0, 0], [0.5, 0.5]", "[0.5, 0.5], [0.5, 0.75]", "[0.9, 0.1], [0.3, 0.4]"]
)
def test_sites_of_a_unit_cell_keep_away_from_its_outline(places):
    item = lattice_of_two(places)
    axes = plot_lattice(item).axes[0]
    (cell,), own_sites = axes.patches, np.stack(axes.lines[1].get_data(), axis=1)
    parts = own_sites - cell.get_xy().min(axis=0)
    assert parts.shape == (2, 2)
    assert parts.min() > 0.2
    assert parts.max() < 0.8


@pytest.mark.parametrize("name", slow_but(FLAT, "honeycomb", "kagome"))
def test_copies_fill_the_window(name):
    item = load_lattice(name)
    axes = plot_lattice(item).axes[0]
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    places = np.concatenate([np.stack(line.get_data(), axis=1) for line in axes.lines])
    inside = (places > [left, bottom]).all(axis=1) & (places < [right, top]).all(axis=1)
    cell_area = abs(np.linalg.det(np.array(item.vectors) * np.array(item.cell)[:, None]))
    expected = num_sites(item) * (right - left) * (top - bottom) / cell_area
    assert inside.sum() == pytest.approx(expected, rel=0.3)
    for corner in ([left, bottom], [left, top], [right, bottom], [right, top]):
        assert np.linalg.norm(places - corner, axis=1).min() < 2.2


def test_lattice_with_a_vacant_point_is_drawn_without_it():
    axes = plot_lattice(load_lattice("kagome")).axes[0]
    places = np.concatenate([np.stack(line.get_data(), axis=1) for line in axes.lines])
    assert np.linalg.norm(places - [1.5, np.sqrt(0.75)], axis=1).min() > 0.99


@pytest.mark.parametrize("name", IN_SPACE)
def test_block_in_space_holds_the_sites_of_whole_periods(name):
    axes = plot_lattice(load_lattice(name)).axes[0]
    markers = [line for line in axes.lines if line.get_marker() == "o"]
    assert len(markers) == IN_SPACE[name]
    depths = [line.get_zorder() for line in markers]
    sizes = [line.get_markersize() for line in markers]
    assert np.argmax(depths) == np.argmax(sizes)


@pytest.mark.parametrize("name", slow_but([*FLAT, *IN_SPACE], "kagome", "cubic"))
def test_title_names_lattice_and_coordination_number(name):
    item = load_lattice(name)
    figure = plot_lattice(item)
    title = figure.axes[0].get_title()
    assert item.title in title
    assert f"z = {item.coordination_number:.4g}" in title
    assert figure.legends


def test_equal_figures_are_equal_files(tmp_path):
    files = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for file in files:
        save_figure(plot_lattice(load_lattice("ruby")), file)
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize("name", TOO_HIGH)
def test_more_than_three_dimensions_are_refused(name):
    dimension = load_lattice(name).dimension
    assert refusal("lattices", name, "--plot") == (
        f"{name} has dimension {dimension}; only 2 and 3 can be drawn"
    )


def test_a_unit_cell_without_places_of_its_sites_is_told_how_they_are_given():
    bonds = "{ from = 0, to = 0, cell = [1, 0] }, { from = 0, to = 0, cell = [0, 1] }"
    unit_cell = f"[unit_cell]\nsites = 1\nbonds = [{bonds}]\n"
    flat = lattice_from_text(f'name = "own"\ndimension = 2\n{unit_cell}', where="own")
    with pytest.raises(
        InputError, match=r"own: to draw it, \[unit_cell\] needs the cell's vectors"
    ):
        plot_lattice(flat)


@pytest.mark.parametrize("drawing", ["", "[drawing]\nvectors = [[1, 0], [2, 0]]\n"])
def test_lattice_without_places_is_not_drawn(drawing):
    item = lattice_from_text(TEXTS["kagome"].partition("[drawing]")[0] + drawing, where="x")
    with pytest.raises(
        InputError, match=r"kagome: to draw it, \[drawing\] needs independent vectors"
    ):
        plot_lattice(item)


@pytest.mark.parametrize("place", [[0.0, 0.0], [1.0, 0.0]])
def test_sites_at_one_place_are_not_drawn(place):
    bonds = [(0, 1, (0, 0)), (1, 0, (1, 0)), (1, 0, (0, 1))]
    item = Lattice.from_cell(np.eye(2) * 1e-10, [[0, 0], place], bonds, name="x")
    with pytest.raises(InputError, match=r"^x: cannot be drawn: sites 0 and 1 are at"):
        plot_lattice(item)


def test_a_lattice_in_space_is_drawn_in_any_unit_of_length():
    bonds = [(0, 0, (1, 0, 0)), (0, 0, (0, 1, 0)), (0, 0, (0, 0, 1))]
    cells = (Lattice.from_cell(np.eye(3) * unit, [[0, 0, 0]], bonds) for unit in (1, 1e-10, 1e10))
    assert len({len(plot_lattice(item).axes[0].lines) for item in cells}) == 1


def test_dollar_sign_in_a_title_begins_no_mathematics(tmp_path):
    text = TEXTS["kagome"].replace("dimension", 'title = "costs $3^"\ndimension', 1)
    save_figure(plot_lattice(lattice_from_text(text, where="x")), tmp_path / "x.svg")


def test_figure_is_named_after_the_lattice_or_as_asked(tmp_path):
    assert answer("lattices", "snub-square", "--plot").startswith("figure in snub-square.png\n")
    assert (tmp_path / "snub-square.png").read_bytes().startswith(b"\x89PNG")
    result = run("lattices", "diamond", "--plot", "crystal.svg", "--json")
    assert result.stderr == "figure in crystal.svg\n"
    assert (tmp_path / "crystal.svg").exists()


def test_lattice_of_a_file_is_described_and_drawn(tmp_path):
    (tmp_path / "mine.toml").write_text(TEXTS["honeycomb_unit_cell"])
    text = answer("lattices", "mine.toml", "--plot")
    assert (tmp_path / "honeycomb_unit_cell.png").exists()
    assert "sites                2 L^2" in text


def test_list_has_thresholds_and_sources_of_every_lattice():
    rows = answer("lattices").splitlines()
    for name in lattice_names():
        (row,) = (line for line in rows if line.split()[:1] == [name])
        item = load_lattice(name)
        dimension, z, bond, site = row.split()[1:5]
        assert (int(dimension), z) == (item.dimension, f"{item.coordination_number:.4g}")
        for text, model in ((bond, "bond"), (site, "site")):
            known = item.threshold(model)
            if known is None:
                assert text == "-"
                continue
            assert float(text.partition("(")[0]) == pytest.approx(known.value, abs=1e-10)
            assert known.cite in row
            assert f"  {known.cite}: {known.reference}" in rows


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("cubic", "0.24881185(10)"),
        ("diamond", "0.4299870(4)"),
        ("honeycomb", "0.6527036446661393 = 1 - 2 sin(pi/18)"),
        ("kagome", "vacant points        [1, 1]"),
        ("kagome", "[1, -1]    -   [1, 0] [0, 1]"),
        ("kagome", "sites                0.75 L^2"),
        ("square", "[-1, 0]    x   all"),
        ("three-twelve", "C. R. Scullard and J. L. Jacobsen, Phys. Rev. Research 2, 012050 (2020)"),
    ],
)
def test_description_names_cell_thresholds_and_sources(name, shown):
    assert shown in answer("lattices", name)


@pytest.mark.slow
def test_drawing_needs_no_pyplot():
    code = (
        "import sys; from percolab.lattices.lattice import load_lattice\n"
        "from percolab.figures.lattice import plot_lattice\n"
        "assert 'matplotlib' not in sys.modules\n"
        "plot_lattice(load_lattice('bcc'))\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def hub_last():
    graph = networkx.Graph()
    graph.add_nodes_from(range(41))
    graph.add_edges_from([(40, n) for n in range(40)] + [(0, 1), (2, 3)])
    return graph


KARATE, HUB = networkx.karate_club_graph(), hub_last()


@pytest.mark.parametrize(
    ("given", "model"),
    [(KARATE, "bond"), (HUB, "site"), (KARATE, "bond-weight")]
    + [slow(HUB, "bond"), slow(KARATE, "site"), slow(HUB, "bond-weight")],
    ids=str,
)
def test_drawn_bonds_and_colours_are_those_of_the_clusters(given, model, monkeypatch):
    graph, shown = make_graph(given), []
    if model == "bond-weight":
        graph = graph.with_weights(np.linspace(0.2, 1, graph.num_bonds))
    draw = picture.plot_network
    monkeypatch.setattr(
        picture, "plot_network", lambda *args, **keys: (shown.append(args), draw(*args, **keys))[1]
    )
    figure, numbers = picture.draw_sample_picture(graph, graph.num_sites, 0.4, model=model, seed=2)
    ((_, _, opened),) = shown
    labels = percolab.label(graph=graph, p=0.4, model=model, seed=2)
    assert numbers["site_labels"] == labels.tolist()
    left = networkx.Graph()
    left.add_nodes_from(np.flatnonzero(labels >= 0).tolist())
    left.add_edges_from(graph.bonds.pairs[opened].tolist())
    assert 0 < opened.sum() < graph.num_bonds
    for part in networkx.connected_components(left):
        assert {int(labels[site]) for site in part} == {min(part)}
    places = np.array(numbers["site_places"])
    assert places.shape == (graph.num_sites, 2)
    assert np.abs(places).max() == 1
    again = picture.draw_sample_picture(graph, graph.num_sites, 0.4, model=model, seed=2)[1]
    assert again == numbers
    assert len(figure.axes) == 1


def test_components_of_a_graph_stand_side_by_side():
    grid = networkx.convert_node_labels_to_integers(networkx.grid_graph((7, 7)))
    alone = network_places(make_graph(grid))
    apart = network_places(make_graph(networkx.disjoint_union(grid, networkx.empty_graph(6))))
    # The grid keeps its form and most of the room; the single sites have a row below it.
    assert np.ptp(apart[:49], axis=0).min() > 1
    assert apart[49:, 1].max() < apart[:49, 1].min() - 0.1
    assert np.ptp(apart[49:, 0]) > 1.5
    assert np.corrcoef(alone[:, 0], apart[:49, 0])[0, 1] > 0.999


def test_the_command_line_draws_a_graph_and_refuses_what_it_has_not(tmp_path):
    networkx.write_edgelist(networkx.path_graph(6), "p.txt", data=False)
    found = json.loads(answer("show", "--graph", "p.txt", "-p", 1, "--json"))
    assert found["site_labels"] == [0] * 6
    assert (tmp_path / "clusters.png").stat().st_size > 5000
    networkx.write_edgelist(networkx.path_graph(1001), "long.txt", data=False)
    show = ("show", "--graph", "p.txt", "-p", "0.5")
    for command, message in (
        (("show", "--graph", "long.txt", "-p", 0.5), "1001 sites, but only graphs of at most 1000"),
        (("show", "--graph", "p.txt"), "a picture of a sample needs -p"),
        ((*show, "--tree"), "--tree: a graph is drawn with its clusters alone"),
        ((*show, "-L", 8), "-L: a graph is drawn with its clusters alone"),
        ((*show, "--model", "ising"), "spins have no single samples"),
    ):
        assert message in refusal(*command)


@pytest.mark.parametrize("name", PLANAR)
def test_clusters_that_touch_have_different_colours(name):
    lattice = load_lattice(name)
    size = whole_cells(lattice, 20)
    configuration = random_configuration(lattice, size, 0.8 * lattice.threshold().value, seed=2)
    clusters = configuration.label()
    colours = choose_colours(clusters)
    _, owner, other = configuration.topology.bonds().T
    differ = clusters.labels[owner] != clusters.labels[other]
    large = clusters.sizes[clusters.numbers] > 1
    differ &= large[owner] & large[other]
    assert differ.sum() > 20
    assert not (colours.of_sites[owner] == colours.of_sites[other])[differ].any()


def test_spanning_clusters_and_the_largest_stand_out():
    image = np.zeros((7, 9), bool)
    image[0], image[2, 1:], image[4:, 4:] = True, True, True
    image[2, 0] = True
    image[4, 0] = image[6, 0:2] = True
    np.save("image.npy", image)
    clusters = site_configuration("image.npy").label()
    assert [name for name, found in clusters.spanning.items() if found.size] == ["x"]
    colours = choose_colours(clusters)
    found = colour_of_labels(range(63), hexes(colours.rgb() / 255), clusters.labels)
    top, line, block, single, pair = (0, 18, 40, 36, 54)
    assert found[-1] == NO_SITE
    assert found[block] == LARGEST.lower()
    assert [found[top], found[line]] == [colour.lower() for colour in SPANNING[:2]]
    assert found[single] == SINGLE
    assert found[pair] in MUTED
    _, _, numbers = drawn(site_configuration("image.npy"))
    assert [(item["label"], item["size"], item["spanning"]) for item in numbers["prominent"]] == [
        (block, 15, []),
        (top, 9, ["x"]),
        (line, 9, ["x"]),
    ]


def test_no_two_colours_are_alike():
    assert len({*MUTED, *SPANNING, LARGEST, SINGLE, NO_SITE}) == len(MUTED) + len(SPANNING) + 3


def test_legend_says_what_is_drawn():
    np.save("image.npy", np.array([[1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 0, 1]]))
    _, figure, _ = drawn(site_configuration("image.npy"))
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "largest cluster, 4 of 7 sites, spans along x",
        "1 other cluster",
        "1 single site",
    ]
    every = random_configuration(load_lattice("square"), 4, 1.0)
    (text,) = drawn(every)[1].legends[0].get_texts()
    assert text.get_text() == "largest cluster, 16 of 16 sites, spans along x and y"


@pytest.mark.parametrize("places", ["[0.5, 0.5], [0.5, 0.75]", "[0, 0.1], [0.9, 0.9]"])
def test_all_sites_of_a_unit_cell_are_in_the_picture(places):
    _, figure, _ = drawn(random_configuration(lattice_of_two(places), 5, 1.0))
    axes = figure.axes[0]
    sites = axes.collections[-1].get_offsets()
    assert len(sites) == 50
    low, high = np.transpose([axes.get_xlim(), axes.get_ylim()])
    assert (sites > low).all()
    assert (sites < high).all()


def test_an_image_has_an_outline_where_its_corners_are_vacant():
    mask = np.zeros((3, 4, 5), bool)
    mask[:, 1, 2] = True
    np.save("image.npy", mask)
    _, figure, _ = drawn(site_configuration("image.npy"))
    for axes in figure.axes:
        (outline,) = axes.patches
        assert outline.get_xy()[:-1].tolist() == [
            [-0.5, -0.5],
            [4.5, -0.5],
            [4.5, 3.5],
            [-0.5, 3.5],
        ]
        assert not outline.get_fill()


def test_many_spanning_clusters_are_counted_in_the_legend():
    stripes = np.zeros((13, 5), bool)
    stripes[::2] = True
    np.save("image.npy", stripes)
    _, figure, numbers = drawn(site_configuration("image.npy"))
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(texts) == 5
    assert texts[-1] == "3 more clusters that span, in the same colours again"
    assert [each["colour"] for each in numbers["prominent"]] == [*SPANNING, *SPANNING[:2]]


def test_touching_clusters_that_span_have_different_colours():
    rows = len(SPANNING) + 1  # so many that in turn the last has the colour of the first
    image = np.repeat(1 + np.arange(rows) % 2, 4).reshape(rows, 4)
    clusters = site_configuration(image, phase="1,2", boundary="open,periodic").label()
    assert len(clusters.spanning["x"]) == rows
    of_rows = choose_colours(clusters).of_sites.reshape(rows, 4)[:, 0]
    assert (of_rows != np.roll(of_rows, 1)).all()


def test_nothing_can_be_drawn():
    np.save("image.npy", np.zeros((3, 3), bool))
    _, figure, numbers = drawn(site_configuration("image.npy"))
    assert numbers["clusters"] == 0
    assert not figure.legends
    save_figure(figure, "empty.png")
