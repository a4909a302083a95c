r"""FastICA:  extrema of  E F(w'z)  over orthonormal rows w, for whitened rows z."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle.core import _parameters as domains
from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import AnyOf, Choice, Domain, Integer, NoneOr, Real
from epicycle.core._random import stream
from epicycle.core._solution import Solution
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.decomposition.ica import _fixed_point
from epicycle.decomposition.ica._contrasts import Contrast, sums_of
from epicycle.decomposition.ica._unmixing import Unmixing, as_type, checked_start
from epicycle.decomposition.ica._whitening import whitened, whitening_of


class FastICA(Unmixing):
    r"""Independent components by fixed points of a contrast: the least normal projections of whitened rows.

    .. math:: z = K (x - m), \quad y = W z, \quad W W' = I, \qquad
              w \leftarrow \mathrm{E}[g(y) z] - \mathrm{E}[g'(y)]\, w

    with g = F' of a contrast F. Sources may be more or less peaked than a normal density. :class:`~epicycle.ICA`
    maximises a likelihood instead.

    Parameters
    ----------
    algorithm : {"parallel", "deflation"}, default="parallel"
        All rows of W at once, or one after the other.
    whiten : {"unit-variance", "arbitrary-variance"} or False, default="unit-variance"
        Whitening by principal axes, with sources of variance 1 or of variance 1 / n; False takes the rows as white
        and centred.
    fun : {"logcosh", "exp", "cube"} or callable, default="logcosh"
        F: log cosh(a y) / a, -exp(-y^2 / 2) or y^4 / 4; or a function of signals as rows that returns g and g', the
        latter for every entry or as its means over the last axis.
    fun_args : dict, optional
        ``alpha`` of "logcosh", between 1 and 2; or arguments of the callable.
    w_init : array-like of shape (n_components, n_components), optional
        Where W begins; default: random.
    whiten_solver : {"svd", "eigh"}, default="svd"
        Principal axes with small variances from the rows themselves, or all from the covariance.
    max_iter : int, default=200
        Most iterations; in "deflation" for each row.
    tol : float, default=1e-4
        W is at rest when no row of it turns by more than the angle with cosine 1 - `tol`.

    Attributes
    ----------
    %(components_)s
    %(mixing_)s
    mean_ : ndarray of shape (n_features,)
        m; only with whitening.
    whitening_ : ndarray of shape (n_components, n_features)
        :math:`K / \sqrt{n}`; only with whitening.
    certificate_ : Certificate
        The largest entry of the relative gradient of the contrast, along rotations that keep W orthonormal.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import FastICA
    >>> from epicycle.metrics import amari_index
    >>> rng = np.random.default_rng(0)
    >>> A = np.array([[1.0, 0.6], [-0.4, 1.0]])
    >>> X = np.column_stack([rng.uniform(-1, 1, 5000), rng.laplace(size=5000)]) @ A.T
    >>> model = FastICA(random_state=0).fit(X)
    >>> bool(amari_index(model.components_, A) < 0.05), model.certificate_.holds
    (True, True)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_components": NoneOr(Integer(minimum=1)),
        "algorithm": Choice("parallel", "deflation"),
        "whiten": AnyOf(
            Choice("unit-variance", "arbitrary-variance"), domains.Described("False", lambda value: value is False)
        ),
        "fun": AnyOf(Choice("logcosh", "exp", "cube"), domains.Callable()),
        "fun_args": NoneOr(domains.InstanceOf(dict)),
        "tol": Real(minimum=0),
        "w_init": NoneOr(domains.ArrayLike()),
        "whiten_solver": Choice("svd", "eigh"),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="decomposition",
        catalogue=("E9",),
        engines=("memory", "files", "dask"),
        certificate="relative gradient",
    )

    @stores_arguments(max_iter=200, tol=1e-4, random_state=None, n_jobs=None, verbose=0)
    def __init__(
        self,
        n_components: int | None = None,
        *,
        algorithm: str = "parallel",
        whiten: str | bool = "unit-variance",
        fun: str | Callable[..., Any] = "logcosh",
        fun_args: dict[str, Any] | None = None,
        w_init: Any = None,
        whiten_solver: str = "svd",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the sources of rows X."""
        contrast = self._contrast()
        data = self._intake(X, sample_weight)
        white = None
        if self.whiten:
            white = whitening_of(data, self.n_components, self.whiten_solver, self.n_jobs)
        elif self.n_components is not None:
            warnings.warn("Ignoring n_components with whiten=False.", UserWarning, stacklevel=4)
        k = data.n_features if white is None else len(white.matrix)
        saved = self._resume_state() or {}
        start = checked_start(self.w_init, k, stream(self.random_state, "fastica"))
        rows, rest = whitened(data, white, self.n_jobs)
        solve = _fixed_point.parallel if self.algorithm == "parallel" else _fixed_point.deflation
        monitor = self._monitor(None, lambda x: {"components_": self._unmixed(x.reshape(k, k), white)})
        found = solve(
            lambda W: sums_of(rows, rest, W, contrast, n_jobs=self.n_jobs),
            start,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            monitor=monitor,
            saved=saved,
        )
        W = found.W
        if white is not None:
            root = np.sqrt(white.weight)
            self.whitening_ = as_type(white.matrix / root, data.dtype)
            W = W if self.whiten == "unit-variance" else W / root
        self._set(W, white, data)
        limit = _fixed_point.angle_of(float(self.tol))
        meaning = (
            "no rotation changes the contrast, to first order, by more than this for each radian; the tolerance is the "
            "angle by which a row may turn in the last step"
        )
        certificate = Certificate("relative gradient", found.gradient, limit, meaning)
        self._conclude(Solution(W.ravel(), found.gradient, monitor.history(), certificate, found.n_iter, found.reason))
        return self

    def _unmixed(self, W: np.ndarray, white: Any) -> np.ndarray:
        return W if white is None else W @ white.matrix

    def _contrast(self) -> Contrast:
        arguments = dict(self.fun_args or {})
        alpha = arguments.get("alpha", 1.0)
        if not isinstance(alpha, int | float | np.number) or not 1 <= alpha <= 2:
            raise ParameterError(f"fun_args: alpha must be in [1,2], got {alpha!r}")
        if callable(self.fun):
            return Contrast(self.fun, arguments=arguments)
        return Contrast(str(self.fun), float(alpha) if self.fun == "logcosh" else 1.0)


def fastica(
    X: Any,
    n_components: int | None = None,
    *,
    algorithm: str = "parallel",
    whiten: str | bool = "unit-variance",
    fun: str | Callable[..., Any] = "logcosh",
    fun_args: dict[str, Any] | None = None,
    max_iter: int = 200,
    tol: float = 1e-4,
    w_init: Any = None,
    whiten_solver: str = "svd",
    random_state: Any = None,
    return_X_mean: bool = False,
    compute_sources: bool = True,
    return_n_iter: bool = False,
) -> tuple[Any, ...]:
    """Independent components of rows X as arrays; the arguments are those of :class:`FastICA`.

    Parameters
    ----------
    return_X_mean : bool, default=False
        Whether the mean of the rows is returned.
    compute_sources : bool, default=True
        Whether the sources are computed; None stands in their place otherwise.
    return_n_iter : bool, default=False
        Whether the number of iterations is returned.

    Returns
    -------
    K : ndarray of shape (n_components, n_features) or None
        `whitening_`; None without whitening.
    W : ndarray of shape (n_components, n_components)
        Sources are W K (x - m).
    S : ndarray of shape (n_samples, n_components) or None
        Sources.
    X_mean : ndarray of shape (n_features,)
        Only with `return_X_mean`; None without whitening.
    n_iter : int
        Only with `return_n_iter`.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.decomposition import fastica
    >>> X = np.random.default_rng(0).uniform(size=(500, 3))
    >>> K, W, S = fastica(X, random_state=0)
    >>> bool(np.allclose((X - X.mean(axis=0)) @ (W @ K).T, S))
    True
    """
    model = FastICA(
        n_components,
        algorithm=algorithm,
        whiten=whiten,
        fun=fun,
        fun_args=fun_args,
        max_iter=max_iter,
        tol=tol,
        w_init=w_init,
        whiten_solver=whiten_solver,
        random_state=random_state,
    ).fit(X)
    K = getattr(model, "whitening_", None)
    # K has orthogonal rows: its pseudo-inverse is K' over their squared lengths.
    B = model.components_
    W = B if K is None else B @ (K / np.square(K).sum(axis=1, keepdims=True)).T
    found: list[Any] = [K, W, model.transform(X) if compute_sources else None]
    if return_X_mean:
        found.append(getattr(model, "mean_", None))
    if return_n_iter:
        found.append(model.n_iter_)
    return tuple(found)
