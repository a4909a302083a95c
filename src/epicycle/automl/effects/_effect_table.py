"""The effect of one column on another: read the table, say what identifies the effect, estimate it, attack it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from epicycle.automl._messages import telling
from epicycle.automl._output import TABLE_DOCS, check_folder
from epicycle.automl._train import check_seed
from epicycle.automl.checks._data_checks import ColumnProfile, DataIssue, profile_columns
from epicycle.automl.effects._effect_job import EffectJob, Question, contrasts
from epicycle.automl.effects._effect_run import EffectRun
from epicycle.automl.effects._identification import Identification, identification_of
from epicycle.automl.tables._columns import base_kind
from epicycle.automl.tables._table_encoder import TableEncoder
from epicycle.automl.tables._tables import read_table, source_name
from epicycle.core._docs import documented
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import Integer, check_parameter

#: Rows that each arm has to have.
_LEAST_ROWS = 10
_MOST_LEVELS = 40
_MOST_ARMS = 12


@documented(TABLE_DOCS)
def effect_table(
    data: Any,
    treatment: str,
    outcome: str,
    *,
    graph: Any = None,
    control: Any = None,
    level: Any = None,
    header: bool = True,
    drop: Sequence[str] = (),
    repeats: int = 10,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: Any = None,
) -> EffectRun:
    """Estimate the effect of a treatment on an outcome in a table, by several methods, and test the conclusion.

    Without a graph all other columns are taken as covariates, which is right only if they were known before the
    treatment and hold everything that moved both. With a graph the columns to adjust for follow from it; where none
    suffice, another formula of the graph is used (such as a front door), then an instrument, and where there is none
    either, the error names an open path.

    Parameters
    ----------
    treatment : str
        Column of two values, the second in order being the treatment, or of up to 12, of which one is compared with the
        control in full and the others in `contrasts`. A comparison is that of the rows that have one of its two values.
    outcome : str
        Column of numbers, or of two values, of which the second counts as 1.
    graph : str, path or CausalGraph, optional
        The diagram as text (``"age -> drug -> health; age -> health"``), or a file that holds it. Nodes that are no
        columns count as not observed.
    control, level : optional
        Values of the treatment to compare: by default the first and the last in order.
    drop : list of str, optional
        Columns to leave out, such as consequences of the treatment.
    repeats : int, default=10
        Changed data sets for each refutation.
    out : str or path, optional
        A folder for effect.json and effect.py.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> import epicycle as ep
    >>> rng = np.random.default_rng(0)
    >>> age = rng.normal(size=400)
    >>> drug = rng.random(400) < 1 / (1 + np.exp(-2 * age))
    >>> table = pa.table({"age": age, "drug": drug, "health": drug - 2 * age + rng.normal(size=400)})
    >>> run = ep.effect_table(table, "drug", "health", repeats=3)
    >>> bool(run.estimate("difference")["effect"] < 0 < run.effect)  # without age the drug seems to harm
    True
    """
    folder = None if out is None else check_folder(out)
    check_seed(seed)
    check_parameter("effect_table", "repeats", repeats, Integer(1))
    with telling(progress, 60.0, n_jobs) as messages:
        table = read_table(data, header=bool(header))
        name = source_name(data)
        _check_columns(table, treatment, outcome, drop)
        table, issues = _complete(table, treatment, outcome)
        pair, others = _pair(table, treatment, control, level)
        graph = _graph_of(graph)
        found = identification_of(graph, treatment, outcome, table.column_names, tuple(drop))
        inside = _among(table[treatment], pair)
        whole, table = table, table.filter(pa.array(inside))
        t, levels = _arms(table, treatment, pair)
        y, scale = _outcome(whole, outcome)
        side_by_side = _contrasts(whole, y, treatment, outcome, found, tuple(drop), (pair, others), int(seed))
        y = y[inside]
        profile, kinds, more = _profile(table, treatment, outcome, found, tuple(drop))
        X, names, sources = _covariates(table, kinds)
        messages.line(f"{name}: {table.num_rows:,} rows, {int(t.sum()):,} with {treatment} = {levels[1]}")
        for issue in [*issues, *more]:
            messages.line(f"   {issue.text}")
        instrument = None if found.instrument is None else _numbers_of(table, found.instrument)
        columns = _columns_of_formula(table, found, treatment, outcome, t, y)
        question = Question(treatment, outcome, levels, scale, y, t, X, names, sources, instrument, columns)
        job = EffectJob(question, found, repeats, int(seed), messages)
        run = job.run(
            source=name,
            profile=profile,
            issues=[*issues, *more],
            script=_script(data, treatment, outcome, tuple(drop), bool(header), (control, level)),
        )
        run.contrasts = side_by_side
    if folder is not None:
        run.save(folder)
    return run


def _check_columns(table: pa.Table, treatment: str, outcome: str, drop: Sequence[str]) -> None:
    for argument, column in (("treatment", treatment), ("outcome", outcome), *(("drop", d) for d in drop)):
        if column not in table.column_names:
            known = ", ".join(table.column_names[:12])
            raise DataError(f"{argument}={column!r}: the table has no such column; it has {known}")
    if treatment == outcome:
        raise ParameterError(f"treatment, outcome: both are {treatment!r}; expected two columns")


def _complete(table: pa.Table, treatment: str, outcome: str) -> tuple[pa.Table, list[DataIssue]]:
    known = pc.and_(pc.is_valid(table[treatment]), pc.is_valid(table[outcome]))
    if pa.types.is_floating(table[outcome].type):
        known = pc.and_(known, pc.fill_null(pc.is_finite(table[outcome]), False))
    kept = table.filter(known)
    lost = table.num_rows - kept.num_rows
    if not lost:
        return kept, []
    text = f"{lost:,} rows without {treatment} or {outcome} are left out: the effect is that of the others"
    return kept, [DataIssue("missing", "medium" if lost < 0.2 * table.num_rows else "high", text, (treatment, outcome))]


def _pair(table: pa.Table, treatment: str, control: Any, level: Any) -> tuple[tuple[Any, Any], list[Any]]:
    """The two values of the treatment to compare, and the others."""
    values = sorted(set(table[treatment].to_pylist()), key=lambda v: (isinstance(v, str), v))
    if not 2 <= len(values) <= _MOST_ARMS:
        some = ", ".join(str(v) for v in values[:5])
        raise DataError(
            f"treatment={treatment!r}: holds {len(values)} different values ({some}); expected 2 to {_MOST_ARMS}"
        )
    by_text = {str(v): v for v in values}
    for name, given in (("control", control), ("level", level)):
        if given is not None and str(given) not in by_text:
            raise ParameterError(f"{name}={given!r}: {treatment!r} has no such value; it has {', '.join(by_text)}")
    first = values[0] if control is None else by_text[str(control)]
    left = [v for v in values if v != first]
    if level is not None and by_text[str(level)] == first:
        raise ParameterError(f"level={level!r}: is the control; expected another value of {treatment!r}")
    second = left[-1] if level is None else by_text[str(level)]
    return (first, second), [v for v in left if v != second]


def _among(column: pa.ChunkedArray, values: Sequence[Any]) -> np.ndarray:
    """Which rows hold one of the values; also where the column is a dictionary of categories."""
    return np.array([v in values for v in column.to_pylist()], dtype=bool)


def _arms(table: pa.Table, treatment: str, pair: tuple[Any, Any]) -> tuple[np.ndarray, tuple[str, str]]:
    t = np.array([v == pair[1] for v in table[treatment].to_pylist()], dtype=np.float64)
    if min(t.sum(), len(t) - t.sum()) < _LEAST_ROWS:
        few = int(min(t.sum(), len(t) - t.sum()))
        raise DataError(f"treatment={treatment!r}: one of its values has {few} rows; expected at least {_LEAST_ROWS}")
    return t, (str(pair[0]), str(pair[1]))


def _contrasts(
    table: pa.Table,
    y: np.ndarray,
    treatment: str,
    outcome: str,
    found: Identification,
    drop: tuple[str, ...],
    levels: tuple[tuple[Any, Any], list[Any]],
    seed: int,
) -> list[dict[str, Any]]:
    """Every value of a treatment of several against the control, with intervals that hold for all at once."""
    (control, level), others = levels
    if not others:
        return []
    if found.kind not in ("assumed", "adjustment"):
        raise DataError(
            f"treatment={treatment!r}: has {len(others) + 2} values, of which a formula or an instrument compares two; "
            "leave the rows of the others out"
        )
    values = np.array(table[treatment].to_pylist(), dtype=object)
    X = _covariates(table, _profile(table, treatment, outcome, found, drop)[1])[0]
    return contrasts(X, y, values, control, [*others, level], seed)


def _columns_of_formula(
    table: pa.Table, found: Identification, treatment: str, outcome: str, t: np.ndarray, y: np.ndarray
) -> dict[str, np.ndarray]:
    """Columns that a formula of the graph is evaluated on; empty where covariates or an instrument do."""
    if found.kind != "formula":
        return {}
    more = {name: np.asarray(table[name].to_numpy(zero_copy_only=False)) for name in found.covariates}
    return {**more, treatment: t, outcome: y}


def _outcome(table: pa.Table, outcome: str) -> tuple[np.ndarray, str]:
    column = table[outcome]
    if pa.types.is_boolean(column.type) or not _is_number(column.type):
        values = column.to_pylist()
        levels = sorted(set(values), key=str)
        if len(levels) != 2:
            raise DataError(f"outcome={outcome!r}: holds {len(levels)} different texts; expected numbers or two values")
        y = np.array([v == levels[1] for v in values], dtype=np.float64)
        return y, f"share of {outcome} = {levels[1]}"
    y = column.to_numpy().astype(np.float64)
    if np.ptp(y) == 0:
        raise DataError(f"outcome={outcome!r}: is constant; expected one that varies")
    with np.errstate(over="ignore"):
        spread = float(y.std())
    if not 0 < spread < np.inf:
        raise DataError(
            f"outcome={outcome!r}: holds values of {np.abs(y).max():.1e}, whose squares are no numbers; multiply "
            "it by a constant"
        )
    return y, outcome


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _numbers_of(table: pa.Table, column: str) -> np.ndarray:
    if not (_is_number(table[column].type) or pa.types.is_boolean(table[column].type)):
        raise DataError(f"graph: its instrument {column!r} is no column of numbers")
    values = np.asarray(table[column].to_numpy(zero_copy_only=False), dtype=np.float64)
    if not np.isfinite(values).all():
        raise DataError(f"graph: its instrument {column!r} has missing values; leave those rows out")
    return values


def _graph_of(graph: Any) -> Any:
    from epicycle.causal import CausalGraph

    if graph is None or isinstance(graph, CausalGraph):
        return graph
    if isinstance(graph, os.PathLike) or (isinstance(graph, str) and "->" not in graph and os.path.exists(graph)):
        try:
            graph = Path(graph).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"graph={os.fspath(graph)!r}: cannot be read as text ({error})") from None
    return CausalGraph(graph)


def _profile(
    table: pa.Table, treatment: str, outcome: str, found: Identification, drop: tuple[str, ...]
) -> tuple[list[ColumnProfile], dict[str, str], list[DataIssue]]:
    """Profiles of all columns, the kinds of those that are adjusted for, and issues."""
    profile, issues = profile_columns(table, {}, drop)
    roles = {treatment: "the treatment", outcome: "the outcome"}
    roles |= {} if found.instrument is None else {found.instrument: "the instrument"}
    kinds = {}
    for p in profile:
        if p.name in roles:
            p.treatment = roles[p.name]
        elif p.name not in found.covariates:
            p.treatment = p.treatment if p.name in drop else "not adjusted for, by the graph"
        elif p.kind == "category" and p.distinct > _MOST_LEVELS:
            p.treatment = f"left out: {p.distinct:,} levels"
        elif base_kind(p.kind) in ("number", "category", "date"):
            kinds[p.name] = p.kind
    lost = [name for name in found.covariates if name not in kinds and name not in {*roles, *drop}]
    mine = set(found.covariates) | {treatment, outcome}
    issues = [issue for issue in issues if not issue.columns or set(issue.columns) & mine]
    if lost and found.graph is not None:
        text = f"{', '.join(lost)}: the graph asks to adjust for it, but the column cannot be used"
        issues.append(DataIssue("confounder", "high", text, tuple(lost)))
    return profile, kinds, issues


def _covariates(table: pa.Table, kinds: dict[str, str]) -> tuple[np.ndarray, list[str], list[str]]:
    """Encoded covariates without columns that others determine, their names, and the columns they come from."""
    if not kinds:
        return np.zeros((table.num_rows, 0)), [], []
    encoder = TableEncoder(kinds, form="linear").fit(table)
    X = np.array(encoder.transform(table), dtype=np.float64)
    numeric = len(encoder.mean_)
    X[:, :numeric] = X[:, :numeric] * encoder.scale_ + encoder.mean_  # in their own units, in which they are described
    kept: list[int] = []
    basis = np.ones((len(X), 1)) / np.sqrt(len(X))
    for j in range(X.shape[1]):  # a level of a category that the others leave is one too many
        left = X[:, j] - basis @ (basis.T @ X[:, j])
        left -= basis @ (basis.T @ left)
        size = float(np.linalg.norm(left))
        if size > 1e-8 * max(float(np.linalg.norm(X[:, j])), 1e-300):
            kept.append(j)
            basis = np.column_stack([basis, left / size])
    names = [str(name) for name in encoder.get_feature_names_out()]
    return X[:, kept], [names[j] for j in kept], [encoder.sources_[j] for j in kept]


def _script(data: Any, treatment: str, outcome: str, drop: tuple[str, ...], header: bool, pair: tuple[Any, Any]) -> str:
    path = repr(os.fspath(data)) if isinstance(data, str | os.PathLike) else "None  # give the path of the table"
    more = (f", drop={list(drop)!r}" if drop else "") + ("" if header else ", header=False")
    more += "".join(f", {name}={v!r}" for name, v in zip(("control", "level"), pair, strict=True) if v is not None)
    return (
        '"""Repeats the analysis of this folder: python effect.py [DATA]"""\n\nimport sys\n\nimport epicycle as ep\n\n'
        f"DATA = sys.argv[1] if len(sys.argv) > 1 else {path}\n"
        f"run = ep.effect_table(DATA, {treatment!r}, {outcome!r}{{options}}{more})\nprint(run)\n"
    )
