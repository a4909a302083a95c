"""Gradient boosting: the fit with its evidence, prediction in stages, and inspection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, DataTypeError, ParameterError
from epicycle.core._history import History
from epicycle.core._parameters import Choice, Domain, InstanceOf, Integer, NoneOr, Real
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
from epicycle.tree._parameters import TREE_DOCS, TREE_DOMAINS, feature_groups, monotone_signs
from epicycle.tree.boosting._boosting import Boosting, Growth, Validation
from epicycle.tree.boosting._losses import BoostingLoss
from epicycle.tree.boosting._preparation import Preparation

#: Attributes that prediction needs beside the trees.
_WITH_TREES = ("categories_", "_start_", "_from_frame_", "classes_", "n_features_in_", "feature_names_in_")


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
min_samples_leaf : int, default=20
    Minimum number of rows of a leaf, whatever their weights.
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
max_features : float, default=1.0
    Share of the features that a tree may use, drawn anew for every round.
order : {1, 2}, default=2
    Derivatives of the loss that trees are grown from. 2: Newton steps, as above. 1: a tree is fitted to the negative
    gradient by least squares, and its leaves take the best constant for the loss itself.
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
        "min_samples_leaf": Integer(1),
        "min_child_weight": Real(0),
        "l2_regularization": Real(0),
        "min_split_gain": Real(0),
        "max_bins": Integer(2, 255),
        "subsample": Real(0, 1, inclusive=(False, True)),
        "sampling": Choice("uniform", "gradient"),
        "max_features": Real(0, 1, inclusive=(False, True)),
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
    min_samples_leaf: int
    min_child_weight: float
    l2_regularization: float
    min_split_gain: float
    max_bins: int
    subsample: float
    sampling: str
    max_features: float
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

    def _validation_data(self, X: Any, y: Any, weight: Any) -> Data | None:
        if X is None:
            return None
        name = type(self).__name__
        data = as_data(
            self._coded(X), y, weight, target=self._target, estimator_name=name, check_finite=False, missing=True
        )
        self._check_features(data, data, reset=False)
        return data

    def _fit_trees(self, data: Data, validation_data: Data | None, factors: np.ndarray | None = None) -> Self:
        """Boost on rows whose target is encoded, and set attributes and evidence; `factors` are weights of classes."""
        state = self._resume_state() or {}
        earlier = self._run.earlier if self.warm_start and "trees_" in self._run.earlier else {}
        if earlier and not np.array_equal(earlier.get("classes_", 0), getattr(self, "classes_", 0)):
            raise DataError("y: warm_start goes on with the classes of the earlier fit; these are others")
        seed = int(state.get("seed", seed_of(self.random_state)))
        levels = {j: max(len(values), 1) for j, values in self.categories_.items()}
        edges = bin_edges(data, levels, max_bins=self.max_bins, seed=seed, n_jobs=self.n_jobs)
        # Where a fit goes on, the trees so far give the scores to start from.
        known = state.get("trees", earlier.get("trees_", empty_ensemble()))
        preparation = Preparation(
            loss=self._loss(),
            growth=self._growth(edges),
            edges=edges,
            seed=seed,
            options={
                "learning_rate": self.learning_rate,
                "subsample": self.subsample,
                "sampling": self.sampling,
                "max_features": self.max_features,
                "order": self.order,
                "seed": seed,
            },
            factors=factors,
            held_out=self.validation_fraction if validation_data is None and self.n_iter_no_change else None,
            known=known,
            start=np.asarray(state["start"] if state else earlier["_start_"]) if n_trees(known) else None,
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

    def _growth(self, edges: list[np.ndarray]) -> Growth:
        p = len(edges)
        categorical = np.zeros(p, np.uint8)
        categorical[list(self.categories_)] = 1
        names = getattr(self, "feature_names_in_", None)
        return Growth(
            n_bins=np.array([len(e) + 1 for e in edges], np.int32),
            categorical=categorical,
            max_leaf_nodes=self.max_leaf_nodes or 0,
            max_depth=self.max_depth or 0,
            min_samples_leaf=self.min_samples_leaf,
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
        return scores_of_data(self._predict_data(X), self.trees_, self._start_, self.n_jobs)

    def _staged_scores(self, X: Any) -> Iterator[np.ndarray]:
        """Scores after each round."""
        data = self._predict_data(X)
        if not isinstance(data, ArrayData):
            raise DataTypeError(f"X: stages are given for data in memory, got {type(X).__name__}")
        K = len(self._start_)
        batch, scores = data.rows(0, data.n_rows), np.tile(self._start_, (data.n_rows, 1))
        for r in range(n_trees(self.trees_) // K):
            scores = scores + scores_of_batch(batch, self.trees_, np.zeros(K), r * K, (r + 1) * K, self.n_jobs)
            yield scores

    # ------------------------------------------------------------------------------------------- inspection

    def _split_totals(self, kind: str) -> np.ndarray:
        return importances(self.trees_, self.n_features_in_, kind)

    def _raw_outputs(self, X: np.ndarray) -> np.ndarray:
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
