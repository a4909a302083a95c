"""Maximum margin clustering: the labels for which a kernel machine separates the clusters best.

    min over labels   J = min_{f, b}  |f|^2 / 2 + C sum_i v_i |t_i - f(x_i) - b|^2 ,

every cluster having its share of the rows. Squared margins (Zhang, Tsang and Kwok 2007) make J a quadratic function of
the labels, and keep alternation from stopping at its first labels, as it does with the hinge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import ClusterMixin

from epicycle.cluster.max_margin._descent import Balance, Clustered, Separability, best_move, descend, simplex
from epicycle.cluster.max_margin._starts import Relaxed, Starts, relax, spectral_bound
from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import AnyOf, Boolean, Choice, Domain, Real
from epicycle.core._random import seed_of, stream
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.kernels._gram import low_rank_factor
from epicycle.kernels._inner_products import Linear
from epicycle.kernels._machine import KERNEL_PARAMETERS, KernelMachine, select_rows
from epicycle.optim import Monitor, Solution

_LARGEST = 1e150  # C times the sum of the weights: its square is finite
_RELAXED_ROWS = 300  # up to which "auto" solves the relaxation: its matrices have as many rows and columns
_MOVE_TOL = 1e-9  # a move that lowers J by less than this share of it is none


class MaxMarginClustering(ClusterMixin, KernelMachine):  # type: ignore[misc]  # untyped mixin
    r"""Clusters that a kernel machine separates with the widest margins, with a bound on how much better any could be.

    .. math:: \min_{t_i \in \{-1, 1\}} \; \min_{f, b} \; \tfrac{1}{2} \|f\|^2
              + C \sum_i v_i \bigl(1 - t_i (f(x_i) + b)\bigr)^2 ,

    where every cluster has its share of the weight :math:`v`. For k > 2 clusters the labels are the vertices of a
    regular simplex in k - 1 dimensions. A fitted object keeps the training rows: prediction needs them.

    Parameters
    ----------
    C : float, default=1.0
        Price of a margin that is not one: the larger, the weaker the penalty.
    balance : float, default=0.8
        The least weight of a cluster, as a share of the mean: 0.8 with two clusters is two fifths of all rows. Without
        it, one cluster of all rows would be the best.
    n_init : int, default=10
        Starts; the best end is taken.
    relaxation : "auto" or bool, default="auto"
        Whether the semi-definite relaxation is solved, for a better lower bound and one more start. "auto" does up to
        300 rows; its matrices have as many rows and columns.
    random_state : int, Generator, RandomState or None, default=None
        Of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of every row. Cluster 0 is the one whose rows are most like all rows, by the mean of k(x, x')^2.
    objective_ : float
        J.
    lower_bound_ : float
        No clustering with this balance has a smaller J.
    dual_coef_ : ndarray of shape (n_samples, n_clusters - 1)
        Coefficients of the rows in the machine.
    intercept_ : ndarray of shape (n_clusters - 1,)
    %(X_fit_)s
    %(kernel_)s
    certificate_ : Certificate
        That no row can change its cluster and lower J; its meaning says how far J is from the lower bound.
    history_ : History
        The best J so far, that of each start, its alternations and moves.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from epicycle import MaxMarginClustering
    >>> X, y = make_moons(150, noise=0.05, random_state=0)
    >>> model = MaxMarginClustering(kernel="rbf", gamma=8.0, C=10.0, random_state=0).fit(X)
    >>> int(max((model.labels_ == y).sum(), (model.labels_ != y).sum()))
    150
    >>> model.certificate_.holds
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "C": Real(minimum=0, inclusive=False),
        **KERNEL_PARAMETERS,
        "balance": Real(minimum=0, maximum=1, inclusive=(False, True)),
        "relaxation": AnyOf(Boolean(), Choice("auto")),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="kernel", catalogue=("C6",), engines=("memory",), certificate="single moves", keeps_rows=True
    )

    @stores_arguments(random_state=None, n_jobs=None, verbose=0)
    def __init__(
        self,
        n_clusters: int = 2,
        *,
        C: float = 1.0,
        kernel: Any = "linear",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        balance: float = 0.8,
        n_init: int = 10,
        relaxation: bool | str = "auto",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find clusters of the rows of X."""
        data, rows = self._intake(X, None, sample_weight, target="none")
        weight = np.ones(data.n_rows) if data.weight is None else data.weight
        kept = np.flatnonzero(weight > 0)
        if len(kept) < self.n_clusters:
            raise DataError(f"X: has {len(kept)} samples with a weight, fewer than n_clusters={self.n_clusters}")
        used, weight, place = self._distinct(rows, weight, kept)
        n = len(weight)
        rank = min(n, data.n_features) if isinstance(self.kernel_, Linear) else n
        self._require(n, 3.0 * rank / n + (4.0 if self._relaxes(n) else 0.0))
        # Of a given matrix all rows stay, also those without a weight: new rows will be compared with all of them.
        self._keep(rows if self.kernel_.takes == "precomputed" else used)
        _, R, _ = low_rank_factor(self.kernel_, self.kernel_.prepare(used), rank, tol=1e-14)
        G = np.ascontiguousarray(R.T)
        self._require_products(G, weight)
        problem = Separability(G, weight, float(self.C))
        balance = Balance.of(self.n_clusters, weight, float(self.balance))
        vertices = simplex(self.n_clusters)
        monitor = self._monitor(
            int(self.n_init), lambda x: self._attributes(problem, vertices, x.astype(np.intp), place, rows)
        )
        bound = spectral_bound(problem, balance)
        best, relaxed, reason = self._search(problem, G, vertices, balance, monitor)
        if relaxed is not None:
            bound = max(bound, relaxed.bound)
        for name, value in self._attributes(problem, vertices, best.labels, place, rows).items():
            setattr(self, name, value)
        self.objective_, self.lower_bound_ = best.value, min(bound, best.value)
        self._conclude(self._solution(problem, vertices, balance, best, monitor, reason))
        return self

    def _require_products(self, G: np.ndarray, weight: np.ndarray) -> None:
        """Refuse numbers whose products, the coefficients times kernel values, are beyond floating point."""
        heaviest, largest = float(self.C) * float(weight.sum()), float(np.einsum("ij,ij->i", G, G).max(initial=1.0))
        if not (heaviest < _LARGEST and heaviest * largest < _LARGEST**2):
            raise DataError(
                f"C, sample_weight, X: C times the sum of the weights, {heaviest:.1e}, and kernel values up to "
                f"{largest:.1e} make products that overflow; scale them down"
            )

    def _distinct(self, rows: Any, weight: np.ndarray, kept: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
        """(rows to cluster, their weights, which of them every row is; -1 for rows without a weight).

        Rows of an array that are equal count as one of their weight together, in a fixed order: the result depends
        neither on the order of the rows, nor on whether one is repeated or weighs more. Equal rows stay together,
        unless there are too few others.
        """
        place = np.full(len(weight), -1)
        used = rows if len(kept) == len(weight) else select_rows(rows, self.kernel_, kept)
        if not isinstance(rows, np.ndarray) or self.kernel_.takes == "precomputed":
            place[kept] = np.arange(len(kept))
            return used, weight[kept], place
        distinct, number = np.unique(used, axis=0, return_inverse=True)
        if len(distinct) < self.n_clusters:
            place[kept] = np.arange(len(kept))
            return used, weight[kept], place
        place[kept] = number
        return distinct, np.bincount(number, weights=weight[kept]), place

    def _relaxes(self, n: int) -> bool:
        return n <= _RELAXED_ROWS if self.relaxation == "auto" else bool(self.relaxation)

    # ------------------------------------------------------------------------------------------- the search

    def _search(
        self, problem: Separability, factor: np.ndarray, vertices: np.ndarray, balance: Balance, monitor: Monitor
    ) -> tuple[Clustered, Relaxed | None, str]:
        """The best of all starts."""
        state = self._resume_state()
        seed = seed_of(self.random_state) if state is None else int(state["seed"])
        relaxed = None
        if self._relaxes(len(problem.weight)):
            relaxed = relax(problem, balance, stream(seed, "relaxation"))
        starts = Starts(problem, factor, vertices, None if relaxed is None else relaxed.R, seed)
        best: Clustered | None = None
        done = 0
        if state is not None:
            done = int(state["done"])
            labels = np.array(state["labels"], dtype=np.intp)
            best = Clustered(labels, problem.value(vertices[labels]), 0, 0)
        for start in range(done, int(self.n_init)):
            scores, anneal = starts.scores(start)
            end = descend(problem, vertices, balance, scores, anneal=anneal)
            if best is None or end.value < best.value:
                best = end
            kept = {"labels": best.labels, "done": start + 1, "seed": seed}
            facts = {"start": end.value, "alternations": end.steps, "moves": end.moves}
            x = best.labels.astype(np.float64)
            if monitor(start + 1, x, objective=best.value, state=kept.copy, **facts):
                return best, relaxed, "stopped"
        assert best is not None
        return best, relaxed, "converged"

    def _solution(
        self,
        problem: Separability,
        vertices: np.ndarray,
        balance: Balance,
        best: Clustered,
        monitor: Monitor,
        reason: str,
    ) -> Solution:
        change, _, _ = best_move(
            problem.product(vertices[best.labels]), problem.diagonal(), vertices, balance, best.labels
        )
        scale = max(best.value, float(np.finfo(float).tiny))
        gain = max(-change, 0.0) / scale
        gap = (best.value - self.lower_bound_) / scale
        meaning = (
            f"no row can change its cluster and lower the objective by more than {gain:.1e} of it; "
            f"no clustering at all can by more than {gap:.1%}"
        )
        certificate = Certificate("single moves", gain, _MOVE_TOL, meaning)
        if reason == "converged" and not certificate.holds:
            reason = "stalled"
        history = monitor.history()
        x = best.labels.astype(np.float64)
        return Solution(x, best.value, history, certificate, history.n_iter, reason)

    def _attributes(
        self, problem: Separability, vertices: np.ndarray, labels: np.ndarray, place: np.ndarray, rows: Any
    ) -> dict[str, Any]:
        coef, intercept = problem.machine(vertices[labels])
        if self.kernel_.takes == "precomputed":
            given = np.zeros((len(place), coef.shape[1]))
            given[place >= 0] = coef
            coef = given
        every = labels[place]
        if (place < 0).any():
            scores = np.asarray(self._combine(rows, coef, intercept)) @ vertices.T
            every = np.where(place < 0, scores.argmax(axis=1), every)
        order = problem.likeness(labels, len(vertices)).argsort(kind="stable")[::-1]
        number = np.empty(len(vertices), dtype=np.intp)
        number[order] = np.arange(len(order))
        kept = {name: value for name, value in vars(self).items() if name in ("X_fit_", "_n_fit_", "kernel_")}
        machine = {"dual_coef_": coef, "intercept_": intercept, "_vertices_": vertices[order]}
        return {"labels_": number[every], **machine, **kept}

    # ------------------------------------------------------------------------------------------- prediction

    def _scores(self, X: Any) -> Any:
        """t_c'(f(x) + b) for every cluster c."""
        self._check_fitted()
        f = self._combine(X, self.dual_coef_, self.intercept_)
        return f @ self._vertices_.T.astype(f.dtype)

    def decision_function(self, X: Any) -> Any:
        """f(x) + b for two clusters, positive where cluster 1 is nearer; for more, the score of each cluster."""
        scores = self._scores(X)
        return scores[:, 1] if self.n_clusters == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The cluster whose vertex f(x) + b is nearest to.

        For rows of the fit it can differ from `labels_` where the balance, or single moves, decided.
        """
        return np.asarray(np.asarray(self._scores(X)).argmax(axis=1))
