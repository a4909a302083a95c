"""Filter selection: features ranked by their correlation or mutual information with the target.

The correlation of a feature with labels is the root of the share of its variance that lies between the classes, which
for two classes is the absolute correlation with a 0/1 code. The mutual information is that of a table of counts:
columns and targets of few distinct values count by value, others are binned at their quantiles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Unpack

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier

from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import DataError, ParameterError, ParameterTypeError
from epicycle.core._parameters import AnyOf, Callable as CallableDomain, Choice, Domain, Integer
from epicycle.core._plot_style import Axes, axes_of, bars, styled
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.data._frames import frame_to_matrix, is_frame
from epicycle.optim import Solution
from epicycle.select._base import COMMON, FeatureSelection, chosen_size
from epicycle.select._fit_and_score import Task, run_tasks
from epicycle.select._inputs import Rows, Split
from epicycle.select._scorers import Scorer
from epicycle.stats._intervals import standard_error

#: Columns with at most so many distinct values count by value; others have so many bins of equal weight.
_MAX_DISTINCT, _BINS = 20, 10


def score_features(
    score: str | Callable[..., Any], X: Any, y: np.ndarray, weight: np.ndarray | None, *, labels: bool
) -> np.ndarray:
    """One number for each feature, larger is more informative; minus infinity where it is not finite."""
    if callable(score):
        found = score(X, y)
        values = np.asarray(found[0] if isinstance(found, tuple) else found, dtype=np.float64)
        if values.shape != (X.shape[1],):
            raise ParameterTypeError(f"score: gave shape {values.shape}; expected one number for each of {X.shape[1]}")
    else:
        measure = {"correlation": correlations, "mutual_information": mutual_informations}[score]
        values = measure(X, y, weight, labels=labels)
    if not np.isfinite(values).any() and X.shape[1]:
        values = np.zeros_like(values)
    return np.where(np.isfinite(values), values, -np.inf)


def unit_of(largest: Any) -> Any:
    """A power of two near the largest values; 1 for zero."""
    return np.exp2(np.round(np.log2(np.where(largest > 0, largest, 1.0))))


def correlations(X: Any, y: np.ndarray, weight: np.ndarray | None, *, labels: bool) -> np.ndarray:
    """Absolute correlations with a numeric target, correlation ratios with labels; zero for constant columns."""
    w = np.full(len(y), 1 / len(y)) if weight is None else weight / weight.sum()
    if labels:
        codes = np.unique(y, return_inverse=True)[1]
        T = np.zeros((len(y), int(codes.max()) + 1))
        T[np.arange(len(y)), codes] = 1.0
    else:
        y = y.astype(np.float64) / unit_of(np.abs(y).max(initial=0.0))
        T = (y - w @ y)[:, None]
    # Correlations do not depend on units: in powers of two near the largest values no square overflows.
    units = unit_of(np.asarray(abs(X).max(axis=0).toarray() if sp.issparse(X) else np.abs(X).max(axis=0)).ravel())
    X = X @ sp.diags_array(1 / units) if sp.issparse(X) else np.asarray(X, dtype=np.float64) / units
    mean = np.asarray(w @ X, dtype=np.float64).ravel()
    if sp.issparse(X):
        square = np.asarray(w @ X.multiply(X), dtype=np.float64).ravel() - mean**2
        cross = np.asarray(X.T @ (w[:, None] * T), dtype=np.float64) - np.outer(mean, w @ T)
    else:
        Z = X - mean
        square = w @ Z**2
        cross = Z.T @ (w[:, None] * T)
    # Variances at the level of rounding belong to constant columns.
    square = np.where(square > 1e-14 * (mean**2 + np.abs(square)), square, 0.0)
    if labels:  # between the classes: sum over classes of p_c (mean_c - mean)^2
        shares = w @ T
        between = (cross**2 / np.where(shares > 0, shares, 1.0)).sum(axis=1)
        explained = np.divide(between, square, out=np.zeros_like(square), where=square > 0)
        return np.asarray(np.sqrt(np.clip(explained, 0.0, 1.0)))
    spread = float(w @ T[:, 0] ** 2)
    scale = np.sqrt(square * spread)
    return np.minimum(np.abs(np.divide(cross[:, 0], scale, out=np.zeros_like(square), where=scale > 0)), 1.0)


def mutual_informations(X: Any, y: np.ndarray, weight: np.ndarray | None, *, labels: bool) -> np.ndarray:
    """Mutual information of every column with the target in nats, less the bias of a sample of this size."""
    n, p = X.shape
    w = np.ones(n) if weight is None else weight
    if w.sum() <= 0:
        raise DataError("sample_weight: all rows have weight zero")
    target = np.unique(y, return_inverse=True)[1] if labels else _binned(y.astype(np.float64), w)
    columns = X.tocsc() if sp.issparse(X) else X
    out = np.zeros(p)
    for j in range(p):
        x = np.asarray(columns[:, [j]].todense()).ravel() if sp.issparse(columns) else np.asarray(columns[:, j])
        out[j] = _information(_binned(x.astype(np.float64), w), target, w)
    return out


def _binned(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Codes of the values: by value where few differ, else by weighted quantiles; missing values have their own."""
    missing = np.isnan(x)
    values, codes = np.unique(np.where(missing, 0.0, x), return_inverse=True)
    if len(values) > _MAX_DISTINCT:
        mass = np.bincount(codes, weights=np.where(missing, 0.0, w), minlength=len(values))
        if mass.sum() > 0:
            # Equal values share a bin: the middle of their weighted ranks decides.
            middle = (np.cumsum(mass) - mass / 2) / mass.sum()
            codes = np.minimum((middle * _BINS).astype(np.int64), _BINS - 1)[codes]
    return np.where(missing, codes.max() + 1, codes)


