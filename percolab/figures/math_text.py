"""Expressions of lattice files, as ``1 - 2 sin(pi/18)``, in matplotlib's mathematics."""

import ast
import re

_NAMES = "sqrt|sin|cos|tan|exp|ln|log|pi"
_EXPRESSION = re.compile(rf"(?:\d+(?:\.\d+)?|\b(?:{_NAMES})\b|[-+*/^() ])+")
_GREEK = ("alpha", "beta", "gamma", "eta", "lambda", "mu", "nu", "phi", "rho", "sigma", "theta")
_IMPLICIT = re.compile(r"(?<=[\d)]) *(?=[a-z(])|(?<=pi) *(?=[a-z\d(])")
#: The argument of a root, or an exponent, in parentheses that may contain parentheses.
_IN_BRACES = re.compile(r"(sqrt|\^) *\(((?:[^()]|\([^()]*\))*)\)")


def plain_text(text: str) -> str:
    """Return a text in which no dollar sign begins mathematics."""
    return text.replace("$", r"\$")


def math_text(expression: str) -> str:
    r"""Return an expression in matplotlib's mathematics, or unchanged if it is not one.

    It may contain numbers, pi, + - * / ^ ( ), sqrt, sin, cos, tan, exp, ln and log.  Anything else
    is text, in which dollar signs are escaped.

    >>> math_text("1 - 2 sin(pi/18)")
    '$1 - 2\\,\\sin(\\pi/18)$'
    >>> math_text("series expansion")
    'series expansion'
    """
    if not (re.search(r"\d|pi", expression) and _EXPRESSION.fullmatch(expression)):
        return plain_text(expression)
    try:
        ast.parse(_IMPLICIT.sub("*", expression).replace("^", "**").strip(), mode="eval")
    except SyntaxError:
        return expression
    tex = re.sub(r"\^ *(\d+(?:\.\d+)?)", r"^{\1}", _IMPLICIT.sub(r"\\,", expression))
    while (braced := _IN_BRACES.sub(r"\1{\2}", tex)) != tex:
        tex = braced
    named = re.sub(_NAMES, r"\\\g<0>", tex)
    product = r"\cdot"
    return f"${named.replace('*', product)}$"


def typeset(text: str) -> str:
    r"""Return "expression [reference]" for a figure, the expression in mathematics.

    >>> typeset("1/2 [Kesten 1980]")
    '$1/2$ [Kesten 1980]'
    """
    expression, bracket, reference = text.partition(" [")
    return math_text(expression) + bracket + plain_text(reference)


def symbol_text(symbol: str) -> str:
    r"""Return an observable's symbol in mathematics without dollar signs.

    >>> symbol_text("R_y"), symbol_text("W_any"), symbol_text("R")
    ('R_y', 'W_{\\mathrm{any}}', 'R')
    """
    letter, _, index = symbol.partition("_")
    return rf"{letter}_{{\mathrm{{{index}}}}}" if len(index) > 1 else symbol


def name_text(name: str) -> str:
    r"""Return the name of a column in mathematics without dollar signs; words are upright.

    >>> name_text("T"), name_text("beta"), name_text("error_rate")
    ('T', '\\beta', '\\mathrm{error\\ rate}')
    """
    if name in _GREEK:
        return f"\\{name}"
    if len(name) == 1 and name.isalnum():
        return name
    shown = "".join(one if one.isalnum() or one in "/.,+-=()<>|" else r"\ " for one in name)
    return rf"\mathrm{{{shown}}}"
