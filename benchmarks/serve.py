"""Load test of epicycle serve: single rows at a given rate over connections that stay open.

A boosted classifier of 100 trees over ten mixed columns answers requests of one row each. Each connection sends its
requests at their times, and the time of an answer counts from when its request was due: a server that falls behind
cannot hide it. Server and clients share the machine.

    python -m benchmarks.serve [--rate 1000] [--seconds 10] [--connections 16]
    python -m benchmarks.serve --write  # ten minutes, and the section of RESULTS.md

Prints the times and the failures, and exits with 1 where p99 is above 20 ms or a request failed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

import numpy as np

import epicycle as ep
from benchmarks import machine
from benchmarks.report import RESULTS, markdown_table, update_results
from benchmarks.tasks import all_tasks

#: What is asked: 99 of 100 answers within so many milliseconds, at this rate for so many seconds.
P99, RATE, SECONDS = 20.0, 1_000.0, 600.0


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rate", type=float, default=RATE, help="requests a second")
    options.add_argument("--seconds", type=float, help=f"default 10, with --write {SECONDS:g}")
    options.add_argument("--connections", type=int, default=16)
    options.add_argument("--warm-up", type=float, default=1.0, help="seconds whose answers are not counted")
    options.add_argument("--write", action="store_true", help=f"write the section of {RESULTS.name}")
    given = options.parse_args()
    if given.seconds is None:
        given.seconds = SECONDS if given.write else 10.0
    if given.write and (given.seconds < SECONDS or given.rate < RATE):
        options.error(f"less than {RATE:g} requests a second for {SECONDS:g} s is no measurement: it is not written")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.epi"
        rows = train(path)
        command = [sys.executable, "-m", "epicycle", "serve", str(path), "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            port = int(server.stdout.readline().split("127.0.0.1:")[1].split("/")[0])
            try:
                before = cpu_seconds(server.pid)
                context = multiprocessing.get_context("spawn")
                with context.Pool(1) as pool:
                    seconds, failed = pool.apply(
                        run, (port, rows, given.rate, given.seconds, given.connections, given.warm_up)
                    )
                spent = cpu_seconds(server.pid) - before
            finally:
                server.terminate()
    times = np.sort(np.array(seconds)) * 1e3
    p50, p90, p99, p999 = np.quantile(times, [0.5, 0.9, 0.99, 0.999]) if len(times) else [float("nan")] * 4
    most = times[-1] if len(times) else float("nan")
    load = f"{spent / (given.seconds + given.warm_up):.0%} of one core"
    print(
        f"{len(times) + failed:,} requests at {given.rate:g} a second, {given.connections} connections: {failed} "
        f"failed; p50 {p50:.2f} ms, p90 {p90:.2f} ms, p99 {p99:.2f} ms, most {most:.2f} ms; {load} in the server"
    )
    if given.write:
        figures = {
            "requests": f"{len(times) + failed:,}",
            "requests a second": f"{given.rate:g}",
            "connections": f"{given.connections}",
            "failed requests": f"{failed}",
            "half of the answers within": f"{p50:.2f} ms",
            "9 of 10 within": f"{p90:.2f} ms",
            "99 of 100 within": f"{p99:.2f} ms",
            "999 of 1,000 within": f"{p999:.2f} ms",
            "longest": f"{most:.2f} ms",
            "server": load,
        }
        kept = {"failed requests": (failed, 0, failed == 0), "p99 in milliseconds": (p99, P99, p99 <= P99)}
        update_results(RESULTS, {"serve": section(figures, kept)}, list(all_tasks()))
    return int(failed > 0 or not p99 <= P99)


def section(figures: dict[str, str], kept: dict[str, tuple[float, float, bool]]) -> str:
    """The Markdown of the load test."""
    first, _, rest = (__doc__ or "").partition("\n")
    about = machine.describe()
    system = f"{about['processor']}, {about['cores']} cores, {about['memory']}, {about['system']}"
    promises = [
        [text, f"at most {bound:g}", f"{value:.3g}", "yes" if good else "**no**"]
        for text, (value, bound, good) in kept.items()
    ]
    parts = [
        f"## serve: {first.rstrip('.')}",
        rest.split("\n\n    python")[0].strip(),
        markdown_table(["figure", "value"], [[name, value] for name, value in figures.items()]),
        markdown_table(["promise", "bound", "measured", "kept"], promises),
        f"Made by `python -m benchmarks.serve {' '.join(sys.argv[1:])}` on {system}; Python {about['Python']}, "
        f"epicycle {about['epicycle']}, uvicorn {metadata.version('uvicorn')}.",
    ]
    return "\n\n".join(parts) + "\n"


def train(path: Path) -> list[bytes]:
    """A boosted model of ten mixed columns, and requests of one row each."""
    import pyarrow as pa

    rng = np.random.default_rng(0)
    n = 5_000
    columns = {f"x{j}": rng.normal(size=n) for j in range(8)}
    kind = rng.choice(["red", "green", "blue", "grey"], n)
    score = columns["x0"] + columns["x1"] * columns["x2"] + (kind == "red") + 0.5 * rng.normal(size=n)
    table = pa.table({**columns, "colour": kind.tolist(), "y": np.where(score > 0, "yes", "no").tolist()})
    kinds = {**dict.fromkeys(columns, "number"), "colour": "category", "y": "target"}
    ep.TableModel(ep.GradientBoostingClassifier(n_estimators=100, random_state=0), kinds).fit(table).save(path)
    some = table.slice(0, 500).drop_columns(["y"]).to_pylist()
    return [json.dumps({"rows": [row]}).encode() for row in some]


def cpu_seconds(pid: int) -> float:
    """Processor time of a process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return float("nan")


def run(
    port: int, bodies: list[bytes], rate: float, seconds: float, connections: int, warm_up: float
) -> tuple[list[float], int]:
    """Seconds of each answer, and the number of requests without a right one."""
    return asyncio.run(_run(port, bodies, rate, seconds, connections, warm_up))


async def _run(
    port: int, bodies: list[bytes], rate: float, seconds: float, connections: int, warm_up: float
) -> tuple[list[float], int]:
    times: list[float] = []
    failed = 0
    began = time.perf_counter()
    n = int(rate * (warm_up + seconds))

    async def client(k: int) -> None:
        nonlocal failed
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for i in range(k, n, connections):
            due = began + i / rate
            wait = due - time.perf_counter()
            if wait > 0:
                await asyncio.sleep(wait)
            body = bodies[i % len(bodies)]
            head = f"POST /predict HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n"
            writer.write(head.encode() + b"content-type: application/json\r\n\r\n" + body)
            try:
                status, answer = await _answer(reader)
            except (OSError, EOFError):  # the server closed the connection: a request failed, the next has a new one
                failed += 1
                writer.close()
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                continue
            if status != 200 or b'"prediction"' not in answer:
                failed += 1
            elif due - began >= warm_up:
                times.append(time.perf_counter() - due)
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(client(k) for k in range(connections)))
    return times, failed


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    length = next(
        int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")
    )
    return status, await reader.readexactly(length)


if __name__ == "__main__":
    sys.exit(main())
