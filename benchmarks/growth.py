"""Time of clusterings against the number of rows; ``python -m benchmarks.growth`` writes the figures of the docs.

Processor seconds of one thread, so that other work on the machine shows little; all make the same number of rounds for
every number of rows, and the least of three fits counts.
"""

from __future__ import annotations

import csv
import time
import warnings
from pathlib import Path

import numpy as np

import epicycle as ep

ROWS = (12_500, 25_000, 50_000, 100_000, 200_000)
ROUNDS = 10
OUT = Path(__file__).parents[1] / "docs" / "figures" / "cluster_growth.csv"


def models() -> dict[str, ep.KMeans]:
    """Ten clusters; ten rounds, or two epochs, and no other end."""
    return {
        "KMeans": ep.KMeans(10, tol=0, max_iter=ROUNDS, random_state=0, n_jobs=1),
        "MiniBatchKMeans": ep.MiniBatchKMeans(10, max_iter=2, max_no_improvement=None, random_state=0, n_jobs=1),
        "BisectingKMeans": ep.BisectingKMeans(10, max_iter=ROUNDS, tol=0, random_state=0, n_jobs=1),
        "KMedians": ep.KMedians(10, max_iter=ROUNDS, random_state=0),
        "KPrototypes": ep.KPrototypes(10, categorical_features=[8, 9], max_iter=ROUNDS, random_state=0),
        "KMedoids, samples": ep.KMedoids(10, sample_size=2_000, n_init=1, random_state=0, n_jobs=1),
    }


def main() -> None:
    rng = np.random.default_rng(65)
    means = 2 * rng.normal(size=(40, 10))  # more than the clusters, so that no descent ends early
    X = means[rng.integers(0, 40, max(ROWS))] + rng.normal(size=(max(ROWS), 10))
    X[:, 8:] = np.floor(X[:, 8:]).clip(-3, 3)
    lines = []
    for name, model in models().items():
        for n in ROWS:
            seconds = []
            for _ in range(3):
                start = time.process_time()
                with ep.config(on_nonconvergence="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model.fit(X[:n])
                seconds.append(time.process_time() - start)
            lines.append((name, n, f"{min(seconds):.4f}"))
            print(*lines[-1], flush=True)
    with OUT.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("method", "rows", "seconds"), *lines])


if __name__ == "__main__":
    main()
