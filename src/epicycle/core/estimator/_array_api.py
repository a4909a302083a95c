"""Arrays of other libraries (PyTorch, CuPy, ...) where scikit-learn's ``array_api_dispatch`` is on.

Fits and answers are computed by the processor, in NumPy and native code: arguments become NumPy arrays on the way in,
and answers arrays of the library and on the device of X on the way out. Fitted attributes stay NumPy arrays, so that a
model can be saved, and answers for arrays of any library.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.utils._array_api import _convert_to_numpy, get_namespace_and_device

__all__ = ["dispatch_answers", "numpy_arguments"]

ANSWERS = (
    *("fit_predict", "fit_transform", "predict", "predict_proba", "predict_log_proba", "decision_function"),
    *("transform", "inverse_transform", "score", "score_samples"),
)


def numpy_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments with NumPy arrays in the place of arrays of other libraries, where dispatch is on."""
    if not get_config()["array_api_dispatch"]:
        return args, kwargs
    return tuple(map(_numpy, args)), {name: _numpy(value) for name, value in kwargs.items()}


def dispatch_answers(cls: type) -> None:
    """Let the methods of `cls` that give answers take arrays of other libraries, and answer with such."""
    for name in ANSWERS:
        method: Any = vars(cls).get(name)
        if hasattr(method, "fn"):  # scikit-learn's available_if
            method.fn = _dispatched(method.fn)
        elif callable(method) and not getattr(method, "__isabstractmethod__", False):
            setattr(cls, name, _dispatched(method))


def _dispatched(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def answer(self: Any, *args: Any, **kwargs: Any) -> Any:
        X = args[0] if args else kwargs.get("X")
        args, kwargs = numpy_arguments(args, kwargs)
        found = method(self, *args, **kwargs)
        foreign = _is_foreign(X) and get_config()["array_api_dispatch"]
        return _like(found, *get_namespace_and_device(X)[::2]) if foreign else found

    return answer


def _is_foreign(value: Any) -> bool:
    """Whether a value is an array of another library that is there already, not a plan of Dask."""
    if isinstance(value, np.ndarray | np.generic) or sp.issparse(value) or hasattr(value, "dask"):
        return False
    # Arrays of PyTorch name no namespace themselves.
    return hasattr(value, "__array_namespace__") or (hasattr(value, "__dlpack__") and hasattr(value, "dtype"))


def _numpy(value: Any) -> Any:
    return _convert_to_numpy(value, get_namespace_and_device(value)[0]) if _is_foreign(value) else value


def _like(found: Any, xp: Any, device: Any) -> Any:
    """Arrays of numbers as arrays of a library on a device; all else as it is."""
    if isinstance(found, tuple):
        return tuple(_like(part, xp, device) for part in found)
    is_numeric = isinstance(found, np.ndarray) and found.dtype.kind in "fiub"
    return xp.asarray(np.ascontiguousarray(found), device=device) if is_numeric else found
