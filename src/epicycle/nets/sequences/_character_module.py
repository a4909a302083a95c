"""The network of a character model: embedding, recurrent layers whose state goes on from window to window, scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from epicycle.nets.sequences._module import StatefulLayers, embedding_layer
from epicycle.nets.sequences._tokens import N_SPECIAL


class CharacterNet(nn.Module):  # type: ignore[misc]
    """Scores of the next token after every token.

    `carried` is the state at the end of the last window of each lane. It is a weight that is not trained: so it is in
    checkpoints, and parts of a batch that run side by side write to the same one, each to its own lanes.
    """

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        a = architecture
        hidden, n_tokens = a["hidden_size"], a["n_tokens"]
        self.embedding = embedding_layer(n_tokens, a["embedding_size"])
        self.layers = StatefulLayers(a["cell"], a["embedding_size"], hidden, a["n_layers"], a["dropout"])
        self.last = nn.Linear(hidden, N_SPECIAL + n_tokens)
        nn.init.normal_(self.last.weight, std=0.01)  # nearly equal probabilities at first
        nn.init.zeros_(self.last.bias)
        carried = torch.zeros(self.layers.n_states, a["n_lanes"], hidden)
        self.carried = nn.Parameter(carried, requires_grad=False)

    def start(self, n: int) -> torch.Tensor:
        """The state of n texts before their first token."""
        return self.carried.new_zeros(self.carried.shape[0], n, self.carried.shape[2])

    def forward(self, tokens: torch.Tensor, lanes: torch.Tensor, fresh: torch.Tensor) -> torch.Tensor:
        """The scores of the next tokens (n, n_steps, n_tokens), from where the lanes were left."""
        state = self.carried[:, lanes].masked_fill(fresh[None, :, None], 0.0)
        scores, state = self.advance(tokens, state)
        with torch.no_grad():
            self.carried[:, lanes] = state.detach().to(self.carried.dtype)
        return scores

    def advance(self, tokens: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(scores of the next tokens, the state after the last token)."""
        z, state = self.layers(self.embedding(tokens), state)
        return self.last(z), state
