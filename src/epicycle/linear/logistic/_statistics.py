"""Sums over rows for logistic regression: each function maps a batch to statistics that add up, without the penalty.

`params` is the matrix (W, b), of one row for two classes and K rows for K > 2; features are taken about `shift`.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, softmax

from epicycle import _native
from epicycle.data import Batch


def targets_of(batch: Batch) -> np.ndarray:
    """The class codes of a batch, which are there whenever a classifier is fitted."""
    return np.asarray(batch.y)


def row_weights(batch: Batch, class_weight: np.ndarray | None) -> np.ndarray | None:
    """The weights of the rows, times those of their classes; None for ones."""
    if class_weight is None:
        return batch.weight
    by_class: np.ndarray = class_weight[targets_of(batch).astype(np.intp)]
    return by_class if batch.weight is None else by_class * batch.weight


def binary_gradient(
    batch: Batch, params: np.ndarray, shift: np.ndarray, class_weight: np.ndarray | None, _curvature: bool = True
) -> tuple[float, np.ndarray, np.ndarray]:
    """(loss, gradient in (w, b), second derivative in b, which costs nothing), without the penalty."""
    w, b, weight = np.ascontiguousarray(params[0, :-1]), float(params[0, -1]), batch.weight
    if class_weight is not None:
        weight = row_weights(batch, class_weight)
    loss, g, h = _native.linear.logistic_gradient(batch.X, batch.y, weight, shift, w, b)
    return loss, g[None, :], np.array([[h]])


def binary_hessian(
    batch: Batch, params: np.ndarray, shift: np.ndarray, class_weight: np.ndarray | None
) -> tuple[float, np.ndarray, np.ndarray]:
    """(loss, gradient, Hessian) in (w, b), without the penalty."""
    w, b, weight = np.ascontiguousarray(params[0, :-1]), float(params[0, -1]), batch.weight
    if class_weight is not None:
        weight = row_weights(batch, class_weight)
    loss, g, H = _native.linear.logistic_hessian(batch.X, batch.y, weight, shift, w, b)
    return loss, g[None, :], H


def shifted_features(batch: Batch, shift: np.ndarray) -> np.ndarray | sp.csr_array:
    """The features of a batch in float64, shifted where there is a shift; no copy where there is nothing to do."""
    if sp.issparse(batch.X):
        return batch.X
    return batch.X - shift if shift.any() else np.asarray(batch.X, dtype=np.float64)


def _probabilities(
    X: np.ndarray | sp.csr_array, batch: Batch, params: np.ndarray, weight: np.ndarray | None
) -> tuple[float, np.ndarray]:
    """(loss, class probabilities) of a batch."""
    Z = X @ params[:, :-1].T
    Z += params[:, -1]
    Z -= Z.max(axis=1, keepdims=True)
    own = np.take_along_axis(Z, targets_of(batch)[:, None], axis=1)[:, 0]
    P = np.exp(Z, out=Z)
    total = P.sum(axis=1)
    loss = np.log(total) - own
    P /= total[:, None]
    return float(loss.sum() if weight is None else weight @ loss), P


def multinomial_gradient(
    batch: Batch, params: np.ndarray, shift: np.ndarray, class_weight: np.ndarray | None, curvature: bool = False
) -> tuple[float, np.ndarray, np.ndarray]:
    """(loss, gradient in (W, b), Hessian in b where `curvature` asks for it), without the penalty."""
    weight = row_weights(batch, class_weight)
    if not sp.issparse(batch.X):
        return _native.linear.multinomial_gradient(
            batch.X, targets_of(batch), weight, shift, np.ascontiguousarray(params), curvature
        )
    X = batch.X
    loss, P = _probabilities(X, batch, params, weight)
    weighted = P if weight is None else P * weight[:, None]
    in_b = np.diag(weighted.sum(axis=0)) - weighted.T @ P if curvature else np.zeros((len(params), len(params)))
    R = P.copy() if weight is None else weighted
    R[np.arange(batch.n_rows), batch.y] -= 1.0 if weight is None else weight
    return loss, np.column_stack([R.T @ X, R.sum(axis=0)]), in_b


def hessian_product(
    batch: Batch, params: np.ndarray, shift: np.ndarray, class_weight: np.ndarray | None, move: np.ndarray
) -> tuple[np.ndarray]:
    """The Hessian at `params` times a move of them, both of shape (K, d), one row for two classes."""
    weight, K, X = row_weights(batch, class_weight), len(params), batch.X
    both = np.vstack([params, move])
    # One product with the rows for both. Sparse rows are never shifted.
    Z = np.asarray(X @ both[:, :-1].T) + (both[:, -1] - (0.0 if sp.issparse(X) else both[:, :-1] @ shift))
    Z, U = Z[:, :K], Z[:, K:]
    if K == 1:
        R = U * (expit(Z) * expit(-Z))
    else:
        P = softmax(Z, axis=1)
        R = P * U
        R -= P * R.sum(axis=1, keepdims=True)
    if weight is not None:
        R *= weight[:, None]
    total = R.sum(axis=0)
    product = np.asarray(X.T @ R).T
    if not sp.issparse(X):
        product = product - total[:, None] * shift
    return (np.column_stack([product, total]),)


def multinomial_hessian(
    batch: Batch, params: np.ndarray, shift: np.ndarray, class_weight: np.ndarray | None
) -> tuple[float, np.ndarray, np.ndarray]:
    """(loss, gradient, Hessian) in (W, b): block (k, l) is sum_i w_i p_ik ([k = l] - p_il) (x_i, 1)(x_i, 1)'."""
    weight, X = row_weights(batch, class_weight), shifted_features(batch, shift)
    loss, P = _probabilities(X, batch, params, weight)
    w = np.ones(batch.n_rows) if weight is None else weight
    K, d = params.shape
    R = P * w[:, None]
    R[np.arange(batch.n_rows), batch.y] -= w
    g = np.column_stack([np.asarray(X.T @ R).T, R.sum(axis=0)])
    if sp.issparse(X):
        H = _native.linear.multinomial_curvature(X, w, np.ascontiguousarray(P))
    else:
        H = _dense_curvature(np.hstack([X, np.ones((batch.n_rows, 1))]), w, P).reshape(K * d, K * d)
    return loss, g, H


