"""The shapes of the networks of players and energies: constructor arguments, and their entries of an architecture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epicycle.core._parameters import Domain
from epicycle.generative._generative_net import GENERATIVE_DEFAULTS, GenerativeArguments
from epicycle.nets.training._options import SIZES, sizes_of

SHAPE_PARAMETERS: Mapping[str, Domain] = {
    "hidden_layer_sizes": SIZES,
    "channels": SIZES,
}
SHAPE_DEFAULTS: Mapping[str, Any] = {
    "hidden_layer_sizes": (128, 128),
    "channels": (32, 64),
    **GENERATIVE_DEFAULTS,
}
SHAPE_DOCS: Mapping[str, str] = {
    "hidden_layer_sizes": "hidden_layer_sizes : int or sequence of int, default={default}\n"
    "    Units of the hidden layers, where there are no convolutions.",
    "channels": "channels : int or sequence of int, default={default}\n"
    "    Of images: convolutions with so many channels, each at half the height and width of the one before. () looks\n"
    "    at pixels as at the columns of a table.",
}


class ShapeArguments(GenerativeArguments, total=False):
    """Arguments of the networks of players and energies, for those that take them as ``**shared``."""

    hidden_layer_sizes: Any
    channels: Any


def shape_entries(model: Any, rows: Any) -> dict[str, Any]:
    """The entries of all architectures, those of the layers, and the scale: images in [-1, 1], tables by moments."""
    from epicycle.generative._scale import bounds_of, scale_of

    found: dict[str, Any] = model._common_architecture(rows, scaled=False)
    images = len(found["shape"]) == 3
    found["mean"], found["deviation"] = bounds_of(rows) if images else scale_of(rows)
    found["hidden"] = sizes_of(model.hidden_layer_sizes)
    found["channels"] = sizes_of(model.channels) if images else []
    return found
