"""The list of methods, read from the code: what every class says about itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

from epicycle.core._parameters import Choice

__all__ = ["MethodCard", "MethodInfo", "in_catalogue", "methods"]

F = TypeVar("F", bound=Callable[..., Any])
#: Modules whose functions are methods too.
_WITH_FUNCTIONS = ("diagnose", "select")


@dataclass(frozen=True)
class MethodCard:
    """What a class says about itself in the list of methods.

    family : the family of the catalogue, such as ``"linear"``.
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


def in_catalogue(family: str, *rows: str, certificate: str) -> Callable[[F], F]:
    """Decorate a function that is a method of the catalogue, on data in memory."""

    def decorate(function: F) -> F:
        function.__dict__["_card"] = MethodCard(family, rows, ("memory",), certificate)
        return function

    return decorate


def methods(family: str | None = None, *, functions: bool = False) -> list[MethodInfo]:
    """Every method that exists, read from the code: name, one line, solvers, engines and kind of certificate.

    Parameters
    ----------
    family : str, optional
        Only the methods of this family.
    functions : bool, default=False
        Also those that are functions, such as ``select.k_fold``.

    Examples
    --------
    >>> import epicycle as ep
    >>> "LinearRegression" in [m.name for m in ep.methods(family="linear")]
    True
    """
    from epicycle import _PUBLIC
    from epicycle.core.estimator._estimator import Estimator

    found = []
    for name, module in sorted(_PUBLIC.items()):
        cls = getattr(import_module(module), name)
        if not (isinstance(cls, type) and issubclass(cls, Estimator)):
            continue
        card, solver = cls._card, cls._parameters.get("solver")
        if family is None or card.family == family:
            solvers = solver.names if isinstance(solver, Choice) else ()
            summary = (cls.__doc__ or "").strip().partition("\n")[0]
            found.append(
                MethodInfo(name, summary, card.family, card.catalogue, solvers, card.engines, card.certificate)
            )
    if functions:
        for module in _WITH_FUNCTIONS:
            inside = import_module(f"epicycle.{module}")
            for name in inside.__all__:
                function = getattr(inside, name)
                if isinstance(function, type) or not hasattr(function, "_card"):
                    continue
                card = function._card
                if family not in (None, card.family):
                    continue
                summary = (function.__doc__ or "").strip().partition("\n")[0]
                full, rows = f"{module}.{name}", card.catalogue
                found.append(MethodInfo(full, summary, card.family, rows, (), card.engines, card.certificate))
    return found
