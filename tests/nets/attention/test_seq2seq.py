"""From text to text: attention in NumPy, beam search against all sequences, tasks with known answers and baselines."""

import itertools
import math

import numpy as np
import pytest
import torch
from attention_samples import reversals
from gradient_of_module import check_module
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import epicycle as ep
from epicycle import Seq2Seq
from epicycle.exceptions import DataError, DataTypeError, ParameterError
from epicycle.nets.attention._beam_search import beam_search
from epicycle.nets.attention._decoder import Attention, Seq2SeqNet
from epicycle.nets.attention._rows import JointRows
from epicycle.nets.training import _options

SETTINGS = {"hidden_size": 32, "embedding_size": 16, "learning_rate_init": 0.01, "random_state": 0}
SIZES = {"hidden_size": 4, "n_layers": 2, "embedding_size": 3, "dropout": 0.0, "n_sources": 3, "n_targets": 2}


@pytest.fixture(scope="module")
def model():
    X, y = reversals(600)
    return Seq2Seq(**SETTINGS, max_iter=20, learning_rate="cosine").fit(X, y)


def network(attention="additive", cell="gru", **changes):
    torch.manual_seed(0)
    net = Seq2SeqNet({**SIZES, "attention": attention, "cell": cell, "mean_length": 3.0, **changes})
    with torch.no_grad():
        for weight in net.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return net.double().eval()


def rows():
    sources = [np.array([3, 4, 5]), np.array([5]), np.array([4, 4])]
    targets = [np.array([2, 3, 2]), np.array([2, 4, 4, 3, 2]), np.array([2, 2])]
    return JointRows([sources, np.array([3, 1, 2]), targets])


@pytest.mark.parametrize(("attention", "cell"), [("additive", "gru"), ("dot", "lstm"), (None, "rnn")])
def test_gradients(attention, cell):
    model = Seq2Seq(attention)
    model.architecture_ = {"mean_length": 3.0}
    assert check_module(network(attention, cell), model._row_losses(), rows(), n_coordinates=15)


def test_weights_of_attention_by_hand():
    rng = np.random.default_rng(0)
    s, m = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 5, 6))
    inside = np.arange(5) < np.array([[5], [3]])
    for kind in ("additive", "dot"):
        torch.manual_seed(0)
        layer = Attention(kind, 4, 6).double()
        arrays = [torch.from_numpy(a) for a in (s, m, inside)]
        found = layer(arrays[0], layer.keys(arrays[1]), arrays[2]).detach().numpy()
        B = layer.keys.weight.detach().numpy()
        for i, t in itertools.product(range(2), range(3)):
            scores = []
            for j in range(5 if i == 0 else 3):
                if kind == "dot":
                    scores.append(s[i, t] @ B @ m[i, j])
                else:
                    A, b = (p.detach().numpy() for p in layer.queries.parameters())
                    v = layer.scorer.weight.detach().numpy()[0]
                    scores.append(v @ np.tanh(A @ s[i, t] + b + B @ m[i, j]))
            p = np.exp(scores) / np.exp(scores).sum()
            assert_allclose(found[i, t, : len(p)], p, rtol=1e-10)
            assert not found[i, t, len(p) :].any()


@pytest.mark.parametrize("attention", ["additive", "dot", None])
def test_padding_changes_nothing(attention):
    net = network(attention, "lstm")
    together = next(rows().in_order(3)).inputs
    scores = net(*together).detach()
    for i in range(3):
        alone = next(rows().subset(np.array([i])).in_order(1)).inputs
        found = net(*alone).detach()[0]
        assert_allclose(scores[i, : len(found)], found, rtol=1e-12, atol=1e-14)


# --------------------------------------------------------------------------------------------- the search


def random_source(seed, n_tokens=6):
    """Scores of the next token that depend on the two before, as a step for the search, and log P of a sequence."""
    table = torch.from_numpy(np.random.default_rng(seed).normal(0, 1.5, (n_tokens, n_tokens, n_tokens)))

    def step(last, state):  # the state is the token before the last one
        return table[state[0, :, 0].long(), last], last[None, :, None].double()

    def log_probability(tokens):
        total, before, last = 0.0, 2, 2
        for token in (*tokens, 2):
            total += float(table[before, last].log_softmax(-1)[token])
            before, last = last, token
        return total

    return step, log_probability


