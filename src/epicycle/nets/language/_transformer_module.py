"""The module of an encoder-decoder: blocks that see the whole source, blocks that see it and the target so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from epicycle.nets.language._attention import present
from epicycle.nets.language._blocks import Block, Embedding, start_small


class TransformerModule(nn.Module):  # type: ignore[misc]
    """Scores of the next token of a target; one table of vectors for the tokens of source, target and output."""

    def __init__(self, a: Mapping[str, Any]) -> None:
        super().__init__()
        d_model, n_heads, p, layers = a["d_model"], a["n_heads"], a["dropout"], range(a["n_layers"])
        self.embedding = Embedding(a["n_tokens"], d_model, n_heads, a["positions"], a["longest"], p)
        self.encoder = nn.ModuleList(Block(d_model, n_heads, p) for _ in layers)
        self.decoder = nn.ModuleList(Block(d_model, n_heads, p, crossed=True) for _ in layers)
        self.norm_source, self.norm = nn.LayerNorm(d_model, bias=False), nn.LayerNorm(d_model, bias=False)
        start_small(self, 3 * a["n_layers"])

    def forward(
        self, source: torch.Tensor, lengths: torch.Tensor, target: torch.Tensor, seen: list[torch.Tensor] | None = None
    ) -> torch.Tensor:
        """Scores (n, T, n_tokens) of what follows each token of target (n, T), given sources (n, S) of some lengths."""
        return self.decode(target, self.encode(source, lengths), present(lengths, source.shape[1]), seen=seen)

    def encode(self, source: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Vectors (n, S, d_model) of the sources."""
        x, allowed = self.embedding(source), present(lengths, source.shape[1])
        turn = self.embedding.turn(0, source.shape[1], x)
        for block in self.encoder:
            x = block(x, allowed=allowed, turn=turn)
        encoded: torch.Tensor = self.norm_source(x)
        return encoded

    def decode(
        self,
        target: torch.Tensor,
        encoded: torch.Tensor,
        allowed: torch.Tensor,
        past: list[dict[str, Any]] | None = None,
        seen: list[torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """Scores of what follows each token of target; `past` holds what earlier calls left, and is empty at first."""
        if past is not None and not past:
            past.extend({} for _ in self.decoder)
        start = past[0]["own"]["k"].shape[2] if past and past[0] else 0
        x = self.embedding(target, start)
        turn = self.embedding.turn(start, start + target.shape[1], x)
        for i, block in enumerate(self.decoder):
            x = block(
                x,
                is_causal=True,
                turn=turn,
                past=None if past is None else past[i],
                other=encoded,
                other_allowed=allowed,
                seen=seen,
            )
        return functional.linear(self.norm(x), self.embedding.tokens.weight)
