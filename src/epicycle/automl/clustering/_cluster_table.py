"""Clustering of a table: read, check the columns, try methods and numbers of clusters, describe what was found."""

from __future__ import annotations

import numbers
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from epicycle.automl._budget import Budget
from epicycle.automl._messages import telling
from epicycle.automl._output import TABLE_DOCS, check_folder
from epicycle.automl._train import check_seconds, check_seed
from epicycle.automl.checks._distance_columns import distance_columns
from epicycle.automl.clustering._cluster_job import ClusterJob
from epicycle.automl.clustering._clustering_run import ClusteringRun
from epicycle.automl.clustering._methods import methods_for
from epicycle.automl.tables._table_encoder import TableEncoder
from epicycle.automl.tables._tables import EMBEDDED, read_table, source_name
from epicycle.core._docs import documented
from epicycle.core._exceptions import DataError, ParameterError, ParameterTypeError

#: Fewer rows cannot be drawn from again and again.
_LEAST_ROWS = 10
_FIRST_ROWS = 5_000  # of which different ones are counted first


@documented(TABLE_DOCS)
def cluster_table(
    data: Any,
    k: int | str = "auto",
    *,
    time: float = 60.0,
    labels: str | None = None,
    header: bool = True,
    drop: Sequence[str] = (),
    models: Any = None,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: Any = None,
) -> ClusteringRun:
    """Find clusters in a table: encode the columns, try methods and numbers of clusters, say what they are worth.

    Every candidate is fitted to subsamples of the rows again and again, and to tables without clusters. The one that is
    most stable and compact beyond chance is fitted to all rows; where no candidate is better than chance the verdict
    says so. The same seed gives the same files, unless the time is too short for all candidates.

    Parameters
    ----------
    k : "auto" or int, default="auto"
        Number of clusters; "auto" tries 2 to 10.
    time : float, default=60
        Time limit in seconds; candidates that are left then stand in `skipped`.
    labels : str, optional
        A column of known classes, which is left out and compared with the clusters; by default the target of a data set
        that comes with scikit-learn.
    models : str or list of str, optional
        Methods to try, by name or prefix.
    out : str or path, optional
        A folder for model.epi, clusters.csv, clusters.json and cluster.py.

    Examples
    --------
    >>> import epicycle as ep
    >>> run = ep.cluster_table("iris", k=3, models="kmeans")
    >>> run.k, run.labels.shape, run.agreement["column"]
    (3, (150,), 'species')
    """
    budget = Budget(check_seconds(time))
    folder = None if out is None else check_folder(out)
    check_seed(seed)
    number = _number_of_clusters(k)
    with telling(progress, budget.seconds, n_jobs) as messages:
        table = read_table(data, header=bool(header))
        name = source_name(data)
        labels = _column_of_labels(table, labels, data)
        profile, issues = distance_columns(table, labels, "compared with the clusters", drop, name)
        _check_rows(table, number, name)
        kinds = {p.name: p.kind for p in profile}
        encoder = TableEncoder(kinds, form="linear").fit(table)
        X = encoder.transform(table)
        _check_distinct(X, number, name)
        categories = any(kind == "category" for kind in kinds.values())
        methods = methods_for(table.num_rows, models, fixed_k=number is not None, categories=categories)
        messages.line(f"{name}: {table.num_rows:,} rows x {table.num_columns} columns, {X.shape[1]} features")
        for issue in issues:
            messages.line(f"   {issue.text}")
        job = ClusterJob(table, encoder, X, profile, issues, methods, number, labels, data, int(seed), bool(header))
        run = job.run(budget, messages)
    if folder is not None:
        run.save(folder)
    return run


def _number_of_clusters(k: Any) -> int | None:
    if isinstance(k, str) and k == "auto":
        return None
    if not isinstance(k, numbers.Integral) or isinstance(k, bool):
        raise ParameterTypeError(f"k={k!r}; expected 'auto' or a whole number of clusters")
    if k < 2:
        raise ParameterError(f"k={k}; expected at least 2 clusters, or 'auto'")
    return int(k)


def _column_of_labels(table: pa.Table, labels: str | None, data: Any) -> str | None:
    if labels is not None and labels not in table.column_names:
        raise DataError(f"labels={labels!r}: the table has no such column")
    if labels is None and isinstance(data, str) and data in EMBEDDED and EMBEDDED[data][1] in table.column_names:
        return EMBEDDED[data][1]
    return labels


def _check_rows(table: pa.Table, k: int | None, name: str) -> None:
    n = table.num_rows
    if n < _LEAST_ROWS:
        rows = "1 row" if n == 1 else f"{n} rows"
        raise DataError(f"{name}: {rows}; expected at least {_LEAST_ROWS} to look for clusters in")
    if k is not None and k > n:
        raise DataError(f"k={k}: the table has {n:,} rows; expected fewer clusters than rows")


def _check_distinct(X: np.ndarray, k: int | None, name: str) -> None:
    # Subsamples have fewer rows than the table: they must be able to hold k clusters too. Sorting a million rows takes
    # long, and the first few mostly settle it.
    some = len(np.unique(X[:_FIRST_ROWS], axis=0))
    if some >= max(3, (k or 0) / 0.6):
        return
    distinct = len(np.unique(X, axis=0))
    if distinct < 3:
        raise DataError(f"{name}: {distinct} different rows; expected at least 3 to look for clusters in")
    if k is not None and k > 0.6 * min(distinct, len(X)):
        raise DataError(
            f"k={k}: the table has {distinct:,} different rows; expected at most 0.6 times as many clusters"
        )
