"""Kernel principal components:  the directions of largest variance in the feature space.

With H = I - 1 1'/n and H K H = sum_j l_j a_j a_j', the component j of x is  sum_i a_ij k(x_i, x) / sqrt(l_j), less its
mean over the rows. The way back is kernel ridge regression of the rows on their components.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg

from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ConvergenceError, DataError, NotFittedError, ParameterError
from epicycle.core._parameters import AnyOf, Boolean, Choice, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.core._threads import n_threads
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.kernel._approximation import KernelFeatures
from epicycle.kernels._gram import kernel_product, low_rank_factor
from epicycle.kernels._machine import KERNEL_PARAMETERS, KernelMachine
from epicycle.kernels._prepared import as_rows
from epicycle.linalg._shifted_systems import matrix_product, solve_shifted
from epicycle.linalg._spectra import singular_vectors

_TOL = 1e-8  # of the certificate, where none is given
_ZERO = 1e-12  # of the largest eigenvalue: what is below is rounding of the kernel matrix
_NEGATIVE = 1e-5  # of the largest eigenvalue: one that is further below zero is not rounding
_FEW = 400  # rows up to which all eigenvalues cost nothing


class KernelPCA(KernelFeatures, KernelMachine):
    r"""Principal components in the feature space of a kernel.

    .. math:: H K H = \sum_j \lambda_j a_j a_j', \qquad
              \text{component}_j(x) = \frac{1}{\sqrt{\lambda_j}} \sum_i a_{ij} \tilde k(x_i, x)

    with the kernel centred in the feature space. A fitted object keeps the training rows: new rows are compared with
    them.

    Parameters
    ----------
    n_components : int, optional
        How many, at most as many as rows; default: all with a positive eigenvalue.
    fit_inverse_transform : bool, default=False
        Whether the way back is learnt too, by ridge regression with the same kernel on the components.
    alpha : float, default=1.0
        The penalty of that regression.
    eigen_solver : {"auto", "dense", "arpack", "randomized"}, default="auto"
        "dense" finds all pairs, "arpack" those asked for by Lanczos's method. "auto" chooses by size and rank;
        "randomized" is accepted for compatibility and does the same, to full precision.
    tol : float, default=1e-8
        Residual of the eigenvectors that the certificate asserts, relative to the largest eigenvalue. 0 stands for the
        default; the pairs are found to working precision in any case.
    max_iter : int, optional
        Maximum number of restarts of "arpack".
    iterated_power : int or "auto", default="auto"
        Accepted for compatibility; the solution does not depend on it.
    remove_zero_eig : bool, default=False
        Whether components of zero variance are left out where `n_components` is given; without it they always are.
    random_state : int, Generator, RandomState or None, default=None
        Accepted for compatibility; the solution does not depend on it.
    copy_X : bool, default=True
        Whether the rows that are kept are a copy of those given.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Of the centred kernel matrix, largest first.
    eigenvectors_ : ndarray of shape (n_samples, n_components)
        Of length one, with the largest entry positive; zero where the eigenvalue is.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Share of the variance in the feature space.
    dual_coef_ : ndarray of shape (n_samples, n_features)
        Of the way back, where it was asked for.
    X_transformed_fit_ : ndarray of shape (n_samples, n_components)
        Components of the rows of the fit, where the way back was asked for.
    %(X_fit_)s
    %(kernel_)s
    gamma_ : float
        `gamma`, or its default.
    certificate_ : Certificate
        The largest residual of an eigenvector, relative to the largest eigenvalue.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from epicycle import KernelPCA
    >>> X, y = make_circles(200, factor=0.3, noise=0.05, random_state=0)
    >>> Z = KernelPCA(2, kernel="rbf", gamma=2.0).fit_transform(X)
    >>> Z.shape
    (200, 2)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_components": NoneOr(Integer(minimum=1)),
        **KERNEL_PARAMETERS,
        "fit_inverse_transform": Boolean(),
        "alpha": Real(minimum=0, inclusive=False),
        "kernel_params": NoneOr(InstanceOf(dict)),
        "eigen_solver": Choice("auto", "dense", "arpack", "randomized"),
        "tol": Real(minimum=0),
        "max_iter": NoneOr(Integer(minimum=1)),
        "iterated_power": AnyOf(Choice("auto"), Integer(minimum=0)),
        "remove_zero_eig": Boolean(),
        "copy_X": Boolean(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="kernel", catalogue=("C1",), engines=("memory",), certificate="eigenvalue residual", keeps_rows=True
    )

    @stores_arguments(tol=1e-8, max_iter=None, random_state=None, n_jobs=None, verbose=0)
    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Any = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1.0,
        kernel_params: dict[str, Any] | None = None,
        fit_inverse_transform: bool = False,
        alpha: float = 1.0,
        eigen_solver: str = "auto",
        iterated_power: int | str = "auto",
        remove_zero_eig: bool = False,
        copy_X: bool = True,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the components of the rows of X."""
        _, rows = self._intake(X, None, None, target="none")
        if self.fit_inverse_transform and self.kernel_.takes != "vectors":
            what = "a precomputed kernel" if self.kernel_.takes == "precomputed" else f"kernel={self.kernel!r:.40}"
            raise ParameterError(
                f"KernelPCA: fit_inverse_transform=True; expected False. Cannot fit_inverse_transform with {what}, "
                f"because the rows are {self.kernel_.takes}, no vectors"
            )
        self.gamma_ = self.gamma if self.gamma is not None else 1.0 / self.n_features_in_
        n = int(rows.shape[0])
        wanted = n if self.n_components is None else min(n, self.n_components)
        self._keep(rows)
        A = self.kernel_.prepare(rows)
        values, vectors, means, residual, trace = self._components(A, wanted)
        if self.n_components is not None and not self.remove_zero_eig:  # components without variance are zero
            more = wanted - len(values)
            values, vectors = np.pad(values, (0, more)), np.pad(vectors, ((0, 0), (0, more)))
        signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
        self.eigenvalues_, self.eigenvectors_ = values, vectors * signs
        self.explained_variance_ratio_ = values / trace if trace > 0 else np.zeros_like(values)
        self._means_ = means
        if self.fit_inverse_transform:
            self._learn_the_way_back(rows)
        meaning = f"every pair solves its equation up to {residual:.1e} of the largest eigenvalue"
        certificate = Certificate("eigenvalue residual", residual, self.tol or _TOL, meaning)
        self._conclude_directly(certificate, x=values, objective=float(trace - values.sum()))
        return self

    def _components(self, A: Any, wanted: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
        """(eigenvalues, eigenvectors, means of the columns of K, residual, trace of H K H)."""
        n = A.n_rows
        if n > _FEW and self.kernel_.mercer and self.eigen_solver in ("auto", "randomized"):
            _, R, rest = low_rank_factor(self.kernel_, A, min(n // 8, 256), tol=1e-15)
            G = np.ascontiguousarray(R.T)
            if float(rest.sum()) <= 1e-13 * float(np.square(G).sum()):
                return _from_factor(G, wanted, float(rest.sum()))
        self._require(n, 1.0 if wanted < n // 4 else 3.0)
        K = self._gram(A)
        means = K.mean(axis=0)
        # Centring in the feature space: H K H with H = I - 1 1' / n.
        K -= means
        K -= means[:, None]
        K += float(means.mean())
        trace = float(np.trace(K))
        threads = n_threads(float(n) * n, self.n_jobs)
        sparse = wanted < n // 4 and n > _FEW if self.eigen_solver != "arpack" else wanted < n
        if sparse and self.eigen_solver != "dense" and trace > 0:  # Lanczos's method cannot start where K is zero
            operator = scipy.sparse.linalg.LinearOperator(
                (n, n), matvec=lambda x: matrix_product(K, x.reshape(-1, 1), threads)[:, 0], dtype=np.float64
            )
            start = np.cos(np.arange(n))  # fixed, and hardly at a right angle to anything
            try:
                values, vectors = scipy.sparse.linalg.eigsh(
                    operator, k=wanted, which="LA", v0=start, tol=0, maxiter=self.max_iter
                )
            except scipy.sparse.linalg.ArpackNoConvergence as error:
                raise ConvergenceError(
                    f"KernelPCA: max_iter={self.max_iter} restarts of Lanczos's method are not enough for {wanted} "
                    "components; raise it, or take eigen_solver='dense'"
                ) from error
        else:
            values, vectors = scipy.linalg.eigh(K, driver="evd")
        order = np.argsort(values)[::-1][:wanted]
        values, vectors = values[order], vectors[:, order]
        top = float(values[0]) if len(values) else 0.0
        if len(values) and values[-1] < -_NEGATIVE * float(np.abs(values).max()):
            raise DataError(
                f"kernel: {self.kernel!r:.60} is no Mercer kernel for these rows. There are significant negative "
                f"eigenvalues among the {wanted} components, such as {values[-1]:.3g}; ask for fewer components, or "
                "take another kernel"
            )
        good = values > max(top, 0.0) * max(n * np.finfo(np.float64).eps, _ZERO)
        values, vectors = values[good], vectors[:, good]
        left = matrix_product(K, vectors, threads) - vectors * values
        residual = float(np.linalg.norm(left / top, axis=0).max(initial=0.0)) if top > 0 else 0.0
        return values, vectors, means, residual, trace

    def transform(self, X: Any) -> Any:
        """The components of every row of X."""
        self._check_fitted()
        root = np.sqrt(self.eigenvalues_)
        C = np.divide(self.eigenvectors_, root, out=np.zeros_like(self.eigenvectors_), where=root > 0)
        return self._combine(X, C, -(self._means_ @ C))

    def _learn_the_way_back(self, rows: Any) -> None:
        Z = self.eigenvectors_ * np.sqrt(self.eigenvalues_)
        targets = np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)
        K = self._gram(self.kernel_.prepare(Z))
        self.dual_coef_ = solve_shifted(K, np.full(len(Z), float(self.alpha)), targets, n_jobs=self.n_jobs).C
        self.X_transformed_fit_ = Z

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Rows whose components are about those in X, of shape (n_samples, n_features).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
        """
        self._check_fitted()
        if not self.fit_inverse_transform:
            raise NotFittedError("KernelPCA: fit_inverse_transform=False; expected True before fit, for the way back")
        rows = as_rows(X, self.kernel_, "X")
        B = self.kernel_.prepare(self.X_transformed_fit_)
        found = kernel_product(self.kernel_, self.kernel_.prepare(rows, like=B), B, self.dual_coef_)
        return found.astype(rows.dtype, copy=False)

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)


def _from_factor(G: np.ndarray, wanted: int, rest: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
    """The same from K = G G' + R of low rank, where R is positive semi-definite with the trace `rest`."""
    n = len(G)
    mean = G.mean(axis=0)
    means = G @ mean
    centred = G - mean
    U, s, _ = singular_vectors(centred)
    values, vectors = s[:wanted] ** 2, U[:, :wanted]
    top = float(values[0]) if len(values) else 0.0
    good = values > top * n * np.finfo(np.float64).eps
    values, vectors = values[good], vectors[:, good]
    left = centred @ (centred.T @ vectors) - vectors * values
    residual = (float(np.linalg.norm(left, axis=0).max(initial=0.0)) + rest) / top if top > 0 else 0.0
    return values, vectors, means, residual, float(np.square(s).sum())
