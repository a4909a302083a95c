"""Log-densities of torch: functions or modules of tensors, differentiated by it. Nothing here is loaded with torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from epicycle.core._checks import optional_import
from epicycle.core._exceptions import ParameterTypeError

Array = np.ndarray


class TorchFunction:
    """A scalar function of named tensors, called with arrays in double precision."""

    def __init__(self, function: Callable[..., Any], data: Mapping[str, Any]) -> None:
        self._torch = optional_import("torch", "gradient='torch'")
        self._function = function
        self._data = {name: self._tensor(value) for name, value in data.items()}

    def value(self, x: Mapping[str, Array]) -> Any:
        """The value alone."""
        with self._torch.no_grad():
            return self._number(self._function(**self._tensors(x), **self._data))

    def value_and_gradient(self, x: Mapping[str, Array]) -> tuple[Any, dict[str, Array]]:
        """The value, and the partial derivatives by name; 0 of a parameter that the function leaves out."""
        leaves = {name: tensor.requires_grad_() for name, tensor in self._tensors(x).items()}
        with self._torch.enable_grad():
            result = self._function(**leaves, **self._data)
            value = self._number(result)
            if not result.requires_grad:  # a constant, or -inf where no parameter enters
                return value, {name: np.zeros(tuple(leaf.shape)) for name, leaf in leaves.items()}
            found = self._torch.autograd.grad(result.sum(), list(leaves.values()), allow_unused=True)
        parts = {
            name: np.zeros(tuple(leaf.shape)) if g is None else g.detach().cpu().numpy()
            for (name, leaf), g in zip(leaves.items(), found, strict=True)
        }
        return value, parts

    def _tensors(self, x: Mapping[str, Array]) -> dict[str, Any]:
        return {name: self._tensor(value) for name, value in x.items()}

    def _number(self, result: Any) -> Any:
        if not isinstance(result, self._torch.Tensor):
            raise ParameterTypeError(f"log_density: returned {type(result).__name__}; expected a tensor of one number")
        return result.detach().cpu().numpy()

    def _tensor(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray | np.generic):
            return value
        array = np.asarray(value)
        wide = array.astype(np.float64) if array.dtype.kind == "f" else array
        # A copy: torch may not write to what numpy holds read-only, and says so.
        return self._torch.as_tensor(np.array(wide, order="C").reshape(array.shape))
