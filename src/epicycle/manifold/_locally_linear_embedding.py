"""Locally linear embedding, standard, modified, by Hessians and by tangent spaces."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh, splu
from sklearn.base import TransformerMixin

from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ConvergenceError, DataError, ParameterError
from epicycle.core._parameters import Choice, Domain, Integer, Real
from epicycle.core._random import Seed, stream
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData
from epicycle.linalg._signs import oriented
from epicycle.linalg._spectra import some_eigenvectors
from epicycle.manifold._base import EIGENVALUES, Embedding, card, to_unit_size
from epicycle.manifold._local_geometry import barycentres, quadratic_form
from epicycle.metrics._neighborhoods import euclidean_rows
from epicycle.neighbors import NearestNeighbors
from epicycle.neighbors._base import rows_of_search
from epicycle.spatial._options import SEARCH_PARAMETERS

_TOLERANCE = 1e-8  # of the certificate: residual of an eigenvector relative to the norm of M


class LocallyLinearEmbedding(TransformerMixin, Embedding):  # type: ignore[misc]  # untyped mixin
    r"""Places in which every row is the same mean of its neighbours as in the table.

    .. math:: \min_{Z'Z = I, \; Z'1 = 0} \; \sum_i \Big\| z_i - \sum_j w_{ij} z_j \Big\|^2 = \operatorname{tr} Z'MZ,
              \qquad w_i = \arg\min_{\sum_j w_{ij} = 1} \Big\| x_i - \sum_j w_{ij} x_j \Big\|^2 + \text{ridge}

    over the neighbours j of row i, by the least eigenvectors of M but the constant one. The other methods have an M of
    other local forms: several weights for each row ("modified"), a discrete Hessian ("hessian"), or what is not linear
    on the tangent space ("ltsa"). A new row is the mean of its neighbours' places with its own weights.
    A fitted object keeps the training rows.

    Parameters
    ----------
    n_neighbors : int, default=5
        Neighbours of each row; "hessian" needs more than n_components (n_components + 3) / 2.
    n_components : int, default=2
        Number of coordinates, at most that of columns.
    reg : float, default=0.001
        Ridge of the weights, times the trace of the products of differences.
    eigen_solver : {"auto", "arpack", "dense"}, default="auto"
        Lanczos' method with a factorised M, or LAPACK; "auto" takes LAPACK for up to 200 rows.
    tol : float, default=1e-06
        Accuracy of "arpack", relative to the eigenvalues of the inverse.
    max_iter : int, default=100
        Maximum number of restarts of "arpack".
    method : {"standard", "hessian", "modified", "ltsa"}, default="standard"
        What is asked of neighbours. "hessian" takes the quadratic columns alone, as Donoho and Grimes do; scikit-learn
        takes all that is not linear, which for more neighbours than it needs is "ltsa".
    hessian_tol : float, default=0.0001
        Sums of columns of the Hessian below it are not divided by.
    modified_tol : float, default=1e-12
        Length below which the reflection of "modified" is left out.
    neighbors_algorithm : {"auto", "brute", "kd_tree", "ball_tree"}, default="auto"
        How neighbours are searched; the search is exact.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Orthonormal columns of mean zero, the largest entry of each positive.
    reconstruction_error_ : float
        tr Z'MZ, the sum of the eigenvalues.
    eigenvalues_ : ndarray
        Of the coordinates, and the next one.
    nbrs_ : NearestNeighbors
    n_connected_components_ : int
        Parts of the graph of neighbours. With more than one, coordinates tell the parts apart and little else, which is
        said in a warning.
    certificate_ : Certificate
        The largest residual of an eigenvector relative to the norm of M. Its meaning says how far the next eigenvalue
        is, and how well neighbours are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import LocallyLinearEmbedding
    >>> t = np.linspace(0, 4, 100)
    >>> spiral = np.column_stack([t * np.cos(t), t * np.sin(t)])
    >>> z = LocallyLinearEmbedding(n_neighbors=4, n_components=1).fit_transform(spiral)[:, 0]
    >>> bool(np.all(np.diff(z) > 0) or np.all(np.diff(z) < 0))  # the order along the curve
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_neighbors": Integer(minimum=1),
        "n_components": Integer(minimum=1),
        "reg": Real(minimum=0),
        "eigen_solver": Choice("auto", "arpack", "dense"),
        "tol": Real(minimum=0),
        "method": Choice("standard", "hessian", "modified", "ltsa"),
        "hessian_tol": Real(minimum=0),
        "modified_tol": Real(minimum=0),
        "neighbors_algorithm": SEARCH_PARAMETERS["algorithm"],
    }
    _card: ClassVar[MethodCard] = card("E13", EIGENVALUES)

    nbrs_: NearestNeighbors
    reconstruction_error_: float
    eigenvalues_: np.ndarray
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"transformer_tags.preserves_dtype": ["float64", "float32"]}

    @stores_arguments(tol=1e-6, max_iter=100, random_state=None, n_jobs=None)
    def __init__(
        self,
        *,
        n_neighbors: int = 5,
        n_components: int = 2,
        reg: float = 1e-3,
        eigen_solver: str = "auto",
        method: str = "standard",
        hessian_tol: float = 1e-4,
        modified_tol: float = 1e-12,
        neighbors_algorithm: str = "auto",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the places of rows X."""
        data = self._table(rows_of_search(X))
        self._check_numbers(data.n_rows, data.n_features)
        self.nbrs_ = NearestNeighbors(
            n_neighbors=self.n_neighbors, algorithm=self.neighbors_algorithm, n_jobs=self.n_jobs
        ).fit(data.X)
        near = np.asarray(self.nbrs_.kneighbors(return_distance=False))
        rows, _ = to_unit_size(np.asarray(data.X, dtype=np.float64))
        if not np.ptp(rows, axis=0).any():
            raise DataError(f"X: all {len(rows)} rows are equal; expected rows of which some differ")
        d = int(self.n_components)
        M = quadratic_form(
            rows,
            near,
            d,
            self.method,
            reg=float(self.reg),
            hessian_tol=float(self.hessian_tol),
            modified_tol=float(self.modified_tol),
        )
        self.n_connected_components_ = int(connected_components(M, directed=False, return_labels=False))
        if self.n_connected_components_ > 1:
            warnings.warn(
                f"The graph of n_neighbors={self.n_neighbors} neighbours has {self.n_connected_components_} parts, "
                "which have nothing to do with each other in the embedding: raise n_neighbors, or embed each by itself",
                stacklevel=3,
            )
        found = null_space(
            M, d, self.eigen_solver, float(self.tol), int(self.max_iter), stream(self.random_state, "lle")
        )
        self.eigenvalues_ = found.values
        self.reconstruction_error_ = float(found.values[:d].sum())
        self.embedding_ = found.vectors.astype(np.float32 if data.X.dtype == np.float32 else np.float64)
        quality = self._judge(euclidean_rows(rows), data.n_features, self.n_jobs)
        meaning = f"every coordinate solves its eigenvalue equation up to {found.residual:.1e} of the norm of M"
        if len(found.values) > d:
            gap = float(found.values[d] - found.values[d - 1])
            meaning += f"; the next eigenvalue is {gap:.1e} above {found.values[d - 1]:.1e}"
        certificate = Certificate(EIGENVALUES, found.residual, _TOLERANCE, f"{meaning}; {quality}")
        self._conclude_directly(certificate, x=found.values, objective=self.reconstruction_error_)
        return self

    def _check_numbers(self, n: int, p: int) -> None:
        k, d = int(self.n_neighbors), int(self.n_components)
        if d > p:
            raise ParameterError(
                f"n_components={d}: output dimension must be less than or equal to input dimension, n_features={p}"
            )
        if k >= n:
            raise ParameterError(
                f"n_neighbors={k}; Expected n_neighbors < n_samples, but n_samples = {n}, n_neighbors = {k}"
            )
        if d > n - 1:
            raise ParameterError(f"n_components={d}; expected fewer than the rows, n_samples = {n}")
        if self.method == "hessian" and k <= d * (d + 3) // 2:
            raise ParameterError(
                f"n_neighbors={k}: for method='hessian', n_neighbors must be greater than "
                f"[n_components * (n_components + 3) / 2] = {d * (d + 3) // 2}"
            )
        if self.method in ("modified", "ltsa") and k < d:
            raise ParameterError(f"n_neighbors={k}: {self.method} LLE requires n_neighbors >= n_components={d}")

    def transform(self, X: Any) -> np.ndarray:
        """Places of new rows: means of those of their neighbours, with the weights that give the rows best."""
        data = self._predict_data(X)
        if not isinstance(data, ArrayData):
            raise DataError("X: rows have to be in memory; collect them first")
        near = np.asarray(self.nbrs_.kneighbors(data.X, return_distance=False))
        Y = np.asarray(self.nbrs_.X_fit_, dtype=np.float64)
        new = np.asarray(data.X, dtype=np.float64)
        scale = max(to_unit_size(Y)[1], to_unit_size(new)[1])
        weight = barycentres(new / scale, Y / scale, near, float(self.reg))
        found = np.einsum("ij,ijk->ik", weight, self.embedding_[near].astype(np.float64))
        return np.asarray(found, dtype=np.float32 if data.X.dtype == np.float32 else np.float64)


def locally_linear_embedding(
    X: Any,
    *,
    n_neighbors: int,
    n_components: int,
    reg: float = 1e-3,
    eigen_solver: str = "auto",
    tol: float = 1e-6,
    max_iter: int = 100,
    method: str = "standard",
    hessian_tol: float = 1e-4,
    modified_tol: float = 1e-12,
    random_state: Seed = None,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, float]:
    """The places of a :class:`LocallyLinearEmbedding`, and the sum of their eigenvalues.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), or NearestNeighbors
        Rows, or a search that holds them.
    n_neighbors, n_components, reg, eigen_solver, tol, max_iter, method, hessian_tol, modified_tol, random_state, n_jobs
        As in :class:`LocallyLinearEmbedding`.

    Returns
    -------
    places : ndarray of shape (n_samples, n_components)
    squared_error : float

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import locally_linear_embedding
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> places, error = locally_linear_embedding(X, n_neighbors=8, n_components=2)
    >>> places.shape
    (60, 2)
    """
    model = LocallyLinearEmbedding(
        n_neighbors=n_neighbors,
        n_components=n_components,
        reg=reg,
        eigen_solver=eigen_solver,
        tol=tol,
        max_iter=max_iter,
        method=method,
        hessian_tol=hessian_tol,
        modified_tol=modified_tol,
        random_state=random_state,
        n_jobs=n_jobs,
    ).fit(X)
    return model.embedding_, model.reconstruction_error_


# The least eigenvectors of a sparse M >= 0 with M 1 = 0, constants left out.

_DENSE = 200  # rows up to which LAPACK is used with "auto"
_SHIFT = 1e-13  # of the norm of M, which makes it regular


@dataclass(frozen=True)
class NullSpace:
    """Eigenvalues, rising, one more than vectors where there is one; the largest residual relative to the norm of M."""

    values: np.ndarray
    vectors: np.ndarray
    residual: float


def null_space(M: sp.csr_array, d: int, solver: str, tol: float, max_iter: int, rng: np.random.Generator) -> NullSpace:
    """The d least eigenvectors orthogonal to constants."""
    n = int(M.shape[0])
    wanted = min(d + 1, n - 1)
    norm = max(float(abs(M).sum(axis=0).max()), np.finfo(np.float64).tiny)
    if solver == "dense" or (solver == "auto" and (n <= _DENSE or wanted > n // 4)) or wanted >= n - 1:
        # constants get the largest eigenvalue there is
        values, vectors = some_eigenvectors(M.toarray() + 2 * norm / n, 0, wanted - 1)
    else:
        values, vectors = _by_inverse(M, wanted, norm, tol, max_iter, rng)
    order = np.argsort(values, kind="stable")
    values, vectors = values[order], vectors[:, order][:, :d]
    vectors = vectors - vectors.mean(axis=0)
    vectors /= np.linalg.norm(vectors, axis=0)
    left = M @ vectors - vectors * values[: vectors.shape[1]]
    residual = float(np.linalg.norm(left, axis=0).max(initial=0.0)) / norm
    return NullSpace(values.clip(min=0.0), oriented(vectors), residual)


def _by_inverse(
    M: sp.csr_array, k: int, norm: float, tol: float, max_iter: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Lanczos' method with the inverse of M + shift on the complement of constants."""
    n, shift = int(M.shape[0]), _SHIFT * norm
    shifted = sp.csc_array(M + sp.diags_array(np.full(n, shift)))
    try:
        factor = splu(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:  # a pivot that is zero to rounding
        factor = splu(shifted)

    def inverse(x: np.ndarray) -> np.ndarray:
        y = factor.solve(x - x.mean())
        return np.asarray(y - y.mean())

    operator = LinearOperator((n, n), matvec=inverse, dtype=np.float64)
    try:
        vectors = eigsh(operator, k, which="LA", v0=rng.uniform(-1, 1, n), tol=tol, maxiter=max_iter)[1]
    except (ArpackNoConvergence, ArpackError) as error:
        raise ConvergenceError(
            f"max_iter={max_iter}: Error in determining null-space with ARPACK, which did not find {k} eigenvectors; "
            "raise max_iter, or take eigen_solver='dense'"
        ) from error
    # quotients of Rayleigh are as accurate as M; the reciprocal of a large number is not
    return np.asarray(np.einsum("ij,ij->j", vectors, M @ vectors)), vectors
