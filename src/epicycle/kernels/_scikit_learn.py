"""Kernels of :mod:`sklearn.gaussian_process.kernels`, with their theta, bounds, derivatives and noise.

Such a kernel may hold a white noise: k(x_i, x_i) of a row with itself is larger than k(x_i, x_j) of an equal one. That
is why the matrix of rows with themselves comes from the kernel as a whole, and why equal rows are never merged.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Literal, NoReturn

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError, ParameterError, ParameterTypeError
from epicycle.kernels._given import PlainRows
from epicycle.kernels._kernel import Hyperparameter, Kernel, checked_theta

Array = np.ndarray
_MODULE = "sklearn.gaussian_process.kernels"
_WIDEST = math.log(1e300)  # in the place of a bound that is not finite

#: Classes of that module that stand for a kernel with its default values where their name is given.
SCIKIT_LEARN_NAMES = (
    *("RBF", "Matern", "RationalQuadratic", "ExpSineSquared", "DotProduct", "ConstantKernel", "WhiteKernel"),
)


def is_scikit_learn_kernel(value: Any) -> bool:
    """Whether it is an object of a kernel class of scikit-learn; its module is not imported to find out."""
    module = sys.modules.get(_MODULE)
    return module is not None and isinstance(value, module.Kernel)


def named_kernel(name: str) -> ScikitLearnKernel:
    """A kernel of scikit-learn by the name of its class, with its default values."""
    return ScikitLearnKernel(getattr(import_module(_MODULE), name)())


@dataclass(frozen=True, repr=False)
class ScikitLearnKernel(Kernel):
    """A kernel of scikit-learn: its values, derivatives, `theta` and `bounds` are that kernel's own.

    Attributes that kernels of scikit-learn have (``k1``, ``length_scale``, ``get_params()``) are those of `kernel`.

    Parameters
    ----------
    kernel : object of a class of :mod:`sklearn.gaussian_process.kernels`, or of a subclass of its ``Kernel``
    """

    kernel: Any

    #: A row may have a noise of its own, so that equal rows are not one.
    keeps_equal_rows: ClassVar[bool] = True
    mercer: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not is_scikit_learn_kernel(self.kernel):
            raise ParameterTypeError(f"kernel: {self.kernel!r:.80}; expected a kernel of scikit-learn")
        if isinstance(self.kernel, sys.modules[_MODULE].CompoundKernel):
            raise ParameterError(
                "kernel: kernel cannot be a CompoundKernel, because it gives several matrices; expected a single kernel"
            )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "kernel":
            raise AttributeError(name)
        return getattr(self.kernel, name)

    # ------------------------------------------------------------------------------------------- evaluation

    @property
    def takes(self) -> Literal["vectors", "strings", "precomputed"]:  # type: ignore[override]
        return "strings" if _has_structured_part(self.kernel) else "vectors"

    def prepare(self, X: Any, like: PlainRows | None = None) -> PlainRows:
        if like is not None and X.shape[1:] != like.rows.shape[1:]:
            raise DataError(f"X: has {X.shape[1]} columns; expected {like.rows.shape[1]}, as the rows compared with")
        rows = X.toarray() if sp.issparse(X) else X
        return PlainRows(rows if rows.dtype == object else np.asarray(rows, dtype=np.float64))

    def _checked(self, K: Any, shape: tuple[int, int]) -> Array:
        values = np.array(K, dtype=np.float64, order="C")
        if values.shape != shape:
            raise DataError(f"kernel: {self.kernel!r:.60} gave shape {values.shape}; expected {shape}")
        return values

    def block(self, A: PlainRows, B: PlainRows) -> Array:
        return self._checked(self.kernel(A.rows, B.rows), (A.n_rows, B.n_rows))

    def whole_matrix(self, A: PlainRows) -> Array:
        return self._checked(self.kernel(A.rows), (A.n_rows, A.n_rows))

    def prepared_diagonal(self, A: PlainRows) -> Array:
        return np.array(self.kernel.diag(A.rows), dtype=np.float64)

    def features(self, A: Any, B: Any) -> tuple[Any, Any]:
        raise ParameterTypeError(f"{self.kernel!r:.60} has no finite feature map; use Nystroem")

    # ------------------------------------------------------------------------------------------- hyper-parameters

    @property
    def hyperparameters(self) -> tuple[Hyperparameter, ...]:
        values = self.kernel.get_params()
        found = []
        for h in self.kernel.hyperparameters:
            own = tuple(np.atleast_1d(np.asarray(values[h.name], dtype=np.float64)).tolist())
            pairs = None if h.fixed else np.atleast_2d(np.asarray(h.bounds, dtype=np.float64))
            bounds = None if pairs is None else (float(pairs[:, 0].min()), float(pairs[:, 1].max()))
            found.append(Hyperparameter(h.name, own, bounds))
        return tuple(found)

    @property
    def theta(self) -> Array:
        return np.asarray(self.kernel.theta, dtype=np.float64)

    @property
    def bounds(self) -> Array:
        """Logarithms of the bounds, as scikit-learn gives them."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.kernel.bounds, dtype=np.float64).reshape(-1, 2)

    @property
    def theta_bounds(self) -> Array:
        low, high = self.bounds.T
        low = np.where(np.isfinite(low), low, -_WIDEST)
        return np.column_stack([low, np.where(np.isfinite(high), high, _WIDEST)])

    def with_theta(self, theta: Any) -> ScikitLearnKernel:
        return ScikitLearnKernel(self.kernel.clone_with_theta(checked_theta(self, theta)))

    def _all_gradients(self, A: PlainRows) -> Array:
        """dK / d theta, of shape (n, n, n_theta)."""
        if not len(self.theta):
            return np.empty((A.n_rows, A.n_rows, 0))
        G = np.asarray(self.kernel(A.rows, eval_gradient=True)[1], dtype=np.float64)
        if G.shape != (A.n_rows, A.n_rows, len(self.theta)):
            raise DataError(
                f"kernel: {self.kernel!r:.60} gave derivatives of shape {G.shape}; expected "
                f"{(A.n_rows, A.n_rows, len(self.theta))}"
            )
        return G

    def gradients(self, A: PlainRows) -> Iterator[Array]:
        G = self._all_gradients(A)
        for t in range(G.shape[2]):
            yield np.ascontiguousarray(G[:, :, t])

    def _gradients_between(self, A: PlainRows, rows: Array, cols: Array) -> Array:
        """Of some rows against others, of which some may be the same: there the noise has its derivative."""
        together, place = np.unique(np.concatenate([rows, cols]), return_inverse=True)
        G = self._all_gradients(A.take(together))
        return np.asarray(G[np.ix_(place[: len(rows)], place[len(rows) :])])

    def contract_between(self, A: PlainRows, rows: Array, cols: Array, W: Array, K: Array | None = None) -> Array:
        return np.asarray(np.einsum("ijt,ij->t", self._gradients_between(A, rows, cols), W))

    def gradients_times(self, A: PlainRows, rows: Array, cols: Array, V: Array, K: Array | None = None) -> Array:
        return np.asarray(np.einsum("ijt,jk->tik", self._gradients_between(A, rows, cols), V))

    def at_bounds(self) -> list[str]:
        """A sentence, in scikit-learn's words, for every hyper-parameter that is at an end of its interval."""
        close = np.isclose(self.bounds, self.theta[:, None])
        words, start = [], 0
        for h in self.kernel.hyperparameters:
            if h.fixed:
                continue
            for d in range(h.n_elements):
                ends = [side for side in (0, 1) if close[start + d, side]]
                if ends:
                    side, change = ("lower", "Decreasing") if ends[0] == 0 else ("upper", "Increasing")
                    words.append(
                        f"The optimal value found for dimension {d} of parameter {h.name} is close to the specified "
                        f"{side} bound {h.bounds[d][ends[0]]}. {change} the bound and calling fit again may find a "
                        "better value."
                    )
            start += h.n_elements
        return words

    # ------------------------------------------------------------------------------------------- algebra

    def __add__(self, other: Any) -> ScikitLearnKernel:
        return ScikitLearnKernel(self.kernel + _theirs(other))

    def __radd__(self, other: Any) -> ScikitLearnKernel:
        return ScikitLearnKernel(_theirs(other) + self.kernel)

    def __mul__(self, other: Any) -> ScikitLearnKernel:
        return ScikitLearnKernel(self.kernel * _theirs(other))

    def __rmul__(self, other: Any) -> ScikitLearnKernel:
        return ScikitLearnKernel(_theirs(other) * self.kernel)

    def __pow__(self, exponent: Any) -> ScikitLearnKernel:
        return ScikitLearnKernel(self.kernel**exponent)

    def normalized(self) -> NoReturn:
        raise ParameterTypeError(f"kernel: {self.kernel!r:.60} is one of scikit-learn's and cannot be normalized")

    def __repr__(self) -> str:
        return repr(self.kernel)


def _theirs(value: Any) -> Any:
    """An operand beside a kernel of scikit-learn."""
    if isinstance(value, ScikitLearnKernel):
        return value.kernel
    if isinstance(value, Kernel):
        raise ParameterTypeError(
            f"kernel: {value!r:.80}; expected a kernel of scikit-learn or a number beside another of scikit-learn"
        )
    return value


def _has_structured_part(kernel: Any) -> bool:
    """Whether a part of it compares other things than vectors; constants and noise take any rows."""
    if kernel.requires_vector_input:
        return False
    module = sys.modules[_MODULE]
    parts = [part for name in ("k1", "k2", "kernel") if isinstance(part := getattr(kernel, name, None), module.Kernel)]
    if parts:
        return any(_has_structured_part(part) for part in parts)
    return not isinstance(kernel, module.ConstantKernel | module.WhiteKernel)
