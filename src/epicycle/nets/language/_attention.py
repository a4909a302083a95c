r"""Attention, and the positions of tokens.

    attention(Q, K, V) = softmax(Q K' / sqrt(d)) V ,

where position t of Q sees position s of K only if ``allowed[t, s]``. With h heads, d = d_model / h, each head has
projections of its own, and their results side by side are projected once more.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from epicycle.nets.training._randomness import Dropout, dropout, seed_device


def attention_weights(q: torch.Tensor, k: torch.Tensor, allowed: torch.Tensor | None = None) -> torch.Tensor:
    """softmax(Q K' / sqrt(d)), of shape (..., T, S), zero where not allowed; every row needs a place that is."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -math.inf)
    return scores.softmax(-1)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, allowed: torch.Tensor | None = None) -> torch.Tensor:
    """softmax(Q K' / sqrt(d)) V for q of shape (..., T, d), k and v of shape (..., S, d), allowed of (..., T, S)."""
    return attention_weights(q, k, allowed) @ v


def causal(n_queries: int, n_keys: int, device: Any = None) -> torch.Tensor:
    """Whether query t, the last of which is at the last key, may see key s: only what is not after it."""
    return torch.ones(n_queries, n_keys, dtype=torch.bool, device=device).tril(n_keys - n_queries)


def present(lengths: torch.Tensor, longest: int) -> torch.Tensor:
    """Which places of padded sequences hold something, of shape (n, 1, 1, longest), for all heads and queries."""
    return (torch.arange(longest, device=lengths.device) < lengths[:, None])[:, None, None, :]


def sinusoids(places: torch.Tensor, width: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """(sin, cos) of place / 10000^(2 i / width), i < width / 2, each of shape (T, width / 2)."""
    rates = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64, device=places.device) / width)
    angles = places.double()[:, None] * rates
    return angles.sin().to(dtype), angles.cos().to(dtype)


def rotated(x: torch.Tensor, sin: torch.Tensor, cos: torch.Tensor) -> torch.Tensor:
    """Coordinates i and i + d/2 of x, of shape (..., T, d), turned by the angle of their place.

    Then the product of a query and a key depends on the distance of their places, not on the places.
    """
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


class MultiHeadAttention(nn.Module):  # type: ignore[misc]
    """Attention of several heads, of a sequence to itself or to another one."""

    def __init__(self, d_model: int, n_heads: int, dropout: float) -> None:
        super().__init__()
        self.n_heads, self.dropout = n_heads, dropout
        self.query = nn.Linear(d_model, d_model, bias=False)
        self.key_value = nn.Linear(d_model, 2 * d_model, bias=False)
        self.output = nn.Linear(d_model, d_model, bias=False)
        self.drop = Dropout(dropout)

    def _heads(self, x: torch.Tensor) -> torch.Tensor:
        """(n, T, d_model) as (n, heads, T, d)."""
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def forward(
        self,
        x: torch.Tensor,
        other: torch.Tensor | None = None,
        *,
        allowed: torch.Tensor | None = None,
        is_causal: bool = False,
        turn: tuple[torch.Tensor, torch.Tensor] | None = None,
        past: dict[str, torch.Tensor] | None = None,
        seen: list[torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """Attention of x, of shape (n, T, d_model), to itself, or to `other` of shape (n, S, d_model).

        Parameters
        ----------
        allowed : tensor that broadcasts to (n, heads, T, S), optional
        is_causal : bool
            In place of `allowed`: place t sees places up to t.
        turn : (sin, cos), optional
            Rotary positions of x.
        past : dict, optional
            Keys and values of earlier calls, which are added to (of `other`: made once); empty at first.
        seen : list, optional
            The weights are appended to it.
        """
        q = self._heads(self.query(x))
        if other is not None and past:
            k, v = past["k"], past["v"]
        else:
            k, v = map(self._heads, self.key_value(x if other is None else other).chunk(2, dim=-1))
            if turn is not None:
                k = rotated(k, *turn)
            if past and other is None:
                k, v = torch.cat([past["k"], k], dim=2), torch.cat([past["v"], v], dim=2)
            if past is not None:
                past["k"], past["v"] = k, v
        if turn is not None:
            q = rotated(q, *turn)
        if is_causal and q.shape[2] < k.shape[2]:  # torch's flag would align the first query with the first key
            allowed, is_causal = causal(q.shape[2], k.shape[2], x.device), False
        p = self.dropout if self.training else 0.0
        if seen is None and (p == 0 or q.is_cuda):  # on a GPU torch's kernel draws from the generator of the step
            if p > 0:
                seed_device()
            found = functional.scaled_dot_product_attention(
                q, k, v, attn_mask=allowed, is_causal=is_causal, dropout_p=p
            )
        else:  # the same, written out
            weights = attention_weights(q, k, causal(q.shape[2], k.shape[2], x.device) if is_causal else allowed)
            if seen is not None:
                seen.append(weights)
            found = dropout(weights, p, self.training) @ v
        mixed: torch.Tensor = self.drop(self.output(found.transpose(1, 2).flatten(2)))
        return mixed
