"""Gaussian process classification by Laplace's approximation:  P(class k | x) = softmax(f(x))_k,  f_k ~ GP(0, k).

For two classes one latent function is enough, P = 1 / (1 + exp(-f)). The posterior of f at the observed rows is taken
as a normal distribution at its mode, with the curvature there; it gives an approximation of the marginal likelihood,
which the hyper-parameters maximise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle import engine
from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import Choice, Domain, Integer
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.gp._base import GaussianProcess
from epicycle.gp._binary_parts import (
    fit_parts,
    log_marginal_likelihood as likelihood_of_parts,
    pair_scores,
    rest_probabilities,
    solution_of,
)
from epicycle.gp._laplace import BinaryLaplace, SoftmaxLaplace
from epicycle.gp._laplace_low_rank import LowRankLaplace
from epicycle.gp._latent import (
    BinaryLatent,
    Latent,
    LowRankLatent,
    SoftmaxLatent,
    average_logistic,
    average_softmax,
    latent_batch,
    latent_rows,
)
from epicycle.gp._model import default_kernel, hyperparameter_names
from epicycle.gp._observations import Counts, count_labels
from epicycle.gp._search import GP_PARAMETERS, SUBSET_ROWS, require_finite_bounds
from epicycle.kernels._machine import KernelClassifier, select_rows
from epicycle.kernels._prepared import as_texts
from epicycle.linalg._cholesky import factor_of

_EXACT_ROWS = 1000  # times classes, up to which "auto" is exact: each Newton step factors a matrix for every class
_INDUCING_ROWS = 128  # by default; Newton's matrix has as many rows for every class


class GaussianProcessClassifier(GaussianProcess, KernelClassifier):
    r"""Gaussian process classification by Laplace's approximation, for two classes or several at once.

    .. math:: P(y = k \mid x) = \frac{e^{f_k(x)}}{\sum_l e^{f_l(x)}}, \qquad f_k \sim \mathcal{GP}(0, k),

    for two classes :math:`1 / (1 + e^{-f(x)})` with one function. Probabilities are averages over the posterior of f,
    not those of its mean. A fitted object keeps the training rows (of the method "inducing" only some).

    Parameters
    ----------
    method : {"auto", "exact", "inducing"}, default="auto"
        "exact" factors matrices of all pairs of rows. "inducing" puts the kernel of `n_inducing` of the rows in
        the place of the whole. "auto" is "exact" up to 1,000 rows (times classes, where there are more than two), and
        where the classes are so many that it costs less.
    optimizer : {"bfgs", "fmin_l_bfgs_b"}, callable or None, default="bfgs"
        How the approximate marginal likelihood is maximised; None leaves the kernel as it is.
    multi_class : {"softmax", "one_vs_rest", "one_vs_one"}, default="softmax"
        More than two classes: all at once, one classifier for each class against the rest, or one for each pair of
        classes, which has no probabilities. Every such part learns its own hyper-parameters.
    max_iter_predict : int, default=100
        Maximum number of Newton steps to the mode of the posterior.
    warm_start : bool, default=False
        Accepted for compatibility; the search for a mode always begins at the one before, and the mode does not depend
        on it.
    n_inducing : int, optional
        Rows that stand for all in the method "inducing"; default: up to 128.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_classes_ : int
        Number of classes.
    base_estimator_ : GaussianProcessClassifier
        The estimator that holds the latent functions: this one.
    kernel_ : Kernel, or list of kernels
        The kernel with the hyper-parameters found; one for each of `estimators_` where there are any.
    estimators_ : list of GaussianProcessClassifier
        The classifiers of two classes that `multi_class` asks for; they hold the attributes `X_fit_` and `dual_coef_`.
    theta_ : ndarray
        Logarithms of its hyper-parameters.
    log_marginal_likelihood_value_ : float
        Laplace's approximation at theta_; the mean over `estimators_`.
    dual_coef_ : ndarray of shape (n_rows, 1) or (n_rows, n_classes)
        Coefficients of these rows in the latent functions.
    n_newton_ : int
        Newton steps to the modes of all evaluations.
    certificate_ : Certificate
        The projected gradient of the approximate log marginal likelihood, or Newton's decrement at the mode, whichever
        is larger. A stationary point is a local optimum as a rule; further starts may find a better one.

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
        **GP_PARAMETERS,
        "method": Choice("auto", "exact", "inducing"),
        "multi_class": Choice("softmax", "one_vs_rest", "one_vs_one"),
        "max_iter_predict": Integer(minimum=1),
    }

    @stores_arguments(warm_start=False, tol=1e-5, max_iter=200, random_state=None, n_jobs=None, verbose=0)
    def __init__(
        self,
        kernel: Any = None,
        *,
        method: str = "auto",
        optimizer: Any = "bfgs",
        n_restarts_optimizer: int = 0,
        max_iter_predict: int = 100,
        copy_X_train: bool = True,
        multi_class: str = "softmax",
        n_inducing: int | None = None,
        inducing: str = "greedy",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @property
    def n_classes_(self) -> int:
        """Number of classes."""
        return len(self.classes_)

    @property
    def base_estimator_(self) -> Self:
        """The estimator that holds the latent functions: this one, which treats all classes at once."""
        self._check_fitted()
        return self

    # ------------------------------------------------------------------------------------------- fit

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with labels y."""
        rows, codes, weight, kept = self._labelled(X, y, sample_weight)
        if self._in_parts():
            return self._fit_parts(X, codes, weight, kept)
        obs = count_labels(rows, codes, weight, len(self.classes_), self.kernel_)
        if self.kernel is None:  # latent values of variance 4: probabilities between 0.02 and 0.98 as a rule
            self.kernel_ = default_kernel(obs.rows, 4.0, (1e-3, 1e3))
        require_finite_bounds(self.kernel_, self.n_restarts_optimizer)
        seed = self._seed()
        likelihood = self._build_likelihood(obs, seed)
        self._given_rows_ = kept
        theta, bounds = self.kernel_.theta, self.kernel_.theta_bounds
        size = SUBSET_ROWS if obs.n_latent == 1 else SUBSET_ROWS // 2
        n_subset = size if obs.n > 2 * size else 0

        def evidence() -> tuple[str, float, str]:
            error = self._decrement_
            return "newton decrement", error, f"the mode of the posterior is found to a Newton decrement of {error:.1e}"

        self._search(likelihood, theta, bounds, lambda t: self._assign(likelihood, t), obs.n, n_subset, seed, evidence)
        del self._given_rows_
        return self

    def _in_parts(self) -> bool:
        return self.multi_class != "softmax" and len(self.classes_) > 2

    def _fit_parts(self, X: Any, codes: np.ndarray, weight: np.ndarray, kept: np.ndarray) -> Self:
        """Fit a classifier for each class or pair; rows of weight 0 are told by their weights."""
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        all_codes, all_weights = np.zeros(n, dtype=np.intp), np.zeros(n)
        all_codes[kept], all_weights[kept] = codes, weight
        parts = fit_parts(self, X, all_codes, all_weights)
        self.estimators_ = parts
        self.kernel_: Any = [part.kernel_ for part in parts]
        solution = solution_of(parts)
        self.theta_, self.theta_names_ = solution.x, [name for part in parts for name in part.theta_names_]
        self.log_marginal_likelihood_value_, self.method_ = -solution.value, parts[0].method_
        self.n_newton_ = sum(part.n_newton_ for part in parts)
        self.n_evaluations_ = sum(part.n_evaluations_ for part in parts)
        self._conclude(solution)
        return self

    def _build_likelihood(self, obs: Counts, seed: int) -> Any:
        """Laplace's approximation by the method that was asked for; sets `method_`."""
        n, k = obs.n, obs.n_latent
        exact = BinaryLaplace if k == 1 else SoftmaxLaplace
        # k factors of size n against one of size mk: with many classes and few rows no approximation is cheaper.
        few = k * n**3 <= (k * min(n, self.n_inducing or _INDUCING_ROWS)) ** 3 and n <= _EXACT_ROWS
        m = self._choose_method(n * k <= _EXACT_ROWS or few, n, _INDUCING_ROWS)
        arguments = (self.kernel_, obs, self.n_jobs, self.max_iter_predict)
        if self.method_ == "inducing":
            return LowRankLaplace(*arguments, m, self.inducing, seed, exact)
        self._require(n, 3.0 if k == 1 else 2.0 * k + 3)
        return exact(*arguments)

    def _assign(self, likelihood: Any, theta: np.ndarray) -> None:
        """Set all attributes that prediction needs, for hyper-parameters theta."""
        mode, arrays, value = likelihood.conclude(theta)
        self.kernel_, self.theta_ = likelihood.kernel.with_theta(theta), theta
        self.theta_names_ = hyperparameter_names(self.kernel_)
        rows = likelihood.obs.rows
        if self.method_ == "inducing":
            self._keep(select_rows(rows, self.kernel_, likelihood.rows), self._given_rows_[likelihood.rows])
        else:
            self._keep(rows, self._given_rows_)
        if self.method_ == "exact":
            self._N_, self._total_ = likelihood.obs.N, likelihood.obs.total
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
        %(X_new)s

        Returns
        -------
        mean, variance : ndarrays of shape (n_samples,), or (n_samples, n_classes) for more than two classes
        """
        self._check_fitted()
        if self._in_parts():
            raise ParameterError(
                "latent_mean_and_variance: Returning the mean and variance of the latent function f is only supported "
                f"for binary classification and multi_class='softmax', not for {self.multi_class!r}; see estimators_"
            )
        found = np.asarray(self._values(X, covariance=True))
        k = self.dual_coef_.shape[1]
        variance = np.einsum("ikk->ik", found[:, k:].reshape(-1, k, k))
        return (found[:, 0], variance[:, 0]) if k == 1 else (found[:, :k], variance)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, in the order of `classes_`, averaged over the posterior of the functions."""
        self._check_fitted()
        if self._in_parts():
            if self.multi_class == "one_vs_one":
                raise ParameterError(
                    "predict_proba: one_vs_one multi-class mode does not support predicting probability estimates. "
                    "Use one_vs_rest mode instead, or softmax."
                )
            return rest_probabilities(self.estimators_, X)
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
        """The latent mean for two classes; logarithms of the averaged probabilities for more; votes of pairs."""
        self._check_fitted()
        if self._in_parts() and self.multi_class == "one_vs_one":
            return pair_scores(self.estimators_, X, len(self.classes_))
        if self._in_parts():
            return np.log(np.maximum(self.predict_proba(X), np.finfo(np.float32).tiny))
        if self.dual_coef_.shape[1] == 1:
            return self._values(X, covariance=False)
        return np.log(np.maximum(self.predict_proba(X), np.finfo(np.float32).tiny))

    def _likelihood(self) -> Any:
        obs = Counts(self.X_fit_, self._N_, self._total_)
        exact = BinaryLaplace if obs.n_latent == 1 else SoftmaxLaplace
        return exact(self.kernel_, obs, self.n_jobs, self.max_iter_predict)

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True) -> Any:
        """Laplace's approximation of the log marginal likelihood at other hyper-parameters.

        %(log_marginal_likelihood)s
        """
        self._check_fitted()
        if self._in_parts() and not (theta is None and not eval_gradient):
            return likelihood_of_parts(self.estimators_, theta, eval_gradient)
        return super().log_marginal_likelihood(theta, eval_gradient, clone_kernel)
