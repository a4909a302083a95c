"""Riccati's equations: checks of what is given, one step back in time, fixed points by doubling and Newton."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from epicycle.core._exceptions import DataError, EpicycleError

Array = np.ndarray
_LARGEST = 1e100  # of an entry
_MOST_PARTS = 1_000_000  # steps of a differential equation
_DOUBLINGS = 60  # 2^60 steps of the recursion
_NEWTON = 5
_ROUNDING = 1e-14  # relative change of P that is rounding
#: Relative size of the smallest singular value at which a mode counts as out of reach.
_RANK = 1e-9


def matrix(name: str, given: Any, rows: int | None = None, columns: int | None = None) -> Array:
    """A finite matrix, or a sequence of them, of a given shape; square where none is given."""
    try:
        M = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name}: expected a matrix of numbers, or a sequence of matrices of one shape") from None
    expected = (rows or (M.shape[-1] if M.ndim > 1 else 0), columns or (M.shape[-1] if M.ndim > 1 else 0))
    if M.ndim not in (2, 3) or M.shape[-2:] != expected or M.size == 0:
        raise DataError(f"{name}: got shape {M.shape}; expected {expected}, or a sequence of such matrices")
    return sized(name, M)


def sized(name: str, M: Array) -> Array:
    """The entries, of which each and the products of three are numbers in double precision."""
    if not np.isfinite(M).all():
        raise DataError(f"{name}: expected finite numbers")
    if np.abs(M).max(initial=0.0) > _LARGEST:
        raise DataError(f"{name}: has an entry of size {np.abs(M).max():g}; expected none above {_LARGEST:g}")
    return M


@contextmanager
def solvable(names: str) -> Iterator[None]:
    """Names the matrices as the cause where factorisations fail or sizes go beyond floating point."""
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            yield
    except EpicycleError:
        raise
    except (ValueError, ArithmeticError) as error:  # LinAlgError is a ValueError
        raise DataError(
            f"{names}: Riccati's equation has no solution in double precision ({error}); expected entries and "
            "eigenvalues of like sizes, and modes that are not all but hidden"
        ) from None


def vector(name: str, given: Any, n: int) -> Array:
    """A finite vector, zero where none is given."""
    v = np.zeros(n) if given is None else np.asarray(given, dtype=np.float64)
    if v.shape != (n,):
        raise DataError(f"{name}: got shape {v.shape}; expected ({n},), finite")
    return sized(name, v)


def cost(name: str, given: Any, n: int) -> Array:
    """A symmetric matrix, or a sequence of them."""
    M = matrix(name, given, n, n)
    off = np.abs(M - M.swapaxes(-1, -2)).max()
    if off > 1e-10 * np.abs(M).max():
        raise DataError(f"{name}: expected a symmetric matrix; entries differ from their mirror by up to {off:g}")
    return np.asarray((M + M.swapaxes(-1, -2)) / 2)


def semidefinite(name: str, M: Array) -> Array:
    """The matrix, which has no eigenvalue below 0."""
    low = float(np.linalg.eigvalsh(M).min())
    if low < -1e-10 * max(float(np.abs(M).max()), np.finfo(float).tiny):
        raise DataError(f"{name}: its smallest eigenvalue is {low:g}; expected none below 0")
    return M


def covariance_root(M: Array) -> Array:
    """S with S S' = M for a covariance that may be singular."""
    values, vectors = np.linalg.eigh(M)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def check_costs(Q: Array, N: Array, R: Array) -> None:
    """R is positive definite, and no state and control together cost less than nothing."""
    low = np.linalg.eigvalsh(R).min()
    if low <= 0:
        raise DataError(f"R: its smallest eigenvalue is {low:g}; expected a positive definite matrix")
    schur = Q - N @ np.linalg.solve(R, np.broadcast_to(N.swapaxes(-1, -2), R.shape[:-2] + N.shape[-2:][::-1]))
    low, size = np.linalg.eigvalsh(schur).min(), np.abs(Q).max()
    if low < -1e-10 * max(size, np.finfo(float).tiny):
        raise DataError(f"Q: Q - N R^-1 N' has the eigenvalue {low:g}; expected none below 0")


