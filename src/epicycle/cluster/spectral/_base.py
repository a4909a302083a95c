"""Common parts of spectral embedding and clustering: the graph of the rows, its eigenvectors, and their evidence."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle.cluster.spectral._affinity import given_neighbors, nearest_neighbors, require_square, symmetric, within
from epicycle.cluster.spectral._laplacian import Eigenpairs, Graph, Solver, graph_of, least_eigenpairs
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import AnyOf, Choice, Domain, NoneOr, Real
from epicycle.core._random import stream
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator
from epicycle.data import ArrayData
from epicycle.data._dask_data import is_dask

#: Largest residual of an eigenpair with which the certificate holds; eigenvalues lie between 0 and 2.
_TOLERANCE = 1e-6
#: Residuals at which solvers stop with eigen_tol="auto".
_AUTO = {"arpack": 1e-12, "lobpcg": 1e-8}
#: Columns up to which the factors of a graph of neighbours stay sparse.
_THIN = 3
GIVEN: tuple[str, ...] = ("precomputed", "precomputed_nearest_neighbors")


class GraphModel(Estimator):
    """Base of the models of eigenvectors of a graph."""

    _docs: ClassVar[Mapping[str, str]] = {
        "fit_y": "%(ignored)s",
        "radius": """radius : float, optional
    Distance up to which rows are connected with affinity="radius".""",
        "eigen_solver": """eigen_solver : {"arpack", "lobpcg"}, optional
    Lanczos' method by ARPACK (None too) or LOBPCG, from a random start by `random_state`. Components of up to 400 nodes
    are solved by LAPACK, with the same result. "amg" needs pyamg, which is not used here, and is refused.""",
        "eigen_tol": """eigen_tol : "auto" or float, default="auto"
    Residual at which the eigenvectors are good enough; "auto" is 1e-12, with LOBPCG 1e-8.""",
        "n_jobs": """n_jobs : int, optional
    Threads of the search for neighbours. None: all processors.""",
        "sample_weight": """sample_weight : array-like of shape (n_samples,), optional
    A row of weight v counts as v equal nodes of the graph; one of weight 0 is left out of it.""",
        "graph_attributes": """affinity_matrix_ : array or CSR array of shape (n_samples, n_samples)
    The affinities, of the rows that have weight.
eigenvalues_ : ndarray
    Of the normalised Laplacian, ascending: those of the embedding, and the one after them.
residual_norms_ : ndarray
    :math:`\\|Lx - \\lambda x\\|` of every eigenvector x of the embedding: an eigenvalue lies within it.
n_connected_components_ : int
    Of the graph. More than one is said in a warning.""",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("graph_attributes",)
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "radius": NoneOr(Real(minimum=0, inclusive=False)),
        "eigen_solver": NoneOr(Choice("arpack", "lobpcg", "amg")),
        "eigen_tol": AnyOf(Choice("auto"), Real(minimum=0)),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="cluster", catalogue=("E3",), engines=("memory",), certificate="residual", keeps_rows=True
    )
    _takes_sparse = True

    affinity: Any
    radius: float | None
    eigen_solver: str | None
    eigen_tol: Any
    random_state: Any
    n_jobs: int | None
    n_neighbors: Any
    affinity_matrix_: Any
    eigenvalues_: np.ndarray
    residual_norms_: np.ndarray
    n_connected_components_: int

    @property
    def _pairwise(self) -> bool:
        """Whether X are affinities or distances and not rows."""
        return isinstance(self.affinity, str) and self.affinity in GIVEN

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._pairwise
        return tags

    def _rows(self, X: Any, sample_weight: Any) -> tuple[Any, np.ndarray | None, np.ndarray]:
        """(rows of positive weight, their weights, which of all they are)."""
        name = type(self).__name__
        if is_dask(X):
            raise DataError(f"X: {name} needs its rows in memory; compute() them first")
        data = self._fit_data(X, None, sample_weight, target="none")
        if not isinstance(data, ArrayData):
            raise DataError(f"X: {name} needs its rows in memory; collect them first")
        kept = np.ones(data.n_rows, dtype=bool) if data.weight is None else data.weight > 0
        weight, rows = data.weight, data.X
        if self._pairwise:
            require_square(rows)
        if not kept.all():
            rows = rows[kept][:, kept] if self._pairwise else rows[kept]
            weight = data.weight[kept]  # type: ignore[index]
        if kept.sum() < 2:
            raise DataError(f"Found array with {kept.sum()} sample(s) while a minimum of 2 is required by {name}.")
        return rows, weight, kept

    def _affinities(self, X: Any, n_neighbors: int) -> Any:
        """The graphs that both classes know by name; None for the rest."""
        if not isinstance(self.affinity, str):
            return None
        if self.affinity == "precomputed":
            return X
        if self.affinity == "nearest_neighbors":
            return nearest_neighbors(X, n_neighbors, self.n_jobs)
        if self.affinity == "precomputed_nearest_neighbors":
            return given_neighbors(X, n_neighbors)
        if self.affinity == "radius":
            if self.radius is None:
                raise ParameterError("radius=None; expected a number > 0 with affinity='radius'")
            return within(X, float(self.radius), self.n_jobs)
        return None

    def _solve(self, X: Any, weight: np.ndarray | None, k: int, seed: int) -> tuple[Graph, Eigenpairs]:
        """The graph of `affinity_matrix_`, and its k least eigenpairs; sets what is said of them."""
        if self.eigen_solver == "amg":
            raise ParameterError(
                "The eigen_solver was set to 'amg', but pyamg is not available here; expected 'arpack' or 'lobpcg'"
            )
        graph = graph_of(symmetric(self.affinity_matrix_), weight)
        self.n_connected_components_ = graph.n_components
        if graph.n_components > 1:
            warnings.warn(
                f"Graph is not fully connected, spectral embedding may not work as expected: it has "
                f"{graph.n_components} components, and eigenvectors tell only these apart where they are as many",
                stacklevel=4,
            )
        name = self.eigen_solver or "arpack"
        tol = _AUTO[name] if self.eigen_tol == "auto" else float(self.eigen_tol)
        thin = isinstance(self.affinity, str) and self.affinity in ("nearest_neighbors", "radius")
        rng = stream(seed, "eigenvectors")
        solver = Solver(name, tol, rng, thin and X.shape[1] <= _THIN)
        with warnings.catch_warnings():  # what LOBPCG has not reached is in the certificate
            warnings.filterwarnings("ignore", "Exited", UserWarning)
            pairs = least_eigenpairs(graph, min(k + 1, graph.n_nodes), solver)
        self.eigenvalues_, self.residual_norms_ = pairs.values, pairs.residuals[:k]
        return graph, pairs

    def _evidence(self, k: int, more: str) -> Certificate:
        worst = float(self.residual_norms_.max())
        tol = _TOLERANCE if self.eigen_tol == "auto" else max(_TOLERANCE, float(self.eigen_tol))
        meaning = f"largest residual of an eigenpair; eigenvalues of the Laplacian lie within it{more}"
        if len(self.eigenvalues_) > k:
            gap = float(self.eigenvalues_[k] - self.eigenvalues_[k - 1])
            meaning += f"; the next one is {gap:.1e} further" + (
                ", so others are nearly as good" if gap < 10 * worst else ""
            )
        return Certificate("residual", worst, tol, meaning)
