"""Reference for the lasso and the elastic net: accelerated proximal gradient in NumPy on centred, weighted rows."""

import numpy as np


def centred(X, y, weight=None, intercept=True):
    """Rows times the square roots of weights that sum to one, about the weighted means; and those means."""
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    v = np.full(len(y), 1 / len(y)) if weight is None else weight / weight.sum()
    x_mean, y_mean = (v @ X, v @ y) if intercept else (np.zeros(X.shape[1]), 0.0)
    root = np.sqrt(v)
    return root[:, None] * (X - x_mean), root * (y - y_mean), x_mean, y_mean


def objective(A, b, w, l1, l2):
    r = b - A @ w
    return r @ r / 2 + l1 @ np.abs(w) + l2 @ w**2 / 2


def proximal_gradient(A, b, l1, l2, positive=False, steps=100_000):
    """FISTA with restarts (O'Donoghue and Candes), on 1/2 |b - Aw|^2 + sum l1 |w| + 1/2 sum l2 w^2."""
    G, c = A.T @ A, A.T @ b
    step = 1 / (np.linalg.norm(A, 2) ** 2 + l2.max() + 1e-300)
    w = z = np.zeros(A.shape[1])
    t = 1.0
    for _ in range(steps):
        u = z - step * (G @ z - c + l2 * z)
        new = np.maximum(u - step * l1, 0)
        if not positive:
            new -= np.maximum(-u - step * l1, 0)
        if (z - new) @ (new - w) > 0:
            t = 1.0
        t_new = (1 + np.sqrt(1 + 4 * t * t)) / 2
        moved = np.abs(new - w).max(initial=0.0)
        z = new + (t - 1) / t_new * (new - w)
        w, t = new, t_new
        if moved <= 1e-15 * np.abs(w).max(initial=1e-300):
            break
    return w


def alpha_max(A, b):
    return np.abs(A.T @ b).max()
