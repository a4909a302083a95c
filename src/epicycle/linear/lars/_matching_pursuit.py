"""Matching pursuit and forward selection, in covariance form.

With r = y - Xw and q_j = <x_j, r>, a step chooses a feature and changes coefficients:

- matching: the largest |q_j| / |x_j|; its coefficient alone moves, w_j += rate q_j / |x_j|^2, and q -= d G_j.
- orthogonal: the same choice; then all chosen coefficients are the least-squares ones.
- forward: the feature after which the residuals of least squares are smallest, the largest q_j^2 / |x_j'|^2 with x_j'
  what is left of x_j beside the chosen features.

For the last two, the chosen features are made orthonormal one by one (Gram-Schmidt): with G_AA = LL' and V = L^-1 G_A,
a new feature adds a row v to V, its share of r is c = q_j / l, and q -= c v.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.base import BaseEstimator, clone

from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, NotFittedError
from epicycle.core._parameters import Choice, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.core._plot_style import Axes, axes_of, styled
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import Data
from epicycle.linear.lars._angles import lars_problem
from epicycle.linear.lars._stagewise_moves import gram_rows
from epicycle.linear.lasso._base import SparseLinearModel
from epicycle.linear.lasso._problem import LassoProblem
from epicycle.linear.lasso._solver import LassoSolver
from epicycle.optim import Solution

METHODS = ("matching", "orthogonal", "forward")
#: A feature of which no more than this is left beside the chosen ones is a combination of them.
DEPENDENT = 1e-10


class MatchingPursuit(SparseLinearModel):
    r"""Matching pursuit: boosting over a dictionary, one feature at a time.

    The model :math:`f(x) = b + \sum_m d_m h_{j_m}(x)` grows by the feature that matches the residuals best,

    .. math:: j_m = \arg\max_j \frac{|\langle h_j, r \rangle|}{|h_j|}, \qquad
              d_m = \nu \frac{\langle h_{j_m}, r \rangle}{|h_{j_m}|^2}, \qquad r \leftarrow r - d_m h_{j_m} .

    Orthogonal matching pursuit fits all chosen coefficients anew after each choice. Forward selection does so too, and
    chooses the feature after which the residuals are smallest.

    Parameters
    ----------
    n_nonzero_coefs : int, optional
        Features to choose at most; a tenth of them, at least one, where neither this nor `residual` is given.
    method : {"orthogonal", "matching", "forward"}, default="orthogonal"
        As above.
    residual : float, optional
        Stop when the sum of squares of the residuals is at most this share of that of y around its mean.
    learning_rate : float, default=1.0
        :math:`\nu`, for ``method="matching"``.
    dictionary : transformer, optional
        Gives the features :math:`h_j` for rows of X, and is fitted first; for data in memory. Without it the features
        are the columns of X.
    max_iter : int, default=10000
        Steps at most; ``method="matching"`` may take a feature more than once.

    Attributes
    ----------
    coef_ : ndarray of shape (n_atoms,)
        Coefficients of the features of the dictionary.
    intercept_ : float
    active_ : ndarray
        The chosen features in the order of their first choice.
    dictionary_ : transformer
        As it was fitted, where there was one.
    certificate_ : Certificate
        Where all coefficients are fitted anew, the largest correlation of a chosen feature with the residuals: zero
        means least squares on these features. Which features is a greedy choice, for which nothing is proven.
    history_ : History
        After every step half the mean square of the residuals, the ``feature`` and its ``correlation`` before it.

    See Also
    --------
    Stagewise : the same choices with very small steps.
    Lars : the limit of these.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import MatchingPursuit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 50))
    >>> y = 3 * X[:, 7] - 2 * X[:, 30] + 0.1 * rng.normal(size=200)
    >>> model = MatchingPursuit(n_nonzero_coefs=2).fit(X, y)
    >>> model.active_
    array([ 7, 30])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_nonzero_coefs": NoneOr(Integer(1)),
        "method": Choice(*METHODS),
        "residual": NoneOr(Real(0, 1, inclusive=(True, False))),
        "learning_rate": Real(0, 2, inclusive=False),
        "dictionary": NoneOr(InstanceOf(BaseEstimator)),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear", catalogue=("D6",), engines=("memory", "files", "dask"), certificate="normal equations"
    )

    dictionary_: Any
    active_: np.ndarray

    @stores_arguments(max_iter=10_000, fit_intercept=True, n_jobs=None, verbose=0)
    def __init__(
        self,
        n_nonzero_coefs: int | None = None,
        *,
        method: Literal["orthogonal", "matching", "forward"] = "orthogonal",
        residual: float | None = None,
        learning_rate: float = 1.0,
        dictionary: Any = None,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with targets y.

        Parameters
        ----------
        %(read_once)s
        """
        if self.dictionary is None:
            data = self._fit_data(X, y, sample_weight, target="numeric", check_finite=False)
        else:
            self._fit_data(X, y, sample_weight, target="numeric")
            self.dictionary_ = clone(self.dictionary)
            atoms = self.dictionary_.fit_transform(X, y)
            data = self._atoms(atoms, y, sample_weight)
        problem = lars_problem(data, centre=self.fit_intercept, n_jobs=self.n_jobs)
        pursuit = Pursuit(problem.solvers[0], self.method, float(self.learning_rate))
        self._conclude(self._pursue(data, problem, pursuit))
        return self

    def _atoms(self, atoms: Any, y: Any, sample_weight: Any) -> Data:
        """The features of the dictionary as data; names and number of features stay those of X."""
        from epicycle.data import as_data

        return as_data(
            atoms, y, sample_weight, target="none" if y is None else "numeric", estimator_name=type(self).__name__
        )

    def _pursue(self, data: Data, problem: LassoProblem, pursuit: Pursuit) -> Solution:
        p, total = pursuit.solver.p, pursuit.half_square
        most = self.n_nonzero_coefs
        if most is None:
            most = p if self.residual is not None else max(1, p // 10)
        enough = 0.0 if self.residual is None else self.residual * total
        if most > p:
            raise DataError(f"n_nonzero_coefs={most}; X has {p} features to choose from")
        known = [int(j) for j in (self._resume_state() or {}).get("features", [])]
        taken: list[int] = []

        def attributes(x: np.ndarray) -> dict[str, Any]:
            found = {**self._attributes(data, problem, x[None]), "active_": np.array(pursuit.active, np.int64)}
            return found if self.dictionary is None else {**found, "dictionary_": self.dictionary_}

        def state() -> dict[str, Any]:
            return {"features": np.array(taken, np.int64)}

        monitor = self._monitor(min(most, self.max_iter), attributes)
        reason = "converged"
        while len(taken) < self.max_iter and pursuit.half_square > enough:
            replay = len(taken) < len(known)
            j = known[len(taken)] if replay else pursuit.choose()
            if j is None or (j not in pursuit.active and len(pursuit.active) == most):
                break
            correlation = pursuit.step(j)
            taken.append(j)
            if not replay and monitor(
                len(taken), pursuit.w, objective=pursuit.half_square, state=state, feature=j, correlation=correlation
            ):
                reason = "stopped"
                break
        else:
            if len(taken) == self.max_iter and pursuit.half_square > enough and self.residual is not None:
                reason = "max_iter"
        for name, value in attributes(pursuit.w).items():
            setattr(self, name, value)
        certificate = pursuit.certificate()
        left = state() if reason == "stopped" else {}
        return Solution(pursuit.w, pursuit.half_square, monitor.history(), certificate, len(taken), reason, state=left)

    def _predict_data(self, X: Any, *, missing: bool = False) -> Data:
        data = super()._predict_data(X, missing=missing)
        if self.dictionary is None:
            return data
        if not hasattr(self, "dictionary_"):
            raise NotFittedError(f"{type(self).__name__} has no fitted dictionary")
        return self._atoms(self.dictionary_.transform(X), None, None)

    @styled
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the mean square of the residuals after every step, with the features that were taken."""
        self._check_fitted()
        ax = axes_of(ax)
        steps = np.arange(1, self.n_iter_ + 1)
        ax.plot(steps, 2 * self.history_.objective, "o-", ms=4)
        ax.set(xlabel="step", ylabel="mean square of the residuals", yscale="log")
        names = self._names() if self.dictionary is None else None
        for step, j, value in zip(steps[:25], self.history_["feature"], self.history_.objective, strict=False):
            label = str(int(j)) if names is None else names[int(j)]
            ax.annotate(label, (step, 2 * value), textcoords="offset points", xytext=(3, 4), fontsize=7)
        return ax


class Pursuit:
    """The state of a pursuit; :meth:`step` goes on with it.

    With `by_angle` features are compared whatever their length, otherwise by their inner products with the residuals.

    Attributes
    ----------
    active : list of int
        Features in the order in which they were first chosen.
    half_square : float
        Half the mean square of the residuals.
    """

    def __init__(self, solver: LassoSolver, method: str, rate: float = 1.0, *, by_angle: bool = True) -> None:
        self.solver, self.method, self.rate, self.by_angle = solver, method, rate, by_angle
        self.rows = gram_rows(solver)
        self.q = np.where(solver.square > 0, solver.xy, 0.0)
        self.left = solver.square.copy()  # |x_j'|^2
        self.w = np.zeros(solver.p)
        self.active: list[int] = []
        self.half_square = solver.yy / 2
        self._V = np.empty((0, solver.p))
        self._L = np.empty((0, 0))
        self._c: list[float] = []

    def choose(self) -> int | None:
        """The feature of the next step; None where no feature has anything to give."""
        scale = self.left if self.method == "forward" else self.solver.square
        usable = self.left > DEPENDENT * self.solver.square
        gain = np.divide(self.q**2, scale, out=np.zeros_like(scale), where=usable & (scale > 0))
        gain[gain <= 1e-28 * self.solver.yy] = 0.0  # less than the rounding of y itself is nothing
        j = int((gain if self.by_angle else gain * scale).argmax())
        return j if gain[j] > 0 else None

    def step(self, j: int) -> float:
        """Take feature j; its correlation with the residuals before."""
        self.rows.need(j)
        row = self.rows.rows[self.rows.row_of[j]]
        correlation = float(abs(self.q[j]) / np.sqrt(self.solver.square[j]))
        if self.method == "matching":
            d = self.rate * self.q[j] / self.solver.square[j]
            self.w[j] += d
            self.half_square -= d * self.q[j] - d * d * self.solver.square[j] / 2
            self.q = np.where(self.solver.square > 0, self.q - d * row, 0.0)
            if j not in self.active:
                self.active.append(j)
            return correlation
        k = len(self.active)
        along = self._V[:k, j]
        length = np.sqrt(self.left[j])
        v = (row - along @ self._V[:k]) / length
        share = float(self.q[j] / length)
        self._grow(k, v, along, length)
        self._c.append(share)
        self.active.append(j)
        self.left = np.maximum(self.left - v * v, 0.0)
        self.q = np.where(self.solver.square > 0, self.q - share * v, 0.0)
        self.left[self.active] = 0.0
        self.q[self.active] = 0.0
        self.half_square -= share * share / 2
        self.w[self.active] = solve_triangular(self._L[: k + 1, : k + 1], np.array(self._c), trans="T", lower=True)
        return correlation

    def certificate(self) -> Certificate:
        """Whether the coefficients are those of least squares on the chosen features."""
        if self.method == "matching":
            return Certificate("none", 0.0, 0.0, "matching pursuit is greedy: no distance from an optimum is known")
        solver = self.solver
        solver.start_at(self.w)
        chosen = np.array(self.active, np.int64)
        c = solver.correlation(chosen) if len(chosen) else np.zeros(0)
        scale = np.sqrt(solver.square[chosen] * max(solver.yy, np.finfo(float).tiny))
        worst = float(np.abs(c / scale).max(initial=0.0))
        meaning = (
            f"chosen features and residuals are uncorrelated to {worst:.1e}: least squares on these features; which "
            "features was chosen greedily"
        )
        return Certificate("normal equations", worst, 1e-8, meaning)

    def _grow(self, k: int, v: np.ndarray, along: np.ndarray, length: float) -> None:
        if k == len(self._V):
            capacity = min(max(8, 2 * k), self.solver.p)
            V, L = np.empty((capacity, self.solver.p)), np.zeros((capacity, capacity))
            V[:k], L[:k, :k] = self._V, self._L
            self._V, self._L = V, L
        self._V[k], self._L[k, :k], self._L[k, k] = v, along, length
