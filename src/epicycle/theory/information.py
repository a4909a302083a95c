r"""Entropy, divergences and mutual information, in nats by default.

For distributions p and q, :math:`H(p) = -\sum p \log p`, :math:`\mathrm{KL}(p \| q) = \sum p \log (p / q)`, and
:math:`I(X; Y) = \mathrm{KL}(p(x, y) \| p(x) p(y)) = H(X) + H(Y) - H(X, Y)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial import cKDTree
from scipy.special import digamma, ndtri, rel_entr, xlogy
from scipy.stats import rankdata

from epicycle.core._checks import distribution, number
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import Integer, check_parameter
from epicycle.core.estimator._catalogue import in_catalogue

Estimate = Callable[[np.ndarray, np.ndarray, int], np.ndarray]

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


@in_catalogue("theory", "B8", certificate="exact")
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


@in_catalogue("theory", "B8", certificate="exact")
def cross_entropy(p: Any, q: Any, *, base: float = np.e) -> float:
    """-sum p log q: the length of a code for q, used for p; infinite where q misses what p has."""
    a, b = _pair(p, q)
    there = a > 0
    if not b[there].all():
        return float("inf")
    return float(-xlogy(a[there], b[there]).sum() / _unit(base)) + 0.0


@in_catalogue("theory", "B8", certificate="exact")
def conditional_entropy(joint: Any, *, base: float = np.e) -> float:
    """H(Y | X) of a table p(x, y) with a row for each x."""
    table = _table(joint)
    return entropy(table, base=base) - entropy(table.sum(axis=1), base=base)


@in_catalogue("theory", "B8", certificate="exact")
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


@in_catalogue("theory", "B8", certificate="exact")
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


@in_catalogue("theory", "B8", certificate="exact")
def gaussian_entropy(covariance: Any, *, base: float = np.e) -> float:
    """The differential entropy of a normal distribution: log det(2 pi e Sigma) / 2."""
    S = _covariance("covariance", covariance)
    L, _ = cho_factor(S, lower=True)
    return float((len(S) * (1 + np.log(2 * np.pi)) / 2 + np.log(np.diag(L)).sum()) / _unit(base))


@in_catalogue("theory", "B8", certificate="exact")
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
        Of labels, the mutual information of the frequencies themselves, which is too large by
        (|X| - 1)(|Y| - 1) / 2n on average; of numbers, the estimate before it is cut off at zero.
    n : int
    estimator : {"frequencies", "nearest neighbours"}
    """

    value: float
    standard_error: float
    plug_in: float
    n: int
    estimator: str = "frequencies"

    def __str__(self) -> str:
        return f"{self.value:.4f} (standard error {self.standard_error:.4f}) from {self.n} rows"


