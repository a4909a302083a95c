"""Log-densities as users give them: a function, with or without its gradient, of a vector or of named parameters.

Parameters with constraints are moved to unconstrained coordinates u, x = T(u), where the density is
log p(x) + log |det dT/du|. What is not given is found by central differences of fourth order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from epicycle.bayes.sampling._constraints import Constraint, Real
from epicycle.bayes.sampling._model import Model, Parameters
from epicycle.bayes.sampling._torch import TorchFunction
from epicycle.core._exceptions import DataError, ParameterError, ParameterTypeError

Array = np.ndarray

#: Steps of differences, in units of `LogDensity.scale`: of values, of gradients, of gradients that are differences.
STEP_OF_VALUES, STEP_OF_GRADIENTS, STEP_OF_DIFFERENCES = 7e-4, 1e-3, 1e-2
#: f' = sum_k c_k (f(x + k h) - f(x - k h)) / h, with an error of order h^4.
_STENCIL = ((1, 2 / 3), (2, -1 / 12))


class LogDensity:
    """log p(u) of unconstrained coordinates u, its gradient and its Hessian.

    Parameters
    ----------
    function : callable
        The log-density, up to a constant.
    start : array-like, or dict of them
        A point in its domain, in the user's parameters.
    gradient : callable, "torch" or None
        Its gradient in the same form as the parameters; "torch" differentiates a function of tensors.
    hessian : callable or None
        The matrix of second derivatives. Only of parameters without constraints.
    constraints : dict of Constraint, Constraint or None
        By the names of the parameters, or one for all of the vector.
    """

    def __init__(self, function: Any, start: Any, gradient: Any, hessian: Any, constraints: Any) -> None:
        for name, value in (("log_density", function), ("gradient", gradient), ("hessian", hessian)):
            if not callable(value) and value is not None and not (name == "gradient" and value == "torch"):
                raise ParameterTypeError(f"{name}: expected a function, got {type(value).__name__}")
        if function is None:
            raise ParameterTypeError("log_density: expected a function, got None")
        self._function, self._gradient, self._hessian = function, gradient, hessian
        self.layout = Layout(start, constraints)
        if hessian is not None and self.layout.constrained:
            raise ParameterError("hessian: is taken only without constraints; gradients are mapped, it is not")
        if gradient == "torch":
            density = _TorchDensity(function)
            self._function, self._gradient = density.value, density.gradient
        self.start = self.layout.coordinates(start)
        self.size = len(self.start)
        #: Lengths over which the density changes, for differences; standard deviations once they are known.
        self.scale = np.maximum(1.0, np.abs(self.start))
        if not math.isfinite(self.value(self.start)):
            raise DataError(f"start: log_density is {self.value(self.start)} there; expected a point of its domain")

    @property
    def has_gradient(self) -> bool:
        """Whether gradients are given and not found by differences."""
        return self._gradient is not None

    def value(self, u: Array) -> float:
        """log p(u); -inf outside of the domain."""
        x = self.layout.parameters(u)
        result = self._called("log_density", self._function, x)
        try:
            value = float(result)
        except (TypeError, ValueError):
            raise DataError(f"log_density: returned {type(result).__name__}; expected one number") from None
        if math.isnan(value) or value == math.inf:
            raise DataError(f"log_density: returned {value} at {_shown(x)}; expected a number, or -inf off its domain")
        return value + self.layout.log_jacobian(u)

    def gradient(self, u: Array) -> Array:
        """The gradient of log p in u."""
        if self._gradient is None:
            return self._differences(u)
        x = self.layout.parameters(u)
        g = self.layout.flat_gradient(u, self._called("gradient", self._gradient, x))
        if not np.isfinite(g).all():
            raise DataError(f"gradient: holds NaN or infinity at {_shown(x)}")
        return g

    def hessian(self, u: Array) -> Array:
        """The matrix of second derivatives of log p in u, symmetric."""
        if self._hessian is not None:
            H = np.asarray(self._called("hessian", self._hessian, self.layout.parameters(u)), dtype=np.float64)
            if H.shape != (self.size, self.size):
                raise DataError(f"hessian: returned shape {H.shape}; expected {(self.size, self.size)}")
            return (H + H.T) / 2
        h = self.scale * (STEP_OF_GRADIENTS if self.has_gradient else STEP_OF_DIFFERENCES)
        H = np.empty((self.size, self.size))
        for j in range(self.size):
            step = np.zeros(self.size)
            step[j] = h[j]
            H[j] = sum(c * (self.gradient(u + k * step) - self.gradient(u - k * step)) for k, c in _STENCIL) / h[j]
        return (H + H.T) / 2

    def _differences(self, u: Array) -> Array:
        g, h = np.empty(self.size), self.scale * STEP_OF_VALUES
        for j in range(self.size):
            step = np.zeros(self.size)
            step[j] = h[j]
            g[j] = sum(c * (self.value(u + k * step) - self.value(u - k * step)) for k, c in _STENCIL) / h[j]
        if not np.isfinite(g).all():
            raise DataError("log_density: is -inf within a step of differences; give its gradient, or constraints")
        return g

    def _called(self, name: str, function: Callable[[Any], Any], x: Any) -> Any:
        try:
            return function(x)
        except Exception as error:
            raise DataError(f"{name}: raised {type(error).__name__}: {error} at {_shown(x)}") from error


class _TorchDensity:
    """A torch function of one tensor, or of a dict of them, as functions of arrays."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._alone = TorchFunction(lambda x: function(x), {})
        self._named = TorchFunction(lambda **x: function(x), {})

    def value(self, x: Any) -> Any:
        return self._named.value(x) if isinstance(x, dict) else self._alone.value({"x": x})

    def gradient(self, x: Any) -> Any:
        if isinstance(x, dict):
            return self._named.value_and_gradient(x)[1]
        return self._alone.value_and_gradient({"x": x})[1]["x"]


