"""PAC-Bayes bounds for randomised classifiers, drawn from a posterior for every prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from epicycle.core._checks import count, number, open_unit
from epicycle.core._exceptions import DataError
from epicycle.core.estimator._catalogue import in_catalogue


@dataclass(frozen=True)
class PacBayesBound:
    """A PAC-Bayes bound and its terms.

    Attributes
    ----------
    upper : float
        The true error of the drawn classifier is at most this, with probability `level`.
    mcallester : float
        The looser bound with a square root.
    error : float
        Its mean error on the training rows.
    kl : float
        How far the posterior is from the prior.
    n : int
    level : float
    """

    upper: float
    mcallester: float
    error: float
    kl: float
    n: int
    level: float

    def __str__(self) -> str:
        return (
            f"error {self.error:.4g} on {self.n} rows at a divergence of {self.kl:.4g} from the prior; with "
            f"probability {self.level:g} the true error is at most {self.upper:.4g}"
        )


@in_catalogue("theory", "I5", certificate="a bound with its probability")
def pac_bayes(error: float, kl: float, n: int, *, level: float = 0.95) -> PacBayesBound:
    r"""The PAC-Bayes bound of Seeger and Maurer, for all posteriors at once.

    .. math:: \mathrm{kl}(\hat e \,\|\, e) \le \frac{\mathrm{KL}(Q \| P) + \log(2 \sqrt n / \delta)}{n} ,

    with the prior P chosen before the data is seen, solved for the largest e. McAllester's form,
    :math:`e \le \hat e + \sqrt{(\mathrm{KL} + \log(2 \sqrt n / \delta)) / (2 n)}`, follows from it.

    Parameters
    ----------
    error : float
        Mean training error of classifiers drawn from the posterior Q.
    kl : float
        KL(Q || P), in nats.
    n : int
        Rows.
    level : float, default=0.95
        Probability with which the bound holds.

    Examples
    --------
    >>> from epicycle.theory import pac_bayes
    >>> round(pac_bayes(error=0.05, kl=10.0, n=2000).upper, 4)
    0.0841
    """
    delta = 1 - open_unit("level", level)
    rate, divergence, rows = number("error", error, low=0.0, high=1.0), number("kl", kl, low=0.0), count("n", n, low=1)
    room = (divergence + np.log(2 * np.sqrt(rows) / delta)) / rows
    loose = float(min(rate + np.sqrt(room / 2), 1.0))
    return PacBayesBound(_largest(rate, room), loose, rate, divergence, rows, level)


@in_catalogue("theory", "I5", certificate="a bound with its probability")
def pac_bayes_linear(coef: Any, X: Any, y: Any, *, intercept: float = 0.0, level: float = 0.95) -> PacBayesBound:
    r"""The bound for a linear classifier of two classes, whose weights are drawn around its own.

    The prior is :math:`N(0, I)` and the posterior :math:`N(\mu w / |w|, I)`, so that KL is :math:`\mu^2 / 2` and a row
    at margin :math:`\gamma_i = y_i w'x_i / (|w| |x_i|)` is wrong with probability :math:`1 - \Phi(\mu \gamma_i)`. The
    best of 32 values of :math:`\mu` is taken, for which the union bound pays.

    Parameters
    ----------
    coef : array-like of shape (p,)
    X : array-like of shape (n, p)
        The rows that the classifier was fitted to.
    y : array-like of shape (n,)
        Two labels; the larger one is the positive class.
    intercept : float, default=0.0
        Counts as the weight of a feature that is always 1.
    level : float, default=0.95
        Probability with which the bound holds.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import LogisticRegression
    >>> from epicycle.theory import pac_bayes_linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5)) + 2.0 * np.repeat([[1], [-1]], 1000, axis=0)
    >>> y = np.repeat([1, 0], 1000)
    >>> model = LogisticRegression().fit(X, y)
    >>> bool(pac_bayes_linear(model.coef_[0], X, y, intercept=model.intercept_[0]).upper < 0.06)
    True
    """
    rows, labels = np.asarray(X, dtype=np.float64), np.asarray(y)
    w = np.append(np.asarray(coef, dtype=np.float64).ravel(), number("intercept", intercept))
    if rows.ndim != 2 or rows.shape[1] != len(w) - 1 or len(labels) != len(rows) or len(rows) == 0:
        raise DataError(f"X: shape {rows.shape} does not go with {len(w) - 1} coefficients and {len(labels)} labels")
    classes = np.unique(labels)
    if len(classes) != 2:
        raise DataError(f"y: {len(classes)} labels; expected two")
    delta = 1 - open_unit("level", level)
    size = np.sqrt((rows**2).sum(axis=1) + 1.0) * np.linalg.norm(w)
    if not size.all():
        raise DataError("coef: all zero, which is no classifier")
    margin = np.where(labels == classes[1], 1.0, -1.0) * (rows @ w[:-1] + w[-1]) / size
    grid = np.geomspace(0.1, 1000.0, 32)
    found = [pac_bayes(float(ndtr(-mu * margin).mean()), mu * mu / 2, len(rows), level=1 - delta / 32) for mu in grid]
    best = min(found, key=lambda bound: bound.upper)
    return PacBayesBound(best.upper, best.mcallester, best.error, best.kl, best.n, level)


def _largest(q: float, room: float) -> float:
    """The largest p with kl(q || p) = q log(q/p) + (1-q) log((1-q)/(1-p)) <= room."""

    def excess(p: float) -> float:
        first = 0.0 if q == 0 else q * np.log(q / p)
        second = 0.0 if q == 1 else (1 - q) * (np.log1p(-q) - np.log1p(-p))
        return float(first + second - room)

    if q >= 1:
        return 1.0
    top = 1 - 1e-15
    return 1.0 if excess(top) <= 0 else float(brentq(excess, max(q, 1e-300), top, xtol=1e-14))
