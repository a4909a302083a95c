r"""Densities that flows lead to:  log p(z | y) and draws.

normal      z ~ N(0, I)
student_t   z_j ~ t with nu_j > 1 degrees of freedom, learnt: for rows with heavy tails
mixture     z ~ sum_k pi_{k,y} N(m_k, diag s_k^2), learnt: for rows in parts that lie apart
"""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

from epicycle.nets.training._randomness import generator

_LOG_2PI = math.log(2 * math.pi)
#: Degrees of freedom of the t distributions at the start: 1 and what softplus makes of this.
_START_DEGREES = 8.0


class Normal(nn.Module):  # type: ignore[misc]
    """N(0, I)."""

    def __init__(self, p: int) -> None:
        super().__init__()
        self.p = p

    def log_density(self, z: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """log p(z) of every row."""
        return -0.5 * (z.square().sum(1) + self.p * _LOG_2PI)

    def draws(self, n: int, labels: torch.Tensor | None, like: torch.Tensor) -> torch.Tensor:
        """n rows, of the type and on the device of `like`."""
        return torch.randn((n, self.p), generator=generator(), device=like.device, dtype=like.dtype)


class StudentT(Normal):
    """Independent t distributions."""

    def __init__(self, p: int) -> None:
        super().__init__(p)
        self.degrees = nn.Parameter(torch.full((p,), _START_DEGREES))

    def _nu(self) -> torch.Tensor:
        return 1 + functional.softplus(self.degrees)

    def log_density(self, z: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """log p(z) of every row."""
        nu = self._nu()
        constant = torch.lgamma((nu + 1) / 2) - torch.lgamma(nu / 2) - 0.5 * torch.log(nu * math.pi)
        return (constant - (nu + 1) / 2 * torch.log1p(z.square() / nu)).sum(1)

    def draws(self, n: int, labels: torch.Tensor | None, like: torch.Tensor) -> torch.Tensor:
        """n rows: normal draws over the roots of chi^2 / nu."""
        nu = self._nu()
        chi_square = 2 * torch._standard_gamma((nu / 2).expand(n, -1).contiguous(), generator=generator())
        return super().draws(n, labels, like) * (nu / chi_square).sqrt()


class Mixture(Normal):
    """A mixture of normal distributions with diagonal covariances; classes have shares of their own."""

    def __init__(self, p: int, n_components: int, n_classes: int) -> None:
        super().__init__(p)
        self.means = nn.Parameter(torch.randn(n_components, p))
        self.log_deviations = nn.Parameter(torch.zeros(n_components, p))
        self.log_shares = nn.Parameter(torch.zeros(max(n_classes, 1), n_components))

    def _log_shares(self, n: int, labels: torch.Tensor | None) -> torch.Tensor:
        shares = self.log_shares.log_softmax(1)
        return shares.expand(n, -1) if labels is None else shares[labels.long()]

    def log_density(self, z: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """log p(z | y) of every row."""
        u = (z[:, None] - self.means) * torch.exp(-self.log_deviations)
        parts = -0.5 * (u.square().sum(2) + self.p * _LOG_2PI) - self.log_deviations.sum(1)
        return (parts + self._log_shares(len(z), labels)).logsumexp(1)

    def draws(self, n: int, labels: torch.Tensor | None, like: torch.Tensor) -> torch.Tensor:
        """n rows."""
        shares = self._log_shares(n, labels).exp()
        k = torch.multinomial(shares, 1, replacement=True, generator=generator())[:, 0]
        return self.means[k] + torch.exp(self.log_deviations[k]) * super().draws(n, labels, like)
