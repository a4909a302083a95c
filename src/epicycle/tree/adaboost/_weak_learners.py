"""Weak learners of AdaBoost (stumps, and clones of an estimator), their votes, and the row weights that result.

A stump is a tree with one split. Columns are sorted once; a search then is one pass along every sorted column.

With votes F_m = F_{m-1} + the vote of member m, rows have the weights D_i, proportional to exp(-y_i F_m(x_i)) for two
classes. More classes: SAMME and SAMME.R (Zhu, Zou, Rosset and Hastie, 2009).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from epicycle import _native
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._random import stream
from epicycle.engine import n_threads
from epicycle.engine._ordered import in_order
from epicycle.tree._binning import MISSING
from epicycle.tree._ensemble import Ensemble, empty_ensemble
from epicycle.tree._nodes import LEAF, MISSING_LEFT

# An entry of a sorted column is a row number; the highest bit marks the last row of a number, behind which a threshold
# fits.
_LAST_OF_NUMBER = np.uint32(1 << 31)
_ROW = np.uint32((1 << 31) - 1)
_TINY = float(np.finfo(np.float64).tiny)
# Share of the total weight added to every class of a side, and least distance of an error from 0 and 1: votes stay
# finite (at most log(1e6) = 13.8).
SMOOTHING = 1e-6
# Weights of classes that differ by less, relatively, are taken as equal: sums of D round in the order of the rows.
_TIE = 1e-9
_MIN_PROBABILITY = 1e-12  # of a user's classifier, before the logarithm
_MAX_EXPONENT = 700.0  # exp overflows beyond 709


@dataclass(frozen=True)
class Stump:
    """x[feature] <= threshold goes left, and so do missing numbers where `missing_left`."""

    feature: int
    threshold: float
    missing_left: bool

    def right(self, X: np.ndarray | sp.csc_array) -> np.ndarray:
        """Mask of the rows that go right."""
        x = column(X, self.feature).astype(np.float64, copy=False)  # thresholds lie between two numbers of X
        return x > self.threshold if self.missing_left else ~(x <= self.threshold)

    @property
    def splits(self) -> bool:
        """Whether anything can go right."""
        return not (self.threshold == np.inf and self.missing_left)


def column(X: Any, j: int) -> np.ndarray:
    """One column as a dense vector."""
    if not sp.issparse(X):
        return np.asarray(X[:, j])
    x = np.zeros(X.shape[0], X.dtype)
    part = slice(X.indptr[j], X.indptr[j + 1])
    x[X.indices[part]] = X.data[part]
    return x


class SortedColumns:
    """Every column as the list of its rows in ascending order; of a sparse column those that it stores."""

    def __init__(self, X: Any, n_jobs: int | None) -> None:
        if X.shape[0] > int(_ROW):
            raise DataError(f"X: {X.shape[0]} rows; stumps are searched among at most {int(_ROW)}")
        self.X, self.n_jobs = X, n_jobs
        sorted_columns: list[tuple[np.ndarray, int, int]] = []
        threads = n_threads(float(X.shape[0]) * X.shape[1] * 20, n_jobs)
        in_order(iter(range(X.shape[1])), self._sorted, sorted_columns.append, threads)
        entries, zeros, missing = zip(*sorted_columns, strict=True)
        self.entries = np.concatenate(entries)
        self.begin = np.concatenate([[0], np.cumsum([len(e) for e in entries])]).astype(np.int64)
        self.zeros, self.missing = np.array(zeros, np.int64), np.array(missing, np.int64)
        self.threads = n_threads(float(len(self.entries)), n_jobs)
        self.packed = np.empty(X.shape[0], np.int64)
        if not sp.issparse(X):
            self._bin()

    def _bin(self) -> None:
        """Bins of neighbours in every column, at most 255, equal numbers in one; bin 255 for missing numbers."""
        n, p = self.X.shape
        self.rows = np.empty((n, p), np.uint8)
        self.bin_end, self.n_bins = np.zeros((p, 256), np.int64), np.zeros(p, np.int32)

        def work(j: int) -> None:
            entries = self.entries[self.begin[j] : self.begin[j + 1]]
            numbers = n - int(self.missing[j])
            ends = np.append(np.flatnonzero(entries[: max(numbers - 1, 0)] & _LAST_OF_NUMBER) + 1, numbers)
            if len(ends) > MISSING:  # those nearest to equal shares
                wanted = np.arange(1, MISSING + 1) * (numbers / MISSING)
                ends = np.unique(ends[np.minimum(np.searchsorted(ends, wanted), len(ends) - 1)])
            ends = ends[ends > 0]
            sizes = np.diff(ends, prepend=0)
            bins = np.full(n, MISSING, np.uint8)
            bins[: sizes.sum()] = np.repeat(np.arange(len(ends), dtype=np.uint8), sizes)
            self.rows[entries & _ROW, j] = bins
            self.bin_end[j, : len(ends)] = ends
            self.n_bins[j] = len(ends)

        in_order(iter(range(p)), work, lambda _: None, n_threads(20.0 * n * p, self.n_jobs))

    def _sorted(self, j: int) -> tuple[np.ndarray, int, int]:
        X = self.X
        if sp.issparse(X):
            part = slice(X.indptr[j], X.indptr[j + 1])
            x, rows = np.asarray(X.data)[part], np.asarray(X.indices)[part]
            stored = x != 0
            x, rows = x[stored], rows[stored]
        else:
            x, rows = np.ascontiguousarray(X[:, j]), None
        order = np.argsort(x, kind="stable")  # NaN last
        x = x[order]
        entries = (order if rows is None else rows[order]).astype(np.uint32)
        missing = int(np.count_nonzero(np.isnan(x)))
        numbers = len(x) - missing
        last = np.zeros(len(x), bool)
        last[: numbers - 1] = x[: numbers - 1] != x[1:numbers] if numbers > 1 else False
        zeros = -1
        if rows is not None and len(x) < X.shape[0]:
            zeros = int(np.searchsorted(x[:numbers], 0.0))
            if zeros > 0:
                last[zeros - 1] = True
        if missing and numbers:
            last[numbers - 1] = True
        entries[last] |= _LAST_OF_NUMBER
        return entries, zeros, missing

    def best(self, weight: np.ndarray, code: np.ndarray | None, n_classes: int, *, confidence: bool) -> Stump:
        """The best stump for weights: signed ones for two classes, or with the codes of more classes."""
        if not len(self.entries):  # a sparse matrix of zeros: nothing can go right
            return Stump(0, np.inf, True)
        if code is None and not sp.issparse(self.X):
            found = _native.tree.best_binned_stump(
                self.entries, self.begin, self.missing, self.rows, self.bin_end, self.n_bins, weight, confidence,
                self.packed, self.threads,
            )  # fmt: skip
        else:
            found = _native.tree.best_stump(
                self.entries, self.begin, self.zeros, self.missing, weight, code, n_classes, confidence, self.threads
            )
        j, at, after_zeros, missing_left = found
        return Stump(j, self._threshold(j, at, after_zeros=after_zeros), missing_left)

    def _threshold(self, j: int, at: int, *, after_zeros: bool) -> float:
        """A number between the entry `at` of column j, or its zeros, and what comes next."""
        begin, numbers = int(self.begin[j]), int(self.begin[j + 1] - self.missing[j])
        zeros = -1 if self.zeros[j] < 0 else begin + int(self.zeros[j])
        below = 0.0 if after_zeros else self._value(at, j)
        if not after_zeros and at + 1 == zeros:
            above = 0.0
        elif at + 1 < numbers:
            above = self._value(at + 1, j)
        else:
            return np.inf
        middle = below / 2 + above / 2
        return float(middle) if below <= middle < above else float(below)

    def _value(self, entry: int, j: int) -> float:
        row = int(self.entries[entry] & _ROW)
        return float(self.X[row, j])


def stump_ensemble(members: list[tuple[Stump, tuple[int, int], np.ndarray]]) -> Ensemble:
    """An ensemble with a tree for every member and output.

    A member is its stump, the numbers of training rows on both sides, and the values (2, K) of the sides.
    """
    parts = {name: [array] for name, array in empty_ensemble().items()}
    for stump, (n_left, n_right), values in members:
        size = 3 if stump.splits else 1
        meta = np.arange(size, dtype=np.uint64) | np.uint64((LEAF | MISSING_LEFT) << 56)
        words = np.column_stack([np.full(size, np.inf).view(np.uint64), meta])
        counts, leaves = np.array([n_left]), values[:1]
        if stump.splits:
            flags = MISSING_LEFT if stump.missing_left else 0
            words[0, 0] = np.float64(stump.threshold).view(np.uint64)
            words[0, 1] = np.uint64(1 | stump.feature << 32 | flags << 56)
            counts, leaves = np.array([n_left + n_right, n_left, n_right]), np.vstack([0 * values[:1], values])
        for k in range(values.shape[1]):
            parts["nodes"].append(words)
            parts["values"].append(leaves[:, k])
            parts["roots"].append(parts["roots"][-1][-1:] + size)
            parts["gain"].append(np.zeros(size))
            parts["cover"].append(counts.astype(np.float64))
            parts["count"].append(counts)
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


# ------------------------------------------------------------------------------------------------ members


@dataclass
class Member:
    """A weak classifier, and its predictions of the training rows.

    The rows fall into groups that it treats alike: the two sides of a stump, or the classes that a classifier gives. A
    classifier that votes with probabilities has a group for each row.

    Attributes
    ----------
    model : Stump or classifier
    group : ndarray of shape (n,)
    codes : ndarray of shape (n_groups,)
        The class that it votes for.
    probabilities : ndarray of shape (n_groups, K), or None for votes by class
    """

    model: Any
    group: np.ndarray
    codes: np.ndarray
    probabilities: np.ndarray | None = None


class WeakLearner(ABC):
    """A classifier of weighted rows that is a little better than chance."""

    @abstractmethod
    def search(self, D: np.ndarray, number: int) -> Any:
        """The model for weights D, which add up to one, in this round."""

    @abstractmethod
    def member(self, model: Any, D: np.ndarray) -> Member:
        """Predictions of a model for the training rows, weighted by D."""


class Stumps(WeakLearner):
    """The best stump: least weighted error, least exponential loss for confidences, best Gini gain for many classes."""

    def __init__(self, X: Any, y: np.ndarray, n_classes: int, *, real: bool, n_jobs: int | None) -> None:
        self.X = sp.csc_array(X) if sp.issparse(X) else X
        self.columns = SortedColumns(self.X, n_jobs)
        self.y, self.n_classes, self.real = y, n_classes, real
        self.code = y.astype(np.int32) if n_classes > 2 else None
        self.sign = 2.0 * y - 1.0 if n_classes == 2 else None

    def search(self, D: np.ndarray, number: int) -> Stump:
        weight = D if self.sign is None else D * self.sign
        return self.columns.best(weight, self.code, self.n_classes, confidence=self.real)

    def member(self, model: Stump, D: np.ndarray) -> Member:
        side = model.right(self.X).astype(np.intp)
        totals = np.bincount(side * self.n_classes + self.y, D, 2 * self.n_classes).reshape(2, self.n_classes)
        # Laplace smoothing: confidences stay finite.
        smooth = totals + SMOOTHING
        probabilities = smooth / smooth.sum(axis=1, keepdims=True) if self.real else None
        # The first among classes whose weights differ by rounding alone.
        first = (totals >= totals.max(axis=1, keepdims=True) * (1 - _TIE)).argmax(axis=1)
        return Member(model, side, first, probabilities)


def flat(X: Any) -> Any:
    """Rows of several dimensions, which some estimators take, as a matrix: for the checks of X."""
    return X.reshape(len(X), -1) if isinstance(X, np.ndarray) and X.ndim > 2 else X


def seeded_clone(estimator: Any, seed: int, number: int) -> Any:
    """A clone of an estimator for the round of this number, with a seed of its own where it takes one."""
    model = clone(estimator)
    if "random_state" in model.get_params():
        model.set_params(random_state=int(stream(seed, "member", number).integers(2**31)))
    return model


class ClonedEstimators(WeakLearner):
    """Clones of a user's classifier, fitted with sample_weight."""

    def __init__(
        self, estimator: Any, X: Any, labels: np.ndarray, classes: np.ndarray, *, real: bool, seed: int
    ) -> None:
        self.estimator, self.X, self.labels, self.classes = estimator, X, labels, classes
        self.real, self.seed = real, seed

    def search(self, D: np.ndarray, number: int) -> Any:
        return seeded_clone(self.estimator, self.seed, number).fit(self.X, self.labels, sample_weight=D * len(D))

    def member(self, model: Any, D: np.ndarray) -> Member:
        return predict_member(model, self.X, self.classes, real=self.real)


