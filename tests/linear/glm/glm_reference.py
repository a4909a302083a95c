"""Minima of penalised deviances in extended precision, by plain code that shares nothing with the library.

F(w, b) = sum_i v_i l(eta_i, y_i) / V + l1 |w|_1 + l2 / 2 |w|^2 with l half the unit deviance, by Newton's method in
numpy.longdouble; with an L1 term for every pattern of signs until one satisfies the conditions of optimality.
"""

import itertools

import numpy as np

LD = np.longdouble


def xlogx(y):
    return np.where(y > 0, y * np.log(np.where(y > 0, y, 1)), 0)


def losses(kind, eta, y):
    """(half the unit deviance, first, second derivative) for every row; nan outside the domain."""
    name, *parameter = kind
    if name == "gaussian":
        return (eta - y) ** 2 / 2, eta - y, np.ones_like(eta)
    if name == "binomial":
        t = np.exp(-np.abs(eta))
        p = np.where(eta >= 0, 1 / (1 + t), t / (1 + t))
        return np.log1p(t) + np.maximum(eta, 0) - y * eta + xlogx(y) + xlogx(1 - y), p - y, t / (1 + t) ** 2
    if name == "poisson":
        mu = np.exp(eta)
        return mu - y * eta + xlogx(y) - y, mu - y, mu
    if name == "gamma":
        t = y * np.exp(-eta)
        return t + eta - 1 - np.log(y), 1 - t, t
    if name == "tweedie":
        p = LD(parameter[0])
        down, up = y * np.exp((1 - p) * eta), np.exp((2 - p) * eta)
        constant = y ** (2 - p) / ((p - 1) * (2 - p))
        return down / (p - 1) + up / (2 - p) - constant, up - down, (p - 1) * down + (2 - p) * up
    if name == "negative_binomial":
        a = LD(parameter[0])
        mu = np.exp(eta)
        size = y + 1 / a
        q = 1 + a * mu
        value = size * np.log(q) - y * eta + xlogx(y) - size * np.log(1 + a * y)
        return value, (mu - y) / q, size * a * mu / q**2
    if name == "gamma-inverse":
        eta = np.where(eta > 0, eta, np.nan)
        return y * eta - np.log(eta) - 1 - np.log(y), y - 1 / eta, 1 / eta**2
    if name == "poisson-sqrt":
        eta = np.where(eta > 0, eta, np.nan)
        return eta**2 - 2 * y * np.log(eta) + xlogx(y) - y, 2 * eta - 2 * y / eta, 2 + 2 * y / eta**2
    if name == "cloglog":
        m = np.exp(eta)
        one = -np.log(-np.expm1(-m))
        first = -m / np.expm1(m)
        second = m * (np.exp(m) * (m - 1) + 1) / np.expm1(m) ** 2
        return y * one + (1 - y) * m + xlogx(y) + xlogx(1 - y), y * first + (1 - y) * m, y * second + (1 - y) * m
    raise AssertionError(name)


def objective(kind, X, y, weight, l1, l2, coef, intercept, offset=None):
    """F in extended precision."""
    X, y, w = np.asarray(X, LD), np.asarray(y, LD), np.asarray(coef, LD)
    v = np.ones(len(y), LD) if weight is None else np.asarray(weight, LD)
    eta = X @ w + LD(intercept) + (0 if offset is None else np.asarray(offset, LD))
    used = v > 0
    value = losses(kind, eta[used], y[used])[0]
    l1, l2 = (np.asarray(a, LD) for a in (l1, l2))
    return (v[used] @ value) / v.sum() + (l1 * np.abs(w)).sum() + (l2 * w * w).sum() / 2


