"""The module of a Helmholtz machine: layers of bits h_0 = x, h_1, ..., h_L, drawn downwards and recognised upwards.

    p(h_L) = B(b),   p(h_l | h_{l+1}) = B(W_l h_{l+1} + c_l)      generative
    q(h_{l+1} | h_l) = B(V_l h_l + d_l)                          recognition

where B(s) are independent bits that are 1 with the probabilities sigmoid(s). The class of a conditional machine is an
indicator vector beside the inputs of all of them, and has a vector b of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from epicycle.generative._bit_rows import BitRows, all_states, drawn_bits
from epicycle.generative._row_draws import RowDraws
from epicycle.generative.autoencoders._coders import with_class

Layers = list[torch.Tensor]


class HelmholtzMachine(BitRows):
    """Generative and recognition weights.

    Parameters
    ----------
    architecture : mapping
        With "shape", "hidden" (units from the rows up), "n_classes", "top" (what stands for 1) and "threshold".
    """

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__(architecture)
        self.n_classes = architecture["n_classes"]
        sizes = [math.prod(self.shape), *architecture["hidden"]]
        more = self.n_classes
        self.prior = nn.Parameter(torch.zeros(max(more, 1), sizes[-1]))
        self.generative = nn.ModuleList(nn.Linear(above + more, below) for below, above in pairwise(sizes))
        self.recognition = nn.ModuleList(nn.Linear(below + more, above) for below, above in pairwise(sizes))
        for layer in [*self.generative, *self.recognition]:
            nn.init.normal_(layer.weight, std=1 / math.sqrt(layer.in_features))
            nn.init.zeros_(layer.bias)
        self.to(getattr(torch, architecture["dtype"]))

    # ------------------------------------------------------------------------------------------- the distributions

    def prior_scores(self, labels: torch.Tensor | None, n: int) -> torch.Tensor:
        """b of n rows."""
        return self.prior.expand(n, -1) if labels is None else self.prior[labels.long()]

    def below(self, level: int, h: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """Scores of h_level given the layer above."""
        found: torch.Tensor = self.generative[level](with_class(h, labels, self.n_classes))
        return found

    def above(self, level: int, h: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """Scores of h_{level + 1} given the layer below."""
        found: torch.Tensor = self.recognition[level](with_class(h, labels, self.n_classes))
        return found

    def recognised(self, x: torch.Tensor, labels: torch.Tensor | None, draws: RowDraws | None = None) -> Layers:
        """Layers from rows of bits upwards, drawn from q; given `draws`, x has all rows once for each of them."""
        layers = [x]
        for level in range(len(self.recognition)):
            scores = self.above(level, layers[-1], labels)
            if draws is None:
                layers.append(drawn_bits(scores))
            else:
                layers.append((draws.uniform(scores.shape[1]).flatten(0, 1) < torch.sigmoid(scores)).to(scores))
        return layers

    def dreamt(self, n: int, labels: torch.Tensor | None) -> Layers:
        """Layers from the top downwards, drawn from p; the row of bits comes first."""
        layers = [drawn_bits(self.prior_scores(labels, n))]
        for level in reversed(range(len(self.generative))):
            layers.insert(0, drawn_bits(self.below(level, layers[0], labels)))
        return layers

    def log_p(self, layers: Layers, labels: torch.Tensor | None) -> torch.Tensor:
        """log p(h_0, ..., h_L) of every row."""
        found = log_bits(layers[-1], self.prior_scores(labels, len(layers[-1])))
        for level, (low, high) in enumerate(pairwise(layers)):
            found = found + log_bits(low, self.below(level, high, labels))
        return found

    def log_q(self, layers: Layers, labels: torch.Tensor | None) -> torch.Tensor:
        """log q(h_1, ..., h_L | h_0) of every row."""
        found = torch.zeros(len(layers[0])).to(self.prior)
        for level, (low, high) in enumerate(pairwise(layers)):
            found = found + log_bits(high, self.above(level, low, labels))
        return found

    # ------------------------------------------------------------------------------------------- the two phases

    def wake_losses(self, x: torch.Tensor, labels: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        """(- log p(x, h), log q(h | x)) of every row, h drawn from q: the former teaches the generative weights."""
        with torch.no_grad():
            layers = self.recognised(self.bits(x), labels)
            log_q = self.log_q(layers, labels)
        return -self.log_p(layers, labels), log_q

    def sleep_losses(self, n: int, labels: torch.Tensor | None) -> torch.Tensor:
        """- log q(h | x) of n dreams (x, h) of p, which teach the recognition weights."""
        with torch.no_grad():
            layers = self.dreamt(n, labels)
        return -self.log_q(layers, labels)

    def log_weights(self, x: torch.Tensor, labels: torch.Tensor | None, draws: RowDraws) -> torch.Tensor:
        """log p(x, h) - log q(h | x) of draws of h for each row, of shape (n, n_rows)."""
        n = draws.n
        repeated = None if labels is None else labels.repeat(n)
        layers = self.recognised(self.bits(x).repeat(n, 1), repeated, draws)
        return (self.log_p(layers, repeated) - self.log_q(layers, repeated)).view(n, -1)

    # ------------------------------------------------------------------------------------------- enumeration

    def exact(self, x: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """log p(x) of every row, by sums over all states of one layer after the other, in double precision."""
        found = torch.empty(len(x), dtype=torch.float64)
        which = torch.zeros(len(x)) if labels is None else labels.cpu()
        for label in which.unique():
            of_label = None if labels is None else label[None]
            mine = which == label
            found[mine] = self._exact_of_label(x[mine.to(x.device)], of_label).cpu()
        return found

    def _exact_of_label(self, x: torch.Tensor, label: torch.Tensor | None) -> torch.Tensor:
        states = self._states(-1)
        log_p = _log_table(states, self.prior_scores(label, 1))[:, 0]  # of all states of the top layer
        for level in reversed(range(1, len(self.generative))):
            scores = self.below(level, states, _of_all(label, states))
            states = self._states(level - 1)
            log_p = torch.logsumexp(_log_table(states, scores) + log_p, dim=1)
        scores = self.below(0, states, _of_all(label, states))
        return torch.logsumexp(_log_table(self.bits(x), scores) + log_p, dim=1)

    def _states(self, layer: int) -> torch.Tensor:
        """All states of hidden layer number `layer`, of shape (2^units, units)."""
        return all_states(self.recognition[layer].out_features, self.prior)


def log_bits(bits: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """log B(bits; scores) of every row: the sum of h s - log(1 + e^s)."""
    return (bits * scores - F.softplus(scores)).sum(1)


def _log_table(bits: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """log B(row i of bits; row j of scores), of shape (i, j)."""
    s = scores.double()
    return bits.double() @ s.T - F.softplus(s).sum(1)


def _of_all(label: torch.Tensor | None, states: torch.Tensor) -> torch.Tensor | None:
    return None if label is None else label.to(states.device).expand(len(states))
