"""What Laplace approximations share: the climb to the mode of the posterior, and for the exact ones their state.

The mode maximises  psi(f) = log p(N | f) - f'K^-1 f / 2,  which is concave. In coefficients a with f = K a, Newton's
step leads to the maximum of the quadratic model; it is shortened where psi does not rise enough. At the mode a = N - c
p.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from epicycle.core._threads import n_threads
from epicycle.gp._counts import Counts
from epicycle.kernels._gram import gram_matrix
from epicycle.kernels._kernel import Kernel
from epicycle.linalg._shifted_systems import matrix_product

__all__ = ["ExactLaplace", "Mode", "climb_to_mode"]

_ENOUGH = 1e-10  # of the scale of the likelihood: what Newton's next step may still promise


@dataclass
class Mode:
    """The mode: coefficients a (n, k) or of features, latent values f, probabilities p, psi, Newton's decrement."""

    a: np.ndarray
    f: np.ndarray
    p: np.ndarray
    value: float
    decrement: float
    n_steps: int


def climb_to_mode(
    seen: Counts,
    a: np.ndarray,
    latent: Callable[[np.ndarray], np.ndarray],
    size: Callable[[np.ndarray, np.ndarray], float],
    newton: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
    most: int,
) -> Mode:
    """Newton's method with a line search.

    Parameters
    ----------
    a : where to begin
    latent : a -> f
    size : (a, f) -> f'K^-1 f
    newton : (a, f, p) -> the next a
    most : steps at most
    """

    def at(a: np.ndarray) -> tuple[np.ndarray, float]:
        f = latent(a)
        return f, seen.log_likelihood(f) - 0.5 * size(a, f)

    f, value = at(a)
    start = np.zeros_like(a)
    if np.any(a):  # an earlier mode may be worse than nothing under another kernel
        f0, value0 = at(start)
        if not value >= value0:
            a, f, value = start, f0, value0
    decrement = np.inf
    steps = 0
    while True:
        p = seen.probabilities(f)
        target = newton(a, f, p)
        step = target - a
        move = latent(step)
        # the derivative of psi along the step: (N - c p - a)'K step, of which the model promises one half
        slope = float(np.vdot(seen.gradient(p), move)) - (size(target, f + move) - size(a, f) - size(step, move)) / 2
        decrement = max(slope, 0.0) / 2 / seen.scale
        if decrement <= _ENOUGH or steps >= most:
            # the last step is smaller than what rounding lets psi tell: it is taken where it does no harm
            f_new, value_new = at(target)
            if value_new >= value - _ENOUGH * seen.scale:
                a, f, value = target, f_new, value_new
                p = seen.probabilities(f)
            return Mode(a, f, p, value, decrement, steps + 1)
        length = 1.0
        for _ in range(30):
            trial = a + length * step
            f_new, value_new = at(trial)
            if value_new >= value + 1e-4 * length * slope:
                break
            length /= 2
        else:
            return Mode(a, f, p, value, decrement, steps)
        a, f, value = trial, f_new, value_new
        steps += 1


class ExactLaplace:
    """log q as a function of the kernel's theta; a mode found is where the next search for one begins."""

    def __init__(self, kernel: Kernel, seen: Counts, n_jobs: int | None, most: int) -> None:
        self.kernel, self.seen, self.n_jobs, self.most = kernel, seen, n_jobs, most
        self.threads = n_threads(float(seen.n) ** 3 / 3, n_jobs)
        self.a = np.zeros((seen.n, seen.n_latent))
        self.scale, self.standard_error, self.evaluations = seen.scale, 0.0, 0
        self.decrement, self.newton_steps = np.inf, 0

    def on_part(self, chosen: np.ndarray) -> Self:
        return type(self)(self.kernel, self.seen.take(chosen, self.kernel), self.n_jobs, self.most)

    def start(self, theta: np.ndarray) -> None:
        self.a = np.zeros_like(self.a)

    def state(self) -> dict[str, Any]:
        return {"a": self.a}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.a = np.asarray(state["a"])

    def _matrix(self, theta: np.ndarray) -> tuple[Kernel, Any, np.ndarray]:
        """(kernel, prepared rows, their matrix)."""
        kernel = self.kernel.with_theta(theta)
        A = kernel.prepare(self.seen.rows)
        return kernel, A, gram_matrix(kernel, A, np.dtype(np.float64), self.n_jobs)

    def _times(self, K: np.ndarray, a: np.ndarray) -> np.ndarray:
        return matrix_product(K, a, self.threads)

    def _climb(self, K: np.ndarray, newton: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]) -> Mode:
        """The mode under K, from the one before."""
        mode = climb_to_mode(
            self.seen, self.a, lambda a: self._times(K, a), lambda a, f: float(np.vdot(a, f)), newton, self.most
        )
        self.a, self.decrement = mode.a, mode.decrement
        self.newton_steps += mode.n_steps
        return mode
