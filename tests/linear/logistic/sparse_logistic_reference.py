"""Reference for L1-penalised logistic regression: accelerated proximal gradient in plain NumPy on scaled columns."""

import numpy as np


def dense(X):
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def losses(Z, codes):
    """log sum_k e^{z_k} - z_y of every row, and p - [k = y]."""
    top = Z.max(axis=1, keepdims=True)
    E = np.exp(Z - top)
    total = E.sum(axis=1, keepdims=True)
    R = E / total
    rows = np.arange(len(Z))
    loss = top[:, 0] + np.log(total[:, 0]) - Z[rows, codes]
    R[rows, codes] -= 1
    return loss, R


def scores(X, W, b):
    Z = dense(X) @ np.atleast_2d(W).T.astype(float) + np.asarray(b, dtype=float)
    return np.column_stack([np.zeros(len(Z)), Z]) if Z.shape[1] == 1 else Z


def objective(X, codes, weight, l1, l2, W, b):
    """sum w loss + l1 |W|_1 + l2/2 |W|^2."""
    W = np.atleast_2d(W).astype(float)
    return weight @ losses(scores(X, W, b), codes)[0] + l1 * np.abs(W).sum() + l2 / 2 * (W**2).sum()


def gradient(X, codes, weight, W, b):
    """The gradient of the loss in (W, b)."""
    R = losses(scores(X, W, b), codes)[1] * weight[:, None]
    R = R[:, 1:] if len(np.atleast_2d(W)) == 1 else R
    return R.T @ dense(X), R.sum(axis=0)


def kkt_residual(X, codes, weight, l1, l2, W, b, intercept=True):
    """The largest violation of the optimality conditions."""
    W = np.atleast_2d(W).astype(float)
    g, g_b = gradient(X, codes, weight, W, b)
    g = g + l2 * W
    off = np.where(W != 0, np.abs(g + l1 * np.sign(W)), np.maximum(np.abs(g) - l1, 0))
    return max(off.max(initial=0.0), np.abs(g_b).max() if intercept else 0.0)


def lower(X, codes, weight, l1, l2, W, b, intercept=True, steps=400):
    """The lowest objective on the way of proximal gradient steps from (W, b): FISTA with restarts."""
    X = dense(X)
    W, b = np.atleast_2d(W).astype(float).copy(), np.asarray(b, dtype=float).copy()
    mean = weight @ X / weight.sum() if intercept else np.zeros(X.shape[1])
    b = b + W @ mean
    A = X - mean
    scale = np.sqrt(np.maximum(weight @ A**2, 1e-300))
    scale[scale < 1e-12 * np.abs(X).max(initial=1e-300)] = 1.0
    A = A / scale
    V = W * scale
    ridge, l1s = l2 / scale**2, l1 / scale
    ones = np.sqrt(weight.sum())
    H = np.column_stack([A, np.full(len(A), 1 / ones)]) if intercept else A
    c = b * ones
    bound = (0.25 if len(W) == 1 else 0.5) * np.linalg.norm(np.sqrt(weight)[:, None] * H, 2) ** 2
    step = 1 / (bound + ridge.max() or 1.0)  # columns of zeros have no curvature

    def value(V, c):
        Z = A @ V.T + (c / ones if intercept else 0.0)
        Z = np.column_stack([np.zeros(len(Z)), Z]) if len(V) == 1 else Z
        loss, R = losses(Z, codes)
        R = (R[:, 1:] if len(V) == 1 else R) * weight[:, None]
        total = weight @ loss + (l1s * np.abs(V)).sum() + (ridge * V**2).sum() / 2
        return total, R.T @ A + ridge * V, R.sum(axis=0) / ones

    best = value(V, c)[0]
    Y, d, t = V, c, 1.0
    for _ in range(steps):
        _, g, g_c = value(Y, d)
        U = Y - step * g
        V_new = np.sign(U) * np.maximum(np.abs(U) - step * l1s, 0)
        c_new = d - step * g_c if intercept else d
        if ((Y - V_new) * (V_new - V)).sum() + (d - c_new) @ (c_new - c) > 0:
            t = 1.0
        t_new = (1 + np.sqrt(1 + 4 * t * t)) / 2
        Y, d = V_new + (t - 1) / t_new * (V_new - V), c_new + (t - 1) / t_new * (c_new - c)
        V, c, t = V_new, c_new, t_new
        best = min(best, value(V, c)[0])
    return best
