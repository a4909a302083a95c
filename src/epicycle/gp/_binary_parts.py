"""Several classes by Gaussian processes for two: one for each class against the rest, or one for each pair of classes.

Every part learns its own hyper-parameters. Against the rest, probabilities are those of the parts divided by their sum.
Of pairs, a row belongs to the class with most votes; equal votes are decided by the sum of the probabilities.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import clone

from epicycle.core._certificate import Certificate
from epicycle.core._history import History
from epicycle.core._settings import config
from epicycle.gp._model import theta_argument
from epicycle.optim import Solution


def fit_parts(model: Any, X: Any, codes: np.ndarray, weight: np.ndarray) -> list[Any]:
    """Fit the parts of a classifier; `codes` are those of the classes."""
    k = len(model.classes_)
    if model.multi_class == "one_vs_rest":
        problems = [(codes == c, weight) for c in range(k)]
    else:  # rows of other classes than these two have no weight
        problems = [(codes == b, weight * np.isin(codes, (a, b))) for a, b in combinations(range(k), 2)]
    plain = clone(model).set_params(multi_class="softmax")
    with config(on_nonconvergence="ignore"):  # the whole warns once, of its worst part
        return [clone(plain).fit(X, labels.astype(np.int64), sample_weight=weight) for labels, weight in problems]


def solution_of(parts: list[Any]) -> Solution:
    """The evidence of all parts: a row of the history for each, and the worst of their certificates."""
    certificates = [part.certificate_ for part in parts]
    worst = max(certificates, key=lambda c: (not c.holds, c.value / c.tolerance))
    history = History(
        objective=[-part.log_marginal_likelihood_value_ for part in parts],
        iterations=[part.n_iter_ for part in parts],
        certificate=[c.value for c in certificates],
    )
    meaning = f"the worst of {len(parts)} classifiers of two classes: {worst.meaning}"
    certificate = Certificate(worst.kind, worst.value, worst.tolerance, meaning)
    theta = np.concatenate([part.theta_ for part in parts])
    reason = "converged" if all(part.converged_ for part in parts) else "max_iter"
    value = float(np.mean(history.objective))
    return Solution(theta, value, history, certificate, max(part.n_iter_ for part in parts), reason)


def rest_probabilities(parts: list[Any], X: Any) -> np.ndarray:
    """Probabilities of the classes of parts against the rest; all equal where every part says 0."""
    P = np.column_stack([part.predict_proba(X)[:, 1] for part in parts])
    total = P.sum(axis=1, keepdims=True)
    return np.where(total > 0, P / np.where(total > 0, total, 1), 1 / len(parts))


def pair_scores(parts: list[Any], X: Any, n_classes: int) -> np.ndarray:
    """Votes of the pairs for every class, plus less than half a vote by how sure the pairs are."""
    n = len(parts[0].predict(X))
    votes, sure = np.zeros((n, n_classes)), np.zeros((n, n_classes))
    for part, (a, b) in zip(parts, combinations(range(n_classes), 2), strict=True):
        second = np.asarray(part.predict_proba(X)[:, 1], dtype=np.float64)
        won = part.predict(X) == 1
        votes[:, a] += ~won
        votes[:, b] += won
        sure[:, a] += 0.5 - second
        sure[:, b] += second - 0.5
    return np.asarray(votes + sure / (3 * (np.abs(sure) + 1)))


def log_marginal_likelihood(parts: list[Any], theta: Any, eval_gradient: bool) -> Any:
    """The mean over the parts, at theta of them all or of each after the other, and its derivatives by that theta."""
    each = len(parts[0].theta_)
    shared = np.shape(theta) == (each,)
    given = theta_argument(theta, each if shared else each * len(parts))
    values = [given] * len(parts) if shared else np.split(given, len(parts))
    found = [part.log_marginal_likelihood(v, eval_gradient=True) for part, v in zip(parts, values, strict=True)]
    value = np.float64(np.mean([result[0] for result in found]))
    if not eval_gradient:
        return value
    slopes = [result[1] for result in found]
    return value, np.mean(slopes, axis=0) if shared else np.concatenate(slopes) / len(parts)
