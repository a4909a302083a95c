"""Training for several targets of the same rows: one split, and a search for each target in its share of the time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from epicycle.automl._budget import Budget
from epicycle.automl._candidates import names_for
from epicycle.automl._job import Job
from epicycle.automl._messages import Messages
from epicycle.automl._output import TABLE_DOCS, check_folder
from epicycle.automl._parts import read_parts
from epicycle.automl._train import check_seconds, check_seed, quiet
from epicycle.automl._training_run import TrainingRun
from epicycle.automl.multioutput._multi_output_run import MultiOutputRun
from epicycle.automl.tables._columns import choose_target
from epicycle.automl.tables._label_sets import with_labels
from epicycle.automl.tables._tables import read_table, source_name
from epicycle.core._docs import documented
from epicycle.core._exceptions import ParameterError, ParameterTypeError

#: Seconds for each target after an interrupt.
_AFTER_INTERRUPT = 2.0


@documented(TABLE_DOCS)
def train_targets(
    data: Any,
    targets: str | Sequence[str],
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
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: Any = None,
) -> MultiOutputRun:
    """Train a model for each of several targets of the same rows, none of which is a feature.

    All targets have the same training and test rows. Each gets an equal share of the time that is left, and all that
    :func:`train` gives: leaderboard, test score, diagnoses. With ``task="multilabel"`` the target is one column that
    holds several labels a row, and each label is a target of yes and no.

    Parameters
    ----------
    targets : list of str
        The columns to predict; with ``task="multilabel"`` one column of lists, or of texts such as "red;blue".
    task : {"auto", "regression", "classification", "multilabel"}, default="auto"
        "auto" decides for each target.
    time : float, default=60
        Time limit in seconds, for all targets together.
    metric : str, optional
        Metric that ranks the candidates, as for :func:`train`; the same for all targets.
    groups, weight, order, models, interpretable
        As for :func:`train`.
    out : str or path, optional
        A folder for the files, as :meth:`MultiOutputRun.save` writes them.

    Examples
    --------
    >>> import epicycle as ep
    >>> run = ep.training.train_targets("iris", ["petal length", "petal width"], time=4, models=["ridge"])
    >>> sorted(run.runs), run.model_.predict(ep.training.read_table("iris")).num_columns
    (['petal length', 'petal width'], 2)
    """
    budget = Budget(check_seconds(time))
    folder = None if out is None else check_folder(out)
    check_seed(seed)
    names, labels = _names_of(targets, task)
    table = read_table(data, header=header)
    held = None if test is None else read_table(test, header=header)
    left_out: list[str] = []
    if labels is not None:
        table, names, left_out = with_labels(table, labels)
        if held is not None:
            held, _, _ = with_labels(held, labels, [name.removeprefix(f"{labels}=") for name in names])
    for name in names:
        choose_target(table, name, data)  # a name that the table does not have is refused before any work
    messages = Messages(progress, budget.seconds)
    shared: dict[str, Any] = {
        "task": "classification" if labels is not None else task,
        "test_size": test_size,
        "groups": groups,
        "weight": weight,
        "order": order,
        "header": bool(header),
        "seed": int(seed),
    }
    runs: dict[str, TrainingRun] = {}
    interrupted = False
    if left_out:
        messages.line(f"{labels}: too few rows with or without {len(left_out)} labels: {', '.join(left_out[:6])}")
    try:
        for number, name in enumerate(names):
            also = [other for other in names if other != name]
            share = budget.left() / (len(names) - number)
            if interrupted:
                share = min(share, _AFTER_INTERRUPT)
            messages.line(f"target {number + 1} of {len(names)}: {name}")
            with quiet():
                parts = read_parts(table, target=name, also=also, test=held, **shared)
                given = {**shared, "target": name, "also": also, "labels": labels, "test": test}
                own = Budget(max(share, 0.1))
                options: dict[str, Any] = {"interpretable": bool(interpretable)}
                job = Job(
                    parts,
                    data,
                    given,
                    own,
                    messages,
                    metric,
                    drop,
                    names_for(parts.task, models),
                    int(seed),
                    n_jobs,
                    **options,
                )
                runs[name] = job.run()
            interrupted = interrupted or runs[name].interrupted
    finally:
        messages.close()
    run = MultiOutputRun(runs, source_name(data), labels, left_out, int(seed), budget.seconds, budget.spent())
    if folder is not None:
        run.save(folder)
    return run


def _names_of(targets: Any, task: str) -> tuple[list[str], str | None]:
    """The targets, or the column of their labels."""
    names = [targets] if isinstance(targets, str) else targets
    if not isinstance(names, Sequence) or not names or not all(isinstance(name, str) for name in names):
        raise ParameterTypeError(f"targets={targets!r:.60}; expected names of columns")
    if task == "multilabel":
        if len(names) != 1:
            raise ParameterError(f"targets={targets!r:.60}: task='multilabel' has one column of several labels a row")
        return [], names[0]
    if len(names) < 2:
        raise ParameterError(f"targets={targets!r:.60}: one target; expected several (train takes one)")
    if len(set(names)) < len(names):
        raise ParameterError(f"targets={targets!r:.60}: a target is named twice")
    return list(names), None
