"""The search: candidates compete on few rows first, the better half goes on with more, then the leaders are varied.

Nothing is begun that is not expected to end in time: how long a fit takes is told by those on fewer rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from epicycle.automl._budget import Budget, Durations
from epicycle.automl._candidates import Axis, Candidate, Family
from epicycle.automl._evaluation import Arena, FoldScore
from epicycle.core._random import stream

__all__ = ["Entry", "Race"]

_MOST_TRIALS = 400
_FIRST_RUNG = 0.25  # share of the time after which no further settings are tried on the first rung
_PATIENCE = 60  # trials without a better one
_FINALISTS = 4  # candidates that meet on all rows and folds


@dataclass
class Entry:
    """A candidate and how it did, by number of rows and fold."""

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
        """The mean score, and what decides between equal ones."""
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


class Race:
    """Candidates on folds, within a budget.

    Parameters
    ----------
    arena : Arena
    families : list of Family
    budget : Budget
    tell : callable
        ``tell(entry, rows, is_leader)`` after each candidate on each rung.
    after : callable
        ``after(seconds)``: how many seconds have to be left when a fit to all rows takes so long.
    """

    def __init__(
        self, arena: Arena, families: Sequence[Family], budget: Budget, tell: Callable[[Entry, int, bool], None],
        after: Callable[[float], float],
    ) -> None:  # fmt: skip
        self.arena, self.budget, self.tell, self.after = arena, budget, tell, after
        self.families = list(families)
        self.k = len(arena.splits)
        self.full = arena.largest()
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
        #: What a setting that is left to the model comes to, as a place to vary it from.
        self.typical = {"gamma": 1.0 / max(arena.facts.p, 1)}

    def _rungs(self) -> list[tuple[int, tuple[int, ...]]]:
        """Rows and folds of each rung; the last is all of both."""
        folds = tuple(range(self.k))
        rows = int(np.clip(100 * self.budget.seconds, 500, 4_000))
        rungs = []
        while rows * 2 < self.full:
            rungs.append((rows, folds[:2]))
            rows *= 4
        if not rungs and self.k > 2:
            rungs.append((self.full, folds[:2]))
        return [*rungs, (self.full, folds)]

    # ---------------------------------------------------------------------------------------------- time

    def expected(self, entry: Entry, rows: int) -> float | None:
        """Seconds of one fit to so many rows."""
        own = Durations(entry.candidate.family.grows, [(n, r.seconds * r.scale) for (n, _), r in entry.results.items()])
        known = own.expected(rows)
        return known if known is not None else self.durations[id(entry.candidate.family)].expected(rows)

    def kept(self, entry: Entry | None) -> float:
        """Seconds that have to be left for the refit of the leader and what comes after it."""
        chosen = entry or self.leader
        refit = 0.0 if chosen is None else (self.expected(chosen, int(self.full * self.k / max(self.k - 1, 1))) or 0.0)
        return self.after(refit)

    def _evaluate(self, entry: Entry, rows: int, folds: Sequence[int], *, at_all_costs: bool = False) -> bool:
        """Fit on the folds that are missing; False where the time does not allow it."""
        missing = [fold for fold in folds if (rows, fold) not in entry.results]
        if not missing:
            return True
        left = self.budget.left(self.kept(self.leader))
        each = self.expected(entry, rows)
        if at_all_costs:
            left = max(left, 1.0)
        # It would be refitted if it wins: what it needs for that must be there too.
        elif (
            left <= 0
            or (each is not None and (1.1 * each * len(missing) > left or self.budget.left(self.kept(entry)) <= 0))
            or (each is None and self.leader is not None and left < 0.04 * self.budget.seconds)
        ):
            return False
        limit = left if len(missing) == 1 else max(left / len(missing), 3 * (each or 0.0))
        for result in self.arena.run(entry.candidate, rows, missing, min(limit, left)):
            entry.results[(rows, result.fold)] = result
            self.durations[id(entry.candidate.family)].add(rows, result.seconds * result.scale)
        return True

    # ---------------------------------------------------------------------------------------------- rungs

    def run(self) -> Entry:
        """Race, vary the leaders, confirm; returns the winner."""
        alive = list(self.entries)
        for step, (rows, folds) in enumerate(self.rungs):
            last = step == len(self.rungs) - 1
            before = self.budget.spent()
            for number, entry in enumerate(alive):
                if step == 0 and not last and self.budget.spent() - before > _FIRST_RUNG * self.budget.seconds:
                    entry.status = "not within the time"
                    continue
                # The first model shows its score over all folds at once.
                first = step == 0 and number == 0
                # However little time there is, there is a model in the end.
                force = self.leader is None
                done = self._evaluate(entry, rows, tuple(range(self.k)) if first else folds, at_all_costs=force)
                self._note(entry, rows, done, last)
            scored = [entry for entry in alive if entry.mean(rows, folds) > -math.inf]
            if not scored:
                break
            scored.sort(key=lambda entry: -entry.mean(rows, folds))
            # On all folds a fit costs most, and by then two of them have said who is far behind.
            keep = _FINALISTS if step == len(self.rungs) - 2 else max(_FINALISTS, math.ceil(len(scored) / 2))
            for entry in scored[keep:]:
                entry.status = f"dropped at {rows:,} rows" if rows < self.full else "behind"
            alive = scored[:keep]
        self._vary()
        self._confirm()
        if self.leader is None:
            raise RuntimeError("no candidate could be fitted")
        for entry in self.entries:
            if entry.status == "racing":
                entry.status = "finished"
        self.leader.status = "chosen"
        return self.leader

    def _note(self, entry: Entry, rows: int, done: bool, last: bool) -> None:
        if entry.failure():
            entry.status = f"failed: {entry.failure()}"
            return
        if not done:
            entry.status = (
                "not within the time" if not entry.results else f"not within the time beyond {entry.most_rows():,} rows"
            )
            return
        entry.status = "racing"
        self.tell(entry, rows, self._leads(entry))

    def _leads(self, entry: Entry) -> bool:
        """Whether the entry leads now; answers out of folds are kept of the leader alone."""
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
        """By the most rows that both have seen; or with more rows, a better score than the other has with fewer."""
        if self.budget.left(self.kept(entry)) <= 0:
            return False  # what could not be refitted in time cannot win
        both = set(entry.results) & set(best.results)
        if both:
            rows = max(n for n, _ in both)
            folds = sorted(fold for n, fold in both if n == rows)
            if entry.merit(rows, folds) > best.merit(rows, folds):
                return True
        return entry.most_rows() > best.most_rows() and entry.mean(entry.most_rows()) > best.mean(best.most_rows())

    # ---------------------------------------------------------------------------------------------- variation

    def _vary(self) -> None:
        """Settings near those of the leaders, dropped as soon as they fall behind on the folds so far."""
        rng = stream(self.arena.seed, "search")
        since = 0
        for trial in range(1, _MOST_TRIALS + 1):
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
        """Rows on which a few more trials fit into the time; None where none does."""
        assert self.leader is not None
        left = self.budget.left(self.kept(self.leader))
        for rows in sorted({rows for rows, _ in self.rungs}, reverse=True):
            each = self.expected(self.leader, rows) or 0.0
            few = all(other == self.full for other, _ in self.rungs)  # nothing is learnt from fewer rows
            trials = 2 if few else 6 if rows == self.full else 8
            if each * self.k * trials < left:
                return rows
        return None

    def _family(self, rng: np.random.Generator) -> Family | None:
        """Mostly that of the leader, sometimes another, by rank."""
        ranked: list[Family] = []
        for entry in sorted(self.entries, key=lambda e: (-e.most_rows(), -e.mean(e.most_rows()))):
            family = entry.candidate.family
            if family.space and entry.results and not entry.failure() and all(f is not family for f in ranked):
                ranked.append(family)
        if not ranked:
            return None
        weights = 0.6 ** np.arange(len(ranked))
        return ranked[int(rng.choice(len(ranked), p=weights / weights.sum()))]

    def _child(self, family: Family, rng: np.random.Generator) -> Candidate:
        own = [e for e in self.entries if e.candidate.family is family and e.results and not e.failure()]
        own.sort(key=lambda e: (-e.most_rows(), -e.mean(e.most_rows())))
        parent = own[0 if len(own) < 2 or rng.random() < 0.75 else 1].candidate
        wild = rng.random() < 0.1
        settings = dict(parent.settings)
        changed = False
        names = list(family.space)
        while not changed:
            for name in names:
                if wild or rng.random() < max(0.35, 1 / len(names)):
                    settings[name] = _moved(family.space[name], settings.get(name, self.typical.get(name)), rng, wild)
                    changed = True
        return Candidate(family, settings)

    def _challenge(self, entry: Entry, rows: int) -> bool | None:
        """Whether the entry becomes the leader; None where the time is up."""
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
                return self._drop(entry, "not within the time")
            done += group
            apart = entry.scores(rows, done) - reference[done]
            if not np.isfinite(apart).all():
                return self._drop(entry, f"failed: {entry.failure()}")
            spread = float(np.std(apart, ddof=1) / math.sqrt(len(apart))) if len(apart) > 1 else 0.0
            if float(apart.mean()) + 0.5 * spread <= 0:
                return self._drop(entry, "behind")
        if entry.merit(rows, folds) <= leader.merit(rows, folds):
            return self._drop(entry, "behind")
        if rows < self.full:
            self._evaluate(entry, self.full, folds)  # where the time allows it
        entry.status = "racing"
        self.entries.append(entry)
        leads = self._leads(entry)
        self.tell(entry, rows, leads)
        return leads

    def _drop(self, entry: Entry, status: str) -> bool:
        entry.status = status
        entry.results = {key: replace(result, responses={}) for key, result in entry.results.items()}
        if entry.results:
            self.entries.append(entry)
        return False

    # ---------------------------------------------------------------------------------------------- confirmation

    def _confirm(self) -> None:
        """On few rows the best of many trials is partly lucky: the first few meet again on other folds."""
        extra = self.arena.more_splits
        if not extra or self.leader is None:
            return
        ranked = sorted(
            (e for e in self.entries if e.most_rows() == self.full and len(e.scores(self.full)) == self.k),
            key=lambda e: -e.mean(self.full),
        )[:4]
        if len(ranked) < 2:
            return
        self.arena.splits.extend(extra)
        folds = tuple(range(self.k, self.k + len(extra)))
        kept = [entry for entry in ranked if self._evaluate(entry, self.full, folds) and not entry.failure()]
        whole = (*range(self.k), *folds)
        kept = [entry for entry in kept if entry.mean(self.full, whole) > -math.inf]
        if self.leader in kept:
            best = max(kept, key=lambda e: e.merit(self.full, whole))
            if best is not self.leader:
                self.leader = best
            self.tell(best, self.full, True)


def _moved(axis: Axis, value: Any, rng: np.random.Generator, wild: bool) -> Any:
    return axis.draw(rng) if wild or value is None else axis.near(value, rng, 0.2)


def final_candidate(entry: Entry, full: int) -> Candidate:
    """The candidate as it is refitted to all rows: with the number of rounds that the folds (of `full` rows) found."""
    candidate, rounds = entry.candidate, entry.rounds()
    if rounds is None:
        return candidate
    if "n_estimators" in candidate.settings:
        cut_short = entry.most_rows() >= full and rounds < candidate.settings["n_estimators"]
        return replace(candidate, settings={**candidate.settings, "n_estimators": rounds}) if cut_short else candidate
    return replace(candidate, settings={**candidate.settings, "n_estimators": max(rounds, 1)})
