"""Bisecting k-means: the cluster with the largest distortion, or weight, is split in two until there are k."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle import engine
from epicycle.cluster._descent import Descent, Run, require_no_rise
from epicycle.cluster._empty import warn_of_empty
from epicycle.cluster.kmeans._base import CenterModel, blockwise_distances
from epicycle.cluster.kmeans._lloyd import Lloyd, MemoryAssigner, nearest
from epicycle.cluster.kmeans._spread import spread_of
from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._monitor import Monitor
from epicycle.core._parameters import AnyOf, Boolean, Callable, Choice, Domain, Real
from epicycle.core._random import seed_of
from epicycle.core._solution import Solution
from epicycle.core._threads import n_threads
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData, Batch
from epicycle.engine._row_order import row_hashes


@dataclass
class Node:
    """A cluster: its centre, its rows, its distortion and weight, and the two that it was split into."""

    center: np.ndarray
    rows: np.ndarray
    value: float
    weight: float
    children: tuple[int, int] = (-1, -1)


@dataclass
class Tree:
    """All clusters, those that are not split, and the largest movement at the end of a split."""

    nodes: list[Node]
    leaves: list[int]
    moved: float

    @staticmethod
    def of_all(data: ArrayData, mean: np.ndarray) -> Tree:
        return Tree([_node(data, np.arange(data.n_rows), mean)], [0], 0.0)

    @staticmethod
    def resumed(data: ArrayData, state: Mapping[str, Any]) -> Tree:
        centers, children, leaf = (np.asarray(state[name]) for name in ("centers", "children", "leaf"))
        nodes = [_node(data, np.flatnonzero(leaf == number), center) for number, center in enumerate(centers)]
        for node, (left, right) in zip(nodes, children.tolist(), strict=True):
            node.children = (left, right)
        return Tree(nodes, np.asarray(state["leaves"]).tolist(), float(state["moved"]))

    def state(self, seed: int) -> Mapping[str, Any]:
        """All that is needed to go on from here."""
        leaf = np.zeros(sum(len(self.nodes[number].rows) for number in self.leaves), dtype=np.int64)
        for number in self.leaves:
            leaf[self.nodes[number].rows] = number
        return {
            "seed": seed,
            "centers": np.stack([node.center for node in self.nodes]),
            "children": np.array([node.children for node in self.nodes]),
            "leaf": leaf,
            "leaves": np.array(self.leaves),
            "moved": self.moved,
        }

    def value(self) -> float:
        return sum(self.nodes[leaf].value for leaf in self.leaves)

    def split(self, number: int, parts: list[Node], moved: float) -> None:
        """Put two clusters in the place of one, whose rows are forgotten."""
        self.nodes[number].children = (len(self.nodes), len(self.nodes) + 1)
        self.nodes[number].rows = np.zeros(0, dtype=np.int64)
        self.leaves = [leaf for leaf in self.leaves if leaf != number] + list(self.nodes[number].children)
        self.nodes += parts
        self.moved = max(self.moved, moved)


class BisectingKMeans(CenterModel):
    r"""Clusters by splitting one cluster in two, again and again.

    The cluster with the largest distortion, or the largest weight, is split by k-means with two centres, until there
    are `n_clusters`. New rows go down the tree of splits, each time to the nearer of two centres. The distortion

    .. math:: J = \sum_i v_i \| x_i - c_{a(i)} \|^2

    falls with every split. Where no cluster has two different rows the others stay empty, with a warning.

    Parameters
    ----------
    init : {"random", "k-means++"} or callable, default="random"
        First centres of a split: rows at random, rows drawn far from each other, or what
        ``init(X, 2, random_state)`` returns for the rows of the cluster.
    n_init : int, default=1
        Starts of a split, of which the best is kept.
    tol : float, default=1e-4
        A split ends when the squared movement of its centres is at most `tol` times the mean variance of a feature
        among its rows.
    algorithm : {"lloyd", "elkan", "hamerly", "yinyang", "auto"}, default="lloyd"
        Bounds kept for every row, as in :class:`KMeans`. The result is the same.
    bisecting_strategy : {"biggest_inertia", "largest_cluster"}, default="biggest_inertia"
        Which cluster is split next: the one with the largest distortion or with the largest weight.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    labels_ : ndarray of shape (n_samples,)
        The cluster of every row.
    inertia_ : float
        J.
    certificate_ : Certificate
        Stationarity of the splits: how far the centres of any of them still moved.
    history_ : History
        J after every split, and the weight of the cluster that was split; J never rises.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import BisectingKMeans
    >>> X = np.array([[1.0, 1], [10, 1], [3, 1], [10, 0], [2, 1], [10, 2], [10, 8], [10, 9], [10, 10]])
    >>> model = BisectingKMeans(n_clusters=3, random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.tolist())
    [[2.0, 1.0], [10.0, 1.0], [10.0, 9.0]]
    >>> bool(model.predict([[0, 0]])[0] == model.labels_[0])
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "init": AnyOf(Choice("k-means++", "random"), Callable()),
        "tol": Real(minimum=0),
        "copy_x": Boolean(),
        "algorithm": Choice("lloyd", "elkan", "hamerly", "yinyang", "auto"),
        "bisecting_strategy": Choice("biggest_inertia", "largest_cluster"),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="cluster", catalogue=("E1",), engines=("memory",), certificate="stationarity"
    )

    @stores_arguments(max_iter=300, tol=1e-4, verbose=0, random_state=None, n_jobs=None)
    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "random",
        n_init: int = 1,
        copy_x: bool = True,
        algorithm: str = "lloyd",
        bisecting_strategy: str = "biggest_inertia",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Split the rows X into clusters.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        """
        data = self._fit_data(X, None, sample_weight, target="none")
        if not isinstance(data, ArrayData):
            raise DataError("BisectingKMeans: expected rows in memory, because every split takes some of them apart")
        spread = spread_of(data, self.n_jobs, 1, bound=False)
        self._require_rows(spread.n_rows)
        state = self._resume_state()
        seed = seed_of(self.random_state) if state is None else int(state["seed"])
        tree = Tree.of_all(data, spread.mean) if state is None else Tree.resumed(data, state)
        monitor = self._monitor(int(self.n_clusters), lambda _x: {})
        reason, value = "converged", tree.value()
        if state is None:
            monitor(1, spread.mean, objective=value, state=partial(tree.state, seed), weight=tree.nodes[0].weight)
        for number in range(len(tree.leaves), int(self.n_clusters)):
            chosen = max(tree.leaves, key=lambda leaf: self._priority(tree.nodes[leaf]))
            weight = tree.nodes[chosen].weight
            run, parts = self._split(data, tree.nodes[chosen], seed, number)
            tree.split(chosen, parts, run.moved)
            require_no_rise(value, tree.value(), spread.total, number)
            value = tree.value()
            reason = run.reason if run.reason != "converged" else reason
            stop = monitor(number + 1, parts[0].center, objective=value, state=partial(tree.state, seed), weight=weight)
            if stop and number < self.n_clusters - 1:
                reason = "stopped"
                break
        self._keep(data, tree.nodes)
        meaning = (
            "the largest squared movement of the two centers of a split in its last round, relative to the mean "
            "variance of a feature among its rows"
        )
        certificate = Certificate("stationarity", tree.moved, float(self.tol), meaning)
        history = monitor.history()
        self._conclude(Solution(self.cluster_centers_.ravel(), value, history, certificate, len(tree.leaves), reason))
        return self

    def _priority(self, node: Node) -> tuple[bool, float]:
        """Clusters of equal rows cannot be split, and come last."""
        score = node.value if self.bisecting_strategy == "biggest_inertia" else node.weight
        return node.value > 0, score

    def _split(self, data: ArrayData, node: Node, seed: int, number: int) -> tuple[Run, list[Node]]:
        """The two halves of a cluster; one of them is empty where all its rows are equal."""
        rows = ArrayData(data.X[node.rows], None, None if data.weight is None else data.weight[node.rows])
        if node.value == 0:
            centers = np.stack([node.center, node.center])
            run = Run(centers, 0.0, 0.0, 0, "converged")
        else:
            spread = spread_of(rows, self.n_jobs, 2, bound=False)
            origin = np.zeros(data.n_features) if data.sparse else spread.mean
            algorithm = "yinyang" if self.algorithm == "elkan" else self.algorithm
            starts = int(self.n_init)
            descent = Descent(
                starts=starts,
                max_iter=int(self.max_iter),
                tol=float(self.tol),
                begin=lambda start: self._start(rows.X, rows, seed, number * starts + start, 2) - origin,
                rounds_from=lambda _start: Lloyd(MemoryAssigner(rows, origin, self.n_jobs, 2, algorithm), spread).round,
                shown=lambda centers: centers.ravel(),
                scale=spread.total_about(origin),
            )
            run = descent.best(Monitor(), seed, None)
            centers = run.centers + origin
        label = nearest(rows.X, centers, n_threads(2.0 * rows.n_rows * rows.n_features, self.n_jobs))
        return run, [_node(data, node.rows[label == side], centers[side]) for side in (0, 1)]

    def _keep(self, data: ArrayData, nodes: list[Node]) -> None:
        """Labels and centres of the leaves, and the tree for predictions."""
        dtype = np.float32 if data.dtype == np.float32 else np.float64
        leaves = [number for number, node in enumerate(nodes) if node.children == (-1, -1)]
        self.labels_ = np.zeros(data.n_rows, dtype=np.int32)
        self._node_centers_ = np.stack([node.center for node in nodes])
        self._node_children_ = np.array([node.children for node in nodes], dtype=np.int64)
        self._node_labels_ = np.full(len(nodes), -1, dtype=np.int32)
        for label, leaf in enumerate(leaves):
            self.labels_[nodes[leaf].rows] = label
            self._node_labels_[leaf] = label
        self.cluster_centers_ = self._node_centers_[leaves].astype(dtype)
        self.inertia_ = sum(nodes[leaf].value for leaf in leaves)
        warn_of_empty(self.labels_, len(leaves))

    def predict(self, X: Any) -> Any:
        """The cluster of every row: the leaf that it reaches, going to the nearer of two centres at every split."""
        data = self._predict_data(X)
        tree = (self._node_centers_, self._node_children_, self._node_labels_)
        return engine.map(_leaves_of_batch, data, *tree, n_jobs=self.n_jobs)


def _node(data: ArrayData, rows: np.ndarray, center: np.ndarray) -> Node:
    X = data.X[rows]
    weight = np.ones(len(rows)) if data.weight is None else data.weight[rows]
    terms = blockwise_distances(X, center[None], np.zeros(len(rows), dtype=np.int64))
    # Rows that are all the same have no distortion but rounding.
    same = len(np.unique(row_hashes(X)[weight > 0])) < 2
    return Node(center, rows, 0.0 if same else float(terms @ weight), float(weight.sum()))


def _leaves_of_batch(batch: Batch, centers: np.ndarray, children: np.ndarray, label: np.ndarray) -> np.ndarray:
    at = np.zeros(batch.n_rows, dtype=np.int64)
    for node in range(len(centers)):  # a node comes before its children
        rows = np.flatnonzero(at == node)
        if children[node, 0] >= 0 and len(rows):
            at[rows] = children[node][nearest(batch.X[rows], centers[children[node]])]
    return np.asarray(label[at])
