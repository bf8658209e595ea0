"""A report is one page that holds all that the file gives, and nothing of a name gets out of it."""

import hashlib
import json
import re
from copy import deepcopy
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from cli_support import answer, nine_of, refusal, small_results, stored

from percolab import load_graph, sweep
from percolab.analysis.stored_fits import fit_results, read_estimates
from percolab.analysis.text import format_with_error
from percolab.figures.kinds import StudyFigures
from percolab.figures.page import formula, mathematics
from percolab.figures.report import summarize_result
from percolab.lattices.lattice import lattice_from_text
from percolab.store.results import read_results

# What would end an element, an attribute, a comment or an SVG, or begin mathematics.
HOSTILE = (
    "</title></svg>--><script>alert(1)</script>\"'><img src=x onerror=alert(1)>&amp;$x^{$\\frac"
)
DRAWING = {"svg", "defs", "g", "path", "use", "style", "clippath", "rect"}
TEXT = {
    "html", "head", "meta", "title", "body", "h1", "h2", "h3", "p", "table", "thead", "tbody",
    "tr", "th", "td", "pre", "figure", "figcaption", "nav", "ol", "li", "a", "main", "section",
    "div", "b",
    "math", "mrow", "mi", "mn", "mo", "msub", "msup", "msubsup", "msqrt", "mfrac", "mspace",
    "munder", "munderover", "mtext",
}  # fmt: skip


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.words = set(), [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    handle_startendtag = handle_starttag

    def handle_data(self, data):
        self.words.append(data)


def page_of(*arguments):
    output = answer("report", *arguments, "--bootstrap", 0)
    return Path(output.removeprefix("report in ").strip()).read_text()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A results file, its page and its numbers, with 60 bootstrap replicas."""
    path = stored(tmp_path_factory.mktemp("report") / "results.h5")
    numbers = json.loads(answer("report", path, "--bootstrap", 60, "--json"))
    return path, path.with_suffix(".html").read_text(), numbers


def test_a_report_holds_fits_figures_samples_and_provenance(report):
    path, text, numbers = report
    page = Page(text)
    words = " ".join(page.words)
    assert page.tags <= DRAWING | TEXT
    assert text.count("<figure ") == len(numbers["figures"])
    # Contents lead to every section and to every numbered figure.
    for number, kind in enumerate(numbers["figures"], start=1):
        name = kind.capitalize()
        assert f'<a href="#figure-{kind}">Figure {number}. {name}</a>' in text
        assert f"<b>Figure {number}. {name}.</b>" in text
    for section in ("study", "fits", "figures", "samples", "methods", "provenance"):
        assert f'<a href="#{section}">' in text
        assert f'<section id="{section}">' in text
    assert text.count("<table") == text.count('<div class="scroll" tabindex="0"><table')
    assert "prefers-color-scheme: dark" in text
    assert "<msub><mi>p</mi><mi>c</mi></msub></mrow></math>" in text
    for name in ("spanning_x", "spanning_y", "spanning_any", "spanning_all"):
        assert f"<td>{name}</td>" in text
    threshold = answer("fit", path, "--bootstrap", 60).split()[1]
    assert f" = {threshold}; published 0.5, " in words
    assert all(item.task.id in words for item in small_results().tasks.values())
    assert "T of single samples is found by method threshold" in words
    assert "jackknife over blocks" in words
    assert small_results().runs[0]["versions"]["numba"] in words


def test_an_alternative_text_says_what_is_seen(report):
    _, text, numbers = report
    found = {
        value.partition(":")[0]: value
        for name, value in Page(text).attributes
        if name == "aria-label" and ":" in value
    }
    assert list(found) == [kind.capitalize() for kind in numbers["figures"]]
    curves, collapse, clusters = found["Curves"], found["Collapse"], found["Clusters"]
    sizes = sorted({curve["L"] for curve in numbers["figures"]["curves"]["curves"]})
    assert f"{len(sizes)} sizes, L = {sizes[0]} to {sizes[-1]}" in curves
    fit = numbers["figures"]["curves"]["fit"]
    assert format_with_error(fit["threshold"], fit["threshold_error"]) in curves
    assert f"S = {numbers['figures']['collapse']['collapses'][0]['quality']:.3g}" in collapse
    last = numbers["figures"]["clusters"]["curves"][-1]
    assert f"{max(last['mean_cluster_size']):.4g} sites" in clusters


def test_symbols_are_mathematics_and_names_are_not():
    output = mathematics("p_c of L = 4, not spanning_p or a/p.h5, nor it's <s>; tau <b>")
    assert str(output).count("<math") == 3
    assert "spanning_p or a/p.h5, nor it&#x27;s" in output
    assert "&lt;b&gt;" in output
    assert mathematics(formula("p")) == formula("p")


def test_a_graph_has_a_headline():
    Path("ring.edges").write_text("\n".join(f"{n} {(n + 1) % 8}" for n in range(8)) + "\n0 4\n")
    ring = load_graph("ring.edges", source="0", target="4")
    results = sweep(graph=ring, p=[0.3, 0.4, 0.5, 0.6, 0.7], samples=200, device="cpu")
    (found,) = read_estimates(results, bootstrap=0)
    (median,) = [item for item in found.estimates if item.name == "median"]
    figures = StudyFigures(results, lambda: None, None, 0)
    answers = [block for block in summarize_result(figures, 0) if block.kind == "answer"]
    value = format_with_error(median.p, median.error)
    assert [block.text for block in answers] == [f"p = {value}, {median.meaning}"]


@pytest.mark.slow
def test_a_report_says_first_why_there_is_no_threshold():
    results = sweep("square", L=[8, 16, 32], p=[0.4, 0.42, 0.44, 0.46], samples=1000, device="cpu")
    fit = fit_results(results)
    blocks = summarize_result(StudyFigures(results, lambda: fit, None, 0), 0)
    assert blocks[0].kind == "answer"
    assert blocks[0].text == fit.problem
    assert "nan" not in str([block.text for block in blocks])


def test_a_report_needs_no_other_file_and_ids_are_unique(report):
    page = Page(report[1])
    targets = [value for name, value in page.attributes if name in ("src", "href", "xlink:href")]
    assert targets
    assert all(value.startswith("#") for value in targets)
    ids = [value for name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert {value[1:] for value in targets} <= set(ids)
    clips = {found for _, value in page.attributes for found in re.findall(r"url\(#(.*?)\)", value)}
    assert clips
    assert clips <= set(ids)


@pytest.mark.slow
def test_equal_results_make_equal_reports_with_the_checksum_of_their_file():
    single = sweep("square", L=[4, 8], samples=100, method="threshold", device="cpu")
    path = stored(Path("t.h5"), single)
    text = page_of(path)
    assert page_of(path, "--out", "again.htm") == text
    assert hashlib.sha256(path.read_bytes()).hexdigest() in text
    assert "every sample&#39;s T" in text
    assert "<td>spanning_y</td>" in text
    assert "<td>largest</td>" not in text, "method threshold measures no clusters"
    assert "Thresholds.</b> Distribution of <math" in text


def test_nothing_in_a_hostile_name_gets_out_of_the_page():
    results = deepcopy(small_results())
    lattice = results.study.structure
    title = json.dumps(HOSTILE)
    source = lattice.source.replace('title = "square"', f"title = {title}\n# {HOSTILE}")
    named = lattice_from_text(source, where="test")
    results.study = replace(results.study, structure=named)
    results.runs = [
        run | {"command": ["percolab", HOSTILE], "device_name": HOSTILE, "processor": HOSTILE,
               "versions": {HOSTILE: HOSTILE}}
        for run in results.runs
    ]  # fmt: skip
    path = stored(Path("a<b>&\"'$x.h5"), results)
    assert read_results(path).study.structure.title == HOSTILE
    page = Page(page_of(path))
    assert page.tags <= DRAWING | TEXT
    assert not any(name.startswith("on") or name == "src" for name, _ in page.attributes)
    words = "".join(page.words)
    # The title twice, the study, the source twice, the command and who ran it: as text, in full.
    assert words.count("<script>alert(1)</script>") >= 8
    assert "a<b>&\"'$x.h5" in words


@pytest.mark.slow
def test_the_numbers_of_a_report_are_those_of_fit_and_plot(report):
    path, _, numbers = report
    assert nine_of(numbers["figures"]) == ["curves", "collapse", "clusters"]
    fit = json.loads(answer("fit", path, "--bootstrap", 60, "--json"))
    assert numbers["fits"]["spanning_y"].keys() == fit.keys()
    assert numbers["fits"]["spanning_y"]["threshold_error"] == fit["threshold_error"]
    output = answer("plot", path, "--kind", "clusters", "--out", "c.svg", "--json")
    assert numbers["figures"]["clusters"] == json.loads(output)


@pytest.mark.slow
def test_what_does_not_span_or_scale_has_a_report_too():
    options = {"p": [0.3, 0.5, 0.7], "samples": 200, "device": "cpu"}
    periodic = sweep("square", L=[4], boundary="periodic", **options)
    text = page_of(stored(Path("p.h5"), periodic))
    assert "wrapping_y" in text
    assert "Clusters.</b> Largest cluster" in text
    text = page_of(stored(Path("b.h5"), sweep("bethe:3", L=[4], **options)))
    assert "Maxima.</b> Largest clusters" in text
    assert "maximum of the second largest cluster" in text
    assert "from the source to the target" in text
    assert "Threshold of the infinite lattice: published 0.5, <math" in text


def test_a_report_of_no_spanning_observable_is_refused():
    told = refusal("report", stored(Path("results.h5")), "--observable", "largest")
    assert "no spanning observable" in told
