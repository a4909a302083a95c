"""The penalised deviance in summation form.

    F(w, b) = 1 / (2 V) sum_i v_i d(y_i, mu_i) + sum_j l1_j |w_j| + l2_j / 2 w_j^2,    V = sum_i v_i,
    g(mu_i) = eta_i = b + w'(x_i - s) + offset_i,

with unit deviances d and row weights v. `GlmObjective` is all of F but the L1 term, which solvers take separately.
The parameters are (w, b), or w alone; the shift s is zero unless the data lies far from the origin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from epicycle import engine
from epicycle.core._certificate import Certificate
from epicycle.data import ArrayData, Batch, Data
from epicycle.engine._row_order import minibatches
from epicycle.linear.glm._certificates import certify
from epicycle.linear.glm._statistics import Model, diagonal_statistic, row_statistic, second_statistic
from epicycle.linear.logistic._objective import inverse_factor
from epicycle.optim import Metric, Objective
from epicycle.optim._penalties import ElasticNet, least_subgradient

Array = np.ndarray

#: The Hessian is formed up to this many parameters: 200 MB, and about 40 s for its factor on one core.
MAX_HESSIAN = 5000


@dataclass(frozen=True)
class Totals:
    """Sums over y alone: rows and weight that count, the constant of the loss, and the scale of the certificate."""

    rows: float
    weight: float
    constant: float
    scale: float
    unit: str = "the null model's objective"


@dataclass(frozen=True)
class SecondOrder:
    """F's smooth part at x: its Hessian, and what bounds the moves of rows (curvatures over the total weight)."""

    x: Array
    value: float
    gradient: Array
    H: Array
    least: float
    reach: float | None
    observed: bool

    @cached_property
    def factor(self) -> tuple[Array, Array, Array]:
        """The inverse of H as a product, and what it leaves out: see :func:`inverse_factor`."""
        return inverse_factor(self.H)


