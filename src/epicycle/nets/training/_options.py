"""The choices of one training run, and the constructor arguments that say them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.core._arguments import SharedArguments
from epicycle.core._parameters import AnyOf, Boolean, Choice, Described, Domain, Integer, NoneOr, Real

#: Names of the update rules, all of them torch's.
OPTIMIZERS = ("sgd", "momentum", "adagrad", "adadelta", "rmsprop", "adam", "adamw")
SCHEDULES = ("constant", "invscaling", "adaptive", "step", "linear", "cosine")
PRECISIONS = ("full", "bfloat16", "float16")


@dataclass(frozen=True)
class TrainingOptions:
    """Options of the training of one module; every field has the meaning of the constructor argument of its name.

    `betas`, `eps`, `momentum` and `nesterov` go to the update rule. `alpha` is a penalty alpha / 2 |W|^2 on the sum of
    the losses of a batch, as scikit-learn has it, and `weight_decay` is torch's. `parts` is the number of pieces of a
    batch that are computed side by side: it has to follow from the model and the batch, never from the machine.
    `rates` are pairs (name, factor): weights whose names begin so have the learning rate times the factor.
    """

    solver: str = "adamw"
    learning_rate_init: float = 1e-3
    learning_rate: str = "constant"
    warmup: float = 0.0
    power_t: float = 0.5
    step_size: int = 30
    gamma: float = 0.1
    momentum: float = 0.9
    nesterov: bool = False
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    alpha: float = 0.0
    batch_size: int = 64
    max_iter: int = 20
    steps_per_iteration: int | None = None
    shuffle: bool = True
    tol: float | None = None
    n_iter_no_change: int = 10
    early_stopping: bool = False
    clip_norm: float | None = None
    accumulate: int = 1
    parts: int = 1
    rates: tuple[tuple[str, float], ...] = ()
    average: float | None = None
    precision: str = "full"
    compile: bool = False
    device: str = "cpu"
    deterministic: bool = False


class NetArguments(SharedArguments, total=False):
    """Arguments of every network's constructor, for those that take them as ``**shared``."""

    solver: str
    learning_rate: str
    learning_rate_init: float
    warmup: float
    weight_decay: float
    batch_size: int
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    clip_norm: float | None
    accumulate: int
    average: float | None
    precision: str
    compile: bool
    device: str
    deterministic: bool


#: Their defaults, for `stores_arguments(**NET_DEFAULTS)`; a class overrides those it has reasons to.
NET_DEFAULTS: Mapping[str, Any] = {
    "solver": "adamw",
    "learning_rate": "constant",
    "learning_rate_init": 1e-3,
    "warmup": 0.0,
    "weight_decay": 0.01,
    "batch_size": 64,
    "max_iter": 20,
    "tol": None,
    "early_stopping": False,
    "validation_fraction": 0.1,
    "n_iter_no_change": 10,
    "clip_norm": None,
    "accumulate": 1,
    "average": None,
    "precision": "full",
    "compile": False,
    "device": "cpu",
    "deterministic": False,
    "random_state": None,
    "warm_start": False,
    "verbose": 0,
}

#: The domain of `n_layers`: no network is deeper, and each layer is built before its memory is asked for.
LAYERS = Integer(1, 1024)

_SIZE = Integer(1)
_LARGE_STEP = 1e9  # floating-point operations of a step whose parts keep four threads busy


def _is_sizes(value: Any) -> bool:
    several = isinstance(value, list | tuple | np.ndarray)
    return all(map(_SIZE.accepts, value)) if several else _SIZE.accepts(value)


#: Of the units, or the channels, of several layers; there may be none.
SIZES = Described("a positive integer, or a list of them", _is_sizes)


def sizes_of(value: Any) -> list[int]:
    """The numbers of units, or of channels, of all layers."""
    return [int(size) for size in np.atleast_1d(np.asarray(value, dtype=np.int64))]


def parts_of(work: float, accumulate: int) -> int:
    """Pieces of a batch that are worth computing side by side, by the floating-point operations of a step."""
    return 1 if accumulate > 1 or work < _LARGE_STEP / 4 else 2 if work < _LARGE_STEP else 4


_DEVICE = Described(
    "'cpu', 'cuda', 'cuda:0', ... or 'auto'",
    lambda value: (
        isinstance(value, str) and (value in ("cpu", "cuda", "auto") or (value[:5] == "cuda:" and value[5:].isdigit()))
    ),
)

