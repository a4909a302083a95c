r"""Independent components by maximum likelihood:  maximise  log |det W| + sum_j E log p(w_j'z)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from scipy.special import k1

from epicycle import engine
from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._parameters import ArrayLike, Choice, Domain, Integer, NoneOr, Real
from epicycle.core._random import seed_of, stream
from epicycle.core._solution import Solution
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import Batch, Data
from epicycle.decomposition.ica import _likelihood
from epicycle.decomposition.ica._contrasts import Contrast
from epicycle.decomposition.ica._fixed_point import nearest_rotation
from epicycle.decomposition.ica._unmixing import Unmixing, as_type, checked_start
from epicycle.decomposition.ica._whitening import Whitening, whitened, whitening_of
from epicycle.decomposition.pca._projection import coordinates

_ROUND = 0.05  # how far from zero |y| of a Laplace source is rounded off: sqrt(y^2 + 0.0025) has a derivative there


class ICA(Unmixing):
    r"""Independent components by maximum likelihood: sources of a known density, mixed linearly.

    .. math:: x = m + A s, \qquad \ell(W) = \log |\det W| + \sum_j \mathrm{E} \log p(y_j), \qquad y = W z

    with rows z that are whitened along principal axes, and p logistic, :math:`\sigma'(s)`, or Laplace,
    :math:`e^{-|s|} / 2`. Both are more peaked than a normal density, as speech, images and heartbeats are; sources that
    are less peaked (uniform ones) are found by :class:`~epicycle.FastICA`.

    Parameters
    ----------
    sources : {"logistic", "laplace"}, default="logistic"
        Density p of the sources; \|y\| of "laplace" is rounded off within 0.05 of zero.
    solver : {"auto", "picard", "natural-gradient", "stochastic"}, default="auto"
        L-BFGS that starts from the blocks of the Hessian ("picard", which "auto" takes), natural-gradient ascent on all
        rows, or on a few rows at a time in random order.
    w_init : array-like of shape (n_components, n_components), optional
        Where W begins; default: a random rotation.
    learning_rate : float, default=0.05
        Rate of the first pass of "stochastic"; it is divided by one more than the passes that have not raised the
        likelihood.
    batch_size : int, default=100
        Rows of a step of "stochastic".
    max_iter : int, default=300
        Most iterations; passes over the rows for "stochastic".
    tol : float, default=1e-7
        Largest entry of the relative gradient at the end; for "stochastic" at least :math:`0.5 / \sqrt{n}`, half of
        what it is about at the true W.

    Attributes
    ----------
    %(components_)s
    %(mixing_)s
    mean_ : ndarray of shape (n_features,)
    whitening_ : ndarray of shape (n_components, n_features)
        K with z = K (x - m).
    log_likelihood_ : float
        Of all rows, in the space of the components.
    solver_ : str
        The solver that ran.
    certificate_ : Certificate
        The largest entry of the relative gradient :math:`\mathrm{E}[\psi(y) y'] - I`, :math:`\psi = -(\log p)'`.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import ICA
    >>> from epicycle.metrics import amari_index
    >>> rng = np.random.default_rng(0)
    >>> A = np.array([[1.0, 0.6], [-0.4, 1.0]])
    >>> X = rng.laplace(size=(5000, 2)) @ A.T
    >>> model = ICA(sources="laplace", random_state=0).fit(X)
    >>> bool(amari_index(model.components_, A) < 0.05), model.certificate_.holds
    (True, True)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_components": NoneOr(Integer(minimum=1)),
        "sources": Choice("logistic", "laplace"),
        "solver": Choice("auto", "picard", "natural-gradient", "stochastic"),
        "w_init": NoneOr(ArrayLike()),
        "learning_rate": Real(minimum=0, inclusive=False),
        "batch_size": Integer(minimum=1),
        "tol": Real(minimum=0),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="decomposition",
        catalogue=("E9",),
        engines=("memory", "files", "dask"),
        certificate="relative gradient",
    )

    log_likelihood_: float
    solver_: str

    @stores_arguments(max_iter=300, tol=1e-7, random_state=None, n_jobs=None, verbose=0)
    def __init__(
        self,
        n_components: int | None = None,
        *,
        sources: str = "logistic",
        solver: str = "auto",
        w_init: Any = None,
        learning_rate: float = 0.05,
        batch_size: int = 100,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the sources of rows X."""
        data = self._intake(X, sample_weight)
        white = whitening_of(data, self.n_components, "svd", self.n_jobs)
        saved = self._resume_state() or {}
        k, seed = len(white.matrix), int(saved["seed"]) if saved else seed_of(self.random_state)
        W = checked_start(saved.get("W", self.w_init), k, stream(seed, "ica"))
        W = nearest_rotation(W) if self.w_init is None and not saved else W
        self.solver_ = "picard" if self.solver == "auto" else str(self.solver)
        tol = self._tolerance(white.weight)
        monitor = self._monitor(int(self.max_iter), lambda x: {"components_": x.reshape(k, k) @ white.matrix})
        rows, rest = whitened(data, white, self.n_jobs)
        found = self._ascend(rows, rest, W, seed, tol=tol, max_iter=int(self.max_iter), monitor=monitor, saved=saved)
        W = found.point.W
        self._set(W, white, data)
        self.whitening_ = as_type(white.matrix, data.dtype)
        self.log_likelihood_ = white.weight * (white.log_volume - found.point.value)
        meaning = (
            "no relative change of W raises the mean log-likelihood, to first order, by more than this for each entry; "
            f"least eigenvalue of the Hessian's blocks {found.point.curvature:.2g} (positive at a maximum)"
        )
        certificate = Certificate("relative gradient", found.point.norm, tol, meaning)
        self._conclude(
            Solution(W.ravel(), found.point.value, monitor.history(), certificate, found.n_iter, found.reason)
        )
        return self

    def _tolerance(self, weight: float) -> float:
        reached = 0.5 / math.sqrt(max(weight, 1.0)) if self.solver_ == "stochastic" else 0.0
        return max(float(self.tol), reached)

    def _ascend(
        self, rows: Data, white: Whitening | None, W: np.ndarray, seed: int, **limits: Any
    ) -> _likelihood.Ascent:
        contrast = _contrast(self.sources)
        evaluate = _likelihood.likelihood(rows, white, contrast, _constant(self.sources), self.n_jobs)
        if self.solver_ != "stochastic":
            ascend = _likelihood.picard if self.solver_ == "picard" else _likelihood.natural_gradient
            return ascend(evaluate, W, seed=seed, **limits)
        return _likelihood.stochastic(
            evaluate,
            rows,
            white,
            contrast,
            W,
            rate=float(self.learning_rate),
            batch_size=int(self.batch_size),
            seed=seed,
            **limits,
        )

    def score_samples(self, X: Any) -> Any:
        """The log density of every row, in the space of the components.

        Returns
        -------
        array of shape (n_samples,)
        """
        data = self._predict_data(X)
        return engine.map(_densities, data, self._origin(), self.components_, self.sources)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The mean log density of rows X."""
        densities = np.asarray(self.score_samples(X))
        return float(np.average(densities, weights=sample_weight))


def _contrast(sources: str) -> Contrast:
    return Contrast(sources, _ROUND if sources == "laplace" else 1.0)


def _constant(sources: str) -> float:
    """The log of the integral of exp(-F): densities add up to one."""
    if sources == "logistic":
        return 0.0
    return math.log(2.0 * _ROUND * float(k1(_ROUND)))  # of exp(-sqrt(y^2 + c^2))


def _densities(batch: Batch, origin: np.ndarray, B: np.ndarray, sources: str) -> np.ndarray:
    Y = np.abs(np.asarray(coordinates(batch, origin, B, None), dtype=np.float64))
    values = Y + 2.0 * np.log1p(np.exp(-Y)) if sources == "logistic" else np.hypot(Y, _ROUND)
    log_volume = float(np.log(np.linalg.svd(B.astype(np.float64), compute_uv=False)).sum())
    return np.asarray(log_volume - values.sum(axis=1) - len(B) * _constant(sources))
