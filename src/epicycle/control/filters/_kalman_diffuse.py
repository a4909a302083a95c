"""Diffuse start of a state-space model, exactly: the unknown first components are regression coefficients.

Filter and smoother are linear in the first mean. With x(0) = mean + D delta and delta unknown, innovations are
e - E delta with variances F, so that S = sum E'F^-1 E and s = sum E'F^-1 e give delta = S^-1 s with covariance S^-1
(de Jong), and the limit of the log-likelihood with prior N(0, k I) plus q/2 log k is log L + s'S^-1 s / 2 - log|S| / 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle._native import control as native
from epicycle.core._exceptions import DataError

Array = np.ndarray
#: y, A, C, W, V, the constants of states and observations, mean and covariance of the first state.
Given = tuple[Array, Array, Array, Array, Array, Array, Array, Array, Array]
#: What the filter stores: no more than the likelihood, what the smoother reads, or all that users see.
NOTHING, SMOOTHER, EVERYTHING = 0, 1, 2
_RANK = 1e-10  # relative size of an eigenvalue of S, in the units of its diagonal, that counts as none


def diffuse_mask(given: Any, n: int) -> Array:
    """Mask of the components whose start is not known."""
    if given is None or given is False:
        return np.zeros(n, dtype=bool)
    if given is True:
        return np.ones(n, dtype=bool)
    entries = np.asarray(given)
    if entries.dtype == bool and entries.shape == (n,):
        return entries.copy()
    if entries.ndim == 1 and np.issubdtype(entries.dtype, np.integer) and ((entries >= 0) & (entries < n)).all():
        mask = np.zeros(n, dtype=bool)
        mask[entries] = True
        return mask
    raise DataError(f"diffuse={given!r:.80}: expected a bool, a mask of {n} components, or indices below {n}")


def filtered(given: Given, store: int, form: int) -> tuple[float, Array, Array, Array, Array, Array]:
    """Value, predicted and filtered means and covariances, log-densities; of them what is to be stored."""
    return native.kalman_filter(given[0], native.StateSpace(*given[1:]), store, form)


def smoothed(given: Given, pm: Array, pc: Array, fc: Array, *, lagged: bool = True) -> tuple[Array, Array, Array]:
    """Smoothed means and covariances, covariances of successive states, written over those of the filter."""
    native.kalman_smoother(given[0], native.StateSpace(*given[1:]), pm, pc, fc, lagged)
    return pm, pc, fc[:-1]


def augmented_filter(given: Given, mask: Array, form: int) -> tuple[float, Array, Array, Array, Array, Array]:
    """Value, predicted and filtered moments, log-densities; variances are infinite until the start is determined."""
    base, responses, S, s, known = _regression(given, mask, form)
    _, pm, pc, fm, fc, densities = base
    moved, updated = responses
    T, q = s.shape
    before = np.concatenate([np.zeros((1, q, q)), S[:-1]]), np.concatenate([np.zeros((1, q)), s[:-1]])
    pm, pc = _corrected(pm, pc, moved, *before)
    fm, fc = _corrected(fm, fc, updated, S, s)
    so_far = np.zeros(T)
    if known < T:
        inverse = np.linalg.inv(S[known:])
        quadratic = np.einsum("ti,tij,tj->t", s[known:], inverse, s[known:])
        so_far[known:] = np.cumsum(densities)[known:] + 0.5 * (quadratic - np.linalg.slogdet(S[known:])[1])
    else:
        _undetermined(S[-1], mask)
    return float(so_far[-1]), pm, pc, fm, fc, np.diff(so_far, prepend=0.0)


def augmented_smoother(given: Given, mask: Array, form: int) -> tuple[Array, Array, Array, float]:
    """Smoothed means and covariances, covariances of successive states, value."""
    base, _, S, s, known = _regression(given, mask, form)
    value, pm, pc, _, fc, _ = base
    if known == len(s):
        _undetermined(S[-1], mask)
    columns = []
    for start in _unit_starts(mask):
        shifted = _zero_series(given, start)
        moved = filtered(shifted, SMOOTHER, form)[1]
        columns.append(smoothed(shifted, moved, pc.copy(), fc, lagged=False)[0])
    mean, cov, lag = smoothed(given, pm, pc, fc)
    X = np.stack(columns, axis=2)
    spread = np.linalg.inv(S[-1])
    delta = spread @ s[-1]
    total = float(value + 0.5 * (s[-1] @ delta - np.linalg.slogdet(S[-1])[1]))
    XS = X @ spread
    return mean + X @ delta, cov + XS @ X.swapaxes(1, 2), lag + XS[1:] @ X[:-1].swapaxes(1, 2), total


def _regression(given: Given, mask: Array, form: int) -> tuple[Any, tuple[Array, Array], Array, Array, int]:
    """The filter with delta = 0, its responses to delta, S and s so far, and when S first has full rank."""
    y, _, C, _, V, _, c, _, _ = given
    base = filtered(given, EVERYTHING, form)
    if not np.isfinite(base[0]):
        raise DataError("y: the log-likelihood is no finite number; expected observations of the size of the model")
    found = [filtered(_zero_series(given, start), EVERYTHING, form) for start in _unit_starts(mask)]
    moved, updated = (np.stack([f[i] for f in found], axis=2) for i in (1, 3))
    gap = np.isnan(y)
    seen = np.where(gap, 0.0, 1.0)
    C = np.broadcast_to(C, (len(y), *C.shape[1:])) * seen[:, :, None]
    error = np.where(gap, 0.0, y - c - np.einsum("tij,tj->ti", C, base[1]))
    # An entry that is missing has no row in C and a variance of one: it adds nothing.
    noise = V * (seen[:, :, None] * seen[:, None, :]) + np.eye(y.shape[1]) * (1 - seen)[:, None, :]
    F = C @ base[2] @ C.swapaxes(1, 2) + noise
    E = C @ moved
    weighted = np.linalg.solve(F, np.concatenate([E, error[:, :, None]], axis=2))
    both = E.swapaxes(1, 2) @ weighted
    S, s = np.cumsum(both[:, :, :-1], axis=0), np.cumsum(both[:, :, -1], axis=0)
    full = np.array([_has_full_rank(M) for M in S])
    return base, (moved, updated), S, s, int(np.argmax(full)) if full.any() else len(y)


def _has_full_rank(S: Array) -> bool:
    scale = np.sqrt(np.diag(S))
    if (scale <= 0).any():
        return False
    return bool(np.linalg.eigvalsh(S / np.outer(scale, scale))[0] > _RANK)


def _corrected(mean: Array, cov: Array, M: Array, S: Array, s: Array) -> tuple[Array, Array]:
    """Moments with delta estimated so far; components that it leaves open have infinite variance."""
    mean, cov = mean.copy(), cov.copy()
    for t in range(len(mean)):
        if t and _has_full_rank(S[t]):
            spread = np.linalg.inv(S[t:])
            mean[t:] += np.einsum("tij,tjk,tk->ti", M[t:], spread, s[t:])
            cov[t:] += M[t:] @ spread @ M[t:].swapaxes(1, 2)
            return mean, cov
        values, vectors = np.linalg.eigh(S[t])
        kept = values > _RANK * max(values[-1], np.finfo(float).tiny)
        spread = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
        mean[t] += M[t] @ spread @ s[t]
        cov[t] += M[t] @ spread @ M[t].T
        size = np.abs(M[t]).max(initial=0.0)
        free = np.abs(M[t] @ vectors[:, ~kept]).max(axis=1, initial=0.0) > 1e-8 * size
        cov[t][free] = np.nan
        cov[t][:, free] = np.nan
        cov[t][free, free] = np.inf
    return mean, cov


def _unit_starts(mask: Array) -> Array:
    return np.asarray(np.eye(len(mask))[mask])


def _zero_series(given: Given, start: Array) -> Given:
    """The same model without constants and with observations of zero, from a first mean."""
    y, A, C, W, V, a, c, _, cov = given
    return np.where(np.isnan(y), np.nan, 0.0), A, C, W, V, np.zeros_like(a), np.zeros_like(c), start, cov


def _undetermined(S: Array, mask: Array) -> None:
    values, vectors = np.linalg.eigh(S)
    worst = np.flatnonzero(mask)[int(np.argmax(np.abs(vectors[:, 0])))]
    raise DataError(
        f"y: the observations do not determine the diffuse start (component {worst} of the state, eigenvalue "
        f"{values[0]:g}); expected more observations, or a covariance for that component"
    )
