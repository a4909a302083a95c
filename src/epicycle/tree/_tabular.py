"""Tables that trees learn from: numbers of any size, missing ones among them, and categories by value."""

from __future__ import annotations

from typing import Any, ClassVar

import narwhals as nw
import numpy as np

from epicycle.core._exceptions import DataTypeError
from epicycle.data import DaskData, Data, as_data
from epicycle.data._categories import LevelEncoder, Levels, category_columns, is_table, learn_levels
from epicycle.data._dask_data import is_dask
from epicycle.tree._inspection import Readable

__all__ = ["MAX_LEVELS", "TreeTable"]

#: Levels of a column at most: their codes and a place for missing values fill the 8 bits of a bin.
MAX_LEVELS = 255


class TreeTable(Readable):
    """An estimator that takes NaN, infinity and columns of categories; it has `categorical_features` and
    `handle_unknown` among its arguments."""

    _target: ClassVar[Any]
    _sources: ClassVar[str] = "in memory or from files; expected an array, a frame or ep.scan(...)"

    _takes_dask: ClassVar[bool] = False

    categories_: Levels
    _from_frame_: bool

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags

    def _training_data(self, X: Any, y: Any, sample_weight: Any, *, multi_output: bool = False) -> Data:
        """The data with codes for levels. NaN and infinity are taken: trees only ask for the order of numbers."""
        name = type(self).__name__
        refused = is_dask(X) and not self._takes_dask
        columns = [] if refused else category_columns(X, self.categorical_features)
        self.categories_ = learn_levels(X, columns, name, max_levels=MAX_LEVELS)
        self._from_frame_ = is_table(X)
        coded = LevelEncoder(self.categories_, dtype=np.float32, estimator_name=name).encode(X)
        data = self._fit_data(
            coded,
            y,
            sample_weight,
            target=self._target,
            multi_output=multi_output,
            check_finite=False,
            missing=True,
        )
        if isinstance(data, DaskData) and not self._takes_dask:
            raise DataTypeError(f"X: {name} is fitted {self._sources}, got a Dask collection (predict takes one)")
        if self._has_callbacks():
            self._run.inputs = {**self._run.inputs, "X": X}
        return data

    def _predict_data(self, X: Any) -> Data:
        self._check_fitted()
        data = as_data(self._coded(X), estimator_name=type(self).__name__, check_finite=False, missing=True)
        self._check_features(X if isinstance(X, np.ndarray) else data, data, reset=False)
        return data

    def _coded(self, X: Any) -> Any:
        if self.categories_ and nw.dependencies.is_into_dataframe(X):
            self._check_header(X, reset=False)  # columns in another order first, not what their levels then look like
        if self.categories_ and self._from_frame_ and not is_table(X):
            columns = ", ".join(map(str, sorted(self.categories_)))
            raise DataTypeError(
                f"X: {type(self).__name__} learnt categories from a frame (columns {columns}); X is "
                f"{type(X).__name__}, expected a data frame, whose levels are found by value"
            )
        # Codes are small: in half the bytes they leave a table of float32 what it is.
        encoder = LevelEncoder(
            self.categories_, self.handle_unknown, dtype=np.float32, estimator_name=type(self).__name__
        )
        return encoder.encode(X)
