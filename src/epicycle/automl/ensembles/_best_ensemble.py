"""The ensemble at the end of a search: of candidates with predictions on all folds, where it beats the best of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.automl._candidates import Candidate
from epicycle.automl._entry import Entry
from epicycle.automl._evaluation import Evaluation
from epicycle.automl._leaderboard import final_candidate
from epicycle.automl._metrics import Metric
from epicycle.automl._search import Search
from epicycle.automl.ensembles._greedy_selection import MOST_STEPS, Fold, greedy_selection, weighted_mean
from epicycle.stats._intervals import standard_error

#: Share of the time that the selection of weights may take.
_SELECTION_SHARE = 0.05
#: How a refit may exceed what was extrapolated from the folds.
_SLOWER = 1.15


@dataclass(frozen=True)
class Ensemble:
    """Members with their weights, the heaviest first.

    scores : by fold, with the weights that the other folds give.
    predicted : the mean on the test rows of each fold.
    gain, gain_se : over the best single candidate on the same folds, with its standard error.
    """

    entries: Sequence[Entry]
    candidates: Sequence[Candidate]
    weights: Sequence[float]
    scores: np.ndarray
    predicted: Sequence[np.ndarray]
    gain: float
    gain_se: float

    @property
    def name(self) -> str:
        """The members with their weights."""
        parts = [f"{w:.2g} {c.family.name}" for w, c in zip(self.weights, self.candidates, strict=True)]
        return f"Ensemble({' + '.join(parts)})"

    def unseen_errors(self, evaluation: Evaluation, rows: int) -> np.ndarray:
        """Sizes of the errors of the mean on the test rows of the folds, in ascending order."""
        folds = range(len(self.predicted))
        sizes = [
            np.abs(evaluation.y[evaluation.part(fold, rows)[1]] - said)
            for fold, said in zip(folds, self.predicted, strict=True)
        ]
        return np.sort(np.concatenate(sizes))

    def row(self, metric: Metric, full: int) -> dict[str, Any]:
        """Its row of the leaderboard."""
        return {
            "name": self.name,
            "method": "Ensemble",
            "params": {c.name: round(w, 4) for w, c in zip(self.weights, self.candidates, strict=True)},
            "score_mean": metric.shown(float(self.scores.mean())),
            "score_se": float(standard_error(self.scores)),
            "seconds": round(sum(entry.seconds() for entry in self.entries), 4),
            "n_folds": len(self.scores),
            "rows": full,
            "rounds": None,
            "status": "chosen",
        }


def best_ensemble(evaluation: Evaluation, search: Search, leader: Entry) -> Ensemble | None:
    """The ensemble of the candidates whose predictions are there; None where it does not beat the leader.

    It has to win on folds that had no part in its weights, by more than a standard error of the difference, and the
    time must allow to fit its members.
    """
    entries = search.complete_entries()
    if len(entries) < 2 or leader not in entries or evaluation.facts.readable:
        return None
    entries = [leader, *(entry for entry in entries if entry is not leader)]
    folds = [_fold(evaluation, search.full, entries, fold) for fold in range(search.k)]
    if not _selects_in_time(search, folds, evaluation.metric):
        return None
    found = greedy_selection(folds, evaluation.metric, evaluation.seed)
    single = leader.scores(search.full, range(search.k))
    gain, error = found.gain_over(single)
    chosen = [m for m in np.argsort(-found.weights, kind="stable") if found.weights[m] > 0]
    if len(chosen) < 2 or not np.isfinite(found.scores).all() or not gain > error:
        return None
    members = [entries[m] for m in chosen]
    if not _in_time(search, members, leader):
        return None
    predicted = [weighted_mean(fold.members, found.weights) for fold in folds]
    candidates = [final_candidate(entry, search.full) for entry in members]
    weights = [float(found.weights[m]) for m in chosen]
    return Ensemble(members, candidates, weights, found.scores, predicted, gain, error)


def _fold(evaluation: Evaluation, rows: int, entries: Sequence[Entry], fold: int) -> Fold:
    test = evaluation.part(fold, rows)[1]
    weight = None if evaluation.weight is None else evaluation.weight[test]
    name = "predict_proba" if evaluation.facts.task == "classification" else "predict"
    return Fold(evaluation.y[test], weight, [entry.results[rows, fold].responses[name] for entry in entries])


def _selects_in_time(search: Search, folds: Sequence[Fold], metric: Metric) -> bool:
    """Whether the selection ends within a small share of the time, by the seconds that one score takes."""
    began = time.perf_counter()
    folds[0].score(folds[0].members[0], metric)
    each = time.perf_counter() - began
    scores = MOST_STEPS * len(folds[0].members) * len(folds) * (len(folds) + 1)
    return each * scores <= _SELECTION_SHARE * search.budget.seconds


def _in_time(search: Search, members: Sequence[Entry], leader: Entry) -> bool:
    """Whether the members besides the leader can be fitted in what is left beside its refit and the diagnoses."""
    others = [search.refit_seconds(entry) for entry in members if entry is not leader]
    return _SLOWER * sum(others) <= search.budget.left(search.after(search.refit_seconds(leader)))
