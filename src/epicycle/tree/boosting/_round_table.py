"""The table of rounds that `verbose` prints, in the layout that scikit-learn's users know."""

from __future__ import annotations

import sys
import time

from epicycle.tree.boosting._boosting import Boosting, Round


class RoundTable:
    """Lines on standard output: the round, the training loss, the out-of-bag improvement, and the time that remains.

    Parameters
    ----------
    first, last : int
        Rounds before this fit, and rounds at its end.
    boosting : Boosting
        Says the units of the loss, and whether rounds have an out-of-bag improvement.
    level : int
        0 prints nothing, 2 all rounds; 1 after 10 rounds every tenth, after 100 every hundredth, and so on.
    """

    def __init__(self, first: int, last: int, boosting: Boosting, level: int) -> None:
        self.first, self.last, self.level = first, last, level
        self._step, self._began = 1, time.monotonic()
        self._factor = boosting.loss.deviance_factor
        if level:
            titles = ["Train Loss", *(["OOB Improve"] if boosting.has_left_out else []), "Remaining Time"]
            _write("Iter", *titles)

    def add(self, done: int, added: Round) -> None:
        """Print the line of round `done`, counted from 1."""
        here = done - self.first
        if not self.level or here % self._step:
            return
        fall = [] if added.left_out is None else [added.left_out[0] - added.left_out[1]]
        left = (self.last - done) * (time.monotonic() - self._began) / here
        remaining = f"{left / 60:.2f}m" if left > 60 else f"{left:.2f}s"
        _write(str(done), *(f"{self._factor * value:.4f}" for value in (added.loss, *fall)), remaining)
        if self.level == 1 and here // (10 * self._step) > 0:
            self._step *= 10


def _write(first: str, *others: str) -> None:
    sys.stdout.write(" ".join([f"{first:>10}", *(f"{text:>16}" for text in others)]) + "\n")
