"""Clusters of a hierarchy of density: the condensed tree, the stability of its clusters, and which of them are taken.

With lambda = 1 / distance, a cluster is born at one lambda, rows leave it at others, and its stability is

    S = sum over its rows of (lambda at which the row leaves - lambda at the birth of the cluster).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from epicycle import _native
from epicycle.cluster.density._hierarchy import Dendrogram


@dataclass(frozen=True)
class Selection:
    """Rules by which clusters are taken from the tree."""

    method: str
    single: bool
    epsilon: float
    largest: int | None


@dataclass
class CondensedTree:
    """Rows (parent, child, lambda, size): child leaves parent at lambda; nodes below `root` are rows of the table."""

    parent: np.ndarray
    child: np.ndarray
    value: np.ndarray
    size: np.ndarray
    root: int
    above: dict[int, int] = field(default_factory=dict)  # the parent of each cluster
    below: dict[int, list[int]] = field(default_factory=dict)  # its children
    birth: dict[int, float] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: Dendrogram, least_size: int) -> CondensedTree:
        parent, child, value, size = _native.cluster.condense(*tree.arrays, least_size)
        made = cls(parent, child, value, size, len(tree.value) + 1)
        made.below = {c: [] for c in range(made.root, int(parent.max(initial=made.root)) + 1)}
        for row in np.flatnonzero(child >= made.root):
            up, down = int(parent[row]), int(child[row])
            made.below.setdefault(up, []).append(down)
            made.below.setdefault(down, [])
            made.above[down], made.birth[down], made.sizes[down] = up, float(value[row]), int(size[row])
        return made

    def stabilities(self) -> dict[int, float]:
        """S of every cluster."""
        clusters = len(self.below)
        births = np.zeros(clusters)
        for cluster, at in self.birth.items():
            births[cluster - self.root] = at
        own = self.parent - self.root
        total = np.zeros(clusters)
        with np.errstate(invalid="ignore"):  # a cluster of equal rows is born at infinity
            np.add.at(total, own, (self.value - births[own]) * self.size)
        return {self.root + c: float(total[c]) for c in range(clusters)}

    def selected(self, how: Selection) -> set[int]:
        """The clusters that are taken."""
        found = self._leaves() if how.method == "leaf" else self._excess_of_mass(how)
        if how.epsilon == 0.0 or len(self.below) == 1:
            return found
        return found if found == {self.root} else self._coarser(found, how)

    def _leaves(self) -> set[int]:
        return {cluster for cluster, children in self.below.items() if not children and cluster != self.root}

    def _excess_of_mass(self, how: Selection) -> set[int]:
        stability = self.stabilities()
        sizes = {**self.sizes, self.root: sum(self.sizes[c] for c in self.below[self.root])}
        most = np.inf if how.largest is None else how.largest
        nodes = sorted(self.below, reverse=True)  # children before their parents
        taken = set()
        for node in nodes if how.single else nodes[:-1]:
            inner = float(np.sum([stability[child] for child in self.below[node]]))
            if inner > stability[node] or sizes[node] > most:
                stability[node] = inner
            else:
                taken.add(node)
        # Of clusters within each other the outermost.
        inside: set[int] = set()
        for node in sorted(self.below):
            if node != self.root and (self.above[node] in taken or self.above[node] in inside):
                inside.add(node)
        return taken - inside

    def _coarser(self, found: set[int], how: Selection) -> set[int]:
        """Clusters that are born at a distance below epsilon give way to the one above that is not."""
        result: set[int] = set()
        for cluster in sorted(found):
            node = cluster
            if self._distance(node) < how.epsilon:
                while True:
                    up = self.above[node]
                    if up == self.root:
                        node = up if how.single else node
                        break
                    node = up
                    if self._distance(node) > how.epsilon:
                        break
            result.add(node)
        # What lies within another one has been taken along.
        return {cluster for cluster in result if not self._ancestors(cluster) & result}

    def _ancestors(self, cluster: int) -> set[int]:
        found = set()
        while cluster != self.root:
            cluster = self.above[cluster]
            found.add(cluster)
        return found

    def _distance(self, cluster: int) -> float:
        """At which the cluster is born."""
        at = self.birth.get(cluster, 0.0)
        return 1 / at if at > 0 else np.inf

    def labels(self, taken: set[int], how: Selection) -> tuple[np.ndarray, np.ndarray]:
        """(labels, strengths) of the rows: 1 for those that stay in a cluster to its end."""
        number = {cluster: label for label, cluster in enumerate(sorted(taken))}
        top = {self.root: self.root}
        for node in sorted(self.below):
            if node != self.root:
                top[node] = node if node in taken else top[self.above[node]]
        rows = self.child < self.root
        at, row = self.value[rows], self.child[rows]
        clusters = np.array([top[c] for c in range(self.root, self.root + len(self.below))])
        numbers = np.array([number.get(c, -1) for c in range(self.root, self.root + len(self.below))])
        cluster = clusters[self.parent[rows] - self.root]
        label = numbers[cluster - self.root]
        if self.root in taken:  # alone: its rows are those that stay beyond a threshold
            last = 1 / how.epsilon if how.epsilon != 0.0 else self.value[self.parent == self.root].max()
            label[(cluster == self.root) & (at < last)] = -1
        deaths = np.zeros(len(self.below))
        np.maximum.at(deaths, self.parent - self.root, self.value)
        death = deaths[cluster - self.root]
        with np.errstate(invalid="ignore", divide="ignore"):
            strength = np.where((death == 0.0) | np.isinf(at), 1.0, np.minimum(at, death) / death)
        labels, strengths = np.empty(self.root, dtype=np.intp), np.empty(self.root)
        labels[row], strengths[row] = label, np.where(label < 0, 0.0, strength)
        return labels, strengths
