"""The steps of a training run: check the data, search, refit, score the test set once, diagnose."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa

from epicycle.automl._budget import Budget, return_freed_memory
from epicycle.automl._candidates import Candidate, Family, families_for
from epicycle.automl._diagnoses import Diagnoses
from epicycle.automl._entry import Entry
from epicycle.automl._evaluation import Evaluation, Facts, constant_model
from epicycle.automl._leaderboard import cost_of_restriction, final_candidate, leaderboard
from epicycle.automl._messages import Messages
from epicycle.automl._metrics import Metric, further_metrics, metric_for, quantile_of
from epicycle.automl._output import Member, script_of
from epicycle.automl._parts import Parts, folds
from epicycle.automl._search import Search
from epicycle.automl._search_state import SearchState, fingerprint
from epicycle.automl._training_run import TestPart, TrainingRun, now
from epicycle.automl.checks._correlations import rank_correlations
from epicycle.automl.checks._data_checks import DataIssue, leaking_columns, profile_columns
from epicycle.automl.checks._group_rates import group_rates
from epicycle.automl.checks._near_perfect import alarm, explaining_columns, is_nearly_perfect, unseen_predictions
from epicycle.automl.checks._part_checks import ACROSS, drift_between, duplicates, with_effect
from epicycle.automl.ensembles._best_ensemble import Ensemble, best_ensemble
from epicycle.automl.ensembles._ensemble_table_model import EnsembleTableModel
from epicycle.automl.images._image_folder import shape_of
from epicycle.automl.tables._columns import is_alike, is_count, is_skewed
from epicycle.automl.tables._table_encoder import TableEncoder, is_feature
from epicycle.automl.tables._table_model import TableModel, half_width
from epicycle.automl.tables._tables import source_name
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._random import stream
from epicycle.plot import short
from epicycle.select._scorers import TestScore, responses_of
from epicycle.stats._intervals import standard_error

#: Share of the time that is reserved for the diagnoses.
_DIAGNOSES_SHARE = 0.2
#: Seconds at most for the diagnoses after an interrupt.
_AFTER_INTERRUPT = 5.0
#: Training rows that are kept unencoded, for diagnoses that fit to tables.
_RAW_ROWS = 20_000
#: Test rows up to which further metrics are computed however little time is left: they take a fraction of a second.
_CHEAP_ROWS = 20_000
#: Probability with which prediction intervals hold the target.
_LEVEL = 0.9
#: Rows up to which the finalists are compared again on other folds.
_CONFIRM_ROWS = 3_000


class Job:
    """One training run, step by step."""

    def __init__(
        self,
        parts: Parts,
        data: Any,
        arguments: dict[str, Any],
        budget: Budget,
        messages: Messages,
        metric: str | None,
        drop: Sequence[str],
        models: Any,
        seed: int,
        n_jobs: int | None,
        *,
        interpretable: bool = False,
        group_report: str | None = None,
        state: SearchState | None = None,
    ) -> None:
        self.interpretable, self.group_report, self.state = interpretable, group_report, state or SearchState()
        if group_report is not None and group_report not in parts.test.column_names:
            raise DataError(f"group_report={group_report!r}: the table has no such column")
        self.parts, self.data, self.arguments, self.budget, self.messages = parts, data, arguments, budget, messages
        self.seed, self.n_jobs, self.models = seed, n_jobs, models
        # Groups or an order of time may leave a class to the test rows alone: the score is over all known classes.
        self.y_known = np.concatenate([parts.y_train, parts.y_test])
        self.metric: Metric = metric_for(metric, parts.task, self.y_known)
        self.quantile = quantile_of(self.metric.name)
        self.drop = (drop,) if isinstance(drop, str) else tuple(drop)
        for name in self.drop:
            if name not in parts.train.column_names:
                raise DataError(f"drop={name!r}: the table has no such column")
        self.issues: list[DataIssue] = list(parts.warned)
        self.search_history: list[dict[str, Any]] = []
        self.best = -math.inf

    def run(self) -> TrainingRun:
        evaluation = self._evaluation()
        families = families_for(evaluation.facts, self.models, self.budget.seconds)
        raw_rows = self._sample_rows()
        raw = self.parts.train.take(pa.array(raw_rows))
        drift, issues = self._compare_parts()
        evaluation.encode(family.form for family in families)
        self.parts.train = raw  # the matrix replaces the table, of which a sample is enough from here on
        return_freed_memory()
        self._check_leakage(evaluation.storage, evaluation.matrix)
        self._say_issues(issues)
        baseline = self._baseline(evaluation)
        entry, search = self._search(evaluation, families)
        candidate = final_candidate(entry, search.full)
        ensemble = best_ensemble(evaluation, search, entry)
        model, seconds = self._refit(evaluation, candidate)
        search.complete(entry)
        with_intervals = self.parts.task == "regression" and self.quantile is None
        if with_intervals:
            model.residuals_ = evaluation.unseen_errors(entry.results, entry.most_rows())
        ranked = leaderboard(search.entries, entry, candidate, self.metric)
        if ensemble is not None:
            model, ranked = self._refit_members(evaluation, ensemble, candidate, model, ranked, search.full)
            if with_intervals:
                model.residuals_ = ensemble.unseen_errors(evaluation, search.full)
        test = self._predict_test_set(model)
        chosen = (
            [(candidate, 1.0)] if ensemble is None else list(zip(ensemble.candidates, ensemble.weights, strict=True))
        )
        run = self._result(evaluation, ranked, chosen, model, test, baseline, drift)
        run.interrupted = search.interrupted
        if self.interpretable:
            run.restriction = cost_of_restriction(search.entries, entry, search.may_lead, self.metric)
        diagnoses = Diagnoses(
            evaluation=evaluation,
            candidate=candidate,
            budget=self.budget,
            keep=0.05 * self.budget.seconds,
            seconds_per_fit=seconds + evaluation.encoding_seconds,
            raw=raw,
            raw_rows=raw_rows,
            associations={p.name: p.association for p in self.profile if p.association is not None},
            report_stage=lambda what: self.messages.stage(f"diagnosing: {what}"),
        )
        self._diagnose(run, diagnoses, search, entry)
        run.seconds = self.budget.spent()
        return run

    # ---------------------------------------------------------------------------------------------- before

    def _evaluation(self) -> Evaluation:
        parts = self.parts
        self.messages.line(
            f"{source_name(self.data)}: {parts.n_rows:,} rows x {parts.train.num_columns} columns; target "
            f"{parts.target} ({parts.why_target}), {parts.task}"
        )
        self.messages.line(f"test set: {len(parts.y_test):,} rows, split {parts.how}")
        self.messages.stage("checking the columns")
        self.profile, issues = profile_columns(parts.train, parts.roles, self.drop)
        self.issues += issues
        kinds = {p.name: p.kind for p in self.profile}
        if not any(is_feature(kind) for kind in kinds.values()):
            raise DataError("no column is left that a model can use; every one is constant, missing or left out")
        facts = Facts(
            parts.task,
            len(parts.y_train),
            sum(map(is_feature, kinds.values())),
            weighted=parts.weight_train is not None,
            counts=parts.task == "regression" and is_count(parts.y_train),
            skewed=parts.task == "regression" and is_skewed(parts.y_train),
            ordered=parts.ordered,
            texts=any(kind in ("text", "sequence") for kind in kinds.values()),
            readable=self.interpretable,
            alike=is_alike(parts.train, kinds),
            quantile=self.quantile,
            image=shape_of(parts.train.column_names),
        )
        options: dict[str, Any] = {"task": parts.task, "groups": parts.groups_train, "ordered": parts.ordered}
        evaluation = Evaluation(
            parts.train,
            kinds,
            parts.y_train,
            parts.weight_train,
            folds(parts.y_train, seed=self.seed, **options),
            facts,
            self.metric,
            self.seed,
            self.n_jobs,
            {p.name: min(p.distinct, 40) for p in self.profile if p.kind == "category"},
        )
        evaluation.order = next((name for name, role in parts.roles.items() if role == "order"), "")
        if len(parts.y_train) <= _CONFIRM_ROWS and not parts.ordered:
            evaluation.more_splits = folds(parts.y_train, seed=self.seed + 1, **options)
        return evaluation

    def _compare_parts(self) -> tuple[list[dict[str, Any]], list[DataIssue]]:
        """Drift of the columns, and issues of duplicates and drift, while the training rows are there as they came."""
        parts = self.parts
        self.messages.stage("checking for leakage, duplicates and drift")
        kinds = {p.name: p.kind for p in self.profile if is_feature(p.kind)}
        self.duplicates, repeated = duplicates(parts.train, parts.y_train, parts.test, parts.y_test, list(kinds))
        # The column of time by which the rows were split differs by intention.
        compared = {name: kind for name, kind in kinds.items() if parts.roles.get(name) != "order"}
        drifts, drifted = drift_between(parts.train, parts.test, compared, self.seed)
        return [asdict(drift) for drift in drifts[:20]], [*repeated, *drifted]  # the clearest first

    def _check_leakage(self, trees: TableEncoder, features: np.ndarray) -> None:
        parts = self.parts
        explained, leaks = leaking_columns(
            features, trees.sources_, trees.categorical_, parts.y_train, parts.task, self.seed
        )
        self.issues += leaks
        for profile in self.profile:
            profile.association = explained.get(profile.name)
        target = (parts.target, parts.y_train) if parts.task == "regression" else None
        self.correlations = rank_correlations(features, trees.sources_, trees.categorical_, explained, target)
        for leak in leaks:
            self._suspect(leak)

    def _suspect(self, leak: DataIssue) -> None:
        for profile in self.profile:
            if profile.name in leak.columns:
                profile.warnings.append("suspected leakage")

    def _check_score(self, run: TrainingRun, diagnoses: Diagnoses, entry: Entry) -> None:
        """A nearly perfect score is an alarm, with the columns named that explain it."""
        evaluation, part = diagnoses.evaluation, run.test_part
        unseen = unseen_predictions(evaluation, entry, part.y, part.responses["predict"])
        if not is_nearly_perfect(*unseen, run.task):
            return
        self.messages.stage("looking for the columns that explain the score")
        names, enough = explaining_columns(evaluation, diagnoses.candidate, self.budget, diagnoses.keep)
        named = {name for issue in self.issues if issue.kind == "leakage" for name in issue.columns}
        if set(names) <= named or (named and not enough):
            return  # what explains it has been said
        issue = alarm(f"{run.metric.label} {run.test.score:.4g}", names, enough=enough)
        self.issues.append(issue)
        self._suspect(issue)
        self._say(issue)

    def _say_issues(self, more: Sequence[DataIssue]) -> None:
        self.issues += more
        for issue in self.issues:
            self._say(issue)

    def _say(self, issue: DataIssue) -> None:
        mark = {"high": "!!", "medium": "! "}.get(issue.severity, "  ")
        self.messages.line(f"{mark} {issue.text}")

    def _sample_rows(self) -> np.ndarray:
        n = len(self.parts.y_train)
        if n <= _RAW_ROWS:
            rows = np.arange(n)
            # In random order where no other matters, so that the first rows are a random sample.
            return rows if self.parts.ordered else stream(self.seed, "raw").permutation(rows)
        if self.parts.ordered:
            return np.arange(n - _RAW_ROWS, n)
        return stream(self.seed, "raw").choice(n, _RAW_ROWS, replace=False)

    def _baseline(self, evaluation: Evaluation) -> dict[str, Any]:
        mean, error = evaluation.baseline()
        name = "the most frequent class" if evaluation.facts.task == "classification" else "the mean"
        name = name if self.quantile is None else "the same quantile of all rows"
        self.messages.line(f"{self.budget.spent():6.1f} s  baseline, {name}: {self.metric.label} {mean:.4g}")
        return {"name": name, "score_mean": mean, "score_se": error}

    # ---------------------------------------------------------------------------------------------- search

    def _search(self, evaluation: Evaluation, families: Sequence[Family]) -> tuple[Entry, Search]:
        reserved = max(_DIAGNOSES_SHARE * self.budget.seconds, 0.2)

        def after(refit: float) -> float:
            # The refit may take 15% longer than extrapolated; 4% of the time is a reserve for writing the results.
            return 1.15 * refit + reserved + 0.04 * self.budget.seconds

        self.messages.stage("comparing models")
        self._open_state(evaluation, families)
        may_lead = (lambda candidate: candidate.is_readable) if self.interpretable else (lambda _: True)
        if not any(may_lead(Candidate(family, start)) for family in families for start in family.starts):
            names = ", ".join(dict.fromkeys(family.name for family in families))
            raise ParameterError(f"interpretable=True: none of the methods is readable: {names}")
        single = self.interpretable or (self.models is not None and not _several(self.models))
        search = Search(evaluation, families, self.budget, self._on_evaluated, after, may_lead, self.state, single)
        try:
            entry = search.run()
        except RuntimeError:
            raise DataError(self._why_none(search)) from None
        if search.interrupted:
            self.messages.line(
                "interrupted: the search ends with the best so far; a second interrupt leaves without a model"
            )
            # The refit as long as it takes, then a few seconds for what is said about the model.
            self.budget.end_within(search.kept(entry) - reserved + min(reserved, _AFTER_INTERRUPT))
        return entry, search

    def _open_state(self, evaluation: Evaluation, families: Sequence[Family]) -> None:
        """Read or begin the file of the search; a search goes on with the same rows and settings only."""
        if self.state.path is None:
            return
        settings = {
            "table": fingerprint(evaluation.matrix, evaluation.y),
            "target": self.parts.target,
            "metric": self.metric.name,
            "seed": self.seed,
            "folds": len(evaluation.splits),
            "methods": [family.name for family in families],
        }
        if found := self.state.open(settings, self.budget.seconds):
            self.messages.line(f"going on with a search of {found:,} fits")

    def _why_none(self, search: Search) -> str:
        failed = [entry for entry in search.entries if entry.failed]
        if failed:
            return f"no model could be fitted; {failed[0].candidate.family.name}: {failed[0].failed}"
        if any(entry.results for entry in search.entries):
            return (
                f"metric={self.metric.name!r}: has no value on the folds of these rows; expected more rows of each "
                "class, or another metric"
            )
        return f"time={self.budget.seconds:g} is too short to fit a model to these rows; give more seconds"

    def _on_evaluated(self, entry: Entry, leads: bool) -> None:
        """Note a candidate in the history of the search, and print the leaders and the first candidates."""
        at = entry.most_rows()
        scores = entry.scores(at)
        score = self.metric.shown(float(scores.mean()))
        if leads:
            self.best = score
        name, seconds = entry.candidate.name, self.budget.spent()
        point = {"seconds": round(seconds, 3), "name": name, "score": score, "best": self.best}
        self.search_history.append({**point, "rows": at, "folds": len(scores)})
        self.messages.leader("" if not leads else f"{entry.candidate.family.name} {score:.4g}")
        if not leads and entry.trial:
            return
        error = f" +- {standard_error(scores):.2g}" if len(scores) > 1 else ""
        mark = "best   " if leads else "       "
        width = self.messages.width
        label = self.metric.label if width is None or width >= 120 else self.metric.name
        before = f"{seconds:6.1f} s  {mark}{label} {score:.4g}{error}  "
        after = (
            f"  ({len(scores)} folds of {at:,} rows)" if width is None or width >= 100 else f"  ({len(scores)} folds)"
        )
        # On a terminal the name is as long as the line allows.
        room = 72 if width is None else max(width - len(before) - len(after), 16)
        self.messages.line(f"{before}{short(name, min(room, 72))}{after}")

    def _refit(self, evaluation: Evaluation, candidate: Candidate) -> tuple[TableModel, float]:
        self.messages.stage(f"fitting {candidate.family.name} to all training rows")
        form = candidate.family.form
        encoder, features = evaluation.encoders[form], evaluation.features(form)
        model = TableModel(
            candidate.build(self.seed, n_jobs=self.n_jobs),
            evaluation.columns_of(form),
            **model_options(evaluation, form),
        )
        began = self.budget.spent()
        weight = evaluation.weight if candidate.family.takes_weight else None
        model.fit_encoded(encoder, features, evaluation.y, weight)
        return model, self.budget.spent() - began

    def _refit_members(
        self,
        evaluation: Evaluation,
        ensemble: Ensemble,
        leader: Candidate,
        fitted: TableModel,
        ranked: list[dict[str, Any]],
        full: int,
    ) -> tuple[TableModel, list[dict[str, Any]]]:
        """The ensemble, of which the leader is fitted already, and the leaderboard with it before the others."""
        members = [fitted if one == leader else self._refit(evaluation, one)[0] for one in ensemble.candidates]
        plain = [TableModel(**member.get_params(deep=False)) for member in members]
        model = EnsembleTableModel(plain, list(ensemble.weights)).of_fitted(members)
        row = ensemble.row(self.metric, full)
        self.messages.line(
            f"{self.budget.spent():6.1f} s  best   {self.metric.label} {row['score_mean']:.4g}  {ensemble.name}: "
            f"{ensemble.gain:.2g} +- {ensemble.gain_se:.2g} better than the best of them, on other folds"
        )
        names = {entry.candidate.name for entry in ensemble.entries} | {leader.name}
        for other in ranked:
            if other["name"] in names or other["status"] == "chosen":
                other["status"] = "member" if other["name"] in names else "finished"
        return model, [row, *ranked]

    # ---------------------------------------------------------------------------------------------- after

    def _predict_test_set(self, model: TableModel) -> TestPart:
        self.messages.stage("scoring the test set")
        responses = responses_of(model, self.parts.test, self.metric.classes)
        kept = {name: values for name, values in responses.items() if name in ("predict", "predict_proba")}
        return TestPart(self.parts.rows_test, self.parts.y_test, kept, self.parts.weight_test)

    def _result(
        self,
        evaluation: Evaluation,
        leaderboard: list[dict[str, Any]],
        chosen: Sequence[tuple[Candidate, float]],
        model: TableModel,
        test: TestPart,
        baseline: dict[str, Any],
        drift: list[dict[str, Any]],
    ) -> TrainingRun:
        parts, metric = self.parts, self.metric
        score, tests, without_duplicates = self._test_scores(test)
        if without_duplicates is not None:
            self._say_effect_of_duplicates(score, without_duplicates)
        constant = constant_model(parts.task, self.quantile).fit(np.empty((len(evaluation.y), 1)), evaluation.y)
        responses = responses_of(constant, np.empty((len(test.y), 1)), metric.classes)
        members = [
            Member(
                one.family,
                one.seeded(self.seed),
                evaluation.columns_of(one.family.form),
                model_options(evaluation, one.family.form),
                weight,
            )
            for one, weight in chosen
        ]
        return TrainingRun(
            model_=model,
            metric=metric,
            task=parts.task,
            source=source_name(self.data),
            target=parts.target,
            how=parts.how,
            leaderboard=leaderboard,
            baseline=baseline,
            test=score,
            tests=tests,
            baseline_test=metric.shown(metric.score(responses, test.y, test.weight)),
            certificate=model.certificate_,
            profile=self.profile,
            warnings=self.issues,
            test_part=test,
            script=script_of(self.data, members, self._read_arguments(), self.quantile),
            sizes={"train": len(evaluation.y), "test": len(test.y)},
            seed=self.seed,
            budget=self.budget.seconds,
            drift=drift,
            search_history=self.search_history,
            interval=self._interval(model, test),
            correlations=self.correlations,
            groups=self._groups(test),
            without_duplicates=without_duplicates,
            created=now(),
        )

    def _groups(self, test: TestPart) -> dict[str, Any] | None:
        """Rates by group of the test rows, where they were asked for."""
        if self.group_report is None:
            return None
        return group_rates(self.parts.test, self.group_report, test.y, test.responses["predict"], self.metric.classes)

    def _interval(self, model: TableModel, test: TestPart) -> dict[str, Any] | None:
        """The half width of the prediction intervals, or the level of the quantile, and the share of test rows held."""
        if self.quantile is not None:
            held = test.y <= test.responses["predict"]
            return {"quantile": self.quantile, "coverage": float(held.mean()), "rows": len(test.y)}
        residuals = getattr(model, "residuals_", np.empty(0))
        width = half_width(residuals, _LEVEL) if len(residuals) else math.inf
        if not math.isfinite(width):
            return None
        held = np.abs(test.y - test.responses["predict"]) <= width
        return {"level": _LEVEL, "half_width": width, "coverage": float(held.mean()), "rows": len(test.y)}

    def _test_scores(self, test: TestPart) -> tuple[TestScore, dict[str, TestScore], TestScore | None]:
        """The score of the test set, further metrics as the time allows, and the score without duplicated rows."""
        metric, seconds = self.metric, 0.02 * self.budget.seconds
        score = metric.with_bound(test.responses, test.y, test.weight, self.seed, seconds=2 * seconds)
        tests = {}
        for name in further_metrics(metric):
            if len(test.y) > _CHEAP_ROWS and self.budget.left(0.1 * self.budget.seconds) < 0:
                break
            other = metric_for(name, self.parts.task, self.y_known)
            tests[name] = other.with_bound(test.responses, test.y, test.weight, self.seed, seconds=seconds / 2)
        # Too few other rows would leave no score to compare with.
        repeated = self.duplicates.across
        if not 0 < repeated.sum() < len(test.y) - 10:
            return score, tests, None
        kept = {name: values[~repeated] for name, values in test.responses.items()}
        weight = None if test.weight is None else test.weight[~repeated]
        return score, tests, metric.with_bound(kept, test.y[~repeated], weight, self.seed, seconds=seconds)

    def _say_effect_of_duplicates(self, score: TestScore, without: TestScore) -> None:
        """Complete the issue about test rows that are training rows: whether they make the score better."""
        for i, issue in enumerate(self.issues):
            if issue.kind == ACROSS:
                self.issues[i] = with_effect(issue, self.metric, score.score, without.score)

    def _read_arguments(self) -> dict[str, Any]:
        """Arguments of `read_parts` that give the same split again."""
        given = {**self.arguments, "target": self.parts.target, "task": self.parts.task}
        if isinstance(given["test"], os.PathLike):
            given["test"] = os.fspath(given["test"])
        elif given["test"] is not None and not isinstance(given["test"], str):
            given["test"] = None
        given = {name: value for name, value in given.items() if value is not None or name == "order"}
        return {name: value for name, value in given.items() if name != "header" or not value}

    def _diagnose(self, run: TrainingRun, diagnoses: Diagnoses, search: Search, entry: Entry) -> None:
        self._check_score(run, diagnoses, entry)
        diagnoses.run_importances()
        diagnoses.run_worst_rows(run.model_, self.parts.test, self.parts.y_test, self.parts.rows_test)
        diagnoses.run_slices(run.model_, self.parts.test, self.parts.y_test)
        if run.task == "classification":
            diagnoses.run_threshold(entry)
        diagnoses.run_bias_variance(run.model_, entry)
        diagnoses.run_explanations(run.model_, self.parts.test, self.parts.y_test, self.parts.rows_test)
        others = (e.candidate for e in search.ranked() if e.candidate.family is not entry.candidate.family)
        diagnoses.run_optimizer_or_objective(entry.candidate, next(others, None))
        diagnoses.run_ablation()
        found = diagnoses.found
        run.findings, run.skipped = found.findings, found.skipped
        run.importances, run.examples, run.explanations = found.importances, found.examples, found.explanations
        for slot, finding in run.findings.items():
            self.messages.line(f"{self.budget.spent():6.1f} s  {slot.replace('_', ' ')}: {finding.verdict}")


def model_options(evaluation: Evaluation, form: str) -> dict[str, Any]:
    """Arguments of a table model besides its columns."""
    options = {name: value for name, value in evaluation.encoder_options(form).items() if value}
    return {name: value for name, value in options.items() if (name, value) != ("form", "trees")}


def _several(models: Any) -> bool:
    return not isinstance(models, str) and len(models) > 1
