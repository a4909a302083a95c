"""The bases as scikit-learn transformers, for pipelines with any other model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import TransformerMixin

from epicycle import engine
from epicycle.core._certificate import Certificate
from epicycle.core._checks import as_floats
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._memory import require_memory
from epicycle.core._parameters import AnyOf, ArrayLike, Boolean, Domain, Integer, NoneOr, Real
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments
from epicycle.data import ArrayData, Batch, Data
from epicycle.data._dask_data import is_dask
from epicycle.linear.basis._bases import Basis, HarmonicBasis, HingeBasis, expanded_pieces
from epicycle.linear.basis._linear_spline import KNOTS, MAX_FUNCTIONS, place_knots
from epicycle.linear.basis._ranges import column_ranges


class BasisTransformer(TransformerMixin, Estimator, ABC):  # type: ignore[misc]
    """A map of columns that is fitted by placing it on the data."""

    _card: ClassVar[MethodCard] = MethodCard(
        family="linear", catalogue=("A4",), engines=("memory", "files", "dask"), certificate="closed form"
    )

    n_jobs: int | None
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"transformer_tags.preserves_dtype": ["float64", "float32"]}

    @abstractmethod
    def _place(self, data: Data) -> None:
        """Learn where the basis lies, in fitted attributes."""

    @abstractmethod
    def _basis(self) -> Basis:
        """The basis, from the fitted attributes."""

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Place the functions on the rows of X.

        Parameters
        ----------
        X : array, data frame, Scan or Dask collection of shape (n_samples, n_features)
        """
        data = self._fit_data(X, None, target="none")
        self._place(data)
        meaning = "the functions are those asked for: nothing is optimised"
        self._conclude_directly(Certificate("closed form", 0.0, 0.0, meaning))
        return self

    def transform(self, X: Any) -> Any:
        """The functions at every row: shape (n_samples, n_features_out)."""
        data, basis = self._predict_data(X), self._basis()
        if isinstance(data, ArrayData):
            n, d = data.n_rows, basis.n_functions
            require_memory(float(data.dtype.itemsize) * n * d, f"{d} functions of {n} rows", "ask for fewer functions")
        return engine.map(transform_batch, data, basis, n_jobs=self.n_jobs)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of the result.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the columns of X; default: those seen in `fit`, or x0, x1, ...

        Returns
        -------
        ndarray of str
        """
        self._check_fitted()
        names = self._names()
        if input_features is not None:
            given = [str(name) for name in input_features]
            if len(given) != self.n_features_in_:
                raise DataError(
                    f"input_features should have length equal to number of features ({self.n_features_in_}), "
                    f"got {len(given)}"
                )
            if hasattr(self, "feature_names_in_") and given != names:
                raise DataError("input_features is not equal to feature_names_in_")
            names = given
        return np.asarray(self._basis().names(names), dtype=object)


def transform_batch(batch: Batch, basis: Basis) -> np.ndarray:
    """phi(x) of every row in the type of X."""
    out = np.empty((batch.n_rows, basis.n_functions), dtype=batch.X.dtype)
    for part, phi in expanded_pieces(batch, basis):
        out[part] = phi
    return out


class HingeFeatures(BasisTransformer):
    r"""The hinge basis of a linear spline: :math:`x` and :math:`\max(0, x - a_k)` for every knot.

    .. math:: x_j \mapsto \bigl(x_j, \; \max(0, x_j - a_{j1}), \; \dots, \; \max(0, x_j - a_{jm})\bigr)

    A linear model of these is a continuous piecewise linear function, whose coefficients are changes of slope.

    Parameters
    ----------
    n_knots : int, default=10
        Knots of every column, where they are not given.
    knots : {"quantile", "uniform"} or array-like, default="quantile"
        Knots at evenly spaced quantiles or values of each column, or the knots themselves: an array for one column (or
        for all alike), a sequence of arrays for each.
    linear : bool, default=True
        Whether the columns themselves come first.
    sparse_output : bool, default=False
        Whether the result is a CSR array: below its knot a hinge is zero.
    n_jobs : int, optional
        Threads; None follows the size of the work.

    Attributes
    ----------
    knots_ : list of ndarray
        The knots of every column.
    certificate_ : Certificate
        Nothing is optimised.

    Examples
    --------
    >>> from epicycle import HingeFeatures
    >>> HingeFeatures(knots=[1.0, 2.0]).fit_transform([[0.5], [1.5], [3.0]])
    array([[0.5, 0. , 0. ],
           [1.5, 0.5, 0. ],
           [3. , 2. , 1. ]])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **KNOTS,
        "linear": Boolean(),
        "sparse_output": Boolean(),
    }

    @stores_arguments
    def __init__(
        self,
        n_knots: int = 10,
        *,
        knots: str | Any = "quantile",
        linear: bool = True,
        sparse_output: bool = False,
        n_jobs: int | None = None,
    ) -> None: ...

    def _place(self, data: Data) -> None:
        self.knots_ = place_knots(type(self).__name__, data, self.knots, self.n_knots, self.n_jobs)
        if not self.linear and not any(len(k) for k in self.knots_):
            raise DataError("X: no column varies, so that there are neither knots nor (with linear=False) functions")

    def _basis(self) -> HingeBasis:
        owners = np.repeat(np.arange(len(self.knots_)), [len(k) for k in self.knots_])
        return HingeBasis(np.concatenate([np.empty(0), *self.knots_]), owners, len(self.knots_), self.linear)

    def transform(self, X: Any) -> Any:
        """The functions at every row: shape (n_samples, n_features_out)."""
        if not self.sparse_output:
            return super().transform(X)
        if is_dask(X):
            raise DataError("X: sparse_output=True does not work on Dask collections; set it to False")
        data, basis = self._predict_data(X), self._basis()
        rows = [basis.expand_sparse(np.asarray(batch.X)).astype(data.dtype) for batch in data.batches()]
        return sp.vstack(rows, format="csr") if len(rows) > 1 else rows[0]


