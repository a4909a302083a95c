"""The variational bound of latent Dirichlet allocation, in summation form.

With q(theta_d) = Dirichlet(gamma_d) and q(phi_k) = Dirichlet(lambda_k), and with the best shares of topics in words,

    L = sum_d v_d [ sum_w c_dw log sum_k exp(E log theta_dk + E log phi_kw) - KL(gamma_d || alpha) ]
        - sum_k KL(lambda_k || eta)   <=   log p(documents).

gamma_d = alpha + sum_w c_dw (shares of w) and lambda_k = eta + sum_d v_d c_d. (shares of k) never lower L. lambda has
the shape (p, k): a word's topics lie together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln, psi

from epicycle import _native
from epicycle.core._threads import n_threads
from epicycle.data import ArrayData, Batch, Data

_WORK = 40  # multiply-adds of a digamma and an exponential
_PER_ENTRY = 20  # multiply-adds of a topic for a word of a document


@dataclass(frozen=True)
class Topics:
    """Topics as inference uses them: weights of words up to a factor for each word, its logarithm, and alpha."""

    b: np.ndarray
    shift: np.ndarray
    alpha: np.ndarray


def expected_topics(lam: np.ndarray, alpha: np.ndarray, eta: float, n_jobs: int | None) -> tuple[Topics, float]:
    """(topics by exp E log phi, the part of the bound that they have)."""
    p, k = lam.shape
    b, shift, totals = np.empty((p, _native.decomposition.padded_topics(k))), np.empty(p), lam.sum(axis=0)
    threads = n_threads(float(p * k * _WORK), n_jobs)
    terms = _native.decomposition.expected_topics(lam, totals, eta, True, b, shift, threads)
    # The sum over words of (eta - lambda) times digamma(total) is (p eta - total) digamma(total).
    closing = gammaln(totals) + (p * eta - totals) * psi(totals)
    bound = float(np.sum(terms - closing) + k * (gammaln(p * eta) - p * gammaln(eta)))
    return Topics(b, shift, alpha), bound


def mean_topics(lam: np.ndarray, alpha: np.ndarray) -> Topics:
    """Topics by E phi."""
    p, k = lam.shape
    b = np.zeros((p, _native.decomposition.padded_topics(k)))
    np.divide(lam, lam.sum(axis=0), out=b[:, :k])
    top = b.max(axis=1)
    b /= top[:, None]
    return Topics(b, np.log(top), alpha)


@dataclass(frozen=True)
class Effort:
    """Limits of the improvement of a document's parameters: the mean change at which they end, and the most steps.

    `threads` share the documents of a batch; more than one only where batches are not taken side by side.
    """

    tol: float
    most: int
    threads: int = 1

    def shared(self, X: Any, k: int, n_jobs: int | None) -> Effort:
        """The same for a batch that is taken alone, of k topics."""
        stored = X.nnz if sp.issparse(X) else X.size
        return replace(self, threads=n_threads(float(stored * k * _PER_ENTRY), n_jobs))

    def of(self, data: Data, k: int, n_jobs: int | None) -> Effort:
        """The same for all batches of the data, among which there may be one only."""
        if isinstance(data, ArrayData) and data.n_blocks == 1:
            return self.shared(data.X, k, n_jobs)
        return self


def rows_of(batch: Batch) -> Any:
    """The rows in CSR."""
    return batch.X if sp.issparse(batch.X) else sp.csr_array(batch.X)


def start_of(X: Any, alpha: np.ndarray) -> np.ndarray:
    """Parameters of documents of which all topics have the same share."""
    counts = np.asarray(X.sum(axis=1), dtype=np.float64).reshape(-1, 1)
    return np.ascontiguousarray(alpha + counts / len(alpha))


def ascend(
    batch: Batch, gamma: np.ndarray, topics: Topics, effort: Effort, sums: bool
) -> tuple[np.ndarray, np.ndarray, float]:
    """(sums over documents for lambda, of E log theta, the documents' part of the bound); gamma moves in place.

    Rows of gamma that are zero have not been started yet. The bound is that before the last step of each document.
    """
    X = rows_of(batch)
    fresh = ~gamma.any(axis=1)
    if fresh.any():
        gamma[fresh] = start_of(X, topics.alpha)[fresh]
    found = np.zeros_like(topics.b) if sums else None
    logs = np.zeros(len(topics.alpha))
    bound, _ = _native.decomposition.infer_documents(
        X,
        batch.weight,
        topics.b,
        topics.shift,
        topics.alpha,
        effort.tol,
        effort.most,
        True,
        gamma,
        found,
        logs,
        effort.threads,
    )
    return (np.zeros(0) if found is None else found), logs, bound


def converged_rows(batch: Batch, topics: Topics, effort: Effort) -> np.ndarray:
    """gamma of documents, from equal shares on."""
    X = rows_of(batch)
    gamma = start_of(X, topics.alpha)
    _native.decomposition.infer_documents(
        X, None, topics.b, topics.shift, topics.alpha, effort.tol, effort.most, False, gamma, None, None, effort.threads
    )
    return gamma


def bound_statistic(batch: Batch, topics: Topics, effort: Effort) -> tuple[float, float, float, int]:
    """(the documents' part of the bound, words, weight, rows), with gamma at its end."""
    gamma = converged_rows(batch, topics, effort)
    _, _, bound = ascend(batch, gamma, topics, Effort(0.0, 1, effort.threads), sums=False)
    counts = np.asarray(batch.X.sum(axis=1), dtype=np.float64).ravel()
    words = float(counts.sum() if batch.weight is None else counts @ batch.weight)
    return bound, words, batch.total_weight, batch.n_rows
