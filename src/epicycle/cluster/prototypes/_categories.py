"""Tables of categories, or of categories beside numbers, as codes and back."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp

from epicycle.cluster.prototypes._base import PrototypeModel
from epicycle.cluster.prototypes._rounds import as_codes
from epicycle.core._exceptions import DataError
from epicycle.data import ArrayData
from epicycle.data._categories import LevelEncoder, learn_levels
from epicycle.data._dask_data import is_dask
from epicycle.data._frames import is_frame
from epicycle.data._scan import Scan


class CategoryModel(PrototypeModel):
    """Base of the models with columns of categories; a missing category is one of its own."""

    #: Whether all columns are categories, of which any may be missing.
    _allows_nan = False
    categories_: dict[int, np.ndarray]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = self._allows_nan
        return tags

    @abstractmethod
    def _category_columns(self, X: Any) -> list[int]:
        """The columns of X that hold categories."""

    def _cut(self, X: Any, sample_weight: Any = None, *, fit: bool = False) -> Any:
        """X with numbers made into categories, where a model does that."""
        return X

    def _coded(self, X: Any, sample_weight: Any) -> ArrayData:
        """The rows of a fit, after their categories have been learnt."""
        X = table_of(X)
        name = type(self).__name__
        if sp.issparse(X):  # refused, in the words that all have for it
            self._fit_data(X, None, target="none")
        X = self._cut(X, sample_weight, fit=True)
        self.categories_ = learn_levels(X, self._category_columns(X), name)
        coded = LevelEncoder(self.categories_, estimator_name=name).encode(X)
        data = self._fit_data(coded, None, sample_weight, target="none", check_finite=False, missing=True)
        return self._memory(data)

    def _with_codes(self, X: Any) -> np.ndarray:
        """Numbers and codes; missing numbers are refused, missing categories are a code of their own."""
        columns = np.array(sorted(self.categories_), dtype=np.int64)
        numbers = np.setdiff1d(np.arange(X.shape[1]), columns)
        if not np.isfinite(X[:, numbers]).all():
            raise DataError("Input X contains NaN or infinity in a column of numbers; expected finite ones")
        return as_codes(X, columns, [len(self.categories_[j]) for j in columns])

    def _numbers(self, X: Any) -> np.ndarray:
        X = table_of(X)
        if not sp.issparse(X):
            X = LevelEncoder(self.categories_, estimator_name=type(self).__name__).encode(self._cut(X))
        return self._with_codes(self._memory(self._predict_data(X, missing=True)).X)

    def _given_prototypes(self) -> np.ndarray | None:
        if isinstance(self.init, str):
            return None
        init = self._cut(table_of(self.init))
        coded = LevelEncoder(self.categories_, estimator_name=type(self).__name__).encode(init)
        return self._with_codes(np.asarray(coded, dtype=np.float64))

    @property
    def cluster_centers_(self) -> np.ndarray:
        """The prototypes in the terms of the table, None for a category that is missing."""
        out = self._prototypes_.astype(object)
        for j, levels in self.categories_.items():
            names = [*levels.tolist(), None]
            out[:, j] = [names[int(code)] for code in self._prototypes_[:, j]]
        return out


def table_of(X: Any) -> Any:
    """Lists as arrays, in which text stays beside numbers; all else as it is."""
    if getattr(getattr(X, "dtype", None), "kind", "") == "c":
        raise DataError("X: Complex data not supported; expected numbers or categories")
    if isinstance(X, np.ndarray) or is_frame(X) or isinstance(X, Scan) or is_dask(X) or hasattr(X, "tocsr"):
        return X
    plain = np.asarray(X)
    return np.asarray(X, dtype=object) if plain.dtype.kind in "US" else plain


def text_columns(X: Any) -> list[int]:
    """Columns of a frame, or of an array of objects, that hold no numbers."""
    if is_frame(X):
        schema = nw.from_native(X, eager_only=True).schema
        return [j for j, dtype in enumerate(schema.values()) if not dtype.is_numeric()]
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OUS":
        return [j for j in range(X.shape[1]) if any(isinstance(value, str) for value in X[:, j].tolist())]
    return []
