"""Text, HTML and size in memory of a fitted estimator, and the message of a fit that did not converge."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from epicycle.core._memory import bytes_in_words

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from epicycle.core._solution import Solution

_LINE = """\
<div class="epicycle-evidence" style="font-family: monospace; font-size: 0.9em; padding: 0.3em 0;">
{%- for name, value, title in facts %}
<span{% if title %} title="{{ title }}"{% endif %}><b>{{ name }}</b> {{ value }}</span>
{%- if not loop.last %} &middot; {% endif %}
{%- endfor %}
</div>"""


def nbytes(value: object, _seen: set[int] | None = None) -> int:
    """Bytes that a value holds in memory: arrays in full, containers with what is in them, everything once.

    A view counts as the array behind it, because that is what it keeps alive.
    """
    seen = set() if _seen is None else _seen
    while isinstance(value, np.ndarray) and isinstance(value.base, np.ndarray):
        value = value.base
    if id(value) in seen:
        return 0
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        inner = sum(nbytes(item, seen) for item in value.ravel()) if value.dtype == object else 0
        return int(value.nbytes) + inner
    ours = type(value).__module__.split(".")[0] == "epicycle" and hasattr(value, "__dict__")
    if ours or sp.issparse(value) or dataclasses.is_dataclass(value):
        return sum(nbytes(part, seen) for part in vars(value).values())
    if isinstance(value, Mapping):
        return sys.getsizeof(value) + sum(nbytes(k, seen) + nbytes(v, seen) for k, v in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return sys.getsizeof(value) + sum(nbytes(item, seen) for item in value)
    return sys.getsizeof(value)


def evidence(estimator: BaseEstimator) -> list[tuple[str, str, str]]:
    """Facts about a fit as (name, value, explanation); empty before the fit."""
    fitted = vars(estimator)
    if not any(name.endswith("_") and not name.startswith("_") for name in fitted):
        return []
    facts = []
    if penalty := estimator._penalty_line():
        facts.append(("penalty", penalty, ""))
    if (certificate := fitted.get("certificate_")) is not None:
        facts.append(("certificate", str(certificate), certificate.meaning))
    if (n_iter := fitted.get("n_iter_")) is not None:
        facts.append(("iterations", str(int(np.max(n_iter))), ""))
    if (seconds := fitted.get("fit_seconds_")) is not None:
        facts.append(("seconds", f"{seconds:.3g}", ""))
    facts.append(("size", bytes_in_words(estimator.fitted_nbytes), "memory held by what the fit learnt"))
    return facts


def text(estimator: BaseEstimator) -> str:
    """The estimator and its evidence on a few lines."""
    facts = evidence(estimator)
    if not facts:
        return f"{estimator!r}\n  not fitted"
    features = vars(estimator).get("n_features_in_")
    shape = [] if features is None else [("features", str(features), "")]
    lines = [f"  {name:<12} {value}" for name, value, _ in shape + facts]
    meaning = getattr(vars(estimator).get("certificate_"), "meaning", "")
    if meaning and estimator.certificate_.holds and estimator.certificate_.kind != "none":
        lines.insert(next(i for i, line in enumerate(lines) if "certificate" in line) + 1, f"  {'':<12} {meaning}")
    return "\n".join([repr(estimator), *lines])


def html(estimator: BaseEstimator) -> str:
    """scikit-learn's diagram, and below it one line of evidence."""
    from jinja2 import Environment
    from sklearn.utils import estimator_html_repr

    diagram = str(estimator_html_repr(estimator))
    facts = evidence(estimator)
    if not facts:
        return diagram
    line = Environment(autoescape=True).from_string(_LINE).render(facts=facts)
    body, end, rest = diagram.rpartition("</body>")
    return f"{body}{line}{end}{rest}" if end else f"{diagram}{line}"


_ENDINGS = {  # reason: (what happened, what to change)
    "max_iter": ("did not converge", "raise max_iter, loosen tol, or scale the features"),
    "max_trials": ("did not converge", "raise max_trials, or lower stop_probability"),
    "stalled": ("stalled", "loosen tol, or scale the features"),
    "diverged": ("diverged", "lower the learning rate, or scale the features"),
    "stopped": ("was stopped", "allow more time, or loosen tol"),
}


def why_not_converged(estimator: BaseEstimator, solution: Solution, stop_message: str = "") -> str:
    """The warning of a fit that did not converge: what happened, the certificate reached, and what to change."""
    solver = getattr(estimator, "solver_", getattr(estimator, "solver", None))
    who = type(estimator).__name__ if solver is None else f"{type(estimator).__name__}(solver={solver!r})"
    # A solver may say "converged" on its own measure while the certificate, which is what counts, does not hold.
    what, advice = _ENDINGS.get(solution.reason, ("reached no certificate", "loosen tol, or scale the features"))
    iterations = f"{solution.n_iter} iteration{'s' if solution.n_iter != 1 else ''}"
    if stop_message:
        why = f": {stop_message} after {iterations}"
    else:
        why = f": {solution.message}" if solution.message else f" in {iterations}"
    c = solution.certificate
    reached = "" if c.kind == "none" else f" The {c.kind} is {c.value:.2e}, the tolerance {c.tolerance:.2e}."
    return f"{who} {what}{why}.{reached} To change: {advice}."
