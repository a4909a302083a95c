"""Common parts of the tasks of networks: the loop that everybody writes by hand in PyTorch."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.task import Data, Measured

SEED = 0


def plain_loop(module: Any, X: np.ndarray, y: np.ndarray, *, epochs: int, batch_size: int, rate: float) -> None:
    """AdamW on shuffled batches of arrays in memory, with the softmax loss, on all of torch's threads."""
    import torch

    inputs, targets = torch.from_numpy(X), torch.from_numpy(y)
    optimizer = torch.optim.AdamW(module.parameters(), lr=rate, weight_decay=0.0, fused=True)
    loss_function = torch.nn.CrossEntropyLoss()
    generator = torch.Generator().manual_seed(SEED)
    module.train()
    for _ in range(epochs):
        order = torch.randperm(len(inputs), generator=generator)
        for start in range(0, len(inputs), batch_size):
            rows = order[start : start + batch_size]
            optimizer.zero_grad(set_to_none=True)
            loss_function(module(inputs[rows]), targets[rows]).backward()
            optimizer.step()
    module.eval()


def cross_entropy(scores: np.ndarray, y: np.ndarray) -> float:
    """The mean softmax loss."""
    scores = scores.astype(np.float64)
    scores = scores - scores.max(axis=1, keepdims=True)
    return float(np.mean(np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(y)), y]))


def timed(fit: Callable[[Data], Any], scores: Callable[[Any, Data], np.ndarray]) -> Callable[[Data], Measured]:
    """The time of the fit alone, and the mean loss on the rows of the fit and on new ones."""

    def run(data: Data) -> Measured:
        import torch  # noqa: F401  # not part of what is timed

        began = time.perf_counter()
        model = fit(data)
        seconds = time.perf_counter() - began
        return Measured(seconds, {"scores": np.asarray(scores(model, data))})

    return run


def module_scores(module: Any, X: np.ndarray) -> np.ndarray:
    """Outputs of a module for rows in memory."""
    import torch

    with torch.no_grad():
        found = [module(torch.from_numpy(X[i : i + 1000])) for i in range(0, len(X), 1000)]
    return np.asarray(torch.cat(found).numpy())
