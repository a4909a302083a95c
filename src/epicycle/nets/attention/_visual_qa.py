r"""Questions about images:  minimise  mean_i v_i l(f(x_i, q_i), y_i)  with

    f(x, q) = MLP(c, sum_s g_s, q),   c = sum_s g_s m_s,   g_s = logistic(v' tanh(A m_s + B q)),

where m_s is the vector of a cell of the image and q that of the question.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Choice, Domain, Integer, Real
from epicycle.core.estimator import MethodCard, stores_arguments
from epicycle.nets._tasks import NetClassifier
from epicycle.nets.attention._images import CHANNELS, CHANNELS_DOC, cells_of, image_architecture
from epicycle.nets.attention._pairs import as_pairs
from epicycle.nets.sequences._recurrent import CELLS
from epicycle.nets.sequences._tokens import as_token_lists, build_vocabulary, encode_all
from epicycle.nets.training._options import NET_DEFAULTS, NetArguments
from epicycle.nets.vision._images import as_images


class VisualQA(NetClassifier):
    r"""Answers to questions about images.

    .. math:: f(x, q) = \mathrm{MLP}\Bigl(\sum_s g_s m_s,\ \sum_s g_s,\ q\Bigr), \qquad
              g_s = \sigma\bigl(v' \tanh(A m_s + B q)\bigr),

    where :math:`m_s` are vectors of the cells of the image, made by convolutions, and q is what a recurrent network
    makes of the question. The gates g do not add up to one, so that what is there twice counts twice. An answer is one
    of the classes.

    Parameters
    ----------
    cell : {'rnn', 'lstm', 'gru'}, default='gru'
        The unit of the network that reads the question, in both directions.
    hidden_size : int, default=64
        Units of the question in each direction, and of the gates; twice as many mix what is seen with the question.
    embedding_size : int, default=32
        Length of the vector of a word.
    n_glimpses : int, default=2
        Gates of each cell.
    dropout : float, default=0.0
        Probability with which a unit before the output is set to zero in a training step.

    Attributes
    ----------
    classes_ : ndarray of shape (n_answers,)
    vocabulary_ : list of str
        Words of the questions.
    image_shape_ : list of int
        Height, width and channels of the images.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import VisualQA
    >>> rng = np.random.default_rng(0)
    >>> X, y = [], []
    >>> for i in range(300):
    ...     image, place = np.zeros((6, 6)), rng.integers(0, 2, 2)
    ...     image[3 * place[0] + 1, 3 * place[1] + 1] = 1
    ...     X.append((image, ["is it above", "is it left"][i % 2]))
    ...     y.append("yes" if place[i % 2] == 0 else "no")
    >>> model = VisualQA(channels=[8], hidden_size=16, max_iter=20, learning_rate_init=0.01, random_state=0)
    >>> model.fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.95
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "cell": Choice(*CELLS),
        "channels": CHANNELS,
        "hidden_size": Integer(1),
        "embedding_size": Integer(1),
        "n_glimpses": Integer(1),
        "dropout": Real(0, 1, inclusive=(True, False)),
    }
    _docs: ClassVar[Mapping[str, str]] = {
        "channels": CHANNELS_DOC,
        "X": "X : list of pairs (image, question)\n"
        "    Images of one size, of shape (height, width) or (height, width, channels), and texts.",
    }
    _card = MethodCard("nets", ("F5",), ("memory",), "none")
    _module_name = "epicycle.nets.attention._image_memory.VisualQANet"

    cell: str
    channels: Any
    hidden_size: int
    embedding_size: int
    n_glimpses: int
    dropout: float
    vocabulary_: list[str]
    image_shape_: list[int]
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"input_tags.two_d_array": False}

    @stores_arguments(**{**NET_DEFAULTS, "learning_rate_init": 0.003, "batch_size": 32, "clip_norm": 1.0})
    def __init__(
        self,
        cell: str = "gru",
        *,
        channels: Any = (16, 32),
        hidden_size: int = 64,
        embedding_size: int = 32,
        n_glimpses: int = 2,
        dropout: float = 0.0,
        **shared: Unpack[NetArguments],
    ) -> None: ...

    def _fit_data(  # type: ignore[override]  # pairs, no table
        self, X: Any, y: Any = None, sample_weight: Any = None
    ) -> tuple[np.ndarray, list[list[str]]]:
        name = type(self).__name__
        pictures, questions = as_pairs(X, name, "an image and a question")
        shapes = {np.shape(picture) for picture in pictures}
        if len(shapes) > 1:
            raise DataError(f"X: images of the shapes {sorted(shapes)[:3]}; {name} expects images of one size")
        images = as_images(
            np.stack([np.asarray(picture) for picture in pictures]), name, vars(self).get("image_shape_")
        )
        return images, as_token_lists(questions, "X", name, analyzer="word", lowercase=True)

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> Any:
        images, questions = self._fit_data(X, y, sample_weight)
        self.image_shape_ = list(images.shape[1:])
        target, weight = self._learn_labels(y, len(images), sample_weight)
        counted = questions if weight is None else [t for t, v in zip(questions, weight, strict=True) if v > 0]
        self.vocabulary_ = build_vocabulary(counted)
        return self._rows(images, questions, target, weight)

    def _rows(
        self,
        images: np.ndarray,
        questions: list[list[str]],
        target: np.ndarray | None = None,
        weight: np.ndarray | None = None,
    ) -> Any:
        from epicycle.nets.attention._rows import JointRows

        lengths = np.array([len(tokens) for tokens in questions])
        return JointRows([images, encode_all(questions, self.vocabulary_), lengths], target, weight)

    def _architecture(self, rows: Any) -> dict[str, Any]:
        return {
            **image_architecture(rows.columns[0], rows.weight, self.channels),
            "cell": self.cell,
            "hidden_size": int(self.hidden_size),
            "embedding_size": int(self.embedding_size),
            "n_glimpses": int(self.n_glimpses),
            "dropout": float(self.dropout),
            "n_tokens": len(self.vocabulary_),
            "n_outputs": 1 if len(self.classes_) == 2 else len(self.classes_),
        }

    def _scores(self, X: Any) -> np.ndarray:
        self._check_fitted()
        rows = self._rows(*self._fit_data(X))
        return self._outputs(self.module_, rows)

    def attention_maps(self, X: Any) -> np.ndarray:
        """Openness of the gates of the cells for a question.

        Parameters
        ----------
        X : list of pairs (image, question)

        Returns
        -------
        maps : ndarray of shape (n_samples, n_glimpses, rows, columns)
        """
        from epicycle.nets.training._prediction import outputs

        self._check_fitted()
        rows, module = self._rows(*self._fit_data(X)), self.module_
        found = outputs(module, rows, 256, lambda batch: module.attend(*batch.inputs)[1])
        return found.reshape(len(found), -1, *cells_of(self.image_shape_, self.channels))
