"""Windows of long texts as rows: at random places to learn from, one after another to be scored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from epicycle.core._memory import require_memory
from epicycle.core._random import stream
from epicycle.nets.training._batches import MiniBatch, Rows

#: Steps of an epoch at most. Places are drawn with replacement, so its length means little, and a fit that goes on
#: passes over the steps of its epoch that are done.
_LONGEST_EPOCH = 256


class TokenWindows(Rows):
    """Windows of `context` tokens, each with the tokens after them as targets; padded targets are -1.

    Training takes places at random, which follow from the seed, the epoch and the step. In order,
    windows follow each other without overlap through every sequence, and a row weighs as much as it has targets.

    Parameters
    ----------
    sequences : sequence of ndarray of int
        Targets never come from another sequence than their inputs when the windows are in order; in training the
        sequences are one long text.
    context : int
    begins : ndarray of int, optional
        The places among all tokens at which training windows may begin; by default anywhere.
    most : int, optional
        In order, only so many windows, evenly spread.
    """

    def __init__(
        self,
        sequences: Sequence[np.ndarray],
        context: int,
        begins: np.ndarray | None = None,
        most: int | None = None,
    ) -> None:
        self.tokens = np.concatenate([np.empty(0, np.int32), *sequences])
        self.context, self.begins = context, begins
        ends = np.cumsum([len(s) for s in sequences], dtype=np.int64)
        first = np.concatenate([[0], ends[:-1]])
        starts = [np.arange(a, b - 1, context) for a, b in zip(first, ends, strict=True)]
        self.sequence = np.repeat(np.arange(len(starts)), [len(s) for s in starts])
        self.starts = np.concatenate([np.empty(0, np.int64), *starts])
        self.counts = np.minimum(ends[self.sequence] - 1 - self.starts, context)
        if most is not None and len(self.starts) > most:
            kept = np.linspace(0, len(self.starts) - 1, most).round().astype(int)
            self.starts, self.counts, self.sequence = self.starts[kept], self.counts[kept], self.sequence[kept]
        self.n_rows = len(self.starts)

    def n_batches(self, batch_size: int) -> int:
        return min(super().n_batches(batch_size), _LONGEST_EPOCH)

    def epoch(self, batch_size: int, epoch: int, seed: int, *, shuffle: bool) -> Iterator[MiniBatch]:
        if not shuffle:
            for at in range(0, self.n_rows, batch_size):
                rows = slice(at, at + batch_size)
                yield self._batch(self.starts[rows], self.counts[rows], weighted=True)
            return
        width = min(self.context + 1, len(self.tokens))
        require_memory(32.0 * batch_size * width, f"a batch of {batch_size} windows", "take a smaller batch_size")
        last = len(self.tokens) - 1  # the last token has nothing after it
        anywhere = max(last - self.context, 0) + 1
        for step in range(self.n_batches(batch_size)):
            rng = stream(seed, "windows", epoch, step)
            starts = (
                rng.integers(0, anywhere, batch_size) if self.begins is None else rng.choice(self.begins, batch_size)
            )
            yield self._batch(starts, np.minimum(last - starts, self.context), weighted=False)

    def _batch(self, starts: np.ndarray, counts: np.ndarray, *, weighted: bool) -> MiniBatch:
        width = int(counts.max())
        places = starts[:, None] + np.arange(width + 1)
        rows = self.tokens[np.minimum(places, len(self.tokens) - 1)].astype(np.int64)
        inputs, target = rows[:, :-1], rows[:, 1:].copy()
        target[np.arange(width) >= counts[:, None]] = -1
        weight = torch.from_numpy(counts / self.context) if weighted else None
        return MiniBatch((torch.from_numpy(inputs.copy()),), torch.from_numpy(target), weight)