def solve(A, b):
    """A^-1 b by elimination with pivoting, zero along columns that depend on others."""
    A, b = np.array(A, LD), np.array(b, LD)
    n = len(A)
    scale = 1 / np.sqrt(np.where(np.diag(A) > 0, np.diag(A), 1))
    A, b = A * scale * scale[:, None], b * scale
    dead = np.zeros(n, bool)
    for i in range(n):
        if A[i, i] <= LD(10) ** -16:
            dead[i] = True
            A[i], A[:, i], b[i], A[i, i] = 0, 0, 0, 1
            continue
        for r in range(i + 1, n):
            f = A[r, i] / A[i, i]
            A[r, i:] -= f * A[i, i:]
            b[r] -= f * b[i]
    x = np.zeros(n, LD)
    for i in reversed(range(n)):
        x[i] = 0 if dead[i] else (b[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x * scale


@np.errstate(all="ignore")
def newton(kind, A, y, v, ridge, linear, start, offset, max_iter=400):
    """Minimise sum v l(Ax) + ridge/2 x^2 + linear'x. Returns (x, value, whether the decrement vanished)."""
    x = np.array(start, LD)

    def evaluate(x):
        value, r, h = losses(kind, A @ x + offset, y)
        return v @ value + (ridge * x * x).sum() / 2 + linear @ x, r, h

    value, r, h = evaluate(x)
    for _ in range(max_iter):
        g = A.T @ (v * r) + ridge * x + linear
        H = A.T @ ((v * h)[:, None] * A) + np.diag(ridge)
        step = -solve(H, g)
        decrement = -(g @ step)
        if not np.isfinite(decrement):
            return x, value, False
        if decrement <= LD(10) ** -22 * max(abs(value), LD(10) ** -6):
            return x, value, True
        t = LD(1)
        while True:
            new = evaluate(x + t * step)
            if new[0] <= value - t * decrement / 4 or t < LD(10) ** -8:
                break
            t /= 2
        if not new[0] < value:
            return x, value, decrement <= LD(10) ** -16 * max(abs(value), LD(10) ** -6)
        x, (value, r, h) = x + t * step, new
    return x, value, False


def minimum(kind, X, y, weight, l1, l2, intercept, guess, offset=None):
    """(minimum of F, whether it is certain), from coefficients nearby."""
    X, y = np.asarray(X, LD), np.asarray(y, LD)
    v = np.ones(len(y), LD) if weight is None else np.asarray(weight, LD)
    o = np.zeros(len(y), LD) if offset is None else np.asarray(offset, LD)
    used = v > 0
    X, y, o, v = X[used], y[used], o[used], v[used] / v.sum()
    p = X.shape[1]
    A = np.column_stack([X, np.ones(len(y), LD)]) if intercept else X
    l1, l2 = (np.broadcast_to(np.asarray(a, LD), (p,)) for a in (l1, l2))
    ridge = np.append(l2, [0] * intercept)
    start = np.asarray(guess, LD)
    if not l1.any():
        x, value, sure = newton(kind, A, y, v, ridge, np.zeros(len(ridge), LD), start, o)
        return value, sure
    patterns = [tuple(np.sign(start[:p]).astype(int)), *itertools.product((-1, 0, 1), repeat=p)]
    for signs in patterns:
        signs = np.where(l1 > 0, signs, 0)
        on = np.concatenate([(signs != 0) | (l1 == 0), np.ones(int(intercept), bool)])
        linear = np.append(l1 * signs, [0] * intercept)[on]
        begin = np.where(on, start, 0)[on]
        if not on.any():
            x, value, sure = np.zeros(0, LD), v @ losses(kind, o, y)[0], True
        else:
            x, value, sure = newton(kind, A[:, on], y, v, ridge[on], linear, begin, o)
        full = np.zeros(len(ridge), LD)
        full[on] = x
        if not sure or (full[:p] * signs < 0).any():
            continue
        g = A.T @ (v * losses(kind, A @ full + o, y)[1])
        off = (signs == 0) & (l1 > 0)
        if (np.abs(g[:p][off]) <= l1[off] * (1 + 1e-12)).all():
            return value, True
    return LD(0), False
