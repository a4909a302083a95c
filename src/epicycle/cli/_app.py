"""The commands, and what they exit with: 0 done, 2 bad input, 130 interrupted, 141 nobody reads any more.

A command imports what it needs when it runs, so that ``epicycle --version`` and ``--help`` answer at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from epicycle.cli._options import Jobs, Json, Order, Out, Seed, Target

__all__ = ["app", "main"]

OK, BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 0, 2, 128 + 2, 128 + 13

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


def _print_version(wanted: bool) -> None:
    if wanted:
        from epicycle import __version__

        typer.echo(f"epicycle {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Machine learning that shows its work.

    Exit status: 0 done, 2 bad input, 130 interrupted.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A CSV, Parquet, Arrow or JSON lines file, - for standard input, or a data set such as iris.",
    ),
]
Model = Annotated[Path, typer.Argument(metavar="MODEL.epi", help="A file that train or save() wrote.")]


@app.command("train")
def _train(
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="[DATA]",
            show_default=False,
            help="A CSV, Parquet, Arrow or JSON lines file, - for standard input, or a data set that comes with "
            "scikit-learn: breast_cancer (taken where nothing is named), diabetes, digits, iris, wine.",
        ),
    ] = None,
    target: Target = None,
    task: Annotated[str, typer.Option("--task", help="auto, classification or regression.")] = "auto",
    time: Annotated[
        float | None, typer.Option("--time", metavar="SECONDS", help="For all of it; 60, or 10 for the demo.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option("--metric", help="What decides: accuracy, roc_auc, log_loss, f1, r2, rmse, mae, ...")
    ] = None,
    test: Annotated[str | None, typer.Option("--test", metavar="DATA", help="Test rows of their own.")] = None,
    test_size: Annotated[float, typer.Option("--test-size", help="The share of rows that is set aside.")] = 0.2,
    groups: Annotated[
        str | None, typer.Option("--groups", metavar="COLUMN", help="Rows of one group are never divided.")
    ] = None,
    weight: Annotated[str | None, typer.Option("--weight", metavar="COLUMN", help="Weights of the rows.")] = None,
    order: Order = "auto",
    drop: Annotated[
        list[str] | None, typer.Option("--drop", metavar="COLUMN", help="Not to be used; may be given more than once.")
    ] = None,
    models: Annotated[
        str | None, typer.Option("--models", help="Methods to try, divided by commas; by default all that suit.")
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Where to write; by default epicycle-NAME in this folder."),
    ] = None,
    json: Json = False,
) -> None:
    """From a table to a trusted model: profile, compare, refit, score once on rows set aside, diagnose, report.

    Writes report.html, report.json, model.epi, metrics.json, predictions.csv and train.py into DIR.
    """
    from epicycle.cli._train import run_training

    run_training(
        data, target=target, task=task, time=time, metric=metric, test=test, test_size=test_size, groups=groups,
        weight=weight, order=None if order == "none" else order, drop=tuple(drop or ()),
        models=None if models is None else [m.strip() for m in models.split(",") if m.strip()], seed=seed, n_jobs=jobs,
        out=out, as_json=json,
    )  # fmt: skip


@app.command("predict")
def _predict(
    model: Model,
    data: Data,
    proba: Annotated[bool, typer.Option("--proba", help="Probabilities of the classes too.")] = False,
    out: Out = None,
    json: Annotated[bool, typer.Option("--json", help="JSON lines instead of CSV.")] = False,
    seed: Seed = 0,
    jobs: Jobs = None,
) -> None:
    """Predict every row of a table, block by block: any number of rows in constant memory."""
    from epicycle.cli._predict import run_prediction

    run_prediction(model, data, proba=proba, out=out, as_json=json, n_jobs=jobs)


@app.command("report")
def _report(
    model: Model,
    data: Data,
    target: Target = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Where to write report.html and .json.")
    ] = None,
    json: Json = False,
    seed: Seed = 0,
    jobs: Jobs = None,
) -> None:
    """Score and diagnose a model on new rows."""
    from epicycle.cli._report import run_report

    run_report(model, data, target=target, out=out, as_json=json, seed=seed, n_jobs=jobs)


@app.command("cv")
def _cv(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file, or the train.py beside it.")],
    data: Data,
    target: Target = None,
    folds: Annotated[int, typer.Option("--folds", min=2, help="Number of folds.")] = 5,
    metric: Annotated[str | None, typer.Option("--metric", help="What to measure.")] = None,
    groups: Annotated[
        str | None, typer.Option("--groups", metavar="COLUMN", help="Rows of one group stay together.")
    ] = None,
    order: Order = "auto",
    seed: Seed = 0,
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Cross-validate a model on a table: fit it anew on all folds but one, score on that one."""
    from epicycle.cli._cv import run_cv

    run_cv(
        model, data, target=target, folds=folds, metric=metric, groups=groups, order=None if order == "none" else order,
        seed=seed, n_jobs=jobs, as_json=json,
    )  # fmt: skip


@app.command("compare")
def _compare(
    first: Annotated[Path, typer.Argument(metavar="A.epi", help="A model file.")],
    second: Annotated[Path, typer.Argument(metavar="B.epi", help="Another.")],
    data: Annotated[str, typer.Option("--data", metavar="DATA", help="Rows that neither was fitted to.")],
    target: Target = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Which of two models predicts better, by a paired test on the same rows."""
    from epicycle.cli._compare import run_comparison

    run_comparison(first, second, data, target=target, seed=seed, as_json=json)


@app.command("methods")
def _methods(
    family: Annotated[str | None, typer.Option("--family", help="Only the methods of this family.")] = None,
    json: Json = False,
) -> None:
    """List every method that exists, with its solvers, engines and kind of certificate."""
    from epicycle.cli._methods import print_methods

    print_methods(family, as_json=json)


@app.command("show")
def _show(
    model: Annotated[Path, typer.Argument(metavar="MODEL.epi", help="A file that save() wrote.")],
    json: Json = False,
) -> None:
    """Show what a model file holds."""
    from epicycle.cli._show import print_model

    print_model(model, as_json=json)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (that of the process by default) and return its exit status."""
    try:
        status = app(args=None if arguments is None else list(arguments), prog_name="epicycle", standalone_mode=False)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):  # the parser makes the second of the first
        # The reader (head, less) has seen enough. What is still buffered goes nowhere, without a complaint at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except Exception as error:
        message = _in_one_line(error)
        if message is None:
            raise
        print(f"epicycle: {message}", file=sys.stderr)
        return BAD_INPUT
    return status if isinstance(status, int) else OK


def _in_one_line(error: Exception) -> str | None:
    """What to tell the user about bad input; None for an error that is nobody's input but our fault."""
    from epicycle.core._exceptions import EpicycleError

    if hasattr(error, "format_message"):  # what the command line parser raises
        message = error.format_message()
    elif isinstance(error, OSError) and error.strerror and error.filename is not None:
        message = f"{os.fsdecode(error.filename)}: {error.strerror}"
    elif isinstance(error, EpicycleError | OSError):
        message = str(error)
    else:
        return None
    return " ".join(message.split())
