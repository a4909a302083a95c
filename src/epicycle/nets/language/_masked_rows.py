"""Texts of which some tokens are hidden, as rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from epicycle.core._random import stream
from epicycle.nets.training._batches import MiniBatch, SequenceRows


class MaskedRows(SequenceRows):
    """Sequences, each with a share of its tokens hidden anew in every epoch; the targets are those tokens, else -1.

    Of the hidden ones 80 % become the mask, 10 % another token by chance, and 10 % stay as they are (Devlin et al.,
    2019): what is to be guessed cannot be told from its looks. The first token, the mark of the text, is never hidden.

    Parameters
    ----------
    sequences : sequence of ndarray of int
    share : float
    n_tokens : int
        Tokens that chance takes from are 0 .. n_tokens - 1.
    mask : int
    """

    def __init__(self, sequences: Sequence[np.ndarray], share: float, n_tokens: int, mask: int) -> None:
        super().__init__(sequences)
        self.share, self.n_plain, self.mask = share, n_tokens, mask

    def epoch(self, batch_size: int, epoch: int, seed: int, *, shuffle: bool) -> Iterator[MiniBatch]:
        for step, batch in enumerate(super().epoch(batch_size, epoch, seed, shuffle=shuffle)):
            tokens, lengths = (t.numpy() for t in batch.inputs)
            hidden, target = self._hide(tokens, lengths, stream(seed, "mask", epoch, step))
            yield MiniBatch((torch.from_numpy(hidden), batch.inputs[1]), torch.from_numpy(target), batch.weight)

    def _hide(self, tokens: np.ndarray, lengths: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """(what is seen, what is to be guessed)."""
        places = np.arange(tokens.shape[1])
        open_ = (places > 0) & (places < lengths[:, None])
        draw = np.where(open_, rng.random(tokens.shape), np.inf)
        picked = draw < self.share
        # Every text gives something to guess: the place of the smallest draw, where none is below the share.
        without = ~picked.any(axis=1) & open_.any(axis=1)
        picked[without, draw[without].argmin(axis=1)] = True
        kind = rng.random(tokens.shape)
        seen = np.where(picked & (kind < 0.8), self.mask, tokens)
        seen = np.where(picked & (kind >= 0.8) & (kind < 0.9), rng.integers(0, self.n_plain, tokens.shape), seen)
        return seen.astype(np.int64), np.where(picked, tokens, -1).astype(np.int64)
