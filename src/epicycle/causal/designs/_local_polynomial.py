r"""Polynomials on one side of a cutoff, their noise, and the bandwidth of least mean squared error.

With weights K((x - c)/h)/h the coefficients are beta = G^{-1} R'W y, G = R'WR. The leading bias of beta_v is that of
the first power left out: h^{o+1-v} (diag(h^0..h^o) G^{-1} R'W ((x-c)/h)^{o+1})_v beta_{o+1}. The bandwidth balances
its square with the variance; beta_{o+1} comes from a wider polynomial (Calonico, Cattaneo and Titiunik 2014).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from epicycle.causal.designs._inputs import unit_of
from epicycle.core._exceptions import DataError

Array = np.ndarray
#: Factor of the pilot bandwidth n^(-1/5) min(sd, IQR/1.349), for the density at a point.
PILOT = {"triangular": 2.576, "epanechnikov": 2.34, "uniform": 1.843}


def kernel_weights(kernel: str, x: Array, h: float) -> Array:
    """K(x/h)/h; x is measured from the cutoff."""
    inside = np.abs(x) <= h
    u = np.where(inside, np.abs(x), 0.0) / h if h > 0 else np.zeros(len(x))
    shape = {"triangular": 1 - u, "epanechnikov": 0.75 * (1 - u * u)}.get(kernel, 0.5)
    with np.errstate(over="ignore"):
        return np.asarray(np.where(inside, shape, 0.0) / (h if h > 0 else 1.0))


def neighbour_residuals(x: Array, *columns: Array, matches: int = 3) -> list[Array]:
    """sqrt(J/(J+1)) times y less the mean of the J nearest rows, whose mean square is the variance of the noise.

    x is in order; rows as near as the last of the neighbours are all taken.
    """
    n = len(x)
    J = min(matches, n - 1)
    reach = np.arange(-J, J + 1)
    near = np.arange(n)[:, None] + reach
    distance = np.where(
        (near >= 0) & (near < n) & (reach != 0), np.abs(x[np.clip(near, 0, n - 1)] - x[:, None]), np.inf
    )
    limit = np.sort(distance, axis=1)[:, J - 1]
    # All rows within the limit are a range of the sorted x.
    slack = 1e-12 * np.maximum(np.abs(x), limit)
    low = np.searchsorted(x, x - limit - slack, side="left")
    high = np.searchsorted(x, x + limit + slack, side="right")
    count = high - low - 1
    out = []
    for y in columns:
        total = np.concatenate([[0.0], np.cumsum(y - y.mean())])
        mean = (total[high] - total[low] - (y - y.mean())) / count + y.mean()
        out.append(np.sqrt(count / (count + 1)) * (y - mean))
    return out


@dataclass(frozen=True)
class Side:
    """Rows on one side of the cutoff, in order of x, which is measured from it."""

    x: Array
    y: Array
    noise: Array
    kernel: str

    def fit(self, order: int, h: float) -> tuple[Array, Array, Array]:
        """Coefficients, and R and W R of the rows inside the bandwidth (zero outside)."""
        w = kernel_weights(self.kernel, self.x, h)
        inside = w > 0
        if len(np.unique(self.x[inside])) <= order:
            raise DataError(
                f"bandwidth: {h:.4g} leaves {int(inside.sum())} rows on a side; expected more than {order + 1}"
            )
        # Powers of x over the largest are of size one; the coefficients are scaled back.
        size = float(np.abs(self.x[inside]).max())
        scale = size ** np.arange(order + 1)
        R = (self.x[:, None] / size) ** np.arange(order + 1)
        of_rows = (R * (w / w.max())[:, None]).T
        G = of_rows @ R
        if not np.linalg.cond(G) < 1e15:
            raise DataError(
                f"bandwidth: the {int(inside.sum())} rows within {h:.4g} of the cutoff on a side do not determine a "
                f"polynomial of degree {order}; expected more, or less unequal distances"
            )
        influence = np.linalg.solve(G, of_rows) / scale[:, None]
        return influence @ self.y, influence, w

    def bias_and_variance(
        self, order: int, derivative: int, order_b: int, h_v: float, h_b: float, regularise: bool
    ) -> tuple[float, float, float]:
        """Constant of the bias of a derivative, its variance, and the term that keeps the bias from being too small."""
        _, influence, _ = self.fit(order, h_v)
        V = float(np.sum((influence[derivative] * self.noise) ** 2))
        constant = float(influence[derivative] @ (self.x / h_v) ** (order + 1)) * h_v**derivative
        beta, wide, _ = self.fit(order_b, h_b)
        m = 2 * (order + 1 - derivative)
        R = 0.0
        if regularise:
            R = 3 * m * constant**2 * float(np.sum((wide[order + 1] * self.noise) ** 2))
        return np.sqrt(m) * constant * beta[order + 1], (2 * derivative + 1) * h_v ** (2 * derivative + 1) * V, R


def _balanced(
    left: Side, right: Side, order: int, derivative: int, order_b: int, h_v: float, h_b: float | None
) -> float:
    parts = []
    for side in (left, right):
        wide = float(np.abs(side.x).max()) if h_b is None else h_b
        parts.append(side.bias_and_variance(order, derivative, order_b, h_v, wide, h_b is not None))
    (B_l, V_l, R_l), (B_r, V_r, R_r) = parts
    bias = float((B_r - B_l) ** 2 + R_l + R_r)
    return float(((V_l + V_r) / bias) ** (1 / (2 * order + 3))) if bias > 0 else np.inf


def bandwidths(left: Side, right: Side, order: int) -> tuple[float, float]:
    """Bandwidths of the estimate and of its bias that minimise the mean squared error of the jump."""
    unit = unit_of(np.concatenate([left.y, right.y]))  # squares of curvatures stay numbers; the choice has no unit
    left, right = (replace(side, y=side.y / unit, noise=side.noise / unit) for side in (left, right))
    x = np.concatenate([left.x, right.x])
    q = np.percentile(x, [25, 75])
    spread = min(float(x.std(ddof=1)), float(q[1] - q[0]) / 1.349)
    largest = max(-float(left.x.min()), float(right.x.max()))
    if spread == 0:
        raise DataError("running: more than half of the rows share a value; expected a continuous variable")
    heights = np.concatenate([left.y, right.y])
    if np.abs(np.concatenate([left.noise, right.noise])).max() <= 1e-13 * np.abs(heights).max():
        return largest, largest  # all noise is rounding: a bandwidth that balances it would be that of rounding, too
    pilot = min(PILOT[left.kernel] * spread * len(x) ** -0.2, largest)
    degree = order + 1
    third = min(_balanced(left, right, degree + 1, degree + 1, degree + 2, pilot, None), largest)
    b = min(_balanced(left, right, degree, order + 1, degree + 1, pilot, third), largest)
    h = min(_balanced(left, right, order, 0, degree, pilot, b), largest)
    return h, b
