"""Anomalies in a table: read, encode the columns, compare detectors, rank the rows and say why."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.pipeline import Pipeline

from epicycle.automl._messages import telling
from epicycle.automl._output import TABLE_DOCS, check_folder
from epicycle.automl._train import check_seed
from epicycle.automl.anomalies._anomaly_run import AnomalyRun
from epicycle.automl.anomalies._comparison import by_agreement, by_labels, detectors
from epicycle.automl.checks._distance_columns import distance_columns
from epicycle.automl.tables._columns import as_text
from epicycle.automl.tables._table_encoder import TableEncoder
from epicycle.automl.tables._tables import read_table, source_name
from epicycle.core._docs import documented
from epicycle.core._exceptions import DataError, EpicycleError, ParameterError, ParameterTypeError

_LEAST_ROWS = 20
_LEAST_ANOMALIES = 4  # two in each half
_EXPLAINED = 1_000  # rows that are explained, the most unusual first
_REASONS = 3  # columns that are named for a row
_BLAMED = 12  # columns that are named for all anomalies


@documented(TABLE_DOCS)
def anomaly_table(
    data: Any,
    label: str | None = None,
    *,
    share: float = 0.01,
    header: bool = True,
    drop: Sequence[str] = (),
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: Any = None,
) -> AnomalyRun:
    """Find the rows of a table that are unlike the others, and say what makes each of them so.

    Up to six detectors are compared. With a column of labels each is fitted to the normal rows of one half, its
    threshold is chosen by F1, and the other half is scored; the one with the largest average precision is fitted to all
    normal rows. Without labels the one that agrees best with the others is taken. The same seed gives the same files.

    Parameters
    ----------
    label : str, optional
        A column of two values, of which the rarer one marks known anomalies; it is left out of the comparison of rows.
    share : float, default=0.01
        Share of rows to report, at most 0.5; not used with labels.
    out : str or path, optional
        A folder for model.epi and anomalies.csv.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> import epicycle as ep
    >>> rng = np.random.default_rng(0)
    >>> table = pa.table({"height": np.append(rng.normal(170, 9, 300), 40.0), "age": rng.uniform(20, 60, 301)})
    >>> run = ep.anomaly_table(table)
    >>> run.order[0].item(), run.reasons[0].split(" ")[0]
    (300, 'height')
    """
    folder = None if out is None else check_folder(out)
    check_seed(seed)
    if isinstance(share, bool) or not isinstance(share, int | float | np.number):
        raise ParameterTypeError(f"share={share!r}; expected a number")
    if not 0 < share <= 0.5:
        raise ParameterError(f"share={share!r}; expected a number above 0 and at most 0.5")
    with telling(progress, 60.0, n_jobs) as messages:
        table, name = read_table(data, header=bool(header)), source_name(data)
        if table.num_rows < _LEAST_ROWS:
            raise DataError(f"{name}: {table.num_rows:,} rows; expected at least {_LEAST_ROWS} to compare")
        odd, about = _labels_of(table, label)
        profile, issues = distance_columns(table, label, "marks known anomalies", drop, name)
        encoder = TableEncoder({p.name: p.kind for p in profile}, form="linear").fit(table)
        X = np.asarray(encoder.transform(table), dtype=np.float64)
        messages.line(f"{name}: {table.num_rows:,} rows x {table.num_columns} columns, {X.shape[1]} features")
        for issue in issues:
            messages.line(f"   {issue.text}")
        candidates = detectors(len(X), float(share), int(seed))
        if odd is None:
            ranked, failed = by_agreement(candidates, X, messages.stage)
        else:
            ranked, failed = by_labels(candidates, X, odd, int(seed), messages.stage)
        if not ranked:
            raise EpicycleError(f"no detector could be fitted: {'; '.join(failed)}")
        detector = candidates[ranked[0]["name"]].fit(X if odd is None else X[~odd])
        if odd is not None:
            detector.calibrate(X, odd)
        scores = np.asarray(detector.score_samples(X))
        order = np.argsort(scores, kind="stable")[:_EXPLAINED]
        parts = _by_column(np.asarray(detector.explain(X[order])), encoder.sources_)
        flagged = scores < detector.offset_
        run = AnomalyRun(
            method=ranked[0]["name"],
            model=Pipeline([("columns", encoder), ("detector", detector)]),
            candidates=ranked,
            failed=failed,
            scores=scores,
            flagged=flagged,
            order=order,
            reasons=_reasons(table, order, parts),
            blame=_blame(parts, flagged[order]),
            threshold=float(detector.offset_),
            label=about,
            labels=odd,
            profile=profile,
            warnings=issues,
            source=name,
            script=_script(data, label, float(share), int(seed), tuple(drop), bool(header)),
            seed=int(seed),
        )
    if folder is not None:
        run.save(folder)
    return run


def _labels_of(table: pa.Table, label: str | None) -> tuple[np.ndarray | None, dict[str, Any]]:
    """(mask of the known anomalies, column, value and number); the rarer of two values marks them."""
    if label is None:
        return None, {}
    if label not in table.column_names:
        known = ", ".join(table.column_names[:12])
        raise DataError(f"label={label!r}: the table has no such column; it has {known}")
    if table[label].null_count:
        raise DataError(f"label={label!r}: {table[label].null_count:,} values are missing; expected one for every row")
    values = np.asarray(as_text(table[label]), dtype=object).astype(str)
    levels, counts = np.unique(values, return_counts=True)
    if len(levels) != 2:
        raise DataError(f"label={label!r}: has {len(levels):,} different values; expected two, the rarer for anomalies")
    rare = int(counts.argmin())
    if counts[rare] < _LEAST_ANOMALIES:
        raise DataError(
            f"label={label!r}: {counts[rare]} rows have {levels[rare]!r}; expected at least {_LEAST_ANOMALIES} known "
            "anomalies to choose by"
        )
    return values == levels[rare], {"column": label, "value": str(levels[rare]), "rows": int(counts[rare])}


def _by_column(parts: np.ndarray, sources: list[str]) -> dict[str, np.ndarray]:
    """Contributions of the features, added up by the columns of the table."""
    found: dict[str, np.ndarray] = {}
    for j, source in enumerate(sources):
        found[source] = found.get(source, 0.0) + parts[:, j]
    return found


def _reasons(table: pa.Table, order: np.ndarray, parts: dict[str, np.ndarray]) -> list[str]:
    names, some = list(parts), table.take(pa.array(order))
    values = {name: as_text(some[name]) for name in names}
    matrix = np.array([parts[name] for name in names])
    out = []
    for i in range(len(order)):
        total = float(matrix[:, i].clip(min=0.0).sum())
        best = np.argsort(-matrix[:, i], kind="stable")[:_REASONS]
        named = [j for j in best if total > 0 and matrix[j, i] >= 0.1 * total]
        shown = (f"{names[j]} = {_short(values[names[j]][i])} ({matrix[j, i] / total:.0%})" for j in named)
        out.append(", ".join(shown))
    return out


def _short(value: Any) -> str:
    text = "missing" if value is None else str(value)
    try:
        return f"{float(text):.6g}"
    except ValueError:
        return text if len(text) <= 40 else f"{text[:37]}..."


def _blame(parts: dict[str, np.ndarray], flagged: np.ndarray) -> list[dict[str, Any]]:
    """Shares of the columns in what makes the anomalies unusual, the largest first."""
    total = {name: float(values[flagged].clip(min=0.0).sum()) for name, values in parts.items()}
    whole = sum(total.values())
    if not whole > 0:
        return []
    ranked = sorted(total.items(), key=lambda item: -item[1])[:_BLAMED]
    return [{"column": name, "share": value / whole} for name, value in ranked]


def _script(data: Any, label: str | None, share: float, seed: int, drop: tuple[str, ...], header: bool) -> str:
    path = repr(os.fspath(data)) if isinstance(data, str | os.PathLike) else "None  # give the path of the table"
    more = f", share={share!r}, seed={seed}" + (f", drop={list(drop)!r}" if drop else "")
    more += "" if header else ", header=False"
    return (
        '"""Repeats the search of this folder: python anomalies.py [DATA]"""\n\nimport sys\n\nimport epicycle as ep\n\n'
        f"DATA = sys.argv[1] if len(sys.argv) > 1 else {path}\n"
        f"run = ep.anomaly_table(DATA, {label!r}{more})\nprint(run)\n"
    )
