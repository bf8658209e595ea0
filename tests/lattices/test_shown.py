"""Tables of results as text, HTML and JSON."""

import pytest

from percolab.lattices.shown import Table


def test_columns_are_as_wide_as_their_widest_cell_and_notes_stand_below():
    table = Table(("L", "p_c"), [(8, "0.5"), (128, "")], ["few <samples>"])
    assert table.to_text().splitlines() == [
        "L    p_c",
        "8    0.5",
        "128",
        "",
        "note: few <samples>",
    ]


def test_notes_alone_have_no_empty_line_above():
    assert Table((), (), ["few samples"]).to_text() == "note: few samples"


def test_html_escapes_all_and_json_goes_by_the_headings():
    table = Table(("name", "<b>"), [("a&b", "<i>")])
    html = table.to_html("<t>")
    assert "<caption>&lt;t&gt;</caption>" in html
    assert "<tr><th>name</th><th>&lt;b&gt;</th></tr>" in html
    assert "<tr><th>a&amp;b</th><td>&lt;i&gt;</td></tr>" in html
    assert table.to_json() == [{"name": "a&b", "<b>": "<i>"}]


def test_a_row_of_another_length_is_an_error():
    with pytest.raises(ValueError, match="argument 2"):
        Table(("L", "p_c"), [(8,)]).to_text()
