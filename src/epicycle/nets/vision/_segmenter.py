r"""Segmentation:  minimise  mean_i v_i l(f(x_i), y_i)  where f gives K scores for every pixel and y_i a class for each.

    cross-entropy   l = - 1/P sum_p c_{y_p} log p_{p, y_p},       p_p = softmax(f_p)
    Dice            l = 1 - 1/K' sum_k (2 sum_p p_pk y_pk + 1) / (sum_p p_pk + sum_p y_pk + 1)

over the P pixels of an image and the K' classes in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.core._parameters import AnyOf, Choice, Described, Domain, NoneOr
from epicycle.core.estimator import MethodCard, stores_arguments
from epicycle.data._target import as_weight, check_labels
from epicycle.nets.vision._map_net import MAP_DEFAULTS, MapArguments, MapNet, stacked
from epicycle.optim import Loss, Multinomial
from epicycle.stats._labels import class_weights, codes, encode_array

_LOSSES = ("cross_entropy", "dice", "both")


class Segmenter(MapNet):
    r"""Classification of every pixel of an image by a U-shaped convolutional network.

    .. math:: \min \; \frac1n \sum_i \frac{1}{P_i} \sum_p - c_{y_{ip}} \log p_{y_{ip}}(x_i),
              \qquad p = \mathrm{softmax}(f(x)) \text{ at each pixel},

    or 1 minus the mean over classes of Dice's overlap :math:`2 |A \cap B| / (|A| + |B|)` of predicted and true areas,
    or both. Images come as one array, or as a list of arrays of any sizes; each is padded to whole squares of the
    coarsest level and its answer cut again.

    Parameters
    ----------
    loss : {'cross_entropy', 'dice', 'both'}, default='cross_entropy'
    class_weight : dict, 'balanced' or None, default=None
        Factors of the classes in the cross-entropy; 'balanced' lets each class count as much as any other.
    ignore_label : label, optional
        Pixels of y with this label count for nothing.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_weight_ : ndarray of shape (n_classes,)
        The factor of each class.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import Segmenter
    >>> rng = np.random.default_rng(0)
    >>> y = np.zeros((40, 16, 16), dtype=int)
    >>> for mask, (top, left) in zip(y, rng.integers(0, 10, (40, 2))):
    ...     mask[top : top + 6, left : left + 6] = 1
    >>> X = 2.0 * y + rng.normal(size=y.shape)
    >>> model = Segmenter(channels=4, depth=2, max_iter=8, batch_size=4, learning_rate_init=0.01, random_state=0)
    >>> model.fit(X[:30], y[:30]).score(X[30:], y[30:]) > 0.7
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "loss": Choice(*_LOSSES),
        "class_weight": NoneOr(AnyOf(Choice("balanced"), Described("a dict", lambda value: isinstance(value, dict)))),
        "ignore_label": Described("a label, or None", lambda value: value is None or np.isscalar(value)),
    }
    _card = MethodCard("nets", ("F3",), ("memory",), "none")

    loss: str
    class_weight: Any
    ignore_label: Any
    classes_: Any
    class_weight_: np.ndarray

    @stores_arguments(**MAP_DEFAULTS)
    def __init__(
        self,
        loss: str = "cross_entropy",
        *,
        class_weight: Any = None,
        ignore_label: Any = None,
        **shared: Unpack[MapArguments],
    ) -> None: ...

    # ------------------------------------------------------------------------------------------- from data to rows

    def _check_targets(self, y: Any, images: list[np.ndarray]) -> list[np.ndarray]:
        name = type(self).__name__
        if not hasattr(y, "__len__") or len(y) != len(images):
            given = f"{len(y)} of them" if hasattr(y, "__len__") else type(y).__name__
            raise DataError(f"y: {name} expects a mask for each of the {len(images)} images; got {given}")
        masks = [np.asarray(mask) for mask in y]
        for i, (mask, image) in enumerate(zip(masks, images, strict=True)):
            if mask.dtype == object:
                raise DataTypeError(f"y[{i}]: {name} expects a label for each pixel as one array; got objects")
            if mask.shape != image.shape[:2]:
                raise DataError(
                    f"y[{i}]: the mask has shape {mask.shape}, and its image {image.shape[:2]}; expected a label for "
                    "each pixel"
                )
            check_labels(mask.ravel(), name)
        return masks

    def _encoded_rows(self, images: list[np.ndarray], targets: list[np.ndarray], weight: np.ndarray | None) -> Any:
        from epicycle.nets.vision._image_rows import ImageRows

        v = np.repeat(np.ones(len(targets)) if weight is None else weight, [mask.size for mask in targets])
        labels = np.concatenate([mask.ravel() for mask in targets])
        if self.ignore_label is not None:
            known = labels != self.ignore_label
            labels, v = labels[known], v[known]
            if not len(labels):
                raise DataError(f"y: all pixels have the label ignore_label={self.ignore_label!r}")
        self.classes_, totals, _ = encode_array(labels, v, type(self).__name__)
        factors = class_weights(self.class_weight, self.classes_, totals)
        self.class_weight_ = np.ones(len(self.classes_)) if factors is None else factors
        return ImageRows(images, self._coded(targets), weight, encoder=_Masks(), flip=self.flip)

    def _coded(self, masks: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Masks as numbers of classes; -1 where the label is ignored."""
        found = []
        for mask in masks:
            coded = codes(mask.ravel(), self.classes_).reshape(mask.shape)
            found.append(coded if self.ignore_label is None else np.where(mask == self.ignore_label, -1, coded))
        return found

    def _architecture(self, rows: Any) -> dict[str, Any]:
        K = len(self.classes_)
        return self._u_shape(rows, K, top=0, start=[0.0] * K)

    def _loss(self) -> Loss:
        return Multinomial()

    def _row_losses(self) -> Callable[[Any, Any], Any]:
        from epicycle.nets.vision._mask_losses import mask_losses

        return mask_losses(self.loss, self._loss(), self.class_weight_)

    def _held_out_scores(self, outputs: Any, rows: Any) -> dict[str, float]:
        truth = [rows.given[i] for i in rows.numbers()]
        found = [maps.argmax(axis=0) for maps in outputs]
        weight = None if rows.weight is None else rows.weight[rows.numbers()]
        return {"validation_score": float(np.nanmean(overlap(truth, found, len(self.classes_), weight)))}

    # ------------------------------------------------------------------------------------------- prediction

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each pixel.

        Parameters
        ----------
        X : array of shape (n_samples, height, width) or (n_samples, height, width, channels), or list of arrays

        Returns
        -------
        masks : ndarray of shape (n_samples, height, width), or of arrays where the images have several sizes
        """
        return stacked(X, [self.classes_[found] for found in self._class_numbers(self._images(X))])

    def _class_numbers(self, images: list[np.ndarray]) -> list[np.ndarray]:
        return self._maps(images, lambda scores: scores.argmax(dim=1))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, of shape (n_samples, height, width, n_classes), in the order of `classes_`."""
        found = self._maps(self._images(X), lambda scores: scores.softmax(dim=1).movedim(1, -1))
        return stacked(X, found)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The mean over classes of the overlap |A and B| / |A or B| of predicted and true areas, of all images at once.

        Parameters
        ----------
        X : array of shape (n_samples, height, width) or (n_samples, height, width, channels), or list of arrays
        y : array of shape (n_samples, height, width), or list of arrays
        sample_weight : array-like of shape (n_samples,), optional
        """
        return float(np.nanmean(self.class_overlap(X, y, sample_weight)))

    def class_overlap(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        """The overlap (intersection over union) of each class; nan for one that is neither there nor predicted."""
        images = self._images(X)
        masks = self._check_targets(y, images)
        weight = as_weight(sample_weight, len(images))
        labels = np.unique(np.concatenate([np.unique(mask) for mask in masks]))
        strange = np.setdiff1d(labels, self.classes_)
        strange = strange if self.ignore_label is None else strange[strange != self.ignore_label]
        if strange.size:
            raise DataError(f"y: holds the class {strange.tolist()[0]!r}; expected one of {self.classes_.tolist()}")
        return overlap(self._coded(masks), self._class_numbers(images), len(self.classes_), weight)


class _Masks:
    """Masks of codes, padded by -1, which is ignored."""

    def mirrored(self, target: Any, width: int) -> Any:
        return target[:, ::-1]

    def encoded(self, targets: Sequence[Any], sizes: Sequence[tuple[int, int]], shape: tuple[int, int]) -> np.ndarray:
        table = np.full((len(targets), *shape), -1, dtype=np.int64)
        for place, mask in zip(table, targets, strict=True):
            place[: mask.shape[0], : mask.shape[1]] = mask
        return table


def overlap(
    truth: Sequence[np.ndarray], found: Sequence[np.ndarray], n_classes: int, weight: np.ndarray | None
) -> np.ndarray:
    """Intersection over union of each class from codes of true (-1: ignored) and found classes of pixels."""
    counts = np.zeros((n_classes, n_classes))
    for i, (a, b) in enumerate(zip(truth, found, strict=True)):
        known = a >= 0
        pairs = np.bincount(a[known] * n_classes + b[known], minlength=n_classes**2).reshape(n_classes, n_classes)
        counts += pairs if weight is None else weight[i] * pairs
    both = np.diagonal(counts)
    either = counts.sum(axis=0) + counts.sum(axis=1) - both
    return np.asarray(np.divide(both, either, out=np.full(n_classes, np.nan), where=either > 0))
