"""Images in: arrays of shape (n, height, width) or (n, height, width, channels), checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.data._numbers import require_finite

#: Most channels that the last axis is taken for: a table of wide rows is no image of many channels.
_MOST_CHANNELS = 1024


def as_images(X: Any, estimator_name: str, shape: list[int] | None = None) -> np.ndarray:
    """X as an array (n, height, width, channels) of bytes or of float32, not a copy where it is one already.

    Parameters
    ----------
    X : array-like
    estimator_name : str
        Named in errors.
    shape : list of int, optional
        (height, width, channels) of the images that the network was fitted to.
    """
    images = np.asarray(X)
    if images.dtype == object:
        raise DataTypeError(
            f"X: {estimator_name} expects images of one size as one array; got a sequence of {len(images)} objects "
            "of different shapes or kinds: scale or crop them to one size first"
        )
    if images.dtype.kind not in "buif":
        raise DataTypeError(f"X: {estimator_name} expects images as numbers; got an array of dtype {images.dtype}")
    if images.ndim not in (3, 4):
        hint = ""
        if images.ndim == 2:
            side = int(np.sqrt(images.shape[1]))
            square = side * side == images.shape[1]
            hint = f"; reshape the rows, to X.reshape(-1, {side}, {side}), say" if square else "; reshape the rows"
        raise DataError(
            f"X: {estimator_name} expects images of shape (n, height, width) or (n, height, width, channels); got "
            f"shape {images.shape}{hint}"
        )
    if images.ndim == 3:
        images = images[..., None]
    if 0 in images.shape:
        raise DataError(
            f"X: found array with 0 sample(s) or empty images (shape {images.shape}); expected at least one"
        )
    if images.shape[3] > _MOST_CHANNELS:
        raise DataError(f"X: the last axis holds the channels of a pixel; got {images.shape[3]} of them")
    if shape is not None and list(images.shape[1:]) != shape:
        raise DataError(
            f"X: the images have (height, width, channels) = {images.shape[1:]}; {estimator_name} was fitted to "
            f"{tuple(shape)}"
        )
    if images.dtype == np.uint8:
        return images
    if images.dtype.kind == "f":
        require_finite(images.reshape(len(images), -1), "X", estimator_name=estimator_name, unit="image")
        with np.errstate(over="ignore"):
            images = images.astype(np.float32, copy=False)
        require_finite(images.reshape(len(images), -1), "X", estimator_name=estimator_name, unit="image")
        return images
    return images.astype(np.float32)


def as_image_set(X: Any, estimator_name: str, channels: int | None = None) -> list[np.ndarray]:
    """X as a list of arrays (height, width, channels), of one size or of several, all bytes or all float32.

    Parameters
    ----------
    X : array-like of images of one size, or sequence of arrays of any sizes
    estimator_name : str
        Named in errors.
    channels : int, optional
        Channels of the images that the network was fitted to.
    """
    several = isinstance(X, list | tuple) or (isinstance(X, np.ndarray) and X.dtype == object)
    if several and len(X) and all(isinstance(image, np.ndarray) and image.ndim in (2, 3) for image in X):
        images = [as_images(image[None], estimator_name)[0] for image in X]
    elif several and any(isinstance(image, np.ndarray) for image in X):
        shapes = sorted({np.shape(image) for image in X})
        raise DataTypeError(
            f"X: {estimator_name} expects arrays of shape (height, width) or (height, width, channels); got shapes "
            f"{shapes[:4]}"
        )
    else:
        images = list(as_images(X, estimator_name))
    found = {image.shape[2] for image in images}
    if len(found) > 1:
        raise DataError(f"X: the images have {sorted(found)} channels; expected the same number in all of them")
    if channels is not None and found != {channels}:
        raise DataError(f"X: the images have {found.pop()} channels; {estimator_name} was fitted to {channels}")
    if any(image.dtype != np.uint8 for image in images):
        images = [image.astype(np.float32, copy=False) for image in images]
    return images


def channel_moments(
    images: np.ndarray | Sequence[np.ndarray], weight: np.ndarray | None
) -> tuple[list[float], list[float]]:
    """Means and standard deviations of the channels, over all pixels; 1 for a channel that is constant."""
    v = np.ones(len(images)) if weight is None else weight
    step = 1024 if isinstance(images, np.ndarray) else 1  # images of several sizes one by one
    pieces = [slice(i, i + step) for i in range(0, len(images), step)]
    n, total = 0.0, np.zeros(images[0].shape[-1])
    for piece in pieces:
        block = np.asarray(images[piece])
        n += v[piece].sum() * block.shape[1] * block.shape[2]
        total += v[piece] @ block.sum(axis=(1, 2), dtype=np.float64)
    mean = total / n
    squares = np.zeros_like(mean)
    for piece in pieces:
        squares += v[piece] @ ((np.asarray(images[piece]) - mean) ** 2).sum(axis=(1, 2))
    deviation = np.sqrt(squares / n)
    # A channel whose spread is the rounding of its mean is constant.
    constant = deviation <= 1e-6 * np.abs(mean)
    return mean.tolist(), np.where(constant, 1.0, deviation).tolist()
