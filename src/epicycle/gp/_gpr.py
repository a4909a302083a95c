"""Gaussian process regression:  y_i = m(x_i) + f(x_i) + e_i,  f ~ GP(0, k),  e_i ~ N(0, (noise + alpha_i) / v_i).

With S = K + D the posterior of f at x is normal, with mean k(x)'S^-1 (y - m) and variance k(x, x) - k(x)'S^-1 k(x).
Hyper-parameters of k and the noise variance maximise the marginal likelihood log N(y | m, S).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import scipy.stats
from sklearn.base import MultiOutputMixin, RegressorMixin

from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import (
    AnyOf,
    ArrayLike,
    Boolean,
    Callable,
    Choice,
    Domain,
    Integer,
    NoneOr,
    Real,
    check_parameter,
)
from epicycle.core._random import stream
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.gp._base import GaussianProcess
from epicycle.gp._exact import ExactLikelihood
from epicycle.gp._inducing import InducingLikelihood, InducingPosterior
from epicycle.gp._iterative import IterativeLikelihood, IterativePosterior
from epicycle.gp._mean_functions import MeanFunction, mean_function
from epicycle.gp._model import Model, default_kernel, known_variances, noise_model
from epicycle.gp._observations import Observations, observe
from epicycle.gp._posterior import ExactPosterior, LeaveOneOut, Posterior, as_columns, leave_one_out
from epicycle.gp._predictions import new_noise, outcome_of
from epicycle.gp._search import GP_PARAMETERS, SUBSET_ROWS, require_finite_bounds
from epicycle.kernels._machine import select_rows
from epicycle.linalg._cholesky import JitterWarning, factor_repaired

_EXACT_ROWS = 2000  # up to which "auto" is exact: an evaluation of the likelihood costs O(n^3)
_INDUCING_ROWS = 256  # by default, for data of up to 256^2 rows
_REHEARSED_EXACT = 1024  # rows above which an exact search is rehearsed on a subset
_REHEARSED_APPROXIMATE = 3 * SUBSET_ROWS // 2
_CONSTANT = 1e-12  # spread relative to the mean below which targets are constant but for rounding


class _HasPredict(Domain):
    """A fitted estimator."""

    def has_type(self, value: object) -> bool:
        return hasattr(value, "predict")

    def describe(self) -> str:
        return "a fitted estimator"


class GaussianProcessRegressor(MultiOutputMixin, RegressorMixin, GaussianProcess):  # type: ignore[misc]  # untyped mixin
    r"""Gaussian process regression, with its hyper-parameters and the noise learnt by marginal likelihood.

    .. math:: y_i = m(x_i) + f(x_i) + \varepsilon_i, \qquad f \sim \mathcal{GP}(0, k),
              \qquad \varepsilon_i \sim N\bigl(0, (\sigma^2 + \alpha_i) / v_i\bigr)

    with sample weights :math:`v_i`, and with :math:`S = K + D`, D the diagonal of these variances,

    .. math:: \log p(y) = -\tfrac12 (y - m)'S^{-1}(y - m) - \tfrac12 \log\det S - \tfrac n2 \log 2\pi.

    A fitted object keeps the training rows (of the method "inducing" only some): prediction needs them.

    Parameters
    ----------
    alpha : float or array-like of shape (n_samples,), optional
        Known variance of the noise, of all rows or of each; default: 0, and scikit-learn's 1e-10 for its kernels.
    noise : float or "auto", default="auto"
        The noise variance to begin with; "auto" is a tenth of the variance of y, and 0 for a kernel of scikit-learn,
        whose WhiteKernel is its noise. 0 leaves `alpha` alone.
    noise_bounds : pair of floats, "fixed" or None, default=None
        The interval in which the noise variance is learnt; None is 1e-6 to 1e4 times the variance of y.
    mean : {"zero", "constant", "linear"}, callable or fitted estimator, default="zero"
        The mean function m. Coefficients of "constant", "linear", and of the columns h(X) that a function gives, have a
        flat prior and are estimated by generalised least squares. A function that gives one number a row, or an
        estimator that is fitted already, is taken as m itself.
    method : {"auto", "exact", "inducing", "cg"}, default="auto"
        "exact" factors S. "inducing" is the variational approximation by `n_inducing` of the rows, with a lower bound
        of the likelihood. "cg" solves S by conjugate gradients and estimates its determinant; no matrix of all pairs is
        stored if it is large. "auto" is "exact" up to 2,000 distinct rows, then "inducing".
    optimizer : {"bfgs", "fmin_l_bfgs_b"}, callable or None, default="bfgs"
        How the marginal likelihood is maximised: by a quasi-Newton method that takes few evaluations, by SciPy's, by
        a function with scikit-learn's signature; None leaves all hyper-parameters as they are.
    normalize_y : bool, default=False
        Whether y is centred and scaled to variance 1 first; hyper-parameters then refer to that scale.
    n_targets : int, optional
        Number of targets: that of the prior before fit (default: 1); fit checks it.
    n_inducing : int, optional
        Rows that stand for all in the methods "inducing" and "cg" (there as preconditioner); default: up to 256.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with the hyper-parameters found.
    noise_variance_ : float or ndarray of shape (n_targets,)
        The noise variance found, in the units of y.
    theta_ : ndarray
        Logarithms of all that was learnt: the kernel's hyper-parameters and the noise variance.
    log_marginal_likelihood_value_ : float
        At theta_; of "inducing" the lower bound, of "cg" an estimate.
    y_train_ : ndarray of shape (n_rows,) or (n_rows, n_targets)
        Their targets, less the known part of the mean, on the scale of the likelihood.
    alpha_ : ndarray of shape (n_rows,) or (n_rows, n_targets)
        Coefficients of these rows in the posterior mean.
    L_ : ndarray of shape (n_rows, n_rows)
        The lower factor of S, of the method "exact".
    mean_function_ : MeanFunction
    mean_coef_ : ndarray of shape (n_columns, n_targets)
        Coefficients of the basis of the mean.
    inducing_rows_ : ndarray
        Which rows of X were chosen, of the method "inducing".
    jitter_ : float
        Added to the noise variances so that S is positive definite to working precision; 0 as a rule.
    certificate_ : Certificate
        The projected gradient of the log marginal likelihood at `theta_`, or the backward error of the solution,
        whichever is larger. A stationary point is a local optimum as a rule; further starts may find a better one.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import GaussianProcessRegressor
    >>> rng = np.random.default_rng(0)
    >>> x = np.sort(rng.uniform(0, 10, 60))[:, None]
    >>> y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=60)
    >>> model = GaussianProcessRegressor().fit(x, y)
    >>> mean, std = model.predict([[2.5]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(2.5)) < 0.15), bool(0.05 < model.noise_variance_**0.5 < 0.15)
    (True, True)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **GP_PARAMETERS,
        "alpha": NoneOr(AnyOf(Real(minimum=0), ArrayLike())),
        "noise": AnyOf(Real(minimum=0), Choice("auto")),
        "noise_bounds": NoneOr(AnyOf(Choice("fixed"), ArrayLike())),
        "mean": AnyOf(Choice("zero", "constant", "linear"), Callable(), _HasPredict()),
        "method": Choice("auto", "exact", "inducing", "cg"),
        "normalize_y": Boolean(),
        "n_targets": NoneOr(Integer(minimum=1)),
    }
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"requires_fit": False}  # before it the prior is predicted

    alpha_: np.ndarray
    y_train_: np.ndarray
    jitter_: float

    @stores_arguments(tol=1e-5, max_iter=200, random_state=None, n_jobs=None, verbose=0)
    def __init__(
        self,
        kernel: Any = None,
        *,
        alpha: Any = None,
        noise: float | str = "auto",
        noise_bounds: Any = None,
        mean: Any = "zero",
        method: str = "auto",
        optimizer: Any = "bfgs",
        n_restarts_optimizer: int = 0,
        normalize_y: bool = False,
        copy_X_train: bool = True,
        n_targets: int | None = None,
        n_inducing: int | None = None,
        inducing: str = "greedy",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @property
    def X_train_(self) -> Any:  # noqa: N802 - scikit-learn's name
        """`X_fit_`, by scikit-learn's name."""
        return self.X_fit_

    @property
    def _y_train_mean(self) -> Any:
        return float(self._y_centre_[0]) if self._vector_ else self._y_centre_

    @property
    def _y_train_std(self) -> Any:
        return float(self._y_scale_[0]) if self._vector_ else self._y_scale_

    # ------------------------------------------------------------------------------------------- fit

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with targets y.

        Parameters
        ----------
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Several targets share the kernel and are independent given it.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight v counts as v rows: its noise variance is divided by v.
        """
        data, rows = self._intake(X, y, sample_weight, target="numeric", multi_output=True)
        Y = np.asarray(data.y, dtype=np.float64)
        Y = Y[:, None] if data.target_is_vector else Y
        self._vector_ = Y.shape[1] == 1  # a single column is predicted as a vector, as in scikit-learn
        if self.n_targets is not None and self.n_targets != Y.shape[1]:
            raise DataError(
                "y: The number of targets seen in `y` is different from the parameter `n_targets`: "
                f"{Y.shape[1]} != {self.n_targets}"
            )
        require_finite_bounds(self.kernel_, self.n_restarts_optimizer)
        weight = np.ones(len(Y)) if data.weight is None else data.weight
        seed = self._seed()
        obs, mean, model = self._observe(rows, Y, weight)
        likelihood = self._build_likelihood(model, obs, _basis(mean, obs), seed)
        # An exact evaluation costs n^3 and an approximate one n m^2: the rehearsal pays from different sizes on.
        worth = _REHEARSED_EXACT if self.method_ == "exact" else _REHEARSED_APPROXIMATE
        n_subset = SUBSET_ROWS if obs.n > worth else 0

        def assign(theta: np.ndarray) -> None:
            self._assign(likelihood, model, theta, mean)

        def evidence() -> tuple[str, float, str]:
            error = self._backward_error_
            words = f"the coefficients solve a linear system that differs from K + D by {error:.1e}, relative"
            if self.jitter_ > 0:
                words += f"; {self.jitter_:.1e} was added to the {self._warn_of_jitter()}"
            return "backward error", error, words

        self._search(likelihood, model.theta, model.bounds, assign, obs.n, n_subset, seed, evidence)
        if data.target_is_vector:
            self.alpha_, self.y_train_ = self.alpha_[:, 0], self.y_train_[:, 0]
        if self.method_ == "inducing":  # the given rows are not needed any more
            del self._given_, self._given_weight_, self._given_rows_, self._given_offset_
        return self

    def _observe(self, rows: Any, Y: np.ndarray, weight: np.ndarray) -> tuple[Observations, MeanFunction, Model]:
        """(observations on the scale of the likelihood, mean function, model)."""
        name = type(self).__name__
        mean = mean_function(self.mean, rows, self.kernel_.takes)
        offset = mean.offset(rows, Y.shape[1])
        Y = Y - offset
        share = weight / weight.sum()
        centre = share @ Y
        spread = np.sqrt(share @ (Y - centre) ** 2)
        if self.normalize_y:
            spread = np.where(spread > _CONSTANT * np.abs(centre), spread, 1.0)
        else:
            centre, spread = np.zeros_like(centre), np.ones_like(spread)
        self._y_centre_, self._y_scale_ = centre, spread
        Y = (Y - centre) / spread
        square = float((share @ Y**2).mean())
        unit = float((share @ Y**2 - (share @ Y) ** 2).mean())
        square, unit = (v if v > 1e-30 else 1.0 for v in (square, unit if unit > _CONSTANT * square else square))
        alpha = known_variances(name, self.alpha, len(Y), self.kernel_)
        model = noise_model(name, self.kernel_, self.noise, self.noise_bounds, unit)
        # Equal rows without noise make S singular, with different targets rightly so: they are not merged.
        merge = model.noise > 0 or bool((alpha > 0).all())
        kept = np.flatnonzero(weight > 0)
        self._given_, self._given_weight_, self._given_rows_ = Y[kept], weight[kept], kept
        self._given_offset_ = np.broadcast_to(offset, Y.shape)[kept] if mean.kind == "given" else np.zeros((1, 1))
        obs = observe(rows, Y, weight, alpha, self.kernel_, merge=merge)
        if self.kernel is None:  # from distinct rows, so that repeated ones do not count more than weighted ones
            variance = square if mean.kind == "zero" else unit
            self.kernel_ = default_kernel(obs.rows, variance, (1e-4 * variance, 1e4 * variance))
            model = replace(model, kernel=self.kernel_)
        return obs, mean, model

    def _build_likelihood(self, model: Model, obs: Observations, H: np.ndarray, seed: int) -> Any:
        """The likelihood of the method that was asked for; sets `method_`."""
        n = obs.n
        small = n <= _EXACT_ROWS or not (obs.variances(model.noise) > 0).all()
        m = self._choose_method(small, n, _INDUCING_ROWS)
        if self.method_ == "inducing":
            return InducingLikelihood(model, obs, H, self.n_jobs, m, self.inducing, seed)
        if self.method_ == "cg":
            return IterativeLikelihood(model, obs, H, self.n_jobs, m, seed)
        self._require(n, 3.0)
        return ExactLikelihood(model, obs, H, self.n_jobs)

    def _assign(self, likelihood: Any, model: Model, theta: np.ndarray, mean: MeanFunction) -> None:
        """Set all attributes that prediction needs, for hyper-parameters theta."""
        at, obs = model.at(theta), likelihood.obs
        self.kernel_, self.theta_, self.theta_names_ = at.kernel, theta, model.names
        noise = at.noise * self._y_scale_**2
        self.noise_variance_ = float(noise[0]) if self._vector_ else noise
        self._noise_ = at.noise
        self.mean_function_ = mean
        value = np.nan
        if self.method_ == "inducing":
            end, self._backward_error_ = likelihood.conclude(theta)
            chosen = likelihood.rows
            self._keep(select_rows(obs.rows, self.kernel_, chosen), self._given_rows_[chosen])
            self.alpha_, self._SH_ = end.coefficients()
            self.mean_coef_, self._LA_ = end.solved.beta, end.solved.LA
            self._Lm_, self._LB_ = end.Lm, end.LB
            self.y_train_, self.jitter_, value = obs.Y[chosen], likelihood.jitter, end.value
            first = np.full(obs.n, -1)  # row of X that each distinct row is first
            first[obs.group[::-1]] = np.arange(len(obs.group))[::-1]
            self.inducing_rows_ = self._given_rows_[first][chosen]
        else:
            self._keep(obs.rows, self._given_rows_)
            self._weight_, self._known_, self._spread_ = obs.weight, obs.alpha, obs.spread
            self._group_, self.y_train_ = obs.group, obs.Y
            if self.method_ == "cg":
                solved, self._D_, self._backward_error_ = likelihood.conclude(theta)
                self.jitter_, self._rank_ = 0.0, likelihood.rank
            else:
                solved, factored, self.jitter_, value, self._backward_error_ = likelihood.conclude(theta)
                self.L_ = np.tril(factored.L)
            self.mean_coef_, self.alpha_, self._SH_, self._LA_ = solved.beta, solved.C, solved.SH, solved.LA
        self.log_marginal_likelihood_value_ = float(value)
        self.n_evaluations_ = likelihood.evaluations

    def _warn_of_jitter(self) -> str:
        """Leave a warning, and name what the jitter was added to."""
        where = "kernel of the inducing rows" if self.method_ == "inducing" else "noise variances"
        self._run.notices.append(
            JitterWarning(
                f"{type(self).__name__}: the covariance matrix is not positive definite to working precision; "
                f"jitter_={self.jitter_:.2e} was added to the {where}. Equal or close rows with little noise do "
                "this: learn the noise, or give alpha > 0."
            )
        )
        return where

    def _posterior(self) -> Posterior:
        coefficients = (as_columns(self.alpha_), self.mean_function_, self.mean_coef_, self._SH_, self._LA_)
        shared = (self.kernel_, self._kept(), *coefficients, self._y_scale_)
        if self.method_ == "inducing":
            return InducingPosterior(*shared, self._Lm_, self._LB_)
        if self.method_ == "cg":
            return IterativePosterior(*shared, self._D_, self._rank_, self.n_jobs)
        return ExactPosterior(*shared, self.L_)

    # ------------------------------------------------------------------------------------------- prediction

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        *,
        return_interval: bool = False,
        level: float = 0.95,
        include_noise: bool = False,
    ) -> Any:
        """Posterior mean of m + f at the rows of X, with its uncertainty where asked for; before `fit` the prior's.

        Parameters
        ----------
        %(X_new)s
        return_std : bool, default=False
            Whether to return the standard deviation, of shape (n_samples,) or (n_samples, n_targets).
        return_cov : bool, default=False
            Whether to return the joint covariance, of shape (n_samples, n_samples) or (..., n_targets).
        return_interval : bool, default=False
            Whether to return the interval of probability `level` around the mean, of shape (n_samples, 2) or
            (n_samples, n_targets, 2).
        level : float, default=0.95
        include_noise : bool, default=False
            Whether deviation, covariance and interval are those of a new observation y instead of f: with the learnt
            noise variance, and `alpha` where it is one number.

        Returns
        -------
        ndarray, or a tuple of ndarrays
            The mean, then deviation, covariance and interval, as asked for.
        """
        check_parameter("predict", "level", level, Real(0, 1, inclusive=False))
        outcome = outcome_of(self, X, joint=return_cov, variance=return_std or return_cov or return_interval)
        results = [outcome.shaped(outcome.means)]
        if not (return_std or return_cov or return_interval):
            return results[0]
        extra = new_noise(self) if include_noise else 0.0
        std = np.sqrt(outcome.variance + extra)[:, None] * outcome.scale
        if return_std:
            results.append(outcome.shaped(std))
        if return_cov:
            joint = outcome.covariance + extra * np.eye(len(outcome.covariance))
            results.append(outcome.shaped(joint[:, :, None] * outcome.scale**2, axis=2))
        if return_interval:
            wide = float(scipy.stats.norm.ppf(0.5 + level / 2)) * std
            ends = np.stack([outcome.means - wide, outcome.means + wide], axis=-1)
            results.append(outcome.shaped(ends))
        return tuple(results)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0, *, include_noise: bool = False) -> np.ndarray:
        """Draws of the posterior (before `fit` of the prior) at the rows of X together.

        Parameters
        ----------
        X : array, sparse matrix, data frame of shape (n_samples_X, n_features), or sequence of strings
        n_samples : int, default=1
            Number of functions to draw.
        include_noise : bool, default=False
            Whether observations y are drawn instead of f.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples) or (n_samples_X, n_targets, n_samples)
        """
        check_parameter("sample_y", "n_samples", n_samples, Integer(minimum=1))
        outcome = outcome_of(self, X, joint=True)
        means = outcome.means
        extra = np.full(len(means), new_noise(self) if include_noise else 0.0)
        L = np.tril(factor_repaired(outcome.covariance, extra, 1)[0].L)
        # one target after the other, so that the draws of the first do not depend on how many there are
        drawn = stream(random_state, "sample").standard_normal((means.shape[1], len(means), n_samples))
        found = means[:, :, None] + np.einsum("ij,tjk->itk", L, drawn) * outcome.scale[:, None]
        return np.asarray(outcome.shaped(found))

    # ------------------------------------------------------------------------------------------- evidence

    def leave_one_out(self) -> LeaveOneOut:
        """Every observation predicted by the fit to all others, at the same hyper-parameters, from one factor.

        Returns
        -------
        LeaveOneOut
            `mean`, `std` (of the observation, noise included) and `log_density`, a row for each observation with a
            weight, in the order of the data.
        """
        self._check_fitted()
        if self.method_ != "exact":
            raise ParameterError(f"leave_one_out: method {self.method_!r} has no factor of S; expected 'exact'")
        return leave_one_out(self)

    def _likelihood(self) -> ExactLikelihood:
        """The likelihood of the rows that were kept."""
        Y = as_columns(self.y_train_)
        obs = Observations(self.X_fit_, Y, self._weight_, self._known_, self._spread_, self._group_)
        learnt = len(self.theta_) > len(self.kernel_.theta)
        model = Model(self.kernel_, self._noise_, (1e-300, 1e300) if learnt else None)  # bounds are of no use here
        return ExactLikelihood(model, obs, _basis(self.mean_function_, obs), self.n_jobs)


def _basis(mean: MeanFunction, obs: Observations) -> np.ndarray:
    """H, the basis of the mean at the observed rows; no columns where there are no coefficients."""
    if mean.kind in ("zero", "given"):
        return np.zeros((obs.n, 0))
    H = mean.basis(obs.rows)
    if obs.n <= H.shape[1]:
        raise DataError(f"mean: {H.shape[1]} columns for {obs.n} distinct row(s); expected fewer columns than rows")
    return H
