"""The base of Gaussian process regression and classification: their kernel, their search, and its evidence."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle.core._exceptions import ParameterError
from epicycle.core._random import seed_of
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.data import ArrayData
from epicycle.gp._model import theta_argument
from epicycle.gp._search import GP_DOCS, Likelihood, Plan, certify, maximise, warnings_at_bounds
from epicycle.kernels._kernel import Kernel
from epicycle.kernels._machine import KernelMachine, as_kernel
from epicycle.kernels._scikit_learn import ScikitLearnKernel
from epicycle.kernels._stationary import Gaussian
from epicycle.optim import Solution


class GaussianProcess(KernelMachine):
    """A kernel machine whose hyper-parameters maximise a marginal likelihood."""

    _docs: ClassVar[Mapping[str, str]] = GP_DOCS
    _documented_attributes: ClassVar[tuple[str, ...]] = ("X_fit_", "search_attributes")
    _card: ClassVar[MethodCard] = MethodCard(
        family="kernel", catalogue=("C4",), engines=("memory",), certificate="projected gradient", keeps_rows=True
    )

    method: str
    optimizer: Any
    n_restarts_optimizer: int
    n_inducing: int | None
    tol: float
    max_iter: int
    random_state: Any
    method_: str
    theta_: np.ndarray
    log_marginal_likelihood_value_: float

    def _named_kernel(self, data: ArrayData | None) -> Kernel:
        n_columns = None if data is None else data.n_features
        return Gaussian() if self.kernel is None else as_kernel(self.kernel, None, 3, 1.0, n_columns)

    def _seed(self) -> int:
        """The seed of this fit, drawn anew by every call; of a fit that goes on, that of its beginning."""
        return int((self._resume_state() or {}).get("seed", seed_of(self.random_state)))

    def _choose_method(self, small: bool, n: int, n_inducing: int) -> int:
        """Set `method_`, and return how many rows stand for all n of them where it is an approximation."""
        foreign = isinstance(self.kernel_, ScikitLearnKernel)
        if foreign and self.method not in ("auto", "exact"):
            raise ParameterError(
                f"{type(self).__name__}: method={self.method!r} with kernel={self.kernel_!r:.60} of scikit-learn; "
                "expected 'exact', or a kernel of epicycle"
            )
        exact = small or foreign or self.kernel_.takes == "precomputed"
        self.method_ = self.method if self.method != "auto" else "exact" if exact else "inducing"
        return min(n, self.n_inducing or max(n_inducing, int(np.sqrt(n))))

    def _search(
        self,
        likelihood: Likelihood,
        theta: np.ndarray,
        bounds: np.ndarray,
        assign: Callable[[np.ndarray], None],
        n_rows: int,
        n_subset: int,
        seed: int,
        evidence: Callable[[], tuple[str, float, str]],
    ) -> None:
        """Find the best hyper-parameters from theta on, and conclude the fit.

        Parameters
        ----------
        assign : sets the attributes of the fit for given hyper-parameters
        n_subset : rows of a rehearsal, 0 for none
        evidence : (kind, value, words) of a second quantity that has to be small, once the attributes are set
        """

        def attributes(theta: np.ndarray) -> dict[str, Any]:
            assign(theta)
            return self._learnt_attributes()

        monitor = self._monitor(self.max_iter, attributes)
        plan = Plan(theta, bounds, self.optimizer, self.n_restarts_optimizer, self.tol, self.max_iter, seed)
        n_subset = n_subset if self.kernel_.takes != "precomputed" else 0
        found = maximise(likelihood, plan, monitor, self._resume_state(), n_rows, n_subset)
        assign(found.theta)
        if np.isnan(self.log_marginal_likelihood_value_):  # of "cg": the estimate of the search, not another one
            self.log_marginal_likelihood_value_ = float(found.value)
        self._run.notices.extend(warnings_at_bounds(self.kernel_, self.optimizer))
        certificate, reason = certify(found, bounds, likelihood, self.tol, *evidence())
        history = monitor.history()
        self._conclude(
            Solution(found.theta, -found.value, history, certificate, found.n_iter, reason, state=found.state)
        )

    @abstractmethod
    def _likelihood(self) -> Any:
        """The likelihood of the rows that were kept."""

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True) -> Any:
        """The log marginal likelihood (of classification: Laplace's approximation of it) at other hyper-parameters.

        %(log_marginal_likelihood)s
        """
        self._check_fitted()
        if theta is None and not eval_gradient:
            return np.float64(self.log_marginal_likelihood_value_)
        if self.kernel_.takes == "precomputed" or self.method_ == "inducing":
            raise ParameterError("log_marginal_likelihood: the data of the fit was not kept; expected theta=None")
        values = theta_argument(theta, len(self.theta_))
        likelihood = self._likelihood()
        likelihood.start(values)
        value, gradient = likelihood.value_and_gradient(values, bool(eval_gradient))
        if not clone_kernel:
            self.kernel_ = self.kernel_.with_theta(values[: len(self.kernel_.theta)])  # the noise may come after
        return (np.float64(value), gradient) if eval_gradient else np.float64(value)
