"""Rademacher complexity of a classifier, estimated by fits to random labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import _num_samples

from epicycle.core._checks import count
from epicycle.core._exceptions import DataError
from epicycle.core._random import seed_of, stream
from epicycle.core._threads import n_threads
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.engine._ordered import in_order


@dataclass(frozen=True)
class RademacherEstimate:
    """Estimate of the Rademacher complexity.

    Attributes
    ----------
    value : float
        The estimate of R: 0 for a learner that learns nothing from noise, 1 for one that explains any labels.
    standard_error : float
    scores : ndarray
        The scores on all draws of random labels.
    n : int
        Rows.
    """

    value: float
    standard_error: float
    scores: np.ndarray
    n: int

    @property
    def overfit(self) -> float:
        """Bound on the expected excess of the training score over the true one: 2 R."""
        return 2 * self.value

    def __str__(self) -> str:
        return (
            f"random labels on {self.n} rows are fitted with a score of {self.value:.3f} (standard error "
            f"{self.standard_error:.3f}): the training accuracy is too high by at most {self.value:.3f}, on average"
        )


@in_catalogue("theory", "I3", certificate="standard errors")
def rademacher(
    estimator: Any, X: Any, y: Any = None, *, n_flips: int = 20, random_state: Any = 0, n_jobs: int | None = 1
) -> RademacherEstimate:
    r"""Estimate the Rademacher complexity of what a classifier can learn, by fitting it to random labels.

    .. math:: R = E \max_f \frac1n \sum_i \epsilon_i f(x_i), \qquad \epsilon_i = \pm 1 \text{ with probability } 1/2 .

    The classifier stands for the maximum: where it does not reach the best training score, the estimate is that of what
    it does reach. With labels y of two classes the flips are turned by them (symmetrisation), which leaves their
    distribution, and so the expectation, as it is. On average the training score :math:`\frac1n \sum y_i f(x_i)`
    exceeds the true one by no more than 2 R, and the accuracy by no more than R. For N classifiers R is at most
    :math:`\sqrt{2 \log N / n}`.

    Parameters
    ----------
    estimator : classifier
    X : array-like of shape (n, p)
    y : array-like of shape (n,), optional
    n_flips : int, default=20
        Number of draws of random labels; every second draw is the opposite of the one before.
    n_jobs : int, default=1
        Number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from epicycle.theory import rademacher
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> rademacher(DecisionTreeClassifier(), X).value
    1.0
    >>> rademacher(DecisionTreeClassifier(max_depth=1), X).value < 0.4
    True
    """
    if not is_classifier(estimator):
        raise DataError(f"estimator={estimator!r:.60}; expected a classifier")
    n, seed = _num_samples(X), seed_of(random_state)
    sign = np.ones(n)
    if y is not None:
        labels = np.asarray(y)
        classes = np.unique(labels)
        if labels.shape != (n,) or len(classes) != 2:
            raise DataError(f"y: {len(classes)} labels of shape {labels.shape}; expected two, one for each of {n} rows")
        sign = np.where(labels == classes[1], 1.0, -1.0)

    def score(flip: int) -> float:
        # Pairs of opposite labels cancel the part of the score that does not depend on the names of the labels.
        epsilon = stream(seed, "flip", flip // 2).choice([-1.0, 1.0], n) * (-1) ** flip * sign
        if abs(epsilon.sum()) == n:
            return 1.0  # one label alone is explained by itself
        model = clone(estimator)
        return float(np.mean(epsilon * model.fit(X, epsilon.astype(np.int64)).predict(X)))

    scores: list[float] = []
    threads = n_threads(float("inf"), 1 if n_jobs is None else n_jobs)
    in_order(range(count("n_flips", n_flips, low=2)), score, scores.append, threads)
    values = np.array(scores)
    pairs = values[: len(values) // 2 * 2].reshape(-1, 2).mean(axis=1)
    error = float(pairs.std(ddof=1) / np.sqrt(len(pairs))) if len(pairs) > 1 else np.inf
    return RademacherEstimate(float(values.mean()), error, values, n)
