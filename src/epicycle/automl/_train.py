"""From a table to a model that can be trusted: read, set aside, profile, race, refit, score once, diagnose."""

from __future__ import annotations

import math
import numbers
import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.dummy import DummyClassifier, DummyRegressor

from epicycle.automl._budget import Budget
from epicycle.automl._candidates import Candidate, families_for, type_name
from epicycle.automl._data_checks import drift_between, duplicates, leaking_columns, summary_of
from epicycle.automl._diagnoses import Doctor
from epicycle.automl._evaluation import Arena, Facts
from epicycle.automl._folder import check_folder
from epicycle.automl._memory import return_freed_memory
from epicycle.automl._messages import Teller
from epicycle.automl._metrics import Judge, further_metrics, judge_for
from epicycle.automl._parts import Parts, read_parts
from epicycle.automl._profiles import Warned, profile_columns
from epicycle.automl._script import script_of
from epicycle.automl._search import Entry, Race, final_candidate
from epicycle.automl._splitting import folds
from epicycle.automl._table_encoder import is_feature
from epicycle.automl._table_model import TableModel
from epicycle.automl._tables import source_name
from epicycle.automl._targets import is_count
from epicycle.automl._training_run import TestPart, TrainingRun, now
from epicycle.core._exceptions import ConvergenceWarning, DataError, EpicycleWarning, ParameterError, ParameterTypeError
from epicycle.core._random import stream
from epicycle.core._settings import config
from epicycle.select._scorers import responses_of

__all__ = ["train"]

_DIAGNOSES = 0.2  # share of the time that is kept for them
_RAW_ROWS = 20_000
_CHEAP_ROWS = 20_000  # of the test part, for which further scores take no time to speak of


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
    drop: Sequence[str] = (),
    models: Any = None,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: Any = None,
) -> TrainingRun:
    """From a table to a model, its score on rows set aside with a bound that holds, and what to try next.

    A test part is set aside first and touched once. Candidates that suit the size and kind of the data compete by
    cross-validation on few rows first, the better half on more; then the settings of the leaders are varied until the
    time is up. The winner is fitted to all training rows.

    Parameters
    ----------
    data : str, path or frame
        A CSV, Parquet, Arrow or JSON lines file, ``"-"`` for standard input, the name of a data set that comes with
        scikit-learn ("breast_cancer", "diabetes", "digits", "iris", "wine"), or a frame.
    target : str, optional
        The column to predict; by default one with a usual name, else the last.
    task : {"auto", "regression", "classification"}, default="auto"
        "auto": text, truth values and whole numbers of at most ten different values are classes.
    time : float, default=60
        Seconds for all of it.
    metric : str, optional
        What decides: "accuracy", "balanced_accuracy", "roc_auc", "average_precision", "f1", "f1_macro", "log_loss",
        "brier", "r2", "rmse", "mse", "mae", "mape", "poisson", or a scorer of scikit-learn. By default accuracy (the
        area under the ROC curve, or the log loss, where classes are skewed) or R2.
    test : str, path or frame, optional
        Test rows of their own.
    test_size : float, default=0.2
        The share of rows that is set aside otherwise.
    groups, weight : str, optional
        Columns of groups that are never divided, and of weights.
    order : str, optional
        A column of time, by which the last rows are set aside and folds are predicted from the rows before them; "auto"
        finds one by which the rows are sorted already, None takes rows at random.
    drop : list of str, optional
        Columns that are not to be used.
    models : str or list of str, optional
        Methods to try, by their names or how these begin: ``["ridge", "GradientBoosting"]``.
    seed : int, default=0
    out : str or path, optional
        A folder for model.epi, metrics.json, predictions.csv and train.py, as :meth:`TrainingRun.save` writes them.
    n_jobs : int, optional
        Threads; None follows the size of the work.
    progress : bool or callable, optional
        Whether to say what leads; a callable gets each line. By default on terminals.

    Returns
    -------
    TrainingRun

    Examples
    --------
    >>> import epicycle as ep
    >>> run = ep.train("iris", time=2)
    >>> run.test.n, run.test.lower < run.test.score < run.test.upper
    (30, True)
    """
    budget = Budget(_seconds(time))
    folder = None if out is None else check_folder(out)
    if not isinstance(seed, numbers.Integral) or isinstance(seed, bool) or seed < 0:
        raise ParameterTypeError(f"seed={seed!r}; expected a whole number >= 0")
    teller = Teller(progress, budget.seconds)
    try:
        with config(on_nonconvergence="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", EpicycleWarning)
            arguments = {
                "target": target, "task": task, "test": test, "test_size": test_size, "groups": groups,
                "weight": weight, "order": order, "seed": int(seed),
            }  # fmt: skip
            parts = read_parts(data, **arguments)
            run = _Job(parts, data, arguments, budget, teller, metric, drop, models, int(seed), n_jobs).run()
    finally:
        teller.close()
    if folder is not None:
        run.save(folder)
    return run


