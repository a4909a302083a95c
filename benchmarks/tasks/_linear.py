"""Common parts of the linear tasks: a reference solution beyond double precision, and the distance from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from benchmarks.task import Data, Quality, Solution


def refined_least_squares(X: np.ndarray, y: np.ndarray, steps: int = 6) -> np.ndarray:
    """argmin ||y - A w||, A = [1 X], refined on the augmented system with residuals in extended precision.

    The pair (r, w) solves  r + A w = y,  A'r = 0  (Bjorck 1967). With A = QR in double precision every step multiplies
    the error by about cond(A) eps, far below 1 even at a condition number of 1e10, until the rounding of r in extended
    precision shows: three digits beyond a QR solution in double precision there, all digits on ordinary data.
    """
    A = np.column_stack([np.ones(len(y)), X])
    scale = 2.0 ** np.round(np.log2(np.linalg.norm(A, axis=0)))  # by powers of two, which rounds nothing
    A /= scale
    Q, R = linalg.qr(A, mode="economic")
    A_long = A.astype(np.longdouble)
    w = np.zeros(A.shape[1], dtype=np.longdouble)
    r = np.zeros(len(y), dtype=np.longdouble)
    for _ in range(steps):
        f = (y - r - A_long @ w).astype(np.float64)
        g = (-(A_long.T @ r)).astype(np.float64)
        # solve  dr + A dw = f,  A'dr = g  with the QR factors
        h = linalg.solve_triangular(R, g, trans="T")
        d = Q.T @ f
        r = r + (f - Q @ (d - h))
        w = w + linalg.solve_triangular(R, d - h)
    refined: np.ndarray = (w / scale).astype(np.float64)
    return refined


def refined(data: Data) -> Solution:
    w = refined_least_squares(data["X"], data["y"])
    return {"coef": w[1:], "intercept": w[:1]}


def distances(data: Data, solution: Solution, reference: Solution) -> Quality:
    """Relative error of the coefficients, and by how much the residual norm exceeds its minimum."""
    error = np.linalg.norm(solution["coef"] - reference["coef"]) / np.linalg.norm(reference["coef"])
    least = residual_norm(data, reference)
    return {"coefficient error": float(error), "residual excess": residual_norm(data, solution) / least - 1}


def residual_norm(data: Data, solution: Solution) -> float:
    """||y - Xw - b|| in extended precision: next to a small residual the rounding of Xw would show."""
    w, b = solution["coef"].astype(np.longdouble), solution["intercept"].astype(np.longdouble)
    total = np.longdouble(0)
    for rows in blocks(len(data["y"])):
        r = data["y"][rows] - data["X"][rows].astype(np.longdouble) @ w - b
        total += r @ r
    return float(np.sqrt(total))


def blocks(n: int, size: int = 20_000) -> list[slice]:
    return [slice(start, start + size) for start in range(0, n, size)]


def sklearn_fit(data: Data) -> Solution:
    from sklearn.linear_model import LinearRegression

    return as_solution(LinearRegression().fit(data["X"], data["y"]))


def sklearn_tight_fit(data: Data) -> Solution:
    """With a cut-off for small singular values near the rounding error; the default (1e-6) drops half of them here."""
    from sklearn.linear_model import LinearRegression

    return as_solution(LinearRegression(tol=1e-14).fit(data["X"], data["y"]))


def intelex_fit(data: Data) -> Solution:
    from sklearnex.linear_model import LinearRegression

    return as_solution(LinearRegression().fit(data["X"], data["y"]))


def epicycle_fit(data: Data) -> Solution:
    from epicycle import LinearRegression

    return as_solution(LinearRegression().fit(data["X"], data["y"]))


def as_solution(model: Any) -> Solution:
    return {"coef": np.ravel(model.coef_), "intercept": np.ravel(model.intercept_)}
