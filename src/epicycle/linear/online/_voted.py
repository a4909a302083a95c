"""The voted perceptron's memory: every weight vector that it ever had, and how many rows each survived."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.core._memory import require_memory
from epicycle.data import Batch
from epicycle.linear.online._row_order import Piece

__all__ = ["Survivors", "add_survivors", "no_survivors", "votes_batch"]

#: For each model: weight vectors of shape (M, p + 1), the intercept last, and the rows that each survived.
Survivors = dict[str, list[np.ndarray]]


def no_survivors(p: int, K: int) -> Survivors:
    """Vectors of zeros that have survived nothing yet."""
    return {"vectors": [np.zeros((1, p + 1)) for _ in range(K)], "votes": [np.zeros(1) for _ in range(K)]}


def add_survivors(
    kept: Survivors, piece: Piece, positive: np.ndarray, scores: np.ndarray, *, intercept: bool
) -> Survivors:
    """The vectors after rows that had these scores; a mistake on row x makes w + y x the next vector."""
    m, X = len(scores), piece.X
    sparse = sp.issparse(X)
    rows = np.arange(m) if piece.order is None else piece.order
    share = np.ones(m) if piece.fraction is None else piece.fraction
    vectors, votes = [], []
    for k in range(len(positive)):
        sign = np.where(piece.y[rows] == positive[k], 1.0, -1.0)
        hits = np.flatnonzero(sign * scores[:, k] <= 0)
        before, counts = kept["vectors"][k], kept["votes"][k]
        require_memory(
            8.0 * (len(before) + len(hits)) * before.shape[1],
            f"Perceptron(variant='voted'), which keeps a vector for each of {len(before) + len(hits) - 1} mistakes,",
            "use variant='averaged', which keeps one",
        )
        found = np.empty((len(hits), before.shape[1]))
        current = before[-1].copy()
        for i, hit in enumerate(hits):  # one vector is written for each, so the loop is not what it costs
            row, step = rows[hit], sign[hit] * share[hit]
            if sparse:
                start, stop = X.indptr[row], X.indptr[row + 1]
                np.add.at(current, X.indices[start:stop], step * X.data[start:stop])
            else:
                current[:-1] += step * X[row]
            current[-1] += step if intercept else 0.0
            found[i] = current
        # A vector survives from the row that made it up to the next mistake.
        ends = np.concatenate([[0.0], np.cumsum(share)])
        at = np.concatenate([ends[hits], ends[-1:]])
        counts = np.concatenate([counts, np.diff(at)])
        counts[len(before) - 1] += at[0]
        vectors.append(np.concatenate([before, found]))
        votes.append(counts)
    return {"vectors": vectors, "votes": votes}


def votes_batch(batch: Batch, kept: Survivors, models: list[int]) -> Any:
    """The mean vote of each model's vectors, between -1 and 1, shape (n, K)."""
    out = np.empty((batch.n_rows, len(models)))
    for column, k in enumerate(models):
        vectors, votes = kept["vectors"][k], kept["votes"][k]
        signs = np.sign(np.asarray(batch.X @ vectors[:, :-1].T) + vectors[:, -1])
        out[:, column] = signs @ votes / max(float(votes.sum()), 1.0)
    return out
