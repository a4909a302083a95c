"""Forests: the loop over trees with its evidence, prediction, and inspection of the trees."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from epicycle import engine
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, DataTypeError, EpicycleWarning, ParameterError
from epicycle.core._history import History
from epicycle.core._memory import require_memory
from epicycle.core._parameters import Domain
from epicycle.core._random import seed_of
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.data import ArrayData, Batch, Data
from epicycle.data._target import as_weight
from epicycle.optim import Solution
from epicycle.tree._base import TreeModel, check_positive_weight, check_repeats, concatenate_histories
from epicycle.tree._classes import same_classes
from epicycle.tree._nodes import leaf_nodes, leaves_of_batch, split_features, sums_of_batch
from epicycle.tree._partial_dependence import expected_values
from epicycle.tree.cart._grow import FeatureTable, Target, growth_rules
from epicycle.tree.forest._arrays import (
    ForestArrays,
    LeafSamples,
    empty_forest,
    importances,
    leaf_indicator,
    n_trees,
    node_arrays,
    tree_of,
)
from epicycle.tree.forest._grow import Problem, Rows, random_state_of, read_rows
from epicycle.tree.forest._growth import Growth
from epicycle.tree.forest._out_of_bag import OutOfBag, permutation_rises, start_oob
from epicycle.tree.forest._parameters import FOREST_DOCS, FOREST_DOMAINS
from epicycle.tree.forest._sampling import RowSamples, row_keys

#: Fitted attributes that a fit with warm_start continues from.
_CONTINUED = ("trees_", "history_", "_seed_", "_n_rows_", "classes_", "_oob_sum_", "_oob_count_", "_leaf_samples_")
#: Attributes that prediction needs beside the trees.
_WITH_TREES = (
    "categories_",
    "_from_frame_",
    "classes_",
    "n_features_in_",
    "feature_names_in_",
    "_vector_",
    "_seed_",
    "_n_rows_",
)


class Forest(TreeModel, ABC):
    """The mean of many randomised trees."""

    _docs: ClassVar[dict[str, str]] = FOREST_DOCS
    _parameters: ClassVar[dict[str, Domain]] = FOREST_DOMAINS
    _card: ClassVar[MethodCard] = MethodCard(
        family="tree", catalogue=("D2",), engines=("memory", "files", "dask"), certificate="none"
    )
    _random_splits: ClassVar[bool]
    _takes_dask = True

    n_estimators: int
    criterion: str
    bootstrap: bool
    max_samples: float | None
    oob_score: Any
    min_weight_fraction_leaf: float
    ccp_alpha: float
    monotonic_cst: Any
    max_bins: int | None
    warm_start: bool
    random_state: Any

    trees_: ForestArrays
    _seed_: int
    _n_rows_: int
    _oob_sum_: np.ndarray
    _oob_count_: np.ndarray
    _leaf_samples_: dict[str, np.ndarray]
    _samples_: RowSamples

    # ------------------------------------------------------------------------------------------- fit

    def _start(self, data: Data, X: Any) -> tuple[Rows, dict[str, Any]]:
        """(the rows of the training data, attributes of the fit that this one continues)."""
        if not self.bootstrap and self.max_samples is not None:
            raise ParameterError(
                "`max_sample` cannot be set if `bootstrap=False`. Either switch to `bootstrap=True` or set "
                f"`max_sample=None`. max_samples={self.max_samples!r}: without bootstrap every tree sees all rows"
            )
        if self.oob_score and not self.bootstrap:
            raise ParameterError(
                "oob_score=True needs rows that a tree does not see. Out of bag estimation only available if "
                "bootstrap=True"
            )
        max_bins = None if self.criterion == "absolute_error" else self.max_bins
        if max_bins is None and not isinstance(data, ArrayData):
            raise DataTypeError(
                f"X: {type(self).__name__} needs all numbers in memory for max_bins=None or absolute_error, got "
                f"{type(X).__name__}"
            )
        earlier = self._earlier()
        self._seed_ = int(earlier["_seed_"] if "_seed_" in earlier else seed_of(self.random_state))
        rows = read_rows(
            data,
            {j: max(len(values), 1) for j, values in self.categories_.items()},
            max_bins=max_bins,
            random_splits=self._random_splits,
            seed=self._seed_,
            n_jobs=self.n_jobs,
        )
        check_positive_weight(rows.weight)
        self._n_rows_ = rows.table.n_rows
        return rows, earlier

    def _earlier(self) -> dict[str, Any]:
        """Attributes of the fit that this one continues: an interrupted one, or with warm_start the one before."""
        before = self._run.earlier
        found = {name: before[name] for name in _CONTINUED if name in before} if self.warm_start else {}
        if "trees_" not in found:
            found = {}
        elif not same_classes(found.get("classes_", 0), getattr(self, "classes_", 0)):
            raise DataError("y: warm_start goes on with the classes of the earlier fit; these are others")
        state = self._resume_state() or {}
        return {**found, **{"trees_" if name == "trees" else f"_{name}_": value for name, value in state.items()}}

    def _has_all_trees(self) -> bool:
        """Whether warm_start begins with all the trees that are asked for: the earlier fit stays, with a warning."""
        before = self._run.earlier
        if not self.warm_start or "trees_" not in before or self._resume_state() is not None:
            return False
        if n_trees(before["trees_"]) != self.n_estimators:
            return False
        _warn("Warm-start fitting without increasing n_estimators does not fit new trees.")
        if self.oob_score and "_oob_sum_" not in before:
            return False
        for name in before.keys() - vars(self).keys():
            setattr(self, name, before[name])
        return True

    def _fit_trees(
        self,
        rows: Rows,
        target: Target,
        earlier: dict[str, Any],
        *,
        factors: np.ndarray | None = None,
        balance: bool = False,
        leaf_samples: LeafSamples | None = None,
    ) -> OutOfBag | None:
        """Grow the trees, set attributes and evidence, and return the out-of-bag values where asked for.

        `factors` multiply the weights of the rows; with `balance` each tree balances its classes.
        """
        n_values = len(target.offset) if target.n_classes == 0 else 1 if target.n_classes <= 2 else target.n_classes
        known: ForestArrays = earlier.get("trees_", empty_forest(n_values))
        if n_trees(known) > self.n_estimators:
            raise ParameterError(
                f"n_estimators={self.n_estimators} is less than the {n_trees(known)} trees that warm_start goes on with"
            )
        samples = RowSamples(
            rows.keys, rows.weight if rows.weighted else None, self.max_samples, bootstrap=self.bootstrap
        )
        self._samples_ = samples
        # With replacement a row of weight v is drawn v times as often, and counts once in each draw.
        weight = (rows.weight > 0).astype(np.float64) if self.bootstrap else rows.weight
        weight = weight if factors is None else weight * factors
        problem = Problem(
            rows=rows,
            target=target,
            weight=weight,
            samples=samples,
            rules=growth_rules(
                self, rows.weight, rows.table.n_features, self.categories_, random_splits=self._random_splits
            ),
            seed=self._seed_,
            ccp_alpha=self.ccp_alpha,
            oob=bool(self.oob_score),
            keep_leaves=leaf_samples is not None,
            balance=balance,
            unit_weights=samples.takes_all and bool((weight[rows.weight > 0] == 1).all()),
        )
        oob = start_oob(problem, known, earlier) if self.oob_score else None
        solution = self._grow_trees(Growth(problem, known, oob, leaf_samples))
        if leaf_samples is not None:
            self._leaf_samples_ = leaf_samples.state()
        if oob is not None:
            self._oob_sum_, self._oob_count_ = oob.sum, oob.count
            if not oob.seen[rows.weight > 0].all():
                _warn("Some inputs do not have OOB scores: all trees saw them. Grow more trees")
        if "history_" in earlier:
            solution.history = concatenate_histories(earlier["history_"], solution.history)
            solution.n_iter = solution.history.n_iter
        self._conclude(solution)
        return oob

    def _grow_trees(self, growth: Growth) -> Solution:
        """Grow trees until there are `n_estimators`, or until a callback asks to stop."""

        def attributes(x: np.ndarray) -> dict[str, Any]:
            kept = {name: value for name, value in vars(self).items() if name in _WITH_TREES}
            return {**kept, "trees_": growth.forest(int(x[0]))}

        monitor = self._monitor(self.n_estimators, attributes)
        growth.run(monitor, self.n_estimators, self.n_jobs)
        self.trees_ = growth.forest()
        history = monitor.history()
        return Solution(
            np.zeros(1),
            growth.objective,
            history if history.columns else History(objective=[]),
            Certificate("none", 0.0, 0.0, self._claim(growth.problem.rows.table)),
            n_trees(self.trees_),
            "stopped" if growth.stopped else "converged",
            state=growth.state() if growth.stopped else {},
        )

    def _claim(self, table: FeatureTable) -> str:
        """The optimality of splits, in words: no distance from the best of all forests is known."""
        what = "all splits of its node by the features drawn for it"
        if self._random_splits:
            what = "one random threshold for each feature drawn for its node"
        elif table.all_coded:
            what = "all splits of its node, at edges of bins, by the features drawn for it"
        text = "a forest is grown greedily: no distance from the best forest is known; "
        return f"{text}each split is the best of {what}"

    # ------------------------------------------------------------------------------------------- prediction

    def _mean(self, X: Any) -> Any:
        """The mean of the values of all trees, (n, K), for Dask input as a lazy array."""
        data, arrays = self._predict_data(X), node_arrays(self.trees_)
        if isinstance(data, ArrayData) and not data.sparse:
            return sums_of_batch(data.rows(0, data.n_rows), *arrays, self.n_jobs) / n_trees(self.trees_)
        return engine.map(sums_of_batch, data, *arrays, 1, n_jobs=self.n_jobs) / n_trees(self.trees_)

    def apply(self, X: Any) -> np.ndarray:
        """Return the number of the leaf of each row in each tree, (n_samples, n_estimators)."""
        data, trees = self._data_in_memory(X), self.trees_
        batch = data.rows(0, data.n_rows)
        return leaves_of_batch(batch, trees["nodes"], trees["roots"], trees["levels"], self.n_jobs).astype(np.int64)

    def decision_path(self, X: Any) -> tuple[sp.csr_array, np.ndarray]:
        """Return (indicator matrix of the nodes on the paths of each row, where the nodes of each tree begin)."""
        leaves = self.apply(X)
        trees = [tree_of(self.trees_, t, two_classes=False) for t in range(n_trees(self.trees_))]
        paths = [tree.decision_paths(leaves[:, t]) for t, tree in enumerate(trees)]
        return sp.csr_array(sp.hstack(paths, format="csr")), self.trees_["roots"].copy()

    def proximity(self, X: Any, Y: Any = None) -> sp.csr_array:
        """Compute the share of trees in which two rows fall into the same leaf.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        Y : array-like of shape (m, n_features), optional
            Rows to compare with; X itself by default.

        Returns
        -------
        csr_array of shape (n, m)
            Pairs that share no leaf are not stored.
        """
        T, roots = n_trees(self.trees_), self.trees_["roots"]
        first = leaf_indicator(self.apply(X), roots)
        second = first if Y is None else leaf_indicator(self.apply(Y), roots)
        # Upper bound on the nonzero pairs of the product: rows that share a leaf, leaf by leaf.
        meetings = float(first.sum(axis=0) @ second.sum(axis=0))
        pairs = min(meetings, float(first.shape[0]) * second.shape[0])
        what = f"proximities of {first.shape[0]} x {second.shape[0]} rows"
        require_memory(16.0 * pairs, what, "pass fewer rows as X")
        out = sp.csr_array(first @ second.T)
        out.sort_indices()
        return sp.csr_array((out.data.astype(np.float64) / T, out.indices, out.indptr), shape=out.shape)

    # ------------------------------------------------------------------------------------------- trees

    @abstractmethod
    def _decision_tree(self) -> Any:
        """An unfitted decision tree for the same target."""

    def tree(self, t: int) -> Any:
        """Return tree t as a fitted decision tree."""
        self._check_fitted()
        if not -n_trees(self.trees_) <= t < n_trees(self.trees_):
            raise ParameterError(f"t={t}; the forest has {n_trees(self.trees_)} trees")
        model = self.estimator_
        model.random_state = random_state_of(self._seed_, t % n_trees(self.trees_))
        for name in ("categories_", "_from_frame_", "n_features_in_", "feature_names_in_", "classes_", "_vector_"):
            if name in vars(self):
                setattr(model, name, getattr(self, name))
        classes = getattr(self, "classes_", None)
        sizes = None
        if classes is not None:
            sizes = np.array([len(c) for c in classes] if isinstance(classes, list) else [len(classes)])
        model.tree_ = tree_of(
            self.trees_,
            t % n_trees(self.trees_),
            two_classes=sizes is not None and len(sizes) == 1 and sizes[0] == 2,
            n_features=self.n_features_in_,
            n_classes=sizes,
        )
        return model

    @property
    def estimator_(self) -> Any:
        """A tree of the forest before its fit."""
        self._check_fitted()
        return self.estimator

    @property
    def estimator(self) -> Any:
        """An unfitted tree with the parameters of the forest."""
        model = self._decision_tree()
        model.splitter = "random" if self._random_splits else "best"
        shared = set(model.get_params(deep=False)) - {"criterion", "class_weight", "n_jobs", "random_state"}
        model.set_params(**{name: value for name, value in self.get_params(deep=False).items() if name in shared})
        return model

    @property
    def _n_samples_bootstrap(self) -> int:
        return self._samples_.size

    @property
    def estimators_samples_(self) -> list[np.ndarray]:
        """Numbers of the rows that each tree was grown on, with their repetitions; drawn again on every access."""
        self._check_fitted()
        if not hasattr(self, "_samples_"):
            raise AttributeError("estimators_samples_: a copy of a forest, or one from a file, has none; fit it again")
        return [self._samples_.drawn(self._seed_, t) for t in range(n_trees(self.trees_))]

    def __getstate__(self) -> dict[str, Any]:
        # Eight bytes for each training row, which no method of a stored model needs.
        return {name: value for name, value in super().__getstate__().items() if name != "_samples_"}

    @property
    def n_outputs_(self) -> int:
        """Number of columns of the target."""
        self._check_fitted()
        classes = getattr(self, "classes_", None)
        if classes is not None:
            return len(classes) if isinstance(classes, list) else 1
        return int(self.trees_["value"].shape[1])

    def __len__(self) -> int:
        return n_trees(self.trees_)

    def __getitem__(self, t: int) -> Any:
        if not -len(self) <= t < len(self):
            raise IndexError(f"tree {t}: the forest has {len(self)} trees")
        return self.tree(t)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.estimators_)

    @property
    def estimators_(self) -> list[Any]:
        """All trees as fitted decision trees, made anew on every access."""
        return [self.tree(t) for t in range(n_trees(self.trees_))]

    # ------------------------------------------------------------------------------------------- inspection

    def _split_totals(self, kind: str) -> np.ndarray:
        if kind == "gain":  # the mean over trees of the shares in each
            return np.asarray(importances(self.trees_, self.n_features_in_).sum(axis=0))
        nodes = self.trees_["nodes"]
        feature = split_features(nodes)[~leaf_nodes(nodes)]
        return np.bincount(feature, minlength=self.n_features_in_).astype(np.float64)

    def _raw_outputs(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(sums_of_batch(Batch(X), *node_arrays(self.trees_), self.n_jobs) / n_trees(self.trees_))

    def _expected_outputs(self, columns: list[int], points: np.ndarray) -> np.ndarray:
        weight = self.trees_["weight"].astype(np.float64)
        values = expected_values(node_arrays(self.trees_), weight, columns, points)
        return np.asarray(sum(values) / n_trees(self.trees_))

    def permutation_importances(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        n_repeats: int = 1,
        random_state: Any = 0,
        out_of_bag: bool = True,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute the rise of the out-of-bag loss of the trees when a feature is permuted (Breiman, 2001).

        Parameters
        ----------
        X, y, sample_weight : the training data, or with ``out_of_bag=False`` any rows
            In memory; the samples of the trees are drawn again from their seeds.
        n_repeats : int, default=1
            Number of permutations of every feature in every tree.
        out_of_bag : bool, default=True
            Whether each tree predicts the training rows that it did not see. Otherwise the whole forest predicts all
            rows.

        Returns
        -------
        mean, standard_error : ndarray of shape (n_features,)
            Over the trees, or over the rows. The loss is the squared error, or for classes the share of wrong
            predictions.
        """
        if not out_of_bag:
            return super().permutation_importances(X, y, sample_weight, n_repeats=n_repeats, random_state=random_state)
        data = self._dense_data(X)
        n = data.n_rows
        if n != self._n_rows_:
            raise DataError(f"X has {n} rows; the forest was grown on {self._n_rows_}: expected the training data")
        if not self.bootstrap:
            raise ParameterError("every tree saw all rows; out-of-bag losses need bootstrap=True")
        check_repeats(n_repeats)
        target, seed = self._known_target(y, n), seed_of(random_state)
        weight = as_weight(sample_weight, n)
        samples = RowSamples(row_keys(data.X, target), weight, self.max_samples, bootstrap=self.bootstrap)
        table = permutation_rises(
            self.trees_,
            samples,
            self._seed_,
            data.X,
            target,
            self._row_losses,
            n_repeats=n_repeats,
            seed=seed,
            n_jobs=self.n_jobs,
        )
        return table.mean(axis=0), table.std(axis=0) / np.sqrt(max(len(table), 1))


def _warn(message: str) -> None:
    warnings.warn(message, EpicycleWarning, stacklevel=4)
