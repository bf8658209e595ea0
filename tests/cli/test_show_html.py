"""percolab show --html: the page counts the clusters that percolab counts, and loads nothing."""

import json
import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from cli_support import refusal, run
from helpers import slow

import percolab
from percolab.bonds.words import TOP, XORWOW
from percolab.configurations import random_configuration
from percolab.configurations.sample_page import sample_page
from percolab.coupled import new_coupling
from percolab.coupled.thresholds import find_thresholds
from percolab.lattices.lattice import lattice_from_text, load_lattice
from percolab.tasks.study_file import make_request

CORE = Path(percolab.__file__).parent / "figures/pages/clusters.js"
#: Steps of the slider, and some p between them.
PROBABILITIES = (0.0, 0.3, 0.5, 0.527, 0.6180339, 0.75, 1.0)
_PROGRAM = """
const page = require(process.argv[1]);
const { data, ps } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const sample = page.readSample(data);
const curves = page.curvesOf(sample);
const at = ps.map((p) => {
  const count = page.countAt(sample, p);
  const { labels, forest } = page.clustersAt(sample, count);
  const roots = [...labels.keys()].filter((site) => labels[site] === site);
  return { count, labels: [...labels], size: roots.map((root) => forest.size[root]),
           crosses: roots.map((root) => [forest.crosses(root, 0), forest.crosses(root, 1)]),
           largest: forest.largest, clusters: forest.clusters };
});
const numbers = curves.crossed.map((n) => (n === null ? null : page.numberOf(sample, n)));
console.log(JSON.stringify({ at, curves, numbers }));
"""
node = shutil.which("node")
chromium = shutil.which("chromium") or shutil.which("chromium-browser")
needs_node = pytest.mark.skipif(node is None, reason="needs node")


class Page(HTMLParser):
    """The text of a page's elements by tag and id, and all tags and attributes."""

    def __init__(self, text):
        super().__init__()
        self.texts, self.tags, self.attributes, self._open = {}, [], [], None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self._open = dict(attrs).get("id", tag)

    def handle_endtag(self, tag):
        self._open = None

    def handle_data(self, data):
        self.texts[self._open] = self.texts.get(self._open, "") + data


def sample_of(page):
    return json.loads(Page(page).texts["sample"])


