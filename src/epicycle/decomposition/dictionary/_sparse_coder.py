"""Sparse codes for a dictionary that is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import ArrayLike, Domain, NoneOr
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.decomposition.dictionary._base import SparseCoding


class SparseCoder(SparseCoding):
    r"""Rows as combinations of few atoms of a dictionary that is given.

    .. math:: \min_c \; \tfrac12 |x - c D|^2 + \alpha |c|_1 \qquad\text{or}\qquad
              \min_c \; |x - c D|^2 \;\text{ with at most m atoms}

    Parameters
    ----------
    dictionary : array-like of shape (n_components, n_features) or None, default=None
        Atoms as rows; matching pursuit and thresholds expect them to have length 1. None takes the features
        themselves, one atom for each.

    Attributes
    ----------
    n_components_ : int
        Number of atoms.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import SparseCoder
    >>> D = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    >>> SparseCoder(D, transform_n_nonzero_coefs=1).transform(np.array([[3.0, 4.0], [2.0, 0.1]])).round(2)
    array([[0., 0., 5.],
           [2., 0., 0.]])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {**SparseCoding._parameters, "dictionary": NoneOr(ArrayLike())}
    _card: ClassVar[MethodCard] = MethodCard(
        family="decomposition", catalogue=("E10",), engines=("memory", "files", "dask"), certificate="none"
    )
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"requires_fit": False}

    @stores_arguments
    def __init__(
        self,
        dictionary: Any = None,
        *,
        transform_algorithm: str = "omp",
        transform_n_nonzero_coefs: int | None = None,
        transform_alpha: float | None = None,
        split_sign: bool = False,
        n_jobs: int | None = None,
        positive_code: bool = False,
        transform_max_iter: int = 1000,
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Compare the features of X with those of the dictionary; there is nothing to learn."""
        data = self._fit_data(X, None, sample_weight, target="none")
        self._atoms(data.n_features)
        self._conclude_directly(Certificate("none", 0.0, 0.0, "nothing is fitted; codes whose gap stays open warn"))
        return self

    def _atoms(self, n_features: int) -> np.ndarray:
        if self.dictionary is None:
            return np.eye(n_features)
        D = np.ascontiguousarray(self.dictionary, dtype=np.float64)
        if D.ndim != 2 or D.shape[1] != n_features:
            raise DataError(
                f"Dictionary and X have different numbers of features: dictionary.shape: {D.shape}, X has {n_features}"
            )
        if not np.isfinite(D).all():
            raise DataError("dictionary: NaN or infinity; expected finite numbers")
        return D

    @property
    def n_components_(self) -> int:
        """Number of atoms."""
        return self.n_features_in_ if self.dictionary is None else len(self.dictionary)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_
