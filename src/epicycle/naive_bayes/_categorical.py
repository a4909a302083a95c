"""Categorical naive Bayes:  P(x_j = l | c) = (N_cjl + alpha_j) / (N_cj + alpha_j L_j),  L_j the number of levels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.core._exceptions import ParameterError
from epicycle.core._memory import require_memory
from epicycle.core._parameters import AnyOf, ArrayLike, Domain, Integer, NoneOr
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.data import Data
from epicycle.data._categories import LevelEncoder, category_columns, learn_levels
from epicycle.data._matrix import dense
from epicycle.naive_bayes._base import LEAST_LOG, CodedRows, NaiveBayes, Statistic
from epicycle.naive_bayes._discrete import (
    DISCRETE_DEFAULTS,
    DiscreteArguments,
    DiscreteNaiveBayes,
    log_of_counts,
    refuse_negative,
)


@dataclass(frozen=True)
class LevelCounts:
    """Weights by class and level, an array (n_classes, n_levels) for each feature; levels seen later add columns."""

    counts: list[np.ndarray]

    def __add__(self, other: LevelCounts) -> LevelCounts:
        total = []
        for a, b in zip(self.counts, other.counts, strict=True):
            out = np.zeros((len(a), max(a.shape[1], b.shape[1])))
            out[:, : a.shape[1]] += a
            out[:, : b.shape[1]] += b
            total.append(out)
        return LevelCounts(total)

    def placed(self, at: np.ndarray, n_classes: int) -> LevelCounts:
        """The same with its classes at other positions."""
        moved = [np.zeros((n_classes, a.shape[1])) for a in self.counts]
        for out, a in zip(moved, self.counts, strict=True):
            out[at] = a
        return LevelCounts(moved)


class TableNaiveBayes(NaiveBayes):
    """Naive Bayes for tables: columns of type category of a frame, or of text in files, become codes of levels."""

    _takes_sparse: ClassVar[bool] = False
    _takes_missing: ClassVar[bool] = True

    categories_: dict[int, np.ndarray]

    def _training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Data:
        name = type(self).__name__
        if reset:
            self.categories_ = learn_levels(X, category_columns(X, "from_dtype"), name)
        # Codes of later rows have to mean what those of the first ones did: a new level has no place among them.
        unknown = "missing" if reset else "error"
        coded = LevelEncoder(self.categories_, unknown, estimator_name=name).encode(X)  # type: ignore[arg-type]
        return super()._training_data(coded, y, sample_weight, reset=reset)

    def _coded(self, X: Any) -> Any:
        return LevelEncoder(self.categories_, estimator_name=type(self).__name__).encode(X)


class CategoricalNB(TableNaiveBayes, DiscreteNaiveBayes):
    r"""Naive Bayes for categories.

    .. math:: P(x_j = l \mid c) = \frac{N_{cjl} + \alpha_j}{N_{cj} + \alpha_j L_j}

    with :math:`N_{cjl}` the weight of the rows of class :math:`c` in which feature :math:`j` has level :math:`l`, of
    :math:`L_j` levels. Features are codes 0, 1, ..., or columns of type category of a data frame, whose levels are
    found by value; of a number that is not whole the whole part is the code, as in scikit-learn. A missing entry, and a
    level that the fit did not see, is left out.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        Pseudo-count of every level. 1 is Laplace's rule, 0 the maximum of the likelihood.
    min_categories : int or array-like of shape (n_features,), optional
        Least number of levels of every feature, for levels that the fit may not see.

    Attributes
    ----------
    category_count_ : list of ndarray of shape (n_classes, n_levels)
        The counts N, for every feature.
    feature_log_prob_ : list of ndarray of shape (n_classes, n_levels)
        Logarithms of the probabilities of the levels.
    n_categories_ : ndarray of shape (n_features,)
        Number of levels of every feature.
    categories_ : dict
        Levels of the columns of type category, by the number of the column.

    Examples
    --------
    >>> from epicycle import CategoricalNB
    >>> X = [[0, 2], [0, 1], [1, 0], [1, 1]]
    >>> model = CategoricalNB().fit(X, ["no", "no", "yes", "yes"])
    >>> model.predict_proba([[1, 2]]).round(2)
    array([[0.4, 0.6]])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **DiscreteNaiveBayes._parameters,
        "min_categories": NoneOr(AnyOf(Integer(minimum=1), ArrayLike())),
    }

    min_categories: Any
    category_count_: list[np.ndarray]
    feature_log_prob_: list[np.ndarray]
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"input_tags.categorical": True, "input_tags.positive_only": True}

    @stores_arguments(**DISCRETE_DEFAULTS)
    def __init__(self, *, min_categories: Any = None, **shared: Unpack[DiscreteArguments]) -> None: ...

    def _events(self, data: Data) -> Any:
        least = self._least_levels(data.n_features)
        return partial(level_counts, least=least, name=type(self).__name__)

    def _least_levels(self, p: int) -> np.ndarray:
        if self.min_categories is None:
            least = np.ones(p, dtype=np.int64)
        else:
            given = np.asarray(self.min_categories)
            if given.dtype.kind not in "iu":
                raise ParameterError(f"min_categories: 'min_categories' should have integral type. Got {given.dtype}")
            if given.ndim > 0 and given.shape != (p,):
                raise ParameterError(
                    f"min_categories: 'min_categories' should have shape ({p},) when an array-like is provided. "
                    f"Got {given.shape} instead"
                )
            least = np.broadcast_to(given, (p,)).astype(np.int64)
        for j, levels in self.categories_.items():
            least[j] = max(least[j], len(levels))
        return least

    def _state(self) -> Statistic:
        return self.class_count_, LevelCounts(self.category_count_)

    def _learn(self, statistic: Statistic) -> float:
        self.category_count_ = statistic[1].counts
        p = len(self.category_count_)
        self.n_categories_ = np.array([a.shape[1] for a in self.category_count_])
        alpha = self._pseudo_counts(len(statistic[0]))
        if alpha.ndim == 2:
            raise ParameterError(f"alpha: has shape {alpha.shape}; expected a number, or one for each of {p} features")
        self.feature_log_prob_, deviation = [], 0.0
        for a, count in zip(np.broadcast_to(alpha, (p,)), self.category_count_, strict=True):
            smoothed = count + a
            totals = smoothed.sum(axis=1, keepdims=True)
            log_theta = log_of_counts(smoothed, totals)
            self.feature_log_prob_.append(log_theta)
            sums = np.exp(log_theta).sum(axis=1)[totals[:, 0] > 0]
            deviation = max(deviation, float(np.max(np.abs(sums - 1.0), initial=0.0)))
        return deviation

    def _likelihood(self) -> tuple[Any, tuple[Any, ...]]:
        return level_likelihood, ([np.maximum(a, LEAST_LOG) for a in self.feature_log_prob_], type(self).__name__)

    def _log_likelihood(self) -> float:
        pairs = zip(self.category_count_, self._likelihood()[1][0], strict=True)
        return float(sum(np.sum(count * log_theta) for count, log_theta in pairs))

    def _terms(self, X: Any, first: int, second: int) -> tuple[Any, np.ndarray]:
        columns = [level_terms(code, table) for code, table in zip(dense(X).T, self._likelihood()[1][0], strict=True)]
        terms = np.stack([c[:, first] - c[:, second] for c in columns], axis=1)
        return terms, np.zeros(len(terms))


