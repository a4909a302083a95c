"""Counts of terms: all of them, or as many as fit into a given number, with a bound on what was dropped.

Exact counting holds every term. With a limit, the rarest terms are dropped whenever there are more than the limit after
a batch (lossy counting, Manku and Motwani): a term that was dropped, or never kept, was in at most `missed` documents,
and one that came in later may have been in as many before. Where documents can be read again, a second pass counts the
terms that are left exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import _native
from epicycle.core._exceptions import DataError
from epicycle.core._threads import n_threads
from epicycle.data._documents import Documents
from epicycle.text._analysis import Analysis, Compiled

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]  # values, columns, starts


class CompiledCounts:
    """Terms and their counts, found by the compiled tokeniser."""

    def __init__(self, way: Compiled, names: Sequence[str], n_jobs: int | None) -> None:
        self.way, self.n_jobs = way, n_jobs
        self.terms = _native.text.Terms(list(names))

    def _prepared(self, batch: Sequence[Any], first: int) -> tuple[Any, int]:
        prepared = self.way(batch, first)
        return prepared, n_threads(8.0 * sum(map(len, prepared[0])), self.n_jobs)

    def add(self, batch: Sequence[Any], first: int, *, keep: bool) -> Rows:
        (texts, rule, stop, table), threads = self._prepared(batch, first)
        return _native.text.count_new(self.terms, texts, rule, stop, table, keep, threads)

    def known(self, batch: Sequence[Any], first: int) -> Rows:
        (texts, rule, stop, table), threads = self._prepared(batch, first)
        return _native.text.count_known(self.terms, texts, rule, stop, table, threads)

    def size(self) -> int:
        return _native.text.n_terms(self.terms)

    def order(self) -> np.ndarray:
        return _native.text.order(self.terms)

    def names(self, ids: np.ndarray) -> list[Any]:
        return _native.text.names(self.terms, np.ascontiguousarray(ids, dtype=np.int64))

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        return _native.text.counts(self.terms)

    def only(self, ids: np.ndarray) -> CompiledCounts:
        """These terms in this order, not counted yet."""
        return CompiledCounts(self.way, self.names(ids), self.n_jobs)


class PythonCounts:
    """The same for functions of the user, whose terms may be anything that can be hashed."""

    def __init__(self, analyze: Any, names: Iterable[Any]) -> None:
        self.analyze = analyze
        self.ids = {name: i for i, name in enumerate(names)}
        self.documents: list[int] = [0] * len(self.ids)
        self.occurrences: list[int] = [0] * len(self.ids)

    def add(self, batch: Sequence[Any], first: int, *, keep: bool) -> Rows:
        return self._rows(batch, grow=True, keep=keep)

    def known(self, batch: Sequence[Any], first: int) -> Rows:
        return self._rows(batch, grow=False, keep=True)

    def _rows(self, batch: Sequence[Any], *, grow: bool, keep: bool) -> Rows:
        values: list[int] = []
        columns: list[int] = []
        starts = [0]
        ids = self.ids
        for document in batch:
            row: dict[int, int] = {}
            for term in self.analyze(document):
                i = ids.setdefault(term, len(ids)) if grow else ids.get(term)
                if i is not None:
                    row[i] = row.get(i, 0) + 1
            if grow:
                self._tally(row)
            if keep:
                found = sorted(row.items())
                columns += [i for i, _ in found]
                values += [n for _, n in found]
            starts.append(len(values))
        return np.array(values, dtype=np.int32), np.array(columns, dtype=np.int32), np.array(starts, dtype=np.int64)

    def _tally(self, row: dict[int, int]) -> None:
        more = len(self.ids) - len(self.documents)
        self.documents += [0] * more
        self.occurrences += [0] * more
        for i, n in row.items():
            self.documents[i] += 1
            self.occurrences[i] += n

    def size(self) -> int:
        return len(self.ids)

    def order(self) -> np.ndarray:
        names = list(self.ids)
        return np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)

    def names(self, ids: np.ndarray) -> list[Any]:
        names = list(self.ids)
        return [names[i] for i in ids]

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.documents, dtype=np.int64), np.array(self.occurrences, dtype=np.int64)

    def only(self, ids: np.ndarray) -> PythonCounts:
        return PythonCounts(self.analyze, self.names(ids))


Counts = CompiledCounts | PythonCounts


def counts_of(owner: Analysis, names: Iterable[Any] = ()) -> Counts:
    """An empty count, or one of these terms, the way that the arguments of a vectoriser ask for."""
    names = list(names)
    way = owner._compiled() if all(isinstance(name, str) for name in names) else None
    return PythonCounts(owner.build_analyzer(), names) if way is None else CompiledCounts(way, names, owner.n_jobs)


class Survey:
    """One pass over documents: terms, how many documents and how often; the rows too if asked for.

    Attributes
    ----------
    n_documents : int
    documents, occurrences : ndarray
        Of each term, by number.
    missed, missed_occurrences : int
        No term that is not here is in more documents, or occurs more often.
    rows : list of (values, columns, starts)
    """

    def __init__(self, counts: Counts, documents: Documents, *, keep: bool, max_terms: int | None) -> None:
        self.counts = counts
        self.n_documents = self.missed = self.missed_occurrences = 0
        self.rows: list[Rows] = []
        empty = np.zeros(0, dtype=np.int64)
        self._before = (empty, empty)  # counts when terms were dropped last
        self._late = (empty, empty)  # what a term may have had before it was kept
        for batch in documents.batches():
            rows = self.counts.add(batch, self.n_documents, keep=keep)
            if keep:
                self.rows.append(rows)
            self.n_documents += len(batch)
            if max_terms is not None and self.counts.size() > max_terms:
                self._drop(max_terms // 2)
        self.documents, self.occurrences = self._totals()

    def _totals(self) -> tuple[np.ndarray, np.ndarray]:
        documents, occurrences = self.counts.counts()
        known = len(self._before[0])
        documents[:known] += self._before[0]
        occurrences[:known] += self._before[1]
        return documents, occurrences

    def _drop(self, most: int) -> None:
        """Keep at most so many terms: those in the most documents."""
        documents, occurrences = self._totals()
        n, known = len(documents), len(self._late[0])
        late = (np.full(n, self.missed), np.full(n, self.missed_occurrences))
        for now, then in zip(late, self._late, strict=True):
            now[:known] = then
        bound = documents + late[0]
        limit = np.partition(bound, n - most - 1)[n - most - 1]
        kept, dropped = np.flatnonzero(bound > limit), bound <= limit
        self.missed = max(self.missed, int(limit))
        self.missed_occurrences = max(self.missed_occurrences, int((occurrences + late[1])[dropped].max()))
        self._before = (documents[kept], occurrences[kept])
        self._late = (late[0][kept], late[1][kept])
        self.counts = self.counts.only(kept)


def recounted(survey: Survey, documents: Documents) -> Survey:
    """The terms of a survey, counted exactly in a second pass; what it missed stays missed."""
    counts = survey.counts.only(np.arange(survey.counts.size()))
    n = counts.size()
    in_documents, occurrences = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    read = 0
    for batch in documents.batches():
        values, columns, _ = counts.known(batch, read)
        read += len(batch)
        in_documents += np.bincount(columns, minlength=n)
        occurrences += np.bincount(columns, weights=values, minlength=n).astype(np.int64)
    if read != survey.n_documents:
        raise DataError(f"documents: {survey.n_documents} in the first pass and {read} in the second")
    survey.counts, survey.documents, survey.occurrences = counts, in_documents, occurrences
    return survey


def joined(rows: Sequence[Rows], shape: tuple[int, int], dtype: Any) -> sp.csr_array:
    """The rows of batches as one matrix."""
    empty = np.zeros(0, dtype=np.int32)
    values = np.concatenate([empty, *(part[0] for part in rows)])
    columns = np.concatenate([empty, *(part[1] for part in rows)])
    starts = starts_of(rows)
    if starts[-1] > np.iinfo(np.int32).max:
        columns = columns.astype(np.int64)
    else:
        starts = starts.astype(np.int32)
    found = sp.csr_array((values.astype(dtype), columns, starts), shape=shape)
    found.has_sorted_indices = True
    return found


def starts_of(rows: Sequence[Rows]) -> np.ndarray:
    """First positions of rows in the joined parts, and the end of the last."""
    lengths = [np.diff(part[2]) for part in rows]
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.concatenate([np.zeros(0, np.int64), *lengths]))])


def renumbered(rows: Sequence[Rows], to: np.ndarray, n_jobs: int | None) -> Rows:
    """The joined rows with new numbers of columns, sorted; those with a negative number are left out."""
    empty = np.zeros(0, dtype=np.int32)
    values = np.concatenate([empty, *(part[0] for part in rows)])
    columns = np.concatenate([empty, *(part[1] for part in rows)])
    threads = n_threads(20.0 * len(values), n_jobs)
    return _native.text.renumbered(values, columns, starts_of(rows), to.astype(np.int32), threads)
