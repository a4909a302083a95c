"""Kill a process at random moments while it saves, and look at what is left: ``killed_saves.py FOLDER KILLS``.

Each child is a fork of this small process, so that it saves at once instead of importing first.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

from epicycle.io import load, save


def main(folder: Path, kills: int) -> None:
    """Prints how often the file held which model, and how many kills interrupted a write."""
    models = [{"weights": np.full(20_000, float(i)), "name": f"model {i}"} for i in range(2)]
    path = folder / "model.epi"
    save(models[0], path)
    moments = random.Random(0)
    found, interrupted = [0, 0], 0
    for _ in range(kills):
        child = os.fork()
        if child == 0:
            save_for_ever(models, path)
        time.sleep(moments.uniform(0.0, 0.03))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        model = load(path)
        which = int(model["name"].removeprefix("model "))
        if not np.array_equal(model["weights"], models[which]["weights"]):
            raise AssertionError(f"the file holds a mixture: {model}")
        found[which] += 1
        for temporary in folder.glob(".epicycle-*.tmp"):
            interrupted += 1
            temporary.unlink()
    print(json.dumps({"found": found, "interrupted": interrupted}))


def save_for_ever(models: list[dict], path: Path) -> None:
    """The child: it never returns."""
    while True:
        for model in reversed(models):
            save(model, path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
