"""`BanditResult`: rewards and regret of many runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epicycle.core._docs import documented
from epicycle.core._plot_style import Axes, axes_of, styled

Array = np.ndarray


@documented({})
@dataclass(frozen=True)
class BanditResult:
    """Rewards and regret of a strategy, step by step.

    Attributes
    ----------
    rewards : array (runs, steps)
        Rewards.
    regret : array (runs, steps)
        Sum up to each step of what the best arm would have earned more, in expectation.
    optimal : array (steps,)
        Share of the runs in which the best arm was chosen.
    """

    rewards: Array = field(repr=False)
    regret: Array = field(repr=False)
    optimal: Array = field(repr=False)

    @property
    def mean_reward(self) -> Array:
        """Mean reward of each step over the runs."""
        return np.asarray(self.rewards.mean(axis=0))

    @styled
    def plot(self, what: str = "regret", *, ax: Axes | None = None, **line: Any) -> Axes:
        """Draw the mean regret with its standard error, the mean reward or the share of the best arm by step.

        Parameters
        ----------
        what : {"regret", "mean_reward", "optimal"}, default="regret"
            What is drawn.
        **line
            Passed on to matplotlib.
        """
        ax = axes_of(ax)
        curve = self.regret.mean(axis=0) if what == "regret" else getattr(self, what)
        steps = np.arange(1, len(curve) + 1)
        drawn = ax.plot(steps, curve, **line)[0]
        if what == "regret" and len(self.regret) > 1:
            error = self.regret.std(axis=0, ddof=1) / np.sqrt(len(self.regret))
            ax.fill_between(steps, curve - error, curve + error, color=drawn.get_color(), alpha=0.18, lw=0)
        ax.set_xlabel("step")
        ax.set_ylabel({"regret": "regret", "mean_reward": "mean reward"}.get(what, "share of the best arm"))
        return ax
