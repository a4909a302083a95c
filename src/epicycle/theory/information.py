r"""Entropy, divergences and mutual information, in nats by default.

For distributions p and q, :math:`H(p) = -\sum p \log p`, :math:`\mathrm{KL}(p \| q) = \sum p \log (p / q)`, and
:math:`I(X; Y) = \mathrm{KL}(p(x, y) \| p(x) p(y)) = H(X) + H(Y) - H(X, Y)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import rel_entr, xlogy

from epicycle.core._checks import distribution, number
from epicycle.core._exceptions import DataError, ParameterError

__all__ = [
    "MutualInformation",
    "conditional_entropy",
    "cross_entropy",
    "entropy",
    "gaussian_entropy",
    "gaussian_kl",
    "jensen_shannon",
    "kl",
    "mutual_information",
]


def entropy(p: Any, *, base: float = np.e) -> float:
    """The entropy of a distribution, of any shape.

    Examples
    --------
    >>> from epicycle.theory import information
    >>> information.entropy([0.5, 0.25, 0.25], base=2)
    1.5
    """
    values = distribution("p", p)
    return float(-xlogy(values, values).sum() / _unit(base)) + 0.0


def cross_entropy(p: Any, q: Any, *, base: float = np.e) -> float:
    """-sum p log q: the length of a code for q, used for p; infinite where q misses what p has."""
    a, b = _pair(p, q)
    there = a > 0
    if not b[there].all():
        return float("inf")
    return float(-xlogy(a[there], b[there]).sum() / _unit(base)) + 0.0


def conditional_entropy(joint: Any, *, base: float = np.e) -> float:
    """H(Y | X) of a table p(x, y) with a row for each x."""
    table = _table(joint)
    return entropy(table, base=base) - entropy(table.sum(axis=1), base=base)


def kl(p: Any, q: Any, *, direction: str = "inclusive", base: float = np.e) -> float:
    """The Kullback-Leibler divergence between p and an approximation q.

    Parameters
    ----------
    p, q : array-like
        Distributions of the same shape.
    direction : {"inclusive", "exclusive"}, default="inclusive"
        KL(p || q), which is large where q misses what p has, or KL(q || p), which is large where q has what p misses.
    base : float, default=e

    Returns
    -------
    float
        Never negative; infinite where one has what the other misses.

    Examples
    --------
    >>> from epicycle.theory import information
    >>> information.kl([0.5, 0.5, 0.0], [0.25, 0.25, 0.5], base=2)
    1.0
    >>> information.kl([0.5, 0.5, 0.0], [0.25, 0.25, 0.5], direction="exclusive")
    inf
    """
    if direction not in ("inclusive", "exclusive"):
        raise ParameterError(f"direction={direction!r}; expected 'inclusive' or 'exclusive'")
    a, b = _pair(p, q)
    if direction == "exclusive":
        a, b = b, a
    return float(max(rel_entr(a, b).sum(), 0.0) / _unit(base))


def jensen_shannon(p: Any, q: Any, *, base: float = np.e) -> float:
    """The Jensen-Shannon divergence: the mean of KL(p || m) and KL(q || m) for m = (p + q) / 2.

    Symmetric, finite, and at most log 2; its square root is a distance.

    Examples
    --------
    >>> from epicycle.theory import information
    >>> information.jensen_shannon([1, 0], [0, 1], base=2)
    1.0
    """
    a, b = _pair(p, q)
    m = (a + b) / 2
    return (kl(a, m, base=base) + kl(b, m, base=base)) / 2


def gaussian_entropy(covariance: Any, *, base: float = np.e) -> float:
    """The differential entropy of a normal distribution: log det(2 pi e Sigma) / 2."""
    S = _covariance("covariance", covariance)
    L, _ = cho_factor(S, lower=True)
    return float((len(S) * (1 + np.log(2 * np.pi)) / 2 + np.log(np.diag(L)).sum()) / _unit(base))


def gaussian_kl(mean: Any, covariance: Any, mean_q: Any, covariance_q: Any, *, base: float = np.e) -> float:
    """KL between two normal distributions, N(mean, covariance) from N(mean_q, covariance_q)."""
    S, T = _covariance("covariance", covariance), _covariance("covariance_q", covariance_q)
    a, b = (np.atleast_1d(np.asarray(m, dtype=np.float64)) for m in (mean, mean_q))
    if not a.shape == b.shape == (len(S),) or S.shape != T.shape:
        raise DataError(f"mean, covariance: shapes {a.shape}, {S.shape} and {b.shape}, {T.shape} do not go together")
    d = b - a
    factor = cho_factor(T, lower=True)
    L, _ = cho_factor(S, lower=True)
    logs = np.log(np.diag(factor[0])).sum() - np.log(np.diag(L)).sum()
    return float((np.trace(cho_solve(factor, S)) - len(S) + d @ cho_solve(factor, d)) / 2 + logs) / _unit(base)


@dataclass(frozen=True)
class MutualInformation:
    """An estimate from a sample.

    Attributes
    ----------
    value : float
        The estimate, corrected for the bias of the sample's size and not below zero.
    standard_error : float
    plug_in : float
        The mutual information of the frequencies themselves, which is too large by (|X| - 1)(|Y| - 1) / 2n on average.
    n : int
    """

    value: float
    standard_error: float
    plug_in: float
    n: int

    def __str__(self) -> str:
        return f"{self.value:.4f} (standard error {self.standard_error:.4f}) from {self.n} rows"


def mutual_information(x: Any, y: Any, *, base: float = np.e) -> MutualInformation:
    r"""The mutual information of two columns of labels, with its error.

    The frequencies give :math:`\hat I = \sum \hat p(x, y) \log \frac{\hat p(x, y)}{\hat p(x) \hat p(y)}`. Its bias is
    corrected to first order (Miller and Madow), and its standard error is that of the mean of the logarithms, by the
    delta method; where the two are independent they have no spread, and the chi-square distribution of
    :math:`2 n \hat I` gives it.

    Parameters
    ----------
    x, y : array-like of shape (n,)
        Labels. Numbers count as labels too: bin them first.
    base : float, default=e

    Returns
    -------
    MutualInformation

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.theory import information
    >>> x = np.random.default_rng(0).integers(0, 2, 1000)
    >>> information.mutual_information(x, x, base=2).value > 0.99
    True
    """
    a, b = np.asarray(x), np.asarray(y)
    if a.ndim != 1 or a.shape != b.shape or len(a) < 2:
        raise DataError(f"x, y: shapes {a.shape} and {b.shape}; expected two columns of the same length, at least 2")
    values_x, i = np.unique(a, return_inverse=True)
    values_y, j = np.unique(b, return_inverse=True)
    n, shape = len(a), (len(values_x), len(values_y))
    joint = np.bincount(i * shape[1] + j, minlength=shape[0] * shape[1]).reshape(shape) / n
    outer = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    logs = np.log(np.divide(joint, outer, out=np.ones_like(joint), where=joint > 0))
    plug_in = float((joint * logs).sum())
    # The bias of H(X) + H(Y) - H(X, Y) is that of the numbers of cells that occur.
    cells = np.count_nonzero(joint)
    bias = (cells - shape[0] - shape[1] + 1) / (2 * n)
    spread = float((joint * (logs - plug_in) ** 2).sum())
    freedom = (shape[0] - 1) * (shape[1] - 1)
    error = np.sqrt(spread / n + freedom / (2.0 * n * n))
    unit = _unit(base)
    return MutualInformation(float(max(plug_in - bias, 0.0)) / unit, float(error) / unit, plug_in / unit, n)


def _unit(base: float) -> float:
    if number("base", base) <= 1:
        raise ParameterError(f"base={base!r}; expected a number > 1")
    return float(np.log(base))


def _pair(p: Any, q: Any) -> tuple[np.ndarray, np.ndarray]:
    a, b = distribution("p", p), distribution("q", q)
    if a.shape != b.shape:
        raise DataError(f"q: shape {b.shape}; expected that of p, {a.shape}")
    return a, b


def _table(joint: Any) -> np.ndarray:
    table = distribution("joint", joint)
    if table.ndim != 2:
        raise DataError(f"joint: shape {table.shape}; expected a table with a row for each x")
    return table


def _covariance(name: str, covariance: Any) -> np.ndarray:
    S = np.atleast_2d(np.asarray(covariance, dtype=np.float64))
    if S.ndim != 2 or S.shape[0] != S.shape[1] or not np.isfinite(S).all() or not np.allclose(S, S.T):
        raise DataError(f"{name}: expected a symmetric matrix of finite numbers, got shape {S.shape}")
    if np.linalg.eigvalsh(S)[0] <= 0:
        raise DataError(f"{name}: expected a positive definite matrix; its smallest eigenvalue is not positive")
    return S
