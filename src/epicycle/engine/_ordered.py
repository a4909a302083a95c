"""Work on numbered pieces by several threads, consumed strictly in the order of the numbers."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from epicycle.core._threads import helper_pool

Piece = TypeVar("Piece")
Result = TypeVar("Result")

_inside = threading.local()  # .busy: this thread is working on a piece already


def in_order(
    pieces: Iterable[Piece], work: Callable[[Piece], Result], consume: Callable[[Result], None] | None, threads: int
) -> None:
    """``consume(work(piece))`` for every piece: work on `threads` threads, consume one at a time and in order.

    Without `consume` the work itself writes where its results belong. The caller's thread is one of them. At most
    ``2 * threads`` results are alive. A call from inside `work` runs on its thread alone. The first exception, be it of
    `pieces`, `work`, `consume` or an interrupt of the caller, drops what is not yet started, lets what is running end,
    and propagates.
    """
    # Nested calls run on their own thread: waiting for the pool inside the pool could wait for ever.
    if threads <= 1 or getattr(_inside, "busy", False):
        for piece in pieces:
            if consume is None:
                work(piece)
            else:
                consume(work(piece))
        return
    # Twice as many results as threads: a slow piece does not stop the others, and memory stays bounded.
    shared = _Line(pieces, work, consume, 2 * threads)
    pool = helper_pool()
    # The context carries the settings of the caller (ep.config) to the helpers.
    helpers = [pool.submit(contextvars.copy_context().run, shared.run) for _ in range(threads - 1)]
    try:
        shared.run()
    except BaseException as error:
        shared.stop(error)
        raise
    finally:
        # A helper that never came to run (the pool serves other callers too) is not waited for.
        _join([helper for helper in helpers if not helper.cancel()], shared)
    if shared.error is not None:
        raise shared.error


def _join(helpers: list[Future[None]], line: _Line[Any, Any]) -> None:
    """Wait until no helper runs, even through an interrupt: the caller may close what they read from."""
    interrupt: BaseException | None = None
    while helpers:
        try:
            helpers[-1].exception()
            helpers.pop()
        except BaseException as error:
            interrupt = error
            line.stop(error)
    if interrupt is not None:
        raise interrupt


class _Line(Generic[Piece, Result]):
    """Pieces handed out in order, results handed in in any order, consumed in order by whichever thread is there."""

    def __init__(
        self,
        pieces: Iterable[Piece],
        work: Callable[[Piece], Result],
        consume: Callable[[Result], None] | None,
        window: int,
    ) -> None:
        self.pieces, self.work, self.consume, self.window = iter(pieces), work, consume, window
        self.changed = threading.Condition()
        self.drawing = threading.Lock()  # the iterator is advanced by one thread at a time
        self.drawn = 0
        self.consumed = 0
        self.consuming = False
        self.exhausted = False
        self.results: dict[int, Result] = {}
        self.error: BaseException | None = None

    def stop(self, error: BaseException) -> None:
        with self.changed:
            self.error = self.error or error
            self.changed.notify_all()

    def run(self) -> None:
        _inside.busy = True
        try:
            while (drawn := self.draw()) is not None:
                number, piece = drawn
                result = self.work(piece)
                del piece, drawn  # the next one may take its memory
                self.hand_in(number, result)
                del result
        except BaseException as error:
            self.stop(error)
        finally:
            _inside.busy = False

    def draw(self) -> tuple[int, Piece] | None:
        with self.drawing:
            with self.changed:
                while self.drawn - self.consumed >= self.window and self.error is None:
                    self.changed.wait()
                if self.error is not None or self.exhausted:
                    return None
            try:
                piece = next(self.pieces)
            except StopIteration:
                self.exhausted = True
                return None
            self.drawn += 1
            return self.drawn - 1, piece

    def hand_in(self, number: int, result: Result) -> None:
        with self.changed:
            self.results[number] = result
            if self.consuming:  # that thread will find this result when its turn comes
                return
            self.consuming = True
        while True:
            with self.changed:
                if self.error is not None or self.consumed not in self.results:
                    self.consuming = False
                    return
                result = self.results.pop(self.consumed)
            # Outside the lock: adding up large states takes long, and others hand in meanwhile.
            if self.consume is not None:
                self.consume(result)
            with self.changed:
                self.consumed += 1
                self.changed.notify_all()
