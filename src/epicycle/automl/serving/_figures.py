"""Figures of a server in the text format of Prometheus."""

from __future__ import annotations

import time
from collections import Counter

#: Upper ends of the bins of a request's seconds.
_BINS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Figures:
    """Counts and times of the requests."""

    def __init__(self) -> None:
        self.began = time.time()
        self.requests: Counter[tuple[str, int]] = Counter()
        self.rows = 0
        self.batches = 0
        self.batch_rows = 0
        self.in_flight = 0
        self._bins = [0] * (len(_BINS) + 1)
        self._seconds = 0.0

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count a request by the name of its path, which comes from a short list."""
        self.requests[path, status] += 1
        self._bins[next((i for i, end in enumerate(_BINS) if seconds <= end), len(_BINS))] += 1
        self._seconds += seconds

    def batch(self, rows: int) -> None:
        """Count a batch."""
        self.batches += 1
        self.batch_rows += rows

    def text(self) -> str:
        """All figures."""
        lines: list[str] = []

        def add(name: str, kind: str, meaning: str, *samples: tuple[str, float]) -> None:
            lines.extend([f"# HELP epicycle_{name} {meaning}", f"# TYPE epicycle_{name} {kind}"])
            lines.extend(f"epicycle_{name}{labels} {value:.17g}" for labels, value in samples)

        by_path = sorted(self.requests.items())
        add(
            "requests_total",
            "counter",
            "Requests by path and status.",
            *((f'{{path="{path}",status="{status}"}}', count) for (path, status), count in by_path),
        )
        total, samples = 0, []
        for end, count in zip((*map(str, _BINS), "+Inf"), self._bins, strict=True):
            total += count
            samples.append((f'_bucket{{le="{end}"}}', total))
        add(
            "request_seconds",
            "histogram",
            "Seconds from the head of a request to the end of its answer.",
            *samples,
            ("_sum", self._seconds),
            ("_count", total),
        )
        add("rows_total", "counter", "Rows that were predicted.", ("", self.rows))
        add("batches_total", "counter", "Batches that were predicted.", ("", self.batches))
        add("batch_rows_total", "counter", "Rows in all batches.", ("", self.batch_rows))
        add("requests_in_flight", "gauge", "Requests without an answer yet.", ("", self.in_flight))
        add("start_time_seconds", "gauge", "Start of the server, in seconds since 1970.", ("", self.began))
        return "\n".join(lines) + "\n"
