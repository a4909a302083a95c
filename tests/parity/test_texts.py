"""Naive Bayes on texts with published results; the collections are read where they are present."""

import gzip
import json
import lzma
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import StratifiedShuffleSplit

import epicycle as ep


def collection(name):
    checkout = Path(__file__).resolve().parents[2]
    path = Path(os.environ.get("EPICYCLE_DATA", checkout.parent / "shared" / "data")) / name
    if not path.exists():
        pytest.skip(f"{name} is neither in the folder EPICYCLE_DATA nor in shared/data next to the checkout")
    with (lzma.open if path.suffix == ".xz" else gzip.open)(path, "rt", encoding="utf-8") as file:
        return file.read().splitlines() if path.suffix == ".gz" else [json.loads(line) for line in file]


def test_sms_spam():
    # Almeida, Gómez Hidalgo and Yamakami (2011): trained on the first 30 %, a linear SVM reaches 97.64 %.
    lines = [line.split("\t", 1) for line in collection("sms_spam.tsv.gz")]
    y, texts = np.array([label for label, _ in lines]), [text for _, text in lines]
    n = int(0.3 * len(texts))
    words = CountVectorizer().fit(texts[:n])
    model = ep.MultinomialNB().fit(words.transform(texts[:n]), y[:n])
    assert model.score(words.transform(texts[n:]), y[n:]) >= 0.976


def mutual_information(X, y):
    """Of columns of zeros and ones with two classes, in nats, from the counts."""
    n, total = len(y), np.zeros(X.shape[1])
    ones = np.asarray(X.sum(axis=0)).ravel() / n
    for c in (0, 1):
        share = np.mean(y == c)
        both = np.asarray(X[y == c].sum(axis=0)).ravel() / n
        for joint, column in ((both, ones), (share - both, 1 - ones)):
            with np.errstate(divide="ignore", invalid="ignore"):
                total += np.where(joint > 0, joint * np.log(joint / (column * share)), 0.0)
    return total


@pytest.mark.slow
def test_ling_spam():
    # Androutsopoulos et al. (2000), ten folds, words chosen by mutual information: recall about 81 %, precision 97 %.
    messages = collection("lingspam_bare.jsonl.xz")
    y, part = np.array([int(m["spam"]) for m in messages]), np.array([m["part"] for m in messages])
    X = CountVectorizer(token_pattern=r"\S+", binary=True).fit_transform([m["text"] for m in messages])
    predicted = np.empty(len(y))
    for fold in np.unique(part):
        train, test = part != fold, part == fold
        chosen = np.argsort(-mutual_information(X[train], y[train]))[:100]
        predicted[test] = ep.BernoulliNB().fit(X[train][:, chosen], y[train]).predict(X[test][:, chosen])
    caught = np.sum((predicted == 1) & (y == 1))
    assert caught / np.sum(y == 1) >= 0.80
    assert caught / np.sum(predicted == 1) >= 0.96


@pytest.mark.slow
def test_newsgroups():
    # Rennie, Shih, Teevan and Karger (2003), random splits: multinomial naive Bayes 0.848, their best variant 0.861.
    posts = collection("20newsgroups_bydate.jsonl.xz")
    y = np.array([post["group"] for post in posts])
    X = CountVectorizer(max_df=0.5).fit_transform([post["text"] for post in posts])
    splits = list(StratifiedShuffleSplit(3, train_size=0.8, random_state=0).split(X, y))
    plain, complement = (
        np.mean([model.fit(X[train], y[train]).score(X[test], y[test]) for train, test in splits])
        for model in (ep.MultinomialNB(), ep.ComplementNB(norm=True))
    )
    assert plain >= 0.848
    assert complement >= 0.861
