r"""Variational inference:  maximise  ELBO(q) = E_q[log p(u) - log q(u)] = log Z - KL(q || p / Z)  over normal q.

Coordinates are first moved and scaled to those of Laplace's approximation, where it exists. Gradients come from
antithetic pairs of draws (`_gaussian_families`) and are followed by Adam. When the mean ELBO of a window of steps is
not above that of the window before by more than its standard error, the step is halved; after ten halvings the fit
has ended, at the mean of the parameters over the last window.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.linalg import solve_triangular

from epicycle.bayes._gaussian_approximation import GaussianApproximation, evidence_of, report, smoothed
from epicycle.bayes._gaussian_families import Family, FullRank, LowRank, MeanField
from epicycle.bayes._laplace import curvature, find_mode
from epicycle.bayes._log_density import LogDensity, density_of
from epicycle.core._certificate import Certificate
from epicycle.core._checks import count, number
from epicycle.core._exceptions import ConvergenceError, DataError, ParameterError
from epicycle.core._history import History
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.optim.solvers._adam import RULES
from epicycle.stats._multivariate_normal import MultivariateNormal

Array = np.ndarray
FamilyName = Literal["mean-field", "full-rank", "low-rank"]

_FAMILIES = ("mean-field", "full-rank", "low-rank")
#: Steps whose mean ELBO is compared with that of the steps before.
_WINDOW = 100
#: Of the step, until the fit has ended: to a thousandth.
_HALVINGS = 10
#: Above this k-hat importance weights are not to be trusted (Vehtari et al. 2024).
K_HAT_LIMIT = 0.7


@dataclass(frozen=True, eq=False)
class VariationalApproximation(GaussianApproximation):
    """The result of `variational`.

    Attributes
    ----------
    family : str
    elbo : float
        The bound on the logarithm of the integral of the density, from fresh draws.
    elbo_error : float
        Its standard error.
    log_evidence : float
        That logarithm itself, estimated by smoothed importance weights.
    k_hat : float
        The shape of the tail of these weights.
    converged : bool
        Whether the step was halved to its end, before `max_iter`.
    normal : MultivariateNormal
        The approximation, of unconstrained coordinates.
    history_ : History
        The trace of the ELBO, with the steps.
    certificate_ : Certificate
        k-hat against 0.7.
    """

    family: str
    elbo: float
    elbo_error: float
    log_evidence: float
    k_hat: float
    converged: bool


@in_catalogue("bayes", "B6", certificate="PSIS k-hat")
def variational(
    log_density: Any,
    start: Any = None,
    *,
    family: FamilyName = "mean-field",
    rank: int = 2,
    gradient: Any = None,
    constraints: Any = None,
    init: Literal["laplace", "start"] = "laplace",
    n_samples: int = 16,
    step: float = 0.05,
    max_iter: int = 10_000,
    n_draws: int = 20_000,
    random_state: Seed = None,
) -> VariationalApproximation:
    r"""The normal distribution of a family that is closest to a density.

    .. math:: \mathrm{ELBO}(q) = E_q[\log p(u) - \log q(u)] = \log Z - \mathrm{KL}(q \| p / Z) \le \log Z

    is maximised by Adam along reparametrised gradients. Its trace is in ``history_``; the certificate is the k-hat of
    importance weights, which tells whether draws can be reweighted to the density.

    Parameters
    ----------
    log_density : callable or Model
        The logarithm of a density, up to a constant: of a vector, or of a dict where `start` is one. A
        :class:`Model` brings its gradient and constraints.
    start : array-like, or dict of array-like
        A point of its domain; its form is that of the parameters. Of a model by default the origin of its
        unconstrained coordinates.
    family : {"mean-field", "full-rank", "low-rank"}, default="mean-field"
        Independent coordinates, any covariance, or `rank` directions and independent noise.
    rank : int, default=2
        Directions of the low-rank family.
    gradient : callable or "torch", optional
        The gradient in the form of the parameters. By default by differences, which takes 4 d values for each.
    constraints : dict of Constraint, or Constraint, optional
        Sets such as ``Positive()`` that parameters lie in. The approximation is normal in unconstrained coordinates.
    init : {"laplace", "start"}, default="laplace"
        Begin at Laplace's approximation, where there is one, or with unit variances around `start`.
    n_samples : int, default=16
        Draws for each gradient, in pairs z and -z.
    step : float, default=0.05
        First step of Adam, in standard deviations.
    max_iter : int, default=10_000
        Steps. The fit ends before when the step has been halved ten times: each time that the mean ELBO of 100 steps is
        not above that of the 100 before by more than its standard error.
    n_draws : int, default=20_000
        Fresh draws for the final ELBO and for k-hat. With few of them the tail of the weights begins where a good
        approximation still crosses the density, and k-hat is too large.
    random_state : int, Generator, RandomState or None, default=None

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import bayes
    >>> P = np.array([[2.0, 1.0], [1.0, 1.0]])
    >>> q = bayes.variational(
    ...     lambda u: -u @ P @ u / 2, [1.0, 1.0], gradient=lambda u: -P @ u, family="full-rank", random_state=0
    ... )
    >>> print(q.normal.covariance.round(3))
    [[ 1. -1.]
     [-1.  2.]]
    >>> print(f"{q.elbo:.4f} {np.log(2 * np.pi):.4f}")  # the ELBO is log Z where the family holds the density
    1.8379 1.8379
    """
    if family not in _FAMILIES:
        raise ParameterError(f"family={family!r}; expected one of {', '.join(map(repr, _FAMILIES))}")
    if init not in ("laplace", "start"):
        raise ParameterError(f"init={init!r}; expected 'laplace' or 'start'")
    pairs = (count("n_samples", n_samples, low=2) + 1) // 2
    rate = number("step", step, low=np.finfo(float).tiny)
    steps, draws = count("max_iter", max_iter, low=1), count("n_draws", n_draws, low=100)
    density = density_of(log_density, start, gradient, None, constraints)
    d, seed = density.size, seed_of(random_state)
    if family == "low-rank" and count("rank", rank, low=1) > d:
        raise ParameterError(f"rank={rank}; expected at most {d}, the number of coordinates")
    centre, scale = _coordinates(density, family, init)
    kind = {"mean-field": MeanField(d), "full-rank": FullRank(d), "low-rank": LowRank(d, rank)}[family]
    fit = _Ascent(density, kind, centre, scale, pairs, seed)
    converged = fit.run(rate, steps)
    normal = kind.normal(fit.average(), centre, scale)
    u = normal.sample(draws, stream(seed, "final"))
    ratios = np.array([density.value(row) for row in u]) - normal.logpdf(u)
    weights = smoothed(ratios)
    certificate = Certificate("PSIS k-hat", weights.k_hat, K_HAT_LIMIT, _meaning(weights.k_hat))
    words = (
        f"variational: k-hat is {weights.k_hat:.2f}, above {K_HAT_LIMIT}: reweighted draws of the {family} family do "
        "not stand for the density; try another family, more steps or more n_draws"
    )
    report(certificate, words)
    return VariationalApproximation(
        normal=normal,
        layout=density.layout,
        density=density,
        history_=fit.history(),
        certificate_=certificate,
        family=family,
        elbo=float(ratios.mean()),
        elbo_error=float(ratios.std(ddof=1) / np.sqrt(draws)),
        log_evidence=evidence_of(ratios, weights),
        k_hat=weights.k_hat,
        converged=converged,
    )


def _meaning(k_hat: float) -> str:
    return f"importance weights have a tail of shape {k_hat:.2f}: reweighted draws stand for those of the density"


def _coordinates(density: LogDensity, family: str, init: str) -> tuple[Array, Array]:
    """Centre and scale of v: those of Laplace's approximation, or the start and ones where there is none."""
    if init == "laplace":
        try:
            u, _ = find_mode(density, 1000)
            L, _ = curvature(density, u)
        except (ConvergenceError, DataError):
            pass  # no mode, or none that differences can find: the search by draws needs neither
        else:
            if family == "mean-field":  # of a normal density the best independent q has these
                return u, 1 / np.sqrt((L**2).sum(axis=1))
            half = solve_triangular(L, np.eye(len(u)), lower=True).T
            S = half @ half.T
            return u, np.linalg.cholesky(S) if family == "full-rank" else np.sqrt(np.diagonal(S))
    return density.start, np.ones(density.size)


