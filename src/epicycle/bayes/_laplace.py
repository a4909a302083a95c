r"""Laplace's approximation:  q = N(u*, H^-1)  at the mode u* of log p, H = -d^2 log p / du^2.

It is exact for normal densities. The evidence is estimated by log p(u*) + d/2 log(2 pi) - 1/2 log det H. A Newton step
from the point that was found measures how far from the mode it is: sqrt(g'H^-1 g) in standard deviations of q.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from epicycle import optim
from epicycle.bayes._gaussian_approximation import GaussianApproximation, report
from epicycle.bayes._log_density import LogDensity, density_of
from epicycle.core._certificate import Certificate
from epicycle.core._checks import count, number
from epicycle.core._exceptions import ConvergenceError, DataError
from epicycle.core._history import History
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.stats._multivariate_normal import MultivariateNormal

Array = np.ndarray

#: Newton steps after the search; each squares the distance from the mode.
_NEWTON_STEPS = 20
_HALVINGS = 30


@dataclass(frozen=True, eq=False)
class LaplaceApproximation(GaussianApproximation):
    """The result of `laplace`: the normal distribution at the mode, with its evidence.

    Attributes
    ----------
    mode : ndarray or dict of ndarray
        The parameters of largest density of their unconstrained coordinates.
    log_evidence : float
        The estimate of the logarithm of the integral of the density.
    normal : MultivariateNormal
        The approximation, of unconstrained coordinates.
    history_ : History
        The search for the mode.
    certificate_ : Certificate
        The distance from the mode, in standard deviations.
    """

    mode: Any
    log_evidence: float


@in_catalogue("bayes", "B6", certificate="newton decrement")
def laplace(
    log_density: Any,
    start: Any = None,
    *,
    gradient: Any = None,
    hessian: Any = None,
    constraints: Any = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
) -> LaplaceApproximation:
    r"""The normal distribution with the mode of a density and its curvature there.

    .. math:: q = N(u^*, H^{-1}), \qquad \log Z \approx \log p(u^*) + \tfrac d2 \log 2 \pi - \tfrac12 \log |H| .

    Parameters
    ----------
    log_density : callable or Model
        The logarithm of a density, up to a constant: of a vector, or of a dict where `start` is one. It may be -inf.
        A :class:`Model` brings its gradient and constraints.
    start : array-like, or dict of array-like
        Where the search begins; its form is that of the parameters. Of a model by default the origin of its
        unconstrained coordinates.
    gradient : callable or "torch", optional
        The gradient in the form of the parameters. With "torch" `log_density` takes and returns tensors. By default by
        differences.
    hessian : callable, optional
        The matrix of second derivatives, for parameters without constraints. By default differences of gradients.
    constraints : dict of Constraint, or Constraint, optional
        Sets such as ``Positive()`` that parameters lie in. The approximation is normal in unconstrained coordinates.
    tol : float, default=1e-4
        Distance from the mode, in standard deviations, with which the certificate holds.
    max_iter : int, default=1000
        Steps of the search.

    Examples
    --------
    A rate with 3 events in 2 hours, and a gamma prior: on the scale of log rates nearly normal.

    >>> import numpy as np
    >>> from epicycle import bayes
    >>> posterior = bayes.laplace(
    ...     lambda p: 3.0 * np.log(p["rate"]) - 3.0 * p["rate"],
    ...     {"rate": 1.0},
    ...     constraints={"rate": bayes.Positive()},
    ... )
    >>> print(f"{posterior.mode['rate']:.4f} {posterior.log_evidence:.3f}")
    1.3333 -2.623
    >>> print(posterior.certificate_.holds)
    True
    """
    density = density_of(log_density, start, gradient, hessian, constraints)
    limit = number("tol", tol, low=0.0)
    u, history = find_mode(density, count("max_iter", max_iter, low=1))
    L, g = curvature(density, u)
    distance = float(np.linalg.norm(solve_triangular(L, g, lower=True)))
    meaning = f"the mode is {distance:.1e} standard deviations away, and the Hessian is positive definite there"
    certificate = Certificate("newton decrement", distance, limit, meaning)
    report(
        certificate, f"laplace: the mode is {distance:.1e} standard deviations away; raise max_iter or give gradients"
    )
    half = solve_triangular(L, np.eye(len(u)), lower=True).T  # H^-1 = half half'
    log_det = 2 * float(np.log(np.diagonal(L)).sum())
    evidence = density.value(u) + density.size / 2 * math.log(2 * math.pi) - log_det / 2
    return LaplaceApproximation(
        normal=MultivariateNormal(u, half @ half.T),
        layout=density.layout,
        density=density,
        history_=history,
        certificate_=certificate,
        mode=density.layout.parameters(u),
        log_evidence=evidence,
    )


def find_mode(density: LogDensity, max_iter: int) -> tuple[Array, History]:
    """The mode in unconstrained coordinates: by BFGS, then by Newton's method."""
    objective = optim.FunctionObjective(lambda u: _negative(density, u), density.size)
    # The certificate of the solver is not used: a gradient is measured by the curvature, below.
    solution = optim.bfgs(objective, density.start, tol=1e-6, max_iter=max_iter)
    u, value = solution.x, density.value(solution.x)
    columns: dict[str, list[float]] = {"objective": [*solution.history.get("objective", ())]}
    for _ in range(_NEWTON_STEPS):
        L, g = curvature(density, u)
        half = solve_triangular(L, g, lower=True)
        step = solve_triangular(L, half, lower=True, trans=1)
        density.scale = np.sqrt((solve_triangular(L, np.eye(len(u)), lower=True) ** 2).sum(axis=0))
        for _halving in range(_HALVINGS):
            trial = density.value(u + step)
            if trial >= value - 1e-12 * abs(value):
                break
            step = step / 2
        else:
            break
        u, value = u + step, trial
        columns["objective"].append(-value)  # one at least, also where the start is the mode
        if float(half @ half) < 1e-16:
            break
    return u, History(**columns)


def _negative(density: LogDensity, u: Array) -> tuple[float, Array]:
    value = density.value(u)
    if value == -math.inf:  # outside: the line search comes back
        return math.inf, np.zeros(len(u))
    return -value, -density.gradient(u)


def curvature(density: LogDensity, u: Array) -> tuple[Array, Array]:
    """(L, g): the Cholesky factor of -Hessian, and the gradient, at a point that should be the mode."""
    H = -density.hessian(u)
    if not np.isfinite(H).all():
        raise DataError("log_density: its second derivatives are not finite at the mode")
    try:
        return np.asarray(cholesky(H, lower=True)), density.gradient(u)
    except LinAlgError:
        least = float(np.linalg.eigvalsh(H)[0])
        raise ConvergenceError(
            f"log_density: at the point found the curvature is not positive (smallest eigenvalue {least:.3g}): "
            "the density has no mode there, is flat in a direction, or the search needs a better start"
        ) from None
