"""Automatic relevance determination:  y ~ N(Xw + b, 1/alpha),  w_j ~ N(0, 1/lambda_j)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.bayes._regression import EVIDENCE_ARGUMENTS, EvidenceArguments, EvidenceRegression
from epicycle.bayes._relevance import RelevanceEvidence
from epicycle.bayes._rows import CompactRows
from epicycle.core._parameters import Domain, Real
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import stores_arguments


class ARDRegression(EvidenceRegression):
    r"""Linear regression that finds out which columns matter (automatic relevance determination).

    .. math:: y \sim \mathcal N(Xw + b, \alpha^{-1}), \qquad w_j \sim \mathcal N(0, \lambda_j^{-1})

    and :math:`\alpha, \lambda_1, \ldots, \lambda_p` maximise the evidence, times their gamma priors. Precisions of
    columns that explain nothing grow without bound; such columns are left out. One pass over the rows; an iteration
    costs a factorisation of the columns that are left.

    Parameters
    ----------
    threshold_lambda : float, default=1e4
        Precision at which a column is left out.

    Attributes
    ----------
    lambda_ : ndarray of shape (n_features,)
        Precisions of the coefficients; at or above `threshold_lambda` for columns that are left out.
    sigma_ : ndarray of shape (n_active, n_active)
        Covariance of the posterior of the columns in `active_`.
    active_ : ndarray of shape (n_active,)
        The columns that are left.
    certificate_ : Certificate
        Largest derivative of the log evidence in the logarithm of a precision.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import ARDRegression
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(200, 10))
    >>> y = X[:, 2] - 2 * X[:, 7] + 0.1 * random.normal(size=200)
    >>> np.flatnonzero(np.abs(ARDRegression(threshold_lambda=1000).fit(X, y).coef_) > 0.5).tolist()
    [2, 7]
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **EvidenceRegression._parameters,
        "threshold_lambda": Real(minimum=0),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="bayes", catalogue=("B4",), engines=("memory", "files", "dask"), certificate="gradient norm"
    )

    threshold_lambda: float
    lambda_: np.ndarray
    active_: np.ndarray

    @stores_arguments(**EVIDENCE_ARGUMENTS)
    def __init__(
        self,
        *,
        tol: float = 1e-6,
        threshold_lambda: float = 1e4,
        **shared: Unpack[EvidenceArguments],
    ) -> None: ...

    def _maximise(self, rows: CompactRows, dtype: Any) -> np.ndarray:
        problem = RelevanceEvidence(rows, self._hyperpriors(), self.threshold_lambda)
        monitor = self._monitor(self.max_iter, lambda _x: {})
        state, trace, solution = problem.maximise(
            self._start(rows), tol=self.tol, max_iter=self.max_iter, monitor=monitor
        )
        coef, covariance = problem.finished(state)
        self.alpha_, self.active_ = state.alpha, state.active
        self.lambda_ = np.full(len(coef), float(self.threshold_lambda))
        self.lambda_[state.active] = state.lambdas
        self.sigma_ = covariance.astype(dtype)
        self.scores_ = np.array(trace if self.compute_score else [])
        self._conclude(solution)
        return coef

    def _spread(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float, float]:
        return self.active_, self.X_offset_, np.asarray(self.sigma_, np.float64), 1.0 / self.alpha_, 1.0, np.inf
