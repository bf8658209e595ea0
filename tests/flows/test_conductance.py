"""Conductance and tortuosity: against dense solves, duality, known networks and images."""

import json

import numpy as np
import pytest
from cli_support import answer, refusal
from flow_support import chain_flow, random_flow, sample_flows
from helpers import slow

import percolab
from percolab.errors import InputError
from percolab.flows import elimination
from percolab.flows.flow import Circuit, Flow
from percolab.flows.net import BondList


def with_conductances(flow, low=0.05, high=2.0):
    """Return the same flow with random conductances of the bonds."""
    values = np.random.default_rng(3).uniform(low, high, flow.is_open.size)
    return Flow(flow.circuit, flow.is_open, conductances=values)


def dense_solution(flow):
    """Return the conductance and the shares of currents by the matrix of the whole network."""
    net = flow.circuit.joined
    pairs = net.pairs[flow.is_open != 0].astype(int)
    values = np.ones(flow.is_open.size) if flow.conductances is None else flow.conductances
    values = values[flow.is_open != 0]
    size = net.starts.size - 1
    matrix = np.zeros((size, size))
    np.add.at(matrix, (pairs[:, 0], pairs[:, 1]), -values)
    matrix = matrix + matrix.T
    matrix -= np.diag(matrix.sum(axis=0))
    inflow = np.zeros(size)
    inflow[[net.root, net.sink]] = 1, -1
    potentials = np.linalg.pinv(matrix) @ inflow
    shares = values * (potentials[pairs[:, 0]] - potentials[pairs[:, 1]])
    return 1 / (potentials[net.root] - potentials[net.sink]), shares


@pytest.mark.parametrize("way", ["elimination", slow("gradients")])
def test_conductance_and_currents_are_those_of_a_dense_solve(way, monkeypatch):
    if way == "gradients":
        monkeypatch.setattr(elimination, "MOST_WORK", 0)
        monkeypatch.setattr(elimination, "LEAST_WORK", 0)
    solved = 0
    for number in range(300):
        flow = with_conductances(random_flow(number))
        if not flow.connected:
            assert (flow.conductance, flow.resistance) == (0, np.inf)
            assert not flow.currents.any()
            continue
        conductance, shares = dense_solution(flow)
        assert flow.conductance == pytest.approx(conductance, rel=1e-12)
        np.testing.assert_allclose(flow.currents, shares, atol=1e-12)
        solved += 1
    assert solved > 80


def test_lists_that_move_leave_no_gaps(monkeypatch):
    eliminate, rooms = elimination._eliminate, []

    def watched(lists, *arrays):
        found = eliminate(lists, *arrays)
        rooms.append((found[1].size, int(np.maximum(lists.size, lists.room).sum())))
        return found

    monkeypatch.setattr(elimination, "_eliminate", watched)
    image = np.random.default_rng(1).random((24, 24, 24)) < 0.6
    found = percolab.flow(image)
    assert found.conductance > 0
    ((room, used),) = rooms
    assert room < 2.5 * used
    # Kirchhoff: what flows into a site flows out of it.
    flow = np.zeros(image.size)
    for end, sign in zip(found.bonds.T, (1, -1)):
        flow += np.bincount(end, sign * found.currents, flow.size)
    inside = flow.reshape(image.shape)[1:-1]
    assert np.abs(inside).max() < 1e-9


@pytest.mark.parametrize(
    ("name", "size", "p", "boundary"),
    [
        ("square", 10, 0.6, ("periodic", "open")),
        slow("cubic", 6, 0.4, ("open", "open", "open")),
        slow("kagome", 5, 0.7, ("open", "open")),
    ],
)
def test_conductance_of_samples_is_that_of_a_dense_solve(name, size, p, boundary):
    for flow in sample_flows(name, size, p, boundary, samples=6):
        if flow.connected:
            assert flow.conductance == pytest.approx(dense_solution(flow)[0], rel=1e-11)
            assert flow.current_moment(2) == pytest.approx(flow.resistance, rel=1e-11)
            assert (flow.largest_current > 1 - 1e-9) == (flow.num_red > 0)


def test_conductances_of_simple_networks_are_known():
    assert chain_flow(1000, closed=True).conductance == pytest.approx(2 / 500, rel=1e-13)
    assert chain_flow(1000, closed=False).conductance == pytest.approx(1 / 500, rel=1e-13)
    # A balanced bridge of Wheatstone: the backbone has five bonds, and no current in one of them.
    sites = np.array([(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)], np.int32)
    ends = np.array([[0], [3]], np.int32)
    flow = Flow(Circuit(BondList(np.arange(5), sites), 4, *ends), np.ones(5, np.uint8))
    assert flow.num_backbone == 5
    assert flow.conductance == 1
    assert np.abs(flow.currents).tolist() == [0.5, 0.5, 0, 0.5, 0.5]
    assert flow.current_moment(4) == 0.25


