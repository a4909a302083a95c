"""A convolutional VAE on binarised MNIST: the bound and the importance-sampled log-likelihood of the test images.

Bits of the training images are drawn anew in every epoch, with the grey values as probabilities; those of the test
images are drawn once. The number of epochs follows from the time that one of them takes.

    python -m benchmarks.gpu.vae_mnist --data mnist.npz --out FOLDER [--seconds 120] [--epochs N] [--quick]
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.gpu._pictures import write_png
from benchmarks.gpu._report import Figures, arguments, device

SEED = 0
#: What is asked of the means over the test images, in nats.
ASKED = {"bound": -100.0, "log_likelihood": -92.0}


def model(epochs: int, quick: bool) -> Any:
    """The VAE of the figure, or a small one to try the command."""
    from epicycle import VAE

    return VAE(
        8 if quick else 40,
        decoder="bernoulli",
        binarize=True,
        channels=(4,) if quick else (32, 64),
        hidden_layer_sizes=(32,) if quick else (512,),
        batch_size=128 if quick else 256,
        learning_rate_init=2e-3,
        learning_rate="cosine",
        warmup=200,
        average=0.999,
        clip_norm=200.0,
        max_iter=epochs,
        device=device(),
        random_state=SEED,
    )


def seconds_of(work: Any) -> tuple[Any, float]:
    """(result, seconds)."""
    began = time.perf_counter()
    found = work()
    return found, time.perf_counter() - began


def main() -> None:
    """Train, measure, write."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--seconds", type=float, default=120.0, help="of training")
    parser.add_argument("--epochs", type=int, help="in place of --seconds")
    parser.add_argument("--importance", type=int, default=5000, help="draws for each test image")
    given = parser.parse_args()
    path = given.data / "mnist.npz" if given.data.is_dir() else given.data
    with np.load(path) as file:
        train, test = file["x_train"], file["x_test"]
    if given.quick:
        train, test, given.importance, given.epochs = train[:2000], test[:100], min(given.importance, 50), 2
    bits = (np.random.default_rng(SEED).random(test.shape) < test / 255).astype(np.uint8) * np.uint8(255)

    figures = Figures(given.out, "vae_mnist")
    epochs = given.epochs
    if epochs is None:
        model(1, given.quick).fit(train[:2560])  # kernels are loaded
        _, one = seconds_of(lambda: model(1, given.quick).fit(train))
        epochs = max(1, int(given.seconds / one))
        figures.add(seconds_of_an_epoch=round(one, 2))
    vae, training = seconds_of(lambda: model(epochs, given.quick).fit(train))
    figures.add(
        epochs=epochs,
        seconds_of_training=round(training, 1),
        training_bound_of_the_last_epoch=-float(vae.history_.objective[-1]),
        model=repr(vae),
        certificate=vae.certificate_.meaning,
    )
    bound, seconds = seconds_of(lambda: vae.score_samples(bits))
    figures.add(test_images=len(bits), bound=mean_and_error(bound), asked=ASKED, seconds_of_bound=round(seconds, 1))
    for draws in (min(500, given.importance), given.importance):
        found, seconds = seconds_of(lambda draws=draws: vae.log_likelihood(bits, n_importance=draws))
        key = f"log_likelihood_by_{draws}_draws"
        figures.add(**{key: mean_and_error(found), f"seconds_of_{draws}_draws": round(seconds, 1)})
    _, seconds = seconds_of(lambda: vae.sample(10_000, random_state=SEED))
    figures.add(seconds_of_10000_samples=round(seconds, 2))

    codes = np.random.default_rng(SEED).normal(size=(100, vae.n_codes))
    write_png(given.out / "vae_mnist_samples.png", np.asarray(vae.decode(codes)) / 255, 10)
    shown = np.stack([bits[:50] / 255, np.asarray(vae.reconstruct(bits[:50])) / 255], axis=1)
    write_png(given.out / "vae_mnist_reconstructions.png", shown.reshape(100, *shown.shape[2:]), 10)


def mean_and_error(nats: np.ndarray) -> dict[str, float]:
    """The mean over test images, and its standard error."""
    return {"mean": round(float(nats.mean()), 3), "standard_error": round(float(nats.std() / len(nats) ** 0.5), 3)}


if __name__ == "__main__":
    main()
