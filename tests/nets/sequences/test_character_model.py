"""Models of characters: against a source of known entropy, the chain rule, one long window, and counts of samples."""

import math

import numpy as np
import pytest
import torch
from gradient_of_module import check_module
from numpy.testing import assert_allclose, assert_array_equal
from sequence_samples import words

import epicycle as ep
from epicycle import CharacterModel
from epicycle.exceptions import ConvergenceError, DataError, DataTypeError, ParameterError
from epicycle.nets.sequences import _character_model
from epicycle.nets.sequences._character_module import CharacterNet
from epicycle.nets.sequences._windows import WindowRows
from epicycle.nets.training import _options

SETTINGS = {"hidden_size": 24, "window": 30, "batch_size": 8, "learning_rate_init": 0.02, "random_state": 0}


def source(n, seed=0):
    """Text of a Markov chain of order two, and its entropy in bits for a character.

    After "aa", "bb" and "cc" the next character is another one; after "ab" it is c nine times out of ten, and so on.
    """
    rng = np.random.default_rng(seed)
    letters, chances = "abc", {}
    for i in range(3):
        for j in range(3):
            p = np.full(3, 0.05)
            p[(2 * i + j + 1) % 3] = 0.9
            chances[i, j] = p
    text, bits, state = [], 0.0, (0, 1)
    for _ in range(n):
        p = chances[state]
        k = rng.choice(3, p=p)
        bits -= math.log2(p[k])
        text.append(letters[k])
        state = (state[1], k)
    return "".join(text), bits / n


@pytest.fixture(scope="module")
def model():
    settings = {**SETTINGS, "window": 20, "learning_rate_init": 0.03, "learning_rate": "cosine"}
    return CharacterModel("gru", **settings, max_iter=25).fit([source(4000)[0]])


def architecture(cell, **changes):
    sizes = {"n_tokens": 3, "embedding_size": 4, "hidden_size": 5, "n_layers": 2, "dropout": 0.0, "n_lanes": 3}
    return {"cell": cell, **sizes, **changes}


def test_the_entropy_of_the_source_is_nearly_reached(model):
    text, bits = source(2000, seed=1)
    found = model.bits_per_character([text])
    assert bits == pytest.approx(0.57, abs=0.06)
    assert found < bits + 0.08  # what no model can be below on average
    counts = np.unique(list(text), return_counts=True)[1] / len(text)
    assert found < 0.5 * -(counts @ np.log2(counts))  # single characters tell nothing
    assert model.score([text]) == -found


def test_scores_are_the_chain_rule(model):
    texts = ["abcab", "c", "bb"]
    known = {c: 3 + i for i, c in enumerate(model.vocabulary_)}
    for text, found in zip(texts, model.score_samples(texts), strict=True):
        tokens, expected = [2, *(known[c] for c in text)], 0.0
        net = model.module_
        with torch.no_grad():
            for t, following in enumerate([*tokens[1:], 2]):
                scores, _ = net.advance(torch.tensor([tokens[: t + 1]]), net.start(1))
                expected += float(scores[0, -1].double().log_softmax(-1)[following])
        assert found == pytest.approx(expected, rel=1e-5)
    alone = [model.score_samples([text])[0] for text in texts]
    assert_allclose(model.score_samples(texts), alone, rtol=1e-6)


