r"""Non-negative factors:  minimise  sum_i v_i (d(x_i, w_i H) + penalty of w_i) + penalty of H  over  W, H >= 0."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle import engine
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import Boolean, Choice, Domain, check_parameters
from epicycle.core._random import seed_of
from epicycle.core._solution import Solution
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData, Batch, DaskData, Data, as_data
from epicycle.decomposition._rounds import Rounds
from epicycle.decomposition._row_factors import RowFactors
from epicycle.decomposition.nmf import _coordinate_descent as descent, _multiplicative as multiplicative
from epicycle.decomposition.nmf._base import MEANING, NonNegativeFactors, checked_factor
from epicycle.decomposition.nmf._divergence import FactorPenalty, beta_of, divergence_of
from epicycle.decomposition.nmf._starts import extent_of

_MOST_SWEEPS = 100_000  # of coordinate descent on one row, which ends long before


class NMF(NonNegativeFactors):
    r"""Non-negative matrix factorisation: rows as sums of parts, none of which is ever subtracted.

    .. math:: \min_{W, H \ge 0} \; \sum_i v_i \Bigl( d(x_i, w_i H) + p\,\alpha_W \bigl(\rho |w_i|_1
              + \tfrac{1 - \rho}{2} |w_i|^2 \bigr) \Bigr)
              + V \alpha_H \bigl(\rho |H|_1 + \tfrac{1 - \rho}{2} |H|^2 \bigr)

    with :math:`\rho` for `l1_ratio`, p features, weights :math:`v_i` that sum to V, and d half the squared distance,
    the Kullback-Leibler divergence, or another beta-divergence. The rows of H are the parts: topics of documents,
    pieces of faces. The objective never rises. It has many stationary points: the certificate says that one was
    reached, not that it is the best.

    Parameters
    ----------
    solver : {"cd", "mu", "auto"}, default="cd"
        Coordinate descent, with several sweeps for each product with X; multiplicative updates, for any divergence;
        "auto": coordinate descent for squared distances and multiplicative updates otherwise.
    tol : float, default=1e-4
        The projected gradient, relative to the start, at which coordinate descent ends. Multiplicative updates end
        where ten rounds lower sqrt(2 d) by less than this share of its start and the gradient is below sqrt(tol).
    random_state : int, Generator, RandomState or None, default=None
        Seed of the start, and of the order of coordinates.
    shuffle : bool, default=False
        Whether coordinate descent visits coordinates in a new random order in every round.

    Attributes
    ----------
    solver_ : str
        The solver that was used.
    certificate_ : Certificate
        Stationarity: the projected gradient relative to the start.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import NMF
    >>> X = np.array([[1, 1], [2, 1], [3, 1.2], [4, 1], [5, 0.8], [6, 1]])
    >>> model = NMF(n_components=2, init="random", random_state=0, max_iter=1000)
    >>> W = model.fit_transform(X)
    >>> bool(abs(X - W @ model.components_).max() < 0.01), model.certificate_.holds
    (True, True)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **NonNegativeFactors._parameters,
        "solver": Choice("cd", "mu", "auto"),
        "shuffle": Boolean(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="decomposition", catalogue=("E10",), engines=("memory", "files", "dask"), certificate="stationarity"
    )

    solver_: str

    @stores_arguments
    def __init__(
        self,
        n_components: int | str | None = "auto",
        *,
        init: str | None = None,
        solver: str = "cd",
        beta_loss: str | float = "frobenius",
        tol: float = 1e-4,
        max_iter: int = 200,
        random_state: Any = None,
        alpha_W: float = 0.0,
        alpha_H: float | str = "same",
        l1_ratio: float = 0.0,
        verbose: int = 0,
        shuffle: bool = False,
        n_jobs: int | None = None,
    ) -> None: ...

    def _solver(self) -> str:
        squared = beta_of(self.beta_loss) == 2
        if self.solver == "cd" and not squared:
            raise ParameterError(
                f"Invalid beta_loss parameter: solver 'cd' does not handle beta_loss = {self.beta_loss!r}; expected "
                "'frobenius', or solver='mu'"
            )
        if self.solver == "mu" and self.init == "nndsvd":
            warnings.warn(
                "The multiplicative update ('mu') solver cannot update zeros present in the initialization, and so "
                "leads to poorer results when used jointly with init='nndsvd'. You may try init='nndsvda' or "
                "init='nndsvdar' instead.",
                UserWarning,
                stacklevel=5,
            )
        return str(self.solver) if self.solver != "auto" else "cd" if squared else "mu"

    @fitting
    def _fit(self, X: Any, sample_weight: Any, W: Any, H: Any) -> Any:
        data = self._fit_data(X, None, sample_weight, target="none")
        solver = self._solver()
        extent = extent_of(data, "NMF (input X)", self.n_jobs)
        self._refuse_zeros(extent)
        self._mean_, self.solver_ = extent.mean, solver
        earlier = self._resume_state()
        seed = seed_of(self.random_state) if earlier is None else int(earlier["seed"])
        if earlier is None:
            start, Ht = self._start(data, extent, W, H, seed)
        else:
            start, Ht = np.array(earlier["W"]), np.array(earlier["Ht"])
        rows = RowFactors(data, start, self.n_jobs)
        on_W, on_H = self._penalties(extent.weight)
        by, k = self._divergence(Ht.shape[1]), Ht.shape[1]
        monitor = self._monitor(int(self.max_iter), lambda x: {"components_": x.reshape(k, -1), "n_components_": k})

        def kept() -> Mapping[str, Any]:
            return {"seed": seed, "W": rows.factors.copy(), "Ht": Ht.copy()}

        run = Rounds(
            float(self.tol),
            int(self.max_iter),
            monitor,
            lambda: Ht.T.ravel(),
            None if isinstance(data, DaskData) else kept,
            earlier,
        )
        if solver == "cd":
            halves = descent.halves_of(rows, on_W, on_H, extent.squares, seed if self.shuffle else None)
            found, tolerance = descent.alternate(halves, Ht, run), float(self.tol)
        else:
            found, tolerance = multiplicative.multiply(rows, Ht, on_W, on_H, by, run), float(np.sqrt(self.tol))
        certificate = Certificate("stationarity", found.stationarity, tolerance, MEANING)
        divergence = float(rows.step(_divergence_of, Ht, by.beta, by.least)[0])
        self.reconstruction_err_ = float(np.sqrt(2 * max(divergence, 0.0)))
        dtype = np.float32 if data.dtype == np.float32 else np.float64
        self.components_, self.n_components_ = np.ascontiguousarray(Ht.T, dtype=dtype), k
        self._conclude(Solution(Ht.T.ravel(), found.value, monitor.history(), certificate, found.n_iter, found.reason))
        return None if isinstance(data, DaskData) else rows.factors.astype(dtype)

    def transform(self, X: Any) -> Any:
        """W of rows X for the components of the fit; a row's does not depend on the other rows."""
        data = self._predict_data(X)
        return self._rows(data, np.ascontiguousarray(self.components_.T, dtype=np.float64), self.solver_)

    def _factors_given(self, X: Any, H: Any) -> tuple[np.ndarray, np.ndarray, int]:
        """(W for an H that is given, H, 1)."""
        check_parameters(self, self._parameters)
        data = as_data(X, estimator_name="NMF", accept_sparse=True)
        if not isinstance(data, ArrayData):
            raise DataError(f"X: expected rows in memory, got {type(X).__name__}")
        solver, self.n_features_in_ = self._solver(), data.n_features
        extent = extent_of(data, "NMF (input X)", self.n_jobs)
        self._refuse_zeros(extent)
        found = checked_factor(H, (self.n_components, data.n_features), "H", data.dtype)
        self._mean_ = extent.mean
        return np.asarray(self._rows(data, np.ascontiguousarray(found.T), solver)), np.asarray(H), 1

    def _rows(self, data: Data, Ht: np.ndarray, solver: str) -> Any:
        on_W, tol = self._penalties(0.0)[0], float(self.tol)
        steps = min(int(self.max_iter), _MOST_SWEEPS)
        if solver == "cd":
            return engine.map(_nearest, data, Ht, on_W, tol, steps, n_jobs=self.n_jobs)
        by = self._divergence(Ht.shape[1])
        return engine.map(closest, data, Ht, on_W, by, tol, steps, n_jobs=self.n_jobs)


def _nearest(batch: Batch, Ht: np.ndarray, on_W: FactorPenalty, tol: float, most: int) -> np.ndarray:
    require_non_negative(batch)
    return descent.row_solutions(batch, Ht, on_W, tol, most).astype(batch.X.dtype)


def closest(
    batch: Batch, Ht: np.ndarray, on_W: FactorPenalty, by: multiplicative.Divergence, tol: float, most: int
) -> np.ndarray:
    """W of rows by multiplicative updates."""
    require_non_negative(batch)
    return multiplicative.row_solutions(batch, Ht, on_W, by, tol, most).astype(batch.X.dtype)


def require_non_negative(batch: Batch) -> None:
    """Refuse entries below zero."""
    values = batch.X.data if hasattr(batch.X, "indptr") else batch.X
    if values.size and values.min() < 0:
        raise DataError(f"Negative values in data passed to NMF (input X): {values.min():g}; expected none below 0")


def _divergence_of(batch: Batch, W: np.ndarray, Ht: np.ndarray, beta: float, least: float) -> tuple[float]:
    return divergence_of(batch, W, Ht, beta, least)
