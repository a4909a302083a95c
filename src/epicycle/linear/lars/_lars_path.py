"""The path of least angle regression as a function of arrays, without an intercept: from rows or a Gram matrix."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

from epicycle.core._exceptions import ConvergenceWarning, DataError, ParameterError
from epicycle.core._parameters import Boolean, Choice, Domain, Integer, Real, check_parameter
from epicycle.engine import single_threaded_blas
from epicycle.linear.lars._angles import lars_problem
from epicycle.linear.lars._knots import certify_path
from epicycle.linear.lars._path import PathOptions, follow
from epicycle.linear.lasso._path import path_data
from epicycle.linear.lasso._solver import LassoSolver, MomentSolver

#: Tolerance of the optimality at the breakpoints, beyond which a path is handed out with a warning.
TOLERANCE = 1e-8

_PARAMETERS: dict[str, Domain] = {
    "max_iter": Integer(minimum=0),
    "alpha_min": Real(minimum=0),
    "method": Choice("lar", "lasso"),
    "eps": Real(minimum=0, maximum=1),
    "return_path": Boolean(),
    "return_n_iter": Boolean(),
    "positive": Boolean(),
}


def lars_path(
    X: Any,
    y: Any,
    Xy: Any = None,  # noqa: ARG001 - as in scikit-learn
    *,
    Gram: Any = None,
    max_iter: int = 500,
    alpha_min: float = 0,
    method: Literal["lar", "lasso"] = "lar",
    copy_X: bool = True,  # noqa: ARG001
    eps: float = 2.2e-16,
    copy_Gram: bool = True,  # noqa: ARG001
    verbose: int = 0,  # noqa: ARG001
    return_path: bool = True,
    return_n_iter: bool = False,
    positive: bool = False,
) -> tuple[Any, ...]:
    r"""Breakpoints of least angle regression or of the lasso, and the coefficients there.

    .. math:: \tfrac1n\, |x_j'(y - Xw)| = \alpha \;\text{ for active } j, \qquad \le \alpha \;\text{ for others}

    There is no intercept; :class:`Lars` and :class:`LassoLars` have one, and keep a certificate and a history.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    max_iter : int, default=500
        Steps at most.
    alpha_min : float, default=0
        Where the path ends.
    method : {"lar", "lasso"}, default="lar"
        Least angle regression, or the lasso, for which features leave when their coefficient reaches zero.
    eps : float, default=2.2e-16
        A feature that has no more than 10 k `eps` of its square outside the span of k - 1 active ones is passed over.
    return_path : bool, default=True
        Whether all breakpoints are returned, or the last one.
    return_n_iter : bool, default=False
        Whether the number of steps is returned too.
    positive : bool, default=False
        Whether coefficients have to be non-negative; for the lasso only.
    Xy, Gram, copy_X, copy_Gram, verbose
        Accepted for compatibility: products are computed from X and y, which are not written to.

    Returns
    -------
    alphas : ndarray of shape (n_steps + 1,), decreasing; or float
    active : list of int
        Indices of the features at the end, in the order in which they entered.
    coefs : ndarray of shape (n_features, n_steps + 1) or (n_features,)
    n_iter : int
        Only with ``return_n_iter=True``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import lars_path
    >>> X, y = load_diabetes(return_X_y=True)
    >>> alphas, active, coefs = lars_path(X, y, method="lasso")
    >>> coefs.shape
    (10, 13)
    """
    if X is None and Gram is None:
        raise ParameterError("X and Gram cannot both be unspecified.")
    if X is None:
        raise ParameterError("X cannot be None if Gram is not None: lars_path_gram takes Xy and Gram without X.")
    options = _options(
        "lars_path",
        max_iter=max_iter,
        alpha_min=alpha_min,
        method=method,
        eps=eps,
        return_path=return_path,
        return_n_iter=return_n_iter,
        positive=positive,
    )
    data = path_data(X, y, None, "lars_path")
    if data.n_targets > 1:
        raise DataError(f"y: expected shape (n_samples,), got {data.n_targets} targets; fit LassoLars or Lars to them")
    with single_threaded_blas():
        (solver,) = lars_problem(data, centre=False, n_jobs=None).solvers
        return _path(solver, options, data.dtype, return_path, return_n_iter)


def lars_path_gram(
    Xy: Any,
    Gram: Any,
    *,
    n_samples: int,
    max_iter: int = 500,
    alpha_min: float = 0,
    method: Literal["lar", "lasso"] = "lar",
    copy_X: bool = True,  # noqa: ARG001 - as in scikit-learn
    eps: float = 2.2e-16,
    copy_Gram: bool = True,  # noqa: ARG001
    verbose: int = 0,  # noqa: ARG001
    return_path: bool = True,
    return_n_iter: bool = False,
    positive: bool = False,
) -> tuple[Any, ...]:
    """The path of :func:`lars_path` from products of columns: X'y and X'X.

    Parameters
    ----------
    Xy : array-like of shape (n_features,)
        X'y.
    Gram : array-like of shape (n_features, n_features)
        X'X.
    n_samples : int
        Number of rows that the sums are over.
    max_iter, alpha_min, method, eps, return_path, return_n_iter, positive
        As for :func:`lars_path`.
    copy_X, copy_Gram, verbose
        Accepted for compatibility: nothing is written to.

    Returns
    -------
    alphas, active, coefs[, n_iter]
        As for :func:`lars_path`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import lars_path_gram
    >>> X, y = load_diabetes(return_X_y=True)
    >>> alphas, active, coefs = lars_path_gram(X.T @ y, X.T @ X, n_samples=len(y))
    >>> active[:3]
    [2, 8, 3]
    """
    options = _options(
        "lars_path_gram",
        max_iter=max_iter,
        alpha_min=alpha_min,
        method=method,
        eps=eps,
        return_path=return_path,
        return_n_iter=return_n_iter,
        positive=positive,
    )
    check_parameter("lars_path_gram", "n_samples", n_samples, Integer(minimum=1))
    with single_threaded_blas():
        G, xy, dtype = gram_and_products(Gram, Xy)
        if xy.ndim != 1:
            raise DataError(f"Xy: expected shape ({len(G)},), got {xy.shape}")
        return _path(gram_solver(G / n_samples, xy / n_samples), options, dtype, return_path, return_n_iter)


def gram_and_products(Gram: Any, Xy: Any) -> tuple[np.ndarray, np.ndarray, np.dtype[Any]]:
    """X'X and X'y as arrays of float64, checked, and the type of the results."""
    G, xy = np.asarray(Gram), np.asarray(Xy)
    if G.ndim != 2 or G.shape[0] != G.shape[1] or len(G) == 0 or xy.shape[:1] != G.shape[:1]:
        raise DataError(f"Gram, Xy: expected shapes (p, p) and (p,) or (p, k), got {G.shape} and {xy.shape}")
    dtype = np.result_type(G, xy) if {G.dtype, xy.dtype} <= {np.dtype("f4"), np.dtype("f8")} else np.dtype("f8")
    try:
        G, xy = G.astype(np.float64), xy.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError("Gram, Xy: expected numbers") from None
    if not (np.isfinite(G).all() and np.isfinite(xy).all()) or (np.diagonal(G) < 0).any():
        raise DataError("Gram, Xy: expected finite numbers, and squares >= 0 on the diagonal of Gram")
    return G, xy, dtype


def gram_solver(G: np.ndarray, xy: np.ndarray) -> MomentSolver:
    """The solver of a Gram matrix. |y|^2 is unknown: the part of it that the columns explain stands for all of it."""
    explained = float(xy @ (np.linalg.pinv(G, hermitian=True) @ xy))
    return MomentSolver(np.ascontiguousarray(G), np.where(np.diagonal(G) > 0, xy, 0.0), max(explained, 0.0))


def _options(owner: str, **given: Any) -> PathOptions:
    """The rules of the path, checked."""
    for name, value in given.items():
        check_parameter(owner, name, value, _PARAMETERS[name])
    if given["positive"] and given["method"] == "lar":
        raise ParameterError(
            "Positive constraint not supported for 'lar' coding method. Least angle regression keeps no signs; "
            "expected method='lasso' with positive=True"
        )
    lasso = given["method"] == "lasso"
    return PathOptions(lasso, given["positive"], given["alpha_min"], None, given["eps"], given["max_iter"])


def _path(
    solver: LassoSolver, options: PathOptions, dtype: Any, return_path: bool, return_n_iter: bool
) -> tuple[Any, ...]:
    path, record, _ = follow(solver, options)
    certificate, _ = certify_path(path, solver, record, TOLERANCE)
    if not certificate.holds:
        warnings.warn(f"lars_path: {certificate}; scale the features", ConvergenceWarning, stacklevel=3)
    alphas, coefs = np.array(record.alphas).astype(dtype), record.matrix(solver.p).toarray().astype(dtype)
    found = (alphas, coefs) if return_path else (alphas[-1], coefs[:, -1])
    active = record.active().tolist()
    return (found[0], active, found[1], record.n_steps) if return_n_iter else (found[0], active, found[1])
