"""What all candidates share: the encoded training rows, the folds, and a fit on one fold."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from epicycle.automl._candidates import Candidate
from epicycle.automl._memory import return_freed_memory
from epicycle.automl._metrics import Judge
from epicycle.automl._table_encoder import Coded, TableEncoder, is_feature
from epicycle.automl._table_model import with_categories
from epicycle.core._random import stream
from epicycle.core._threads import n_threads
from epicycle.core.estimator._callbacks import TimeLimit
from epicycle.select._fit_and_score import run_all
from epicycle.select._inputs import Split
from epicycle.select._scorers import responses_of

__all__ = ["Arena", "Facts", "FoldScore"]

#: Rows of a fold from which the number of boosting rounds is found on rows kept apart.
EARLY_STOPPING_ROWS = 3_000
_MOST_TEST_ROWS = 20_000  # of a fold, while candidates are still many
_PARALLEL_CELLS = 2e6  # below this folds run side by side, above it the threads are inside the fits
_FEW_TREES = 60
_LARGE = 16e6  # bytes of a matrix for linear models from which single precision is taken


@dataclass(frozen=True)
class Facts:
    """What decides which candidates suit: the task and the size."""

    task: str
    n: int
    p: int
    weighted: bool = False
    counts: bool = False
    ordered: bool = False


@dataclass(frozen=True)
class FoldScore:
    """The outcome of one fit: its score, larger is better, its time, its trees, and what it said about test rows.

    scale : how much longer the fit would have taken with all of its trees.
    """

    fold: int
    score: float
    seconds: float
    rounds: int | None = None
    tie: float = 0.0
    scale: float = 1.0
    failure: str = ""
    responses: Mapping[str, np.ndarray] = field(default_factory=dict)


@dataclass
class Arena:
    """Training rows and folds; `widths` says how many features a column becomes for linear models.

    Encoders are learnt from all training rows, which they see without the target. One matrix is kept of these, that for
    trees; rows in other forms are made from it for a fit, and go with it.
    """

    table: pa.Table | None
    kinds: Mapping[str, str]
    y: np.ndarray
    weight: np.ndarray | None
    splits: list[Split]
    facts: Facts
    judge: Judge
    seed: int
    n_jobs: int | None = None
    widths: Mapping[str, int] = field(default_factory=dict)
    more_splits: list[Split] = field(default_factory=list)
    encoders: dict[str, TableEncoder] = field(default_factory=dict)
    matrix: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))

    def encoder_options(self, form: str) -> dict[str, Any]:
        """The arguments of the encoder beside its columns: single precision, or sparse, where the matrix is large."""
        if form == "trees":
            return {"form": form}
        features = [name for name, kind in self.kinds.items() if is_feature(kind)]
        width = sum(self.widths.get(name, 1) for name in features)
        options: dict[str, Any] = {"form": form}
        if 8.0 * self.facts.n * width > _LARGE:
            options["dtype"] = "float32"
            options["sparse"] = width > 3 * len(features)
        return options

    def encode(self, forms: Iterable[str]) -> None:
        """Learn the encoders of these forms and keep the matrix for trees, all that is needed of the table."""
        assert self.table is not None
        for form in ("trees", *forms):
            if form not in self.encoders:
                encoder = TableEncoder(dict(self.kinds), **self.encoder_options(form))
                self.encoders[form] = encoder.fit(self.table, sample_weight=self.weight)
        self.matrix = self.encoders["trees"].transform(self.table)
        self.table = None

    def features(self, form: str, rows: Any = slice(None)) -> Any:
        """The matrix of some training rows."""
        return self.encoders[form].of_coded(Coded(self.encoders["trees"], self.matrix, rows))

    def largest(self) -> int:
        """Rows to learn from in a fold."""
        return max(len(train) for train, _ in self.splits)

    def part(self, fold: int, rows: int) -> Split:
        """The rows of a fold to learn from, no more than so many, and those to score on."""
        train, test = self.splits[fold]
        if rows < len(train):
            if self.facts.ordered:
                train = train[-rows:]
            else:
                train = np.sort(stream(self.seed, "rung", fold).permutation(train)[:rows])
            if len(test) > _MOST_TEST_ROWS:
                test = np.sort(stream(self.seed, "scored", fold).choice(test, _MOST_TEST_ROWS, replace=False))
        return train, test

    def settings(self, candidate: Candidate, rows: int) -> dict[str, Any]:
        """What is set for a fit beside the settings of the candidate: how the number of rounds is found."""
        if "n_estimators" in candidate.settings:
            # While rows are few, few trees tell as well who is better.
            few = rows < 0.5 * self.largest()
            return {"n_estimators": min(_FEW_TREES, int(candidate.settings["n_estimators"]))} if few else {}
        if not candidate.family.rounds:
            return {}
        rate = float(candidate.settings["learning_rate"])
        if rows < EARLY_STOPPING_ROWS:
            return {"n_estimators": int(np.clip(12 / rate, 30, 600))}
        return {"n_estimators": int(np.clip(120 / rate, 300, 4000)), "n_iter_no_change": 25, "validation_fraction": 0.1}

    def run(self, candidate: Candidate, rows: int, folds: Sequence[int], limit: float) -> list[FoldScore]:
        """Fit and score on some folds; every fit may take `limit` seconds."""
        cells = float(min(rows, self.largest())) * len(self.encoders[candidate.family.form].sources_)
        side_by_side = cells < _PARALLEL_CELLS and len(folds) > 1 and n_threads(float("inf"), self.n_jobs) > 1
        jobs = 1 if side_by_side else self.n_jobs
        began = time.perf_counter()

        def work(fold: int) -> FoldScore:
            return self._one(candidate, rows, fold, limit, jobs)

        found = run_all(work, list(folds), self.n_jobs if side_by_side else 1)
        return_freed_memory()
        if not side_by_side:
            return found
        each = (time.perf_counter() - began) / len(found)  # what a fold costs while others run beside it
        return [replace(f, seconds=each) for f in found]

    def _one(self, candidate: Candidate, rows: int, fold: int, limit: float, n_jobs: int | None) -> FoldScore:
        train, test = self.part(fold, rows)
        began = time.perf_counter()
        try:
            model = self.fitted(candidate, train, limit=limit, n_jobs=n_jobs)
            if time.perf_counter() - began >= limit and not getattr(model, "converged_", True) and not trees_of(model):
                # Stopped on the way. A refit would take longer than anybody knows; of trees fewer are refitted.
                raise RuntimeError("the fit did not end within the time")
            responses = responses_of(model, self.features(candidate.family.form, test), self.judge.classes)
            score = self.judge.score(responses, self.y[test], None if self.weight is None else self.weight[test])
        except (ValueError, TypeError, RuntimeError, MemoryError, ArithmeticError) as error:
            failure = f"{type(error).__name__}: {' '.join(str(error).split())}"
            return FoldScore(fold, float("nan"), time.perf_counter() - began, failure=failure[:200])
        few, all_of_them = model.get_params(deep=False).get("n_estimators"), candidate.settings.get("n_estimators")
        scale = 1.0 if few is None or all_of_them is None else all_of_them / few
        tie = self.judge.tie(responses, self.y[test])
        kept = {name: said for name, said in responses.items() if name == "predict_proba"}
        return FoldScore(fold, score, time.perf_counter() - began, trees_of(model), tie, scale, responses=kept)

    def fitted(
        self, candidate: Candidate, rows: np.ndarray, *, limit: float | None = None, n_jobs: int | None = None
    ) -> Any:
        """The candidate on some training rows."""
        model = candidate.build(self.seed, n_jobs=n_jobs, **self.settings(candidate, len(rows)))
        with_categories(model, self.encoders[candidate.family.form])
        if limit is not None and hasattr(model, "set_callbacks"):
            model.set_callbacks(TimeLimit(max(limit, 0.05)))
        weights = (
            {} if self.weight is None or not candidate.family.takes_weight else {"sample_weight": self.weight[rows]}
        )
        return model.fit(self.features(candidate.family.form, rows), self.y[rows], **weights)


def trees_of(model: Any) -> int | None:
    """Rounds or trees of a model that counts them."""
    count = getattr(model, "n_estimators_", None)
    if count is None and hasattr(model, "n_estimators"):
        count = getattr(model, "n_iter_", None)
    return None if count is None else int(count)
