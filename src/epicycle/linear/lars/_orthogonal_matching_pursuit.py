"""Orthogonal matching pursuit under scikit-learn's names: features are compared by |x_j'r|, not by their angle.

With r = y - Xw, a step takes the feature of the largest |x_j'r|; then all chosen coefficients are the least-squares
ones. The steps are those of :mod:`epicycle.linear.lars._matching_pursuit`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import MultiOutputMixin

from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import Boolean, Domain, InstanceOf, Integer, NoneOr, Real, check_parameter
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import Data
from epicycle.engine import single_threaded_blas
from epicycle.linear._folds import RoutesToSplitter
from epicycle.linear._scikit_learn import COMPATIBILITY_PARAMETERS
from epicycle.linear.lars._angles import lars_problem
from epicycle.linear.lars._folds import paths_of_folds
from epicycle.linear.lars._lars_path import gram_and_products
from epicycle.linear.lars._matching_pursuit import Pursuit
from epicycle.linear.lasso._base import SparseLinearModel
from epicycle.linear.lasso._path import path_data
from epicycle.linear.lasso._problem import LassoProblem
from epicycle.linear.lasso._solver import LassoSolver, MomentSolver
from epicycle.optim import Solution

_CARD = MethodCard(
    family="linear", catalogue=("D6",), engines=("memory", "files", "dask"), certificate="normal equations"
)
_DOCS = {
    "y": "y : array-like of shape (n_samples,) or (n_samples, n_targets)\n    A scan brings its own.",
    "coefficients": "coef_ : ndarray of shape (n_features,) or (n_targets, n_features)\n"
    "intercept_ : float or ndarray of shape (n_targets,)",
    "evidence_of_pursuit": "certificate_ : Certificate\n"
    "    The largest correlation of a chosen feature with the residuals: zero means least squares on these features.\n"
    "    Which features is a greedy choice, for which nothing is proven.\n"
    "history_ : History\n"
    "    After every step half the mean square of the residuals, the ``feature`` and its ``correlation`` before it.\n"
    "converged_ : bool",
}
#: Shown where a pursuit ends before it has what was asked for.
ENDED = (
    "Orthogonal matching pursuit ended prematurely due to linear dependence in the dictionary. "
    "The requested precision might not have been met."
)


class OrthogonalMatchingPursuit(MultiOutputMixin, SparseLinearModel):  # type: ignore[misc]  # no types
    r"""Orthogonal matching pursuit: a few features, chosen one by one, with coefficients of least squares.

    .. math:: j_m = \arg\max_j |x_j'r|, \qquad
              w = \arg\min_w \{ \|y - b - Xw\|^2 : w_j = 0 \text{ unless chosen} \}, \qquad r = y - b - Xw .

    Parameters
    ----------
    n_nonzero_coefs : int, optional
        Features to choose; a tenth of them, at least one, where neither this nor `tol` is given.
    tol : float, optional
        Stop when the sum of squares of the residuals is at most this; overrides `n_nonzero_coefs`.

    Attributes
    ----------
    %(coefficients)s
    n_nonzero_coefs_ : int or None
        Features that were asked for; None where `tol` is given.
    n_iter_ : int or list of int
        Features that were chosen, of each target where there are several.
    %(evidence_of_pursuit)s

    See Also
    --------
    MatchingPursuit : compares features by their angle, has further rules of choice, and takes dictionaries.
    OrthogonalMatchingPursuitCV : chooses the number of features by cross-validation.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import OrthogonalMatchingPursuit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 50))
    >>> y = 3 * X[:, 7] - 2 * X[:, 30] + 0.1 * rng.normal(size=200)
    >>> model = OrthogonalMatchingPursuit(n_nonzero_coefs=2).fit(X, y)
    >>> model.coef_.nonzero()[0]
    array([ 7, 30])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_nonzero_coefs": NoneOr(Integer(minimum=1)),
        "tol": NoneOr(Real(minimum=0)),
        "precompute": COMPATIBILITY_PARAMETERS["precompute"],
    }
    _card: ClassVar[MethodCard] = _CARD
    _docs: ClassVar[Mapping[str, str]] = _DOCS

    n_iter_: Any

    @stores_arguments(tol=None, fit_intercept=True, n_jobs=None, verbose=0)
    def __init__(
        self, *, n_nonzero_coefs: int | None = None, precompute: Any = "auto", **shared: Unpack[SharedArguments]
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose features for every target."""
        data = self._fit_data(X, y, sample_weight, target="numeric", multi_output=True, check_finite=False)
        problem = lars_problem(data, centre=self.fit_intercept, n_jobs=self.n_jobs)
        count = _number_of_features(self.n_nonzero_coefs, self.tol, data.n_features)
        self.n_nonzero_coefs_ = None if self.tol is not None else count
        taken = _fit(self, data, problem, count, self.tol)
        self.n_iter_ = taken[0] if len(taken) == 1 else taken
        return self


class OrthogonalMatchingPursuitCV(RoutesToSplitter, SparseLinearModel):
    r"""Orthogonal matching pursuit with the number of features chosen by cross-validation.

    Every fold chooses features one by one, by the largest :math:`|x_j'r|`, up to `max_iter`; the model is
    :class:`OrthogonalMatchingPursuit` with the number of least mean squared error on the held-out rows.

    Parameters
    ----------
    copy : bool, default=True
        Accepted for compatibility: X is never written to, whatever the value.
    max_iter : int, optional
        Most features; a tenth of them, at least five, by default.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    n_nonzero_coefs_ : int
        The number of features that was chosen.
    mse_path_ : ndarray of shape (n_numbers, n_folds)
        Mean squared error on the held-out rows after 1, 2, ... features.
    n_iter_ : int
        Features of the model.
    %(evidence_of_pursuit)s

    See Also
    --------
    LassoLarsCV : chooses less greedily.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import OrthogonalMatchingPursuitCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 50))
    >>> y = 3 * X[:, 7] - 2 * X[:, 30] + 0.1 * rng.normal(size=200)
    >>> OrthogonalMatchingPursuitCV().fit(X, y).n_nonzero_coefs_
    2
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "copy": Boolean(),
        "max_iter": NoneOr(Integer(minimum=0)),
        "cv": NoneOr(InstanceOf(object)),
    }
    _card: ClassVar[MethodCard] = _CARD
    _docs: ClassVar[Mapping[str, str]] = {
        **_DOCS,
        "fit_y": "y : array-like of shape (n_samples,)\n    A scan brings its own.",
    }

    @stores_arguments(fit_intercept=True, max_iter=None, n_jobs=None, verbose=0)
    def __init__(self, *, copy: bool = True, cv: Any = None, **shared: Unpack[SharedArguments]) -> None: ...

    @fitting  # type: ignore[arg-type]  # for mypy `params` could hold "self"
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Choose the number of features by cross-validation and fit to all rows."""
        data = self._fit_data(X, y, sample_weight, target="numeric", check_finite=False)
        p = data.n_features
        most = min(self.max_iter or max(p // 10, 5), p)

        def trace(problem: LassoProblem) -> tuple[np.ndarray, np.ndarray]:
            pursuit = Pursuit(problem.solvers[0], "orthogonal", by_angle=False)
            W = [pursuit.w.copy() for _ in _steps(pursuit, most, 0.0)] or [pursuit.w]
            return np.arange(1, len(W) + 1), np.array(W)

        problem, paths = paths_of_folds(self, data, trace, params)
        shortest = min(len(path.points) for path in paths)
        self.mse_path_ = np.stack([path.errors(None)[:shortest] for path in paths], axis=1)
        self.n_nonzero_coefs_ = int(np.argmin(self.mse_path_.mean(axis=1))) + 1
        _fit(self, data, problem, self.n_nonzero_coefs_, None)
        return self


def _steps(pursuit: Pursuit, count: int, enough: float) -> Any:
    """Take features until there are `count`, or half the mean square of the residuals is at most `enough`."""
    while len(pursuit.active) < count and pursuit.half_square > enough:
        j = pursuit.choose()
        if j is None:
            return
        yield j, pursuit.step(j)


def _fit(
    model: OrthogonalMatchingPursuit | OrthogonalMatchingPursuitCV,
    data: Data,
    problem: LassoProblem,
    count: int,
    tol: float | None,
) -> list[int]:
    """Choose features for every target and set all attributes; returns how many each has."""
    k, p = data.n_targets, data.n_features
    W, done, stopped = np.zeros((k, p)), 0, False
    monitor = model._monitor(count * k, lambda x: model._attributes(data, problem, x.reshape(k, p)))
    pursuits = []
    enough = 0.0 if tol is None else tol / (2 * problem.weight)
    for t, solver in enumerate(problem.solvers):
        pursuit = Pursuit(solver, "orthogonal", by_angle=False)
        pursuits.append(pursuit)
        which: dict[str, Any] = {"target": float(t)} if k > 1 else {}
        for j, correlation in _steps(pursuit, count, enough):
            done += 1
            W[t] = pursuit.w
            value = pursuit.half_square
            stopped = monitor(done, W.ravel(), objective=value, feature=float(j), correlation=correlation, **which)
            if stopped:
                break
        if stopped:
            break
    for name, value in model._attributes(data, problem, W).items():
        setattr(model, name, value)
    certificates = [pursuit.certificate() for pursuit in pursuits]
    worst = max(certificates, key=lambda certificate: certificate.value)
    value = float(sum(pursuit.half_square for pursuit in pursuits))
    reason = "stopped" if stopped else "converged"
    model._conclude(Solution(W.ravel(), value, monitor.history(), worst, done, reason))
    if not stopped and any(_ended_early(pursuit, count, enough, tol) for pursuit in pursuits):
        model._run.notices.append(RuntimeWarning(ENDED))
    return [len(pursuit.active) for pursuit in pursuits]


def _ended_early(pursuit: Pursuit, count: int, enough: float, tol: float | None) -> bool:
    return pursuit.half_square > enough if tol is not None else len(pursuit.active) < count


def _number_of_features(n_nonzero_coefs: int | None, tol: float | None, p: int) -> int:
    """Largest number of features to choose."""
    if tol is not None:
        return p
    if n_nonzero_coefs is None:
        return max(p // 10, 1)
    if n_nonzero_coefs > p:
        raise DataError(f"n_nonzero_coefs={n_nonzero_coefs}; X has {p} features to choose from")
    return n_nonzero_coefs


# ------------------------------------------------------------------------------------------------ functions of arrays


def orthogonal_mp(
    X: Any,
    y: Any,
    *,
    n_nonzero_coefs: int | None = None,
    tol: float | None = None,
    precompute: Any = False,  # noqa: ARG001 - as in scikit-learn
    copy_X: bool = True,  # noqa: ARG001
    return_path: bool = False,
    return_n_iter: bool = False,
) -> Any:
    r"""Orthogonal matching pursuit without an intercept: coefficients of the features with the largest :math:`|x_j'r|`.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
    n_nonzero_coefs : int, optional
        Features to choose; a tenth of them, at least one, where neither this nor `tol` is given.
    tol : float, optional
        Stop when the sum of squares of the residuals is at most this; overrides `n_nonzero_coefs`.
    precompute, copy_X
        Accepted for compatibility; the result does not depend on them.
    return_path : bool, default=False
        Whether the coefficients after every choice are returned.
    return_n_iter : bool, default=False
        Whether the number of chosen features is returned too.

    Returns
    -------
    coef : ndarray of shape (n_features,) or (n_features, n_targets), with a last axis for the steps of a path
    n_iters : int or list of int
        Only with ``return_n_iter=True``.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import orthogonal_mp
    >>> X = np.random.default_rng(0).normal(size=(100, 20))
    >>> orthogonal_mp(X, X[:, 3] - 2 * X[:, 5], n_nonzero_coefs=2).nonzero()[0]
    array([3, 5])
    """
    _check("orthogonal_mp", n_nonzero_coefs, tol)
    data = path_data(X, y, None, "orthogonal_mp")
    count = _number_of_features(n_nonzero_coefs, tol, data.n_features)
    with single_threaded_blas():
        problem = lars_problem(data, centre=False, n_jobs=None)
        limits = [None if tol is None else tol / (2 * problem.weight)] * data.n_targets
        coefs, n_iters = _pursue(problem.solvers, count, limits, return_path)
    return _returned(coefs, n_iters, data.dtype, data.target_is_vector, return_n_iter)


def orthogonal_mp_gram(
    Gram: Any,
    Xy: Any,
    *,
    n_nonzero_coefs: int | None = None,
    tol: float | None = None,
    norms_squared: Any = None,
    copy_Gram: bool = True,  # noqa: ARG001 - as in scikit-learn
    copy_Xy: bool = True,  # noqa: ARG001
    return_path: bool = False,
    return_n_iter: bool = False,
) -> Any:
    """Orthogonal matching pursuit from products of columns: X'X and X'y.

    Parameters
    ----------
    Gram : array-like of shape (n_features, n_features)
        X'X.
    Xy : array-like of shape (n_features,) or (n_features, n_targets)
        X'y.
    n_nonzero_coefs, tol, return_path, return_n_iter
        As for :func:`orthogonal_mp`.
    norms_squared : float or array-like of shape (n_targets,), optional
        Squared norms of the targets; needed for `tol`.
    copy_Gram, copy_Xy
        Accepted for compatibility: nothing is written to.

    Returns
    -------
    coef[, n_iters]
        As for :func:`orthogonal_mp`.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import orthogonal_mp_gram
    >>> X = np.random.default_rng(0).normal(size=(100, 20))
    >>> y = X[:, 3] - 2 * X[:, 5]
    >>> orthogonal_mp_gram(X.T @ X, X.T @ y, n_nonzero_coefs=2).nonzero()[0]
    array([3, 5])
    """
    _check("orthogonal_mp_gram", n_nonzero_coefs, tol)
    if tol is not None and norms_squared is None:
        raise ParameterError(
            "Gram OMP needs the precomputed norms in order to evaluate the error sum of squares: norms_squared is None"
        )
    G, xy, dtype = gram_and_products(Gram, Xy)
    count = _number_of_features(n_nonzero_coefs, tol, len(G))
    targets = np.ascontiguousarray(xy.reshape(len(G), -1).T)
    with single_threaded_blas():
        if norms_squared is None:
            explained = np.einsum("kp,kp->k", targets @ np.linalg.pinv(G, hermitian=True), targets)
        else:
            explained = np.broadcast_to(np.asarray(norms_squared, dtype=np.float64), len(targets))
        solvers: list[LassoSolver] = [
            MomentSolver(np.ascontiguousarray(G), c, max(float(yy), 0.0))
            for c, yy in zip(targets, explained, strict=True)
        ]
        coefs, n_iters = _pursue(solvers, count, [None if tol is None else tol / 2] * len(targets), return_path)
    return _returned(coefs, n_iters, dtype, xy.ndim == 1, return_n_iter)


def _check(owner: str, n_nonzero_coefs: Any, tol: Any) -> None:
    check_parameter(owner, "n_nonzero_coefs", n_nonzero_coefs, NoneOr(Integer(minimum=1)))
    check_parameter(owner, "tol", tol, NoneOr(Real(minimum=0)))


def _pursue(
    solvers: list[LassoSolver], count: int, limits: list[float | None], path: bool
) -> tuple[np.ndarray, list[int]]:
    """Coefficients of shape (p, k), or (p, k, steps) for a path, and the number of features of every target."""
    paths, early = [], False
    for solver, limit in zip(solvers, limits, strict=True):
        pursuit = Pursuit(solver, "orthogonal", by_angle=False)
        enough = 0.0 if limit is None else limit
        W = [pursuit.w.copy() for _ in _steps(pursuit, count, enough)]
        paths.append(W if path and W else [pursuit.w])
        early |= _ended_early(pursuit, count, enough, limit)
    if early:
        warnings.warn(ENDED, RuntimeWarning, stacklevel=3)
    steps = max(len(W) for W in paths)
    # A target that was finished earlier stays where it is.
    coefs = np.array([[*W, *[W[-1]] * (steps - len(W))] for W in paths]).transpose(2, 0, 1)
    return (coefs if path else coefs[:, :, -1]), [int(np.count_nonzero(W[-1])) for W in paths]


def _returned(coefs: np.ndarray, n_iters: list[int], dtype: Any, vector: bool, return_n_iter: bool) -> Any:
    coefs = coefs[:, 0].astype(dtype) if vector else coefs.astype(dtype)
    return (coefs, n_iters[0] if vector else n_iters) if return_n_iter else coefs
