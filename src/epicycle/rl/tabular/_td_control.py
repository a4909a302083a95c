"""Temporal differences over one or several steps, with or without traces: the call of the kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle._native import rl as native
from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import Choice, Domain, Integer, Real
from epicycle.rl._interaction import Interaction
from epicycle.rl.tabular._table_agent import TableAgent
from epicycle.rl.tabular._table_world import TableWorld

Array = np.ndarray
TRACES = {"accumulating": 0, "replacing": 1, "dutch": 2}
_EMPTY = np.zeros(0), np.zeros(0, dtype=np.int64)


class TemporalDifferenceAgent(TableAgent):
    """A table that moves by temporal differences."""

    _docs: ClassVar[dict[str, str]] = {
        "n_steps": "n_steps : int, default={default}\n    Rewards in a target before the value of a state takes over.",
        "trace_decay": "trace_decay : float, default={default}\n"
        "    :math:`\\lambda` in [0, 1]: how much of a temporal difference earlier steps get; 0 is without traces.",
        "trace": 'trace : {"replacing", "accumulating", "dutch"}, default={default}\n'
        "    What a visit does to a trace: set it to 1, add 1, or shrink it by the learning rate and add 1.",
    }

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_steps": Integer(minimum=1, maximum=100_000),
        "trace_decay": Real(0, 1),
        "trace": Choice(*TRACES),
    }

    n_steps: int = 1
    trace_decay: float = 0.0
    trace: str = "replacing"
    offline: bool = False

    def _enter(self, world: Interaction) -> TableWorld:
        if self.n_steps > 1 and self.trace_decay > 0:
            raise ParameterError(
                f"{type(self).__name__}: n_steps={self.n_steps} with trace_decay={self.trace_decay}; expected one of "
                "them alone"
            )
        return super()._enter(world)

    def _new_tables(self, n_states: int, n_actions: int) -> dict[str, Array]:
        tables = super()._new_tables(n_states, n_actions)
        keys, n = len(tables["q"]), self.n_steps if self.n_steps > 1 else 0
        tables |= {"ring_key": np.zeros(n, dtype=np.int64), "ring_reward": np.zeros(n)}
        if self.trace_decay > 0:
            tables |= {"trace": np.zeros(keys), "active": np.zeros(keys, dtype=np.int64)}
        if self.offline:
            tables["second"] = np.zeros(keys)
        if self._target == "double_q_learning":
            tables["second"] = tables["q"].copy()
        return tables

    def _learn_steps(self, kernel: Any, steps: int, most: int, rows: Array) -> tuple[int, int]:
        t = self._tables
        traces = native.Traces(
            ring_key=t["ring_key"],
            ring_reward=t["ring_reward"],
            trace=t.get("trace", _EMPTY[0]),
            active=t.get("active", _EMPTY[1]),
            decay=float(self.trace_decay),
            kind=TRACES[self.trace],
            offline=bool(self.offline),
        )
        return native.temporal_difference(kernel, *self._at_work(), traces, steps, steps == most, rows)

    def _forget_episode(self) -> None:
        super()._forget_episode()
        if self.offline:
            self._tables["second"][:] = 0.0