class ModelDensity(LogDensity):
    """The density of a model that can also be sampled."""

    def __init__(self, model: Model, start: Any) -> None:
        if start is None:
            start = model.parameters.constrain(np.zeros(model.parameters.size))
        if not isinstance(start, Mapping) or start.keys() != model.parameters.constraints.keys():
            names = list(model.parameters.constraints)
            raise ParameterError(f"start: expected a dict with the parameters {names} of the model, or None")
        self._model = model
        super().__init__(model.value, start, None, None, model.parameters.constraints)

    @property
    def has_gradient(self) -> bool:
        return bool(self._model.has_gradient)

    def value(self, u: Array) -> float:
        value = self._called("log_density", self._model.value, u)
        if math.isnan(value) or value == math.inf:
            raise DataError(f"log_density: returned {value} at {_shown(self.layout.parameters(u))}")
        return float(value)

    def gradient(self, u: Array) -> Array:
        if not self.has_gradient:
            return self._differences(u)
        g = np.asarray(self._called("gradient", self._model.value_and_gradient, u)[1], dtype=np.float64)
        if not np.isfinite(g).all():
            raise DataError(f"gradient: holds NaN or infinity at {_shown(self.layout.parameters(u))}")
        return g


def density_of(function: Any, start: Any, gradient: Any, hessian: Any, constraints: Any) -> LogDensity:
    """The density that a user gave: a function with all that goes with it, or a model that has it all."""
    if not isinstance(function, Model):
        if start is None:
            raise ParameterError("start: not given; a function of its own does not say what its parameters are")
        return LogDensity(function, start, gradient, hessian, constraints)
    for name, value in (("gradient", gradient), ("hessian", hessian), ("constraints", constraints)):
        if value is not None:
            raise ParameterError(f"{name}: is part of the model; expected None")
    return ModelDensity(function, start)


class Layout:
    """Places of the parameters in the vector of unconstrained coordinates."""

    def __init__(self, start: Any, constraints: Any) -> None:
        self.named = isinstance(start, Mapping)
        given = constraints if isinstance(constraints, Mapping) or constraints is None else {"": constraints}
        parts = dict(start) if isinstance(start, Mapping) else {"": start}
        unknown = set(given or {}) - set(parts)
        if unknown:
            raise ParameterError(f"constraints: {sorted(unknown)[0]!r} is no parameter of start")
        found: dict[str, Constraint] = {}
        for name, value in parts.items():
            constraint = (given or {}).get(name)
            array = _array(name, value)
            if constraint is None:
                constraint = Real(array.shape)
            elif not isinstance(constraint, Constraint):
                raise ParameterTypeError(f"constraints: {name!r} has {constraint!r:.60}; expected a Constraint")
            if array.shape != tuple(constraint.shape):
                raise ParameterError(f"start: {name!r} has the shape {array.shape}; its constraint {constraint.shape}")
            if not constraint.contains(array):
                raise ParameterError(f"start: {name!r} is not in the set of {constraint!r}")
            found[name] = constraint
        self._all = Parameters(found)

    @property
    def constrained(self) -> bool:
        """Whether any parameter has a constraint."""
        return bool(self._all.bent)

    def parameters(self, u: Array) -> Any:
        """Parameters of coordinates of shape (..., size): one array, or a dict of them."""
        found = self._all.constrain(u)
        return found if self.named else found[""]

    def coordinates(self, parameters: Any) -> Array:
        """Unconstrained coordinates of one set of parameters."""
        values = dict(parameters) if self.named else {"": parameters}
        return self._all.unconstrain({name: _array(name, values[name]) for name in self._all.constraints})

    def log_jacobian(self, u: Array) -> float:
        """log |det dT/du| at one point."""
        return self._all.log_jacobian(u)

    def flat_gradient(self, u: Array, gradient: Any) -> Array:
        """The gradient in u of log p(T(u)) + log |det dT/du|, from that of log p in the parameters."""
        constraints = self._all.constraints
        if self.named and (not isinstance(gradient, Mapping) or set(gradient) != set(constraints)):
            raise DataError(f"gradient: expected a dict with the keys {sorted(constraints)}")
        parts = {name: np.asarray(gradient[name] if self.named else gradient, dtype=np.float64) for name in constraints}
        for name, part in parts.items():
            if part.shape != constraints[name].shape:
                label = f" of {name!r}" if self.named else ""
                raise DataError(f"gradient: returned shape {part.shape}{label}; expected {constraints[name].shape}")
        return self._all.pull_back(u, parts)

    def labels(self) -> list[str]:
        """A name for every unconstrained coordinate."""
        found = []
        for name, where in self._all.slices.items():
            n = where.stop - where.start
            found += [f"{name}[{i}]" if n > 1 or not name else name for i in range(n)]
        return found


def _array(name: str, value: Any) -> Array:
    label = f"start: {name!r}" if name else "start"
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterTypeError(f"{label}: expected numbers, got {value!r:.60}") from None
    if not np.isfinite(array).all() or not array.size:
        raise ParameterError(f"{label}: is empty or holds NaN or infinity")
    return np.atleast_1d(array) if not name else array


def _shown(x: Any) -> str:
    text = np.array2string(x, threshold=6, precision=4) if isinstance(x, np.ndarray) else repr(x)
    return text if len(text) < 120 else f"{text[:117]}..."
