"""Which part of the data a generator covers: the real rows fall into cells, and some may be left without drawn ones.

    coverage = sum of the shares p_k of the cells k in which at least p_k / 10 of the drawn rows fall

Cells are the rows nearest to one of some real rows that are far apart (the seeds of k-means++), so that each group of
rows has one. A mode that the generator lost is a cell that no drawn row meets.
"""

from __future__ import annotations

import numpy as np
import torch

from epicycle.core._random import stream

#: Real rows for each cell on the average, and cells at most.
_ROWS_OF_CELL, _MOST_CELLS = 40, 25
#: A cell with less than this share of the rows that it should have is left out.
_LEFT_OUT = 0.1


class Cells:
    """Cells of real rows.

    Parameters
    ----------
    u : Tensor of shape (n, ...)
        Real rows, in the units in which they are compared.
    weight : Tensor of shape (n,), optional
    seed : int
    """

    def __init__(self, u: torch.Tensor, weight: torch.Tensor | None, seed: int) -> None:
        u = u.flatten(1)
        v = np.ones(len(u)) if weight is None else weight.double().cpu().numpy()
        n_cells = int(np.clip(len(u) // _ROWS_OF_CELL, 1, _MOST_CELLS))
        self.centres = u[_far_apart(u.cpu().double().numpy(), v, n_cells, seed)]
        shares = np.bincount(self._nearest(u), weights=v, minlength=len(self.centres))
        self.shares = shares / shares.sum()

    def _nearest(self, u: torch.Tensor) -> np.ndarray:
        return np.asarray(torch.cdist(u.flatten(1).to(self.centres), self.centres).argmin(1).cpu())

    def coverage(self, drawn: torch.Tensor) -> float:
        """The share of the real rows in cells that rows drawn by a generator meet."""
        if not bool(torch.isfinite(drawn).all()):
            return float("nan")
        met = np.bincount(self._nearest(drawn), minlength=len(self.centres)) / len(drawn)
        return float(self.shares[met >= _LEFT_OUT * self.shares].sum())


def _far_apart(u: np.ndarray, weight: np.ndarray, n: int, seed: int) -> list[int]:
    """Numbers of n rows: each is drawn in proportion to its squared distance from those before it."""
    rng = stream(seed, "cells")
    chosen = [int(rng.choice(len(u), p=weight / weight.sum()))]
    distance = ((u - u[chosen[0]]) ** 2).sum(1)
    while len(chosen) < n and (total := float(weight @ distance)) > 0:
        chosen.append(int(rng.choice(len(u), p=weight * distance / total)))
        distance = np.minimum(distance, ((u - u[chosen[-1]]) ** 2).sum(1))
    return chosen
