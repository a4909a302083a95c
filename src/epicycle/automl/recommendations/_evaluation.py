"""Candidates for a table of ratings, and what they are worth on later ratings and as lists."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.core._exceptions import ConvergenceWarning
from epicycle.metrics import catalogue_coverage, mean_average_precision_at_k, ndcg_at_k, recall_at_k
from epicycle.recommend import CollaborativeFiltering

Array = np.ndarray
_LISTED_USERS = 5_000  # users whose lists are evaluated


@dataclass(frozen=True)
class Ratings:
    """Ids of users and items, and ratings."""

    users: Array
    items: Array
    value: Array

    def pairs(self, rows: Array) -> Array:
        """Pairs as a table in which ids keep their types."""
        if self.users.dtype.kind == self.items.dtype.kind == "i":
            return np.column_stack([self.users[rows], self.items[rows]])
        out = np.empty((len(rows), 2), dtype=object)
        out[:, 0], out[:, 1] = self.users[rows], self.items[rows]
        return out


def candidates(content: bool) -> list[tuple[str, dict[str, Any]]]:
    """Names and arguments: biases, alternating least squares of several ranks and penalties, content."""
    made: list[tuple[str, dict[str, Any]]] = [
        (f"biases, penalty {reg:g}", {"n_factors": 0, "bias_reg": reg}) for reg in (2.0, 5.0, 20.0)
    ]
    for k in (5, 20, 50):
        for reg in (0.05, 0.1, 0.2, 0.4):
            made.append((f"{k} factors, penalty {reg:g}", {"n_factors": k, "reg": reg}))
    if content:
        for reg in (1.0, 10.0):
            made.append((f"features of items, penalty {reg:g}", {"method": "content", "reg": reg}))
    return made


def fitted(
    arguments: dict[str, Any],
    ratings: Ratings,
    rows: Array,
    features: Any,
    *,
    seed: int,
    n_jobs: int | None,
    final: bool,
) -> CollaborativeFiltering:
    """A candidate, fitted to some rows; those that are compared end early."""
    ends: dict[str, Any] = {"tol": 1e-3, "max_iter": 300} if final else {"tol": 1e-2, "max_iter": 30}
    model = CollaborativeFiltering(**arguments, **ends, random_state=seed, n_jobs=n_jobs)
    with warnings.catch_warnings():
        if not final:
            warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(ratings.pairs(rows), ratings.value[rows], item_features=features)


def errors_of(model: CollaborativeFiltering, ratings: Ratings, rows: Array) -> Array:
    """Squared errors on rows."""
    return np.asarray((model.predict(ratings.pairs(rows)) - ratings.value[rows]) ** 2)


def baseline_errors(ratings: Ratings, train: Array, test: Array) -> Array:
    """Squared errors of the mean of the ratings."""
    return np.asarray((ratings.value[test] - ratings.value[train].mean()) ** 2)


def mean_with_error(values: Array, users: Array) -> tuple[float, float]:
    """The mean over rows and its standard error; the rows of a user count as one draw."""
    _, code = np.unique(users, return_inverse=True)
    mean = float(values.mean())
    return mean, float(np.sqrt(np.sum(np.bincount(code, values - mean) ** 2))) / len(values)


def rmse_with_interval(squares: Array, users: Array) -> tuple[float, float, float]:
    """Root mean square and its 95% interval."""
    mean, error = mean_with_error(squares, users)
    low, high = max(mean - 1.96 * error, 0.0), mean + 1.96 * error
    return float(np.sqrt(mean)), float(np.sqrt(low)), float(np.sqrt(high))


def list_criteria(
    model: CollaborativeFiltering, ratings: Ratings, train: Array, test: Array, k: int
) -> dict[str, dict[str, float]]:
    """Criteria of the lists of the model, and of the items that most have rated, on the liked items of the test."""
    liked = float(np.median(ratings.value[train]))
    known = np.isin(ratings.users[test], ratings.users[train])
    rows = test[known & (ratings.value[test] >= liked)]
    if len(rows) == 0:
        return {}
    wanted: dict[Any, set[Any]] = {}
    for user, item in zip(ratings.users[rows].tolist(), ratings.items[rows].tolist(), strict=True):
        if user in wanted or len(wanted) < _LISTED_USERS:
            wanted.setdefault(user, set()).add(item)
    users = [*wanted]
    relevant = [*wanted.values()]
    found = [items.tolist() for items, _ in model.recommend_all(np.array(users), n=k)]
    ids, counts = np.unique(ratings.items[train], return_counts=True)
    order = ids[np.argsort(-counts, kind="stable")].tolist()
    seen: dict[Any, set[Any]] = {user: set() for user in users}
    for user, item in zip(ratings.users[train].tolist(), ratings.items[train].tolist(), strict=True):
        if user in seen:
            seen[user].add(item)
    popular = [_first(order, seen[user], k) for user in users]
    return {
        name: {
            "ndcg": ndcg_at_k(lists, relevant, k),
            "map": mean_average_precision_at_k(lists, relevant, k),
            "recall": recall_at_k(lists, relevant, k),
            "coverage": catalogue_coverage(lists, len(model.items_), k),
            "users": float(len(users)),
        }
        for name, lists in (("model", found), ("popular items", popular))
    }


def _first(order: list[Any], without: set[Any], k: int) -> list[Any]:
    out: list[Any] = []
    for item in order:
        if item not in without:
            out.append(item)
            if len(out) == k:
                break
    return out
