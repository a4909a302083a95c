"""The module of a BERT: blocks whose tokens see the whole text; scores of hidden tokens, or of classes of texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from epicycle.nets.language._attention import present
from epicycle.nets.language._blocks import Block, Embedding, start_small
from epicycle.nets.training._randomness import Dropout


class BERTModule(nn.Module):  # type: ignore[misc]
    """Vectors of the tokens of texts, and scores of what each token is."""

    def __init__(self, a: Mapping[str, Any]) -> None:
        super().__init__()
        d_model, n_heads, p = a["d_model"], a["n_heads"], a["dropout"]
        self.embedding = Embedding(a["n_tokens"], d_model, n_heads, a["positions"], a["context_length"], p)
        self.blocks = nn.ModuleList(Block(d_model, n_heads, p) for _ in range(a["n_layers"]))
        self.norm = nn.LayerNorm(d_model, bias=False)
        start_small(self, 2 * a["n_layers"])

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Scores (n, T, n_tokens) of the token at each place."""
        return functional.linear(self.encode(tokens, lengths), self.embedding.tokens.weight)

    def encode(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Vectors (n, T, d_model) of padded texts of these lengths."""
        x, allowed = self.embedding(tokens), present(lengths, tokens.shape[1])
        turn = self.embedding.turn(0, tokens.shape[1], x)
        for block in self.blocks:
            x = block(x, allowed=allowed, turn=turn)
        encoded: torch.Tensor = self.norm(x)
        return encoded


class BERTClassifierModule(nn.Module):  # type: ignore[misc]
    """Scores of classes from the vector of the first token, and the mean of all."""

    def __init__(self, a: Mapping[str, Any]) -> None:
        super().__init__()
        self.encoder = BERTModule(a)
        self.pool = nn.Linear(2 * a["d_model"], a["d_model"])
        self.drop = Dropout(a["head_dropout"])
        self.head = nn.Linear(a["d_model"], a["n_outputs"])

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Scores (n, n_outputs) of padded texts of these lengths."""
        return self.head(self.drop(torch.tanh(self.pool(summaries(self.encoder.encode(tokens, lengths), lengths)))))


def summaries(encoded: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """The first vector of each text and the mean of those that are not padding, side by side: (n, 2 d_model)."""
    here = present(lengths, encoded.shape[1])[:, 0, 0, :, None].to(encoded.dtype)
    mean = (encoded * here).sum(1) / lengths[:, None].to(encoded.dtype)
    return torch.cat([encoded[:, 0], mean], dim=1)
