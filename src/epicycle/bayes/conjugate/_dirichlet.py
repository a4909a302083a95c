r"""Dirichlet priors of probabilities p of K categories:  p(p) = prod_k p_k^(alpha_k - 1) / B(alpha).

After counts N_k the parameters are alpha_k + N_k; log B(alpha) = sum log Gamma(alpha_k) - log Gamma(sum alpha_k).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln, xlogy

from epicycle.bayes.conjugate._base import ConjugateModel
from epicycle.bayes.conjugate._data import as_table, as_values, as_weights, require_counts, require_rows
from epicycle.bayes.conjugate._predictive import Categorical, DirichletMultinomialCounts
from epicycle.core._checks import count
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._random import Seed, stream
from epicycle.stats._distribution import Distribution, IntervalKind, beta


class _Counts(NamedTuple):
    counts: np.ndarray
    #: Sum of the logarithms of the multinomial coefficients.
    log_coefficients: float


@dataclass(frozen=True, eq=False)
class _DirichletModel(ConjugateModel):
    """Probabilities with a Dirichlet prior."""

    alpha: Any

    _parameter = "probability"

    def __post_init__(self) -> None:
        try:
            alpha = np.array(self.alpha, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError(f"alpha={self.alpha!r:.80}; expected an array of numbers") from None
        if alpha.ndim != 1 or len(alpha) < 2:
            raise ParameterError(f"alpha: shape {alpha.shape}; expected a number for each of two categories or more")
        if not (np.isfinite(alpha).all() and (alpha > 0).all()):
            wrong = alpha[~(np.isfinite(alpha) & (alpha > 0))][0]
            raise ParameterError(f"alpha: holds {wrong:g}; expected numbers above 0: the prior would be improper")
        alpha.flags.writeable = False
        object.__setattr__(self, "alpha", alpha)

    def marginals(self) -> dict[str, Distribution]:
        total = self.alpha.sum()
        return {f"category {k}": beta(float(a), float(total - a)) for k, a in enumerate(self.alpha)}

    def logpdf(self, probabilities: Any) -> Any:
        """Logarithm of the density at probabilities, along the last axis; -inf off the simplex."""
        p = np.asarray(probabilities, dtype=np.float64)
        if p.shape[-1:] != self.alpha.shape:
            raise DataError(f"probabilities: shape {p.shape}; expected {len(self.alpha)} along the last axis")
        inside = (p >= 0).all(axis=-1) & (np.abs(p.sum(axis=-1) - 1) <= 1e-9)
        logs = xlogy(self.alpha - 1, np.where(inside[..., None], p, 1.0)).sum(axis=-1)
        return np.where(inside, logs - log_beta(self.alpha), -np.inf)[()]

    def pdf(self, probabilities: Any) -> Any:
        """Density at probabilities, along the last axis."""
        return np.exp(self.logpdf(probabilities))

    def mode(self) -> np.ndarray:
        """The probabilities of largest density; refused where it is flat or unbounded."""
        above = self.alpha - 1
        if (above < 0).any() or not above.any():
            shape = "unbounded where a probability is 0" if above.any() else "flat"
            raise ParameterError(f"mode: the density with alpha={self.alpha} is {shape}; it has no mode")
        return np.asarray(above / above.sum())

    def mean(self) -> np.ndarray:
        return np.asarray(self.alpha / self.alpha.sum())

    def variance(self) -> np.ndarray:
        p = self.mean()
        return np.asarray(p * (1 - p) / (self.alpha.sum() + 1))

    def interval(self, level: float = 0.95, kind: IntervalKind = "equal-tailed") -> np.ndarray:
        return np.array([d.interval(level, kind) for d in self.marginals().values()])

    def sample(self, n: int = 1, random_state: Seed = None) -> np.ndarray:
        return stream(random_state, "sample").dirichlet(self.alpha, count("n", n))

    def _updated(self, statistics: _Counts) -> Self:
        return replace(self, alpha=self.alpha + statistics.counts)

    def _maximum_likelihood(self, statistics: _Counts) -> np.ndarray:
        total = float(statistics.counts.sum())
        require_rows(total, type(self).__name__)
        return np.asarray(statistics.counts / total)

    def _log_evidence(self, statistics: _Counts) -> float:
        return log_beta(self.alpha + statistics.counts) - log_beta(self.alpha) + statistics.log_coefficients


@dataclass(frozen=True, eq=False)
class DirichletCategorical(_DirichletModel):
    r"""Categories, with a Dirichlet prior of their probabilities.

    .. math:: x_i \sim \mathrm{Categorical}(p), \quad p \sim \mathrm{Dirichlet}(\alpha), \quad
              p \mid x \sim \mathrm{Dirichlet}(\alpha + N), \quad N_k = \#\{i : x_i = k\} .

    Observations are the numbers 0, ..., K - 1 of categories.

    Parameters
    ----------
    alpha : array-like of shape (K,)
        Observations of each category that the prior is worth.

    Examples
    --------
    >>> from epicycle.bayes.conjugate import DirichletCategorical
    >>> posterior = DirichletCategorical([1, 1, 1]).update([0, 2, 2, 2])
    >>> posterior
    DirichletCategorical(alpha=array([2., 1., 4.]))
    >>> print(posterior.predictive().probabilities.round(3))
    [0.286 0.143 0.571]
    """

    def predictive(self) -> Categorical:
        """The distribution of the next observation."""
        return Categorical(self.mean())

    def _statistics(self, data: Any, sample_weight: Any) -> _Counts:
        x, K = as_values(data, "one category for each row"), len(self.alpha)
        wrong = (x < 0) | (x >= K) | (x != np.floor(x))
        if wrong.any():
            raise DataError(f"data: holds {x[wrong][0]:g}; expected categories 0 to {K - 1}")
        v = as_weights(sample_weight, len(x))
        return _Counts(np.bincount(x.astype(np.intp), v, K), 0.0)


@dataclass(frozen=True, eq=False)
class DirichletMultinomial(_DirichletModel):
    r"""Rows of counts of categories, with a Dirichlet prior of their probabilities.

    .. math:: x_i \sim \mathrm{Multinomial}(n_i, p), \quad p \sim \mathrm{Dirichlet}(\alpha), \quad
              p \mid x \sim \mathrm{Dirichlet}\Bigl(\alpha + \sum_i x_i\Bigr) .

    Observations are rows of K counts, dense or sparse.

    Parameters
    ----------
    alpha : array-like of shape (K,)
        Observations of each category that the prior is worth.

    Examples
    --------
    >>> from epicycle.bayes.conjugate import DirichletMultinomial
    >>> posterior = DirichletMultinomial([1, 1, 1]).update([[3, 0, 1], [5, 1, 0]])
    >>> posterior
    DirichletMultinomial(alpha=array([9., 2., 2.]))
    >>> print(posterior.predictive(trials=13).mean())
    [9. 2. 2.]
    """

    def predictive(self, trials: int = 1) -> DirichletMultinomialCounts:
        """The distribution of the next row of counts, of `trials` in all."""
        return DirichletMultinomialCounts(count("trials", trials, low=1), self.alpha)

    def _statistics(self, data: Any, sample_weight: Any) -> _Counts:
        table, K = as_table(data), len(self.alpha)
        if np.size(data) == 0 and not sp.issparse(data):
            table = np.empty((0, K))
        if table.shape[1] != K:
            raise DataError(f"data: {table.shape[1]} columns; expected counts of {K} categories")
        require_counts(table if isinstance(table, np.ndarray) else np.asarray(table.data))
        v = as_weights(sample_weight, table.shape[0])
        logs: Any
        if isinstance(table, np.ndarray):
            logs = gammaln(table + 1).sum(axis=1)
        else:  # log 0! is 0
            logs = sp.csr_array((gammaln(table.data + 1), table.indices, table.indptr), table.shape).sum(axis=1)
        coefficients = gammaln(np.asarray(table.sum(axis=1)) + 1) - np.asarray(logs)
        return _Counts(np.asarray(table.T @ v), float(v @ coefficients))


def log_beta(alpha: np.ndarray) -> float:
    """log B(alpha)."""
    return float(gammaln(alpha).sum() - gammaln(alpha.sum()))
