"""Models whose densities are compiled: sampled without a call into Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lstsq, solve_triangular

from epicycle._native import bayes as native
from epicycle.bayes.sampling._constraints import Constraint, Positive, Real
from epicycle.bayes.sampling._model import Model, Parameters
from epicycle.core._checks import number
from epicycle.core._exceptions import DataError, DataTypeError, ParameterError

Array = np.ndarray


def _array(name: str, values: Any, ndim: int, n: int | None = None) -> Array:
    """A finite array of floats."""
    try:
        found = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataTypeError(f"{name}: expected numbers, got {values!r:.60}") from None
    if found.ndim != ndim or found.size == 0 or not np.isfinite(found).all():
        raise DataError(f"{name}: shape {found.shape}; expected {ndim} dimension(s) of finite numbers")
    if n is not None and len(found) != n:
        raise DataError(f"{name}: {len(found)} rows; expected {n}")
    return found


def _positive(name: str, value: Any) -> float:
    if number(name, value) <= 0:
        raise ParameterError(f"{name}={value!r}; expected a number above 0")
    return float(value)


class NativeModel(Model):
    """A model with a compiled density."""

    def __init__(self, constraints: Mapping[str, Constraint], density: Any) -> None:
        self.parameters = Parameters(constraints)
        self.data = {}
        self.conditionals = {}
        self._compiled, self.n_nan = density, 0
        self._derived = None

    @property
    def has_gradient(self) -> bool:
        """Always."""
        return True

    def density(self) -> Any:
        """The compiled density, in unconstrained coordinates."""
        return self._compiled

    def value(self, u: Array) -> float:
        """The log-density at unconstrained coordinates."""
        return self.value_and_gradient(u)[0]

    def value_and_gradient(self, u: Array) -> tuple[float, Array]:
        """The log-density at unconstrained coordinates, and its gradient there."""
        return native.log_density(self._compiled, np.ascontiguousarray(u, dtype=np.float64))


class NormalModel(NativeModel):
    """A multivariate normal distribution, of the parameter ``x``.

    Parameters
    ----------
    mean : array-like of shape (n,)
    covariance, precision : array-like of shape (n, n)
        One of the two, symmetric and positive definite.
    """

    def __init__(self, mean: Any, covariance: Any = None, *, precision: Any = None) -> None:
        m = _array("mean", mean, 1)
        if (covariance is None) == (precision is None):
            raise ParameterError("covariance, precision: expected exactly one of the two")
        name = "precision" if covariance is None else "covariance"
        A = _array(name, precision if covariance is None else covariance, 2, len(m))
        if A.shape[1] != len(m) or not np.allclose(A, A.T, rtol=1e-8, atol=0):
            raise DataError(f"{name}: shape {A.shape}; expected a symmetric matrix of {len(m)} rows")
        try:
            factor = cho_factor((A + A.T) / 2)
        except np.linalg.LinAlgError:
            raise DataError(f"{name}: not positive definite") from None
        P = (A + A.T) / 2 if covariance is None else cho_solve(factor, np.eye(len(m)))
        self._mean, self._precision = m, np.ascontiguousarray((P + P.T) / 2)
        super().__init__({"x": Real(len(m))}, native.NormalDensity(m, self._precision))
        self.conditionals = {("x",): self._draw}

    def _draw(self, rng: np.random.Generator, x: Array) -> Array:
        """One coordinate after the other given the others: N(m_i - sum_{j != i} P_ij (x_j - m_j) / P_ii, 1 / P_ii)."""
        d, P = x - self._mean, self._precision
        for i, z in enumerate(rng.standard_normal(len(d))):
            d[i] = (P[i, i] * d[i] - P[i] @ d) / P[i, i] + z / np.sqrt(P[i, i])
        return np.asarray(self._mean + d)


class _RegressionModel(NativeModel):
    """A likelihood of rows through x'coef + intercept, with independent normal priors."""

    def __init__(
        self, X: Any, y: Array, offset: Array | None, prior_scale: float, intercept_scale: float | None
    ) -> None:
        A, precision, constraints = _design(X, prior_scale, intercept_scale)
        super().__init__(constraints, native.RegressionDensity(A, y, offset, precision))


