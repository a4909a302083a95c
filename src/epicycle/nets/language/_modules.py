"""The modules of GPT, BERT and Transformer: chains of blocks between one table of vectors of the tokens.

Those of a GPT see what came before, those of a BERT the whole text; an encoder-decoder has blocks that see the whole
source, and blocks that see it and the target so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from epicycle.nets.language._attention import present
from epicycle.nets.language._blocks import Block, Embedding, start_small
from epicycle.nets.training._randomness import Dropout


class _Chain(nn.Module):  # type: ignore[misc]
    """A chain of blocks; the vectors of the tokens are those of the last layer too."""

    def __init__(self, a: Mapping[str, Any]) -> None:
        super().__init__()
        d_model, n_heads, p = a["d_model"], a["n_heads"], a["dropout"]
        self.embedding = Embedding(a["n_tokens"], d_model, n_heads, a["positions"], a["context_length"], p)
        self.blocks = nn.ModuleList(Block(d_model, n_heads, p) for _ in range(a["n_layers"]))
        self.norm = nn.LayerNorm(d_model, bias=False)
        start_small(self, 2 * a["n_layers"])


class GPTModule(_Chain):
    """Scores of the next token at every place."""

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


class BERTModule(_Chain):
    """Vectors of the tokens of texts, and scores of what each token is."""

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Scores (n, T, n_tokens) of the token at each place."""
        return functional.linear(self.encode(tokens, lengths), self.embedding.tokens.weight)

    def encode(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Vectors (n, T, d_model) of padded texts of these lengths."""
        return _seen_whole(tokens, lengths, self.embedding, self.blocks, self.norm)


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
        return _seen_whole(source, lengths, self.embedding, self.encoder, self.norm_source)

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


def _seen_whole(
    tokens: torch.Tensor, lengths: torch.Tensor, embedding: Embedding, blocks: nn.ModuleList, norm: nn.Module
) -> torch.Tensor:
    """Vectors (n, T, d_model) of padded texts of these lengths, each token of which sees the whole text."""
    x, allowed = embedding(tokens), present(lengths, tokens.shape[1])
    turn = embedding.turn(0, tokens.shape[1], x)
    for block in blocks:
        x = block(x, allowed=allowed, turn=turn)
    encoded: torch.Tensor = norm(x)
    return encoded
