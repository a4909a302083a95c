"""What an evaluation on a stream gives back: the total error, and the curve that led to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from epicycle.core._optional import optional_import
from epicycle.core._plot_style import axes_of, styled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["Curve", "OnlineEvaluation"]


@dataclass
class OnlineEvaluation:
    """The predict-then-learn error of a model on a stream.

    Attributes
    ----------
    metric : str
        What was measured on every row.
    n_rows : int
        Rows of the stream.
    n_scored : int
        Rows that were predicted before they were learnt: all, less those that came before there was a model.
    total_error : float
        Sum of the losses over the scored rows; for the error of classification the number of mistakes.
    rows : ndarray
        Scored rows up to each point of the curve.
    cumulative : ndarray
        Mean loss of all rows up to there.
    windowed : ndarray
        Mean loss of the rows since the point before.
    seconds : float
        Time of the whole run.
    model : object
        The model, which has learnt the stream.
    """

    metric: str
    model: Any
    n_rows: int = 0
    n_scored: int = 0
    total_error: float = 0.0
    seconds: float = 0.0
    rows: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    cumulative: np.ndarray = field(default_factory=lambda: np.zeros(0))
    windowed: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def mean_error(self) -> float:
        """Mean loss of the scored rows; nan without any."""
        return self.total_error / self.n_scored if self.n_scored else float("nan")

    @property
    def n_mistakes(self) -> int:
        """Number of wrong labels, where that is what was measured."""
        if self.metric != "error":
            raise AttributeError(f"n_mistakes: the metric was {self.metric!r}, which counts none")
        return round(self.total_error)

    def to_frame(self) -> pd.DataFrame:
        """The curve as a pandas DataFrame: rows, cumulative, windowed."""
        pd = optional_import("pandas", "OnlineEvaluation.to_frame")
        return pd.DataFrame({"rows": self.rows, "cumulative": self.cumulative, "windowed": self.windowed})

    @styled
    def plot(self, *, ax: Axes | None = None, label: str | None = None, **line: Any) -> Axes:
        """Draw the mean loss up to each row, and that of each window as a fainter line."""
        ax = axes_of(ax)
        (drawn,) = ax.plot(self.rows, self.cumulative, label=label or type(self.model).__name__, **line)
        ax.plot(self.rows, self.windowed, color=drawn.get_color(), alpha=0.35, lw=1)
        ax.set(xlabel="rows of the stream", ylabel=f"mean {self.metric.replace('_', ' ')}")
        return ax

    def __repr__(self) -> str:
        left = self.n_rows - self.n_scored
        unscored = f" ({left} came before there was a model)" if left else ""
        return (
            f"OnlineEvaluation({type(self.model).__name__}: {self.metric} {self.mean_error:.4g} on {self.n_scored} "
            f"rows{unscored}, total {self.total_error:.6g}, {self.seconds:.3g} s)"
        )


class Curve:
    """Losses added up, with a point after every `window` rows."""

    def __init__(self, window: int) -> None:
        self.window, self.n, self.total = window, 0, 0.0
        self._sums: list[float] = []
        self._left: list[np.ndarray] = []
        self._waiting = 0

    @property
    def mean(self) -> float:
        return self.total / self.n if self.n else float("nan")

    def add(self, losses: np.ndarray) -> None:
        self.n += len(losses)
        self.total += float(losses.sum())
        self._left.append(losses)
        self._waiting += len(losses)
        if self._waiting < self.window:
            return
        rest = np.concatenate(self._left)
        whole = len(rest) // self.window
        self._sums += rest[: whole * self.window].reshape(whole, self.window).sum(axis=1).tolist()
        self._left, self._waiting = [rest[whole * self.window :]], len(rest) - whole * self.window

    def points(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        sums, counts = list(self._sums), [self.window] * len(self._sums)
        if self._waiting:
            sums.append(float(np.concatenate(self._left).sum()))
            counts.append(self._waiting)
        rows = np.cumsum(np.array(counts, dtype=np.int64))
        return rows, np.cumsum(sums) / np.maximum(rows, 1), np.array(sums) / np.maximum(counts, 1)
