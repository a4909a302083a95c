"""Running Markov chains: in threads or one after the other, each from its own random stream, and stoppable."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

import numpy as np

from epicycle.core._threads import single_threaded_blas
from epicycle.core.estimator._progress import ProgressLine

Array = np.ndarray
#: Columns of the statistics of a chain, in the order of the compiled sampler.
STATISTICS = ("log_density", "acceptance", "step_size", "tree_depth", "n_steps", "divergent", "energy")
_POLL_SECONDS = 0.05


@dataclass
class Chain:
    """One chain: what it draws from, and what it has drawn so far."""

    index: int
    start: Array
    rng: np.random.Generator
    draws: Array
    statistics: Array
    stop: Array
    progress: Array = field(default_factory=lambda: np.zeros(2, dtype=np.int64))
    step_size: float = np.nan
    metric: Array = field(default_factory=lambda: np.empty(0))

    @property
    def n_drawn(self) -> int:
        """Draws after the warm-up that are written."""
        return int(self.progress[1])


@dataclass
class Outcome:
    """The end of the chains: all of them in the usual way, by Ctrl-C, or by an exception in one of them."""

    interrupted: bool = False
    failure: BaseException | None = None
    failed_chain: int = -1


def run(
    chains: list[Chain],
    step: Callable[[Chain], None],
    *,
    threads: int,
    n_iterations: int,
    progress: ProgressLine | None,
) -> Outcome:
    """Run all chains. The calling thread waits, shows progress, and takes Ctrl-C; no draw is lost by it."""
    outcome, stop = Outcome(), chains[0].stop

    def guarded(chain: Chain) -> None:
        if stop[0]:
            return
        try:
            step(chain)
        except BaseException as error:  # whatever it is belongs to the user
            if outcome.failure is None:
                outcome.failure, outcome.failed_chain = error, chain.index
            stop[0] = 1

    with single_threaded_blas(), ThreadPoolExecutor(threads, thread_name_prefix="epicycle-chain") as pool:
        waiting: set[Future[None]] = {pool.submit(guarded, chain) for chain in chains}
        while waiting:
            try:
                _, waiting = wait(waiting, timeout=_POLL_SECONDS)
                if progress is not None:
                    done = sum(int(chain.progress[0]) for chain in chains)
                    progress.update(done, total=n_iterations * len(chains))
            except KeyboardInterrupt:
                outcome.interrupted = True
                stop[0] = 1
    # A function of Python that runs in the calling thread's stead never sees Ctrl-C itself, but may raise it.
    if isinstance(outcome.failure, KeyboardInterrupt):
        outcome.interrupted, outcome.failure = True, None
    return outcome


def rectangle(chains: list[Chain]) -> tuple[list[Chain], int]:
    """The chains and the number of draws of each that keep the most: chains that were stopped have unequal lengths."""
    by_length = sorted(chains, key=lambda chain: -chain.n_drawn)
    kept = max(range(1, len(chains) + 1), key=lambda k: (k * by_length[k - 1].n_drawn, k))
    n = by_length[kept - 1].n_drawn
    return [chain for chain in chains if chain.n_drawn >= max(n, 1)], n
