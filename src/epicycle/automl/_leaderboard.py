"""The leaderboard of a search, the candidate for the refit, and the cost of a restriction."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from epicycle.automl._candidates import Candidate
from epicycle.automl._entry import Entry
from epicycle.automl._metrics import Metric
from epicycle.stats._intervals import standard_error

#: Rows of the leaderboard at most; the report stays small.
_MOST = 200


def leaderboard(entries: Sequence[Entry], winner: Entry, final: Candidate, metric: Metric) -> list[dict[str, Any]]:
    """Rows of the leaderboard: the winner as it was refitted, then the other candidates from best to worst.

    Candidates that were scored on the rows and folds of the winner come first, with their scores on these; the others
    follow by the rows and folds that they have.
    """
    rows = winner.most_rows()
    folds = winner.folds(rows)

    def place(entry: Entry) -> tuple[Any, ...]:
        if entry is winner:
            return (0,)
        return (1, -entry.mean(rows, folds)) if comparable(entry) else (2, *entry.rank())

    def comparable(entry: Entry) -> bool:
        return all((rows, fold) in entry.results for fold in folds)

    tried = sorted((entry for entry in entries if entry.results), key=place)
    found = [
        _row(
            entry,
            final if entry is winner else entry.candidate,
            metric,
            *((rows, folds) if comparable(entry) else (entry.most_rows(), entry.folds(entry.most_rows()))),
        )
        for entry in tried
    ]
    found += [_row(entry, entry.candidate, metric, 0, []) for entry in entries if not entry.results]
    return found[:_MOST]


def _row(entry: Entry, candidate: Candidate, metric: Metric, rows: int, folds: Sequence[int]) -> dict[str, Any]:
    scores = entry.scores(rows, folds)
    finite = scores[np.isfinite(scores)]
    return {
        "name": candidate.name,
        "method": candidate.family.name,
        "params": dict(candidate.settings),
        "score_mean": metric.shown(float(finite.mean())) if len(finite) else None,
        "score_se": float(standard_error(finite)) if len(finite) > 1 else None,
        "seconds": round(entry.seconds(), 4),
        "n_folds": len(scores),
        "rows": rows,
        "rounds": entry.rounds(),
        "status": entry.status,
    }


def cost_of_restriction(
    entries: Sequence[Entry], winner: Entry, may_lead: Callable[[Candidate], bool], metric: Metric
) -> dict[str, Any] | None:
    """Score of the best candidate that could not be chosen on the folds of the winner, and the difference.

    Fold by fold on the same rows, so that its standard error is that of a difference of pairs. None where no such
    candidate was evaluated on them.
    """
    rows = winner.most_rows()
    best, folds = None, [0]
    for entry in entries:
        if may_lead(entry.candidate) or entry.failed:
            continue
        shared = [fold for fold in winner.folds(rows) if (rows, fold) in entry.results]
        if len(shared) < 2 or entry.mean(rows, shared) == -math.inf:
            continue
        # A candidate with more folds says more; between those the better one.
        if best is None or (len(shared), entry.mean(rows, shared)) > (len(folds), best.mean(rows, folds)):
            best, folds = entry, shared
    if best is None:
        return None
    loss = best.scores(rows, folds) - winner.scores(rows, folds)
    return {
        "name": best.candidate.name,
        "score": metric.shown(best.mean(rows, folds)),
        "score_chosen": metric.shown(winner.mean(rows, folds)),
        "cost": float(loss.mean()),
        "cost_se": float(standard_error(loss)),
        "n_folds": len(folds),
    }


def final_candidate(entry: Entry, full: int) -> Candidate:
    """The candidate for the refit to all rows, with the number of rounds found on the folds (of `full` rows)."""
    candidate, rounds = entry.candidate, entry.rounds()
    # Methods without rounds, such as linear models, are refitted as they are.
    if rounds is None:
        return candidate
    if "n_estimators" in candidate.settings:
        stopped_early = entry.most_rows() >= full and rounds < candidate.settings["n_estimators"]
        return (
            replace(candidate, settings={**candidate.settings, "n_estimators": rounds}) if stopped_early else candidate
        )
    return replace(candidate, settings={**candidate.settings, "n_estimators": max(rounds, 1)})
