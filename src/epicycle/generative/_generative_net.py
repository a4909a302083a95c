"""`GenerativeNet`, the base of the models that draw rows:  x ~ p(x), or p(x | y) given a label.

A subclass says, beside what every network says (`nets._base`),

    _module_name, _architecture(rows)    its module, from `_common_architecture` and its own arguments
    _row_losses()                        (module, batch) -> what is minimised, of every row
    _sampled(module, n, labels)          n rows as a tensor, in the units and the layout of `batch.inputs[0]`

Rows reach a module as one tensor, a table (n, p) or images (n, height, width, channels), and with ``conditional=True``
the codes of the labels are ``batch.target``. Whatever a module draws it draws with ``generator=generator()`` of
`nets.training._randomness`: then fits resume in the same bits and samples follow from their seed.

Where a step is more than the gradient of one loss (`_own_gradients`): it sets the gradients itself, and leaves those of
the part that is not to move at None, which is how two players take turns under one optimiser; `_training_options`
gives parts rates of their own (``rates=(("critic", 2.0),)``, by the beginning of the name), and a method ``columns()``
of what it returns adds numbers to every row of the history. Chains that go on from step to step are buffers of the
module, and so in every checkpoint.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from epicycle.core._exceptions import ConvergenceError, DataError
from epicycle.core._parameters import Boolean, Domain, Integer, check_parameter
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core._threads import n_threads
from epicycle.data import ArrayData, Batch
from epicycle.data._target import as_labels, as_weight, require_target
from epicycle.engine._ordered import in_order
from epicycle.generative._row_form import as_given, images_with_gaps, is_images, row_form
from epicycle.nets._base import NetEstimator
from epicycle.nets.training._options import NET_DEFAULTS, NetArguments
from epicycle.nets.training._torch import device_of, one_thread_each
from epicycle.nets.vision._images import as_images
from epicycle.optim import Loss
from epicycle.optim._losses import Squared
from epicycle.stats._labels import LabelSet, codes, label_statistic, labels_of

if TYPE_CHECKING:
    from epicycle.nets.training._batches import MiniBatch, Rows

#: Rows that are drawn at once, each such block from a random stream of its own.
_BLOCK = 1024

GENERATIVE_DEFAULTS: Mapping[str, Any] = {**NET_DEFAULTS, "conditional": False, "weight_decay": 0.0}

_GIVEN = "X : array or data frame of shape (n_samples, n_features), or images of shape (n_samples, height, width[, c])"
GENERATIVE_DOCS: Mapping[str, str] = {
    "conditional": "conditional : bool, default={default}\n"
    "    Whether to learn the rows of each class: `fit` then needs labels y, and `sample` takes them.",
    "X": _GIVEN,
    "fit_y": "y : array-like of shape (n_samples,), optional\n    Labels, with conditional=True; ignored otherwise.",
    "n": "n : int, default={default}\n    Number of rows.",
    "label": "y : label, or array of n labels, optional\n"
    "    Of a conditional model: the classes of the rows; by default drawn in their shares.",
    "code_label": "y : label, or array of labels, optional\n    Of a conditional model: the class of the rows.",
    "sample_random_state": "random_state : int, Generator, RandomState or None, default=None\n"
    "    Seed; the same seed gives the same rows for any number of threads.",
    "sample_y": "%(label)s",
    "sample_returns": "X : array or data frame of n rows",
    "plot_samples_y": "%(label)s",
    "score_y": "y : array-like of shape (n_samples,), or a label, optional\n"
    "    Of a conditional model: labels; ignored otherwise.",
    "score_samples_y": "y : array-like of shape (n_samples,), or a label, optional\n"
    "    Of a conditional model: the density, or its bound, given these labels; by default that of the mixture over\n"
    "    all classes.",
    "score_samples_returns": "log_density : ndarray of shape (n_samples,)",
    "row_shape_": "row_shape_ : list of int\n    Shape of a row, such as [28, 28].",
    "classes_": "classes_ : ndarray of shape (n_classes,)\n    With conditional=True.",
    "class_prior_": "class_prior_ : ndarray of shape (n_classes,)\n"
    "    With conditional=True, the shares of the classes.",
}


class GenerativeArguments(NetArguments, total=False):
    """Arguments of every generative network, for those that take them as ``**shared``."""

    conditional: bool


class GenerativeNet(NetEstimator):
    """Base of the models that draw rows like those of the fit."""

    _parameters: ClassVar[Mapping[str, Domain]] = {"conditional": Boolean()}
    _docs: ClassVar[Mapping[str, str]] = GENERATIVE_DOCS
    _documented_attributes: ClassVar[tuple[str, ...]] = ("row_shape_",)
    #: Whether images are taken beside tables.
    _takes_images: ClassVar[bool] = True
    #: Whether entries may be missing (NaN).
    _takes_missing: ClassVar[bool] = False

    conditional: bool
    batch_size: int

    row_shape_: list[int]
    classes_: np.ndarray
    class_prior_: np.ndarray
    #: Shape and types of the rows of the fit.
    _form_: dict[str, Any]

    # ------------------------------------------------------------------------------------------- for subclasses

    @abstractmethod
    def _row_losses(self) -> Callable[[Any, MiniBatch], Any]:
        """(module, batch) -> the loss of every row."""

    @abstractmethod
    def _sampled(self, module: Any, n: int, labels: Any) -> Any:
        """n rows of the model as a tensor; `labels` are the codes of their classes, None without classes."""

    def _pictured(self, module: Any, n: int, labels: Any) -> Any:
        """Rows for `plot_samples`, where these are others than those of `sample`."""
        return self._sampled(module, n, labels)

    def _loss(self) -> Loss:
        return Squared()  # of reconstructions, where a subclass has no losses of its own

    def _common_architecture(self, rows: Rows, *, scaled: bool = True) -> dict[str, Any]:
        """The entries that all architectures have: shape and type of a row, number of classes, means and deviations."""
        from epicycle.generative._scale import scale_of

        shape = list(next(iter(rows.in_order(1))).inputs[0].shape[1:])
        found: dict[str, Any] = {"shape": shape, "dtype": str(np.dtype(rows.dtype)), "n_classes": self._n_classes()}
        if scaled:
            found["mean"], found["deviation"] = scale_of(rows)
        return found

    def _n_classes(self) -> int:
        """Number of classes of a conditional model, else 0."""
        return len(self.classes_) if self.conditional else 0

    # ------------------------------------------------------------------------------------------- from data to rows

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        from epicycle.nets.training._batches import ArrayRows, table_rows

        if self._takes_images and is_images(X):
            name = type(self).__name__
            images = images_with_gaps(X, name) if self._takes_missing else as_images(X, name)
            weight, target = as_weight(sample_weight, len(images)), None
            if self.conditional:
                require_target(y, name)
                labels = as_labels(y, len(images), estimator_name=name)
                seen = label_statistic(Batch(images, labels, weight))[0]
                target = codes(labels, self._learn_classes(seen))
            self._form_ = row_form(X)
            self.row_shape_ = list(self._form_["shape"])
            return ArrayRows((images,), target, weight, dtype=np.float32)
        missing: dict[str, bool] = {"check_finite": False, "missing": True} if self._takes_missing else {}
        if self.conditional:
            data = self._fit_data(X, y, sample_weight, target="labels", **missing)
            data = data.encode_target(partial(codes, labels=self._learn_classes(labels_of(data, None))))
        else:
            data = self._fit_data(X, None, sample_weight, target="none", **missing)
        self._form_ = row_form(X) if isinstance(data, ArrayData) else {"shape": [data.n_features], "dtype": "float64"}
        self.row_shape_ = [data.n_features]
        return table_rows(data)

    def _learn_classes(self, seen: LabelSet) -> np.ndarray:
        present = seen.weights > 0
        self.classes_ = seen.labels[present]
        self.class_prior_ = seen.weights[present] / seen.weights.sum()
        return self.classes_

    def _rows_of(self, X: Any, y: Any = None) -> Rows:
        """New rows, in the form of those of the fit, with the codes of their labels where these are given."""
        from epicycle.nets.training._batches import ArrayRows, table_rows

        self._check_fitted()
        shape = self.architecture_["shape"]
        if len(shape) == 3:
            images = (images_with_gaps if self._takes_missing else as_images)(X, type(self).__name__, shape)
            return ArrayRows((images,), None if y is None else self._codes(y, len(images)), dtype=np.float32)
        data = self._predict_data(X, missing=self._takes_missing)
        dtype = np.dtype(self.architecture_["dtype"])
        if y is None or not isinstance(data, ArrayData):
            return table_rows(data, dtype=dtype)
        return ArrayRows((data.X,), self._codes(y, len(data.X)), dtype=dtype)

    def _labelled_rows(self, X: Any, y: Any) -> Rows:
        """New rows, with their labels where the model is conditional."""
        rows = self._rows_of(X, y)
        if self.conditional and y is None:
            raise DataError(f"y: {type(self).__name__} is conditional; expected a label, or one for each row")
        return rows

    def _codes(self, y: Any, n: int) -> np.ndarray:
        """The codes of n labels, which one label may stand for."""
        if not self.conditional:
            raise DataError(f"y: {type(self).__name__} was fitted without labels; expected None, or conditional=True")
        labels = np.full(n, y) if np.ndim(y) == 0 else as_labels(y, n, estimator_name=type(self).__name__)
        unknown = ~np.isin(labels, self.classes_)
        if unknown.any():
            raise DataError(
                f"y: holds the class {labels[unknown].tolist()[0]!r}; expected one of {self.classes_.tolist()}"
            )
        return codes(labels, self.classes_)

    def _strata(self, rows: Any) -> np.ndarray | None:
        return np.asarray(rows.targets()) if self.conditional else None

    # ------------------------------------------------------------------------------------------- evidence

    def _validate(self, module: Any, held: Rows) -> dict[str, float]:
        from epicycle.nets.training._randomness import drawing_from

        with drawing_from(0, 0, 0, device_of(module)):  # the same draws after every iteration
            loss = self._mean_loss(module, held)
        return {"validation_loss": loss, "validation_score": -loss}

    def _bound(self, module: Any, held: Rows | None, n_looks: int) -> None:
        return None  # nothing is right or wrong

    # ------------------------------------------------------------------------------------------- work by blocks

    def _mapped(self, rows: Rows, function: Callable[[Any, MiniBatch], Any]) -> np.ndarray:
        """function(module, batch) of all rows in order, as one array."""
        pieces = rows.in_order(self._prediction_batch())
        return self._by_blocks(pieces, lambda module, batch: function(module, batch.to(device_of(module))), 0)

    def _by_blocks(self, pieces: Iterator[Any], function: Callable[[Any, Any], Any], seed: int) -> np.ndarray:
        import torch

        from epicycle.nets.training._randomness import drawing_from

        module, device = self.module_, device_of(self.module_)

        def one(numbered: tuple[int, Any]) -> np.ndarray:
            block, piece = numbered
            with one_thread_each(), torch.no_grad(), drawing_from(seed, block, 0, device):
                return np.asarray(function(module, piece).cpu())

        found: list[np.ndarray] = []
        in_order(enumerate(pieces), one, found.append, n_threads(math.inf) if device.type == "cpu" else 1)
        return found[0] if len(found) == 1 else np.concatenate(found)

    # ------------------------------------------------------------------------------------------- new rows

    def sample(self, n: int = 1, random_state: Seed = None, y: Any = None) -> Any:
        """Draw rows from the model, in the type and the shape of those of the fit."""
        return self._as_given(self._draw(n, random_state, y, self._sampled))

    def _draw(self, n: int, random_state: Seed, y: Any, draw: Callable[[Any, int, Any], Any]) -> np.ndarray:
        """draw(module, n, labels) in blocks, as one array."""
        import torch

        self._check_fitted()
        check_parameter(f"{type(self).__name__}.sample", "n", n, Integer(1))
        seed, n = seed_of(random_state), int(n)
        labels = None
        if y is not None:
            labels = self._codes(y, n)
        elif self.conditional:
            labels = stream(seed, "labels").choice(len(self.classes_), size=n, p=self.class_prior_)

        def block(module: Any, rows: tuple[int, int]) -> Any:
            first, last = rows
            classes = None if labels is None else torch.from_numpy(labels[first:last]).to(device_of(module))
            return draw(module, last - first, classes)

        drawn = self._by_blocks(((i, min(i + _BLOCK, n)) for i in range(0, n, _BLOCK)), block, seed)
        return self._finite(drawn, "drew")

    def _finite(self, rows: np.ndarray, verb: str) -> np.ndarray:
        """The rows, which have to be finite: weights of 1e8 are, and what they make of a code need not be."""
        finite = np.isfinite(rows.reshape(len(rows), -1)).all(axis=1)
        if not finite.all():
            raise ConvergenceError(
                f"{type(self).__name__} {verb} {np.count_nonzero(~finite):,} of {len(rows):,} rows with values that "
                "are not finite: the fit has diverged; a smaller learning_rate_init may help"
            )
        return rows

    def _as_given(self, rows: np.ndarray) -> Any:
        """Rows as they come out of the module, in the type and the shape of those of the fit."""
        names = getattr(self, "feature_names_in_", None)
        return as_given(rows, self._form_, None if names is None else [str(name) for name in names])

    def plot_samples(self, n: int | None = None, random_state: Seed = 0, y: Any = None, X: Any = None) -> Any:
        """A picture of rows that are drawn: images side by side, tables as pairs of their first columns.

        Parameters
        ----------
        n : int, optional
            By default 64 images, or 1,000 rows of a table.
        random_state : int, Generator, RandomState or None, default=0
        X : array or data frame, optional
            Real rows, which are shown beside (images) or below (tables) those that are drawn.

        Returns
        -------
        figure : matplotlib Figure
        """
        from epicycle.generative._pictures import samples_picture

        self._check_fitted()
        images = len(self.architecture_["shape"]) == 3
        drawn = self._draw((64 if images else 1000) if n is None else n, random_state, y, self._pictured)
        real = None if X is None else self._mapped(self._rows_of(X), lambda _module, batch: batch.inputs[0])
        names = None if images else self._names()
        return samples_picture(drawn, real, names)
