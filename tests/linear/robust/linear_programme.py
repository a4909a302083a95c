"""Quantile regression by other means: HiGHS, and trying every vertex in exact arithmetic."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog


def objective(X, y, s, tau, alpha, w, b):
    r = y - X @ w - b
    return s @ np.maximum(tau * r, (tau - 1) * r) / s.sum() + alpha * np.abs(w).sum()


def highs(X, y, s, tau, alpha, intercept):
    """(objective at the solution of HiGHS, w, b), columns scaled first; its own value may cheat by its tolerance."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)
    n, p = X.shape
    length = np.abs(X).max(axis=0)
    length[length == 0] = 1.0
    A = np.hstack([X / length, np.ones((n, int(intercept)))])
    d = A.shape[1]
    penalty = np.append(alpha * s.sum() / length, np.zeros(d - p))
    cost = np.concatenate([penalty, penalty, tau * s, (1 - tau) * s])
    result = linprog(cost, A_eq=np.hstack([A, -A, np.eye(n), -np.eye(n)]), b_eq=y, method="highs")
    assert result.status == 0
    beta = result.x[:d] - result.x[d : 2 * d]
    w, b = beta[:p] / length, beta[p] if intercept else 0.0
    return objective(X, y, s, tau, alpha, w, b), w, b


def every_vertex(X, y, s, tau):
    """The least sum of losses over all hyperplanes through d rows, d = 1 + columns, as a fraction."""
    rows = [[Fraction(v) for v in row] + [Fraction(1)] for row in X.tolist()]
    targets, weights, t = [Fraction(v) for v in y.tolist()], [Fraction(v) for v in s.tolist()], Fraction(tau)
    best = None
    for chosen in combinations(range(len(rows)), len(rows[0])):
        beta = solve([rows[i] for i in chosen], [targets[i] for i in chosen])
        if beta is None:
            continue
        total = Fraction(0)
        for row, target, weight in zip(rows, targets, weights, strict=True):
            r = target - sum(a * v for a, v in zip(row, beta, strict=True))
            total += weight * (t * r if r > 0 else (t - 1) * r)
        best = total if best is None else min(best, total)
    return best


def solve(A, b):
    """Gauss-Jordan on fractions; None where A is singular."""
    A = [[*row, v] for row, v in zip(A, b, strict=True)]
    for k in range(len(A)):
        pivot = next((i for i in range(k, len(A)) if A[i][k] != 0), None)
        if pivot is None:
            return None
        A[k], A[pivot] = A[pivot], A[k]
        A[k] = [v / A[k][k] for v in A[k]]
        for i in range(len(A)):
            if i != k and A[i][k] != 0:
                A[i] = [v - A[i][k] * u for v, u in zip(A[i], A[k], strict=True)]
    return [row[-1] for row in A]
