"""Decomposition of the error into bias, variance and noise, and the optimism of the training error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from epicycle.core._checks import count, number
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._random import seed_of, stream
from epicycle.core.estimator._catalogue import in_catalogue


@dataclass(frozen=True)
class Decomposition:
    """The parts of the expected error on test rows.

    Attributes
    ----------
    error : float
        Mean squared error, or share of wrong labels, over all fits.
    bias : float
        Of regression the mean of (mean prediction - truth)^2; of classification the share of rows on which the most
        frequent prediction is wrong. Where the truth is not known it holds the noise too.
    variance : float
        The mean spread of predictions around their mean; of classification the share of fits that differ from the most
        frequent prediction.
    noise : float
        What is left for the truth itself; zero where it is not known.
    net_variance : float
        How much of the error is due to the spread: the variance itself for squared error; for labels variance where the
        main prediction is right, less that where it is wrong.
    n_fits : int
    """

    error: float
    bias: float
    variance: float
    noise: float
    net_variance: float
    n_fits: int

    def __str__(self) -> str:
        parts = f"bias {self.bias:.4g}, variance {self.net_variance:.4g}, noise {self.noise:.4g}"
        return f"error {self.error:.4g}, of which {parts}"


@in_catalogue("theory", "I4", certificate="standard errors")
def decompose(
    estimator: Any,
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    *,
    truth: Any = None,
    n_fits: int = 30,
    draw: Callable[[np.random.Generator], tuple[Any, Any]] | None = None,
    random_state: Any = 0,
) -> Decomposition:
    r"""Bias, variance and noise of a learner, from fits to many training sets.

    For squared error, with the mean prediction :math:`\bar f(x)` over training sets and the truth :math:`g(x)`,

    .. math:: E (y - \hat f(x))^2 = (\bar f(x) - g(x))^2 + E (\hat f(x) - \bar f(x))^2 + E (y - g(x))^2 .

    Labels have the decomposition of Domingos: a most frequent prediction that is right or wrong, and the spread around
    it, which adds to the error where it is right and takes away where it is wrong (for two classes).

    Parameters
    ----------
    estimator : regressor or classifier
    X, y : training rows, which training sets are drawn from with replacement; of the same size
    X_test, y_test : rows to predict
    truth : array-like of shape (n_test,), optional
        The noise-free target of the test rows; without it the noise counts as bias.
    n_fits : int, default=30
    draw : callable, optional
        ``draw(generator) -> (X, y)`` for training sets of their own, in place of resampling X and y.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import LinearRegression
    >>> from epicycle.theory import decompose
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, size=(300, 1))
    >>> y = x[:, 0] ** 2 + 0.1 * rng.normal(size=300)
    >>> parts = decompose(LinearRegression(), x[:200], y[:200], x[200:], y[200:], truth=x[200:, 0] ** 2)
    >>> parts.bias > 10 * parts.variance
    True
    """
    seed, fits = seed_of(random_state), count("n_fits", n_fits, low=2)
    target = np.asarray(y_test)
    predictions = []
    for i in range(fits):
        rng = stream(seed, "fit", i)
        if draw is not None:
            rows, labels = draw(rng)
        else:
            chosen = rng.integers(0, _num_samples(X), _num_samples(X))
            rows, labels = _safe_indexing(X, chosen), np.asarray(y)[chosen]
        predictions.append(np.asarray(clone(estimator).fit(rows, labels).predict(X_test)))
    F = np.stack(predictions)
    if F.shape[1:] != target.shape:
        raise DataError(f"y_test: shape {target.shape}; predictions have {F.shape[1:]}")
    known = target if truth is None else np.asarray(truth)
    if known.shape != target.shape:
        raise DataError(f"truth: shape {known.shape}; expected that of y_test, {target.shape}")
    if is_classifier(estimator):
        return _labels(F, target, known)
    mean = F.mean(axis=0)
    # The mean of a few fits has a variance of its own, which would count as bias.
    variance = float(F.var(axis=0, ddof=1).mean())
    bias = float(((mean - known) ** 2).mean()) - variance / fits
    noise = float(((target - known) ** 2).mean())
    return Decomposition(float(((F - target) ** 2).mean()), max(bias, 0.0), variance, noise, variance, fits)


def _labels(F: np.ndarray, target: np.ndarray, truth: np.ndarray) -> Decomposition:
    classes = np.unique(np.concatenate([F.ravel(), target, truth]))
    counts = np.stack([np.sum(c == F, axis=0) for c in classes])
    main = classes[counts.argmax(axis=0)]
    spread = (main != F).mean(axis=0)
    wrong = main != truth
    helps = (truth == F).mean(axis=0)  # of a row whose main prediction is wrong, how often a fit is right all the same
    net = np.where(wrong, -helps, spread)
    error, noise = float((target != F).mean()), float((target != truth).mean())
    return Decomposition(error, float(wrong.mean()), float(spread.mean()), noise, float(net.mean()), len(F))


@dataclass(frozen=True)
class Optimism:
    """Optimism of the training error.

    Attributes
    ----------
    degrees_of_freedom : float
        Effective number of parameters.
    standard_error : float
        Of it.
    optimism : float
        Expected error on new targets of the same rows, less that on the training targets: 2 sigma^2 df / n.
    training_error, test_error : float
        Mean squared errors over the draws, on the training targets and on fresh ones.
    """

    degrees_of_freedom: float
    standard_error: float
    optimism: float
    training_error: float
    test_error: float

    def __str__(self) -> str:
        return (
            f"{self.degrees_of_freedom:.2f} effective parameters (standard error {self.standard_error:.2f}); the "
            f"training error is too small by {self.optimism:.4g} on average"
        )


@in_catalogue("theory", "I4", certificate="standard errors")
def optimism(estimator: Any, X: Any, mean: Any, sigma: float, *, n_draws: int = 100, random_state: Any = 0) -> Optimism:
    r"""Effective degrees of freedom and optimism of a regressor, by drawing targets :math:`y = g + \epsilon`.

    .. math:: \hat p = \frac{E \langle \epsilon, \hat y \rangle}{\sigma^2}, \qquad
              E |\tilde y - \hat y|^2 - E |y - \hat y|^2 = 2 \hat p \sigma^2 .

    For least squares :math:`\hat p` is the number of coefficients.

    Parameters
    ----------
    estimator : regressor
    X : rows, which stay as they are
    mean : array-like of shape (n,)
        The noise-free targets g; the fit to the data itself serves where they are not known.
    sigma : float
        Standard deviation of the noise.
    n_draws : int, default=100

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import LinearRegression
    >>> from epicycle.theory import optimism
    >>> X = np.random.default_rng(0).normal(size=(100, 7))
    >>> found = optimism(LinearRegression(), X, X[:, 0], 1.0)
    >>> abs(found.degrees_of_freedom - 8) < 3 * found.standard_error
    True
    """
    g, scale = np.asarray(mean, dtype=np.float64), number("sigma", sigma)
    n, seed = _num_samples(X), seed_of(random_state)
    if scale <= 0:
        raise ParameterError(f"sigma={sigma!r}; expected a number > 0")
    if g.shape != (n,):
        raise DataError(f"mean: shape {g.shape}; expected ({n},)")
    products, training, test = [], [], []
    for i in range(count("n_draws", n_draws, low=2)):
        rng = stream(seed, "draw", i)
        noise, fresh = scale * rng.normal(size=n), scale * rng.normal(size=n)
        fitted = np.asarray(clone(estimator).fit(X, g + noise).predict(X))
        products.append(noise @ (fitted - g) / scale**2)
        training.append(np.mean((g + noise - fitted) ** 2))
        test.append(np.mean((g + fresh - fitted) ** 2))
    df, error = float(np.mean(products)), float(np.std(products, ddof=1) / np.sqrt(len(products)))
    return Optimism(df, error, 2 * scale**2 * df / n, float(np.mean(training)), float(np.mean(test)))
