"""Networks among the candidates, where PyTorch is installed.

Both see the compact encoding, in which every level of a category has a column of its own: the weights of the first
layer at such a column are the embedding of the level, learnt with everything else.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

from epicycle.automl._candidates import Axis, Family
from epicycle.nets import MLPClassifier, MLPRegressor

#: Fewer rows are better left to others.
_LEAST_ROWS = 2_000
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
_SHAPES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("MLP", {"hidden_layer_sizes": (128, 64), "dropout": 0.1}),
    ("ResidualMLP", {"hidden_layer_sizes": (128, 128, 128), "dropout": 0.2, "residual": True}),
)


def net_families(facts: Any, seconds: float, asked: Any) -> tuple[Family, ...]:
    """Perceptrons of two shapes for both tasks; none without PyTorch, or where they are neither asked for nor suit."""
    wanted = _suits(facts) and seconds >= _LEAST_SECONDS if asked is None else _asked_for(asked)
    if not wanted or find_spec("torch") is None:
        return ()
    _load_torch()
    return tuple(
        Family(name, task, make, "compact", ({**shape, **_TRAINING},), _SPACE, target=target, suits=_suits)
        for name, shape in _SHAPES
        for task, make, target in (("classification", MLPClassifier, ""), ("regression", MLPRegressor, "standard"))
    )


def _asked_for(asked: Any) -> bool:
    names = [name.lower() for name in ([asked] if isinstance(asked, str) else asked) if isinstance(name, str)]
    shapes = [shape.lower() for shape, _ in _SHAPES]
    return any(len(n) >= 3 and (n.startswith("mlp") or any(s.startswith(n) for s in shapes)) for n in names)


def _suits(facts: Any) -> bool:
    return bool(facts.n >= _LEAST_ROWS and not facts.texts and not facts.counts)


@cache
def _load_torch() -> None:
    """Load what a fit loads, by a fit: a time limit that ends an import would leave half a module behind."""
    MLPRegressor(hidden_layer_sizes=2, max_iter=1, tol=None, solver="adamw", random_state=0).fit(
        [[0.0], [1.0]], [0.0, 1.0]
    )