class FourierFeatures(BasisTransformer):
    r"""The Fourier basis: sines and cosines of every column.

    .. math:: x_j \mapsto \bigl(\sin(\omega_1 x_j), \cos(\omega_1 x_j), \; \dots, \; \sin(\omega_m x_j),
              \cos(\omega_m x_j)\bigr)

    Parameters
    ----------
    n_harmonics : int, default=3
        Frequencies :math:`\omega_k = 2 \pi k / \text{period}`, k = 1 ... n_harmonics.
    period : float or array-like of shape (n_features,), optional
        Of every column; default: the width of its range in the data.
    frequencies : array-like of shape (n_frequencies,), optional
        Angular frequencies in radians per unit of x, instead of harmonics of a period.
    n_jobs : int, optional
        Threads; None follows the size of the work.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_features, n_frequencies)
        Angular frequencies for every column.
    certificate_ : Certificate
        Nothing is optimised.

    Examples
    --------
    >>> from epicycle import FourierFeatures
    >>> hours = [[0.0], [6.0], [12.0]]
    >>> FourierFeatures(n_harmonics=1, period=24.0).fit_transform(hours).round(6) + 0.0
    array([[ 0.,  1.],
           [ 1.,  0.],
           [ 0., -1.]])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_harmonics": Integer(minimum=1, maximum=MAX_FUNCTIONS),
        "period": NoneOr(AnyOf(Real(minimum=0, inclusive=False), ArrayLike())),
        "frequencies": NoneOr(ArrayLike()),
    }

    @stores_arguments
    def __init__(
        self,
        n_harmonics: int = 3,
        *,
        period: float | Any = None,
        frequencies: Any = None,
        n_jobs: int | None = None,
    ) -> None: ...

    def _place(self, data: Data) -> None:
        p = data.n_features
        if self.frequencies is not None:
            if self.period is not None:
                raise ParameterError("FourierFeatures: period and frequencies are both given; give one of them")
            given = _numbers("frequencies", self.frequencies)
            self.frequencies_ = np.tile(np.atleast_1d(given), (p, 1))
            return
        if self.period is None:
            low, high = column_ranges(data, self.n_jobs)
            period = np.where(high > low, high - low, 1.0)
        else:
            period = _numbers("period", self.period)
            if period.size not in (1, p) or (period <= 0).any():
                raise ParameterError(
                    f"FourierFeatures: period={self.period!r}; expected a number > 0, or one for each of {p} columns"
                )
        harmonics = 2 * np.pi * np.arange(1, self.n_harmonics + 1)
        self.frequencies_ = harmonics / np.broadcast_to(period.reshape(-1, 1), (p, 1))

    def _basis(self) -> HarmonicBasis:
        return HarmonicBasis(self.frequencies_)


def _numbers(name: str, value: Any) -> np.ndarray:
    array = as_floats(value, ParameterError(f"FourierFeatures: {name}={value!r:.80}; expected numbers"))
    if array.ndim > 1 or not array.size or not np.isfinite(array).all():
        raise ParameterError(f"FourierFeatures: {name}={value!r:.80}; expected finite numbers in one dimension")
    return array