@pytest.mark.parametrize("length_penalty", [0.0, 0.7, 1.5])
def test_a_wide_search_finds_the_best_of_all_sequences(length_penalty):
    for seed in range(5):
        step, log_probability = random_source(seed)
        texts = [t for length in range(4) for t in itertools.product((3, 4, 5), repeat=length)]
        values = [log_probability(t) / (len(t) + 1) ** length_penalty for t in texts]
        start = torch.full((1, 2, 1), 2.0, dtype=torch.float64)
        found, scores = beam_search(step, start, 60, 3, length_penalty)
        assert found == [list(texts[int(np.argmax(values))])] * 2
        assert_allclose(scores, max(values), rtol=1e-12)


def test_one_candidate_is_the_most_probable_token_each_time():
    for seed in range(10):
        step, _ = random_source(seed)
        found, _ = beam_search(step, torch.full((1, 1, 1), 2.0, dtype=torch.float64), 1, 8, 1.0)
        tokens, state, last = [], torch.full((1, 1, 1), 2.0, dtype=torch.float64), torch.tensor([2])
        while len(tokens) < 8:
            scores, state = step(last, state)
            scores[:, :2] = -torch.inf
            last = scores.argmax(1)
            if int(last) == 2:
                break
            tokens.append(int(last))
        assert found[0] == tokens


def test_more_candidates_find_more_probable_texts(model):
    X, _ = reversals(60, seed=5)
    rough = Seq2Seq(**SETTINGS, max_iter=3).fit(*reversals(300))
    values = []
    for n_beams in (1, 8):
        rough.set_params(n_beams=n_beams, length_penalty=0.0)
        values.append(rough.score_samples(X, rough.predict(X)).mean())
    assert values[1] > values[0]
    # The search of many rows at once is that of each one alone.
    assert [rough.predict([text])[0] for text in X[:10]] == rough.predict(X[:10])


# --------------------------------------------------------------------------------------------- learning


def test_texts_are_reversed_and_attention_runs_backwards(model):
    X, y = reversals(200, seed=1)
    assert model.score(X, y) > 0.97
    without = Seq2Seq(None, **SETTINGS, max_iter=20, learning_rate="cosine").fit(*reversals(600))
    assert without.score(X, y) < model.score(X, y)
    long = [text for text in X if len(text) == 6 and len(set(text)) > 3][:20]
    for text, weights in zip(long, model.attention_weights(long), strict=True):
        assert weights.shape == (len(text) + 1, len(text))
        assert_allclose(weights.sum(axis=1), 1, rtol=1e-5)
    places = np.mean([weights[:-1].argmax(axis=1) for weights in model.attention_weights(long)], axis=0)
    assert np.corrcoef(places, np.arange(6))[0, 1] < -0.9


def sums(n, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 50, (2, n))
    return [f"{i}+{j}" for i, j in zip(a, b, strict=True)], [str(i + j) for i, j in zip(a, b, strict=True)]


@pytest.mark.slow
def test_numbers_are_added():
    X, y = sums(2000, 0)
    new = [(a, b) for a, b in zip(*sums(400, 1), strict=True) if a not in set(X)]
    model = Seq2Seq(hidden_size=64, embedding_size=16, max_iter=40, learning_rate_init=0.01, learning_rate="cosine")
    model.set_params(random_state=0, batch_size=64).fit(X, y)
    right = model.score([a for a, _ in new], [b for _, b in new])
    known = dict(zip(X, y, strict=True))
    nearest = np.mean([min(known, key=lambda t: sum(p != q for p, q in zip(t, a, strict=False))) == a for a, _ in new])
    assert right > 0.9 > nearest


MONTHS = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november"]
MONTHS += ["december"]


