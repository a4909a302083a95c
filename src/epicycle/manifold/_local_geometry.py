r"""Condition of locally linear embeddings near every row, as a quadratic form  z'Mz = sum_i z_i' A_i z_i.

Of row i and its k neighbours, which the short vectors z_i take out of z, the forms A_i are

standard   (e - w)(e - w)'        with the weights w of sum one that give row i from its neighbours best
modified   sum_l (e - w_l)(...)'  with several such weights, which span those that are nearly as good
ltsa       I - G G'               with G an orthonormal basis of constant and linear functions on the tangent space
hessian    H H'                   with H the rows of a discrete Hessian: quadratic functions less the linear ones

The last two are forms of the neighbours alone. Constants solve all of them: M 1 = 0. Each is of the size of one and
does not change with the scale of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError

_CHUNK = 1 << 22  # numbers held at a time
_ROUNDING = 1e-10  # sums of orthonormal columns below it are zero


def quadratic_form(
    X: np.ndarray,
    near: np.ndarray,
    d: int,
    method: str,
    *,
    reg: float,
    hessian_tol: float,
    modified_tol: float,
) -> sp.csr_array:
    """M for rows X, whose neighbours are the rows of `near`, and d coordinates."""
    if method == "standard":
        n, k = near.shape
        W = sp.csr_array((barycentres(X, X, near, reg).ravel(), near.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
        E = sp.csr_array(sp.eye_array(n, format="csr") - W)
        return sp.csr_array(E.T @ E)
    if method == "modified":
        return _modified(X, near, d, reg, modified_tol)
    local: Callable[[np.ndarray], np.ndarray]
    if method == "ltsa":

        def local(A: np.ndarray) -> np.ndarray:
            k = A.shape[1]
            G = np.concatenate([np.full((len(A), k, 1), 1.0 / np.sqrt(k)), _axes(A, d)], axis=2)
            return np.asarray(np.eye(k) - G @ G.swapaxes(1, 2))
    else:

        def local(A: np.ndarray) -> np.ndarray:
            return _hessian(_axes(A, d), hessian_tol)

    # A row that is no neighbour of any other would be in no form at all: it is put among its own neighbours.
    alone = np.bincount(near.ravel(), minlength=len(X)) == 0
    forms = []
    for sets in (near[~alone], np.column_stack([near[alone], np.flatnonzero(alone)])):
        for rows in _chunks(X, sets):
            A = X[sets[rows]]
            forms.append((sets[rows], local(A - A.mean(axis=1, keepdims=True))))
    return _added(forms, len(X))


def barycentres(X: np.ndarray, Y: np.ndarray, near: np.ndarray, reg: float) -> np.ndarray:
    """Weights of sum one that give every row of X from rows `near` of Y best, with a ridge of `reg` times the trace."""
    n, k = near.shape
    found = np.empty((n, k))
    for rows in _chunks(Y, near):
        C = Y[near[rows]] - X[rows][:, None, :]
        G = C @ C.swapaxes(1, 2)
        trace = np.trace(G, axis1=1, axis2=2)
        G /= np.where(trace > 0, trace, 1.0)[:, None, None]  # which leaves the weights as they are
        G[:, np.arange(k), np.arange(k)] += np.where(trace > 0, reg, reg or 1.0)[:, None]
        try:
            w = np.linalg.solve(G, np.ones((len(G), k, 1)))[:, :, 0]
        except np.linalg.LinAlgError:
            raise DataError(f"reg={reg:g}: neighbours that depend on each other have no weights without it") from None
        found[rows] = w / w.sum(axis=1, keepdims=True)
    if not np.isfinite(found).all():
        raise DataError(f"reg={reg:g}: neighbours have no weights with it; raise it")
    return found


def _chunks(X: np.ndarray, near: np.ndarray) -> Iterator[slice]:
    k = near.shape[1]
    step = max(1, _CHUNK // (k * max(k, X.shape[1])))
    return (slice(start, start + step) for start in range(0, len(near), step))


def _axes(A: np.ndarray, d: int) -> np.ndarray:
    """The d leading left singular vectors of each of the centred A."""
    k, p = A.shape[1:]
    if k > p:
        return np.asarray(np.linalg.svd(A, full_matrices=False)[0][:, :, :d])
    return np.linalg.eigh(A @ A.swapaxes(1, 2))[1][:, :, ::-1][:, :, :d]


def _hessian(U: np.ndarray, tol: float) -> np.ndarray:
    """H H' from the tangent coordinates U: the part of their products that no linear function explains."""
    d = U.shape[2]
    i, j = np.triu_indices(d)
    Y = np.concatenate([np.ones((*U.shape[:2], 1)), U, U[:, :, i] * U[:, :, j]], axis=2)
    H = np.linalg.qr(Y)[0][:, :, d + 1 :]
    sums = H.sum(axis=1, keepdims=True)  # zero but for rounding where the first column is the constant
    H = H / np.where(np.abs(sums) < max(tol, _ROUNDING), 1.0, sums)
    return np.asarray(H @ H.swapaxes(1, 2))


