"""Shared by the classifiers that learn row by row: classes, learning from a stream, scores and labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin

from epicycle import engine
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core.estimator._estimator import fitting
from epicycle.data import ArrayData, Data
from epicycle.data._target import as_labels, require_target
from epicycle.engine._row_order import repeated
from epicycle.linear.online._base_regressor import REGRESSION_LOSSES
from epicycle.linear.online._base_sgd import StochasticModel
from epicycle.linear.online._learner import Piece, Rule, State, copy_state, pick_models, row_batches
from epicycle.optim._likelihoods import Logistic
from epicycle.optim._losses import Hinge, ModifiedHuber, Perceptron, SquaredHinge
from epicycle.stats._class_scores import choose_class, class_batch
from epicycle.stats._labels import class_weights, codes, distinct, encode_labels

# --------------------------------------------------------------------------------------------------------------------
# Classes of a stream: one model for each, and new ones at any time.
#
# One against the rest, a class that has not been seen yet has a model too: the one that learnt every row as "not
# mine". It is the same for all such classes, so one spare model, kept up with the others, stands for every class to
# come. A class that appears takes a copy of it, and from then on is what it would have been if it had been named at
# the start.


def declared_classes(classes: Any, estimator_name: str) -> np.ndarray:
    """The classes that a caller names, sorted."""
    named = as_labels(np.asarray(classes), len(classes), estimator_name=estimator_name)
    found = distinct(named)
    if len(found) < 2:
        raise DataError(f"classes: {estimator_name} needs at least 2 classes, got {found.tolist()}")
    return found


def codes_of(y: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, bool]:
    """The position of every label among `classes` as float64, and whether all of them are there."""
    found = codes(y, labels=classes)
    return found.astype(np.float64), bool((classes[found] == y).all())


def positive_codes(n_classes: int, *, spare: bool) -> np.ndarray:
    """For each model the code that is +1 for it; the spare model's is none."""
    if spare:
        return np.append(np.arange(n_classes, dtype=np.float64), -1.0)
    return np.array([1.0]) if n_classes == 2 else np.arange(n_classes, dtype=np.float64)


def grown(known: np.ndarray, classes: np.ndarray) -> list[int]:
    """For `classes` and the spare model, which model of `known` and its spare each of them is a copy of."""
    spare = len(known)
    old = {label: k for k, label in enumerate(known.tolist())}
    return [*(old.get(label, spare) for label in classes.tolist()), spare]


_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


