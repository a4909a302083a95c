"""Reading ahead: an iterator advanced by a thread of its own, a bounded number of items before its consumer."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterable
from typing import TypeVar

__all__ = ["prefetch"]

Item = TypeVar("Item")


def prefetch(items: Iterable[Item], depth: int = 2) -> Generator[Item, None, None]:
    """The same items; an exception of the source is raised here.

    The thread ends when the source does, or when this generator is closed: by the garbage collector at the latest, by
    an exception or an interrupt in the consumer's ``with closing(...)`` at once.
    """
    line: queue.Queue[tuple[Item | None, BaseException | None, bool]] = queue.Queue(depth)
    stopped = threading.Event()

    def put(item: Item | None, error: BaseException | None = None, last: bool = False) -> bool:
        while not stopped.is_set():
            try:
                line.put((item, error, last), timeout=0.05)
                return True
            except queue.Full:
                continue
        return False

    def read() -> None:
        try:
            for item in items:
                if not put(item):
                    break
            else:
                put(None, last=True)
        except BaseException as error:
            put(None, error)
        finally:
            close = getattr(items, "close", None)  # files are closed by the thread that reads them
            if close is not None:
                close()

    reader = threading.Thread(target=read, name="epicycle-reader", daemon=True)
    try:
        reader.start()
        while True:
            item, error, last = line.get()
            if error is not None:
                raise error
            if last:
                return
            yield item  # type: ignore[misc]  # None only with an error or at the end
            del item  # not kept alive while waiting for the next
    finally:
        stopped.set()
        if reader.is_alive():
            reader.join()
