r"""Detection of objects:  a network gives a map of centres for each class, and near each centre the size of its box.

    minimise  mean_i v_i (1 / m_i  sum_{k, cells} focal(f_k, heat_k) + mean_{cells near centres} |f_box - box|_1)

for images with m_i objects. The answer are the peaks of the maps, without those that overlap a better one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.core._exceptions import DataError, DataTypeError, ParameterError
from epicycle.core._parameters import Described, Domain, Integer, Real
from epicycle.core.estimator import MethodCard, stores_arguments
from epicycle.data._target import as_weight, check_labels
from epicycle.nets.vision._boxes import average_precisions
from epicycle.nets.vision._detections import Detections
from epicycle.nets.vision._heat_maps import Boxes, decoded
from epicycle.nets.vision._map_net import MAP_DEFAULTS, MapArguments, MapNet
from epicycle.optim import Logistic, Loss
from epicycle.stats._labels import codes, distinct

#: Boxes below this score change no average precision that anybody would look at.
_LEAST_SCORE = 0.01
_THRESHOLDS = tuple(0.5 + 0.05 * i for i in range(10))


class ObjectDetector(MapNet):
    r"""Objects in images: their boxes and classes, by heat maps of their centres.

    .. math:: \min \; \frac1n \sum_i \Bigl( \frac{1}{m_i} \sum_{k,p} \mathrm{focal}\bigl(f_{kp}(x_i), h_{kp}\bigr)
              + \overline{\lVert f_{\mathrm{box}} - b \rVert_1} \Bigr),

    where the heat :math:`h_{kp}` is 1 at the centre of an object of class k and falls off around it, and the four
    numbers :math:`b` of a box, the place of its centre in the cell and the logarithms of its sides, are learnt near
    centres. There are no anchors: peaks of the maps are the objects, without those that overlap a better one of their
    class (non-maximum suppression).

    Parameters
    ----------
    cell : {1, 2, 4, 8, 16}, default=4
        Pixels of a side of a cell of the heat maps; two objects of one class in the same cell are taken for one.
    threshold : float, default=0.3
        `predict` gives the objects with at least this score.
    overlap : float, default=0.5
        Of two boxes of a class whose intersection over union is above this, `predict` gives the better one.
    max_objects : int, default=100
        Most objects in an image.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import ObjectDetector
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(0, 0.2, (60, 24, 24)), []
    >>> for image in X:
    ...     left, top, side = *rng.integers(0, 14, 2), rng.integers(6, 11)
    ...     image[top : top + side, left : left + side] += 1
    ...     y.append(([[left, top, left + side, top + side]], ["square"]))
    >>> model = ObjectDetector(channels=4, depth=3, max_iter=16, batch_size=4, learning_rate_init=0.01, random_state=0)
    >>> model.fit(X[:50], y[:50]).score(X[50:], y[50:]) > 0.5
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "cell": Described("1, 2, 4, 8 or 16", lambda value: isinstance(value, int) and value in (1, 2, 4, 8, 16)),
        "threshold": Real(0, 1),
        "overlap": Real(0, 1),
        "max_objects": Integer(1),
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("classes_",)
    _card = MethodCard("nets", ("F3",), ("memory",), "none")

    cell: int
    threshold: float
    overlap: float
    max_objects: int
    classes_: Any

    @stores_arguments(**MAP_DEFAULTS)
    def __init__(
        self,
        cell: int = 4,
        *,
        threshold: float = 0.3,
        overlap: float = 0.5,
        max_objects: int = 100,
        **shared: Unpack[MapArguments],
    ) -> None: ...

    # ------------------------------------------------------------------------------------------- from data to rows

    def _check_targets(self, y: Any, images: list[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
        name = type(self).__name__
        if not hasattr(y, "__len__") or len(y) != len(images):
            given = f"{len(y)} of them" if hasattr(y, "__len__") else type(y).__name__
            raise DataError(
                f"y: {name} expects a pair (boxes, labels) for each of the {len(images)} images; got {given}"
            )
        return [_boxes_of(target, i, image, name) for i, (target, image) in enumerate(zip(y, images, strict=True))]

    def _encoded_rows(self, images: list[np.ndarray], targets: list[Any], weight: np.ndarray | None) -> Any:
        from epicycle.nets.vision._image_rows import ImageRows

        labels = [labels for _, labels in targets if len(labels)]
        if not labels:
            raise DataError(
                f"y: {type(self).__name__} needs an object to learn from; no image of positive weight has one"
            )
        self.classes_ = distinct(np.concatenate(labels))
        coded = [(boxes, codes(labels, self.classes_) if len(labels) else labels) for boxes, labels in targets]
        encoder = Boxes(len(self.classes_), int(self.cell))
        return ImageRows(images, coded, weight, encoder=encoder, flip=self.flip)

    def _architecture(self, rows: Any) -> dict[str, Any]:
        K, top = len(self.classes_), int(np.log2(self.cell))
        if top > self.depth:
            raise ParameterError(
                f"cell={self.cell}: the network halves the images {self.depth} times; expected at most "
                f"{2**self.depth}, or depth={top}"
            )
        # Probabilities of about 0.1 at the start: centres are few, and the empty places would drown them.
        return {**self._u_shape(rows, K + 4, top, [-2.2] * K + [0.0] * 4), "cell": int(self.cell)}

    def _loss(self) -> Loss:
        return Logistic()  # of the heat, before its focal weights: `_row_losses` has the whole

    def _row_losses(self) -> Callable[[Any, Any], Any]:
        from epicycle.nets.vision._detection_losses import detection_losses

        return detection_losses(len(self.classes_))

    def _held_out_scores(self, outputs: Any, rows: Any) -> dict[str, float]:
        numbers = rows.numbers()
        found = self._decoded(outputs, [rows.images[i] for i in numbers], _LEAST_SCORE)
        truth = [
            (boxes, self.classes_[np.asarray(coded, dtype=np.intp)])
            for boxes, coded in (rows.given[i] for i in numbers)
        ]
        weight = None if rows.weight is None else rows.weight[numbers]
        precisions = average_precisions(truth, found, self.classes_, 0.5, weight)
        return {"validation_score": 0.0 if np.isnan(precisions).all() else float(np.nanmean(precisions))}

    # ------------------------------------------------------------------------------------------- prediction

    def _decoded(self, maps: Any, images: list[np.ndarray], threshold: float) -> list[Detections]:
        cell, overlap, most = int(self.architecture_["cell"]), float(self.overlap), int(self.max_objects)
        return [
            decoded(one, image.shape[:2], self.classes_, cell, threshold, overlap, most)
            for one, image in zip(maps, images, strict=True)
        ]

    def predict(self, X: Any) -> np.ndarray:
        """The objects in each image.

        Parameters
        ----------
        X : array of shape (n_samples, height, width) or (n_samples, height, width, channels), or list of arrays

        Returns
        -------
        found : ndarray of n_samples Detections
            Each with `boxes` (left, top, right, bottom), `labels` and `scores`, best first.
        """
        images = self._images(X)
        found = np.empty(len(images), dtype=object)
        found[:] = self._decoded(self._maps(images), images, float(self.threshold))
        return found

    def heat_maps(self, X: Any) -> list[np.ndarray]:
        """Probabilities that a centre lies in each cell, of shape (rows, columns, n_classes) for each image."""
        K = len(self.classes_) if hasattr(self, "classes_") else 0
        return self._maps(self._images(X), lambda found: found[:, :K].sigmoid().movedim(1, -1))

    def score(self, X: Any, y: Any, sample_weight: Any = None, iou: float | str = 0.5) -> float:
        """The mean over classes of the average precision.

        Parameters
        ----------
        X : array of shape (n_samples, height, width) or (n_samples, height, width, channels), or list of arrays
        y : sequence of (boxes, labels)
        sample_weight : array-like of shape (n_samples,), optional
        iou : float or '0.5:0.95', default=0.5
            Intersection over union from which a box is right; or the mean over 0.5, 0.55, ..., 0.95.
        """
        if iou != "0.5:0.95" and not (isinstance(iou, int | float) and 0 < iou <= 1):
            raise ParameterError(f"iou={iou!r}; expected a number above 0 and up to 1, or '0.5:0.95'")
        images = self._images(X)
        truth = self._check_targets(y, images)
        weight = as_weight(sample_weight, len(images))
        found = self._decoded(self._maps(images), images, _LEAST_SCORE)
        thresholds = _THRESHOLDS if isinstance(iou, str) else (float(iou),)
        counts = np.ones(len(images), dtype=bool) if weight is None else weight > 0
        present = [labels for (_, labels), there in zip(truth, counts, strict=True) if len(labels) and there]
        if not present:
            raise DataError("y: no image of positive weight has an object; average precision needs one")
        classes = distinct(np.concatenate(present))
        return float(np.mean([np.nanmean(average_precisions(truth, found, classes, t, weight)) for t in thresholds]))


def _boxes_of(target: Any, i: int, image: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Boxes (m, 4) and labels (m,) of an image, checked."""
    if hasattr(target, "boxes") and hasattr(target, "labels"):
        target = (target.boxes, target.labels)
    if not isinstance(target, tuple | list) or len(target) != 2:
        raise DataTypeError(f"y[{i}]: {name} expects a pair (boxes, labels); got {type(target).__name__}")
    try:
        boxes = np.asarray(target[0], dtype=np.float64)
    except (TypeError, ValueError):
        raise DataTypeError(f"y[{i}]: the boxes are no numbers (left, top, right, bottom)") from None
    labels = np.asarray(target[1])
    if boxes.size == 0 and labels.size == 0:
        return np.empty((0, 4)), np.empty(0, dtype=np.intp)
    if boxes.ndim != 2 or boxes.shape[1] != 4 or labels.shape != (len(boxes),):
        raise DataError(
            f"y[{i}]: expected boxes of shape (m, 4) and m labels; got shapes {boxes.shape} and {labels.shape}"
        )
    if not np.isfinite(boxes).all():
        raise DataError(f"y[{i}]: the boxes hold NaN or infinity; expected pixels")
    if (boxes[:, 2:] <= boxes[:, :2]).any():
        k = int((boxes[:, 2:] <= boxes[:, :2]).any(axis=1).argmax())
        raise DataError(
            f"y[{i}]: box {boxes[k].tolist()}; expected (left, top, right, bottom), left < right, top < bottom"
        )
    centre, (height, width) = (boxes[:, :2] + boxes[:, 2:]) / 2, image.shape[:2]
    outside = ((centre < 0) | (centre > [width, height])).any(axis=1)
    if outside.any():
        raise DataError(
            f"y[{i}]: the centre of box {boxes[outside.argmax()].tolist()} is outside of its image of width {width} "
            f"and height {height}"
        )
    check_labels(labels, name)
    return boxes, labels
