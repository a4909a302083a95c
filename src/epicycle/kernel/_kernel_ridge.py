"""Kernel ridge regression:  minimise  P(f) = sum_i v_i (y_i - f(x_i) - b)^2 + alpha |f|^2  over the kernel's space.

By the representer theorem f = sum_j c_j k(x_j, .), and with V = diag(v)

    (K + alpha V^-1) c + b 1 = y        (and 1'c = 0 where b is fitted).

For any c (with 1'c = 0) the dual  D(c) = 2 alpha c'y - alpha^2 c'V^-1 c - alpha c'Kc  is at most min P, and

    P(c) - D(c) = sum_i v_i r_i^2,      r = y - b - K c - alpha V^-1 c:

the residual of the linear system proves how far P is from its minimum. Row i left out of the fit has the error
c_i / (S^-1)_ii with S = K + alpha V^-1 (less S^-1 1 1'S^-1 / 1'S^-1 1 where b is fitted), for every alpha from one
eigendecomposition V^1/2 K V^1/2 = Q diag(s) Q':

    S^-1 = V^1/2 Q diag(1 / (s + alpha)) Q' V^1/2,     c = S^-1 (y - b),     b = 1'S^-1 y / 1'S^-1 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import scipy.linalg
import scipy.optimize
from sklearn.base import MultiOutputMixin, RegressorMixin

from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._checks import as_floats
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import AnyOf, ArrayLike, Boolean, Choice, Domain, InstanceOf, NoneOr, Real
from epicycle.core._threads import n_threads
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.kernels._machine import KERNEL_PARAMETERS, KernelMachine
from epicycle.linalg._shifted_systems import matrix_product, solve_shifted

_INTERPOLATED = 1e-12  # of the sum of squares of the targets: an objective below is one of an interpolation
# Penalties that are tried first, in units of the largest eigenvalue: from nearly none to nearly nothing but penalty.
_ALPHA_RANGE, _N_ALPHAS = (1e-12, 10.0), 40


class KernelRidge(MultiOutputMixin, RegressorMixin, KernelMachine):  # type: ignore[misc]  # untyped mixin
    r"""Ridge regression in the feature space of a kernel, with exact leave-one-out errors.

    .. math:: \min_f \sum_i v_i \bigl(y_i - f(x_i)\bigr)^2 + \alpha \|f\|^2,
              \qquad f(x) = \sum_j c_j k(x_j, x), \qquad (K + \alpha V^{-1}) c = y

    A fitted object keeps the training rows: prediction needs them.

    Parameters
    ----------
    alpha : float, array-like or "loo", default=1.0
        Strength of the penalty. Several numbers are candidates, of which the one with the least leave-one-out error is
        taken; "loo" searches all positive numbers. For several targets see `alpha_per_target`. 0 interpolates.
    alpha_per_target : bool, default=False
        Whether an array `alpha` holds one number for each target instead of candidates, and whether a choice is made
        for each target by itself.
    fit_intercept : bool, default=False
        Whether a constant b that is not penalised is fitted too.
    tol : float, default=1e-8
        Relative duality gap that the certificate asserts.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        The coefficients c of the rows.
    intercept_ : float or ndarray of shape (n_targets,)
        b, or 0.
    %(X_fit_)s
    %(kernel_)s
    alpha_ : float or ndarray of shape (n_targets,)
        The penalty that was given or chosen.
    alphas_, loo_errors_ : ndarrays of shape (n_candidates,) and (n_candidates, n_targets)
        Candidates and their mean squared leave-one-out errors, where there was a choice.
    loo_residuals_ : ndarray of the shape of y
        y less its prediction by a fit without that row, where there was a choice.
    jitter_ : float
        Added to the diagonal of the kernel matrix so that it is positive definite; 0 as a rule.
    certificate_ : Certificate
        The relative duality gap, from the residual of the linear system; for a kernel that is none ("sigmoid" may be),
        the residual alone.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import KernelRidge
    >>> from epicycle.kernel import Gaussian
    >>> x = np.linspace(0, 6, 50)[:, None]
    >>> model = KernelRidge(alpha="loo", kernel=Gaussian(1.0)).fit(x, np.sin(x[:, 0]))
    >>> bool(np.abs(model.predict([[1.5]]) - np.sin(1.5)) < 1e-3)
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "alpha": AnyOf(Real(minimum=0), Choice("loo"), ArrayLike()),
        **KERNEL_PARAMETERS,
        "kernel_params": NoneOr(InstanceOf(dict)),
        "alpha_per_target": Boolean(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="kernel", catalogue=("C1", "C2"), engines=("memory",), certificate="duality gap", keeps_rows=True
    )

    @stores_arguments(fit_intercept=False, tol=1e-8, n_jobs=None, verbose=0)
    def __init__(
        self,
        alpha: float | str | Any = 1.0,
        *,
        kernel: Any = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1.0,
        kernel_params: dict[str, Any] | None = None,
        alpha_per_target: bool = False,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with targets y."""
        data, rows = self._intake(X, y, sample_weight, target="numeric", multi_output=True)
        Y = np.asarray(data.y)
        Y = Y[:, None] if data.target_is_vector else Y
        alphas, choose = self._alphas(Y.shape[1])
        rows, weight, kept = self._weighing_rows(data, rows)
        Y = Y if len(kept) == len(Y) else Y[kept]
        self._require(len(kept), 5.0 if choose else 2.0)
        self._keep(rows, kept)
        K = self._gram(self.kernel_.prepare(rows))
        least = self._least_eigenvalue(K)
        if choose:
            self._require_mercer(K)
            C, b, chosen = self._by_spectrum(K, Y, weight, alphas, data.n_rows, kept)
        else:
            assert alphas is not None  # only a choice has no numbers
            C, b, chosen = self._by_factor(K, Y, weight, alphas)
        vector = data.target_is_vector
        self.dual_coef_ = C[:, 0] if vector else C
        self.intercept_ = float(b[0]) if vector else b
        self.alpha_ = float(chosen[0]) if vector or (np.ndim(self.alpha) == 0 and not choose) else chosen
        self._certify(K, C, b, Y, weight, chosen, least)
        return self

    def _alphas(self, n_targets: int) -> tuple[np.ndarray | None, bool]:
        """(the numbers given, whether they are candidates to choose from)."""
        if isinstance(self.alpha, str):
            return None, True
        alphas = as_floats(self.alpha, ParameterError(f"KernelRidge: alpha={self.alpha!r:.80}; expected numbers >= 0"))
        if alphas.ndim > 1 or not alphas.size or not np.isfinite(alphas).all() or (alphas < 0).any():
            raise ParameterError(f"KernelRidge: alpha={self.alpha!r:.80}; expected finite numbers >= 0")
        if alphas.ndim == 0:
            return np.full(n_targets, float(alphas)), False
        if self.alpha_per_target:
            if len(alphas) != n_targets:
                raise ParameterError(
                    f"KernelRidge: alpha has {len(alphas)} numbers; expected one for each of {n_targets} targets"
                )
            return alphas, False
        if (alphas == 0).any():
            raise ParameterError("KernelRidge: alpha holds 0 among its candidates; expected numbers > 0")
        return np.unique(alphas), True

    def _by_factor(
        self, K: np.ndarray, Y: np.ndarray, weight: np.ndarray, alphas: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """One factorisation for each penalty."""
        C, b = np.empty_like(Y), np.zeros(Y.shape[1])
        self.jitter_ = 0.0
        ones = np.ones((len(Y), 1))
        for alpha in np.unique(alphas):
            mine = np.flatnonzero(alphas == alpha)
            right = np.hstack([Y[:, mine], ones]) if self.fit_intercept else Y[:, mine]
            solved = solve_shifted(K, alpha / weight, right, n_jobs=self.n_jobs)
            self.jitter_ = max(self.jitter_, solved.jitter)
            if self.fit_intercept:
                C[:, mine], b[mine] = _with_intercept(solved.C[:, :-1], solved.C[:, -1])
            else:
                C[:, mine] = solved.C
        if self.jitter_ > 0:
            K[np.diag_indices(len(K))] += self.jitter_
        return C, b, alphas

    def _by_spectrum(
        self, K: np.ndarray, Y: np.ndarray, weight: np.ndarray, alphas: np.ndarray | None, n: int, kept: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """One eigendecomposition for all penalties."""
        self.jitter_ = 0.0
        spectrum = RidgeSpectrum.of(K, weight, intercept=bool(self.fit_intercept))
        choice = _choose_alphas(spectrum, Y, weight, alphas, each=bool(self.alpha_per_target))
        self.alphas_, self.loo_errors_ = choice.tried, choice.errors
        left_out = np.full((n, Y.shape[1]), np.nan)
        C, b = np.empty_like(Y), np.zeros(Y.shape[1])
        for t, alpha in enumerate(choice.chosen):
            C[:, [t]], b[[t]], left_out[kept, t] = spectrum.solve(Y[:, [t]], float(alpha))
        self.loo_residuals_ = left_out[:, 0] if Y.shape[1] == 1 else left_out
        return C, b, choice.chosen

    def _certify(
        self,
        K: np.ndarray,
        C: np.ndarray,
        b: np.ndarray,
        Y: np.ndarray,
        weight: np.ndarray,
        alphas: np.ndarray,
        least: float,
    ) -> None:
        V = weight[:, None]
        KC = matrix_product(K, C, n_threads(float(K.size) * C.shape[1], self.n_jobs))
        error = Y - KC - b
        residual = error - alphas * C / V
        fit, size = (V * error**2).sum(axis=0), alphas * np.einsum("ij,ij->j", C, KC)
        objective = np.maximum(fit + size, 0.0)
        gap = (V * residual**2).sum(axis=0) + np.abs(b * C.sum(axis=0)) * alphas
        # An interpolation has the minimum 0; what is left is measured against the targets then.
        floor = _INTERPOLATED * (V * Y**2).sum(axis=0)
        scale = np.maximum(objective, floor)
        relative = float(np.divide(gap, scale, out=np.zeros_like(gap), where=scale > 0).max())
        kind, meaning = "duality gap", f"the objective is at most {relative:.1e} of its value above its minimum"
        if (objective < floor).any():
            meaning += f" (of {_INTERPOLATED:g} of the targets' squares, where it is below that)"
        if least < -self.jitter_:
            # The objective of such a kernel has no minimum: only the equations can be certified.
            size = np.sqrt((V * Y**2).sum(axis=0))
            relative = float(np.divide(np.sqrt(gap), size, out=np.zeros_like(gap), where=size > 0).max())
            kind = "equation residual"
            meaning = (
                f"(K + alpha / V) c = y is solved up to {relative:.1e} of y, but no minimum is claimed: this is no "
                f"Mercer kernel, K has the eigenvalue {least:.1e}"
            )
        if self.jitter_ > 0:
            meaning += f", for the kernel with {self.jitter_:.1e} on its diagonal"
        certificate = Certificate(kind, relative, self.tol, meaning)
        self._conclude_directly(certificate, x=C.ravel(), objective=float(objective.sum()), gap=relative)

    def predict(self, X: Any) -> Any:
        """f(x) + b for every row x of X."""
        self._check_fitted()
        vector = self.dual_coef_.ndim == 1
        C = self.dual_coef_[:, None] if vector else self.dual_coef_
        scores = self._combine(X, C, np.atleast_1d(self.intercept_))
        return scores[:, 0] if vector else scores


def _with_intercept(C: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(c, b) from S^-1 Y and u = S^-1 1, so that every column of c adds up to zero."""
    # 1'c = 0 makes b = 1'S^-1 y / 1'S^-1 1.
    b = C.sum(axis=0) / u.sum()
    C = C - u[:, None] * b
    left = C.sum(axis=0) / u.sum()  # of rounding
    return C - u[:, None] * left, b + left


@dataclass(frozen=True)
class RidgeSpectrum:
    """Eigenvectors of V^1/2 K V^1/2, times V^1/2, and its eigenvalues."""

    vectors: np.ndarray
    values: np.ndarray
    intercept: bool

    @classmethod
    def of(cls, K: np.ndarray, weight: np.ndarray, *, intercept: bool) -> RidgeSpectrum:
        root = np.sqrt(weight)
        scaled = K * np.multiply.outer(root, root)
        values, Q = scipy.linalg.eigh(scaled, overwrite_a=True, check_finite=False, driver="evd")
        Q *= root[:, None]
        return cls(Q, np.maximum(values, 0.0), intercept)

    def solve(self, Y: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(c, b, errors of the rows left out) for one target of shape (n, 1)."""
        Q, inverse = self.vectors, 1 / (self.values + alpha)
        diagonal = np.einsum("ij,ij,j->i", Q, Q, inverse)
        # c = V^1/2 Q diag(1 / (s + alpha)) Q'V^1/2 y; V^1/2 is part of the vectors.
        C = Q @ (inverse[:, None] * (Q.T @ Y))
        b = np.zeros(1)
        if self.intercept:
            u = Q @ (inverse * Q.sum(axis=0))
            C, b = _with_intercept(C, u)
            diagonal = diagonal - u**2 / u.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            return C, b, C[:, 0] / diagonal


@dataclass(frozen=True)
class ChosenAlphas:
    """Penalties tried, their errors for every target, and the chosen one of every target."""

    tried: np.ndarray
    errors: np.ndarray
    chosen: np.ndarray


def _choose_alphas(
    spectrum: RidgeSpectrum, Y: np.ndarray, weight: np.ndarray, alphas: np.ndarray | None, *, each: bool
) -> ChosenAlphas:
    """The penalty with the least mean squared error of rows left out: among `alphas`, or of all positive numbers.

    Without candidates a grid over the range of the eigenvalues finds the valley, and Brent's method its bottom.
    """
    search = alphas is None
    if alphas is None:
        top = float(spectrum.values[-1])
        top = top if top > 1e-290 else 1.0  # of a kernel that is zero everywhere any penalty will do
        alphas = top * np.geomspace(*_ALPHA_RANGE, _N_ALPHAS)
    tried = alphas.tolist()
    errors = [_errors(spectrum, Y, weight, alpha) for alpha in tried]
    if search:
        for t in range(Y.shape[1]) if each else [slice(None)]:
            totals = np.array([np.sum(e[t]) for e in errors[: len(alphas)]])
            if np.isnan(totals).all():
                raise DataError("alpha='loo': no penalty has errors of rows left out that are finite; scale X and y")
            best = int(np.nanargmin(totals))
            low, high = alphas[max(best - 1, 0)], alphas[min(best + 1, len(alphas) - 1)]

            def at(log_alpha: float, t: int | slice = t) -> float:
                tried.append(float(np.exp(log_alpha)))
                errors.append(_errors(spectrum, Y, weight, tried[-1]))
                return float(np.sum(errors[-1][t]))

            scipy.optimize.minimize_scalar(
                at, bounds=(np.log(low), np.log(high)), method="bounded", options={"xatol": 0.01}
            )
    # Candidates in ascending order, so that ties go to the weaker penalty.
    order = np.argsort(tried)
    table, found = np.array(tried)[order], np.array(errors)[order]
    ranks = found if each else np.repeat(found.sum(axis=1, keepdims=True), Y.shape[1], axis=1)
    return ChosenAlphas(table, found, table[np.nanargmin(ranks, axis=0)])


def _errors(spectrum: RidgeSpectrum, Y: np.ndarray, weight: np.ndarray, alpha: float) -> np.ndarray:
    left_out = np.column_stack([spectrum.solve(Y[:, [t]], alpha)[2] for t in range(Y.shape[1])])
    return np.asarray((weight[:, None] * left_out**2).sum(axis=0) / weight.sum())
