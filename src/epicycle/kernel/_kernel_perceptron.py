"""The perceptron in the space of a kernel:  on a mistake, y_i f(x_i) <= 0,  f <- f + y_i k(x_i, .).

If some f of norm one has y_i f(x_i) >= gamma for all rows, and k(x_i, x_i) <= D^2, there are at most (D / gamma)^2
mistakes, whatever the order of the rows and however often they come.

A perceptron's w = sum_i c_i y_i phi(x_i), c >= 0, proves more than it was made for: a unit vector u with
y_i u'phi(x_i) >= m for all rows has  |w| >= u'w >= m sum_i c_i,  so no margin is larger than |w| / sum_i c_i. After M
mistakes on rows no longer than D that is at most D / sqrt(M).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from epicycle import engine
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._history import History
from epicycle.core._parameters import Boolean, Choice, Domain
from epicycle.core._random import seed_of, stream
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.engine._row_order import content_order, repeated
from epicycle.kernel._perceptron_learner import (
    KernelLearner,
    MarginBounds,
    averaged_coefficients,
    cast_votes,
    restored_learner,
    saved_learners,
    survival_votes,
    vote_batch,
)
from epicycle.kernels._gram import kernel_product
from epicycle.kernels._machine import KERNEL_PARAMETERS, KernelClassifier, select_rows
from epicycle.kernels._prepared import as_texts
from epicycle.optim import Solution
from epicycle.stats._class_scores import one_or_all
from epicycle.stats._labels import codes as codes_of, distinct

#: Beyond it weights are counted in units of the largest: their sums may not fit into float32, nor |w|^2 into float64.
MAX_SHARE = 1e30


class KernelPerceptron(KernelClassifier):
    r"""Perceptron in the feature space of a kernel, with its mistakes and the bound on their number.

    A row on the wrong side, :math:`y_i f(x_i) \le 0` with :math:`y_i \in \{-1, 1\}`, is added to the function,

    .. math:: f \leftarrow f + y_i \, k(x_i, \cdot) ,

    and any other row does nothing. Where the classes can be separated with margin :math:`\gamma`, it makes at most
    :math:`(D / \gamma)^2` mistakes, with :math:`D^2 = \max_i k(x_i, x_i)`. More than two classes are learnt one against
    the rest. A fitted object keeps the training rows on which it was mistaken.

    Parameters
    ----------
    variant : {"online", "averaged", "voted"}, default="online"
        Predict with the last function, with the mean of all over the rows shown, or by a vote of all functions that
        ever were, each with as many votes as rows it survived.
    fit_intercept : bool, default=True
        Whether a constant is learnt too: the kernel is k + 1 then.
    tol : float, default=1e-2
        The fit ends with a pass without mistakes, or when it is proven that no margin is above tol times D. After
        1 / tol^2 mistakes one of them is certain.
    max_iter : int, default=1000
        Maximum number of passes over the rows.
    shuffle : bool, default=True
        Whether each pass takes the rows in a new order, which depends on what is in the rows, not on how they are
        stored.
    random_state : int, Generator, RandomState or None, default=0
        Order of the rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    dual_coef_ : ndarray of shape (n_kept,) or (n_kept, n_classes)
        The signed coefficients of the rows kept.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    X_fit_ : rows with a coefficient, None for a precomputed kernel
    support_ : ndarray of int
        Which rows of the fit these are.
    %(kernel_)s
    n_mistakes_ : int, float or ndarray of shape (n_classes,)
        Mistakes made while learning, rows counted by their weights.
    separable_ : bool or ndarray of shape (n_classes,)
        Whether a separating function is known.
    margin_ : float or ndarray of shape (n_classes,)
        The margin of the best separating function known, within 0.1% of the largest where that could be reached; 0
        without one, and for a kernel that is none, in which there are no lengths.
    radius_ : float
        D.
    mistake_bound_ : float or ndarray of shape (n_classes,)
        (D / margin)^2; infinite where nothing is known to separate.
    certificate_ : Certificate
        "separating function": a whole pass without mistakes. "margin bound": no function has a larger margin than this
        share of D.
    history_ : History
        Mean loss and mistakes of every pass.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import KernelPerceptron
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> model = KernelPerceptron(kernel="poly", degree=2).fit(X, [0, 0, 1, 1])  # exclusive or
    >>> model.predict(X)
    array([0, 0, 1, 1])
    >>> bool(model.n_mistakes_ <= model.mistake_bound_)
    True
    """

    _takes_any_size: ClassVar[bool] = True  # weights are put in units of the largest
    _parameters: ClassVar[Mapping[str, Domain]] = {
        **KERNEL_PARAMETERS,
        "variant": Choice("online", "averaged", "voted"),
        "shuffle": Boolean(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="kernel",
        catalogue=("A12", "C1"),
        engines=("memory",),
        certificate="separating function",
        keeps_rows=True,
    )

    @stores_arguments
    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        variant: str = "online",
        fit_intercept: bool = True,
        tol: float = 1e-2,
        max_iter: int = 1000,
        shuffle: bool = True,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None: ...

    # ------------------------------------------------------------------------------------------- fit

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with labels y.

        Parameters
        ----------
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight v is shown v times, with a last, shorter step for the fraction that is left. Beyond 1e32
            weights are counted in units of the largest.
        """
        rows, codes, weight, kept = self._labelled(X, y, sample_weight)
        self._require(len(kept), 1.0)
        K = self._gram(self.kernel_.prepare(rows))
        if self.fit_intercept:
            K += 1.0
        content = self.shuffle and self.kernel_.takes != "precomputed"
        first = content_order(rows, codes.astype(np.float64), weight) if content else np.arange(len(codes))
        order, share = repeated(weight, first)
        if share is not None and share.max() > MAX_SHARE:  # mistakes do not depend on the unit of the weights
            share = share / share.max()
        mercer = self._least_eigenvalue(K) == 0
        solution, learners = self._learn(K, codes, order, share, (rows, kept), mercer=mercer)
        self._set_margins(K, learners, share)
        self._set_function(rows, kept, learners, self._time(order, share, solution.n_iter))
        self._seen_ = int(kept[-1]) + 1
        self._conclude(solution)
        return self

    @staticmethod
    def _time(order: np.ndarray, share: np.ndarray | None, passes: int) -> float:
        return passes * (float(len(order)) if share is None else float(share.sum()))

    def _learn(
        self,
        K: np.ndarray,
        codes: np.ndarray,
        order: np.ndarray,
        share: np.ndarray | None,
        rows: tuple[Any, np.ndarray],
        *,
        mercer: bool,
    ) -> tuple[Solution, list[KernelLearner]]:
        n = len(K)
        signs = [np.where(codes == k, 1.0, -1.0) for k in self._positive()]
        radius = float(np.sqrt(max(np.diagonal(K).max(), 0.0)))
        state = self._resume_state()
        if state is None:
            learners = [KernelLearner(sign, np.zeros(n), np.zeros(n), mercer) for sign in signs]
            first, seed = 0, seed_of(self.random_state)
        else:
            learners = [restored_learner(sign, state, k, mercer=mercer) for k, sign in enumerate(signs)]
            first, seed = int(state["done"]), int(state["seed"])

        def attributes(_x: np.ndarray) -> dict[str, Any]:
            self._set_function(*rows, learners, self._time(order, share, passes))
            return self._learnt_attributes()

        monitor = self._monitor(self.max_iter, attributes)
        reason, passes = "max_iter", first
        for passes in range(first + 1, self.max_iter + 1):
            shuffled = stream(seed, "epoch", passes - 1).permutation(len(order)) if self.shuffle else slice(None)
            shown, part = order[shuffled], None if share is None else share[shuffled]
            began = self._time(order, share, passes - 1)
            mistakes = sum(learner.show(K, shown, part, began) for learner in learners)
            for learner in learners:
                if learner.clean:
                    learner.settle(K)
            loss = sum(float(np.maximum(-learner.sign * learner.scores, 0).mean()) for learner in learners)
            # on demand: all mistakes so far are in it, which makes it large after many passes
            state_now = partial(saved_learners, learners, passes, seed)
            stop = monitor(passes, np.zeros(0), objective=loss, mistakes=mistakes, state=state_now)
            if all(learner.clean or learner.margin_above <= self.tol * radius for learner in learners):
                reason = "converged"
            elif stop:
                reason = "stopped"
            else:
                continue
            break
        saved = saved_learners(learners, passes, seed)
        for learner in learners:
            learner.settle(K)
        certificate = self._certificate(learners, radius, passes)
        if certificate.holds and reason == "max_iter":
            reason = "converged"
        value = float(monitor.history().objective[-1])
        return Solution(np.zeros(1), value, monitor.history(), certificate, passes, reason, state=saved), learners

    def _certificate(self, learners: list[KernelLearner], radius: float, passes: int) -> Certificate:
        if all(learner.clean for learner in learners):
            meaning = f"pass {passes} made no mistake: every row is on its side of the function"
            return Certificate("separating function", 0.0, 0.0, meaning)
        left = max(learner.margin_above for learner in learners if not learner.clean)
        value = left / radius if radius > 0 else 0.0
        meaning = f"no function of the kernel has a margin above {value:.1e} of the longest row"
        if not learners[0].mercer:
            value = np.inf
            meaning = "nothing separates so far, and nothing is known of margins: this is no Mercer kernel"
        return Certificate("margin bound", value, self.tol, meaning)

    def _set_margins(self, K: np.ndarray, learners: list[KernelLearner], share: np.ndarray | None) -> None:
        self.radius_ = float(np.sqrt(max(np.diagonal(K).max(), 0.0)))
        # The bounds on the margin close in slowly; passes cost n^2.
        passes = int(min(20_000, max(300, 4e8 / len(K) ** 2)))  # as many as cost next to nothing
        bounds = [learner.bounds(K, passes) if learner.clean else MarginBounds(0.0, np.inf) for learner in learners]
        lower = np.array([b.lower for b in bounds])
        longest = 1.0 if share is None else max(1.0, float(share.max()))
        limit = np.full(len(lower), np.inf)
        # Novikoff's bound (D / gamma)^2, for steps of the length of the largest share.
        limit[lower > 0] = longest * np.square(self.radius_ / lower[lower > 0])
        self._set_counts(learners, weighted=share is not None)
        self.margin_, self.mistake_bound_ = one_or_all(lower), one_or_all(limit)
        self.separable_ = one_or_all(np.array([learner.clean for learner in learners]))

    def _set_counts(self, learners: list[KernelLearner], *, weighted: bool) -> None:
        made = np.array([sum(float(s.sum()) for s in learner.shares) for learner in learners])
        whole = not weighted and bool((made == np.floor(made)).all())
        self.n_mistakes_ = one_or_all(made.astype(np.int64) if whole else made)

    def _set_function(self, rows: Any, kept: np.ndarray, learners: list[KernelLearner], total: float) -> None:
        """Keep the coefficients of the variant, and the rows that have one."""
        if self.variant == "averaged":
            coefficients = np.column_stack([averaged_coefficients(learner, total) for learner in learners])
        else:
            coefficients = np.column_stack([learner.counts * learner.sign for learner in learners])
        support = np.flatnonzero((coefficients != 0).any(axis=1))
        self.support_ = kept[support]
        place = np.full(len(coefficients), -1)
        place[support] = np.arange(len(support))
        self._stream_: dict[str, Any] = {
            "shown": total,
            "learners": [learner.compressed(support, place) for learner in learners],
        }
        if self.kernel_.takes == "precomputed":
            self.X_fit_, self._n_fit_, self._columns_ = None, len(support), self.support_
        else:
            self.X_fit_ = select_rows(rows, self.kernel_, support)
        C = coefficients[support]
        self.dual_coef_ = C[:, 0] if C.shape[1] == 1 else C
        self.intercept_ = C.sum(axis=0) if self.fit_intercept else np.zeros(C.shape[1])
        if self.variant == "voted":
            self._votes_ = [survival_votes(learner, place, total) for learner in learners]

    # ------------------------------------------------------------------------------------------- a stream

    @fitting(incremental=True)
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows, each once, in their order; the rows of mistakes are kept.

        Parameters
        ----------
        classes : array-like, optional
            All classes, for the first call; otherwise those of its labels. Other labels are an error later.
        """
        first = not hasattr(self, "classes_")
        if not first and not hasattr(self, "_stream_"):
            raise ParameterError("partial_fit: the model is of version 0.1.0, which kept nothing to go on from")
        data, rows = self._intake(X, y, sample_weight, target="labels", reset=first)
        if self.kernel_.takes == "precomputed":
            raise ParameterError("kernel='precomputed': partial_fit needs the rows, to compare them with later ones")
        labels = np.asarray(data.y)
        if first:
            self.classes_ = distinct(labels if classes is None else np.asarray(classes))
            if len(self.classes_) < 2:
                raise DataError(f"classes: KernelPerceptron needs at least 2 classes, got {self.classes_.tolist()}")
        strange = labels[~np.isin(labels, self.classes_)]
        if len(strange):
            raise DataError(f"y: holds {strange[0]!r}, which is not among the classes {self.classes_.tolist()}")
        codes, n = codes_of(labels, self.classes_), len(labels)
        self._require(n, 1.0)
        order, share = repeated(data.weight, np.arange(n))
        B = None if first else self._kept()
        prepared = self.kernel_.prepare(rows, like=B)
        K = self._gram(prepared) + float(self.fit_intercept)
        signs = [np.where(codes == k, 1.0, -1.0) for k in self._positive()]
        began, seen, kept = 0.0, 0, np.empty(0, dtype=np.intp)
        learners = [KernelLearner(sign, np.zeros(n), np.zeros(n)) for sign in signs]
        if not first:
            began, kept, earlier = self._stream_["shown"], self.support_, self._stream_["learners"]
            seen = int(self._seen_)
            C = np.column_stack([old["counts"] * old["sign"] for old in earlier])
            scores = kernel_product(self.kernel_, prepared, B, C) + self.fit_intercept * C.sum(axis=0)
            for learner, old, score in zip(learners, earlier, scores.T, strict=True):
                learner.scores, learner.square = np.ascontiguousarray(score), float(old["square"])
        made = [learner.show(K, order, share, began) for learner in learners]
        loss = sum(float(np.maximum(-learner.sign * learner.scores, 0).mean()) for learner in learners)
        if not first:
            learners = [learner.after(old) for learner, old in zip(learners, earlier, strict=True)]
            rows = _stacked(self.X_fit_, rows)
        self._seen_ = seen + n
        total = began + self._time(order, share, 1)
        self._set_function(rows, np.append(kept, seen + np.arange(n)), learners, total)
        self._set_stream_evidence(learners, loss, float(sum(made)), weighted=share is not None)
        return self

    def _set_stream_evidence(self, learners: list[KernelLearner], loss: float, made: float, *, weighted: bool) -> None:
        for name in ("margin_", "mistake_bound_", "separable_", "radius_"):
            self.__dict__.pop(name, None)  # of a fit before: they are not known of a stream
        self._set_counts(learners, weighted=weighted)
        self.n_iter_, self.converged_ = 1, True
        self.history_ = History(objective=[loss], mistakes=[made])
        meaning = "learnt from a stream, each row once: whether anything separates the rows is not asked"
        self.certificate_ = Certificate("none", 0.0, 0.0, meaning)

    def _positive(self) -> list[int]:
        """The class that each learner tells from the others."""
        return [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))

    # ------------------------------------------------------------------------------------------- prediction

    def _scores(self, X: Any) -> np.ndarray:
        self._check_fitted()
        if self.variant != "voted":
            C = self.dual_coef_[:, None] if self.dual_coef_.ndim == 1 else self.dual_coef_
            return np.asarray(self._combine(X, C, self.intercept_))
        B, constant = self._kept(), float(self.fit_intercept)
        if self.kernel_.takes == "strings":
            A = self.kernel_.prepare(as_texts(X, "X", type(self).__name__), like=B)
            return cast_votes(self.kernel_, A, B, self._votes_, constant)
        data = self._predict_data(X)
        found = engine.map(vote_batch, data, self.kernel_, B, self._votes_, constant, n_jobs=self.n_jobs)
        return np.asarray(found)


def _stacked(rows: Any, more: Any) -> Any:
    """Rows under rows, of arrays, sparse matrices or strings."""
    if sp.issparse(rows) or sp.issparse(more):
        return sp.vstack([sp.csr_array(rows), sp.csr_array(more)], format="csr")
    return np.concatenate([rows, more])
