"""Common parts of learners of dictionaries: the start, the sums of a round, and what could still be gained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from epicycle import engine
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._memory import require_memory
from epicycle.core._parameters import ArrayLike, Boolean, Callable, Choice, Domain, Integer, NoneOr, Real
from epicycle.core._random import stream
from epicycle.data import Data
from epicycle.decomposition._row_factors import RowFactors
from epicycle.decomposition.dictionary._atoms import coded, drawn_atom, fit_of, inside, swept
from epicycle.decomposition.dictionary._base import SparseCoding
from epicycle.decomposition.nmf._starts import require_extent
from epicycle.decomposition.pca._spectrum import by_products
from epicycle.linalg._signs import oriented
from epicycle.stats._moments import refuse_non_finite

_RESIDUAL, _PRODUCTS = 1e-6, 30  # of the singular vectors to start from


@dataclass(frozen=True)
class Sums:
    """Of a round: gaps of the codes, half squares of the rows, |c|, A = C'VC and B = C'VX."""

    gap: float
    squares: float
    size: float
    A: np.ndarray
    B: np.ndarray

    def value(self, D: np.ndarray, alpha: float) -> float:
        return max(self.squares + fit_of(self.A, self.B, D), 0.0) + alpha * self.size


class DictionaryLearner(SparseCoding):
    """Base of learners of dictionaries."""

    _docs: ClassVar[Mapping[str, str]] = {
        "alpha": "alpha : float, default={default}\n    Penalty of the codes.",
        "fit_algorithm": 'fit_algorithm : {"lars", "cd"}, default={default}\n'
        "    Accepted for compatibility: both stand for the optimum of the lasso, found by coordinate descent on"
        '\n    the Gram matrix of the atoms. With "lars" `positive_code` is refused, as in scikit-learn.',
        "dict_init": "dict_init : array-like of shape (n_components, n_features) or None, default={default}\n"
        "    Atoms to start from; None starts from the leading singular vectors, and from rows where more are wanted.",
        "components_": "components_ : ndarray of shape (n_components, n_features)\n    Atoms.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("components_",)
    _parameters: ClassVar[Mapping[str, Domain]] = {
        **SparseCoding._parameters,
        "n_components": NoneOr(Integer(minimum=1)),
        "alpha": Real(minimum=0),
        "tol": Real(minimum=0),
        "fit_algorithm": Choice("lars", "cd"),
        "dict_init": NoneOr(ArrayLike()),
        "callback": NoneOr(Callable()),
        "positive_dict": Boolean(),
    }

    n_components: int | None
    alpha: float
    dict_init: Any
    positive_dict: bool
    components_: np.ndarray

    def _extent(self, data: Data) -> tuple[int, float]:
        """(rows, their weight); what leaves floating point is refused."""
        refuse_non_finite(data)
        n, weight, largest = engine.sum(extent_of_batch, data, n_jobs=self.n_jobs)
        require_extent(weight, largest.value)
        return n, weight

    def _gain(self, rows: RowFactors, D: np.ndarray, tolerance: float) -> tuple[float, Certificate]:
        """(the objective with codes for these atoms, what the two halves could still gain)."""
        alpha = float(self.alpha)
        sums = Sums(*rows.step(coded, D, alpha, bool(self.positive_code), int(self.transform_max_iter)))
        value = sums.value(D, alpha)
        moved = swept(sums.A, sums.B, D, bool(self.positive_dict), 1)
        gain = max(value - sums.value(moved, alpha), 0.0)
        return value, gap_certificate(sums.gap, gain, value, tolerance)

    # ------------------------------------------------------------------------------------------- start

    def _first_atoms(self, data: Data, n: int, seed: int) -> np.ndarray:
        """The atoms to start from."""
        p = data.n_features
        k = p if self.n_components is None else int(self.n_components)
        require_memory(8.0 * k * (n + p + k), f"{k} atoms and their codes", "lower n_components")
        if self.dict_init is not None:
            atoms = given_array(self.dict_init, (k, p), "dict_init")
            return np.array([inside(d, bool(self.positive_dict)) for d in atoms])
        return self._drawn(data, k, min(n, p), seed)

    def _drawn(self, data: Data, k: int, most: int, seed: int) -> np.ndarray:
        """The leading singular vectors, and rows of the data where more atoms are wanted."""
        positive, rng = bool(self.positive_dict), stream(seed, "dictionary")
        found = by_products(
            data,
            min(k, most),
            rng,
            tol=_RESIDUAL,
            max_products=_PRODUCTS,
            n_more=10,
            centred=False,
            n_jobs=self.n_jobs,
        )
        axes = np.abs(found.axes) if positive else oriented(found.axes.T).T
        head = data.head().X
        more = [drawn_atom(head, positive, seed, 0, j) for j in range(len(axes), k)]
        return np.vstack([axes[:k], *more]) if more else axes[:k].copy()

    # ------------------------------------------------------------------------------------------- use of a fit

    def _atoms(self, n_features: int) -> np.ndarray:
        return np.ascontiguousarray(self.components_, dtype=np.float64)

    def _alpha(self) -> float | None:
        return float(self.alpha) if self.transform_alpha is None else self.transform_alpha

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


class _Largest:
    """The largest entry; the sum of two is that of all their entries."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __add__(self, other: _Largest) -> _Largest:
        return _Largest(max(self.value, other.value))


def extent_of_batch(batch: Any) -> tuple[int, float, _Largest]:
    """(rows, weight, largest entry)."""
    values = batch.X.data if hasattr(batch.X, "indptr") else batch.X
    return batch.n_rows, batch.total_weight, _Largest(float(np.abs(values).max(initial=0.0)))


def given_array(A: Any, shape: tuple[int, int], name: str) -> np.ndarray:
    """An array that the user gives, checked."""
    found = np.array(A, dtype=np.float64)
    if found.shape != shape:
        raise DataError(f"{name}: shape {found.shape}; expected {shape}")
    if not np.isfinite(found).all():
        raise DataError(f"{name}: NaN or infinity; expected finite numbers")
    return found


def gap_certificate(gap: float, gain: float, value: float, tolerance: float) -> Certificate:
    """The possible gain of the two halves, as a certificate."""
    left = (gap + gain) / value if value > 0 else 0.0
    words = (
        "given the atoms the codes are optimal, and one more sweep would not move the atoms: together they would gain "
        "this share of the objective; no proof of a global optimum"
    )
    return Certificate("duality gap and gain", left, tolerance, words)
