r"""The module of a restricted Boltzmann machine over bits x and hidden bits h:

    p(x, h) = exp(b'x + c'h + h'Wx) / Z,      - F(x) = b'x + sum_j log(1 + e^{c_j + w_j'x}) = log sum_h p(x, h) Z,

with p(h_j = 1 | x) = sigma(c_j + w_j'x) and p(x_i = 1 | h) = sigma(b_i + h'w^i), from which chains draw by turns. Z
is a sum over the states of the smaller layer, or is estimated from machines with t W and t c, t = 0 to 1 (Neal 2001;
Salakhutdinov and Murray 2008).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from epicycle.generative._bit_rows import BitRows, all_states, drawn_bits

#: Deviation of the first weights, and states that are summed over at once.
_FIRST, _AT_ONCE = 0.01, 1 << 14


class Machine(nn.Module):  # type: ignore[misc]
    """W, b and c."""

    def __init__(self, n_visible: int, n_hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(_FIRST * torch.randn(n_hidden, n_visible))
        self.visible, self.hidden = nn.Parameter(torch.zeros(n_visible)), nn.Parameter(torch.zeros(n_hidden))

    def hidden_scores(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of the hidden bits given x."""
        return F.linear(x, self.weight, self.hidden)

    def visible_scores(self, h: torch.Tensor) -> torch.Tensor:
        """Scores of the bits of rows given h."""
        return F.linear(h, self.weight.T, self.visible)

    def log_sum(self, x: torch.Tensor) -> torch.Tensor:
        """- F(x), the logarithm of the sum over h of what is not normalised."""
        return x @ self.visible + F.softplus(self.hidden_scores(x)).sum(1)

    def log_normalizer(self) -> torch.Tensor:
        """log Z, by the states of the smaller layer."""
        n_hidden, n_visible = self.weight.shape
        by_hidden = n_hidden <= n_visible
        states = all_states(min(n_hidden, n_visible), self.weight)
        parts = []
        for some in states.split(_AT_ONCE):
            if by_hidden:
                parts.append(some @ self.hidden + F.softplus(self.visible_scores(some)).sum(1))
            else:
                parts.append(self.log_sum(some))
        return torch.logsumexp(torch.cat(parts), 0)


class BoltzmannMachine(BitRows):
    """A machine with the chains of its training.

    Parameters
    ----------
    architecture : mapping
        With "n_hidden" and "n_chains", and what `BitRows` needs.
    """

    #: What the training loop does not average with the weights.
    states = ("chains", "last_loss")

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__(architecture)
        n = math.prod(architecture["shape"])
        self.machine = Machine(n, architecture["n_hidden"])
        self.register_buffer("chains", torch.bernoulli(torch.full((architecture["n_chains"], n), 0.5)))
        self.register_buffer("last_loss", torch.zeros(()))
        self.to(getattr(torch, architecture["dtype"]))

    def moved(self, x: torch.Tensor, n_moves: int) -> torch.Tensor:
        """Chains after so many moves, each a draw of h given x and one of x given h."""
        with torch.no_grad():
            for _ in range(n_moves):
                x = drawn_bits(self.machine.visible_scores(drawn_bits(self.machine.hidden_scores(x))))
        return x

    def annealed(self, n_chains: int, n_levels: int) -> tuple[torch.Tensor, torch.Tensor]:
        """(chains that were led from independent bits to the machine, logarithms of their weights).

        The mean of the weights is Z without bias. It begins at bits with the scores b, whose Z is known.
        """
        m = self.machine
        with torch.no_grad():
            x = drawn_bits(m.visible.expand(n_chains, -1))
            n_hidden = len(m.hidden)
            start = float(F.softplus(m.visible.double()).sum()) + n_hidden * math.log(2)
            log_w = torch.full((n_chains,), start, dtype=torch.float64, device=x.device)
            for level in range(n_levels):
                before, after = level / n_levels, (level + 1) / n_levels
                scores = m.hidden_scores(x).double()
                log_w += (F.softplus(after * scores) - F.softplus(before * scores)).sum(1)
                h = drawn_bits(after * m.hidden_scores(x))
                x = drawn_bits(m.visible + after * F.linear(h, m.weight.T))
        return x, log_w