def _design(X: Any, prior_scale: float, intercept_scale: float | None) -> tuple[Array, Array, dict[str, Constraint]]:
    """Rows with a column of ones behind them, the precisions of the priors, and the parameters."""
    A = _array("X", X, 2)
    precision = np.full(A.shape[1], _positive("prior_scale", prior_scale) ** -2.0)
    constraints: dict[str, Constraint] = {"coef": Real(A.shape[1])}
    if intercept_scale is not None:
        precision = np.append(precision, _positive("intercept_scale", intercept_scale) ** -2.0)
        A = np.ascontiguousarray(np.column_stack([A, np.ones(len(A))]))
        constraints["intercept"] = Real()
    return A, precision, constraints


class LogisticModel(_RegressionModel):
    """Logistic regression: P(y = 1) = 1 / (1 + exp(-x'coef - intercept)), with normal priors of mean 0.

    Parameters
    ----------
    X : array-like of shape (n, p)
    y : array-like of shape (n,)
        0 and 1.
    prior_scale : float, default=2.5
        Standard deviation of the prior of every coefficient.
    intercept_scale : float or None, default=10.0
        The same of the intercept; None leaves it out.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import bayes
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = rng.random(500) < 1 / (1 + np.exp(-X @ [1.0, -2.0]))
    >>> draws = bayes.sample(bayes.LogisticModel(X, y), random_state=0)
    >>> bool((np.abs(draws["coef"].mean(axis=(0, 1)) - [1.0, -2.0]) < 0.5).all())
    True
    """

    def __init__(self, X: Any, y: Any, *, prior_scale: float = 2.5, intercept_scale: float | None = 10.0) -> None:
        n = len(_array("X", X, 2))
        label = _array("y", y, 1, n)
        if not np.isin(label, (0.0, 1.0)).all():
            raise DataError("y: expected only 0 and 1")
        super().__init__(X, 2 * label - 1, None, prior_scale, intercept_scale)


class PoissonModel(_RegressionModel):
    """Poisson regression: E[y] = exposure * exp(x'coef + intercept), with normal priors of mean 0.

    Parameters
    ----------
    X : array-like of shape (n, p)
    y : array-like of shape (n,)
        Counts.
    exposure : array-like of shape (n,), optional
        Positive numbers, 1 unless given.
    prior_scale : float, default=2.5
        Standard deviation of the prior of every coefficient.
    intercept_scale : float or None, default=10.0
        The same of the intercept; None leaves it out.
    """

    def __init__(
        self, X: Any, y: Any, exposure: Any = None, *, prior_scale: float = 2.5, intercept_scale: float | None = 10.0
    ) -> None:
        n = len(_array("X", X, 2))
        counts = _array("y", y, 1, n)
        if (counts < 0).any() or (counts != np.round(counts)).any():
            raise DataError("y: expected counts, none negative")
        e = np.ones(n) if exposure is None else _array("exposure", exposure, 1, n)
        if (e <= 0).any():
            raise DataError("exposure: expected numbers above 0")
        super().__init__(X, counts, np.log(e), prior_scale, intercept_scale)