def test_elimination_and_gradients_agree_on_a_large_sample(monkeypatch):
    (flow,) = sample_flows("square", 128, 0.6, ("open", "open"), samples=1)
    exact, currents = flow.conductance, flow.currents
    monkeypatch.setattr(elimination, "MOST_WORK", 0)
    monkeypatch.setattr(elimination, "LEAST_WORK", 1000)
    again = Flow(flow.circuit, flow.is_open)
    assert again.conductance == pytest.approx(exact, rel=1e-11)
    np.testing.assert_allclose(again.currents, currents, atol=1e-9)
    assert again.conductance != exact


def dense_tortuosity(image, *, periodic=False):
    """Return porosity / (D_eff / D) along the first axis of an array, by the matrix of its voxels.

    Concentrations 1 and 0 at the two faces, half a voxel from the middle of the first and the last
    layer; nothing flows through the other sides, or they are periodic.
    """
    voxels = np.argwhere(image)
    number = {tuple(at): n for n, at in enumerate(voxels.tolist())}
    matrix, inflow = np.eye(len(voxels)) * 0.0, np.zeros(len(voxels))
    for at, n in number.items():
        for axis in range(image.ndim):
            for step in (-1, 1):
                other = list(at)
                other[axis] += step
                if axis and periodic:
                    other[axis] %= image.shape[axis]
                if axis == 0 and not 0 <= other[0] < image.shape[0]:
                    matrix[n, n] += 2
                    inflow[n] += 2 * (step < 0)
                elif tuple(other) in number:
                    matrix[n, n] += 1
                    matrix[n, number[tuple(other)]] -= 1
    # Without contact to a face a piece has any concentration, here the least.
    concentration = np.linalg.lstsq(matrix, inflow, rcond=None)[0]
    flux = sum(2 * (1 - concentration[n]) for at, n in number.items() if at[0] == 0)
    area = image[0].size
    through = np.zeros(image.shape)
    for at, n in number.items():
        # What leaves is what enters.
        gained = 2 * (1 - concentration[n]) * (at[0] == 0)
        drops = [concentration[m] - concentration[n] for m in np.flatnonzero(matrix[n]) if m != n]
        times = [-matrix[n, m] for m in np.flatnonzero(matrix[n]) if m != n]
        gained += sum(max(drop, 0) * many for drop, many in zip(drops, times))
        through[at] = gained / flux
    return image.mean() / (flux * image.shape[0] / area), through


def test_a_bent_channel_has_the_square_of_its_length():
    """n voxels one after the other, over L layers: G = 1 / n, so that tau = (n / L)^2."""
    stairs = np.zeros((6, 7), bool)
    stairs[0, 0] = stairs[5, 4] = True
    for n in range(1, 5):
        stairs[n, n - 1 : n + 1] = True
    assert percolab.flow(stairs).tortuosity == pytest.approx((10 / 6) ** 2, rel=1e-13)
    dead_end = stairs.copy()
    dead_end[4, 5:] = dead_end[0, 6] = True
    through = percolab.flow(dead_end).through.reshape(dead_end.shape)
    np.testing.assert_allclose(through, stairs, rtol=1e-12)
    # Voxels without a current raise the porosity alone.
    more = dead_end.sum() / stairs.sum()
    assert percolab.flow(dead_end).tortuosity == pytest.approx(more * (10 / 6) ** 2)


@pytest.mark.parametrize(
    ("shape", "p"), [slow((14, 11), 0.75), ((2, 6), 0.9), slow((6, 5, 7), 0.55), ((7, 3, 3), 0.9)]
)
def test_random_images_are_those_of_a_dense_solve(shape, p):
    rng, spanning = np.random.default_rng(5), 0
    last = "yz"[len(shape) - 2]
    for _ in range(4):
        image = rng.random(shape) < p
        found = percolab.flow(image)
        if not found.connected:
            assert found.tortuosity == np.inf
            continue
        spanning += 1
        tortuosity, through = dense_tortuosity(image)
        assert found.tortuosity == pytest.approx(tortuosity, rel=1e-9)
        np.testing.assert_allclose(found.through.reshape(shape), through, rtol=0, atol=1e-9)
        assert found.tortuosity >= 1 - 1e-12
        along_x = percolab.flow(image, axis="x").tortuosity
        turned = percolab.flow(np.moveaxis(image, -1, 0), axis=last).tortuosity
        assert along_x == pytest.approx(turned, rel=1e-9) or along_x == turned == np.inf
        rolled = ("periodic",) * (len(shape) - 1) + ("open",)
        wrapped = percolab.flow(image, boundary=rolled).tortuosity
        assert wrapped == pytest.approx(dense_tortuosity(image, periodic=True)[0], rel=1e-9)
    assert spanning >= 2


