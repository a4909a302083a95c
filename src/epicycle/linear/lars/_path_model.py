"""The base of models that follow a path of least angle regression: the fit, the path as attributes, its points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import Domain, Integer, NoneOr, Real
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.data import Data
from epicycle.linear._scikit_learn import COMPATIBILITY_PARAMETERS
from epicycle.linear.lars._knots import Knots, certify_path
from epicycle.linear.lars._least_angle import LeastAngle, Step
from epicycle.linear.lars._path import PathOptions, PathRecord, follow, point_at_alpha, point_at_bound
from epicycle.linear.lasso._base import SparseLinearModel
from epicycle.linear.lasso._path_plot import PATH_PLOT_DOCS, Against, draw_path
from epicycle.linear.lasso._problem import LassoProblem
from epicycle.optim import Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Domains of the arguments that all of these models have.
PATH_PARAMETERS: Mapping[str, Domain] = {
    "precompute": NoneOr(COMPATIBILITY_PARAMETERS["precompute"]),
    "copy_X": COMPATIBILITY_PARAMETERS["copy_X"],
    "eps": Real(minimum=0, maximum=1),
    "max_iter": NoneOr(Integer(minimum=0)),
}


class PathModel(SparseLinearModel):
    """A linear model at the end of a path, with the path itself."""

    _card: ClassVar[MethodCard] = MethodCard(
        family="linear",
        catalogue=("A7",),
        engines=("memory", "files", "dask"),
        certificate="least angle condition, or duality gap",
    )
    _docs: ClassVar[Mapping[str, str]] = {
        **PATH_PLOT_DOCS,
        "Xy": "Xy : array-like, optional\n"
        "    Accepted for compatibility: products of X and y are computed from X and y.",
        "fit_X": "%(read_once)s",
        "fit_y": "y : array-like of shape (n_samples,) or (n_samples, n_targets)\n"
        "    A scan brings its own. Several targets have a path each.",
        "eps": "eps : float, default={default}\n"
        "    A feature that has no more than 10 k `eps` of its variance outside the span of k - 1 active ones depends\n"
        "    on them and is passed over.",
        "jitter": "jitter : float, optional\n"
        "    Upper end of uniform noise that is added to y, which parts features that would enter together.",
        "tol": "tol : float, default={default}\n    Tolerance of the certificate.",
        "fit_path": "fit_path : bool, default={default}\n    Whether the whole path is kept, or its end only.",
        "max_iter": "max_iter : int, optional\n"
        "    Steps at most, where a fit that ends there warns; by default 1000 and twenty for each feature.",
        "verbose": "verbose : int, default={default}\n"
        "    1 shows progress when the fit takes more than about two seconds, 2 logs every step.",
        "random_state": "random_state : int, Generator, RandomState or None, default={default}\n"
        "    Of the noise of `jitter`.",
        "path": "alphas_ : ndarray of shape (n_steps + 1,), or list of such\n"
        "    The breakpoints, decreasing; a list of one for each target where there are several. With\n"
        "    ``fit_path=False`` only the last.\n"
        "alpha_ : float or ndarray of shape (n_targets,)\n    Alpha at the end of the path.\n"
        "active_ : ndarray, or list of such\n"
        "    Indices of the features at the end of the path, in the order in which they entered.\n"
        "coef_path_ : ndarray of shape (n_features, n_steps + 1), or list of such\n"
        "    Coefficients at the breakpoints; between them they are linear in alpha. Only with ``fit_path=True``.\n"
        "intercept_path_ : ndarray of shape (n_steps + 1,), or list of such\n"
        "coef_ : ndarray of shape (n_features,) or (n_targets, n_features)\n"
        "    Coefficients at the end of the path.\n"
        "intercept_ : float or ndarray of shape (n_targets,)",
        "steps": "history_ : History\n"
        "    For every step: the feature that `entered` or `left` at its beginning (nan for the other one), its\n"
        "    `correlation` coefficient with the residuals at that time, and at its end `alpha`, the number of\n"
        "    `active` features and the objective, half the mean square of the residuals.\n"
        "n_iter_ : int\n    Steps, of all targets.\n"
        "converged_ : bool",
        "gap_of_path": "certificate_ : Certificate\n"
        "    The largest duality gap over all breakpoints of the path, relative to half the mean square of y.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("steps",)

    tol: float
    n_jobs: int | None
    alpha_: float | np.ndarray
    alphas_: Any
    active_: Any
    intercept_path_: Any

    def _fit_path(
        self, data: Data, problem: LassoProblem, options: PathOptions, *, keep: bool = True, may_end_early: bool = False
    ) -> list[Knots]:
        """Follow the path of every target and set all attributes; returns what is known of the knots.

        With `keep` the whole path is kept, otherwise its end only. With `may_end_early` a path that `max_iter` ends is
        a whole one.
        """
        p, k = data.n_features, data.n_targets
        resumed = (self._resume_state() or {}).get("paths", ())
        W = np.zeros((k, p))
        monitor = self._monitor(None, lambda x: self._attributes(data, problem, x.reshape(k, p)))
        records: list[PathRecord] = []
        ends: list[float] = []
        certificates: list[Certificate] = []
        knots: list[Knots] = []
        reason, message = "converged", ""
        for t, solver in enumerate(problem.solvers):
            done = sum(earlier.n_steps for earlier in records)

            def on_step(record: PathRecord, path: LeastAngle, step: Step, t: int = t, done: int = done) -> bool:
                W[t, path.active] = path.w  # those that left are zero since the step before
                event = step.event
                return monitor(
                    done + record.n_steps,
                    W.ravel(),
                    objective=step.half_square,
                    state=lambda: {"paths": [r.state() for r in (*records, record)]},
                    alpha=step.alpha,
                    entered=event.column if event.enters else np.nan,
                    left=np.nan if event.enters else event.column,
                    correlation=event.correlation,
                    active=len(path.active),
                    **({"target": t} if k > 1 else {}),
                )

            begun = PathRecord.resumed(resumed[t]) if t < len(resumed) else None
            path, record, ending = follow(solver, options, begun, on_step)
            W[t] = path.coef
            records.append(record)
            ends.append(max(path.C, float(options.alpha)))
            certificate, found = certify_path(path, solver, record, self.tol)
            certificates.append(certificate)
            if path.passed_over and not certificate.holds:
                message = "Regressors in active set degenerate. Features that depend on them were passed over"
            knots.append(found)
            if ending != "converged" and not (may_end_early and ending == "max_iter"):
                reason = ending
            if ending == "stopped":
                break
        self._keep(data, problem, W, records, np.array(ends), keep)
        worst = max(certificates, key=lambda certificate: certificate.value)
        if len(records) < k:
            worst = Certificate(worst.kind, np.inf, self.tol, "the path was not followed for all targets")
        history = monitor.history()
        state = {"paths": [record.state() for record in records]}
        n_iter = 0 if self.max_iter == 0 else max(1, history.n_iter)
        self._conclude(Solution(W.ravel(), 0.0, history, worst, n_iter, reason, message, state=state))
        return knots

    def _keep(
        self,
        data: Data,
        problem: LassoProblem,
        W: np.ndarray,
        records: list[PathRecord],
        alphas: np.ndarray,
        keep: bool,
    ) -> None:
        for name, value in self._attributes(data, problem, W).items():
            setattr(self, name, value)
        single = data.n_targets == 1
        paths = [record.matrix(data.n_features) for record in records]
        intercepts = [
            problem.y_mean[t] - problem.x_mean @ path if self.fit_intercept else np.zeros(path.shape[1])
            for t, path in enumerate(paths)
        ]
        last = slice(None) if keep else slice(-1, None)
        kept = [np.array(record.alphas)[last] for record in records]
        active = [record.active() for record in records]
        self.alpha_ = float(alphas[0]) if single else alphas
        self.alphas_ = kept[0] if single else kept
        self.active_ = active[0] if single else active
        self.intercept_path_ = intercepts[0][last] if single else [row[last] for row in intercepts]
        if keep:
            self._path_ = paths

    @property
    def coef_path_(self) -> np.ndarray | list[np.ndarray]:
        """Coefficients at the breakpoints, one column each."""
        self._check_fitted()
        if "_path_" not in vars(self):
            raise AttributeError("coef_path_ is kept with fit_path=True only")
        dense = [path.toarray().astype(self.coef_.dtype) for path in self._path_]
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
        """Draw the coefficients along the path."""
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