def _codes(column: np.ndarray) -> np.ndarray:
    """Whole parts of a column as codes, -1 where it is missing."""
    return np.where(np.isnan(column), -1, np.trunc(np.nan_to_num(column))).astype(np.int64)


def level_counts(rows: CodedRows, least: np.ndarray, name: str) -> tuple[LevelCounts]:
    """Weights by class and level of every column."""
    counts: list[np.ndarray] = []
    refuse_negative(rows.X, name)
    needed = 0.0
    for j, column in enumerate(dense(rows.X).T):
        level = _codes(column)
        known = level >= 0 if rows.weight is None else (level >= 0) & (rows.weight > 0)
        n_levels = max(int(level[known].max(initial=-1)) + 1, int(least[j]))
        # Of this column and all before it, and once more while it is counted.
        needed += 8.0 * rows.n_classes * n_levels
        more = needed + 8.0 * rows.n_classes * n_levels
        require_memory(more, f"the counts of the {n_levels} levels of column {j}", "recode it")
        cell = rows.code[known] * n_levels + level[known]
        of_rows = None if rows.weight is None else rows.weight[known]
        counted = np.bincount(cell, of_rows, minlength=rows.n_classes * n_levels).astype(np.float64)
        counts.append(counted.reshape(rows.n_classes, n_levels))
    return (LevelCounts(counts),)


def level_terms(column: np.ndarray, table: np.ndarray) -> np.ndarray:
    """log P(x_j | c) of a column, (n, n_classes); zero where the level is missing or new."""
    known = (column >= 0) & (column < table.shape[1])  # false for NaN
    level = np.where(known, column, 0).astype(np.intp)
    return np.where(known[:, None], table.T[level], 0.0)


def level_likelihood(X: Any, tables: list[np.ndarray], name: str) -> np.ndarray:
    """The sum of the logarithms over all columns."""
    rows = dense(X)
    refuse_negative(rows, name)
    scores = np.zeros((len(rows), len(tables[0])))
    for j, table in enumerate(tables):
        scores += level_terms(_codes(rows[:, j]), table)
    return scores
