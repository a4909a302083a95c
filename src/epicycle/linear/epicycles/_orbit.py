"""The model  z(t) = c + sum_k r_k exp(i w_k t)  and the sums over rows that its fits are made of.

Times are taken from an origin in the middle of the data: far from it, a phase says nothing without more digits of the
frequency. A target of one column is the real part of z; of two, real and imaginary part. With r = a + i b, both parts
are linear in (a, b, c), so that every fit with given frequencies is real least squares in the columns

    D = [cos, -sin, 1]  for the real part,    [sin, cos, 0, 1] for the imaginary part (and [cos, -sin, 1, 0] then).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from epicycle import engine
from epicycle.data import Batch, Data

_PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class Circles:
    """An orbit: column of X, angular frequency and complex radius of each circle; the centre; the origin of times."""

    columns: np.ndarray
    frequencies: np.ndarray
    radii: np.ndarray
    centre: complex
    origin: np.ndarray

    @property
    def count(self) -> int:
        return len(self.frequencies)

    def turning(self, X: np.ndarray) -> np.ndarray:
        """exp(i w_k (t - origin)), of shape (n, K)."""
        return np.asarray(np.exp(1j * self.times(X) * self.frequencies))

    def times(self, X: np.ndarray) -> np.ndarray:
        """The time of every circle, from the origin."""
        return np.asarray(np.asarray(X[:, self.columns], dtype=np.float64) - self.origin[self.columns])

    def position(self, X: np.ndarray) -> np.ndarray:
        """z of every row."""
        return np.asarray(self.centre + self.turning(X) @ self.radii)

    def pack(self) -> np.ndarray:
        return np.concatenate(
            [self.frequencies, self.columns, self.radii.real, self.radii.imag, [self.centre.real, self.centre.imag]]
        )

    @classmethod
    def unpack(cls, x: np.ndarray, origin: np.ndarray) -> Circles:
        K = (len(x) - 2) // 4
        w, columns, a, b = x[:-2].reshape(4, K)
        return cls(columns.astype(np.int64), w.copy(), a + 1j * b, complex(x[-2], x[-1]), origin)


@dataclass(frozen=True)
class Setting:
    """The settings of a whole fit.

    centre : whether c is fitted. plane : whether targets have two coordinates.
    level : subtracted from z in all sums, so that an orbit far from zero keeps its digits.
    """

    centre: bool
    plane: bool
    level: complex
    n_jobs: int | None

    @property
    def constants(self) -> int:
        """Parameters of the centre."""
        return (2 if self.plane else 1) if self.centre else 0


def placed(circles: Circles, x: np.ndarray, setting: Setting) -> Circles:
    """The circles with the radii and the centre of a vector of parameters (a, b, c)."""
    K = circles.count
    rest = x[2 * K :]
    return replace(
        circles,
        radii=x[:K] + 1j * x[K : 2 * K],
        centre=setting.level + (complex(*rest) if setting.centre else 0.0),
    )


def pieces(batch: Batch, width: int) -> Iterator[slice]:
    """Rows of a batch, a few at a time, for work of `width` numbers a row."""
    rows = max(_PIECE_BYTES // (8 * max(width, 1)), 256)
    for start in range(0, batch.n_rows, rows):
        yield slice(start, min(start + rows, batch.n_rows))


def plane_of(y: np.ndarray) -> np.ndarray:
    """y of one or two columns as complex numbers; a real column keeps the imaginary part 0."""
    if y.ndim == 1 or y.shape[1] == 1:
        return y.reshape(-1).astype(np.complex128)
    return y[:, 0] + 1j * y[:, 1]


def weights_of(batch: Batch, part: slice) -> np.ndarray:
    return np.ones(part.stop - part.start) if batch.weight is None else batch.weight[part]


@dataclass(frozen=True)
class Normal:
    """G = D'WD, b = D'Wz, z'Wz and sum w |z - f|^2 for given circles; the parameters are (a, b, c).

    gradient : D'W(z - f), taken from the rows.
    """

    G: np.ndarray
    b: np.ndarray
    squares: float
    residual_squares: float
    gradient: np.ndarray


def _design(E: np.ndarray, centre: bool, plane: bool) -> list[np.ndarray]:
    ones, none = np.ones((len(E), int(centre))), np.zeros((len(E), int(centre)))
    if not plane:
        return [np.hstack([E.real, -E.imag, ones])]
    return [np.hstack([E.real, -E.imag, ones, none]), np.hstack([E.imag, E.real, none, ones])]


def normal_statistic(
    batch: Batch, circles: Circles, setting: Setting
) -> tuple[np.ndarray, np.ndarray, float, float, np.ndarray]:
    centre, plane, level = setting.centre, setting.plane, setting.level
    size = 2 * circles.count + setting.constants
    G, b, g = np.zeros((size, size)), np.zeros(size), np.zeros(size)
    squares = residual_squares = 0.0
    for part in pieces(batch, 4 * size):
        E = circles.turning(batch.X[part])
        z, w = plane_of(batch.y[part]) - level, weights_of(batch, part)
        f = circles.centre - level + E @ circles.radii
        e = z - f if plane else (z - f).real.astype(np.complex128)
        squares += float(w @ (np.abs(z) ** 2))
        residual_squares += float(w @ (np.abs(e) ** 2))
        for D, value, left in zip(_design(E, centre, plane), (z.real, z.imag), (e.real, e.imag), strict=False):
            weighted = w[:, None] * D
            G += D.T @ weighted
            b += weighted.T @ value
            g += weighted.T @ left
    return G, b, squares, residual_squares, g


def normal_equations(data: Data, circles: Circles, setting: Setting) -> Normal:
    """One pass."""
    return Normal(*engine.sum(normal_statistic, data, circles, setting, n_jobs=setting.n_jobs))


def orbit_batch(batch: Batch, circles: Circles, plane: bool) -> np.ndarray:
    """The orbit at every row, of shape (n, 1) or (n, 2), in the type of X."""
    out = np.empty((batch.n_rows, 2 if plane else 1), dtype=batch.X.dtype)
    for part in pieces(batch, 4 * circles.count):
        z = circles.position(batch.X[part])
        out[part, 0] = z.real
        if plane:
            out[part, 1] = z.imag
    return out
