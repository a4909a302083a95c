"""Something for each partition of a Dask collection that stays where the partition is, and changes pass by pass.

`engine.sum` and `engine.map` see rows and forget them. Where a method keeps something for each row that changes with
every step (the node of a tree, the current score), it is a :class:`States`: one object for each partition. On a cluster
these are futures: a pass maps them to new futures on the same workers, and only sums travel. A state is never changed
in place, so that one that is lost with its worker can be made again. Without a cluster they are in this process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from epicycle.core._threads import n_threads, single_threaded_blas
from epicycle.data import ArrayData, DaskData
from epicycle.engine import _dask as cluster
from epicycle.engine._dask import remembered_interrupts
from epicycle.engine._fold import Fold, State
from epicycle.engine._ordered import in_order


class States(ABC):
    """One state for each partition, in their order; None for a partition without rows, which no function sees."""

    @abstractmethod
    def map(self, function: Callable[..., Any], *parameters: Any, beside: Sequence[Any] = ()) -> States:
        """New states ``function(state, *others, *parameters)``, with the states of `beside` as others."""

    @abstractmethod
    def sum(self, statistic: Callable[..., State], *parameters: Any, beside: Sequence[Any] = ()) -> State:
        """The sum of ``statistic(state, *others, *parameters)``, always in the same order; () of no states."""


def make_states(data: DaskData, function: Callable[..., Any], *parameters: Any, n_jobs: int | None = None) -> States:
    """The states ``function(part, number, start, *parameters)`` of the partitions.

    Parameters
    ----------
    data : DaskData
    function : callable
        Takes an :class:`ArrayData`, the number of the partition and that of its first row. Like those that are mapped
        later, a module-level function, or a functools.partial of one.
    *parameters
        Passed on to every call.
    n_jobs : int, optional
        Threads where there is no cluster.
    """
    client = cluster.active_client()
    starts = cluster.row_starts(data)
    numbers = list(range(len(starts)))
    with remembered_interrupts():
        if client is None:
            from dask import compute, delayed

            make = delayed(_make, pure=False)
            job = delayed((function, parameters), traverse=False, pure=False)
            tasks = [make(part, i, start, job) for i, part, start in zip(numbers, data.parts, starts, strict=True)]
            return _LocalStates(list(compute(*tasks)), n_jobs)
        parts = cluster.resident_parts(data, client)
        job = cluster.packed_job(client, function, parameters)
        return _ClusterStates(client, client.map(_make, parts, numbers, starts, job=job, pure=False, key="epicycle"))


class _LocalStates(States):
    """The states in a list; threads share them."""

    def __init__(self, states: list[Any], n_jobs: int | None) -> None:
        self.states, self.n_jobs = states, n_jobs

    def map(self, function: Callable[..., Any], *parameters: Any, beside: Sequence[Any] = ()) -> States:
        made: list[Any] = []
        self._run((function, parameters), beside, made.append)
        return _LocalStates(made, self.n_jobs)

    def sum(self, statistic: Callable[..., State], *parameters: Any, beside: Sequence[Any] = ()) -> State:
        fold = Fold()
        self._run((statistic, parameters), beside, lambda state: None if state is None else fold.add(state))
        return fold.total if fold.began else ()

    def _run(self, job: Any, beside: Sequence[Any], consume: Callable[[Any], None]) -> None:
        together = zip(self.states, *(other.states for other in beside), strict=True)
        with single_threaded_blas():
            threads = min(n_threads(float("inf"), self.n_jobs), len(self.states))
            in_order(together, lambda states: _apply(*states, job=job), consume, threads)


class _ClusterStates(States):
    """The states as futures of a cluster."""

    def __init__(self, client: Any, states: list[Any]) -> None:
        self.client, self.states = client, states

    def map(self, function: Callable[..., Any], *parameters: Any, beside: Sequence[Any] = ()) -> States:
        with remembered_interrupts():
            return _ClusterStates(self.client, self._submit("epicycle-map", function, parameters, beside))

    def sum(self, statistic: Callable[..., State], *parameters: Any, beside: Sequence[Any] = ()) -> State:
        with remembered_interrupts():
            return cluster.sum_futures(self.client, self._submit("epicycle-sum", statistic, parameters, beside)) or ()

    def _submit(self, key: str, function: Callable[..., Any], parameters: Any, beside: Sequence[Any]) -> list[Any]:
        job = cluster.packed_job(self.client, function, parameters)
        others = [other.states for other in beside]
        futures: list[Any] = self.client.map(_apply, self.states, *others, job=job, pure=False, key=key)
        return futures


def _make(part: ArrayData, number: int, start: int, job: Any) -> Any:
    if part.n_rows == 0:
        return None
    function, parameters = cluster.unpacked_job(job)
    with single_threaded_blas():
        return function(part, number, start, *parameters)


def _apply(*states: Any, job: Any) -> Any:
    if states[0] is None:
        return None
    function, parameters = cluster.unpacked_job(job)
    with single_threaded_blas():
        return function(*states, *parameters)
