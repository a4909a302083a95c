r"""Markov chains on rows, many at once: Hamiltonian Monte Carlo, and annealed importance sampling over them.

One move of every chain, with momentum p ~ N(0, I) and L steps of leapfrog of size s,

    p <- p + s/2 log pi'(u),   u <- u + s p,   p <- p + s/2 log pi'(u),

ends in a proposal that is taken with probability min(1, pi(u') / pi(u) e^{(|p|^2 - |p'|^2) / 2}). L = 1 is Langevin's
proposal with s^2/2 the step along the gradient (MALA).

Annealed importance sampling (Neal 2001) goes from q_0, a density that can be drawn from, to f q_0 along f^b q_0, b = 0
to 1: the mean of  w = prod_j f(u_j)^{b_{j+1} - b_j},  where a move that leaves f^{b_j} q_0 as it is gave u_j, is
Z = E_{q_0} f.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from epicycle.nets.training._randomness import generator

#: The share of proposals that are to be taken, by Langevin's moves and by longer ones; and how fast steps follow.
_AIMS, _PACE = (0.6, 0.8), 0.05

LogDensity = Callable[[torch.Tensor], torch.Tensor]


@dataclass
class Moved:
    """Chains after some moves, and the step that the next ones should have."""

    u: torch.Tensor
    step: torch.Tensor
    accepted: float


def _value_and_slope(log_density: LogDensity, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    with torch.enable_grad():
        at = u.detach().requires_grad_()
        value = log_density(at)
        (slope,) = torch.autograd.grad(value.sum(), at)
    return value.detach(), slope


def move(
    log_density: LogDensity, u: torch.Tensor, step: torch.Tensor, n_moves: int, n_leapfrog: int, *, adapt: bool = True
) -> Moved:
    """Chains after `n_moves` moves; the step grows where more proposals are taken than it should be."""
    value, slope = _value_and_slope(log_density, u)
    taken = torch.zeros((), device=u.device)
    aim = _AIMS[n_leapfrog > 1]
    for _ in range(n_moves):
        p = torch.randn(u.shape, generator=generator(), device=u.device, dtype=u.dtype)
        before = value - p.flatten(1).square().sum(1) / 2
        new, new_value, new_slope = u, value, slope
        for _ in range(n_leapfrog):
            p = p + step / 2 * new_slope
            new = new + step * p
            new_value, new_slope = _value_and_slope(log_density, new)
            p = p + step / 2 * new_slope
        after = new_value - p.flatten(1).square().sum(1) / 2
        chance = torch.rand(len(u), generator=generator(), device=u.device, dtype=u.dtype)
        yes = chance.log() < after - before  # not where it is no number
        wide = yes.view(-1, *[1] * (u.ndim - 1))
        u, value, slope = (
            torch.where(wide, new, u),
            torch.where(yes, new_value, value),
            torch.where(wide, new_slope, slope),
        )
        share = yes.double().mean()
        taken = taken + share
        if adapt:
            step = step * torch.exp(_PACE * (share - aim)).to(step)
    return Moved(u, step, float(taken) / max(n_moves, 1))


def annealed(
    log_f: LogDensity,
    log_q: LogDensity,
    u: torch.Tensor,
    steps: torch.Tensor | list[torch.Tensor],
    n_levels: int,
    n_leapfrog: int,
) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    """(chains that started in q_0 and were led to f q_0, logarithms of their weights, steps of the levels).

    Given one step it follows the share that is accepted from level to level. Weights whose mean is to be Z without
    bias need steps that do not depend on these chains: a list of them, from a run before.
    """
    log_w = torch.zeros(len(u), dtype=torch.float64, device=u.device)
    adapt, used = isinstance(steps, torch.Tensor), []
    step = steps if isinstance(steps, torch.Tensor) else steps[0]
    for j in range(n_levels):
        b, after = _level(j, n_levels), _level(j + 1, n_levels)
        step = step if isinstance(steps, torch.Tensor) else steps[j]
        used.append(step)
        with torch.no_grad():
            log_w += (after - b) * log_f(u).double()
        moved = move(_between(log_f, log_q, after), u, step, 1, n_leapfrog, adapt=adapt)
        u, step = moved.u, moved.step
    return u, log_w, used


def _between(log_f: LogDensity, log_q: LogDensity, b: float) -> LogDensity:
    """log f^b q_0."""
    return lambda u: b * log_f(u) + log_q(u)


def _level(j: int, n: int) -> float:
    """b of level j, closer together where little of f is there yet."""
    return (j / n) ** 2


def log_mean(log_w: torch.Tensor) -> tuple[float, float]:
    """(log of the mean of weights, its standard error): by the delta method, from the spread of the weights."""
    n = len(log_w)
    value = float(torch.logsumexp(log_w, 0)) - math.log(n)
    relative = torch.exp(log_w - value)
    return value, float(relative.std()) / math.sqrt(n)
