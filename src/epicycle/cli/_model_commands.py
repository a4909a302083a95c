"""Commands on models that are there: predict, score, compare, serve and show them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from epicycle.cli._options import Data, Jobs, Json, Model, NoHeader, Order, Pdf, Seed, Target

models = typer.Typer()


@models.command("predict")
def _predict(
    model: Model,
    data: Data,
    proba: Annotated[bool, typer.Option("--proba", help="Also write the probabilities of the classes.")] = False,
    interval: Annotated[
        float | None,
        typer.Option(
            "--interval", metavar="LEVEL", help="Also write intervals that hold a number with this probability, as 0.9."
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="PATH",
            help="Where to write, in the format of the suffix: .csv, .tsv, .jsonl, .parquet, .arrow, .feather; - is "
            "standard output.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="JSON lines instead of CSV.")] = False,
    no_header: NoHeader = False,
    seed: Seed = 0,  # noqa: ARG001 - every command takes it
    jobs: Jobs = None,
) -> None:
    """Predict every row of a table, block by block: any number of rows in constant memory."""
    from epicycle.cli._predict import run_prediction

    run_prediction(
        model, data, proba=proba, out=out, as_json=json, n_jobs=jobs, header=not no_header, interval=interval
    )


@models.command("report")
def _report(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL.epi", help="A file that train or save() wrote; with --compare a run.")
    ],
    data: Annotated[str, typer.Argument(metavar="DATA", help="A table, as for train; with --compare another run.")],
    compare: Annotated[
        bool, typer.Option("--compare", help="Compare two runs, the folders that train wrote, side by side.")
    ] = False,
    target: Target = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Where to write report.html and .json.")
    ] = None,
    pdf: Pdf = False,
    no_header: NoHeader = False,
    json: Json = False,
    seed: Seed = 0,
    jobs: Jobs = None,
) -> None:
    """Score and diagnose a model on new rows, or compare two runs."""
    if compare:
        from epicycle.cli._compare_runs import run_comparison_of_runs

        run_comparison_of_runs(model, Path(data), out=out, as_json=json, seed=seed, pdf=pdf)
        return
    from epicycle.cli._report import run_report

    run_report(model, data, target=target, out=out, as_json=json, seed=seed, n_jobs=jobs, header=not no_header, pdf=pdf)


@models.command("cv")
def _cv(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file, or the train.py beside it.")],
    data: Data,
    target: Target = None,
    folds: Annotated[int, typer.Option("--folds", min=2, help="Number of folds.")] = 5,
    metric: Annotated[str | None, typer.Option("--metric", help="The metric.")] = None,
    groups: Annotated[
        str | None, typer.Option("--groups", metavar="COLUMN", help="Rows of a group stay in one fold.")
    ] = None,
    order: Order = "auto",
    no_header: NoHeader = False,
    seed: Seed = 0,
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Cross-validate a model on a table: fit it to all folds but one, score it on that one."""
    from epicycle.cli._score import run_cv

    run_cv(
        model,
        data,
        target=target,
        folds=folds,
        metric=metric,
        groups=groups,
        order=None if order == "none" else order,
        header=not no_header,
        seed=seed,
        n_jobs=jobs,
        as_json=json,
    )


@models.command("compare")
def _compare(
    first: Annotated[Path, typer.Argument(metavar="A.epi", help="A model file.")],
    second: Annotated[Path, typer.Argument(metavar="B.epi", help="Another.")],
    data: Annotated[str, typer.Option("--data", metavar="DATA", help="Rows that neither was fitted to.")],
    target: Target = None,
    no_header: NoHeader = False,
    seed: Seed = 0,
    jobs: Jobs = None,  # noqa: ARG001 - every command takes it
    json: Json = False,
) -> None:
    """Compare two models by a paired test on the same rows."""
    from epicycle.cli._score import run_comparison

    run_comparison(first, second, data, target=target, header=not no_header, seed=seed, as_json=json)


@models.command("serve")
def _serve(
    model: Model,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="By default reached from this machine alone.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65_535, help="0 takes a free one.")] = 8000,
    max_rows: Annotated[int, typer.Option("--max-rows", min=1, help="Rows of one request at most.")] = 10_000,
    max_bytes: Annotated[int, typer.Option("--max-bytes", min=1, help="Bytes of one request at most.")] = 10_000_000,
    time_limit: Annotated[float, typer.Option("--time-limit", metavar="SECONDS", help="Of one request.")] = 30.0,
    jobs: Jobs = None,
) -> None:
    """Predict rows over HTTP: POST /predict, a form to try a row at /, and /schema, /health, /metrics."""
    from epicycle.cli._serve import run_server

    run_server(
        model,
        host=host,
        port=port,
        max_rows=max_rows,
        max_bytes=max_bytes,
        seconds=time_limit,
        n_jobs=jobs,
    )


@models.command("methods")
def _methods(
    family: Annotated[str | None, typer.Option("--family", help="Only the methods of this family.")] = None,
    json: Json = False,
) -> None:
    """List all methods with their solvers, engines and kinds of certificate."""
    from epicycle.cli._info import print_methods

    print_methods(family, as_json=json)


@models.command("show")
def _show(
    model: Annotated[Path, typer.Argument(metavar="MODEL.epi", help="A file that save() wrote.")],
    json: Json = False,
) -> None:
    """Show the contents of a model file."""
    from epicycle.cli._info import print_model

    print_model(model, as_json=json)