NET_PARAMETERS: Mapping[str, Domain] = {
    "solver": Choice(*OPTIMIZERS),
    "learning_rate": Choice(*SCHEDULES),
    "learning_rate_init": Real(0, inclusive=False),
    "warmup": Real(0),
    "weight_decay": Real(0),
    "batch_size": Integer(1),
    "tol": NoneOr(Real(0)),
    "early_stopping": Boolean(),
    "validation_fraction": Real(0, 1, inclusive=False),
    "n_iter_no_change": AnyOf(Integer(1), Described("infinity", lambda value: value == float("inf"))),
    "clip_norm": NoneOr(Real(0, inclusive=False)),
    "accumulate": Integer(1),
    "average": NoneOr(Real(0, 1, inclusive=False)),
    "precision": Choice(*PRECISIONS),
    "compile": Boolean(),
    "device": _DEVICE,
    "deterministic": Boolean(),
}

NET_DOCS: Mapping[str, str] = {
    "solver": "solver : {'sgd', 'momentum', 'adagrad', 'adadelta', 'rmsprop', 'adam', 'adamw'}, default={default}\n"
    "    The rule by which a gradient becomes a step.",
    "learning_rate": "learning_rate : {'constant', 'invscaling', 'adaptive', 'step', 'linear', 'cosine'}, "
    "default={default}\n"
    "    How the step goes on from `learning_rate_init`: fixed; divided by t^0.5 after t steps; divided by 5 whenever\n"
    "    the loss no longer improves; by 10 after every third of the epochs; down to zero along a line or half a\n"
    "    cosine.",
    "learning_rate_init": "learning_rate_init : float, default={default}\n    The step size.",
    "warmup": "warmup : float, default={default}\n"
    "    The step grows from zero over so many first steps (of a number below 1: over this share of all steps).",
    "weight_decay": "weight_decay : float, default={default}\n"
    "    Decay of the weights, not of biases and norms: apart from the gradient with 'adamw', as a penalty\n"
    "    weight_decay / 2 |W|^2 otherwise.",
    "batch_size": "batch_size : int, default={default}\n    Rows for each step.",
    "max_iter": "max_iter : int, default={default}\n    Number of epochs, passes over the rows, at most.",
    "tol": "tol : float or None, default={default}\n"
    "    An epoch has to improve the loss (with `early_stopping` the validation score) by this much. None makes all\n"
    "    epochs.",
    "early_stopping": "early_stopping : bool, default={default}\n"
    "    Whether to hold out `validation_fraction` of the rows, to end when their score no longer improves, and to\n"
    "    keep the weights of the best epoch.",
    "validation_fraction": "validation_fraction : float, default={default}\n"
    "    The share of the rows that `early_stopping` holds out.",
    "n_iter_no_change": "n_iter_no_change : int, default={default}\n"
    "    Epochs without improvement before the fit ends.",
    "clip_norm": "clip_norm : float, optional\n    Gradients longer than this are scaled to it.",
    "accumulate": "accumulate : int, default={default}\n"
    "    A batch is computed in so many parts, one after the other, which saves memory.",
    "average": "average : float, optional\n"
    "    Keep the exponential average of the weights with this decay, such as 0.999, in place of the last ones.",
    "precision": "precision : {'full', 'bfloat16', 'float16'}, default={default}\n"
    "    Type of the products: that of the weights, or a shorter one (mixed precision; 'float16' on a GPU only).",
    "compile": "compile : bool, default={default}\n"
    "    Whether to compile the module by `torch.compile`, which pays for large modules and long fits.",
    "device": "device : str, default={default}\n    'cpu', 'cuda', 'cuda:1', or 'auto' for a GPU where there is one.",
    "deterministic": "deterministic : bool, default={default}\n"
    "    On a GPU: use only kernels that give the same bits every time. On the CPU this is always so, for any number\n"
    "    of threads.",
    "label_smoothing": "label_smoothing : float, default={default}\n"
    "    The true class counts for 1 - s, and all classes share s evenly.",
    "classes_": "classes_ : ndarray of shape (n_classes,)",
    "architecture_": "architecture_ : dict\n    What `module_` is built from: numbers, texts and lists.",
    "module_": "module_ : torch.nn.Module\n    The trained module.",
}
