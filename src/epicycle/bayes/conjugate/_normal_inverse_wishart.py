r"""Normal vectors of unknown mean m and covariance V:  V ~ InverseWishart(nu, psi),  m | V ~ N(mu, V / kappa).

After n rows with mean x and scatter S around it: kappa' = kappa + n, nu' = nu + n, mu' = mu + n/kappa' (x - mu),
psi' = psi + S + kappa n / kappa' (x - mu)(x - mu)'. The normaliser is
Z = 2^(nu p / 2) Gamma_p(nu / 2) |psi|^(-nu/2) (2 pi / kappa)^(p/2), and the evidence Z' / Z (2 pi)^(-n p / 2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.stats
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import multigammaln

from epicycle.bayes.conjugate._base import ConjugateModel, MeanCovariance, MeanVariance
from epicycle.bayes.conjugate._data import as_columns, as_weights, finite, positive, require_rows
from epicycle.bayes.conjugate._plots import plot_intervals
from epicycle.bayes.conjugate._predictive import MultivariateT
from epicycle.core._checks import count
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._plot_style import Axes
from epicycle.core._random import Seed, stream
from epicycle.stats._distribution import Distribution, IntervalKind, inverse_gamma, student_t


class _Rows(NamedTuple):
    n: float
    mean: np.ndarray
    #: Sum of products around the mean.
    scatter: np.ndarray


@dataclass(frozen=True, eq=False)
class NormalInverseWishart(ConjugateModel):
    r"""Vectors of unknown mean and covariance, with a normal-inverse-Wishart prior of both.

    .. math:: x_i \sim N(m, V), \quad m \mid V \sim N(\mu, V / \kappa), \quad V \sim \mathrm{InvWishart}(\nu, \Psi) .

    By itself the mean has a multivariate t distribution, and so has the next observation.

    Parameters
    ----------
    mu : array-like of shape (p,)
        Prior guess of the mean.
    kappa : float
        Observations that this guess is worth.
    nu : float
        Degrees of freedom of the prior of the covariance, above p - 1.
    psi : array-like of shape (p, p)
        Its scale matrix, positive definite: nu times a guess of the covariance.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.bayes.conjugate import NormalInverseWishart
    >>> rows = np.random.default_rng(0).normal([1.0, -1.0], [1.0, 2.0], (500, 2))
    >>> posterior = NormalInverseWishart([0.0, 0.0], 0.01, 4.0, np.eye(2)).update(rows)
    >>> print(posterior.mean().mean.round(2), np.diag(posterior.mean().covariance).round(2))
    [ 0.91 -1.02] [0.97 3.74]
    """

    mu: Any
    kappa: float
    nu: float
    psi: Any

    _parameter = "mean"

    def __post_init__(self) -> None:
        mu, psi = _array("mu", self.mu), _array("psi", self.psi)
        mu, psi = np.atleast_1d(mu), np.atleast_2d(psi)
        p = len(mu)
        if mu.ndim != 1 or p == 0:
            raise ParameterError(f"mu: shape {mu.shape}; expected (p,)")
        if psi.shape != (p, p):
            raise ParameterError(f"psi: shape {psi.shape}; expected {(p, p)}, as mu has {p} entries")
        if np.abs(psi - psi.T).max() > 1e-8 * np.abs(psi).max():
            raise ParameterError("psi: is not symmetric")
        _factor(psi)
        object.__setattr__(self, "kappa", positive("kappa", self.kappa))
        nu = finite("nu", self.nu)
        if nu <= p - 1:
            raise ParameterError(f"nu={self.nu!r}; expected more than {p - 1}, p - 1: the prior would be improper")
        object.__setattr__(self, "nu", nu)
        for name, value in (("mu", mu), ("psi", (psi + psi.T) / 2)):
            value.flags.writeable = False
            object.__setattr__(self, name, value)

    @property
    def _p(self) -> int:
        return len(self.mu)

    def marginals(self) -> dict[str, Distribution]:
        """The distributions of every mean and every variance."""
        df, variances = self.nu - self._p + 1, np.diagonal(self.psi)
        scales = np.sqrt(variances / (self.kappa * df))
        means = {f"mean {j}": student_t(df, float(self.mu[j]), float(scales[j])) for j in range(self._p)}
        return means | {f"variance {j}": inverse_gamma(df / 2, float(variances[j]) / 2) for j in range(self._p)}

    def logpdf(self, mean: Any, covariance: Any) -> float:
        """Logarithm of the joint density at one mean and one covariance; -inf where that is not positive definite."""
        m, V = np.asarray(mean, dtype=np.float64), np.asarray(covariance, dtype=np.float64)
        try:
            L = cholesky(V, lower=True)
        except LinAlgError:
            return float("-inf")
        log_det = 2 * float(np.log(np.diagonal(L)).sum())
        half = solve_triangular(L, np.column_stack([m - self.mu, _factor(self.psi)]), lower=True)
        away, trace = float(half[:, 0] @ half[:, 0]), float((half[:, 1:] ** 2).sum())
        return -(self.nu + self._p + 2) / 2 * log_det - trace / 2 - self.kappa * away / 2 - self._log_normaliser()

    def mode(self) -> MeanCovariance:
        """Mean and covariance of largest joint density."""
        return MeanCovariance(self.mu, self.psi / (self.nu + self._p + 2))

    def mean(self) -> MeanCovariance:
        """The means of both; NaN where there are none, for `nu` up to p and p + 1."""
        p = self._p
        mean = self.mu if self.nu > p else np.full(p, np.nan)
        return MeanCovariance(mean, self.psi / (self.nu - p - 1) if self.nu > p + 1 else np.full((p, p), np.nan))

    def variance(self) -> MeanCovariance:
        """The variances of the means and of every entry of the covariance; NaN where there are none."""
        p, nu = self._p, self.nu
        found = np.array([d.variance() for d in list(self.marginals().values())[:p]])
        d = np.diagonal(self.psi)
        entries = np.full((p, p), np.nan)
        if nu > p + 3:
            entries = (nu - p + 1) * self.psi**2 + (nu - p - 1) * np.outer(d, d)
            entries /= (nu - p) * (nu - p - 1) ** 2 * (nu - p - 3)
        return MeanCovariance(found, entries)

    def interval(self, level: float = 0.95, kind: IntervalKind = "equal-tailed") -> MeanVariance:
        """The intervals of every mean and every variance by itself, each of shape (p, 2)."""
        ends = np.array([d.interval(level, kind) for d in self.marginals().values()])
        return MeanVariance(ends[: self._p], ends[self._p :])

    def sample(self, n: int = 1, random_state: Seed = None) -> MeanCovariance:
        rng, size, p = stream(random_state, "sample"), count("n", n), self._p
        drawn = scipy.stats.invwishart(self.nu, self.psi).rvs(size, random_state=rng) if size else np.empty(0)
        V = np.reshape(drawn, (size, p, p))
        z = rng.standard_normal((size, p, 1))
        return MeanCovariance(self.mu + (np.linalg.cholesky(V / self.kappa) @ z)[..., 0], V)

    def predictive(self) -> MultivariateT:
        """The distribution of the next observation: the multivariate t."""
        df = self.nu - self._p + 1
        return MultivariateT(df, self.mu, self.psi * (self.kappa + 1) / (self.kappa * df))

    def _statistics(self, data: Any, sample_weight: Any) -> _Rows:
        p = self._p
        empty = np.size(data) == 0
        X = np.empty((0, p)) if empty else as_columns(data, (p,), f"{p}, as mu has entries")
        v = as_weights(sample_weight, len(X))
        n = float(v.sum())
        if n == 0:
            return _Rows(0.0, np.zeros(p), np.zeros((p, p)))
        mean = v @ X / n
        away = X - mean
        return _Rows(n, mean, (away * v[:, None]).T @ away)

    def _updated(self, statistics: _Rows) -> Self:
        n, mean, scatter = statistics
        kappa, away = self.kappa + n, mean - self.mu
        psi = self.psi + scatter + self.kappa * n / kappa * np.outer(away, away)
        if not np.isfinite(psi).all():
            raise DataError("data: its squares overflow; scale it")
        return replace(self, mu=self.mu + n / kappa * away, kappa=kappa, nu=self.nu + n, psi=(psi + psi.T) / 2)

    def _maximum_likelihood(self, statistics: _Rows) -> MeanCovariance:
        """Mean, and mean product around it; the likelihood is unbounded where that is singular."""
        require_rows(statistics.n, type(self).__name__)
        return MeanCovariance(statistics.mean, statistics.scatter / statistics.n)

    def _log_normaliser(self) -> float:
        p, nu = self._p, self.nu
        log_det = 2 * float(np.log(np.diagonal(_factor(self.psi))).sum())
        of_wishart = nu * p / 2 * np.log(2) + multigammaln(nu / 2, p) - nu / 2 * log_det
        return float(of_wishart + p / 2 * np.log(2 * np.pi / self.kappa))

    def _log_evidence(self, statistics: _Rows) -> float:
        after = self._updated(statistics)
        return after._log_normaliser() - self._log_normaliser() - statistics.n * self._p / 2 * float(np.log(2 * np.pi))

    def _draw(self, posterior: Self | None, statistics: _Rows | None, ax: Axes | None) -> Axes:
        """Intervals of the means; variances are on another scale."""
        before, p = self.marginals(), self._p
        names = list(before)[:p]
        after = posterior.marginals() if posterior is not None else None
        estimates = self._maximum_likelihood(statistics).mean if statistics is not None else None
        kept = [None if d is None else {name: d[name] for name in names} for d in (before, after)]
        return plot_intervals(kept[0] or {}, kept[1], estimates, self._parameter, ax)


def _array(name: str, value: Any) -> np.ndarray:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name}={value!r:.80}; expected an array of numbers") from None
    if not np.isfinite(array).all():
        raise ParameterError(f"{name}: holds NaN or infinity; expected finite numbers")
    return array


def _factor(psi: np.ndarray) -> np.ndarray:
    """The lower Cholesky factor of a scale matrix."""
    try:
        return np.asarray(cholesky(psi, lower=True))
    except LinAlgError:
        least = float(np.linalg.eigvalsh(psi)[0])
        raise ParameterError(
            f"psi: is not positive definite (smallest eigenvalue {least:.3g}): the prior would be improper"
        ) from None
