"""Gradient boosting: the fit with its evidence, prediction in stages, and inspection."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import has_fit_parameter

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, DataTypeError, ParameterError, ParameterTypeError
from epicycle.core._history import History
from epicycle.core._parameters import AnyOf, Choice, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.core._random import seed_of
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.data import ArrayData, Batch, Data, Scan, as_data
from epicycle.optim import Solution
from epicycle.tree._base import TreeModel, concatenate_histories
from epicycle.tree._binning import bin_edges, padded_edges
from epicycle.tree._ensemble import (
    Ensemble,
    average_score,
    empty_ensemble,
    expected_scores,
    extend,
    importances,
    n_trees,
    scores_of_batch,
    scores_of_data,
    shapley_values,
    truncate,
)
from epicycle.tree._nodes import categorical_nodes, leaves_of_batch
from epicycle.tree._parameters import (
    GROWTH_DOMAINS,
    TREE_DOCS,
    TREE_DOMAINS,
    Share,
    feature_groups,
    min_rows,
    monotone_signs,
    n_candidate_features,
)
from epicycle.tree.boosting._boosting import Boosting, Growth, Validation
from epicycle.tree.boosting._losses import BoostingLoss
from epicycle.tree.boosting._preparation import Preparation
from epicycle.tree.cart._regressor import DecisionTreeRegressor
from epicycle.tree.cart._tree import Tree

# Rows of a leaf by default, where there are enough for two such leaves.
_LEAST_ROWS = 20
#: Attributes that prediction needs beside the trees.
_WITH_TREES = ("categories_", "init_", "_start_", "_from_frame_", "classes_", "n_features_in_", "feature_names_in_")


class GradientBoosting(TreeModel, ABC):
    """A sum of trees, each of which lowers the loss of those before."""

    _docs: ClassVar[dict[str, str]] = {
        **TREE_DOCS,
        "boosting_parameters": r"""learning_rate : float, default=0.1
    :math:`\eta`. Steps are shortened where they might not lower the training loss, and halved where they do not.
%(n_estimators)s
max_leaf_nodes : int or None, default=31
    Maximum number of leaves of a tree.
max_depth : int or None, default=None
    Maximum depth of a tree.
min_samples_leaf : int, float or "auto", default="auto"
    Minimum number of rows of a leaf, whatever their weights; a float is a share of the rows. "auto" is 20, and 1 for
    fewer than 40 rows, of which no two leaves of 20 could be made.
min_samples_split : int or float, default=2
    Minimum number of rows of a node that is split. With `max_leaf_nodes`, smaller nodes that were split become leaves
    again when the tree is grown.
min_impurity_decrease : float, default=0.0
    Minimum decrease, by a split, of the mean squared error of the tree as a fit of the working response.
min_child_weight : float, default=1e-3
    Minimum curvature H of a leaf.
l2_regularization : float, default=0.0
    :math:`\lambda`.
min_split_gain : float, default=0.0
    A split must gain more than this.
max_bins : int, default=255
    Maximum number of bins of a feature, beside one for missing values. Edges are quantiles of all rows, or of a sample
    of 200,000.
subsample : float, default=1.0
    Share of the rows that a tree is grown from, drawn anew for every round.
sampling : {"uniform", "gradient"}, default="uniform"
    Distribution of the drawn rows. "gradient": rows with larger gradients are more likely, and each is weighted by the
    inverse of its probability, so that sums are unbiased. It keeps the quality with fewer rows (0.2 or 0.3 of them)
    where most rows are fitted well.
max_features : int, float, "sqrt", "log2" or None, default=1.0
    Number of features that a tree may use, or their share, drawn anew for every round; None means all.
order : {1, 2}, default=2
    Derivatives of the loss that trees are grown from. 2: Newton steps, as above. 1: a tree is fitted to the negative
    gradient by least squares, and its leaves take the best constant for the loss itself.
criterion : {"squared_error", "friedman_mse", "deprecated"}, default="deprecated"
    Accepted for compatibility; the solution does not depend on it. Any value but the default gives a FutureWarning.
