"""Weak learners of AdaBoost (stumps, and clones of an estimator), their votes, and the row weights that result.

With votes F_m = F_{m-1} + the vote of member m, rows have the weights D_i, proportional to exp(-y_i F_m(x_i)) for two
classes. More classes: SAMME and SAMME.R (Zhu, Zou, Rosset and Hastie, 2009).
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from epicycle.core._exceptions import ParameterError
from epicycle.core._random import stream
from epicycle.tree.adaboost._stumps import SortedColumns, Stump

_TINY = float(np.finfo(np.float64).tiny)
# Share of the total weight added to every class of a side, and least distance of an error from 0 and 1: votes stay
# finite (at most log(1e6) = 13.8).
SMOOTHING = 1e-6
# Weights of classes that differ by less, relatively, are taken as equal: sums of D round in the order of the rows.
_TIE = 1e-9
_MIN_PROBABILITY = 1e-12  # of a user's classifier, before the logarithm
_MAX_EXPONENT = 700.0  # exp overflows beyond 709


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
        # A factor that all rows have cancels in D: without it even endless votes have finite weights.
        shift = max(float(exponent.max()) - _MAX_EXPONENT, 0.0)
        D = self.D * np.exp(exponent - shift).ravel().take(member.group * self.K + self.y)
        Z = D.sum()
        self.D, self.loss = D / max(Z, _TINY), min(self.loss * float(Z), sys.float_info.max)

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
