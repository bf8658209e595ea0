"""Expressions as lattice files write them, ``1 - 2 sin(pi/18)``, in the mathematics of a figure."""

from __future__ import annotations

import re

_NAMES = {name: rf"\{name}" for name in ("sin", "cos", "tan", "exp", "ln", "log", "pi")}
_SIGNS = {"+": " + ", "-": " - ", "*": r" \cdot ", "/": "/"}
_TOKEN = re.compile(r"\s*(\d+(?:\.\d+)?|[a-z]+|[-+*/^()])\s*")


def math_text(expression: str) -> str:
    r"""Return an expression in matplotlib's mathematics, or unchanged if it is not one.

    Known are numbers, pi, + - * / ^ ( ), sqrt, sin, cos, tan, exp, ln and log.  Anything else is
    text, in which a dollar sign stays a dollar sign.

    >>> math_text("1 - 2 sin(pi/18)")
    '$1 - 2\\,\\sin(\\pi/18)$'
    >>> math_text("series expansion")
    'series expansion'
    """
    written = _written(_TOKEN.findall(expression)) if _is_expression(expression) else None
    return expression.replace("$", r"\$") if written is None else f"${written}$"


def typeset(text: str) -> str:
    r"""Return "expression [reference]" for a figure, the expression in mathematics.

    >>> typeset("1/2 [Kesten 1980]")
    '$1/2$ [Kesten 1980]'
    """
    expression, bracket, reference = text.partition(" [")
    return math_text(expression) + bracket + reference.replace("$", r"\$")


def symbol_text(symbol: str) -> str:
    r"""Return an observable's symbol, as its entry has it, in mathematics without dollar signs.

    >>> symbol_text("R_y"), symbol_text("W_any"), symbol_text("R")
    ('R_y', 'W_{\\mathrm{any}}', 'R')
    """
    letter, _, index = symbol.partition("_")
    return rf"{letter}_{{\mathrm{{{index}}}}}" if len(index) > 1 else symbol


def _is_expression(text: str) -> bool:
    return bool(re.search(r"\d|pi", text)) and not _TOKEN.sub("", text)


def _written(tokens: list[str]) -> str | None:
    """Return tokens as mathematics; None if a word is unknown or the parentheses do not match."""
    parts: list[str] = []
    closing: list[str] = []
    before = ""
    for token in tokens:
        if token.isalpha() and token != "sqrt" and token not in _NAMES:
            return None
        if token == "(":
            is_root = before == "sqrt"
            parts.append("{" if is_root or before == "^" else "(")
            closing.append("}" if is_root or before == "^" else ")")
        elif token == ")":
            if not closing:
                return None
            parts.append(closing.pop())
        elif before in ("sqrt", "^"):
            if not token[0].isdigit():
                return None
            parts.append(f"{{{token}}}")
        else:
            apart = before and (before[-1].isdigit() or before in ("pi", ")"))
            parts.append(r"\," if apart and token[0].isalnum() else "")
            parts.append(r"\sqrt" if token == "sqrt" else _NAMES.get(token, token))
            if token in _SIGNS:
                unary = before in ("", "(", *_SIGNS)
                parts[-1] = token if unary else _SIGNS[token]
        before = token
    if closing or before in ("sqrt", "^", *_SIGNS):
        return None
    return "".join(parts)
