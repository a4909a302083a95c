"""Images of one size or of several as rows, with a target for every image that is drawn when its batch is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import torch

from epicycle.core._random import stream
from epicycle.nets.training._batches import IndexedRows, MiniBatch
from epicycle.nets.training._prediction import outputs

#: Pixels that go through a network at once in prediction.
_PIXELS = 1 << 20


class Targets(Protocol):
    """A function that turns what belongs to an image into a tensor."""

    def mirrored(self, target: Any, width: int) -> Any:
        """The target of an image of this width that is mirrored, left and right."""

    def encoded(self, targets: Sequence[Any], sizes: Sequence[tuple[int, int]], shape: tuple[int, int]) -> np.ndarray:
        """Targets of images of these (height, width), as one array for a batch that is padded to `shape`."""


class ImageRows(IndexedRows):
    """Images whose batches are padded to their largest height and width; the border is repeated.

    Parameters
    ----------
    images : list of ndarray of shape (height, width, channels)
    targets : list, optional
        What belongs to each image.
    weight : ndarray of shape (n_rows,), optional
    encoder : Targets, optional
    flip : bool, default=False
        Whether training images are mirrored with probability 1/2, their targets with them.
    """

    def __init__(
        self,
        images: list[np.ndarray],
        targets: list[Any] | None = None,
        weight: np.ndarray | None = None,
        *,
        encoder: Targets | None = None,
        flip: bool = False,
    ) -> None:
        super().__init__(len(images), None, weight)
        self.images, self.given, self.encoder, self.flip = images, targets, encoder, flip

    def numbers(self) -> np.ndarray:
        """The numbers of the rows, in order."""
        return np.arange(len(self.images)) if self.chosen is None else self.chosen

    def take(self, rows: np.ndarray | slice) -> tuple[torch.Tensor, ...]:
        return (torch.from_numpy(_padded([self.images[i] for i in self.numbers()[rows]])),)

    def epoch(self, batch_size: int, epoch: int, seed: int, *, shuffle: bool) -> Iterator[MiniBatch]:
        numbers = self.numbers()
        if shuffle:
            numbers = numbers[stream(seed, "epoch", epoch).permutation(len(numbers))]
        for k, start in enumerate(range(0, len(numbers), batch_size)):
            rows = numbers[start : start + batch_size]
            images = [self.images[i] for i in rows]
            mirrored = np.zeros(len(rows), dtype=bool)
            if self.flip and shuffle:
                mirrored = stream(seed, "augment", epoch, k).random(len(rows)) < 0.5
                images = [image[:, ::-1] if turn else image for image, turn in zip(images, mirrored, strict=True)]
            table = _padded(images)
            weight = None if self.weight is None else torch.from_numpy(self.weight[rows])
            yield MiniBatch((torch.from_numpy(table),), self._targets(rows, mirrored, table.shape[1:3]), weight)

    def _targets(self, rows: np.ndarray, mirrored: np.ndarray, shape: Any) -> torch.Tensor | None:
        if self.given is None or self.encoder is None:
            return None
        sizes = [self.images[i].shape[:2] for i in rows]
        targets = [
            self.encoder.mirrored(self.given[i], size[1]) if turn else self.given[i]
            for i, size, turn in zip(rows, sizes, mirrored, strict=True)
        ]
        return torch.from_numpy(self.encoder.encoded(targets, sizes, (int(shape[0]), int(shape[1]))))


def _padded(images: Sequence[np.ndarray]) -> np.ndarray:
    """Images as one array (n, height, width, channels), their last rows and columns repeated."""
    height, width = (max(image.shape[axis] for image in images) for axis in (0, 1))
    table = np.empty((len(images), height, width, images[0].shape[2]), dtype=images[0].dtype)
    for place, image in zip(table, images, strict=True):
        h, w, _ = image.shape
        place[:h, :w] = image
        place[:h, w:] = image[:, w - 1 : w]
        place[h:] = place[h - 1 : h]
    return table


def map_outputs(
    module: torch.nn.Module,
    images: Sequence[np.ndarray],
    function: Callable[[torch.Tensor], torch.Tensor] | None = None,
) -> list[np.ndarray]:
    """``module(images)``, or `function` of it, for each image: those of one size together, which need no padding."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for i, image in enumerate(images):
        groups.setdefault(image.shape, []).append(i)
    found: list[Any] = [None] * len(images)
    for shape, members in groups.items():
        at_once = max(1, min(256, _PIXELS // math.prod(shape[:2])))
        rows = ImageRows([images[i] for i in members])
        reduced = None if function is None else _after(module, function)
        for i, one in zip(members, outputs(module, rows, at_once, reduced), strict=True):
            found[i] = one
    return found


def _after(module: torch.nn.Module, function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[MiniBatch], Any]:
    return lambda batch: function(module(*batch.inputs))
