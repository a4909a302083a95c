"""Least angle regression and the exact path of the lasso. The mathematics is in `_least_angle.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import MultiOutputMixin

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._monitor import Monitor
from epicycle.core._parameters import Boolean, Choice, Domain, Integer, NoneOr, Real
from epicycle.core._random import seed_of
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData, Data
from epicycle.linear._scikit_learn import COMPATIBILITY_PARAMETERS
from epicycle.linear.lars._angles import angles_of, lars_problem
from epicycle.linear.lars._least_angle import LeastAngle, certify
from epicycle.linear.lars._path import PathRecord, point_at_alpha, point_at_bound
from epicycle.linear.lasso._base import SparseLinearModel
from epicycle.linear.lasso._path import Against, draw_path
from epicycle.linear.lasso._problem import LassoProblem
from epicycle.optim import Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Lars(MultiOutputMixin, SparseLinearModel):  # type: ignore[misc]  # scikit-learn has no types
    r"""Least angle regression: the whole path of coefficients, from one exact breakpoint to the next.

    The feature most correlated with y enters first. Its coefficient grows until another feature has as much correlation
    with the residuals; then both move so that the correlations stay equal, until a third one joins, and so on:

    .. math:: \tfrac1n\, |x_j'(y - b - Xw)| = \alpha \;\text{ for active } j, \qquad \le \alpha \;\text{ for others}

    while :math:`\alpha` falls. With ``method="lasso"`` a feature leaves when its coefficient reaches zero, and the path
    is that of :class:`Lasso` for all alphas at once.

    Parameters
    ----------
    method : {"lar", "lasso"}, default="lar"
        Least angle regression, or the lasso.
    alpha : float, default=0.0
        Where the path ends: the correlation of the active features with the residuals, which is alpha of the lasso.
        At 0 the path ends with least squares.
    n_nonzero_coefs : int, optional
        Maximum number of features; 500 by default, None for as many as are independent.
    fit_intercept : bool, default=True
        Whether b is fitted or 0.
    positive : bool, default=False
        Whether coefficients have to be non-negative; for the lasso only.
    fit_path : bool, default=True
        Whether the whole path is kept, or its end only.
    eps : float, default=2.2e-16
        A feature that has no more than 10 k `eps` of its variance outside the span of k - 1 active ones depends on them
        and is passed over.
    jitter : float, optional
        Upper end of uniform noise that is added to y, which parts features that would enter together.
    tol : float, default=1e-8
        Tolerance of the certificate.
    max_iter : int, optional
        Steps at most; by default 1000 and twenty for each feature.
    n_jobs : int, optional
        Threads; None follows the size of the work. The result does not depend on it.
    verbose : int, default=0
        1 shows progress when the fit takes more than about two seconds, 2 logs every step.
    random_state : int, Generator, RandomState or None, default=None
        Of the noise of `jitter`.

    Attributes
    ----------
    alphas_ : ndarray of shape (n_steps + 1,), or list of such
        The breakpoints, decreasing; a list of one for each target where there are several. With ``fit_path=False``
        only the last.
    alpha_ : float or ndarray of shape (n_targets,)
        Alpha at the end of the path.
    active_ : ndarray, or list of such
        Indices of the features at the end of the path, in the order in which they entered.
    coef_path_ : ndarray of shape (n_features, n_steps + 1), or list of such
        Coefficients at the breakpoints; between them they are linear in alpha. Only with ``fit_path=True``.
    intercept_path_ : ndarray of shape (n_steps + 1,), or list of such
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Coefficients at the end of the path.
    intercept_ : float or ndarray of shape (n_targets,)
    certificate_ : Certificate
        For the lasso the duality gap at the end of the path, relative to half the mean square of y. For least angle
        regression its condition: how far the correlations of the active features are from being equal, and those of
        others from being smaller, relative to the largest at the beginning.
    history_ : History
        For every step: the feature that `entered` or `left` at its beginning (nan for the other one), its `correlation`
        coefficient with the residuals at that time, and at its end `alpha`, the number of `active` features and the
        objective, half the mean square of the residuals.
    n_iter_ : int
        Steps, of all targets.
    converged_ : bool

    See Also
    --------
    Lasso : for one alpha, by coordinate descent; faster for many features.
    Stagewise : reaches much the same path in many small steps.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import Lars
    >>> X, y = load_diabetes(return_X_y=True)
    >>> Lars().fit(X, y).active_
    array([2, 8, 3, 6, 1, 9, 4, 7, 5, 0])
    >>> lasso = Lars(method="lasso").fit(X, y)
    >>> lasso.n_iter_
    12
    >>> coef, intercept = lasso.at(bound=1000.0)
    >>> round(float(abs(coef).sum()), 6)
    1000.0
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "method": Choice("lar", "lasso"),
        "alpha": Real(minimum=0),
        "n_nonzero_coefs": NoneOr(Integer(minimum=1)),
        "positive": Boolean(),
        "fit_path": Boolean(),
        "precompute": NoneOr(COMPATIBILITY_PARAMETERS["precompute"]),
        "copy_X": COMPATIBILITY_PARAMETERS["copy_X"],
        "jitter": NoneOr(Real(minimum=0)),
        "eps": Real(minimum=0, maximum=1, inclusive=(False, True)),
        "max_iter": NoneOr(Integer(minimum=1)),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear",
        catalogue=("A7",),
        engines=("memory", "files", "dask"),
        certificate="least angle condition, or duality gap",
    )

    @stores_arguments
    def __init__(
        self,
        method: Literal["lar", "lasso"] = "lar",
        *,
        alpha: float = 0.0,
        n_nonzero_coefs: int | None = 500,
        fit_intercept: bool = True,
        precompute: Any = "auto",
        copy_X: bool = True,
        positive: bool = False,
        fit_path: bool = True,
        eps: float = 2.2e-16,
        jitter: float | None = None,
        tol: float = 1e-8,
        max_iter: int | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Follow the path for rows X with targets y.

        Parameters
        ----------
        X : array, sparse matrix, data frame, Scan or Dask collection of shape (n_samples, n_features)
            Files and Dask collections are read once, for their second moments, and may have a few thousand features.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            A scan brings its own. Several targets have a path each.
        sample_weight : array-like of shape (n_samples,), optional
        """
        if self.positive and self.method == "lar":
            raise ParameterError(
                "positive=True; expected method='lasso' with it: least angle regression keeps no signs"
            )
        data = self._fit_data(X, y, sample_weight, target="numeric", multi_output=True, check_finite=False)
        if self.jitter is not None:
            data = self._jittered(data)
        problem = lars_problem(data, centre=self.fit_intercept, n_jobs=self.n_jobs)
        p, k = data.n_features, data.n_targets
        resumed = self._resume_state() or {}
        W = np.zeros((k, p))
        monitor = self._monitor(None, lambda x: self._attributes(data, problem, x.reshape(k, p)))
        records: list[PathRecord] = []
        alphas: list[float] = []
        certificates: list[Certificate] = []
        reason = "converged"
        for t in range(k):
            record = PathRecord.resumed(resumed.get("paths", ())[t]) if t < len(resumed.get("paths", ())) else None
            path, record, ending = self._follow(problem, t, W, records, record, monitor)
            records.append(record)
            alphas.append(max(path.C, float(self.alpha)))
            certificates.append(certify(path, alphas[-1], self.tol))
            reason = reason if ending == "converged" else ending
            if ending == "stopped":
                break
        self._keep(data, problem, W, records, np.array(alphas))
        self._finish(W, records, certificates, monitor, reason)
        return self

    def _jittered(self, data: Data) -> Data:
        """The data with noise added to y."""
        if not isinstance(data, ArrayData):
            raise DataError("jitter: adds noise to y, which has to be in memory; expected jitter=None")
        y: Any = data.y
        noise = np.random.default_rng(seed_of(self.random_state)).uniform(high=self.jitter, size=y.shape)
        return ArrayData(data.X, y + noise, data.weight, feature_names=data.feature_names)

    def _follow(
        self,
        problem: LassoProblem,
        t: int,
        W: np.ndarray,
        before: list[PathRecord],
        record: PathRecord | None,
        monitor: Monitor,
    ) -> tuple[LeastAngle, PathRecord, str]:
        """One target's path; W[t] is its end."""
        p = W.shape[1]
        limit = p if self.n_nonzero_coefs is None else min(self.n_nonzero_coefs, p)
        path = LeastAngle(
            angles_of(problem.solvers[t]),
            lasso=self.method == "lasso",
            positive=self.positive,
            alpha=self.alpha,
            max_columns=limit,
            eps=self.eps,
        )
        if record is None:
            record = PathRecord()
            record.add(path)
        else:
            path.resume(*record.last(p))
        most = 1000 + 20 * p if self.max_iter is None else self.max_iter
        done = sum(earlier.n_steps for earlier in before)
        reason = "max_iter"
        while record.n_steps < most:
            steps = path.steps()
            if not steps:
                reason = "converged"
                break
            for step in steps:
                record.add(path, step)
                W[t] = path.coef
                named = "entered" if step.event.enters else "left"
                columns: dict[str, float] = {
                    "alpha": step.alpha,
                    "entered": np.nan,
                    "left": np.nan,
                    "correlation": step.event.correlation,
                    "active": len(path.active),
                }
                columns[named] = step.event.column
                if len(W) > 1:
                    columns["target"] = t
                stop = monitor(
                    done + record.n_steps,
                    W.ravel(),
                    objective=step.half_square,
                    state=lambda: {"paths": [r.state() for r in (*before, record)]},
                    **columns,
                )
                if stop:
                    return path, record, "stopped"
        path.settle_accounts()
        record.replace_last(path)
        W[t] = path.coef
        return path, record, reason

    def _keep(
        self, data: Data, problem: LassoProblem, W: np.ndarray, records: list[PathRecord], alphas: np.ndarray
    ) -> None:
        for name, value in self._attributes(data, problem, W).items():
            setattr(self, name, value)
        single = data.target_is_vector
        paths = [record.matrix(data.n_features) for record in records]
        intercepts = [
            problem.y_mean[t] - problem.x_mean @ path if self.fit_intercept else np.zeros(path.shape[1])
            for t, path in enumerate(paths)
        ]
        last = slice(None) if self.fit_path else slice(-1, None)
        kept = [np.array(record.alphas)[last] for record in records]
        active = [record.active() for record in records]
        self.alpha_ = float(alphas[0]) if single else alphas
        self.alphas_ = kept[0] if single else kept
        self.active_ = active[0] if single else active
        self.intercept_path_ = intercepts[0][last] if single else [row[last] for row in intercepts]
        if self.fit_path:
            self._path_ = paths

    def _finish(
        self, W: np.ndarray, records: list[PathRecord], certificates: list[Certificate], monitor: Monitor, reason: str
    ) -> None:
        history = monitor.history()
        worst = max(certificates, key=lambda certificate: certificate.value)
        if len(records) < len(W):  # a target was never begun
            worst = Certificate(worst.kind, np.inf, self.tol, "the path was not followed for all targets")
        self._conclude(
            Solution(
                W.ravel(),
                0.0,
                history,
                worst,
                max(1, history.n_iter),
                reason,
                state={"paths": [record.state() for record in records]},
            )
        )

    @property
    def coef_path_(self) -> np.ndarray | list[np.ndarray]:
        """Coefficients at the breakpoints, one column each."""
        self._check_fitted()
        if "_path_" not in vars(self):
            raise AttributeError("coef_path_ is kept with fit_path=True only")
        dense = [path.toarray() for path in self._path_]
        return dense[0] if self.coef_.ndim == 1 else dense

    def at(
        self, alpha: float | None = None, *, bound: float | None = None, target: int = 0
    ) -> tuple[np.ndarray, float]:
        r"""Coefficients and intercept at any point of the path.

        Parameters
        ----------
        alpha : float, optional
            The common correlation; for the lasso its penalty. At least `alpha_`.
        bound : float, optional
            The first point of the path at which the L1 norm of the coefficients is so large: for the lasso the
            solution with :math:`\|w\|_1 \le t`.
        target : int, default=0
            Which of several targets.

        Returns
        -------
        coef : ndarray of shape (n_features,)
        intercept : float
        """
        self._check_fitted()
        if "_path_" not in vars(self):
            raise ParameterError("at() needs the path: fit with fit_path=True")
        if (alpha is None) == (bound is None):
            raise ParameterError("at(): expected alpha or bound, one of them")
        path = self._path_[target].tocsc()
        alphas, intercepts = self.alphas_, self.intercept_path_
        if self.coef_.ndim == 2:
            alphas, intercepts = alphas[target], intercepts[target]
        if bound is None:
            assert alpha is not None
            return point_at_alpha(path, np.asarray(alphas), np.asarray(intercepts), float(alpha))
        return point_at_bound(path, np.asarray(intercepts), float(bound))

    def plot(self, against: Against = "fraction", *, target: int = 0, labels: int = 10, ax: Axes | None = None) -> Axes:
        """Draw the coefficients along the path.

        Parameters
        ----------
        against : {"alpha", "norm", "fraction"}
            The horizontal axis: alpha on a log scale, decreasing; the L1 norm of the coefficients; or that norm as a
            share of its largest value.
        target : int, default=0
            Which of several targets.
        labels : int, default=10
            How many of the largest coefficients are named at the end of the path.
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        path = self.coef_path_
        alphas = self.alphas_
        if self.coef_.ndim == 2:
            path, alphas = path[target], alphas[target]
        return draw_path(
            np.asarray(alphas),
            np.asarray(path),
            against,
            names=self._names(),
            labels=labels,
            ax=ax,
            piecewise_linear=True,
        )

    def _penalty_line(self) -> str:
        return "" if self.method == "lar" else f"{np.max(vars(self).get('alpha_', self.alpha)):g} |w|_1"
