"""`ShapedNet`, the base of the players and energies: what shapes their layers, and its part of an architecture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from epicycle.core._parameters import Domain
from epicycle.generative._generative_net import GENERATIVE_DEFAULTS, GenerativeArguments, GenerativeNet
from epicycle.nets.training._options import SIZES, sizes_of

SHAPE_DEFAULTS: Mapping[str, Any] = {
    "hidden_layer_sizes": (128, 128),
    "channels": (32, 64),
    **GENERATIVE_DEFAULTS,
}


class ShapeArguments(GenerativeArguments, total=False):
    """Arguments of the networks of players and energies, for those that take them as ``**shared``."""

    hidden_layer_sizes: Any
    channels: Any


class ShapedNet(GenerativeNet):
    """Base of the players and energies: networks of dense layers, and for images of convolutions."""

    _parameters: ClassVar[Mapping[str, Domain]] = {"hidden_layer_sizes": SIZES, "channels": SIZES}
    _docs: ClassVar[Mapping[str, str]] = {
        "hidden_layer_sizes": "hidden_layer_sizes : int or sequence of int, default={default}\n"
        "    Units of the hidden layers, where there are no convolutions.",
        "channels": "channels : int or sequence of int, default={default}\n"
        "    Of images: convolutions with so many channels, each at half the height and width of the one before. () "
        "looks\n    at pixels as at the columns of a table.",
    }

    hidden_layer_sizes: Any
    channels: Any

    def _shape_entries(self, rows: Any) -> dict[str, Any]:
        """The common entries, those of the layers, and the scale: images in [-1, 1], tables by moments."""
        from epicycle.generative._scale import bounds_of, scale_of

        found = self._common_architecture(rows, scaled=False)
        images = len(found["shape"]) == 3
        found["mean"], found["deviation"] = bounds_of(rows) if images else scale_of(rows)
        found["hidden"] = sizes_of(self.hidden_layer_sizes)
        found["channels"] = sizes_of(self.channels) if images else []
        return found
