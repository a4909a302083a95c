"""A long text as windows for truncated back-propagation through time.

The text is laid out in lanes, one beside the other; batch t holds the t-th window of every lane. The state at the end
of a window is where the next one starts, while gradients end at the edges of windows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from epicycle.nets.training._batches import MiniBatch, Rows


class WindowRows(Rows):
    """Windows of a sequence of tokens, each with the token that follows every one of its tokens as target.

    The module is called with the tokens (lanes, window), the numbers of the lanes, and whether each of them starts
    anew. Targets outside the text are -1.

    Parameters
    ----------
    tokens : ndarray of shape (n,)
    n_lanes, window : int
        At most.
    """

    def __init__(self, tokens: np.ndarray, n_lanes: int, window: int) -> None:
        self.tokens, self.window = tokens, window
        self.n_predictions = len(tokens) - 1
        # A lane shorter than a window would be mostly padding.
        wanted = max(1, min(n_lanes, self.n_predictions // window))
        self.steps = -(-self.n_predictions // wanted)  # of a lane
        self.n_lanes = -(-self.n_predictions // self.steps)
        self.n_windows = -(-self.steps // window)
        self.n_rows = self.n_lanes * self.n_windows

    def n_batches(self, batch_size: int) -> int:
        return self.n_windows

    def epoch(self, batch_size: int, epoch: int, seed: int, *, shuffle: bool) -> Iterator[MiniBatch]:
        starts = np.arange(self.n_lanes) * self.steps
        lanes = torch.arange(self.n_lanes)
        for w in range(self.n_windows):
            # Of equal sizes but for one step: a short last window would count as much as a long one.
            offsets = np.arange(w * self.steps // self.n_windows, (w + 1) * self.steps // self.n_windows)
            at = starts[:, None] + offsets
            inside = at < self.n_predictions
            inputs = self.tokens[np.minimum(at, self.n_predictions - 1)].astype(np.int64)
            target = np.where(inside, self.tokens[np.minimum(at + 1, self.n_predictions)], -1).astype(np.int64)
            fresh = torch.full((self.n_lanes,), w == 0)
            yield MiniBatch((torch.from_numpy(inputs), lanes, fresh), torch.from_numpy(target))
