"""Diagnoses of the chosen model; each uses as many rows as the time allows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from epicycle.automl._budget import Budget
from epicycle.automl._candidates import Candidate
from epicycle.automl._deadline import OutOfTimeError, time_limit
from epicycle.automl._entry import Entry
from epicycle.automl._evaluation import Evaluation, with_columns_of
from epicycle.automl.diagnosis._explanations import Explained, partial_dependence, waterfalls, worst_rows
from epicycle.automl.diagnosis._learning_curve import affordable_plan, judged_curve, learning_curve
from epicycle.automl.diagnosis._surrogate import surrogate_tree
from epicycle.automl.tables._table_encoder import is_feature
from epicycle.automl.tables._table_model import TableModel, with_categories
from epicycle.core._exceptions import DataError, EpicycleError
from epicycle.core._random import stream
from epicycle.diagnose import ablation, optimizer_or_objective, slices, threshold_of_scores
from epicycle.report._finding import Finding
from epicycle.select._inputs import Rows, folds_of
from epicycle.select._scorers import responses_of
from epicycle.stats._intervals import standard_error

#: Rows that a diagnosis uses at most: more would not change its verdict.
_MAX_ROWS = {"ablation": 5_000, "slices": 20_000, "importances": 3_000}
#: With fewer rows than this a diagnosis is skipped.
_MIN_ROWS = 60
_MIN_COMPARED = 300
#: Columns that the ablation removes one by one; the others are reshuffled together.
_SINGLE_COLUMNS = 6
#: Training rows that explanations compare with at most.
_SPREAD_ROWS = 2_000


@dataclass
class DiagnosisResults:
    """Findings by slot, importances, and the reasons of skipped diagnoses."""

    findings: dict[str, Finding] = field(default_factory=dict)
    importances: list[dict[str, Any]] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    examples: dict[str, list[Any]] = field(default_factory=dict)
    explanations: dict[str, Any] = field(default_factory=dict)


@dataclass(kw_only=True)
class Diagnoses:
    """Diagnoses of a candidate on its training rows, and of the fitted model on the test set after its score is known.

    Parameters
    ----------
    evaluation : Evaluation
    candidate : Candidate
        As it was refitted.
    budget : Budget
    keep : float
        Seconds to reserve for the steps after the diagnoses.
    seconds_per_fit : float
        Of a fit to all training rows.
    raw : pyarrow.Table
        A sample of the training rows before encoding.
    raw_rows : ndarray
        Indices of these rows in the training set.
    report_stage : callable
        Gets the name of each diagnosis when it begins.
    associations : dict of float
        Share of the target that each column explains on its own: their order where importances are not known.
    """

    evaluation: Evaluation
    candidate: Candidate
    budget: Budget
    keep: float
    seconds_per_fit: float
    raw: pa.Table
    raw_rows: np.ndarray
    report_stage: Callable[[str], None]
    associations: Mapping[str, float] = field(default_factory=dict)
    found: DiagnosisResults = field(default_factory=DiagnosisResults)

    def affordable(self, fits: float, share: float, most: int) -> int:
        """Rows on which so many fits take at most a share of the time that is left."""
        seconds = share * self.budget.left(self.keep)
        overhead = 0.01 * fits  # seconds of fits to hardly any rows
        n = len(self.evaluation.y)
        seconds_per_row = max(self.seconds_per_fit, 1e-4) / n
        return int(min(most, n, max(seconds - overhead, 0.0) / (fits * seconds_per_row)))

    def attempt(self, slot: str, rows: int, work: Callable[[int], Any], share: float = 1.0) -> None:
        """Run a diagnosis on so many rows within a share of the time that is left, or record why it is skipped."""
        if rows < min(_MIN_ROWS, len(self.evaluation.y)):
            self.found.skipped[slot] = "skipped: out of time"
            return
        self.report_stage(slot.replace("_", " "))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # also those of this package
                with time_limit(max(share * self.budget.left(0.5 * self.keep), 0.1)):
                    found = work(rows)
        except OutOfTimeError:
            self.found.skipped[slot] = "skipped: took longer than expected"
            return
        except (EpicycleError, ValueError) as error:
            self.found.skipped[slot] = f"skipped: {' '.join(str(error).split())[:200]}"
            return
        if isinstance(found, Finding):
            self.found.findings[slot] = found

    def chosen(self, rows: int) -> np.ndarray:
        """Indices of training rows: at random, or the last ones of ordered rows."""
        n = len(self.evaluation.y)
        if rows >= n:
            return np.arange(n)
        if self.evaluation.facts.ordered:
            return np.arange(n - rows, n)
        return np.sort(stream(self.evaluation.seed, "diagnosis").choice(n, rows, replace=False))

    # ---------------------------------------------------------------------------------------------- slots

    def run_bias_variance(self, model: TableModel, entry: Entry) -> None:
        """Bias and variance from a learning curve that ends with the scores of the search."""
        rows = entry.most_rows()
        sizes, n_folds = affordable_plan(
            len(entry.folds(rows)),
            rows,
            self.seconds_per_fit * rows / len(self.evaluation.y),
            seconds := 0.4 * self.budget.left(self.keep),
        )

        def work(_: int) -> Finding:
            curve = learning_curve(self.evaluation, self.candidate, model, entry, sizes, n_folds, seconds)
            if len(curve.x) < 2:
                raise DataError("no part of the rows has a score on every fold")
            return judged_curve(self.evaluation, self.candidate, model, curve)

        self.attempt("bias_variance", rows if sizes else 0, work, share=0.6)

    def run_importances(self) -> None:
        """Permutation importances: the loss of score on the test rows of a fold when a column is shuffled there."""
        most = self.affordable(4.0, 0.25, 10**9)

        def work(rows: int) -> None:
            form, evaluation = self.candidate.family.form, self.evaluation
            # One fold is enough: importances are compared with each other, not with zero.
            train, test = evaluation.part(0, rows)
            test = test[: _MAX_ROWS["importances"]]
            model = evaluation.fitted(self.candidate, train[-rows:] if evaluation.facts.ordered else train)
            features, sources = evaluation.features(form, test), evaluation.encoders[form].sources_
            self.found.importances = self._permutation_importances(model, features, evaluation.y[test], sources)
            if not self.found.importances:
                self.found.skipped["importances"] = "skipped: out of time"

        self.attempt("importances", most, work)

    def _permutation_importances(self, model: Any, X: Any, y: np.ndarray, sources: list[str]) -> list[dict[str, Any]]:
        metric, rng = self.evaluation.metric, stream(self.evaluation.seed, "importances")
        began = time.perf_counter()
        whole = metric.score(responses_of(model, X, metric.classes), y)
        each = time.perf_counter() - began
        names = list(dict.fromkeys(sources))
        allowed = 0.3 * self.budget.left(self.keep)
        # Up to five permutations of each column, as many as the time allows.
        repeats = int(np.clip(allowed / max(each * len(names), 1e-6), 0, 5))
        if repeats == 0:
            return []
        source = np.array(sources)
        found: list[dict[str, Any]] = []
        for name in names:
            columns = np.flatnonzero(source == name)
            losses = []
            for _ in range(repeats):
                shuffled = with_columns_of(X, rng.permutation(len(y)), columns)
                responses = responses_of(model, shuffled, metric.classes)
                losses.append(whole - metric.score(responses, y))
            error = float(standard_error(np.array(losses)))
            found.append({"name": name, "mean": float(np.mean(losses)), "se": error})
        return sorted(found, key=lambda row: -row["mean"])[:40]

    def run_slices(self, model: TableModel, table: pa.Table, y: np.ndarray) -> None:
        """Slices of the test set with high errors; texts, nearly all of which are different, make none."""
        kinds = self.evaluation.kinds
        names = [name for name, kind in kinds.items() if is_feature(kind) and kind not in ("text", "sequence")]
        if not names:
            self.found.skipped["slices"] = "not needed: no column but texts"
            return

        def work(rows: int) -> Finding:
            part, target = table.slice(0, rows), y[:rows]
            found = slices(
                model,
                part,
                target,
                features=part.select(names),
                cv="prefit",
                n_jobs=self.evaluation.n_jobs,
                random_state=self.evaluation.seed,
            )
            return found

        self.attempt("slices", min(len(y), _MAX_ROWS["slices"]) if self.budget.left(self.keep) > 0 else 0, work)

    def run_worst_rows(self, model: TableModel, table: pa.Table, y: np.ndarray, rows_in_file: np.ndarray) -> None:
        """The test rows with the largest losses; their predictions are cheap beside a fit."""
        ranked = self._ranked(list(self.evaluation.kinds))

        def work(_: int) -> None:
            explained = Explained(model, table, y, self.evaluation.metric.classes)
            self.found.examples = worst_rows(explained, rows_in_file, ranked)

        self.attempt("worst_rows", len(y), work)

    def run_explanations(self, model: TableModel, table: pa.Table, y: np.ndarray, rows_in_file: np.ndarray) -> None:
        """Partial dependence of the most important columns, and contributions to a typical, the best and worst row."""
        seconds = 0.3 * self.budget.left(self.keep)
        ranked, seed = self._ranked(list(self.evaluation.kinds)), self.evaluation.seed
        kinds = {name: kind.partition(" ")[0] for name, kind in self.evaluation.kinds.items()}
        most = min(len(y), _MAX_ROWS["importances"])
        explained = Explained(model, table.slice(0, most), y[:most], self.evaluation.metric.classes)
        found = self.found.explanations

        def dependence(_: int) -> None:
            found["partial_dependence"] = partial_dependence(explained, ranked, kinds, seed)

        # Rows from the whole time of the training rows, where they are in order.
        spread = self.raw.take(pa.array(np.unique(np.linspace(0, self.raw.num_rows - 1, _SPREAD_ROWS).astype(int))))

        def contributions(rows: int) -> None:
            if falls := waterfalls(explained, rows_in_file[:rows], spread, seconds, seed):
                found["contributions"] = falls

        def surrogate(_: int) -> None:
            if made := surrogate_tree(explained, spread, kinds, seed):
                found["surrogate"] = made

        slots = {"dependence": dependence, "surrogate": surrogate, "contributions": contributions}
        if explained.table.num_columns < 2:  # a column alone adds everything
            slots = {"dependence": dependence}
            self.found.skipped["contributions"] = "not needed: one column"
        for slot, work in slots.items():
            self.attempt(slot, most if seconds > 0.1 else 0, work, share=0.6)

    def _ranked(self, names: list[str]) -> list[str]:
        """Columns from the most to the least important, as far as that is known."""
        important = [row["name"] for row in self.found.importances if row["name"] in names]
        return important or sorted(names, key=lambda name: -(self.associations.get(name) or 0.0))

    def run_threshold(self, entry: Entry) -> None:
        """Threshold for the probability of the rarer of two classes, from the out-of-fold predictions of an entry."""
        evaluation, rows = self.evaluation, entry.most_rows()
        if len(np.asarray(evaluation.metric.classes)) != 2:
            self.found.skipped["threshold"] = "not needed: not two classes"
            return
        rare_code = int(np.argmin(np.unique(evaluation.y, return_counts=True)[1]))
        predicted, scores = np.zeros(len(evaluation.y), bool), np.zeros(len(evaluation.y))
        for (n, fold), result in entry.results.items():
            if n == rows and "predict_proba" in result.responses:
                test = evaluation.part(fold, rows)[1]
                predicted[test], scores[test] = True, result.responses["predict_proba"][:, rare_code]
        if predicted.sum() < 20:
            self.found.skipped["threshold"] = "skipped: no out-of-fold probabilities"
            return
        scores, y = scores[predicted], evaluation.y[predicted]
        classes, counts = np.unique(y, return_counts=True)
        if len(classes) != 2 or counts.min() > 0.4 * len(y):
            self.found.skipped["threshold"] = "not needed: " + (
                "two classes of similar size" if len(classes) == 2 else "not two classes"
            )
            return
        rare = classes[int(np.argmin(counts))]

        def work(_: int) -> Finding:
            return threshold_of_scores(scores, y == rare, random_state=self.evaluation.seed)

        self.attempt("threshold", len(y) if self.budget.left(self.keep) > 0 else 0, work)

    def run_ablation(self) -> None:
        """Ablation of each of the most important columns, and of the others together."""
        kinds, there = self.evaluation.kinds, self.raw.column_names
        names = [name for name, kind in kinds.items() if is_feature(kind) and name in there]
        ranked = self._ranked(names)
        single = ranked[:_SINGLE_COLUMNS]
        parts: dict[str, list[str]] = {name: [name] for name in single}
        if others := [name for name in names if name not in single]:
            parts["all other columns" if len(others) > 1 else others[0]] = others
        if len(parts) < 2:
            self.found.skipped["ablation"] = "not needed: one column"
            return
        # Three folds, each component alone and cumulatively.
        fits = 3 * 2 * len(parts)
        most = min(self.affordable(1.3 * fits, 0.6, _MAX_ROWS["ablation"]), self.raw.num_rows)

        def work(rows: int) -> Finding:
            table, y = self.raw.slice(0, rows).select(names), self.evaluation.y[self.raw_rows[:rows]]
            weight = None if self.evaluation.weight is None else self.evaluation.weight[self.raw_rows[:rows]]
            model = self._table_model(self.candidate, rows)
            return ablation(model, table, y, parts, sample_weight=weight, **self._cross_validation())

        self.attempt("ablation", most, work)

    def run_optimizer_or_objective(self, chosen: Candidate, other: Candidate | None) -> None:
        """Whether a chosen linear model is limited by its optimiser or by its objective, beside another method."""
        # Kernel machines and neighbours use the linear form too, but their time grows faster than the rows.
        if chosen.family.form != "linear" or chosen.family.grows != 1 or other is None:
            why = "no other method was scored" if other is None else "the chosen model is not a linear one"
            self.found.skipped["optimizer_or_objective"] = f"not needed: {why}"
            return
        most = min(self.affordable(4.0, 0.5, 10_000), self.raw.num_rows)

        slot = "optimizer_or_objective"

        def work(rows: int) -> Finding | None:
            table, y = self.raw.slice(0, rows), self.evaluation.y[self.raw_rows[:rows]]
            parts = Rows(np.empty((rows, 1)), y)
            classes = self.evaluation.facts.task == "classification"
            train, test = folds_of(
                parts, 3, classifier=classes, ordered=self.evaluation.facts.ordered, seed=self.evaluation.seed
            )[-1]
            models = [
                self._table_model(one, len(train)).fit(table.take(pa.array(train)), y[train]) for one in (chosen, other)
            ]
            found = optimizer_or_objective(
                models[0],
                models[1],
                table.take(pa.array(test)),
                y[test],
                scoring=self.evaluation.metric.scoring_argument,
                names=(chosen.family.name, other.family.name),
                random_state=self.evaluation.seed,
            )
            if found.kind == "neither":  # there is no shortfall to explain
                self.found.skipped[slot] = "not needed: the chosen model is not clearly behind another"
                return None
            return found

        # A third of the rows compares the two: of fewer than a hundred it would say nothing.
        self.attempt(slot, most if most >= _MIN_COMPARED else 0, work)

    # ---------------------------------------------------------------------------------------------- parts

    def _estimator(self, encoder: Any) -> Any:
        return with_categories(self.candidate.build(self.evaluation.seed, n_jobs=1), encoder)

    def _table_model(self, candidate: Candidate, rows: int) -> TableModel:
        settings = self.evaluation.settings(candidate, min(rows, 2_000))
        estimator = candidate.build(self.evaluation.seed, n_jobs=1, **settings)
        form = candidate.family.form
        return TableModel(estimator, self.evaluation.columns_of(form), form=form, absent="skip")

    def _weight(self, rows: np.ndarray) -> np.ndarray | None:
        weight = self.evaluation.weight if self.candidate.family.takes_weight else None
        return None if weight is None else weight[rows]

    def _cross_validation(self) -> dict[str, Any]:
        """Arguments that the diagnoses by cross-validation share."""
        evaluation = self.evaluation
        return {
            "cv": 3,
            "ordered": evaluation.facts.ordered,
            "scoring": evaluation.metric.scoring_argument,
            "n_jobs": evaluation.n_jobs,
            "random_state": evaluation.seed,
        }
