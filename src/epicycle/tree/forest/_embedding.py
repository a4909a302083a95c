"""Leaves of completely random trees as features."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn, Self, Unpack

import numpy as np
import scipy.sparse as sp
from sklearn.base import TransformerMixin

from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Boolean, Domain
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.tree._nodes import leaf_nodes
from epicycle.tree.cart._grow import number_target
from epicycle.tree.cart._regressor import DecisionTreeRegressor
from epicycle.tree.forest._base import Forest
from epicycle.tree.forest._sampling import uniform_of_keys

#: Parameters of forests that have one value here, as attributes of the class.
_FIXED = (
    "criterion",
    "max_features",
    "bootstrap",
    "max_samples",
    "oob_score",
    "leaf_cost",
    "ccp_alpha",
    "monotonic_cst",
)


class RandomTreesEmbedding(TransformerMixin, Forest):  # type: ignore[misc]  # the mixin is untyped
    r"""Embedding of rows by the leaves that they reach in completely random trees (Moosmann, Triggs and Jurie, 2007).

    Every node is split by one feature, drawn at random, at a threshold drawn uniformly between the least and the
    greatest number in the node. With :math:`\ell_t(x)` the leaf of x in tree t, x becomes the indicators

    .. math:: \phi(x) = \bigl( 1(\ell_t(x) = m) \bigr)_{t, m} , \qquad
              \frac1T \phi(x)'\phi(z) = \text{the share of trees in which x and z meet},

    a sparse vector with one 1 for every tree, in which linear methods find shapes that are not linear.

    Parameters
    ----------
    sparse_output : bool, default=True
        Whether `transform` gives a sparse matrix; otherwise a dense one.

    Attributes
    ----------
    trees_ : dict of ndarray
        The trees as arrays; see :mod:`epicycle.tree.forest._arrays`. ``tree(t)`` gives one as a decision tree.
    estimators_ : list
        All trees as fitted decision trees, made anew on every access.
    estimator_ : decision tree
        A tree before its fit.
    estimators_samples_ : list of ndarray
        Numbers of the rows that each tree was grown on.
    feature_importances_ : ndarray of shape (n_features,)
        Share of every feature in the decrease of impurity, as the mean over trees.
    n_outputs_ : int
        1: the trees are grown to one random target.
    %(categories_)s
    certificate_ : Certificate
        None: trees are random.
    history_ : History
        After every tree its leaves and depth.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from epicycle import LogisticRegression, RandomTreesEmbedding
    >>> X, y = make_circles(factor=0.5, random_state=0)
    >>> Z = RandomTreesEmbedding(n_estimators=30, random_state=0).fit_transform(X)
    >>> bool((Z.sum(axis=1) == 30).all())
    True
    >>> float(LogisticRegression().fit(Z, y).score(Z, y))
    1.0
    """

    _target = "none"
    _parameters: ClassVar[dict[str, Domain]] = {
        name: domain for name, domain in Forest._parameters.items() if name not in _FIXED
    } | {"sparse_output": Boolean()}
    _random_splits = True

    criterion = "squared_error"
    max_features = 1
    bootstrap = False
    max_samples = None
    oob_score = False
    leaf_cost = 0.0
    ccp_alpha = 0.0
    monotonic_cst = None

    @stores_arguments(warm_start=False, random_state=None, n_jobs=None, verbose=0)
    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_depth: int | None = 5,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        sparse_output: bool = True,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        handle_unknown: str = "missing",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Grow the trees on rows X; y is not used."""
        if self._has_all_trees():
            return self
        rows, earlier = self._start(self._training_data(X, None, sample_weight), X)
        # Numbers of no meaning: a node is split until its rows are equal, which then have equal numbers too.
        noise = uniform_of_keys(rows.keys, self._seed_)
        self._fit_trees(rows, number_target(noise, rows.weight, "squared_error", 0.0), earlier)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Grow the trees on rows X, and return their embedding; see :meth:`transform`."""
        return self.fit(X, y, sample_weight).transform(X)

    def transform(self, X: Any) -> Any:
        """Return the indicators of the leaves of every row, of shape (n_samples, n_leaves) over all trees."""
        leaves = self.apply(X) + self.trees_["roots"][:-1]
        # Leaves are numbered over all trees, in the order of the nodes.
        column = (np.cumsum(leaf_nodes(self.trees_["nodes"])) - 1)[leaves]
        n, T = leaves.shape
        shape = (n, int(np.count_nonzero(leaf_nodes(self.trees_["nodes"]))))
        out = sp.csr_matrix((np.ones(n * T), column.ravel(), np.arange(0, n * T + 1, T)), shape=shape)
        return out if self.sparse_output else out.toarray()

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return names ``randomtreesembedding_<tree>_<node>`` of the columns of the embedding."""
        self._check_fitted()
        roots = self.trees_["roots"]
        node = np.flatnonzero(leaf_nodes(self.trees_["nodes"]))
        tree = np.searchsorted(roots, node, side="right") - 1
        pairs = zip(tree, node - roots[tree], strict=True)
        return np.array([f"randomtreesembedding_{t}_{m}" for t, m in pairs], dtype=object)

    def _decision_tree(self) -> DecisionTreeRegressor:
        return DecisionTreeRegressor(max_features=1)

    # ------------------------------------------------------------------------------------------- no predictions

    def _row_losses(self, outputs: np.ndarray, y: np.ndarray) -> NoReturn:
        raise DataError("RandomTreesEmbedding predicts nothing; expected a forest that is fitted to targets")

    def _responses(self, X: np.ndarray) -> NoReturn:
        self._row_losses(X, X)
