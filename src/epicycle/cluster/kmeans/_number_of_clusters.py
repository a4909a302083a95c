"""Number of clusters: bend of the distortion over k, gap statistic of Tibshirani, Walther and Hastie (2001).

Rows without clusters in p dimensions have  J(k) = J(1) k^(-2/p)  about, a straight line of log J over log k; k clusters
bend it downwards before k and straighten it after. The gap compares log J with its mean over draws without clusters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._plot_style import COLOURS, Axes, axes_of, band, styled
from epicycle.core._random import stream

#: The line has to fall this much faster before a bend than after it.
CLEAR = 2.0
#: What is below this share of J(1) is rounding.
_FLOOR = 1e-12


@dataclass(frozen=True)
class Elbow:
    """Distortions over k, and where they bend.

    Parameters
    ----------
    k : ndarray of int
        Numbers of clusters, in order.
    distortion : ndarray
        J of the best clustering found for each.
    n_clusters : int
        The k at the bend.
    clear : bool
        Whether the line of log J over log k falls more than twice as fast just before the bend as just after it.
    reason : str
        Why this k, in words.
    """

    k: np.ndarray
    distortion: np.ndarray
    n_clusters: int
    clear: bool
    reason: str

    @styled
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw J over k with the bend."""
        ax = axes_of(ax)
        ax.plot(self.k, self.distortion, marker="o", ms=4, label="distortion J")
        at = int(np.flatnonzero(self.k == self.n_clusters)[0])
        name = f"bend at {self.n_clusters}" if self.clear else f"{self.n_clusters}, no clear bend"
        ax.plot(
            self.n_clusters, self.distortion[at], "o", ms=10, mfc="none", mec=COLOURS["vermilion"], mew=2, label=name
        )
        ax.set(xlabel="number of clusters k", ylabel="J", ylim=(0, None))
        ax.locator_params(axis="x", integer=True)
        ax.legend()
        return ax


@dataclass(frozen=True)
class GapStatistic:
    """log J over k against its mean over draws without clusters.

    Parameters
    ----------
    k : ndarray of int
        Numbers of clusters, in order.
    gap : ndarray
        Mean of log J over the draws, less log J of the rows.
    error : ndarray
        Standard deviation over the draws times sqrt(1 + 1 / draws).
    n_clusters : int
        The least k whose gap is at least that of the next k less its error; the k of the largest gap where there is
        none.
    found : bool
        Whether a k keeps that rule.
    reason : str
        Why this k, in words.
    """

    k: np.ndarray
    gap: np.ndarray
    error: np.ndarray
    n_clusters: int
    found: bool
    reason: str

    @styled
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the gap over k with its errors."""
        ax = axes_of(ax)
        band(ax, self.k, self.gap, self.error, colour="blue", label="gap and its error")
        ax.axvline(self.n_clusters, color=COLOURS["vermilion"], ls="--", label=f"chosen: {self.n_clusters}")
        ax.set(xlabel="number of clusters k", ylabel="gap")
        ax.locator_params(axis="x", integer=True)
        ax.legend()
        return ax


def checked_range(k: Any) -> np.ndarray:
    """Numbers of clusters: distinct, in order; an integer stands for 1, ..., k."""
    values = np.arange(1, int(k) + 1) if isinstance(k, int | np.integer) else np.unique(np.asarray(list(k)))
    if values.dtype.kind not in "iu" or len(values) < 3 or values[0] < 1:
        raise ParameterError(f"k={k!r}; expected an integer of at least 3 or at least three integers from 1 on")
    return values


def elbow_of(k: np.ndarray, distortion: Any) -> Elbow:
    """The bend of distortions over k."""
    J = np.minimum.accumulate(np.asarray(distortion, dtype=np.float64))  # more centres are never worse than fewer
    if J[0] == 0:
        return Elbow(k, J, int(k[0]), True, f"all rows lie on {k[0]} centers: J is 0")
    log_J = np.log(np.maximum(J, _FLOOR * J[0]))
    slope = -np.diff(log_J) / np.diff(np.log(k))
    bend = slope[:-1] - slope[1:]
    at = int(np.argmax(bend))
    before, after, chosen = float(slope[at]), float(slope[at + 1]), int(k[at + 1])
    clear = before > CLEAR * after and before > 0
    share, rest = 1 - J[at + 1] / J[0], (J[at + 1] - J[-1]) / J[0]
    reason = (
        f"J falls like k^-{before:.2f} from k={k[at]} to {chosen} and like k^-{after:.2f} from there to {k[at + 2]}; "
        f"{chosen} clusters explain {share:.0%} of J at k={k[0]}, all further ones up to {k[-1]} another {rest:.0%}"
    )
    return Elbow(k, J, chosen, clear, reason if clear else f"no clear bend: {reason}")


def gap_of(
    k: np.ndarray, rows: np.ndarray, distortions: Callable[[Any, str], np.ndarray], draws: int, seed: int, box: str
) -> GapStatistic:
    """The gap statistic; `distortions(rows, name)` gives J for all k."""
    observed = distortions(rows, "rows")
    if not (observed > 0).all():
        zero = int(k[np.flatnonzero(observed == 0)[0]])
        raise DataError(f"J is 0 for {zero} clusters, so that it has no logarithm; expected fewer clusters in k={k}")
    logs = np.log([distortions(drawn(rows, seed, b, box), f"draw {b}") for b in range(draws)])
    gap = logs.mean(axis=0) - np.log(observed)
    error = logs.std(axis=0) * np.sqrt(1 + 1 / draws)
    kept = np.flatnonzero(gap[:-1] >= gap[1:] - error[1:])
    found = len(kept) > 0
    at = int(kept[0]) if found else int(np.argmax(gap))
    if found:
        reason = (
            f"{k[at]} is the least k whose gap, {gap[at]:.3g}, is at least that of k={k[at + 1]}, {gap[at + 1]:.3g}, "
            f"less its error {error[at + 1]:.2g}"
        )
    else:
        reason = f"the gap grows by more than its error up to k={k[-1]}; the largest is {gap[at]:.3g} at {k[at]}"
    return GapStatistic(k, gap, error, int(k[at]), found, reason)


def drawn(rows: np.ndarray, seed: int, number: int, box: str) -> np.ndarray:
    """As many rows, uniform in the box around the rows along their principal axes or along the features."""
    mean = rows.mean(axis=0)
    about = rows - mean
    axes = np.linalg.svd(about, full_matrices=False)[2] if box == "principal" else np.eye(rows.shape[1])
    scores = about @ axes.T
    low, high = scores.min(axis=0), scores.max(axis=0)
    return np.asarray(stream(seed, "reference", number).uniform(low, high, size=(len(rows), len(low))) @ axes + mean)