def test_an_image_of_fewer_columns_has_the_tortuosity_of_all_with_the_sides_of_its_voxels():
    bends = np.array([[1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 1], [1, 1, 1, 1]])
    fine = np.kron(bends, np.ones((16, 16), bool))
    whole = percolab.flow(fine).tortuosity
    assert percolab.flow(fine[:, ::2], voxel=(2, 1)).tortuosity == pytest.approx(whole, rel=0.02)
    assert percolab.flow(fine[::2], voxel=(1, 2)).tortuosity == pytest.approx(whole, rel=0.02)
    assert abs(percolab.flow(fine[:, ::2]).tortuosity / whole - 1) > 0.1


def test_sides_of_voxels_are_those_of_a_weighted_dense_solve():
    bent = np.array([[1, 0, 0], [1, 1, 1], [0, 0, 1]], bool)
    # Half a voxel, a whole one up, two across, one up, half a one: lengths over cross-sections.
    for x, y in ((1.0, 1.0), (3.0, 1.0), (1.0, 2.5)):
        resistance = (0.5 + 1 + 1 + 0.5) * y / x + 2 * x / y
        share, length, width = 5 / 9, 3 * y, 3 * x
        expected = share * width * resistance / length
        assert percolab.flow(bent, voxel=(x, y)).tortuosity == pytest.approx(expected)
    assert percolab.flow(bent, voxel=(5, 5)).tortuosity == percolab.flow(bent).tortuosity
    for wrong in ((1,), (1, 0), (1, "a"), "ab", (1, 2, 3), (1, np.inf)):
        with pytest.raises(InputError, match=r"voxel .*the sides along x, y must be 2 positive"):
            percolab.flow(bent, voxel=wrong)
    with pytest.raises(InputError, match="only an image on the square or cubic lattice"):
        percolab.flow("square", 4, voxel=(1, 2))


def test_across_a_single_layer_the_way_is_straight():
    """As along a column of its own: here each voxel touches both faces."""
    layer = np.random.default_rng(1).random((1, 6, 20)) < 0.8
    np.save("layer.npy", layer)
    told = json.loads(answer("label", "layer.npy", "--tortuosity", "--json"))["tortuosity"]
    assert told["z"] == 1.0
    assert told["y"] == percolab.flow(layer[0], axis="y").tortuosity > 1


def test_the_command_takes_the_sides_of_voxels():
    bent = np.array([[1, 0, 0], [1, 1, 1], [0, 0, 1]], bool)
    np.save("bent.npy", bent)
    told = json.loads(answer("label", "bent.npy", "--tortuosity", "--voxel", "3,1", "--json"))
    assert told["tortuosity"]["y"] == pytest.approx(percolab.flow(bent, voxel=(3, 1)).tortuosity)
    assert "--voxel: only with --tortuosity" in refusal("label", "bent.npy", "--voxel", "3,1")
    line = refusal("label", "bent.npy", "--tortuosity", "--voxel", "3")
    assert "--voxel 3: the sides along x, y must be 2 positive numbers" in line
    for sides in ("1e300,1", "inf,inf", "1e308,-1"):
        line = refusal("label", "bent.npy", "--tortuosity", "--voxel", sides)
        assert f"--voxel {sides}: " in line
    tiny = answer("label", "bent.npy", "--tortuosity", "--voxel", "3e-300,1e-300", "--json")
    assert json.loads(tiny)["tortuosity"] == pytest.approx(told["tortuosity"])


@pytest.mark.parametrize(
    "make",
    [
        lambda: percolab.flow("square", 8, 0.9),
        lambda: percolab.flow(np.ones((5, 5), bool), source=0, target="y+"),
        lambda: percolab.flow(np.ones((5, 5), bool), lattice="triangular"),
        lambda: percolab.flow(np.ones((5, 5), bool), boundary="periodic"),
        lambda: percolab.flow(np.ones((5, 5), bool), conductances=np.ones((2, 5, 5))),
        lambda: percolab.flow(graph=[(0, 1)], source=0, target=1),
    ],
)
def test_what_is_no_image_between_faces_has_none(make):
    with pytest.raises(InputError, match="tortuosity needs the flow between two opposite"):
        _ = make().tortuosity


def test_the_command_writes_it_for_every_open_axis():
    image = np.zeros((4, 6), bool)
    image[:, 2:4] = True
    np.save("channel.npy", image)
    text = answer("label", "channel.npy", "--tortuosity")
    assert "tortuosity along y: 1\n" in text
    assert "tortuosity along x: infinite, nothing spans along it" in text
    record = json.loads(answer("label", "channel.npy", "--tortuosity", "--json"))
    assert record["tortuosity"] == {"x": None, "y": pytest.approx(1)}
    assert "tortuosity" not in json.loads(answer("label", "channel.npy", "--json"))
    np.save("phases.npy", image + 1)
    phases = "phases.npy", "--phase", "1,2"
    assert refusal("label", *phases, "--tortuosity").startswith("tortuosity needs a single phase")
    for words in (
        ("channel.npy", "--lattice", "triangular"),
        ("channel.npy", "--boundary", "periodic"),
        ("--lattice", "square", "-L", "8", "-p", "0.5"),
    ):
        assert "image on the square or cubic lattice" in refusal("label", *words, "--tortuosity")
