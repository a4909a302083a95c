"""Bayesian ridge regression:  y ~ N(Xw + b, 1/alpha),  w ~ N(0, I/lambda),  with the most evident alpha and lambda."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.bayes._evidence import RidgeEvidence
from epicycle.bayes._regression import EVIDENCE_ARGUMENTS, EvidenceArguments, EvidenceRegression
from epicycle.bayes._rows import CompactRows
from epicycle.core._parameters import Domain, NoneOr, Real
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import stores_arguments


class BayesianRidge(EvidenceRegression):
    r"""Ridge regression whose penalty and noise are learnt from the data.

    .. math:: y \sim \mathcal N(Xw + b, \alpha^{-1}), \qquad w \sim \mathcal N(0, \lambda^{-1} I)

    and :math:`\alpha, \lambda` maximise the evidence :math:`p(y \mid \alpha, \lambda)`, times their gamma priors. The
    posterior mean of w is that of ridge regression with penalty :math:`\lambda / \alpha`. One pass over the rows, one
    decomposition of a p x p matrix; an iteration then costs O(p).

    Parameters
    ----------
    alpha_init, lambda_init : float, optional
        Precisions to begin with; by default one over the variance of y, and 1. The evidence may have several maxima.

    Attributes
    ----------
    lambda_ : float
        Precision of the coefficients.
    sigma_ : ndarray of shape (n_features, n_features)
        Covariance of the posterior.
    certificate_ : Certificate
        Newton decrement: how far the log evidence is below its maximum.

    Examples
    --------
    >>> from epicycle import BayesianRidge
    >>> model = BayesianRidge().fit([[0.0], [1.0], [2.0], [3.0]], [0.1, 0.9, 2.1, 2.9])
    >>> mean, std = model.predict([[4.0]], return_std=True)
    >>> print(f"{mean[0]:.2f} +- {std[0]:.2f}")
    3.89 +- 0.15
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **EvidenceRegression._parameters,
        "alpha_init": NoneOr(Real(minimum=0, inclusive=False)),
        "lambda_init": NoneOr(Real(minimum=0, inclusive=False)),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="bayes", catalogue=("B4",), engines=("memory", "files", "dask"), certificate="newton decrement"
    )

    alpha_init: float | None
    lambda_init: float | None
    lambda_: Any

    @stores_arguments(**EVIDENCE_ARGUMENTS)
    def __init__(
        self,
        *,
        tol: float = 1e-8,
        alpha_init: float | None = None,
        lambda_init: float | None = None,
        **shared: Unpack[EvidenceArguments],
    ) -> None: ...

    def _maximise(self, rows: CompactRows, dtype: Any) -> np.ndarray:
        problem = RidgeEvidence(rows, self._hyperpriors())
        alpha = self._start(rows) if self.alpha_init is None else float(self.alpha_init)
        state, trace, solution = problem.maximise(
            alpha,
            1.0 if self.lambda_init is None else float(self.lambda_init),
            tol=self.tol,
            max_iter=self.max_iter,
            monitor=self._monitor(self.max_iter, lambda _x: {}),
        )
        coef, covariance = problem.coefficients(state)
        self.alpha_, self.lambda_ = state.alpha, state.lambda_
        self.sigma_ = covariance.astype(dtype)
        self.scores_ = np.array(trace if self.compute_score else [])
        self._conclude(solution)
        return coef

    def _spread(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float, float]:
        columns = np.arange(self.n_features_in_)
        return columns, self.X_offset_, np.asarray(self.sigma_, np.float64), 1.0 / self.alpha_, 1.0, np.inf
