"""Networks on handwritten digits: published test errors within the time of a coffee on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import median_of
from benchmarks.task import Data, Implementation, Outcome, Quality, Solution, Target, Task
from benchmarks.tasks._nets import SEED, timed
from benchmarks.tasks._svm import shared

ERROR = "test error"


def small_digits() -> Data:
    """Those of scikit-learn, as bytes, where a file is missing or little time is given."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    images = (X * 15).astype(np.uint8).reshape(-1, 8, 8)
    return {"X": images[:1300], "y": y[:1300], "X_test": images[1300:], "y_test": y[1300:]}


def make_mnist(directory: Path, quick: bool) -> Data:
    file = shared("mnist.npz")
    if quick or file is None:
        return small_digits()
    with np.load(file) as data:
        return {
            "X": data["x_train"],
            "y": data["y_train"].astype(np.int64),
            "X_test": data["x_test"],
            "y_test": data["y_test"].astype(np.int64),
        }


def make_usps(directory: Path, quick: bool) -> Data:
    file = shared("usps.npz")
    if quick or file is None:
        return small_digits()
    with np.load(file) as data:
        names = {"X": "x_train", "y": "y_train", "X_test": "x_test", "y_test": "y_test"}
        found = {ours: data[theirs] for ours, theirs in names.items()}
        for name in ("X", "X_test"):
            found[name] = (found[name].reshape(-1, 16, 16) / float(data["scale"])).astype(np.float32)
        return {**found, "y": found["y"].astype(np.int64), "y_test": found["y_test"].astype(np.int64)}


def mlp(data: Data) -> Any:
    from epicycle import MLPClassifier

    model = MLPClassifier(
        (800,),
        solver="adamw",
        alpha=0.01,
        learning_rate="cosine",
        learning_rate_init=1e-3,
        batch_size=128,
        dropout=0.4,
        max_iter=20,
        tol=None,
        random_state=SEED,
    )
    return model.fit(flat(data["X"]), data["y"])


def conv_net(data: Data) -> Any:
    from epicycle import ConvNetClassifier

    model = ConvNetClassifier(
        "lenet", shift=1.0, max_iter=6, batch_size=128, learning_rate_init=2e-3, warmup=0.1, random_state=SEED
    )
    return model.fit(data["X"], data["y"])


def conv_net_of_few_images(data: Data) -> Any:
    from epicycle import ConvNetClassifier

    model = ConvNetClassifier(
        "lenet",
        shift=1.0,
        rotation=8.0,
        zoom=0.1,
        max_iter=20,
        batch_size=64,
        learning_rate_init=2e-3,
        warmup=0.1,
        random_state=SEED,
    )
    return model.fit(data["X"], data["y"])


def flat(images: np.ndarray) -> np.ndarray:
    return images.reshape(len(images), -1).astype(np.float32) / 255


def of_tables(model: Any, data: Data) -> np.ndarray:
    return np.asarray(model.predict(flat(data["X_test"])))


def of_images(model: Any, data: Data) -> np.ndarray:
    return np.asarray(model.predict(data["X_test"]))


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    return {name: {ERROR: float(np.mean(s["scores"] != data["y_test"]))} for name, s in solutions.items()}


def error(outcomes: Mapping[str, Outcome]) -> float:
    return outcomes["epicycle"].quality.get(ERROR, np.nan)


def task(
    name: str,
    title: str,
    what: str,
    make: Callable[[Path, bool], Data],
    run: Callable[[Data], Any],
    at_most: float,
    *targets: Target,
) -> Task:
    answers = of_tables if run is mlp else of_images
    return Task(
        name=name,
        title=title,
        description=f"""\
{what} Without the file of the digits (in the folder that EPICYCLE_DATA names, or in shared/data) the small digits of
scikit-learn stand in its place.""",
        make=make,
        implementations=(Implementation("epicycle", "epicycle", timed(run, answers)),),
        quality=quality,
        tolerance=at_most,
        targets=(Target("test error", error, at_most=at_most), *targets),
        cap=1800.0,
    )


MNIST_MLP = task(
    "mnist_mlp",
    "Perceptron 784-800-10 on MNIST",
    "Twenty epochs of AdamW with dropout; Simard et al. (2003) have 1.6% for 800 hidden units and no distortions.",
    make_mnist,
    mlp,
    0.016,
)
MNIST_CONV_NET = task(
    "mnist_conv_net",
    "Convolutional network on MNIST",
    "Six epochs of a network shaped like LeNet on images moved by a pixel; LeNet-5 has 0.95%.",
    make_mnist,
    conv_net,
    0.01,
    Target("seconds on the CPU", median_of("epicycle"), at_most=300.0),
)
USPS_CONV_NET = task(
    "usps_conv_net",
    "Convolutional network on USPS",
    "Twenty epochs on 7,291 images that are moved, turned and scaled; people have 2.5%, LeNet-1 5.1%.",
    make_usps,
    conv_net_of_few_images,
    0.04,
)
