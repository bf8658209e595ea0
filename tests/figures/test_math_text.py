"""Expressions of lattice files become mathematics that matplotlib can draw; other text stays."""

import pytest
from helpers import BUILT_IN, lattice
from matplotlib.mathtext import MathTextParser

from percolab.figures.math_text import math_text, typeset

WRITTEN = {
    "1 - 2 sin(pi/18)": r"$1 - 2\,\sin(\pi/18)$",
    "1/2": "$1/2$",
    "sqrt(2) - 1": r"$\sqrt{2} - 1$",
    "1 - sqrt(1 - 2 sin(pi/18))": r"$1 - \sqrt{1 - 2\,\sin(\pi/18)}$",
    "2^(1/3)": "$2^{1/3}$",
    "2 * 3^2": r"$2 \cdot 3^{2}$",
    "-exp(-1)": r"$-\exp(-1)$",
}
TEXT = [
    "",
    "published",
    "numerical, p. 5",
    "(1",
    "1)",
    "1 +",
    "sqrt",
    "2^",
    "sqrt 2(",
    "__import__(1)",
]


def drawable(text):
    MathTextParser("agg").parse(text)
    return True


@pytest.mark.parametrize(("expression", "expected"), WRITTEN.items())
def test_expressions_become_mathematics(expression, expected):
    assert math_text(expression) == expected
    assert drawable(expected)


@pytest.mark.parametrize("text", TEXT)
def test_what_is_no_expression_stays_text(text):
    assert math_text(text) == text


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_published_expression_is_mathematics(name):
    for threshold in lattice(name).thresholds:
        if threshold.expression:
            assert drawable(math_text(threshold.expression))
            assert math_text(threshold.expression).startswith("$")


def test_a_dollar_sign_in_text_begins_no_mathematics():
    assert typeset("5 $ each [costs $3]") == r"5 \$ each [costs \$3]"
    assert typeset("1/2 [costs $3]") == r"$1/2$ [costs \$3]"
    assert drawable(typeset("1/2 [costs $3]"))
