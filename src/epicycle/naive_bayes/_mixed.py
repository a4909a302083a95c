"""Naive Bayes for tables of several kinds of columns:  log P(x | c) = sum over columns, each by its own events.

Independence given the class is all that the parts have in common, so each is one of the other models on its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from epicycle import engine
from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import AnyOf, Boolean, Choice, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.data import Batch, Data
from epicycle.data._matrix import dense
from epicycle.data._quantiles import digit_counts, select_by_digits
from epicycle.naive_bayes._base import CodedRows, NaiveBayes, Statistic
from epicycle.naive_bayes._bernoulli import BernoulliNB
from epicycle.naive_bayes._categorical import CategoricalNB, TableNaiveBayes
from epicycle.naive_bayes._discrete import DiscreteNaiveBayes
from epicycle.naive_bayes._gaussian import GaussianNB
from epicycle.naive_bayes._multinomial import MultinomialNB

#: Kinds of columns.
KINDS = ("gaussian", "binned", "bernoulli", "categorical", "multinomial")


class MixedNB(TableNaiveBayes, DiscreteNaiveBayes):
    r"""Naive Bayes for tables whose columns are of different kinds.

    .. math:: \log P(c \mid x) = \log P(c) + \sum_j \log P_{k(j)}(x_j \mid c) + \text{const}

    with the kind :math:`k(j)` of every column: normal numbers, numbers in bins, yes or no, categories, counts. A
    missing entry is left out, in the fit and in the prediction.

    Parameters
    ----------
    kinds : "auto" or dict, default="auto"
        The kind of columns by name or number: "gaussian", "binned" (numbers in bins of equal weight, each a level),
        "bernoulli" (0 or not), "categorical" (codes or levels) or "multinomial" (counts; such columns share one
        multinomial). Of columns that are not named, those of type category are categorical, those that hold only 0 and
        1 are Bernoulli, and the others are as `numeric` says.
    numeric : {"gaussian", "binned"}, default="gaussian"
        The kind of columns of numbers.
    n_bins : int, default=10
        Largest number of bins; equal values are never in two bins.
    alpha : float, default=1.0
        Pseudo-count of every event of the discrete kinds.
    var_smoothing : float, default=1e-9
        Share of the largest variance that is added to those of the normal columns.

    Attributes
    ----------
    kinds_ : list of str
        The kind of every column.
    parts_ : dict
        The fitted model of the columns of each kind.
    bin_edges_ : dict
        Edges of the bins, by the number of the column.
    categories_ : dict
        Levels of the columns of type category, by the number of the column.

    Examples
    --------
    >>> import pandas as pd
    >>> from epicycle import MixedNB
    >>> table = pd.DataFrame({"age": [20.0, 30.0, 40.0, 50.0], "town": pd.Categorical(["a", "a", "b", "b"])})
    >>> model = MixedNB().fit(table, [0, 0, 1, 1])
    >>> model.kinds_, model.predict(pd.DataFrame({"age": [None], "town": pd.Categorical(["b"])})).tolist()
    (['gaussian', 'categorical'], [1])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **NaiveBayes._parameters,
        "kinds": AnyOf(Choice("auto"), InstanceOf(dict)),
        "numeric": Choice("gaussian", "binned"),
        "n_bins": Integer(minimum=2, maximum=1 << 16),
        "alpha": Real(minimum=0),
        "var_smoothing": Real(minimum=0),
        "fit_prior": Boolean(),
        "class_prior": NoneOr(InstanceOf(list, tuple, np.ndarray)),
        "prior_alpha": Real(minimum=0),
    }

    kinds: Any
    numeric: str
    n_bins: int
    var_smoothing: float
    force_alpha = True

    @stores_arguments
    def __init__(
        self,
        *,
        kinds: Any = "auto",
        numeric: str = "gaussian",
        n_bins: int = 10,
        alpha: float = 1.0,
        var_smoothing: float = 1e-9,
        fit_prior: bool = True,
        class_prior: Any = None,
        prior_alpha: float = 0.0,
        calibration: str | None = None,
        n_jobs: int | None = None,
    ) -> None: ...

    # ------------------------------------------------------------------------------------------- the parts

    def _events(self, data: Data) -> Any:
        if not hasattr(self, "kinds_"):
            self.kinds_ = self._kinds_of(data)
            binned = [j for j, kind in enumerate(self.kinds_) if kind == "binned"]
            self.bin_edges_ = bin_edges(data, binned, self.n_bins, self.n_jobs)
            self.parts_ = {kind: self._part(kind) for kind in KINDS if kind in self.kinds_}
        jobs = [(self._columns(kind), part._events(_Columns(part))) for kind, part in self.parts_.items()]
        return partial(mixed_events, jobs=jobs, edges=self.bin_edges_)

    def _kinds_of(self, data: Data) -> list[str]:
        kinds = ["categorical" if j in self.categories_ else "" for j in range(data.n_features)]
        if isinstance(self.kinds, dict):
            for column, kind in self.kinds.items():
                if kind not in KINDS:
                    raise ParameterError(f"kinds[{column!r}]={kind!r}; expected one of {', '.join(map(repr, KINDS))}")
                kinds[self._column(column)] = kind
        if not all(kinds):
            (other,) = engine.sum(_entries_beside_0_and_1, data, n_jobs=self.n_jobs)
            kinds = [kind or ("bernoulli" if n == 0 else self.numeric) for kind, n in zip(kinds, other, strict=True)]
        return kinds

    def _column(self, column: Any) -> int:
        names = self._names()
        if isinstance(column, str) and column in names:
            return names.index(column)
        if isinstance(column, int) and not isinstance(column, bool) and 0 <= column < len(names):
            return column
        raise ParameterError(f"kinds names the column {column!r}; expected a number below {len(names)} or a name of X")

    def _columns(self, kind: str) -> np.ndarray:
        return np.array([j for j, k in enumerate(self.kinds_) if k == kind])

    def _part(self, kind: str) -> Any:
        models: dict[str, Callable[[], Any]] = {
            "gaussian": lambda: GaussianNB(var_smoothing=self.var_smoothing),
            "binned": lambda: CategoricalNB(alpha=self.alpha),
            "bernoulli": lambda: BernoulliNB(alpha=self.alpha),
            "categorical": lambda: CategoricalNB(alpha=self.alpha),
            "multinomial": lambda: MultinomialNB(alpha=self.alpha),
        }
        part = models[kind]()
        columns = self._columns(kind)
        part.n_features_in_ = len(columns)
        if kind == "binned":
            part.categories_ = {i: np.arange(len(self.bin_edges_[j]) + 1) for i, j in enumerate(columns.tolist())}
        elif kind == "categorical":
            levels = ((i, self.categories_.get(j)) for i, j in enumerate(columns.tolist()))
            part.categories_ = {i: level for i, level in levels if level is not None}
        return part

    # ------------------------------------------------------------------------------------------- the sum of the parts

    def _state(self) -> Statistic:
        return (self.class_count_, *(term for part in self.parts_.values() for term in part._state()[1:]))

    def _learn(self, statistic: Statistic) -> float:
        count, terms, deviation = statistic[0], list(statistic[1:]), 0.0
        fitted = {}
        for kind in self.parts_:
            # A new object: what was learnt before stays with the model that a failed fit goes back to.
            part = fitted[kind] = self._part(kind)
            part.class_count_, part.classes_ = count, self.classes_
            own = [terms.pop(0) for _ in range(2 if kind == "bernoulli" else 1)]
            deviation = max(deviation, part._learn((count, *own)))
        self.parts_ = fitted
        return deviation

    def _likelihood(self) -> tuple[Any, tuple[Any, ...]]:
        jobs = [(self._columns(kind), part._likelihood()) for kind, part in self.parts_.items()]
        return mixed_likelihood, (jobs, self.bin_edges_)

    def _log_likelihood(self) -> float:
        return float(sum(part._log_likelihood() for part in self.parts_.values()))

    def _terms(self, X: Any, first: int, second: int) -> tuple[Any, np.ndarray]:
        rows = coded_rows(X, self.bin_edges_)
        out = np.zeros(rows.shape)
        for kind, part in self.parts_.items():
            columns = self._columns(kind)
            out[:, columns] = part._terms(rows[:, columns], first, second)[0]
        return out, np.zeros(len(rows))