init : estimator, "zero" or None, default=None
    Where the scores start: the predictions of an estimator, which is fitted first (for rows in memory), zero, or the
    best constant.
%(categorical_features)s
    A split names at most 16 levels, each with as many rows as a leaf must have; all others go together.
categorical_smoothing : float, default=20.0
    Added to the curvature of levels when they are ordered, and to :math:`\lambda` in the gain of such splits.
%(handle_unknown)s
%(monotonic_cst)s
interaction_cst : list of groups of features, optional
    Features that share no group never occur on the same path; features in none of the groups form one more.
n_iter_no_change : int, optional
    Stop when the loss of the validation set has not decreased for so many rounds, and keep the trees up to its minimum.
validation_fraction : float, default=0.1
    Share of the rows that is held out as validation set, where `fit` is given no `X_val`.
tol : float, default=1e-7
    Smallest decrease of the validation loss, relative to it, that counts.
warm_start : bool, default=False
    Whether another `fit` adds rounds to the earlier ones, up to `n_estimators`.
random_state : int, Generator, RandomState or None, default=None
    Seed of the samples of rows and features, of the validation set, and of the rows that bins are made of where there
    are more than 200,000.
%(n_jobs)s
%(verbose)s""",
        "boosting_attributes": """trees_ : dict of ndarray
    The trees as arrays; see :mod:`epicycle.tree._ensemble`.
n_estimators_ : int
    Number of rounds that were kept.
n_trees_per_iteration_ : int
    Trees of a round: one for each class where there are more than two.
train_score_ : ndarray of shape (n_rounds,)
    Training loss after each round, as scikit-learn counts it: twice the mean loss for squared error and two classes.
estimators_ : ndarray of shape (n_estimators_, n_trees_per_iteration_)
    The trees as fitted regression trees, made anew on every access. Their impurities are not known (NaN).
init_ : estimator
    The fitted `init`, where it is an estimator.
max_features_ : int
    Number of features that a tree may use.
%(categories_)s
feature_importances_ : ndarray of shape (n_features,)
    Share of every feature in the gain of the splits.
certificate_ : Certificate
    None: boosting is greedy. Its value is the largest rise of the training loss in any round.
