r"""Classification of texts by a BERT that learnt from texts before:  minimise  mean_i v_i l(f(x_i), y_i),

    f(x) = W tanh(P [z_1, mean_t z_t] + b) + c,   z = the vectors that the encoder gives to the tokens of x,

over all weights, those of the encoder from where its own training ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Described, Domain, NoneOr, Real
from epicycle.core._random import seed_of
from epicycle.core.estimator import MethodCard, stores_arguments
from epicycle.data._target import require_target
from epicycle.nets._tasks import NetClassifier
from epicycle.nets.language._bert import BERT
from epicycle.nets.training._options import NET_DEFAULTS, NetArguments, TrainingOptions


def _is_bert(value: Any) -> bool:
    return isinstance(value, BERT) or (isinstance(value, FrozenEstimator) and isinstance(value.estimator, BERT))


class BERTClassifier(NetClassifier):
    r"""Classification of texts by fine-tuning a :class:`BERT`.

    .. math:: f(x) = W \tanh\bigl(P\,[z_1, \bar z] + b\bigr) + c, \qquad z = \mathrm{BERT}(x),

    with the softmax loss (the logistic loss for two classes), over the weights of the encoder too, which begin where
    its own training ended.

    Parameters
    ----------
    encoder : BERT, optional
        Fitted, perhaps to many more texts than those that have labels: its weights and its vocabulary are the
        beginning. Not fitted: it learns from the texts of the fit first, without their labels. `clone`, and with it
        cross-validation, forgets fits: ``FrozenEstimator(bert)`` keeps one. None is a small one
        that sees the texts of the fit once, ``BERT(max_iter=1)``.
    dropout : float, default=0.1
        Share of the last hidden units that are set to zero in a training step.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    encoder_ : BERT
        The encoder as it was before the labels were seen.

    Examples
    --------
    >>> from epicycle import BERT, BERTClassifier
    >>> texts = [f"{who} {what} today" for who in ("she", "he", "it") for what in ("wins", "loses", "gains", "fails")]
    >>> labels = ["good", "bad", "good", "bad"] * 3
    >>> encoder = BERT(n_layers=1, n_heads=2, d_model=32, max_iter=5, random_state=0).fit(texts)
    >>> model = BERTClassifier(encoder, max_iter=20, learning_rate_init=0.01, random_state=0).fit(texts, labels)
    >>> model.predict(["he gains", "it loses today"]).tolist()
    ['good', 'bad']
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "encoder": NoneOr(Described("a BERT, or a FrozenEstimator of one", _is_bert)),
        "dropout": Real(0, 1, inclusive=(True, False)),
        "label_smoothing": Real(0, 1, inclusive=(True, False)),
    }
    _docs: ClassVar[Mapping[str, str]] = {
        "X": "X : iterable of str\n    Texts, as the encoder takes them.",
        "fit_X": "X : iterable of str\n    Texts, as the encoder takes them.",
    }
    _card = MethodCard("nets", ("F6",), ("memory",), "none")
    _module_name = "epicycle.nets.language._modules.BERTClassifierModule"

    encoder: Any
    dropout: float
    label_smoothing: float
    batch_size: int
    encoder_: BERT
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"input_tags.string": True, "input_tags.two_d_array": False}

    @stores_arguments(**{**NET_DEFAULTS, "learning_rate": "linear", "warmup": 0.1, "clip_norm": 1.0, "max_iter": 10})
    def __init__(
        self,
        encoder: Any = None,
        *,
        dropout: float = 0.1,
        label_smoothing: float = 0.0,
        **shared: Unpack[NetArguments],
    ) -> None: ...

    # ------------------------------------------------------------------------------------------- training

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> Any:
        from epicycle.nets.training._batches import SequenceRows

        require_target(y, type(self).__name__)
        texts = self._fit_data(X)
        target, weight = self._learn_labels(y, len(texts), sample_weight)
        counted = texts if weight is None else [text for text, v in zip(texts, weight, strict=True) if v > 0]
        self.encoder_ = self._prepared(counted)
        return SequenceRows(self.encoder_._coded(texts), target, weight)

    def _fit_data(self, X: Any, *_: Any, **__: Any) -> list[Any]:  # type: ignore[override]
        given = getattr(self.encoder, "estimator", self.encoder)
        texts: list[Any] = (BERT() if given is None else given)._fit_data(X)
        return texts

    def _prepared(self, texts: list[Any]) -> BERT:
        """The encoder, which learns from the texts first unless it did before."""
        earlier = self._run.earlier.get("encoder_")
        if earlier is not None and (self.warm_start or self._resume_state() is not None):
            return earlier  # type: ignore[no-any-return]
        given = getattr(self.encoder, "estimator", self.encoder)
        if given is not None and given.__sklearn_is_fitted__():
            return given  # type: ignore[no-any-return]
        fresh: BERT = BERT(max_iter=1) if given is None else clone(given)
        if fresh.random_state is None and self.random_state is not None:
            fresh.set_params(random_state=seed_of(self.random_state))
        return fresh.fit(texts)

    def _architecture(self, rows: Any) -> dict[str, Any]:
        n_outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
        return {**self.encoder_.architecture_, "n_outputs": n_outputs, "head_dropout": float(self.dropout)}

    def _first_module(self, architecture: Mapping[str, Any], seed: int, *, stream: bool = False) -> Any:
        module = super()._first_module(architecture, seed, stream=stream)
        if not (self.warm_start and "_weights_" in self._run.earlier):
            from epicycle.nets.training._loop import as_tensors
            from epicycle.nets.training._torch import device_named
            from epicycle.nets.training._weights import load_weights

            load_weights(module.encoder, as_tensors(self.encoder_._weights_, device_named("cpu")))
        return module

    def _training_options(self, rows: Any) -> TrainingOptions:
        tokens = self.batch_size * float(np.mean(rows.lengths))
        return self.encoder_._with_parts(super()._training_options(rows), tokens)

    # ------------------------------------------------------------------------------------------- prediction

    def _scores(self, X: Any) -> np.ndarray:
        from epicycle.nets.training._batches import SequenceRows

        self._check_fitted()
        rows = self.encoder_._coded(X)
        if not rows:
            raise DataError("X: no documents; expected at least one")
        return self._outputs(self.module_, SequenceRows(rows))

    def _example_inputs(self, X: Any) -> tuple[Any, ...]:
        return self.encoder_._example_inputs(X)