def _dense_curvature(X1: np.ndarray, w: np.ndarray, P: np.ndarray) -> np.ndarray:
    """sum_i w_i (diag(p_i) - p_i p_i') (x) x_i x_i': K weighted Gram matrices, less that of the vectors p_i (x) x_i."""
    (n, d), K = X1.shape, P.shape[1]
    none, origin = np.empty((n, 0)), np.zeros(K * d)
    H = np.zeros((K * d, K * d))
    for start in range(0, n, 512):  # the products of probabilities and features are K times the size of the rows
        rows = slice(start, start + 512)
        U = (P[rows, :, None] * X1[rows, None, :]).reshape(-1, K * d)
        H -= _native.core.moments(U, none[rows], w[rows], origin)[:-1, :-1]
    H = H.reshape(K, d, K, d)
    for k in range(K):
        H[k, :, k] += _native.core.moments(X1, none, w * P[:, k], origin[:d])[:-1, :-1]
    return H


def square_statistic(batch: Batch, shift: np.ndarray, class_weight: np.ndarray | None) -> tuple[float, float]:
    """(sum_i w_i ||x_i - s||^2, sum_i w_i)."""
    weight = batch.weight if class_weight is None else row_weights(batch, class_weight)
    if sp.issparse(batch.X):
        squares = np.asarray(sp.csr_array(batch.X).multiply(batch.X).sum(axis=1), dtype=np.float64).ravel()
    else:
        X = np.asarray(batch.X - shift if shift.any() else batch.X, dtype=np.float64)
        squares = np.einsum("ij,ij->i", X, X)
    return (squares.sum(), float(batch.n_rows)) if weight is None else (squares @ weight, weight.sum())


