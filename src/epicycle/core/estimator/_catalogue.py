"""The list of methods, read from the code: each class and function describes itself in its card."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

from sklearn.base import BaseEstimator

from epicycle import _PUBLIC
from epicycle.core._docs import complete_docstrings, documented
from epicycle.core._parameters import Choice

F = TypeVar("F", bound=Callable[..., Any])
#: Modules whose functions are methods too.
_WITH_FUNCTIONS = (
    "bayes",
    "bayes.conjugate",
    "causal",
    "control",
    "diagnose",
    "em",
    "generative.evaluate",
    "metrics",
    "nets",
    "nets.examples",
    "online",
    "optim",
    "recommend",
    "rl",
    "search",
    "select",
    "theory",
    "theory.bounds",
    "theory.information",
    "theory.vc",
)


@dataclass(frozen=True)
class MethodCard:
    """Entry of a class in the list of methods.

    family : its family in the catalogue, such as ``"linear"``.
    catalogue : the rows of the catalogue that it covers, such as ``("A1", "A2")``.
    engines : where it can be fitted, such as ``("memory", "files", "dask")``.
    certificate : the kind of proof that its fit ends with.
    keeps_rows : whether a fitted object holds the training data, because they are the model.
    """

    family: str
    catalogue: tuple[str, ...]
    engines: tuple[str, ...]
    certificate: str
    keeps_rows: bool = False


@dataclass(frozen=True)
class MethodInfo:
    """One line of :func:`methods`."""

    name: str
    summary: str
    family: str
    catalogue: tuple[str, ...]
    solvers: tuple[str, ...]
    engines: tuple[str, ...]
    certificate: str


def in_catalogue(family: str, *rows: str, certificate: str, docs: Mapping[str, str] | None = None) -> Callable[[F], F]:
    """Decorate a function, or a class that is no estimator, which is a method of the catalogue, on data in memory.

    What its docstring leaves out is added from `docs` and the shared entries, without `docs` only where it has a
    section "Parameters"; a class has its own in ``_docs``.
    """

    def decorate(method: F) -> F:
        method._card = MethodCard(family, rows, ("memory",), certificate)  # type: ignore[attr-defined]
        if isinstance(method, type):
            complete_docstrings(method)
            return method
        return documented(docs or {}, always=docs is not None)(method)

    return decorate


def methods(family: str | None = None, *, functions: bool = False) -> list[MethodInfo]:
    """Every method that exists, read from the code: name, one line, solvers, engines and kind of certificate.

    Parameters
    ----------
    family : str, optional
        Only the methods of this family.
    functions : bool, default=False
        Also those that are no estimators: functions such as ``select.k_fold``, models such as ``control.LQR``.

    Examples
    --------
    >>> import epicycle as ep
    >>> "LinearRegression" in [m.name for m in ep.methods(family="linear")]
    True
    """
    objects = [(name, getattr(import_module(module), name)) for name, module in sorted(_PUBLIC.items())]
    found = [(name, cls) for name, cls in objects if isinstance(cls, type) and issubclass(cls, BaseEstimator)]
    if functions:
        found += [entry for entry in objects if entry not in found]
        for package in _WITH_FUNCTIONS:
            inside = import_module(f"epicycle.{package}")
            named = [(f"{package}.{name}", getattr(inside, name)) for name in inside.__all__]
            found += [(name, thing) for name, thing in named if name.rpartition(".")[2] not in _PUBLIC]
    listed = [_info(name, method, method._card) for name, method in found if hasattr(method, "_card")]
    return [info for info in listed if family in (None, info.family)]


def _info(name: str, method: Any, card: MethodCard) -> MethodInfo:
    summary = plain_text((method.__doc__ or "").strip().partition("\n")[0])
    solver = getattr(method, "_parameters", {}).get("solver")
    solvers = solver.names if isinstance(solver, Choice) else ()
    return MethodInfo(name, summary, card.family, card.catalogue, solvers, card.engines, card.certificate)


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
