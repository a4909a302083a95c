"""A GAN, an energy-based, a diffusion model and a flow on MNIST: samples, Frechet distance, precision and recall.

The features are those of a LeNet that is trained on the same images. The numbers of epochs follow from the time that
one of them takes; each model has its share of --seconds.

    python -m benchmarks.gpu.generative_mnist --data mnist.npz --out FOLDER [--seconds 160] [--quick]
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from benchmarks.gpu._pictures import write_png
from benchmarks.gpu._report import Figures, arguments, device

SEED = 0
#: Of the time of training.
SHARES = {"gan": 0.2, "diffusion": 0.3, "energy": 0.2, "energy_adversarial": 0.15, "flow": 0.15}
CLASSES = 10


def gan(quick: bool, epochs: int) -> Any:
    """A conditional GAN of convolutions."""
    from epicycle.generative.adversarial import GAN

    return GAN(
        "non_saturating",
        n_codes=8 if quick else 64,
        channels=(4, 8) if quick else (64, 128),
        gradient_penalty=1.0,
        conditional=True,
        batch_size=256,
        learning_rate_init=5e-4,
        average=0.999,
        max_iter=epochs,
        device=device(),
        random_state=SEED,
    )


def diffusion(quick: bool, epochs: int) -> Any:
    """A conditional diffusion model with a U-shaped network."""
    from epicycle.generative.diffusion import DiffusionModel

    return DiffusionModel(
        channels=(4, 8) if quick else (64, 128, 128),
        conditional=True,
        batch_size=256,
        learning_rate_init=1e-3,
        warmup=100,
        clip_norm=1.0,
        average=0.999,
        max_iter=epochs,
        device=device(),
        random_state=SEED,
    )


def energy(quick: bool, epochs: int) -> Any:
    """An energy-based model with persistent chains."""
    return _energy(quick, epochs, noise=0.1, n_moves=2 if quick else 10)


def energy_adversarial(quick: bool, epochs: int) -> Any:
    """The same with a generator in the place of chains."""
    return _energy(quick, epochs, method="adversarial", n_codes=8 if quick else 64)


def _energy(quick: bool, epochs: int, **options: Any) -> Any:
    from epicycle.generative.energy import EnergyBasedModel

    return EnergyBasedModel(
        **options,
        channels=(4, 8) if quick else (32, 64, 128),
        spectral_norm=True,
        n_chains=64 if quick else 512,
        n_levels=20 if quick else 1000,
        batch_size=256,
        learning_rate_init=2e-4,
        clip_norm=1.0,
        max_iter=epochs,
        device=device(),
        random_state=SEED,
    )


def flow(quick: bool, epochs: int) -> Any:
    """A masked autoregressive flow of 784 columns with values from 0 to 255."""
    from epicycle.generative.flows import NormalizingFlow

    return NormalizingFlow(
        "autoregressive",
        n_layers=2 if quick else 5,
        hidden_layer_sizes=(16,) if quick else (1024,),
        mixing="permutation",
        base="student_t",  # test images have ink where no training image has
        dequantize=True,
        batch_size=256,
        learning_rate_init=1e-3,
        max_iter=epochs,
        device=device(),
        random_state=SEED,
    )


MODELS = {
    "gan": gan,
    "diffusion": diffusion,
    "energy": energy,
    "energy_adversarial": energy_adversarial,
    "flow": flow,
}


def seconds_of(work: Any) -> tuple[Any, float]:
    """(result, seconds)."""
    began = time.perf_counter()
    found = work()
    return found, time.perf_counter() - began


def classifier(images: np.ndarray, labels: np.ndarray, quick: bool) -> Any:
    """The network whose last hidden layer gives the features."""
    from epicycle import ConvNetClassifier

    return ConvNetClassifier(
        width=0.1 if quick else 1.0, max_iter=1 if quick else 4, batch_size=256, device=device(), random_state=SEED
    ).fit(images, labels)


def compared(net: Any, real: np.ndarray, drawn: np.ndarray) -> dict[str, Any]:
    """The figures of drawn images, and which digits the network sees in them."""
    from epicycle.generative.evaluate import frechet_distance, precision_recall

    found = precision_recall(real, drawn, features=net)
    named = {name: round(float(getattr(found, name)), 4) for name in ("precision", "recall", "density", "coverage")}
    shares = np.bincount(net.predict(drawn).astype(int), minlength=CLASSES) / len(drawn)
    distance = frechet_distance(real, drawn, features=net)
    return {"frechet_distance": round(float(distance), 3), **named, "digits": shares.round(3).tolist()}


def main() -> None:
    """Train, draw, compare, write."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--seconds", type=float, default=160.0, help="of training, all models together")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    given = parser.parse_args()
    path = given.data / "mnist.npz" if given.data.is_dir() else given.data
    with np.load(path) as file:
        train, labels, test, truth = (file[name] for name in ("x_train", "y_train", "x_test", "y_test"))
    n_drawn = len(test)
    if given.quick:
        train, labels, test, truth, n_drawn = train[:600], labels[:600], test[:300], truth[:300], 100
    figures = Figures(given.out, "generative_mnist")
    net, seconds = seconds_of(lambda: classifier(train, labels, given.quick))
    figures.add(accuracy_of_the_features=round(float(net.score(test, truth)), 4), seconds_of_features=round(seconds, 1))
    half = len(test) // 2
    figures.add(two_halves_of_the_test_images=compared(net, test[:half], test[half:]))
    for name in given.models:
        make = MODELS[name]
        epochs = 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a GAN of one epoch is said to leave digits out
            if not given.quick:
                n = len(train) // 4
                few = make(given.quick, 2).fit(train[:n], labels[:n])
                one = 4 * float(np.diff(few.history_["seconds"])[-1])  # the second: kernels are loaded in the first
                epochs = max(1, round(given.seconds * SHARES[name] / one))
        model, seconds = seconds_of(lambda make=make, e=epochs: make(given.quick, e).fit(train, labels))
        drawn, drawing = seconds_of(lambda model=model: model.sample(n_drawn, random_state=SEED))
        found = {
            "epochs": epochs,
            "seconds_of_training": round(seconds, 1),
            f"seconds_of_{n_drawn}_samples": round(drawing, 2),
            **compared(net, test, drawn),
            "certificate": model.certificate_.meaning,
        }
        if name.startswith("energy"):
            found["log_normalizer"] = [model.log_normalizer_.tolist(), model.log_normalizer_error_.tolist()]
            found["nats_of_test_images"] = round(float(model.score(test)), 2)
        if name == "flow":
            nats = float(model.score(test))
            found["bound_in_nats_of_test_images"] = round(nats, 2)
            found["bits_a_pixel"] = round(float(-nats / np.log(2) / test[0].size), 4)
        if name == "diffusion":
            few = test[:100]
            found["bound_in_nats_of_100_test_images"] = round(float(model.score(few, truth[:100])), 2)
        figures.add(**{name: found})
        shown, order = drawn[:100], None
        if model.conditional:
            order = np.repeat(np.arange(CLASSES), 10)
            shown = model.sample(100, random_state=SEED, y=order)
        write_png(given.out / f"generative_mnist_{name}.png", np.asarray(shown, dtype=float) / 255, 10)


if __name__ == "__main__":
    main()
