"""Gaussian process regression:  y_i = m(x_i) + f(x_i) + e_i,  f ~ GP(0, k),  e_i ~ N(0, (noise + alpha_i) / v_i).

With S = K + D the posterior of f at x is normal, with mean k(x)'S^-1 (y - m) and variance k(x, x) - k(x)'S^-1 k(x).
Hyper-parameters of k and the noise variance maximise the marginal likelihood log N(y | m, S).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import (
    AnyOf,
    ArrayLike,
    Boolean,
    Callable,
    Choice,
    Domain,
    InstanceOf,
    Integer,
    NoneOr,
    RandomState,
    Real,
)
from epicycle.core._random import seed_of, stream
from epicycle.core.estimator._estimator import MethodCard, fitting
from epicycle.data import ArrayData
from epicycle.gp._arguments import default_kernel, known_variances, noise_model
from epicycle.gp._exact import ExactLikelihood
from epicycle.gp._inducing import InducingLikelihood
from epicycle.gp._iterative import IterativeLikelihood
from epicycle.gp._mean_functions import MeanFunction, mean_function
from epicycle.gp._model import Model
from epicycle.gp._observations import Observations, observe
from epicycle.gp._outcome import Outcome
from epicycle.gp._starts import PART, WORTH, Likelihood, Plan, search
from epicycle.kernels._kernel import Kernel
from epicycle.kernels._named import NAMES, as_kernel
from epicycle.kernels._stationary import Gaussian
from epicycle.optim._box_bfgs import Summit

__all__ = ["GaussianProcessRegressor"]

_EXACT = 2000  # rows up to which "auto" is exact
_INDUCING = 256


class _HasPredict(Domain):
    """A fitted estimator."""

    def has_type(self, value: object) -> bool:
        return hasattr(value, "predict")

    def describe(self) -> str:
        return "a fitted estimator"


class GaussianProcessRegressor(MultiOutputMixin, RegressorMixin, Outcome):
    r"""Gaussian process regression, with its hyper-parameters and the noise learnt by marginal likelihood.

    .. math:: y_i = m(x_i) + f(x_i) + \varepsilon_i, \qquad f \sim \mathcal{GP}(0, k),
              \qquad \varepsilon_i \sim N\bigl(0, (\sigma^2 + \alpha_i) / v_i\bigr)

    with sample weights :math:`v_i`, and with :math:`S = K + D`, D the diagonal of these variances,

    .. math:: \log p(y) = -\tfrac12 (y - m)'S^{-1}(y - m) - \tfrac12 \log\det S - \tfrac n2 \log 2\pi.

    A fitted object keeps the training rows (of the method "inducing" only some): prediction needs them.

    Parameters
    ----------
    kernel : Kernel, str, callable or None, default=None
        A kernel of :mod:`epicycle.kernel`, whose bounds are those of the search; one of scikit-learn's names; a
        function f(X, Z) that gives the matrix. None is a Gaussian kernel times a variance, in the units of the data.
    alpha : float or array-like of shape (n_samples,), default=0.0
        Known variance of the noise, of all rows or of each.
    noise : float or "auto", default="auto"
        The noise variance to begin with; "auto" is a tenth of the variance of y. 0 leaves `alpha` alone.
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
        How the marginal likelihood is maximised: by a search made for functions that are dear, by SciPy's, by a
        function with scikit-learn's signature; None leaves all hyper-parameters as they are.
    n_restarts_optimizer : int, default=0
        Further starts, drawn within the bounds.
    normalize_y : bool, default=False
        Whether y is centred and scaled to variance 1 first; hyper-parameters then refer to that scale.
    n_inducing : int, optional
        Rows that stand for all in the methods "inducing" and "cg" (there as preconditioner); default: up to 256.
    inducing : {"greedy", "kmeans++"}, default="greedy"
        How they are chosen: each where the variance given those before is largest, or drawn in proportion to the
        squared distance from them.
    tol : float, default=1e-5
        For the projected gradient, relative to half the number of observations.
    max_iter : int, default=200
        Iterations at most, over all starts.
    random_state : int, Generator, RandomState or None, default=None
        Of the starts, of the choice of rows and of the estimates of "cg".
    n_jobs : int, optional
        Threads; None follows the size of the work. The result does not depend on it.
    verbose : int, default=0
        1 shows progress when the fit takes more than about two seconds, 2 logs every iteration.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with the hyper-parameters found.
    noise_variance_ : float or ndarray of shape (n_targets,)
        The noise variance found, in the units of y.
    theta_ : ndarray
        Logarithms of all that was learnt: the kernel's hyper-parameters and the noise variance.
    theta_names_ : list of str
    log_marginal_likelihood_value_ : float
        At theta_; of "inducing" the lower bound, of "cg" an estimate.
    X_fit_ : the distinct rows of the fit (of "inducing" those chosen), None for a precomputed kernel
    y_train_ : ndarray of shape (n_rows, n_targets)
        Their targets, less what is known of the mean, on the scale of the likelihood.
    alpha_ : ndarray of shape (n_rows, n_targets)
        Coefficients of these rows in the posterior mean.
    L_ : ndarray of shape (n_rows, n_rows)
        The lower factor of S, of the method "exact".
    mean_function_ : MeanFunction
    mean_coef_ : ndarray of shape (n_columns, n_targets)
        Coefficients of the basis of the mean.
    method_ : str
        What "auto" has become.
    inducing_rows_ : ndarray
        Which rows of X were chosen, of the method "inducing".
    jitter_ : float
        What had to be added to the noise variances so that S is positive definite to working precision; 0 as a rule.
    n_evaluations_ : int
        Evaluations of the likelihood on all rows.
    certificate_ : Certificate
        The projected gradient of the log marginal likelihood at `theta_`, or the backward error of the solution,
        whichever is larger. A stationary point is a local optimum as a rule; further starts may find a better one.
    history_ : History
        Negative log marginal likelihood and its projected gradient after every iteration.
    n_iter_ : int
    converged_ : bool

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
        "kernel": NoneOr(AnyOf(Choice(*NAMES), InstanceOf(Kernel), Callable())),
        "alpha": AnyOf(Real(minimum=0), ArrayLike()),
        "noise": AnyOf(Real(minimum=0), Choice("auto")),
        "noise_bounds": NoneOr(AnyOf(Choice("fixed"), ArrayLike())),
        "mean": AnyOf(Choice("zero", "constant", "linear"), Callable(), _HasPredict()),
        "method": Choice("auto", "exact", "inducing", "cg"),
        "optimizer": NoneOr(AnyOf(Choice("bfgs", "fmin_l_bfgs_b"), Callable())),
        "n_restarts_optimizer": Integer(minimum=0),
        "normalize_y": Boolean(),
        "n_inducing": NoneOr(Integer(minimum=1)),
        "inducing": Choice("greedy", "kmeans++"),
        "tol": Real(minimum=0, inclusive=False),
        "max_iter": Integer(minimum=1),
        "random_state": RandomState(),
        "n_jobs": NoneOr(AnyOf(Integer(minimum=1), Integer(maximum=-1))),
        "verbose": AnyOf(Boolean(), Integer(minimum=0)),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="kernel", catalogue=("C4",), engines=("memory",), certificate="projected gradient", keeps_rows=True
    )

    def __init__(
        self,
        kernel: Any = None,
        *,
        alpha: Any = 0.0,
        noise: float | str = "auto",
        noise_bounds: Any = None,
        mean: Any = "zero",
        method: str = "auto",
        optimizer: Any = "bfgs",
        n_restarts_optimizer: int = 0,
        normalize_y: bool = False,
        n_inducing: int | None = None,
        inducing: str = "greedy",
        tol: float = 1e-5,
        max_iter: int = 200,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.noise = noise
        self.noise_bounds = noise_bounds
        self.mean = mean
        self.method = method
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.normalize_y = normalize_y
        self.n_inducing = n_inducing
        self.inducing = inducing
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _named_kernel(self, data: ArrayData | None) -> Kernel:
        n_columns = None if data is None else data.n_features
        return Gaussian() if self.kernel is None else as_kernel(self.kernel, None, 3, 1.0, n_columns)

    # ------------------------------------------------------------------------------------------- fit

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with targets y.

        Parameters
        ----------
        X : array, sparse matrix, data frame of shape (n_samples, n_features), or sequence of strings
            For a precomputed kernel the matrix of shape (n_samples, n_samples).
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Several targets share the kernel and are independent given it.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight v counts as v rows: its noise variance is divided by v.

        Returns
        -------
        self
            The fitted estimator.
        """
        data, rows = self._intake(X, y, sample_weight, target="numeric", multi_output=True)
        self._vector_ = bool(data.target_is_vector)
        Y = np.asarray(data.y[:, None] if self._vector_ else data.y, dtype=np.float64)
        weight = np.ones(len(Y)) if data.weight is None else data.weight
        seed = int((self._resume_state() or {}).get("seed", seed_of(self.random_state)))
        seen, mean, model = self._prepared(rows, Y, weight)
        H = mean.basis(seen.rows) if mean.kind not in ("zero", "given") else np.zeros((seen.n, 0))
        if seen.n <= H.shape[1]:
            raise DataError(
                f"mean: {H.shape[1]} columns for {seen.n} distinct row(s); expected fewer columns than rows"
            )
        likelihood = self._built(model, seen, H, seed)
        summit, monitor = self._searched(likelihood, model, seen, seed, mean)
        self._finish(likelihood, model, summit, mean)
        self._certify(summit, model, monitor, likelihood)
        if self.method_ == "inducing":  # what was given is not needed any more
            del self._given_, self._given_weight_, self._given_rows_, self._given_offset_
        return self

    def _built(self, model: Model, seen: Observations, H: np.ndarray, seed: int) -> Any:
        """The likelihood of the method that was asked for."""
        n = seen.n
        small = n <= _EXACT or self.kernel_.takes == "precomputed" or not (seen.variances(model.noise) > 0).all()
        self.method_ = self.method if self.method != "auto" else "exact" if small else "inducing"
        most = min(n, self.n_inducing or max(_INDUCING, int(np.sqrt(n))))
        if self.method_ == "inducing":
            return InducingLikelihood(model, seen, H, self.n_jobs, most, self.inducing, seed)
        if self.method_ == "cg":
            return IterativeLikelihood(model, seen, H, self.n_jobs, most, seed)
        self._require(n, 3.0)
        return ExactLikelihood(model, seen, H, self.n_jobs)

    def _prepared(self, rows: Any, Y: np.ndarray, weight: np.ndarray) -> tuple[Observations, MeanFunction, Model]:
        """(what was observed on the scale of the likelihood, the mean function, the model)."""
        name = type(self).__name__
        mean = mean_function(self.mean, rows, self.kernel_.takes)
        offset = mean.offset(rows, Y.shape[1])
        Y = Y - offset
        share = weight / weight.sum()
        centre, spread = share @ Y, np.sqrt(np.maximum(share @ Y**2 - (share @ Y) ** 2, 0.0))
        if self.normalize_y:
            spread = np.where(spread > 1e-12 * np.abs(centre), spread, 1.0)
        else:
            centre, spread = np.zeros_like(centre), np.ones_like(spread)
        self._y_centre_, self._y_scale_ = centre, spread
        Y = (Y - centre) / spread
        square = float((share @ Y**2).mean())
        unit = float((share @ Y**2 - (share @ Y) ** 2).mean())
        square, unit = (v if v > 1e-30 else 1.0 for v in (square, unit if unit > 1e-12 * square else square))
        alpha = known_variances(name, self.alpha, len(Y))
        model = noise_model(name, self.kernel_, self.noise, self.noise_bounds, unit)
        merge = model.noise > 0 or bool((alpha > 0).all())
        kept = np.flatnonzero(weight > 0)
        self._given_, self._given_weight_, self._given_rows_ = Y[kept], weight[kept], kept
        self._given_offset_ = np.broadcast_to(offset, Y.shape)[kept] if mean.kind == "given" else np.zeros((1, 1))
        seen = observe(rows, Y, weight, alpha, self.kernel_, merge=merge)
        if self.kernel is None:  # from distinct rows, so that repeated ones do not count more than weighted ones
            self.kernel_ = default_kernel(seen.rows, square if mean.kind == "zero" else unit)
            model = replace(model, kernel=self.kernel_)
        return seen, mean, model

    def _searched(
        self, likelihood: Any, model: Model, seen: Observations, seed: int, mean: MeanFunction
    ) -> tuple[Summit, Any]:
        """(the hyper-parameters that maximise the likelihood, the monitor that has the history)."""

        def attributes(theta: np.ndarray) -> dict[str, Any]:
            self._finish(likelihood, model, Summit(theta, np.nan, theta, np.eye(len(theta)), 0, ""), mean)
            return {name: value for name, value in vars(self).items() if name.endswith("_") and name not in _EVIDENCE}

        monitor = self._monitor(self.max_iter, attributes)
        theta, bounds = model.theta, model.bounds
        if self.optimizer is None or not len(theta):
            likelihood.start(theta)
            value, _ = likelihood.value_and_gradient(theta, False)
            monitor(1, theta, objective=-value)
            return Summit(theta, value, np.zeros(len(theta)), np.eye(len(theta)), 1, "fixed"), monitor
        plan = Plan(theta, bounds, self.optimizer, self.n_restarts_optimizer, self.tol, self.max_iter, seed)
        part: Likelihood | None = None
        if seen.n > (WORTH if self.method_ == "exact" else 3 * PART // 2) and model.kernel.takes != "precomputed":
            chosen = np.sort(stream(seed, "part").choice(seen.n, PART, replace=False))
            part = likelihood.on_part(chosen)
        return search(likelihood, plan, monitor, self._resume_state(), part, PART / seen.n), monitor


_EVIDENCE = ("history_", "certificate_", "n_iter_", "converged_", "n_features_in_", "feature_names_in_")
