"""BERT: hidden words against the most frequent one, the rule of masking, fine-tuning against a start from nothing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

import epicycle as ep
from epicycle import BERT, BERTClassifier
from epicycle.exceptions import DataError, DataTypeError, NotFittedError, ParameterError
from epicycle.nets.language._masked_rows import MaskedRows

SMALL = {"n_layers": 2, "n_heads": 2, "d_model": 32, "context_length": 12, "random_state": 0}

WHO = {"cat": ("milk", "purrs"), "dog": ("meat", "barks"), "cow": ("grass", "moos"), "bee": ("nectar", "hums")}


def sentences(n, seed=0):
    """The food and the sound of an animal follow from it; where they stand does not."""
    rng, out = np.random.default_rng(seed), []
    for _ in range(n):
        who = str(rng.choice(list(WHO)))
        food, sound = WHO[who]
        forms = [f"the {who} likes {food}", f"{food} is what a {who} likes", f"the {who} {sound} and likes {food}"]
        out.append(forms[rng.integers(3)])
    return out


@pytest.fixture(scope="module")
def learnt():
    return BERT(**SMALL, max_iter=40, learning_rate_init=5e-3).fit(sentences(400))


def test_hidden_words_are_guessed_from_both_sides(learnt):
    new = sentences(100, 1)
    hidden, true = [], []
    for text in new:
        words = text.split()
        at = next(i for i, w in enumerate(words) if w in {food for food, _ in WHO.values()})
        true.append(words[at])
        hidden.append(" ".join([*words[:at], "[MASK]", *words[at + 1 :]]))
    guesses = [text.split()[h.split().index("[MASK]")] for text, h in zip(learnt.fill(hidden), hidden, strict=True)]
    accuracy = np.mean([a == b for a, b in zip(guesses, true, strict=True)])
    most_frequent = max(np.mean([t == food for t in true]) for food, _ in WHO.values())
    assert accuracy > 0.95 > most_frequent + 0.5
    assert learnt.fill(["[MASK] [MASK] likes milk"])[0].split()[2:] == ["likes", "milk"]


def test_masking_is_eighty_ten_ten():
    rng = np.random.default_rng(0)
    texts = [np.r_[101, rng.integers(0, 100, rng.integers(1, 40))] for _ in range(3000)]
    rows = MaskedRows(texts, 0.15, 100, 100)
    seen, hidden, kind = 0, 0, np.zeros(3)
    for batch in rows.epoch(64, 0, 0, shuffle=True):
        (tokens, lengths), target = (t.numpy() for t in batch.inputs), batch.target.numpy()
        assert (tokens[:, 0] == 101).all()
        inside = np.arange(tokens.shape[1]) < lengths[:, None]
        assert (target[~inside] == -1).all()
        assert (target[:, 0] == -1).all()
        assert (target >= 0).any(axis=1).all()
        picked = target >= 0
        seen, hidden = seen + (inside.sum() - len(tokens)), hidden + picked.sum()
        kind += [
            (tokens[picked] == 100).sum(),
            ((tokens[picked] != 100) & (tokens[picked] != target[picked])).sum(),
            (tokens[picked] == target[picked]).sum(),
        ]
    assert hidden / seen == pytest.approx(0.15, abs=0.01)  # a little more: every text has one
    assert_allclose(kind / hidden, [0.8, 0.1, 0.1], atol=0.01)
    one, two = (next(rows.epoch(64, e, 0, shuffle=False)) for e in (0, 1))
    assert not np.array_equal(one.target, two.target)
    assert np.array_equal(one.target, next(rows.in_order(64)).target)


def test_vectors_of_texts_are_features(learnt):
    vectors = learnt.transform(["the cat likes milk", "the cow likes grass"])
    assert vectors.shape == (2, 64)
    assert learnt.get_feature_names_out().tolist()[:2] == ["bert0", "bert1"]
    texts = sentences(200, 2)
    who = [next(w for w in WHO if w in t) for t in texts]
    linear = LogisticRegression(max_iter=500).fit(learnt.transform(texts[:100]), who[:100])
    assert linear.score(learnt.transform(texts[100:]), who[100:]) == 1.0


# --------------------------------------------------------------------------------------------- classification


def opinions(n, seed):
    """Words of one meaning that stand for each other: labels show few of them."""
    rng = np.random.default_rng(seed)
    good = [f"fine{i}" for i in range(12)]
    bad = [f"poor{i}" for i in range(12)]
    y = rng.integers(0, 2, n)
    return [" ".join(["it", "was", *rng.choice(good if k else bad, 2)]) for k in y], np.array(["bad", "good"])[y]


@pytest.fixture(scope="module")
def pretrained():
    return BERT(**SMALL, max_iter=40, learning_rate_init=5e-3).fit(opinions(600, 0)[0])


def test_what_was_learnt_without_labels_helps_where_labels_are_few(pretrained):
    X, y = opinions(8, 1)
    new, answers = opinions(300, 2)
    tuned = BERTClassifier(pretrained, max_iter=20, batch_size=8, learning_rate_init=1e-3, random_state=0).fit(X, y)
    words = CountVectorizer().fit(X)
    counted = LogisticRegression().fit(words.transform(X), y).score(words.transform(new), answers)
    assert tuned.score(new, answers) > 0.97
    assert counted < 0.9
    assert tuned.encoder_ is pretrained
    assert_allclose(tuned.predict_proba(new).sum(axis=1), 1, rtol=1e-6)


def test_frozen_encoders_survive_cross_validation(pretrained, tmp_path):
    X, y = opinions(30, 3)
    model = BERTClassifier(FrozenEstimator(pretrained), max_iter=10, batch_size=8, random_state=0)
    assert cross_val_score(model, X, y, cv=3).mean() > 0.9
    fitted = clone(model).fit(X, y)
    fitted.save(tmp_path / "m.epi")
    assert_array_equal(ep.load(tmp_path / "m.epi").predict_proba(X), fitted.predict_proba(X))


def test_several_classes_and_an_encoder_that_learns_first():
    texts = sentences(150)
    who = [next(w for w in WHO if w in t) for t in texts]
    model = BERTClassifier(BERT(**SMALL, max_iter=3), max_iter=8, learning_rate_init=5e-3, random_state=0)
    model.fit(texts[:100], who[:100])
    assert model.score(texts[100:], who[100:]) > 0.95
    assert model.architecture_["n_outputs"] == 4
    assert model.encoder_ is not model.encoder
    assert not model.encoder.__sklearn_is_fitted__()


def test_the_same_bits_for_any_number_of_threads():
    X, y = opinions(100, 0)
    encoder = BERT(**{**SMALL, "d_model": 96}, max_iter=1, batch_size=100, dropout=0.1)
    fits = []
    for threads in (1, 2):
        with ep.config(n_jobs=threads):
            fits.append(BERTClassifier(encoder, max_iter=1, batch_size=100, random_state=0).fit(X, y))
    for a, b in zip(*(fit._weights_.values() for fit in fits), strict=True):
        assert_array_equal(a, b)


def test_what_cannot_be_learnt_from_is_named(learnt):
    with pytest.raises(DataTypeError, match="document 0 is of type int"):
        BERT(**SMALL).fit([1])
    with pytest.raises(DataError, match="2 texts without a token"):
        BERT(**SMALL).fit(["", " "])
    with pytest.raises(ParameterError, match="context_length=1"):
        BERT(context_length=1).fit(["a"])
    with pytest.raises(ParameterError, match="masked"):
        BERT(masked=0).fit(["a"])
    with pytest.raises(DataError, match="expected less than context_length=12"):
        learnt.fill(["a " * 30])
    with pytest.raises(NotFittedError, match="BERT"):
        BERT().transform(["a"])
    with pytest.raises(ParameterError, match="encoder"):
        BERTClassifier(LogisticRegression()).fit(["a", "b"], [0, 1])
    with pytest.raises(DataError, match="one class"):
        BERTClassifier(learnt).fit(["a", "b"], [0, 0])
    with pytest.raises(DataError, match="requires y"):
        BERTClassifier(learnt).fit(["a", "b"])