class _Ascent:
    """Adam on the ELBO, with a step that is halved when windows of it stop rising."""

    def __init__(self, density: LogDensity, family: Family, centre: Array, scale: Array, pairs: int, seed: int) -> None:
        self.density, self.family, self.centre, self.scale = density, family, centre, scale
        self.pairs, self.seed = pairs, seed
        self.parameters = family.start(stream(seed, "start"))
        self.rows: list[tuple[float, float, float]] = []
        self.kept: list[Array] = []
        self.began = time.perf_counter()

    def run(self, rate: float, max_iter: int) -> bool:
        """Whether the step was halved to its end."""
        memory = {name: np.zeros_like(self.parameters) for name in RULES["adam"].memory}
        windows: list[Array] = [np.empty(0)]
        halvings = 0
        for t in range(1, max_iter + 1):
            elbo, g = self._estimate(t)
            self.parameters = self.parameters + RULES["adam"].move(memory, -g, rate, t)
            self.rows.append((elbo, rate, time.perf_counter() - self.began))
            self.kept = [*self.kept[-(_WINDOW - 1) :], self.parameters]
            windows[-1] = np.append(windows[-1], elbo)
            if len(windows[-1]) < _WINDOW:
                continue
            if len(windows) > 1 and not _rises(windows[-2], windows[-1]):
                halvings, rate = halvings + 1, rate / 2
                if halvings == _HALVINGS:
                    return True
            windows = [windows[-1], np.empty(0)]
        return False

    def average(self) -> Array:
        """The mean of the parameters over the last window."""
        return np.asarray(np.mean(self.kept, axis=0))

    def history(self) -> History:
        """The trace."""
        elbo, step, seconds = np.array(self.rows).T
        return History(objective=-elbo, elbo=elbo, step=step, seconds=seconds)

    def _estimate(self, t: int) -> tuple[float, Array]:
        half = stream(self.seed, "step", t).standard_normal((self.pairs, self.family.noise_size))
        z = np.concatenate([half, -half])
        v = self.family.draw(self.parameters, z)
        u = self.centre + (v * self.scale if self.scale.ndim == 1 else v @ self.scale.T)
        values = np.array([self.density.value(row) for row in u])
        if not np.isfinite(values).all():
            raise DataError("log_density: is -inf at a draw; give constraints that keep parameters in its domain")
        slopes = np.array([self.density.gradient(row) for row in u])
        slopes = slopes * self.scale if self.scale.ndim == 1 else slopes @ self.scale
        g = self.family.gradient(self.parameters, z, slopes + self.family.minus_score(self.parameters, z))
        q: MultivariateNormal = self.family.normal(self.parameters, self.centre, self.scale)
        return float(np.mean(values - q.logpdf(u))), g


def _rises(before: Array, after: Array) -> bool:
    """Whether the mean has risen by more than its standard error."""
    error = np.sqrt((before.var() + after.var()) / len(after))
    return bool(after.mean() - before.mean() > error + 1e-12 * abs(after.mean()))
