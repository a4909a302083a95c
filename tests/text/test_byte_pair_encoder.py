"""Byte-pair encoding against a recount of all pairs for every merge, and text that comes back as it was."""

import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings, strategies as st
from numpy.testing import assert_array_equal
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

import epicycle as ep
from epicycle import BytePairEncoder
from epicycle.exceptions import DataError, DataTypeError, NotFittedError, ParameterError
from epicycle.text._byte_pair_encoder import PIECES

ODD = "aab \n\t_'ßÄ9٣²Ⅷ中🙂\u00a0\u2003\ud800é"
texts = st.text(alphabet=st.one_of(st.sampled_from(ODD), st.characters()), max_size=40)
#: Few letters, so that pairs overlap and are equally frequent.
narrow = st.lists(st.text(alphabet="aab ", max_size=30), min_size=1, max_size=5).filter(lambda docs: any(docs))

CORPUS = [
    "The quick brown fox jumps over the lazy dog, and the dog barks at the quick fox.",
    "Over and over again the fox, quicker than the quickest dog, ran through the brown brushwood.",
    "  Two spaces,\n\nand lines; 1234 and 12 numbers -- naïve café 中文 🙂🙂.",
]


def merged(symbols, pair, made):
    out, i = [], 0
    while i < len(symbols):
        if tuple(symbols[i : i + 2]) == pair:
            out.append(made)
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return out


def by_recounting(documents, n_merges, least, pattern):
    """(merges, frequencies), every pair of every piece counted anew for each merge."""
    pieces = [list(p.encode("utf-8", "surrogatepass")) for d in documents for p in re.findall(pattern, d) if p]
    merges, frequencies = [], []
    for m in range(n_merges):
        counts = Counter(pair for piece in pieces for pair in pairwise(piece))
        if not counts or max(counts.values()) < least:
            break
        pair = min(counts, key=lambda p: (-counts[p], p))
        merges.append(pair)
        frequencies.append(counts[pair])
        pieces = [merged(piece, pair, 256 + m) for piece in pieces]
    return np.array(merges).reshape(-1, 2), np.array(frequencies, dtype=int)


def encoded_in_order(text, merges, pattern):
    """Every merge tried on every piece, in the order in which they were learnt."""
    out = []
    for piece in re.findall(pattern, text):
        symbols = list(piece.encode("utf-8", "surrogatepass"))
        for m, pair in enumerate(map(tuple, merges.tolist())):
            symbols = merged(symbols, pair, 256 + m)
        out += symbols
    return out


@settings(max_examples=60, deadline=None)
@given(narrow, st.integers(1, 3))
@example(["aaaa aaa aa", "aaaaaaa"], 1)
def test_merges_are_those_of_a_recount(documents, least):
    for pattern, regex in ((PIECES, PIECES), (None, r"(?s).+")):
        model = BytePairEncoder(270, min_frequency=least, pattern=pattern).fit(documents)
        merges, frequencies = by_recounting(documents, 14, least, regex)
        assert_array_equal(model.merges_, merges)
        assert_array_equal(model.frequencies_, frequencies)
        for text in [*documents, "abab baab aa"]:
            assert model.encode(text).tolist() == encoded_in_order(text, model.merges_, regex)


def test_merges_of_real_text():
    model = BytePairEncoder(356).fit(CORPUS)
    merges, frequencies = by_recounting(CORPUS, 100, 2, PIECES)
    assert_array_equal(model.merges_, merges)
    assert_array_equal(model.frequencies_, frequencies)
    assert np.all(np.diff(model.frequencies_) <= 0)  # a merge makes no pair more frequent than itself
    new = "the quickest café 🙂 of 中国"
    assert model.encode(new).tolist() == encoded_in_order(new, model.merges_, PIECES)
    tokens = sum(map(len, model.encode(CORPUS)))
    assert model.history_["objective"][-1] == tokens < model.history_["bytes"][-1] / 1.5


@pytest.fixture(scope="module")
def model():
    return BytePairEncoder(340, special_tokens=["<end>", "<end>!", "<"]).fit(CORPUS)


@settings(max_examples=150, deadline=None)
@given(texts)
@example("a" * 3000)
@example("<end><end>!< <en")
def test_every_text_comes_back(model, text):
    ids = model.encode(text)
    assert model.decode(ids) == text
    assert b"".join(model.tokens_[i] for i in ids) == text.encode("utf-8", "surrogatepass")