def _information(a: np.ndarray, b: np.ndarray, w: np.ndarray) -> float:
    k = int(b.max()) + 1
    table = np.bincount(a * k + b, weights=w, minlength=(int(a.max()) + 1) * k).reshape(-1, k)
    total = table.sum()
    joint = table / total
    outer = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    there = joint > 0
    plug_in = float((joint[there] * np.log(joint[there] / outer[there])).sum())
    # Miller and Madow: the plug-in estimate is too large by (cells - rows - columns + 1) / (2 n).
    occupied = np.count_nonzero(there), np.count_nonzero(joint.sum(axis=1)), np.count_nonzero(joint.sum(axis=0))
    return plug_in - (occupied[0] - occupied[1] - occupied[2] + 1) / (2 * float(total))


class FilterSelection(FeatureSelection):
    r"""Filter selection: keep the features with the largest scores, their number by cross-validation.

    A feature is scored by its correlation with the target, or by their mutual information,

    .. math:: MI(x_j, y) = \sum_{x_j, y} p(x_j, y) \log \frac{p(x_j, y)}{p(x_j)\, p(y)}
              = KL\bigl(p(x_j, y) \,\|\, p(x_j)\, p(y)\bigr) ,

    and the k best are kept. Inside the cross-validation the features are ranked again in every fold from its training
    rows alone: with a ranking that has seen the test rows their scores would be too high.

    Parameters
    ----------
    score_func : {"correlation", "mutual_information"} or callable, default="correlation"
        The absolute correlation (for labels the correlation ratio), the mutual information (columns of more than 20
        distinct values are binned into tenths), or ``score_func(X, y)`` that gives a number for each feature, or a pair
        of these and p-values as those of :mod:`sklearn.feature_selection` do.
    k : int or "cv", default="cv"
        Number of features to keep; "cv" tries all numbers up to 20, then ever larger steps.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        The score of every feature; minus infinity where it has none.
    ranking_ : ndarray of shape (n_features,)
        1 for the feature with the largest score, and so on.
    %(support_)s
    %(n_features_)s
    path_n_features_, path_scores_, path_std_errors_ : ndarray
        For every number of features tried the mean score over the folds, and its standard error; empty where `k` was
        given.
    %(estimator_)s
    %(metric_)s
    certificate_ : Certificate
        None: no subset but those of the ranking was tried.
    history_ : History
        Every number of features tried: ``n_features``, ``score`` and ``std_error``; the objective is the negative
        score. With `k` given one row, with the negative sum of the chosen features' scores.

    See Also
    --------
    ForwardSelection : judges features together, at the cost of many fits.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import FilterSelection
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 10))
    >>> y = 3 * X[:, 7] - 2 * X[:, 3] + rng.normal(size=200)
    >>> model = FilterSelection(k=2).fit(X, y)
    >>> model.get_support(indices=True)
    array([3, 7])
    >>> FilterSelection(one_standard_error=True).fit(X, y).n_features_
    2
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **COMMON,
        "score_func": AnyOf(Choice("correlation", "mutual_information"), CallableDomain()),
        "k": AnyOf(Integer(1), Choice("cv")),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="select", catalogue=("J3",), engines=("memory",), certificate="none (ranked one by one)"
    )

    @stores_arguments(tol=0.0, n_jobs=None, random_state=0, verbose=0)
    def __init__(
        self,
        estimator: Any = None,
        *,
        score_func: Literal["correlation", "mutual_information"] | Callable[..., Any] = "correlation",
        k: int | Literal["cv"] = "cv",
        cv: Any = 5,
        scoring: Any = None,
        one_standard_error: bool = False,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    def _search(
        self, model: Any, rows: Rows, splits: list[Split], scorer: Scorer, state: Mapping[str, Any], seed: int
    ) -> None:
        p = self.n_features_in_
        if self.k != "cv" and self.k > p:
            raise ParameterError(f"FilterSelection: k={self.k}; X has {p} features")
        matrix = _matrix(self._coded(rows.X))
        labels = bool(is_classifier(model))
        every = np.arange(len(rows.y))
        self.scores_ = self._scores_of(matrix, rows, every, labels)
        order = _descending(self.scores_)
        self.ranking_ = np.empty(p, dtype=np.int64)
        self.ranking_[order] = np.arange(1, p + 1)
        sizes = _sizes(p) if self.k == "cv" else np.array([self.k])
        ranked = []
        if len(sizes) > 1:
            # In every fold from its training rows alone, so that the test rows do not influence the ranking.
            ranked = [_descending(self._scores_of(matrix, rows, train, labels)) for train, _ in splits]
        known = [np.asarray(scores) for scores in state.get("scores", ())]
        found: list[np.ndarray] = []

        def attributes(x: np.ndarray) -> dict[str, Any]:
            return {
                **self._fit_chosen(model, rows, np.flatnonzero(x)),
                **_path(sizes[: len(found)], found),
                "scores_": self.scores_,
                "ranking_": self.ranking_,
                "metric_": self.metric_,
            }

        def left() -> dict[str, Any]:
            return {"scores": np.array(found), "seed": seed}

        def score_of(size: int) -> np.ndarray:
            tasks = [Task("", model, j, split, np.sort(ranked[j][:size])) for j, split in enumerate(splits)]
            return np.array([r.score for r in run_tasks(tasks, rows, scorer, self.n_jobs, forgive=False)])

        monitor = self._monitor(len(sizes), attributes)
        reason = "converged"
        for number, size in enumerate(sizes, 1):
            mask = np.zeros(p)
            mask[order[:size]] = 1.0
            if len(sizes) == 1:
                chosen = self.scores_[order[:size]]
                monitor(1, mask, objective=-float(chosen[np.isfinite(chosen)].sum()), n_features=float(size))
                break
            if number <= len(known):
                found.append(known[number - 1])
                continue
            found.append(score_of(int(size)))
            mean, error = _mean_and_error(found[-1])
            if monitor(number, mask, objective=-mean, state=left, score=mean, std_error=error, n_features=float(size)):
                reason = "stopped"
                break
        path = _path(sizes[: len(found)], found)
        at = self._chosen_index(path) if found else 0
        for name, value in {**self._fit_chosen(model, rows, order[: sizes[at]]), **path}.items():
            setattr(self, name, value)
        certificate = self._evidence("features are ranked one by one")
        value = -float(path["path_scores_"][at]) if found else float(monitor.history().objective[-1])
        final = left() if reason == "stopped" else {}
        n_iter = max(len(found), 1)
        self._conclude(Solution(np.zeros(1), value, monitor.history(), certificate, n_iter, reason, state=final))

    def _chosen_index(self, path: Mapping[str, np.ndarray]) -> int:
        scores = path["path_scores_"]
        if not np.isfinite(scores).any():
            raise ParameterError("scoring: has no finite value on the folds; choose another metric, or other splits")
        means = np.where(np.isfinite(scores), scores, -np.inf)
        errors = path["path_std_errors_"]
        return chosen_size(path["path_n_features_"], means, errors, self.tol, self.one_standard_error)

    def _scores_of(self, matrix: Any, rows: Rows, part: np.ndarray, labels: bool) -> np.ndarray:
        weight = None if rows.weight is None else rows.weight[part]
        return score_features(self.score_func, matrix[part], rows.y[part], weight, labels=labels)

    @styled
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the cross-validated score against the number of features; where `k` was given, the features' scores."""
        self._check_fitted()
        if len(self.path_n_features_) == 0:
            order = np.argsort(self.ranking_)[:30]
            ax = axes_of(ax, (6.4, 1.2 + 0.26 * len(order)))
            names, kept = self._names(), [bool(self.support_[j]) for j in order]
            values = np.where(np.isfinite(self.scores_), self.scores_, 0.0)[order]
            bars(ax, [names[j] for j in order], values, colour=["vermilion" if k else "sky" for k in kept])
            what = self.score_func if isinstance(self.score_func, str) else self.score_func.__name__
            ax.set(xlabel=f"{what.replace('_', ' ')} with the target (darker: chosen)")
            return ax
        return self._draw_sizes(axes_of(ax), "features, in the order of their scores")


def _matrix(X: Any) -> Any:
    if is_frame(X):
        X = frame_to_matrix(X)
    return X.tocsr() if hasattr(X, "tocsr") else X


def _descending(scores: np.ndarray) -> np.ndarray:
    return np.argsort(-scores, kind="stable")


def _sizes(p: int) -> np.ndarray:
    """All numbers up to 20, then by factors of a quarter, and all features."""
    sizes = list(range(1, min(p, 20) + 1))
    while sizes[-1] < p:
        sizes.append(min(p, int(sizes[-1] * 1.25) + 1))
    return np.array(sizes, dtype=np.int64)


def _mean_and_error(scores: np.ndarray) -> tuple[float, float]:
    return float(scores.mean()), float(standard_error(scores))


def _path(sizes: np.ndarray, found: list[np.ndarray]) -> dict[str, np.ndarray]:
    both = [_mean_and_error(scores) for scores in found]
    return {
        "path_n_features_": np.asarray(sizes[: len(found)], dtype=np.int64),
        "path_scores_": np.array([mean for mean, _ in both]),
        "path_std_errors_": np.array([error for _, error in both]),
    }
