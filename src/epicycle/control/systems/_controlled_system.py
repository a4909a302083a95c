"""Dynamics as trajectory optimisers use them: many states at once, with derivatives, between limits of the controls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from epicycle.control.simulators._simulator import Simulator
from epicycle.control.systems._linearize import linearize
from epicycle.core._exceptions import DataError

Array = np.ndarray
_STEP = np.finfo(float).eps ** 0.25  # of differences of derivatives that are differences themselves


class ControlledSystem:
    """A simulator, learnt dynamics, or a function ``f(x, u)``."""

    def __init__(self, dynamics: Any, n_states: int, n_controls: int, low: Any, high: Any) -> None:
        if not (hasattr(dynamics, "step") or callable(dynamics)):
            raise DataError(f"dynamics: got {type(dynamics).__name__}; expected a simulator, a model or a function")
        self.dynamics, self.n, self.m = dynamics, n_states, n_controls
        own = (getattr(dynamics, name, side) for name, side in (("control_low", -np.inf), ("control_high", np.inf)))
        own_low, own_high = own
        self.low = np.maximum(_limit("control_low", low, -np.inf, n_controls), own_low)
        self.high = np.minimum(_limit("control_high", high, np.inf, n_controls), own_high)
        if not (self.low <= self.high).all():
            raise DataError(f"control_low={self.low}, control_high={self.high}: expected none above the other")
        self._step: Callable[[Array, Array], Any] = dynamics.step if hasattr(dynamics, "step") else dynamics

    def step(self, X: Array, U: Array) -> Array:
        """Next states (rows, n); a state that is no number any more stays so."""
        if isinstance(self.dynamics, Simulator):
            return self.dynamics.step_unchecked(X, U)
        out = np.full(X.shape, np.nan)
        fine = np.isfinite(X).all(axis=1)
        for i in np.flatnonzero(fine):
            out[i] = np.asarray(self._step(X[i], U[i]), dtype=np.float64)
        return out

    def expand(self, X: Array, U: Array, second: bool) -> tuple[Array, Array, Array | None]:
        """Derivatives A (T, n, n), B (T, n, m) and, if asked for, second ones (T, n, n + m, n + m)."""
        if isinstance(self.dynamics, Simulator):
            parts = self.dynamics.derivatives(X, U, second=second)
            return parts[1], parts[2], parts[3] if second else None
        first = [self._first(x, u) for x, u in zip(X, U, strict=True)]
        A, B = (np.stack(part) for part in zip(*first, strict=True))
        return A, B, np.stack([self._second(x, u) for x, u in zip(X, U, strict=True)]) if second else None

    def _first(self, x: Array, u: Array) -> tuple[Array, Array]:
        if hasattr(self.dynamics, "derivatives"):
            _, A, B, *_ = self.dynamics.derivatives(x, u)
            return A, B
        _, A, B = linearize(self._step, x, u)  # type: ignore[misc]
        if A.shape != (self.n, self.n):
            raise DataError(f"dynamics: returned {len(A)} entries; expected {self.n}, as many as the state has")
        return A, B

    def _second(self, x: Array, u: Array) -> Array:
        z, n = np.concatenate([x, u]), self.n
        H = np.empty((n, len(z), len(z)))
        for j in range(len(z)):
            h = _STEP * max(1.0, abs(z[j]))
            sides = []
            for side in (h, -h):
                moved = z.copy()
                moved[j] += side
                sides.append(np.hstack(self._first(moved[:n], moved[n:])))
            H[:, :, j] = (sides[0] - sides[1]) / (2 * h)
        return np.asarray((H + H.swapaxes(1, 2)) / 2)


def _limit(name: str, given: Any, default: float, m: int) -> Array:
    limit = np.full(m, default) if given is None else np.broadcast_to(np.asarray(given, dtype=np.float64), (m,))
    if np.isnan(limit).any():
        raise DataError(f"{name}: got {given!r}; expected numbers, one or {m}")
    return np.array(limit)
