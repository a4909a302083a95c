"""Decision trees: growth, pruning and evidence of a fit, prediction, inspection and drawing."""

from __future__ import annotations

from abc import ABC
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils import Bunch

from epicycle import engine
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataTypeError
from epicycle.core._parameters import Choice, Domain
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.data import ArrayData, Batch, Data
from epicycle.engine import n_threads
from epicycle.optim import Solution
from epicycle.tree._base import TreeModel, check_positive_weight
from epicycle.tree._nodes import leaves_of_batch, sums_of_batch
from epicycle.tree._parameters import GROWTH_DOCS, GROWTH_DOMAINS, n_candidate_features
from epicycle.tree._partial_dependence import expected_values
from epicycle.tree.cart._grow import WORK_PER_CELL, Target, exact_table, grow, growth_rules, tree_seed
from epicycle.tree.cart._tree import Tree, prune, weakest_links

if TYPE_CHECKING:
    import scipy.sparse as sp
    from matplotlib.axes import Axes


class DecisionTree(TreeModel, ABC):
    """One exact tree."""

    _docs: ClassVar[dict[str, str]] = {
        **GROWTH_DOCS,
        "X": "X : array, sparse matrix or data frame of shape (n_samples, n_features)",
        "splitter": 'splitter : {"best", "random"}, default={default}\n'
        '    "random" draws one threshold for each feature, and takes the best of those.',
        "random_state": "random_state : int, Generator, RandomState or None, default={default}\n"
        "    Seed of the random features and thresholds; without effect where none are drawn.",
        "tree_attributes": "tree_ : Tree\n"
        "    The nodes as arrays: ``children_left``, ``children_right``, ``feature``, ``threshold``, ``value``,\n"
        "    ``impurity``, ``n_node_samples``, ``weighted_n_node_samples``, ``missing_go_to_left``, and the methods\n"
        "    ``apply``, ``decision_path``, ``predict``, ``compute_feature_importances``, ``compute_node_depths``.\n"
        "max_features_, n_outputs_ : int\n"
        "    Number of features that are candidates at a node, and of columns of the target.\n"
        "%(categories_)s\n"
        "feature_importances_ : ndarray of shape (n_features,)\n"
        "    Share of every feature in the decrease of impurity.\n"
        "certificate_ : Certificate\n"
        "    None for the tree, which is greedy; it states among which splits, and prunings, each is the best.\n"
        "history_ : History\n"
        "    One row: the mean impurity of the leaves, their number, the depth, and seconds.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("tree_attributes",)
    _parameters: ClassVar[dict[str, Domain]] = {**GROWTH_DOMAINS, "splitter": Choice("best", "random")}
    _card: ClassVar[MethodCard] = MethodCard(family="tree", catalogue=("D1",), engines=("memory",), certificate="none")
    _sources = "in memory; expected an array or a frame"

    criterion: str
    splitter: str
    max_features: float | str | None
    min_weight_fraction_leaf: float
    leaf_cost: float
    ccp_alpha: float
    random_state: Any

    tree_: Tree

    # ------------------------------------------------------------------------------------------- fit

    def _in_memory(self, data: Data, X: Any) -> ArrayData:
        if not isinstance(data, ArrayData):
            raise DataTypeError(
                f"X: {type(self).__name__} is fitted {self._sources}, got {type(X).__name__}; a forest takes files"
            )
        return data

    def _fit_tree(self, data: ArrayData, target: Target, weight: np.ndarray, l2: float = 0.0) -> Self:
        """Grow the tree on rows with these targets and weights, prune it, and set attributes and evidence."""
        check_positive_weight(weight)
        p, levels = data.n_features, {j: max(len(values), 1) for j, values in self.categories_.items()}
        grown = grow(
            exact_table(data.X, levels, self.n_jobs),
            target,
            weight,
            growth_rules(self, weight, p, levels, random_splits=self.splitter == "random", l2=l2),
            seed=tree_seed(self.random_state),
            threads=n_threads(WORK_PER_CELL * data.n_rows * p, self.n_jobs),
            unit_weights=bool((weight == 1).all()),
        )
        # Pruning needs no validation rows: the optimal subtree for ccp_alpha is unique, and the smallest of equals.
        self.tree_ = tree = prune(grown.tree, self.ccp_alpha) if self.ccp_alpha > 0 else grown.tree
        monitor, risk = self._monitor(1, lambda _: dict(vars(self))), tree.risk
        monitor(1, np.zeros(1), objective=risk, leaves=float(tree.n_leaves), depth=float(tree.max_depth))
        certificate = Certificate("none", 0.0, 0.0, self._claim(grown.tree))
        self._conclude(Solution(np.zeros(1), risk, monitor.history(), certificate, 1, "converged"))
        return self

    def _claim(self, grown: Tree) -> str:
        """The optimality of splits and pruning, in words: no distance from the best of all trees is known."""
        text = "a tree is grown greedily: no distance from the best tree is known; "
        if self.splitter == "random":
            text += "each split is the best of one random threshold for each feature"
        else:
            drawn = "" if self.max_features in (None, 1.0) else " by the features drawn for it"
            text += f"each split is the best of all splits of its node{drawn}"
        if self.ccp_alpha > 0:
            text += (
                f"; of all prunings of the grown tree of {grown.n_leaves} leaves the one of {self.tree_.n_leaves} has "
                f"the least impurity + {self.ccp_alpha:g} per leaf"
            )
        return text

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """Compute the sequence of optimally pruned trees, from the whole tree to its root.

        Parameters
        ----------
        X, y, sample_weight : as for :meth:`fit`

        Returns
        -------
        Bunch
            ``ccp_alphas``, from which on each of the trees is the best, and their ``impurities``.
        """
        model = type(self)(**{**self.get_params(deep=False), "ccp_alpha": 0.0}).fit(X, y, sample_weight)
        alphas, risks, _ = weakest_links(model.tree_)
        return Bunch(ccp_alphas=alphas, impurities=risks)

    @property
    def max_features_(self) -> int:
        """Number of features that are candidates at a node."""
        self._check_fitted()
        return n_candidate_features(self.max_features, self.n_features_in_)

    @property
    def n_outputs_(self) -> int:
        """Number of columns of the target."""
        self._check_fitted()
        return self.tree_.n_outputs

    # ------------------------------------------------------------------------------------------- prediction

    def _mean(self, X: Any) -> Any:
        """Values (n, K) of the leaves of the rows; for Dask input a lazy array."""
        data = self._predict_data(X)
        if isinstance(data, ArrayData):
            return sums_of_batch(data.rows(0, data.n_rows), *self.tree_.arrays, self.n_jobs)
        return engine.map(sums_of_batch, data, *self.tree_.arrays, 1, n_jobs=self.n_jobs)

    def apply(self, X: Any) -> np.ndarray:
        """Return the number of the leaf of each row."""
        data = self._data_in_memory(X)
        nodes, _, roots, levels = self.tree_.arrays
        leaves = leaves_of_batch(data.rows(0, data.n_rows), nodes, roots, levels, self.n_jobs)
        return leaves[:, 0].astype(np.int64)

    def decision_path(self, X: Any) -> sp.csr_array:
        """Return the nodes on the path of each row, as an indicator matrix of shape (n_samples, n_nodes)."""
        return self.tree_.decision_paths(self.apply(X))

    def get_depth(self) -> int:
        """Return the number of splits on the longest path from the root to a leaf."""
        self._check_fitted()
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        self._check_fitted()
        return self.tree_.n_leaves

    # ------------------------------------------------------------------------------------------- inspection

    def _split_totals(self, kind: str) -> np.ndarray:
        if kind == "gain":
            return self.tree_.importances(self.n_features_in_)
        feature = self.tree_.feature
        return np.bincount(feature[feature >= 0], minlength=self.n_features_in_).astype(np.float64)

    def _raw_outputs(self, X: np.ndarray) -> np.ndarray:
        return sums_of_batch(Batch(X), *self.tree_.arrays, self.n_jobs)

    def _expected_outputs(self, columns: list[int], points: np.ndarray) -> np.ndarray:
        (values,) = expected_values(self.tree_.arrays, self.tree_.weighted_n_node_samples, columns, points)
        return values

    def _compute_partial_dependence_recursion(self, grid: np.ndarray, target_features: np.ndarray) -> np.ndarray:
        """Partial dependence at points of a grid, for :func:`sklearn.inspection.partial_dependence`."""
        return self._expected_outputs(np.asarray(target_features).tolist(), np.asarray(grid, np.float64))[:, 0]

    def export_text(self, *, max_depth: int = 10, decimals: int = 2) -> str:
        """Return the tree as indented text.

        Parameters
        ----------
        max_depth : int, default=10
            Branches below this depth are summed up.
        decimals : int, default=2
            Digits after the decimal point.
        """
        from epicycle.tree.cart._export import text

        self._check_fitted()
        return text(self, max_depth=max_depth, decimals=decimals)

    def plot(self, *, max_depth: int | None = 4, decimals: int = 3, ax: Axes | None = None) -> Axes:
        """Draw the tree: splits above, leaves below in the colour of their class or value.

        Parameters
        ----------
        max_depth : int or None, default=4
            Nodes below this depth are not drawn; None draws all.
        decimals : int, default=3
            Significant digits of numbers.
        """
        from epicycle.tree.cart._export import draw

        self._check_fitted()
        return draw(self, max_depth=max_depth, decimals=decimals, ax=ax)

    def _penalty_line(self) -> str:
        parts = [f"{self.leaf_cost:g} for every leaf"] if self.leaf_cost else []
        if l2 := getattr(self, "leaf_l2", 0.0):
            parts.append(f"{l2:g} times the squared value of every leaf")
        return " and ".join(parts)
