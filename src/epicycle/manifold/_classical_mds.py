"""Classical scaling: places from the eigenvectors of doubly centred squares of distances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
import scipy.sparse.linalg

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import AnyOf, Callable, Choice, Domain, InstanceOf, Integer, NoneOr
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.linalg._signs import oriented
from epicycle.manifold._base import EIGENVALUES, Embedding, card, to_unit_size
from epicycle.manifold._dissimilarities import Dissimilarities, dissimilarities, farthest_first, matrix_of
from epicycle.spatial._metrics import NAMES, is_precomputed

_ALL = 600  # rows up to which all eigenvalues are found
_TOLERANCE = 1e-8  # of the certificate: residual of an eigenvector relative to the largest eigenvalue
_ROUNDING = 1e-9  # of the largest eigenvalue: one that is further below zero is not rounding


@dataclass(frozen=True)
class Scaling:
    """Eigenvalues of B = -1/2 H D^2 H, largest first, and vectors of the first; the least of all; |B|^2; residual."""

    values: np.ndarray
    vectors: np.ndarray
    least: float
    squares: float
    residual: float
    all_values: np.ndarray | None

    @property
    def places(self) -> np.ndarray:
        return np.asarray(self.vectors * np.sqrt(self.values.clip(min=0.0)))


def scaled(D: np.ndarray, d: int) -> Scaling:
    """The d leading coordinates of dissimilarities D."""
    B = np.square(D)
    B -= B.mean(axis=0)
    B -= B.mean(axis=1, keepdims=True)
    B *= -0.5
    n = len(B)
    d = min(d, n)
    everything: np.ndarray | None = None
    if n <= _ALL or d > n // 8 or not B.any():
        values, vectors = scipy.linalg.eigh(B, driver="evd", check_finite=False)
        values, vectors = values[::-1], vectors[:, ::-1]
        everything = values
        least = float(values[-1])
        values, vectors = values[:d], vectors[:, :d]
    else:
        start = np.cos(np.arange(n))  # fixed, and hardly at a right angle to anything
        values, vectors = scipy.sparse.linalg.eigsh(B, d, which="LA", v0=start, tol=0)
        values, vectors = values[::-1], vectors[:, ::-1]
        least = _least(B, start)
    top = float(np.abs(values).max(initial=0.0))
    left = B @ vectors - vectors * values
    residual = float(np.linalg.norm(left, axis=0).max(initial=0.0)) / top if top > 0 else 0.0
    return Scaling(values, oriented(vectors), least, float(np.square(B).sum()), residual, everything)


def _least(B: np.ndarray, start: np.ndarray) -> float:
    """The least eigenvalue, or an upper bound of it, which is as good a proof that it is negative."""
    try:
        return float(scipy.sparse.linalg.eigsh(B, 1, which="SA", v0=start, tol=1e-6, maxiter=20)[0][0])
    except scipy.sparse.linalg.ArpackNoConvergence:
        x = start - start.mean()
        for _ in range(20):  # Rayleigh quotients of a power iteration on |B| - B
            x = float(np.abs(B).sum(axis=0).max()) * x - B @ x
            x /= np.linalg.norm(x)
        return float(x @ B @ x)


def triangulated(places: np.ndarray, apart: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Places of rows from dissimilarities to landmarks: least squares on their squares (de Silva and Tenenbaum).

    `apart` are those of the landmarks among themselves, `targets` (n, m) those of the rows.
    """
    middle = places.mean(axis=0)
    Z = places - middle
    mean = np.square(apart).mean(axis=0)
    return np.asarray(middle - 0.5 * (np.square(targets) - mean) @ np.linalg.pinv(Z).T)


