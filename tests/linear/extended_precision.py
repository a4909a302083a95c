"""Optima in extended precision, by plain code that shares nothing with the library.

Everything runs in numpy.longdouble (64-bit mantissa): least squares by Gram-Schmidt, logistic regression by Newton.
"""

import numpy as np

LD = np.longdouble
TINY = LD(10) ** -17


def independent_columns(A):
    """Indices of columns of A that span the others: pivoted Gram-Schmidt, each vector made orthogonal twice."""
    A = np.asarray(A, LD)
    lengths = np.sqrt((A**2).sum(axis=0))
    scaled = A / np.where(lengths > 0, lengths, 1)
    kept, basis, left = [], [], [j for j in range(A.shape[1]) if lengths[j] > 0]
    while left:
        rest = {}
        for j in left:
            v = scaled[:, j]
            for _ in range(2):
                for q in basis:
                    v = v - q * (q @ v)
            rest[j] = v
        best = max(left, key=lambda j: rest[j] @ rest[j])
        size = np.sqrt(rest[best] @ rest[best])
        if size <= TINY * A.shape[0]:
            break
        basis.append(rest[best] / size)
        kept.append(best)
        left.remove(best)
    return sorted(kept)


def solve(A, b):
    """A^-1 b by elimination with pivoting."""
    A, b = np.array(A, LD), np.array(b, LD)
    n = len(A)
    for i in range(n):
        k = i + int(np.abs(A[i:, i]).argmax())
        A[[i, k]], b[[i, k]] = A[[k, i]], b[[k, i]]
        for r in range(i + 1, n):
            f = A[r, i] / A[i, i]
            A[r, i:] -= f * A[i, i:]
            b[r] -= f * b[i]
    x = np.zeros_like(b)
    for i in reversed(range(n)):
        x[i] = (b[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x


def squares_objective(X, y, weight, alpha, coef, intercept):
    """1/2 sum w (y - b - w'x)^2 + alpha/2 |w|^2 for one target."""
    r = np.asarray(y, LD) - np.asarray(X, LD) @ np.asarray(coef, LD) - LD(intercept)
    return (np.asarray(weight, LD) * r) @ r / 2 + LD(alpha) * (np.asarray(coef, LD) ** 2).sum() / 2


def least_squares(X, y, weight=None, alpha=0.0, intercept=True):
    """(coef, intercept, minimum): rows times sqrt(w), below them sqrt(alpha) I, columns made orthogonal one by one."""
    X, y = np.asarray(X, LD), np.asarray(y, LD)
    n, p = X.shape
    root = np.sqrt(np.ones(n, LD) if weight is None else np.asarray(weight, LD))
    mean = (root**2 @ X) / (root**2).sum() if intercept else np.zeros(p, LD)
    y_mean = (root**2 @ y) / (root**2).sum() if intercept else LD(0)
    A, b = root[:, None] * (X - mean), root * (y - y_mean)
    if alpha > 0:
        A, b = np.vstack([A, np.sqrt(LD(alpha)) * np.eye(p, dtype=LD)]), np.concatenate([b, np.zeros(p, LD)])
    kept = independent_columns(A)
    x = np.zeros(p, LD)
    Q, R = orthogonal(A[:, kept])
    x[kept] = solve(R, Q.T @ b) if kept else x[kept]
    r = b - Q @ (Q.T @ b)
    r = r - Q @ (Q.T @ r)
    return x, y_mean - mean @ x, r @ r / 2


def orthogonal(A):
    """Q and R by Gram-Schmidt, twice."""
    Q, R = np.array(A, LD), np.eye(A.shape[1], dtype=LD)
    for j in range(A.shape[1]):
        for _ in range(2):
            for k in range(j):
                c = Q[:, k] @ Q[:, j]
                Q[:, j] -= c * Q[:, k]
                R[k, j] = c if _ == 0 else R[k, j] + c
        R[j, j] = np.sqrt(Q[:, j] @ Q[:, j])
        Q[:, j] /= R[j, j]
    return Q, R


def losses_of(Z, codes):
    """(log sum_k e^{z_k} - z_y, p - [k = y]) of every row, without cancellation where p_y is close to one."""
    rows = np.arange(len(Z))
    D = Z - Z[rows, codes][:, None]
    top = np.maximum(D.max(axis=1), 0)
    E = np.exp(D - top[:, None])
    E[rows, codes] = 0
    others = E.sum(axis=1)
    losses = np.where(top > 0, top + np.log(others + np.exp(-top)), np.log1p(others))
    R = E / (others + np.exp(-top))[:, None]
    R[rows, codes] = -R.sum(axis=1)
    return losses, R


def logistic_objective(X, codes, weight, penalty, W, b):
    """sum w loss + penalty/2 |W|^2, with one row of W for two classes and K rows for K."""
    W = np.atleast_2d(np.asarray(W, LD))
    Z = np.asarray(X, LD) @ W.T + np.asarray(b, LD)
    if len(W) == 1:
        Z = np.column_stack([np.zeros(len(Z), LD), Z])
    weight = np.ones(len(Z), LD) if weight is None else np.asarray(weight, LD)
    return weight @ losses_of(Z, codes)[0] + LD(penalty) / 2 * (W**2).sum()


def logistic(X, codes, n_classes, weight=None, penalty=0.0, intercept=True, max_iter=1000):  # noqa: C901 - one Newton loop, top to bottom
    """(minimum, whether Newton's decrement vanished) of the logistic objective."""
    X = np.asarray(X, LD)
    n, p = X.shape
    weight = np.ones(n, LD) if weight is None else np.asarray(weight, LD)
    used = weight > 0
    X, codes, weight = X[used], np.asarray(codes)[used], weight[used]
    n = len(X)
    centre = X.mean(axis=0) if intercept else np.zeros(p, LD)
    A = np.column_stack([X - centre, np.ones(n, LD)]) if intercept else X
    scale = np.abs(A).max(axis=0)
    scale[scale == 0] = 1
    A = A / scale
    ridge = LD(penalty) / scale**2
    if intercept:
        ridge[-1] = 0
    if penalty == 0:
        kept = independent_columns(A)
        A, ridge = A[:, kept], ridge[kept]
    d = A.shape[1]
    # Free parameters: one row for two classes, K rows otherwise; the first row only where the penalty wants it.
    rows = 1 if n_classes == 2 else n_classes
    free = np.ones((rows, d), bool)
    if rows > 1:
        free[0] = ridge > 0
    flat = free.ravel()
    params = np.zeros((rows, d), LD)

    def evaluate(params):
        Z = A @ params.T
        losses, R = losses_of(np.column_stack([np.zeros(n, LD), Z]) if rows == 1 else Z, codes)
        return weight @ losses + (ridge * params**2).sum() / 2, R[:, 1:] if rows == 1 else R

    value, R = evaluate(params)
    for _ in range(max_iter):
        g = (weight[:, None] * R).T @ A + ridge * params
        H = np.zeros((rows, d, rows, d), LD)
        for k in range(rows):
            for m in range(rows):
                h = weight * curvature(R, codes, k, m, rows)
                H[k, :, m] = A.T @ (h[:, None] * A) + (k == m) * np.diag(ridge)
        step = np.zeros(rows * d, LD)
        step[flat] = -solve(H.reshape(rows * d, rows * d)[np.ix_(flat, flat)], g.ravel()[flat])
        decrement = -(g.ravel() @ step)
        if not np.isfinite(decrement):
            return value, False
        if decrement <= LD(10) ** -24 * value:
            return value, True
        t, step = LD(1), step.reshape(rows, d)
        while True:
            new_value, new_R = evaluate(params + t * step)
            if new_value <= value - t * decrement / 4 or t < 1e-3:
                break
            t /= 2
        if new_value >= value and decrement <= LD(10) ** -17 * value:
            return value, True  # rounding is all that is left
        params, value, R = params + t * step, new_value, new_R
    return value, False


def curvature(R, codes, k, m, rows):
    """p_k ([k = m] - p_m) from residuals p - [k = y]."""
    own = 1 if rows == 1 else np.arange(rows)
    Y = (codes[:, None] == own).astype(LD).reshape(len(codes), -1)
    P = R + Y
    if k != m:
        return -P[:, k] * P[:, m]
    return P[:, k] * np.where(Y[:, k] > 0, -R[:, k], 1 - P[:, k])
