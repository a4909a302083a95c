"""Ridge regression as a function of arrays, without an intercept unless it is asked for."""

from __future__ import annotations

from typing import Any

from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import Boolean, check_parameter
from epicycle.linear.ridge._ridge import Ridge


def ridge_regression(
    X: Any,
    y: Any,
    alpha: Any,
    *,
    sample_weight: Any = None,
    solver: str = "auto",
    max_iter: int | None = None,
    tol: float = 1e-10,
    verbose: int = 0,
    positive: bool = False,
    random_state: Any = None,
    return_n_iter: bool = False,
    return_intercept: bool = False,
    check_input: bool = True,  # noqa: ARG001 - as in scikit-learn
) -> Any:
    r"""Coefficients of ridge regression.

    .. math:: \min_w \; \tfrac12 \sum_i v_i \, (y_i - w'x_i)^2 + \tfrac{\alpha}{2} \, \|w\|^2

    There is no intercept unless `return_intercept` asks for one; :class:`Ridge` has one, and keeps a certificate and a
    history.

    Parameters
    ----------
    X : array, sparse matrix, data frame, scan or Dask collection of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
    alpha : float or array-like of shape (n_targets,)
        Strength of the penalty, for all targets or for each.
    sample_weight : float or array-like of shape (n_samples,), optional
        Weights v.
    solver : str, default="auto"
        As for :class:`Ridge`; with `positive` "auto" or "lbfgs".
    max_iter : int or None, default=None
        Maximum number of iterations of a solver that iterates; None for 1000.
    tol : float, default=1e-10
        Distance of the objective from its minimum, relative to half the sum of squares of y; beyond it there is a
        warning.
    verbose : int, default=0
        1 shows the progress of the fit.
    positive : bool, default=False
        Whether coefficients have to be non-negative.
    random_state : int, Generator, RandomState or None, default=None
        Order of rows of the stochastic solvers.
    return_n_iter : bool, default=False
        Whether the number of iterations is returned too.
    return_intercept : bool, default=False
        Whether an intercept is fitted and returned too; for `solver` "auto" or "sag", as in scikit-learn.
    check_input : bool, default=True
        Accepted for compatibility: the arrays are always checked.

    Returns
    -------
    coef : ndarray of shape (n_features,) or (n_targets, n_features)
    n_iter : int
        With `return_n_iter`.
    intercept : float or ndarray of shape (n_targets,)
        With `return_intercept`.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import ridge_regression
    >>> X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    >>> ridge_regression(X, X @ [1.0, -1.0], 1.0).round(4)
    array([ 0.5882, -0.7647])
    >>> np.linalg.solve(X.T @ X + np.eye(2), X.T @ X @ [1.0, -1.0]).round(4)
    array([ 0.5882, -0.7647])
    """
    for name, value in (("return_n_iter", return_n_iter), ("return_intercept", return_intercept)):
        check_parameter("ridge_regression", name, value, Boolean())
    if positive and solver not in ("auto", "lbfgs"):
        raise ParameterError(f"solver={solver!r}: with positive=True only 'lbfgs' solver can be used, or 'auto'")
    if return_intercept and solver not in ("auto", "sag"):
        raise ParameterError(
            f"solver={solver!r}: In Ridge, only 'sag' solver (or 'auto') has return_intercept=True; the estimator "
            "Ridge fits an intercept with every solver"
        )
    model = Ridge(
        alpha,
        solver=solver,
        positive=positive,
        fit_intercept=return_intercept,
        tol=tol,
        max_iter=max_iter,
        random_state=random_state,
        verbose=verbose,
    ).fit(X, y, sample_weight)
    found = [model.coef_]
    if return_n_iter:
        found.append(model.n_iter_)
    if return_intercept:
        found.append(model.intercept_)
    return found[0] if len(found) == 1 else tuple(found)
