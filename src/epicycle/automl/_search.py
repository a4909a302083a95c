"""Search for the best candidate by successive halving, then by random variation of the leaders.

Candidates are evaluated on few rows first, and the better half on more rows. A fit begins only if it is expected to
end in time: its duration is extrapolated from fits to fewer rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from epicycle.automl._budget import Budget, Durations
from epicycle.automl._candidates import Candidate, Family
from epicycle.automl._evaluation import Evaluation, FoldScore
from epicycle.core._random import stream
from epicycle.stats._intervals import standard_error

#: Trials of the random variation at most, and trials without an improvement after which it ends.
_MAX_TRIALS, _PATIENCE = 400, 60
#: Share of the time after which no further candidates are tried on the first rung: the rest is for the better ones.
_FIRST_RUNG_SHARE = 0.25
#: Candidates that are evaluated on all rows and folds.
_FINALISTS = 4
#: Rows of the leaderboard at most; the report stays small.
_MAX_LEADERBOARD = 200


@dataclass
class Entry:
    """A candidate and its results by number of rows and fold."""

    candidate: Candidate
    results: dict[tuple[int, int], FoldScore] = field(default_factory=dict)
    status: str = "waiting"
    trial: int = 0

    def scores(self, rows: int, folds: Sequence[int] | None = None) -> np.ndarray:
        found = {fold: r.score for (n, fold), r in self.results.items() if n == rows}
        return np.array([found.get(fold, np.nan) for fold in (sorted(found) if folds is None else folds)])

    def mean(self, rows: int, folds: Sequence[int] | None = None) -> float:
        scores = self.scores(rows, folds)
        return float(scores.mean()) if len(scores) and np.isfinite(scores).all() else -math.inf

    def merit(self, rows: int, folds: Sequence[int] | None = None) -> tuple[float, float]:
        """The mean score, and the second criterion between equal scores."""
        ties = [r.tie for (n, fold), r in self.results.items() if n == rows and (folds is None or fold in folds)]
        return round(self.mean(rows, folds), 12), float(np.mean(ties)) if ties else -math.inf

    def most_rows(self) -> int:
        return max((n for n, _ in self.results), default=0)

    def seconds(self) -> float:
        return sum(r.seconds for r in self.results.values())

    def failure(self) -> str:
        return next((r.failure for r in self.results.values() if r.failure), "")

    def rounds(self) -> int | None:
        at = self.most_rows()
        found = [r.rounds for (n, _), r in self.results.items() if n == at and r.rounds is not None]
        return round(float(np.mean(found))) if found else None


class Search:
    """Search over the candidates of some families, within a budget of time.

    Parameters
    ----------
    evaluation : Evaluation
    families : list of Family
    budget : Budget
    on_evaluated : callable
        ``on_evaluated(entry, is_leader)`` after each candidate on each rung.
    after : callable
        ``after(seconds)``: seconds to reserve for the steps after the search when a fit to all rows takes `seconds`.
    """

    def __init__(
        self,
        evaluation: Evaluation,
        families: Sequence[Family],
        budget: Budget,
        on_evaluated: Callable[[Entry, bool], None],
        after: Callable[[float], float],
    ) -> None:
        self.evaluation, self.budget, self.on_evaluated, self.after = evaluation, budget, on_evaluated, after
        self.families = list(families)
        self.k = len(evaluation.splits)
        self.full = evaluation.largest()
        self.durations = {id(family): Durations(family.grows) for family in families}
        most = max((len(family.starts) for family in families), default=0)
        self.entries = [
            Entry(Candidate(family, family.starts[i]))
            for i in range(most)
            for family in families
            if i < len(family.starts)
        ]
        self.leader: Entry | None = None
        self.rungs = self._rungs()
        #: Values of hyperparameters that are left to the model by default, as a start for their variation.
        self.typical = {"gamma": 1.0 / max(evaluation.facts.p, 1)}

    def _rungs(self) -> list[tuple[int, tuple[int, ...]]]:
        """Rows and folds of each rung of successive halving; the last has all of both."""
        folds = tuple(range(self.k))
        # More time allows a larger first rung; below 500 rows scores hardly rank candidates.
        rows = int(np.clip(100 * self.budget.seconds, 500, 4_000))
        rungs = []
        # A factor of 4 in the rows with half of the candidates dropped keeps the cost of a rung about twice that of the
        # one before.
        while rows * 2 < self.full:
            rungs.append((rows, folds[:2]))
            rows *= 4
        # Few rows: two folds first, and all folds for the better half.
        if not rungs and self.k > 2:
            rungs.append((self.full, folds[:2]))
        return [*rungs, (self.full, folds)]

    # ---------------------------------------------------------------------------------------------- time

    def expected(self, entry: Entry, rows: int) -> float | None:
        """Expected seconds of one fit to so many rows."""
        own = Durations(entry.candidate.family.grows, [(n, r.seconds * r.scale) for (n, _), r in entry.results.items()])
        known = own.expected(rows)
        return known if known is not None else self.durations[id(entry.candidate.family)].expected(rows)

    def kept(self, entry: Entry | None) -> float:
        """Seconds to reserve for the refit of the leader and the steps after it."""
        chosen = entry or self.leader
        # A refit has k / (k - 1) times the rows of a fold.
        refit = 0.0 if chosen is None else (self.expected(chosen, int(self.full * self.k / max(self.k - 1, 1))) or 0.0)
        return self.after(refit)

    def _evaluate(self, entry: Entry, rows: int, folds: Sequence[int], *, force: bool = False) -> bool:
        """Fit on the folds without a result; False where the time does not allow it.

        `force` begins a fit however little time there is.
        """
        missing = [fold for fold in folds if (rows, fold) not in entry.results]
        if not missing:
            return True
        left = self.budget.left(self.kept(self.leader))
        each = self.expected(entry, rows)
        if force:
            left = max(left, 1.0)
        # If it wins it is refitted to all rows: the time for that must be left too.
        elif (
            left <= 0
            or (each is not None and (1.1 * each * len(missing) > left or self.budget.left(self.kept(entry)) <= 0))
            or (each is None and self.leader is not None and left < 0.04 * self.budget.seconds)
        ):
            return False
        # A fit may take three times as long as expected before it is stopped.
        limit = left if len(missing) == 1 else max(left / len(missing), 3 * (each or 0.0))
        for result in self.evaluation.run(entry.candidate, rows, missing, min(limit, left), partial=force):
            entry.results[(rows, result.fold)] = result
            self.durations[id(entry.candidate.family)].add(rows, result.seconds * result.scale)
        return True

    # ---------------------------------------------------------------------------------------------- rungs

    def run(self) -> Entry:
        """Run the rungs, vary the leaders, confirm on other folds; returns the winner."""
        alive = list(self.entries)
        for step, (rows, folds) in enumerate(self.rungs):
            last = step == len(self.rungs) - 1
            before = self.budget.spent()
            for number, entry in enumerate(alive):
                if step == 0 and not last and self.budget.spent() - before > _FIRST_RUNG_SHARE * self.budget.seconds:
                    entry.status = "out of time"
                    continue
                # The first model is scored on all folds at once, so that a first result is shown early.
                first = step == 0 and number == 0
                # Until there is a model fits are forced: however little time there is, the search ends with one.
                force = self.leader is None
                done = self._evaluate(entry, rows, tuple(range(self.k)) if first else folds, force=force)
                self._record(entry, done)
            scored = [entry for entry in alive if entry.mean(rows, folds) > -math.inf]
            if not scored:
                break
            scored.sort(key=lambda entry: -entry.mean(rows, folds))
            # The last rung costs most, and two folds have shown by then which candidates are far behind.
            keep = _FINALISTS if step == len(self.rungs) - 2 else max(_FINALISTS, math.ceil(len(scored) / 2))
            for entry in scored[keep:]:
                entry.status = f"dropped at {rows:,} rows" if rows < self.full else "behind"
            alive = scored[:keep]
        self._vary()
        self._confirm()
        if self.leader is None:
            raise RuntimeError("no candidate could be fitted")
        for entry in self.entries:
            if entry.status == "running":
                entry.status = "finished"
        self.leader.status = "chosen"
        return self.leader

    def _record(self, entry: Entry, done: bool) -> None:
        if entry.failure():
            entry.status = f"failed: {entry.failure()}"
            return
        if not done:
            entry.status = "out of time" if not entry.results else f"out of time beyond {entry.most_rows():,} rows"
            return
        entry.status = "running"
        self.on_evaluated(entry, self._leads(entry))

    def _leads(self, entry: Entry) -> bool:
        """Whether the entry leads now; out-of-fold predictions are kept of the leader alone."""
        best = self.leader
        if best is entry:
            return True
        leads = entry.mean(entry.most_rows()) > -math.inf and (best is None or self._beats(entry, best))
        loser = best if leads else entry
        if loser is not None:
            loser.results = {key: replace(result, responses={}) for key, result in loser.results.items()}
        if leads:
            self.leader = entry
        return leads

    def _beats(self, entry: Entry, best: Entry) -> bool:
        """Whether the entry is better on the largest common number of rows, or on more rows than the best has seen."""
        if self.budget.left(self.kept(entry)) <= 0:
            return False  # a candidate that cannot be refitted in time cannot win
        both = set(entry.results) & set(best.results)
        if both:
            rows = max(n for n, _ in both)
            folds = sorted(fold for n, fold in both if n == rows)
            if entry.merit(rows, folds) > best.merit(rows, folds):
                return True
        return entry.most_rows() > best.most_rows() and entry.mean(entry.most_rows()) > best.mean(best.most_rows())

    # ---------------------------------------------------------------------------------------------- variation

    def _vary(self) -> None:
        """Try hyperparameters near those of the leaders; a trial ends when it falls behind on the folds so far."""
        rng = stream(self.evaluation.seed, "search")
        since = 0
        for trial in range(1, _MAX_TRIALS + 1):
            if self.leader is None or since >= _PATIENCE:
                return
            family = self._family(rng)
            if family is None:
                return
            rows = self._fidelity()
            if rows is None:
                return
            entry = Entry(self._child(family, rng), trial=trial)
            if any(entry.candidate.name == other.candidate.name for other in self.entries):
                since += 1
                continue
            better = self._challenge(entry, rows)
            if better is None:
                return
            since = 0 if better else since + 1

    def _fidelity(self) -> int | None:
        """Rows on which a few more trials fit into the time; None where there are none."""
        assert self.leader is not None
        left = self.budget.left(self.kept(self.leader))
        for rows in sorted({rows for rows, _ in self.rungs}, reverse=True):
            each = self.expected(self.leader, rows) or 0.0
            single = all(other == self.full for other, _ in self.rungs)  # fewer rows were not tried
            trials = 2 if single else 6 if rows == self.full else 8
            if each * self.k * trials < left:
                return rows
        return None

    def _family(self, rng: np.random.Generator) -> Family | None:
        """A family drawn by rank, mostly that of the leader."""
        ranked: list[Family] = []
        for entry in sorted(self.entries, key=lambda e: (-e.most_rows(), -e.mean(e.most_rows()))):
            family = entry.candidate.family
            if family.space and entry.results and not entry.failure() and all(f is not family for f in ranked):
                ranked.append(family)
        if not ranked:
            return None
        # Geometric in the rank: the leader has 40% of the trials, the next family 24%, and no family is excluded.
        weights = 0.6 ** np.arange(len(ranked))
        return ranked[int(rng.choice(len(ranked), p=weights / weights.sum()))]

    def _child(self, family: Family, rng: np.random.Generator) -> Candidate:
        own = [e for e in self.entries if e.candidate.family is family and e.results and not e.failure()]
        own.sort(key=lambda e: (-e.most_rows(), -e.mean(e.most_rows())))
        # Mostly the best of the family; sometimes the second, against local optima.
        parent = own[0 if len(own) < 2 or rng.random() < 0.75 else 1].candidate
        # One trial in ten draws all hyperparameters from the whole space.
        wild = rng.random() < 0.1
        settings = dict(parent.settings)
        changed = False
        names = list(family.space)
        while not changed:
            for name in names:
                if wild or rng.random() < max(0.35, 1 / len(names)):
                    axis, value = family.space[name], settings.get(name, self.typical.get(name))
                    settings[name] = axis.draw(rng) if wild or value is None else axis.near(value, rng, 0.2)
                    changed = True
        return Candidate(family, settings)

    def _challenge(self, entry: Entry, rows: int) -> bool | None:
        """Evaluate a trial against the leader; whether it becomes the leader, None where the time is up."""
        leader = self.leader
        assert leader is not None
        folds = tuple(range(self.k))
        if not self._evaluate(leader, rows, folds):
            return None
        reference = leader.scores(rows, folds)
        done: list[int] = []
        for group in (folds[:2], folds[2:]):
            if not group:
                continue
            if not self._evaluate(entry, rows, group):
                return self._drop(entry, "out of time")
            done += group
            gain = entry.scores(rows, done) - reference[done]
            if not np.isfinite(gain).all():
                return self._drop(entry, f"failed: {entry.failure()}")
            error = float(np.std(gain, ddof=1) / math.sqrt(len(gain))) if len(gain) > 1 else 0.0
            # Half a standard error of optimism: two folds are noisy, but most trials are worse and should end early.
            if float(gain.mean()) + 0.5 * error <= 0:
                return self._drop(entry, "behind")
        if entry.merit(rows, folds) <= leader.merit(rows, folds):
            return self._drop(entry, "behind")
        if rows < self.full:
            self._evaluate(entry, self.full, folds)  # where the time allows it
        entry.status = "running"
        self.entries.append(entry)
        leads = self._leads(entry)
        self.on_evaluated(entry, leads)
        return leads

    def _drop(self, entry: Entry, status: str) -> bool:
        entry.status = status
        entry.results = {key: replace(result, responses={}) for key, result in entry.results.items()}
        if entry.results:
            self.entries.append(entry)
        return False

    # ---------------------------------------------------------------------------------------------- results

    def ranked(self) -> list[Entry]:
        """Entries with scores, from best to worst on the most rows."""
        tried = [entry for entry in self.entries if entry.results and not entry.failure()]
        return sorted(tried, key=lambda e: (-e.most_rows(), -e.mean(e.most_rows())))

    def leaderboard(self, winner: Entry, final: Candidate) -> list[dict[str, Any]]:
        """Rows of the leaderboard: the winner as it was refitted, then the other candidates from best to worst."""

        def rank(entry: Entry) -> tuple[Any, ...]:
            rows = entry.most_rows()
            return (entry is not winner, -rows, -entry.mean(rows))

        tried = [entry for entry in self.entries if entry.results]
        untried = [entry for entry in self.entries if not entry.results]
        ordered = [*sorted(tried, key=rank), *untried][:_MAX_LEADERBOARD]
        return [self._row(entry, final if entry is winner else entry.candidate) for entry in ordered]

    def _row(self, entry: Entry, candidate: Candidate) -> dict[str, Any]:
        rows = entry.most_rows()
        scores = entry.scores(rows)
        finite = scores[np.isfinite(scores)]
        return {
            "name": candidate.name,
            "method": candidate.family.name,
            "params": dict(candidate.settings),
            "score_mean": self.evaluation.metric.shown(float(finite.mean())) if len(finite) else None,
            "score_se": float(standard_error(finite)) if len(finite) > 1 else None,
            "seconds": round(entry.seconds(), 4),
            "n_folds": len(scores),
            "rows": rows,
            "rounds": entry.rounds(),
            "status": entry.status,
        }

    # ---------------------------------------------------------------------------------------------- confirmation

    def _confirm(self) -> None:
        """Compare the finalists again on other folds: on few rows the best of many trials is partly lucky."""
        extra = self.evaluation.more_splits
        if not extra or self.leader is None:
            return
        ranked = sorted(
            (e for e in self.entries if e.most_rows() == self.full and len(e.scores(self.full)) == self.k),
            key=lambda e: -e.mean(self.full),
        )[:4]
        if len(ranked) < 2:
            return
        self.evaluation.splits.extend(extra)
        folds = tuple(range(self.k, self.k + len(extra)))
        kept = [entry for entry in ranked if self._evaluate(entry, self.full, folds) and not entry.failure()]
        whole = (*range(self.k), *folds)
        kept = [entry for entry in kept if entry.mean(self.full, whole) > -math.inf]
        # The leader is replaced only if it was evaluated on the other folds too.
        if self.leader in kept:
            best = max(kept, key=lambda e: e.merit(self.full, whole))
            if best is not self.leader:
                self.leader = best
            self.on_evaluated(best, True)


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
