r"""Truncated singular value decomposition:  the best approximation  X = U diag(s) V  of rank k, without centring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import AnyOf, Choice, Domain, Integer, Real
from epicycle.core._random import stream
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.decomposition.pca._projection import Projection
from epicycle.decomposition.pca._spectrum import by_products
from epicycle.linalg._signs import oriented
from epicycle.stats._moments import refuse_non_finite

_RANDOMIZED, _LANCZOS = 1e-5, 1e-15  # residuals, relative to the largest squared singular value, of the two algorithms
_MOST_PRODUCTS = 300


class TruncatedSVD(Projection):
    r"""The leading singular vectors of the rows as they are; of sparse ones without forming anything dense.

    .. math:: X \approx U \,\mathrm{diag}(s)\, V, \qquad Z = X V'

    with the k largest singular values s. For rows of tf-idf weights this is latent semantic analysis.

    Parameters
    ----------
    n_components : int, default=2
        k, below the number of features.
    algorithm : {"randomized", "arpack"}, default="randomized"
        How far products with random columns go: to a residual of 1e-5, or by block Lanczos to rounding.
    n_iter : int or "auto", default="auto"
        Most products of "randomized", after the first; "auto" goes on until the residual is reached.
    n_oversamples : int, default=10
        Random columns beyond k.
    power_iteration_normalizer : {"auto", "QR", "LU", "none"}, default="auto"
        Accepted for compatibility; columns are always made orthogonal.
    tol : float, default=0.0
        Residual at which "arpack" ends; 0 goes as far as rounding allows.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Right singular vectors as rows, the largest entry of each positive.
    singular_values_ : ndarray of shape (n_components,)
    explained_variance_ : ndarray of shape (n_components,)
        Variances of the coordinates.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Their share of the variance of all columns.
    certificate_ : Certificate
        The largest residual of a singular vector, and a bound on the singular values that are left out.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from epicycle import TruncatedSVD
    >>> X = sp.random_array((100, 1000), density=0.01, rng=0, format="csr")
    >>> model = TruncatedSVD(n_components=5, random_state=0).fit(X)
    >>> model.singular_values_.round(2), model.transform(X).shape
    (array([2.89, 2.66, 2.57, 2.55, 2.49]), (100, 5))
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_components": Integer(minimum=1),
        "algorithm": Choice("randomized", "arpack"),
        "n_iter": AnyOf(Choice("auto"), Integer(minimum=0)),
        "n_oversamples": Integer(minimum=1),
        "power_iteration_normalizer": Choice("auto", "QR", "LU", "none"),
        "tol": Real(minimum=0),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="decomposition",
        catalogue=("E7", "E8"),
        engines=("memory", "files", "dask"),
        certificate="eigenvalue residual",
    )

    singular_values_: np.ndarray
    explained_variance_: np.ndarray
    explained_variance_ratio_: np.ndarray

    @stores_arguments(tol=0.0, random_state=None, n_jobs=None)
    def __init__(
        self,
        n_components: int = 2,
        *,
        algorithm: str = "randomized",
        n_iter: int | str = "auto",
        n_oversamples: int = 10,
        power_iteration_normalizer: str = "auto",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the singular vectors of rows X."""
        data = self._fit_data(X, None, sample_weight, target="none")
        refuse_non_finite(data)
        k, p = int(self.n_components), data.n_features
        if k > p - (self.algorithm == "arpack"):
            raise ParameterError(f"n_components({k}) must be <= n_features({p}), and below it with algorithm='arpack'")
        exact = self.algorithm == "arpack"
        tol = (float(self.tol) or _LANCZOS) if exact else _RANDOMIZED
        products = _MOST_PRODUCTS if exact or self.n_iter == "auto" else int(self.n_iter) + 1
        found = by_products(
            data,
            k,
            stream(self.random_state, "truncated svd"),
            tol=tol,
            max_products=products,
            n_more=int(self.n_oversamples),
            centred=False,
            n_jobs=self.n_jobs,
        )
        dtype = np.float32 if data.dtype == np.float32 else np.float64
        self.components_ = oriented(found.axes.T).T.astype(dtype)
        self.singular_values_ = np.sqrt(found.values).astype(dtype)
        assert found.sums is not None
        # Sums of squares along the axes are the squared singular values; the means follow from those of the columns.
        means = found.axes @ (found.sums / found.weight)
        spread = (found.values / found.weight - means**2).clip(min=0.0)
        total = found.total / found.weight - float(np.square(found.sums / found.weight).sum())
        self.explained_variance_ = spread.astype(dtype)
        self.explained_variance_ratio_ = (spread / total if total > 0 else np.zeros(k)).astype(dtype)
        self._conclude_spectrum(found)
        return self
