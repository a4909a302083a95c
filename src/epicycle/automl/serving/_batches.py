"""Requests that wait are predicted together: a row costs far less in a batch than alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa


class BusyError(RuntimeError):
    """More rows wait than the server takes."""


@dataclass
class _Request:
    table: pa.Table
    answer: asyncio.Future[list[Any]]


class Batches:
    """Predictions of tables by one thread, all that wait at a time.

    While a batch is predicted the next requests gather; a single request is not delayed.

    Parameters
    ----------
    predict : callable
        One entry for each row of a table.
    most_rows : int
        Rows of a batch at most, unless a single request has more.
    most_waiting : int
        Rows that wait at most, beyond which requests are refused.
    on_batch : callable
        Gets the number of rows of each batch.
    """

    def __init__(
        self,
        predict: Callable[[pa.Table], list[Any]],
        *,
        most_rows: int = 4_096,
        most_waiting: int = 100_000,
        on_batch: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._predict, self._most_rows, self._most_waiting = predict, most_rows, most_waiting
        self._on_batch = on_batch
        self._waiting: list[_Request] = []
        self._rows_waiting = 0
        self._worker: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="predict")

    async def predict(self, table: pa.Table) -> list[Any]:
        """The entries of the rows of a table, once its batch was predicted."""
        if self._rows_waiting and self._rows_waiting + table.num_rows > self._most_waiting:
            raise BusyError(f"{self._rows_waiting:,} rows wait already")
        request = _Request(table, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        self._rows_waiting += table.num_rows
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())
        return await request.answer

    def close(self) -> None:
        """End the thread once its batch is done."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def _work(self) -> None:
        """Predict batch after batch until nothing waits."""
        loop = asyncio.get_running_loop()
        try:
            while batch := self._next():
                self._on_batch(sum(request.table.num_rows for request in batch))
                found = await loop.run_in_executor(self._thread, self._answers, batch)
                for request, answer in zip(batch, found, strict=True):
                    if request.answer.done():  # the client has gone, or its time ran out
                        continue
                    if isinstance(answer, Exception):
                        request.answer.set_exception(answer)
                    else:
                        request.answer.set_result(answer)
        finally:
            self._worker = None

    def _next(self) -> list[_Request]:
        """The requests of the next batch, those that nobody waits for any more left out."""
        batch: list[_Request] = []
        rows = 0
        while self._waiting and (not batch or rows + self._waiting[0].table.num_rows <= self._most_rows):
            request = self._waiting.pop(0)
            self._rows_waiting -= request.table.num_rows
            if not request.answer.done():
                batch.append(request)
                rows += request.table.num_rows
        return batch

    def _answers(self, batch: list[_Request]) -> list[list[Any] | Exception]:
        """The answer of each request: its own error where it has one."""
        try:
            found = self._predict(pa.concat_tables([request.table for request in batch]))
        except Exception as error:
            if len(batch) == 1:
                return [error]
            # A row of one request must not spoil the others.
            return [answer for request in batch for answer in self._answers([request])]
        answers: list[list[Any] | Exception] = []
        at = 0
        for request in batch:
            answers.append(found[at : at + request.table.num_rows])
            at += request.table.num_rows
        return answers