def gram_statistic(batch: Batch, shift: np.ndarray, class_weight: np.ndarray | None) -> tuple[np.ndarray]:
    """sum_i w_i (x_i - s, 1)(x_i - s, 1)'."""
    weight, none = row_weights(batch, class_weight), np.empty((batch.n_rows, 0))
    return (_native.core.moments(batch.X, none, weight, shift),)


class Largest(float):
    """A number that adds up by taking the larger one."""

    def __add__(self, other: float) -> Largest:
        return Largest(max(self, other))


def least_weight_statistic(batch: Batch, class_weight: np.ndarray | None) -> tuple[Largest]:
    """The least positive weight of a row, negated."""
    weight = row_weights(batch, class_weight)
    assert weight is not None  # asked for only where there are weights
    return (Largest(-weight[weight > 0].min(initial=np.inf)),)


def leverage_statistic(
    batch: Batch, shift: np.ndarray, factors: np.ndarray, null: np.ndarray, scale: np.ndarray
) -> tuple[Largest, Largest, Largest]:
    """The largest moves of the margins of a row when the parameters move.

    Each of `factors` (F, of shape (pairs, r, columns)) is for a pair of margins: |F x|^2 is the largest squared change
    of their difference for a move of unit length in the norm of H. `null` has directions that H ignores, of parameters
    no larger than `scale`. Gives the largest of those squares, the largest difference for a move along `null`, and the
    largest that the terms of the latter can add up to. With one row of parameters the other margin is zero.
    """
    d = factors.shape[2]
    leverage = move = terms = Largest(0.0)
    step = max(1, int(2e6 / (d + null.shape[0] * null.shape[2] + 1)))
    for start in range(0, batch.n_rows, step):
        X = batch.X[start : start + step]
        X = sp.csr_array(X).toarray() if sp.issparse(X) else X - shift
        X1 = np.hstack([X, np.ones((len(X), 1))])[:, :d]
        for F in factors:
            T = X1 @ F.T
            leverage += Largest(np.einsum("ij,ij->i", T, T).max())
        if null.size:
            move += Largest(np.ptp(_margins(X1, null), axis=1).max())
            terms += Largest((np.abs(X1) @ scale.T).max())
    return leverage, move, terms


def _margins(X1: np.ndarray, moves: np.ndarray) -> np.ndarray:
    """(rows, classes, moves): what every move of the parameters adds to every margin."""
    Z = [X1 @ of_class for of_class in moves]
    return np.stack(Z if len(Z) > 1 else [*Z, np.zeros_like(Z[0])], axis=1)


def column_square_statistic(
    batch: Batch, shift: np.ndarray, class_weight: np.ndarray | None
) -> tuple[np.ndarray, float]:
    """(sum_i w_i (x_ij - s_j)^2 for every j, sum_i w_i)."""
    weight = row_weights(batch, class_weight)
    w = np.ones(batch.n_rows) if weight is None else weight
    X = shifted_features(batch, shift)
    squares = sp.csr_array(X).multiply(X).T @ w if sp.issparse(X) else np.einsum("ij,ij,i->j", X, X, w)
    return np.asarray(squares), float(w.sum())


def margin_statistic(batch: Batch, params: np.ndarray, shift: np.ndarray) -> tuple[Largest, ...]:
    """Negated margins, the largest over all rows: negative exactly when every row is on its own side.

    For two classes -(2 y - 1) z. For more, max_{k != y} z_k - z_y, and then each class against the mean of all.
    """
    Z = np.asarray(shifted_features(batch, shift) @ params[:, :-1].T) + params[:, -1]
    if len(params) == 1:
        wrong = -(2 * targets_of(batch) - 1)[:, None] * Z
    else:
        rows = np.arange(batch.n_rows)
        against_rest = Z - Z.mean(axis=1, keepdims=True)
        against_rest[rows, batch.y] *= -1
        own = Z[rows, batch.y]
        Z[rows, batch.y] = -np.inf
        wrong = np.column_stack([Z.max(axis=1) - own, against_rest])
    if batch.weight is not None:
        wrong = wrong[batch.weight > 0]
    return tuple(Largest(worst) for worst in wrong.max(axis=0, initial=-np.inf))
