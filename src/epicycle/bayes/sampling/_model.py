"""Models to sample from:  log p(x), x = (x_1, ..., x_k) under constraints, up to a constant.

Users write log p in the constrained x. Samplers see log p(T(u)) + log |det dT/du| in the unconstrained u, whose
gradient follows by the chain rule from the gradient in x.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from epicycle._native import bayes as native
from epicycle.bayes.sampling._constraints import Constraint, Real
from epicycle.bayes.sampling._torch import TorchFunction
from epicycle.core._exceptions import DataError, ParameterError, ParameterTypeError

Array = np.ndarray


class Parameters:
    """Named parameters laid out one after the other in a vector of unconstrained coordinates."""

    def __init__(self, constraints: Mapping[str, Constraint]) -> None:
        self.constraints = dict(constraints)
        #: Those that are not the whole space, and have a Jacobian.
        self.bent = [name for name, c in self.constraints.items() if not isinstance(c, Real)]
        ends = np.cumsum([c.size for c in self.constraints.values()], dtype=int)
        self.size = int(ends[-1]) if len(ends) else 0
        self.slices = {
            name: slice(int(end) - c.size, int(end))
            for (name, c), end in zip(self.constraints.items(), ends, strict=True)
        }

    def constrain(self, u: Array) -> dict[str, Array]:
        """The parameters at coordinates of shape (..., size)."""
        return {name: c.constrain(u[..., self.slices[name]]) for name, c in self.constraints.items()}

    def unconstrain(self, values: Mapping[str, Any]) -> Array:
        """The coordinates of one point."""
        return np.concatenate([c.unconstrain(np.asarray(values[name])) for name, c in self.constraints.items()])

    def log_jacobian(self, u: Array) -> float:
        """log |det dx/du| at one point."""
        return float(sum(self.constraints[name].log_jacobian(u[self.slices[name]]) for name in self.bent))

    def pull_back(self, u: Array, gradients: Mapping[str, Array]) -> Array:
        """The gradient in u, that of the Jacobian included, from the gradients in x."""
        parts = [c.pull_back(u[self.slices[name]], gradients[name]) for name, c in self.constraints.items()]
        return np.concatenate(parts)

    def coordinate(self, index: int) -> str:
        """The name of a coordinate, for messages."""
        name = next(name for name, where in self.slices.items() if where.start <= index < where.stop)
        where = self.slices[name]
        return name if where.stop - where.start == 1 else f"{name} (coordinate {index - where.start})"


class Model:
    """A log-density with named parameters.

    Parameters
    ----------
    log_density : callable
        ``log_density(**parameters, **data)``: the logarithm of the density up to a constant, at parameters that satisfy
        their constraints. Jacobians are added by the sampler.
    parameters : mapping of str to Constraint, int or tuple
        The parameters and the sets they lie in, such as ``{"mu": Real(), "sigma": Positive()}``; a shape alone is
        real.
    gradient : callable, True, "torch" or None
        ``gradient(**parameters, **data)`` gives the partial derivatives, in a mapping by name or in a sequence in the
        order of the parameters. True: `log_density` returns its value and these. "torch": `log_density` is a
        function or module of torch, and is differentiated by it. None: there is no gradient, and only ``"metropolis"``,
        ``"slice"`` and ``"gibbs"`` can sample.
    data : mapping, optional
        Further arguments of the functions; they do not appear among the draws.
    derived : callable, optional
        ``derived(**parameters, **data)`` gives a mapping of further quantities, which are kept with the draws.
    conditionals : mapping of str or tuple of str to callable, optional
        For Gibbs sampling: ``f(rng, **parameters, **data)`` draws these parameters given all others; of one parameter
        it returns the value, of several a sequence of them.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import bayes
    >>> def log_density(mu, sigma, y):
    ...     return -len(y) * np.log(sigma) - np.sum((y - mu) ** 2) / (2 * sigma**2) - mu**2 / 200 - sigma
    >>> def gradient(mu, sigma, y):
    ...     r = y - mu
    ...     return r.sum() / sigma**2 - mu / 100, -len(y) / sigma + r @ r / sigma**3 - 1
    >>> model = bayes.Model(
    ...     log_density,
    ...     {"mu": bayes.Real(), "sigma": bayes.Positive()},
    ...     gradient=gradient,
    ...     data={"y": np.array([1.1, 2.3, 1.7, 0.4])},
    ... )
    >>> draws = bayes.sample(model, draws=1000, target_accept=0.95, random_state=0)
    >>> draws["sigma"].shape, bool((draws["sigma"] > 0).all())
    ((4, 1000), True)
    """

    def __init__(
        self,
        log_density: Callable[..., Any],
        parameters: Mapping[str, Constraint | int | tuple[int, ...]],
        *,
        gradient: Callable[..., Any] | bool | str | None = None,
        data: Mapping[str, Any] | None = None,
        derived: Callable[..., Mapping[str, Any]] | None = None,
        conditionals: Mapping[str | tuple[str, ...], Callable[..., Any]] | None = None,
    ) -> None:
        if not callable(log_density):
            raise ParameterTypeError(f"log_density={log_density!r:.60}; expected a function")
        if not (gradient is None or gradient is True or gradient == "torch" or callable(gradient)):
            raise ParameterError(f"gradient={gradient!r:.60}; expected a function, True, 'torch' or None")
        if derived is not None and not callable(derived):
            raise ParameterTypeError(f"derived={derived!r:.60}; expected a function or None")
        self.parameters = Parameters(_constraints(parameters))
        self.data = dict(data or {})
        if shared := self.data.keys() & self.parameters.constraints.keys():
            raise ParameterError(f"data: {sorted(shared)!r} are names of parameters too")
        self.conditionals = _blocks(conditionals or {}, self.parameters.constraints)
        self._log_density, self._gradient, self._derived = log_density, gradient, derived
        self.n_nan = 0  # evaluations that gave nan, which samplers take for no density
        self._torch = TorchFunction(log_density, self.data) if gradient == "torch" else None

    @property
    def has_gradient(self) -> bool:
        """Whether samplers that need a gradient can be used."""
        return self._gradient is not None

    def density(self) -> Any:
        """The compiled object that a chain calls, in unconstrained coordinates."""
        function = self.value_and_gradient if self.has_gradient else self.value
        return native.PythonDensity(function, self.parameters.size, self.has_gradient)

    def derived(self, draws: Mapping[str, Array]) -> dict[str, Array]:
        """Derived quantities of draws of shape (n_chains, n_draws, ...)."""
        if self._derived is None:
            return {}
        m, n = next(iter(draws.values())).shape[:2]
        rows = [
            self._derived(**{name: x[i, j] for name, x in draws.items()}, **self.data)
            for i in range(m)
            for j in range(n)
        ]
        for row in rows:
            if not isinstance(row, Mapping):
                raise ParameterTypeError(f"derived: returned {type(row).__name__}; expected a mapping by name")
        names = list(rows[0]) if rows else []
        if taken := set(names) & set(draws):
            raise ParameterError(f"derived: {sorted(taken)!r} are names of parameters too")
        stacked = {name: np.array([row[name] for row in rows], dtype=np.float64) for name in names}
        return {name: x.reshape(m, n, *x.shape[1:]) for name, x in stacked.items()}

    # -------------------------------------------------------------------------------- in unconstrained coordinates

    def value(self, u: Array) -> float:
        """The log-density at unconstrained coordinates."""
        x = self.parameters.constrain(u)
        return self._noted(self._value_at(x) + self.parameters.log_jacobian(u))

    def value_and_gradient(self, u: Array) -> tuple[float, Array]:
        """The log-density at unconstrained coordinates, and its gradient there."""
        x = self.parameters.constrain(u)
        if callable(self._gradient):
            value, parts = self._value_at(x), self._gradient(**x, **self.data)
        elif self._torch is not None:
            result, parts = self._torch.value_and_gradient(x)
            value = _number(result)
        else:
            value, parts = self._pair(self._log_density(**x, **self.data))
        gradient = self.parameters.pull_back(u, self._partials(parts))
        return self._noted(value + self.parameters.log_jacobian(u)), gradient

    def _noted(self, value: float) -> float:
        if value != value:
            self.n_nan += 1
        return value

    def _value_at(self, x: dict[str, Array]) -> float:
        if self._torch is not None:
            return _number(self._torch.value(x))
        result = self._log_density(**x, **self.data)
        return self._pair(result)[0] if self._gradient is True else _number(result)

    @staticmethod
    def _pair(result: Any) -> tuple[float, Any]:
        if not isinstance(result, tuple) or len(result) != 2:
            raise ParameterError("log_density: with gradient=True it returns a pair, its value and the gradient")
        return _number(result[0]), result[1]

    def _partials(self, parts: Any) -> dict[str, Array]:
        """The partial derivatives by name, with the shapes of the parameters."""
        constraints = self.parameters.constraints
        if not isinstance(parts, Mapping):
            if len(constraints) == 1 and not isinstance(parts, tuple | list):
                parts = (parts,)
            if not isinstance(parts, tuple | list) or len(parts) != len(constraints):
                raise ParameterError(f"gradient: expected one part for each of {list(constraints)!r}")
            parts = dict(zip(constraints, parts, strict=True))
        if parts.keys() != constraints.keys():
            raise ParameterError(f"gradient: has parts {sorted(parts)!r}; expected {sorted(constraints)!r}")
        found = {name: np.asarray(part, dtype=np.float64) for name, part in parts.items()}
        for name, part in found.items():
            if part.shape != constraints[name].shape:
                raise ParameterError(
                    f"gradient: shape {part.shape} for {name!r}; expected {constraints[name].shape}, as the parameter"
                )
        return found


def _number(value: Any) -> float:
    try:
        found = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterTypeError(f"log_density: returned {value!r:.60}; expected a number") from None
    if found.ndim == 0:
        return float(found)
    if found.size != 1:
        raise ParameterError(f"log_density: returned an array of shape {found.shape}; expected a number")
    return float(found.reshape(()))


def _constraints(parameters: Any) -> dict[str, Constraint]:
    if not isinstance(parameters, Mapping) or not parameters:
        raise ParameterTypeError(f"parameters={parameters!r:.60}; expected a mapping of names to constraints")
    found = {}
    for name, constraint in parameters.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise ParameterError(f"parameters: name {name!r}; expected a name that can be an argument of a function")
        found[name] = constraint if isinstance(constraint, Constraint) else Real(constraint)
    return found


def _blocks(conditionals: Any, known: Mapping[str, Constraint]) -> dict[tuple[str, ...], Callable[..., Any]]:
    if not isinstance(conditionals, Mapping):
        raise ParameterTypeError(f"conditionals={conditionals!r:.60}; expected a mapping of names to functions")
    blocks = {(key,) if isinstance(key, str) else tuple(key): f for key, f in conditionals.items()}
    for names, function in blocks.items():
        if unknown := [name for name in names if name not in known]:
            raise DataError(f"conditionals: {unknown!r} are no parameters; expected some of {list(known)!r}")
        if not callable(function):
            raise ParameterTypeError(f"conditionals: {function!r:.60} for {names!r}; expected a function")
    return blocks
