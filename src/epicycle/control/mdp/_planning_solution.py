"""Solutions of planners, and the bounds that Bellman's residual puts on it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epicycle._native import control as native
from epicycle.control.mdp._absorption import longest_run, run_length
from epicycle.control.mdp._mdp import MDP
from epicycle.control.mdp._planning_plots import draw_policy, draw_values
from epicycle.core._certificate import Certificate
from epicycle.core._docs import documented
from epicycle.core._exceptions import ConvergenceWarning, DataError
from epicycle.core._history import History
from epicycle.core._plot_style import Axes, axes_of, styled
from epicycle.core._threads import n_threads

Array = np.ndarray
_ARROWS = {"N": "↑", "E": "→", "S": "↓", "W": "←"}


@documented({})
@dataclass(frozen=True)
class PlanningSolution:
    """Policy and values of a decision process, with the history of their computation and bounds on their errors.

    Attributes
    ----------
    policy : array (S,)
        Label of the action in each state, greedy for `values`; that of a terminal state has no meaning.
    values : array (S,)
        Values of the states under the best policy, in the middle between `lower` and `upper`. With the average
        criterion they are relative to the first state.
    lower, upper : arrays (S,)
        Bounds: `policy` is worth at least `lower`, and no policy is worth more than `upper`. None with the average
        criterion, and where no bound follows.
    gain : float or None
        Mean reward of a step, with the average criterion.
    history : History
        One row for each iteration.
    certificate : Certificate
        Loss of `policy` against the best one at the worst state, relative to the largest value.
    n_iter : int
        Number of iterations.
    choice : array (S,) of int
        Pair of each state in the order of the process, -1 in terminal states.
    """

    mdp: MDP = field(repr=False)
    values: Array
    choice: Array = field(repr=False)
    lower: Array | None = field(repr=False)
    upper: Array | None = field(repr=False)
    gain: float | None
    history: History = field(repr=False)
    certificate: Certificate
    n_iter: int

    @property
    def policy(self) -> Array:
        """Label of the action in each state."""
        return self.mdp.action_labels(self.choice)

    def q_values(self) -> Array:
        """Values of states and actions, minus infinity where an action is not available.

        Returns
        -------
        array (S, A)
        """
        mdp = self.mdp
        q = np.full((mdp.n_states, mdp.n_actions), -np.inf)
        pairs = mdp.rewards_ + mdp.discount * (mdp.transitions_ @ self.values)
        q[mdp._pair_state(), mdp.pair_action_] = pairs
        return q

    @styled
    def plot(self, *, ax: Axes | None = None, **line: Any) -> Axes:
        """Draw how Bellman's residual, which bounds the loss of the policy, fell.

        Parameters
        ----------
        **line
            Passed on to matplotlib.
        """
        ax = axes_of(ax)
        residual = self.history["residual"]
        ax.semilogy(np.arange(1, len(residual) + 1), np.where(residual > 0, residual, np.nan), **line)
        ax.set_xlabel("iteration")
        ax.set_ylabel("Bellman residual (span)" if self.mdp.criterion != "total" else "Bellman residual")
        return ax

    @styled
    def plot_values(self, *, ax: Axes | None = None) -> Axes:
        """Draw the values: as colours where states are pairs of numbers, otherwise as a line between its bounds."""
        ax = axes_of(ax)
        draw_values(ax, self.mdp.states, self.values, self.lower, self.upper)
        return ax

    @styled
    def plot_policy(self, *, ax: Axes | None = None) -> Axes:
        """Draw the actions: as colours where states are pairs of numbers, otherwise as points above the states."""
        ax = axes_of(ax)
        chosen = np.where(self.choice >= 0, self.mdp.pair_action_[self.choice], -1)
        draw_policy(ax, self.mdp.states, self.mdp.actions, chosen)
        return ax

    @styled
    def plot_grid(self, *, ax: Axes | None = None, fmt: str = "{:.2f}") -> Axes:
        """Draw values as colours and actions as arrows, where states are cells (row, column) and actions N, E, S, W.

        Parameters
        ----------
        fmt : str, default="{:.2f}"
            Format of the values.
        """
        cells = self.mdp.states.tolist()
        if not all(isinstance(c, tuple) and len(c) == 2 for c in cells) or not set(self.policy.tolist()) <= set(
            _ARROWS
        ):
            raise DataError("plot_grid: expected states (row, column) and actions N, E, S, W, as worlds.grid_world has")
        ax = axes_of(ax)
        rows, columns = np.array(cells).T
        picture = np.full((rows.max() + 1, columns.max() + 1), np.nan)
        picture[rows, columns] = self.values
        image = ax.imshow(picture, cmap="cividis", alpha=0.85)
        middle = 0.5 * (np.nanmin(picture) + np.nanmax(picture))
        terminal = self.mdp.is_terminal
        for (i, j), value, action, ends in zip(cells, self.values, self.policy, terminal, strict=True):
            color = "white" if value < middle else "black"
            ax.text(j, i + 0.25, fmt.format(value), ha="center", va="center", color=color, fontsize=9)
            ax.text(j, i - 0.12, "end" if ends else _ARROWS[action], ha="center", va="center", color=color, fontsize=12)
        ax.figure.colorbar(image, ax=ax, label="value", shrink=0.8)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.grid(False)
        return ax


@dataclass(frozen=True)
class Bounds:
    """One backup of values: the greedy pairs and what the residual says about them."""

    values: Array
    choice: Array
    lower: Array | None
    upper: Array | None
    gain: float | None
    loss: float
    meaning: str


def span_of(mdp: MDP, low: float, high: float) -> float:
    """Residual that decides when to stop: its span, with zero in it where the process can end."""
    if mdp.criterion == "average" or not can_end(mdp):
        return high - low
    if mdp.n_pairs == 0:
        return 0.0  # nothing changes
    return max(high, 0.0) - min(low, 0.0)


def can_end(mdp: MDP) -> bool:
    """Whether a change of all values by one constant would not be a change by that constant again."""
    return bool(mdp.is_terminal.any() or mdp._stops().any())


def backup(mdp: MDP, values: Array, n_jobs: int | None = None) -> tuple[Array, Array, float, float]:
    """Bellman's operator once: new values, greedy pairs, least and greatest change."""
    out, choice = np.empty(mdp.n_states), np.empty(mdp.n_states, dtype=np.int64)
    threads = n_threads(4.0 * mdp.transitions_.nnz, n_jobs)
    low, high = native.improve(*arguments(mdp), values, out, choice, threads)
    return out, choice, low, high


