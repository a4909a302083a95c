r"""Isolation forest:  s(x) = -2^(-E[h(x)] / c(psi)),  h(x) the path length of x in a random tree of psi rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle import _native, engine
from epicycle.anomaly._detector import CONTAMINATION, OutlierDetector
from epicycle.anomaly._isolation_trees import (
    NO_LEVELS,
    ForestGrowth,
    GrowthPlan,
    TreeArrays,
    average_path_length,
    expected_lengths,
    no_trees,
    number_of_trees,
)
from epicycle.anomaly._row_samples import IsolationSamples
from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._history import History
from epicycle.core._memory import require_memory
from epicycle.core._parameters import AnyOf, Boolean, Choice, Domain, Integer, Real
from epicycle.core._random import seed_of
from epicycle.core._solution import Solution
from epicycle.core._threads import n_threads
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData, Batch
from epicycle.tree import DecisionTreeRegressor
from epicycle.tree._base import concatenate_histories
from epicycle.tree._nodes import dense_pieces, sums_of_batch
from epicycle.tree.cart._tree import Tree

_MOST_COLUMNS = 1 << 24  # that a node can name
_NODE_BYTES = 48.0  # of a node with its length and count
_WORK_PER_PATH = 40.0  # operations for the path of a row through a tree and what it adds to the columns


class IsolationForest(OutlierDetector):
    r"""Isolation forest: rows that random splits set apart early are anomalies.

    .. math:: s(x) = -2^{-\bar h(x) / c(\psi)}, \qquad c(\psi) = 2 (\ln(\psi - 1) + \gamma) - 2 (\psi - 1) / \psi

    with :math:`\bar h(x)` the mean length of the path of x in trees of :math:`\psi` rows each, whose nodes divide at a
    random threshold of a random column, and :math:`c(\psi)` the mean over such trees. Missing values (NaN) go to a
    random side where the sample has some, and to the larger one elsewhere.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    max_samples : "auto", int or float, default="auto"
        Rows of a tree, as a number or a share; "auto" takes 256, or all where there are fewer.
    contamination : "auto" or float, default="auto"
        Share of anomalies among the rows, at most 0.5: `offset_` is that quantile of their scores. "auto" takes -0.5,
        the score of a row of mean path length.
    max_features : int or float, default=1.0
        Columns that a tree sees, as a number or a share.
    bootstrap : bool, default=False
        Whether rows of a tree are drawn with replacement.
    warm_start : bool, default=False
        Whether a new fit keeps the trees of the one before and adds those that `n_estimators` asks for.

    Attributes
    ----------
    max_samples_ : int
        Rows of a tree.
    trees_ : dict of ndarray
        All trees one after the other: packed `nodes`, the `length` of a path that ends at each and the rows there
        (`count`), and the `roots`.
    estimators_ : list of DecisionTreeRegressor
        The trees, made anew on every access; a leaf predicts the length of its paths.
    estimator_ : DecisionTreeRegressor
        A tree before its fit.
    estimators_samples_ : list of ndarray
        Rows that every tree was grown on.
    estimators_features_ : list of ndarray
        Columns that every tree saw.
    certificate_ : Certificate
        None: trees are drawn, nothing is optimised.

    Examples
    --------
    >>> from epicycle import IsolationForest
    >>> X = [[-1.1], [0.3], [0.5], [100.0]]
    >>> model = IsolationForest(random_state=0).fit(X)
    >>> model.predict([[0.1], [0.0], [90.0]])
    array([ 1,  1, -1])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_estimators": Integer(minimum=1),
        "max_samples": AnyOf(Choice("auto"), Integer(minimum=1), Real(minimum=0, maximum=1, inclusive=(False, True))),
        "contamination": CONTAMINATION,
        "max_features": AnyOf(Integer(minimum=1), Real(minimum=0, maximum=1, inclusive=(False, True))),
        "bootstrap": Boolean(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="anomaly", catalogue=("E16",), engines=("memory",), certificate="none"
    )
    _takes_sparse = True
    _takes_any_size = True

    trees_: TreeArrays
    max_samples_: int
    _seed_: int
    _samples_: IsolationSamples
    _columns_: int
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"input_tags.allow_nan": True}

    @stores_arguments(n_jobs=None, random_state=None, verbose=0, warm_start=False)
    def __init__(
        self,
        *,
        n_estimators: int = 100,
        max_samples: float | str = "auto",
        contamination: float | str = "auto",
        max_features: float = 1.0,
        bootstrap: bool = False,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    # ------------------------------------------------------------------------------------------- fit

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Grow the trees on rows X."""
        data = self._fit_data(X, None, sample_weight, target="none", check_finite=False, missing=True)
        if not isinstance(data, ArrayData):
            raise DataError(f"X: IsolationForest is fitted in memory, got {type(X).__name__}; collect a sample of rows")
        state = self._resume_state() or {}
        before = self._run.earlier if self.warm_start else {}
        known = state.get("trees", before.get("trees_", no_trees()))
        self._seed_ = int(state.get("seed", before.get("_seed_", -1)))
        self._seed_ = seed_of(self.random_state) if self._seed_ < 0 else self._seed_
        self._check_known(number_of_trees(known), before)
        growth = ForestGrowth(self._plan(data), known)
        self.offset_ = -0.5
        self._grow(growth, before.get("history_") if number_of_trees(known) and not state else None)
        if self.contamination != "auto":
            self._take_share(self._scores(data), data, float(self.contamination))
        return self

    def _check_known(self, n_known: int, before: Mapping[str, Any]) -> None:
        if n_known > self.n_estimators:
            raise ParameterError(
                f"n_estimators={self.n_estimators} is less than the {n_known} trees that warm_start goes on with"
            )
        if n_known and before.get("n_features_in_", self.n_features_in_) != self.n_features_in_:
            raise DataError(
                f"X: has {self.n_features_in_} features; warm_start goes on with trees of {before['n_features_in_']}"
            )
        if n_known == self.n_estimators and "trees_" in before:
            warnings.warn("Warm-start fitting without increasing n_estimators does not fit new trees.", stacklevel=6)

    def _plan(self, data: ArrayData) -> GrowthPlan:
        p = data.n_features
        if p > _MOST_COLUMNS:
            raise DataError(f"X: has {p:,} columns; expected at most {_MOST_COLUMNS:,}, which a node can name")
        wanted = self.max_features
        if isinstance(wanted, int | np.integer) and wanted > p:
            raise ParameterError(f"max_features={wanted}; expected at most {p}, the number of columns")
        columns = int(wanted) if isinstance(wanted, int | np.integer) else max(1, int(wanted * p))
        samples = IsolationSamples(data.X, data.weight, self.max_samples, bootstrap=self.bootstrap)
        if samples.asks_too_many:
            warnings.warn(
                f"max_samples ({self.max_samples}) is greater than the total number of samples ({samples.total}). "
                "max_samples will be set to n_samples for estimation.",
                stacklevel=6,
            )
        nodes = 2.0 * min(samples.size, 2 ** int(np.ceil(np.log2(max(samples.size, 2)))))
        what = f"{self.n_estimators:,} trees of {samples.size:,} rows"
        require_memory(_NODE_BYTES * nodes * self.n_estimators, what, "take a smaller max_samples or n_estimators")
        self.max_samples_, self._samples_, self._columns_ = samples.size, samples, columns
        depth = int(np.ceil(np.log2(max(samples.size, 2))))
        return GrowthPlan(data.X, samples, columns, depth, self._seed_)

    def _grow(self, growth: ForestGrowth, earlier: History | None) -> None:
        kept = ("n_features_in_", "feature_names_in_", "offset_", "max_samples_", "_seed_", "_columns_")

        def attributes(x: np.ndarray) -> dict[str, Any]:
            found = {name: value for name, value in vars(self).items() if name in kept}
            return {**found, "trees_": growth.forest(int(x[0]))}

        monitor = self._monitor(self.n_estimators, attributes)
        growth.run(monitor, self.n_estimators, self.n_jobs)
        self.trees_ = growth.forest()
        history = monitor.history() if monitor.history().columns else History(objective=[])
        history = history if earlier is None else concatenate_histories(earlier, history)
        claim = "trees are drawn at random, and scores are means over them: nothing is optimised"
        reason, state = ("stopped", growth.state()) if growth.stopped else ("converged", {})
        certificate, n = Certificate("none", 0.0, 0.0, claim), number_of_trees(self.trees_)
        self._conclude(Solution(np.zeros(1), growth.objective, history, certificate, n, reason, state=state))

    # ------------------------------------------------------------------------------------------- scores

    def score_samples(self, X: Any) -> Any:
        """The score of every row, between -1 (an anomaly) and 0; a path of mean length gives -0.5."""
        return self._scores(self._predict_data(X, missing=True))

    def _scores(self, data: Any) -> Any:
        trees = self.trees_
        arrays = trees["nodes"], trees["length"][:, None], trees["roots"], NO_LEVELS
        return engine.map(_scores_of, data, *arrays, self._mean_length(), n_jobs=self.n_jobs)

    def _mean_length(self) -> float:
        return float(average_path_length(self.max_samples_))

    def explain(self, X: Any) -> np.ndarray:
        r"""Contributions of the features to the score of a row, along its paths.

        A split changes the path length that is expected of the rows below it, and the change belongs to its feature
        (Saabas' decomposition). Contributions are means over the trees in units of :math:`c(\\psi)`, positive where
        they shorten paths, and add up to how much shorter the mean path of the row is than that of the training rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        data = self._predict_data(X, missing=True)
        if not isinstance(data, ArrayData):
            raise DataError("X: explanations are made of rows in memory; collect them first")
        trees, n, p = self.trees_, data.n_rows, data.n_features
        require_memory(8.0 * n * p, f"explanations of {n:,} rows", "explain fewer rows")
        out, mean = np.zeros((n, p)), expected_lengths(trees)
        threads = n_threads(_WORK_PER_PATH * n * number_of_trees(trees), self.n_jobs)
        for rows, piece in dense_pieces(data.X):
            _native.anomaly.path_contributions(
                piece, trees["nodes"], mean, trees["roots"], NO_LEVELS, out[rows], threads
            )
        scale = self._mean_length() * number_of_trees(trees)
        return -out / scale if scale > 0 else out

    # ------------------------------------------------------------------------------------------- the trees

    @property
    def estimator_(self) -> DecisionTreeRegressor:
        """A tree of the forest before its fit."""
        depth = int(np.ceil(np.log2(max(self.max_samples_, 2))))
        return DecisionTreeRegressor(splitter="random", max_features=1, max_depth=depth)

    @property
    def estimators_(self) -> list[Any]:
        self._check_fitted()
        return [self._tree(t) for t in range(number_of_trees(self.trees_))]

    def _tree(self, t: int) -> DecisionTreeRegressor:
        trees, model = self.trees_, self.estimator_
        rows = slice(int(trees["roots"][t]), int(trees["roots"][t + 1]))
        count, length = trees["count"][rows], trees["length"][rows]
        weight = count.astype(np.float64)
        model.tree_ = Tree(
            trees["nodes"][rows], NO_LEVELS, length[:, None], np.zeros(len(count)), count, weight, self.n_features_in_,
            np.ones(1, np.int64),
        )  # fmt: skip
        model.categories_, model._from_frame_, model._vector_ = {}, False, True
        model.n_features_in_ = self.n_features_in_
        return model

    @property
    def estimators_features_(self) -> list[np.ndarray]:
        self._check_fitted()
        plan = GrowthPlan(np.empty((0, self.n_features_in_)), None, self._columns_, 0, self._seed_)  # type: ignore[arg-type]
        return [plan.columns(t) for t in range(number_of_trees(self.trees_))]

    @property
    def estimators_samples_(self) -> list[np.ndarray]:
        self._check_fitted()
        if not hasattr(self, "_samples_"):
            raise AttributeError("estimators_samples_: a copy of a forest, or one from a file, has none; fit it again")
        return [self._samples_.draw(self._seed_, t) for t in range(number_of_trees(self.trees_))]

    def __len__(self) -> int:
        return number_of_trees(self.trees_)

    def __getstate__(self) -> dict[str, Any]:
        # Eight bytes for each training row, which no method of a stored model needs.
        return {name: value for name, value in super().__getstate__().items() if name != "_samples_"}


def _scores_of(
    batch: Batch, nodes: np.ndarray, length: np.ndarray, roots: np.ndarray, levels: np.ndarray, mean: float
) -> np.ndarray:
    sums = sums_of_batch(batch, nodes, length, roots, levels, 1)[:, 0]
    return np.asarray(-np.exp2(-sums / ((len(roots) - 1) * mean)) if mean > 0 else np.full(len(sums), -0.5))
