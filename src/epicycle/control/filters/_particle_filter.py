"""`ParticleFilter`: the distribution of the state as a cloud of weighted points."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.control.filters._kalman_result import KalmanFilterResult
from epicycle.control.filters._nonlinear_filter import Function, NonlinearFilter
from epicycle.control.systems._riccati import covariance_root
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import SHARED_PARAMETERS, Integer, Real, check_parameter
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core.estimator import in_catalogue

Array = np.ndarray


@in_catalogue("control", "G6", certificate="none")
class ParticleFilter(NonlinearFilter):
    r"""Bootstrap particle filter of a nonlinear system.

    Particles move by the dynamics with drawn noise and are weighted by the density of the observation,
    :math:`\omega_i \leftarrow \omega_i \, N(y_t; h(x_i), V)`. When their effective number :math:`1 / \sum_i \omega_i^2`
    falls below a share of all, they are drawn anew in proportion to their weights, systematically. The product of the
    mean weights is an unbiased estimate of the likelihood.

    Parameters
    ----------
    f : callable
        Dynamics ``f(X)``, or ``f(X, u)`` with controls, of all particles X (n_particles, n) at once.
    h : callable
        Observations ``h(X)`` of all particles, (n_particles, p).
    n_particles : int, default=1000
        Number of particles.
    resample_below : float, default=0.5
        Share of effective particles below which they are drawn anew.

    Attributes
    ----------
    effective_sizes_ : array (T,)
        Effective number of particles after each observation of the last series.
    particles_, weights_ : arrays (n_particles, n) and (n_particles,)
        The cloud at the end of the last series.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.control import ParticleFilter
    >>> walk = lambda X: X
    >>> model = ParticleFilter(walk, walk, [[0.1]], [[1.0]], mean=[0.0], covariance=[[10.0]], random_state=0)
    >>> bool(abs(model.filter([[1.0], [1.2], [np.nan], [0.9]]).mean[-1, 0] - 0.991) < 0.1)  # Kalman's: 0.991
    True
    """

    effective_sizes_: Array
    particles_: Array
    weights_: Array

    def __init__(
        self,
        f: Function,
        h: Function,
        W: Any,
        V: Any,
        *,
        mean: Any,
        covariance: Any,
        n_particles: int = 1000,
        resample_below: float = 0.5,
        random_state: Seed = None,
    ) -> None:
        super().__init__(f, h, W, V, mean=mean, covariance=covariance)
        check_parameter("ParticleFilter", "n_particles", n_particles, Integer(minimum=1))
        check_parameter("ParticleFilter", "resample_below", resample_below, Real(0, 1))
        check_parameter("ParticleFilter", "random_state", random_state, SHARED_PARAMETERS["random_state"])
        self.n_particles, self.resample_below, self.random_state = n_particles, float(resample_below), random_state

    def filter(self, y: Any, u: Any = None) -> KalmanFilterResult:
        """States given what was observed up to their time: means and covariances of the weighted particles."""
        seen, controls = self._observations(y, u)
        seed, n = seed_of(self.random_state), len(self.mean)
        roots = [covariance_root(self.covariance), covariance_root(self.W)]
        X = self.mean + stream(seed, "first").standard_normal((self.n_particles, n)) @ roots[0].T
        weight = np.full(self.n_particles, 1 / self.n_particles)
        rows: list[tuple[Array, Array, Array, Array, float]] = []
        sizes = []
        for t, (now, control) in enumerate(zip(seen, controls, strict=True)):
            before = _moments(X, weight)
            weight, density = self._weighted(X, weight, now)
            rows.append((*_moments(X, weight), *before, density))
            sizes.append(1 / (weight @ weight))
            if sizes[-1] < self.resample_below * self.n_particles:
                X, weight = self._resampled(X, weight, stream(seed, "resample", t).random())
            if t + 1 < len(seen):
                moved = self._cloud("f", self._dynamics(control)(X.copy()), n)
                X = moved + stream(seed, "noise", t).standard_normal((self.n_particles, n)) @ roots[1].T
        self.effective_sizes_, self.particles_, self.weights_ = np.array(sizes), X, weight
        fm, fc, pm, pc, densities = (np.stack(column) for column in zip(*rows, strict=True))
        return KalmanFilterResult(fm, fc, pm, pc, float(densities.sum()), densities)

    def _weighted(self, X: Array, weight: Array, y: Array) -> tuple[Array, float]:
        known = ~np.isnan(y)
        if not known.any():
            return weight, 0.0
        expected = self._cloud("h", self.h(X.copy()), len(self.V))
        L = np.linalg.cholesky(self.V[np.ix_(known, known)])
        off = np.linalg.solve(L, (y - expected)[:, known].T)
        log = -0.5 * (off**2).sum(axis=0)
        constant = -0.5 * len(L) * np.log(2 * np.pi) - np.log(np.diag(L)).sum()
        top = log.max()
        scaled = weight * np.exp(log - top)
        total = scaled.sum()
        return scaled / total, float(top + np.log(total) + constant)

    def _resampled(self, X: Array, weight: Array, start: float) -> tuple[Array, Array]:
        """Systematic resampling: one draw, then equal steps through the cumulated weights."""
        n = self.n_particles
        places = (start + np.arange(n)) / n
        chosen = np.minimum(np.searchsorted(np.cumsum(weight), places), n - 1)
        return X[chosen], np.full(n, 1 / n)

    def _cloud(self, name: str, values: Any, columns: int) -> Array:
        cloud = np.asarray(values, dtype=np.float64)
        if cloud.shape != (self.n_particles, columns) or not np.isfinite(cloud).all():
            raise DataError(
                f"{name}: got shape {cloud.shape}; expected ({self.n_particles}, {columns}), finite: a row for each "
                "particle"
            )
        return cloud


def _moments(X: Array, weight: Array) -> tuple[Array, Array]:
    mean = weight @ X
    off = X - mean
    return mean, (off.T * weight) @ off