def predict_member(model: Any, X: Any, classes: np.ndarray, *, real: bool) -> Member:
    """A classifier with its predictions for rows X; classes that it never saw have probability zero."""
    if not real:
        return Member(model, _positions(model, model.predict(X), classes), np.arange(len(classes)))
    if not hasattr(model, "predict_proba"):
        raise ParameterError(f"estimator={model!r:.60} has no predict_proba, which algorithm='real' needs")
    given = np.asarray(model.predict_proba(X))
    probabilities = np.zeros((len(given), len(classes)))
    probabilities[:, np.searchsorted(classes, model.classes_)] = given
    return Member(model, np.arange(len(given)), probabilities.argmax(axis=1), probabilities)


def _positions(model: Any, labels: Any, classes: np.ndarray) -> np.ndarray:
    """Predicted labels as positions among the classes."""
    labels = np.asarray(labels)
    found = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    if labels.shape != found.shape or labels.ndim != 1 or (classes[found] != labels).any():
        raise ParameterError(f"estimator={model!r:.60} predicts what is none of the classes; expected a classifier")
    return np.asarray(found)


def discrete_votes(codes: np.ndarray, K: int, alpha: float) -> np.ndarray:
    """Votes for classes: (len(codes), 1), plus or minus alpha / 2, for two classes, else alpha in column k of K."""
    if K == 2:
        return np.asarray(alpha / 2 * (2.0 * codes - 1))[:, None]
    return np.asarray(alpha * (codes[:, None] == np.arange(K)))


