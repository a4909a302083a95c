"""Search for the best candidate by successive halving, then by random variation of the leaders.

Candidates are evaluated on few rows first, and the better half on more rows. A fit begins only if it is expected to
end in time: its duration is extrapolated from fits to fewer rows. The leader is replaced only by a candidate that is
better on all folds of the leader, with as many rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from epicycle.automl._budget import Budget, Durations
from epicycle.automl._candidates import Candidate, Family
from epicycle.automl._entry import Entry
from epicycle.automl._evaluation import STOPPED, Evaluation
from epicycle.automl._search_state import SearchState
from epicycle.core._random import stream

#: Trials of the random variation at most, and trials without an improvement after which it ends.
_MAX_TRIALS, _PATIENCE = 400, 60
#: Share of the time after which no further candidates are tried on the first rung: the rest is for the better ones.
_FIRST_RUNG_SHARE = 0.25
#: Candidates that are evaluated on all rows and folds.
_FINALISTS = 4
#: Refits beside that of the leader for which time is kept, and the share of all time at most.
_MORE_MEMBERS, _MEMBERS_SHARE = 2, 0.1
#: Bytes of the predictions of a candidate from which none but the leader's are kept, bytes of all up to which those of
#: many are, and candidates at most of which an ensemble is made.
_LARGEST_RESPONSES, _SMALL_RESPONSES, _MOST_HELD = 64_000_000, 64_000_000, 10
#: Candidates that cannot be chosen and are evaluated on all rows, to say what the restriction costs.
_REFERENCES = 2


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
    may_lead : callable, optional
        ``may_lead(candidate)``: whether it can be chosen; the others are evaluated for comparison. By default all can.
    state : SearchState, optional
        Results of an earlier search, and the file that keeps those of this one.
    single : bool, default=False
        Whether one candidate is chosen, so that predictions of the others need not be kept for an ensemble.
    """

    def __init__(
        self,
        evaluation: Evaluation,
        families: Sequence[Family],
        budget: Budget,
        on_evaluated: Callable[[Entry, bool], None],
        after: Callable[[float], float],
        may_lead: Callable[[Candidate], bool] = lambda _: True,
        state: SearchState | None = None,
        single: bool = False,
    ) -> None:
        self.evaluation, self.budget, self.on_evaluated, self.after = evaluation, budget, on_evaluated, after
        self.may_lead, self.state = may_lead, state or SearchState()
        #: Whether one candidate is chosen, and no ensemble of several.
        self.single = single
        #: Whether an interrupt ended the search.
        self.interrupted = False
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
        self.entries.sort(key=lambda entry: not may_lead(entry.candidate))
        self.leader: Entry | None = None
        self.rungs = self._rungs()
        #: Values of hyperparameters that are left to the model by default, as a start for their variation.
        self.typical = {"gamma": 1.0 / max(evaluation.facts.p, 1)}

    def _rungs(self) -> list[tuple[int, tuple[int, ...]]]:
        """Rows and folds of each rung of successive halving; the last has all of both."""
        folds = tuple(range(self.k))
        # More time allows a larger first rung; below 500 rows scores hardly rank candidates.
        rows = int(np.clip(100 * (self.state.seconds or self.budget.seconds), 500, 4_000))
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
        refit = 0.0 if chosen is None else self.refit_seconds(chosen)
        # An ensemble has further members to fit: as many as a tenth of the time allows.
        members = 0.0 if self.single else min(_MORE_MEMBERS * refit, _MEMBERS_SHARE * self.budget.seconds)
        return self.after(refit) + members

    def refit_seconds(self, entry: Entry) -> float:
        """Expected seconds of a fit to all rows, of which a refit has k / (k - 1) times those of a fold."""
        return self.expected(entry, int(self.full * self.k / max(self.k - 1, 1))) or 0.0

    def _evaluate(self, entry: Entry, rows: int, folds: Sequence[int], *, force: bool = False) -> bool:
        """Fit on the folds without a result; False where the time does not allow it.

        `force` begins a fit however little time there is.
        """
        missing = [fold for fold in folds if (rows, fold) not in entry.results]
        if not missing:
            return True
        if entry.failed:
            return False
        known = self.state.results(entry.candidate.name, rows, missing)
        if known is not None:
            found, spent = known
            self.budget.resume(spent)
        elif (limit := self._limit(entry, rows, len(missing), force=force)) is None:
            return False
        else:
            found = self.evaluation.run(entry.candidate, rows, missing, limit, partial=force)
            self.state.add(entry.candidate.name, rows, found, self.budget.spent())
        entry.take(rows, found)
        for result in found:
            self.durations[id(entry.candidate.family)].add(rows, result.seconds * result.scale)
        return not entry.failed

    def _limit(self, entry: Entry, rows: int, folds: int, *, force: bool) -> float | None:
        """Seconds that each of so many fits may take; None where the time does not allow them."""
        left = self.budget.left(self.kept(self.leader))
        each = self.expected(entry, rows)
        if force:
            left = max(left, 1.0)
        # If it wins it is refitted to all rows: the time for that must be left too.
        elif (
            left <= 0
            or (each is not None and (1.1 * each * folds > left or self.budget.left(self.kept(entry)) <= 0))
            or (each is None and self.leader is not None and left < 0.04 * self.budget.seconds)
        ):
            return None
        # A fit may take three times as long as expected before it is stopped.
        return min(left if folds == 1 else max(left / folds, 3 * (each or 0.0)), left)

    # ---------------------------------------------------------------------------------------------- rungs

    def run(self) -> Entry:
        """Run the rungs, vary the leaders, confirm on other folds; returns the winner.

        An interrupt ends the search with the leader, once there is one.
        """
        try:
            self._halve()
            self._vary()
            self._confirm()
        except KeyboardInterrupt:
            if self.leader is None:
                raise
            self.interrupted = True
        if self.leader is None:
            raise RuntimeError("no candidate could be fitted")
        for entry in self.entries:
            if entry.status == "running":
                entry.status = "finished"
            elif entry.status == "waiting":
                entry.status = "not tried"
        self.leader.status = "chosen"
        return self.leader

    def _halve(self) -> None:
        """Evaluate all candidates on few rows, and the better half of them on more."""
        alive = list(self.entries)
        for step, (rows, folds) in enumerate(self.rungs):
            last = step == len(self.rungs) - 1
            before = self.budget.spent()
            for entry in alive:
                if step == 0 and not last and self.budget.spent() - before > _FIRST_RUNG_SHARE * self.budget.seconds:
                    entry.status = "out of time"
                    continue
                # Until there is a model fits are forced: however little time there is, the search ends with one.
                force = self.leader is None and self.may_lead(entry.candidate)
                known = len(entry.results)
                done = self._evaluate(entry, rows, folds, force=force)
                if not done or len(entry.results) > known:  # else it was evaluated to catch up with the leader
                    self._record(entry, done)
            scored = [entry for entry in alive if entry.mean(rows, folds) > -math.inf]
            if not scored:
                break
            scored.sort(key=lambda entry: -entry.mean(rows, folds))
            able = [entry for entry in scored if self.may_lead(entry.candidate)]
            others = [entry for entry in scored if not self.may_lead(entry.candidate)]
            # The last rung costs most, and two folds have shown by then which candidates are far behind.
            keep = _FINALISTS if step == len(self.rungs) - 2 else max(_FINALISTS, math.ceil(len(able) / 2))
            if not last:
                for entry in (*able[keep:], *others[_REFERENCES:]):
                    entry.status = f"dropped at {rows:,} rows" if rows < self.full else "behind"
            alive = [*able[:keep], *others[:_REFERENCES]]

    def _record(self, entry: Entry, done: bool) -> None:
        if entry.failed:
            stopped = entry.failed.startswith(STOPPED)
            entry.status = entry.failed if stopped else f"failed: {entry.failed}"
            if entry is self.leader:
                self._elect()
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
        leads = self._can_win(entry) and (best is None or (self._catches_up(entry, best) and beats(entry, best)))
        if leads:
            self.leader = entry
        loser = best if leads else entry
        if loser is not None:
            self._forget(loser)
        return leads

    def _forget(self, entry: Entry) -> None:
        """Drop the predictions of a candidate, unless an ensemble may need them: few, or small ones, on all rows."""
        classes = self.evaluation.metric.classes
        size = 8 * self.evaluation.facts.n * (1 if classes is None else len(classes))
        if self.single or entry.failed or entry.most_rows() < self.full or size > _LARGEST_RESPONSES:
            entry.forget_responses()
            return
        most = _SMALL_RESPONSES // max(size, 1)
        held = [other for other in self.ranked() if other is not self.leader and _has_responses(other, self.full)]
        for other in held[max(most, _MOST_HELD) :]:
            other.forget_responses()

    def complete_entries(self) -> list[Entry]:
        """Candidates that can be chosen and have predictions of all folds of all rows, from best to worst."""
        folds = range(self.k)
        return [
            entry
            for entry in self.ranked()
            if self.may_lead(entry.candidate)
            and all((self.full, fold) in entry.results for fold in folds)
            and all(entry.results[self.full, fold].responses for fold in folds)
        ][:_MOST_HELD]

    def _can_win(self, entry: Entry) -> bool:
        """Whether it can be chosen, has a score, and can be refitted in time."""
        healthy = not entry.failed and entry.mean(entry.most_rows()) > -math.inf
        if not healthy or not self.may_lead(entry.candidate):
            return False
        return self.leader is None or self.budget.left(self.after(self.refit_seconds(entry))) > 0

    def _catches_up(self, entry: Entry, best: Entry) -> bool:
        """Evaluate an entry that is ahead so far on the other folds of the leader; whether it has all of them."""
        rows = best.most_rows()
        asked = best.folds(rows)
        shared = [fold for fold in asked if (rows, fold) in entry.results]
        if not shared or entry.merit(rows, shared) <= best.merit(rows, shared):
            return False
        return self._evaluate(entry, rows, asked)

    def _elect(self) -> None:
        """Choose the leader anew: that of before has failed on more rows, and would fail on all."""
        self.leader = None
        for entry in sorted(self.entries, key=Entry.rank):
            if self._can_win(entry) and (self.leader is None or beats(entry, self.leader)):
                self.leader = entry

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
            known = any(entry.candidate.name == other.candidate.name for other in self.entries)
            if known or not self.may_lead(entry.candidate):
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
            # A trial on fewer rows leads only after it was evaluated on those of the leader.
            most = self.leader.most_rows()
            last = 0.0 if rows >= most else (self.expected(self.leader, most) or 0.0)
            if (each * trials + last) * self.k < left:
                return rows
        return None

    def _family(self, rng: np.random.Generator) -> Family | None:
        """A family drawn by rank, mostly that of the leader."""
        ranked: list[Family] = []
        for entry in self.ranked():
            family = entry.candidate.family
            able = any(self.may_lead(e.candidate) for e in self.entries if e.candidate.family is family)
            if family.space and able and all(f is not family for f in ranked):
                ranked.append(family)
        if not ranked:
            return None
        # Geometric in the rank: the leader has 40% of the trials, the next family 24%, and no family is excluded.
        weights = 0.6 ** np.arange(len(ranked))
        return ranked[int(rng.choice(len(ranked), p=weights / weights.sum()))]

    def _child(self, family: Family, rng: np.random.Generator) -> Candidate:
        own = [entry for entry in self.ranked() if entry.candidate.family is family]
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
                return self._drop(entry, f"failed: {entry.failed}" if entry.failed else "out of time")
            done += group
            gain = entry.scores(rows, done) - reference[done]
            if not np.isfinite(gain).all():
                return self._drop(entry, "failed: the score has no value")
            error = float(np.std(gain, ddof=1) / math.sqrt(len(gain))) if len(gain) > 1 else 0.0
            # Half a standard error of optimism: two folds are noisy, but most trials are worse and should end early.
            if float(gain.mean()) + 0.5 * error <= 0:
                return self._drop(entry, "behind")
        if entry.merit(rows, folds) <= leader.merit(rows, folds):
            return self._drop(entry, "behind")
        if rows < self.full:
            self._evaluate(entry, self.full, folds)  # where the time allows it
        self.entries.append(entry)
        self._record(entry, done=True)
        return self.leader is entry

    def _drop(self, entry: Entry, status: str) -> bool:
        entry.status = status
        entry.forget_responses()
        if entry.results or entry.failed:
            self.entries.append(entry)
        return False

    # ---------------------------------------------------------------------------------------------- results

    def ranked(self) -> list[Entry]:
        """Entries with scores, from best to worst on the most rows and folds."""
        return sorted((entry for entry in self.entries if entry.results and not entry.failed), key=Entry.rank)

    def complete(self, entry: Entry) -> None:
        """Predict the folds of an entry again where their predictions were not kept."""
        rows = entry.most_rows()
        missing = [fold for fold in entry.folds(rows) if not entry.results[rows, fold].responses]
        each = self.expected(entry, rows) or 0.0
        if not missing or each * len(missing) > self.budget.left(self.kept(entry)):
            return
        for result in self.evaluation.run(entry.candidate, rows, missing, max(3 * each, 1.0)):
            if not result.failure:
                known = entry.results[rows, result.fold]
                entry.results[rows, result.fold] = replace(known, responses=result.responses)

    # ---------------------------------------------------------------------------------------------- confirmation

    def _confirm(self) -> None:
        """Compare the finalists again on other folds: on few rows the best of many trials is partly lucky."""
        extra = self.evaluation.more_splits
        if not extra or self.leader is None:
            return
        whole_folds = [e for e in self.ranked() if e.most_rows() == self.full and len(e.folds(self.full)) == self.k]
        ranked = [e for e in whole_folds if self.may_lead(e.candidate)][:4]
        if len(ranked) < 2:
            return
        self.evaluation.splits.extend(extra)
        folds = tuple(range(self.k, self.k + len(extra)))
        kept = [entry for entry in ranked if self._evaluate(entry, self.full, folds)]
        whole = (*range(self.k), *folds)
        kept = [entry for entry in kept if entry.mean(self.full, whole) > -math.inf]
        # The leader is replaced only if it was evaluated on the other folds too.
        if self.leader in kept:
            best = max(kept, key=lambda e: e.merit(self.full, whole))
            if best is not self.leader:
                before, self.leader = self.leader, best
                self._forget(before)
            self.on_evaluated(best, True)


def _has_responses(entry: Entry, rows: int) -> bool:
    return any(result.responses for (n, _), result in entry.results.items() if n == rows)


def beats(entry: Entry, best: Entry) -> bool:
    """Whether the entry is better than another on all of the other's folds, with as many rows."""
    rows = best.most_rows()
    folds = best.folds(rows)
    return all((rows, fold) in entry.results for fold in folds) and entry.merit(rows, folds) > best.merit(rows, folds)
