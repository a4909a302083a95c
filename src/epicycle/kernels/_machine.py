"""What kernel machines share: their kernel, the rows they keep, and the kernel of new rows with those."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin

from epicycle import engine
from epicycle.core._exceptions import DataError
from epicycle.core._memory import require_memory
from epicycle.core.estimator._estimator import Estimator
from epicycle.data import ArrayData, Batch
from epicycle.data._dask_data import is_dask
from epicycle.kernels._given import Entries
from epicycle.kernels._gram import gram_matrix, kernel_product
from epicycle.kernels._kernel import Kernel
from epicycle.kernels._named import as_kernel
from epicycle.kernels._rows import as_texts
from epicycle.linalg._shifted_systems import least_eigenvalue
from epicycle.stats._class_scores import choose_class
from epicycle.stats._labels import class_weights, codes, encode_labels

__all__ = ["KernelClassifier", "KernelMachine", "select_rows"]


class KernelMachine(Estimator):
    """An estimator with the arguments `kernel`, `gamma`, `degree`, `coef0` and `n_jobs` that keeps rows of the fit."""

    kernel: Any
    gamma: float | None
    degree: int
    coef0: float
    n_jobs: int | None
    kernel_: Kernel
    X_fit_: Any

    def _named_kernel(self, data: ArrayData | None) -> Kernel:
        """The argument `kernel` as an object, for the data where there are some."""
        n_columns = None if data is None else data.n_features
        return as_kernel(self.kernel, self._gamma(data), self.degree, self.coef0, n_columns)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            kernel = self._named_kernel(None)
        except (TypeError, ValueError):  # said by name when fit checks the parameters
            return tags
        tags.input_tags.sparse = kernel.accepts_sparse
        tags.input_tags.pairwise = kernel.takes == "precomputed"
        if kernel.takes == "strings":
            tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags

    def _gamma(self, data: ArrayData | None) -> float | None:
        """gamma as a number, from the data where there are some; None for 1 / n_features."""
        return self.gamma

    def _intake(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[ArrayData, Any]:
        """(data with checked targets and weights, rows of the kind that the kernel takes); sets `kernel_`."""
        named = self._named_kernel(None)
        rows: Any = None
        table = X
        if named.takes == "strings":
            rows = as_texts(X, "X", type(self).__name__)
            table = np.arange(len(rows), dtype=np.float64)[:, None]
        elif is_dask(X):
            raise DataError(f"X: {type(self).__name__} keeps its rows and needs them in memory; compute() them first")
        data = self._fit_data(table, y, sample_weight, **checks)
        if not isinstance(data, ArrayData):
            raise DataError(f"X: {type(self).__name__} keeps its rows and needs them in memory; collect them first")
        if rows is None:
            rows = data.X
        elif self._has_callbacks():
            self._run.inputs["X"] = X
        self.kernel_ = self._named_kernel(data)
        return data, rows

    def _keep(self, rows: Any, kept: np.ndarray | None = None) -> None:
        """Keep rows for prediction, as a copy; of a given matrix only which they are among the rows of the fit."""
        if self.kernel_.takes == "precomputed":
            self.X_fit_ = None
            self._n_fit_ = int(rows.shape[0])
            self._columns_ = np.arange(self._n_fit_) if kept is None else kept
        else:
            self.X_fit_ = rows.copy()

    def _require(self, n: int, matrices: float) -> None:
        name = type(self).__name__
        require_memory(
            matrices * 8.0 * n * n, f"{name} on {n:,} rows",
            "take Nystroem or RandomFourierFeatures with a linear model, which need no matrix of all pairs",
        )  # fmt: skip

    def _gram(self, prepared: Any) -> np.ndarray:
        return gram_matrix(self.kernel_, prepared, np.dtype(np.float64), self.n_jobs)

    def _least_eigenvalue(self, K: np.ndarray) -> float:
        """The least eigenvalue of K if it is below zero by more than rounding, otherwise 0."""
        return 0.0 if self.kernel_.mercer else least_eigenvalue(K, self.n_jobs)

    def _require_mercer(self, K: np.ndarray) -> None:
        if (least := self._least_eigenvalue(K)) < 0:
            raise DataError(
                f"kernel: {self.kernel!r:.60} is no Mercer kernel, because its matrix for these rows has the "
                f"eigenvalue {least:.3g}; {type(self).__name__} has no solution for it (is_mercer shows the direction)"
            )

    def _kept(self) -> Any:
        """The rows of the fit, prepared."""
        if self.kernel_.takes == "precomputed":
            return Entries(None, self._columns_)
        return self.kernel_.prepare(self.X_fit_)

    def _combine(self, X: Any, C: np.ndarray, offset: np.ndarray) -> Any:
        """sum_i C_i k(x_i, x) + offset for every row x of X: shape (n, t)."""
        self._check_fitted()
        if self.kernel_.takes == "strings":
            B = self._kept()
            A = self.kernel_.prepare(as_texts(X, "X", type(self).__name__), like=B)
            return kernel_product(self.kernel_, A, B, C) + offset
        data = self._predict_data(X)
        return engine.map(combine_batch, data, self.kernel_, self._kept(), C, offset, n_jobs=self.n_jobs)


class KernelClassifier(ClassifierMixin, KernelMachine):
    """A kernel machine for labels."""

    classes_: np.ndarray

    def _labelled(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
        """(rows that have a weight, codes of their labels, their weights, which rows they are); sets `classes_`."""
        data, rows = self._intake(X, y, sample_weight, target="labels")
        self.classes_, totals, _ = encode_labels(data, type(self).__name__, self.n_jobs)
        labels = np.asarray(data.y)
        weight = np.ones(len(labels)) if data.weight is None else data.weight
        kept = np.flatnonzero(weight > 0)
        coded = codes(labels[kept], labels=self.classes_)
        weight = weight[kept]
        factors = class_weights(getattr(self, "class_weight", None), self.classes_, totals)
        if factors is not None:
            weight = weight * factors[coded]
        if len(kept) < len(labels):
            rows = select_rows(rows, self.kernel_, kept)
        return rows, coded, weight, kept

    @abstractmethod
    def _scores(self, X: Any) -> Any:
        """Scores of shape (n, 1) for two classes, (n, n_classes) for more."""

    def decision_function(self, X: Any) -> Any:
        """Scores: one a row for two classes (positive favours ``classes_[1]``), else one for each class."""
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of every row: on whose side it lies, or for more than two that of the largest score."""
        scores = np.asarray(self._scores(X))
        return choose_class(scores, self.classes_)


def combine_batch(batch: Batch, kernel: Kernel, B: Any, C: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """The same for a batch, in the type of its rows."""
    A = kernel.prepare(batch.X, like=B)
    return (kernel_product(kernel, A, B, C) + offset).astype(batch.X.dtype)


def select_rows(rows: Any, kernel: Kernel, chosen: np.ndarray) -> Any:
    """Some of the rows; of a given matrix the columns too."""
    if kernel.takes == "precomputed":
        return rows[np.ix_(chosen, chosen)]
    return rows[chosen] if not sp.issparse(rows) else rows[chosen].tocsr()
