"""Distances of matching: coordinates in which the distance of rows is Euclidean.

"mahalanobis" whitens the covariates by their covariance, "euclidean" divides each by its standard deviation,
"propensity" takes the logit of the propensity score in standard deviations. "genetic" scales the standardised
covariates by weights that an evolutionary search finds (Diamond and Sekhon 2013): among the weights tried, those whose
matches have the smallest largest imbalance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import logit

from epicycle.causal.effects._balance import balance_columns
from epicycle.causal.effects._study import Study
from epicycle.core._exceptions import ParameterError
from epicycle.core._random import stream

_POPULATION = 12
_GENERATIONS = 8


def standardised(X: np.ndarray) -> np.ndarray:
    """Columns in standard deviations; a constant column stays zero."""
    scale = X.std(axis=0)
    return np.asarray((X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0))


def whitened(X: np.ndarray) -> np.ndarray:
    """Rows whose Euclidean distances are the Mahalanobis distances of X."""
    D = standardised(X)
    values, vectors = np.linalg.eigh(D.T @ D / max(len(D), 1))
    kept = values > 1e-10 * max(float(values[-1]), 1e-300) if len(values) else np.zeros(0, dtype=bool)
    return np.asarray(D @ (vectors[:, kept] / np.sqrt(values[kept])))


def score_coordinate(e: np.ndarray) -> np.ndarray:
    """The logit of the propensity score in standard deviations."""
    return standardised(logit(np.clip(e, 1e-12, 1 - 1e-12))[:, None])


def exact_cells(study: Study, columns: Sequence[int | str] | None) -> np.ndarray:
    """The number of each row's cell: rows of one cell are equal in these columns; None is no column."""
    if columns is None or not len(columns):
        return np.zeros(study.n_rows, dtype=np.int64)
    places = [_place(study, column) for column in columns]
    return np.asarray(np.unique(study.dense()[:, places], axis=0, return_inverse=True)[1]).ravel()


def _place(study: Study, column: int | str) -> int:
    if isinstance(column, str):
        if column not in study.names:
            raise ParameterError(f"exact: there is no covariate {column!r}; there are {', '.join(study.names[:20])}")
        return study.names.index(column)
    if not -len(study.names) <= column < len(study.names):
        raise ParameterError(f"exact: there is no covariate {column}; there are {len(study.names)}")
    return int(column)


def genetic_weights(
    study: Study, weights_of: Callable[[np.ndarray], np.ndarray | None], seed: int
) -> tuple[np.ndarray, float]:
    """(weights of the standardised covariates, the largest imbalance) of the best generation.

    `weights_of(Z)` gives the weights of the rows after matching by Euclidean distance in Z.
    """
    X = standardised(study.dense())
    rng = stream(seed, "genetic")

    def loss(log_weights: np.ndarray) -> float:
        after = balance_columns(study, weights_of(X * np.exp(log_weights)))["smd_after"]
        return float(np.abs(after).max())

    best = np.zeros(X.shape[1])
    lowest, spread = loss(best), 1.0
    for _ in range(_GENERATIONS):
        children = best + spread * rng.normal(size=(_POPULATION, len(best)))
        losses = [loss(child) for child in children]
        i = int(np.argmin(losses))
        if losses[i] < lowest:
            best, lowest = children[i], losses[i]
        else:
            spread /= 2
    return np.exp(best), lowest
