"""Common parts of coders and learners of dictionaries: rows to codes, and back."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from epicycle import engine
from epicycle.core._exceptions import ConvergenceWarning, DataError
from epicycle.core._parameters import Boolean, Choice, Domain, Integer, NoneOr, Real
from epicycle.core.estimator._estimator import Estimator
from epicycle.data import DaskData, Data
from epicycle.decomposition.dictionary._codes import (
    ALGORITHMS,
    TOLERANCE,
    codes_of_batch,
    coding_of,
    plain_codes_of_batch,
)


class SparseCoding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):  # type: ignore[misc]  # untyped
    """Base of methods whose features are sparse codes of rows."""

    _takes_sparse = True

    _docs: ClassVar[Mapping[str, str]] = {
        "transform_algorithm": 'transform_algorithm : {"lasso_lars", "lasso_cd", "lars", "omp", "threshold"}, '
        "default={default}\n"
        "    How rows are coded: by the lasso (both names give its optimum, found by coordinate descent until the "
        "duality\n    gap is closed), least angles, orthogonal matching pursuit, or soft thresholding of the products.",
        "transform_n_nonzero_coefs": "transform_n_nonzero_coefs : int or None, default={default}\n"
        "    Atoms of a code by least angles or matching pursuit; None takes a tenth of the features.",
        "transform_alpha": "transform_alpha : float or None, default={default}\n"
        "    Penalty of the lasso, or threshold; None takes that of the fit, or 1.",
        "split_sign": "split_sign : bool, default={default}\n"
        "    Whether codes are split into their positive and negative parts, side by side.",
        "positive_code": "positive_code : bool, default={default}\n    Whether codes are at least 0.",
        "positive_dict": "positive_dict : bool, default={default}\n    Whether atoms are at least 0.",
        "transform_max_iter": "transform_max_iter : int, default={default}\n    Most sweeps for the code of a row.",
        "fit_transform_returns": "array of shape (n_samples, n_components)",
        "transform_returns": "array of shape (n_samples, n_components)",
    }
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "transform_algorithm": Choice(*ALGORITHMS),
        "transform_n_nonzero_coefs": NoneOr(Integer(minimum=1)),
        "transform_alpha": NoneOr(Real(minimum=0)),
        "split_sign": Boolean(),
        "positive_code": Boolean(),
        "transform_max_iter": Integer(minimum=0),
    }

    transform_algorithm: str
    transform_n_nonzero_coefs: int | None
    transform_alpha: float | None
    split_sign: bool
    positive_code: bool
    transform_max_iter: int
    n_jobs: int | None
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"transformer_tags.preserves_dtype": ["float64", "float32"]}

    @abstractmethod
    def _atoms(self, n_features: int) -> np.ndarray:
        """The dictionary that rows are coded with, checked against their number of features."""

    def _alpha(self) -> float | None:
        return self.transform_alpha

    def transform(self, X: Any) -> Any:
        """The sparse codes of the rows; a row's does not depend on the other rows."""
        return self._encoded(self._predict_data(X))

    def _encoded(self, data: Data) -> Any:
        D = self._atoms(data.n_features)
        coding = coding_of(
            self.transform_algorithm,
            self.transform_n_nonzero_coefs,
            self._alpha(),
            (len(D), D.shape[1]),
            positive=self.positive_code,
            max_iter=self.transform_max_iter,
            split=bool(self.split_sign),
        )
        if isinstance(data, DaskData):
            return engine.map(plain_codes_of_batch, data, D, coding, n_jobs=self.n_jobs)
        found = engine.map(codes_of_batch, data, D, coding, n_jobs=self.n_jobs)
        gap = float(found[:, -1].max(initial=0.0))
        if gap > 10 * TOLERANCE:
            warnings.warn(
                f"{type(self).__name__}: {self.transform_max_iter} sweeps leave a duality gap of {gap:.1e} of half the "
                f"squared row, above {TOLERANCE:.0e}; raise transform_max_iter",
                ConvergenceWarning,
                stacklevel=3,
            )
        return np.ascontiguousarray(found[:, :-1], dtype=data.dtype)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """The rows that codes stand for, CD.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Codes; twice as many columns with `split_sign`.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        self._check_fitted()
        code = np.asarray(X)
        D = self._atoms(self.n_features_in_)
        expected = len(D) * (2 if self.split_sign else 1)
        if code.ndim != 2 or code.shape[1] != expected:
            raise DataError(
                f"X: the number of components in the code is not that of the dictionary. Expected {expected}, "
                f"got {code.shape[1] if code.ndim == 2 else code.shape}."
            )
        if self.split_sign:
            code = code[:, : len(D)] - code[:, len(D) :]
        return np.asarray(code @ D.astype(code.dtype if code.dtype == np.float32 else np.float64))
