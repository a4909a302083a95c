r"""Convolutional networks:  minimise  mean_i v_i l(f(x_i), y_i)  over mini-batches of images, with

    f(x) = W z_L + b,   z_l = layer_l(z_{l-1}),   z_0 = (x - mean) / deviation  of each channel,

layers being convolutions, (z * w)_{uvk} = sum_{ijc} w_{ijck} z_{u+i, v+j, c}, activations, pooling, normalisation of
batches and blocks of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import AnyOf, Boolean, Choice, Described, Domain, Real
from epicycle.core.estimator import MethodCard, fitting, stores_arguments
from epicycle.data._target import as_labels, as_weight, require_target
from epicycle.nets._tasks import NetClassifier
from epicycle.nets.training._options import NET_DEFAULTS, NetArguments, TrainingOptions
from epicycle.nets.vision._images import as_images, channel_moments
from epicycle.nets.vision._layers import ARCHITECTURES, layers_of
from epicycle.stats._labels import codes, joined_classes

#: A batch is computed in pieces side by side, where they have enough images for the means of batch norm.
_PARTS, _IMAGES_OF_PART = 4, 16
_METHODS = ("gradient", "grad_cam", "occlusion")


class ConvNetClassifier(NetClassifier):
    r"""Classification of images by a convolutional network.

    .. math:: f(x) = W z_L + b, \qquad z_l = \mathrm{layer}_l(z_{l-1}), \qquad
              (z * w)_{uvk} = \sum_{i,j,c} w_{ijck} \, z_{u+i,\,v+j,\,c} ,

    with the softmax loss (the logistic loss for two classes), trained by stochastic gradients. Images come as
    (n, height, width) or (n, height, width, channels), bytes or floats; the channels are standardised.

    Parameters
    ----------
    architecture : {'lenet', 'alexnet', 'vgg', 'inception', 'resnet'} or list of layers, default='lenet'
        A network of that shape, with as many poolings as the size of the images has room for; or layers such as
        ``["conv", 32, 3]`` (channels, side of the filters, optionally stride), ``["deformable", 32, 3]``,
        ``["max_pool", 2]``, ``["average_pool", 2]``, ``["residual", 64, 2]``, ``["inception", 32, 64, 16, 16]``,
        ``["linear", 100]``, ``["dropout", 0.5]``, "global_pool", "flatten", "batch_norm", "relu", "gelu", "tanh",
        "sigmoid". A linear layer with an output for each class follows.
    width : float, default=1.0
        Factor of all numbers of channels and units of a named architecture.
    shift : float, default=0.0
        Training images are moved by up to so many pixels in each direction, anew in every epoch.
    rotation : float, default=0.0
        They are turned by up to so many degrees.
    zoom : float, default=0.0
        They are scaled by 1 - zoom to 1 + zoom.
    flip : bool, default=False
        They are mirrored, left and right, with probability 1/2.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    image_shape_ : list of int
        Height, width and channels of the images.
    filters_ : ndarray of shape (n_filters, height, width, channels)
        Weights of the first convolution.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from epicycle import ConvNetClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X = X.reshape(-1, 8, 8)
    >>> model = ConvNetClassifier(width=0.25, max_iter=10, batch_size=16, learning_rate_init=0.003, random_state=0)
    >>> model = model.fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.9
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "architecture": AnyOf(
            Choice(*ARCHITECTURES), Described("a list of layers", lambda value: isinstance(value, list | tuple))
        ),
        "width": Real(0, 16, inclusive=(False, True)),
        "label_smoothing": Real(0, 1, inclusive=(True, False)),
        "shift": Real(0),
        "rotation": Real(0, 180),
        "zoom": Real(0, 1, inclusive=(True, False)),
        "flip": Boolean(),
    }
    _card = MethodCard("nets", ("F2",), ("memory",), "none")
    _module_name = "epicycle.nets.vision._module.conv_net"
    _kept_in_streams = ("mean", "deviation")  # the scale of the first images

    architecture: Any
    width: float
    label_smoothing: float
    shift: float
    rotation: float
    zoom: float
    flip: bool
    batch_size: int
    image_shape_: list[int]
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"input_tags.two_d_array": False, "input_tags.three_d_array": True}

    @stores_arguments(**{**NET_DEFAULTS, "max_iter": 10, "learning_rate": "cosine"})
    def __init__(
        self,
        architecture: Any = "lenet",
        *,
        width: float = 1.0,
        label_smoothing: float = 0.0,
        shift: float = 0.0,
        rotation: float = 0.0,
        zoom: float = 0.0,
        flip: bool = False,
        **shared: Unpack[NetArguments],
    ) -> None: ...

    # ------------------------------------------------------------------------------------------- from data to rows

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> Any:
        images, labels, weight = self._fit_data(X, y, sample_weight)
        self.image_shape_ = list(images.shape[1:])
        return self._rows(images, self._learn_classes(labels, weight), weight)

    def _fit_data(  # type: ignore[override]  # images, no table
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        name = type(self).__name__
        require_target(y, name)
        images = as_images(X, name)
        labels = as_labels(y, len(images), estimator_name=name)
        return images, labels, as_weight(sample_weight, len(images))

    def _rows(self, images: np.ndarray, target: np.ndarray, weight: np.ndarray | None) -> Any:
        from epicycle.nets.training._batches import ArrayRows
        from epicycle.nets.vision._augmentation import RandomAffine

        moved = self.shift > 0 or self.rotation > 0 or self.zoom > 0 or self.flip
        augment = RandomAffine(self.shift, self.rotation, self.zoom, self.flip) if moved else None
        return ArrayRows((images,), target, weight, dtype=np.float32, augment=augment)

    def _architecture(self, rows: Any) -> dict[str, Any]:
        mean, deviation = channel_moments(rows.arrays[0], rows.weight)
        height, width, _ = self.image_shape_
        return {
            "shape": self.image_shape_,
            "mean": mean,
            "deviation": deviation,
            "layers": layers_of(self.architecture, height, width, float(self.width)),
            "n_outputs": 1 if len(self.classes_) == 2 else len(self.classes_),
        }

    def _training_options(self, rows: Any) -> TrainingOptions:
        return replace(super()._training_options(rows), parts=min(_PARTS, max(1, self.batch_size // _IMAGES_OF_PART)))

    @fitting(incremental=True)
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more images, in one epoch.

        Parameters
        ----------
        X : array of shape (n_samples, height, width) or (n_samples, height, width, channels)
        y : array-like of shape (n_samples,)
        classes : array-like, optional
            All classes; the first call has to name them, unless there was a `fit` before.
        sample_weight : array-like of shape (n_samples,), optional
        """
        first = self._begins_stream(classes)
        images, labels, weight = self._fit_data(X, y, sample_weight)
        known = joined_classes(np.empty(0), classes, None if first else self.classes_)
        unknown = ~np.isin(labels, known)
        if unknown.any():
            raise DataError(f"y: holds the class {labels[unknown][0]!r}; expected one of classes={known.tolist()}")
        self.classes_, self.image_shape_ = known, list(images.shape[1:])
        self._learn_more(self._rows(images, self._targets(labels), weight))
        return self

    # ------------------------------------------------------------------------------------------- prediction

    def _images(self, X: Any) -> np.ndarray:
        self._check_fitted()
        return as_images(X, type(self).__name__, self.image_shape_)

    def _scores(self, X: Any) -> np.ndarray:
        from epicycle.nets.training._batches import ArrayRows

        images = self._images(X)
        return self._outputs(self.module_, ArrayRows((images,), dtype=np.float32))

    def _module_inputs(self, X: Any) -> tuple[Any, ...]:
        import torch

        return (torch.from_numpy(np.array(self._images(X))),)

    # ------------------------------------------------------------------------------------------- what it looks at

    @property
    def filters_(self) -> np.ndarray:
        """Weights of the first convolution, of shape (n_filters, height, width, channels)."""
        self._check_fitted()
        found = next((w for w in self._weights_.values() if w.ndim == 4), None)
        if found is None:
            raise AttributeError(f"{type(self).__name__}: the architecture has no convolution")
        return np.ascontiguousarray(found.transpose(0, 2, 3, 1))

    def activations(self, X: Any, layer: int = 1) -> np.ndarray:
        """The output of a layer for images.

        Parameters
        ----------
        X : array of shape (n_samples, height, width) or (n_samples, height, width, channels)
        layer : int, default=1
            Number of the layer in `module_`, counted from 0, which is the standardised image.

        Returns
        -------
        maps : ndarray of shape (n_samples, height, width, channels), or (n_samples, units)
        """
        from epicycle.nets.training._batches import ArrayRows

        images, module = self._images(X), self.module_
        if not isinstance(layer, int) or not -len(module) <= layer < len(module):
            raise ParameterError(f"layer={layer!r}; expected the number of one of the {len(module)} layers of module_")
        first = module[: layer % len(module) + 1]
        rows = ArrayRows((images,), dtype=np.float32)
        from epicycle.nets.training._prediction import outputs

        found = outputs(module, rows, self._prediction_batch(), lambda batch: first(*batch.inputs))
        return found.transpose(0, 2, 3, 1) if found.ndim == 4 else found

    def saliency(self, X: Any, y: Any = None, method: str = "gradient") -> np.ndarray:
        """Maps of the pixels that the score of a class depends on.

        Parameters
        ----------
        X : array of shape (n_samples, height, width) or (n_samples, height, width, channels)
        y : array-like of shape (n_samples,), optional
            The class of each image whose score is explained; by default the predicted one.
        method : {'gradient', 'grad_cam', 'occlusion'}, default='gradient'
            The size of the gradient; the last maps that are images, weighted by their mean gradient; or how far the
            score falls where a square is covered.

        Returns
        -------
        maps : ndarray of shape (n_samples, height, width)
        """
        from epicycle.nets.training._torch import one_thread_each
        from epicycle.nets.vision._saliency import explained

        if method not in _METHODS:
            raise ParameterError(f"method={method!r}; expected one of {', '.join(map(repr, _METHODS))}")
        images = self._images(X)
        labels = self.predict(images) if y is None else as_labels(y, len(images), estimator_name=type(self).__name__)
        unknown = ~np.isin(labels, self.classes_)
        if unknown.any():
            raise DataError(f"y: holds the class {labels[unknown][0]!r}; expected one of {self.classes_.tolist()}")
        numbers = codes(np.asarray(labels), self.classes_)
        with one_thread_each():
            n_outputs = int(self.architecture_["n_outputs"])
            return explained(method, self.module_, images, numbers, n_outputs, self._prediction_batch())

    def plot_filters(self) -> Any:
        """A picture of the filters of the first convolution; gives the figure."""
        from epicycle.nets.vision._pictures import filters_picture

        return filters_picture(self.filters_)

    def plot_saliency(self, X: Any, y: Any = None, method: str = "gradient") -> Any:
        """A picture of some images with the maps of `saliency` below them; gives the figure.

        Parameters
        ----------
        X : array of shape (n_samples, height, width) or (n_samples, height, width, channels)
            A few images.
        y : array-like of shape (n_samples,), optional
        method : {'gradient', 'grad_cam', 'occlusion'}, default='gradient'
        """
        from epicycle.nets.vision._pictures import saliency_picture

        images = self._images(X)
        labels = self.predict(images) if y is None else np.asarray(y)
        return saliency_picture(images, self.saliency(images, labels, method), labels)
