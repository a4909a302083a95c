"""Base of the networks that give a map for each image: data of any sizes, a U-shaped network, outputs by image."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Boolean, Domain, Integer
from epicycle.data._target import as_weight, require_target
from epicycle.nets._base import NetEstimator
from epicycle.nets.training._options import NET_DEFAULTS, NetArguments, TrainingOptions
from epicycle.nets.vision._images import as_image_set, channel_moments

#: A batch is computed in pieces side by side.
_PARTS, _IMAGES_OF_PART = 4, 4

MAP_PARAMETERS: Mapping[str, Domain] = {
    "channels": Integer(1),
    "depth": Integer(1, 8),
    "flip": Boolean(),
}

MAP_DEFAULTS: Mapping[str, Any] = {
    **NET_DEFAULTS,
    "channels": 16,
    "depth": 3,
    "flip": False,
    "batch_size": 16,
    "learning_rate": "cosine",
    "learning_rate_init": 3e-3,
}

MAP_DOCS: Mapping[str, str] = {
    "channels": "channels : int, default={default}\n"
    "    Channels of the finest level; each coarser one has twice as many.",
    "depth": "depth : int, default={default}\n    How often height and width are halved.",
    "flip": "flip : bool, default={default}\n"
    "    Whether training images are mirrored, left and right, with probability 1/2.",
    "n_channels_": "n_channels_ : int\n    Channels of the images.",
}


class MapArguments(NetArguments, total=False):
    """Arguments of both networks beyond those that all have."""

    channels: int
    depth: int
    flip: bool


class MapNet(NetEstimator):
    """Base of `Segmenter` and `ObjectDetector`."""

    _parameters: ClassVar[Mapping[str, Domain]] = MAP_PARAMETERS
    _docs: ClassVar[Mapping[str, str]] = MAP_DOCS
    _documented_attributes: ClassVar[tuple[str, ...]] = ("n_channels_",)
    _module_name = "epicycle.nets.vision._u_shape.UShape"

    channels: int
    depth: int
    flip: bool
    batch_size: int
    n_channels_: int
    _fixed_tags: ClassVar[Mapping[str, Any]] = {
        "input_tags.two_d_array": False,
        "input_tags.three_d_array": True,
        "target_tags.required": True,
    }

    @abstractmethod
    def _check_targets(self, y: Any, images: list[np.ndarray]) -> list[Any]:
        """The targets of each image, checked."""

    @abstractmethod
    def _encoded_rows(self, images: list[np.ndarray], targets: list[Any], weight: np.ndarray | None) -> Any:
        """Images and targets as rows; sets the classes."""

    def _fit_data(  # type: ignore[override]  # images, no table
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[list[np.ndarray], list[Any], np.ndarray | None]:
        name = type(self).__name__
        require_target(y, name)
        images = as_image_set(X, name)
        return images, self._check_targets(y, images), as_weight(sample_weight, len(images))

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> Any:
        images, targets, weight = self._fit_data(X, y, sample_weight)
        if weight is not None and not weight.all():  # images without weight are not there
            present = np.flatnonzero(weight)
            images, targets, weight = [images[i] for i in present], [targets[i] for i in present], weight[present]
        self.n_channels_ = int(images[0].shape[2])
        return self._encoded_rows(images, targets, weight)

    def _u_shape(self, rows: Any, n_outputs: int, top: int, start: list[float]) -> dict[str, Any]:
        """The architecture of a network with so many outputs at the level `top`, biases `start` in the last layer."""
        mean, deviation = channel_moments(rows.images, rows.weight)
        return {
            "mean": mean,
            "deviation": deviation,
            "levels": [self.channels * 2**level for level in range(self.depth + 1)],
            "top": top,
            "n_outputs": n_outputs,
            "start": start,
        }

    def _training_options(self, rows: Any) -> TrainingOptions:
        return replace(super()._training_options(rows), parts=min(_PARTS, max(1, self.batch_size // _IMAGES_OF_PART)))

    # ------------------------------------------------------------------------------------------- prediction

    def _prediction_batch(self) -> int:
        return 16

    def _images(self, X: Any) -> list[np.ndarray]:
        self._check_fitted()
        return as_image_set(X, type(self).__name__, self.n_channels_)

    def _maps(self, images: list[np.ndarray], function: Callable[[Any], Any] | None = None) -> list[np.ndarray]:
        """The outputs of the trained module, or a function of them, for each image."""
        from epicycle.nets.vision._image_rows import map_outputs

        return map_outputs(self.module_, images, function)

    def _outputs(self, module: Any, rows: Any) -> Any:
        from epicycle.nets.vision._image_rows import map_outputs

        return map_outputs(module, [rows.images[i] for i in rows.numbers()])

    def _module_inputs(self, X: Any) -> tuple[Any, ...]:
        import torch

        images = self._images(X)
        if len({image.shape for image in images}) > 1:
            raise DataError("X: the module takes images of one size at once")
        return (torch.from_numpy(np.stack(images)),)


def stacked(X: Any, found: list[np.ndarray]) -> np.ndarray:
    """Maps as one array where the images came as one, else as an array of arrays."""
    if (isinstance(X, np.ndarray) and X.dtype != object) or len({one.shape for one in found}) == 1:
        return np.stack(found)
    several = np.empty(len(found), dtype=object)
    several[:] = found
    return several
