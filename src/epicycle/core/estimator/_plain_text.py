"""The first line of a docstring without its markup: roles, code, and formulas as they are typed in plain text."""

from __future__ import annotations

import re

_NAMES = "alpha beta gamma delta epsilon eta theta kappa lambda mu nu xi pi rho sigma tau phi chi psi omega"
_GREEK = "α β γ δ ε η θ κ λ μ ν ξ π ρ σ τ φ χ ψ ω"
_LETTERS = dict(zip(_NAMES.split(), _GREEK.split(), strict=True))
#: Accents as combining characters.
_ACCENTS = {"hat": "\u0302", "bar": "\u0304", "tilde": "\u0303"}
_SIGNS = {"leftarrow": "<-", "to": "->", "mid": "|", "le": "<=", "ge": ">=", "ne": "!=", "cdot": "·", "in": "in"}
_WORDS = {**_LETTERS, **_SIGNS}
_ROLE = re.compile(r":(?:[a-z]+:)*[a-z]+:`([^`]*)`")
_MATH = re.compile(r":math:`([^`]*)`")


def plain_text(line: str) -> str:
    """`line` as people type it in a terminal."""
    line = _MATH.sub(lambda found: _formula(found[1]), line)
    line = _ROLE.sub(lambda found: _target(found[1]), line)
    return re.sub(r"`+([^`]+)`+", r"\1", line)


def _target(role: str) -> str:
    """The title of a role with one, else the last part of its name where it begins with a tilde."""
    if titled := re.fullmatch(r"(.*\S)\s*<[^>]*>", role):
        return titled[1]
    return role[1:].rpartition(".")[2] if role.startswith("~") else role


def _formula(tex: str) -> str:
    tex = re.sub(r"\\binom\{([^{}]*)\}\{([^{}]*)\}", r"binom(\1, \2)", tex)
    tex = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"(\1) / (\2)", tex)
    accent = re.compile(r"\\(hat|bar|tilde|mathrm|text)\s*(?:\{([^{}]*)\}|(\\[a-z]+|\w))")
    tex = accent.sub(lambda found: (found[2] or found[3]) + _ACCENTS.get(found[1], ""), tex)
    tex = re.sub(r"([_^])\{([^{}]*)\}", lambda m: m[1] + (m[2] if len(m[2]) == 1 else f"({m[2]})"), tex)
    tex = re.sub(r"\\([A-Za-z]+)", lambda m: _WORDS.get(m[1], m[1]), tex)
    return re.sub(r"\s+", " ", re.sub(r"[{}]|\\[,;! ]", "", tex)).strip()
