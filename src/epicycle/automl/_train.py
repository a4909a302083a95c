"""Training on a table: read, split, check the data, search, refit, score the test set once, diagnose."""

from __future__ import annotations

import math
import numbers
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from epicycle.automl._budget import Budget, PartlySpent
from epicycle.automl._job import Job
from epicycle.automl._messages import Messages
from epicycle.automl._output import TABLE_DOCS, check_folder
from epicycle.automl._parts import read_parts
from epicycle.automl._search_state import SearchState
from epicycle.automl._training_run import TrainingRun
from epicycle.core._docs import documented
from epicycle.core._exceptions import EpicycleError, EpicycleWarning, ParameterError, ParameterTypeError
from epicycle.core._settings import config


@documented(TABLE_DOCS)
def train(
    data: Any,
    target: str | None = None,
    *,
    task: str = "auto",
    time: float = 60.0,
    metric: str | None = None,
    test: Any = None,
    test_size: float = 0.2,
    groups: str | None = None,
    weight: str | None = None,
    order: str | None = "auto",
    header: bool = True,
    drop: Sequence[str] = (),
    models: Any = None,
    interpretable: bool = False,
    group_report: str | None = None,
    quantile: float | None = None,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: Any = None,
) -> TrainingRun:
    """Train a model on a table: search, refit, score on a test set with an interval, and diagnose.

    The test set is split off first and used once. Candidates that suit the size and kind of the data are compared by
    cross-validation on few rows first, the better half on more rows; then the hyperparameters of the leaders are varied
    until the time is up. The winner is fitted to all training rows; an ensemble of the best, where that wins on folds
    that had no part in its weights.

    An interrupt (Ctrl-C) ends the search, and the run goes on with the best candidate so far; a second one raises
    KeyboardInterrupt.

    Parameters
    ----------
    data : str, path, list of paths or frame
        A CSV, Parquet, Arrow or JSON file, several of them as a list or a pattern (``"data/*.csv"``), ``"-"`` for
        standard input, the name of a data set that comes with scikit-learn ("breast_cancer", "diabetes", "digits",
        "iris", "wine"), or a frame.
    target : str, optional
        The column to predict; by default one with a usual name, else the last.
    task : {"auto", "regression", "classification"}, default="auto"
        "auto": text, booleans and integers with at most ten distinct values are classes.
    time : float, default=60
        Time limit in seconds.
    metric : str, optional
        Metric that ranks the candidates: "accuracy", "balanced_accuracy", "roc_auc", "average_precision", "f1",
        "f1_macro", "log_loss", "brier", "r2", "rmse", "mse", "mae", "mape", "poisson", or a scorer of scikit-learn. By
        default accuracy (the area under the ROC curve, or the log loss, where classes are imbalanced) or R2.
    groups, weight : str, optional
        Columns of groups, which are never split between training and test rows, and of sample weights.
    order : str, optional
        A column of time: the last rows are the test set, and every fold is predicted from the rows before it. "auto"
        finds a column of dates by which the rows are sorted already, None splits at random.
    models : str or list of str, optional
        Methods to try, by name or prefix: ``["ridge", "GradientBoosting"]``.
    interpretable : bool, default=False
        Choose one model that can be read: linear, boosting with one column in each tree (a sum of functions of one
        column), or a tree of up to 16 leaves. Others are evaluated too, and `restriction` of the run says how much
        better the best of them is on the same folds.
    group_report : str, optional
        A column, of the features or not: rates of the model in each of its groups of test rows, with intervals.
    quantile : float, optional
        Predict this quantile of a number in the place of its mean: with 0.9, a value that nine in ten rows stay below.
        The candidates minimise the pinball loss, and the run says how many of the test rows stay below.
    out : str or path, optional
        A folder for model.epi, metrics.json, predictions.csv and train.py, as :meth:`TrainingRun.save` writes them.
    resume : str or path, optional
        A folder in which the results of the search are kept after each candidate. If it holds those of an earlier call
        with the same data and settings, the search goes on from there; its time counts towards `time`.

    Examples
    --------
    >>> import epicycle as ep
    >>> run = ep.train("iris", time=2)
    >>> run.test.n, run.test.lower < run.test.score < run.test.upper
    (30, True)
    """
    budget = Budget(check_seconds(time))
    folder = None if out is None else check_folder(out)
    state = SearchState(None if resume is None else check_folder(resume))
    check_seed(seed)
    if quantile is not None:
        task, metric = _of_quantile(quantile, task, metric)
    messages = Messages(progress, budget.seconds)
    arguments = {
        "target": target,
        "task": task,
        "test": test,
        "test_size": test_size,
        "groups": groups,
        "weight": weight,
        "order": order,
        "header": bool(header),
        "seed": int(seed),
    }
    try:
        with quiet():
            parts = read_parts(data, **arguments)
            job = Job(
                parts,
                data,
                arguments,
                budget,
                messages,
                metric,
                drop,
                models,
                int(seed),
                n_jobs,
                interpretable=bool(interpretable),
                group_report=group_report,
                state=state,
            )
            run = job.run()
    except EpicycleError:
        state.discard()
        raise
    finally:
        messages.close()
    if folder is not None:
        run.save(folder)
    return run


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the warnings of candidates to the leaderboard."""
    with config(on_nonconvergence="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", EpicycleWarning)
        # What scikit-learn says of a fold, such as that it lacks a class, is not about the user's code.
        warnings.filterwarnings("ignore", module=r"sklearn\.")
        yield


def _of_quantile(quantile: Any, task: str, metric: str | None) -> tuple[str, str]:
    """Task and metric of a search for a quantile."""
    number = isinstance(quantile, numbers.Real) and not isinstance(quantile, bool)
    if not number or not 0 < float(quantile) < 1:
        raise ParameterError(f"quantile={quantile!r}; expected a number between 0 and 1")
    if metric is not None:
        raise ParameterError(f"metric={metric!r} with quantile={quantile!r}: quantiles are scored by the pinball loss")
    if task == "classification":
        raise ParameterError(f"quantile={quantile!r}: classes have no quantiles; expected task='regression'")
    return "regression", f"pinball_{float(quantile)!r}"


def check_seed(seed: Any) -> None:
    """Refuse a seed that is no whole number."""
    if not isinstance(seed, numbers.Integral) or isinstance(seed, bool) or seed < 0:
        raise ParameterTypeError(f"seed={seed!r}; expected a whole number >= 0")


def check_seconds(time: Any) -> float:
    """A time limit in seconds."""
    if not isinstance(time, numbers.Real) or isinstance(time, bool) or not 0 < float(time) < math.inf:
        raise ParameterError(f"time={time!r}; expected seconds, more than 0")
    return time if isinstance(time, PartlySpent) else float(time)
