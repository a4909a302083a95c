"""What the boosted classifier and regressor share: data in, rounds, evidence, prediction in stages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from epicycle import engine
from epicycle.core._exceptions import DataError, DataTypeError, ParameterError
from epicycle.core._history import History
from epicycle.core.estimator._estimator import fitting, seed_of
from epicycle.data import ArrayData, Batch, Data, Scan, as_data
from epicycle.optim import Solution
from epicycle.tree._binning import column_cuts, padded
from epicycle.tree._constraints import feature_groups, monotone_signs
from epicycle.tree._ensemble import Ensemble, empty_ensemble, extend, importances, n_trees, scores_of_batch, truncate
from epicycle.tree._partial_dependence import expected_values
from epicycle.tree._shapley import average_score, shap_of_batch
from epicycle.tree._shared import greedy_certificate, joined
from epicycle.tree._tabular import TreeTable
from epicycle.tree.boosting._boosting import Boosting, Growth
from epicycle.tree.boosting._losses import Loss, UserLoss
from epicycle.tree.boosting._preparation import Preparation
from epicycle.tree.boosting._validation import Validation

__all__ = ["GradientBoosting"]


class GradientBoosting(TreeTable, ABC):
    """The rounds of boosting; a subclass says what the target is and which loss is minimised."""

    _takes_dask: ClassVar[bool] = True

    trees_: Ensemble
    _start_: np.ndarray

    @abstractmethod
    def _loss(self) -> Loss | UserLoss:
        """The loss that the trees lower."""

    @abstractmethod
    def _encode_target(self, data: Data) -> tuple[Data, np.ndarray | None]:
        """The data with the target as the loss takes it; factors on the weights of the classes where there are any."""

    # ------------------------------------------------------------------------------------------- fit

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Any:  # fmt: skip
        """Fit to rows X with targets y.

        Parameters
        ----------
        X : array, sparse matrix, data frame, Scan or Dask collection of shape (n_samples, n_features)
            NaN counts as missing. Columns of a categorical type are divided by sets of levels.
        y : array-like of shape (n_samples,)
            A scan brings its own.
        sample_weight : array-like of shape (n_samples,), optional
        X_val, y_val, sample_weight_val : as X, y and sample_weight, optional
            Rows that are not learnt from: their loss is recorded after every round, and with `n_iter_no_change` ends
            the fit. They take the place of `validation_fraction`, and may be of another kind than X.

        Returns
        -------
        self
            The fitted estimator.
        """
        earlier = None
        if self.warm_start and hasattr(self, "trees_"):
            earlier = {"trees": self.trees_, "start": self._start_, "history": self.history_}
            if hasattr(self, "classes_"):
                earlier["classes"] = self.classes_
        return self._fit(X, y, sample_weight, X_val, y_val, sample_weight_val, earlier)

    @fitting
    def _fit(
        self, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any, sample_weight_val: Any,
        earlier: Mapping[str, Any] | None,
    ) -> Any:  # fmt: skip
        if (X_val is None) != (y_val is None) and not isinstance(X_val, Scan):
            raise DataError("X_val and y_val: one was given without the other; expected both or none")
        if self.order == 1 and self.monotonic_cst is not None:
            raise ParameterError(
                "monotonic_cst cannot be kept with order=1: leaves take the best constant; use order=2"
            )
        data, factors = self._encode_target(self._training_data(X, y, sample_weight))
        if earlier is not None and not np.array_equal(earlier.get("classes", 0), getattr(self, "classes_", 0)):
            raise DataError("y: warm_start goes on with the classes of the earlier fit; these are others")
        state = self._resume_state() or {}
        seed = int(state.get("seed", seed_of(self.random_state)))
        loss = self._loss()
        levels = {j: max(len(values), 1) for j, values in self.categories_.items()}
        cuts = column_cuts(data, levels, max_bins=self.max_bins, seed=seed, n_jobs=self.n_jobs)
        watched = None if X_val is None else self._watched_data(X_val, y_val, sample_weight_val)
        # Where an earlier fit goes on, its trees give the scores to start from.
        known = state.get("trees", earlier["trees"] if earlier else empty_ensemble())
        start = np.asarray(state["start"] if state else earlier["start"]) if n_trees(known) else None
        preparation = Preparation(
            loss=loss,
            growth=self._growth(cuts),
            cuts=cuts,
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
            apart=self.validation_fraction if watched is None and self.n_iter_no_change else None,
            known=known,
            start=start,
            raw=partial(_raw_from, start, self.n_jobs),
            earlier=np.asarray(state.get("validation", [])),
            n_jobs=self.n_jobs,
        )
        self._start_, boosting, validation = preparation.begin(data, watched)
        solution = self._rounds(boosting, known, padded(cuts), validation)
        if earlier is not None:
            solution.history = joined(earlier["history"], solution.history)
            solution.n_iter = solution.history.n_iter
        self._conclude(solution)
        return self

    def _rounds(
        self, boosting: Boosting, known: Ensemble, table: np.ndarray, validation: Validation | None
    ) -> Solution:
        """Rounds until there are enough trees, until nothing is gained any more, or until somebody asks to stop."""
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

        monitor = self._monitor(self.n_estimators, attributes)
        loss, largest_rise, reason = boosting.mean_loss, -np.inf, "converged"
        patience = self.n_iter_no_change
        while done < self.n_estimators:
            added = boosting.round(done)
            if not added.gained and not boosting.samples:
                break  # no split gains anything, and none ever will
            done += 1
            grown += added.trees
            largest_rise, loss = max(largest_rise, added.loss - loss), added.loss
            columns = {"step": added.step, "leaves": float(sum(len(tree.leaves) for tree, _ in added.trees))}
            if validation is not None:
                columns["validation"] = validation.add(added.trees)
            if monitor(done, np.array([float(done)]), objective=loss, state=state, **columns):
                reason = "stopped"
                break
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

    def _growth(self, cuts: list[np.ndarray]) -> Growth:
        p = len(cuts)
        categorical = np.zeros(p, np.uint8)
        categorical[list(self.categories_)] = 1
        names = getattr(self, "feature_names_in_", None)
        return Growth(
            n_bins=np.array([len(c) + 1 for c in cuts], np.int32),
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

    def _watched_data(self, X: Any, y: Any, weight: Any) -> Data:
        name = type(self).__name__
        data = as_data(
            self._coded(X), y, weight, target=self._target, estimator_name=name, check_finite=False, missing=True
        )
        self._check_features(data, data, reset=False)
        return self._encode_again(data)

    def _encode_again(self, data: Data) -> Data:
        """Other data with its target as the loss takes it, by what the fit learnt of the target."""
        return data

    # ------------------------------------------------------------------------------------------- prediction

    def _raw(self, data: Data) -> Any:
        """Scores of shape (n, K), for Dask input as a lazy array."""
        return _raw_from(self._start_, self.n_jobs, data, self.trees_)

    def _staged_raw(self, X: Any) -> Iterator[np.ndarray]:
        """Scores after each round."""
        data = self._predict_data(X)
        if not isinstance(data, ArrayData):
            raise DataTypeError(f"X: stages are given for data in memory, got {type(X).__name__}")
        K = len(self._start_)
        batch, scores = data.rows(0, data.n_rows), np.tile(self._start_, (data.n_rows, 1))
        for r in range(n_trees(self.trees_) // K):
            scores = scores + scores_of_batch(batch, self.trees_, np.zeros(K), r * K, (r + 1) * K, self.n_jobs)
            yield scores

    def _split_totals(self, kind: str) -> np.ndarray:
        return importances(self.trees_, self.n_features_in_, kind)

    def _outputs_of(self, X: np.ndarray) -> np.ndarray:
        return scores_of_batch(Batch(X), self.trees_, self._start_, 0, n_trees(self.trees_), self.n_jobs)

    def _row_losses(self, values: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self._loss().row_values(y, values)

    def _expected_of(self, columns: list[int], points: np.ndarray) -> np.ndarray:
        trees, K = self.trees_, len(self._start_)
        arrays = trees["nodes"], trees["values"][:, None], trees["roots"], trees["levels"], trees["count"]
        scores = np.tile(self._start_, (len(points), 1))
        for t, values in enumerate(expected_values(arrays, columns, points)):
            scores[:, t % K] += values[:, 0]
        return scores

    def shap_values(self, X: Any) -> Any:
        """Exact Shapley values: by how much every feature moved the score of a row away from the average score.

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
        data = self._predict_data(X)
        K = len(self._start_)
        values = engine.map(shap_of_batch, data, self.trees_, K, n_jobs=self.n_jobs)
        return values[:, :, 0] if K == 1 else values

    @property
    def average_score_(self) -> np.ndarray | float:
        """The average score of the training rows, tree by tree: what :meth:`shap_values` start from."""
        scores = average_score(self.trees_, self._start_)
        return float(scores[0]) if len(scores) == 1 else scores

    def _penalty_line(self) -> str:
        return f"l2/2 sum of squared leaf values, l2={self.l2_regularization:g}" if self.l2_regularization else ""


def _raw_from(start: np.ndarray, n_jobs: int | None, data: Data, trees: Ensemble) -> Any:
    """Scores of shape (n, K) by trees that begin at `start`, for Dask input as a lazy array."""
    if isinstance(data, ArrayData) and not data.sparse:  # one call of the kernel, whose threads share the rows
        return scores_of_batch(data.rows(0, data.n_rows), trees, start, 0, n_trees(trees), n_jobs)
    return engine.map(scores_of_batch, data, trees, start, 0, n_trees(trees), 1, n_jobs=n_jobs)


#: Attributes that prediction needs beside the trees.
_WITH_TREES = ("categories_", "_start_", "_from_frame_", "classes_", "n_features_in_", "feature_names_in_")
