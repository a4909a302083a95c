"""`ActionPolicy`: the best of finitely many actions in continuous states, whatever their values come from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from epicycle.control.continuous._system import states_of
from epicycle.core._docs import documented

Array = np.ndarray


@documented({})
class ActionPolicy(ABC):
    """Policy by values of states and actions; a subclass gives them, its controls, and their widths."""

    _docs: ClassVar[dict[str, str]] = {
        "x": "x : array (n,) or (rows, n)\n    State, or several.",
        "value_returns": "float or array (rows,)",
    }

    @abstractmethod
    def _q(self, X: Array) -> Array:
        """Values of the actions in each row."""

    @abstractmethod
    def _controls(self) -> Array:
        """Control of each action."""

    @abstractmethod
    def _n_entries(self) -> int:
        """Number of entries of a state; raises where nothing is fitted yet."""

    def q_values(self, x: Any) -> Array:
        """Values of the actions in states.

        Returns
        -------
        array (A,) or (rows, A)
        """
        X, one = states_of("x", x, self._n_entries())
        q = self._q(X)
        return np.asarray(q[0] if one else q)

    def action(self, x: Any) -> Any:
        """Number of the best action in states: an int, or an array (rows,)."""
        best = self.q_values(x).argmax(axis=-1)
        return int(best) if best.ndim == 0 else best

    def control(self, x: Any, time: int = 0) -> Array:
        """Control of the best action, for ``rollout(x, policy=...)`` of simulators; it is the same at all times."""
        return np.asarray(self._controls()[self.action(x)])
