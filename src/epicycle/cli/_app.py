"""The commands and their exit status: 0 done, 2 bad input, 130 interrupted, 141 broken pipe.

A command imports what it needs when it runs, so that ``epicycle --version`` and ``--help`` answer at once.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from epicycle.cli._model_commands import models
from epicycle.cli._options import Data, Drop, Jobs, Json, Models, NoHeader, Order, Pdf, Seed, folder, names_of

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
    version: Annotated[  # noqa: ARG001 - its callback prints it
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Machine learning that shows its work.

    Exit status: 0 done, 2 bad input, 130 interrupted.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("train")
def _train(
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="[DATA]",
            show_default=False,
            help="A CSV, Parquet, Arrow or JSON file (.gz, .bz2, .xz, .zip, .zst too), a folder or a pattern in quotes "
            "('data/*.csv'), a folder of folders of images, a spreadsheet (file.xlsx::sheet), a table or query of a "
            "database (file.db::table), - for standard input, or a data set that comes with scikit-learn: "
            "breast_cancer (the default), diabetes, digits, iris, wine.",
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            metavar="COLUMN",
            help="The column to predict; several (with commas, or given more than once) get a model each.",
        ),
    ] = None,
    task: Annotated[
        str, typer.Option("--task", help="auto, classification, regression, or multilabel of a column of label lists.")
    ] = "auto",
    time: Annotated[
        float | None, typer.Option("--time", metavar="SECONDS", help="Time limit; 60, or 10 for the demo.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric", help="Metric that ranks the candidates: accuracy, roc_auc, log_loss, f1, r2, rmse, mae, ..."
        ),
    ] = None,
    test: Annotated[str | None, typer.Option("--test", metavar="DATA", help="A separate test set.")] = None,
    test_size: Annotated[float, typer.Option("--test-size", help="Share of the rows for the test set.")] = 0.2,
    groups: Annotated[
        str | None,
        typer.Option("--group", "--groups", metavar="COLUMN", help="Rows of a group stay on one side of every split."),
    ] = None,
    weight: Annotated[str | None, typer.Option("--weight", metavar="COLUMN", help="Sample weights.")] = None,
    order: Order = "auto",
    no_header: NoHeader = False,
    drop: Drop = None,
    models: Models = None,
    interpretable: Annotated[
        bool, typer.Option("--interpretable", help="Choose a model that can be read, and say what that costs.")
    ] = False,
    quantile: Annotated[
        float | None,
        typer.Option("--quantile", metavar="SHARE", help="Predict a quantile, such as 0.9, in the place of the mean."),
    ] = None,
    group_report: Annotated[
        str | None,
        typer.Option("--group-report", metavar="COLUMN", help="Rates of the model in each group of test rows."),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    out: Annotated[Path | None, folder("NAME")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the files of a run that --out holds.")] = False,
    resume: Annotated[
        Path | None,
        typer.Option("--resume", metavar="DIR", help="Go on with the search of an earlier run of this data in DIR."),
    ] = None,
    pdf: Pdf = False,
    json: Json = False,
) -> None:
    """Train a model on a table: check the data, compare models, refit, score the test set once, diagnose, report.

    Writes report.html, report.json, model.epi, metrics.json, predictions.csv, train.py and search.jsonl into DIR.
    Ctrl-C ends the search and finishes with the best model so far; a second one leaves at once.
    """
    began = perf_counter()
    from epicycle.cli._train import run_training

    run_training(
        data,
        began=began,
        target=target or [],
        task=task,
        time=time,
        metric=metric,
        test=test,
        test_size=test_size,
        groups=groups,
        weight=weight,
        order=None if order == "none" else order,
        header=not no_header,
        drop=tuple(drop or ()),
        models=names_of(models),
        interpretable=interpretable,
        group_report=group_report,
        quantile=quantile,
        seed=seed,
        n_jobs=jobs,
        out=out,
        force=force,
        resume=resume,
        pdf=pdf,
        as_json=json,
    )


@app.command("cluster")
def _cluster(
    data: Data,
    k: Annotated[str, typer.Option("--k", metavar="K", help="Number of clusters; auto tries 2 to 10.")] = "auto",
    time: Annotated[float, typer.Option("--time", metavar="SECONDS", help="Time limit.")] = 60.0,
    labels: Annotated[
        str | None,
        typer.Option("--labels", metavar="COLUMN", help="Known classes: left out, and compared with the clusters."),
    ] = None,
    no_header: NoHeader = False,
    drop: Drop = None,
    models: Models = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    out: Annotated[Path | None, folder("NAME-clusters")] = None,
    json: Json = False,
) -> None:
    """Find clusters in a table: check the columns, try methods and numbers of clusters, test them against chance.

    Writes report.html, report.json, model.epi, clusters.csv, clusters.json and cluster.py into DIR.
    """
    from epicycle.cli._table_commands import run_clustering

    run_clustering(
        data,
        k=k,
        time=time,
        labels=labels,
        header=not no_header,
        drop=tuple(drop or ()),
        models=names_of(models),
        seed=seed,
        n_jobs=jobs,
        out=out,
        as_json=json,
    )


@app.command("anomalies")
def _anomalies(
    data: Data,
    label: Annotated[
        str | None,
        typer.Option("--label", metavar="COLUMN", help="A column of two values; the rarer marks known anomalies."),
    ] = None,
    share: Annotated[float, typer.Option("--share", help="Share of rows to report; not used with --label.")] = 0.01,
    no_header: NoHeader = False,
    drop: Drop = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    out: Annotated[Path | None, folder("NAME-anomalies")] = None,
    json: Json = False,
) -> None:
    """Find rows that are unlike the others: compare detectors, rank the rows, say what makes each unusual.

    Writes report.html, report.json, model.epi and anomalies.csv into DIR.
    """
    from epicycle.cli._table_commands import run_anomalies

    run_anomalies(
        data,
        label=label,
        share=share,
        header=not no_header,
        drop=tuple(drop or ()),
        seed=seed,
        n_jobs=jobs,
        out=out,
        as_json=json,
    )


@app.command("effect")
def _effect(
    data: Data,
    treatment: Annotated[str, typer.Option("--treatment", metavar="COLUMN", help="The column of two or a few values.")],
    outcome: Annotated[str, typer.Option("--outcome", metavar="COLUMN", help="The column that it acts on.")],
    graph: Annotated[
        str | None,
        typer.Option(
            "--graph", metavar="FILE", help="The causal graph: a file, or text such as 'a -> t -> y; a -> y'."
        ),
    ] = None,
    control: Annotated[
        str | None, typer.Option("--control", metavar="VALUE", help="Value to compare with; by default the first.")
    ] = None,
    level: Annotated[
        str | None, typer.Option("--level", metavar="VALUE", help="Value to compare; by default the last.")
    ] = None,
    no_header: NoHeader = False,
    drop: Drop = None,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Changed data sets for each refutation.")] = 10,
    seed: Seed = 0,
    jobs: Jobs = None,
    out: Annotated[Path | None, folder("NAME-effect")] = None,
    json: Json = False,
) -> None:
    """Estimate the effect of a treatment: identification, overlap, balance, several estimates, sensitivity, doubts.

    Writes report.html, report.json, effect.json and effect.py into DIR.
    """
    from epicycle.cli._table_commands import run_effect

    run_effect(
        data,
        treatment=treatment,
        outcome=outcome,
        graph=graph,
        control=control,
        level=level,
        header=not no_header,
        drop=tuple(drop or ()),
        repeats=repeats,
        seed=seed,
        n_jobs=jobs,
        out=out,
        as_json=json,
    )


@app.command("plan")
def _plan(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="A decision process: model.json, or the map of a grid such as grid.txt."),
    ],
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="auto, policy_iteration, value_iteration, modified_policy_iteration or linear_program.",
        ),
    ] = "auto",
    discount: Annotated[float | None, typer.Option("--discount", help="In the place of that of the file.")] = None,
    tol: Annotated[float, typer.Option("--tol", help="Loss of the policy, relative to the largest value.")] = 1e-8,
    seed: Seed = 0,  # noqa: ARG001 - every command takes it
    jobs: Jobs = None,
    out: Annotated[Path | None, folder("NAME-plan")] = None,
    json: Json = False,
) -> None:
    """Plan in a decision process: solve it, print policy and values with their certificate.

    Writes report.html, report.json and policy.csv into DIR.
    """
    from epicycle.cli._plan import run_plan

    run_plan(model, method=method, discount=discount, tol=tol, out=out, as_json=json, n_jobs=jobs)


@app.command("play")
def _play(
    env: Annotated[
        str,
        typer.Argument(
            metavar="ENV|GAME",
            help="A world (cliff-walk, maze, grid, river-swim, gambler, inventory, cart-pole, mountain-car, "
            "inverted-pendulum), a decision process (model.json, grid.txt), an environment of Gymnasium (CartPole-v1); "
            "or a game: connect-four, othello, go, tic-tac-toe.",
        ),
    ],
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="NAME", help="Such as QLearning, SARSA, DynaQ, Reinforce or DQN; or auto."),
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", min=1, help="Steps to learn from; by default 50000.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="An argument of the agent, such as learning_rate=0.5."),
    ] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", min=1, help="Agents that learn; by default 3.")] = None,
    episodes: Annotated[
        int | None, typer.Option("--episodes", min=2, help="Episodes of the evaluation; by default 100.")
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option("--max-steps", min=1, help="Of an episode of the evaluation; by default 10000.")
    ] = None,
    out: Annotated[Path | None, folder("ENV-play")] = None,
    engine: Annotated[
        str | None, typer.Option("--engine", help="Of a game: mcts (the default), minimax, or a file.")
    ] = None,
    level: Annotated[str | None, typer.Option("--level", help="Of a game: easy, medium or hard.")] = None,
    second: Annotated[bool, typer.Option("--second", help="Of a game: the engine moves first.")] = False,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Let an agent learn in an environment, watch and evaluate it; or play a game in the terminal against a search.

    Of an environment writes report.html, report.json and agent.epi into DIR.
    """
    from epicycle.cli.play._setup import GAMES

    if env in GAMES:
        from epicycle.cli.play._game import run_game

        of_agents = {"--agent": agent, "--steps": steps, "--set": set_, "--seeds": seeds, "--episodes": episodes}
        written = {"--max-steps": max_steps, "--out": out, "--json": json}
        _refuse(env, "a game, which you play yourself", {**of_agents, **written})
        run_game(env, engine=engine or "mcts", level=level or "medium", second=second, seed=seed)
        return
    from epicycle.cli.play._world import run_world

    _refuse(env, "not a game", {"--engine": engine, "--level": level, "--second": second})
    run_world(
        env,
        agent=agent or "auto",
        steps=50_000 if steps is None else steps,
        settings=set_ or [],
        seeds=3 if seeds is None else seeds,
        episodes=100 if episodes is None else episodes,
        max_steps=10_000 if max_steps is None else max_steps,
        seed=seed,
        out=out,
        as_json=json,
    )


