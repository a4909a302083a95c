"""Stress majorisation from several starts, and the function of scikit-learn's name."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from epicycle.core._checks import count, number
from epicycle.core._exceptions import DataError
from epicycle.core._memory import require_memory
from epicycle.core._monitor import Monitor
from epicycle.core._random import Seed, seed_of, stream
from epicycle.manifold._base import to_unit_size
from epicycle.manifold._classical_mds import scaled
from epicycle.manifold._dissimilarities import checked_square
from epicycle.manifold._majorizer import Majorizer, Run, checked_weights

_SMALL = 1e-3  # of the size of the others: what a coordinate without an eigenvalue starts with


def checked_start(init: Any, n: int) -> np.ndarray:
    start = np.array(init, dtype=np.float64)
    if start.ndim != 2 or len(start) != n or not start.shape[1] or not np.isfinite(start).all():
        raise DataError(
            f"init: init matrix should be of shape ({n}, n_components), of finite numbers; got {start.shape}"
        )
    return start


def best_run(
    work: Majorizer,
    D: np.ndarray,
    starts: int | None,
    d: int,
    random_state: Seed,
    given: np.ndarray | None,
    limits: tuple[int, float],
    monitor: Monitor,
) -> Run:
    """The run of least stress, from given places, classical ones (`starts` is None) or random ones."""
    require_memory(48.0 * len(D) * d, f"{d:,} coordinates of {len(D):,} rows", "ask for fewer, n_components")
    seed = seed_of(random_state)
    done = 0
    best: Run | None = None
    for number_of_start in range(starts or 1):
        rng = stream(seed, "start", number_of_start)
        if given is not None:
            start = given
        elif starts is None:
            start = _classical(D, int(d), rng)
        else:
            start = rng.uniform(size=(len(D), int(d)))

        def record(iteration: int, X: np.ndarray, stress: float, at: int = number_of_start, past: int = done) -> bool:
            return monitor(past + iteration, X.ravel(), objective=stress, start=float(at))

        run = work.run(start, *limits, record)
        done += run.n_iter
        if best is None or run.stress < best.stress:
            best = run
        if run.reason == "stopped":
            break
    assert best is not None
    return best


def raw_stress(stress: float, by_size: bool, scale: float, heaviest: float) -> float:
    """The stress of dissimilarities and weights as they were given, before they were divided by these."""
    wide = scale if by_size else 1.0
    with np.errstate(over="ignore", under="ignore"):
        return float(np.float64(stress) * heaviest * wide * wide)


def _classical(D: np.ndarray, d: int, rng: np.random.Generator) -> np.ndarray:
    """Classical coordinates; where an eigenvalue is not positive, small random ones, which can grow."""
    found = scaled(D, d).places
    Z = np.zeros((len(D), d))
    Z[:, : found.shape[1]] = found
    empty = ~Z.any(axis=0)
    if empty.any():
        size = float(np.abs(D).max(initial=0.0)) or 1.0
        Z[:, empty] = _SMALL * size * rng.uniform(-1, 1, size=(len(D), int(empty.sum())))
    return Z


def smacof(
    dissimilarities: Any,
    *,
    metric: bool = True,
    n_components: int = 2,
    init: Any = None,
    n_init: int = 1,
    n_jobs: int | None = None,
    max_iter: int = 300,
    verbose: int = 0,
    eps: float = 1e-6,
    random_state: Seed = None,
    return_n_iter: bool = False,
    normalized_stress: bool | str = "auto",
    weights: Any = None,
) -> tuple[np.ndarray, float] | tuple[np.ndarray, float, int]:
    """Stress majorisation of dissimilarities, from random starts or from `init`: what :class:`MDS` does.

    Parameters
    ----------
    dissimilarities : array-like of shape (n_samples, n_samples)
        Symmetric.
    metric : bool, default=True
        Whether sizes count, or the order alone.
    n_components : int, default=2
        Number of coordinates; that of `init` where it is given.
    init : array-like of shape (n_samples, n_components), optional
        Places to start from.
    n_init, n_jobs, max_iter, eps, random_state, normalized_stress
        As in :class:`MDS`.
    verbose : int, default=0
        2 prints every iteration.
    return_n_iter : bool, default=False
        Whether to return the number of iterations too.
    weights : array-like of shape (n_samples, n_samples), optional
        A weight for each pair.

    Returns
    -------
    places : ndarray of shape (n_samples, n_components)
    stress : float
    n_iter : int
        Of the best start; with ``return_n_iter=True``.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import smacof
    >>> D = np.array([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]])
    >>> places, stress = smacof(D, random_state=0, eps=1e-12)
    >>> places.shape, round(stress, 6)
    ((3, 2), 0.0)
    """
    D, scale = to_unit_size(checked_square(dissimilarities, "dissimilarities"))
    d, starts = count("n_components", n_components, low=1), count("n_init", n_init, low=1)
    limits = (count("max_iter", max_iter, low=1), number("eps", eps, low=0.0))
    start = None if init is None else checked_start(init, len(D)) / scale
    if start is not None and starts != 1:
        warnings.warn(
            f"Explicit initial positions passed: performing only one init of the MDS instead of {starts}", stacklevel=2
        )
    W, heaviest = checked_weights(weights, len(D))
    monitor = _Printing() if verbose >= 2 else Monitor()
    work = Majorizer(D, W, metric=bool(metric), n_jobs=n_jobs)
    run = best_run(work, D, 1 if start is not None else starts, d, random_state, start, limits, monitor)
    wide = scale if metric else 1.0
    normalized = not metric if normalized_stress == "auto" else bool(normalized_stress)
    stress = run.normalized if normalized else raw_stress(run.stress, bool(metric), scale, heaviest)
    return (run.places * wide, stress, run.n_iter) if return_n_iter else (run.places * wide, stress)


class _Printing(Monitor):
    """A monitor that prints the stress."""

    def __call__(self, iteration: int, x: np.ndarray, *, objective: float, **columns: Any) -> bool:
        print(f"Iteration {iteration}, stress {objective:.4f}")
        return super().__call__(iteration, x, objective=objective, **columns)
