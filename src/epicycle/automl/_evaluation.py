"""Evaluation of candidates: the encoded training rows, the folds, and the fit and score of a candidate on a fold."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from sklearn.dummy import DummyClassifier, DummyRegressor

from epicycle.automl._budget import return_freed_memory
from epicycle.automl._candidates import Candidate
from epicycle.automl._deadline import OutOfTimeError, time_limit
from epicycle.automl._metrics import Metric
from epicycle.automl.tables._columns import base_kind, form_of
from epicycle.automl.tables._table_encoder import Coded, TableEncoder, is_feature
from epicycle.automl.tables._table_model import innermost, with_categories
from epicycle.core._random import stream
from epicycle.core._threads import n_threads
from epicycle.core.estimator._callbacks import TimeLimit
from epicycle.select._fit_and_score import run_all
from epicycle.select._inputs import Split
from epicycle.select._scorers import responses_of
from epicycle.stats._intervals import standard_error

#: Training rows of a fold from which the number of boosting rounds is found on a validation set; a tenth of fewer rows
#: is too noisy.
EARLY_STOPPING_ROWS = 3_000
#: Test rows of a fold while not all training rows are used: the standard error of an accuracy is then below 0.4%.
_MAX_TEST_ROWS = 20_000
#: Errors of unseen rows that a model keeps for its intervals.
_KEPT_ERRORS = 5_000
#: Cells of a training matrix below which folds run side by side; above it the threads inside a fit are busy.
_PARALLEL_CELLS = 2e6
#: Trees of a forest on a small part of the rows: enough to rank candidates.
_SCREENING_TREES = 60
#: How the note of a fit begins that was stopped because it took too long.
STOPPED = "stopped"
#: A fit that has a time limit of its own gets a little longer before the alarm ends it.
_ALARM_FACTOR, _ALARM_SECONDS = 1.1, 0.3
#: Bytes of a matrix for linear models from which single precision is used.
_SINGLE_PRECISION_BYTES = 16e6


@dataclass(frozen=True)
class Facts:
    """Task and size of the data, which decide the candidates."""

    task: str
    n: int
    p: int
    weighted: bool = False
    counts: bool = False
    ordered: bool = False
    texts: bool = False
    skewed: bool = False
    readable: bool = False
    alike: bool = False
    quantile: float | None = None
    image: tuple[int, int, int] | None = None


@dataclass(frozen=True)
class FoldScore:
    """Result of a fit on one fold: score (larger is better), time, number of trees, and predictions on the test rows.

    scale : factor of the time with all trees of the candidate.
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
class Evaluation:
    """Training rows and folds; `widths` is the number of features of a column in the form for linear models.

    Encoders are fitted to all training rows, without the target. One matrix of these rows is kept, in the form for
    trees; other forms are made from it for a fit and dropped after it.
    """

    table: pa.Table | None
    kinds: Mapping[str, str]
    y: np.ndarray
    weight: np.ndarray | None
    splits: list[Split]
    facts: Facts
    metric: Metric
    seed: int
    n_jobs: int | None = None
    widths: Mapping[str, int] = field(default_factory=dict)
    more_splits: list[Split] = field(default_factory=list)
    encoders: dict[str, TableEncoder] = field(default_factory=dict)
    matrix: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    terms: Any = None
    #: The column of time by which the rows are in order.
    order: str = ""
    #: The encoder of `matrix`.
    storage: TableEncoder = field(default_factory=TableEncoder)
    #: Seconds that the encoding took.
    encoding_seconds: float = 0.0
    _codes: np.ndarray = field(default_factory=lambda: np.empty(0, np.intp))

    def columns_of(self, form: str) -> dict[str, str]:
        """The kinds of the columns in a form: where rows are in order of time, trees get no date that never returns.

        A tree would learn what happened on each day, which says nothing of the days to come; linear models extrapolate.
        """
        kinds = dict(self.kinds)
        if form == "trees" and self.order in kinds and base_kind(kinds[self.order]) == "date":
            kinds[self.order] = f"calendar {form_of(kinds[self.order])}".strip()
        return kinds

    def encoder_options(self, form: str) -> dict[str, Any]:
        """Arguments of the encoder besides its columns: single precision, or sparse, where the matrix is large."""
        if form == "trees":
            return {"form": form}
        scale = {"scale": "common"} if form == "even" else {}
        if form == "even" or (form == "compact" and not self.has_texts):
            form = "linear"
        features = [name for name, kind in self.kinds.items() if is_feature(kind)]
        width = sum(self.widths.get(name, 1) for name in features)
        options: dict[str, Any] = {"form": form, **scale}
        if 8.0 * self.facts.n * width > _SINGLE_PRECISION_BYTES:
            options["dtype"] = "float32"
            # With this many one-hot columns at most a third of the entries of a row are not zero.
            options["sparse"] = width > 3 * len(features)
        return options

    @property
    def has_texts(self) -> bool:
        """Whether a column holds texts or sequences."""
        return any(kind in ("text", "sequence") for kind in self.kinds.values())

    def encode(self, forms: Iterable[str]) -> None:
        """Fit the encoders of these forms and replace the table by the matrix for trees."""
        assert self.table is not None
        began = time.perf_counter()
        self.storage = TableEncoder(dict(self.kinds)).fit_as(self.table, self.weight)
        if not any(name != self.order for name in self.storage.sources_):
            self.order = ""  # the date is all there is
        for form in sorted({"trees", *forms}, key=("trees", "linear", "compact", "even").index):
            if form == "compact" and not self.has_texts and "linear" in self.encoders:
                self.encoders[form] = self.encoders["linear"]
            if form not in self.encoders:
                same = form == "trees" and self.columns_of(form) == dict(self.kinds)
                encoder = TableEncoder(self.columns_of(form), **self.encoder_options(form))
                self.encoders[form] = self.storage if same else encoder.fit_as(self.table, self.weight, self.storage)
        self.matrix = self.storage.transform(self.table)
        if "linear" in self.encoders:
            self.terms = self.storage.terms(self.table)
        self.encoding_seconds = time.perf_counter() - began
        self.table = None

    def features(self, form: str, rows: Any = slice(None)) -> Any:
        """Feature matrix of some training rows."""
        return self.encoders[form].of_coded(Coded(self.storage, self.matrix, rows, self.terms))

    def largest(self) -> int:
        """Number of training rows of a fold."""
        return max(len(train) for train, _ in self.splits)

    def part(self, fold: int, rows: int) -> Split:
        """At most `rows` training rows of a fold, and its test rows."""
        train, test = self.splits[fold]
        if rows < len(train):
            if self.facts.ordered:
                # The latest rows, which are most like those to predict.
                train = self._with_all_classes(train[::-1], rows)
            else:
                train = self._with_all_classes(stream(self.seed, "rung", fold).permutation(train), rows)
            if len(test) > _MAX_TEST_ROWS:
                test = np.sort(stream(self.seed, "scored", fold).choice(test, _MAX_TEST_ROWS, replace=False))
        return train, test

    def _with_all_classes(self, ranked: np.ndarray, rows: int) -> np.ndarray:
        """The first `rows` rows, and the next of each class that none of them has, in their order in the data."""
        if self.facts.task != "classification":
            return np.sort(ranked[:rows])
        if len(self._codes) != len(self.y):
            self._codes = np.unique(self.y, return_inverse=True)[1]
        codes = self._codes[ranked]
        classes, first = np.unique(codes, return_index=True)
        lacking = first[~np.isin(classes, codes[:rows])]
        return np.sort(np.concatenate([ranked[:rows], ranked[lacking]]))

    def settings(self, candidate: Candidate, rows: int) -> dict[str, Any]:
        """Parameters of a fit besides those of the candidate: how the number of rounds is found."""
        if "n_estimators" in candidate.settings:
            # While rows are few, few trees rank the candidates as well.
            few = rows < 0.5 * self.largest()
            return {"n_estimators": min(_SCREENING_TREES, int(candidate.settings["n_estimators"]))} if few else {}
        if not candidate.family.rounds:
            return {}
        rate = float(candidate.settings["learning_rate"])
        if rows < EARLY_STOPPING_ROWS:
            # Without a validation set the number of rounds follows the learning rate: n_estimators x learning_rate =
            # 12.
            return {"n_estimators": int(np.clip(12 / rate, 30, 600))}
        if self.facts.ordered:
            # A random part of the rows is predicted from its neighbours in time, which makes more rounds seem better.
            return {"n_estimators": int(np.clip(20 / rate, 50, 1000))}
        stopping = {"n_iter_no_change": 25, "validation_fraction": 0.1, "keep_best": True, "tol": 1e-7}
        return {"n_estimators": int(np.clip(120 / rate, 300, 4000)), **stopping}

    def baseline(self) -> tuple[float, float]:
        """Mean score of a constant on the same folds, and its standard error."""
        constant = constant_model(self.facts.task, self.facts.quantile)
        scores = []
        for train, test in self.splits:
            constant.fit(np.empty((len(train), 1)), self.y[train])
            responses = responses_of(constant, np.empty((len(test), 1)), self.metric.classes)
            weight = None if self.weight is None else self.weight[test]
            scores.append(self.metric.score(responses, self.y[test], weight))
        return self.metric.shown(float(np.mean(scores))), float(standard_error(np.array(scores)))

    def run(
        self, candidate: Candidate, rows: int, folds: Sequence[int], limit: float, *, partial: bool = False
    ) -> list[FoldScore]:
        """Fit and score on some folds, each fit within `limit` seconds.

        With `partial` a fit that the time cut off is scored as it is: a model that is not at its optimum is better than
        none.
        """
        cells = float(min(rows, self.largest())) * len(self.encoders[candidate.family.form].sources_)
        # Small fits do not use several threads well: whole folds run in parallel instead.
        side_by_side = cells < _PARALLEL_CELLS and len(folds) > 1 and n_threads(float("inf"), self.n_jobs) > 1
        jobs = 1 if side_by_side else self.n_jobs
        began = time.perf_counter()

        def evaluate(fold: int) -> FoldScore:
            return self._fit_and_score(candidate, rows, fold, limit, jobs, partial)

        found = run_all(evaluate, list(folds), self.n_jobs if side_by_side else 1)
        return_freed_memory()
        if not side_by_side:
            return found
        each = (time.perf_counter() - began) / len(found)  # the share of a fold in the time of all
        return [replace(f, seconds=each) for f in found]

    def unseen_errors(self, results: Mapping[tuple[int, int], FoldScore], rows: int) -> np.ndarray:
        """Sizes of the errors on the test rows of the folds, in ascending order; at most some thousand of them."""
        sizes: list[np.ndarray] = []
        for (n, fold), result in results.items():
            if n == rows and "predict" in result.responses:
                test = self.part(fold, rows)[1]
                sizes.append(np.abs(self.y[test] - result.responses["predict"]))
        found = np.sort(np.concatenate(sizes)) if sizes else np.empty(0)
        # Of many errors every k-th is enough: the width is then known to a fraction of a percent.
        return found[:: -(-len(found) // _KEPT_ERRORS)] if len(found) > _KEPT_ERRORS else found

    def _fit_and_score(
        self, candidate: Candidate, rows: int, fold: int, limit: float, n_jobs: int | None, partial: bool
    ) -> FoldScore:
        train, test = self.part(fold, rows)
        began = time.perf_counter()
        # A first model that comes too late is better than none.
        alarm = math.inf if partial else _ALARM_FACTOR * limit + _ALARM_SECONDS
        try:
            with time_limit(alarm):
                model = self.fitted(candidate, train, limit=limit, n_jobs=n_jobs)
            ended = getattr(innermost(model), "converged_", True)
            if time.perf_counter() - began >= limit and not ended and not trees_of(model) and not partial:
                # Stopped early, and the time of a refit is unknown. An ensemble is refitted with the trees it has.
                raise OutOfTimeError("the fit did not end within its time limit")
            responses = responses_of(model, self.features(candidate.family.form, test), self.metric.classes)
            score = self.metric.score(responses, self.y[test], None if self.weight is None else self.weight[test])
        except OutOfTimeError:
            seconds = time.perf_counter() - began
            return FoldScore(fold, float("nan"), seconds, failure=f"{STOPPED} after {seconds:.3g} s: too slow")
        except (ValueError, TypeError, RuntimeError, MemoryError, ArithmeticError) as error:
            # One candidate that fails must not end the search: its failure is part of the leaderboard.
            failure = f"{type(error).__name__}: {' '.join(str(error).split())}"
            return FoldScore(fold, float("nan"), time.perf_counter() - began, failure=failure[:200])
        used, wanted = (
            innermost(model).get_params(deep=False).get("n_estimators"),
            candidate.settings.get("n_estimators"),
        )
        # The time of a screening fit with few trees is scaled to that with all trees.
        scale = 1.0 if used is None or wanted is None else wanted / used
        tie = self.metric.tie(responses, self.y[test])
        wanted_later = "predict_proba" if self.facts.task == "classification" else "predict"
        kept = {name: values for name, values in responses.items() if name == wanted_later}
        return FoldScore(fold, score, time.perf_counter() - began, trees_of(model), tie, scale, responses=kept)

    def fitted(
        self, candidate: Candidate, rows: np.ndarray, *, limit: float | None = None, n_jobs: int | None = None
    ) -> Any:
        """The candidate fitted to some training rows."""
        model = candidate.build(self.seed, n_jobs=n_jobs, **self.settings(candidate, len(rows)))
        model = with_categories(model, self.encoders[candidate.family.form])
        inner = innermost(model)
        if limit is not None and hasattr(inner, "set_callbacks"):
            inner.set_callbacks(TimeLimit(max(limit, 0.05)))
        weights = (
            {} if self.weight is None or not candidate.family.takes_weight else {"sample_weight": self.weight[rows]}
        )
        return model.fit(self.features(candidate.family.form, rows), self.y[rows], **weights)


def with_columns_of(X: Any, order: np.ndarray, columns: np.ndarray) -> Any:
    """X with the values of some columns taken from its rows in another order."""
    if isinstance(X, np.ndarray):
        shuffled = X.copy()
        shuffled[:, columns] = X[order][:, columns]
        return shuffled
    moved = np.zeros(X.shape[1], X.dtype)
    moved[columns] = 1
    # Products with diagonal matrices: the entries of the other columns, and those of these columns from other rows.
    return sp.csr_array(X @ sp.diags_array(1 - moved) + X[order] @ sp.diags_array(moved))


def constant_model(task: str, quantile: float | None = None) -> Any:
    """The baseline: the most frequent class with the shares of all as probabilities, the mean, or a quantile."""
    if quantile is not None:
        return DummyRegressor(strategy="quantile", quantile=quantile)
    return DummyClassifier(strategy="prior") if task == "classification" else DummyRegressor()


def trees_of(model: Any) -> int | None:
    """Number of boosting rounds or trees of a fitted model; None where it has none."""
    model = innermost(model)
    count = getattr(model, "n_estimators_", None)
    if count is None and hasattr(model, "n_estimators"):
        count = getattr(model, "n_iter_", None)
    return None if count is None else int(count)
