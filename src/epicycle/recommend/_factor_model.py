"""Methods of a fitted recommender: predictions of pairs, the best items of users, items next to an item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import r2_score

from epicycle import engine
from epicycle.core._checks import count as checked_count
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core.estimator._estimator import Estimator
from epicycle.data import Batch, as_data
from epicycle.data._categories import LevelEncoder, codes_among
from epicycle.data._dask_data import is_dask
from epicycle.metrics._ranking import ndcg_at_k
from epicycle.recommend._alternating import Model
from epicycle.recommend._tables import Columns, as_rows, split

Array = np.ndarray

#: Methods whose scores order items and are no ratings.
RANKED = ("implicit", "bpr")


class FactorModel(Estimator):
    """Factors, biases and means of users and items."""

    users_: Array
    items_: Array
    user_factors_: Array
    item_factors_: Array
    user_bias_: Array
    item_bias_: Array
    item_mean_: Array
    mean_: float
    n_ratings_: int
    _range_: Array
    _seen_start_: Array
    _seen_items_: Array

    method: str
    clip: bool
    user: str | None
    item: str | None
    n_jobs: int | None
    _fixed_tags: ClassVar[Mapping[str, Any]] = {
        "input_tags.two_d_array": False,
        "input_tags.string": True,
        "input_tags.categorical": True,
    }

    @staticmethod
    def _parts(flat: Array, model: Model) -> dict[str, Array]:
        """The fitted attributes of a vector of all parameters."""
        at = Model(flat, model.n_users, model.n_items, model.k, model.bias)
        users, items, k = at.users, at.items, at.k
        return {
            "user_factors_": users[:, :k].copy(),
            "item_factors_": items[:, :k].copy(),
            "user_bias_": users[:, k].copy() if at.bias else np.zeros(len(users)),
            "item_bias_": items[:, k].copy() if at.bias else np.zeros(len(items)),
        }

    def _set(self, model: Model) -> None:
        for name, value in self._parts(model.flat, model).items():
            setattr(self, name, value)

    # ------------------------------------------------------------------------------------------- predictions

    def predict(self, X: Any) -> Any:
        """Ratings of pairs (user, item), or scores for "implicit" and "bpr".

        A user whom the fit did not see is expected to rate like the mean of all users, an unknown item gets the mean
        and the bias of the user.

        Parameters
        ----------
        X : array, list, data frame, scan or Dask collection of pairs (user, item)

        Returns
        -------
        ndarray of shape (n_samples,), or a lazy dask array
        """
        self._check_fitted()
        pairs, _ = split(X, 0, Columns(self.user, self.item))
        encoder = LevelEncoder(
            {0: self.users_, 1: self.items_}, missing_code=-1.0, dtype=np.float64, estimator_name=type(self).__name__
        )
        if not is_dask(pairs) and isinstance(pairs, np.ndarray) and len(pairs) == 0:
            return np.empty(0)
        data = as_data(encoder.encode(pairs), estimator_name=type(self).__name__)
        bounds = self._range_ if self.clip and self.method not in RANKED else None
        users = np.column_stack([self.user_factors_, self.user_bias_])
        items = np.column_stack([self.item_factors_, self.item_bias_ + self.item_mean_])
        return engine.map(predict_batch, data, users, items, self.mean_, bounds, n_jobs=self.n_jobs)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R squared of the predicted ratings; for "implicit" and "bpr" the mean NDCG of the ten best items.

        Parameters
        ----------
        X : pairs (user, item)
            For "implicit" and "bpr" the pairs that users are to have next; items that they had at the fit do not count.
        y : array-like of shape (n_samples,)
            Ratings; not needed for "implicit" and "bpr".
        """
        X, y = split(X, y, Columns(self.user, self.item, getattr(self, "rating", None)))
        if self.method not in RANKED:
            if y is None:
                raise DataError("y: None; expected the ratings of the pairs")
            return float(r2_score(y, self.predict(X), sample_weight=sample_weight))
        self._check_fitted()
        rows = as_rows(X) if not hasattr(X, "columns") else np.column_stack([np.asarray(X[name]) for name in X.columns])
        wanted: dict[Any, set[Any]] = {}
        for user, item in rows.tolist():
            wanted.setdefault(user, set()).add(item)
        found = [items.tolist() for items, _ in self.recommend_all([*wanted], n=10)]
        return float(ndcg_at_k(found, [*wanted.values()], k=10))

    # ------------------------------------------------------------------------------------------- items

    def _user_codes(self, users: Any) -> Array:
        column = np.array([*users]) if not isinstance(users, np.ndarray) else users
        if len(column) and (column.dtype.kind in "US") != (self.users_.dtype.kind in "US"):
            raise DataError(f"user: {column.tolist()[0]!r}; expected ids like {self.users_.tolist()[0]!r}")
        return codes_among(column, self.users_)

    def recommend(self, user: Any, n: int = 10, *, exclude_seen: bool = True) -> tuple[Array, Array]:
        """The best items for a user.

        Parameters
        ----------
        user : id
            A user whom the fit did not see gets the items that are best on average.
        n : int, default=10
            How many; fewer where no more are left.
        exclude_seen : bool, default=True
            Whether to leave out the items that the user has in the training data.

        Returns
        -------
        items : ndarray
            Ids, the best first.
        scores : ndarray
            Predictions, before they are kept within the range of the ratings.
        """
        return self.recommend_all([user], n, exclude_seen=exclude_seen)[0]

    def recommend_all(self, users: Any = None, n: int = 10, *, exclude_seen: bool = True) -> list[tuple[Array, Array]]:
        """The best items for each of many users.

        Parameters
        ----------
        users : sequence of ids, optional
            All of them by default.
        n : int, default=10
            How many items for each.
        exclude_seen : bool, default=True
            Whether to leave out the items that a user has in the training data.

        Returns
        -------
        list of (items, scores)
        """
        self._check_fitted()
        n = checked_count("n", n, low=1)
        codes = np.arange(len(self.users_)) if users is None else self._user_codes(users)
        seen = (self._seen_start_, self._seen_items_) if exclude_seen else None
        constants = self.item_bias_ + self.item_mean_
        best = best_items(codes, self.user_factors_, self.item_factors_, constants, seen, n)
        bias = np.where(codes >= 0, self.user_bias_[np.maximum(codes, 0)], 0.0) if len(self.user_bias_) else 0 * codes
        return [(self.items_[at], scores + b) for (at, scores), b in zip(best, bias, strict=True)]

    def similar_items(self, item: Any, n: int = 10, *, metric: str = "cosine") -> tuple[Array, Array]:
        """The items next to an item, by their factors.

        Parameters
        ----------
        item : id
            An item that the fit saw.
        n : int, default=10
            How many.
        metric : {"cosine", "euclidean"}, default="cosine"
            Whether the angle between factors counts or their distance.

        Returns
        -------
        items : ndarray
            Ids, the nearest first, without the item itself.
        values : ndarray
            Cosines, or distances.
        """
        self._check_fitted()
        n = checked_count("n", n, low=1)
        if metric not in ("cosine", "euclidean"):
            raise ParameterError(f"metric={metric!r}; expected 'cosine' or 'euclidean'")
        column = np.array([item])
        at = -1
        if (column.dtype.kind in "US") == (self.items_.dtype.kind in "US"):
            at = int(codes_among(column, self.items_)[0])
        if at < 0:
            raise DataError(f"item={item!r}: the fit saw no such item")
        Y = self.item_factors_
        if metric == "euclidean":
            near = -np.sqrt(np.sum((Y - Y[at]) ** 2, axis=1))
        else:
            length = np.linalg.norm(Y, axis=1)
            near = (Y @ Y[at]) / np.where(length > 0, length, 1.0) / (length[at] if length[at] > 0 else 1.0)
        values = near if metric == "cosine" else -near
        near[at] = -np.inf
        found = largest(near, min(n, len(Y) - 1))
        return self.items_[found], values[found]


