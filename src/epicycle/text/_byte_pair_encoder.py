r"""Byte-pair encoding: texts as numbers of tokens, which are the bytes and what is made of them by merges.

The vocabulary starts with the 256 bytes. The pair of neighbours (a, b) that occurs most often in the pieces of the
texts becomes a token of its own, again and again; of pairs that are as frequent the first by (a, b). To encode, the
same merges are made in the same order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import TransformerMixin
from sklearn.utils._sparse import _align_api_if_sparse

from epicycle import _native
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, DataTypeError, ParameterError
from epicycle.core._parameters import Described, Domain, Integer, NoneOr
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments
from epicycle.data._documents import Documents

#: Runs of letters, of digits, and of other characters, each with the space before it; runs of white space, of which
#: the last space goes with the word after it. Every character is in a piece.
PIECES = r" ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+"
_N_BYTES = 256


def _is_pattern(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        return re.compile(value).groups == 0
    except re.error:
        return False


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(text, str) and text for text in value)


class BytePairEncoder(TransformerMixin, Estimator, auto_wrap_output_keys=None):  # type: ignore[misc]  # untyped
    r"""Tokens learnt from texts: frequent words become one token, rare ones a few, and any text can be written.

    .. math:: (a, b)_m = \operatorname{arg\,max}_{(a, b)} \#\{\text{places where } a \text{ is followed by } b\},
              \qquad a\,b \to 256 + m,

    over the bytes of the texts in UTF-8, one merge after another, within pieces (words with the space before them, by
    default). `encode` and `decode` go from text to numbers and back without loss; `transform` counts the tokens of
    each document.

    Parameters
    ----------
    vocab_size : int, default=1000
        Tokens at most: the 256 bytes, the merges, and `special_tokens`.
    min_frequency : int, default=2
        A pair that occurs less often is not merged.
    special_tokens : sequence of str, default=()
        Texts that are one token each, and never part of another. They have the last numbers.
    pattern : str or None
        Regular expression of the pieces, over whose ends no merge reaches; what lies between two matches is a piece
        too. None takes whole texts.

    Attributes
    ----------
    n_tokens_ : int
        Tokens in the vocabulary.
    merges_ : ndarray of shape (n_merges, 2)
        The two tokens that merge m made one; it has the number 256 + m.
    frequencies_ : ndarray of shape (n_merges,)
        Number of places of each pair when it was merged.
    tokens_ : list of bytes
        What each token stands for.

    Examples
    --------
    >>> from epicycle import BytePairEncoder
    >>> encoder = BytePairEncoder(vocab_size=270).fit(["low lower lowest", "new newer newest"])
    >>> encoder.encode("slower").tolist()
    [115, 257, 262]
    >>> [encoder.tokens_[i] for i in encoder.encode("slower")]
    [b's', b'lo', b'wer']
    >>> encoder.decode(encoder.encode("slow 🙂 naïve"))
    'slow 🙂 naïve'
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "vocab_size": Integer(_N_BYTES),
        "min_frequency": Integer(1),
        "special_tokens": Described("a list of texts that are not empty", _are_texts),
        "pattern": NoneOr(Described("a regular expression without groups", _is_pattern)),
    }
    _docs: ClassVar[dict[str, str]] = {
        "X": "X : iterable of str\n"
        "    A list, an array, a column of a frame, an Arrow array, a scan of one column of text,\n"
        "    :func:`~epicycle.text.read_lines`, or an iterator.",
        "fit_X": "X : iterable of str\n    As in `transform`.",
        "fit_y": "y : ignored",
    }
    _card: ClassVar[MethodCard] = MethodCard("text", ("F6",), ("memory", "files"), "none")

    vocab_size: int
    min_frequency: int
    special_tokens: Sequence[str]
    pattern: str | None

    n_tokens_: int
    merges_: np.ndarray
    frequencies_: np.ndarray
    #: The merges that a compiled encoder was made from, and the encoder; not in files or copies.
    _built: tuple[np.ndarray, Any]
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"input_tags.string": True, "input_tags.two_d_array": False}

    @stores_arguments
    def __init__(
        self,
        vocab_size: int = 1000,
        *,
        min_frequency: int = 2,
        special_tokens: Sequence[str] = (),
        pattern: str | None = PIECES,
    ) -> None: ...

    # ------------------------------------------------------------------------------------------- learning

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the merges from texts."""
        documents = self._fit_data(X)
        n_merges = int(self.vocab_size) - _N_BYTES - len(self.special_tokens)
        if n_merges < 0 or len(set(self.special_tokens)) < len(self.special_tokens):
            raise ParameterError(
                f"special_tokens={list(self.special_tokens)!r}: expected different texts, and room for them beside "
                f"{_N_BYTES} bytes in vocab_size={self.vocab_size}"
            )
        counts: Counter[str] = Counter()
        first = 0
        for batch in documents.batches():
            for text in _checked(batch, first):
                counts.update(piece for piece in self._pieces(text) if piece not in self.special_tokens)
            first += len(batch)
        if not counts:
            raise DataError(f"X: {first} documents without a character; expected text to learn from")
        pieces = sorted(counts)
        merges, frequencies, tokens = _native.text.learn_pairs(
            pieces, np.array([counts[piece] for piece in pieces], dtype=np.int64), n_merges, int(self.min_frequency)
        )
        self.merges_, self.frequencies_ = merges, frequencies
        self.n_tokens_ = _N_BYTES + len(merges) + len(self.special_tokens)
        claim = (
            f"greedy: each of {len(merges)} merges took the most frequent pair, and {tokens[0]} bytes became "
            f"{tokens[-1]} tokens; that no other vocabulary of this size makes fewer is not claimed"
        )
        self._conclude_directly(
            Certificate("none", 0.0, 0.0, claim),
            objective=float(tokens[-1]),
            bytes=float(tokens[0]),
            pieces=float(len(pieces)),
        )
        return self

    def _fit_data(self, X: Any, *_: Any, **__: Any) -> Any:
        return Documents(X)

    # ------------------------------------------------------------------------------------------- from text and back

    def encode(self, X: Any) -> Any:
        """The tokens of a text, or of each of several.

        Parameters
        ----------
        X : str, or iterable of str

        Returns
        -------
        ndarray of shape (n_tokens,), or list of such arrays
        """
        self._check_fitted()
        if isinstance(X, str):
            return self._encoded([X])[0]
        found: list[np.ndarray] = []
        for batch in Documents(X).batches():
            found += self._encoded(_checked(batch, len(found)))
        return found

    def decode(self, ids: Any, errors: str = "replace") -> Any:
        """The text of tokens, or of each of several sequences of them.

        Parameters
        ----------
        ids : array-like of int, or iterable of such arrays
        errors : {'replace', 'ignore', 'strict'}, default='replace'
            What happens to bytes that are no characters: tokens in an order that no text has.

        Returns
        -------
        str, or list of str
        """
        self._check_fitted()
        if errors not in ("replace", "ignore", "strict"):
            raise ParameterError(f"errors={errors!r}; expected 'replace', 'ignore' or 'strict'")
        tokens = self.tokens_
        if isinstance(ids, np.ndarray) and ids.ndim == 1 and ids.dtype != object:
            return _decoded(ids, tokens, errors)
        several = list(ids)
        if several and not isinstance(several[0], int | np.integer):
            return [_decoded(np.asarray(one), tokens, errors) for one in several]
        return _decoded(np.asarray(several, dtype=np.int64), tokens, errors)

    def transform(self, X: Any) -> Any:
        """Count the tokens of each document.

        Returns
        -------
        sparse matrix of shape (n_samples, n_tokens_)
        """
        self._check_fitted()
        rows = self.encode([X] if isinstance(X, str) else X)
        start = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
        columns = np.concatenate([np.empty(0, np.int32), *rows])
        counts = sp.csr_array((np.ones(len(columns), np.int64), columns, start), (len(rows), self.n_tokens_))
        counts.sum_duplicates()
        return _align_api_if_sparse(counts)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        r"""The tokens as texts, in the order of the columns; bytes that are no characters as ``\xe2``.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of shape (n_tokens_,)
        """
        self._check_fitted()
        return np.array([token.decode("utf-8", "backslashreplace") for token in self.tokens_], dtype=object)

    @property
    def tokens_(self) -> list[bytes]:
        """The text that each token stands for, by its number."""
        self._check_fitted()
        tokens = [bytes([i]) for i in range(_N_BYTES)]
        for a, b in self.merges_.tolist():
            tokens.append(tokens[a] + tokens[b])
        return tokens + [text.encode("utf-8", "surrogatepass") for text in self.special_tokens]

    def __sklearn_is_fitted__(self) -> bool:
        return "merges_" in vars(self)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_built", None)
        return state

    # ------------------------------------------------------------------------------------------- pieces

    def _pieces(self, text: str) -> Iterator[str]:
        """The pieces of a text, special tokens among them."""
        if not self.special_tokens:
            yield from _split(text, self.pattern)
            return
        longest_first = sorted(self.special_tokens, key=len, reverse=True)
        for i, part in enumerate(re.split(f"({'|'.join(map(re.escape, longest_first))})", text)):
            if i % 2:  # what re.split caught: a special token
                yield part
            else:
                yield from _split(part, self.pattern)

    def _encoded(self, texts: Sequence[str]) -> list[np.ndarray]:
        built = vars(self).get("_built")
        if built is None or built[0] is not self.merges_:
            self._built = built = self.merges_, _native.text.PairEncoder(np.asarray(self.merges_, dtype=np.int32))
        first_special = self.n_tokens_ - len(self.special_tokens)
        special = {text: first_special + i for i, text in enumerate(self.special_tokens)}
        pieces: list[str] = []
        ends: list[int] = []
        for text in texts:
            pieces.extend(self._pieces(text))
            ends.append(len(pieces))
        places = [i for i, piece in enumerate(pieces) if piece in special] if special else []
        numbers = [special[pieces[i]] for i in places]
        for i in places:
            pieces[i] = ""
        ids, start = _native.text.encode_pairs(built[1], pieces)
        if places:
            ids = np.insert(ids, start[places], numbers)
            start = start + np.searchsorted(places, np.arange(len(start)))
        return np.split(ids, start[ends[:-1]]) if ends else []


def _split(text: str, pattern: str | None) -> Iterable[str]:
    """The matches of a pattern and what lies between them: together they are the text."""
    if pattern is None or not text:
        return [text] if text else []
    pieces = re.findall(pattern, text)
    if sum(map(len, pieces)) == len(text):
        return (piece for piece in pieces if piece)
    return _with_gaps(text, pattern)


def _with_gaps(text: str, pattern: str) -> Iterator[str]:
    at = 0
    for match in re.finditer(pattern, text):
        if match.start() > at:
            yield text[at : match.start()]
        if match.group():
            yield match.group()
        at = match.end()
    if at < len(text):
        yield text[at:]


def _checked(texts: Sequence[Any], first: int) -> Sequence[str]:
    """Documents that are all texts."""
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataTypeError(f"X: document {first + i} is of type {type(text).__name__}; expected str")
    return texts


def _decoded(ids: np.ndarray, tokens: list[bytes], errors: str) -> str:
    if ids.ndim != 1 or (len(ids) and ids.dtype.kind not in "iu"):
        raise DataTypeError(f"ids: an array of shape {ids.shape} and type {ids.dtype}; expected integers in a row")
    if len(ids) and not (ids.min() >= 0 and ids.max() < len(tokens)):
        wrong = ids[(ids < 0) | (ids >= len(tokens))][0]
        raise DataError(f"ids: {wrong} is no token; expected numbers from 0 to {len(tokens) - 1}")
    data = b"".join([tokens[i] for i in ids.tolist()])
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", errors)