@settings(max_examples=100, deadline=None)
@given(texts)
def test_the_pieces_are_the_text(text):
    assert "".join(re.findall(PIECES, text)) == text
    for pattern in (r"\d", r"x*", r"[a-z]+"):  # what no match covers is a piece too
        narrow = BytePairEncoder(256, pattern=pattern).fit(["a"])
        assert narrow.decode(narrow.encode(text)) == text


def test_special_tokens_are_one_token_and_part_of_no_other(model):
    n = model.n_tokens_
    assert model.encode("<end>fox<end>! <").tolist()[0] == n - 3
    assert model.encode("<end>!").tolist() == [n - 2]
    assert model.encode("a<b").tolist() == [97, n - 1, 98]
    assert model.tokens_[-3:] == [b"<end>", b"<end>!", b"<"]
    plain = BytePairEncoder(337).fit(CORPUS)
    with_special = BytePairEncoder(340, special_tokens=["<end>", "<end>!", "<"]).fit([f"<end>{d}<" for d in CORPUS])
    assert_array_equal(with_special.merges_, plain.merges_)
    for one, two in zip(model.encode(["<fox", "dog<end>dog"]), map(model.encode, ["<fox", "dog<end>dog"]), strict=True):
        assert_array_equal(one, two)


def test_a_document_many_times_is_a_document_often_seen(model):
    repeated = BytePairEncoder(320, min_frequency=6).fit(CORPUS * 3)
    once = BytePairEncoder(320).fit(CORPUS[::-1])
    assert_array_equal(repeated.merges_, once.merges_)
    assert_array_equal(repeated.frequencies_, 3 * once.frequencies_)


def test_counts_of_tokens_are_a_table(model):
    counts = model.transform(CORPUS)
    assert counts.shape == (3, model.n_tokens_)
    for row, text in zip(counts.toarray(), CORPUS, strict=True):
        assert_array_equal(row, np.bincount(model.encode(text), minlength=model.n_tokens_))
    assert model.get_feature_names_out().tolist()[97] == "a"
    assert model.get_feature_names_out().tolist()[0xE2] == "\\xe2"
    assert_array_equal(model.transform(pd.DataFrame({"text": CORPUS})).toarray(), counts.toarray())
    labels = np.arange(60) % 2
    messages = [f"{'cheap offer pills' if y else 'meeting at noon'} {i}" for i, y in enumerate(labels)]
    spam = make_pipeline(BytePairEncoder(300), MultinomialNB()).fit(messages[:40], labels[:40])
    assert spam.score(messages[40:], labels[40:]) == 1.0


def test_a_file_holds_the_merges(model, tmp_path):
    model.save(tmp_path / "m.epi")
    loaded = ep.load(tmp_path / "m.epi")
    assert loaded.encode("over the <end>").tolist() == model.encode("over the <end>").tolist()
    assert loaded.tokens_ == model.tokens_


def test_tokens_in_an_order_that_no_text_has(model):
    assert model.decode([0xF0, 97]) == "\ufffda"
    assert model.decode([[104, 105], []]) == ["hi", ""]
    with pytest.raises(UnicodeDecodeError):
        model.decode([0xF0, 97], errors="strict")


def test_what_cannot_be_learnt_or_read_is_named(model):
    with pytest.raises(DataTypeError, match="document 1 is of type int; expected str"):
        BytePairEncoder().fit(["a", 3])
    with pytest.raises(DataTypeError, match="document 0 is of type NoneType"):
        model.encode([None])
    with pytest.raises(DataError, match="2 documents without a character"):
        BytePairEncoder().fit(["", ""])
    with pytest.raises(DataError, match="raw text documents expected"):
        BytePairEncoder().fit("one text")
    with pytest.raises(ParameterError, match="room for them beside 256 bytes in vocab_size=257"):
        BytePairEncoder(257, special_tokens=["a", "b"]).fit(["a"])
    with pytest.raises(ParameterError, match="expected different texts"):
        BytePairEncoder(special_tokens=["a", "a"]).fit(["a"])
    with pytest.raises(ParameterError, match="pattern"):
        BytePairEncoder(pattern="(a)").fit(["a"])
    with pytest.raises(DataError, match=f"ids: {model.n_tokens_} is no token"):
        model.decode([model.n_tokens_])
    with pytest.raises(DataTypeError, match="expected integers in a row"):
        model.decode(np.array([1.5]))
    with pytest.raises(NotFittedError, match="BytePairEncoder"):
        BytePairEncoder().encode("a")
