"""Images in: arrays of shape (n, height, width) or (n, height, width, channels), checked."""

from __future__ import annotations

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


def channel_moments(images: np.ndarray, weight: np.ndarray | None) -> tuple[list[float], list[float]]:
    """Means and standard deviations of the channels, over all pixels; 1 for a channel that is constant."""
    v = np.ones(len(images)) if weight is None else weight
    n = v.sum() * images.shape[1] * images.shape[2]
    total = np.zeros(images.shape[3])
    for i in range(0, len(images), 1024):
        total += v[i : i + 1024] @ images[i : i + 1024].sum(axis=(1, 2), dtype=np.float64)
    mean = total / n
    squares = np.zeros_like(mean)
    for i in range(0, len(images), 1024):
        centred = images[i : i + 1024] - mean
        squares += v[i : i + 1024] @ (centred**2).sum(axis=(1, 2))
    deviation = np.sqrt(squares / n)
    # A channel whose spread is the rounding of its mean is constant.
    constant = deviation <= 1e-6 * np.abs(mean)
    return mean.tolist(), np.where(constant, 1.0, deviation).tolist()