def arguments(mdp: MDP) -> tuple[Any, Array, Array, float]:
    """The process as the kernels take it."""
    return mdp.transitions_, mdp.rewards_, mdp.pair_start_, mdp.discount


def bounds(mdp: MDP, values: Array, n_jobs: int | None = None) -> Bounds:
    r"""Bounds on the values of the greedy policy and of the best one.

    With :math:`\delta = TV - V` (MacQueen, Porteus)

    .. math:: TV + \frac{\gamma}{1-\gamma} \min\delta \le V^\pi \le V^* \le TV + \frac{\gamma}{1-\gamma} \max\delta ;

    where the process can end, zero counts among the :math:`\delta`. For total rewards the factor is the expected
    number of steps, for the mean reward of a step :math:`\min\delta \le g^\pi \le g^* \le \max\delta`.
    """
    after, choice, low, high = backup(mdp, values, n_jobs)
    if mdp.n_pairs == 0:
        return Bounds(after, choice, after, after, None, 0.0, "every state is terminal")
    # Each backup is a sum of m + 2 rounded terms.
    terms = int(np.diff(mdp.transitions_.indptr).max(initial=0)) + 3
    rounding = np.finfo(float).eps * terms * (_competing_reward(mdp, values) + np.abs(values).max())
    if mdp.criterion == "average":
        gain = 0.5 * (low + high)
        meaning = "the mean reward of a step under this policy is within {} of the largest one, relative to rewards"
        return Bounds(values - values[0], choice, None, None, gain, high - low + 2 * rounding, meaning)
    if can_end(mdp):
        low, high = min(low, 0.0), max(high, 0.0)
    meaning = "in no state is another policy better than this one by more than {} of the largest value"
    acts = choice >= 0
    if mdp.criterion == "discounted":
        factor = mdp.discount / (1 - mdp.discount)
        lower = after + acts * (factor * low - rounding / (1 - mdp.discount))
        upper = after + acts * (factor * high + rounding / (1 - mdp.discount))
    else:
        under = run_length(mdp, choice)
        most = longest_run(mdp, values + (low - rounding) * under if under is not None else None)
        if under is None or most is None:
            meaning = "Bellman's equation holds to {} of the largest value; no bound on the loss of the policy follows"
            return Bounds(after, choice, None, None, None, high - low, meaning)
        lower = values + acts * (low - rounding) * under
        upper = values + acts * (high + rounding) * most
    return Bounds(0.5 * (lower + upper), choice, lower, upper, None, float((upper - lower).max()), meaning)


def _competing_reward(mdp: MDP, values: Array) -> float:
    """Largest size of the rewards of actions that could be the best of their states.

    What rounding does to the others cannot matter: they are worse whatever follows them.
    """
    rewards, counts = mdp.rewards_, np.diff(mdp.pair_start_)
    spread = mdp.discount * (max(values.max(), 0.0) - min(values.min(), 0.0))
    low, high = float(rewards.min()), float(rewards.max())
    if high - low <= spread:  # the future may make up for any reward
        return max(abs(low), abs(high))
    acting = counts > 0
    best = np.repeat(np.maximum.reduceat(rewards, mdp.pair_start_[:-1][acting]), counts[acting])
    competes = rewards >= best - (1 + 1e-9) * spread - 1e-9 * np.abs(best)
    return float(np.abs(rewards[competes]).max(initial=0.0))


def scale_of(mdp: MDP, values: Array) -> float:
    """Size of values, or of rewards for the average criterion, to which a loss is compared."""
    size = np.abs(mdp.rewards_ if mdp.criterion == "average" else values).max(initial=0.0)
    return float(size) or 1.0


def finish(
    mdp: MDP, found: Bounds, tol: float, history: dict[str, list[float]], n_iter: int, advice: str
) -> PlanningSolution:
    """The solution with its certificate, and a warning when it does not hold."""
    loss = found.loss / scale_of(mdp, found.values)
    certificate = Certificate("loss of the policy", loss, tol, found.meaning.format(f"{loss:.1e}"))
    if not certificate.holds:
        warnings.warn(f"{certificate}; {advice}", ConvergenceWarning, stacklevel=3)
    return PlanningSolution(
        mdp=mdp,
        values=found.values,
        choice=found.choice,
        lower=found.lower,
        upper=found.upper,
        gain=found.gain,
        history=History(**history),
        certificate=certificate,
        n_iter=n_iter,
    )
