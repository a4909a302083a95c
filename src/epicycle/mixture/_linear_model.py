"""Components of an exponential family in which x itself is the statistic:  log p_k(x) = x'eta_k - A_k + h(x).

E: shares of the components in a row, from one product of matrices. M: sums of r x for each component. `alpha` adds
pseudo-counts, the mode under a conjugate prior, so that no probability is 0.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln, xlogy

from epicycle.data import Batch, Data
from epicycle.em import Expectation
from epicycle.mixture._mixture_model import LEAST_SHARE, MixtureModel, new_weights, shares

#: Probabilities and rates stay above this, so that logarithms are numbers.
_TINY = 1e-300
#: And probabilities of an event and its opposite above this.
_SMALL = 1e-15


class LinearModel(MixtureModel):
    """Components whose parameters are a table `values` of shape (k, p)."""

    def __init__(self, k: int, p: int, alpha: float) -> None:
        super().__init__(k, p)
        self.alpha = alpha
        #: Sum of v h(x) over the rows of a fit, and the mean of every column.
        self.carried = 0.0
        self.mean = np.ones(p)

    @abstractmethod
    def natural(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(eta, A) of the components."""

    @abstractmethod
    def maximised(self, counts: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """The values that maximise the expected log-likelihood and the prior."""

    def carrier(self, X: Any) -> np.ndarray:
        """h(x) of every row."""
        return np.zeros(X.shape[0])

    def rows(self, X: Any) -> Any:
        """The columns of X that the components use."""
        return X

    def prepared(self, parameters: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        eta, A = self.natural(parameters["values"])
        with np.errstate(divide="ignore"):  # a weight of 0
            return np.ascontiguousarray(eta.T), np.log(parameters["weights"]) - A

    def log_joint(self, X: Any, prepared: Any) -> np.ndarray:
        rows = self.rows(X)
        return np.asarray(_scores(rows, prepared) + self.carrier(rows)[:, None])

    def e_step(self, batch: Batch, parameters: Any) -> tuple[Any, ...]:
        rows = self.rows(batch.X)
        total, r = shares(_scores(rows, parameters))
        if batch.weight is not None:
            r *= batch.weight[:, None]
            total = np.where(batch.weight > 0, total * batch.weight, 0.0)
        return float(total.sum()), r.sum(axis=0), np.ascontiguousarray(np.asarray(rows.T @ r).T)

    def expectation(self, data: Data, parameters: Mapping[str, np.ndarray], n_jobs: int | None = None) -> Expectation:
        found = super().expectation(data, parameters, n_jobs)
        return Expectation(found.log_likelihood + self.carried, found.statistics, found.weight)

    def m_step(self, statistics: tuple[Any, ...], parameters: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        counts, sums = statistics
        values = self.maximised(counts, sums)
        dead = counts <= LEAST_SHARE * counts.sum()
        if self.alpha == 0 and dead.any():
            values[dead] = parameters["values"][dead]
        return {"weights": new_weights(counts), "values": values}

    def from_shares(self, X: Any, r: np.ndarray) -> dict[str, np.ndarray]:
        rows = self.rows(X)
        counts, sums = r.sum(axis=0), np.asarray(rows.T @ r, dtype=np.float64).T
        empty = counts <= LEAST_SHARE * counts.sum()
        everything = self.maximised(counts.sum(keepdims=True), sums.sum(axis=0, keepdims=True))
        values = np.where(empty[:, None], everything, self.maximised(np.where(empty, 1.0, counts), sums))
        return {"weights": new_weights(np.where(empty, counts.sum() / (1 + len(r)), counts)), "values": values}

    def feasible(self, parameters: Mapping[str, np.ndarray]) -> bool:
        return super().feasible(parameters) and bool((parameters["values"] > 0).all())

    def n_parameters(self) -> int:
        return self.k * self.p + self.k - 1


def _scores(rows: Any, prepared: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    eta, constants = prepared
    return np.asarray(np.asarray(rows @ eta) + constants)


class BernoulliModel(LinearModel):
    """x_j = 1 with probability values_kj, independent of each other."""

    def __init__(self, k: int, p: int, alpha: float, binarize: float | None) -> None:
        super().__init__(k, p, alpha)
        self.binarize = binarize

    def rows(self, X: Any) -> Any:
        if self.binarize is None:
            return X
        if isinstance(X, np.ndarray):
            return (self.binarize < X).astype(np.float64)
        return sp.csr_array(((X.data > self.binarize).astype(np.float64), X.indices, X.indptr), shape=X.shape)

    def start_rows(self, X: Any) -> Any:
        return self.rows(X)

    def natural(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        none = np.log1p(-values)
        return np.log(values) - none, -none.sum(axis=1)

    def maximised(self, counts: np.ndarray, sums: np.ndarray) -> np.ndarray:
        n = np.where(counts > 0, counts, 1.0)[:, None]
        return np.asarray(np.clip((sums + self.alpha) / (n + 2 * self.alpha), _SMALL, 1 - _SMALL))

    def log_prior(self, parameters: Mapping[str, np.ndarray]) -> float:
        values = parameters["values"]
        return self.alpha * float((np.log(values) + np.log1p(-values)).sum())

    def feasible(self, parameters: Mapping[str, np.ndarray]) -> bool:
        return super().feasible(parameters) and bool((parameters["values"] < 1).all())


class MultinomialModel(LinearModel):
    """Each of the n = sum_j x_j draws of a row is j with probability values_kj."""

    def carrier(self, X: Any) -> np.ndarray:
        totals = np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
        return np.asarray(gammaln(totals + 1) + _log_factorials(X))

    def start_rows(self, X: Any) -> Any:
        """Rows of length one: documents by what they are about, not by how long they are."""
        if isinstance(X, np.ndarray):
            lengths = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))
            return X / np.where(lengths > 0, lengths, 1.0)[:, None]
        lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel())
        each = np.repeat(1.0 / np.where(lengths > 0, lengths, 1.0), np.diff(X.indptr))
        return sp.csr_array((X.data * each, X.indices, X.indptr), shape=X.shape)

    def natural(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.log(values), np.zeros(len(values))

    def maximised(self, counts: np.ndarray, sums: np.ndarray) -> np.ndarray:
        raised = sums + self.alpha
        total = raised.sum(axis=1, keepdims=True)
        return np.where(total > 0, np.maximum(raised / np.where(total > 0, total, 1.0), _TINY), 1 / sums.shape[1])

    def normalised(self, parameters: Any) -> Any:
        """With weights, and probabilities of each component, that add up to one."""
        values = parameters["values"]
        total = values.sum(axis=1, keepdims=True)
        return super().normalised({**parameters, "values": values / np.where(total > 0, total, 1.0)})

    def log_prior(self, parameters: Mapping[str, np.ndarray]) -> float:
        return self.alpha * float(np.log(parameters["values"]).sum()) if self.alpha else 0.0

    def n_parameters(self) -> int:
        return self.k * (self.p - 1) + self.k - 1


class PoissonModel(LinearModel):
    """x_j is Poisson with rate values_kj; `alpha` counts as that many rows with the mean of all rows."""

    def carrier(self, X: Any) -> np.ndarray:
        return _log_factorials(X)

    def start_rows(self, X: Any) -> Any:
        """Roots, whose variances are about the same for any rate."""
        return np.sqrt(X) if isinstance(X, np.ndarray) else X.sqrt()

    def natural(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.log(values), values.sum(axis=1)

    def maximised(self, counts: np.ndarray, sums: np.ndarray) -> np.ndarray:
        n = counts + self.alpha
        raised = sums + self.alpha * self.mean
        return np.asarray(np.maximum(raised / np.where(n > 0, n, 1.0)[:, None], _TINY))

    def log_prior(self, parameters: Mapping[str, np.ndarray]) -> float:
        values = parameters["values"]
        return self.alpha * float((xlogy(self.mean, values) - values).sum()) if self.alpha else 0.0


def _log_factorials(X: Any) -> np.ndarray:
    """- sum_j log x_j! of every row."""
    if isinstance(X, np.ndarray):
        return np.asarray(-gammaln(X.astype(np.float64) + 1).sum(axis=1))
    each = sp.csr_array((gammaln(X.data.astype(np.float64) + 1), X.indices, X.indptr), shape=X.shape)
    return np.asarray(-each.sum(axis=1)).ravel()
