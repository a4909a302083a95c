"""The contract of all tree methods: tables with missing values and categories in, and inspection of the fitted model.

Feature importances are by splits or by permutation; dependence is partial dependence (see
:mod:`epicycle.tree._partial_dependence`). Internally rows are matrices in which levels are replaced by codes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import narwhals as nw
import numpy as np

from epicycle.core._exceptions import DataError, DataTypeError, ParameterError
from epicycle.core._history import History
from epicycle.core._random import seed_of, stream
from epicycle.core.estimator._estimator import Estimator
from epicycle.data import ArrayData, DaskData, Data, as_data
from epicycle.data._categories import LevelEncoder, Levels, category_columns, is_table, learn_levels
from epicycle.data._dask_data import is_dask
from epicycle.data._target import as_labels, as_numeric_target, as_weight
from epicycle.tree._classes import known_codes
from epicycle.tree._parameters import TREE_DOCS
from epicycle.tree._partial_dependence import PartialDependence, brute_force, grid_of

#: Maximum number of levels of a column: their codes and one for missing values fill the 8 bits of a bin.
MAX_LEVELS = 255
# Sum of weights up to which its square, of which gains are made, is finite.
_LARGEST_WEIGHT = 1e150
# Rows that are shuffled and predicted at a time: a copy of a block, not of X, is held.
_BLOCK_ROWS = 1 << 16


class TreeModel(Estimator, ABC):
    """Base of the tree methods.

    A subclass with categories has the parameters `categorical_features` and `handle_unknown`. Trees only compare
    numbers, so NaN and infinity are accepted.
    """

    _docs: ClassVar[dict[str, str]] = TREE_DOCS
    _target: ClassVar[Literal["none", "numeric", "labels"]]
    _sources: ClassVar[str] = "in memory or from files; expected an array, a frame or ep.scan(...)"
    _takes_dask: ClassVar[bool] = False
    _multi_output: ClassVar[bool] = False
    _takes_any_size: ClassVar[bool] = True  # weights are counted, never squared; their sum is checked

    categorical_features: Any
    handle_unknown: Any
    n_jobs: int | None

    categories_: Levels
    classes_: Any
    _from_frame_: bool

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.target_tags.multi_output = self._multi_output
        return tags

    @abstractmethod
    def _split_totals(self, kind: str) -> np.ndarray:
        """Total gain of the splits of every feature (`kind` "gain"), or their number ("split")."""

    @abstractmethod
    def _raw_outputs(self, X: np.ndarray) -> np.ndarray:
        """Outputs (n, K) of the trees for rows, the first argument of :meth:`_row_losses`."""

    @abstractmethod
    def _row_losses(self, outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The loss of each row."""

    def _responses(self, X: np.ndarray) -> np.ndarray:
        """Predictions (n, K) for rows: numbers, or probabilities (of two classes that of the second alone)."""
        return self._raw_outputs(X)

    @abstractmethod
    def _expected_outputs(self, columns: list[int], points: np.ndarray) -> np.ndarray:
        """Outputs (g, K) that the trees expect where only these columns are known."""

    # ------------------------------------------------------------------------------------------- data

    def _training_data(self, X: Any, y: Any, sample_weight: Any, *, label_columns: bool = False) -> Data:
        """The training data with codes for levels; NaN and infinity are accepted.

        With `label_columns`, y holds the codes of several columns of labels.
        """
        name = type(self).__name__
        refused = is_dask(X) and not self._takes_dask
        columns = [] if refused else category_columns(X, self.categorical_features)
        self.categories_ = self._learn_levels(X, columns)
        self._from_frame_ = is_table(X)
        coded = LevelEncoder(self.categories_, dtype=np.float32, estimator_name=name).encode(X)
        data = self._fit_data(
            coded,
            y,
            sample_weight,
            target="numeric" if label_columns else self._target,
            multi_output=self._multi_output,
            check_finite=False,
            missing=True,
        )
        if isinstance(data, DaskData) and not self._takes_dask:
            raise DataTypeError(f"X: {name} is fitted {self._sources}, got a Dask collection (predict takes one)")
        if self._has_callbacks():
            self._run.inputs = {**self._run.inputs, "X": X}
        return data

    def _learn_levels(self, X: Any, columns: list[int]) -> Levels:
        """Levels of the columns of categories."""
        return learn_levels(X, columns, type(self).__name__, max_levels=MAX_LEVELS)

    def _predict_data(self, X: Any, *, missing: bool = True) -> Data:
        self._check_fitted()
        data = as_data(self._coded(X), estimator_name=type(self).__name__, check_finite=False, missing=missing)
        self._check_features(X if isinstance(X, np.ndarray) else data, data, reset=False)
        return data

    def _coded(self, X: Any) -> Any:
        if self.categories_ and nw.dependencies.is_into_dataframe(X):
            self._check_header(X, reset=False)  # columns in another order are reported as such, not as unknown levels
        name = type(self).__name__
        if self.categories_ and self._from_frame_ and not is_table(X):
            columns = ", ".join(map(str, sorted(self.categories_)))
            raise DataTypeError(
                f"X: {name} learnt categories from a frame (columns {columns}); X is {type(X).__name__}, expected a "
                "data frame, whose levels are found by value"
            )
        # Codes are small: as float32 they do not widen a table of float32.
        return LevelEncoder(self.categories_, self.handle_unknown, dtype=np.float32, estimator_name=name).encode(X)

    def _known_target(self, y: Any, n: int) -> np.ndarray:
        """Targets of n rows, encoded as in the fit."""
        name = type(self).__name__
        if self._target == "labels":
            return known_codes(as_labels(y, n, estimator_name=name), self.classes_)
        return as_numeric_target(y, n, multi_output=self._multi_output, estimator_name=name)

    def _data_in_memory(self, X: Any) -> ArrayData:
        data = self._predict_data(X)
        if not isinstance(data, ArrayData):
            raise DataTypeError(f"X: expected data in memory, got {type(X).__name__}")
        return data

    def _dense_data(self, X: Any) -> ArrayData:
        data = self._data_in_memory(X)
        if data.sparse:
            raise DataTypeError("X: expected a dense array or a frame, got a sparse matrix")
        return data

    # ------------------------------------------------------------------------------------------- importances

    def importance(self, kind: str = "gain") -> np.ndarray:
        """Compute the importance of every feature by the splits of the trees, as shares that add up to one.

        Parameters
        ----------
        kind : {"gain", "split"}, default="gain"
            The decrease of the loss or impurity by the splits of a feature, or their number.

        Returns
        -------
        ndarray of shape (n_features,)
        """
        self._check_fitted()
        if kind not in ("gain", "split"):
            raise ParameterError(f"kind={kind!r}; expected 'gain' or 'split'")
        total = self._split_totals(kind)
        return total / total.sum() if total.any() else total

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of every feature in what the splits gained: ``importance("gain")``."""
        return self.importance("gain")

    def permutation_importances(
        self, X: Any, y: Any, sample_weight: Any = None, *, n_repeats: int = 5, random_state: Any = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute the rise of the loss of rows when a feature is permuted among them.

        Parameters
        ----------
        X, y, sample_weight : rows, in memory
            Rows that the fit did not see give the importance for new rows.
        n_repeats : int, default=5
            Number of permutations of every feature.

        Returns
        -------
        mean, standard_error : ndarray of shape (n_features,)
            Over the rows. Features without a split have zeros.
        """
        data = self._dense_data(X)
        check_repeats(n_repeats)
        target, seed = self._known_target(y, data.n_rows), seed_of(random_state)
        weight = as_weight(sample_weight, data.n_rows)
        base = self._row_losses(self._raw_outputs(data.X), target)
        mean, error = np.zeros(data.n_features), np.zeros(data.n_features)
        # Features without a split cannot change a prediction.
        for j in np.flatnonzero(self._split_totals("split")).tolist():
            random = stream(seed, "shuffle", j)
            rise = np.zeros(data.n_rows)
            for _ in range(n_repeats):
                shuffled = random.permutation(data.X[:, j])
                for i in range(0, data.n_rows, _BLOCK_ROWS):
                    rows = slice(i, i + _BLOCK_ROWS)
                    part = np.array(data.X[rows])
                    part[:, j] = shuffled[rows]
                    rise[rows] += (self._row_losses(self._raw_outputs(part), target[rows]) - base[rows]) / n_repeats
            mean[j] = np.average(rise, weights=weight)
            # Standard error of a weighted mean: sqrt(sum_i s_i^2 (r_i - mean)^2) with shares s_i of the weight.
            shares = np.full(data.n_rows, 1.0 / data.n_rows) if weight is None else weight / weight.sum()
            error[j] = np.sqrt(np.sum(shares**2 * (rise - mean[j]) ** 2))
        return mean, error

    # ------------------------------------------------------------------------------------------- dependence

    def partial_dependence(
        self,
        X: Any,
        features: Any,
        *,
        sample_weight: Any = None,
        kind: str = "average",
        method: str = "brute",
        grid_resolution: int = 100,
        percentiles: tuple[float, float] = (0.05, 0.95),
    ) -> PartialDependence:
        """Compute predictions over the values of one feature or two, averaged over the rows.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows to average over, and whose values make the grid.
        features : int, str, or a pair of them
        sample_weight : array-like of shape (n_samples,), optional
        kind : {"average", "individual"}, default="average"
            "individual" also gives the curve of each row.
        method : {"brute", "recursion"}, default="brute"
            "brute" predicts all rows at all points of the grid. "recursion" takes the shares of the training rows in
            the nodes of the trees in place of rows, which is faster; boosting then gives scores.
        grid_resolution : int, default=100
            Points for a feature with more values.
        percentiles : pair of float, default=(0.05, 0.95)
            Quantiles between which these points are.

        Returns
        -------
        PartialDependence
            With ``features``, ``grid``, ``average``, ``individual`` and ``plot()``.
        """
        data = self._dense_data(X)
        columns = self._columns_of(features)
        _check_dependence(kind, method, grid_resolution, percentiles)
        weight = as_weight(sample_weight, data.n_rows)
        axes = [self._axis(data.X[:, j], j, grid_resolution, percentiles) for j in columns]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(columns))
        individual = None
        if method == "recursion":
            average = self._expected_outputs(columns, points)
        else:
            average, individual = brute_force(
                data.X, columns, points, weight, self._responses, individual=kind == "individual"
            )
        shape = tuple(len(axis) for axis in axes)
        K = average.shape[1]
        average = average.T.reshape(K, *shape)
        if individual is not None:
            individual = np.moveaxis(individual, 2, 0).reshape(K, data.n_rows, *shape)
        levels = self._levels()
        grid = tuple(levels.get(j, x) for j, x in zip(columns, axes, strict=True))
        names = self._names()
        if K == 1:
            average, individual = average[0], None if individual is None else individual[0]
        return PartialDependence(
            tuple(names[j] for j in columns), grid, average, individual, self._output_names(K, scores=method != "brute")
        )

    def _levels(self) -> dict[int, np.ndarray]:
        """Levels of the columns of categories."""
        found: dict[int, np.ndarray] = getattr(self, "categories_", {})
        return found

    def _axis(self, x: np.ndarray, j: int, resolution: int, percentiles: tuple[float, float]) -> np.ndarray:
        if j in self._levels():
            return np.arange(len(self._levels()[j]), dtype=np.float64)
        axis = grid_of(np.asarray(x), resolution, percentiles)
        if not len(axis):
            raise ParameterError(f"features: column {self._names()[j]!r} of X has no value to make a grid of")
        return axis

    def _columns_of(self, features: Any) -> list[int]:
        asked = [features] if isinstance(features, str | int | np.integer) else list(features)
        names, columns = self._names(), []
        for feature in asked:
            if isinstance(feature, str) and feature in names:
                columns.append(names.index(feature))
            elif isinstance(feature, int | np.integer) and not isinstance(feature, bool):
                if not -len(names) <= feature < len(names):
                    raise ParameterError(f"features: {feature}; X has {len(names)} columns")
                columns.append(int(feature) % len(names))
            else:
                raise ParameterError(f"features: {feature!r}; expected names or numbers of columns")
        if len(columns) not in (1, 2) or len(set(columns)) < len(columns):
            raise ParameterError(f"features={features!r:.60}; expected one feature or two different ones")
        return columns

    def _output_names(self, K: int, *, scores: bool) -> tuple[str, ...]:
        classes = getattr(self, "classes_", None)
        if classes is None:
            return ("prediction",) if K == 1 else tuple(f"output {k}" for k in range(K))
        what = "score" if scores else "probability"
        return tuple(f"{what} of {label}" for label in (classes[-1:] if K == 1 else classes).tolist())


