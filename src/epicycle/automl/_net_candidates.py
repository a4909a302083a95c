"""Networks among the candidates, where PyTorch is installed.

Those of tables see the compact encoding, in which every level of a category has a column of its own: the weights of
the first layer at such a column are the embedding of the level, learnt with everything else. Those of texts see weights
of words and runs of characters, as linear models do, and those of images the pixels on one scale.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

from epicycle.automl._candidates import Axis, Family
from epicycle.automl.images._pixel_net import PixelNetClassifier
from epicycle.nets import MLPClassifier, MLPRegressor

#: Fewer rows are better left to others; of more texts the weights of all n-grams take too long.
_LEAST_ROWS, _MOST_TEXTS = 2_000, 50_000
#: Of a search: PyTorch itself takes some seconds to load.
_LEAST_SECONDS = 45.0
_TRAINING = {
    "solver": "adamw",
    "alpha": 0.01,
    "learning_rate": "cosine",
    "learning_rate_init": 2e-3,
    "batch_size": 256,
    "max_iter": 15,
    "tol": None,
}
_SPACE = {
    "learning_rate_init": Axis(3e-4, 1e-2, log=True),
    "alpha": Axis(1e-3, 1.0, log=True),
    "dropout": Axis(0.0, 0.4),
    "max_iter": Axis(5, 40, log=True, whole=True),
}
#: Of folders of images: seconds of a search at least, and images up to which there are more epochs.
_LEAST_SECONDS_OF_IMAGES, _FEW_IMAGES = 20.0, 5_000
_SPACE_OF_IMAGES = {
    "learning_rate_init": Axis(5e-4, 5e-3, log=True),
    "max_iter": Axis(5, 40, log=True, whole=True),
    "shift": Axis(0.0, 3.0),
    "rotation": Axis(0.0, 15.0),
    "zoom": Axis(0.0, 0.15),
}
_SPACE_OF_TEXTS = {
    "learning_rate_init": Axis(3e-4, 1e-2, log=True),
    "dropout": Axis(0.0, 0.7),
    "max_iter": Axis(3, 20, log=True, whole=True),
}
_SHAPES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("MLP", {"hidden_layer_sizes": (128, 64), "dropout": 0.1}),
    ("ResidualMLP", {"hidden_layer_sizes": (128, 128, 128), "dropout": 0.2, "residual": True}),
)


def net_families(facts: Any, seconds: float, asked: Any) -> tuple[Family, ...]:
    """Perceptrons of two shapes for both tasks; none without PyTorch, or where they are neither asked for nor suit."""
    if facts.image is not None and facts.task == "classification":
        return _of_images(facts, seconds, asked)
    wanted = _suits(facts) and seconds >= _LEAST_SECONDS if asked is None else _asked_for(asked)
    if not wanted or find_spec("torch") is None:
        return ()
    _load_torch()
    if facts.texts:
        starts = ({"hidden_layer_sizes": (64,), "dropout": 0.5, **_TRAINING, "max_iter": 8},)
        return (Family("MLP for texts", "classification", MLPClassifier, "linear", starts, _SPACE_OF_TEXTS),)
    return tuple(
        Family(name, task, make, "compact", ({**shape, **_TRAINING},), _SPACE, target=target, suits=_suits)
        for name, shape in _SHAPES
        for task, make, target in (("classification", MLPClassifier, ""), ("regression", MLPRegressor, "standard"))
    )


def _of_images(facts: Any, seconds: float, asked: Any) -> tuple[Family, ...]:
    """Convolutional networks of two shapes over the pixels of images."""
    wanted = seconds >= _LEAST_SECONDS_OF_IMAGES if asked is None else _asked_for(asked, ("ConvNet",))
    if not wanted or find_spec("torch") is None:
        return ()
    _load_torch()
    shape = list(facts.image)
    epochs = 12 if facts.n > _FEW_IMAGES else 30
    shared = {"shape": shape, "batch_size": 32, "learning_rate_init": 2e-3, "warmup": 0.1, "max_iter": epochs}
    starts = ({"architecture": "lenet", "width": 0.5, **shared}, {"architecture": "resnet", "width": 0.25, **shared})
    return (Family("ConvNet", "classification", PixelNetClassifier, "even", starts, _SPACE_OF_IMAGES),)


_NAMES_OF_SHAPES = tuple(name for name, _ in _SHAPES)


def _asked_for(asked: Any, shapes: tuple[str, ...] = _NAMES_OF_SHAPES) -> bool:
    names = [name.lower() for name in ([asked] if isinstance(asked, str) else asked) if isinstance(name, str)]
    known = [shape.lower() for shape in shapes]
    return any(len(n) >= 3 and (n.startswith("mlp") or any(s.startswith(n) for s in known)) for n in names)


def _suits(facts: Any) -> bool:
    if facts.texts:
        return bool(_LEAST_ROWS <= facts.n <= _MOST_TEXTS and facts.task == "classification")
    return bool(facts.n >= _LEAST_ROWS and not facts.counts)


@cache
def _load_torch() -> None:
    """Load what a fit loads, by a fit: a time limit that ends an import would leave half a module behind."""
    MLPRegressor(hidden_layer_sizes=2, max_iter=1, tol=None, solver="adamw", random_state=0).fit(
        [[0.0], [1.0]], [0.0, 1.0]
    )