class _Columns:
    """As much of a data set as the events of a part ask for."""

    def __init__(self, part: Any) -> None:
        self.n_features = part.n_features_in_


def coded_rows(X: Any, edges: Mapping[int, np.ndarray]) -> np.ndarray:
    """Rows with the number of the bin in the place of binned columns; NaN stays."""
    rows = dense(X).astype(np.float64)
    for j, cut in edges.items():
        rows[:, j] = np.where(np.isnan(rows[:, j]), np.nan, np.searchsorted(cut, rows[:, j], side="left"))
    return rows


def mixed_events(
    rows: CodedRows, jobs: list[tuple[np.ndarray, Any]], edges: Mapping[int, np.ndarray]
) -> tuple[Any, ...]:
    """The terms of all parts, one after the other."""
    X = coded_rows(rows.X, edges)
    return tuple(term for columns, events in jobs for term in events(rows.columns(X[:, columns])))


def mixed_likelihood(X: Any, jobs: list[tuple[np.ndarray, Any]], edges: Mapping[int, np.ndarray]) -> np.ndarray:
    """The sum of the log-likelihoods of the parts."""
    rows = coded_rows(X, edges)
    return np.asarray(sum(function(rows[:, columns], *parameters) for columns, (function, parameters) in jobs))


def _entries_beside_0_and_1(batch: Batch) -> tuple[np.ndarray]:
    X = dense(batch.X)
    return (np.count_nonzero((X != 0) & (X != 1) & ~np.isnan(X), axis=0),)


def bin_edges(data: Data, columns: list[int], n_bins: int, n_jobs: int | None) -> dict[int, np.ndarray]:
    """Distinct quantiles of columns at 1/n_bins, 2/n_bins, ...: upper edges of all bins but the last; six passes."""
    if not columns:
        return {}

    def count(begin: np.ndarray, shift: int, bits: int) -> np.ndarray:
        return np.asarray(engine.sum(_digits, data, columns, begin, shift, bits, n_jobs=n_jobs)[0])

    share = np.repeat(np.arange(1, n_bins)[:, None] / n_bins, len(columns), axis=1)
    found = select_by_digits(count, share, relative=True)
    return {j: np.unique(found[:, i]) for i, j in enumerate(columns)}


def _digits(batch: Batch, columns: list[int], begin: np.ndarray, shift: int, bits: int) -> tuple[np.ndarray]:
    values = dense(batch.X)[:, columns].astype(np.float64)
    known = ~np.isnan(values)
    group = np.broadcast_to(np.arange(len(columns)), values.shape)[known]
    weight = None if batch.weight is None else np.broadcast_to(batch.weight[:, None], values.shape)[known]
    return (digit_counts(values[known], group, weight, begin, shift, bits),)
