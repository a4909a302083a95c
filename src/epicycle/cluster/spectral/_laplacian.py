r"""Eigenvectors of a graph.

With affinities A_ij, volumes m_i = sum_j A_ij and S = M^-1/2 A M^-1/2, the normalised Laplacian I - S has eigenvalues
0 = l_1 <= l_2 <= ... <= 2, one zero for each connected component. For eigenvectors x, u = M^-1/2 x solves
A u = (1 - l) M u: it is constant where l = 0, and nearly so on clusters. Any partition into k sets has a normalised cut

    sum_c cut(c) / vol(c)  =  tr H'(I - S) H  >=  l_1 + ... + l_k,       H_ic = sqrt(m_i / vol(c)) for i in c,

and the conductance h of a connected graph is enclosed by l_2 / 2 <= h <= sqrt(2 l_2) (Cheeger).

Rows of weight v count as v equal rows: A_ij = v_i v_j W_ij, and max(v_i - 1, 0) v_i W_ii on the diagonal, because a row
is no neighbour of itself but of its copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh, lobpcg, splu

from epicycle.linalg._spectra import some_eigenvectors

#: Nodes up to which all eigenvalues of a component are found by LAPACK.
_DENSE = 400
#: Lanczos restarts after which the matrix is factorised instead, and vectors kept between them.
_RESTARTS, _VECTORS = 30, 40
#: Shift of the Laplacian, whose inverse is applied: its eigenvalue 0 makes it singular.
_SHIFT = 1e-5


@dataclass(frozen=True)
class Graph:
    """S and the volumes m of a graph, and the connected component of every node."""

    S: Any
    volume: np.ndarray
    component: np.ndarray
    n_components: int

    @property
    def n_nodes(self) -> int:
        return len(self.volume)

    def normalized_cut(self, labels: np.ndarray) -> float:
        """sum_c cut(c) / vol(c); a set of isolated nodes cuts nothing."""
        root = np.sqrt(self.volume)
        _, code = np.unique(labels, return_inverse=True)
        total = np.bincount(code, weights=self.volume)
        used = total > 0
        H = sp.csr_array((root, (np.arange(len(code)), code)), shape=(len(code), len(total)))
        within = np.asarray((H * (self.S @ H)).sum(axis=0)).ravel()  # entry by entry
        return float(np.maximum(1 - within[used] / total[used], 0).sum())


@dataclass(frozen=True)
class Eigenpairs:
    """The least eigenvalues, the vectors u by columns with the entry of largest size positive, and |Sx - (1 - l)x|."""

    values: np.ndarray
    vectors: np.ndarray
    residuals: np.ndarray


@dataclass(frozen=True)
class Solver:
    """Method for the eigenvectors of a component; `thin` says that its factors stay sparse, as in few dimensions."""

    name: str
    tol: float
    rng: np.random.Generator
    thin: bool


def graph_of(W: Any, weight: np.ndarray | None) -> Graph:
    """The graph of symmetric affinities in float64."""
    n = W.shape[0]
    v = np.ones(n) if weight is None else weight
    own = np.asarray(W.diagonal())
    kept = np.maximum(v - 1, 0) * v * own  # of the diagonal
    A = W.copy() if weight is None else W * v[:, None] * v
    if sp.issparse(A):
        A = sp.csr_array(A + sp.diags_array(kept - A.diagonal()))
        A.eliminate_zeros()
    else:
        np.fill_diagonal(A, kept)
    volume = np.asarray(A.sum(axis=1)).ravel()
    inverse = np.divide(1.0, np.sqrt(volume), out=np.zeros(n), where=volume > 0)
    if sp.issparse(A):
        S = sp.csr_array(A * inverse[:, None] * inverse)
        count, component = connected_components(S, directed=False)
        return Graph(S, volume, component, int(count))
    A *= inverse[:, None]
    A *= inverse
    component = _dense_components(A)
    return Graph(A, volume, component, int(component.max()) + 1)


def _dense_components(A: np.ndarray) -> np.ndarray:
    """The number of the connected component of every node; few rows are looked at where most have many edges."""
    component = np.full(len(A), -1, dtype=np.intp)
    for node in range(len(A)):
        if component[node] >= 0:
            continue
        number = int(component.max()) + 1
        component[node] = number
        waiting = [node]
        while waiting:
            new = np.flatnonzero((A[waiting.pop()] > 0) & (component < 0))
            component[new] = number
            waiting.extend(new.tolist())
            if len(new) and (component >= 0).all():
                return component
    return component


def least_eigenpairs(graph: Graph, k: int, solver: Solver) -> Eigenpairs:
    """The k least eigenvalues of I - S, each component by itself, so that none of equal ones is missed."""
    n = graph.n_nodes
    sizes = np.bincount(graph.component, weights=graph.volume)
    largest_first = np.argsort(-sizes, kind="stable")
    extra = k - graph.n_components  # beyond one zero for each component
    values: list[float] = []
    columns: list[tuple[np.ndarray, np.ndarray]] = []
    for c in largest_first[: k if extra <= 0 else None]:
        nodes = np.flatnonzero(graph.component == c)
        found = _of_component(graph, nodes, 1 + max(0, min(extra, len(nodes) - 1)), solver)
        values += found[0].tolist()
        columns += [(nodes, x) for x in found[1].T]
    order = np.argsort(values, kind="stable")[:k]
    X = np.zeros((n, len(order)))
    for place, which in enumerate(order):
        nodes, x = columns[which]
        X[nodes, place] = x
    found_values = np.maximum(np.asarray(values)[order], 0.0)
    lonely = graph.volume == 0  # rows of S that are zero stand for the eigenvalue 0
    R = graph.S @ X + lonely[:, None] * X - X * (1 - found_values)
    scale = np.divide(1.0, np.sqrt(graph.volume), out=np.ones(n), where=~lonely)
    U = X * scale[:, None]
    top = np.abs(U).argmax(axis=0)
    U *= np.where(U[top, np.arange(len(order))] < 0, -1.0, 1.0)
    return Eigenpairs(found_values, U, np.linalg.norm(R, axis=0))


def _of_component(graph: Graph, nodes: np.ndarray, k: int, solver: Solver) -> tuple[np.ndarray, np.ndarray]:
    """(values, vectors by columns) of the k least eigenvalues; the first is 0 and known."""
    n = len(nodes)
    first = np.sqrt(graph.volume[nodes]) if graph.volume[nodes[0]] > 0 else np.ones(n)
    first /= np.linalg.norm(first)
    if k == 1:
        return np.zeros(1), first[:, None]
    S = graph.S if n == graph.n_nodes else graph.S[nodes][:, nodes]
    if n <= _DENSE or k > n // 4:
        mu, X = _lapack(S, first, k - 1)
    elif solver.name == "lobpcg":
        start = solver.rng.standard_normal((n, k - 1))
        mu, X = lobpcg(S, start, Y=first[:, None], tol=solver.tol or None, maxiter=1000, largest=True)
    else:
        mu, X = _lanczos(S, first, k - 1, solver)
    order = np.argsort(-mu, kind="stable")
    return np.concatenate([[0.0], 1 - mu[order]]), np.column_stack([first, X[:, order]])


def _lapack(S: Any, first: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    dense = S.toarray() if sp.issparse(S) else np.array(S)
    dense -= 3 * np.outer(first, first)  # the known eigenvalue 1 becomes -2, below all others
    n = len(dense)
    return some_eigenvectors(dense, n - k, n - 1)


def _lanczos(S: Any, first: np.ndarray, k: int, solver: Solver) -> tuple[np.ndarray, np.ndarray]:
    """By products with S, or, where these get nowhere or factors are known to stay sparse, with an inverse."""
    n, start = len(first), solver.rng.standard_normal(len(first))
    if not (solver.thin and sp.issparse(S)):
        S_deflated = LinearOperator((n, n), matvec=lambda x: S @ x - (3 * (first @ x)) * first, dtype=np.float64)
        vectors = min(n - 1, max(_VECTORS, 2 * k + 10))
        try:
            return tuple(eigsh(S_deflated, k, which="LA", v0=start, ncv=vectors, tol=solver.tol, maxiter=_RESTARTS))
        except ArpackNoConvergence:
            if not sp.issparse(S):
                return _lapack(S, first, k)
    # 1 - mu + shift > 0 are the eigenvalues of L + shift I: the largest of the inverse are wanted.
    L = sp.csc_array(sp.diags_array(np.full(n, 1 + _SHIFT)) - S)
    factor = splu(L, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})

    def inverse(x: np.ndarray) -> np.ndarray:
        x = x - (first @ x) * first  # leaves the eigenvalue 0 for the known vector
        y = factor.solve(x)
        return np.asarray(y - (first @ y) * first)

    operator = LinearOperator((n, n), matvec=inverse, dtype=np.float64)
    nu, X = eigsh(operator, k, which="LA", v0=start, tol=solver.tol, maxiter=100 * _RESTARTS)
    return 1 + _SHIFT - 1 / nu, X
