"""Working sets: minimise a sparse problem over a few columns at a time, until the duality gap over all is small.

Each round looks at all columns (gap, gap-safe screening), then minimises over a working set: the support and the
columns whose dual constraints are nearest to being active (Massias, Gramfort and Salmon 2018). The problem is handed in
as an object: how to look, and how to minimise over given columns, differ from loss to loss; the loop does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Gap over the working set that ends a round, relative to that over all columns: below it the columns outside of the
#: set decide. A tenth of it after every round that halved the gap less than once, down to the least.
INNER_ACCURACY, LEAST_INNER_ACCURACY = 0.03, 1e-8
#: The same where the working set turned out to be too small: its minimum is not worth the digits.
ROUGH_ACCURACY = 0.3
#: Share of the tolerance below which the gap over a working set need not go.
ENOUGH_OF_TOLERANCE = 0.3
#: A round that lowers the gap by less than this share has stalled.
LEAST_GAIN = 1e-3
#: Rounds over all columns that are left, in a row, that do not lower the objective: rounding is all that there is.
IDLE_ROUNDS = 3

EPS = float(np.finfo(np.float64).eps)

#: (iteration, point, objective, columns of the history) -> whether to stop.
Report = Callable[..., bool]


@dataclass(frozen=True)
class Sizes:
    """Sizes of working sets, and the patience of the loop.

    first : the smallest set.
    growth : largest number of columns beyond the support.
    saturation : share of the new columns that come into use at which the set was too small, and the next is four times
        the support; None never concludes that.
    stalls : rounds without gain after which the loop gives up.
    """

    first: int
    growth: int
    saturation: float | None = None
    stalls: int = 20


@dataclass(slots=True)
class Look:
    """One look at all columns.

    point : the parameters.
    objective, gap : the objective, and its distance from the dual point at hand.
    lower : the dual value, a lower bound of the minimum.
    scale : the tolerance is relative to this.
    score : priority of every column, the lowest first; inf for columns that were screened out.
    left : columns that were not.
    support : columns in use.
    """

    point: Array
    objective: float
    gap: float
    lower: float
    scale: float
    score: Array
    left: int
    support: int


class WorkingSetProblem(Protocol):
    """A problem as the loop sees it."""

    #: Factor of the objective between the problem's own units and those of the caller.
    unit: float
    #: Share of the objective that rounding hides.
    rounding: float
    #: Whether the gap over a working set is that of the whole problem but for the other columns.
    inner_gap_counts: bool

    def look(self) -> Look:
        """Bring correlations up to date, take the gap over all columns, screen."""

    def minimise_over(self, columns: NDArray[np.intp], target: float) -> None:
        """Lower the objective over these columns until their own gap is at most `target`."""


@dataclass(frozen=True)
class Outcome:
    """The end of a minimisation: the gap is that between `objective` and the best dual value found."""

    x: Array
    objective: float
    gap: float
    n_rounds: int
    reason: str


def minimise_by_working_sets(
    problem: WorkingSetProblem, sizes: Sizes, *, tol: float, max_rounds: int, report: Report | None = None
) -> Outcome:
    """Minimise until the gap is at most `tol` times the scale of the problem.

    Parameters
    ----------
    problem : WorkingSetProblem
        Holds the point, and is left at the minimum.
    sizes : Sizes
    tol : float
    max_rounds : int
    report : callable, optional
        Called after every look; a true answer ends the loop.

    Returns
    -------
    Outcome
        Its reason is "converged", "stopped", "max_iter" or "stalled": the gap falls no more, or only its rounding is
        left.
    """
    lower, last, accuracy, least = -np.inf, np.inf, INNER_ACCURACY, np.inf
    size = worked_on = stalled = support = done = idle = 0
    while True:
        look = problem.look()
        lower = max(lower, look.lower)
        # Any dual value seen bounds the minimum, and an older one may be the best.
        gap = min(look.gap, max(look.objective - lower, problem.rounding * look.objective))
        columns = {"gap": problem.unit * gap, "working_set": float(worked_on), "not_screened": float(look.left)}
        stop = report is not None and report(done + 1, look.point, problem.unit * look.objective, **columns)
        stalled = stalled + 1 if gap >= last * (1 - LEAST_GAIN) else 0
        idle = idle + 1 if stalled and worked_on >= look.left and not look.objective < least else 0
        least = min(least, look.objective)
        ends = {
            "converged": gap <= tol * look.scale,
            "stopped": stop,
            "max_iter": done == max_rounds,
            "stalled": stalled >= sizes.stalls or idle >= IDLE_ROUNDS or gap <= 2 * EPS * abs(look.objective),
        }
        if reason := next((name for name, true in ends.items() if true), ""):
            return Outcome(look.point.copy(), problem.unit * look.objective, problem.unit * gap, done, reason)
        new, used, support = worked_on - support, look.support - support, look.support
        saturated = sizes.saturation is not None and (done == 0 or (new > 0 and used >= sizes.saturation * new))
        slow = gap > 0.5 * last and not saturated
        if slow:
            accuracy = max(accuracy * 0.1, LEAST_INNER_ACCURACY)
        else:
            accuracy = ROUGH_ACCURACY if saturated else INNER_ACCURACY
        last = min(gap, last)
        present = np.flatnonzero(look.score < np.inf)
        if saturated:
            size = max(4 * support, sizes.first)
        else:
            size = max(support + min(max(support, sizes.first), sizes.growth), 2 * size if slow else 0)
        size = min(size, len(present))
        if size < len(present):
            present = np.sort(present[np.argpartition(look.score[present], size)[:size]])
        worked_on = len(present)
        enough = ENOUGH_OF_TOLERANCE * tol * look.scale if problem.inner_gap_counts else 0.0
        problem.minimise_over(present, max(accuracy * gap, enough))
        done += 1
