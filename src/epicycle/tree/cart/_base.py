"""What classification and regression trees share: data in, growth, pruning, evidence, and the ways to read a tree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import Bunch

from epicycle import engine
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.core._random import stream
from epicycle.core.estimator._estimator import fitting, seed_of
from epicycle.data import ArrayData, Batch
from epicycle.engine import n_threads
from epicycle.optim import Solution
from epicycle.tree._constraints import monotone_signs
from epicycle.tree._partial_dependence import expected_values
from epicycle.tree._tabular import TreeTable
from epicycle.tree.cart._feature_table import exact_table
from epicycle.tree.cart._grow import Rules, Target, grow
from epicycle.tree.cart._parameters import row_count, share_of_features
from epicycle.tree.cart._pruning import prune, weakest_links
from epicycle.tree.cart._tree import Tree, leaves_of_batch, sums_of_batch

if TYPE_CHECKING:
    import scipy.sparse as sp
    from matplotlib.axes import Axes

__all__ = ["DecisionTree"]


class DecisionTree(TreeTable, ABC):
    """One exact tree; a subclass says what its target is."""

    _sources = "in memory; expected an array or a frame"

    tree_: Tree

    @abstractmethod
    def _prepare(self, data: ArrayData) -> tuple[Target, np.ndarray]:
        """The target as the kernel takes it, and the weights of the rows, those of classes among them."""

    @abstractmethod
    def _penalty(self) -> float:
        """The coefficient of squared leaf values."""

    # ------------------------------------------------------------------------------------------- fit

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Grow a tree on rows X with targets y, and prune it.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            NaN counts as missing. Columns of a categorical type are divided by sets of levels.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
            The fitted estimator.
        """
        whole = self._grown(X, y, sample_weight)
        self.tree_ = prune(whole, self.ccp_alpha) if self.ccp_alpha > 0 else whole
        tree = self.tree_
        leaf = tree.is_leaf
        risk = float(np.sum((tree.impurity * tree.weighted_n_node_samples)[leaf]) / tree.weighted_n_node_samples[0])
        monitor = self._monitor(1, lambda x: dict(vars(self)))
        monitor(1, np.zeros(1), objective=risk, leaves=float(tree.n_leaves), depth=float(tree.max_depth))
        certificate = Certificate("none", 0.0, 0.0, self._claim(whole, tree))
        self._conclude(Solution(np.zeros(1), risk, monitor.history(), certificate, 1, "converged"))
        return self

    def _grown(self, X: Any, y: Any, sample_weight: Any) -> Tree:
        data = self._training_data(X, y, sample_weight, multi_output=self._target == "numeric")
        if not isinstance(data, ArrayData):
            raise DataTypeError(
                f"X: {type(self).__name__} is fitted {self._sources}, got {type(X).__name__}; a forest takes files"
            )
        target, weight = self._prepare(data)
        if not (weight > 0).any():
            raise DataError("sample_weight: no row of positive weight is left to learn from")
        levels = {j: max(len(values), 1) for j, values in self.categories_.items()}
        table = exact_table(data.X, levels, self.n_jobs)
        seed = int(stream(seed_of(self.random_state), "tree", 0).integers(2**63))
        return grow(
            table,
            target,
            weight,
            self._rules(weight, data.n_features),
            seed=seed,
            threads=n_threads(30.0 * data.n_rows * data.n_features, self.n_jobs),
            unit_weights=bool((weight == 1).all()),
        ).tree

    def _rules(self, weight: np.ndarray, p: int) -> Rules:
        n = int(np.count_nonzero(weight))
        categorical = np.zeros(p, np.uint8)
        categorical[list(self.categories_)] = 1
        names = getattr(self, "feature_names_in_", None)
        return Rules(
            self.criterion,
            l2=self._penalty(),
            leaf_cost=float(self.leaf_cost),
            max_depth=self.max_depth or 0,
            max_leaf_nodes=self.max_leaf_nodes or 0,
            min_samples_split=row_count(self.min_samples_split, n, 2),
            min_samples_leaf=row_count(self.min_samples_leaf, n, 1),
            min_weight_leaf=self.min_weight_fraction_leaf * float(weight.sum()),
            min_impurity_decrease=float(self.min_impurity_decrease),
            max_features=share_of_features(self.max_features, p),
            random_splits=self.splitter == "random",
            monotone=monotone_signs(self.monotonic_cst, p, names, categorical),
        )

    def _claim(self, whole: Tree, tree: Tree) -> str:
        """What is true of the tree, though no distance from the best of all trees is known."""
        text = "a tree is grown greedily: no distance from the best tree is known; "
        if self.splitter == "random":
            text += "each split is the best of one random threshold for each feature"
        else:
            drawn = "" if self.max_features in (None, 1.0) else " by the features drawn for it"
            text += f"each split is the best of all splits of its node{drawn}"
        if self.ccp_alpha > 0:
            text += (
                f"; of all prunings of the grown tree of {whole.n_leaves} leaves the one of {tree.n_leaves} has the "
                f"least impurity + {self.ccp_alpha:g} per leaf"
            )
        return text

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """The sequence of optimally pruned trees, from the whole tree to its root.

        Returns
        -------
        Bunch
            ``ccp_alphas``, from which on each of the trees is the best, and their ``impurities``.
        """
        model = type(self)(**{**self.get_params(deep=False), "ccp_alpha": 0.0}).fit(X, y, sample_weight)
        alphas, risks, _ = weakest_links(model.tree_)
        return Bunch(ccp_alphas=alphas, impurities=risks)

    # ------------------------------------------------------------------------------------------- prediction

    def _values(self, X: Any, values: np.ndarray | None = None) -> Any:
        """The values (n, K) of the leaves of the rows; for Dask input a lazy array."""
        data = self._predict_data(X)
        roots = np.array([0, self.tree_.node_count], np.int64)
        arrays = self.tree_.nodes, self.tree_.value if values is None else values, roots, self.tree_.levels
        if isinstance(data, ArrayData):
            return sums_of_batch(data.rows(0, data.n_rows), *arrays, self.n_jobs)
        return engine.map(sums_of_batch, data, *arrays, 1, n_jobs=self.n_jobs)

    def _leaves(self, X: Any) -> np.ndarray:
        data = self._memory(X)
        roots = np.array([0, self.tree_.node_count], np.int64)
        batch = data.rows(0, data.n_rows)
        return leaves_of_batch(batch, self.tree_.nodes, roots, self.tree_.levels, self.n_jobs)[:, 0].astype(np.int64)

    def apply(self, X: Any) -> np.ndarray:
        """The number of the leaf that each row falls into."""
        return self._leaves(X)

    def decision_path(self, X: Any) -> sp.csr_array:
        """The nodes that each row passes, as an indicator matrix of shape (n_samples, n_nodes)."""
        return self.tree_.decision_paths(self._leaves(X))

    def get_depth(self) -> int:
        """Splits on the longest way from the root to a leaf."""
        self._check_fitted()
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Number of leaves."""
        self._check_fitted()
        return self.tree_.n_leaves

    def _split_totals(self, kind: str) -> np.ndarray:
        if kind == "gain":
            return self.tree_.importances(self.n_features_in_)
        feature = self.tree_.feature
        return np.bincount(feature[feature >= 0], minlength=self.n_features_in_).astype(np.float64)

    def _outputs_of(self, X: np.ndarray) -> np.ndarray:
        tree, roots = self.tree_, np.array([0, self.tree_.node_count], np.int64)
        return sums_of_batch(Batch(X), tree.nodes, tree.value, roots, tree.levels, self.n_jobs)

    def _expected_of(self, columns: list[int], points: np.ndarray) -> np.ndarray:
        tree, roots = self.tree_, np.array([0, self.tree_.node_count], np.int64)
        arrays = tree.nodes, tree.value, roots, tree.levels, tree.weighted_n_node_samples
        (values,) = expected_values(arrays, columns, points)
        return self._shown(values)

    def _responses_of(self, X: np.ndarray) -> np.ndarray:
        return self._shown(self._outputs_of(X))

    def _shown(self, values: np.ndarray) -> np.ndarray:
        """Of two classes the second alone."""
        return values[:, 1:] if len(getattr(self, "classes_", ())) == 2 else values

    # ------------------------------------------------------------------------------------------- to look at

    def export_text(self, *, max_depth: int = 10, decimals: int = 2) -> str:
        """The tree as indented text.

        Parameters
        ----------
        max_depth : int, default=10
            Nodes below are summed up.
        decimals : int, default=2
            Digits behind the point.
        """
        from epicycle.tree.cart._export import text

        self._check_fitted()
        return text(self, max_depth=max_depth, decimals=decimals)

    def plot(self, *, max_depth: int | None = 4, decimals: int = 3, ax: Axes | None = None) -> Axes:
        """Draw the tree: questions above, leaves below in the colour of their class or value.

        Parameters
        ----------
        max_depth : int or None, default=4
            Nodes below this depth are not drawn; None draws all.
        decimals : int, default=3
            Significant digits of numbers.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from epicycle.tree.cart._plot import draw

        self._check_fitted()
        return draw(self, max_depth=max_depth, decimals=decimals, ax=ax)

    def _penalty_line(self) -> str:
        parts = [f"{self.leaf_cost:g} for every leaf"] if self.leaf_cost else []
        if self._penalty():
            parts.append(f"{self._penalty():g} times the squared value of every leaf")
        return " and ".join(parts)
