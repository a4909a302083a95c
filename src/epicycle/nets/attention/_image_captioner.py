r"""Descriptions of images by a convolutional encoder and a recurrent decoder with attention:

    minimise  - mean_i v_i sum_t log P(y_it | y_i1, ..., y_i(t-1), x_i)

with the true words before t given to the decoder; `predict` searches for the best description.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.core._parameters import Domain
from epicycle.core.estimator import MethodCard, stores_arguments
from epicycle.data._target import as_weight, require_target
from epicycle.nets.attention._images import CHANNELS, CHANNELS_DOC, cells_of, image_architecture
from epicycle.nets.attention._writers import WRITER_DEFAULTS, TextWriter, WriterArguments
from epicycle.nets.training._options import TrainingOptions, parts_of
from epicycle.nets.vision._images import as_images


class ImageCaptioner(TextWriter):
    r"""Descriptions of images, word by word, by a network that looks at a part of the image for each word.

    .. math:: s_t = \mathrm{cell}(e(y_{t-1}), s_{t-1}), \qquad a_t = \mathrm{softmax}_j\, \mathrm{score}(s_t, m_j),
              \qquad P(y_t \mid y_{<t}, x) = \mathrm{softmax}\Bigl(V \tanh W \Bigl[s_t; \sum_j a_{tj} m_j\Bigr]\Bigr),

    where the memory m has a vector for each cell of the image, made by convolutions. Images come as (n, height, width)
    or (n, height, width, channels), bytes or floats; the channels are standardised.

    Attributes
    ----------
    target_vocabulary_ : list of str
        Words of the descriptions.
    image_shape_ : list of int
        Height, width and channels of the images.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import ImageCaptioner
    >>> rng = np.random.default_rng(0)
    >>> X, y = np.zeros((400, 8, 8)), []
    >>> for image in X:
    ...     top, left = rng.integers(0, 2, 2)
    ...     image[4 * top + 1 : 4 * top + 3, 4 * left + 1 : 4 * left + 3] = 1
    ...     y.append(f"a square {['above', 'below'][top]} on the {['left', 'right'][left]}")
    >>> settings = {"hidden_size": 16, "max_iter": 20, "batch_size": 16, "learning_rate_init": 0.02}
    >>> model = ImageCaptioner(channels=[8], **settings, random_state=0)
    >>> model.fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.9
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {"channels": CHANNELS}
    _card = MethodCard("nets", ("F5",), ("memory",), "none")
    _module_name = "epicycle.nets.attention._image_memory.CaptionNet"
    _docs: ClassVar[Mapping[str, str]] = {
        "channels": CHANNELS_DOC,
        "X": "X : array of shape (n_samples, height, width) or (n_samples, height, width, channels)\n    Images.",
        "y": "y : list of str, or of lists of str\n    The description of each of them.",
        "predict_returns": "texts : list of str, or of lists of str",
    }

    channels: Any
    image_shape_: list[int]
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"input_tags.two_d_array": False, "input_tags.three_d_array": True}

    @stores_arguments(**{**WRITER_DEFAULTS, "analyzer": "word"})
    def __init__(
        self,
        attention: str | None = "additive",
        cell: str = "gru",
        *,
        channels: Any = (16, 32),
        **shared: Unpack[WriterArguments],
    ) -> None: ...

    def _fit_data(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:  # type: ignore[override]
        return as_images(X, type(self).__name__)

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> Any:
        require_target(y, type(self).__name__)
        images = self._fit_data(X, y, sample_weight)
        weight = as_weight(sample_weight, len(images))
        targets = self._learn_targets(y, len(images), weight)
        self.image_shape_ = list(images.shape[1:])
        return self._rows(images, targets, weight)

    @staticmethod
    def _rows(images: np.ndarray, targets: Sequence[np.ndarray] | None, weight: np.ndarray | None = None) -> Any:
        from epicycle.nets.attention._rows import JointRows

        return JointRows([images] if targets is None else [images, targets], None, weight)

    def _source_rows(self, X: Any, targets: Sequence[np.ndarray] | None = None) -> Any:
        self._check_fitted()
        return self._rows(as_images(X, type(self).__name__, self.image_shape_), targets)

    def _architecture(self, rows: Any) -> dict[str, Any]:
        images, targets = rows.columns
        mean_length = float(np.average([len(t) - 1 for t in targets], weights=rows.weight))
        return {**self._decoder_architecture(mean_length), **image_architecture(images, rows.weight, self.channels)}

    def _training_options(self, rows: Any) -> TrainingOptions:
        height, width, depth = self.image_shape_
        work = 0.0
        for filters in self.channels:
            work += height * width * 9 * depth * filters
            height, width, depth = -(-height // 2), -(-width // 2), filters
        return replace(super()._training_options(rows), parts=parts_of(6 * self.batch_size * work, self.accumulate))

    def _memory_places(self, batch: Any) -> list[int]:
        height, width = cells_of(self.image_shape_, self.channels)
        return [height * width] * batch.n_rows

    def attention_maps(self, X: Any, y: Any = None) -> list[np.ndarray]:
        """`attention_weights` as maps over the cells of the image.

        Parameters
        ----------
        X : array of shape (n_samples, height, width) or (n_samples, height, width, channels)
        y : list of str, or of lists of str, optional
            The texts that are written; by default those of `predict`.

        Returns
        -------
        maps : list of ndarray of shape (n_tokens + 1, rows, columns)
        """
        shape = cells_of(self.image_shape_, self.channels)
        return [weights.reshape(-1, *shape) for weights in self.attention_weights(X, y)]
