"""Non-negative factors from one small batch of rows after another, by multiplicative updates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from epicycle import engine
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataTypeError
from epicycle.core._parameters import Boolean, Domain, Integer, NoneOr, Real
from epicycle.core._random import seed_of
from epicycle.core._solution import Solution
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData, Batch, Data
from epicycle.decomposition._row_factors import RowFactors
from epicycle.decomposition._watch import Watch
from epicycle.decomposition.nmf._base import NO_PROOF, NonNegativeFactors
from epicycle.decomposition.nmf._divergence import FactorPenalty, divergence_of, weights
from epicycle.decomposition.nmf._multiplicative import (
    Approximation,
    Divergence,
    Slopes,
    completed,
    move_rows,
    round_of,
    row_solutions,
)
from epicycle.decomposition.nmf._nmf import closest
from epicycle.decomposition.nmf._starts import Extent, extent_of


class MiniBatchNMF(NonNegativeFactors):
    r"""Non-negative matrix factorisation that sees a few rows at a time, also from a stream by `partial_fit`.

    H is the quotient of two sums of multiplicative updates over batches t, of which the older count less:

    .. math:: H = \frac{\sum_t \rho^{T - t}\, H_t \circ \mathrm{num}_t}{\sum_t \rho^{T - t}\, \mathrm{den}_t}, \qquad
              \rho = f^{\,b / n}

    for n rows in batches of b, and a share f of the past that is left after a pass. The objective is that of
    :class:`NMF`; it falls on the whole, not in every step.

    Parameters
    ----------
    batch_size : int, default=1024
        b.
    tol : float, default=1e-4
        Relative change of H in a step at which the fit ends.
    max_no_improvement : int or None, default=10
        Steps without a lower smoothed cost after which the fit ends.
    max_iter : int, default=200
        Passes over the rows.
    forget_factor : float, default=0.7
        f.
    fresh_restarts : bool, default=False
        Whether W of every batch is solved anew, and does not go on from the last pass.
    fresh_restarts_max_iter : int, default=30
        Most updates of W in a batch then.
    transform_max_iter : int or None, default=None
        Most updates of W in `transform`; None takes `max_iter`.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the start.

    Attributes
    ----------
    n_steps_ : int
        Batches seen.
    certificate_ : Certificate
        What a round over all rows would still gain, relative to the first cost; the tolerance is sqrt(tol).

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import MiniBatchNMF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((500, 3)) @ rng.random((3, 10))
    >>> model = MiniBatchNMF(3, batch_size=50, random_state=0).fit(X)
    >>> bool(model.reconstruction_err_ < 0.05 * np.linalg.norm(X))
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **NonNegativeFactors._parameters,
        "max_no_improvement": NoneOr(Integer(minimum=1)),
        "batch_size": Integer(minimum=1),
        "forget_factor": Real(0, 1),
        "fresh_restarts": Boolean(),
        "fresh_restarts_max_iter": Integer(minimum=1),
        "transform_max_iter": NoneOr(Integer(minimum=1)),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="decomposition", catalogue=("E10",), engines=("memory",), certificate="gain of a full round"
    )

    n_steps_: int
    _num_: np.ndarray
    _den_: np.ndarray
    _rho_: float

    @stores_arguments
    def __init__(
        self,
        n_components: int | str | None = "auto",
        *,
        init: str | None = None,
        batch_size: int = 1024,
        beta_loss: str | float = "frobenius",
        tol: float = 1e-4,
        max_no_improvement: int | None = 10,
        max_iter: int = 200,
        alpha_W: float = 0.0,
        alpha_H: float | str = "same",
        l1_ratio: float = 0.0,
        forget_factor: float = 0.7,
        fresh_restarts: bool = False,
        fresh_restarts_max_iter: int = 30,
        transform_max_iter: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None: ...

    # ------------------------------------------------------------------------------------------- fit

    @fitting
    def _fit(self, X: Any, sample_weight: Any, W: Any, H: Any) -> np.ndarray:
        data, extent = self._intake(X, sample_weight, reset=True)
        n, size = data.n_rows, min(int(self.batch_size), data.n_rows)
        watch, earlier = Watch(extent.weight, float(self.tol), self.max_no_improvement), self._resume_state()
        if earlier is None:
            rows, Ht = self._start(data, extent, W, H, seed_of(self.random_state))
            self._begin(Ht, size / n, extent)
            self.n_steps_ = 0
        else:
            rows, Ht = np.array(earlier["W"]), np.array(earlier["Ht"])
            self._begin(Ht, size / n, extent)
            self._num_, self._den_ = np.array(earlier["num"]), np.array(earlier["den"])
            self.n_steps_ = int(earlier["step"])
            watch.resume(earlier["watch"])
        by, batches = self._divergence(Ht.shape[1]), [data.rows(i, min(i + size, n)) for i in range(0, n, size)]
        most = int(self.max_iter) * len(batches)
        monitor = self._monitor(most, lambda x: {"components_": x.reshape(-1, data.n_features)})

        def state() -> Mapping[str, Any]:
            now = {"W": rows.copy(), "Ht": Ht.copy(), "num": self._num_.copy(), "den": self._den_.copy()}
            return {**now, "step": self.n_steps_, "watch": watch.numbers()}

        reason = "max_iter"
        for step in range(self.n_steps_, most):
            batch, before = batches[step % len(batches)], Ht.copy()
            part = rows[batch.start : batch.start + batch.n_rows]
            cost = self._checked_step(batch, None if self.fresh_restarts else part, Ht, by)
            self.n_steps_ += 1
            ended = cost is not None and watch(cost, batch.total_weight, _change(Ht, before))
            stop = monitor(self.n_steps_, Ht.T.ravel(), objective=watch.smoothed, state=state, change=watch.change)
            if ended or stop:
                reason = "converged" if ended else "stopped"
                break
        if self.fresh_restarts:
            rows = np.asarray(self._solved(data, Ht, by, self._transform_steps()), dtype=np.float64)
        certificate, divergence = self._evidence(data, rows, Ht, by, extent, watch.first * extent.weight)
        self.reconstruction_err_ = float(np.sqrt(2 * max(divergence, 0.0)))
        self._publish(Ht, data)
        # All passes are made, and a round over all rows would gain next to nothing: that is an end too.
        reason = "converged" if reason == "max_iter" and certificate.holds else reason
        passes = -(-self.n_steps_ // len(batches))
        self._conclude(Solution(Ht.ravel(), watch.smoothed, monitor.history(), certificate, passes, reason))
        return np.asarray(rows.astype(self.components_.dtype))

    def _evidence(
        self, data: ArrayData, rows: np.ndarray, Ht: np.ndarray, by: Divergence, extent: Extent, scale: float
    ) -> tuple[Certificate, float]:
        """(what one full round would gain, the divergence now)."""
        on_W, on_H = self._penalties(extent.weight)
        factors, columns = RowFactors(data, rows.copy(), self.n_jobs), Ht.copy()
        divergence, penalty = round_of(factors, columns, on_W, on_H, by)
        after = sum(round_of(factors, columns.copy(), on_W, on_H, by, move=False)) + on_H.of(columns)
        now = divergence + penalty + on_H.of(Ht)
        gain = max(now - after, 0.0) / scale if scale > 0 else 0.0
        words = f"how much a round over all rows would lower the objective, relative to the start; {NO_PROOF}"
        return Certificate("gain of a full round", gain, float(np.sqrt(self.tol)), words), divergence

    @fitting(incremental=True)
    def partial_fit(self, X: Any, y: Any = None, W: Any = None, H: Any = None, sample_weight: Any = None) -> Self:
        """Go on with rows X as one batch."""
        first = not hasattr(self, "components_")
        data, extent = self._intake(X, sample_weight, reset=first)
        if first:
            _, Ht = self._start(data, extent, W, H, seed_of(self.random_state))
            self._begin(Ht, min(int(self.batch_size), data.n_rows) / data.n_rows, extent)
            self.n_steps_ = 0
        else:
            Ht = np.ascontiguousarray(self.components_.T, dtype=np.float64)
            self._num_, self._den_ = self._num_.copy(), self._den_.copy()  # the old state stays as it is
        before = Ht.copy()
        cost = self._checked_step(data.rows(0, data.n_rows), None, Ht, self._divergence(Ht.shape[1]))
        self._publish(Ht, data)
        self.n_steps_ += 1
        cost, change = 0.0 if cost is None else cost, _change(Ht, before)
        certificate = Certificate("change of H", change, np.inf, "relative change in the last step; no end is claimed")
        self._conclude_directly(certificate, x=Ht.ravel(), objective=cost, n_iter=self.n_steps_, change=change)
        return self

    def _intake(self, X: Any, sample_weight: Any, *, reset: bool) -> tuple[ArrayData, Extent]:
        data = self._fit_data(X, None, sample_weight, target="none", reset=reset)
        if not isinstance(data, ArrayData):
            raise DataTypeError(
                f"X: MiniBatchNMF takes rows in memory, got {type(X).__name__}; partial_fit takes a stream"
            )
        extent = extent_of(data, "MiniBatchNMF (input X)", self.n_jobs)
        self._refuse_zeros(extent)
        return data, extent

    def _begin(self, Ht: np.ndarray, share: float, extent: Extent) -> None:
        self._num_, self._den_ = Ht.copy(), np.ones_like(Ht)
        self._rho_ = float(self.forget_factor) ** share
        self._mean_ = extent.mean

    def _publish(self, Ht: np.ndarray, data: Data) -> None:
        dtype = np.float32 if data.dtype == np.float32 else np.float64
        self.components_, self.n_components_ = np.ascontiguousarray(Ht.T, dtype=dtype), Ht.shape[1]

    def _checked_step(self, batch: Batch, W: np.ndarray | None, Ht: np.ndarray, by: Divergence) -> float | None:
        with np.errstate(over="ignore", invalid="ignore"):
            cost = self._step(batch, W, Ht, by)
        by.require_finite(Ht, 0.0 if cost is None else cost, 0.0 if W is None else W)
        return cost

    def _step(self, batch: Batch, W: np.ndarray | None, Ht: np.ndarray, by: Divergence) -> float | None:
        """Update W (in place, where it goes on from the last pass) and Ht; returns the cost of the batch for a row.

        A batch of zeros, or of rows without weight, says nothing about the shape of H: it changes nothing, None.
        """
        v = weights(batch)
        total = float(v.sum())
        on_W, on_H = self._penalties(total)
        if W is None:
            W = row_solutions(batch, Ht, on_W, by, float(self.tol), int(self.fresh_restarts_max_iter))
        else:
            move_rows(W, Approximation(batch.X, W, Ht, by).for_rows(), on_W, by)
        if not (v @ np.asarray(batch.X.sum(axis=1)).ravel()) > 0:
            return None
        now = Approximation(batch.X, W, Ht, by)
        cost = divergence_of(batch, W, Ht, by.beta, by.least, now.Y)[0] + on_H.of(Ht)
        cost += float(v @ (on_W.l1 * W.sum(axis=1) + on_W.l2 / 2 * np.square(W).sum(axis=1)))
        slopes = completed(now.for_columns(v), Ht, by.beta)
        self._fold(slopes, Ht, on_H, by)
        return cost / total

    def _fold(self, slopes: Slopes, Ht: np.ndarray, on_H: FactorPenalty, by: Divergence) -> None:
        """Add the update of a batch to those before it, and set Ht to their quotient."""
        den = slopes.den + on_H.l1 + on_H.l2 * Ht
        num = slopes.num * (Ht if by.gamma == 1 else Ht ** (1 / by.gamma))
        self._num_ *= self._rho_
        self._den_ *= self._rho_
        self._num_ += num
        self._den_ += den
        ratio = self._num_ / np.where(self._den_ > 0, self._den_, 1.0)
        Ht[:] = ratio if by.gamma == 1 else ratio**by.gamma
        by.without_dust(Ht, 1.0)

    # ------------------------------------------------------------------------------------------- use of a fit

    def transform(self, X: Any) -> Any:
        """W of rows X for the components of the fit; a row's does not depend on the other rows."""
        data = self._predict_data(X)
        Ht = np.ascontiguousarray(self.components_.T, dtype=np.float64)
        return self._solved(data, Ht, self._divergence(Ht.shape[1]), self._transform_steps())

    def _transform_steps(self) -> int:
        return int(self.max_iter if self.transform_max_iter is None else self.transform_max_iter)

    def _solved(self, data: Data, Ht: np.ndarray, by: Divergence, most: int) -> Any:
        return engine.map(closest, data, Ht, self._penalties(0.0)[0], by, float(self.tol), most, n_jobs=self.n_jobs)


def _change(Ht: np.ndarray, before: np.ndarray) -> float:
    length = float(np.linalg.norm(Ht))
    return float(np.linalg.norm(Ht - before)) / length if length > 0 else 0.0
