"""A convolutional network for the pixels of images in the columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Unpack

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Described, Domain, NoneOr
from epicycle.core.estimator import stores_arguments
from epicycle.nets.training._options import NET_DEFAULTS, NetArguments
from epicycle.nets.vision import ConvNetClassifier


def _is_shape(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 3 and all(isinstance(n, int) and n > 0 for n in value)


class PixelNetClassifier(ConvNetClassifier):
    """A :class:`~epicycle.ConvNetClassifier` of rows that are the pixels of an image.

    Parameters
    ----------
    shape : sequence of int, default=(28, 28, 1)
        Height, width and channels of the images.
    places : sequence of int, optional
        Numbers of the pixels that the columns are, row by row; others are zero. By default the columns are all of them.
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **ConvNetClassifier._parameters,
        "shape": Described("height, width and channels", _is_shape),
        "places": NoneOr(Described("numbers of pixels", lambda value: isinstance(value, list | tuple))),
    }
    #: Its name in scripts.
    _script_name = "training.PixelNetClassifier"

    shape: Sequence[int]
    places: Sequence[int] | None

    @stores_arguments(**{**NET_DEFAULTS, "max_iter": 10, "learning_rate": "cosine"})
    def __init__(
        self,
        shape: Sequence[int] = (28, 28, 1),
        *,
        places: Sequence[int] | None = None,
        architecture: Any = "lenet",
        width: float = 1.0,
        label_smoothing: float = 0.0,
        shift: float = 0.0,
        rotation: float = 0.0,
        zoom: float = 0.0,
        flip: bool = False,
        **shared: Unpack[NetArguments],
    ) -> None: ...

    def _fit_data(  # type: ignore[override]  # images, no table
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        return super()._fit_data(self._placed(X), y, sample_weight)

    def _images(self, X: Any) -> np.ndarray:
        self._check_fitted()
        return super()._images(self._placed(X))

    def _placed(self, X: Any) -> np.ndarray:
        """Rows as images."""
        rows = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float32)
        height, width, channels = self.shape
        n = height * width * channels
        places = np.arange(n) if self.places is None else np.asarray(self.places, dtype=np.int64)
        if rows.ndim != 2 or rows.shape[1] != len(places):
            raise DataError(f"X: got shape {rows.shape}; {type(self).__name__} expects rows of {len(places)} pixels")
        images = np.zeros((len(rows), n), dtype=np.float32)
        images[:, places] = rows
        return images.reshape(-1, height, width, channels)
