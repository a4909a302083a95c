"""The shape of the networks between rows and codes: constructor arguments, and their entries of an architecture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epicycle.core._parameters import Choice, Domain, Integer
from epicycle.generative._generative_net import GENERATIVE_DEFAULTS, GenerativeArguments
from epicycle.nets.training._options import SIZES

_ACTIVATIONS = ("identity", "logistic", "tanh", "relu", "gelu")

CODER_PARAMETERS: Mapping[str, Domain] = {
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
