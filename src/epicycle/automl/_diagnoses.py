"""What holds the chosen model back, as far as the time allows: each diagnosis takes as many rows as it can afford."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from epicycle.automl._budget import Budget
from epicycle.automl._candidates import Candidate
from epicycle.automl._evaluation import Arena
from epicycle.automl._table_encoder import is_feature
from epicycle.automl._table_model import TableModel
from epicycle.core._exceptions import ConvergenceWarning, EpicycleError, EpicycleWarning
from epicycle.core._random import stream
from epicycle.diagnose import ablation, bias_variance, optimizer_or_objective, slices, threshold_of_scores
from epicycle.report._finding import Finding
from epicycle.select._inputs import Rows, folds_of
from epicycle.select._scorers import responses_of

__all__ = ["Diagnosed", "Doctor"]

_MOST_ROWS = {"bias_variance": 20_000, "ablation": 5_000, "slices": 20_000, "importances": 3_000}
_LEAST_ROWS = 60
_GROUPS = 6  # columns that are taken away one by one; the others go together


@dataclass
class Diagnosed:
    """Findings by slot, importances, and what was left out and why."""

    findings: dict[str, Finding] = field(default_factory=dict)
    importances: list[dict[str, Any]] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    examples: dict[str, list[Any]] = field(default_factory=dict)


class Doctor:
    """Diagnoses of a model on its training rows (and, once it is scored, on its test rows).

    Parameters
    ----------
    arena : Arena
    candidate : Candidate
        As it was refitted.
    budget : Budget
    keep : float
        Seconds that have to be left afterwards.
    seconds_per_fit : float
        Of a fit to all training rows.
    raw : pyarrow.Table
        A sample of the training rows as they came, and
    raw_rows : ndarray
        which these are.
    tell : callable
        What is being looked at, in words.
    """

    def __init__(
        self, arena: Arena, candidate: Candidate, budget: Budget, *, keep: float, seconds_per_fit: float, raw: pa.Table,
        raw_rows: np.ndarray, tell: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.arena, self.candidate, self.budget, self.keep = arena, candidate, budget, keep
        self.cost = max(seconds_per_fit, 1e-4) / len(arena.y)  # seconds of a row
        self.raw, self.raw_rows, self.tell = raw, raw_rows, tell
        self.found = Diagnosed()

    def affordable(self, fits: float, share: float, most: int) -> int:
        """Rows on which so many fits take no more than a share of the time that is left."""
        seconds = share * self.budget.left(self.keep)
        overhead = 0.01 * fits  # of fits so small that their rows do not matter
        return int(min(most, len(self.arena.y), max(seconds - overhead, 0.0) / (fits * self.cost)))

    def attempt(self, slot: str, rows: int, work: Callable[[int], Any]) -> None:
        """Do it on so many rows, or say why not."""
        if rows < min(_LEAST_ROWS, len(self.arena.y)):
            self.found.skipped[slot] = "left out: not within the time"
            return
        self.tell(slot.replace("_", " "))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                warnings.simplefilter("ignore", EpicycleWarning)
                warnings.simplefilter("ignore", UserWarning)
                found = work(rows)
        except (EpicycleError, ValueError) as error:
            self.found.skipped[slot] = f"left out: {' '.join(str(error).split())[:200]}"
            return
        if isinstance(found, Finding):
            self.found.findings[slot] = found

    def chosen(self, rows: int) -> np.ndarray:
        """Training rows, at random or the last ones."""
        n = len(self.arena.y)
        if rows >= n:
            return np.arange(n)
        if self.arena.facts.ordered:
            return np.arange(n - rows, n)
        return np.sort(stream(self.arena.seed, "diagnosis").choice(n, rows, replace=False))

    # ---------------------------------------------------------------------------------------------- slots

    def bias_or_variance(self, desired: float | None) -> None:
        """Learning curve of the model on encoded rows; what it reaches itself is the level where no other is known."""
        sizes = (0.1, 0.3, 0.6, 1.0)

        def work(rows: int) -> Finding:
            at = self.chosen(rows)
            form = self.candidate.family.form
            model = self._estimator(self.arena.encoders[form])
            return bias_variance(
                model, self.arena.features(form, at), self.arena.y[at],
                desired=model if desired is None else desired, sizes=sizes, cv=3, ordered=self.arena.facts.ordered,
                scoring=self.arena.judge.scoring_argument, sample_weight=self._weight(at), n_jobs=self.arena.n_jobs,
                random_state=self.arena.seed, tolerance=0.05,
            )  # fmt: skip

        self.attempt(
            "bias_variance",
            self.affordable(3 * sum(sizes) + (2 if desired is not None else 5), 0.4, _MOST_ROWS["bias_variance"]),
            work,
        )

    def importances(self) -> None:
        """What the score loses on rows of one fold when a column is shuffled there."""
        most = self.affordable(4.0, 0.25, 10**9)

        def work(rows: int) -> None:
            form = self.candidate.family.form
            train, test = self.arena.part(0, rows)
            test = test[: _MOST_ROWS["importances"]]
            model = self.arena.fitted(self.candidate, train[-rows:] if self.arena.facts.ordered else train)
            self.found.importances = self._shuffled(
                model, self.arena.features(form, test), self.arena.y[test], self.arena.encoders[form].sources_
            )

        self.attempt("importances", most, work)

    def _shuffled(self, model: Any, X: Any, y: np.ndarray, sources: list[str]) -> list[dict[str, Any]]:
        judge, rng = self.arena.judge, stream(self.arena.seed, "importances")
        began = time.perf_counter()
        whole = judge.score(responses_of(model, X, judge.classes), y)
        each = time.perf_counter() - began
        names = list(dict.fromkeys(sources))
        allowed = 0.3 * self.budget.left(self.keep)
        repeats = int(np.clip(allowed / max(each * len(names), 1e-6), 0, 5))
        if repeats == 0:
            return []
        sparse = not isinstance(X, np.ndarray)
        found: list[dict[str, Any]] = []
        for name in names:
            columns = [j for j, source in enumerate(sources) if source == name]
            losses = []
            for _ in range(repeats):
                order = rng.permutation(len(y))
                moved = X.tolil() if sparse else X.copy()
                moved[:, columns] = X[order][:, columns]
                losses.append(
                    whole - judge.score(responses_of(model, moved.tocsr() if sparse else moved, judge.classes), y)
                )
            se = float(np.std(losses, ddof=1) / np.sqrt(repeats)) if repeats > 1 else float("nan")
            found.append({"name": name, "mean": float(np.mean(losses)), "se": se})
        return sorted(found, key=lambda row: -row["mean"])[:40]

    def weak_spots(self, model: TableModel, table: pa.Table, y: np.ndarray) -> None:
        """Where the errors on the test rows are."""

        def work(rows: int) -> Finding:
            part, target = table.slice(0, rows), y[:rows]
            names = [name for name, kind in self.arena.kinds.items() if is_feature(kind)]
            found = slices(
                model, part, target, features=part.select(names), cv="prefit", n_jobs=self.arena.n_jobs,
                random_state=self.arena.seed,
            )  # fmt: skip
            self.found.examples = {name: np.asarray(values).tolist() for name, values in found.worst_rows.items()}
            return found

        self.attempt("slices", min(len(y), _MOST_ROWS["slices"]) if self.budget.left(self.keep) > 0 else 0, work)

    def cut(self, scores: np.ndarray, y: np.ndarray) -> None:
        """Where to cut the probability of the rarer of two classes, from rows out of their folds."""
        classes, counts = np.unique(y, return_counts=True)
        if len(classes) != 2 or counts.min() > 0.4 * len(y):
            self.found.skipped["threshold"] = "not needed: " + (
                "two classes of like size" if len(classes) == 2 else "not two classes"
            )
            return
        rare = classes[int(np.argmin(counts))]

        def work(rows: int) -> Finding:
            return threshold_of_scores(scores, y == rare, random_state=self.arena.seed)

        self.attempt("threshold", len(y) if self.budget.left(self.keep) > 0 else 0, work)

    def without_groups(self) -> None:
        """What each of the most important columns is worth, and the others together."""
        names = [name for name, kind in self.arena.kinds.items() if is_feature(kind) and name in self.raw.column_names]
        ranked = [row["name"] for row in self.found.importances if row["name"] in names] or names
        single = ranked[:_GROUPS]
        parts: dict[str, list[str]] = {name: [name] for name in single}
        if others := [name for name in names if name not in single]:
            parts["all other columns" if len(others) > 1 else others[0]] = others
        if len(parts) < 2:
            self.found.skipped["ablation"] = "not needed: one column"
            return
        fits = 3 * 2 * len(parts)
        most = min(self.affordable(1.3 * fits, 0.6, _MOST_ROWS["ablation"]), self.raw.num_rows)

        def work(rows: int) -> Finding:
            table, y = self.raw.slice(0, rows).select(names), self.arena.y[self.raw_rows[:rows]]
            weight = None if self.arena.weight is None else self.arena.weight[self.raw_rows[:rows]]
            return ablation(
                self._table_model(self.candidate, rows), table, y, parts, cv=3, ordered=self.arena.facts.ordered,
                scoring=self.arena.judge.scoring_argument, sample_weight=weight, n_jobs=self.arena.n_jobs,
                random_state=self.arena.seed,
            )  # fmt: skip

        self.attempt("ablation", most, work)

    def optimiser_or_objective(self, linear: Candidate | None, other: Candidate | None) -> None:
        """Whether the best linear model is held back by its optimiser or by what it optimises."""
        if linear is None or other is None:
            self.found.skipped["optimizer_or_objective"] = "not needed: no linear model to compare with"
            return
        most = min(self.affordable(4.0, 0.5, 10_000), self.raw.num_rows)

        def work(rows: int) -> Finding:
            table, y = self.raw.slice(0, rows), self.arena.y[self.raw_rows[:rows]]
            parts = Rows(np.empty((rows, 1)), y)
            classes = self.arena.facts.task == "classification"
            train, test = folds_of(
                parts, 3, classifier=classes, ordered=self.arena.facts.ordered, seed=self.arena.seed
            )[-1]
            models = [
                self._table_model(one, len(train)).fit(table.take(pa.array(train)), y[train]) for one in (linear, other)
            ]
            return optimizer_or_objective(
                models[0], models[1], table.take(pa.array(test)), y[test], scoring=self.arena.judge.scoring_argument,
                names=(linear.family.name, other.family.name), random_state=self.arena.seed,
            )  # fmt: skip

        self.attempt("optimizer_or_objective", most, work)

    # ---------------------------------------------------------------------------------------------- parts

    def _estimator(self, encoder: Any) -> Any:
        from epicycle.automl._table_model import with_categories

        return with_categories(self.candidate.build(self.arena.seed, n_jobs=1), encoder)

    def _table_model(self, candidate: Candidate, rows: int) -> TableModel:
        estimator = candidate.build(self.arena.seed, n_jobs=1, **self.arena.settings(candidate, min(rows, 2_000)))
        return TableModel(estimator, dict(self.arena.kinds), form=candidate.family.form, absent="skip")

    def _weight(self, rows: np.ndarray) -> np.ndarray | None:
        return None if self.arena.weight is None or not self.candidate.family.takes_weight else self.arena.weight[rows]
