"""From a document to its terms: decoding, preprocessing, tokens, n-grams; in Python, or as a rule for the compiled way.

Both ways give the same terms. The compiled one takes whatever it knows: words by the usual patterns and n-grams of
characters. Functions of the user, other patterns and overridden methods go the Python way.
"""

from __future__ import annotations

import codecs
import os
import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from epicycle import _native
from epicycle.core._exceptions import DataError, DataFileError, DataTypeError, ParameterError
from epicycle.core._parameters import (
    AnyOf,
    Boolean,
    Callable as Function,
    Choice,
    Described,
    Domain,
    InstanceOf,
    Integer,
    NoneOr,
)
from epicycle.core.estimator._estimator import Estimator
from epicycle.data._documents import Documents
from epicycle.text._characters import character_table

WORDS = r"(?u)\b\w\w+\b"
#: Patterns that mean runs of word characters, and the length of the shortest run.
_RUNS = {WORDS: 2, r"\b\w\w+\b": 2, r"(?u)\b\w+\b": 1, r"\b\w+\b": 1, r"(?u)\w+": 1, r"\w+": 1}
_ANALYZERS = ("word", "char", "char_wb")
_SEVERAL_SPACES = re.compile(r"\s\s+")
#: What the compiled way does itself; a subclass that does it otherwise is asked.
_STEPS = (
    *("build_analyzer", "build_preprocessor", "build_tokenizer", "get_stop_words", "decode"),
    *("_word_ngrams", "_char_ngrams", "_char_wb_ngrams"),
)


def _is_encoding(name: str) -> bool:
    try:
        return bool(codecs.lookup(name))
    except LookupError:
        return False


DOMAINS: dict[str, Domain] = {
    "input": Choice("filename", "file", "content"),
    "encoding": Described("the name of an encoding", lambda value: isinstance(value, str) and _is_encoding(value)),
    "decode_error": Choice("strict", "ignore", "replace"),
    "strip_accents": NoneOr(AnyOf(Choice("ascii", "unicode"), Function())),
    "lowercase": Boolean(),
    "preprocessor": NoneOr(Function()),
    "tokenizer": NoneOr(Function()),
    "stop_words": NoneOr(AnyOf(Choice("english"), InstanceOf(list))),
    "token_pattern": NoneOr(Described("a regular expression", lambda value: isinstance(value, str))),
    "ngram_range": InstanceOf(tuple),
    "analyzer": AnyOf(Choice(*_ANALYZERS), Function()),
    "binary": Boolean(),
    "dtype": Described("a type of numbers", lambda value: np.dtype(value).kind in "biuf"),
}


def without_accents(text: str) -> str:
    """The text decomposed (NFKD), without combining characters."""
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def as_ascii(text: str) -> str:
    """The ASCII characters of the decomposed text."""
    return text if text.isascii() else unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")


_ACCENTS: dict[str, Callable[[str], str]] = {"ascii": as_ascii, "unicode": without_accents}


class NoFileError(DataTypeError, AttributeError):
    """Something that cannot be read, among open files."""


