"""Synthetic rows of a table: read, hold real rows out, fit generators, draw, and compare with what was held out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from epicycle.automl._messages import telling
from epicycle.automl._output import TABLE_DOCS, check_folder
from epicycle.automl._train import check_seed
from epicycle.automl.checks._data_checks import DataIssue, profile_columns
from epicycle.automl.synthesis._fidelity import marginals, pairs
from epicycle.automl.synthesis._generation_run import GenerationRun
from epicycle.automl.synthesis._table_generator import MODELS, TableGenerator
from epicycle.automl.synthesis._use import detection, privacy, utility
from epicycle.automl.tables._tables import read_table, source_name
from epicycle.core._docs import documented
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Choice, Integer, check_parameter
from epicycle.core._random import stream

_LEAST_ROWS = 50
_HELD = 0.2
#: Rows that are drawn to be compared, at most.
_COMPARED = 10_000
_TITLES = {"flow": "normalizing flow", "vae": "variational auto-encoder"}


@documented(TABLE_DOCS)
def generate_table(
    data: Any,
    rows: int = 1000,
    *,
    model: str = "auto",
    target: str | None = None,
    header: bool = True,
    drop: Sequence[str] = (),
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: Any = None,
) -> GenerationRun:
    """Draw synthetic rows like those of a table, and say how near they are to real ones, and what they give away.

    A fifth of the real rows is held out. A generator learns the others; its rows are compared with both: column by
    column, in pairs, by what a model learns from them, and by their distance to the nearest row of the fit. Rows that
    equal one of those are counted. The same seed gives the same files.

    Parameters
    ----------
    rows : int, default=1000
        Number of rows to draw.
    model : {"auto", "flow", "vae"}, default="auto"
        Network of the :class:`TableGenerator`; "auto" fits both, and takes the one whose rows boosting tells from
        held-out real rows with more difficulty.
    target : str, optional
        The column that is predicted to measure the utility; by default one with a usual name, else the last.
    out : str or path, optional
        A folder for synthetic.csv and model.epi.

    Examples
    --------
    >>> import epicycle as ep
    >>> run = ep.generate_table("iris", 100, model="vae")
    >>> run.table.num_rows, run.table.column_names[-1]
    (100, 'species')
    """
    folder = None if out is None else check_folder(out)
    check_seed(seed)
    check_parameter("generate_table", "rows", rows, Integer(1))
    check_parameter("generate_table", "model", model, Choice("auto", *MODELS))
    with telling(progress, 60.0, n_jobs) as messages:
        table, name = _read(data, bool(header), drop), source_name(data)
        if table.num_rows < _LEAST_ROWS:
            raise DataError(f"{name}: {table.num_rows:,} rows; expected at least {_LEAST_ROWS} to learn from")
        if target is not None and target not in table.column_names:
            raise DataError(f"target={target!r}: the table has no such column")
        order = stream(seed, "held out").permutation(table.num_rows)
        n_held = round(_HELD * table.num_rows)
        real, held = table.take(pa.array(order[n_held:])), table.take(pa.array(order[:n_held]))
        messages.line(f"{name}: {table.num_rows:,} rows x {table.num_columns} columns, {n_held:,} rows held out")
        compared = min(max(len(real), 200), _COMPARED)
        fitted: list[dict[str, Any]] = []
        for kind in MODELS if model == "auto" else (model,):
            messages.stage(f"fitting a {_TITLES[kind]}")
            generator = TableGenerator(kind, random_state=int(seed)).fit(real)
            drawn = generator.sample(max(int(rows), compared), random_state=int(seed))
            names = [code.name for code in generator.columns_ if code.kind != "counter"]
            area = detection(real.select(names), held.select(names), drawn.select(names))
            fitted.append({"name": kind, "title": _TITLES[kind], "area": area, "made": (generator, drawn)})
            messages.line(f"   {_TITLES[kind]}: boosting tells its rows from real ones with an area of {area:.3f}")
        # An area below one half is as good as one half: only noise is found.
        fitted.sort(key=lambda one: max(one["area"], 0.5))
        generator, drawn = fitted[0].pop("made")
        if target in generator.left_out_:
            raise DataError(f"target={target!r}: left out, {generator.left_out_[target]}")
        candidates = [{key: one[key] for key in ("name", "title", "area")} for one in fitted]
        messages.stage("comparing with the real rows")
        columns, names = generator.columns_, [code.name for code in generator.columns_]
        real, held, some = real.select(names), held.select(names), drawn.slice(0, compared)
        synthetic = drawn.slice(0, int(rows))
        useful, why = utility(real, held, some, target, data)
        told = privacy(real, held, synthetic, [code.name for code in columns if code.kind != "counter"])
        profile, _ = profile_columns(table, {}, ())
        counters = [code.name for code in columns if code.kind == "counter"]
        for p in profile:
            p.treatment = f"left out: {generator.left_out_[p.name]}" if p.name not in names else "drawn"
            if p.name in counters:
                p.kind, p.treatment = "counter", "numbered anew"
        run = GenerationRun(
            table=synthetic,
            model=generator,
            candidates=candidates,
            marginals=marginals(columns, real, held, some),
            pairs=pairs(columns, real, held, some),
            utility=useful,
            no_utility=why,
            privacy=told,
            left_out=generator.left_out_,
            split={"train": len(real), "held out": len(held)},
            profile=profile,
            warnings=[*_copied(told), *_left_out(generator.left_out_)],
            source=name,
            script=_script(data, int(rows), model, target, int(seed), tuple(drop), bool(header)),
            seed=int(seed),
        )
        for issue in run.warnings:
            messages.line(f"{'!!' if issue.severity == 'high' else '! '} {issue.text}")
    if folder is not None:
        run.save(folder)
    return run


def _read(data: Any, header: bool, drop: Sequence[str]) -> pa.Table:
    table = read_table(data, header=header)
    drop = (drop,) if isinstance(drop, str) else tuple(drop)
    for name in drop:
        if name not in table.column_names:
            raise DataError(f"drop={name!r}: the table has no such column")
    if len(drop) == table.num_columns:
        raise DataError("drop: names all columns; none is left to draw")
    return table.drop_columns(list(drop)) if drop else table


def _copied(told: dict[str, Any]) -> list[DataIssue]:
    """Warnings of rows that are copies, and of rows that lie nearer to those of the fit than new ones do."""
    found, n = [], told["rows"]
    if told["copies"]:
        error = 3 * np.sqrt(max(told["held_copied"] * (1 - told["held_copied"]), 1 / n) / n)
        more = told["copied"] > told["held_copied"] + error
        found.append(
            DataIssue(
                "copies",
                "high" if more or told["held_copied"] > 0.5 else "medium",
                f"{told['copies']:,} of {n:,} drawn rows equal a real row in every column; of held-out real rows it is "
                f"{told['held_copied']:.1%}. Do not take them for anonymous"
                + ("; a table of few different rows has no others to give" if told["held_copied"] and not more else ""),
            )
        )
    # Between the values of a small table there is little room: the median too has to be smaller by a good part.
    error = 3 * np.sqrt(0.05 * 0.95 * (1 / n + 1 / told["held_rows"]))
    if "nearer" in told and told["nearer"] > 0.07 + error and told["median"] < 0.7 * told["held_median"]:
        found.append(
            DataIssue(
                "near copies",
                "high",
                f"{told['nearer']:.0%} of the drawn rows lie nearer to a real row than all but a twentieth of new real "
                "rows do: the generator repeats rows of the fit",
            )
        )
    return found


def _left_out(columns: dict[str, str]) -> list[DataIssue]:
    return [DataIssue("left out", "low", f"{name}: left out, {why}", (name,)) for name, why in columns.items()]


def _script(
    data: Any, rows: int, model: str, target: str | None, seed: int, drop: tuple[str, ...], header: bool
) -> str:
    path = repr(os.fspath(data)) if isinstance(data, str | os.PathLike) else "None  # give the path of the table"
    more = "" if target is None else f", target={target!r}"
    more += (f", drop={list(drop)!r}" if drop else "") + ("" if header else ", header=False")
    return (
        '"""Draws these rows again: python generate.py [DATA]"""\n\nimport sys\n\nimport epicycle as ep\n\n'
        f"DATA = sys.argv[1] if len(sys.argv) > 1 else {path}\n"
        f"run = ep.generate_table(DATA, {rows}, model={model!r}, seed={seed}{more}, out='generated')\nprint(run)\n"
    )
