"""K-modes (Huang 1998):  minimise  J = sum_i v_i min_a #{j: x_ij != c_aj}  over k prototypes of categories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import narwhals as nw
import numpy as np

from epicycle.cluster.prototypes._categories import CategoryModel
from epicycle.cluster.prototypes._rounds import Dissimilarity
from epicycle.core._arguments import SharedArguments
from epicycle.core._parameters import AnyOf, ArrayLike, Choice, Domain, Integer
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data._frames import is_frame


class KModes(CategoryModel):
    r"""Clusters of rows of categories around k modes.

    .. math:: \min_{c_1, \dots, c_k} \; J = \sum_i v_i \min_a \sum_j [ x_{ij} \ne c_{aj} ]

    Every row goes to the prototype that it differs from in the fewest columns, and every prototype takes the most
    frequent category of its rows in each column (of equally frequent ones the first in their order), until nothing
    changes. Categories may be strings, pandas categories, or whole numbers, which are compared and not ordered; a
    missing one is a category of its own, and so is one that the fit did not see. A cluster that loses all its rows
    takes the row that differs most from its own prototype. Two prototypes may become equal; then the second stays
    empty.

    Parameters
    ----------
    init : {"cao", "huang", "random"} or array (n_clusters, n_features), default="cao"
        First prototypes: rows of frequent categories that differ from each other ("cao", without chance), rows nearest
        to draws of each category by its frequency ("huang"), rows at random, or given ones.
    n_init : int, default=1
        Number of starts, of which the best is kept; 1 for "cao" and given prototypes.
    n_bins : int, default=3
        Columns of numbers that are not all whole are cut into so many bins of equal weight (low, middle, high), and
        the largest number of a bin stands for it. Rows that share few bins have no modes: many bins need many rows.

    Attributes
    ----------
    bins_ : dict
        Upper ends of the bins of each column that was cut, by its number.
    cluster_centers_ : ndarray of object of shape (n_clusters, n_features)
        The modes; None where the most frequent is that a category is missing.
    categories_ : dict
        The categories of every column, by its number.

    Examples
    --------
    >>> from epicycle import KModes
    >>> X = [["red", "small"], ["red", "small"], ["red", "big"], ["blue", "big"], ["blue", "huge"], ["blue", "big"]]
    >>> model = KModes(n_clusters=2).fit(X)
    >>> sorted(model.cluster_centers_.tolist()), model.inertia_
    ([['blue', 'big'], ['red', 'small']], 2.0)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "init": AnyOf(Choice("cao", "huang", "random"), ArrayLike()),
        "n_bins": Integer(minimum=2),
    }

    _allows_nan = True
    bins_: Bins

    @stores_arguments(max_iter=100, verbose=0, random_state=None)
    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "cao",
        n_init: int = 1,
        n_bins: int = 3,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the modes of rows X."""
        data = self._coded(X, sample_weight)
        self._fit_rows(data, self._with_codes(data.X))
        return self

    def _cut(self, X: Any, sample_weight: Any = None, *, fit: bool = False) -> Any:
        if fit:
            self.bins_ = learn_bins(X, sample_weight, self.n_bins)
        return binned(X, self.bins_)

    def _category_columns(self, X: Any) -> list[int]:
        return list(range(X.shape[1])) if len(getattr(X, "shape", ())) == 2 else []

    def _dissimilarity(self) -> Dissimilarity:
        return Dissimilarity(np.array(sorted(self.categories_), dtype=np.int64), 1.0, squared=True)


# Columns of numbers that are not whole, cut into bins that serve as categories.

#: Upper ends of the bins of a column, by its number; the last is the largest value that was seen.
Bins = dict[int, np.ndarray]


def learn_bins(X: Any, weight: Any, n_bins: int) -> Bins:
    """Bins of equal weight for the columns of X that hold numbers with fractions.

    An end is the least value up to which a share k / n_bins of the weight lies, so that rows that are repeated and
    rows that are weighted have the same bins.
    """
    bins: Bins = {}
    for j, values in _float_columns(X):
        counts = _counts(weight, len(values))
        used = np.isfinite(values) & (counts > 0)
        if np.isinf(values).any() or not (values[used] != np.round(values[used])).any():
            continue
        order = np.argsort(values[used], kind="stable")
        ordered, upto = values[used][order], np.cumsum(counts[used][order] / counts.max())
        # How many of the shares each row has reached, in memory of the size of the rows for any number of bins; one
        # that the sum reaches but for rounding is reached.
        reached = np.floor(upto / upto[-1] * n_bins / (1 - 1e-12))
        bins[j] = np.unique(ordered[np.diff(reached, prepend=0.0) > 0])
    return bins


def binned(X: Any, bins: Bins) -> Any:
    """X with the numbers of binned columns replaced by the upper end of their bin."""
    if not bins or not (is_frame(X) or isinstance(X, np.ndarray)):
        return X
    if isinstance(X, np.ndarray):
        out = X.copy()
        if X.ndim == 2 and X.shape[1] > max(bins) and X.dtype.kind == "f":
            for j, ends in bins.items():
                out[:, j] = _ends_of(X[:, j], ends)
        return out
    frame = nw.from_native(X, eager_only=True)
    names = frame.columns
    changed = []
    for j, ends in bins.items():
        if j < len(names) and frame.schema[names[j]].is_numeric():
            values = frame[names[j]].to_numpy().astype(np.float64)
            changed.append(nw.new_series(names[j], _ends_of(values, ends), nw.Float64, backend=frame.implementation))
    return frame.with_columns(*changed).to_native() if changed else X


def _ends_of(values: np.ndarray, ends: np.ndarray) -> np.ndarray:
    place = np.minimum(np.searchsorted(ends, values), len(ends) - 1)
    return np.where(np.isnan(values), values, ends[place])


def _float_columns(X: Any) -> list[tuple[int, np.ndarray]]:
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        floats = [(j, name) for j, name in enumerate(frame.columns) if frame.schema[name].is_float()]
        return [(j, frame[name].to_numpy().astype(np.float64)) for j, name in floats]
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f":
        return [(j, X[:, j].astype(np.float64)) for j in range(X.shape[1])]
    return []


def _counts(weight: Any, n: int) -> np.ndarray:
    """Weights of rows, or ones where they are not given or will be refused."""
    try:
        given = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError):
        return np.ones(n)
    fits = given.shape == (n,) and np.isfinite(given).all() and (given >= 0).all() and given.any()
    return given if fits else np.ones(n)
