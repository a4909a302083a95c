r"""Stability of a clustering under resampling, compared with data without clusters.

Two subsamples are clustered, and the adjusted Rand index A of the two clusterings is taken over the rows that both
have. The same is done with reference data: as many rows, uniform in the box about the data along its principal axes.
A square cut into four quarters is stable too, so that stability alone is no evidence of clusters; and A is 1 at most,
where data with clusters and a reference cut in two may both arrive. The comparison is therefore made of A times the
mean silhouette S: clusters are found where mean A S of the data exceeds that of all but 5% of the references.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from epicycle.core._checks import count, open_unit
from epicycle.core._exceptions import DataError, ParameterTypeError
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.data._matrix import as_matrix
from epicycle.metrics._pair_counts import adjusted_rand_score
from epicycle.metrics._silhouette import silhouette_score
from epicycle.stats._intervals import standard_error

#: Mean adjusted Rand indices from which on a clustering is called stable, or fairly stable.
STABLE, FAIRLY_STABLE = 0.85, 0.65
#: Share of reference data sets that may be as stable as the data.
LEVEL = 0.05
#: Pairs of subsamples of a reference data set, as a share of those of the data.
_REFERENCE_SHARE = 0.25
_SILHOUETTES = 500  # rows whose silhouettes are computed
_NOT_DRAWN = -2  # below all labels; -1 is noise


@dataclass(frozen=True)
class ClusterStability:
    """Stability of a clustering: what was measured, and the verdict.

    mean, standard_error : of the adjusted Rand indices of pairs of subsamples.
    silhouette : mean silhouette of the clusterings of subsamples; 0 where one has a single cluster.
    reference, reference_silhouette : means of the same for data without clusters.
    p_value : share of the reference data sets whose product of index and silhouette is at least that of the data, the
        data counted among them.
    n_clusters : median number of clusters of the subsamples.
    verdict : "stable", "fairly stable", "unstable", "no better than chance" or "one cluster".
    scores, reference_scores : the single values.
    """

    mean: float
    standard_error: float
    silhouette: float
    reference: float
    reference_silhouette: float
    p_value: float
    n_clusters: int
    verdict: str
    scores: np.ndarray = field(repr=False)
    reference_scores: np.ndarray = field(repr=False)

    def __str__(self) -> str:
        text = (
            f"{self.verdict}: two subsamples agree with an adjusted Rand index of {self.mean:.2f} on average "
            f"(silhouette {self.silhouette:.2f}), data without clusters of {self.reference:.2f} "
            f"({self.reference_silhouette:.2f}); p = {self.p_value:.2g}"
        )
        return "one cluster: there is nothing to be stable" if self.verdict == "one cluster" else text


@in_catalogue("metrics", "E17", certificate="test")
def cluster_stability(
    estimator: Any,
    X: Any,
    *,
    n_resamples: int = 20,
    subsample: float = 0.7,
    n_references: int = 20,
    random_state: Seed = None,
) -> ClusterStability:
    """Agreement of clusterings of the same rows when other rows are drawn.

    Parameters
    ----------
    estimator : object with fit_predict, or with fit and labels_
        A clustering method; it is cloned for every fit, and gets a seed of its own where it has `random_state`.
    X : array-like of shape (n_samples, n_features)
    n_resamples : int, default=20
        Pairs of subsamples.
    subsample : float, default=0.7
        Share of the rows in a subsample.
    n_references : int, default=20
        Data sets without clusters, drawn and clustered for comparison; fewer than 19 leave no p-value of 0.05.

    Returns
    -------
    ClusterStability
        "no better than chance" where more than 5% of the reference data sets are clustered as well; otherwise "stable"
        for a mean index of at least 0.85, "fairly stable" for 0.65, "unstable" below.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import KMeans
    >>> from epicycle.metrics import cluster_stability
    >>> rng = np.random.default_rng(0)
    >>> uniform = rng.uniform(size=(150, 2))
    >>> groups = np.concatenate([rng.normal(c, 0.5, size=(50, 2)) for c in (0.0, 5.0, 10.0)])
    >>> cluster_stability(KMeans(3), groups, random_state=0).verdict
    'stable'
    >>> cluster_stability(KMeans(3), uniform, random_state=0).verdict
    'no better than chance'
    """
    if not (hasattr(estimator, "fit_predict") or hasattr(estimator, "fit")):
        raise ParameterTypeError(
            f"estimator: {type(estimator).__name__} has no fit_predict; expected a clustering method"
        )
    pairs = count("n_resamples", n_resamples, low=1)
    references = count("n_references", n_references, low=1)
    share = open_unit("subsample", subsample)
    rows, _ = as_matrix(X, estimator_name="cluster_stability", accept_sparse=False)
    if len(rows) < 10:
        raise DataError(f"X: has {len(rows)} rows; expected at least 10 to draw subsamples from")
    seed = seed_of(random_state)
    data = resampled(estimator, rows, share, pairs, seed, "data")
    fewer = max(2, round(_REFERENCE_SHARE * pairs))
    found = [
        resampled(
            estimator, uniform_reference(rows, stream(seed, "reference", r)), share, fewer, seed, f"reference {r}"
        )
        for r in range(references)
    ]
    p_value = (1 + sum(reference.evidence >= data.evidence for reference in found)) / (1 + references)
    mean = float(data.scores.mean())
    return ClusterStability(
        mean=mean,
        standard_error=float(standard_error(data.scores)),
        silhouette=float(data.silhouettes.mean()),
        reference=float(np.mean([r.scores.mean() for r in found])),
        reference_silhouette=float(np.mean([r.silhouettes.mean() for r in found])),
        p_value=p_value,
        n_clusters=data.n_clusters,
        verdict="one cluster" if data.n_clusters < 2 else verdict_of(mean, p_value),
        scores=data.scores,
        reference_scores=np.concatenate([r.scores for r in found]),
    )


def verdict_of(mean: float, p_value: float) -> str:
    """The verdict in words, from the mean adjusted Rand index and the test against chance."""
    if p_value > LEVEL:
        return "no better than chance"
    return "stable" if mean >= STABLE else "fairly stable" if mean >= FAIRLY_STABLE else "unstable"


@dataclass(frozen=True)
class Resampled:
    """Pairs of subsamples: adjusted Rand indices, silhouettes, and the median number of clusters."""

    scores: np.ndarray
    silhouettes: np.ndarray
    n_clusters: int

    @property
    def evidence(self) -> float:
        return float((self.scores * self.silhouettes).mean())


def resampled(estimator: Any, X: np.ndarray, share: float, n_pairs: int, seed: int, name: str) -> Resampled:
    """Cluster pairs of subsamples; `name` tells the random numbers of one data set from those of another."""
    n, size = len(X), max(2, round(share * len(X)))
    scores, silhouettes, n_clusters = [], [], []
    for pair in range(n_pairs):
        rng = stream(seed, name, pair)
        labels = np.full((2, n), _NOT_DRAWN)
        for half in labels:
            rows = np.sort(rng.choice(n, size=size, replace=False))
            half[rows] = clustered(estimator, X[rows], int(rng.integers(2**31)))
            n_clusters.append(len(np.unique(half[half >= 0])))
        both = (labels != _NOT_DRAWN).all(axis=0)
        scores.append(adjusted_rand_score(*labels[:, both]))
        silhouettes.append(_silhouette(X, labels[0], int(rng.integers(2**31))))
    return Resampled(np.array(scores), np.array(silhouettes), int(np.median(n_clusters)))


def _silhouette(X: np.ndarray, labels: np.ndarray, seed: int) -> float:
    """The mean silhouette; 0 where there is one cluster, or one for each row.

    Rows that belong to no cluster count as 0: a method that clusters the few easy rows alone gains nothing by that.
    """
    inside, drawn = labels >= 0, labels != _NOT_DRAWN
    n_clusters = len(np.unique(labels[inside]))
    if not 1 < n_clusters < inside.sum():
        return 0.0
    score = silhouette_score(X[inside], labels[inside], sample_size=_SILHOUETTES, random_state=seed)
    return score * float(inside.sum() / drawn.sum())


def clustered(estimator: Any, X: np.ndarray, seed: int) -> np.ndarray:
    """Labels of a clone of the estimator, fitted to X."""
    model = clone(estimator, safe=False)
    if "random_state" in getattr(model, "get_params", dict)():
        model.set_params(random_state=seed)
    labels = model.fit_predict(X) if hasattr(model, "fit_predict") else model.fit(X).labels_
    labels = np.asarray(labels)
    if labels.shape != (len(X),) or labels.dtype.kind not in "iu":
        raise DataError(
            f"estimator: {type(estimator).__name__} gave labels of shape {labels.shape} and type {labels.dtype}; "
            f"expected {len(X)} integers"
        )
    return labels


def uniform_reference(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """As many rows, uniform in the box about X along its principal axes (Tibshirani, Walther and Hastie 2001)."""
    center = X.mean(axis=0)
    centred = np.asarray(X - center, dtype=np.float64)
    _, axes = np.linalg.eigh(centred.T @ centred)
    scores = centred @ axes
    drawn = rng.uniform(scores.min(axis=0), scores.max(axis=0), size=X.shape)
    return np.asarray(drawn @ axes.T + center, dtype=X.dtype)