class ClassicalMDS(Embedding):
    r"""Places whose distances are given ones, by eigenvectors: principal coordinates.

    .. math:: B = -\tfrac12 H D^{(2)} H = \sum_j \lambda_j u_j u_j', \qquad z_{ij} = \sqrt{\lambda_j} \, u_{ij}

    with :math:`D^{(2)}` the squares of the distances and :math:`H = I - 1 1' / n`. For Euclidean distances of rows
    these are their principal components. The first d coordinates minimise the strain :math:`\|B - ZZ'\|`. A negative
    eigenvalue proves that no points in any space have these distances. A fitted object keeps the training distances.

    Parameters
    ----------
    n_components : int, default=2
        d, the number of coordinates.
    metric : str or callable, default="euclidean"
        Distance of rows, as in :func:`~epicycle.metrics.pairwise_distances`; "precomputed": X are the distances.
    metric_params : dict, optional
        Parameters of the metric.
    n_landmarks : int, optional
        Scale so many rows, each the farthest from those before it, and place the others by their distances to them:
        time and memory grow with the rows times the landmarks. By default all pairs are used.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        The largest entry of each eigenvector is positive; zero where the eigenvalue is not positive.
    eigenvalues_ : ndarray of shape (n_components,)
        Of B; with landmarks, of that of the landmarks.
    least_eigenvalue_ : float
        Of B, or a bound from above for many rows. Below zero by more than rounding, distances are not Euclidean.
    strain_ : float
        :math:`\|B - ZZ'\|` relative to :math:`\|B\|`.
    dissimilarity_matrix_ : ndarray of shape (n_samples, n_samples)
        With landmarks, of shape (n_samples, n_landmarks).
    landmarks_ : ndarray of int of shape (n_landmarks,), or None
    certificate_ : Certificate
        The largest residual of an eigenvector relative to the largest eigenvalue. Its meaning states the eigenvalues
        that are left out, whether distances are Euclidean, and how well neighbours are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import ClassicalMDS
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> D = np.linalg.norm(X[:, None] - X, axis=2)
    >>> Z = ClassicalMDS(metric="precomputed").fit_transform(D)
    >>> bool(np.allclose(np.linalg.norm(Z[:, None] - Z, axis=2), D))
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_components": Integer(minimum=1),
        "metric": AnyOf(Choice(*NAMES), Callable()),
        "metric_params": NoneOr(InstanceOf(dict)),
        "n_landmarks": NoneOr(Integer(minimum=2)),
    }
    _card: ClassVar[MethodCard] = card("E11", EIGENVALUES)
    _takes_sparse = True

    @stores_arguments
    def __init__(
        self,
        n_components: int = 2,
        *,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        n_landmarks: int | None = None,
    ) -> None: ...

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.metric)
        tags.input_tags.positive_only = tags.input_tags.pairwise
        return tags

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the places of rows X, or of distances X."""
        data = self._table(X)
        given = dissimilarities(data.X, self.metric, self.metric_params, None)
        dtype = np.float32 if data.X.dtype == np.float32 else np.float64
        d = int(self.n_components)
        self.landmarks_: np.ndarray | None = None
        if self.n_landmarks is None or int(self.n_landmarks) >= given.n:
            D, scale = matrix_of(given, "ClassicalMDS")
            found = scaled(D, d)
            Z = found.places
        else:
            self.landmarks_, Z, found, D, scale = _by_landmarks(given, int(self.n_landmarks), d)
        self.dissimilarity_matrix_ = np.asarray(D * scale, dtype=dtype)
        self.embedding_ = np.asarray(Z * scale, dtype=dtype)
        kept = float(np.square(found.values.clip(min=0.0)).sum())
        self.strain_ = float(np.sqrt(max(found.squares - kept, 0.0) / found.squares)) if found.squares > 0 else 0.0
        with np.errstate(over="ignore", under="ignore"):
            self.eigenvalues_ = found.values * scale * scale
            self.least_eigenvalue_ = float(np.float64(found.least) * scale * scale)
        if not np.isfinite(self.eigenvalues_).all():
            raise DataError("X: squares of dissimilarities overflow; scale them down")
        quality = self._judge(given.block, given.width)
        whose = "" if self.landmarks_ is None else "of the landmarks, "
        meaning = f"{whose}{_in_words(found)}; {quality}"
        certificate = Certificate(EIGENVALUES, found.residual, _TOLERANCE, meaning)
        self._conclude_directly(certificate, x=found.values, objective=self.strain_)
        return self


def _by_landmarks(given: Dissimilarities, m: int, d: int) -> tuple[np.ndarray, np.ndarray, Scaling, np.ndarray, float]:
    """(landmarks, places of all rows, scaling of the landmarks, dissimilarities to them, their scale)."""
    if d >= m:
        raise ParameterError(f"n_landmarks={m}; expected more than n_components={d}")
    chosen, all_of_them = farthest_first(given, m)
    D, scale = to_unit_size(all_of_them)
    found = scaled(D[chosen], d)
    Z = triangulated(found.places, D[chosen], D)
    Z[chosen] = found.places
    return chosen, Z, found, D, scale


def _in_words(found: Scaling) -> str:
    words = f"every coordinate solves its eigenvalue equation up to {found.residual:.1e} of the largest eigenvalue"
    top = float(np.abs(found.values).max(initial=0.0))
    if found.all_values is not None and top > 0:
        left = found.all_values[len(found.values) :]
        positive, negative = left[left > 0].sum(), -left[left < 0].sum()
        total = float(np.abs(found.all_values).sum())
        words += f"; eigenvalues left out: {positive / total:.2%} above zero, {negative / total:.2%} below"
    if found.least < -_ROUNDING * top:
        return f"{words}; the least is {found.least / top:.2g} of the largest: no points have these distances"
    if found.all_values is None:
        return f"{words}; no negative one was found"
    return f"{words}; none is negative beyond rounding: the distances are Euclidean"