def test_long_texts_are_scored_in_pieces(model, monkeypatch):
    text = [source(200, seed=2)[0], "abc"]
    whole = model.score_samples(text)
    monkeypatch.setattr(_character_model, "_SCORED_STEPS", 7)
    assert_allclose(model.score_samples(text), whole, rtol=1e-6)


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_the_state_that_goes_on_is_that_of_one_long_window(cell):
    torch.manual_seed(0)
    net = CharacterNet(architecture(cell)).double().eval()
    tokens = np.random.default_rng(0).integers(3, 6, 61)
    rows = WindowRows(tokens, 3, 4)
    pieces = [(batch, net(*batch.inputs).detach()) for batch in rows.in_order(3)]
    assert len(pieces) == rows.n_windows == 5
    found = torch.cat([scores for _, scores in pieces], dim=1)
    target = torch.cat([batch.target for batch, _ in pieces], dim=1)
    assert (target >= 0).sum() == 60  # every token but the first is predicted once
    lanes = torch.from_numpy(tokens[:60].reshape(3, 20))
    assert_array_equal(torch.from_numpy(tokens[1:].reshape(3, 20)), target)
    assert_allclose(found, net.advance(lanes, net.start(3))[0].detach(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("n", "lanes", "window"), [(10, 7, 1), (50, 4, 100), (101, 8, 5), (3, 2, 2)])
def test_windows_hold_each_target_once(n, lanes, window):
    tokens = np.arange(n)
    rows = WindowRows(tokens, lanes, window)
    batches = list(rows.in_order(lanes))
    assert len(batches) == rows.n_batches(lanes)
    pairs = [np.c_[b.inputs[0].numpy().ravel(), b.target.numpy().ravel()] for b in batches]
    pairs = np.concatenate(pairs)
    inside = pairs[pairs[:, 1] >= 0]
    assert_array_equal(inside[np.argsort(inside[:, 0])], np.c_[tokens[:-1], tokens[1:]])
    assert sum(b.n_rows for b in batches) == rows.n_rows
    assert max(b.inputs[0].shape[1] for b in batches) <= window


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_gradients(cell):
    torch.manual_seed(0)
    rows = WindowRows(np.random.default_rng(0).integers(2, 6, 22), 3, 7)
    net = CharacterNet(architecture(cell))
    with torch.no_grad():
        net.last.weight.normal_()
    assert check_module(net, CharacterModel()._row_losses(), [next(rows.in_order(3))], n_coordinates=15)


def test_samples_have_the_probabilities_of_the_model(model):
    first = [model.sample(1, "ab", random_state=i) for i in range(400)]
    logs = model.score_samples(["ab" + c for c in "abc"]) - model.score_samples(["ab"] * 3)
    # P(c | ab) from whole texts needs P(end); the module gives it at once
    known = {c: 3 + i for i, c in enumerate(model.vocabulary_)}
    with torch.no_grad():
        scores = model.module_.advance(torch.tensor([[2, known["a"], known["b"]]]), model.module_.start(1))[0][0, -1]
    p = scores.double().softmax(-1).numpy()
    for c in "abc":
        share = np.mean([found == c for found in first])
        assert share == pytest.approx(p[known[c]], abs=4 * math.sqrt(0.25 / 400))
    assert np.isfinite(logs).all()
    assert model.sample(40, "ab", temperature=0) == model.sample(40, "ab", top_k=1, random_state=5)
    assert model.sample(40, "ab", random_state=3) == model.sample(40, "ab", random_state=3)
    likely = model.sample(300, "ab", temperature=0.3, random_state=0)
    wild = model.sample(300, "ab", temperature=3.0, random_state=0)
    assert model.bits_per_character([likely]) < 0.5 * model.bits_per_character([wild])


def test_the_ends_of_texts_are_learnt():
    X, _ = words(400)
    model = CharacterModel("gru", hidden_size=32, window=40, batch_size=4, max_iter=25, random_state=0)
    model.set_params(learning_rate_init=0.01).fit(X)
    found = [model.sample(20, random_state=i) for i in range(60)]
    assert np.mean([len(word) == 4 for word in found]) > 0.9
    assert np.mean([word in set(X) for word in found]) > 0.9
    # 25 words of equal probability: log2(25) / 5 bits for each of their characters and ends
    assert model.bits_per_character(X) < 1.15 * math.log2(25) / 5
    assert math.isfinite(model.bits_per_character(["xyz"]))  # unknown characters have some probability too


def test_parts_and_threads_leave_the_bits_alone(monkeypatch):
    text = [source(1200)[0]]
    fits = []
    monkeypatch.setattr(_options, "_LARGE_STEP", 1.0)
    for threads in (1, 2):
        with ep.config(n_jobs=threads):
            fits.append(CharacterModel("lstm", **SETTINGS, dropout=0.2, n_layers=2, max_iter=2).fit(text))
    for a, b in zip(*(fit._weights_.values() for fit in fits), strict=True):
        assert_array_equal(a, b)
    monkeypatch.setattr(_options, "_LARGE_STEP", np.inf)
    whole = CharacterModel("lstm", **SETTINGS, n_layers=2, max_iter=2).fit(text)
    monkeypatch.setattr(_options, "_LARGE_STEP", 1.0)
    parts = CharacterModel("lstm", **SETTINGS, n_layers=2, max_iter=2).fit(text)
    assert_allclose(parts.score(text), whole.score(text), rtol=1e-3)  # each part goes on from its own lanes


def test_early_stopping_holds_out_the_end_of_the_text():
    text, _ = source(1500)
    model = CharacterModel("gru", **SETTINGS, early_stopping=True, validation_fraction=0.2, max_iter=10).fit([text])
    held = model.history_["validation_score"]
    assert held.max() > held[0]
    tokens = np.array([2, *(3 + "abc".index(c) for c in text), 2])
    last = tokens[-math.ceil(0.2 * (len(tokens) - 1)) - 1 :]
    expected = model._log_likelihoods(model.module_, [last])[0] / math.log(2) / (len(last) - 1)
    assert held.max() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("X", "error", "match"),
    [
        ("one text", DataTypeError, "put a single text into a list"),
        ([3], DataTypeError, r"entry 0 is 3 \(int\)"),
        ([""], DataError, "entry 0 is empty"),
        ([], DataError, "0 sample"),
    ],
)
def test_what_is_no_text_is_refused(X, error, match):
    with pytest.raises(error, match=match):
        CharacterModel().fit(X)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"n": 0}, ParameterError, "n=0"),
        ({"prompt": 3}, ParameterError, "prompt=3; expected a text"),
        ({"prompt": "xyz"}, DataError, "the character 'x' did not occur"),
        ({"temperature": -1}, ParameterError, "temperature=-1"),
        ({"top_k": 0}, ParameterError, "top_k=0"),
    ],
)
def test_samples_that_cannot_be_are_refused(model, arguments, error, match):
    with pytest.raises(error, match=match):
        model.sample(**arguments)


@pytest.mark.parametrize("score", [np.nan, np.inf])
def test_no_character_is_drawn_by_scores_that_are_no_numbers(score):
    with pytest.raises(ConvergenceError, match="not finite"):
        _character_model._drawn(np.array([0.0, 0, 1, score, 2]), 1.0, None, np.random.default_rng(0))