@in_catalogue("theory", "B8", certificate="standard errors")
def mutual_information(
    x: Any, y: Any, *, base: float = np.e, labels: Any = "auto", n_neighbors: int = 3
) -> MutualInformation:
    r"""The mutual information of two columns, of labels or of continuous numbers, with its error.

    Of two columns of labels the frequencies give
    :math:`\hat I = \sum \hat p(x, y) \log \frac{\hat p(x, y)}{\hat p(x) \hat p(y)}`. Its bias is
    corrected to first order (Miller and Madow), and its standard error is that of the mean of the logarithms, by the
    delta method; where the two are independent they have no spread, and the chi-square distribution of
    :math:`2 n \hat I` gives it.

    With numbers, distances to nearest neighbours take the place of frequencies: for two columns of numbers
    :math:`\hat I = \psi(k) + \psi(n) - \langle \psi(n_x + 1) + \psi(n_y + 1) \rangle`, where :math:`n_x` and
    :math:`n_y` rows are nearer in one column than the k-th neighbour is in both (Kraskov et al. 2004); for numbers
    against labels the neighbours are those of the same label (Ross 2014). Rows that coincide exactly count as a label
    of their own (Gao et al. 2017). Since the mutual information does not change when a column is transformed
    monotonely, columns are replaced by their normal scores first. The standard error comes from the spread of the
    estimates on parts of the rows (Holmes and Nemenman 2019).

    Parameters
    ----------
    x, y : array-like of shape (n,)
        Labels or numbers.
    base : float, default=e
    labels : "auto" or pair of bool, default="auto"
        Whether x and y are labels. "auto" takes floating-point columns with a fractional value for numbers, and
        everything else (integers, strings, booleans) for labels.
    n_neighbors : int, default=3
        Of numbers: more neighbours have less variance and more bias. It has to be below the number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.theory import information
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 2, 1000)
    >>> information.mutual_information(x, x, base=2).value > 0.99
    True
    >>> a, b = rng.normal(size=(2, 1000))
    >>> found = information.mutual_information(a, b)  # independent
    >>> found.value < 3 * found.standard_error
    True
    """
    a, b = np.asarray(x), np.asarray(y)
    if a.ndim != 1 or a.shape != b.shape or len(a) < 2:
        raise DataError(f"x, y: shapes {a.shape} and {b.shape}; expected two columns of the same length, at least 2")
    x_labels, y_labels = _are_labels(labels, a, b)
    unit = _unit(base)
    if x_labels and y_labels:
        value, error, plug_in = _from_frequencies(a, b)
        return MutualInformation(value / unit, error / unit, plug_in / unit, len(a))
    check_parameter("mutual_information", "n_neighbors", n_neighbors, Integer(1, len(a) - 1))
    if x_labels or y_labels:
        groups = np.unique(a if x_labels else b, return_inverse=True)[1]
        if np.bincount(groups).max() < 2:
            name = "x" if x_labels else "y"
            raise DataError(f"{name}: no label occurs twice; if these are numbers, say labels=(False, False)")
        columns = (_normal_scores("y", b) if x_labels else _normal_scores("x", a), groups)
        estimate: Estimate = _terms_with_labels
    else:
        columns, estimate = (_normal_scores("x", a), _normal_scores("y", b)), _terms_of_numbers
    terms = estimate(*columns, n_neighbors)
    mean, error = float(terms.mean()) / unit, _error_from_parts(columns, estimate, n_neighbors, terms) / unit
    return MutualInformation(max(mean, 0.0), error, mean, len(a), "nearest neighbours")


