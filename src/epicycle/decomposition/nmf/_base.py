"""Common parts of full-batch and mini-batch factorisations."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from epicycle.core._checks import require_columns
from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.core._parameters import AnyOf, Choice, Domain, Integer, NoneOr, Real
from epicycle.core.estimator._estimator import Estimator
from epicycle.data import Data
from epicycle.decomposition._components import ComponentsOut
from epicycle.decomposition.nmf._divergence import NAMES, FactorPenalty, beta_of
from epicycle.decomposition.nmf._multiplicative import Divergence
from epicycle.decomposition.nmf._starts import Extent, balanced, starting_factors

NO_PROOF = "no proof of a global optimum"
MEANING = f"projected gradient of both factors relative to that at the start: a stationary point; {NO_PROOF}"


class NonNegativeFactors(ComponentsOut, Estimator):
    """Base of the non-negative factorisations."""

    _docs: ClassVar[Mapping[str, str]] = {
        "n_components": 'n_components : int, "auto" or None, default={default}\n'
        '    k; "auto" takes that of a custom start, and otherwise, like None, as many as features.',
        "init": 'init : {{"random", "nndsvd", "nndsvda", "nndsvdar", "custom"}} or None, default={default}\n'
        "    Start: drawn; singular vectors with their zeros (nndsvd), with zeros replaced by the mean of X (nndsvda) "
        "or by\n    small random numbers (nndsvdar); W and H of `fit` (custom). None: nndsvda where there are as many "
        "singular\n    vectors, otherwise random.".replace("{{", "{").replace("}}", "}"),
        "beta_loss": 'beta_loss : float or {"frobenius", "kullback-leibler", "itakura-saito"}, default={default}\n'
        "    The divergence d, or its exponent (2, 1, 0). With exponents up to 0 no entry of X may be zero.",
        "alpha_W": "alpha_W : float, default={default}\n    Strength of the penalty of W.",
        "alpha_H": 'alpha_H : float or "same", default={default}\n    Strength of the penalty of H.',
        "l1_ratio": "l1_ratio : float, default={default}\n    Share of the absolute values in the penalties.",
        "W": 'W : array-like of shape (n_samples, n_components), optional\n    Start, with `init="custom"`.',
        "H": 'H : array-like of shape (n_components, n_features), optional\n    Start, with `init="custom"`.',
        "components_": "components_ : ndarray of shape (n_components, n_features)\n    H.",
        "n_components_": "n_components_ : int\n    k.",
        "reconstruction_err_": "reconstruction_err_ : float\n    sqrt(2 d): for squared distances |X - WH|.",
        "fit_transform_returns": "array of shape (n_samples, n_components)",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("components_", "n_components_", "reconstruction_err_")
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_components": NoneOr(AnyOf(Choice("auto"), Integer(minimum=1))),
        "init": NoneOr(Choice("random", "nndsvd", "nndsvda", "nndsvdar", "custom")),
        "beta_loss": AnyOf(Choice(*NAMES), Real()),
        "alpha_W": Real(minimum=0),
        "alpha_H": AnyOf(Choice("same"), Real(minimum=0)),
        "l1_ratio": Real(0, 1),
        "tol": Real(minimum=0),
    }

    n_components: Any
    init: Any
    beta_loss: Any
    alpha_W: float  # noqa: N815
    alpha_H: Any  # noqa: N815
    l1_ratio: float
    random_state: Any
    n_jobs: int | None

    n_components_: int
    reconstruction_err_: float
    _mean_: float
    _fixed_tags: ClassVar[Mapping[str, Any]] = {
        "input_tags.positive_only": True,
        "transformer_tags.preserves_dtype": ["float64", "float32"],
    }

    @abstractmethod
    def _fit(self, X: Any, sample_weight: Any, W: Any, H: Any) -> Any:
        """Fit, and return W, or None where it is on a cluster."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, W: Any = None, H: Any = None) -> Self:
        """Find the factors of rows X, which have no entry below zero."""
        self._fit(X, sample_weight, W, H)
        return self

    def fit_transform(self, X: Any, y: Any = None, W: Any = None, H: Any = None, sample_weight: Any = None) -> Any:
        """Fit to rows X, and return W."""
        found = self._fit(X, sample_weight, W, H)
        return self.transform(X) if found is None else found

    @abstractmethod
    def transform(self, X: Any) -> Any:
        """W of rows X for the components of the fit."""

    def inverse_transform(self, X: Any) -> Any:
        """The approximations WH.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_components)
            W.

        Returns
        -------
        array of shape (n_samples, n_features)
        """
        self._check_fitted()
        W = X if sp.issparse(X) else np.asarray(X)
        return require_columns(W, len(self.components_), "component") @ self.components_

    @property
    def _n_components(self) -> int:
        """The number that scikit-learn's tests of n_components='auto' read."""
        return self.n_components_

    # ------------------------------------------------------------------------------------------- start and objective

    def _penalties(self, weight: float) -> tuple[FactorPenalty, FactorPenalty]:
        """Of W for each row, and of H, for rows of this weight in all."""
        alpha_W = float(self.alpha_W)
        alpha_H = alpha_W if isinstance(self.alpha_H, str) else float(self.alpha_H)
        p, l1 = self.n_features_in_, float(self.l1_ratio)
        return (
            FactorPenalty(p * alpha_W * l1, p * alpha_W * (1 - l1)),
            FactorPenalty(weight * alpha_H * l1, weight * alpha_H * (1 - l1)),
        )

    def _divergence(self, k: int) -> Divergence:
        mean = self._mean_ or 1.0
        return Divergence(beta_of(self.beta_loss), float(np.finfo(np.float32).eps) * mean, float(np.sqrt(mean / k)))

    def _start(self, data: Data, extent: Extent, W: Any, H: Any, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """(W, H') to start from, in float64 and not the caller's own arrays."""
        n, p = extent.n_rows, extent.n_features
        k = self.n_components
        if self.init == "custom":
            H = checked_factor(H, (k, p), "H", data.dtype)
            W = checked_factor(W, (n, len(H)), "W", data.dtype)
            return W.copy(), np.ascontiguousarray(H.T)
        if W is not None or H is not None:
            warnings.warn(
                "When init!='custom', provided W or H are ignored. Set init='custom' to start from them.",
                RuntimeWarning,
                stacklevel=4,
            )
        k = p if k in (None, "auto") else int(k)
        return balanced(data, *starting_factors(data, extent, k, self.init, seed, self.n_jobs), self.n_jobs)

    def _refuse_zeros(self, extent: Extent) -> None:
        if beta_of(self.beta_loss) <= 0 and extent.least == 0:
            raise DataError(
                "When beta_loss <= 0 and X contains zeros, the solver may diverge. Please add small values to X, or "
                "use a positive beta_loss."
            )


def checked_factor(A: Any, shape: tuple[Any, int], name: str, dtype: Any) -> np.ndarray:
    """A factor that the user gives, as float64; a size of None, "auto" or 0 in `shape` may be any."""
    who = f"NMF (input {name})"
    if A is None:
        raise DataError(f"{name}: none was given; expected an array with init='custom'")
    found = np.asarray(A)
    if found.ndim != 2:
        raise DataError(f"{name}: {found.ndim} dimensions; expected 2")
    for axis, word in enumerate(("first", "second")):
        if isinstance(shape[axis], int | np.integer) and found.shape[axis] != shape[axis]:
            raise DataError(
                f"Array with wrong {word} dimension passed to {who}. Expected {shape[axis]}, "
                f"but got {found.shape[axis]}."
            )
    if found.dtype != dtype:
        raise DataTypeError(f"{name} should have the same dtype as X. Got {name}.dtype = {found.dtype}; X has {dtype}.")
    if not np.isfinite(found).all():
        raise DataError(f"{name}: NaN or infinity; expected finite numbers")
    if found.min() < 0:
        raise DataError(f"Negative values in data passed to {who}")
    if found.max() == 0:
        raise DataError(f"Array passed to {who} is full of zeros.")
    return found.astype(np.float64)
