"""Gaussian process classification by Laplace's approximation:  P(class k | x) = softmax(f(x))_k,  f_k ~ GP(0, k).

For two classes one latent function is enough, P = 1 / (1 + exp(-f)). The posterior of f at the observed rows is taken
as a normal distribution at its mode, with the curvature there; it gives an approximation of the marginal likelihood,
which the hyper-parameters maximise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from epicycle import engine
from epicycle.core._parameters import (
    AnyOf,
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
from epicycle.gp._arguments import other_theta, typical_distance
from epicycle.gp._averages import average_logistic, average_softmax
from epicycle.gp._counts import Counts, count_labels
from epicycle.gp._laplace_binary import BinaryLaplace
from epicycle.gp._laplace_low_rank import LowRankLaplace
from epicycle.gp._laplace_softmax import SoftmaxLaplace
from epicycle.gp._latent import BinaryLatent, Latent, LowRankLatent, SoftmaxLatent, latent_batch, latent_rows
from epicycle.gp._model import hyperparameter_names
from epicycle.gp._starts import PART, Likelihood, Plan, search
from epicycle.gp._verdict import verdict
from epicycle.kernels._compositions import Scaled
from epicycle.kernels._kernel import Kernel
from epicycle.kernels._machine import KernelClassifier, rows_of
from epicycle.kernels._named import NAMES, as_kernel
from epicycle.kernels._rows import as_texts
from epicycle.kernels._stationary import Gaussian
from epicycle.linalg._inverse import factor_of
from epicycle.optim import Solution
from epicycle.optim._box_bfgs import Summit

__all__ = ["GaussianProcessClassifier"]

_EXACT = 1000  # rows times classes up to which "auto" is exact
_INDUCING = 128


class GaussianProcessClassifier(KernelClassifier):
    r"""Gaussian process classification by Laplace's approximation, for two classes or several at once.

    .. math:: P(y = k \mid x) = \frac{e^{f_k(x)}}{\sum_l e^{f_l(x)}}, \qquad f_k \sim \mathcal{GP}(0, k),

    for two classes :math:`1 / (1 + e^{-f(x)})` with one function. Probabilities are averages over the posterior of f,
    not those of its mean. A fitted object keeps the training rows (of the method "inducing" only some).

    Parameters
    ----------
    kernel : Kernel, str, callable or None, default=None
        A kernel of :mod:`epicycle.kernel`, whose bounds are those of the search; one of scikit-learn's names; a
        function f(X, Z) that gives the matrix. None is a Gaussian kernel times a variance, in the units of the data.
    method : {"auto", "exact", "inducing"}, default="auto"
        "exact" factors matrices of all pairs of rows. "inducing" puts the kernel of `n_inducing` of the rows in
        the place of the whole. "auto" is "exact" up to 1,000 rows (times classes, where there are more than two).
    optimizer : {"bfgs", "fmin_l_bfgs_b"}, callable or None, default="bfgs"
        How the approximate marginal likelihood is maximised; None leaves the kernel as it is.
    n_restarts_optimizer : int, default=0
        Further starts, drawn within the bounds.
    max_iter_predict : int, default=100
        Newton steps at most, on the way to the mode of the posterior.
    n_inducing : int, optional
        Rows that stand for all in the method "inducing"; default: up to 128.
    inducing : {"greedy", "kmeans++"}, default="greedy"
        How they are chosen: each where the variance given those before is largest, or drawn in proportion to the
        squared distance from them.
    tol : float, default=1e-5
        For the projected gradient, relative to half the number of observations.
    max_iter : int, default=200
        Iterations of the search at most, over all starts.
    random_state : int, Generator, RandomState or None, default=None
        Of the starts and of the choice of rows.
    n_jobs : int, optional
        Threads; None follows the size of the work. The result does not depend on it.
    verbose : int, default=0
        1 shows progress when the fit takes more than about two seconds, 2 logs every iteration.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    kernel_ : Kernel
        The kernel with the hyper-parameters found.
    theta_ : ndarray
        Logarithms of its hyper-parameters.
    theta_names_ : list of str
    log_marginal_likelihood_value_ : float
        Laplace's approximation at theta_.
    X_fit_ : the distinct rows of the fit (of "inducing" those chosen), None for a precomputed kernel
    dual_coef_ : ndarray of shape (n_rows, 1) or (n_rows, n_classes)
        Coefficients of these rows in the latent functions.
    method_ : str
        What "auto" has become.
    n_newton_ : int
        Newton steps to the modes of all evaluations.
    n_evaluations_ : int
        Evaluations of the likelihood on all rows.
    certificate_ : Certificate
        The projected gradient of the approximate log marginal likelihood, or Newton's decrement at the mode, whichever
        is larger. A stationary point is a local optimum as a rule; further starts may find a better one.
    history_ : History
        Negative log marginal likelihood and its projected gradient after every iteration.
    n_iter_ : int
    converged_ : bool

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import GaussianProcessClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> model = GaussianProcessClassifier().fit(X, y)
    >>> bool(model.score(X, y) > 0.95), model.certificate_.holds
    (True, True)
    >>> model.predict_proba([[100.0, 100.0]]).round(2)  # far from all rows nothing is known
    array([[0.5, 0.5]])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "kernel": NoneOr(AnyOf(Choice(*NAMES), InstanceOf(Kernel), Callable())),
        "method": Choice("auto", "exact", "inducing"),
        "optimizer": NoneOr(AnyOf(Choice("bfgs", "fmin_l_bfgs_b"), Callable())),
        "n_restarts_optimizer": Integer(minimum=0),
        "max_iter_predict": Integer(minimum=1),
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
        method: str = "auto",
        optimizer: Any = "bfgs",
        n_restarts_optimizer: int = 0,
        max_iter_predict: int = 100,
        n_inducing: int | None = None,
        inducing: str = "greedy",
        tol: float = 1e-5,
        max_iter: int = 200,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.method = method
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.max_iter_predict = max_iter_predict
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
        """Fit to rows X with labels y.

        Parameters
        ----------
        X : array, sparse matrix, data frame of shape (n_samples, n_features), or sequence of strings
            For a precomputed kernel the matrix of shape (n_samples, n_samples).
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight v counts as v rows.

        Returns
        -------
        self
            The fitted estimator.
        """
        rows, codes, weight, kept = self._labelled(X, y, sample_weight)
        seed = int((self._resume_state() or {}).get("seed", seed_of(self.random_state)))
        seen = count_labels(rows, codes, weight, len(self.classes_), self.kernel_)
        if self.kernel is None:
            scale = typical_distance(seen.rows)
            self.kernel_ = Scaled(
                Gaussian(scale, bounds={"length_scale": (1e-3 * scale, 1e3 * scale)}),
                4.0,
                bounds={"variance": (1e-3, 1e3)},
            )
        likelihood = self._built(seen, seed)
        self._given_rows_ = kept
        summit, monitor = self._searched(likelihood, seen, seed)
        self._finish(likelihood, summit.theta)
        words = f"the mode of the posterior is found to a Newton decrement of {self._decrement_:.1e}"
        bounds = likelihood.kernel.theta_bounds
        certificate, reason = verdict(summit, bounds, likelihood, self.tol, "newton decrement", self._decrement_, words)
        self._conclude(
            Solution(
                summit.theta, -summit.value, monitor.history(), certificate, summit.n_iter, reason, state=summit.state
            )
        )  # fmt: skip
        del self._given_rows_
        return self

    def _built(self, seen: Counts, seed: int) -> Any:
        n, k = seen.n, seen.n_latent
        exact = BinaryLaplace if k == 1 else SoftmaxLaplace
        small = n * k <= _EXACT or self.kernel_.takes == "precomputed"
        self.method_ = self.method if self.method != "auto" else "exact" if small else "inducing"
        if self.method_ == "inducing":
            most = min(n, self.n_inducing or max(_INDUCING, int(np.sqrt(n))))
            return LowRankLaplace(
                self.kernel_, seen, self.n_jobs, self.max_iter_predict, most, self.inducing, seed, exact
            )
        self._require(n, 3.0 if k == 1 else 2.0 * k + 3)
        return exact(self.kernel_, seen, self.n_jobs, self.max_iter_predict)

    def _searched(self, likelihood: Any, seen: Counts, seed: int) -> tuple[Summit, Any]:
        def attributes(theta: np.ndarray) -> dict[str, Any]:
            self._finish(likelihood, theta)
            return {name: value for name, value in vars(self).items() if name.endswith("_") and name not in _EVIDENCE}

        monitor = self._monitor(self.max_iter, attributes)
        theta, bounds = self.kernel_.theta, self.kernel_.theta_bounds
        if self.optimizer is None or not len(theta):
            likelihood.start(theta)
            value, _ = likelihood.value_and_gradient(theta, False)
            monitor(1, theta, objective=-value)
            return Summit(theta, value, np.zeros(len(theta)), np.eye(len(theta)), 1, "fixed"), monitor
        plan = Plan(theta, bounds, self.optimizer, self.n_restarts_optimizer, self.tol, self.max_iter, seed)
        part: Likelihood | None = None
        size = PART if seen.n_latent == 1 else PART // 2
        if seen.n > 2 * size and self.kernel_.takes != "precomputed":
            chosen = np.sort(stream(seed, "part").choice(seen.n, size, replace=False))
            part = likelihood.on_part(chosen)
        return search(likelihood, plan, monitor, self._resume_state(), part, size / seen.n), monitor

    def _finish(self, likelihood: Any, theta: np.ndarray) -> None:
        """All that prediction needs, at the hyper-parameters found."""
        mode, arrays, value = likelihood.conclude(theta)
        self.kernel_, self.theta_ = likelihood.kernel.with_theta(theta), theta
        self.theta_names_ = hyperparameter_names(self.kernel_)
        rows = likelihood.seen.rows
        if self.method_ == "inducing":
            self._keep(rows_of(rows, self.kernel_, likelihood.rows), self._given_rows_[likelihood.rows])
        else:
            self._keep(rows, self._given_rows_)
        if self.method_ == "exact":
            self._N_, self._total_ = likelihood.seen.N, likelihood.seen.total
        self.dual_coef_ = arrays.pop("C")
        self._arrays_ = arrays
        self._decrement_, self.n_newton_ = float(mode.decrement), int(likelihood.newton_steps)
        self.log_marginal_likelihood_value_, self.n_evaluations_ = float(value), int(likelihood.evaluations)

    # ------------------------------------------------------------------------------------------- prediction

    def _latent(self) -> Latent:
        shared, held = (self.kernel_, self._kept(), self.dual_coef_), self._arrays_
        if self.method_ == "inducing":
            return LowRankLatent(*shared, held["Lm"], held["LH"])
        if self.dual_coef_.shape[1] == 1:
            return BinaryLatent(*shared, held["root"], factor_of(held["L"]))
        return SoftmaxLatent(*shared, held["E"], held["M"])

    def _values(self, X: Any, *, covariance: bool) -> Any:
        self._check_fitted()
        latent = self._latent()
        if self.kernel_.takes == "strings":
            return latent_rows(as_texts(X, "X", type(self).__name__), latent, covariance=covariance)
        data = self._predict_data(X)
        return engine.map(latent_batch, data, latent, covariance, n_jobs=self.n_jobs)

    def latent_mean_and_variance(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the latent functions at the rows of X.

        Parameters
        ----------
        X : array, sparse matrix, data frame of shape (n_samples, n_features), or sequence of strings

        Returns
        -------
        mean, variance : ndarrays of shape (n_samples,), or (n_samples, n_classes) for more than two classes
        """
        found = np.asarray(self._values(X, covariance=True))
        k = self.dual_coef_.shape[1]
        variance = np.einsum("ikk->ik", found[:, k:].reshape(-1, k, k))
        return (found[:, 0], variance[:, 0]) if k == 1 else (found[:, :k], variance)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, in the order of `classes_`, averaged over the posterior of the functions."""
        found = np.asarray(self._values(X, covariance=True))
        k = self.dual_coef_.shape[1]
        if k == 1:
            p = average_logistic(found[:, 0], found[:, 1])
            P = np.column_stack([average_logistic(-found[:, 0], found[:, 1]), p])
        else:
            P = average_softmax(found[:, :k], found[:, k:].reshape(-1, k, k))
        P /= P.sum(axis=1, keepdims=True)
        return P.astype(np.float32) if getattr(X, "dtype", None) == np.float32 else P

    def _scores(self, X: Any) -> Any:
        """The latent mean for two classes; logarithms of the averaged probabilities for more."""
        self._check_fitted()
        if self.dual_coef_.shape[1] == 1:
            return self._values(X, covariance=False)
        return np.log(np.maximum(self.predict_proba(X), np.finfo(np.float32).tiny))

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False) -> Any:
        """Laplace's approximation of the log marginal likelihood at other hyper-parameters.

        Parameters
        ----------
        theta : array-like, optional
            Logarithms of hyper-parameters as in `theta_`; None for those of the fit.
        eval_gradient : bool, default=False
            Whether the derivatives by theta come too.

        Returns
        -------
        float, or a pair of float and ndarray
        """
        self._check_fitted()
        if theta is None and not eval_gradient:
            return self.log_marginal_likelihood_value_
        values = other_theta(self, theta)
        seen = Counts(self.X_fit_, self._N_, self._total_)
        exact = BinaryLaplace if seen.n_latent == 1 else SoftmaxLaplace
        value, gradient = exact(self.kernel_, seen, self.n_jobs, self.max_iter_predict).value_and_gradient(
            values, bool(eval_gradient)
        )
        return (value, gradient) if eval_gradient else value


_EVIDENCE = ("history_", "certificate_", "n_iter_", "converged_", "n_features_in_", "feature_names_in_")
