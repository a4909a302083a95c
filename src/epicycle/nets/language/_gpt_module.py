"""The module of a GPT: a chain of blocks that see what came before, and a score for each token that may come next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from epicycle.nets.language._blocks import Block, Embedding, start_small


class GPTModule(nn.Module):  # type: ignore[misc]
    """Scores of the next token at every place; the vectors of the tokens are those of the last layer too."""

    def __init__(self, a: Mapping[str, Any]) -> None:
        super().__init__()
        d_model, n_heads, p = a["d_model"], a["n_heads"], a["dropout"]
        self.embedding = Embedding(a["n_tokens"], d_model, n_heads, a["positions"], a["context_length"], p)
        self.blocks = nn.ModuleList(Block(d_model, n_heads, p) for _ in range(a["n_layers"]))
        self.norm = nn.LayerNorm(d_model, bias=False)
        start_small(self, 2 * a["n_layers"])

    def forward(
        self, tokens: torch.Tensor, past: list[dict[str, Any]] | None = None, seen: list[torch.Tensor] | None = None
    ) -> torch.Tensor:
        """Scores of shape (n, T, n_tokens).

        Parameters
        ----------
        tokens : tensor of shape (n, T)
        past : list, optional
            What earlier calls left there of the tokens before these; empty at first.
        seen : list, optional
            The weights of every layer are appended to it.
        """
        if past is not None and not past:
            past.extend({} for _ in self.blocks)
        start = past[0]["own"]["k"].shape[2] if past and past[0] else 0
        x = self.embedding(tokens, start)
        turn = self.embedding.turn(start, start + tokens.shape[1], x)
        for i, block in enumerate(self.blocks):
            x = block(x, is_causal=True, turn=turn, past=None if past is None else past[i], seen=seen)
        return functional.linear(self.norm(x), self.embedding.tokens.weight)