def _seconds(time: Any) -> float:
    if not isinstance(time, numbers.Real) or isinstance(time, bool) or not 0 < float(time) < math.inf:
        raise ParameterError(f"time={time!r}; expected seconds, more than 0")
    return float(time)


class _Job:
    """One run, step by step."""

    def __init__(
        self, parts: Parts, data: Any, arguments: dict[str, Any], budget: Budget, teller: Teller, metric: str | None,
        drop: Sequence[str], models: Any, seed: int, n_jobs: int | None,
    ) -> None:  # fmt: skip
        self.parts, self.data, self.arguments, self.budget, self.teller = parts, data, arguments, budget, teller
        self.seed, self.n_jobs, self.models = seed, n_jobs, models
        self.judge: Judge = judge_for(metric, parts.task, parts.y_train)
        self.drop = (drop,) if isinstance(drop, str) else tuple(drop)
        for name in self.drop:
            if name not in parts.train.column_names:
                raise DataError(f"drop={name!r}: the table has no such column")
        self.warned: list[Warned] = list(parts.warned)
        self.race: list[dict[str, Any]] = []
        self.best = -math.inf

    def run(self) -> TrainingRun:
        arena, facts = self._arena()
        families = families_for(facts, self.models)
        raw_rows = self._sample_rows()
        raw = self.parts.train.take(pa.array(raw_rows))
        arena.encode(family.form for family in families)
        self.parts.train = raw  # encoded now; the table itself is not needed any more
        return_freed_memory()
        trees = arena.encoders["trees"]
        drift = self._smells(trees, arena.matrix, trees.transform(self.parts.test))
        baseline = self._baseline(arena)
        entry, race = self._search(arena, families)
        candidate = final_candidate(entry, race.full)
        model, seconds = self._refit(arena, candidate)
        test = self._test_part(model)
        run = self._outcome(arena, race, entry, candidate, model, test, baseline, drift)
        self._diagnose(run, arena, race, entry, candidate, model, raw, raw_rows, seconds)
        run.seconds = self.budget.spent()
        return run

    # ---------------------------------------------------------------------------------------------- before

    def _arena(self) -> tuple[Arena, Facts]:
        parts = self.parts
        self.teller.line(
            f"{source_name(self.data)}: {parts.n_rows:,} rows x {parts.train.num_columns} columns; target "
            f"{parts.target} ({parts.why_target}), {parts.task}"
        )
        self.teller.line(f"{len(parts.y_test):,} rows are set aside as the test part, {parts.how}")
        self.teller.stage("looking at the columns")
        self.profile, warned = profile_columns(parts.train, parts.roles, self.drop)
        self.warned += warned
        kinds = {p.name: p.kind for p in self.profile}
        if not any(is_feature(kind) for kind in kinds.values()):
            raise DataError("no column is left that a model can use; every one is constant, missing or left out")
        facts = Facts(
            parts.task, len(parts.y_train), sum(map(is_feature, kinds.values())), parts.weight_train is not None,
            parts.task == "regression" and is_count(parts.y_train), parts.ordered,
        )  # fmt: skip
        made: dict[str, Any] = {"task": parts.task, "groups": parts.groups_train, "ordered": parts.ordered}
        arena = Arena(
            parts.train, kinds, parts.y_train, parts.weight_train, folds(parts.y_train, seed=self.seed, **made), facts,
            self.judge, self.seed, self.n_jobs,
            {p.name: min(p.distinct, 40) for p in self.profile if p.kind == "category"},
        )  # fmt: skip
        if len(parts.y_train) <= 3_000 and not parts.ordered:
            arena.more_splits = folds(parts.y_train, seed=self.seed + 1, **made)
        return arena, facts

    def _smells(self, trees: Any, features: np.ndarray, held: np.ndarray) -> list[dict[str, Any]]:
        parts = self.parts
        self.teller.stage("looking for leakage, duplicates and drift")
        _, leaks = leaking_columns(features, trees.sources_, trees.categorical_, parts.y_train, parts.task, self.seed)
        self.twins, twins = duplicates(features, parts.y_train, held, parts.y_test)
        apart, drift = drift_between(features, held, trees.sources_, trees.categorical_, self.seed)
        self.warned += [*leaks, *twins, *drift]
        for warning in leaks:
            next(p for p in self.profile if p.name == warning.columns[0]).warnings.append("smells of leakage")
        for warning in self.warned:
            mark = {"high": "!!", "medium": "! "}.get(warning.severity, "  ")
            self.teller.line(f"{mark} {warning.text}")
        return summary_of(apart)

    def _sample_rows(self) -> np.ndarray:
        n = len(self.parts.y_train)
        if n <= _RAW_ROWS:
            rows = np.arange(n)
            # In random order where no other matters, so that any beginning of it is a sample.
            return rows if self.parts.ordered else stream(self.seed, "raw").permutation(rows)
        if self.parts.ordered:
            return np.arange(n - _RAW_ROWS, n)
        return stream(self.seed, "raw").choice(n, _RAW_ROWS, replace=False)

    def _baseline(self, arena: Arena) -> dict[str, Any]:
        """A constant, on the same folds."""
        constant = DummyClassifier(strategy="prior") if arena.facts.task == "classification" else DummyRegressor()
        scores = []
        for train, test in arena.splits:
            constant.fit(np.empty((len(train), 1)), arena.y[train])
            said = responses_of(constant, np.empty((len(test), 1)), self.judge.classes)
            scores.append(self.judge.score(said, arena.y[test], None if arena.weight is None else arena.weight[test]))
        mean = self.judge.shown(float(np.mean(scores)))
        se = float(np.std(scores, ddof=1) / math.sqrt(len(scores))) if len(scores) > 1 else float("nan")
        name = "the most frequent class" if arena.facts.task == "classification" else "the mean"
        self.teller.line(f"{self.budget.spent():6.1f} s  baseline, {name}: {self.judge.label} {mean:.4g}")
        return {"name": name, "score_mean": mean, "score_se": se}

    # ---------------------------------------------------------------------------------------------- search

    def _search(self, arena: Arena, families: Sequence[Any]) -> tuple[Entry, Race]:
        kept = max(_DIAGNOSES * self.budget.seconds, 0.2)

        def after(refit: float) -> float:
            return 1.15 * refit + kept + 0.04 * self.budget.seconds

        self.teller.stage("comparing models")
        race = Race(arena, families, self.budget, self._tell, after)
        try:
            entry = race.run()
        except RuntimeError:
            raise DataError(self._why_none(race)) from None
        return entry, race

    def _why_none(self, race: Race) -> str:
        failed = [entry for entry in race.entries if entry.failure()]
        if failed:
            return f"no model could be fitted; {failed[0].candidate.family.name} said: {failed[0].failure()}"
        return f"time={self.budget.seconds:g} is too short to fit a model to these rows; give more seconds"

    def _tell(self, entry: Entry, rows: int, leads: bool) -> None:
        at = entry.most_rows()
        scores = entry.scores(at)
        score = self.judge.shown(float(scores.mean()))
        if leads:
            self.best = score
        name = entry.candidate.name
        self.race.append({"seconds": round(self.budget.spent(), 3), "name": name, "score": score, "best": self.best})
        self.teller.leader("" if not leads else f"{entry.candidate.family.name} {score:.4g}")
        if not leads and entry.trial:
            return
        spread = f" +- {scores.std(ddof=1) / math.sqrt(len(scores)):.2g}" if len(scores) > 1 else ""
        part = f"{len(scores)} folds of {at:,} rows"
        mark = "leads  " if leads else "       "
        name = name if len(name) <= 72 else f"{name[:69]}..."
        self.teller.line(
            f"{self.budget.spent():6.1f} s  {mark}{self.judge.label} {score:.4g}{spread}  {name}  ({part})"
        )

    def _refit(self, arena: Arena, candidate: Candidate) -> tuple[TableModel, float]:
        self.teller.stage(f"fitting {candidate.family.name} to all training rows")
        encoder, features = arena.encoders[candidate.family.form], arena.features(candidate.family.form)
        options = {name: value for name, value in arena.encoder_options(candidate.family.form).items() if value}
        if candidate.family.form == "trees":
            options.pop("form")
        self.options = options
        model = TableModel(candidate.build(self.seed), dict(arena.kinds), **options)
        began = self.budget.spent()
        weight = arena.weight if candidate.family.takes_weight else None
        model.estimator.set_params(**({"n_jobs": self.n_jobs} if "n_jobs" in model.estimator.get_params() else {}))
        model.fit_encoded(encoder, features, arena.y, weight)
        return model, self.budget.spent() - began

    # ---------------------------------------------------------------------------------------------- after

    def _test_part(self, model: TableModel) -> TestPart:
        self.teller.stage("scoring on the test part")
        responses = responses_of(model, self.parts.test, self.judge.classes)
        kept = {name: values for name, values in responses.items() if name in ("predict", "predict_proba")}
        return TestPart(self.parts.rows_test, self.parts.y_test, kept, self.parts.weight_test)

    def _outcome(
        self, arena: Arena, race: Race, entry: Entry, candidate: Candidate, model: TableModel, test: TestPart,
        baseline: dict[str, Any], drift: list[dict[str, Any]],
    ) -> TrainingRun:  # fmt: skip
        parts, judge = self.parts, self.judge
        short = 0.02 * self.budget.seconds
        score = judge.with_bound(test.responses, test.y, test.weight, self.seed, seconds=2 * short)
        tests = {}
        for name in further_metrics(judge):
            if len(test.y) > _CHEAP_ROWS and self.budget.left(0.1 * self.budget.seconds) < 0:
                break
            other = judge_for(name, parts.task, parts.y_train)
            tests[name] = other.with_bound(test.responses, test.y, test.weight, self.seed, seconds=short / 2)
        apart = None
        if 0 < self.twins.across.sum() < len(test.y) - 10:
            rest = ~self.twins.across
            said = {name: values[rest] for name, values in test.responses.items()}
            weight = None if test.weight is None else test.weight[rest]
            apart = judge.with_bound(said, test.y[rest], weight, self.seed, seconds=short)
        constant = DummyClassifier(strategy="prior") if parts.task == "classification" else DummyRegressor()
        constant.fit(np.empty((len(arena.y), 1)), arena.y)
        said = responses_of(constant, np.empty((len(test.y), 1)), judge.classes)
        settings = dict(candidate.settings)
        if "random_state" in candidate.build(self.seed).get_params(deep=False):
            settings["random_state"] = self.seed
        return TrainingRun(
            model_=model, judge=judge, task=parts.task, source=source_name(self.data), target=parts.target,
            how=parts.how, leaderboard=self._leaderboard(race, entry, candidate), baseline=baseline, test=score,
            tests=tests,
            baseline_test=judge.shown(judge.score(said, test.y, test.weight)), certificate=model.certificate_,
            profile=self.profile, warnings=self.warned, test_part=test,
            script=script_of(
                self.data, type_name(candidate.family), settings, arena.kinds, self.options, self._reading()
            ),
            sizes={"train": len(arena.y), "test": len(test.y)}, seed=self.seed, budget=self.budget.seconds, drift=drift,
            race=self.race, without_twins=apart, created=now(),
        )  # fmt: skip

    def _reading(self) -> dict[str, Any]:
        """The arguments of `read_parts` that give these parts again."""
        given = {**self.arguments, "target": self.parts.target, "task": self.parts.task}
        if isinstance(given["test"], os.PathLike):
            given["test"] = os.fspath(given["test"])
        elif given["test"] is not None and not isinstance(given["test"], str):
            given["test"] = None
        return {name: value for name, value in given.items() if value is not None or name == "order"}

    def _leaderboard(self, race: Race, winner: Entry, final: Candidate) -> list[dict[str, Any]]:
        def row(entry: Entry) -> dict[str, Any]:
            at = entry.most_rows()
            scores = entry.scores(at)
            finite = scores[np.isfinite(scores)]
            candidate = final if entry is winner else entry.candidate
            return {
                "name": candidate.name, "method": candidate.family.name, "params": dict(candidate.settings),
                "score_mean": self.judge.shown(float(finite.mean())) if len(finite) else None,
                "score_se": float(finite.std(ddof=1) / math.sqrt(len(finite))) if len(finite) > 1 else None,
                "seconds": round(entry.seconds(), 4), "n_folds": len(scores), "rows": at, "rounds": entry.rounds(),
                "status": entry.status,
            }  # fmt: skip

        def rank(entry: Entry) -> tuple[Any, ...]:
            return (
                entry is not winner,
                -entry.most_rows(),
                -len(entry.scores(entry.most_rows())) < -1,
                -entry.mean(entry.most_rows()),
            )

        tried = [entry for entry in race.entries if entry.results]
        rest = [entry for entry in race.entries if not entry.results]
        return [row(entry) for entry in [*sorted(tried, key=rank), *rest]][:200]

    def _diagnose(
        self, run: TrainingRun, arena: Arena, race: Race, entry: Entry, candidate: Candidate, model: TableModel,
        raw: pa.Table, raw_rows: np.ndarray, seconds: float,
    ) -> None:  # fmt: skip
        self.teller.stage("diagnosing")
        doctor = Doctor(
            arena, candidate, self.budget, keep=0.05 * self.budget.seconds, seconds_per_fit=seconds, raw=raw,
            raw_rows=raw_rows, tell=lambda what: self.teller.stage(f"diagnosing: {what}"),
        )  # fmt: skip
        doctor.importances()
        doctor.weak_spots(model, self.parts.test, self.parts.y_test)
        if arena.facts.task == "classification":
            self._threshold(doctor, arena, entry)
        doctor.bias_or_variance(entry.mean(race.full) if entry.most_rows() >= race.full else None)
        linear = next(
            (e for e in _ranked(race) if e.candidate.family.form == "linear" and e.candidate.family.grows == 1), None
        )
        other = next(
            (e for e in _ranked(race) if linear is not None and e.candidate.family is not linear.candidate.family), None
        )
        doctor.optimiser_or_objective(
            None if linear is None else linear.candidate, None if other is None else other.candidate
        )
        doctor.without_groups()
        run.findings, run.skipped = doctor.found.findings, doctor.found.skipped
        run.importances, run.examples = doctor.found.importances, doctor.found.examples
        for slot, finding in run.findings.items():
            self.teller.line(f"{self.budget.spent():6.1f} s  {slot.replace('_', ' ')}: {finding.verdict}")

    def _threshold(self, doctor: Doctor, arena: Arena, entry: Entry) -> None:
        """From the probabilities of rows that their models had not seen."""
        at = entry.most_rows()
        seen, scores = np.zeros(len(arena.y), bool), np.zeros(len(arena.y))
        classes = np.asarray(self.judge.classes)
        if len(classes) != 2:
            doctor.found.skipped["threshold"] = "not needed: not two classes"
            return
        rare = int(np.argmin(np.unique(arena.y, return_counts=True)[1]))
        for (rows, fold), result in entry.results.items():
            if rows == at and "predict_proba" in result.responses:
                test = arena.part(fold, rows)[1]
                seen[test], scores[test] = True, result.responses["predict_proba"][:, rare]
        if seen.sum() < 20:
            doctor.found.skipped["threshold"] = "left out: no probabilities out of the folds"
            return
        doctor.cut(scores[seen], arena.y[seen])


def _ranked(race: Race) -> list[Entry]:
    tried = [entry for entry in race.entries if entry.results and not entry.failure()]
    return sorted(tried, key=lambda e: (-e.most_rows(), -e.mean(e.most_rows())))
