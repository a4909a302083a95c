"""A recurrent network for sequences: the training loop against the same network in a loop written by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

HIDDEN, BATCH, EPOCHS, RATE, CLIP = 64, 32, 5, 0.003, 1.0
MEASURE = "error on new sequences"


def make(directory: Path, quick: bool) -> Data:
    n, length = (300, 20) if quick else (4_000, 40)
    rng = np.random.default_rng(16)
    X = rng.standard_normal((2 * n, length, 8)).astype(np.float32)
    # The class is the sign of a sum over the steps that the first feature marks.
    y = ((X[:, :, 0] > 1) * X[:, :, 1]).sum(axis=1) > 0
    return {"X": X[:n], "y": y[:n].astype(np.int64), "X_new": X[n:], "y_new": y[n:].astype(np.int64)}


def setup(data: Data) -> dict[str, Any]:
    import torch  # its import is not what is timed

    torch.set_num_threads(1)
    return dict(data)


def epicycle(state: dict[str, Any]) -> Solution:
    from epicycle import SequenceClassifier

    settings = {"hidden_size": HIDDEN, "batch_size": BATCH, "max_iter": EPOCHS, "learning_rate_init": RATE}
    model = SequenceClassifier("lstm", **settings, clip_norm=CLIP, random_state=0).fit(state["X"], state["y"])
    return {"found": np.asarray(model.predict(state["X_new"]))}


def by_hand(state: dict[str, Any]) -> Solution:
    import torch
    from torch import nn

    torch.manual_seed(0)
    X, y = torch.from_numpy(state["X"]), torch.from_numpy(state["y"]).float()
    mean, deviation = X.mean((0, 1)), X.std((0, 1))
    lstm, last = nn.LSTM(X.shape[2], HIDDEN, batch_first=True), nn.Linear(HIDDEN, 1)
    weights = [*lstm.parameters(), *last.parameters()]
    optimizer = torch.optim.AdamW(weights, lr=RATE, weight_decay=0.01, fused=True)
    loss_of = nn.BCEWithLogitsLoss()

    def scores(x: Any) -> Any:
        return last(lstm((x - mean) / deviation)[0][:, -1])[:, 0]

    for _ in range(EPOCHS):
        for rows in torch.randperm(len(X)).split(BATCH):
            optimizer.zero_grad(set_to_none=True)
            loss_of(scores(X[rows]), y[rows]).backward()
            nn.utils.clip_grad_norm_(weights, CLIP)
            optimizer.step()
    with torch.no_grad():
        found = torch.cat([scores(part) for part in torch.from_numpy(state["X_new"]).split(256)]) > 0
    return {"found": found.long().numpy()}


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    return {name: {MEASURE: float(np.mean(s["found"] != data["y_new"]))} for name, s in solutions.items()}


TASK = Task(
    name="sequence_classifier",
    title="SequenceClassifier, LSTM of 64 units, 4,000 sequences of 40 x 8, 5 epochs",
    description="""\
Normal features, of which the first marks the steps whose second feature counts. The same network, update rule and
number of steps on one thread in both; the peer is a loop in plain PyTorch.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", epicycle, setup=setup, threads=1),
        Implementation("PyTorch, by hand", "peer", by_hand, setup=setup, threads=1),
    ),
    quality=quality,
    tolerance=0.3,
    targets=(Target("speed against the loop by hand", speedup_over_best_peer(), at_least=0.95),),
)
