"""Mixtures:  p(x) = sum_k pi_k p_k(x; theta_k),  the part that they share whatever their components are.

E: shares r_ik = pi_k p_k(x_i) / p(x_i). M: pi_k is the mean share, and theta_k maximises sum_i r_ik log p_k(x_i).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy.special import logsumexp

from epicycle.core._exceptions import DataError
from epicycle.data import Data
from epicycle.em import Expectation, LatentModel

#: Components with less than this share of all rows keep their place: sums over them would be rounding.
LEAST_SHARE = 1e-15
#: Entries of sparse rows that are made dense at a time.
_DENSE_ENTRIES = 1 << 18


class MixtureModel(LatentModel):
    """k densities with weights. Parameters are a mapping with the key `weights` and those of the components."""

    def __init__(self, k: int, p: int) -> None:
        self.k, self.p = k, p

    @abstractmethod
    def prepared(self, parameters: Mapping[str, np.ndarray]) -> Any:
        """Arrays of a pass, computed once for all batches."""

    @abstractmethod
    def log_joint(self, X: Any, prepared: Any) -> np.ndarray:
        """log pi_k + log p_k(x_i), of shape (n, k)."""

    @abstractmethod
    def from_shares(self, X: Any, r: np.ndarray) -> dict[str, np.ndarray]:
        """Parameters to start from: those of the M-step for given shares."""

    @abstractmethod
    def n_parameters(self) -> int:
        """Number of free parameters."""

    def start_rows(self, X: Any) -> Any:
        """Rows in a form in which Euclidean distances are meaningful, for starts by k-means."""
        return X

    def expectation(self, data: Data, parameters: Mapping[str, np.ndarray], n_jobs: int | None = None) -> Expectation:
        return super().expectation(data, self.prepared(parameters), n_jobs)

    def normalised(self, parameters: Any) -> Any:
        """With weights that add up to one."""
        w = parameters.get("weights")
        return parameters if w is None or not w.sum() > 0 else {**parameters, "weights": w / w.sum()}

    def feasible(self, parameters: Mapping[str, np.ndarray]) -> bool:
        return bool((parameters["weights"] > 0).all())


def shares(joint: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(log p(x) of every row, shares of the components in it)."""
    total = logsumexp(joint, axis=1)
    with np.errstate(invalid="ignore"):  # a row that no component can have has no shares
        r = np.exp(joint - total[:, None])
    return total, np.where(np.isnan(r), 0.0, r)


def new_weights(counts: np.ndarray) -> np.ndarray:
    """Weights of the components from their total shares."""
    return np.asarray(counts / counts.sum())


def dense_pieces(X: Any, *, always: bool = False) -> Iterator[tuple[slice, np.ndarray]]:
    """Rows as dense arrays, a bounded number at a time where they are sparse, or always."""
    if isinstance(X, np.ndarray) and not always:
        yield slice(0, len(X)), X
        return
    step = max(1, _DENSE_ENTRIES // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        part = X[start : start + step]
        yield slice(start, start + part.shape[0]), part if isinstance(part, np.ndarray) else part.toarray()


def checked_weights(weights: Any, k: int) -> np.ndarray:
    """Weights that the user brought; errors in scikit-learn's words, which programs match."""
    w = np.array(weights, dtype=np.float64)
    checked_shape(w, (k,), "weights")
    if (w < 0).any() or (w > 1).any():
        raise DataError(
            "The parameter 'weights' should be in the range [0, 1], but got max value "
            f"{w.min():.5f}, min value {w.max():.5f}"
        )
    if abs(1.0 - w.sum()) > 1e-6:
        raise DataError(f"The parameter 'weights' should be normalized, but got sum(weights) = {w.sum():.5f}")
    return w


def checked_shape(array: np.ndarray, shape: tuple[int, ...], name: str) -> np.ndarray:
    if array.shape != shape:
        raise DataError(f"The parameter '{name}' should have the shape of {shape}, but got {array.shape}")
    if not np.isfinite(array).all():
        raise DataError(f"The parameter '{name}' contains NaN or infinity; expected finite numbers")
    return array