class OnlineClassifier(ClassifierMixin, StochasticModel):  # type: ignore[misc]  # untyped mixin
    """Base of the linear classifiers that learn row by row."""

    _docs: ClassVar[Mapping[str, str]] = {
        "linear_attributes": "classes_ : ndarray of shape (n_classes,)\n"
        "coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)\n"
        "intercept_ : ndarray of shape (1,) or (n_classes,)"
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("linear_attributes",)

    #: The loss objects by name, with the parameters that they have by default.
    loss_functions: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hinge": (Hinge,),
        "log_loss": (Logistic,),
        "modified_huber": (ModifiedHuber,),
        "squared_hinge": (SquaredHinge,),
        "perceptron": (Perceptron,),
        **REGRESSION_LOSSES,
    }

    class_weight: Any

    classes_: np.ndarray
    #: Whether labels that were never seen may come, for which the last model is kept.
    _open_: bool

    def _targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[Data, np.ndarray | None, np.ndarray | None]:
        data = self._fit_data(X, y, sample_weight, target="labels")
        self.classes_, totals, data = encode_labels(data, type(self).__name__, self.n_jobs)
        self._open_ = False
        factors = class_weights(self.class_weight, self.classes_, totals)
        return data, positive_codes(len(self.classes_), spare=False), factors

    def _validation_score(self, data: ArrayData, held: np.ndarray, W: np.ndarray, b: np.ndarray) -> float:
        """Accuracy."""
        found = choose_class(np.asarray(data.X[held] @ W.T) + b, np.arange(len(self.classes_)))
        weight = None if data.weight is None else data.weight[held]
        return float(np.average(found == np.asarray(data.y)[held], weights=weight))

    # ------------------------------------------------------------------------------------------- a stream

    @fitting(incremental=True)
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows, each once, in their order: a batch gives the same model as its rows one by one.

        Parameters
        ----------
        X : array, sparse matrix, data frame, Scan or Dask collection of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels. A scan brings its own.
        classes : array-like, optional
            All classes, where they are known: the model is then a little smaller, and another label is an error.
            Without it, labels that were not seen before are added to the model.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight v is learnt as v rows.
        """
        for _ in self._learn_stream(X, y, classes, sample_weight, scored=False):
            pass
        return self

    @fitting(incremental=True)
    def _predict_then_learn(self, X: Any, y: Any) -> np.ndarray:
        """partial_fit, and what each row would have been called just before it was learnt; no label may be new."""
        labels = []
        for scores in self._learn_stream(X, y, None, None, scored=True):
            labels.append(choose_class(scores[:, self._models()], self.classes_))
        return np.concatenate(labels)

    def _learn_stream(self, X: Any, y: Any, classes: Any, sample_weight: Any, *, scored: bool) -> Iterator[np.ndarray]:
        """Learn, batch after batch; gives the scores of the rows before they were learnt where `scored`."""
        rule = self._stream_rule()
        if self.class_weight == "balanced":
            raise ParameterError(
                "class_weight 'balanced' is not supported for partial_fit. In order to use 'balanced' weights, use "
                "compute_class_weight('balanced', classes=classes, y=y). In place of y you can use a large enough "
                "sample of the full training set target to properly estimate the class frequency distributions. Pass "
                "the resulting weights as the class_weight parameter."
            )
        total = losses = 0.0
        for X_rows, labels, weight in self._stream_rows(X, y, sample_weight):
            if weight is not None and not weight.all():  # rows of weight zero are as good as not there, labels and all
                X_rows, labels, weight = X_rows[weight > 0], labels[weight > 0], weight[weight > 0]
                if not len(labels):
                    continue
            state, codes = self._learner_for(rule, X_rows.shape[1], labels, classes)
            factors = self._stream_factors()
            if factors is not None:
                weight = factors[codes.astype(np.intp)] * (1.0 if weight is None else weight)
            piece = Piece(X_rows, codes, *repeated(weight))
            positive = positive_codes(len(self.classes_), spare=self._open_)
            scores: Any = np.empty((piece.n_shown, len(positive))) if scored or self._wants_scores() else None
            one = len(positive) == 1 and not self._open_
            try:
                losses += self._learn_piece(state, rule, piece, positive, scores, one)
            except ValueError as error:  # what the kernel found wrong is named by the checks that all data passes
                self._fit_data(X, y, sample_weight, target="labels", reset=False)
                raise DataError(f"X: {error}") from None
            total += piece.total
            self._learner_ = state
            if self._wants_scores():
                self._after_piece(piece, positive, scores)
            if scored:
                yield scores
        self._conclude_stream(losses, total)
        self._after_stream(weighted=sample_weight is not None or self.class_weight is not None)

    def _after_stream(self, *, weighted: bool) -> None:
        """Attributes that follow from the learner after a call of `partial_fit`."""

    def _stream_factors(self) -> np.ndarray | None:
        """The weights of the classes seen so far; those of classes to come wait."""
        spec = self.class_weight
        if spec is not None and self._open_:
            known = set(self.classes_.tolist())
            spec = {label: weight for label, weight in spec.items() if label in known}
        return class_weights(spec, self.classes_, np.ones(len(self.classes_)))

    def _wants_scores(self) -> bool:
        """Whether `_after_piece` is to be called."""
        return False

    def _after_piece(self, piece: Piece, positive: np.ndarray, scores: np.ndarray) -> None:
        """Keep more of the rows just learnt, from the scores that they had before; nothing by default."""

    def _after_growth(self, columns: list[int]) -> None:
        """New classes came: the models are now copies of those in `columns`."""

    def _stream_rows(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """(X, labels, weight) of every batch. CSR rows that need no conversion are checked while they are learnt."""
        known = getattr(self, "n_features_in_", None)
        if sp.issparse(X) and sample_weight is None and not hasattr(self, "feature_names_in_") and _is_plain(X, known):
            require_target(y, type(self).__name__)
            self.n_features_in_ = X.shape[1]
            self.__dict__.setdefault("_float_", str(X.dtype))
            yield X, as_labels(y, X.shape[0], estimator_name=type(self).__name__), None
            return
        data = self._fit_data(X, y, sample_weight, target="labels", reset=known is None)
        self.__dict__.setdefault("_float_", str(data.dtype))
        for batch in row_batches(data):
            yield batch.X, np.asarray(batch.y), batch.weight

    def _learner_for(self, rule: Rule, p: int, labels: np.ndarray, classes: Any) -> tuple[State, np.ndarray]:
        """A copy of the learner that knows these labels, and their codes."""
        name = type(self).__name__
        if not hasattr(self, "_learner_"):
            self._open_ = classes is None
            self.classes_ = distinct(labels) if classes is None else declared_classes(classes, name)
            models = positive_codes(len(self.classes_), spare=self._open_)
            self._learner_ = self._first_state(rule, p, len(models))
        elif classes is not None and not self._open_ and list(self.classes_) != list(declared_classes(classes, name)):
            raise DataError(
                f"classes: `classes={np.asarray(classes).tolist()}` is not the same as on last call to partial_fit, "
                f"was: {self.classes_.tolist()}"
            )
        codes, known = codes_of(labels, self.classes_)
        if not known and not self._open_:
            strange = labels[~np.isin(labels, self.classes_)]
            raise DataError(
                f"y: holds {strange[0]!r}, which is not among the classes {self.classes_.tolist()}; begin with "
                "partial_fit without `classes` if new ones may come"
            )
        if not known:
            classes = np.union1d(self.classes_, distinct(labels))
            columns = grown(self.classes_, classes)
            state = pick_models(self._learner_, columns)
            self._after_growth(columns)
            self.classes_ = classes
            return state, codes_of(labels, classes)[0]
        return copy_state(self._learner_), codes

    # ------------------------------------------------------------------------------------------- the model

    def _models(self) -> list[int]:
        """The models that predict: that of the last class for one or two of them, otherwise one for each."""
        n = len(self.classes_)
        return list(range(n)) if n > 2 else [n - 1] if self._open_ else [0]

    def _predicts_with_last_weights(self) -> bool:
        """Whether the scores while learning are those that prediction uses, and weights play no part."""
        return not self._rule().average_from and not self._wants_scores() and self.class_weight is None

    def decision_function(self, X: Any) -> Any:
        """Scores b + W x: one a row for two classes (positive favours ``classes_[1]``), else one for each class."""
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) <= 2 else scores

    def predict(self, X: Any) -> Any:
        """The class on whose side every row lies; for more than two, that of the largest score."""
        return self._map(X, class_batch)

    def _map(self, X: Any, function: Any, *parameters: Any) -> Any:
        data: Data = self._predict_data(X)
        return engine.map(function, data, *self._linear(), self.classes_, *parameters, n_jobs=self.n_jobs)


def _is_plain(X: Any, n_features: int | None) -> bool:
    """Whether X is CSR of floats, of the right width, that the kernel can read; it looks at what is in it."""
    return (
        X.format == "csr"
        and X.ndim == 2
        and X.dtype in _FLOATS
        and 0 not in X.shape
        and X.shape[1] == (n_features or X.shape[1])
        and all(array.flags.aligned and array.flags.c_contiguous for array in (X.data, X.indices, X.indptr))
    )