def _refuse(name: str, why: str, given: Mapping[str, object]) -> None:
    """Refuse options that say nothing about what was asked for."""
    from epicycle.core._exceptions import ParameterError

    for option, value in given.items():
        if value not in (None, False):
            raise ParameterError(f"{option}: {name} is {why}; expected none of {', '.join(given)}")


@app.command("recommend")
def _recommend(
    data: Data,
    user: Annotated[str, typer.Option("--user", metavar="COLUMN", help="The column of users.")],
    item: Annotated[str, typer.Option("--item", metavar="COLUMN", help="The column of items.")],
    rating: Annotated[str, typer.Option("--rating", metavar="COLUMN", help="The column of ratings.")],
    time: Annotated[
        str | None,
        typer.Option("--time", metavar="COLUMN", help="The column of time; the last ratings are tested on."),
    ] = None,
    items: Annotated[
        str | None,
        typer.Option("--items", metavar="FILE", help="A table that describes the items, with the column of --item."),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="Items that are recommended to each user.")] = 10,
    no_header: NoHeader = False,
    seed: Seed = 0,
    jobs: Jobs = None,
    out: Annotated[Path | None, folder("NAME-recommendations")] = None,
    json: Json = False,
) -> None:
    """Recommend items to users: choose a model of the ratings, test it on the last of them, write lists for all.

    Writes recommendations.csv, model.epi, report.html and report.json into DIR.
    """
    from epicycle.cli._table_commands import run_recommendations

    run_recommendations(
        data,
        user=user,
        item=item,
        rating=rating,
        time=time,
        items=items,
        n=top,
        header=not no_header,
        seed=seed,
        n_jobs=jobs,
        out=out,
        as_json=json,
    )


