"""`AdditiveNoise`: v = f(parents) + noise, with a function that is given or learnt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from epicycle.causal.structural._mechanism import Mechanism, Values, arguments_of, as_column
from epicycle.causal.structural._noise import Noise, as_noise
from epicycle.data._target import as_numbers

Array = np.ndarray


class AdditiveNoise(Mechanism):
    """Equation with additive noise: a function of the parents plus noise of its own.

    The noise can be read off from the values, so that counterfactuals are exact.

    Parameters
    ----------
    function : callable
        Its arguments are named after the parents; it takes and returns arrays.
    noise : scipy.stats distribution, mapping or callable, optional
        Distribution of the noise; by default standard normal.

    Examples
    --------
    >>> from scipy import stats
    >>> from epicycle.causal import AdditiveNoise, StructuralCausalModel
    >>> model = StructuralCausalModel({
    ...     "x": AdditiveNoise(lambda: 0.0),
    ...     "y": AdditiveNoise(lambda x: 2 * x, stats.norm(0, 0.5)),
    ... })
    >>> float(model.counterfactual({"x": 1.0, "y": 2.5}, {"x": 2.0}).mean("y"))
    4.5
    """

    invertible = True

    def __init__(self, function: Callable[..., Any], noise: Any = None) -> None:
        from scipy.stats import norm

        self.function = function
        self.inputs = arguments_of(function, "function")
        self.own = self.law = as_noise("noise", norm() if noise is None else noise)

    def value(self, known: Values, noise: Array | None, n: int) -> Array:
        return np.asarray(self.centre(known, n) + noise)

    def centre(self, known: Values, n: int) -> Array:
        """The function of the parents."""
        return as_column(self.function(*(known[v] for v in self.inputs)), n, self.function)

    def abduct(
        self, value: Any, known: Values, n: int, rng: np.random.Generator, *, weigh: bool
    ) -> tuple[Array, Array] | None:
        noise = np.broadcast_to(as_numbers(np.asarray(value), "evidence"), (n,)) - self.centre(known, n)
        return noise, self.law.log_density(noise) if weigh else np.zeros(n)


class Regression(AdditiveNoise):
    """Additive noise around the predictions of a fitted regressor."""

    def __init__(self, model: Any, encode: Callable[[Values], Array], inputs: tuple[str, ...], noise: Noise) -> None:
        self.model, self.encode, self.inputs = model, encode, inputs
        self.own = self.law = noise

    def centre(self, known: Values, n: int) -> Array:
        return np.asarray(self.model.predict(self.encode(known)), dtype=np.float64)
