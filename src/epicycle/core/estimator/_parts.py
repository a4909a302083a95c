"""Estimators that are made of others: evidence of the parts, and methods that exist where a part has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.metaestimators import available_if

from epicycle.core._certificate import Certificate

F = TypeVar("F")


def where_part_has(method: str, part: Callable[[Any], Any]) -> Callable[[F], F]:
    """Decorate a method that exists only where ``part(self)`` has one of that name."""

    def check(self: Any) -> bool:
        getattr(part(self), method)  # its AttributeError is the cause of the one that the caller gets
        return True

    decorate: Callable[[F], F] = available_if(check)
    return decorate


def last_objective(part: Any) -> float:
    """The objective at the end of a fit; NaN where the estimator keeps no history."""
    history = getattr(part, "history_", None)
    found = history is not None and "objective" in history and len(history["objective"])
    return float(history["objective"][-1]) if history is not None and found else np.nan


def last_iteration(part: Any) -> float:
    """Iterations of a fit, the most where it counts several; NaN where the estimator does not tell."""
    found = getattr(part, "n_iter_", None)
    return np.nan if found is None else float(np.max(found))


def certificate_value(part: Any) -> float:
    """The value of the certificate; NaN where there is none."""
    return float(getattr(getattr(part, "certificate_", None), "value", np.nan))


def misses_certificate(part: Any) -> bool:
    """Whether a part has a certificate that does not hold."""
    certificate = getattr(part, "certificate_", None)
    return certificate is not None and certificate.kind != "none" and not certificate.holds


def worst_certificate(parts: Sequence[Any], noun: str) -> Certificate:
    """The certificate that is furthest from holding; "none" where a part has none."""
    certificates = [getattr(part, "certificate_", None) for part in parts]
    known = [c for c in certificates if c is not None and c.kind != "none"]
    if not known or (len(known) < len(parts) and all(c.holds for c in known)):
        claim = f"the {noun} give no certificate: no distance from an optimum is known"
        if known:
            claim = f"{len(known)} of {len(parts)} {noun} have a certificate, and it holds; of the others none is known"
        return Certificate("none", 0.0, 0.0, claim)
    worst = max(known, key=lambda c: (not c.holds, c.value / c.tolerance if c.tolerance > 0 else c.value))
    return Certificate(worst.kind, worst.value, worst.tolerance, f"the worst of {len(known)} {noun}: {worst.meaning}")