def real_votes(probabilities: np.ndarray, rate: float) -> np.ndarray:
    """Votes with confidence: half the log odds, or (K - 1) (log p_k - mean log p) for more than two classes."""
    p = np.clip(probabilities, _MIN_PROBABILITY, None)
    log_p = np.log(p / p.sum(axis=1, keepdims=True))
    K = p.shape[1]
    if K == 2:
        return np.asarray(rate / 2 * (log_p[:, 1:] - log_p[:, :1]))
    return np.asarray(rate * (K - 1) * (log_p - log_p.mean(axis=1, keepdims=True)))


class VoteState:
    """The weights of the rows and the votes so far.

    Attributes
    ----------
    D : ndarray of shape (n,)
        Weights of the rows, adding up to one.
    F : ndarray of shape (n, K), or (n, 1) for two classes
        Votes so far.
    loss : float
        The mean exponential loss, which is the product of the factors Z of all rounds.
    """

    def __init__(self, y: np.ndarray, weight: np.ndarray | None, n_classes: int, learning_rate: float) -> None:
        self.y, self.K, self.rate = y, n_classes, learning_rate
        self.base = np.full(len(y), 1.0 / len(y)) if weight is None else weight / weight.sum()
        self.D = self.base.copy()
        self.F = np.zeros((len(y), 1 if n_classes == 2 else n_classes))
        self.loss = 1.0

    def error(self, member: Member) -> float:
        """The weight of the rows that a member gets wrong."""
        return float(self.D @ (member.codes[member.group] != self.y))

    def discrete(self, member: Member, error: float) -> tuple[float, np.ndarray]:
        """(alpha, votes of the groups), alpha = log((1 - eps) / eps) + log(K - 1); of two classes each gets half."""
        # beta = log((1 - eps) / eps) / 2 minimises E[exp(-y (F + beta h))] over beta (Freund and Schapire, 1997).
        eps = min(max(error, SMOOTHING), 1 - SMOOTHING)  # a member without error has a finite vote
        alpha = float(self.rate * (np.log((1 - eps) / eps) + np.log(self.K - 1)))
        wrong = member.codes[:, None] != np.arange(self.K)
        self._reweigh(member, np.where(wrong, alpha / self.K, -alpha * (self.K - 1) / self.K))
        return alpha, self._count(member, discrete_votes(member.codes, self.K, alpha))

    def real(self, member: Member) -> np.ndarray:
        """Votes of the groups, with confidence."""
        assert member.probabilities is not None
        votes = real_votes(member.probabilities, self.rate)
        # exp(-y F): the exponent of a row of the first class (y = -1) is the vote, of the second its negative.
        self._reweigh(member, np.hstack([votes, -votes]) if self.K == 2 else -votes / (self.K - 1))
        return self._count(member, votes)

    def _reweigh(self, member: Member, exponent: np.ndarray) -> None:
        """D_i exp(exponent), which depends on the group and class of the row, normalised.

        The normaliser is the factor by which the exponential loss changes.
        """
        D = self.D * np.exp(exponent).ravel().take(member.group * self.K + self.y)
        Z = D.sum()
        self.D, self.loss = D / max(Z, _TINY), self.loss * float(Z)

    def _count(self, member: Member, votes: np.ndarray) -> np.ndarray:
        self.F = self.F + votes.take(member.group, axis=0)
        return votes

    def training_error(self) -> float:
        """The weight of the rows that the votes get wrong; a tied vote of two classes counts as wrong."""
        if self.K == 2:
            return float(self.base @ ((2.0 * self.y - 1) * self.F[:, 0] <= 0))
        return float(self.base @ (self.F.argmax(axis=1) != self.y))

    def bound(self) -> float:
        """Bound on the training error: the exponential loss; for more classes that of the strongest other class."""
        if self.K == 2:
            return self.loss
        rows = np.arange(len(self.y))
        own = self.F[rows, self.y]
        rivals = self.F.copy()
        rivals[rows, self.y] = -np.inf
        return float(self.base @ np.exp(np.minimum(rivals.max(axis=1) - own, _MAX_EXPONENT)))