def computed(page, ps=PROBABILITIES):
    """Return what the page's own functions find of its sample."""
    text = json.dumps({"data": sample_of(page), "ps": ps})
    done = subprocess.run(
        [node, "-e", _PROGRAM, CORE], input=text, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@needs_node
@pytest.mark.parametrize(
    ("name", "L", "model", "boundary"),
    [
        slow("square", 20, "bond", "open"),
        slow("kagome", 12, "bond", "periodic,open"),
        ("triangular", 12, "site", "periodic"),
        slow("square", 128, "bond", "open"),
        slow("square-nnn", 24, "site", "open,periodic"),
        slow("honeycomb", 24, "bond", "periodic"),
        slow("three-twelve", 36, "site", "open"),
        slow("square:1-3", 12, "site", "periodic"),
        slow("square", 1, "bond", "open"),
        slow("square", 2, "bond", "periodic"),
    ],
)
def test_page_finds_the_clusters_and_thresholds_of_percolab(name, L, model, boundary):
    lattice = load_lattice(name)
    keys = {"model": model, "boundary": boundary}
    page, _ = sample_page(lattice, L, **keys)
    found = computed(page)
    for p, at in zip(PROBABILITIES, found["at"], strict=True):
        configuration = random_configuration(lattice, L, p, **keys)
        clusters = configuration.label()
        np.testing.assert_array_equal(at["labels"], clusters.labels)
        assert at["size"] == clusters.sizes.tolist()
        assert (at["clusters"], at["largest"]) == (
            clusters.sizes.size, clusters.sizes.max(initial=0)
        )  # fmt: skip
        ways = {**clusters.spanning, **clusters.wrapping}
        expected = np.zeros((clusters.sizes.size, 2), bool)
        for axis, axis_name in enumerate("xy"):
            expected[ways[axis_name], axis] = True
        assert at["crosses"] == expected.tolist()
        opened = np.bitwise_count(configuration.opened).sum()
        assert at["count"] == (configuration.sites.sum() if model == "site" else opened)
        step = round(1000 * p)
        if step == 1000 * p:
            others = (clusters.sizes**2).sum() - clusters.sizes.max(initial=0) ** 2
            sites = configuration.topology.num_sites
            assert found["curves"]["mean"][step] == pytest.approx(others / sites, rel=1e-12)
            assert found["curves"]["share"][step] == at["largest"] / sites
    for axis, number in enumerate(found["numbers"]):
        # None: never; 0: already without an open bond.
        around = [] if not number else [(number - 1e-7, False), (number + 1e-7, True)]
        for p, expected in around or [(0.0, number == 0), (1.0, number == 0)]:
            clusters = random_configuration(lattice, L, p, **keys).label()
            ways = {**clusters.spanning, **clusters.wrapping}
            assert (ways["xy"[axis]].size > 0) == expected


@needs_node
def test_thresholds_of_the_page_are_those_of_a_study_of_thresholds():
    lattice, L = load_lattice("square"), 20
    task = make_request(lattice, L=[L], p=[0.5]).study.tasks[L]
    coupling = new_coupling("raster", "cpu", lattice.topology(task.shape, task.boundary))
    window = (TOP // 4, TOP // 2)
    samples = np.arange(2, dtype=np.uint64)
    exact = find_thresholds(coupling, XORWOW, task.stream_seed, samples, window)
    for sample in samples.tolist():
        page, _ = sample_page(lattice, L, sample=sample)
        assert computed(page, ())["numbers"] == pytest.approx(exact[sample] / TOP, abs=2e-8)


HOSTILE = '</script></title><img src=x onerror=alert(1)>"&amp;$'


def test_page_holds_a_title_as_text_and_loads_nothing():
    lattice = load_lattice("square")
    text = lattice.source.replace('title = "square"', f"title = {json.dumps(HOSTILE)}")
    own = lattice_from_text(text, where="own.toml")
    assert HOSTILE in own.title
    page, facts = sample_page(own, 4)
    read = Page(page)
    assert read.texts["h1"] == read.texts["title"] == facts["title"]
    assert HOSTILE.rstrip("$") in read.texts["h1"]
    assert "img" not in read.tags
    assert read.tags.count("script") == 4
    assert not {name for name, _ in read.attributes} & {"src", "href"}
    assert not re.search(r"https?:|//[a-z]+\.|import\(|fetch\(|@import|url\(", page)
    assert "default-src 'none'" in page


def test_command_writes_the_same_page_again_and_replaces_no_other():
    options = ("--lattice", "kagome", "-L", 8, "-p", 0.4, "--model", "site", "--seed", 3)
    assert run("show", "--html", "one.html", *options).stdout == "page in one.html\n"
    first = Path("one.html").read_bytes()
    run("show", "--html", "one.html", *options)
    assert Path("one.html").read_bytes() == first
    sample = sample_of(first.decode())
    assert sample["p"] == 0.4
    Path("own.html").write_text("<!DOCTYPE html><p>mine")
    line = refusal("show", "--html", "own.html", *options)
    assert "holds something else than a page of percolab's" in line
    assert Path("own.html").read_text() == "<!DOCTYPE html><p>mine"


def test_page_in_the_documentation_is_what_the_command_writes():
    kept = Path(percolab.__file__).parents[1] / "docs/_static/clusters.html"
    if not kept.exists():
        pytest.skip("an installed percolab has no documentation")
    page, _ = sample_page(load_lattice("square"), 48)
    assert page == kept.read_text(encoding="utf-8"), f"percolab show --html {kept} -L 48"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--lattice", "cubic", "-L", 8), "lattices in the plane"),
        (("--lattice", "square", "-L", 129), "at most 16384"),
        (("--lattice", "square"), "needs -L"),
        (("--lattice", "square", "-L", 8, "--model", "ising"), "bond and site"),
        (("--lattice", "square", "-L", 8, "--tree"), "--tree"),
        (("--lattice", "square", "-L", 8, "--out", "a.png"), "--out"),
        (("--lattice", "square", "-L", 8, "-T", 2), "-T"),
    ],
)
def test_page_that_cannot_be_is_refused_in_one_line(options, words):
    assert words in refusal("show", "--html", "page.html", *options)
    assert not Path("page.html").exists()


#: What a hand on the slider does to a page.  A browser without a screen may never draw a frame.
_HAND = """<script>
window.requestAnimationFrame = (draw) => draw();
slider.value = %s;
slider.dispatchEvent(new Event("input"));
</script>"""


@pytest.mark.slow
@pytest.mark.skipif(chromium is None, reason="needs chromium")
@pytest.mark.parametrize("way", ["address", "slider"])
@pytest.mark.parametrize("model", ["bond", "site"])
def test_page_in_a_browser_says_what_percolab_says(model, way, tmp_path):
    lattice, L, p = load_lattice("square"), 24, 0.55
    page = sample_page(lattice, L, model=model)[0]
    address = f"#p={p}" if way == "address" else ""
    Path("page.html").write_text(page if address else page + _HAND % p)
    quiet = ("--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync",
             "--virtual-time-budget=2000")  # fmt: skip
    done = subprocess.run(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu", *quiet, "--dump-dom",
         f"--user-data-dir={tmp_path / 'profile'}", f"file://{Path('page.html').resolve()}{address}"],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    answer = unescape(Page(done.stdout).texts["answer"])
    configuration = random_configuration(lattice, L, p, model=model)
    clusters = configuration.label()
    ways = [f"one spans along {axis}" for axis, found in clusters.spanning.items() if found.size]
    count, words = (
        (configuration.sites.sum(), "576 sites occupied")
        if model == "site"
        else (np.bitwise_count(configuration.opened).sum(), "1104 bonds open")
    )
    largest = clusters.sizes.max()
    assert answer == (
        f"{count} of {words}; {clusters.sizes.size} clusters, the largest of {largest} sites "
        f"({100 * largest / 576:.1f} %); {', '.join(ways) or 'none crosses the lattice'}"
    )