class Analysis(Estimator):
    """Base of vectorisers: the steps from a document to its terms."""

    _docs: ClassVar[dict[str, str]] = {
        "input": 'input : {"filename", "file", "content"}, default={default}\n'
        "    Whether documents are names of files, open files, or the texts themselves, as str or bytes.",
        "encoding": "encoding : str, default={default}\n    How bytes become characters.",
        "decode_error": 'decode_error : {"strict", "ignore", "replace"}, default={default}\n'
        "    What happens to bytes that are no characters.",
        "strip_accents": 'strip_accents : {"ascii", "unicode"}, callable or None, default={default}\n'
        "    Whether accents are taken off: after decomposition, keeping ASCII alone or all but combining characters.",
        "lowercase": "lowercase : bool, default={default}\n    Whether letters become lower-case ones.",
        "preprocessor": "preprocessor : callable or None, default={default}\n"
        "    A function of the text that takes the place of lower case and accents.",
        "tokenizer": "tokenizer : callable or None, default={default}\n"
        "    A function of the text that returns its tokens, in place of `token_pattern`.",
        "stop_words": 'stop_words : {"english"}, list or None, default={default}\n'
        "    Tokens that are left out before n-grams are made.",
        "token_pattern": "token_pattern : str\n"
        "    Regular expression of a token; by default runs of two and more word characters. A group is the token.",
        "ngram_range": "ngram_range : tuple of two int, default={default}\n"
        "    The least and the largest number of tokens, or characters, of a term.",
        "analyzer": 'analyzer : {"word", "char", "char_wb"} or callable, default={default}\n'
        "    Terms of words, of characters, or of the characters of each word between two spaces; or a function that\n"
        "    returns the terms of a document.",
        "binary": "binary : bool, default={default}\n    Whether counts above 1 become 1.",
        "dtype": "dtype : type\n    Of the matrix.",
        "fit_raw_documents": "raw_documents : iterable of str or bytes\n"
        "    A list, an array, a column of a frame, an Arrow array, a scan of one column of text,\n"
        "    :func:`~epicycle.text.read_lines`, or an iterator.",
        "raw_documents": "raw_documents : iterable of str or bytes\n    As in `fit`.",
        "y": "y : ignored",
        "fit_y": "y : ignored",
        **{f"build_{step}_returns": "callable" for step in ("preprocessor", "tokenizer", "analyzer")},
        "fit_transform_returns": "sparse matrix of shape (n_samples, n_features)",
        "transform_returns": "sparse matrix of shape (n_samples, n_features)",
    }

    input: str
    encoding: str
    decode_error: str
    strip_accents: Any
    lowercase: bool
    preprocessor: Any
    tokenizer: Any
    stop_words: Any
    token_pattern: str | None
    ngram_range: tuple[int, int]
    analyzer: Any
    n_jobs: int | None
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"input_tags.string": True, "input_tags.two_d_array": False}

    def _fit_data(self, X: Any, y: Any = None, sample_weight: Any = None, **_: Any) -> Any:
        """The documents, after a look at the arguments that belong together."""
        documents = Documents(X)
        self._check_ngram_range()
        self._warn_of_unused()
        return documents

    # ---------------------------------------------------------------- steps

    def decode(self, doc: Any) -> Any:
        """The text of a document: read where it is a file, decoded where it is bytes.

        Parameters
        ----------
        doc : str, bytes, path or file
            The document.

        Returns
        -------
        str
        """
        if self.input == "filename":
            doc = _read(doc)
        elif self.input == "file":
            if not hasattr(doc, "read"):
                kind = type(doc).__name__
                raise NoFileError(f"documents: '{kind}' object has no attribute 'read'; input='file' expects files")
            doc = doc.read()
        if isinstance(doc, bytes):
            return doc.decode(self.encoding, self.decode_error)
        if isinstance(doc, float) and doc != doc:
            raise DataError("np.nan is an invalid document, expected byte or unicode string.")
        return doc

    def build_preprocessor(self) -> Callable[[str], str]:
        """The function that prepares a text for tokens."""
        if self.preprocessor is not None:
            return self.preprocessor  # type: ignore[no-any-return]
        return partial(_prepared, lower=bool(self.lowercase), strip=self._accents())

    def build_tokenizer(self) -> Callable[[str], Sequence[Any]]:
        """The function that finds the tokens of a text."""
        if self.tokenizer is not None:
            return self.tokenizer  # type: ignore[no-any-return]
        if self.token_pattern is None:
            raise ParameterError("token_pattern=None: expected a regular expression, or a function as tokenizer")
        try:
            pattern = re.compile(self.token_pattern)
        except re.error as error:
            raise ParameterError(f"token_pattern={self.token_pattern!r}: no regular expression ({error})") from None
        if pattern.groups > 1:
            raise ParameterError(
                f"token_pattern={self.token_pattern!r}: More than 1 capturing group in token pattern; expected 0 or 1"
            )
        return pattern.findall

    def get_stop_words(self) -> frozenset[Any] | None:
        """The tokens that are left out.

        Returns
        -------
        frozenset or None
        """
        if self.stop_words is None:
            return None
        if isinstance(self.stop_words, str):
            if self.stop_words != "english":
                raise ParameterError(f"stop_words={self.stop_words!r}: expected 'english', a list or None")
            return frozenset(ENGLISH_STOP_WORDS)
        return frozenset(self.stop_words)

    def build_analyzer(self) -> Callable[[Any], Iterable[Any]]:
        """The function that finds the terms of a document."""
        if callable(self.analyzer):
            return partial(_by_function, decode=self.decode, analyze=self.analyzer)
        prepare = self.build_preprocessor()
        if self.analyzer in ("char", "char_wb"):
            ngrams = self._char_ngrams if self.analyzer == "char" else self._char_wb_ngrams
            return partial(
                _analysed, decode=self.decode, prepare=prepare, tokenize=None, ngrams=ngrams, stop_words=None
            )
        if self.analyzer != "word":
            raise ParameterError(f"analyzer={self.analyzer!r}: expected one of {_ANALYZERS} or a callable")
        stop_words, tokenize = self.get_stop_words(), self.build_tokenizer()
        self._check_stop_words_consistency(stop_words, prepare, tokenize)
        return partial(
            _analysed,
            decode=self.decode,
            prepare=prepare,
            tokenize=tokenize,
            ngrams=self._word_ngrams,
            stop_words=stop_words,
        )

    def _word_ngrams(self, tokens: Sequence[Any], stop_words: Any = None) -> Sequence[Any]:
        if stop_words is not None:
            tokens = [token for token in tokens if token not in stop_words]
        least, most = self.ngram_range
        if (least, most) == (1, 1):
            return tokens
        found: list[Any] = list(tokens) if least == 1 else []
        for n in range(2 if least == 1 else least, min(most, len(tokens)) + 1):
            found += [" ".join(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
        return found

    def _char_ngrams(self, text: str) -> list[str]:
        text = _SEVERAL_SPACES.sub(" ", text)
        least, most = self.ngram_range
        spans = range(least, min(most, len(text)) + 1)
        return [text[i : i + n] for n in spans for i in range(len(text) - n + 1)]

    def _char_wb_ngrams(self, text: str) -> list[str]:
        least, most = self.ngram_range
        found = []
        for word in text.split():
            padded = f" {word} "
            for n in range(least, most + 1):
                found += [padded[i : i + n] for i in range(max(len(padded) - n + 1, 1))]
                if n >= len(padded):
                    break
        return found

    def _accents(self) -> Callable[[str], str] | None:
        if not self.strip_accents:
            return None
        if callable(self.strip_accents):
            return self.strip_accents  # type: ignore[no-any-return]
        if self.strip_accents not in _ACCENTS:
            raise ParameterError(f"strip_accents={self.strip_accents!r}: expected 'ascii', 'unicode' or a callable")
        return _ACCENTS[self.strip_accents]

    # ---------------------------------------------------------------- the compiled way

    def _compiled(self) -> Compiled | None:
        """The rule for the compiled way; None where Python has to be asked."""
        own = all(getattr(type(self), step) is getattr(Analysis, step) and step not in vars(self) for step in _STEPS)
        if not own or callable(self.analyzer) or min(self.ngram_range) < 1:
            return None
        if self.analyzer == "word" and (self.tokenizer is not None or self.token_pattern not in _RUNS):
            return None
        stop = None
        if self.analyzer == "word":
            words = self.get_stop_words()
            self._check_stop_words_consistency(words, self.build_preprocessor(), self.build_tokenizer())
            if words:
                stop = _native.text.Terms(sorted(word for word in words if isinstance(word, str)))
        least, most = (int(n) for n in self.ngram_range)
        shape = {
            "analyzer": _ANALYZERS.index(self.analyzer),
            "least": least,
            "most": min(most, 1 << 40),
            "shortest": _RUNS.get(self.token_pattern or "", 1),
        }
        return Compiled(self, shape, stop)

    # ---------------------------------------------------------------- arguments that do not fit each other

    def _check_ngram_range(self) -> None:
        given = self.ngram_range
        whole = len(given) == 2 and all(Integer(minimum=0).accepts(n) for n in given)
        if not whole:
            raise ParameterError(f"ngram_range={given!r}: expected two integers >= 0")
        if given[0] > given[1]:
            raise ParameterError(
                f"Invalid value for ngram_range={given} lower boundary larger than the upper boundary."
            )

    def _warn_of_unused(self) -> None:
        given: list[tuple[str, str]] = []
        if self.tokenizer is not None and self.token_pattern is not None:
            given.append(("token_pattern", "'tokenizer' is not None"))
        if callable(self.analyzer):
            if self.preprocessor is not None:
                given.append(("preprocessor", "'analyzer' is callable"))
            if self.ngram_range != (1, 1):
                given.append(("ngram_range", "'analyzer' is callable"))
        if self.analyzer != "word":
            changed = self.token_pattern is not None and self.token_pattern != WORDS
            unused = {"stop_words": self.stop_words is not None, "token_pattern": changed}
            unused["tokenizer"] = self.tokenizer is not None
            given += [(name, "'analyzer' != 'word'") for name, is_given in unused.items() if is_given]
        for name, why in given:
            warnings.warn(f"The parameter '{name}' will not be used since {why}", stacklevel=5)

    def _check_stop_words_consistency(self, stop_words: Any, preprocess: Any, tokenize: Any) -> Any:
        """Warn where stop words, read like documents, have tokens that are no stop words; None if looked at before."""
        if id(self.stop_words) == getattr(self, "_stop_words_id", None):
            return None
        self._stop_words_id = id(self.stop_words)
        try:
            found = {token for word in stop_words or () for token in tokenize(preprocess(word))}
            strange = sorted(found - set(stop_words or ()))
        except Exception:  # functions of the user need not take stop words
            return "error"
        if strange:
            warnings.warn(
                "Your stop_words may be inconsistent with your preprocessing. Tokenizing the stop words generated "
                f"tokens {strange} not in stop_words.",
                stacklevel=6,
            )
        return not strange


class Compiled:
    """The compiled way from documents to terms, for one set of arguments."""

    def __init__(self, owner: Analysis, shape: Mapping[str, int], stop: Any) -> None:
        self.owner, self.shape, self.stop = owner, shape, stop
        # Lower case comes before accents; the decomposition of some characters has capitals, which stay.
        strips = owner.preprocessor is None and owner._accents() is not None
        self.accents = owner.build_preprocessor() if strips else None

    def __call__(self, batch: Sequence[Any], first: int) -> tuple[list[str], Any, Any, Any]:
        """(texts, rule, stop words, characters) of a batch whose first document has this number."""
        owner = self.owner
        plain = owner.input == "content"
        texts = [doc if plain and isinstance(doc, str) else owner.decode(doc) for doc in batch]
        lower = bool(owner.lowercase)
        if owner.preprocessor is not None:
            texts, lower = [owner.preprocessor(text) for text in texts], False
        for i, text in enumerate(texts):
            if not isinstance(text, str):
                raise DataTypeError(f"documents: number {first + i} is {type(text).__name__}; expected str or bytes")
        ascii_alone = all(map(str.isascii, texts))
        if self.accents is not None and not (ascii_alone and not callable(owner.strip_accents)):
            texts, lower = [self.accents(text) for text in texts], False
            ascii_alone = all(map(str.isascii, texts))
        table = None
        if not ascii_alone:
            table, knows_lower = character_table(lower and any("\u03a3" in text for text in texts))
            if lower and not knows_lower:
                texts, lower = [text.lower() for text in texts], False
        return texts, _native.text.Rule(lower=lower, **self.shape), self.stop, table


def _analysed(doc: Any, decode: Any, prepare: Any, tokenize: Any, ngrams: Any, stop_words: Any) -> Any:
    text = prepare(decode(doc))
    return ngrams(text) if tokenize is None else ngrams(tokenize(text), stop_words)


def _by_function(doc: Any, decode: Any, analyze: Any) -> Any:
    return analyze(decode(doc))


def _read(path: Any) -> bytes:
    if not isinstance(path, str | bytes | os.PathLike):  # a number would be taken for an open file
        raise DataTypeError(f"documents: {type(path).__name__}; expected names of files, for input='filename'")
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise DataFileError(f"documents: {path!r} cannot be read: {error.strerror}") from None


def _prepared(text: str, lower: bool, strip: Callable[[str], str] | None) -> str:
    if not isinstance(text, str):
        raise DataTypeError(f"documents: {type(text).__name__}; expected str or bytes")
    text = text.lower() if lower else text
    return text if strip is None else strip(text)
