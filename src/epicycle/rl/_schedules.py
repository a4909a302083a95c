"""Numbers that change while an agent learns, and ways to explore that depend on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from epicycle.core._checks import count, number
from epicycle.core._exceptions import ParameterError, ParameterTypeError

Numbers = tuple[float, float, float, float]  # kind, start, end and span, as the kernels take them


@dataclass(frozen=True)
class LinearDecay:
    """A number that goes from `start` to `end` in a straight line over so many steps, and stays there.

    Parameters
    ----------
    start, end : float
        First and last value.
    steps : int
        Steps in between.

    Examples
    --------
    >>> from epicycle.rl import EpsilonGreedy, LinearDecay
    >>> EpsilonGreedy(LinearDecay(1.0, 0.05, steps=10_000))
    EpsilonGreedy(epsilon=LinearDecay(start=1.0, end=0.05, steps=10000))
    """

    start: float
    end: float
    steps: int

    def __post_init__(self) -> None:
        number("LinearDecay: start", self.start, low=0)
        number("LinearDecay: end", self.end, low=0)
        count("LinearDecay: steps", self.steps, low=1)

    def _numbers(self) -> Numbers:
        return 1.0, float(self.start), float(self.end), float(self.steps)


@dataclass(frozen=True)
class ExponentialDecay:
    """A number that goes from `start` to `end` by the same factor in each of so many steps, and stays there.

    Parameters
    ----------
    start, end : float
        First and last value, above 0.
    steps : int
        Steps in between.
    """

    start: float
    end: float
    steps: int

    def __post_init__(self) -> None:
        number("ExponentialDecay: start", self.start, low=1e-300)
        number("ExponentialDecay: end", self.end, low=1e-300)
        count("ExponentialDecay: steps", self.steps, low=1)

    def _numbers(self) -> Numbers:
        return 2.0, float(self.start), float(self.end), float(self.steps)


@dataclass(frozen=True)
class VisitDecay:
    r"""A number that falls with the visits: :math:`\max(\text{end}, \text{start} / n^{\text{power}})`.

    Of a learning rate, n counts the visits of the state and action, this one included; of exploration, those of the
    state before. Learning rates with a power above 1/2 and at most 1 are those with which values converge (Robbins and
    Monro); with 1 a value is the mean of its targets.

    Parameters
    ----------
    power : float, default=1
        Power of the visits.
    start : float, default=1
        Value at the first visit.
    end : float, default=0
        Least value.
    """

    power: float = 1.0
    start: float = 1.0
    end: float = 0.0

    def __post_init__(self) -> None:
        number("VisitDecay: power", self.power, low=0)
        number("VisitDecay: start", self.start, low=0)
        number("VisitDecay: end", self.end, low=0)

    def _numbers(self) -> Numbers:
        return 3.0, float(self.start), float(self.end), float(self.power)


Schedule: TypeAlias = "float | LinearDecay | ExponentialDecay | VisitDecay"


@dataclass(frozen=True)
class EpsilonGreedy:
    """Any action with probability epsilon, otherwise one of the best.

    Parameters
    ----------
    epsilon : float or schedule, default=0.1
        Probability, in [0, 1].
    """

    epsilon: Schedule = 0.1
    _number = 0

    def __post_init__(self) -> None:
        numbers_of("EpsilonGreedy: epsilon", self.epsilon, high=1.0)

    @property
    def _amount(self) -> Schedule:
        return self.epsilon


@dataclass(frozen=True)
class Softmax:
    r"""Actions with probabilities proportional to :math:`\exp(Q(s, a) / \tau)`.

    Parameters
    ----------
    temperature : float or schedule, default=1
        :math:`\tau`, above 0.
    """

    temperature: Schedule = 1.0
    _number = 1

    def __post_init__(self) -> None:
        numbers_of("Softmax: temperature", self.temperature, low=1e-12)

    @property
    def _amount(self) -> Schedule:
        return self.temperature


@dataclass(frozen=True)
class UCB:
    r"""The action with the largest upper confidence bound :math:`Q(s, a) + c \sqrt{\log n(s) / n(s, a)}`.

    Actions that were never tried in a state come first.

    Parameters
    ----------
    width : float or schedule, default=1
        c.
    """

    width: Schedule = 1.0
    _number = 2

    def __post_init__(self) -> None:
        numbers_of("UCB: width", self.width)

    @property
    def _amount(self) -> Schedule:
        return self.width


Exploration: TypeAlias = "float | EpsilonGreedy | Softmax | UCB"


def numbers_of(name: str, value: Any, *, low: float = 0.0, high: float = float("inf")) -> Numbers:
    """A number or a schedule as the kernels take it; both of its ends lie between the bounds."""
    if isinstance(value, LinearDecay | ExponentialDecay | VisitDecay):
        found = value._numbers()
        ends = (value.start,) if isinstance(value, VisitDecay) else (value.start, value.end)
        if not all(low <= x <= high for x in ends):
            raise ParameterError(f"{name}={value!r}; expected values in [{low:g}, {high:g}]")
        return found
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParameterTypeError(f"{name}={value!r}; expected a number, LinearDecay, ExponentialDecay or VisitDecay")
    return 0.0, number(name, value, low=low, high=high), 0.0, 1.0


def exploration_of(name: str, value: Any) -> EpsilonGreedy | Softmax | UCB:
    """A way to explore; a number is the epsilon of `EpsilonGreedy`."""
    if isinstance(value, EpsilonGreedy | Softmax | UCB):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return EpsilonGreedy(number(name, value, low=0, high=1))
    raise ParameterTypeError(f"{name}={value!r}; expected a probability, EpsilonGreedy, Softmax or UCB")


def at_step(numbers: Numbers, step: int, visits: float) -> float:
    """A schedule after so many steps, at so many visits; the kernels have the same in `schedule.hpp`."""
    kind, start, end, span = numbers
    if kind == 1:
        return end if step >= span else start + (end - start) * step / span
    if kind == 2:
        return end if step >= span else float(start * (end / start) ** (step / span))
    if kind == 3:
        return max(end, float(start / float(visits) ** span))
    return start
