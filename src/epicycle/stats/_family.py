"""Exponential families  p(y; theta) = b(y) exp(theta T(y) - a(theta)),  from which everything else follows.

With the natural parameter theta the mean of T(y) is a'(theta) and its variance a''(theta). The unit deviance is twice
the loss of likelihood against the best theta for that row,

    d(t, mu) = 2 [ a*(t) - (t theta - a(theta)) ],    a*(t) = sup_theta  t theta - a(theta),    mu = a'(theta).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from epicycle.core._exceptions import ConvergenceError, DataError, ParameterError

Array = NDArray[np.float64]

#: Step of the difference quotients for a' and a'', relative to the scale of theta.
STEP = 2.0**-8
#: Largest relative difference between given and numerical derivatives; the quotients are good to about 1e-9.
AGREEMENT = 1e-5


class Family(ABC):
    r"""A distribution of the response, by the pieces of its exponential family.

    A family of one's own derives from this class and gives :meth:`log_partition` (a), and where they differ from the
    defaults :meth:`sufficient` (T, the response itself), :meth:`log_base` (log b, zero), the open interval
    `natural_range` of theta, and the closed interval `support` of y. The model is linear in theta (the canonical link)
    and predicts the mean of T(y), :math:`a'(\theta)`. Mean and variance are differentiated numerically unless
    :meth:`mean` and :meth:`mean_variance` say them; what they say is checked against the derivatives.

    Attributes
    ----------
    name : str
    support : tuple of two floats
        Smallest and largest response that can occur.
    natural_range : tuple of two floats
        The open interval of theta.
    dispersion : float or None
        The known dispersion; None where it is estimated.

    Examples
    --------
    Squared distances of a Rayleigh distribution, :math:`p(y) = y \exp(\theta y^2 + \log(-2 \theta))`:

    >>> import numpy as np
    >>> from epicycle import Family, GeneralizedLinearModel
    >>> class Rayleigh(Family):
    ...     name, support, natural_range = "rayleigh", (0, np.inf), (-np.inf, 0)
    ...     def sufficient(self, y): return y**2
    ...     def log_base(self, y): return np.log(y)
    ...     def log_partition(self, theta): return -np.log(-2 * theta)
    >>> Rayleigh().check()
    >>> rng = np.random.default_rng(0)
    >>> x = rng.random((500, 1))
    >>> y = rng.rayleigh(1 / np.sqrt(2 * (1 + x[:, 0])))
    >>> model = GeneralizedLinearModel(family=Rayleigh()).fit(x, y)
    >>> model.certificate_.holds
    True
    """

    name: str = "family"
    support: tuple[float, float] = (-np.inf, np.inf)
    natural_range: tuple[float, float] = (-np.inf, np.inf)
    #: Whether the response may be at the lower, upper end of `support`.
    closed: tuple[bool, bool] = (True, True)
    dispersion: float | None = 1.0

    @abstractmethod
    def log_partition(self, theta: Array) -> Array:
        """a(theta), elementwise."""

    def sufficient(self, y: Array) -> Array:
        """T(y); the response itself by default."""
        return y

    def log_base(self, y: Array) -> Array:
        """log b(y); zero by default."""
        return np.zeros(np.shape(y))

    def mean(self, theta: Array) -> Array:
        """a'(theta), by differences of fourth order unless a family knows it."""
        theta = np.asarray(theta, dtype=np.float64)
        return _difference(self.log_partition, theta, self._step(theta))

    def mean_variance(self, theta: Array) -> Array:
        """a''(theta), by differences of fourth order of :meth:`mean`, or of a itself."""
        theta = np.asarray(theta, dtype=np.float64)
        h = self._step(theta)
        if type(self).mean is not Family.mean:
            return _difference(self.mean, theta, h)
        a = self.log_partition
        near, far = a(theta + h) + a(theta - h), a(theta + 2 * h) + a(theta - 2 * h)
        return np.maximum((16 * near - far - 30 * a(theta)) / (12 * h * h), 0.0)

    def _step(self, theta: Array) -> Array:
        low, high = self.natural_range
        room = np.minimum(np.abs(theta - low), np.abs(high - theta))
        # Powers of two: theta + h - theta is h exactly.
        size = np.minimum(np.maximum(np.abs(theta), 1.0), room)
        return STEP * np.exp2(np.floor(np.log2(np.maximum(size, np.finfo(float).tiny))))

    # ------------------------------------------------------------------------------------- derived

    def conjugate(self, t: Array) -> Array:
        """a*(t) = sup_theta t theta - a(theta), approached where it is only a limit (t at the end of the support)."""
        return self._saturated(t)[1]

    def natural(self, mu: Array) -> Array:
        """The theta with mean mu: the canonical link."""
        return self._saturated(mu)[0]

    def _saturated(self, t: Array) -> tuple[Array, Array]:
        """The maximiser of t theta - a(theta), by safeguarded Newton steps on all elements at once, and the maximum."""
        values, back = np.unique(np.asarray(t, dtype=np.float64).ravel(), return_inverse=True)
        theta = np.full(values.shape, self.starting_point())
        low, high = (np.full(values.shape, float(end)) for end in self.natural_range)
        with np.errstate(all="ignore"):
            best = values * theta - self.log_partition(theta)
            for _ in range(400):
                slope = values - self.mean(theta)
                low, high = np.where(slope > 0, theta, low), np.where(slope < 0, theta, high)
                step = slope / self.mean_variance(theta)
                wide = 2 * np.maximum(np.abs(theta), 1.0)
                step = np.clip(np.where(np.isfinite(step), step, np.sign(slope) * wide), -wide, wide)
                trial = theta + step
                outside = ~((trial > low) & (trial < high))
                middle = np.where(np.isfinite(low) & np.isfinite(high), (low + high) / 2, theta + np.sign(slope) * wide)
                trial = np.where(outside, np.where(step == 0, theta, middle), trial)
                reached = values * trial - self.log_partition(trial)
                better = np.isfinite(reached) & (reached > best)
                settled = np.abs(trial - theta) <= 1e-12 * np.maximum(np.abs(theta), 1e-300)
                gain = np.where(better, reached - best, 0.0)
                theta, best = np.where(np.isfinite(reached), trial, theta), np.where(better, reached, best)
                if np.all(settled | (gain <= 1e-15 * np.maximum(np.abs(best), 1.0)) & (np.abs(slope) <= 1e-9)):
                    break
        if not np.isfinite(best).all():
            bad = values[~np.isfinite(best)][0]
            raise ConvergenceError(f"{self.name}: no theta was found whose mean comes near {bad:g}")
        shape = np.shape(t)
        return theta[back].reshape(shape), best[back].reshape(shape)

    def starting_point(self) -> float:
        """A theta inside the natural range."""
        low, high = self.natural_range
        if np.isfinite(low) and np.isfinite(high):
            return (low + high) / 2
        return high - 1.0 if np.isfinite(high) else low + 1.0 if np.isfinite(low) else 0.0

    def variance(self, mu: Array) -> Array:
        """The variance as a function of the mean: a'' at the theta of that mean."""
        return self.mean_variance(self.natural(mu))

    def unit_deviance(self, t: Array, mu: Array) -> Array:
        """d(t, mu) of the module's head, none below zero."""
        theta = self.natural(mu)
        return np.maximum(2 * (self.conjugate(t) - (t * theta - self.log_partition(theta))), 0.0)

    # ------------------------------------------------------------------------------------- checks

    def check_target(self, y: Array, first_row: int = 0) -> None:
        """Raise unless every response lies in the support."""
        low, high = self.support
        bad = (y < low) | (y > high)
        bad |= ((y == low) & (not self.closed[0])) | ((y == high) & (not self.closed[1]))
        if bad.any():
            row = int(bad.argmax())
            left, right = "[" if self.closed[0] and np.isfinite(low) else "(", "]" if np.isfinite(high) else ")"
            raise DataError(
                f"y: Some value(s) of y are out of the valid range of the loss: family={self.name!r} expects responses "
                f"in {left}{low:g}, {high:g}{right}; row {first_row + row} has {y[row]:g}"
            )

    def check(self, theta: Array | None = None) -> None:
        """Compare :meth:`mean` and :meth:`mean_variance` with numerical derivatives of a, and ask for a'' > 0.

        Parameters
        ----------
        theta : array, optional
            Points of comparison; by default points all over the natural range.

        Raises
        ------
        ParameterError
            Where they differ; the message has the point and both values.
        """
        at = _grid(*self.natural_range) if theta is None else np.asarray(theta, dtype=np.float64)
        with np.errstate(all="ignore"):
            a, mean, variance = self.log_partition(at), self.mean(at), self.mean_variance(at)
            for what, values in (("log_partition", a), ("mean", mean), ("mean_variance", variance)):
                if np.shape(values) != at.shape or not np.isfinite(values).all():
                    raise ParameterError(f"{self.name}: {what}(theta) is not one finite number for each of {at}")
            numeric = Family.mean(self, at)
            slope = _difference(self.mean, at, self._step(at))
        size = np.abs(a) * np.finfo(float).eps / self._step(at)
        if (slope <= 0).any() or (variance <= 0).any():
            where = at[np.argmax((slope <= 0) | (variance <= 0))]
            raise ParameterError(f"{self.name}: a''({where:g}) is not positive; log_partition has to be convex")
        _agree(self.name, "mean", "a'", at, mean, numeric, size)
        _agree(self.name, "mean_variance", "a''", at, variance, slope, size / self._step(at))

    def __epi_state__(self) -> dict[str, object]:
        return dict(vars(self))

    def __epi_restore__(self, state: dict[str, object]) -> None:
        vars(self).update(state)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *sorted((k, repr(v)) for k, v in vars(self).items())))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({inside})"