def dates(n, seed):
    """Dates as people write them, and as a machine does."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        day, month, year = rng.integers(1, 29), rng.integers(1, 13), rng.integers(1950, 2030)
        name = MONTHS[month - 1]
        forms = [f"{day} {name} {year}", f"{name} {day}, {year}", f"{day}/{month}/{year}", f"{name[:3]} {day} {year}"]
        X.append(forms[rng.integers(4)])
        y.append(f"{year}-{month:02d}-{day:02d}")
    return X, y


@pytest.mark.slow
def test_dates_are_brought_into_one_form():
    model = Seq2Seq(hidden_size=64, max_iter=15, learning_rate_init=0.01, learning_rate="cosine", random_state=0)
    model.fit(*dates(2000, 0))
    assert model.score(*dates(300, 1)) > 0.97


def test_words_and_lists_of_tokens():
    rng = np.random.default_rng(0)
    numbers = {"one": "un", "two": "deux", "three": "trois", "red": "rouges", "big": "grands"}
    X = [" ".join(rng.choice(list(numbers), rng.integers(1, 4))) for _ in range(300)]
    y = [" ".join(numbers[word] for word in text.split()) for text in X]
    short = Seq2Seq("dot", "lstm", **{**SETTINGS, "learning_rate_init": 0.02}, analyzer="word", max_iter=15)
    texts = clone(short).fit(X, y)
    assert texts.score(X, y) > 0.95
    assert texts.predict(["two big red"]) == ["deux grands rouges"]
    lists = clone(short).fit([text.split() for text in X], [text.split() for text in y])
    assert lists.predict([["two", "big", "red"]]) == [["deux", "grands", "rouges"]]
    assert texts.target_vocabulary_ == sorted(numbers.values())


# --------------------------------------------------------------------------------------------- the rules of the loop


def test_probabilities_of_all_texts_add_up_to_one():
    X, y = ["x", "y"] * 20, ["a", "b"] * 20
    model = Seq2Seq(**{**SETTINGS, "hidden_size": 16}, max_iter=40).fit(X, y)
    texts = ["".join(t) for length in range(7) for t in itertools.product("ab", repeat=length)]
    total = np.exp(model.score_samples(["x"] * len(texts), texts)).sum()
    assert 0.9 < total < 1.0  # the rest is for longer texts, and for unknown characters
    assert model.score(X, y) == 1.0


def test_the_same_bits_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(_options, "_LARGE_STEP", 1.0)  # so that these small batches have four parts
    fits = []
    for threads in (1, 2):
        with ep.config(n_jobs=threads):
            fits.append(Seq2Seq(**SETTINGS, dropout=0.2, n_layers=2, max_iter=2).fit(*reversals(70)))
    for a, b in zip(*(fit._weights_.values() for fit in fits), strict=True):
        assert_array_equal(a, b)


def test_texts_of_weight_zero_are_not_there_and_held_out_texts_are_counted():
    X, y = reversals(90)
    short = Seq2Seq(**SETTINGS, max_iter=2)
    v = np.r_[np.ones(60), np.zeros(30)]
    weighted = clone(short).fit(X, y, sample_weight=v)
    plain = clone(short).fit(X[:60], y[:60])
    assert_allclose(weighted.score_samples(X, y), plain.score_samples(X, y), atol=1e-4)
    stopped = clone(short).set_params(early_stopping=True).fit(X, y)
    assert math.isfinite(stopped.history_["validation_loss"][-1])
    assert "9" in stopped.certificate_.meaning  # of nine texts that were held out


@pytest.mark.parametrize(
    ("X", "y", "error", "match"),
    [
        (["ab", ""], ["a", "b"], DataError, "entry 1 is empty"),
        (["ab", 3], ["a", "b"], DataTypeError, r"entry 1 is 3 \(int\)"),
        ("ab", ["a", "b"], DataTypeError, "put a single text into a list"),
        (["ab", "b"], ["a"], DataError, "y has 1"),
        (["ab", "b"], ["a", 3], DataTypeError, r"y: entry 1 is 3 \(int\)"),
        (["ab", "b"], "ab", DataTypeError, "y: .*got str"),
        (["ab", "b"], None, DataError, "requires y"),
        (["ab", "b"], ["", ""], DataError, "all texts are empty"),
    ],
)
def test_what_is_no_texts_is_refused(X, y, error, match):
    with pytest.raises(error, match=match):
        Seq2Seq().fit(X, y)


def test_arguments_that_cannot_be_are_refused(model):
    with pytest.raises(ParameterError, match="attention"):
        Seq2Seq("soft").fit(["a"], ["b"])
    with pytest.raises(DataError, match="attention=None has no weights"):
        Seq2Seq(None, max_iter=1, hidden_size=2).fit(["a", "b"], ["b", "a"]).attention_weights(["a"])


def test_the_picture_of_attention(model):
    drawn = ep.plot.attention(model.attention_weights(["abc"])[0], "abc", "cba")
    assert drawn.data["weight"].shape == (12,)
    assert drawn.data["written"].tolist()[-1] == "end"
    with pytest.raises(DataError, match=r"shape \(4, 3\) for 5 tokens"):
        ep.plot.attention(model.attention_weights(["abc"])[0], "abc", "abcde")
