r"""Invertible layers  u -> v  with log |det dv/du|, from rows towards the base.

    Coupling        v_1 = u_1,  v_2 = g(u_2; theta(u_1, y))              theta a perceptron, halves of the columns
    Autoregressive  v_j = g(u_j; theta_j(u_1, ..., u_{j-1}, y))          theta a masked perceptron (MADE)
    Linear          v = P L (D + U) u + b,   L and U strictly triangular but for L's ones,  log |det| = sum log D_jj
    Shuffled        v = P u

and g one of

    Affine   g(u; m, a) = (u - m) e^-c(a),   c(a) = 3 tanh(a / 3)
    Spline   `_spline.spline`

Each goes back by `inverse`, which a coupling does at once and an autoregressive layer entry by entry. Every layer but
the linear one starts as the identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from epicycle.generative.flows._spline import n_parameters, spline

#: The largest logarithm of the factor of one affine step.
_LARGEST = 3.0

Moved = tuple[torch.Tensor, torch.Tensor]


class Affine:
    """g(u; m, a) = (u - m) e^-c(a), by the parameters along the last axis."""

    n_parameters = 2

    def __call__(self, u: torch.Tensor, theta: torch.Tensor, *, inverse: bool) -> Moved:
        """(v, log dv/du) of every entry, or with `inverse` (u, log du/dv)."""
        m, c = theta[..., 0], _LARGEST * torch.tanh(theta[..., 1] / _LARGEST)
        return (u * c.exp() + m, c) if inverse else ((u - m) * (-c).exp(), -c)


class Spline:
    """A monotone spline on [-bound, bound], the identity outside."""

    def __init__(self, n_bins: int, bound: float) -> None:
        self.n_parameters, self.bound = n_parameters(n_bins), bound

    def __call__(self, u: torch.Tensor, theta: torch.Tensor, *, inverse: bool) -> Moved:
        """(v, log dv/du) of every entry, or with `inverse` (u, log du/dv)."""
        return spline(u, theta, self.bound, inverse=inverse)


class Coupling(nn.Module):  # type: ignore[misc]
    """The second half of the columns moves as the first says."""

    def __init__(self, p: int, n_classes: int, hidden: Sequence[int], g: Any) -> None:
        super().__init__()
        self.g, self.n_first, self.n_classes = g, p // 2, n_classes
        n_inputs = self.n_first + n_classes
        self.bare = n_inputs == 0  # of one column without classes: a constant is what it follows from
        sizes = [max(n_inputs, 1), *hidden, (p - self.n_first) * g.n_parameters]
        layers = [part for a, b in pairwise(sizes[:-1]) for part in (nn.Linear(a, b), nn.ReLU())]
        self.network = nn.Sequential(*layers, nn.Linear(*sizes[-2:]))
        _start_at_zero(self.network[-1])

    def forward(self, u: torch.Tensor, labels: torch.Tensor | None, *, inverse: bool = False) -> Moved:
        """(v, log |det dv/du|) of rows u, given the codes of their classes."""
        first, second = u[:, : self.n_first], u[:, self.n_first :]
        inputs = torch.ones_like(u[:, :1]) if self.bare else with_labels(first, labels, self.n_classes)
        theta = self.network(inputs).view(*second.shape, self.g.n_parameters)
        moved, log_slope = self.g(second, theta, inverse=inverse)
        return torch.cat([first, moved], dim=1), log_slope.sum(1)

    def inverse(self, v: torch.Tensor, labels: torch.Tensor | None) -> Moved:
        """(u, log |det du/dv|) of rows v."""
        return self.forward(v, labels, inverse=True)


class MaskedLinear(nn.Linear):  # type: ignore[misc]
    """A linear layer with some weights held at zero."""

    def __init__(self, mask: torch.Tensor) -> None:
        super().__init__(mask.shape[1], mask.shape[0])
        self.register_buffer("mask", mask.to(self.weight.dtype), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """W x + b."""
        return functional.linear(x, self.weight * self.mask, self.bias)


class Autoregressive(nn.Module):  # type: ignore[misc]
    """Each column moves as all columns before it say (Papamakarios et al. 2017; Germain et al. 2015)."""

    def __init__(self, p: int, n_classes: int, hidden: Sequence[int], g: Any) -> None:
        super().__init__()
        self.g, self.n_classes = g, n_classes
        before = torch.cat([torch.arange(1, p + 1), torch.zeros(n_classes, dtype=torch.long)])  # classes precede all
        layers: list[nn.Module] = []
        for size in hidden:
            after = torch.arange(size) % max(p - 1, 1) + min(p - 1, 1)
            layers += [MaskedLinear(after[:, None] >= before[None]), nn.ReLU()]
            before = after
        outputs = torch.arange(1, p + 1).repeat_interleave(g.n_parameters)
        self.network = nn.Sequential(*layers, MaskedLinear(outputs[:, None] > before[None]))
        _start_at_zero(self.network[-1])

    def _moved(self, u: torch.Tensor, given: torch.Tensor, labels: torch.Tensor | None, *, inverse: bool) -> Moved:
        theta = self.network(with_labels(given, labels, self.n_classes)).view(*u.shape, self.g.n_parameters)
        found: Moved = self.g(u, theta, inverse=inverse)
        return found

    def forward(self, u: torch.Tensor, labels: torch.Tensor | None) -> Moved:
        """(v, log |det dv/du|) of rows u, given the codes of their classes."""
        v, log_slope = self._moved(u, u, labels, inverse=False)
        return v, log_slope.sum(1)

    def inverse(self, v: torch.Tensor, labels: torch.Tensor | None) -> Moved:
        """(u, log |det du/dv|) of rows v, one column after the other."""
        u, log_slope = torch.zeros_like(v), torch.zeros_like(v)
        for _ in range(v.shape[1]):  # each round makes one more column right, and the last one all
            u, log_slope = self._moved(v, u, labels, inverse=True)
        return u, log_slope.sum(1)


class Linear(nn.Module):  # type: ignore[misc]
    """v = P L (D + U) u + b; it starts as P."""

    def __init__(self, order: np.ndarray) -> None:
        super().__init__()
        p = len(order)
        self.register_buffer("order", torch.from_numpy(order), persistent=False)
        self.triangles = nn.Parameter(torch.zeros(p, p))  # L below the diagonal, log D on it, U above
        self.bias = nn.Parameter(torch.zeros(p))

    def _factors(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        log_d = self.triangles.diagonal()
        lower = self.triangles.tril(-1) + torch.eye(len(log_d), dtype=log_d.dtype, device=log_d.device)
        return lower, self.triangles.triu(1) + torch.diag(log_d.exp()), log_d

    def forward(self, u: torch.Tensor, labels: torch.Tensor | None) -> Moved:
        """(v, log |det dv/du|) of rows u."""
        lower, upper, log_d = self._factors()
        return (u @ (lower @ upper).T)[:, self.order] + self.bias, log_d.sum().expand(len(u))

    def inverse(self, v: torch.Tensor, labels: torch.Tensor | None) -> Moved:
        """(u, log |det du/dv|) of rows v."""
        lower, upper, log_d = self._factors()
        rows = (v - self.bias)[:, self.order.argsort()].T
        half = torch.linalg.solve_triangular(lower, rows, upper=False, unitriangular=True)
        return torch.linalg.solve_triangular(upper, half, upper=True).T, -log_d.sum().expand(len(v))


class Shuffled(nn.Module):  # type: ignore[misc]
    """v = P u."""

    def __init__(self, order: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("order", torch.from_numpy(order), persistent=False)

    def forward(self, u: torch.Tensor, labels: torch.Tensor | None) -> Moved:
        """(v, 0) of rows u."""
        return u[:, self.order], u.new_zeros(len(u))

    def inverse(self, v: torch.Tensor, labels: torch.Tensor | None) -> Moved:
        """(u, 0) of rows v."""
        return v[:, self.order.argsort()], v.new_zeros(len(v))


def orders(p: int, n_layers: int) -> list[np.ndarray]:
    """Orders of the columns between layers: the halves of the columns change places, and are mixed at random."""
    rng, half = np.random.default_rng(0), p // 2  # always the same: a part of what the architecture means
    found = []
    for _ in range(n_layers):
        first, second = rng.permutation(half), half + rng.permutation(p - half)
        # What has moved goes first, so that no column stays where it says how others move but never moves itself.
        found.append(np.concatenate([second, first]))
    return found


def with_labels(u: torch.Tensor, labels: torch.Tensor | None, n_classes: int) -> torch.Tensor:
    """Inputs of a network: columns, and the indicators of the classes of a conditional model."""
    if not n_classes:
        return u
    assert labels is not None
    return torch.cat([u, functional.one_hot(labels.long(), n_classes).to(u)], dim=1)


def _start_at_zero(layer: nn.Linear) -> None:
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