class GlmObjective(Objective):
    """The smooth part of F.

    Parameters
    ----------
    data : Data
        With its targets encoded.
    model : Model
    penalty : ElasticNet
    intercept : bool
    totals : Totals
    expected : bool
        Whether Hessians are expected ones (Fisher scoring) or those of the data at hand.
    """

    def __init__(
        self,
        data: Data,
        model: Model,
        penalty: ElasticNet,
        *,
        intercept: bool,
        totals: Totals,
        expected: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.data, self.model, self.penalty, self.intercept = data, model, penalty, intercept
        self.totals, self.expected, self.n_jobs = totals, expected, n_jobs
        self.n_coefficients = model.design.size
        self.size = self.n_coefficients + intercept
        self.quadratic = model.response.native == 0
        wanted = {"metric", "minibatches"}
        if self.size <= MAX_HESSIAN:
            wanted |= {"hessian", "hessian_product"}
        self.capabilities = frozenset(wanted)
        #: Curvatures of an earlier Hessian, by which rows are measured; set once, so that passes agree.
        self.row_metric: Array | None = None
        self.last_second: SecondOrder | None = None
        self._pearson: tuple[Array, float] = (np.empty(0), np.nan)

    # ------------------------------------------------------------------------------------------- F

    def unpack(self, x: Array) -> tuple[Array, float]:
        """(w, b), with b = 0 where there is no intercept."""
        return (np.ascontiguousarray(x[:-1]), float(x[-1])) if self.intercept else (np.ascontiguousarray(x), 0.0)

    @property
    def l1(self) -> Array:
        """The weights of the L1 term, one for each parameter."""
        return np.append(self.penalty.l1, 0.0) if self.intercept else self.penalty.l1

    @property
    def l2(self) -> Array:
        """The weights of the L2 term, one for each parameter."""
        return np.append(self.penalty.l2, 0.0) if self.intercept else self.penalty.l2

    def _sums(self, x: Array, *, hessian: bool, expected: bool) -> tuple[float, Array, Array, float, float | None]:
        w, b = self.unpack(x)
        metric = self.row_metric if hessian else None
        loss, pearson, least, reach, g, H = engine.sum(
            row_statistic, self.data, self.model, w, b, metric, expected, hessian, n_jobs=self.n_jobs
        )
        self._pearson = (x.copy(), float(pearson))
        V = self.totals.weight
        size = None if metric is None else float(reach)
        return (loss + self.totals.constant) / V, g / V, H, -float(least) / V, size

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        value, g, _, _, _ = self._sums(x, hessian=False, expected=self.expected)
        return self._penalised(x, value, g)

    def _penalised(self, x: Array, value: float, g: Array) -> tuple[float, Array]:
        g = g[: self.size] + self.l2 * x
        return max(value, 0.0) + 0.5 * float(self.l2 @ (x * x)), g

    def second_order(self, x: Array) -> tuple[float, Array, Array]:
        return self.second_order_of(x, self.expected)

    def second_order_of(self, x: Array, expected: bool) -> tuple[float, Array, Array]:
        """As :meth:`second_order`, with the expected Hessian or that of the data at hand."""
        value, g, L, least, reach = self._sums(x, hessian=True, expected=expected)
        H = self._full(L)
        H[np.diag_indices_from(H)] += self.l2
        if self.row_metric is None and np.isfinite(H).all():
            self.row_metric = _row_metric(H, self.intercept)
        value, g = self._penalised(x, value, g)
        if np.isfinite(H).all() and np.isfinite(value):
            observed = not expected or self.model.response.canonical
            self.last_second = SecondOrder(x.copy(), value, g, H, least, reach, observed)
        return value, g, H

    def _full(self, L: Array) -> Array:
        """A symmetric matrix from its lower triangle, over the total weight, without the intercept if there is none."""
        L = L[: self.size, : self.size]
        H = np.tril(L)
        H += np.tril(L, -1).T
        H /= self.totals.weight
        return H

    def pearson_at(self, x: Array) -> float:
        """sum_i v_i (y_i - mu_i)^2 / V(mu_i), from the last pass where that was here."""
        if not np.array_equal(self._pearson[0], x):
            self.value_and_gradient(x)
        return self._pearson[1]

    def information(self, x: Array) -> Array:
        """The expected Hessian of the loss, summed over rows: without the penalty, not divided by the total weight."""
        _, _, L, _, _ = self._sums(x, hessian=True, expected=True)
        return self._full(L) * self.totals.weight

    def hessian_on(self, x: Array, columns: Array) -> Array:
        """The Hessian over some of the parameters, the intercept last where it is among them."""
        w, b = self.unpack(x)
        chosen = columns[columns < self.n_coefficients]
        (H,) = engine.sum(second_statistic, self.data, self.model, w, b, chosen, n_jobs=self.n_jobs)
        H = H[: len(columns), : len(columns)] / self.totals.weight
        H[np.diag_indices_from(H)] += self.l2[columns]
        return np.asarray(H)

    def hessian_product(self, x: Array) -> Callable[[Array], Array]:
        H = self.second_order(x)[2]
        return lambda v: H @ v

    def diagonal(self, x: Array) -> tuple[Array, Array, float]:
        """Column of the Hessian of b, diagonal of the Hessian, least curvature of a row; all over the total weight."""
        w, b = self.unpack(x)
        first, second, least = engine.sum(diagonal_statistic, self.data, self.model, w, b, n_jobs=self.n_jobs)
        V = self.totals.weight
        return first / V, second / V, -float(least) / V

    # ------------------------------------------------------------------------------------------- preconditioner, rows

    def start(self) -> Array:
        """All coefficients zero, the intercept at the best constant."""
        return getattr(self, "_start", np.zeros(self.size)).copy()

    def begin_at(self, x: Array) -> None:
        """Set the point at which the metric is taken and solvers start."""
        self._start = x.copy()

    def metric(self) -> Metric:
        """The curvature at the start: a Cholesky factor while it is small, else its diagonal."""
        x = self.start()
        if self.size > 1000:
            _, second, _ = self.diagonal(x)
            return Metric.of_diagonal(second[: self.size] + self.l2)
        M = self.second_order_of(x, True)[2].copy()
        diagonal = np.where(np.diagonal(M) > 0, np.diagonal(M), 1.0)
        M[np.diag_indices_from(M)] = diagonal * (1 + 1e-8 * len(M))
        return Metric.of_matrix(M)

    def minibatches(self, batch_size: int, epoch: int, seed: int) -> Iterator[Callable[[Array], tuple[float, Array]]]:
        for batch, factor in minibatches(self.data, batch_size, epoch, seed):
            yield partial(self._estimate, batch, factor)

    def _estimate(self, batch: Batch, factor: float, x: Array) -> tuple[float, Array]:
        w, b = self.unpack(x)
        loss, _, _, _, g, _ = row_statistic(batch, self.model, w, b, None, False, False)
        V = self.totals.weight
        return self._penalised(x, (factor * loss + self.totals.constant) / V, factor * g / V)

    def subsample(self, n_rows: int) -> GlmObjective | None:
        """The same objective on every m-th row; None where rows cannot be picked, or are few."""
        if not isinstance(self.data, ArrayData) or self.data.n_rows < 2 * n_rows:
            return None
        pick, d = slice(None, None, self.data.n_rows // n_rows), self.data
        y = np.asfortranarray(d.y[pick])
        weight = None if d.weight is None else d.weight[pick].copy()
        part = ArrayData(d.X[pick], y, weight)
        rows = self.model.target.rows(Batch(part.X, y, weight))
        V = float(rows.weights.sum())
        if not V > 0:
            return None
        used = rows.weights > 0
        constant = float(np.sum(rows.weights[used] * self.model.response.constant(rows.y[used])))
        totals = Totals(float(used.sum()), V, constant, self.totals.scale)
        return GlmObjective(
            part,
            self.model,
            self.penalty,
            intercept=self.intercept,
            totals=totals,
            expected=self.expected,
            n_jobs=self.n_jobs,
        )

    def certify(self, x: Array, tol: float, value: float | None = None, gradient: Array | None = None) -> Certificate:
        """`gradient` is that of F, or where there is an L1 term the least subgradient."""
        if value is None or gradient is None:
            value, g = self.value_and_gradient(x)
            gradient = least_subgradient(x, g, self.l1)
            value += float(self.l1 @ np.abs(x))
        return certify(self, x, tol, value, gradient)


def _row_metric(H: Array, intercept: bool) -> Array:
    """1 / H_jj, with a zero for an intercept that is not there."""
    diagonal = np.diagonal(H)
    metric = np.where(diagonal > 0, 1 / np.where(diagonal > 0, diagonal, 1.0), 0.0)
    return metric if intercept else np.append(metric, 0.0)
