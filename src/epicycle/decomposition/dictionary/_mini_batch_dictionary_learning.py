"""Dictionaries from one small batch of rows after another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataTypeError
from epicycle.core._parameters import Boolean, Domain, Integer, NoneOr
from epicycle.core._random import seed_of, stream
from epicycle.core._solution import Solution
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData, Batch
from epicycle.decomposition._row_factors import RowFactors
from epicycle.decomposition._watch import Watch
from epicycle.decomposition.dictionary._atoms import coded, revived, swept
from epicycle.decomposition.dictionary._codes import refuse_signs
from epicycle.decomposition.dictionary._learner import DictionaryLearner, Sums


class MiniBatchDictionaryLearning(DictionaryLearner):
    r"""Dictionary learning that sees a few rows at a time, also from a stream by `partial_fit`.

    The codes of a batch enter two sums, of which the older parts count less, and one sweep moves the atoms:

    .. math:: A_t = \beta_t A_{t-1} + \tfrac1b C_t' C_t, \qquad B_t = \beta_t B_{t-1} + \tfrac1b C_t' X_t

    (Mairal, Bach, Ponce and Sapiro 2010). The objective, that of :class:`DictionaryLearning`, falls on the whole and
    not in every step.

    Parameters
    ----------
    n_components : int or None, default=None
        Atoms; None takes as many as features.
    max_iter : int, default=1000
        Passes over the rows.
    batch_size : int, default=256
        b.
    shuffle : bool, default=True
        Whether rows are drawn into batches in random order.
    callback : callable or None, default=None
        Called after every step with a dict of its number, cost and atoms.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the start, of the order of rows, and of atoms that take the place of unused ones.
    tol : float, default=1e-3
        Change of the atoms in a step, over their number, at which the fit ends.
    max_no_improvement : int or None, default=10
        Steps without a lower smoothed cost after which the fit ends.

    Attributes
    ----------
    n_steps_ : int
        Batches seen.
    certificate_ : Certificate
        As in :class:`DictionaryLearning`, on all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import MiniBatchDictionaryLearning
    >>> rng = np.random.default_rng(0)
    >>> X = (rng.normal(size=(600, 5)) * (rng.random((600, 5)) < 0.3)) @ rng.normal(size=(5, 12))
    >>> model = MiniBatchDictionaryLearning(5, alpha=0.1, batch_size=50, random_state=0).fit(X)
    >>> model.components_.shape, model.transform(X).shape
    ((5, 12), (600, 5))
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **DictionaryLearner._parameters,
        "max_iter": Integer(minimum=0),
        "batch_size": Integer(minimum=1),
        "shuffle": Boolean(),
        "max_no_improvement": NoneOr(Integer(minimum=0)),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="decomposition", catalogue=("E10",), engines=("memory",), certificate="duality gap and gain"
    )

    n_steps_: int
    _A_: np.ndarray
    _B_: np.ndarray
    _seed_: int

    @stores_arguments
    def __init__(
        self,
        n_components: int | None = None,
        *,
        alpha: float = 1.0,
        max_iter: int = 1000,
        fit_algorithm: str = "lars",
        n_jobs: int | None = None,
        batch_size: int = 256,
        shuffle: bool = True,
        dict_init: Any = None,
        transform_algorithm: str = "omp",
        transform_n_nonzero_coefs: int | None = None,
        transform_alpha: float | None = None,
        verbose: int | bool = False,
        split_sign: bool = False,
        random_state: Any = None,
        positive_code: bool = False,
        positive_dict: bool = False,
        transform_max_iter: int = 1000,
        callback: Any = None,
        tol: float = 1e-3,
        max_no_improvement: int | None = 10,
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the atoms from rows X, in as many batches as it takes."""
        data, weight = self._intake(X, sample_weight, reset=True)
        n, size, earlier = data.n_rows, min(int(self.batch_size), data.n_rows), self._resume_state()
        per_pass = -(-n // size)
        watch = Watch(weight, float(self.tol), self.max_no_improvement, ignored=min(100, n // size))
        self._seed_ = seed_of(self.random_state) if earlier is None else int(earlier["seed"])
        if earlier is None:
            D = self._first_atoms(data, n, self._seed_)
            self._begin(D)
        else:
            D, self._A_, self._B_ = (np.array(earlier[name]) for name in ("D", "A", "B"))
            self.n_steps_ = int(earlier["step"])
            watch.resume(earlier["watch"])
        order = stream(self._seed_, "rows").permutation(n) if self.shuffle else np.arange(n)
        most = int(self.max_iter) * per_pass
        monitor = self._monitor(most, lambda x: {"components_": x.reshape(D.shape)})

        def state() -> Mapping[str, Any]:
            now = {"seed": self._seed_, "D": D.copy(), "A": self._A_.copy(), "B": self._B_.copy()}
            return {**now, "step": self.n_steps_, "watch": watch.numbers()}

        reason = "max_iter"
        for step in range(self.n_steps_, most):
            at = (step % per_pass) * size
            batch, before = _batch_of(data, order[at : at + size]), D.copy()
            cost = self._step(batch, D)
            change = float(np.linalg.norm(D - before)) / len(D)
            ended = cost is not None and watch(cost, batch.total_weight, change)
            stop = monitor(self.n_steps_, D.ravel(), objective=watch.smoothed, state=state, change=watch.change)
            if self.callback is not None:
                self.callback({"i": step, "batch_cost": cost, "dictionary": D.copy()})
            if ended or stop:
                reason = "converged" if ended else "stopped"
                break
        rows = RowFactors(data, np.zeros((n, len(D))), self.n_jobs)
        value, certificate = self._gain(rows, D, float(np.sqrt(self.tol)))
        self._publish(D, data)
        # All passes are made, and what is left to gain is little: that is an end too.
        reason = "converged" if reason == "max_iter" and certificate.holds else reason
        if not most:
            monitor(0, D.ravel(), objective=value)
        passes = -(-self.n_steps_ // per_pass)
        self._conclude(Solution(D.ravel(), value, monitor.history(), certificate, passes, reason))
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit to rows X, and return their codes."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    @fitting(incremental=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Go on with rows X as one batch."""
        first = not hasattr(self, "components_")
        data, _ = self._intake(X, sample_weight, reset=first)
        if first:
            self._seed_ = seed_of(self.random_state)
            D = self._first_atoms(data, data.n_rows, self._seed_)
            self._begin(D)
        else:
            D = np.array(self.components_, dtype=np.float64)
            self._A_, self._B_ = self._A_.copy(), self._B_.copy()  # the old state stays as it is
        before = D.copy()
        cost = self._step(data.rows(0, data.n_rows), D)
        self._publish(D, data)
        change = float(np.linalg.norm(D - before)) / len(D)
        words = "change of the atoms in the last step, over their number; no end is claimed"
        certificate = Certificate("change of the atoms", change, np.inf, words)
        value = 0.0 if cost is None else cost
        self._conclude_directly(certificate, x=D.ravel(), objective=value, n_iter=self.n_steps_, change=change)
        return self

    def _intake(self, X: Any, sample_weight: Any, *, reset: bool) -> tuple[ArrayData, float]:
        refuse_signs(self.fit_algorithm, bool(self.positive_code))
        data = self._fit_data(X, None, sample_weight, target="none", reset=reset)
        if not isinstance(data, ArrayData):
            raise DataTypeError(
                f"X: {type(self).__name__} takes rows in memory, got {type(X).__name__}; partial_fit takes a stream"
            )
        return data, self._extent(data)[1]

    def _begin(self, D: np.ndarray) -> None:
        self._A_, self._B_, self.n_steps_ = np.zeros((len(D), len(D))), np.zeros_like(D), 0

    def _publish(self, D: np.ndarray, data: ArrayData) -> None:
        self.components_ = D.astype(np.float32 if data.dtype == np.float32 else np.float64)

    def _step(self, batch: Batch, D: np.ndarray) -> float | None:
        """Code a batch and move the atoms in place; returns its cost for a row, None where no row has weight."""
        step, total = self.n_steps_, batch.total_weight
        self.n_steps_ += 1
        if total == 0:
            return None
        alpha, positive = float(self.alpha), bool(self.positive_dict)
        C = np.zeros((batch.n_rows, len(D)))
        sums = Sums(*coded(batch, C, D, alpha, bool(self.positive_code), int(self.transform_max_iter)))
        cost = sums.value(D, alpha) / total
        seen = (step + 1) * total if step < total - 1 else total**2 + step + 1 - total  # a row of weight v is v rows
        forget = max((seen + 1 - total) / (seen + 1), 0.0)
        self._A_ = forget * self._A_ + sums.A / total
        self._B_ = forget * self._B_ + sums.B / total
        D[:] = swept(self._A_, self._B_, D, positive, 1)
        D[:] = revived(self._A_, D, batch.X, positive, self._seed_, step)
        return cost


def _batch_of(data: ArrayData, rows: np.ndarray) -> Batch:
    """Chosen rows as a batch."""
    return Batch(data.X[rows], None, None if data.weight is None else data.weight[rows], 0)