def predict_batch(batch: Batch, users: Array, items: Array, mean: float, bounds: Array | None) -> Array:
    """Predictions of coded pairs; -1 is an unknown id."""
    X = np.asarray(batch.X)
    u, i = X[:, 0].astype(np.int64), X[:, 1].astype(np.int64)
    has_user, has_item = u >= 0, i >= 0
    k = users.shape[1] - 1
    x, y = users[np.maximum(u, 0)] if len(users) else users[:0], items[np.maximum(i, 0)]
    both = has_user & has_item
    out = np.where(has_item, y[:, k], mean) + np.where(has_user, x[:, k], 0.0)
    out += np.where(both, np.einsum("ij,ij->i", x[:, :k], y[:, :k]), 0.0)
    return out if bounds is None else np.clip(out, bounds[0], bounds[1])


# The best items of users, and the items next to an item, by blocks of scores.


#: Scores that are held at a time.
_BLOCK_SCORES = 1 << 22


def largest(scores: Array, n: int) -> Array:
    """Places of the n largest numbers, the largest first; among equal ones the first."""
    if n < len(scores):
        least = np.partition(scores, len(scores) - n)[len(scores) - n]
        above, equal = np.flatnonzero(scores > least), np.flatnonzero(scores == least)
        kept = np.concatenate([above, equal[: n - len(above)]])
    else:
        kept = np.arange(len(scores))
    kept = np.sort(kept)
    order: Array = kept[np.argsort(-scores[kept], kind="stable")]
    return order


def best_items(
    users: Array, factors: Array, items: Array, constants: Array, seen: tuple[Array, Array] | None, n: int
) -> Iterator[tuple[Array, Array]]:
    """For every user (a code, -1 for none) places and scores of the n best items, without those that were seen."""
    k = items.shape[1]
    at_once = max(1, _BLOCK_SCORES // max(1, len(items)))
    for lo in range(0, len(users), at_once):
        block = users[lo : lo + at_once]
        known = np.where((block >= 0)[:, None], factors[np.maximum(block, 0)], 0.0)
        scores = known @ items.T + constants if k else np.tile(constants, (len(block), 1))
        for u, row in zip(block.tolist(), scores, strict=True):
            allowed = n
            if seen is not None and u >= 0:
                start, at = seen
                mine = at[start[u] : start[u + 1]]
                row[mine] = -np.inf
                allowed = min(n, len(row) - len(mine))
            found = largest(row, allowed)
            yield found, row[found]