def check_repeats(n_repeats: Any) -> None:
    """Raise unless `n_repeats` is a positive integer."""
    if not isinstance(n_repeats, int | np.integer) or n_repeats < 1:
        raise ParameterError(f"n_repeats={n_repeats!r}; expected an integer >= 1")


def _check_dependence(kind: str, method: str, resolution: Any, percentiles: tuple[float, float]) -> None:
    if kind not in ("average", "individual"):
        raise ParameterError(f"kind={kind!r}; expected 'average' or 'individual'")
    if method not in ("brute", "recursion"):
        raise ParameterError(f"method={method!r}; expected 'brute' or 'recursion'")
    if method == "recursion" and kind == "individual":
        raise ParameterError("kind='individual' needs method='brute': recursion knows no rows")
    if not isinstance(resolution, int | np.integer) or resolution < 2:
        raise ParameterError(f"grid_resolution={resolution!r}; expected an integer >= 2")
    low, high = percentiles
    if not 0 <= low < high <= 1:
        raise ParameterError(f"percentiles={percentiles!r}; expected two ascending numbers between 0 and 1")


def check_positive_weight(weight: np.ndarray) -> None:
    """Raise where no row has a positive weight, or the sum of the weights overflows."""
    if not (weight > 0).any():
        raise DataError("sample_weight: no row of positive weight is left to learn from")
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    if total > _LARGEST_WEIGHT:
        raise DataError(
            f"sample_weight: the weights add up to {total:.1e}; expected at most {_LARGEST_WEIGHT:g}: divide them by a "
            "constant"
        )


def concatenate_histories(first: History, second: History) -> History:
    """Rows of both histories; columns that one of them lacks are NaN there."""
    names = dict.fromkeys([*first, *second])
    parts = [[h[name] if name in h else np.full(h.n_iter, np.nan) for h in (first, second)] for name in names]
    return History(**{name: np.concatenate(part) for name, part in zip(names, parts, strict=True)})
