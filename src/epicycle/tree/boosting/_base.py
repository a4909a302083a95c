"""Gradient boosting: the fit with its evidence, prediction in stages, and inspection."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, DataTypeError, ParameterError, ParameterTypeError
from epicycle.core._history import History
from epicycle.core._parameters import Domain
from epicycle.core._random import seed_of
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.data import ArrayData, Batch, DaskData, Data, Scan, as_data
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
from epicycle.tree._nodes import leaves_of_batch
from epicycle.tree._parameters import n_candidate_features
from epicycle.tree.boosting._boosting import Boosting, Round
from epicycle.tree.boosting._held_out import Validation, hold_out
from epicycle.tree.boosting._losses import BoostingLoss
from epicycle.tree.boosting._parameters import BOOSTING_DOCS, BOOSTING_DOMAINS, growth_of
from epicycle.tree.boosting._preparation import Preparation
from epicycle.tree.boosting._regression_trees import regression_trees, tree_parameters
from epicycle.tree.boosting._round_table import RoundTable
from epicycle.tree.boosting._stopping import Stopping

# Columns of the history: the loss of the rows that a round did not draw, before and after it.
_LEFT_OUT = ("left_out_before", "left_out")
#: Attributes that prediction needs beside the trees.
_WITH_TREES = ("categories_", "init_", "_start_", "_from_frame_", "classes_", "n_features_in_", "feature_names_in_")


class GradientBoosting(TreeModel, ABC):
    """A sum of trees, each of which lowers the loss of those before."""

    _docs: ClassVar[dict[str, str]] = BOOSTING_DOCS
    _parameters: ClassVar[dict[str, Domain]] = BOOSTING_DOMAINS
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
    min_weight_fraction_leaf: float
    min_impurity_decrease: float
    ccp_alpha: float
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
    keep_best: bool
    tol: float
    warm_start: bool
    random_state: Any
    verbose: int

    trees_: Ensemble
    n_estimators_: int
    _start_: np.ndarray
    _seed_: int
    #: Parameters of the trees, by the number of rounds up to which they were grown with them.
    _grown_with_: list[dict[str, Any]]
    #: The parameter that holds the number of rounds.
    _rounds_name: ClassVar[str] = "n_estimators"
    #: Whether `verbose` prints a table of the rounds, as scikit-learn's class of the name does.
    _prints_rounds: ClassVar[bool] = True

    @abstractmethod
    def _loss(self) -> BoostingLoss:
        """The loss of the scores."""

    # ------------------------------------------------------------------------------------------- fit

    def _check_fit(self, X_val: Any, y_val: Any) -> None:
        if (X_val is None) != (y_val is None) and not isinstance(X_val, Scan):
            given, missing = ("X_val", "y_val") if y_val is None else ("y_val", "X_val")
            raise DataError(
                f"{given} is provided, but {missing} was not provided: one was given without the other; expected both "
                "or none"
            )
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
        if isinstance(self.init, type) or not (hasattr(self.init, "fit") and hasattr(self.init, method)):
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

    def _stopping(self, data: Data, given: Data | None) -> Stopping:
        """The rule by which the fit ends early, for these rows and this validation set."""
        held_out = self.validation_fraction if given is None and self.n_iter_no_change else None
        if self.keep_best:
            return Stopping(self.n_iter_no_change, self.tol, held_out, "best")
        # `tol` is in the units of `train_score_`.
        return Stopping(self.n_iter_no_change, self.tol / self._loss().deviance_factor, held_out)

    def _fit_trees(
        self,
        X: Any,
        data: Data,
        validation_data: Data | None,
        factors: np.ndarray | None = None,
        asked: Callable[..., Any] | None = None,
        X_val: Any = None,
    ) -> Self:
        """Boost on rows whose target is encoded, and set attributes and evidence; `factors` are weights of classes.

        X are the rows as given, which the estimator `init_` predicts; `asked` is the user's monitor.
        """
        state = self._resume_state() or {}
        earlier = self._run.earlier if self.warm_start and "trees_" in self._run.earlier else {}
        if "init_" in vars(self) and not isinstance(data, ArrayData):
            raise DataTypeError(f"X: init={self.init!r:.60} starts from rows in memory, got {type(X).__name__}")
        if earlier and not np.array_equal(earlier.get("classes_", 0), getattr(self, "classes_", 0)):
            raise DataError("y: warm_start goes on with the classes of the earlier fit; these are others")
        # Rounds that are added later hold out the same rows.
        self._seed_ = seed = int(state.get("seed", earlier.get("_seed_", seed_of(self.random_state))))
        stopping = self._stopping(data, validation_data)
        stopping.resume(state.get("stopping"), earlier.get("_stopping_"))
        if self._loss().delta_quantile is not None and isinstance(data, DaskData):
            raise ParameterError(
                "alpha: the quantile of Huber's loss needs rows in memory; give delta for data on Dask"
            )
        levels = {j: max(len(values), 1) for j, values in self.categories_.items()}
        held_out = None
        if stopping.held_out is not None:
            by_class = self._target == "labels"
            split = self._split_seed(seed)
            # Not by the seed of the sample for bin edges.
            options: dict[str, Any] = {"spare_single": self.keep_best, "n_jobs": self.n_jobs}
            held_out = hold_out(data, stopping.held_out, seed + 1, split, stratify=by_class, **options)
        left_out = None if held_out is None else held_out.mask
        edges = bin_edges(data, levels, max_bins=self.max_bins, seed=seed, n_jobs=self.n_jobs, left_out=left_out)
        # Where a fit goes on, the trees so far give the scores to start from.
        known = state.get("trees", earlier.get("trees_", empty_ensemble()))
        if n_trees(known) > self.n_estimators * self._loss().n_outputs:
            raise ParameterError(
                f"{self._rounds_name}={self.n_estimators} must be larger than or equal to "
                f"n_iter_={n_trees(known) // self._loss().n_outputs} when warm_start==True: rounds are only added"
            )
        preparation = Preparation(
            loss=self._loss(),
            growth=growth_of(self, edges, data.n_rows if held_out is None else held_out.n_left),
            edges=edges,
            options={
                "learning_rate": self.learning_rate,
                "subsample": self.subsample,
                "sampling": self.sampling,
                "max_features": self._share_of_features(data.n_features),
                "order": self.order,
                "seed": seed,
            },
            factors=factors,
            held_out=held_out,
            known=known,
            start=self._given_start(state, earlier, known),
            offset=self._init_scores(X) if "init_" in vars(self) else None,
            n_jobs=self.n_jobs,
        )
        self._start_, boosting, validation = preparation.begin(data, validation_data)
        stopping.begin(self, X, X_val, boosting, validation)
        solution = self._rounds(boosting, known, padded_edges(edges), validation, stopping, asked)
        self._stopping_ = stopping.memory()
        if earlier:
            solution.history = concatenate_histories(earlier["history_"], solution.history)
            solution.n_iter = solution.history.n_iter
        self._grown_with_ = [*earlier.get("_grown_with_", []), {"rounds": self.n_estimators_, **tree_parameters(self)}]
        self._conclude(solution)
        return self

    def _given_start(self, state: Any, earlier: Any, known: Ensemble) -> np.ndarray | None:
        """Scores that the first trees are added to; None where they are the best constants, to be found."""
        if n_trees(known):
            return np.asarray(state["start"] if state else earlier["_start_"])
        return None if self.init is None else np.zeros(self._loss().n_outputs)

    def _split_seed(self, seed: int) -> int:
        """The seed of the draw of the validation set: that of scikit-learn's class for the same `random_state`."""
        return seed % 2**32

    def _round_table(self, first: int, boosting: Boosting) -> RoundTable:
        """The table of the rounds, which prints nothing unless `verbose` asks for it."""
        level = self.verbose if self._prints_rounds else 0
        if level and self._run.progress is not None:  # a line on the terminal would run into the table
            self._run.progress.close()
        return RoundTable(first, self.n_estimators, boosting, level)

    def _share_of_features(self, p: int) -> float:
        asked = self.max_features
        return float(asked) if isinstance(asked, float) else n_candidate_features(asked, p) / p

    def _rounds(
        self,
        boosting: Boosting,
        known: Ensemble,
        table: np.ndarray,
        validation: Validation | None,
        stopping: Stopping,
        asked: Callable[..., Any] | None,
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
            kept = {"start": self._start_, "seed": boosting.seed, "stopping": stopping.memory()}
            return {"trees": ensemble(done), **kept}

        boosting.check_range()
        table_of_rounds = self._round_table(first, boosting)
        monitor = self._monitor(self.n_estimators, attributes)
        loss, largest_rise, reason = boosting.mean_loss, 0.0 if done == self.n_estimators else -np.inf, "converged"
        idle: Round | None = None
        while done < self.n_estimators:
            added = idle or boosting.round(done)
            if not added.gained and not boosting.samples:
                # No split gains, and later rounds would see the same gradients.
                if stopping.patience is not None:
                    break
                added = idle = added.idle()
            done += 1
            grown += added.trees
            # Without samples every round lowers the loss, which the certificate states.
            largest_rise, loss = max(largest_rise, added.loss - added.before), added.loss
            if monitor(
                done,
                np.array([float(done)]),
                objective=loss,
                state=state,
                step=added.step,
                leaves=float(sum(len(tree.leaves) for tree, _ in added.trees)),
                **({} if validation is None else {"validation": validation.add(added.trees)}),
                **({} if added.left_out is None else dict(zip(_LEFT_OUT, added.left_out, strict=True))),
            ):
                reason = "stopped"
                break
            table_of_rounds.add(done, added)
            if asked is not None:
                self.trees_, self.n_estimators_, self.history_ = ensemble(done), done, monitor.history()
                if asked(done - 1, self, locals()):
                    reason = "stopped"
                    break
            if stopping.is_stale():
                break
        self.n_estimators_ = stopping.kept(done)
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
        return self._history_column("objective")

    def _history_column(self, name: str) -> np.ndarray:
        """A column of losses for the rounds that were kept, as scikit-learn counts them."""
        self._check_fitted()
        if name not in self.history_:
            raise AttributeError(f"{type(self).__name__} was fitted without subsample < 1 and uniform sampling")
        return np.asarray(np.nan_to_num(self._loss().deviance_factor * self.history_[name][: self.n_estimators_]))

    @property
    def oob_scores_(self) -> np.ndarray:
        """Loss, after each round, of the rows that it did not draw."""
        return self._history_column(_LEFT_OUT[1])

    @property
    def oob_improvement_(self) -> np.ndarray:
        """Decrease, by each round, of the loss of the rows that it did not draw."""
        return np.asarray(self._history_column(_LEFT_OUT[0]) - self.oob_scores_)

    @property
    def oob_score_(self) -> float:
        """The last of `oob_scores_`."""
        return float(self.oob_scores_[-1])

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
        return regression_trees(self)

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
    bound, claim = 0.0, "the training loss fell in every round that found a split"
    if sampled and rise > 0:
        bound = rise
        claim = f"rounds on samples of rows or features may raise the training loss (here by {bound:.1e} at most)"
    return Certificate("none", rise, bound, f"boosting is greedy: no distance from an optimum is known; {claim}")