class LinearModel(NativeModel):
    """Linear regression with unknown noise: y ~ N(x'coef + intercept, sigma^2), sigma^2 ~ inverse gamma.

    A step costs the same for any number of rows: these enter through their second moments.

    Parameters
    ----------
    X : array-like of shape (n, p)
    y : array-like of shape (n,)
    prior_scale : float, default=10.0
        Standard deviation of the prior of every coefficient.
    intercept_scale : float or None, default=10.0
        The same of the intercept; None leaves it out.
    shape, rate : float, default=1.0
        Parameters of the inverse gamma prior of ``sigma**2``.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        prior_scale: float = 10.0,
        intercept_scale: float | None = 10.0,
        shape: float = 1.0,
        rate: float = 1.0,
    ) -> None:
        A, precision, constraints = _design(X, prior_scale, intercept_scale)
        self._set(A, _array("y", y, 1, len(A)), np.zeros(A.shape[1]), precision, (shape, rate), constraints)

    def _set(
        self,
        A: Array,
        y: Array,
        prior_mean: Array,
        precision: Array,
        inverse_gamma: tuple[float, float],
        constraints: dict[str, Constraint],
    ) -> None:
        shape, rate = (_positive(name, v) for name, v in zip(("shape", "rate"), inverse_gamma, strict=True))
        S, b = A.T @ A, np.ascontiguousarray(lstsq(A, y)[0])
        rss = float(np.sum((y - A @ b) ** 2))
        self._moments = (S, b, rss, len(y), prior_mean, precision, shape, rate)
        density = native.LinearDensity(S, b, rss, float(len(y)), prior_mean, precision, shape, rate)
        super().__init__({**constraints, "sigma": Positive()}, density)
        means = tuple(constraints)
        self.conditionals = {means: self._draw_means, ("sigma",): self._draw_sigma}

    def _draw_means(self, rng: np.random.Generator, sigma: Array, **means: Array) -> Array | list[Array]:
        """N(H^-1 (S b / sigma^2 + Q m), H^-1) with H = S / sigma^2 + Q."""
        S, b, _, _, m, precision, _, _ = self._moments
        H = S / sigma**2 + np.diag(precision)
        lower = np.linalg.cholesky(H)
        centre = cho_solve((lower, True), S @ b / sigma**2 + precision * m)
        drawn = centre + solve_triangular(lower, rng.standard_normal(len(b)), lower=True, trans="T")
        parts = np.split(drawn, np.cumsum([x.size for x in means.values()])[:-1])
        shaped = [part.reshape(x.shape) for part, x in zip(parts, means.values(), strict=True)]
        return shaped if len(shaped) > 1 else shaped[0]

    def _draw_sigma(self, rng: np.random.Generator, sigma: Array, **means: Array) -> float:
        """sigma^2 ~ inverse gamma(shape + n / 2, rate + residual squares / 2)."""
        S, b, rss, n, _, _, shape, rate = self._moments
        d = np.concatenate([np.ravel(x) for x in means.values()]) - b
        return float(np.sqrt((rate + (rss + d @ S @ d) / 2) / rng.gamma(shape + n / 2)))


class NormalVarianceModel(LinearModel):
    """A sample of a normal distribution with unknown mean and variance: y ~ N(mu, sigma^2).

    Parameters
    ----------
    y : array-like of shape (n,)
    mean, scale : float
        Mean and standard deviation of the normal prior of ``mu``, by default 0 and 10.
    shape, rate : float, default=1.0
        Parameters of the inverse gamma prior of ``sigma**2``.
    """

    def __init__(
        self, y: Any, *, mean: float = 0.0, scale: float = 10.0, shape: float = 1.0, rate: float = 1.0
    ) -> None:
        values = _array("y", y, 1)
        prior = np.array([number("mean", mean)]), np.array([_positive("scale", scale) ** -2.0])
        self._set(np.ones((len(values), 1)), values, *prior, (shape, rate), {"mu": Real()})


class HierarchicalModel(NativeModel):
    """Means of groups with known errors, non-centred: y_j ~ N(theta_j, sigma_j^2), theta_j = mu + tau eta_j.

    eta_j ~ N(0, 1), mu ~ N(mean, scale^2), and tau has a half-Cauchy prior. ``theta`` is kept with the draws.

    Parameters
    ----------
    y : array-like of shape (n,)
        Estimates of the groups.
    sigma : array-like of shape (n,)
        Their standard errors.
    mean, scale : float
        Mean and standard deviation of the prior of ``mu``, by default 0 and 5.
    tau_scale : float, default=5.0
        Scale of the half-Cauchy prior of ``tau``.

    Examples
    --------
    >>> from epicycle import bayes
    >>> effects, errors = [28, 8, -3, 7, -1, 1, 18, 12], [15, 10, 16, 11, 9, 11, 10, 18]
    >>> draws = bayes.sample(bayes.HierarchicalModel(effects, errors), target_accept=0.95, random_state=0)
    >>> draws["theta"].shape, bool(abs(draws["mu"].mean() - 4.4) < 0.5)
    ((4, 1000, 8), True)
    """

    def __init__(self, y: Any, sigma: Any, *, mean: float = 0.0, scale: float = 5.0, tau_scale: float = 5.0) -> None:
        values = _array("y", y, 1)
        errors = _array("sigma", sigma, 1, len(values))
        if (errors <= 0).any():
            raise DataError("sigma: expected numbers above 0")
        prior = number("mean", mean), _positive("scale", scale), _positive("tau_scale", tau_scale)
        constraints = {"mu": Real(), "tau": Positive(), "eta": Real(len(values))}
        super().__init__(constraints, native.HierarchicalDensity(values, errors, *prior))

    def derived(self, draws: Mapping[str, Array]) -> dict[str, Array]:
        """The means of the groups."""
        return {"theta": draws["mu"][..., None] + draws["tau"][..., None] * draws["eta"]}
