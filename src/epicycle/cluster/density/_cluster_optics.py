"""Clusters of a reachability plot: by one density, or by steep slopes.

On the plot, reachability in the order of OPTICS, clusters are valleys. With a steepness xi a point is steep downward if
r(i) (1 - xi) >= r(i + 1), and steep upward if r(i) <= r(i + 1) (1 - xi). A valley begins in a steep downward area, ends
in a steep upward one, and nothing between them rises to (1 - xi) of either (Ankerst et al. 1999, section 4.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError, ParameterError


def cluster_optics_dbscan(*, reachability: Any, core_distances: Any, ordering: Any, eps: float) -> np.ndarray:
    """Labels of DBSCAN with one radius from the results of OPTICS, in linear time.

    Parameters
    ----------
    reachability, core_distances, ordering : ndarray of shape (n_samples,)
        As :class:`OPTICS` has them.
    eps : float
        The radius, at most the `max_eps` of OPTICS. The fewer rows are at the border of a cluster, the closer the
        labels are to those of :class:`DBSCAN`.

    Returns
    -------
    ndarray of shape (n_samples,)
        The cluster of every row, -1 for noise.

    Examples
    --------
    >>> from epicycle import OPTICS
    >>> from epicycle.cluster import cluster_optics_dbscan
    >>> model = OPTICS(min_samples=2).fit([[1, 2], [2, 5], [3, 6], [8, 7], [8, 8], [7, 3]])
    >>> cluster_optics_dbscan(
    ...     reachability=model.reachability_,
    ...     core_distances=model.core_distances_,
    ...     ordering=model.ordering_,
    ...     eps=4.5,
    ... )
    array([0, 0, 0, 1, 1, 1])
    """
    if not eps >= 0:
        raise ParameterError(f"eps={eps!r:.60}; expected a number >= 0")
    reachability, core_distances, ordering = (np.asarray(a) for a in (reachability, core_distances, ordering))
    first = (reachability > eps) & (core_distances <= eps)  # a core row that none before it reaches
    labels = np.empty(len(ordering), dtype=np.intp)
    labels[ordering] = np.cumsum(first[ordering]) - 1
    labels[(reachability > eps) & (core_distances > eps)] = -1
    return labels


def cluster_optics_xi(
    *,
    reachability: Any,
    predecessor: Any,
    ordering: Any,
    min_samples: float,
    min_cluster_size: float | None = None,
    xi: float = 0.05,
    predecessor_correction: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """Valleys of the reachability plot between steep slopes.

    Parameters
    ----------
    reachability, predecessor, ordering : ndarray of shape (n_samples,)
        As :class:`OPTICS` has them.
    min_samples : int > 1 or float between 0 and 1
        As for OPTICS, a number of rows or a share of them: a steep area has no more points in a row that are not steep.
    min_cluster_size : int > 1 or float between 0 and 1, optional
        Fewest rows of a cluster; by default `min_samples`.
    xi : float, default=0.05
        Steepness, between 0 and 1.
    predecessor_correction : bool, default=True
        Whether rows at the end of a valley that were not reached from within it leave it.

    Returns
    -------
    labels : ndarray of shape (n_samples,)
        The smallest cluster of every row, -1 for none.
    clusters : ndarray of shape (n_clusters, 2)
        First and last place of every cluster in the order; those within another one come before it.

    Examples
    --------
    >>> from epicycle import OPTICS
    >>> from epicycle.cluster import cluster_optics_xi
    >>> model = OPTICS(min_samples=2).fit([[1, 2], [2, 5], [3, 6], [8, 7], [8, 8], [7, 3]])
    >>> labels, clusters = cluster_optics_xi(
    ...     reachability=model.reachability_, predecessor=model.predecessor_, ordering=model.ordering_, min_samples=2
    ... )
    >>> labels, clusters.tolist()
    (array([0, 0, 0, 1, 1, 1]), [[0, 2], [3, 5], [0, 5]])
    """
    reachability, predecessor, ordering = (np.asarray(a) for a in (reachability, predecessor, ordering))
    n = len(ordering)
    if not 0 <= xi <= 1:
        raise ParameterError(f"xi={xi!r:.60}; expected a number from 0 to 1")
    m = number_of_rows("min_samples", min_samples, n)
    size = m if min_cluster_size is None else number_of_rows("min_cluster_size", min_cluster_size, n)
    place = np.full(n + 1, -1)  # of every row in the order; the last is that of no predecessor
    place[ordering] = np.arange(n)
    plot = _Plot(reachability[ordering], place[predecessor[ordering]], float(xi), m)
    clusters = plot.clusters(size, predecessor_correction)
    labels = np.full(n, -1, dtype=np.intp)
    number = 0
    for start, end in clusters:  # the inner ones first: an outer one gives way
        if (labels[start : end + 1] == -1).all():
            labels[start : end + 1] = number
            number += 1
    by_row = np.empty_like(labels)
    by_row[ordering] = labels
    return by_row, np.array(clusters, dtype=np.intp).reshape(-1, 2) if clusters else np.array([])


def number_of_rows(name: str, given: float, n: int) -> int:
    """A number of rows that may be given as a share of all n."""
    if given > n:
        raise ParameterError(f"{name} must be no greater than the number of samples ({n}). Got {given}")
    if n < 2:
        raise DataError(f"X: n_samples = {n}; expected at least two rows")
    return max(2, int(given * n)) if given <= 1 else int(given)


@dataclass
class _Slope:
    """A steep downward area, and the highest point since its end."""

    start: int
    end: int
    highest: float = 0.0


class _Plot:
    """A reachability plot, closed by a point at infinity, so that a valley at its end has a slope too."""

    def __init__(self, reach: np.ndarray, predecessor: np.ndarray, xi: float, min_samples: int) -> None:
        self.r = np.append(reach, np.inf)
        self.predecessor, self.min_samples, self.rest = predecessor, min_samples, 1.0 - xi
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = self.r[:-1] / self.r[1:]
            self.steep_down, self.steep_up = ratio >= 1 / np.float64(self.rest), ratio <= self.rest
        self.down, self.up = ratio > 1, ratio < 1

    def clusters(self, size: int, correct: bool) -> list[tuple[int, int]]:
        """(first, last) place of every valley, inner ones before those around them."""
        slopes: list[_Slope] = []
        found: list[tuple[int, int]] = []
        at, highest = 0, 0.0
        for steep in np.flatnonzero(self.steep_down | self.steep_up).tolist():
            if steep < at:
                continue  # within an area that is done
            highest = max(highest, float(self.r[at : steep + 1].max()))
            slopes = self._still_open(slopes, highest)
            if self.steep_down[steep]:
                end = self._extent(self.steep_down, self.up, steep)
                slopes.append(_Slope(steep, end))
            else:
                end = self._extent(self.steep_up, self.down, steep)
                valleys = [self._valley(slope, steep, end, size, correct) for slope in slopes]
                found += [valley for valley in reversed(valleys) if valley is not None]
            at, highest = end + 1, float(self.r[end + 1])
        return found

    def _extent(self, steep: np.ndarray, opposite: np.ndarray, start: int) -> int:
        """Last steep point of an area: no point of it goes the other way, and flat stretches are short."""
        end, flat = start, 0
        for i in range(start, len(steep)):
            if steep[i]:
                end, flat = i, 0
            elif opposite[i]:
                break
            else:
                flat += 1
                if flat > self.min_samples:
                    break
        return end

    def _still_open(self, slopes: list[_Slope], highest: float) -> list[_Slope]:
        """Slopes that begin well above all that came since."""
        if np.isinf(highest):
            return []
        kept = [slope for slope in slopes if highest <= self.r[slope.start] * self.rest]
        for slope in kept:
            slope.highest = max(slope.highest, highest)
        return kept

    def _valley(self, slope: _Slope, up: int, end: int, size: int, correct: bool) -> tuple[int, int] | None:
        """The valley from a slope down to the slope up that begins at `up` and ends at `end`."""
        start, left, right = slope.start, self.r[slope.start], self.r[end + 1]
        if right * self.rest < slope.highest:
            return None
        if left * self.rest >= right:  # begins higher than it ends: its start moves down
            while start < slope.end and self.r[start + 1] > right:
                start += 1
        elif right * self.rest >= left:  # ends higher than it begins: its end moves down
            while end > up and self.r[end - 1] > left:
                end -= 1
        if correct:
            end = self._corrected(start, end)
        inside = start < end if correct else True
        if not inside or end - start + 1 < size or start > slope.end or end < up:
            return None
        return start, end

    def _corrected(self, start: int, end: int) -> int:
        """The last place from `end` backwards that lies below the start or was reached from within."""
        while start < end and not (self.r[start] > self.r[end] or start <= self.predecessor[end] < end):
            end -= 1
        return end
