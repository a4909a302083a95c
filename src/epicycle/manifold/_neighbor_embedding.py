r"""Neighbour embeddings:  minimise  a sum_ij P_ij log(1 + d_ij^2) + R(y),  d_ij = |y_i - y_j|.

R is log sum_ij 1 / (1 + d_ij^2) for t-SNE, and the other half of a cross-entropy for UMAP,

    m / n^2  sum_ij -log(1 - 1 / (1 + d_ij^2))  ~  m / n^2  sum_ij log((1 + d_ij^2) / (epsilon + d_ij^2)),

which is what m negative samples for every edge add up to in the mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from epicycle import _native
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import AnyOf, Choice, Domain, Integer, Real
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.manifold._neighbor_embedding_base import NeighborEmbeddingBase
from epicycle.manifold._tsne_affinities import (
    Affinities,
    Search,
    conditional,
    fuzzy,
    gaussian,
    memberships,
    neighbor_count,
)
from epicycle.manifold._tsne_descent import Repulsion, Stage, grid_step
from epicycle.manifold._tsne_start import SPREAD

#: Squared distance below which the repulsion of the cross-entropy no longer grows: it would be infinite at zero.
_SOFTNESS = 0.1
#: Spread of the start where nothing is exaggerated first: rows that lie upon each other would be thrown apart.
_SPREAD = 5.0
#: Step of the grid, in roots of the softness.
_FINENESS = 0.5


class NeighborEmbedding(NeighborEmbeddingBase):
    r"""Embeddings between attraction and repulsion, the family of t-SNE and UMAP.

    .. math:: \min_y \; a \sum_{ij} P_{ij} \log(1 + \|y_i - y_j\|^2) + R(y)

    .. math:: R(y) = \log \sum_{i \ne j} \frac{1}{1 + \|y_i - y_j\|^2} \qquad \text{or} \qquad
              R(y) = \frac{m}{n^2} \sum_{i \ne j} \log \frac{1 + \|y_i - y_j\|^2}{\epsilon + \|y_i - y_j\|^2}

    P are the affinities, which add up to one. With attraction="gaussian", repulsion="normalised" and a = 1 this is
    t-SNE; with "fuzzy" and "cross_entropy" it is UMAP (whose curve has a = b = 1 here), with the mean of its negative
    samples in the place of samples, :math:`\epsilon = 0.1`. More attraction gives tighter clusters and keeps more of
    what is continuous; more repulsion shows more of single neighbours. A fitted object keeps the training rows.

    Parameters
    ----------
    attraction : {"fuzzy", "gaussian"}, default="fuzzy"
        Affinities: UMAP's, of the `n_neighbors` nearest rows, or t-SNE's, of a `perplexity`.
    repulsion : {"cross_entropy", "normalised"}, default="cross_entropy"
        UMAP's, a sum over pairs, or t-SNE's, the logarithm of one.
    exaggeration : float, default=1.0
        a: the attraction relative to the repulsion. With repulsion="normalised" 4 gives pictures like UMAP's, and 30
        like those of Laplacian eigenmaps.
    n_neighbors : int, default=15
        Neighbours with attraction="fuzzy".
    negative_sample_rate : float, default=5.0
        m, with repulsion="cross_entropy".
    early_exaggeration : float or "auto", default="auto"
        Factor of the attraction in the first 250 iterations; "auto" is 12 with repulsion="normalised", where the rows
        start close together, and 1 otherwise.
    learning_rate : float or "auto", default="auto"
        Length of a step along the gradient; "auto" is n / 4 over the largest factor of the attraction.

    Attributes
    ----------
    objective_ : float
        The objective in the end, less its value at :math:`Q = P` where R is normalised: a divergence.
    history_ : History
        The objective and the norm of the gradient every 50 iterations.
    certificate_ : Certificate
        The norm of the gradient relative to that of the attraction. The objective is not convex: it proves no optimum.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from epicycle import NeighborEmbedding
    >>> X, y = load_iris(return_X_y=True)
    >>> umap = NeighborEmbedding(random_state=0).fit(X)
    >>> tsne = NeighborEmbedding(attraction="gaussian", repulsion="normalised", random_state=0).fit(X)
    >>> umap.embedding_.shape, bool(umap.trustworthiness_ > 0.95), bool(tsne.trustworthiness_ > 0.95)
    ((150, 2), True, True)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **NeighborEmbeddingBase._parameters,
        "attraction": Choice("fuzzy", "gaussian"),
        "repulsion": Choice("cross_entropy", "normalised"),
        "exaggeration": Real(minimum=0, maximum=1e6, inclusive=(False, True)),
        "n_neighbors": Integer(minimum=1),
        "negative_sample_rate": Real(minimum=0, maximum=1e6, inclusive=(False, True)),
        "early_exaggeration": AnyOf(Choice("auto"), Real(minimum=1, maximum=1e6)),
    }

    attraction: str
    repulsion: str
    exaggeration: float
    n_neighbors: int
    negative_sample_rate: float
    objective_: float

    @stores_arguments
    def __init__(
        self,
        n_components: int = 2,
        *,
        attraction: str = "fuzzy",
        repulsion: str = "cross_entropy",
        exaggeration: float = 1.0,
        n_neighbors: int = 15,
        perplexity: float = 30.0,
        negative_sample_rate: float = 5.0,
        early_exaggeration: Any = "auto",
        learning_rate: Any = "auto",
        max_iter: int = 750,
        n_iter_without_progress: int = 300,
        min_grad_norm: float = 1e-7,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        init: Any = "pca",
        method: str = "auto",
        angle: float = 0.5,
        verbose: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None: ...

    @property
    def _normalised(self) -> bool:
        return bool(self.repulsion == "normalised")

    def _check_size(self, n: int) -> None:
        super()._check_size(n)
        if self.attraction == "gaussian" and self.perplexity >= n:
            raise DataError(f"perplexity ({self.perplexity}) must be less than n_samples ({n})")

    def _affinities(self, search: Search) -> Affinities:
        n = search.n_rows
        if self.attraction == "fuzzy":
            return fuzzy(search, n - 1 if self.method == "exact" else int(self.n_neighbors), self.n_jobs)
        k = n - 1 if self.method == "exact" else neighbor_count(self.perplexity, n - 1)
        return gaussian(search, float(self.perplexity), k, self.n_jobs)

    def _conditional(self, distances: np.ndarray) -> np.ndarray:
        if self.attraction == "fuzzy":
            return memberships(distances, self.n_jobs)
        return conditional(distances, float(self.perplexity), self.n_jobs)

    def _new_neighbors(self, n: int) -> int:
        return min(n, int(self.n_neighbors)) if self.attraction == "fuzzy" else neighbor_count(self.perplexity, n)

    def _chosen_method(self, n: int) -> str:
        # Logarithms of all pairs cost more than a grid, however few the rows are.
        if self.method == "auto" and not self._normalised and int(self.n_components) == 2:
            return "fft"
        return super()._chosen_method(n)

    def _spread(self) -> float:
        return SPREAD if self._normalised else _SPREAD

    def _strength(self) -> float:
        return float(self.exaggeration)

    def _repulsion(self, n: int) -> Repulsion:
        angle = float(self.angle)
        if self._normalised:
            return Repulsion(self.method_, 1.0, angle, step=grid_step(n))
        factor = float(self.negative_sample_rate) / n**2
        return Repulsion(
            self.method_, 1.0, angle, normalised=False, factor=factor, softness=_SOFTNESS,
            step=_FINENESS * _SOFTNESS**0.5,
        )  # fmt: skip

    def _new_forces(self, n: int) -> _native.manifold.Forces:
        repulsion = self._repulsion(n)
        # The affinities of a new row add up to one, those of a row of the fit to 1 / n.
        return (repulsion if self._normalised else replace(repulsion, factor=repulsion.factor * n)).forces(
            self._strength()
        )

    def _stages(self, n: int) -> list[Stage]:
        strength, early = self._strength(), self.early_exaggeration
        if isinstance(early, str):
            early = 12.0 if self._normalised else 1.0
        largest = strength * float(early)
        automatic = isinstance(self.learning_rate, str)
        self.learning_rate_ = n / 4.0 / max(largest, 1.0) if automatic else float(self.learning_rate)
        patience, last = int(self.n_iter_without_progress), int(self.max_iter)
        if early == 1.0:
            return [Stage(last, strength, 0.8, self.learning_rate_, patience)]
        first = min(self._EXPLORATION_MAX_ITER, last)
        return [
            Stage(first, largest, 0.5, self.learning_rate_, first),
            Stage(last, strength, 0.8, self.learning_rate_, patience),
        ]

    def _finish(self, value: float) -> None:
        self.objective_ = value
