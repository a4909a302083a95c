"""The loop over the trees of a forest, on threads or on the workers of a cluster."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from epicycle.engine import n_threads
from epicycle.engine._dask import active_client
from epicycle.engine._ordered import in_order
from epicycle.tree.cart._tree import Tree
from epicycle.tree.forest._arrays import ForestArrays, LeafSamples, join, n_trees
from epicycle.tree.forest._grow import ForestTree, Problem, grow_tree
from epicycle.tree.forest._out_of_bag import OutOfBag

# Operations for a drawn row and a candidate feature of one tree (about 60 ns with all its levels).
_WORK_PER_DRAWN_CELL = 50.0


class Growth:
    """A forest while it grows: the trees it goes on with, those grown since, and what is gathered from them."""

    def __init__(
        self, problem: Problem, known: ForestArrays, oob: OutOfBag | None, leaf_samples: LeafSamples | None
    ) -> None:
        self.problem, self.known, self.oob, self.leaf_samples = problem, known, oob, leaf_samples
        self.grown: list[Tree] = []
        self.stopped, self.objective = False, math.nan

    def forest(self, size: int | None = None) -> ForestArrays:
        """All trees, or the first `size` of them."""
        return join(self.known, self.grown[: None if size is None else size - n_trees(self.known)])

    def state(self) -> dict[str, Any]:
        """State from which an interrupted fit goes on."""
        out: dict[str, Any] = {"trees": self.forest(), "seed": self.problem.seed}
        if self.oob is not None:
            out.update(oob_sum=self.oob.sum.copy(), oob_count=self.oob.count.copy())
        if self.leaf_samples is not None:
            out["leaf_samples"] = self.leaf_samples.state()
        return out

    def run(self, monitor: Any, n_estimators: int, n_jobs: int | None) -> None:
        """Grow trees until there are `n_estimators`, or until the monitor asks to stop."""
        problem, first = self.problem, n_trees(self.known)
        # Trees are drawn lazily: after a stop no further one is started.
        numbers = itertools.takewhile(lambda _: not self.stopped, iter(range(first, n_estimators)))
        missing = max(n_estimators - first, 1)
        client = active_client() if problem.rows.on_dask else None
        work: Callable[[int], ForestTree]
        if client is None:
            drawn = float(len(problem.samples.rows)) * problem.rules.max_features
            threads = n_threads(_WORK_PER_DRAWN_CELL * drawn * (n_estimators - first), n_jobs)
            # Trees run side by side; threads that are left over work within a tree.
            inner = max(1, threads // missing)
            work = lambda t: grow_tree(problem, t, inner)  # noqa: E731
        else:  # the workers grow the trees, each from a copy of the bins; threads here wait for them
            threads = sum(client.nthreads().values())
            shared = client.scatter(problem, broadcast=True, hash=False)
            work = lambda t: client.submit(grow_tree, shared, t, 1, pure=False).result()  # noqa: E731
        # The monitor knows this object: kept here, both would hold the data until a collection.
        in_order(numbers, work, lambda new: self._add(new, monitor), min(threads, missing))

    def _add(self, new: ForestTree, monitor: Any) -> None:
        if self.stopped:
            return
        self.grown.append(new.tree)
        self.objective = new.tree.risk
        if self.oob is not None and new.oob_rows is not None:
            self.oob.add(new)
            self.objective = self.oob.loss(self.problem.rows.y, self.problem.target)
        if self.leaf_samples is not None and new.leaf_rows is not None:
            self.leaf_samples.add(*new.leaf_rows)
        done = n_trees(self.known) + len(self.grown)
        columns = {"leaves": float(new.tree.n_leaves), "depth": float(new.tree.max_depth)}
        where = np.array([float(done)])
        self.stopped = bool(monitor(done, where, objective=self.objective, state=self.state, **columns))
