"""Ways to read a forest: leaves, paths, how near rows are to each other, and what features are worth out of bag."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._memory import require_memory
from epicycle.core._random import seed_of, stream
from epicycle.data import Batch
from epicycle.data._target import as_weight
from epicycle.engine import n_threads
from epicycle.engine._ordered import in_order
from epicycle.tree._inspection import check_repeats
from epicycle.tree._tabular import TreeTable
from epicycle.tree.cart._tree import Tree, leaves_of_batch
from epicycle.tree.forest._arrays import ForestArrays, n_trees, tree_of
from epicycle.tree.forest._leaves import leaf_indicator
from epicycle.tree.forest._sampling import RowSamples, row_keys

__all__ = ["ForestReading"]


class ForestReading(TreeTable):
    """What a fitted forest can be asked beside predictions."""

    trees_: ForestArrays

    @abstractmethod
    def _as_tree(self, tree: Tree) -> Any:
        """A fitted decision tree around these nodes."""

    def apply(self, X: Any) -> np.ndarray:
        """The number of the leaf that each row falls into in each tree, (n_samples, n_estimators)."""
        data, trees = self._memory(X), self.trees_
        batch = data.rows(0, data.n_rows)
        return leaves_of_batch(batch, trees["nodes"], trees["roots"], trees["levels"], self.n_jobs).astype(np.int64)

    def decision_path(self, X: Any) -> tuple[sp.csr_array, np.ndarray]:
        """(indicator matrix of the nodes that each row passes, where the nodes of each tree begin)."""
        leaves = self.apply(X)
        trees = [tree_of(self.trees_, t, two_classes=False) for t in range(n_trees(self.trees_))]
        paths = [tree.decision_paths(leaves[:, t]) for t, tree in enumerate(trees)]
        return sp.csr_array(sp.hstack(paths, format="csr")), self.trees_["roots"].copy()

    def proximity(self, X: Any, Y: Any = None) -> sp.csr_array:
        """The share of trees in which two rows fall into the same leaf.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        Y : array-like of shape (m, n_features), optional
            Rows to compare with; X itself where it is left out.

        Returns
        -------
        csr_array of shape (n, m)
            Pairs that never meet are not stored.
        """
        T, roots = n_trees(self.trees_), self.trees_["roots"]
        first = leaf_indicator(self.apply(X), roots)
        second = first if Y is None else leaf_indicator(self.apply(Y), roots)
        meetings = float(first.sum(axis=0) @ second.sum(axis=0))
        pairs = min(meetings, float(first.shape[0]) * second.shape[0])
        what = f"proximities of {first.shape[0]} x {second.shape[0]} rows"
        require_memory(16.0 * pairs, what, "pass fewer rows as X")
        out = sp.csr_array(first @ second.T)
        out.sort_indices()
        return sp.csr_array((out.data.astype(np.float64) / T, out.indices, out.indptr), shape=out.shape)

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
        """By how much the out-of-bag loss of a tree rises when a feature is shuffled (Breiman, 2001).

        Parameters
        ----------
        X, y, sample_weight : the training data, or with ``out_of_bag=False`` any rows
            In memory; the samples of the trees are drawn again from their seeds.
        n_repeats : int, default=1
            Shuffles of every feature in every tree.
        random_state : int, Generator, RandomState or None, default=0
        out_of_bag : bool, default=True
            Whether each tree is asked for the training rows that it did not see. Otherwise the whole forest is asked
            for all rows.

        Returns
        -------
        mean, standard_error : ndarray of shape (n_features,)
            Over the trees, or over the rows. The loss is the squared error, or for classes the share of wrong
            predictions.
        """
        if not out_of_bag:
            return super().permutation_importances(X, y, sample_weight, n_repeats=n_repeats, random_state=random_state)
        data = self._dense(X)
        n, T, p = data.n_rows, n_trees(self.trees_), data.n_features
        if n != self._n_rows_:
            raise DataError(f"X has {n} rows; the forest was grown on {self._n_rows_}: expected the training data")
        if not self.bootstrap and self.max_samples is None:
            raise ParameterError("every tree saw all rows; out-of-bag losses need bootstrap=True or max_samples")
        check_repeats(n_repeats)
        target, seed = self._known_target(y, n), seed_of(random_state)
        weight = as_weight(sample_weight, n)
        samples = RowSamples(row_keys(data.X, target), weight, self.max_samples, bootstrap=self.bootstrap)
        rises: list[np.ndarray] = []

        def work(t: int) -> np.ndarray:
            counts = samples.counts(self._seed_, t)
            outside = np.flatnonzero(counts == 0)
            rise = np.zeros(p)
            if not len(outside):
                return np.full(p, np.nan)
            tree = tree_of(self.trees_, t, two_classes=False)
            roots = np.array([0, tree.node_count], np.int64)
            part, goal = np.array(data.X[outside]), target[outside]

            def loss() -> float:
                leaf = leaves_of_batch(Batch(part), tree.nodes, roots, tree.levels, 1)[:, 0]
                return float(self._row_losses(tree.value[leaf], goal).mean())

            base = loss()
            random = stream(seed, "shuffle", t)
            used = tree.feature
            for j in np.unique(used[used >= 0]):
                column = part[:, j].copy()
                for _ in range(n_repeats):
                    part[:, j] = random.permutation(column)
                    rise[j] += (loss() - base) / n_repeats
                part[:, j] = column
            return rise

        in_order(iter(range(T)), work, rises.append, n_threads(30.0 * n * p * T, self.n_jobs))
        table = np.array(rises)
        table = table[~np.isnan(table).any(axis=1)]
        return table.mean(axis=0), table.std(axis=0) / np.sqrt(max(len(table), 1))
