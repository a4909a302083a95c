"""What forests share: samples of rows, trees on threads, out-of-bag sums, evidence, and the ways to read them.

Tree t draws its rows from the stream (seed, "rows", t) and its features from (seed, "tree", t), and results are
gathered in the order of t: the forest has the same bits for any number of threads.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from epicycle import _native, engine
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, DataTypeError, ParameterError
from epicycle.core._history import History
from epicycle.core._random import stream
from epicycle.core.estimator._estimator import fitting, seed_of
from epicycle.data import ArrayData, Batch, Data
from epicycle.engine import n_threads
from epicycle.engine._ordered import in_order
from epicycle.optim import Solution
from epicycle.tree._binning import bin_data, column_cuts
from epicycle.tree._constraints import monotone_signs
from epicycle.tree._ensemble import split_features
from epicycle.tree._partial_dependence import expected_values
from epicycle.tree._shared import joined
from epicycle.tree.cart._feature_table import FeatureTable, binned_table, exact_table
from epicycle.tree.cart._grow import Grown, Rules, Target, grow
from epicycle.tree.cart._parameters import row_count, share_of_features
from epicycle.tree.cart._pruning import prune
from epicycle.tree.cart._tree import Tree, leaves_of_batch, sums_of_batch
from epicycle.tree.forest._arrays import ForestArrays, empty_forest, importances, join, n_trees, tree_of
from epicycle.tree.forest._inspection import ForestReading
from epicycle.tree.forest._leaves import LeafSamples
from epicycle.tree.forest._sampling import RowSamples, row_keys

__all__ = ["Forest"]


@dataclass
class Planted:
    """What one tree brings."""

    tree: Tree
    outside: np.ndarray | None
    outside_values: np.ndarray | None
    leaves: tuple[np.ndarray, np.ndarray, np.ndarray] | None


@dataclass
class Ground:
    """What all trees of a fit grow from."""

    table: FeatureTable
    target: Target
    weight: np.ndarray  # of rows that are not drawn by it, those of classes among them
    rules: Rules
    seed: int
    samples: RowSamples
    unit_weights: bool
    batch: Batch | None


class Forest(ForestReading, ABC):
    """The fit of a forest; a subclass says what the target is and how it is scored out of bag."""

    _random_splits: ClassVar[bool]

    trees_: ForestArrays
    _seed_: int
    _n_rows_: int
    _oob_sum_: np.ndarray
    _oob_count_: np.ndarray

    @abstractmethod
    def _prepare(self, y: np.ndarray, weight: np.ndarray) -> tuple[Target, np.ndarray | None]:
        """The target as the kernel takes it, and factors on the weights of the rows, None where all are 1."""

    @abstractmethod
    def _encode(self, data: Data) -> Data:
        """The data with its target as numbers."""

    @abstractmethod
    def _tree_weight(self, mass: np.ndarray, target: Target) -> np.ndarray:
        """The weights of the rows in a tree whose sample has so much of each."""

    @abstractmethod
    def _finish_outside(self, mean: np.ndarray, seen: np.ndarray, y: np.ndarray) -> None:
        """Set the out-of-bag attributes from the mean values of the trees that did not see a row."""

    @abstractmethod
    def _outside_error(self, mean: np.ndarray, y: np.ndarray) -> float:
        """The error of out-of-bag values."""

    # ------------------------------------------------------------------------------------------- fit

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Grow the trees on rows X with targets y.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Scan of shape (n_samples, n_features)
            NaN counts as missing. Columns of a categorical type are divided by sets of levels.
        y : array-like of shape (n_samples,) or, for regression, (n_samples, n_outputs)
            A scan brings its own.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
            The fitted estimator.
        """
        earlier = None
        if self.warm_start and hasattr(self, "trees_"):
            names = ("trees_", "history_", "_seed_", "classes_", "_oob_sum_", "_oob_count_", "_leaf_samples_")
            earlier = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return self._fit(X, y, sample_weight, earlier)

    @fitting
    def _fit(self, X: Any, y: Any, sample_weight: Any, earlier: Mapping[str, Any] | None) -> Any:
        if self.oob_score and not self.bootstrap and self.max_samples is None:
            raise ParameterError("oob_score=True needs rows that a tree does not see: bootstrap=True or max_samples")
        data = self._training_data(X, y, sample_weight, multi_output=self._target == "numeric")
        state = self._resume_state() or {}
        seed = int(state.get("seed", earlier["_seed_"] if earlier else seed_of(self.random_state)))
        ground, y_out = self._ground(data, seed, X)
        if earlier is not None and not np.array_equal(earlier.get("classes_", 0), getattr(self, "classes_", 0)):
            raise DataError("y: warm_start goes on with the classes of the earlier fit; these are others")
        self._seed_, self._n_rows_ = seed, ground.table.n_rows
        known = state.get("trees", earlier["trees_"] if earlier else empty_forest(self._n_values(ground.target)))
        if n_trees(known) > self.n_estimators:
            raise ParameterError(
                f"n_estimators={self.n_estimators} is less than the {n_trees(known)} trees that warm_start goes on with"
            )
        before: dict[str, Any] = {**(earlier or {}), **{f"_{k}_": v for k, v in state.items()}}
        solution = self._plant(ground, known, y_out, before)
        if earlier is not None:
            solution.history = joined(earlier["history_"], solution.history)
            solution.n_iter = solution.history.n_iter
        self._conclude(solution)
        return self

    def _ground(self, source: Data, seed: int, X: Any) -> tuple[Ground, np.ndarray]:
        data: Any = self._encode(source)
        p, levels = data.n_features, {j: max(len(values), 1) for j, values in self.categories_.items()}
        exact = self.max_bins is None or self.criterion == "absolute_error"
        if exact and not isinstance(data, ArrayData):
            raise DataTypeError(
                f"X: {type(self).__name__} needs all numbers in memory for max_bins=None or absolute_error, got "
                f"{type(X).__name__}"
            )
        # One byte a cell is more than a very sparse matrix holds: then its columns are sorted instead.
        wide = isinstance(data, ArrayData) and data.sparse and data.X.nnz * 24.0 < data.n_rows * float(p)
        batch = data.rows(0, data.n_rows) if isinstance(data, ArrayData) else None
        keys: list[np.ndarray] = []

        def see(rows: Batch) -> None:
            keys.append(row_keys(rows.X, np.asarray(rows.y, np.float64)))

        if exact or wide:
            table = exact_table(data.X, levels, self.n_jobs)
            y, weight = np.asarray(data.y), np.ones(data.n_rows) if data.weight is None else data.weight
            see(batch)
        else:
            cuts = column_cuts(data, levels, max_bins=self.max_bins, seed=seed, n_jobs=self.n_jobs)
            codes, y, weight = bin_data(data, cuts, self.n_jobs, see=see)
            table = binned_table(codes, cuts, levels)
        if not (weight > 0).any():
            raise DataError("sample_weight: no row of positive weight is left to learn from")
        target, factors = self._prepare(y, weight)
        drawn_by = weight if data.has_weight else None
        samples = RowSamples(np.concatenate(keys), drawn_by, self.max_samples, bootstrap=self.bootstrap)
        rules = self._rules(weight, p)
        mass = (weight > 0).astype(np.float64) if self.bootstrap else weight
        mass = mass if factors is None else mass * factors
        unit = samples.takes_all and bool((mass[weight > 0] == 1).all())
        return Ground(table, target, mass, rules, seed, samples, unit, batch), y

    def _rules(self, weight: np.ndarray, p: int) -> Rules:
        n = int(np.count_nonzero(weight))
        categorical = np.zeros(p, np.uint8)
        categorical[list(self.categories_)] = 1
        return Rules(
            self.criterion,
            leaf_cost=float(self.leaf_cost),
            max_depth=self.max_depth or 0,
            max_leaf_nodes=self.max_leaf_nodes or 0,
            min_samples_split=row_count(self.min_samples_split, n, 2),
            min_samples_leaf=row_count(self.min_samples_leaf, n, 1),
            min_impurity_decrease=float(self.min_impurity_decrease),
            max_features=share_of_features(self.max_features, p),
            random_splits=self._random_splits,
            monotone=monotone_signs(self.monotonic_cst, p, getattr(self, "feature_names_in_", None), categorical),
        )

    # ------------------------------------------------------------------------------------------- trees

    def _plant(self, ground: Ground, known: ForestArrays, y: np.ndarray, before: Mapping[str, Any]) -> Solution:
        """Trees until there are enough, or until somebody asks to stop."""
        first, n = n_trees(known), ground.table.n_rows
        outside = self._oob_arrays(n, known["value"].shape[1], first, before) if self.oob_score else None
        samples = self._leaf_store(y, first, before)
        grown: list[Tree] = []
        done, stopped, error = first, False, math.nan

        def attributes(x: np.ndarray) -> dict[str, Any]:
            kept = {name: value for name, value in vars(self).items() if name in _WITH_TREES}
            return {**kept, "trees_": join(known, grown[: int(x[0]) - first])}

        def state() -> dict[str, Any]:
            out: dict[str, Any] = {"trees": join(known, grown), "seed": ground.seed}
            if outside is not None:
                out.update(oob_sum=outside[0].copy(), oob_count=outside[1].copy())
            if samples is not None:
                out["leaf_samples"] = samples.state()
            return out

        monitor = self._monitor(self.n_estimators, attributes)

        def consume(planted: Planted) -> None:
            nonlocal done, stopped, error
            if stopped:
                return
            grown.append(planted.tree)
            done += 1
            error = _risk(planted.tree)
            if outside is not None and planted.outside is not None:
                outside[0][planted.outside] += planted.outside_values
                outside[1][planted.outside] += 1
                seen = outside[1] > 0
                error = self._outside_error(outside[0][seen] / outside[1][seen, None], y[seen])
            if samples is not None and planted.leaves is not None:
                samples.add(*planted.leaves)
            columns = {"leaves": float(planted.tree.n_leaves), "depth": float(planted.tree.max_depth)}
            stopped = bool(monitor(done, np.array([float(done)]), objective=error, state=state, **columns))

        missing = self.n_estimators - first
        # About 60 ns for a row, a feature and a level: far more than a thread costs.
        work = 50.0 * len(ground.samples.rows) * ground.rules.max_features * missing
        threads = n_threads(work, self.n_jobs)
        inner = max(1, threads // max(missing, 1))
        numbers = iter(range(first, self.n_estimators))
        wanted = itertools.takewhile(lambda _: not stopped, numbers)
        in_order(wanted, lambda t: self._grow(ground, t, inner), consume, min(threads, max(missing, 1)))
        self.trees_ = join(known, grown)
        if samples is not None:
            self._leaf_samples_ = samples.state()
        if outside is not None:
            self._oob_sum_, self._oob_count_ = outside
            seen = outside[1] > 0
            with np.errstate(invalid="ignore", divide="ignore"):
                self._finish_outside(outside[0] / outside[1][:, None], seen, y)
        history = monitor.history()
        reason = "stopped" if stopped else "converged"
        certificate = Certificate("none", 0.0, 0.0, self._claim(ground.table))
        left = state() if stopped else {}
        return Solution(np.zeros(1), error, history if history.columns else History(objective=[]), certificate, done,
                        reason, state=left)  # fmt: skip

    def _grow(self, ground: Ground, t: int, threads: int) -> Planted:
        counts = ground.samples.counts(ground.seed, t)
        weight = self._tree_weight(ground.weight if counts is None else counts * ground.weight, ground.target)
        rules = ground.rules
        if self.min_weight_fraction_leaf:
            least = self.min_weight_fraction_leaf * float(weight.sum())
            rules = Rules(**{**vars(rules), "min_weight_leaf": least})
        seed = int(stream(ground.seed, "tree", t).integers(2**63))
        unit = ground.unit_weights
        grown = grow(ground.table.fresh(), ground.target, weight, rules, seed=seed, threads=threads, unit_weights=unit)
        tree = prune(grown.tree, self.ccp_alpha) if self.ccp_alpha > 0 else grown.tree
        outside = values = None
        if self.oob_score and counts is not None:
            outside = np.flatnonzero((counts == 0) & (ground.weight > 0))
            values = self._outside_values(ground, grown, tree, outside)
        leaves = None
        if getattr(self, "keep_leaf_values", False):
            leaves = _rows_of_leaves(grown, weight)
        return Planted(tree, outside, values, leaves)

    def _outside_values(self, ground: Ground, grown: Grown, tree: Tree, rows: np.ndarray) -> np.ndarray:
        if ground.table.all_coded and tree is grown.tree:
            leaf = np.empty(len(rows), np.int32)
            _native.cart.leaves_of_codes(
                ground.table.codes, rows.astype(np.uint32), grown.columns, grown.left, grown.sides, leaf
            )
        elif ground.batch is not None:
            roots = np.array([0, tree.node_count], np.int64)
            leaf = leaves_of_batch(Batch(ground.batch.X[rows]), tree.nodes, roots, tree.levels, 1)[:, 0]
        else:
            raise ParameterError("oob_score=True with ccp_alpha > 0 needs the rows in memory")
        value = tree.value[leaf]
        return value[:, 1:] if ground.target.n_classes == 2 else value

    def _oob_arrays(self, n: int, K: int, first: int, before: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        if first == 0:
            return np.zeros((n, K)), np.zeros(n, np.int64)
        if "_oob_sum_" not in before or len(before["_oob_sum_"]) != n:
            raise ParameterError(
                "oob_score=True: the trees that warm_start goes on with were grown without it, or on other rows"
            )
        return before["_oob_sum_"].copy(), before["_oob_count_"].copy()

    def _leaf_store(self, y: np.ndarray, first: int, before: Mapping[str, Any]) -> LeafSamples | None:
        return None

    @staticmethod
    def _n_values(target: Target) -> int:
        return {0: len(target.offset), 1: 1, 2: 1}.get(target.n_classes, target.n_classes)

    def _claim(self, table: FeatureTable) -> str:
        what = "all splits of its node by the features drawn for it"
        if self._random_splits:
            what = "one random threshold for each feature drawn for its node"
        elif table.all_coded:
            what = "all splits of its node, at cuts between bins, by the features drawn for it"
        text = "a forest is grown greedily: no distance from the best forest is known; "
        return f"{text}each split is the best of {what}"

    # ------------------------------------------------------------------------------------------- prediction

    def _mean(self, X: Any) -> Any:
        """The mean of the values of all trees, (n, K), for Dask input as a lazy array."""
        data, trees = self._predict_data(X), self.trees_
        arrays = trees["nodes"], trees["value"], trees["roots"], trees["levels"]
        if isinstance(data, ArrayData) and not data.sparse:
            return sums_of_batch(data.rows(0, data.n_rows), *arrays, self.n_jobs) / n_trees(trees)
        return engine.map(sums_of_batch, data, *arrays, 1, n_jobs=self.n_jobs) / n_trees(trees)

    def _split_totals(self, kind: str) -> np.ndarray:
        if kind == "gain":  # the mean over trees of the shares in each
            return importances(self.trees_, self.n_features_in_).sum(axis=0)
        return np.bincount(split_features(self.trees_)[1], minlength=self.n_features_in_).astype(np.float64)

    def _outputs_of(self, X: np.ndarray) -> np.ndarray:
        trees = self.trees_
        total = sums_of_batch(Batch(X), trees["nodes"], trees["value"], trees["roots"], trees["levels"], self.n_jobs)
        return total / n_trees(trees)

    def _responses_of(self, X: np.ndarray) -> np.ndarray:
        return self._outputs_of(X)

    def _expected_of(self, columns: list[int], points: np.ndarray) -> np.ndarray:
        trees = self.trees_
        arrays = trees["nodes"], trees["value"], trees["roots"], trees["levels"], trees["weight"].astype(np.float64)
        return np.asarray(sum(expected_values(arrays, columns, points))) / n_trees(trees)

    def tree(self, t: int) -> Any:
        """Tree t as a fitted decision tree, to be drawn or read."""
        self._check_fitted()
        if not -n_trees(self.trees_) <= t < n_trees(self.trees_):
            raise ParameterError(f"t={t}; the forest has {n_trees(self.trees_)} trees")
        return self._as_tree(tree_of(self.trees_, t % n_trees(self.trees_), two_classes=self._two_classes()))

    @property
    def estimators_(self) -> list[Any]:
        """All trees as fitted decision trees, made anew when asked for."""
        return [self.tree(t) for t in range(n_trees(self.trees_))]

    def _two_classes(self) -> bool:
        return len(getattr(self, "classes_", ())) == 2


def _risk(tree: Tree) -> float:
    leaf = tree.is_leaf
    mass = tree.weighted_n_node_samples
    return float(np.sum((tree.impurity * mass)[leaf]) / mass[0])


def _rows_of_leaves(grown: Grown, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows leaf by leaf, their weights as shares of their leaf, how many each node has)."""
    leaves = np.flatnonzero(grown.left == 0)
    sizes = np.zeros(len(grown.left), np.int64)
    sizes[leaves] = grown.end[leaves] - grown.begin[leaves]
    rows = np.concatenate([grown.order[grown.begin[i] : grown.end[i]] for i in leaves])
    mass = weight[rows]
    which = np.repeat(np.arange(len(sizes)), sizes)
    return rows, mass / np.bincount(which, weights=mass, minlength=len(sizes))[which], sizes


#: Attributes that prediction needs beside the trees.
_WITH_TREES = (
    "categories_", "_from_frame_", "classes_", "n_features_in_", "feature_names_in_", "_vector_", "_seed_", "_n_rows_",
)  # fmt: skip