def _grid(low: float, high: float) -> Array:
    """Points all over an open interval."""
    if np.isfinite(low) and np.isfinite(high):
        return low + (high - low) * np.linspace(0.05, 0.95, 19)
    steps = np.geomspace(0.05, 20.0, 12)
    if np.isfinite(high):
        return high - steps
    return low + steps if np.isfinite(low) else np.concatenate([-steps[::-1] / 4, [0.0], steps / 4])


def _difference(f: object, x: Array, h: Array) -> Array:
    return np.asarray((8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h))  # type: ignore[operator]


def _agree(family: str, method: str, of: str, at: Array, given: Array, numeric: Array, rounding: Array) -> None:
    wrong = np.abs(given - numeric) > AGREEMENT * np.maximum(np.abs(numeric), np.abs(given)) + 100 * rounding
    if wrong.any():
        i = int(wrong.argmax())
        raise ParameterError(
            f"{family}: {method}({at[i]:g}) is {given[i]:g}, but {of} of log_partition is {numeric[i]:g} there"
        )


# --------------------------------------------------------------------------------------------------------------------
# The families that come with the library are known by their mean. The dispersion phi scales the variance,
# Var(y) = phi V(mu) / w for a row of weight w; it is 1 for the binomial, Poisson, exponential and negative binomial.