@dataclass(frozen=True)
class Step:
    """One step of the dynamics with its costs."""

    A: Array
    B: Array
    Q: Array
    R: Array
    N: Array
    q: Array
    r: Array
    d: Array
    noise: Array
    discount: float

    def gain(self, P: Array) -> Array:
        """K = (R + g B'PB)^-1 (g B'PA + N')."""
        BP = self.discount * self.B.T @ P
        return np.asarray(scipy.linalg.solve(self.R + BP @ self.B, BP @ self.A + self.N.T, assume_a="pos"))

    def backward(self, P: Array, p: Array, c: float) -> tuple[Array, Array, Array, Array, float]:
        """Feedback of this step, and the cost before it, given the cost x'Px + 2p'x + c after it."""
        g = self.discount
        BP = g * self.B.T @ P
        H, f = self.R + BP @ self.B, self.r + BP @ self.d + g * self.B.T @ p
        K = self.gain(P)
        k = scipy.linalg.solve(H, f, assume_a="pos")
        # Joseph's form: a sum of positive terms stays positive where differences of large ones would not.
        closed = self.A - self.B @ K
        before = self.Q - self.N @ K - K.T @ self.N.T + K.T @ self.R @ K + g * closed.T @ P @ closed
        linear = self.q - K.T @ self.r - self.N @ k + K.T @ self.R @ k
        linear = linear + g * closed.T @ (P @ (self.d - self.B @ k) + p)
        drift = self.d - self.B @ k
        constant = k @ self.R @ k - 2 * self.r @ k
        constant += g * (drift @ P @ drift + 2 * p @ drift + c + np.trace(P @ self.noise))
        return K, k, (before + before.T) / 2, linear, float(constant)

    def fixed_affine(self, P: Array) -> tuple[Array, Array]:
        """Offset of the control and linear cost that a step back does not change, for the fixed point P."""
        n = len(P)
        zero = self.backward(P, np.zeros(n), 0.0)[3]
        closed = self.A - self.B @ self.gain(P)  # the linear cost of a step is `zero` + g closed' p
        p = np.linalg.solve(np.eye(n) - self.discount * closed.T, zero)
        return self.backward(P, p, 0.0)[1], p

    def fixed_constant(self, P: Array, p: Array, k: Array) -> float:
        """Constant of the cost that a step back does not change, with a discount below 1."""
        drift = self.d - self.B @ k
        constant = k @ self.R @ k - 2 * self.r @ k
        constant += self.discount * (drift @ P @ drift + 2 * p @ drift + np.trace(P @ self.noise))
        return float(constant / (1 - self.discount))


def discrete(A: Array, B: Array, Q: Array, R: Array, N: Array) -> tuple[Array, list[float]]:
    """Fixed point of the recursion, and the residuals on the way.

    The doubling algorithm computes the cost of 1, 2, 4, 8, ... steps; Newton's steps (Kleinman) remove its rounding.
    """
    shift = np.linalg.solve(R, N.T)
    F, H = A - B @ shift, Q - N @ shift
    check_modes(F, B, H, lambda s: abs(s) >= 1 - 1e-10, "on or outside the unit circle")
    G = B @ np.linalg.solve(R, B.T)
    P, n = H, len(A)
    step = Step(A, B, Q, R, N, np.zeros(n), np.zeros(B.shape[1]), np.zeros(n), np.zeros((n, n)), 1.0)
    history = []
    for _ in range(_DOUBLINGS):
        W = np.linalg.solve(np.eye(n) + G @ P, np.hstack([F, G]))
        after = P + F.T @ P @ W[:, :n]
        G, F = G + F @ W[:, n:] @ F.T, F @ W[:, :n]
        G, after = (G + G.T) / 2, (after + after.T) / 2
        change = _relative(after - P, after)
        P = after
        history.append(change)
        if not np.isfinite(change) or change < _ROUNDING:
            break
    for _ in range(_NEWTON):
        residual = step.backward(P, np.zeros(n), 0.0)[2] - P
        history.append(_relative(residual, P))
        if history[-1] < _ROUNDING:
            break
        closed = A - B @ step.gain(P)
        refined = P + _sum_of_powers(closed, residual)
        if _relative(step.backward(refined, np.zeros(n), 0.0)[2] - refined, refined) >= history[-1]:
            break
        P = refined
    return P, history


def continuous(A: Array, B: Array, Q: Array, R: Array, N: Array) -> tuple[Array, list[float]]:
    """Solution of the equation of continuous time by SciPy's Schur method, refined by Newton's steps."""
    shift = np.linalg.solve(R, N.T)
    F, H = A - B @ shift, Q - N @ shift
    check_modes(F, B, H, lambda s: s.real >= -1e-10, "with a real part of at least 0")
    P = scipy.linalg.solve_continuous_are(A, B, Q, R, s=N)

    def residual(P: Array) -> Array:
        PB = P @ B + N
        return np.asarray(A.T @ P + P @ A - PB @ np.linalg.solve(R, PB.T) + Q)

    history = []
    for _ in range(_NEWTON):
        left = residual(P)
        history.append(_relative(left, np.abs(A).max() * np.abs(P) + np.abs(Q)))
        closed = A - B @ np.linalg.solve(R, B.T @ P + N.T)
        refined = P + scipy.linalg.solve_continuous_lyapunov(closed.T, -left)
        refined = (refined + refined.T) / 2
        if not _relative(residual(refined), left) < 1:
            break
        P = refined
    history.append(_relative(residual(P), np.abs(A).max() * np.abs(P) + np.abs(Q)))
    return P, history


