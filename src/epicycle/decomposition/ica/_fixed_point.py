r"""FastICA's fixed points:  extrema of  sum_j |E F(w_j'z)|  over orthonormal rows w_j, for white z.

Newton's step for one row, with E zz' = I, is  w <- E[g(y) z] - E[g'(y)] w. All rows together are made orthonormal
again by the polar factor ("parallel"), or one after the other by projection ("deflation"). Near normal rows the steps
of parallel rows can go round in circles; then a share m of them is taken,  w <- w - m (E[g(y) z] - b w) / (E g' - b)
with b = E[y g(y)], which is the step above, up to its length, for m = 1, and the gradient decides when to end.

With C = E[g(y) y'] and signs s_j of C_jj - E g'(y_j), W is a fixed point iff  C_ij s_j = C_ji s_i  for all i, j
(parallel): the relative gradient of  sum_j s_j E F(y_j)  along rotations is zero. One after the other, it is one iff
C_ji = 0 for i > j.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from epicycle.core._monitor import Monitor
from epicycle.decomposition.ica._contrasts import Sums
from epicycle.linalg._spectra import singular_vectors

Pass = Callable[[np.ndarray], Sums]
State = Mapping[str, Any]
_PATIENCE = 10  # steps in which the change of parallel rows has to halve, or shorter ones are taken
_LEAST_SHARE = 1 / 64
_FLAT = 1e-3  # least curvature of a shortened step, relative to the largest slope
Remember = Callable[[], State]


@dataclass(frozen=True)
class FixedPoint:
    """Orthonormal rows, the iterations they took, whether rows came to rest, and the relative gradient at the end."""

    W: np.ndarray
    n_iter: int
    reason: str
    gradient: float


def nearest_rotation(M: np.ndarray) -> np.ndarray:
    """The orthogonal matrix next to M, its polar factor (M M')^(-1/2) M."""
    U, _, Vt = singular_vectors(M)
    return np.asarray(U @ Vt)


def angle_of(tol: float) -> float:
    """The small angle whose cosine is 1 - tol."""
    return float(np.sqrt(2.0 * tol))


def parallel(one_pass: Pass, W: np.ndarray, *, tol: float, max_iter: int, monitor: Monitor, saved: State) -> FixedPoint:
    """All rows at once, until none turns by more than the angle whose cosine is 1 - tol.

    Where they go round in circles instead, until the gradient is at most that angle.
    """
    W, reason = np.array(saved["W"]) if saved else nearest_rotation(W), "max_iter"
    step, share = int(saved.get("step", 0)), float(saved.get("share", 1.0))
    least, waited = float(saved.get("least", np.inf)), int(saved.get("waited", 0))
    while step < max_iter:
        found, step = one_pass(W), step + 1
        after = nearest_rotation(_stepped(found, W, share))
        turned = float(np.abs(np.abs(np.einsum("ij,ij->i", after, W)) - 1.0).max(initial=0.0))
        moved = turned / share**2  # cosines of small angles: as far as a whole step would have turned
        least, waited = (moved, 0) if moved < 0.5 * least else (least, waited + 1)
        if waited >= _PATIENCE:
            least, waited, share = moved, 0, max(share / 2, _LEAST_SHARE)
        gradient = _rotation_gradient(found, W)
        flat = share < 1.0 and gradient <= angle_of(tol)
        W = W if flat else after
        state: Remember = partial(dict, W=W, step=step, share=share, least=least, waited=waited)
        stopped = monitor(step, W.ravel(), objective=gradient, change=moved, state=state)
        if moved < tol or flat or stopped:
            reason = "converged" if moved < tol or flat else "stopped"
            break
    return FixedPoint(W, step, reason, _rotation_gradient(one_pass(W), W))


def _stepped(found: Sums, W: np.ndarray, share: float) -> np.ndarray:
    if share == 1.0:
        return np.asarray(found.products - found.slopes[:, None] * W)
    b = np.einsum("ij,ij->i", found.products, W)
    curvature = found.slopes - b
    least = _FLAT * float(np.abs(found.slopes).max(initial=0.0)) or 1.0
    curvature = np.where(np.abs(curvature) < least, np.copysign(least, curvature), curvature)
    return np.asarray(W - (share / curvature)[:, None] * (found.products - b[:, None] * W))


def deflation(
    one_pass: Pass, W: np.ndarray, *, tol: float, max_iter: int, monitor: Monitor, saved: State
) -> FixedPoint:
    """One row after the other, each orthogonal to those before."""
    k = len(W)
    rows = np.array(saved["W"]) if saved else W.copy()
    first, done, longest, total = (int(saved.get(name, 0)) for name in ("row", "step", "longest", "total"))
    reason = "converged"
    for j in range(first, k):
        w, moved, step, stopped = _unit(rows[j], rows[:j]), np.inf, done if j == first else 0, False
        while moved >= tol and step < max_iter and not stopped:
            found = one_pass(w[None, :])
            after = _unit(found.products[0] - found.slopes[0] * w, rows[:j])
            moved = abs(abs(float(after @ w)) - 1.0)
            outside = found.products[0] - (found.products[0] @ w) * w
            gradient = float(np.linalg.norm(outside - rows[:j].T @ (rows[:j] @ outside)))
            w, step, total = after, step + 1, total + 1
            rows[j], longest = w, max(longest, step)
            at_rest = moved < tol
            state: Remember = partial(
                dict, W=rows.copy(), row=j + at_rest, step=0 if at_rest else step, longest=longest, total=total
            )
            stopped = monitor(total, rows.ravel(), objective=gradient, change=moved, state=state)
        rows[j] = w
        if moved >= tol:
            reason = "stopped" if stopped else "max_iter"
        if stopped:
            rows = nearest_rotation(rows)
            break
    C = one_pass(rows).products @ rows.T
    return FixedPoint(rows, longest, reason, float(np.abs(np.triu(C, 1)).max(initial=0.0)))


def _unit(w: np.ndarray, before: np.ndarray) -> np.ndarray:
    """The part of w orthogonal to the rows before, of length one; where nothing is left, that of a unit vector."""
    length = np.linalg.norm(w)
    candidates = [w / length] if length > 0 else []
    outside = 1.0 - np.square(before).sum(axis=0)
    candidates.append(np.eye(len(w))[int(np.argmax(outside))])
    for v in candidates:
        for _ in range(2):
            v = v - before.T @ (before @ v)
        length = np.linalg.norm(v)
        if length > 1e-8:
            break
    return np.asarray(v / length)


def _rotation_gradient(found: Sums, W: np.ndarray) -> float:
    """The largest entry of the gradient along rotations."""
    C = found.products @ W.T
    turned = C * np.where(np.diagonal(C) < found.slopes, -1.0, 1.0)
    return float(np.abs(turned - turned.T).max(initial=0.0)) / 2
