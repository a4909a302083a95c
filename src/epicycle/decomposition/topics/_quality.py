"""Quality of topics: their words, coherence, and the probability of words that were held out."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError
from epicycle.data import Batch
from epicycle.decomposition.topics._inference import Effort, Topics, converged_rows, rows_of

MEASURES = ("npmi", "umass", "pmi")


def together(batch: Batch, words: np.ndarray) -> tuple[np.ndarray, float]:
    """(documents that have both of two words, for all pairs of these; documents), by weight."""
    here = sp.csr_array(batch.X[:, words])
    here.data = (here.data > 0).astype(np.float64)
    weighted = here if batch.weight is None else sp.csr_array(sp.diags_array(batch.weight) @ here)
    return np.asarray((here.T @ weighted).toarray()), batch.total_weight


def coherence_of(both: np.ndarray, n: float, measure: str) -> float:
    """Mean over pairs of words, the more probable one first; `both` has their documents, the diagonal those of one."""
    alone = np.diag(both)
    i, j = np.triu_indices(len(both), 1)  # i before j
    if not len(i):
        return float("nan")
    if measure == "umass":
        with np.errstate(divide="ignore"):
            found = np.where(alone[i] > 0, np.log((both[i, j] + 1) / np.where(alone[i] > 0, alone[i], 1.0)), np.nan)
        return float(np.nanmean(found)) if np.isfinite(found).any() else float("nan")
    known = (alone[i] > 0) & (alone[j] > 0)
    if not known.any():
        return float("nan")
    i, j = i[known], j[known]
    tiny = 1e-12  # of pairs that never meet: their normalised value is near -1
    p = both[i, j] / n + tiny
    value = np.log(p * n * n / (alone[i] * alone[j]))
    return float(np.mean(value if measure == "pmi" else value / np.maximum(-np.log(p), tiny)))


def split_words(X: sp.csr_array, share: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """(observed, held out): every word of every document goes to the first with probability `share`."""
    counts = np.asarray(X.data, dtype=np.float64)
    if counts.size and (not np.array_equal(counts, np.floor(counts)) or counts.max() > 2**31):
        raise DataError("X: expected whole counts, to split words into observed and held-out ones; or give held_out")
    seen, hidden = X.copy(), X.copy()
    first = rng.binomial(counts.astype(np.int64), share).astype(np.float64)
    seen.data, hidden.data = first, counts - first
    return seen, hidden


def log_probability(
    observed: Batch, hidden: Any, topics: Topics, words: np.ndarray, effort: Effort
) -> tuple[float, float]:
    """(log probability of the hidden words, their number), given shares that only the observed ones have shaped."""
    gamma = converged_rows(observed, topics, effort)
    shares = gamma / gamma.sum(axis=1, keepdims=True)
    X = rows_of(Batch(hidden))
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    total, step = 0.0, max(1, 2**22 // words.shape[1])
    for i in range(0, len(rows), step):
        part = slice(i, i + step)
        p = np.einsum("ij,ij->i", shares[rows[part]], words[X.indices[part]])
        total += float(X.data[part] @ np.log(np.maximum(p, np.finfo(np.float64).tiny)))
    return total, float(X.data.sum())
