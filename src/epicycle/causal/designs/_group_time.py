r"""Effects by the time a group is first treated and by calendar time (Callaway and Sant'Anna 2021).

    ATT(g, t) = E[Y_t - Y_{g-1-a} | first treated at g] - E[Y_t - Y_{g-1-a} | comparison]

Every average of these is a mean over units up to higher order: Psi holds the influence of each unit, and the variance
of an estimate is sum_i Psi_i^2 / n^2, with sums over clusters in its place where units depend on each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from epicycle.core._exceptions import DataError

Array = np.ndarray


@dataclass(frozen=True)
class GroupTime:
    """ATT(g, t) with groups g and times t, and the influences of the units, of shape (units, pairs)."""

    group: Array
    time: Array
    effect: Array
    influence: Array
    size: Array

    @property
    def event(self) -> Array:
        """Time since treatment began."""
        return np.asarray(self.time - self.group)


#: (change, treated, comparison, base time, weights) to (effect, influences of the units).
Trends = Callable[[Array, Array, Array, int, Array], tuple[float, Array]]


def _small(members: Array, cluster: Array | None, weight: Array) -> float:
    """Factor that makes the variance of a mean over few units, or clusters of them, unbiased."""
    count = float(weight[members].sum()) if cluster is None else float(len(np.unique(cluster[members])))
    return float(np.sqrt(count / (count - 1))) if count > 1 else 1.0


def plain_trends(cluster: Array | None) -> Trends:
    """The difference of mean changes."""

    def compare(change: Array, mine: Array, others: Array, _base: int, weight: Array) -> tuple[float, Array]:
        influence = np.zeros(len(change))
        means = []
        for members, sign in ((mine, 1.0), (others, -1.0)):
            w = weight[members]
            mean = float(w @ change[members]) / float(w.sum())
            share = float(w.sum()) / float(weight.sum())
            influence[members] += sign * (change[members] - mean) / share * _small(members, cluster, weight)
            means.append(mean)
        return means[0] - means[1], influence

    return compare


def group_time_effects(
    Y: Array, start: Array, comparison: str, anticipation: int, trends: Trends, weight: Array
) -> GroupTime:
    """All ATT(g, t) of a table of units and times; a unit of weight 2 is two units."""
    T = Y.shape[1]
    groups = [g for g in map(int, np.unique(start)) if g < T and g - 1 - anticipation >= 0]
    if not groups:
        raise DataError("treatment: no unit is seen before its treatment begins; expected times before it")
    rows: list[tuple[int, int, float, Array, float]] = []
    for g in groups:
        base = g - 1 - anticipation
        mine = start == g
        for t in range(T):
            if t == base:
                continue
            others = start == T if comparison == "never" else (start > max(t, base) + anticipation) & ~mine
            if not others.any():
                if comparison == "never":
                    raise DataError("treatment: every unit is treated in the end; expected comparison='not_yet'")
                continue
            effect, influence = trends(Y[:, t] - Y[:, base], mine, others, base, weight)
            rows.append((g, t, effect, influence, float(weight[mine].sum())))
    if not any(t >= g for g, t, *_ in rows):
        raise DataError("treatment: no group has units to compare it with after its treatment; expected some untreated")
    group, time, effects, influences, size = zip(*rows, strict=True)
    return GroupTime(np.array(group), np.array(time), np.array(effects), np.column_stack(influences), np.array(size))


def averaged(found: GroupTime, chosen: Array, start: Array, weight: Array) -> tuple[float, Array]:
    """Mean of chosen ATT(g, t), weighted by the sizes of the groups, with its influence; the weights are estimated."""
    share = found.size[chosen] / weight.sum()
    total = share.sum()
    of_group = share / total
    value = float(of_group @ found.effect[chosen])
    member = (start[:, None] == found.group[chosen][None, :]) - share
    of_weights = (member / total) @ (found.effect[chosen] - value)
    return value, found.influence[:, chosen] @ of_group + of_weights


def covariance_of(influence: Array, cluster: Array | None, weight: Array) -> Array:
    """Covariance of means from influences."""
    parts, copies = _independent(influence, cluster, weight)
    return np.asarray(parts.T @ (parts * copies[:, None]) / float(weight.sum()) ** 2)


def degrees_of(influence: Array, cluster: Array | None, weight: Array) -> Array:
    """Degrees of freedom of the variances of means (Satterthwaite): few, where few units have most of the influence.

    A variance is the sum of squares q of independent parts, and has itself the variance sum (q - mean q)^2.
    """
    parts, copies = _independent(influence, cluster, weight)
    largest = np.abs(parts).max(axis=0)
    q, n = (parts / np.where(largest > 0, largest, 1.0)) ** 2, float(copies.sum())
    total = copies @ q
    error = copies @ (q - total / n) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        found = 2 * total**2 / error
    return np.asarray(np.clip(np.nan_to_num(found, nan=n), 1.0, max(n - 1, 1.0)))


def _independent(influence: Array, cluster: Array | None, weight: Array) -> tuple[Array, Array]:
    """(influences of independent parts, how many there are of each): units, or clusters of them."""
    if cluster is None:
        if len(influence) < 2:
            raise DataError("unit: there is one alone; expected at least two")
        return influence, weight
    sums = np.zeros((int(cluster.max()) + 1, influence.shape[1]))
    np.add.at(sums, cluster, influence * weight[:, None])
    if len(sums) < 2:
        raise DataError("clusters: there is one alone; expected at least two")
    return sums, np.ones(len(sums))
