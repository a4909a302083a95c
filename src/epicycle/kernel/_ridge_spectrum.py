"""Kernel ridge regression for all penalties at once, with the error of every row left out, from one spectrum.

With V^1/2 K V^1/2 = Q diag(s) Q' and S = K + alpha V^-1,

    S^-1 = V^1/2 Q diag(1 / (s + alpha)) Q' V^1/2,     c = S^-1 (y - b),     error of row i left out = c_i / (P)_ii,

where P = S^-1, or S^-1 - u u' / 1'u with u = S^-1 1 and b = 1'S^-1 y / 1'u where a constant is fitted too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.optimize

__all__ = ["Choice", "RidgeSpectrum", "choose_alphas", "with_intercept"]


def with_intercept(C: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(c, b) from S^-1 Y and u = S^-1 1, so that every column of c adds up to zero."""
    b = C.sum(axis=0) / u.sum()
    C = C - u[:, None] * b
    left = C.sum(axis=0) / u.sum()  # of rounding
    return C - u[:, None] * left, b + left


@dataclass(frozen=True)
class RidgeSpectrum:
    """Eigenvectors of V^1/2 K V^1/2, times V^1/2, and its eigenvalues."""

    vectors: np.ndarray
    values: np.ndarray
    intercept: bool

    @classmethod
    def of(cls, K: np.ndarray, weight: np.ndarray, *, intercept: bool) -> RidgeSpectrum:
        root = np.sqrt(weight)
        scaled = K * np.multiply.outer(root, root)
        values, Q = scipy.linalg.eigh(scaled, overwrite_a=True, check_finite=False, driver="evd")
        Q *= root[:, None]
        return cls(Q, np.maximum(values, 0.0), intercept)

    def solve(self, Y: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(c, b, errors of the rows left out) for one target of shape (n, 1)."""
        Q, inverse = self.vectors, 1 / (self.values + alpha)
        diagonal = np.einsum("ij,ij,j->i", Q, Q, inverse)
        C = Q @ (inverse[:, None] * (Q.T @ Y))
        b = np.zeros(1)
        if self.intercept:
            u = Q @ (inverse * Q.sum(axis=0))
            C, b = with_intercept(C, u)
            diagonal = diagonal - u**2 / u.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            return C, b, C[:, 0] / diagonal


@dataclass(frozen=True)
class Choice:
    """Penalties tried, their errors for every target, and the chosen one of every target."""

    tried: np.ndarray
    errors: np.ndarray
    chosen: np.ndarray


def choose_alphas(
    spectrum: RidgeSpectrum, Y: np.ndarray, weight: np.ndarray, alphas: np.ndarray | None, *, each: bool
) -> Choice:
    """The penalty with the least mean squared error of rows left out: among `alphas`, or of all positive numbers.

    Without candidates a grid over the range of the eigenvalues finds the valley, and Brent's method its bottom.
    """
    search = alphas is None
    if alphas is None:
        top = max(float(spectrum.values[-1]), np.finfo(np.float64).tiny)
        alphas = top * np.geomspace(1e-12, 10, 40)
    tried = alphas.tolist()
    errors = [_errors(spectrum, Y, weight, alpha) for alpha in tried]
    if search:
        for t in range(Y.shape[1]) if each else [slice(None)]:
            totals = np.array([np.sum(e[t]) for e in errors[: len(alphas)]])
            best = int(np.nanargmin(totals))
            low, high = alphas[max(best - 1, 0)], alphas[min(best + 1, len(alphas) - 1)]

            def at(log_alpha: float, t: int | slice = t) -> float:
                tried.append(float(np.exp(log_alpha)))
                errors.append(_errors(spectrum, Y, weight, tried[-1]))
                return float(np.sum(errors[-1][t]))

            scipy.optimize.minimize_scalar(
                at, bounds=(np.log(low), np.log(high)), method="bounded", options={"xatol": 0.01}
            )
    order = np.argsort(tried)
    table, found = np.array(tried)[order], np.array(errors)[order]
    ranks = found if each else np.repeat(found.sum(axis=1, keepdims=True), Y.shape[1], axis=1)
    return Choice(table, found, table[np.nanargmin(ranks, axis=0)])


def _errors(spectrum: RidgeSpectrum, Y: np.ndarray, weight: np.ndarray, alpha: float) -> np.ndarray:
    left_out = np.column_stack([spectrum.solve(Y[:, [t]], alpha)[2] for t in range(Y.shape[1])])
    return (weight[:, None] * left_out**2).sum(axis=0) / weight.sum()
