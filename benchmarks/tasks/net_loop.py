"""The training loop of the networks against a hand-written one over the same modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Outcome, Quality, Solution, Target, Task
from benchmarks.tasks._nets import SEED, cross_entropy, module_scores, plain_loop, timed

LOSS = "loss on new rows, over the smallest"
RESNET = [["conv", 32, 3], "batch_norm", "relu", *[["residual", 32, 1]] * 2, ["residual", 64, 2], "global_pool"]
MLP_EPOCHS, RESNET_EPOCHS = 5, 2
MLP_RATE, RESNET_RATE = 1e-3, 1e-3
BATCH = 128


def make_table(directory: Path, quick: bool) -> Data:
    n = 4_000 if quick else 60_000
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n + 2_000, 100)).astype(np.float32)
    hidden = np.tanh(X @ rng.normal(size=(100, 20)) / 5)
    y = (hidden @ rng.normal(size=(20, 10)) + 0.5 * rng.normal(size=(len(X), 10))).argmax(axis=1)
    return {"X": X[:n], "y": y[:n], "X_test": X[n:], "y_test": y[n:]}


def make_images(directory: Path, quick: bool) -> Data:
    n = 512 if quick else 8_000
    rng = np.random.default_rng(6)
    y = rng.integers(0, 10, n + 1_000)
    prototypes = rng.normal(size=(10, 9, 9))
    X = rng.normal(size=(len(y), 28, 28)).astype(np.float32)
    for image, label, (top, left) in zip(X, y, rng.integers(0, 20, (len(y), 2)), strict=True):
        image[top : top + 9, left : left + 9] += prototypes[label]
    X = X[..., None]
    return {"X": X[:n], "y": y[:n], "X_test": X[n:], "y_test": y[n:]}


def mlp() -> Any:
    from epicycle import MLPClassifier

    return MLPClassifier(
        (256, 256),
        alpha=0.0,
        solver="adamw",
        learning_rate_init=MLP_RATE,
        batch_size=BATCH,
        max_iter=MLP_EPOCHS,
        tol=None,
        random_state=SEED,
    )


def resnet() -> Any:
    from epicycle import ConvNetClassifier

    return ConvNetClassifier(
        RESNET,
        weight_decay=0.0,
        learning_rate="constant",
        learning_rate_init=RESNET_RATE,
        batch_size=BATCH,
        max_iter=RESNET_EPOCHS,
        random_state=SEED,
    )


def plain_mlp(data: Data) -> Any:
    import torch

    from epicycle.nets.mlp._module import multi_layer_perceptron

    torch.manual_seed(SEED)
    sizes = [data["X"].shape[1], 256, 256, 10]
    module = multi_layer_perceptron({"layers": sizes, "activation": "relu", "dropout": 0.0, "dtype": "float32"})
    plain_loop(module, data["X"], data["y"], epochs=MLP_EPOCHS, batch_size=BATCH, rate=MLP_RATE)
    return module


def plain_resnet(data: Data) -> Any:
    import torch

    from epicycle.nets.vision._layers import layers_of
    from epicycle.nets.vision._module import conv_net

    torch.manual_seed(SEED)
    height, width, channels = data["X"].shape[1:]
    architecture = {
        "shape": [height, width, channels],
        "mean": [0.0],
        "deviation": [1.0],
        "layers": layers_of(RESNET, height, width, 1.0),
        "n_outputs": 10,
    }
    module = conv_net(architecture)
    plain_loop(module, data["X"], data["y"], epochs=RESNET_EPOCHS, batch_size=BATCH, rate=RESNET_RATE)
    return module


def on_one_thread(fit: Callable[[Data], Any]) -> Callable[[Data], Any]:
    """The same loop where torch does not divide its work: small layers are faster so."""

    def run(data: Data) -> Any:
        import torch

        torch.set_num_threads(1)
        return fit(data)

    return run


def over_best_loop(outcomes: Mapping[str, Outcome]) -> float:
    """Our time over that of the faster of the two plain loops."""
    return 1.0 / speedup_over_best_peer()(outcomes)


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """The loss of each on new rows, relative to the smallest: less 1."""
    losses = {name: cross_entropy(s["scores"], data["y_test"]) for name, s in solutions.items()}
    least = min(losses.values())
    return {name: {LOSS: loss / least - 1} for name, loss in losses.items()}


def of_new_rows(model: Any, data: Data) -> np.ndarray:
    return np.asarray(
        model._scores(data["X_test"]) if hasattr(model, "_scores") else module_scores(model, data["X_test"])
    )


def task(name: str, title: str, what: str, make: Any, ours: Any, plain: Any) -> Task:
    return Task(
        name=name,
        title=title,
        description=f"""\
{what} The peer is the loop that everybody writes: shuffle, gather, forward, backward, step, on all of torch's threads,
or on one, over the same module; ours also keeps the history, gradient norms and evidence. Times are those of the fit
without imports. At equal quality the mean loss on new rows is within 15% of the smallest; the order of the batches
differs.""",
        make=make,
        implementations=(
            Implementation("plain PyTorch loop", "peer", timed(plain, of_new_rows)),
            Implementation("plain PyTorch loop, one thread", "peer", timed(on_one_thread(plain), of_new_rows)),
            Implementation("epicycle", "epicycle", timed(lambda data: ours().fit(data["X"], data["y"]), of_new_rows)),
        ),
        quality=quality,
        tolerance=0.15,
        targets=(Target("time over that of the faster plain loop", over_best_loop, at_most=1.05),),
        cap=300.0,
    )


MLP = task(
    "net_loop_mlp",
    "Training loop: perceptron 100-256-256-10 on 60,000 rows",
    f"{MLP_EPOCHS} epochs of AdamW in batches of {BATCH} on a table of 100 columns and ten classes.",
    make_table,
    mlp,
    plain_mlp,
)
RESIDUAL = task(
    "net_loop_resnet",
    "Training loop: a residual network on 8,000 images of 28 x 28",
    f"{RESNET_EPOCHS} epochs of AdamW in batches of {BATCH} on images that hide one of ten patches in noise.",
    make_images,
    resnet,
    plain_resnet,
)