LOG_2PI = float(np.log(2 * np.pi))


class StandardFamily(Family):
    """A family that is known by its mean: variance V(mu) with derivative, deviance and likelihood in closed form."""

    #: The open interval of means.
    mean_range: tuple[float, float] = (-np.inf, np.inf)
    #: Name of the link that is used unless another is asked for, and of the canonical one where that has a name.
    default_link: str = "identity"
    canonical_link: str = "identity"
    dispersion: float | None = None
    #: Whether the saturated likelihood of single trials is the weight times a function of y.
    weighs_likelihood: bool = False

    @abstractmethod
    def variance_slope(self, mu: Array) -> Array:
        """V'(mu)."""

    @abstractmethod
    def log_likelihood_saturated(self, y: Array, weight: Array, phi: float, trials: Array | None) -> Array:
        """log p(y; mu = y, phi / weight) for each row; half the deviance over phi less is the likelihood at any mu."""

    @abstractmethod
    def distribution(self, y: Array, mu: Array, phi: Array, trials: Array) -> tuple[Array, Array]:
        """P(Y < y) and P(Y <= y), for quantile residuals."""

    @abstractmethod
    def anscombe(self, y: Array, mu: Array) -> Array:
        """(A(y) - A(mu)) / V(mu)^(1/6) with A the integral of V^(-1/3)."""
