"""Tables that trees learn from: numbers of any size, missing ones among them, and categories by value."""

from __future__ import annotations

from typing import Any, ClassVar

import narwhals as nw
import numpy as np

from epicycle.core._exceptions import DataTypeError
from epicycle.data import DaskData, Data, as_data
from epicycle.data._categories import is_table
from epicycle.data._dask_data import is_dask
from epicycle.tree._categories import Categories, encode, learn
from epicycle.tree._inspection import Readable

__all__ = ["TreeTable"]


class TreeTable(Readable):
    """An estimator that takes NaN, infinity and columns of categories; it has `categorical_features` and
    `handle_unknown` among its arguments."""

    _target: ClassVar[Any]
    _sources: ClassVar[str] = "in memory or from files; expected an array, a frame or ep.scan(...)"

    _takes_dask: ClassVar[bool] = False

    categories_: Categories
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
        self.categories_ = {} if refused else learn(X, self.categorical_features, name)
        self._from_frame_ = is_table(X)
        coded = encode(X, self.categories_, from_frame=self._from_frame_, estimator_name=name)
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
        if self._watched():
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
        return encode(
            X,
            self.categories_,
            from_frame=self._from_frame_,
            handle_unknown=self.handle_unknown,
            estimator_name=type(self).__name__,
        )
