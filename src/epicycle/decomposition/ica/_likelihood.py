r"""Maximum likelihood of independent sources:  minimise  L(W) = -log |det W| + sum_j E[-log p(y_j)],  y = W z.

With psi = -(log p)' a small relative change  W <- (I + D) W  changes L by  <G, D> + 1/2 <D, H D>, where

    G = E[psi(y) y'] - I,        (H D)_ij = a_ij D_ij + D_ji,        a_ij = E[psi'(y_i) y_j^2],

if the sources are independent: H falls apart in blocks of two entries, (i, j) and (j, i). Its eigenvalues are kept
above a floor, and L-BFGS starts from its inverse at every step ("picard": Ablin, Cardoso and Gramfort, 2018). The
natural gradient takes D = -t G; the stochastic one the same from a few rows at a time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from epicycle.core._monitor import Monitor
from epicycle.data import Data
from epicycle.decomposition.ica._contrasts import Contrast, batch_product, sums_of
from epicycle.decomposition.ica._whitening import Whitening
from epicycle.engine._row_order import minibatches

_MEMORY = 7  # pairs of steps and changes of the gradient that L-BFGS keeps
_FLOOR = 0.01  # least eigenvalue of the blocks
_TRIALS = 30  # of a step length
_ROUNDING = 1e-13  # of L, relative: below it the gradient decides
_LARGEST_STEP = 0.5  # of a stochastic step, relative to W: rows far out do not throw it away


@dataclass(frozen=True)
class Point:
    """L with its relative gradient and the entries a of its blocks."""

    W: np.ndarray
    value: float
    G: np.ndarray
    a: np.ndarray

    @property
    def norm(self) -> float:
        return float(np.abs(self.G).max(initial=0.0))

    @property
    def curvature(self) -> float:
        """The least eigenvalue of the blocks: positive at a maximum of the likelihood."""
        off = ~np.eye(len(self.a), dtype=bool)
        pairs = _least(self.a)[off].min(initial=math.inf)
        return float(min(pairs, (1.0 + np.diagonal(self.a)).min(initial=math.inf)))


@dataclass(frozen=True)
class Ascent:
    """The end of an ascent: its point, number of iterations and reason."""

    point: Point
    n_iter: int
    reason: str


Evaluate = Callable[[np.ndarray], Point]
State = Mapping[str, Any]
Remember = Callable[[], State]


def likelihood(
    data: Data, white: Whitening | None, contrast: Contrast, constant: float, n_jobs: int | None
) -> Evaluate:
    """L as a function of W; `constant` is added for each source."""

    def evaluate(W: np.ndarray) -> Point:
        found = sums_of(data, white, W, contrast, values=True, squares=True, n_jobs=n_jobs)
        log_det = float(np.linalg.slogdet(W)[1])
        value = float(found.values.sum()) + len(W) * constant - log_det
        return Point(W, value, found.products @ W.T - np.eye(len(W)), found.squares)

    return evaluate


def _least(a: np.ndarray) -> np.ndarray:
    """The least eigenvalues of the blocks [[a_ij, 1], [1, a_ji]]."""
    return np.asarray((a + a.T - np.hypot(a - a.T, 2.0)) / 2)


def _solved(a: np.ndarray, D: np.ndarray) -> np.ndarray:
    """H^-1 D, with the eigenvalues of the blocks raised to the floor."""
    lifted = a + (_FLOOR - _least(a)).clip(min=0.0)
    determinant = lifted * lifted.T - 1.0
    np.fill_diagonal(determinant, 1.0)
    found = (lifted.T * D - D.T) / determinant
    np.fill_diagonal(found, np.diagonal(D) / (1.0 + np.diagonal(a)).clip(min=_FLOOR))
    return np.asarray(found)


def picard(
    evaluate: Evaluate, W: np.ndarray, *, tol: float, max_iter: int, monitor: Monitor, saved: State, seed: int
) -> Ascent:
    """L-BFGS with the block-diagonal Hessian as its first guess at every step."""
    at, step = evaluate(W), int(saved.get("step", 0))
    pairs: deque[tuple[np.ndarray, np.ndarray, float]] = deque(maxlen=_MEMORY)
    while at.norm > tol and step < max_iter:
        D = -_two_loops(at, pairs)
        slope = float((at.G * D).sum())
        found = _searched(evaluate, at, D, slope) if slope < 0 else None
        if found is None:  # rounding, or pairs that mislead: the gradient alone
            pairs.clear()
            D = -at.G / max(1.0, at.norm)
            found = _searched(evaluate, at, D, float((at.G * D).sum()))
        if found is None:
            return Ascent(at, step, "stalled")
        after, t = found
        change, moved = after.G - at.G, t * D
        product = float((change * moved).sum())
        if product > 1e-12 * float(np.linalg.norm(change)) * float(np.linalg.norm(moved)):
            pairs.append((moved, change, product))
        at, step = after, step + 1
        state: Remember = partial(dict, W=at.W, step=step, seed=seed)
        if monitor(step, at.W.ravel(), objective=at.value, gradient=at.norm, step=t, state=state):
            return Ascent(at, step, "stopped")
    return Ascent(at, step, "converged" if at.norm <= tol else "max_iter")


def _two_loops(at: Point, pairs: deque[tuple[np.ndarray, np.ndarray, float]]) -> np.ndarray:
    q, used = at.G.copy(), []
    for s, y, sy in reversed(pairs):
        alpha = float((s * q).sum()) / sy
        q -= alpha * y
        used.append(alpha)
    r = _solved(at.a, q)
    for (s, y, sy), alpha in zip(pairs, reversed(used), strict=True):
        r += (alpha - float((y * r).sum()) / sy) * s
    return r


def _searched(evaluate: Evaluate, at: Point, D: np.ndarray, slope: float) -> tuple[Point, float] | None:
    """The first of the steps 1, 1/2, ... that lowers L, or at the level of rounding the gradient."""
    identity, t = np.eye(len(D)), 1.0
    for _ in range(_TRIALS):
        W = (identity + t * D) @ at.W
        if np.isfinite(W).all() and np.linalg.slogdet(W)[0] != 0:
            after = evaluate(W)
            if after.value <= at.value + 1e-4 * t * slope:
                return after, t
            if after.value <= at.value + _ROUNDING * max(1.0, abs(at.value)) and after.norm < at.norm:
                return after, t
        t /= 2
    return None


def natural_gradient(
    evaluate: Evaluate, W: np.ndarray, *, tol: float, max_iter: int, monitor: Monitor, saved: State, seed: int
) -> Ascent:
    """Steps along -G whose length grows while they lower L, and is halved where they do not."""
    at, step, t = evaluate(W), int(saved.get("step", 0)), float(saved.get("length", 1.0))
    while at.norm > tol and step < max_iter:
        D = -t * at.G
        found = _searched(evaluate, at, D, -t * float(np.square(at.G).sum()))
        if found is None:
            return Ascent(at, step, "stalled")
        at, share = found
        t = 1.5 * t if share == 1.0 else t * share
        step += 1
        state: Remember = partial(dict, W=at.W, step=step, length=t, seed=seed)
        if monitor(step, at.W.ravel(), objective=at.value, gradient=at.norm, step=t, state=state):
            return Ascent(at, step, "stopped")
    return Ascent(at, step, "converged" if at.norm <= tol else "max_iter")


def stochastic(
    evaluate: Evaluate,
    data: Data,
    white: Whitening | None,
    contrast: Contrast,
    W: np.ndarray,
    *,
    rate: float,
    batch_size: int,
    seed: int,
    tol: float,
    max_iter: int,
    monitor: Monitor,
    saved: State,
) -> Ascent:
    """Passes over the rows in random order, a step for every few of them; the mean of a pass is where the next begins.

    The rate is divided by one more than the number of passes that have not raised the likelihood.
    """
    at = evaluate(W)
    step, falls = int(saved.get("step", 0)), int(saved.get("falls", 0))
    while at.norm > tol and step < max_iter:
        W, total, count = at.W.copy(), np.zeros_like(at.W), 0
        for batch, _ in minibatches(data, batch_size, step, seed):
            if not batch.total_weight > 0:
                continue
            D = rate / (1 + falls) * (np.eye(len(W)) - batch_product(batch, white, W, contrast) @ W.T)
            size = float(np.linalg.norm(D))
            W = W + (D if size <= _LARGEST_STEP else D * (_LARGEST_STEP / size)) @ W
            total += W
            count += 1
        mean = total / count
        after = evaluate(mean if np.linalg.slogdet(mean)[0] != 0 else W)
        falls += after.value >= at.value
        at, step = after, step + 1
        state: Remember = partial(dict, W=at.W, step=step, falls=falls, seed=seed)
        if monitor(step, at.W.ravel(), objective=at.value, gradient=at.norm, rate=rate / (1 + falls), state=state):
            return Ascent(at, step, "stopped")
    return Ascent(at, step, "converged" if at.norm <= tol else "max_iter")