@app.command("topics")
def _topics(
    data: Data,
    text: Annotated[str, typer.Option("--text", metavar="COLUMN", help="The column of texts.")],
    topics: Annotated[
        str, typer.Option("--topics", metavar="K", help="Number of topics; auto compares 5, 10, 20 and 40.")
    ] = "auto",
    time: Annotated[
        str | None,
        typer.Option("--time", metavar="COLUMN", help="Dates, years or a few names, by which shares are shown."),
    ] = None,
    stop_words: Annotated[
        str, typer.Option("--stop-words", help="Words that are left out before: english or none.")
    ] = "english",
    no_header: NoHeader = False,
    seed: Seed = 0,
    jobs: Jobs = None,
    out: Annotated[Path | None, folder("NAME-topics")] = None,
    json: Json = False,
) -> None:
    """Find the topics of texts: their number by held-out words, their words, sizes, documents and shares over time.

    Writes topics.csv, documents.csv, model.epi, report.html and report.json into DIR.
    """
    from epicycle.cli._table_commands import run_topics

    run_topics(
        data,
        text=text,
        topics=topics,
        time=time,
        stop_words=stop_words,
        header=not no_header,
        seed=seed,
        n_jobs=jobs,
        out=out,
        as_json=json,
    )


@app.command("generate")
def _generate(
    data: Data,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Number of rows to draw.")] = 1000,
    model: Annotated[str, typer.Option("--model", help="flow, vae, or auto, which fits both.")] = "auto",
    target: Annotated[
        str | None, typer.Option("--target", metavar="COLUMN", help="The column whose prediction measures the utility.")
    ] = None,
    no_header: NoHeader = False,
    drop: Drop = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="PATH",
            help="Where to write the rows, in the format of the suffix; by default NAME-synthetic.csv in this folder.",
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option("--report", metavar="PAGE.html", help="Where to write the report; by default beside the rows."),
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="MODEL.epi", help="Keep the generator, which draws more rows.")
    ] = None,
    json: Json = False,
) -> None:
    """Draw synthetic rows like those of a table, and say how near they are to real rows and what they give away."""
    from epicycle.cli._generate import run_generation

    run_generation(
        data,
        rows=rows,
        model=model,
        target=target,
        header=not no_header,
        drop=tuple(drop or ()),
        seed=seed,
        n_jobs=jobs,
        out=out,
        page=page,
        save=save,
        as_json=json,
    )


