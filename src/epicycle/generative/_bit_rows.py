"""Rows as bits: an entry is the bit whether it is above a threshold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from epicycle.nets.training._randomness import generator


class BitRows(nn.Module):  # type: ignore[misc]
    """Base of the modules whose rows are bits.

    Parameters
    ----------
    architecture : mapping
        With "shape", "top" (what stands for 1) and "threshold", as `bit_entries` gives them.
    """

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        self.shape = architecture["shape"]
        self.top, self.threshold = architecture["top"], architecture["threshold"]

    def bits(self, x: torch.Tensor) -> torch.Tensor:
        """Rows as bits: which entries are above the threshold."""
        like = next(self.parameters())
        return (x.to(like) > self.threshold * self.top).to(like).flatten(1)

    def rows(self, bits: torch.Tensor) -> torch.Tensor:
        """Bits, or probabilities of them, in the units and the layout of rows."""
        return (bits * self.top).view(-1, *self.shape)


def bit_entries(rows: Any, threshold: float) -> dict[str, float]:
    """Entries of an architecture: bytes above 1 stand for numbers from 0 to 1."""
    inputs = (batch.inputs[0] for batch in rows.in_order(4096))
    wide = any(not x.is_floating_point() and int(x.max()) > 1 for x in inputs)
    return {"top": 255.0 if wide else 1.0, "threshold": float(threshold)}


def all_states(units: int, like: torch.Tensor) -> torch.Tensor:
    """All states of so many bits, of shape (2^units, units)."""
    return ((torch.arange(2**units)[:, None] >> torch.arange(units)) & 1).to(like)


def drawn_bits(scores: torch.Tensor) -> torch.Tensor:
    """Bits that are 1 with the probabilities sigmoid(scores).

    Scores that are no numbers give zeros: of a fit that has diverged the loss says so.
    """
    return torch.bernoulli(torch.sigmoid(scores).nan_to_num(0.0), generator=generator())
