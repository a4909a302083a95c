"""`backward_induction`: finite horizons, where the best action depends on the time that is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epicycle.control.mdp._mdp import MDP
from epicycle.control.mdp._planning_solution import backup
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import SHARED_PARAMETERS, Integer, NoneOr, check_parameter
from epicycle.core.estimator import in_catalogue

Array = np.ndarray


@dataclass(frozen=True)
class BackwardInductionSolution:
    """Best policy and values for every time.

    Attributes
    ----------
    policy : array (T, S)
        Label of the action at time t in each state.
    values : array (T + 1, S)
        Expected sum of the rewards from time t on; the last row is the end.
    certificate : Certificate
        Rounding of the values, relative to the largest: dynamic programming is exact.
    """

    mdps: Sequence[MDP] = field(repr=False)
    values: Array
    choice: Array = field(repr=False)
    certificate: Certificate

    @property
    def policy(self) -> Array:
        """Label of the action at each time in each state."""
        return np.stack([m.action_labels(c) for m, c in zip(self.mdps, self.choice, strict=True)])


@in_catalogue("control", "G4", certificate="rounding")
def backward_induction(
    mdp: MDP | Sequence[MDP],
    horizon: int | None = None,
    *,
    final_values: Any = None,
    n_jobs: int | None = None,
) -> BackwardInductionSolution:
    r"""Best policy for a given number of steps, by dynamic programming from the end.

    .. math:: V_t(s) = \max_a \Big\{ R^{(t)}(s, a) + \gamma \sum_{s'} P^{(t)}_{sa}(s') V_{t+1}(s') \Big\}

    Parameters
    ----------
    mdp : MDP, or a sequence of them
        The process, or one for each time where probabilities and rewards change; all with the same states. With
        ``criterion="average"`` there is no discount.
    horizon : int, optional
        Number of steps T; not needed with a sequence.
    final_values : array (S,), optional
        Values at the end; by default those of terminal states and zero elsewhere.
    n_jobs : int, optional
        Threads; the bits of the result do not depend on it.

    Examples
    --------
    One step away waits a reward of 1, four steps away one of 10. With three steps left the near one is all there is:

    >>> from epicycle.control import MDP, backward_induction
    >>> step = lambda s, a: [(1.0, s + a, {0: 1.0, 5: 10.0}.get(s + a, 0.0))]
    >>> line = MDP.from_function(step, range(6), lambda s: [] if s in (0, 5) else [-1, 1], discount=1)
    >>> plan = backward_induction(line, 5)
    >>> plan.policy[:, 1].tolist()  # in state 1, with 5, 4, 3, 2 and 1 steps left
    [1, 1, -1, -1, -1]
    """
    mdps = [mdp] if isinstance(mdp, MDP) else list(mdp)
    if not mdps or not all(isinstance(m, MDP) for m in mdps) or len({m.n_states for m in mdps}) > 1:
        raise DataError("mdp: expected an MDP, or a sequence of them with the same number of states")
    check_parameter("backward_induction", "horizon", horizon, NoneOr(Integer(minimum=1)))
    check_parameter("backward_induction", "n_jobs", n_jobs, SHARED_PARAMETERS["n_jobs"])
    if isinstance(mdp, MDP):
        if horizon is None:
            raise DataError("horizon=None; expected a number of steps with a single process")
        mdps = mdps * horizon
    elif horizon not in (None, len(mdps)):
        raise DataError(f"horizon={horizon} with {len(mdps)} processes; expected the same number")
    last = mdps[-1].terminal_values_ if final_values is None else np.asarray(final_values, dtype=np.float64)
    if last.shape != (mdps[0].n_states,) or not np.isfinite(last).all():
        raise DataError(f"final_values: got shape {last.shape}; expected {mdps[0].n_states} finite numbers")
    values, choice = [last], []
    for process in reversed(mdps):
        after, chosen, _, _ = backup(process, values[-1], n_jobs)
        values.append(np.where(process.is_terminal, process.terminal_values_, after))
        choice.append(chosen)
    V = np.stack(values[::-1])
    terms = max(int(np.diff(m.transitions_.indptr).max(initial=0)) for m in mdps) + 2
    rounding = np.finfo(float).eps * terms * len(mdps)
    meaning = "values are exact up to rounding, and no policy is better by more than that of the largest value"
    return BackwardInductionSolution(mdps, V, np.stack(choice[::-1]), Certificate("rounding", rounding, 1e-6, meaning))