app.add_typer(models)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (that of the process by default) and return its exit status."""
    try:
        with warnings.catch_warnings():
            # What scikit-learn says of its own calls is not for the user; other warnings take one line.
            warnings.filterwarnings("ignore", module=r"sklearn\.")
            warnings.showwarning = _show_warning
            status = app(
                args=None if arguments is None else list(arguments), prog_name="epicycle", standalone_mode=False
            )
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):  # the parser turns the first into the second
        # The reader (head, less) has closed the pipe: discard the buffered output, without an error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except Exception as error:
        message = _in_one_line(error)
        if message is None:
            raise
        print(f"epicycle: {message}", file=sys.stderr)
        return BAD_INPUT
    return status if isinstance(status, int) else OK


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"epicycle: warning: {' '.join(str(message).split())}", file=sys.stderr)


def _in_one_line(error: Exception) -> str | None:
    """Message for an error of the input; None for an error of the program."""
    from epicycle.core._exceptions import EpicycleError

    if hasattr(error, "format_message"):  # of the command line parser
        message = error.format_message()
    elif isinstance(error, OSError) and error.strerror and error.filename is not None:
        message = f"{os.fsdecode(error.filename)}: {error.strerror}"
    elif isinstance(error, EpicycleError | OSError):
        message = str(error)
    else:
        return None
    return " ".join(message.split())
