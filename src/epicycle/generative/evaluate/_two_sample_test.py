r"""A test of whether two samples have one distribution: can a classifier tell them apart?

Half of the rows train a score s(x), greater for rows that look drawn. The others are put in pairs of a real row x and a
drawn row y. If both have one distribution, then s(y) > s(x) with probability 1/2 in every pair, whatever s is (ties are
decided by a coin), independently of all others: the number of pairs that are told right is binomial, exactly. Their
share estimates the area under the ROC curve of s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom
from sklearn.base import clone

from epicycle.core._exceptions import DataError, ParameterTypeError
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.generative.evaluate._features import FEATURE_DOCS, feature_pair, standardised
from epicycle.generative.evaluate._precision_recall import EUCLIDEAN
from epicycle.spatial._search import nearest
from epicycle.stats._binomial import smallest_rate

_LEAST_ROWS = 20
_LEVEL = 0.05


@dataclass(frozen=True)
class TwoSampleTest:
    """Result of :func:`two_sample_test`.

    Attributes
    ----------
    accuracy : float
        Share of the pairs, of a real and a drawn row, in which the drawn one was told; 1/2 is chance.
    p_value : float
        Probability of so many pairs or more if both kinds of rows have one distribution.
    lower_bound : float
        The probability of telling a pair is at least this, at a confidence of 95%.
    n_pairs : int
        Number of pairs.
    verdict : str
        The result in words.
    """

    accuracy: float
    p_value: float
    lower_bound: float
    n_pairs: int

    @property
    def verdict(self) -> str:
        """The result in words."""
        told = f"in {self.accuracy:.0%} of {self.n_pairs:,} pairs the drawn row is told from the real one"
        if self.p_value > _LEVEL:
            return f"no difference is found: {told} (p = {self.p_value:.2g})"
        return f"drawn rows differ from real ones: {told} (p = {self.p_value:.2g})"

    def __str__(self) -> str:
        return self.verdict


@in_catalogue("generative", "F9", certificate="p-value", docs=FEATURE_DOCS)
def two_sample_test(
    real: Any,
    drawn: Any,
    *,
    classifier: Any = None,
    features: Any = None,
    random_state: Seed = 0,
    n_jobs: int | None = None,
) -> TwoSampleTest:
    r"""Test whether drawn rows have the distribution of the real ones, by a classifier that tries to tell them apart.

    A classifier learns from half of the rows. In each pair of a real and a drawn row among the others it names the one
    that looks more like a drawn row. With one distribution the number of pairs told right is binomial with probability
    1/2 whatever the classifier, so the p-value is exact for any number of rows.

    Parameters
    ----------
    classifier : estimator, optional
        With ``fit`` and ``predict_proba`` or ``decision_function``; it is cloned. By default the ratio of the distances
        to the k-th nearest real and drawn row, with k the root of the number of rows and columns in units of their
        standard deviation.
    random_state : int, Generator, RandomState or None, default=0
        Which rows are learnt from, and which make a pair.

    Returns
    -------
    TwoSampleTest

    References
    ----------
    D. Lopez-Paz and M. Oquab, Revisiting classifier two-sample tests, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.generative.evaluate import two_sample_test
    >>> rng = np.random.default_rng(0)
    >>> real = rng.normal(size=(1000, 2))
    >>> print(two_sample_test(real, rng.normal(size=(1000, 2))))
    no difference is found: in 49% of 500 pairs the drawn row is told from the real one (p = 0.72)
    >>> two_sample_test(real, rng.normal(size=(1000, 2)) + [1, 0]).p_value < 0.001
    True
    """
    X, Y = feature_pair(real, drawn, features, "two_sample_test")
    n = min(len(X), len(Y))
    if n < _LEAST_ROWS:
        raise DataError(f"real, drawn: the smaller has {n} rows; expected at least {_LEAST_ROWS} to learn and to test")
    seed = seed_of(random_state)
    X, Y = (A[stream(seed, name).permutation(len(A))[:n]] for name, A in (("real", X), ("drawn", Y)))
    half = n // 2
    train, new = (X[:half], Y[:half]), np.concatenate([X[half:], Y[half:]])
    if classifier is None:
        scores = _log_distance_ratio(*train, new, n_jobs)
    else:
        scores = _scores(classifier, np.concatenate(train), np.repeat([0, 1], half), new)
    of_real, of_drawn = np.split(scores, 2)
    coin = stream(seed, "ties").random(len(of_real)) < 0.5
    right = np.where(of_real == of_drawn, coin, of_drawn > of_real)
    hits, pairs = int(right.sum()), len(right)
    return TwoSampleTest(
        accuracy=hits / pairs,
        p_value=float(binom.sf(hits - 1, pairs, 0.5)),
        lower_bound=smallest_rate(hits, pairs, _LEVEL),
        n_pairs=pairs,
    )


def _log_distance_ratio(real: np.ndarray, drawn: np.ndarray, new: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """log r_k(x; real) - log r_k(x; drawn): an estimate of the log-ratio of the densities, over the dimension."""
    k = max(1, round(len(real) ** 0.5))
    _, real, drawn, new = standardised(np.concatenate([real, drawn]), real, drawn, new)
    far = [nearest(rows, new, k, EUCLIDEAN, "auto", n_jobs)[0][:, -1] for rows in (real, drawn)]
    tiny = np.finfo(np.float64).tiny  # k copies of a row
    return np.asarray(np.log(np.maximum(far[0], tiny)) - np.log(np.maximum(far[1], tiny)))


def _scores(classifier: Any, X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    if not hasattr(classifier, "fit") or not (
        hasattr(classifier, "predict_proba") or hasattr(classifier, "decision_function")
    ):
        raise ParameterTypeError(
            f"classifier={classifier!r}; expected an estimator with fit and predict_proba or decision_function"
        )
    fitted = clone(classifier).fit(X, y)
    if hasattr(fitted, "decision_function"):
        return np.asarray(fitted.decision_function(new), dtype=np.float64)
    return np.asarray(fitted.predict_proba(new), dtype=np.float64)[:, 1]