history_ : History
    After every round the mean training loss, that of the validation set (``validation``), leaves, step and seconds.""",
        "X_val": "X_val : as X, optional\n"
        "    Rows of a validation set, possibly of another kind than X. Its loss is recorded after every round, and\n"
        "    with `n_iter_no_change` ends the fit; it takes the place of `validation_fraction`.",
        "y_val": "y_val : as y, optional\n    Targets of the validation set.",
        "sample_weight_val": "sample_weight_val : as sample_weight, optional\n    Weights of the validation set.",
    }
    _parameters: ClassVar[dict[str, Domain]] = {
        **TREE_DOMAINS,
        "learning_rate": Real(0, inclusive=False),
        "n_estimators": Integer(1),
        "max_leaf_nodes": NoneOr(Integer(2)),
        "max_depth": NoneOr(Integer(1)),
        "min_samples_leaf": AnyOf(Integer(1), Share(0, 1, inclusive=False), Choice("auto")),
        "min_samples_split": AnyOf(Integer(2), Share(0, 1, inclusive=(False, True))),
        "min_impurity_decrease": Real(0),
        "criterion": Choice("squared_error", "friedman_mse", "deprecated"),
        "init": NoneOr(AnyOf(Choice("zero"), InstanceOf(BaseEstimator))),
        "min_child_weight": Real(0),
        "l2_regularization": Real(0),
        "min_split_gain": Real(0),
        "max_bins": Integer(2, 255),
        "subsample": Real(0, 1, inclusive=(False, True)),
        "sampling": Choice("uniform", "gradient"),
        "max_features": GROWTH_DOMAINS["max_features"],
        "order": Integer(1, 2),
        "categorical_smoothing": Real(0),
        "interaction_cst": NoneOr(InstanceOf(list, tuple)),
        "n_iter_no_change": NoneOr(Integer(1)),
        "validation_fraction": Real(0, 1, inclusive=False),
        "tol": Real(0),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="tree", catalogue=("D4", "D5"), engines=("memory", "files", "dask"), certificate="none"
    )
    _takes_dask = True

    learning_rate: float
    n_estimators: int
    max_leaf_nodes: int | None
    max_depth: int | None
    min_samples_leaf: float | str
    min_samples_split: float
    min_impurity_decrease: float
    criterion: str
    init: Any
    min_child_weight: float
    l2_regularization: float
    min_split_gain: float
    max_bins: int
    subsample: float
    sampling: str
    max_features: float | str | None
    order: int
    categorical_smoothing: float
    monotonic_cst: Any
    interaction_cst: Any
    n_iter_no_change: int | None
    validation_fraction: float
    tol: float
    warm_start: bool
    random_state: Any

    trees_: Ensemble
    n_estimators_: int
    _start_: np.ndarray

    @abstractmethod
    def _loss(self) -> BoostingLoss:
        """The loss of the scores."""

    # ------------------------------------------------------------------------------------------- fit

    def _check_fit(self, X_val: Any, y_val: Any) -> None:
        if (X_val is None) != (y_val is None) and not isinstance(X_val, Scan):
            raise DataError("X_val and y_val: one was given without the other; expected both or none")
        if self.order == 1 and self.monotonic_cst is not None:
            raise ParameterError(
                "monotonic_cst cannot be kept with order=1: leaves take the best constant; use order=2"
            )

        if X_val is not None and not (self.init is None or isinstance(self.init, str)):
            raise ParameterError("init: with an estimator rows of a validation set are held out; X_val is not taken")
        if self.criterion != "deprecated":
            warnings.warn(
                f"criterion={self.criterion!r} has no effect on boosting and is outdated; leave it out",
                FutureWarning,
                stacklevel=4,
            )

    def _fit_init(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Fit the estimator that the scores start from, where `init` is one."""
        if self.init is None or isinstance(self.init, str):
            return
        if self.warm_start and "init_" in self._run.earlier:
            self.init_ = self._run.earlier["init_"]
            return
        name, method = type(self.init).__name__, "predict_proba" if self._target == "labels" else "predict"
        if not hasattr(self.init, method):
            raise ParameterTypeError(
                f"The 'init' parameter of {type(self).__name__} must be a str among {{'zero'}}, None or an object "
                f"implementing 'fit' and {method!r}; {name} has no {method}"
            )
        if sample_weight is not None and not has_fit_parameter(self.init, "sample_weight"):
            raise ParameterTypeError(f"init: The initial estimator {name} does not support sample weights.")
        model = clone(self.init)
        self.init_ = model.fit(X, y) if sample_weight is None else model.fit(X, y, sample_weight=sample_weight)

    @abstractmethod
    def _init_scores(self, X: Any) -> np.ndarray:
        """Scores (n, K) of the estimator that the fit started from."""

    def _validation_data(self, X: Any, y: Any, weight: Any) -> Data | None:
        if X is None:
            return None
        name = type(self).__name__
        data = as_data(
            self._coded(X), y, weight, target=self._target, estimator_name=name, check_finite=False, missing=True
        )
        self._check_features(data, data, reset=False)
        return data

    def _fit_trees(self, X: Any, data: Data, validation_data: Data | None, factors: np.ndarray | None = None) -> Self:
        """Boost on rows whose target is encoded, and set attributes and evidence; `factors` are weights of classes.

        X are the rows as given, which the estimator `init_` predicts.
        """
        state = self._resume_state() or {}
        earlier = self._run.earlier if self.warm_start and "trees_" in self._run.earlier else {}
        if "init_" in vars(self) and not isinstance(data, ArrayData):
            raise DataTypeError(f"X: init={self.init!r:.60} starts from rows in memory, got {type(X).__name__}")
        if earlier and not np.array_equal(earlier.get("classes_", 0), getattr(self, "classes_", 0)):
            raise DataError("y: warm_start goes on with the classes of the earlier fit; these are others")
        seed = int(state.get("seed", seed_of(self.random_state)))
        levels = {j: max(len(values), 1) for j, values in self.categories_.items()}
        edges = bin_edges(data, levels, max_bins=self.max_bins, seed=seed, n_jobs=self.n_jobs)
        # Where a fit goes on, the trees so far give the scores to start from.
        known = state.get("trees", earlier.get("trees_", empty_ensemble()))
        if n_trees(known) > self.n_estimators * self._loss().n_outputs:
            raise ParameterError(
                f"n_estimators={self.n_estimators} is less than the {n_trees(known) // self._loss().n_outputs} rounds "
                "that warm_start goes on with"
            )
        preparation = Preparation(
            loss=self._loss(),
            growth=self._growth(edges, data.n_rows),
            edges=edges,
            seed=seed,
            options={
                "learning_rate": self.learning_rate,
                "subsample": self.subsample,
                "sampling": self.sampling,
                "max_features": self._share_of_features(data.n_features),
                "order": self.order,
                "seed": seed,
            },
            factors=factors,
            held_out=self.validation_fraction if validation_data is None and self.n_iter_no_change else None,
            known=known,
            start=self._given_start(state, earlier, known),
            offset=self._init_scores(X) if "init_" in vars(self) else None,
            earlier=np.asarray(state.get("validation", [])),
            n_jobs=self.n_jobs,
        )
        self._start_, boosting, validation = preparation.begin(data, validation_data)
        solution = self._rounds(boosting, known, padded_edges(edges), validation)
        if earlier:
            solution.history = concatenate_histories(earlier["history_"], solution.history)
            solution.n_iter = solution.history.n_iter
        self._conclude(solution)
        return self

    def _given_start(self, state: Any, earlier: Any, known: Ensemble) -> np.ndarray | None:
        """Scores that the first trees are added to; None where they are the best constants, to be found."""
        if n_trees(known):
            return np.asarray(state["start"] if state else earlier["_start_"])
        return None if self.init is None else np.zeros(self._loss().n_outputs)

    def _share_of_features(self, p: int) -> float:
        asked = self.max_features
        return float(asked) if isinstance(asked, float) else n_candidate_features(asked, p) / p

    def _growth(self, edges: list[np.ndarray], n_rows: int | None) -> Growth:
        p = len(edges)
        least, split = self.min_samples_leaf, self.min_samples_split
        if n_rows is None and any(isinstance(value, float) for value in (least, split)):
            raise ParameterError(
                "min_samples_leaf, min_samples_split: a share needs data whose rows are counted; give a number of rows"
            )
        if least == "auto":
            least = 1 if n_rows is not None and n_rows < 2 * _LEAST_ROWS else _LEAST_ROWS
        categorical = np.zeros(p, np.uint8)
        categorical[list(self.categories_)] = 1
        names = getattr(self, "feature_names_in_", None)
        return Growth(
            n_bins=np.array([len(e) + 1 for e in edges], np.int32),
            categorical=categorical,
            max_leaf_nodes=self.max_leaf_nodes or 0,
            max_depth=self.max_depth or 0,
            min_samples_leaf=min_rows(float(least) if isinstance(least, float) else int(least), n_rows or 0, 1),
            min_samples_split=min_rows(split, n_rows or 0, 2),
            min_decrease=float(self.min_impurity_decrease),
            min_child_weight=float(self.min_child_weight),
            l2=float(self.l2_regularization),
            min_gain=float(self.min_split_gain),
            smoothing=float(self.categorical_smoothing),
            monotone=monotone_signs(self.monotonic_cst, p, names, categorical),
            groups=feature_groups(self.interaction_cst, p, names),
        )

    def _rounds(
        self, boosting: Boosting, known: Ensemble, table: np.ndarray, validation: Validation | None
    ) -> Solution:
        """Rounds until there are `n_estimators`, until no split gains, or until a callback asks to stop."""
        K = boosting.loss.n_outputs
        first = done = n_trees(known) // K
        grown: list[Any] = []

        def ensemble(rounds: int) -> Ensemble:
            return extend(known, grown[: (rounds - first) * K], table)

        def attributes(x: np.ndarray) -> dict[str, Any]:
            kept = {name: value for name, value in vars(self).items() if name in _WITH_TREES}
            return {**kept, "trees_": ensemble(int(x[0])), "n_estimators_": int(x[0])}

        def state() -> dict[str, Any]:
            seen = np.array([] if validation is None else validation.losses)
            return {"trees": ensemble(done), "start": self._start_, "seed": boosting.seed, "validation": seen}

        boosting.check_range()
        monitor = self._monitor(self.n_estimators, attributes)
        loss, largest_rise, reason = boosting.mean_loss, -np.inf, "converged"
        patience = self.n_iter_no_change
        while done < self.n_estimators:
            added = boosting.round(done)
            if not added.gained and not boosting.samples:
                break  # no split gains, and later rounds would see the same gradients
            done += 1
            grown += added.trees
            # Without samples every round lowers the loss, which the certificate states.
            largest_rise, loss = max(largest_rise, added.loss - loss), added.loss
            columns = {"step": added.step, "leaves": float(sum(len(tree.leaves) for tree, _ in added.trees))}
            if validation is not None:
                columns["validation"] = validation.add(added.trees)
            if monitor(done, np.array([float(done)]), objective=loss, state=state, **columns):
                reason = "stopped"
                break
            # Early stopping: the trees after the best round are dropped below.
            if validation is not None and patience is not None and validation.stale(patience, self.tol):
                break
        self.n_estimators_ = done if validation is None or patience is None else validation.best
        self.trees_ = truncate(ensemble(done), self.n_estimators_ * K)
        certificate = greedy_certificate(largest_rise if done > first else 0.0, sampled=boosting.samples)
        history = monitor.history()
        if not history.columns:
            history = History(objective=[])
        left = state() if reason == "stopped" else {}
        return Solution(np.zeros(1), loss, history, certificate, done, reason, state=left)

    # ------------------------------------------------------------------------------------------- prediction

    def _scores(self, X: Any) -> Any:
        """Scores of shape (n, K), for Dask input as a lazy array."""
        scores = scores_of_data(self._predict_data(X), self.trees_, self._start_, self.n_jobs)
        return scores + self._init_scores(X) if "init_" in vars(self) else scores

    def _staged_scores(self, X: Any) -> Iterator[np.ndarray]:
        """Scores after each round."""
        data = self._predict_data(X)
        if not isinstance(data, ArrayData):
            raise DataTypeError(f"X: stages are given for data in memory, got {type(X).__name__}")
        K = len(self._start_)
        batch, scores = data.rows(0, data.n_rows), np.tile(self._start_, (data.n_rows, 1))
        if "init_" in vars(self):
            scores = scores + self._init_scores(X)
        for r in range(n_trees(self.trees_) // K):
            scores = scores + scores_of_batch(batch, self.trees_, np.zeros(K), r * K, (r + 1) * K, self.n_jobs)
            yield scores

    # ------------------------------------------------------------------------------------------- inspection

    def _split_totals(self, kind: str) -> np.ndarray:
        return importances(self.trees_, self.n_features_in_, kind)

    @property
    def n_trees_per_iteration_(self) -> int:
        """Trees of a round: one for each class where there are more than two."""
        self._check_fitted()
        return len(self._start_)

    @property
    def max_features_(self) -> int:
        """Number of features that a tree may use."""
        self._check_fitted()
        return n_candidate_features(self.max_features, self.n_features_in_)

    @property
    def train_score_(self) -> np.ndarray:
        """Training loss after each round, as scikit-learn counts it."""
        self._check_fitted()
        return np.asarray(self._loss().deviance_factor * self.history_.objective)

    def apply(self, X: Any) -> np.ndarray:
        """Return the number of the leaf of each row in each tree.

        The shape is (n_samples, n_estimators_), or (n_samples, n_estimators_, n_classes) for more than two classes.
        """
        data, trees, K = self._data_in_memory(X), self.trees_, len(self._start_)
        batch = data.rows(0, data.n_rows)
        leaves = leaves_of_batch(batch, trees["nodes"], trees["roots"], trees["levels"], self.n_jobs)
        leaves = leaves.astype(np.float64)
        return leaves if K == 1 and self._target == "numeric" else leaves.reshape(len(leaves), -1, K)

    @property
    def estimators_(self) -> np.ndarray:
        """The trees as fitted regression trees, made anew on every access; their impurities are not known (NaN)."""
        self._check_fitted()
        trees, K = self.trees_, len(self._start_)
        out = np.empty((n_trees(trees) // K, K), dtype=object)
        for t in range(n_trees(trees)):
            rows = slice(int(trees["roots"][t]), int(trees["roots"][t + 1]))
            nodes = trees["nodes"][rows].copy()
            categorical = categorical_nodes(nodes)
            levels = trees["levels"][nodes[categorical, 0].astype(np.int64)]
            nodes[categorical, 0] = np.arange(len(levels), dtype=np.uint64)
            model = DecisionTreeRegressor(
                max_depth=self.max_depth,
                max_leaf_nodes=self.max_leaf_nodes,
                min_samples_split=self.min_samples_split,
                min_impurity_decrease=self.min_impurity_decrease,
            )
            model.tree_ = Tree(
                nodes,
                levels,
                trees["values"][rows, None] / self.learning_rate,
                np.full(len(nodes), np.nan),
                trees["count"][rows],
                trees["cover"][rows],
                self.n_features_in_,
                np.ones(1, np.int64),
            )
            model._vector_, model._from_frame_, model.categories_ = True, self._from_frame_, self.categories_
            model.n_features_in_ = self.n_features_in_
            out[t // K, t % K] = model
        return out

    def _raw_outputs(self, X: np.ndarray) -> np.ndarray:
        if "init_" in vars(self):
            raise ParameterError("init: inspection explains the trees alone; expected a fit with init=None")
        return scores_of_batch(Batch(X), self.trees_, self._start_, 0, n_trees(self.trees_), self.n_jobs)

    def _row_losses(self, outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self._loss().row_values(y, outputs)

    def _expected_outputs(self, columns: list[int], points: np.ndarray) -> np.ndarray:
        return expected_scores(self.trees_, self._start_, columns, points)

    def shap_values(self, X: Any) -> Any:
        """Compute exact Shapley values: contributions of the features to the score of a row, less the average score.

        A condition on a feature that counts as unknown is passed in the shares of the training rows that passed it.
        The values of a row add up to its score less :attr:`average_score_`.

        Parameters
        ----------
        X : as for :meth:`fit`

        Returns
        -------
        ndarray of shape (n_samples, n_features), or (n_samples, n_features, n_classes) for more than two classes
            For Dask input a lazy array.
        """
        return shapley_values(self._predict_data(X), self.trees_, len(self._start_), self.n_jobs)

    @property
    def average_score_(self) -> np.ndarray | float:
        """Average score of the training rows, tree by tree: the reference of :meth:`shap_values`."""
        return average_score(self.trees_, self._start_)

    def _penalty_line(self) -> str:
        return f"l2/2 sum of squared leaf values, l2={self.l2_regularization:g}" if self.l2_regularization else ""


def greedy_certificate(rise: float, *, sampled: bool) -> Certificate:
    """No certificate of optimality; the value is the largest rise of the training loss in any round."""
    bound, claim = 0.0, "the training loss fell in every round"
    if sampled:
        bound = max(rise, 0.0)
        claim = f"rounds on samples of rows or features may raise the training loss (here by {bound:.1e} at most)"
    return Certificate("none", rise, bound, f"boosting is greedy: no distance from an optimum is known; {claim}")
