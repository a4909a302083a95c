"""Multidimensional scaling by stress majorisation."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._monitor import Monitor
from epicycle.core._parameters import AnyOf, Boolean, Callable, Choice, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.core._solution import Solution
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.manifold._base import Embedding, card, to_unit_size
from epicycle.manifold._classical_mds import triangulated
from epicycle.manifold._dissimilarities import (
    Dissimilarities,
    dissimilarities,
    farthest_first,
    matrix_of,
)
from epicycle.manifold._majorizer import Majorizer, Run, checked_weights
from epicycle.manifold._smacof import best_run, checked_start, raw_stress
from epicycle.spatial._metrics import NAMES, is_precomputed

_LEAST_EPS = 1e-14  # below which differences of stresses are rounding


class MDS(Embedding):
    r"""Places whose distances are as near to given dissimilarities as can be.

    .. math:: \min_Z \; \sum_{i<j} w_{ij} \big( \|z_i - z_j\| - t_{ij} \big)^2

    with the dissimilarities as targets t, or, where only their order counts (``metric_mds=False``), the best targets in
    that order. Solved by majorisation (SMACOF): the stress never rises. A fitted object keeps the training distances.

    Parameters
    ----------
    metric_mds : bool, default=True
        Whether sizes of dissimilarities count, or their order alone. Ties get one target; pairs of dissimilarity zero
        are kept out of the order, with the target zero.
    n_init : int, default=1
        Random starts, of which the best result is kept.
    init : {"classical_mds", "random"}, default="classical_mds"
        Where to start: :class:`ClassicalMDS` (`n_init` does not matter then), or at random. scikit-learn's default is
        still "random", with a warning that it will change to this.
    max_iter : int, default=300
        Most iterations of one start.
    eps : float, default=1e-06
        Majorisation ends when the stress falls by less than this share of the sum of squared distances.
    dissimilarity : {"euclidean", "precomputed"}, optional
        The old name of `metric`; a warning says so.
    metric : str or callable, default="euclidean"
        Distance of rows, as in :func:`~epicycle.metrics.pairwise_distances`; "precomputed": X are the dissimilarities.
        True and False stand for `metric_mds`, with a warning.
    metric_params : dict, optional
        Parameters of the metric.
    normalized_stress : bool or "auto", default="auto"
        Whether `stress_` is divided by the sum of squared distances and its root taken (Kruskal's first stress);
        "auto": where `metric_mds` is False.
    n_landmarks : int, optional
        Scale so many rows, each the farthest from those before it, and place the others by their dissimilarities to
        them: time and memory grow with the rows times the landmarks. By default all pairs are used.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
    stress_ : float
    dissimilarity_matrix_ : ndarray of shape (n_samples, n_samples)
        With landmarks, of shape (n_samples, n_landmarks).
    landmarks_ : ndarray of int of shape (n_landmarks,), or None
    certificate_ : Certificate
        The gradient of the stress relative to the places, in the norm of majorisation; at most the root of `eps` where
        it converged. Its meaning says how well neighbours are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import MDS
    >>> D = np.array([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]])
    >>> model = MDS(metric="precomputed").fit(D)
    >>> np.linalg.norm(model.embedding_[0] - model.embedding_, axis=1).round(3), round(model.stress_, 6)
    (array([0., 3., 4.]), 0.0)
    """

    _docs: ClassVar[Mapping[str, str]] = {
        "init": "init : array-like of shape (n_samples, n_components), optional\n    Places to start from.",
        "weights": "weights : array-like of shape (n_samples, n_samples), optional\n"
        "    A weight for each pair, 0 where its dissimilarity is not known. Rows of weight v count as v rows with\n"
        "    ``np.outer(v, v)``.",
    }
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_components": Integer(minimum=1),
        "metric_mds": Boolean(),
        "init": Choice("classical_mds", "random"),
        "eps": Real(minimum=0),
        "dissimilarity": Choice("deprecated", "euclidean", "precomputed"),
        "metric": AnyOf(Choice(*NAMES), Callable(), Boolean()),
        "metric_params": NoneOr(InstanceOf(dict)),
        "normalized_stress": AnyOf(Boolean(), Choice("auto")),
        "n_landmarks": NoneOr(Integer(minimum=2)),
    }
    _card: ClassVar[MethodCard] = card("E11", "gradient norm")
    _takes_sparse = True

    stress_: float

    @stores_arguments(max_iter=300, verbose=0, n_jobs=None, random_state=None)
    def __init__(
        self,
        n_components: int = 2,
        *,
        metric_mds: bool = True,
        n_init: int = 1,
        init: str = "classical_mds",
        eps: float = 1e-6,
        dissimilarity: str = "deprecated",
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        normalized_stress: bool | str = "auto",
        n_landmarks: int | None = None,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.metric) or is_precomputed(self.dissimilarity)
        tags.input_tags.positive_only = tags.input_tags.pairwise
        return tags

    def fit_transform(self, X: Any, y: Any = None, init: Any = None, weights: Any = None) -> Any:
        """Fit to rows X, and return their places."""
        return self.fit(X, init=init, weights=weights).embedding_

    @fitting
    def fit(self, X: Any, y: Any = None, init: Any = None, weights: Any = None) -> Self:
        """Find the places of rows X, or of dissimilarities X."""
        metric, by_size = self._which()
        data = self._table(X)
        given = dissimilarities(data.X, metric, self.metric_params, self.n_jobs)
        landmarks = None if self.n_landmarks is None or int(self.n_landmarks) >= given.n else int(self.n_landmarks)
        if landmarks is not None and weights is not None:
            raise ParameterError(f"n_landmarks={landmarks}; expected None where weights of pairs are given")
        self.landmarks_: np.ndarray | None = None
        if landmarks is None:
            D, scale = matrix_of(given, "MDS")
            near = D
        else:
            self._check_landmarks(landmarks, init)
            self.landmarks_, all_of_them = farthest_first(given, landmarks)
            D, scale = to_unit_size(all_of_them)
            near = D[self.landmarks_]
            init = None if init is None else np.asarray(init)[self.landmarks_]
        W, heaviest = checked_weights(weights, given.n)
        start = None if init is None else checked_start(init, len(near)) / scale
        monitor = self._monitor(None, lambda _x: {})
        work = Majorizer(near, W, metric=by_size, n_jobs=self.n_jobs)
        run = best_run(
            work, near, self._starts(start), self.n_components, self.random_state, start, self._limits, monitor
        )
        Z, stress, size, gradient = run.places, run.stress, run.size, run.gradient
        if self.landmarks_ is not None:
            Z, more, added, further = placed(run, near, D, self.landmarks_, self._limits[1], by_size)
            stress, size, gradient = stress + more, size + added, max(gradient, further)
        self._set(data.X.dtype, Z * (scale if by_size else 1.0), D * scale)  # by order alone the size is fixed
        self.stress_ = self._stress(stress, size, by_size, scale, heaviest)
        self._finish(run, gradient, stress, monitor, given)
        return self

    def _which(self) -> tuple[Any, bool]:
        """(metric, whether sizes count), with warnings about old names."""
        metric, by_size = self.metric, bool(self.metric_mds)
        if self.dissimilarity != "deprecated":
            if not isinstance(self.metric, bool | np.bool_) and self.metric != "euclidean":
                raise ParameterError(
                    f"You provided both `dissimilarity`={self.dissimilarity!r} and `metric`={self.metric!r}; expected "
                    "`metric` alone"
                )
            warnings.warn(
                "The `dissimilarity` parameter is deprecated and will be removed. Use `metric` instead.",
                FutureWarning,
                stacklevel=4,
            )
        if isinstance(self.metric, bool | np.bool_):
            warnings.warn(
                f"Use metric_mds={self.metric} instead of metric={self.metric}, which will not be taken any more.",
                FutureWarning,
                stacklevel=4,
            )
            metric, by_size = "euclidean", bool(self.metric)
        return (self.dissimilarity if self.dissimilarity != "deprecated" else metric), by_size

    def _check_landmarks(self, m: int, init: Any) -> None:
        if m <= int(self.n_components):
            raise ParameterError(f"n_landmarks={m}; expected more than n_components={self.n_components}")
        if init is not None and np.asarray(init).ndim != 2:
            raise DataError(f"init: shape {np.shape(init)}; expected (n_samples, n_components)")

    def _starts(self, start: np.ndarray | None) -> int | None:
        """Number of random starts; None for a classical one."""
        if start is not None:
            if self.n_init != 1:
                warnings.warn(
                    "Explicit initial positions passed: performing only one init of the MDS instead of "
                    f"n_init={self.n_init}",
                    stacklevel=4,
                )
            return 1
        return int(self.n_init) if self.init == "random" else None

    @property
    def _limits(self) -> tuple[int, float]:
        return int(self.max_iter), float(self.eps)

    def _set(self, dtype: Any, Z: np.ndarray, D: np.ndarray) -> None:
        kind = np.float32 if dtype == np.float32 else np.float64
        self.dissimilarity_matrix_, self.embedding_ = np.asarray(D, dtype=kind), np.asarray(Z, dtype=kind)

    def _stress(self, stress: float, size: float, by_size: bool, scale: float, heaviest: float) -> float:
        """As asked for, of dissimilarities and weights as they were given."""
        if not by_size if self.normalized_stress == "auto" else bool(self.normalized_stress):
            return float(np.sqrt(stress / size)) if size > 0 else 0.0
        raw = raw_stress(stress, by_size, scale, heaviest)
        if not np.isfinite(raw):
            raise DataError("X: squares of dissimilarities overflow; scale them down, or take normalized_stress=True")
        return raw

    def _finish(self, run: Run, gradient: float, stress: float, monitor: Monitor, given: Dissimilarities) -> None:
        quality = self._judge(given.block, given.width, self.n_jobs)
        fitted = f"stress is {run.normalized:.3g} of the distances (Kruskal's first)"
        meaning = f"the gradient of the stress is {gradient:.1e} of the places; {fitted}; {quality}"
        tolerance = float(np.sqrt(max(self._limits[1], _LEAST_EPS)))
        certificate = Certificate("gradient norm", gradient, tolerance, meaning)
        self._conclude(Solution(run.places.ravel(), stress, monitor.history(), certificate, run.n_iter, run.reason))


# Places of rows by their dissimilarities to landmarks that have places.

_STEPS = 100  # to place a row by its distances to landmarks
_BLOCK = 1 << 20  # differences from landmarks held at a time


def placed(
    run: Run, near: np.ndarray, D: np.ndarray, chosen: np.ndarray, eps: float, by_size: bool
) -> tuple[np.ndarray, float, float, float]:
    """(places of all rows, their stress and squared distances to landmarks, largest step) from a run of landmarks.

    A row alone is majorised too: z = mean of z_l + t_l (z - z_l) / |z - z_l| over landmarks l.
    """
    L = run.places
    apart = np.linalg.norm(L[:, None] - L, axis=2)
    known = np.triu(near, 1) > 0
    order = np.argsort(near[known], kind="stable")
    given, targets = near[known][order], run.targets[known][order]
    Z = np.empty((len(D), L.shape[1]))
    Z[chosen] = L
    stress, size, worst = 0.0, 0.0, 0.0
    others = np.setdiff1d(np.arange(len(D)), chosen)
    chunk = max(1, _BLOCK // L.size)
    for start in range(0, len(others), chunk):
        rows = others[start : start + chunk]
        # the target of a dissimilarity: itself, or by the order between those of the landmarks
        T = D[rows] if by_size or not len(given) else np.interp(D[rows], given, targets)
        Z[rows] = triangulated(L, apart, T)
        for _ in range(_STEPS):
            move, length = _towards(Z[rows], L, T)
            Z[rows] += move
            step = float(np.sqrt(np.square(move).sum() / max(float(np.square(length).mean(axis=1).sum()), 1e-300)))
            if step * step < eps:
                break
        length = np.linalg.norm(Z[rows][:, None] - L, axis=2)
        stress, size = stress + float(np.square(length - T).sum()), size + float(np.square(length).sum())
        worst = max(worst, step)
    return Z, stress, size, worst


def _towards(Z: np.ndarray, L: np.ndarray, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(steps of the rows, their distances from the landmarks)."""
    gap = Z[:, None] - L
    length = np.linalg.norm(gap, axis=2)
    ratio = np.divide(T, length, out=np.zeros_like(length), where=length > 0)
    return (L + ratio[:, :, None] * gap).mean(axis=1) - Z, length
