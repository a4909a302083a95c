"""Networks among the candidates, where PyTorch is installed.

Both see the linear encoding, in which every level of a category has a column of its own: the weights of the first layer
at such a column are the embedding of the level, learnt with everything else.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

from epicycle.automl._candidates import Axis, Family
from epicycle.nets import MLPClassifier, MLPRegressor

#: Fewer rows are better left to others, and are not worth the seconds that loading PyTorch takes.
_LEAST_ROWS = 2_000
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
_SHAPES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("MLP", {"hidden_layer_sizes": (128, 64), "dropout": 0.1}),
    ("ResidualMLP", {"hidden_layer_sizes": (128, 128, 128), "dropout": 0.2, "residual": True}),
)


@cache
def net_families() -> tuple[Family, ...]:
    """Perceptrons of two shapes for both tasks; none without PyTorch."""
    if find_spec("torch") is None:
        return ()
    return tuple(
        Family(name, task, make, "linear", ({**shape, **_TRAINING},), _SPACE, target=target, suits=_suits)
        for name, shape in _SHAPES
        for task, make, target in (("classification", MLPClassifier, ""), ("regression", MLPRegressor, "standard"))
    )


def _suits(facts: Any) -> bool:
    return bool(facts.n >= _LEAST_ROWS and not facts.texts and not facts.counts)
