"""Test errors on spam, splice junctions and digits from the post, where the data are at hand."""

import csv
import gzip

import numpy as np
import pytest
from real_tables import DATA, needs

from epicycle import ConvNetClassifier, MLPClassifier, TfidfVectorizer

pytestmark = pytest.mark.slow
PERCEPTRON = {"solver": "adamw", "learning_rate": "cosine", "learning_rate_init": 2e-3, "tol": None, "random_state": 0}


def split(n, seed=0):
    order = np.random.default_rng(seed).permutation(n)
    return order[: int(0.8 * n)], order[int(0.8 * n) :]


@needs("sms_spam.tsv.gz")
def test_spam_is_told_by_runs_of_characters():
    with gzip.open(DATA / "sms_spam.tsv.gz", "rt", encoding="utf-8") as file:
        labels, texts = zip(*(line.rstrip("\n").split("\t", 1) for line in file), strict=True)
    train, test = split(len(labels))
    terms = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True, min_df=2)
    X = terms.fit_transform([texts[i] for i in train]).astype(np.float32)
    new = terms.transform([texts[i] for i in test]).astype(np.float32)
    y = np.array(labels)
    model = MLPClassifier((32,), alpha=0.01, dropout=0.5, batch_size=128, max_iter=8, **PERCEPTRON).fit(X, y[train])
    assert model.score(new, y[test]) >= 0.985


@needs("dna_splice.csv.gz")
def test_splice_junctions_by_letters_and_pairs():
    with gzip.open(DATA / "dna_splice.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    letters = np.array([list(row["sequence"]) for row in rows])
    single = letters[:, :, None] == np.array(list("ACGT"))
    code = single.argmax(axis=2)
    pairs = (4 * code[:, :-1] + code[:, 1:])[:, :, None] == np.arange(16)
    X = np.concatenate([single.reshape(len(rows), -1), pairs.reshape(len(rows), -1)], axis=1).astype(np.float32)
    y = np.array([row["class"] for row in rows])
    errors = []
    for seed in range(5):
        train, test = split(len(y), seed)
        model = MLPClassifier((256,), alpha=0.1, dropout=0.7, batch_size=64, max_iter=20, **PERCEPTRON)
        errors.append(1 - model.fit(X[train], y[train]).score(X[test], y[test]))
    assert np.mean(errors) < 0.04


@needs("usps.npz")
def test_digits_from_the_post():
    with np.load(DATA / "usps.npz") as file:
        X, new = (
            (file[name].reshape(-1, 16, 16) / float(file["scale"])).astype(np.float32) for name in ("x_train", "x_test")
        )
        y, right = file["y_train"], file["y_test"]
    settings = {"shift": 1.0, "rotation": 8.0, "zoom": 0.1, "batch_size": 64, "learning_rate_init": 2e-3, "warmup": 0.1}
    model = ConvNetClassifier("lenet", width=0.5, max_iter=8, random_state=0, **settings).fit(X, y)
    assert 1 - model.score(new, right) < 0.04  # LeNet-1 has 5.1%