def continuous_path(
    A: Array, B: Array, Q: Array, R: Array, N: Array, last: Array, length: float, n_steps: int
) -> tuple[Array, int]:
    """P at the times 0, h, ..., length of Riccati's differential equation with P(length) = last, and how it was cut.

    With [X; Y]' = H [X; Y] for the Hamiltonian H, P = Y X^-1: exponentials of H step from the end, exact up to
    rounding. Every interval is cut into an even number of parts, so short that exponentials stay near the identity.
    """
    across = np.linalg.solve(R, N.T)
    drift, state = A - B @ across, Q - N @ across
    H = np.block([[drift, -B @ np.linalg.solve(R, B.T)], [-state, -drift.T]])
    n, h = len(A), length / n_steps
    parts = 4 * max(1, int(np.ceil(h * np.linalg.norm(H, 2))))
    if parts * n_steps > _MOST_PARTS:
        raise DataError(
            f"horizon={length:g}: {parts * n_steps} parts of Riccati's equation; expected at most {_MOST_PARTS}. "
            "Shorten the horizon, or take the infinite one, which the feedback is near to far from the end"
        )
    E = scipy.linalg.expm(-(h / parts) * H)
    path = np.empty((n_steps * parts + 1, n, n))
    path[-1] = last
    for i in range(len(path) - 2, -1, -1):
        X, Y = E[:n, :n] + E[:n, n:] @ path[i + 1], E[n:, :n] + E[n:, n:] @ path[i + 1]
        P = np.linalg.solve(X.T, Y.T).T
        path[i] = (P + P.T) / 2
    return path, parts


def check_modes(A: Array, B: Array, Q: Array, unstable: Any, where: str) -> None:
    """Every mode that does not die out by itself can be controlled, and costs something."""
    modes = [s for s in scipy.linalg.eigvals(A) if unstable(s)]
    for given, other, verb in ((A, B, "no control reaches"), (A.T, Q.T, "no cost sees")):
        hidden = hidden_modes(given, other, modes)
        if hidden:
            name, what = ("B", "uncontrollable") if verb.startswith("no control") else ("Q", "undetectable")
            raise DataError(
                f"{name}: the system is {what}: {verb} its mode with eigenvalue {hidden[0]:.6g}, {where}, so that the "
                "cost has no finite minimum that stable feedback attains"
            )


def hidden_modes(A: Array, B: Array, modes: Any) -> list[complex]:
    """Eigenvalues s at which [sI - A, B] loses rank."""
    size = float(max(np.linalg.norm(A, 2), np.linalg.norm(B, 2), np.finfo(float).tiny))
    squares = A @ A.T + B @ B.T
    hidden: dict[tuple[float, float], bool] = {}  # of real matrices both of a conjugate pair are, or none
    for s in modes:
        pair = float(np.real(s)), abs(float(np.imag(s)))
        if pair not in hidden:
            hidden[pair] = not _full_rank(A, squares, s, size) and _smallest(A, B, s) <= _RANK * size
    return [s for s in modes if hidden[float(np.real(s)), abs(float(np.imag(s)))]]


def _full_rank(A: Array, squares: Array, s: complex, size: float) -> bool:
    """Whether Cholesky's factorisation proves it, far above rounding; the smallest singular value decides otherwise."""
    n = len(A)
    margin = max(1e-10, 1e3 * n * np.finfo(float).eps) * size**2
    gram = squares - s * A.T - np.conj(s) * A + (abs(s) ** 2 - margin) * np.eye(n)
    try:
        np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        return False
    return True


def _smallest(A: Array, B: Array, s: complex) -> float:
    return float(np.linalg.svd(np.hstack([s * np.eye(len(A)) - A, B]), compute_uv=False)[-1])


def _sum_of_powers(C: Array, X: Array) -> Array:
    """sum_k C'^k X C^k, by doubling."""
    for _ in range(_DOUBLINGS):
        more = C.T @ X @ C
        X, C = X + more, C @ C
        if _relative(more, X) < 1e-16:
            break
    return X


def _relative(change: Array, size: Array) -> float:
    return float(np.abs(change).max() / max(np.abs(size).max(), np.finfo(float).tiny))
