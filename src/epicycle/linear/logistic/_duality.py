"""Logistic and softmax regression with an L1 penalty: objective, optimality, dual, gap, screening.

With row weights v_i >= 0 that sum to one, K rows of coefficients (one for two classes) and z_i = b + W x_i,

    minimise  P(W, b) = sum_i v_i loss(z_i, y_i) + l1 sum |W_kj| + l2/2 sum W_kj^2.

Optimality: with residuals R_ki = [y_i = k] - p_ik and correlations c_kj = sum_i v_i x_ij R_ki,

    |c_kj| <= l1  where W_kj = 0,     c_kj = l1 sign(W_kj) + l2 W_kj  elsewhere,     sum_i v_i R_ki = 0  (from b).

The conjugate of log sum exp is the negative entropy, so the dual problem is over distributions pi_i of the classes,

    maximise  D(pi) = sum_i v_i entropy(pi_i) - sum (|c_kj| - l1)_+^2 / (2 l2),     c from R_ki = [y_i = k] - pi_ik,
    subject to |c_kj| <= l1 where l2 = 0, and to sum_i v_i R_ki = 0 where b is free.

Any point is made feasible by taking back part of every residual: pi_i = (1 - k_i) [y_i] + k_i p_i with 0 <= k_i <= 1.
  * For b the k_i are one number a_y for each class. M_yk = sum_{i in y} v_i R_ki has rows that add up to zero, with
    negative entries off the diagonal: minus M is the generator of a Markov chain, and a'M = 0 is solved by its
    stationary distribution, scaled to a largest a_y of one. For two classes: the side that adds up to more is lowered.
  * For the columns all k_i are scaled by a common factor s.
With q_i the probability of all classes but its own, Fenchel and Young give the gap as a sum without cancellation,

    P - D = sum_i v_i KL(k_i q_i | q_i) + sum [l1 |W_kj| + l2/2 W_kj^2 - W_kj c_kj + (|c_kj| - l1)_+^2 / (2 l2)],

where KL(a | b) = a log(a / b) + (1 - a) log((1 - a) / (1 - b)).

In each pi_k separately D is strongly concave with constant 4 (1 / (pi (1 - pi)) >= 4), so the optimal residuals are
within sqrt(gap / 2) of any feasible ones, in the norm with weights v, and |c_kj| + |x_j| sqrt(gap / 2) < l1 proves
W_kj = 0 at the optimum (|x_j| about any number where b is free, because the residuals add up to zero).
"""

from __future__ import annotations

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ParameterError


def stationary(M: np.ndarray) -> np.ndarray | None:
    """a > 0 with a'M = 0 and largest entry one, for M with rows that sum to zero; None where rounding hides it."""
    K = len(M)
    off = -(M - np.diag(np.diagonal(M)))
    if not (off >= 0).all() or not np.isfinite(M).all():
        return None
    # Elimination of states one by one (Grassmann, Taksar and Heyman 1985): it never subtracts, so that every entry
    # of the distribution is found to full relative precision.
    Q = off.copy()
    for k in range(K - 1, 0, -1):
        out = Q[k, :k].sum()
        if not out > 0:
            return None
        Q[:k, k] /= out
        Q[:k, :k] += np.outer(Q[:k, k], Q[k, :k])
    a = np.ones(K)
    for k in range(1, K):
        a[k] = a[:k] @ Q[:k, k]
    a /= a.max()
    return a if np.isfinite(a).all() and (a > 0).all() else None


def dual_scales(W: np.ndarray, c: np.ndarray, slack: np.ndarray | float, l1: float, l2: float) -> tuple[float, ...]:
    """Factors s that make s R feasible, given correlations c of R known up to `slack`.

    Without l2 the largest of them; with l2 all are feasible, and one is the best unless the penalty of D is large: then
    it is the one that takes the ridge term for further rows of X.
    """
    bound = np.abs(c) + slack
    if l2 == 0:
        most = float(bound.max(initial=0.0))
        return (min(1.0, l1 / most) if most > 0 else 1.0,)
    most = float((np.abs(c - l2 * W) + slack).max(initial=0.0))
    return (1.0, min(1.0, l1 / most) if most > 0 else 1.0)


def column_gap(W: np.ndarray, c: np.ndarray, slack: np.ndarray | float, l1: float, l2: float, s: float) -> float:
    """The columns' part of the gap at residuals s R."""
    terms = l1 * np.abs(W) + l2 / 2 * W * W - s * W * c
    if l2 > 0:
        terms = terms + np.maximum(s * (np.abs(c) + slack) - l1, 0.0) ** 2 / (2 * l2)
    return max(float(terms.sum()), 0.0)


def gap_certificate(gap: float, objective: float, tol: float) -> Certificate:
    """The duality gap relative to the objective."""
    relative = gap / max(abs(objective), float(np.finfo(float).tiny))
    return Certificate(
        "duality gap", relative, tol, f"the objective is at most {relative:.1e} of its value above its minimum"
    )


def penalties(C: float, l1_ratio: float | None, penalty: str | None = "auto") -> tuple[float, float]:
    """(l1, l2) of the objective: (l1_ratio |W|_1 + (1 - l1_ratio)/2 |W|^2) / C; a named penalty outranks `l1_ratio`."""
    if penalty == "elasticnet" and l1_ratio is None:
        raise ParameterError("l1_ratio=None; penalty='elasticnet' needs an l1_ratio between 0 and 1")
    share = {"l1": 1.0, "l2": 0.0}.get(penalty or "", float(l1_ratio or 0.0))
    if penalty is None or np.isinf(C):
        return 0.0, 0.0
    return share / C, (1 - share) / C


def contradiction(C: float, l1_ratio: float | None, penalty: str | None) -> str:
    """The notice of arguments that a named penalty leaves without effect; empty where there are none."""
    share = {"l1": 1.0, "l2": 0.0}.get(penalty or "")
    if share is not None and l1_ratio not in (None, 0.0, share):
        return (
            f"Inconsistent values: penalty={penalty} with l1_ratio={l1_ratio}. l1_ratio parameter is only used when "
            f"penalty is 'elasticnet'. Got (penalty={penalty})"
        )
    if penalty is None and (C not in (1.0, np.inf) or l1_ratio):
        return "Setting penalty=None will ignore the C and l1_ratio parameters"
    return ""


def penalty_in_words(C: float, l1_ratio: float | None, penalty: str | None = "auto") -> str:
    """One line that names the penalty and its strength."""
    l1, l2 = penalties(C, l1_ratio, penalty)
    if l1 == l2 == 0:
        return "no penalty"
    if l1 == 0:
        return f"L2 penalty ||W||^2 / (2 C), C={C:g}"
    if l2 == 0:
        return f"L1 penalty ||W||_1 / C, C={C:g}"
    l1_ratio = l1_ratio or 0.0
    return f"elastic net penalty ({l1_ratio:g} ||W||_1 + {(1 - l1_ratio) / 2:g} ||W||^2) / C, C={C:g}"