def _error_from_parts(columns: tuple[np.ndarray, np.ndarray], estimate: Estimate, k: int, terms: np.ndarray) -> float:
    """The standard error from the spread of estimates on disjoint parts, whose variance falls like 1 / rows.

    The terms of one estimate share their neighbours, so that their own spread is too small (Holmes and Nemenman 2019).
    The rows are dealt out to 2, 3, ..., 10 parts in an order that does not depend on anything but their number.
    """
    n = len(columns[0])
    squares, freedom = 0.0, 0
    for parts in range(2, min(10, n // (4 * k + 4)) + 1):
        pieces = np.array_split(np.random.default_rng(parts).permutation(n), parts)
        found = [estimate(columns[0][rows], columns[1][rows], k) for rows in pieces]
        means = np.array([t.mean() for t in found if len(t)])
        if len(means) > 1:
            squares += float(((means - means.mean()) ** 2).sum()) / parts
            freedom += len(means) - 1
    if freedom == 0:  # too few rows to be divided
        return float(terms.std(ddof=min(1, len(terms) - 1)) / np.sqrt(len(terms)))
    return float(np.sqrt(squares / freedom))


def _are_labels(labels: Any, a: np.ndarray, b: np.ndarray) -> tuple[bool, bool]:
    if isinstance(labels, str) and labels == "auto":
        x_labels, y_labels = (c.dtype.kind not in "fc" or bool((c[np.isfinite(c)] % 1 == 0).all()) for c in (a, b))
        return x_labels, y_labels
    if isinstance(labels, str) or np.shape(labels) != (2,) or not all(isinstance(v, bool | np.bool_) for v in labels):
        raise ParameterError(f"labels={labels!r}; expected 'auto' or a pair of True and False, for x and for y")
    return bool(labels[0]), bool(labels[1])


def _from_frequencies(a: np.ndarray, b: np.ndarray) -> tuple[float, float, float]:
    """The estimate, its standard error and the plug-in value from the table of frequencies, in nats."""
    values_x, i = np.unique(a, return_inverse=True)
    values_y, j = np.unique(b, return_inverse=True)
    n, shape = len(a), (len(values_x), len(values_y))
    # Only cells that occur are held: two columns of many labels have a table that is larger than memory.
    cell, counts = np.unique(i.astype(np.int64) * shape[1] + j, return_counts=True)
    joint = counts / n
    p_x, p_y = np.bincount(i) / n, np.bincount(j) / n
    logs = np.log(joint / (p_x[cell // shape[1]] * p_y[cell % shape[1]]))
    plug_in = float((joint * logs).sum())
    # The bias of H(X) + H(Y) - H(X, Y) is that of the numbers of cells that occur.
    bias = (len(cell) - shape[0] - shape[1] + 1) / (2 * n)
    spread = float((joint * (logs - plug_in) ** 2).sum())
    freedom = (shape[0] - 1) * (shape[1] - 1)
    return max(plug_in - bias, 0.0), float(np.sqrt(spread / n + freedom / (2.0 * n * n))), plug_in


def _normal_scores(name: str, column: np.ndarray) -> np.ndarray:
    """The normal quantiles of the ranks; ties stay ties."""
    try:
        values = column.astype(np.float64)
    except (TypeError, ValueError) as e:
        raise DataError(f"{name}: expected numbers where labels says so, got {column.dtype}") from e
    if np.isnan(values).any():
        raise DataError(f"{name}: contains nan; leave out the rows without a value")
    return np.asarray(ndtri(rankdata(values) / (len(values) + 1)))


def _terms_of_numbers(a: np.ndarray, b: np.ndarray, k: int) -> np.ndarray:
    """For each row, psi(k) + psi(n) - psi(n_x + 1) - psi(n_y + 1); Kraskov et al. (2004), their first estimator."""
    points = np.column_stack([a, b])
    radius = cKDTree(points).query(points, k=k + 1, p=np.inf)[0][:, k]
    same = radius == 0
    _, group, repeats = np.unique(points, axis=0, return_inverse=True, return_counts=True)
    near = np.where(same, repeats[group.reshape(-1)], k)
    return np.asarray(digamma(near) + digamma(len(a)) - digamma(_within(a, radius)) - digamma(_within(b, radius)))


def _terms_with_labels(a: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """For each row with a label that occurs again, psi(k) + psi(n) - psi(n_label) - psi(m); Ross (2014)."""
    _, group, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    radius, near = np.zeros(len(a)), np.ones(len(a))
    for g in np.flatnonzero(sizes > 1):
        rows = np.flatnonzero(group == g)
        own = min(k, len(rows) - 1)
        values = a[rows]
        radius[rows] = cKDTree(values[:, None]).query(values[:, None], k=own + 1)[0][:, own]
        near[rows] = np.where(radius[rows] == 0, _within(values, np.zeros(len(rows))), own)
    # A label that occurs once has no neighbours: nothing is known of its rows.
    kept = sizes[group] > 1
    m = _within(a[kept], radius[kept])
    return np.asarray(digamma(near[kept]) + digamma(kept.sum()) - digamma(sizes[group[kept]]) - digamma(m))


def _within(column: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """Number of rows, itself included, nearer than `radius` in one column; those at the same place where it is 0."""
    ordered = np.sort(column)
    inside = radius * (1 - 1e-9)  # the neighbour at exactly this distance is not nearer, whatever the rounding
    high = np.searchsorted(ordered, column + inside, side="right")
    return np.asarray(high - np.searchsorted(ordered, column - inside, side="left"))


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
