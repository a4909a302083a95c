"""What a fit of Gaussian process regression leaves: all that its answers need, and the evidence."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from epicycle.gp._mean_functions import MeanFunction
from epicycle.gp._model import Model
from epicycle.gp._observations import Observations
from epicycle.gp._predictions import Answers
from epicycle.gp._starts import Likelihood
from epicycle.gp._verdict import verdict
from epicycle.kernels._machine import rows_of
from epicycle.linalg._jitter import JitterWarning
from epicycle.optim import Solution
from epicycle.optim._box_bfgs import Summit

__all__ = ["Outcome"]


class Outcome(Answers):
    """From a likelihood and the hyper-parameters found to the fitted attributes."""

    tol: float

    def _finish(self, likelihood: Any, model: Model, summit: Summit, mean: MeanFunction) -> None:
        """All that prediction needs, at the hyper-parameters found."""
        found = model.at(summit.theta)
        seen = likelihood.seen
        self.kernel_, self.theta_, self.theta_names_ = found.kernel, summit.theta, model.names
        noise = found.noise * self._y_scale_**2
        self.noise_variance_ = float(noise[0]) if self._vector_ else noise
        self._noise_ = found.noise
        self.mean_function_ = mean
        if self.method_ == "inducing":
            end, self._backward_error_ = likelihood.conclude(summit.theta)
            chosen = likelihood.rows
            self._keep(rows_of(seen.rows, self.kernel_, chosen), self._given_rows_[chosen])
            back = scipy.linalg.solve_triangular(
                end.Lm, scipy.linalg.cho_solve((end.LB, True), np.hstack([end.VY, end.VH])), lower=True, trans=1
            )
            t = seen.Y.shape[1]
            self._SH_, self.mean_coef_, self._LA_ = back[:, t:], end.solved.beta, end.solved.LA
            self.alpha_ = back[:, :t] - self._SH_ @ self.mean_coef_
            self._Lm_, self._LB_ = end.Lm, end.LB
            self.y_train_, self.jitter_, value = seen.Y[chosen], likelihood.jitter, end.value
            self.inducing_rows_ = self._first_of_group(seen)[chosen]
        else:
            self._keep(seen.rows, self._given_rows_)
            self._weight_, self._known_, self._spread_ = seen.weight, seen.alpha, seen.spread
            self._group_, self.y_train_ = seen.group, seen.Y
            if self.method_ == "cg":
                solved, self._D_, self._backward_error_ = likelihood.conclude(summit.theta)
                self.jitter_, value, self._rank_ = 0.0, summit.value, likelihood.rank
            else:
                solved, factored, self.jitter_, value, self._backward_error_ = likelihood.conclude(summit.theta)
                self.L_ = np.tril(factored.L)
            self.mean_coef_, self.alpha_, self._SH_, self._LA_ = solved.beta, solved.C, solved.SH, solved.LA
        self.log_marginal_likelihood_value_ = float(value)
        self.n_evaluations_ = likelihood.evaluations

    def _first_of_group(self, seen: Observations) -> np.ndarray:
        """For every distinct row, the first row of X that it is."""
        first = np.full(seen.n, -1)
        first[seen.group[::-1]] = np.arange(len(seen.group))[::-1]
        return self._given_rows_[first]

    def _certify(self, summit: Summit, model: Model, monitor: Any, likelihood: Likelihood) -> None:
        error = self._backward_error_
        words = f"the coefficients solve a linear system that differs from K + D by {error:.1e}, relative"
        if self.jitter_ > 0:
            where = "kernel of the inducing rows" if self.method_ == "inducing" else "noise variances"
            words += f"; {self.jitter_:.1e} was added to the {where}"
            self._run.notices.append(
                JitterWarning(
                    f"{type(self).__name__}: the covariance matrix is not positive definite to working precision; "
                    f"jitter_={self.jitter_:.2e} was added to the {where}. Equal or close rows with little noise do "
                    "this: learn the noise, or give alpha > 0."
                )
            )
        certificate, reason = verdict(summit, model.bounds, likelihood, self.tol, "backward error", error, words)
        self._conclude(
            Solution(
                summit.theta, -summit.value, monitor.history(), certificate, summit.n_iter, reason, state=summit.state
            )
        )  # fmt: skip
