"""Parts of all transformers: embeddings of tokens and places, and blocks of attention and a perceptron.

x <- x + attention(norm(x)),   [x <- x + attention to another sequence(norm(x)),]   x <- x + perceptron(norm(x))
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from epicycle.nets.language._attention import MultiHeadAttention, sinusoids
from epicycle.nets.training._randomness import Dropout

#: Standard deviation of the weights at the start.
_SPREAD = 0.02


class Block(nn.Module):  # type: ignore[misc]
    """One layer; with `crossed` it also attends to another sequence, that of an encoder."""

    def __init__(self, d_model: int, n_heads: int, dropout: float, *, crossed: bool = False) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = (nn.LayerNorm(d_model, bias=False) for _ in range(2))
        self.attention = MultiHeadAttention(d_model, n_heads, dropout)
        if crossed:
            self.norm_other = nn.LayerNorm(d_model, bias=False)
            self.cross = MultiHeadAttention(d_model, n_heads, dropout)
        self.perceptron = nn.Sequential(
            nn.Linear(d_model, 4 * d_model, bias=False),
            nn.GELU(),
            nn.Linear(4 * d_model, d_model, bias=False),
            Dropout(dropout),
        )

    def forward(
        self,
        x: torch.Tensor,
        *,
        allowed: torch.Tensor | None = None,
        is_causal: bool = False,
        turn: Any = None,
        past: dict[str, Any] | None = None,
        other: torch.Tensor | None = None,
        other_allowed: torch.Tensor | None = None,
        seen: list[torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """The arguments of the attention, and of that to `other`."""
        own, cross = (None, None) if past is None else (past.setdefault("own", {}), past.setdefault("cross", {}))
        x = x + self.attention(
            self.norm_1(x),
            allowed=allowed,
            is_causal=is_causal,
            turn=turn,
            past=own,
            seen=None if other is not None else seen,
        )
        if other is not None:
            x = x + self.cross(self.norm_other(x), other, allowed=other_allowed, past=cross, seen=seen)
        return x + self.perceptron(self.norm_2(x))


class Embedding(nn.Module):  # type: ignore[misc]
    """Tokens as vectors that know their place.

    positions : "learned" adds a vector for each place, "sinusoidal" waves; "rotary" turns queries and keys instead, by
    the angles that `turn` gives.
    """

    def __init__(self, n_tokens: int, d_model: int, n_heads: int, positions: str, longest: int, dropout: float) -> None:
        super().__init__()
        self.tokens = nn.Embedding(n_tokens, d_model)
        self.d_model, self.head, self.positions = d_model, d_model // n_heads, positions
        if positions == "learned":
            self.places = nn.Embedding(longest, d_model)
        self.drop = Dropout(dropout)

    def forward(self, tokens: torch.Tensor, start: int = 0) -> torch.Tensor:
        """Vectors of shape (n, T, d_model) of tokens of shape (n, T), the first at place `start`."""
        x = self.tokens(tokens)
        places = torch.arange(start, start + tokens.shape[1], device=tokens.device)
        if self.positions == "learned":
            x = x + self.places(places)
        elif self.positions == "sinusoidal":
            # Vaswani et al. (2017), section 3.4: without the factor the waves would be all that is heard.
            waves = torch.stack(sinusoids(places, self.d_model, x.dtype), dim=-1).flatten(-2)
            x = math.sqrt(self.d_model) * x + waves[:, : self.d_model]
        found: torch.Tensor = self.drop(x)
        return found

    def turn(self, start: int, stop: int, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
        """(sin, cos) of the rotary positions start .. stop - 1; None with other positions."""
        if self.positions != "rotary":
            return None
        return sinusoids(torch.arange(start, stop, device=like.device), self.head, like.dtype)


def start_small(module: nn.Module, n_residual: int) -> None:
    """Normal weights of deviation 0.02; those that end a residual branch smaller, by the root of their number."""
    for name, weight in module.named_parameters():
        if weight.ndim > 1:
            ends = name.endswith(("output.weight", "perceptron.2.weight"))
            nn.init.normal_(weight, std=_SPREAD / math.sqrt(n_residual) if ends else _SPREAD)
