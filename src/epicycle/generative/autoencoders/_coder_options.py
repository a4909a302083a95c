"""The shape of the networks between rows and codes: constructor arguments, and their entries of an architecture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from epicycle.core._parameters import Choice, Described, Domain, Integer
from epicycle.generative._generative_net import GENERATIVE_DEFAULTS, GENERATIVE_PARAMETERS, GenerativeArguments
from epicycle.generative._latent_net import LatentNet

_ACTIVATIONS = ("identity", "logistic", "tanh", "relu", "gelu")
_SIZE = Integer(1)


def is_sizes(value: Any) -> bool:
    """Whether a value is a number of units, or a list of them, which may be empty."""
    several = isinstance(value, list | tuple | np.ndarray)
    return all(map(_SIZE.accepts, value)) if several else _SIZE.accepts(value)


def sizes_of(value: Any) -> list[int]:
    """The numbers of units of all layers."""
    return [int(size) for size in np.atleast_1d(np.asarray(value, dtype=np.int64))]


SIZES: Domain = Described("a positive integer, or a list of them", is_sizes)

CODER_PARAMETERS: Mapping[str, Domain] = {
    **GENERATIVE_PARAMETERS,
    "n_codes": Integer(1),
    "hidden_layer_sizes": SIZES,
    "channels": SIZES,
    "activation": Choice(*_ACTIVATIONS),
}
CODER_DEFAULTS: Mapping[str, Any] = {
    "hidden_layer_sizes": (256, 256),
    "channels": (),
    "activation": "relu",
    **GENERATIVE_DEFAULTS,
    "learning_rate": "cosine",
    "max_iter": 50,
}
CODER_DOCS: Mapping[str, str] = {
    **LatentNet._docs,
    "n_codes": "n_codes : int, default={default}\n    Length k of a code.",
    "hidden_layer_sizes": "hidden_layer_sizes : int or sequence of int, default={default}\n"
    "    Units of the hidden layers between a row and its code; those from the code back have the reverse order. ()\n"
    "    leaves a linear map.",
    "channels": "channels : int or sequence of int, default={default}\n"
    "    Of images: convolutions with so many channels come first, each of which halves the sides of the image, and\n"
    "    the way back ends with their transposes. () looks at pixels as at the columns of a table.",
    "activation": "activation : {'identity', 'logistic', 'tanh', 'relu', 'gelu'}, default={default}\n"
    "    What follows each hidden layer.",
}


class CoderArguments(GenerativeArguments, total=False):
    """Arguments of the networks between rows and codes, for those that take them as ``**shared``."""

    hidden_layer_sizes: Any
    channels: Any
    activation: str