def _modified(X: np.ndarray, near: np.ndarray, d: int, reg: float, tol: float) -> sp.csr_array:
    n, k = near.shape
    spectra, bases = [], []
    for rows in _chunks(X, near):
        C = X[near[rows]] - X[rows][:, None, :]
        if k > X.shape[1]:
            V, s, _ = np.linalg.svd(C, full_matrices=True)
            values = np.square(s)
        else:
            values, V = np.linalg.eigh(C @ C.swapaxes(1, 2))
            values, V = values[:, ::-1].clip(min=0.0), V[:, :, ::-1]
        spectra.append(values)
        bases.append(V)
    values, V = np.concatenate(spectra), np.concatenate(bases)
    used = values.shape[1]
    total = values.sum(axis=1)
    ridge = np.where(total > 0, reg, reg or 1.0)[:, None]
    shares = V.sum(axis=1)
    parts = values / np.where(total > 0, total, 1.0)[:, None]
    full = np.concatenate([parts, np.zeros((n, k - used))], axis=1) + ridge
    w = np.einsum("nij,nj->ni", V, np.divide(shares, full, out=np.zeros_like(shares), where=full > 0))
    w /= w.sum(axis=1, keepdims=True)
    if not np.isfinite(w).all():
        raise DataError(f"reg={reg:g}: neighbours have no weights with it; raise it")
    cumulated = np.cumsum(values, axis=1)
    small, large = values[:, d:].sum(axis=1), values[:, :d].sum(axis=1)
    eta = float(np.median(np.divide(small, large, out=np.zeros(n), where=large > 0)))
    ratio = np.divide(cumulated[:, -1:], cumulated[:, :-1], out=np.ones((n, used - 1)), where=cumulated[:, :-1] > 0) - 1
    # how many directions are as good as none: those whose share of the variance is below the usual one
    count = np.clip((ratio < eta).sum(axis=1) + k - used, 1, k)
    forms = []
    for s in np.unique(count):
        some = np.flatnonzero(count == s)
        forms.append((np.column_stack([near[some], some]), _several_weights(V[some][:, :, k - s :], w[some], tol)))
    return _added(forms, n)


def _several_weights(Q: np.ndarray, w: np.ndarray, tol: float) -> np.ndarray:
    """sum_l (e - w_l)(e - w_l)' over neighbours and, last, the row itself; W = Q H + (1 - a) w 1', H a reflection."""
    m, _, s = Q.shape
    sums = Q.sum(axis=1)
    a = np.linalg.norm(sums, axis=1) / np.sqrt(s)
    h = a[:, None] - sums
    length = np.linalg.norm(h, axis=1, keepdims=True)
    h = np.divide(h, length, out=np.zeros_like(h), where=length >= max(tol, np.finfo(np.float64).tiny))
    W = Q - 2 * (Q @ h[:, :, None]) * h[:, None, :] + ((1 - a)[:, None] * w)[:, :, None]
    E = np.concatenate([W, np.full((m, 1, s), -1.0)], axis=1)
    return np.asarray(E @ E.swapaxes(1, 2))


def _added(forms: list[tuple[np.ndarray, np.ndarray]], n: int) -> sp.csr_array:
    """sum_i of small matrices over rows and columns of their own."""
    row, column, value = [], [], []
    for near, A in forms:
        k = near.shape[1]
        row.append(np.repeat(near, k, axis=1).ravel())
        column.append(np.tile(near, (1, k)).ravel())
        value.append(A.ravel())
    at = (np.concatenate(row).astype(np.int32), np.concatenate(column).astype(np.int32))
    return sp.csr_array(sp.coo_array((np.concatenate(value), at), shape=(n, n)))
