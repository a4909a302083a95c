"""Spam, splice junctions, spoken digits and Shakespeare, where they are at hand."""

import csv
import gzip

import numpy as np
import pytest
from real_tables import DATA, needs

from epicycle import CharacterModel, SequenceClassifier

pytestmark = pytest.mark.slow


def split(X, y, share, seed=0):
    order = np.random.default_rng(seed).permutation(len(X))
    n = int(share * len(X))
    return [X[i] for i in order[:n]], y[order[:n]], [X[i] for i in order[n:]], y[order[n:]]


@needs("sms_spam.tsv.gz")
def test_spam_is_told_from_messages():
    with gzip.open(DATA / "sms_spam.tsv.gz", "rt", encoding="utf-8") as file:
        labels, texts = zip(*(line.rstrip("\n").split("\t", 1) for line in file), strict=True)
    X, y, new, right = split(texts, np.array(labels), 0.8)
    settings = {"hidden_size": 32, "max_iter": 6, "learning_rate": "cosine", "random_state": 0}
    model = SequenceClassifier("gru", bidirectional=True, pooling="max", min_df=2, dropout=0.3, **settings).fit(X, y)
    assert model.score(new, right) > 0.983  # always "ham": 0.866


@needs("dna_splice.csv.gz")
def test_splice_junctions_are_found():
    with gzip.open(DATA / "dna_splice.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    X, y, new, right = split([row["sequence"] for row in rows], np.array([row["class"] for row in rows]), 0.8)
    settings = {"hidden_size": 32, "embedding_size": 8, "max_iter": 12, "learning_rate_init": 0.01, "random_state": 0}
    settings |= {"learning_rate": "cosine", "dropout": 0.2}
    model = SequenceClassifier("gru", bidirectional=True, analyzer="char", **settings).fit(X, y)
    assert model.score(new, right) > 0.9  # always "N": 0.52


@needs("spoken_digits.npz")
def test_spoken_digits_are_understood():
    with np.load(DATA / "spoken_digits.npz") as file:
        audio, length, digit, take = (file[name] for name in ("audio", "length", "digit", "take"))
    X = [spectrum(part) for part in np.split(audio.astype(float), np.cumsum(length)[:-1])]
    seen = take > 0
    settings = {"hidden_size": 48, "max_iter": 40, "learning_rate_init": 0.005, "dropout": 0.3, "random_state": 0}
    model = SequenceClassifier("gru", bidirectional=True, pooling="mean", learning_rate="cosine", **settings)
    model.fit([x for x, s in zip(X, seen, strict=True) if s], digit[seen])
    assert model.score([x for x, s in zip(X, seen, strict=True) if not s], digit[~seen]) > 0.85  # by chance: 0.1


def spectrum(audio, width=256, step=128, bands=20):
    """Logarithms of the power in bands of windows of 32 ms."""
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(audio, (0, max(0, width - len(audio)))), width)[::step]
    power = np.abs(np.fft.rfft(frames * np.hanning(width), axis=1)) ** 2
    edges = np.unique(np.geomspace(2, power.shape[1], bands + 1).astype(int))
    return np.log(1 + np.add.reduceat(power, edges[:-1], axis=1))


@needs("tinyshakespeare.txt.gz")
def test_shakespeare_takes_fewer_bits_than_by_pairs_of_characters():
    with gzip.open(DATA / "tinyshakespeare.txt.gz", "rt", encoding="utf-8") as file:
        text = file.read()
    train, new = text[:200_000], text[-20_000:]
    settings = {"hidden_size": 128, "window": 64, "batch_size": 32, "max_iter": 4, "learning_rate_init": 0.005}
    model = CharacterModel("gru", **settings, random_state=0).fit([train])
    pairs = np.ones((128, 128)) * 0.01
    codes = np.frombuffer(train.encode("ascii"), np.uint8)
    np.add.at(pairs, (codes[:-1], codes[1:]), 1)
    pairs /= pairs.sum(axis=1, keepdims=True)
    held = np.frombuffer(new.encode("ascii"), np.uint8)
    by_pairs = -np.log2(pairs[held[:-1], held[1:]]).mean()
    assert model.bits_per_character([new]) < by_pairs - 0.4
