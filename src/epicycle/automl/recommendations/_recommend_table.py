"""`recommend_table`: from a table of ratings to a chosen model, its error on later ratings, and lists for all users."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from epicycle.automl._messages import Messages
from epicycle.automl.recommendations._evaluation import (
    Ratings,
    baseline_errors,
    candidates,
    errors_of,
    fitted,
    list_criteria,
    mean_with_error,
    rmse_with_interval,
)
from epicycle.automl.recommendations._item_table import ItemTable, item_table
from epicycle.automl.recommendations._recommendation_run import RecommendationRun
from epicycle.automl.tables._tables import read_table, source_name
from epicycle.core._checks import count, open_unit
from epicycle.core._exceptions import DataError, EpicycleError
from epicycle.core._random import stream
from epicycle.recommend._tables import whole
from epicycle.select import split_by_time

Array = np.ndarray
_FEWEST = 20  # ratings of which parts can be left out


def recommend_table(
    data: Any,
    user: str,
    item: str,
    rating: str,
    *,
    time: str | None = None,
    items: Any = None,
    n: int = 10,
    test_size: float = 0.2,
    header: bool = True,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Any = None,
) -> RecommendationRun:
    """Choose a recommender for a table of ratings, test it on the last of them, and make lists for all users.

    Candidates are biases alone, alternating least squares of several ranks and penalties, and regressions on features
    where there are any. They are compared on the last part of the ratings to learn from; the best is tested once on
    ratings later than all of these, and then fitted to all ratings.

    Parameters
    ----------
    data : str, path or frame
        The table, as :func:`epicycle.automl.read_table` takes it.
    user, item, rating : str
        Names of columns.
    time : str, optional
        The column of time by which rows are split; without it they are split at random.
    items : str, path or frame, optional
        A table of items with the column `item` and others that describe them: numbers, categories, or tags that are
        separated by ``|``.
    n : int, default=10
        Length of the lists.
    test_size : float, default=0.2
        Share of the ratings that are tested on.
    header : bool, default=True
        Whether the first line of a CSV file names the columns.
    seed : int, default=0
        Seed of all random numbers.
    n_jobs : int, optional
        Number of threads; None chooses by the size of the work. The result does not depend on it.
    progress : bool or callable, optional
        Whether to print progress; a callable gets each line. By default on terminals.

    Returns
    -------
    RecommendationRun

    Examples
    --------
    >>> import numpy as np, pandas as pd, epicycle as ep
    >>> rng = np.random.default_rng(0)
    >>> who, what = np.divmod(rng.choice(900, size=600, replace=False), 30)
    >>> stars = 3 + rng.normal(size=30)[who] + rng.normal(size=30)[what] + 0.3 * rng.normal(size=600)
    >>> table = pd.DataFrame({"who": who, "what": what, "stars": stars})
    >>> run = ep.recommend_table(table, "who", "what", "stars", n=3, progress=False)
    >>> run.is_better, len(run.lists), len(run.lists[0]["items"])
    (True, 30, 3)
    """
    n, test_size = count("n", n, low=1), open_unit("test_size", test_size)
    table = read_table(data, header=header)
    ratings, times, dropped = _columns(table, user, item, rating, time)
    described = None if items is None else item_table(read_table(items, header=header), item)
    train, test = _split(times, len(ratings.value), test_size, seed, "test")
    inner = _split(None if times is None else times[train], len(train), test_size, seed, "validation")
    learn, check = train[inner[0]], train[inner[1]]
    messages = Messages(progress, 60.0)
    say = messages.line
    say(f"{len(ratings.value):,} ratings: {len(train):,} to learn from, {len(test):,} to test on")
    features = None if described is None or not described.columns else (described.ids, described.features)
    table_of, failed = _compared(ratings, learn, check, features, seed, n_jobs, say)
    best = min(table_of, key=lambda row: row["rmse"])
    model = fitted(best["arguments"], ratings, train, features, seed=seed, n_jobs=n_jobs, final=True)
    squares, base = errors_of(model, ratings, test), baseline_errors(ratings, train, test)
    rmse, low, high = rmse_with_interval(squares, ratings.users[test])
    gain, error = mean_with_error(base - squares, ratings.users[test])
    criteria = list_criteria(model, ratings, train, test, n)
    rows = np.arange(len(ratings.value))
    final = fitted(best["arguments"], ratings, rows, features, seed=seed, n_jobs=n_jobs, final=True)
    say(f"{best['name']}: RMSE {rmse:.4g} on the test")
    messages.close()
    return RecommendationRun(
        model=final,
        columns={"user": user, "item": item, "rating": rating, "time": time},
        n=n,
        candidates=[
            {k: v for k, v in row.items() if k != "arguments"} for row in sorted(table_of, key=lambda r: r["rmse"])
        ],
        method=best["name"],
        rmse=rmse,
        interval=(low, high),
        baseline=float(np.sqrt(base.mean())),
        is_better=gain > 1.96 * error,
        criteria=criteria,
        new_users=float(np.mean(~np.isin(ratings.users[test], ratings.users[train]))),
        new_items=float(np.mean(~np.isin(ratings.items[test], ratings.items[train]))),
        counts=_counts(ratings, len(train), len(test)),
        lists=_lists(final, n, described),
        similar=_similar(final, ratings, described),
        failed=failed,
        dropped=dropped,
        left_out=[] if described is None else described.left_out,
        features=[] if described is None else described.columns,
        source=Path(source_name(data)).name,
        seed=seed,
    )


def _columns(table: Any, user: str, item: str, rating: str, time: str | None) -> tuple[Ratings, Array | None, int]:
    """Ids, ratings and times of the rows that have them all, and how many have not."""
    named = {"user": user, "item": item, "rating": rating, "time": time}
    for argument, name in named.items():
        if name is not None and name not in table.column_names:
            shown = ", ".join(map(repr, table.column_names[:12]))
            raise DataError(f"{argument}: the table has no column {name!r}; it has {shown}")
    chosen = [name for name in named.values() if name is not None]
    if len(set(chosen)) < len(chosen):
        raise DataError(f"user, item, rating, time: a column is named twice among {', '.join(map(repr, chosen))}")
    full = table.select(chosen).drop_null()
    dropped = table.num_rows - full.num_rows
    if full.num_rows < _FEWEST:
        raise DataError(
            f"{full.num_rows} complete rows; expected at least {_FEWEST} ratings, of which some are left out"
        )
    value = np.array(full[rating].to_pylist())
    if value.dtype.kind not in "iufb":
        raise DataError(f"rating: column {rating!r} holds {full[rating].type}; expected numbers")
    value = value.astype(np.float64)
    if not np.isfinite(value).all():
        raise DataError(f"rating: column {rating!r} has an infinite value; expected finite numbers")
    if np.ptp(value) == 0:
        raise DataError(f"rating: every value of {rating!r} is {value[0]:g}; there is nothing to tell apart")
    ids = [whole(np.array(full[name].to_pylist())) for name in (user, item)]
    if any(column.dtype.kind == "O" for column in ids):
        raise DataError("user, item: ids of several types; expected numbers or text")
    times = None if time is None else np.array(full[time].to_pylist())
    return Ratings(ids[0], ids[1], value), times, dropped


def _split(times: Array | None, n: int, share: float, seed: int, key: str) -> tuple[Array, Array]:
    if times is not None:
        return split_by_time(times, share)
    order = stream(seed, key).permutation(n)
    cut = min(n - 1, max(1, round(share * n)))
    return np.sort(order[cut:]), np.sort(order[:cut])


def _compared(
    ratings: Ratings,
    learn: Array,
    check: Array,
    features: Any,
    seed: int,
    n_jobs: int | None,
    say: Callable[[str], None],
) -> tuple[list[dict[str, Any]], list[str]]:
    """Every candidate with its error on the rows to choose by, and those that could not be fitted."""
    found, failed = [], []
    for name, arguments in candidates(features is not None):
        try:
            model = fitted(arguments, ratings, learn, features, seed=seed, n_jobs=n_jobs, final=False)
        except EpicycleError as error:
            failed.append(f"{name}: {error}")
            continue
        squares = errors_of(model, ratings, check)
        rmse, low, high = rmse_with_interval(squares, ratings.users[check])
        found.append({"name": name, "arguments": arguments, "rmse": rmse, "lower": low, "upper": high})
        if "reg" in arguments and "n_factors" in arguments:
            found[-1] |= {"factors": arguments["n_factors"], "penalty": arguments["reg"]}
        say(f"  {name}: RMSE {rmse:.4g}")
    if not found:
        raise DataError(f"no candidate could be fitted: {failed[0]}")
    return found, failed


def _counts(ratings: Ratings, train: int, test: int) -> dict[str, Any]:
    users, items = len(np.unique(ratings.users)), len(np.unique(ratings.items))
    levels, number = np.unique(ratings.value, return_counts=True)
    if len(levels) > 20:
        number, edges = np.histogram(ratings.value, bins=20)
        levels = (edges[:-1] + edges[1:]) / 2
    return {
        "ratings": len(ratings.value),
        "users": users,
        "items": items,
        "train": train,
        "test": test,
        "density": len(ratings.value) / (users * items),
        "levels": levels.tolist(),
        "numbers": number.tolist(),
    }


def _named(described: ItemTable | None, item: Any) -> str:
    return str(item) if described is None else described.names.get(item, str(item))


def _lists(model: Any, n: int, described: ItemTable | None) -> list[dict[str, Any]]:
    out = []
    for user, (items, scores) in zip(model.users_.tolist(), model.recommend_all(n=n), strict=True):
        names = [_named(described, item) for item in items.tolist()]
        out.append({"user": user, "items": items.tolist(), "names": names, "scores": scores.tolist()})
    return out


def _similar(model: Any, ratings: Ratings, described: ItemTable | None) -> list[dict[str, Any]]:
    """The items next to those with most ratings."""
    if model.item_factors_.shape[1] == 0:
        return []
    ids, counts = np.unique(ratings.items, return_counts=True)
    out = []
    for item in ids[np.argsort(-counts, kind="stable")[:6]].tolist():
        items, values = model.similar_items(item, 5)
        names = [_named(described, other) for other in items.tolist()]
        out.append({"item": item, "name": _named(described, item), "similar": names, "cosines": values.tolist()})
    return out
