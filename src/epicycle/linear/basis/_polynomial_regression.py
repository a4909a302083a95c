"""Polynomial regression:  minimise  1/2 sum_i w_i (y_i - b - beta'phi(x_i))^2 + alpha/2 |beta|^2

over the polynomials b + beta'phi(x) of a given degree, phi being Chebyshev's polynomials on the range of the data. For
alpha = 0 the basis makes no difference to the fitted function, only to its digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import ParameterError
from epicycle.core._memory import require_memory
from epicycle.core._parameters import AnyOf, ArrayLike, Boolean, Choice, Domain, Integer, NoneOr, Real
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.data import Data
from epicycle.linear.basis._base import BasisRegressor, penalties_of
from epicycle.linear.basis._bases import ChebyshevBasis, degrees_of, monomials, number_of_functions
from epicycle.linear.basis._ranges import column_ranges

#: The degrees that "loo" chooses from.
DEGREES = tuple(range(1, 13))


class PolynomialRegression(BasisRegressor):
    r"""A polynomial of one or several columns, by least squares in a well-conditioned basis.

    .. math:: \min_{b, \beta} \; \tfrac12 \sum_i w_i \, (y_i - b - \beta'\varphi(x_i))^2
              + \tfrac{\alpha}{2} \|\beta\|^2

    The functions :math:`\varphi` are products of Chebyshev polynomials on the range of the data, so that high degrees
    and columns far from zero lose no digits. The penalty is on their coefficients; the constant is free.

    Parameters
    ----------
    degree : int, sequence of int or "loo", default=2
        Total degree; 0 is a constant. Of several degrees the one with the least leave-one-out error is taken, which is
        computed without refitting; "loo" chooses from 1 to 12.
    alpha : float, sequence of float or "loo", default=0.0
        Strength of the penalty; of several, leave-one-out chooses.
    domain : array-like of shape (2,) or (2, n_features), optional
        Smallest and largest value, of all columns or of each, between which the Chebyshev polynomials lie; default: the
        range of the training data. It decides what the penalty means, and nothing else. The leave-one-out errors are
        those of refits without the row in the same domain; give the domain to repeat them, or to compare fits to
        different rows with the same alpha.
    interactions : bool, default=True
        Whether products of different columns take part; False gives a sum of polynomials of one column each.

    Attributes
    ----------
    coef_ : ndarray of shape (n_functions,) or (n_targets, n_functions)
        Coefficients of the Chebyshev polynomials; :meth:`monomial_coefficients` gives those of powers.
    intercept_ : float or ndarray of shape (n_targets,)
    degrees_ : ndarray of shape (n_functions, n_features)
        The degree of every function in every column.
    degree_, alpha_ : int and float
        The value given or chosen.
    loo_errors_ : ndarray
        Mean squared leave-one-out error of every candidate (degrees, then alphas), where there was a choice.
    centre_, half_range_ : ndarrays of shape (n_features,)
        The middle and half the width of the domain.
    rank_ : int
        Number of functions that the data tell apart.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import PolynomialRegression
    >>> x = np.linspace(1000, 10000, 200)[:, None]
    >>> y = np.sin(x[:, 0] / 900)
    >>> model = PolynomialRegression(degree=20).fit(x, y)
    >>> bool(np.abs(model.predict(x) - y).max() < 1e-4)
    True
    >>> PolynomialRegression(2).fit([[0.0], [1.0], [2.0], [3.0]], [1.0, 0.0, 1.0, 4.0]).monomial_coefficients().round(9)
    array([ 1., -2.,  1.])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **BasisRegressor._parameters,
        "degree": AnyOf(Integer(minimum=0), Choice("loo"), ArrayLike()),
        "alpha": AnyOf(Real(minimum=0), Choice("loo"), ArrayLike()),
        "domain": NoneOr(ArrayLike()),
        "interactions": Boolean(),
    }

    @stores_arguments(tol=1e-10, n_jobs=None, verbose=0)
    def __init__(
        self,
        degree: int | str | Any = 2,
        alpha: float | str | Any = 0.0,
        *,
        domain: Any = None,
        interactions: bool = True,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    def _degrees(self) -> list[int]:
        if isinstance(self.degree, str):
            return list(DEGREES)
        given = np.atleast_1d(np.asarray(self.degree))
        if given.ndim > 1 or not given.size or given.dtype.kind not in "iu" or (given < 0).any():
            raise ParameterError(f"PolynomialRegression: degree={self.degree!r}; expected integers >= 0 or 'loo'")
        return sorted({int(d) for d in given})

    def _place(self, data: Data) -> None:
        highest = max(self._degrees())
        d = number_of_functions(data.n_features, highest, interactions=self.interactions)
        d = min(d, 10**100)  # beyond it the bytes are no number that a float holds
        require_memory(
            8.0 * d * (6 * d + data.n_features),
            f"a polynomial of degree {highest} in {data.n_features} columns, which has {d if d < 10**9 else float(d)} "
            "coefficients,",
            "lower the degree or set interactions=False",
        )
        low, high = self._domain(data)
        self.centre_ = low + (high - low) / 2
        half = (high - low) / 2
        self.half_range_ = np.where(half > 0, half, 1.0)
        self.degrees_ = degrees_of(data.n_features, highest, interactions=self.interactions)

    def _domain(self, data: Data) -> tuple[np.ndarray, np.ndarray]:
        if self.domain is None:
            return column_ranges(data, self.n_jobs)
        p = data.n_features
        try:
            ends = np.asarray(self.domain, dtype=np.float64)
        except (TypeError, ValueError):
            ends = np.empty(0)
        if ends.shape not in ((2,), (2, p)) or not np.isfinite(ends).all() or (ends[0] >= ends[1]).any():
            raise ParameterError(
                f"PolynomialRegression: domain={self.domain!r:.80}; expected a smaller and a larger number, or such a "
                f"pair of rows with one number for each of {p} columns"
            )
        low, high = np.broadcast_to(ends.reshape(2, -1), (2, p))
        return low.copy(), high.copy()

    def _basis(self) -> ChebyshevBasis:
        return ChebyshevBasis(self.centre_, self.half_range_, self.degrees_)

    def _candidates(self, factor: Any) -> list[tuple[Any, np.ndarray]]:
        total = self.degrees_.sum(axis=1)
        scale = float((factor.R_x**2).sum()) / max(factor.R_x.shape[1], 1)
        alphas = penalties_of(self.alpha, scale, type(self).__name__)
        return [
            ((degree, alpha), np.full(int(np.count_nonzero(total <= degree)), alpha))
            for degree in self._degrees()
            for alpha in alphas
        ]

    def _keep_choice(self, candidates: list[Any], errors: np.ndarray | None, chosen: int) -> None:
        self.degree_, self.alpha_ = candidates[chosen]
        self.degrees_ = self.degrees_[self.degrees_.sum(axis=1) <= self.degree_]
        if errors is not None:
            degrees = len(self._degrees())
            table = errors.reshape(degrees, -1)
            self.loo_errors_ = table[:, 0] if table.shape[1] == 1 else table[0] if degrees == 1 else table

    def _chose(self) -> bool:
        return hasattr(self, "loo_errors_")

    def _penalty_value(self) -> float:
        return float(self.alpha_)

    def _range(self, column: int) -> tuple[float, float]:
        centre, half = float(self.centre_[column]), float(self.half_range_[column])
        return centre - half, centre + half

    def _facts(self, coef: np.ndarray) -> dict[str, float]:
        if self.n_features_in_ > 1:
            return {"degree": float(self.degree_)}
        # The integral of f''^2 over the range, exact by Gauss and Legendre's rule.
        nodes, weights = np.polynomial.legendre.leggauss(self.degree_ + 1)
        x = self.centre_ + self.half_range_ * nodes[:, None]
        second = self._basis().derivative(x, 0, 2) @ coef
        return {"degree": float(self.degree_), "roughness": float(self.half_range_[0] * weights @ second**2)}

    def monomial_coefficients(self, target: int = 0) -> np.ndarray:
        """The same polynomial in powers of the columns themselves.

        Parameters
        ----------
        target : int, default=0
            Which target, if there are several.

        Returns
        -------
        ndarray of shape (degree + 1,), or (degree + 1, ..., degree + 1) for several columns
            Element [a, b, ...] belongs to the product of powers a, b, ... The conversion is exact and rounded once.
            An element beyond the range of floating-point numbers is infinite. Powers far from zero cancel each other:
            use `predict` to evaluate.
        """
        self._check_fitted()
        coefs = np.atleast_2d(self.coef_)
        if isinstance(target, bool) or not 0 <= target < len(coefs):
            raise ParameterError(f"target={target!r}; expected an integer from 0 to {len(coefs) - 1}")
        p = self.n_features_in_
        shape = (int(self.degree_) + 1,) * p
        require_memory(
            8.0 * float(np.prod(shape, dtype=np.float64)), f"a table of {shape} coefficients", "use coef_ and degrees_"
        )
        if p > 32:
            raise ParameterError(f"monomial_coefficients: an array of {p} dimensions does not exist; use coef_ instead")
        out = np.zeros(shape)
        exact = monomials(self._basis(), coefs[target], float(np.atleast_1d(self.intercept_)[target]))
        for powers, value in exact.items():
            try:
                out[powers] = float(value)
            except OverflowError:
                out[powers] = np.inf if value > 0 else -np.inf
        return out

    def _penalty_line(self) -> str:
        alpha = getattr(self, "alpha_", self.alpha)
        return "no penalty" if np.array_equal(alpha, 0.0) else f"alpha/2 |beta|^2, alpha={alpha}"
