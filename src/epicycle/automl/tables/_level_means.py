"""LevelMeans: categories of many levels as the mean of the target at each level, from other rows.

A level with n rows of mean m gets  (n m + s M) / (n + s)  with the mean M of all rows and s = s_e^2 / s_m^2, the
variance within levels over that of their means (empirical Bayes): rare levels are drawn to M. In the fit each row gets
the value that the rows of the other folds give, so that no row sees its own target. Beside the means stands the
logarithm of the number of other rows of the level; and where two columns have many levels, as users and films have, the
factors of their pairs (:mod:`~epicycle.automl.tables._pair_factors`), from other folds too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils.metaestimators import available_if

from epicycle.automl.tables._pair_factors import PairFactors, pair_factors, pair_of
from epicycle.core._random import stream
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.core.estimator._inner_tags import inner_tags

_FOLDS = 5
_STATE = ("estimator", "columns", "estimator_", "means_", "counts_", "pair_")


class LevelMeans(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An estimator whose columns of level numbers are replaced by smoothed means of the target.

    Parameters
    ----------
    estimator : regressor or classifier
    columns : list of int
        Columns that hold numbers of levels, NaN where there is none.

    Attributes
    ----------
    estimator_ : estimator
        Fitted to the means.
    means_ : list of ndarray of shape (n_levels + 1, n_means)
        By level; the last row is for those that the fit has not seen. One mean for numbers and for two classes, one for
        each class of several.
    counts_ : list of ndarray of shape (n_levels + 1,)
        Rows (their weight) of each level.
    pair_ : PairFactors or None
        Of the two columns with the most levels, for numbers and two classes.
    """

    estimator_: Any
    means_: list[np.ndarray]
    counts_: list[np.ndarray]
    pair_: PairFactors | None

    @stores_arguments
    def __init__(self, estimator: Any, columns: Any) -> None: ...

    def __sklearn_tags__(self) -> Any:
        return inner_tags(self, self.estimator)

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> LevelMeans:
        """Fit the means, then the estimator to rows whose means are those of other rows."""
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        targets = self._targets(y)
        codes = [self._codes(X[:, j]) for j in self.columns]
        sizes = [int(code.max(initial=-1)) + 1 for code in codes]
        self.means_ = [_means(c, targets, weight, size) for c, size in zip(codes, sizes, strict=True)]
        self.counts_ = [
            np.append(np.bincount(c[c >= 0], weight[c >= 0], minlength=s), 0.0)
            for c, s in zip(codes, sizes, strict=True)
        ]
        self._pair = pair_of(sizes) if targets.shape[1] == 1 else None
        self.pair_ = self._pair_factors(codes, sizes, targets, weight)
        fold = stream(0, "level means").permutation(len(y)) % _FOLDS
        found = [np.empty_like(targets) for _ in codes]
        pairs = np.empty(len(y) if self.pair_ is not None else 0)
        for k in range(_FOLDS):
            rest, here = fold != k, fold == k
            if not rest.any() or not here.any():
                continue
            for values, c, size in zip(found, codes, sizes, strict=True):
                values[here] = _means(c[rest], targets[rest], weight[rest], size)[c[here]]
            if self.pair_ is not None:
                others = self._pair_factors([c[rest] for c in codes], sizes, targets[rest], weight[rest])
                pairs[here] = self._of_pairs(others, [c[here] for c in codes], float(targets[rest].mean()))
        # A row of the fit is one of those of its level.
        counts = [known[c] - weight * (c >= 0) for known, c in zip(self.counts_, codes, strict=True)]
        model = clone(self.estimator)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimator_ = model.fit(self._replaced(X, found, counts, pairs), y, **weights)
        return self

    def _pair_factors(
        self, codes: list[np.ndarray], sizes: list[int], targets: np.ndarray, weight: np.ndarray
    ) -> PairFactors | None:
        if self._pair is None:
            return None
        a, b = self._pair
        return pair_factors(codes[a], codes[b], targets[:, 0], weight, (sizes[a], sizes[b]))

    def _of_pairs(self, factors: PairFactors | None, codes: list[np.ndarray], mean: float) -> np.ndarray:
        """Predictions of rows by the factors; the mean where too few of the other rows have both levels."""
        if factors is None or self._pair is None:
            return np.full(len(codes[0]), mean)
        a, b = self._pair
        return factors.predict(codes[a], codes[b])

    def _targets(self, y: np.ndarray) -> np.ndarray:
        if not is_classifier(self.estimator):
            return np.asarray(y, dtype=np.float64)[:, None]
        classes, codes = np.unique(y, return_inverse=True)
        found = np.eye(len(classes))[codes]
        return found[:, 1:] if len(classes) == 2 else found

    def _codes(self, column: np.ndarray) -> np.ndarray:
        """Numbers of levels; -1, which picks the last row of the means, where there is none."""
        return np.where(np.isnan(column), -1, column).astype(np.intp)

    def _replaced(
        self, X: np.ndarray, means: list[np.ndarray], counts: list[np.ndarray], pairs: np.ndarray
    ) -> np.ndarray:
        """X with the first mean of each level in the place of its number, and the other features after all columns."""
        more = [np.log1p(np.maximum(values, 0.0)) for values in counts]
        out = np.column_stack([X, *(values[:, 1:] for values in means), *more, *([pairs] if len(pairs) else [])])
        for j, values in zip(self.columns, means, strict=True):
            out[:, j] = values[:, 0]
        return out

    def _features(self, X: np.ndarray) -> np.ndarray:
        codes = [self._codes(X[:, j]) for j in self.columns]
        codes = [np.where(c < len(known) - 1, c, -1) for c, known in zip(codes, self.means_, strict=True)]
        found = [means[c] for c, means in zip(codes, self.means_, strict=True)]
        counts = [known[c] for c, known in zip(codes, self.counts_, strict=True)]
        pairs = np.empty(0) if self.pair_ is None else self._of_pairs(self.pair_, codes, 0.0)
        return self._replaced(X, found, counts, pairs)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict rows."""
        return np.asarray(self.estimator_.predict(self._features(X)))

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Probabilities of the classes."""
        return np.asarray(self.estimator_.predict_proba(self._features(X)))

    def __epi_state__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _STATE}

    def __epi_restore__(self, state: dict[str, Any]) -> None:
        for name in _STATE:
            setattr(self, name, state[name])
        self._pair = pair_of([len(means) - 1 for means in self.means_]) if self.pair_ is not None else None

    @property
    def classes_(self) -> np.ndarray:
        """The classes of the estimator."""
        return np.asarray(self.estimator_.classes_)


def _means(codes: np.ndarray, targets: np.ndarray, weight: np.ndarray, size: int) -> np.ndarray:
    """Smoothed means by level; the last row is the mean of all rows, for levels that are missing or new."""
    total = np.average(targets, axis=0, weights=weight) if weight.any() else targets.mean(axis=0)
    out = np.tile(total, (size + 1, 1))
    known = codes >= 0
    count = np.bincount(codes[known], weight[known], minlength=size)
    there = count > 0
    for k in range(targets.shape[1]):
        sums = np.bincount(codes[known], weight[known] * targets[known, k], minlength=size)
        mean = np.where(there, sums / np.where(there, count, 1), total[k])
        within = weight[known] @ (targets[known, k] - mean[codes[known]]) ** 2
        n, levels = count.sum(), there.sum()
        error = within / max(n - levels, 1)
        # Method of moments: the means of levels vary by their own variance and by that of the error.
        spread = (count @ (mean - total[k]) ** 2 - (levels - 1) * error) / max(
            n - count @ count / max(n, 1e-300), 1e-300
        )
        if spread <= 0:
            continue  # no more than chance: every level gets the mean of all
        out[:size, k] = (sums + error / spread * total[k]) / (count + error / spread) if error > 0 else mean
    return out
