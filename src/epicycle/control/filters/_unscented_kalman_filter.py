"""`UnscentedKalmanFilter`: means and covariances through points that carry them."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.control.filters._nonlinear_filter import Function, GaussianFilter, conditioned
from epicycle.control.systems._linearize import evaluate
from epicycle.control.systems._riccati import covariance_root
from epicycle.core._parameters import Real, check_parameter
from epicycle.core.estimator import in_catalogue

Array = np.ndarray


@in_catalogue("control", "G6", certificate="none")
class UnscentedKalmanFilter(GaussianFilter):
    r"""Filter of a nonlinear system without derivatives.

    Means and covariances after a function are those of its values at :math:`2n + 1` points
    :math:`\hat x, \; \hat x \pm (\sqrt{(n + \lambda) P})_j`, with weights that give back :math:`\hat x` and P; linear
    systems are filtered exactly.

    Parameters
    ----------
    alpha : float, default=1.0
        Spread of the points, :math:`\lambda = \alpha^2 (n + \kappa) - n`.
    beta : float, default=0.0
        Added to the weight of the middle point in covariances; 2 is best for Gaussians when `alpha` is small.
    kappa : float, default=1.0
        See `alpha`.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.control import UnscentedKalmanFilter
    >>> model = UnscentedKalmanFilter(np.sin, lambda x: x**2, [[0.1]], [[0.1]], mean=[1.0], covariance=[[0.2]])
    >>> model.filter([[0.9], [0.8]]).mean.round(3).ravel()
    array([0.872, 0.809])
    """

    def __init__(
        self,
        f: Function,
        h: Function,
        W: Any,
        V: Any,
        *,
        mean: Any,
        covariance: Any,
        alpha: float = 1.0,
        beta: float = 0.0,
        kappa: float = 1.0,
    ) -> None:
        super().__init__(f, h, W, V, mean=mean, covariance=covariance)
        for name, value, low in (("alpha", alpha, 0.0), ("beta", beta, 0.0), ("kappa", kappa, 0.0)):
            check_parameter("UnscentedKalmanFilter", name, value, Real(low, inclusive=name != "alpha"))
        self.alpha, self.beta, self.kappa = float(alpha), float(beta), float(kappa)

    def _through(self, function: Function, x: Array, P: Array) -> tuple[Array, Array, Array]:
        """Mean, covariance, and covariance with x, of a function of a Gaussian."""
        n = len(x)
        scale = self.alpha**2 * (n + self.kappa)
        root = np.sqrt(scale) * covariance_root(P)
        points = np.vstack([x, x + root.T, x - root.T])
        weight = np.full(2 * n + 1, 0.5 / scale)
        weight[0] = 1 - n / scale
        second = weight.copy()
        second[0] += 1 - self.alpha**2 + self.beta
        after = np.stack([evaluate(function, point) for point in points])
        mean = weight @ after
        off = after - mean
        return mean, (off.T * second) @ off, ((points - x).T * second) @ off

    def _predict(self, x: Array, P: Array, f: Function) -> tuple[Array, Array]:
        mean, covariance, _ = self._through(f, x, P)
        return mean, covariance + self.W

    def _update(self, x: Array, P: Array, y: Array, known: Array) -> tuple[Array, Array, float]:
        mean, covariance, cross = self._through(self.h, x, P)
        S = (covariance + self.V)[np.ix_(known, known)]
        return conditioned(x, P, (y - mean)[known], cross[:, known], S)
