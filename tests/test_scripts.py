"""Programs that make the records in results/: they run, and print what they are for."""

import importlib.util
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from percolab.api import sweep

ROOT = Path(__file__).parents[1]


def run(name, *arguments):
    """Run a script, or by FOLDER/NAME a program of results/; return what it prints."""
    folder = ROOT / ("results" if "/" in name else "scripts")
    command = [sys.executable, str(folder / name), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_walks_are_timed_and_compared_with_labeling():
    lines = run("spins/compare_walks.py", "--seconds", 0.01, "--largest", 16).splitlines()
    (found,) = lines[2:]
    assert found.startswith("cubic     16  T = 4.5115  wolff")
    assert "us walking" in found


@pytest.mark.slow
def test_trees_are_timed_and_compared_with_scipy():
    scipys, ours = run("trees/tree_times.py", "-L", 8, "--repeats", 1).splitlines()
    assert scipys.startswith("square, L = 8: scipy")
    assert ours.startswith("kruskal")
    assert ours.endswith("times faster")


@pytest.mark.slow
def test_swendsen_wang_is_timed_and_peers_that_are_missing_are_named():
    short = ("-L", "16,24", "--rounds", 2, "--seconds", 0.01)
    lines = run("spins/compare_spins.py", *short).splitlines()
    rows = [line.split() for line in lines if " ns a spin " in line]
    own = [row for row in rows if row[1] == "percolab"]
    assert [row[:3] for row in own] == [
        [size, "percolab", rng] for size in ("16", "24") for rng in ("xorwow", "philox")
    ]
    assert all(float(row[3]) > 0 for row in rows)
    for name in ("mcising", "peapods"):
        if importlib.util.find_spec(name) is None:
            assert f"{name} is not installed (pip install {name}): it is left out" in lines


@pytest.mark.slow
def test_large_samples_are_tabulated_from_their_files(tmp_path):
    paths = tmp_path / "torus.h5", tmp_path / "open.h5"
    settings = {"L": [60], "p": [0.5], "samples": 4, "device": "cpu", "slabs": 3}
    found = [
        sweep("square", **settings, boundary=boundary, out=path)
        for path, boundary in zip(paths, ("periodic", "open"))
    ]
    head, *lines = (line.split() for line in run("h200/large_lattices.py", *paths).splitlines())
    assert head[:4] == ["lattice", "L", "boundary", "sites"]
    for line, results in zip(lines, found, strict=True):
        (item,) = results.tasks.values()
        clusters = sum(block.sums[0, 0] for block in item.blocks.values()) / (4 * 3600)
        assert float(line[7]) == pytest.approx(clusters)
        assert line[11] == "3"
    # Clusters a site of a torus and their standard deviation, as they are known.
    exact, sigma = 0.098076211, (0.171 / (4 * 3600)) ** 0.5
    assert float(lines[0][8]) == pytest.approx((float(lines[0][7]) - exact) / sigma, abs=0.01)
    assert abs(float(lines[0][8])) <= 4
    assert lines[1][8] == "-"


@pytest.fixture
def recorder(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("record_h200")


class Work:
    """Records of a few lines of Python each, in a folder of their own."""

    def __init__(self, recorder, folder, monkeypatch):
        self.recorder, self.folder = recorder, folder
        # Commands are Python's; there is no GPU, but its number is passed on.
        monkeypatch.setattr(recorder, "processor_name", lambda: "some processor")

    def record(self, file, lines, **more):
        script = self.folder / f"{Path(file).stem}.py"
        script.write_text("import os, sys, time\n" + lines)
        command = f"python {script} {{device}} {{out}}"
        return self.recorder.Record(file, "", (command, *more.pop("then", ())), 1, **more)

    def make(self, *records, gpus=("0", "1"), seconds=60.0):
        end = self.recorder.time.monotonic() + seconds
        place = self.recorder.Place(gpus, self.folder, "abc", end, False)
        return self.recorder.make_all(records, place)


#: Lets two programs wait for each other, so that they end only if they run at the same time.
MEET = """open(sys.argv[0] + '.here', 'w').close()
while not os.path.exists(sys.argv[0].replace('{}', '{}') + '.here'): time.sleep(0.01)
"""


@pytest.fixture
def work(recorder, tmp_path, monkeypatch):
    return Work(recorder, tmp_path, monkeypatch)


def test_records_have_heads_and_gpus_of_their_own(work):
    program = "print(os.environ['CUDA_VISIBLE_DEVICES'], sys.argv[1])\n"
    found = work.make(
        work.record("both.txt", program, gpus=2),
        work.record("all.txt", program, gpus=0),
        work.record("one.txt", program + MEET.format("one.py", "other.py")),
        work.record("other.txt", program + MEET.format("other.py", "one.py")),
        work.record(
            "written.json",
            "open(out := sys.argv[2], 'w').write('{\"found\": 1, \"out\": \"' + out + '\"}')\n",
        ),
    )
    assert all(became.endswith(" s") for became in found.values()), found
    both, every, one, other = (
        (work.folder / f"{name}.txt").read_text().splitlines()
        for name in ("both", "all", "one", "other")
    )
    assert both[-1] == every[-1] == "0,1 cuda:0,1"
    assert sorted((one[-1], other[-1])) == ["0 cuda", "1 cuda"]
    assert one[0].startswith("# commit abc, 20")
    assert "some processor" in one[1]
    assert one[2].startswith("# python 3.")
    assert one[3].startswith(f"# $ python {work.folder / 'one.py'} cuda one.txt")
    document = json.loads((work.folder / "written.json").read_text())
    assert document["found"] == 1
    assert document["out"] == "written.json"
    assert document["record"]["commit"] == "abc"
    assert document["record"]["commands"] == [
        f"python {work.folder / 'written.py'} cuda written.json"
    ]


def test_a_record_that_takes_the_whole_host_is_made_alone(work):
    names = ["before.txt", "alone.txt", "after.txt", "beside.txt"]
    programs = ["time.sleep(0.3)\n"] * 2
    programs += [MEET.format("after.py", "beside.py"), MEET.format("beside.py", "after.py")]
    timed = (f"begin = time.time()\n{code}print(begin, time.time())\n" for code in programs)
    found = work.make(
        *(work.record(n, code, is_alone=n == "alone.txt") for n, code in zip(names, timed))
    )
    assert all(became.endswith(" s") for became in found.values()), found
    begins, ends = zip(
        *(map(float, (work.folder / n).read_text().splitlines()[-1].split()) for n in names)
    )
    assert ends[0] <= begins[1]
    assert ends[1] <= min(begins[2:])


def test_a_failure_keeps_the_older_record_and_the_others_continue(work):
    (work.folder / "bad.txt").write_text("older\n")
    begin = time.monotonic()
    found = work.make(
        work.record("bad.txt", "print('so far', flush=True)\nsys.exit('it is broken')\n"),
        work.record("good.txt", "print(1)\n"),
        work.record("slow.txt", "print('begun', flush=True)\nos.system('sleep 60')\n"),
        work.record("late.txt", "print(1)\n"),
        gpus=(),
        seconds=3.0,
    )
    assert found["bad.txt"] == "FAILED: exit code 1"
    assert (work.folder / "bad.txt").read_text() == "older\n"
    output = (work.folder / "bad.txt.failed").read_text()
    assert "so far" in output
    assert "it is broken" in output
    assert found["good.txt"].endswith(" s")
    assert found["slow.txt"] == "FAILED: took longer than it may"
    # What it had started has ended with it.
    assert time.monotonic() - begin < 30
    assert "begun" in (work.folder / "slow.txt.failed").read_text()
    assert found["late.txt"] == "not begun: the budget does not last"
    assert {path.name for path in work.folder.glob("*.txt")} == {"bad.txt", "good.txt"}


def test_every_record_of_the_h200_has_its_command_and_says_how_old_it_is(recorder):
    folder = ROOT / "results" / "h200"
    if not folder.exists():
        pytest.skip("results are not in this copy")
    files = {record.file for record in recorder.RECORDS}
    there = {path.name for path in folder.iterdir() if path.suffix != ".py"} - {"__pycache__"}
    by_hand = {"before-after.txt"}
    assert there <= files | by_hand | {"bench.png", "README.md", "large"}
    table = (folder / "README.md").read_text()
    for record in recorder.RECORDS:
        assert record.row() in table
        path = folder / record.file
        if not path.exists():
            continue
        if path.suffix == ".json":
            commit = json.loads(path.read_text())["record"]["commit"]
        else:
            first = path.read_text().splitlines()[0]
            commit = re.match(r"# commit (\S+), 20\d\d-\d\d-\d\d", first)[1]
        assert re.fullmatch("[0-9a-f]{7,40}", commit)
        words = " ".join(record.commands).split()
        named = [word for word in words if word.startswith(("scripts/", "tests/", "results/"))]
        assert all((ROOT / word.partition("::")[0]).exists() for word in named)
        modules = [word for word in words if word.startswith("percolab.")]
        assert all(importlib.util.find_spec(module) for module in modules)
