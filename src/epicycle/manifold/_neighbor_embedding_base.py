"""Common parts of t-SNE and its family: the rows, their affinities, the descent, its evidence, and new rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import TransformerMixin

from epicycle import _native
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._monitor import Monitor
from epicycle.core._parameters import AnyOf, ArrayLike, Choice, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.core._random import seed_of, stream
from epicycle.core._solution import Solution
from epicycle.core._threads import n_threads
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting
from epicycle.data import ArrayData
from epicycle.manifold._base import Embedding
from epicycle.manifold._tsne_affinities import (
    Affinities,
    Search,
    edges_of,
    require_dense,
    require_square,
)
from epicycle.manifold._tsne_descent import FEW, Descent, Repulsion, Stage, descend
from epicycle.manifold._tsne_start import SPREAD, start
from epicycle.metrics._distances import Distances
from epicycle.spatial._metrics import is_precomputed
from epicycle.spatial._options import SEARCH_PARAMETERS

#: Largest norm of the gradient, relative to that of the attraction, with which forces count as balanced.
_BALANCE = 0.05
#: Distance of a new row from one of the fit, relative to that of its farthest neighbour, at which they are the same.
_SAME = 1e-9
#: Steps of a new row, roughly, each of which meets all rows of the fit or their tree.
_STEPS = 30.0


class NeighborEmbeddingBase(TransformerMixin, Embedding):  # type: ignore[misc]  # untyped mixin
    """Base of embeddings in which neighbours attract and all rows repel each other."""

    _docs: ClassVar[Mapping[str, str]] = {
        "X": "X : array, sparse matrix or data frame of shape (n_samples, n_features)\n"
        '    With metric="precomputed" distances of shape (n_samples, n_samples).',
        "perplexity": """perplexity : float, default={default}
    Effective number of neighbours: the exponential of the entropy of :math:`p_{j|i}`. Less than the number of rows.""",
        "early_exaggeration": """early_exaggeration : float, default={default}
    Factor of the attraction in the first 250 iterations, in which clusters form and find their places.""",
        "learning_rate": """learning_rate : float or "auto", default={default}
    Length of a step along the gradient.""",
        "n_iter_without_progress": """n_iter_without_progress : int, default={default}
    Iterations without a lower objective after which the descent ends; it is looked at every 50 iterations.""",
        "min_grad_norm": """min_grad_norm : float, default=1e-7
    Norm of the gradient at which the descent ends.""",
        "metric": """metric : str or callable, default={default}
    "euclidean", or any other metric of :class:`NearestNeighbors`; "precomputed" for which X holds distances, and a
    sparse X those of the neighbours.""",
        "metric_params": "metric_params : dict, optional\n    More parameters of the metric.",
        "init": """init : {"pca", "random"} or array of shape (n_samples, n_components), default={default}
    Where the rows start: their first principal components, or at random, close together.""",
        "method": """method : {"auto", "fft", "barnes_hut", "exact"}, default={default}
    How the repulsion is computed: from a grid by Fourier transforms ("fft", two components), from a tree
    ("barnes_hut", up to three), or from all pairs, with the affinities of all pairs too ("exact"). "auto" takes all
    pairs for up to a thousand rows, and then the fastest that there is.""",
        "angle": """angle : float, default={default}
    Of method "barnes_hut": size over distance up to which a cube of the tree counts as one point.""",
        "embedding_": """embedding_ : ndarray of shape (n_samples, n_components)
    Places of the rows, float32.""",
        "learning_rate_": "learning_rate_ : float\n    The learning rate that was used.",
        "method_": "method_ : str\n    The method that was used.",
        "n_steps_": "n_steps_ : int\n    Rows of the history: how often the progress was looked at.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("embedding_", "learning_rate_", "method_", "n_steps_")
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_components": Integer(minimum=1, maximum=64),
        "perplexity": Real(minimum=0, inclusive=False),
        "early_exaggeration": Real(minimum=1, maximum=1e6),
        "learning_rate": AnyOf(Choice("auto"), Real(minimum=0, inclusive=False)),
        "metric": SEARCH_PARAMETERS["metric"],
        "metric_params": NoneOr(InstanceOf(dict)),
        "init": AnyOf(Choice("pca", "random"), ArrayLike()),
        "method": Choice("auto", "fft", "barnes_hut", "exact"),
        "angle": Real(minimum=0, maximum=1),
        "n_iter_without_progress": Integer(minimum=-1),
        "min_grad_norm": Real(minimum=0),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="manifold", catalogue=("E12",), engines=("memory",), certificate="balance of forces", keeps_rows=True
    )
    _takes_sparse = True
    _takes_any_size = True
    # scikit-learn's names for the iterations of the first stage, and between looks at the progress.
    _EXPLORATION_MAX_ITER = 250
    _N_ITER_CHECK = 50

    n_components: int
    perplexity: float
    early_exaggeration: float
    learning_rate: Any
    metric: Any
    metric_params: Any
    init: Any
    method: str
    angle: float
    max_iter: int
    n_iter_without_progress: int
    min_grad_norm: float
    random_state: Any
    n_jobs: int | None

    embedding_: np.ndarray
    learning_rate_: float
    method_: str
    n_steps_: int
    _rows_: Any
    _places_: np.ndarray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.metric)
        tags.transformer_tags.preserves_dtype = []  # places are float32
        return tags

    # ---------------------------------------------------------------- what a member of the family decides

    @abstractmethod
    def _affinities(self, search: Search) -> Affinities:
        """The attracting forces."""

    @abstractmethod
    def _conditional(self, distances: np.ndarray) -> np.ndarray:
        """Probabilities of the neighbours of new rows."""

    @abstractmethod
    def _new_neighbors(self, n: int) -> int:
        """Number of neighbours of a new row among n."""

    @abstractmethod
    def _repulsion(self, n: int) -> Repulsion:
        """The repelling forces."""

    @abstractmethod
    def _stages(self, n: int) -> list[Stage]:
        """The stages of the descent; sets `learning_rate_`."""

    def _strength(self) -> float:
        """The factor of attraction in the end."""
        return 1.0

    def _spread(self) -> float:
        """The spread of a start that is not given."""
        return SPREAD

    def _new_forces(self, n: int) -> _native.manifold.Forces:
        """Forces upon a new row."""
        return self._repulsion(n).forces(self._strength())

    def _value(self, affinities: Affinities, repulsion: Repulsion, attraction: float, Z: float) -> float:
        """The objective of the history."""
        entropy = affinities.entropy if repulsion.normalised else 0.0
        return self._strength() * attraction + repulsion.energy(Z) + entropy

    # ---------------------------------------------------------------- the fit

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find places for the rows X."""
        data = self._checked_table(X)
        n = data.n_rows
        self._check_size(n)
        self.method_ = self._chosen_method(n)
        search = Search.among(data.X, self.metric, self.metric_params, self.n_jobs)
        affinities = self._affinities(search)
        rng = stream(seed_of(self.random_state), "embedding", "start")
        places = start(self.init, search.rows, int(self.n_components), rng, spread=self._spread())
        descent = Descent.at(places, self._resume_state())
        repulsion, edges = self._repulsion(n), affinities.edges()
        rounds = -(-int(self.max_iter) // self._N_ITER_CHECK)
        monitor = self._monitor(rounds, lambda x: {"embedding_": x.reshape(n, -1).astype(np.float32)})
        descend(
            descent, edges, affinities.graph.nnz, repulsion, self._stages(n),
            every=self._N_ITER_CHECK, least_norm=float(self.min_grad_norm), monitor=monitor,
            value=lambda a, z: self._value(affinities, repulsion, a, z), n_jobs=self.n_jobs,
        )  # fmt: skip
        self._rows_, self._places_ = data.X.copy(), descent.points
        self.embedding_ = descent.points.astype(np.float32)
        self._finish(descent.value)
        self._conclude_descent(descent, monitor, self._balance(edges, repulsion, descent, quality_of(self, data.X)))
        return self

    def _conclude_descent(self, descent: Descent, monitor: Monitor, balance: Certificate) -> None:
        stopped = descent.reason == "stopped"
        reason = "converged" if balance.holds and not stopped else descent.reason
        self.n_steps_ = descent.round
        history, state = monitor.history(), descent.state() if stopped else {}
        x = descent.points
        self._conclude(Solution(x, descent.value, history, balance, descent.iteration, reason, state=state))

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit to rows X, and return their places."""
        return self.fit(X).embedding_

    def _finish(self, value: float) -> None:
        """Set what a member of the family reports besides."""

    def _checked_table(self, X: Any) -> ArrayData:
        data = self._table(X)
        if is_precomputed(self.metric):
            if isinstance(self.init, str) and self.init == "pca":
                raise ParameterError('The parameter init="pca" cannot be used with metric="precomputed".')
            require_square(data.X)
            if self.method == "exact":
                require_dense(data.X)
        return data

    def _check_size(self, n: int) -> None:
        if n < 2:
            raise DataError(
                f"Found array with {n} sample(s) (shape=({n}, {self.n_features_in_})) while a minimum of 2 is required "
                f"by {type(self).__name__}."
            )

    def _chosen_method(self, n: int) -> str:
        k = int(self.n_components)
        if self.method == "auto":
            return "exact" if n <= FEW or k > 3 else ("fft" if k == 2 else "barnes_hut")
        if self.method == "barnes_hut" and k > 3:
            raise ParameterError(
                f"n_components={k}: 'n_components' should be inferior to 4 for the barnes_hut algorithm, which needs a "
                "tree of cubes"
            )
        if self.method == "fft" and k != 2:
            raise ParameterError(f"n_components={k}; expected 2 with method='fft', which has a grid in the plane")
        return self.method

    def _balance(self, edges: Any, repulsion: Repulsion, descent: Descent, quality: str) -> Certificate:
        n, strength = len(descent.points), self._strength()
        threads = n_threads(n * repulsion.work(n), self.n_jobs)
        both = _native.manifold.gradient(descent.points, edges, repulsion.forces(strength), threads)[0]
        pull = _native.manifold.gradient(descent.points, edges, _without_push(repulsion, strength), threads)[0]
        norm, scale = float(np.linalg.norm(both)), float(np.linalg.norm(pull))
        value = norm / scale if scale > 0 else 0.0
        meaning = (
            "attraction and repulsion balance up to this share of the attraction: a stationary point nearly, no proof "
            f"of optimality; the norm of the gradient is {norm:.2g}; {quality}"
        )
        return Certificate("balance of forces", value, _BALANCE, meaning)

    # ---------------------------------------------------------------- new rows

    def transform(self, X: Any) -> Any:
        """Places of new rows among those of the fit, which stay where they are.

        A row minimises its own share of the objective, from the mean place of its neighbours on; new rows do not see
        each other. One that equals a row of the fit gets that row's place.

        Returns
        -------
        array of shape (n_samples, n_components)
        """
        data = self._predict_data(X)
        if not isinstance(data, ArrayData):
            raise DataError(f"X: {type(self).__name__} places rows in memory; collect them first")
        if is_precomputed(self.metric) and data.n_features != len(self._places_):
            raise DataError(
                f"X: {data.n_features} columns; expected distances to the {len(self._places_)} rows of the fit"
            )
        return self._place(data.X).astype(np.float32)

    def _place(self, X: Any) -> np.ndarray:
        search = Search.among(self._rows_, self.metric, self.metric_params, self.n_jobs)
        fixed, n = self._places_, search.n_rows
        distances, rows = search.of_queries(X, self._new_neighbors(n))
        p = self._conditional(distances)
        p = p / p.sum(axis=1, keepdims=True)
        places = np.ascontiguousarray(np.einsum("ij,ijk->ik", p, fixed[rows]))
        first = np.arange(len(rows) + 1, dtype=np.int64) * rows.shape[1]
        graph = sp.csr_array((p.ravel(), rows.ravel(), first), shape=(len(rows), n))
        threads = n_threads(_STEPS * len(places) * n, self.n_jobs)
        _native.manifold.place(places, edges_of(graph), fixed, self._new_forces(n), threads)
        same = distances[:, 0] <= _SAME * distances[:, -1]
        places[same] = fixed[rows[same, 0]]
        return places


def _without_push(repulsion: Repulsion, attraction: float) -> _native.manifold.Forces:
    alone = Repulsion(
        "barnes_hut" if repulsion.method == "fft" else repulsion.method, repulsion.freedom, 1.0, factor=0.0
    )
    return alone.forces(attraction)


def quality_of(model: Any, X: Any) -> str:
    """Set how well an embedding keeps the neighbours of rows X; in words."""
    if is_precomputed(model.metric):
        return str(model._judge(lambda rows: _given_rows(X, rows), 1, model.n_jobs))
    unit = Search.among(X, model.metric, model.metric_params, model.n_jobs).rows
    blocks = Distances(unit, unit, model.metric, dict(model.metric_params or {})).block
    return str(model._judge(blocks, int(X.shape[1]), model.n_jobs))


def _given_rows(X: Any, rows: Any) -> np.ndarray:
    """Rows of given distances; those that a sparse matrix does not have are infinite."""
    if not sp.issparse(X):
        return np.asarray(X[rows], dtype=np.float64)
    part = sp.coo_array(sp.csr_array(X)[rows])
    found = np.full(part.shape, np.inf)
    found[part.coords] = part.data
    return found
