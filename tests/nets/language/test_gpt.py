"""GPT: what it learns against counts of pairs, copying and recall, text that streams, the same bits."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import epicycle as ep
from epicycle import GPT, BytePairEncoder
from epicycle.exceptions import DataError, DataTypeError, NotFittedError, ParameterError
from epicycle.nets.language._next_token import chosen, probabilities
from epicycle.nets.language._token_windows import TokenWindows

SMALL = {"n_layers": 2, "n_heads": 2, "d_model": 32, "context_length": 24, "random_state": 0}
QUICK = {**SMALL, "max_iter": 2, "steps_per_iteration": 5}


def markov_text(n, seed):
    """Letters of which each depends on the two before it: pairs tell less than what can be known."""
    rng = np.random.default_rng(7)
    table = rng.dirichlet(np.full(6, 0.15), size=(6, 6))
    draw, state = np.random.default_rng(seed).random(n), [0, 1]
    for u in draw:
        state.append(min(int(np.searchsorted(np.cumsum(table[state[-2], state[-1]]), u)), 5))
    pairs = zip(state, state[1:], state[2:], strict=False)
    known = -np.mean([math.log(table[a, b, c]) for a, b, c in pairs])
    return "".join("abcdef"[s] for s in state), known


@pytest.fixture(scope="module")
def learnt():
    text, _ = markov_text(20_000, 0)
    return GPT(**SMALL, max_iter=6, batch_size=16, learning_rate_init=1e-2).fit(text)


def test_it_predicts_better_than_pairs_and_nearly_as_well_as_can_be(learnt):
    train, _ = markov_text(20_000, 0)
    new, entropy = markov_text(4_000, 1)
    counts = np.ones((6, 6))
    for a, b in pairwise(train):
        counts["abcdef".index(a), "abcdef".index(b)] += 1
    share = np.log(counts / counts.sum(axis=1, keepdims=True))
    by_pairs = -np.mean([share["abcdef".index(a), "abcdef".index(b)] for a, b in pairwise(new)])
    loss = -learnt.score(new)
    assert entropy < loss < entropy + 0.1 < by_pairs - 0.4
    assert learnt.perplexity(new) == pytest.approx(math.exp(loss))


def test_a_perplexity_beyond_all_numbers_is_infinite(learnt, monkeypatch):
    monkeypatch.setattr(GPT, "score", lambda self, X: -1e4)
    assert learnt.perplexity("abc") == math.inf


def test_new_text_has_the_pairs_of_the_old(learnt):
    made = "".join(learnt.generate("ab", 2000, random_state=0))
    train, _ = markov_text(20_000, 0)

    def share(text):
        counts = np.zeros((6, 6))
        for a, b in pairwise(text):
            counts["abcdef".index(a), "abcdef".index(b)] += 1
        return counts / counts.sum()

    assert np.abs(share(made) - share(train)).sum() / 2 < 0.1
    assert np.abs(share("".join(np.random.default_rng(0).permutation(list(train)))) - share(train)).sum() / 2 > 0.2


def test_log_likelihoods_are_those_of_the_scores_of_the_module(learnt):
    text, _ = markov_text(58, 3)  # three windows: 24, 24 and the rest
    ids = np.array([learnt.vocabulary_.index(c) for c in text])
    expected = 0.0
    for start in range(0, len(ids) - 1, 24):
        window = ids[start : start + 25]
        with torch.no_grad():
            z = learnt.module_(torch.from_numpy(window[None, :-1]))[0].double().log_softmax(-1)
        expected += float(z[torch.arange(len(window) - 1), torch.from_numpy(window[1:])].sum())
    assert learnt.score_samples([text])[0] == pytest.approx(expected, rel=1e-6)
    both = learnt.score_samples([text, text[:9], "a"])
    assert both[0] == pytest.approx(expected, rel=1e-6)
    assert both[2] == 0.0  # nothing comes before its only token
    assert learnt.score([text, text[:9]]) == pytest.approx((both[0] + both[1]) / (len(text) - 1 + 8), rel=1e-6)


# --------------------------------------------------------------------------------------------- tasks to 100 %


def copies(rng, n):
    """Five letters, a bar, and the same letters again."""
    words = ["".join(rng.choice(list("abcdefgh"), 5)) for _ in range(n)]
    return words, [f"{word}|{word}" for word in words]


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_what_was_read_is_copied_without_a_mistake(positions):
    rng = np.random.default_rng(0)
    model = GPT(
        **{**SMALL, "context_length": 12, "d_model": 64},
        positions=positions,
        max_iter=4,
        batch_size=32,
        learning_rate_init=3e-3,
    ).fit(copies(rng, 2000)[1])
    new, _ = copies(rng, 60)
    assert ["".join(model.generate(f"{word}|", temperature=0)) for word in new] == new


# --------------------------------------------------------------------------------------------- tokens


@pytest.mark.parametrize("tokenizer", ["characters", "bytes", "words", BytePairEncoder(280)])
def test_texts_by_any_tokens(tokenizer, tmp_path):
    texts = ["the cat sat, the cat ran", "the dog sat: naïve 🙂"] * 3
    model = GPT(tokenizer, **QUICK).fit(texts)
    assert model.end_ == model.n_tokens_ - 1
    made = list(model.generate("the", 30, random_state=1))
    assert all(isinstance(piece, str) for piece in made)
    model.save(tmp_path / "m.epi")
    loaded = ep.load(tmp_path / "m.epi")
    assert list(loaded.generate("the", 30, random_state=1)) == made
    assert_array_equal(loaded.score_samples(texts), model.score_samples(texts))
    assert list(model.generate("the", 30, random_state=2)) != made
    assert list(model.generate(n_tokens=3, temperature=0)) == list(model.generate("", 3, temperature=0))


def test_pieces_of_characters_wait_for_their_end():
    model = GPT("bytes", **{**SMALL, "d_model": 48}, max_iter=3, learning_rate_init=0.01).fit("🙂é中" * 60)
    made = "".join(model.generate("🙂", 200, temperature=0))
    assert made.startswith("é中🙂é中🙂")
    assert "\ufffd" not in made


def test_generation_beyond_the_context_goes_on_from_its_second_half(learnt):
    made = "".join(learnt.generate("abc", 60, temperature=0))
    ids = [learnt.vocabulary_.index(c) for c in "abc"]
    with torch.no_grad():
        for c in made:
            if len(ids) > 24:
                ids = ids[-12:]
            best = int(learnt.module_(torch.tensor([ids]))[0, -1].argmax())
            assert learnt.vocabulary_[best] == c
            ids.append(best)


def test_probabilities_of_the_next_token():
    z = np.log([0.5, 0.2, 0.2, 0.07, 0.03])
    assert_allclose(probabilities(z), [0.5, 0.2, 0.2, 0.07, 0.03])
    assert_allclose(probabilities(z, temperature=0.5), np.exp(2 * z) / np.exp(2 * z).sum())
    assert_allclose(probabilities(z, temperature=0), [1, 0, 0, 0, 0])
    assert_allclose(probabilities(z, top_k=2), np.array([5, 2, 2, 0, 0]) / 9)  # equals are kept together
    assert_allclose(probabilities(z, top_p=0.45), [1, 0, 0, 0, 0])
    assert_allclose(probabilities(z, top_p=0.95), np.array([0.5, 0.2, 0.2, 0.07, 0]) / 0.97)
    assert_allclose(probabilities(1000 * z, temperature=1e-3), [1, 0, 0, 0, 0])
    rng = np.random.default_rng(0)
    drawn = np.bincount([chosen(probabilities(z), rng) for _ in range(4000)], minlength=5) / 4000
    assert_allclose(drawn, np.exp(z), atol=0.03)


def test_attention_of_a_text(learnt):
    weights = learnt.attention("abcabc")
    assert weights.shape == (2, 2, 6, 6)
    assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
    assert not np.triu(weights, 1).any()


# --------------------------------------------------------------------------------------------- training


def test_windows_are_of_the_text():
    rows = TokenWindows([np.arange(100)], 8)
    for shuffle in (True, False):
        for batch in rows.epoch(4, 1, 0, shuffle=shuffle):
            assert torch.equal(batch.inputs[0][:, 1:], batch.target[:, :-1].clamp(min=0)) or not shuffle
            kept = batch.target >= 0
            assert torch.equal(batch.inputs[0][kept] + 1, batch.target[kept])
    in_order = list(TokenWindows([np.arange(10), np.arange(50, 53)], 4).in_order(2))
    targets = torch.cat([b.target[b.target >= 0] for b in in_order])
    assert targets.tolist() == [*range(1, 10), 51, 52]
    assert sum(float(b.weight.sum()) for b in in_order) == 11 / 4
    first = [b.inputs[0] for b in rows.epoch(4, 0, 5, shuffle=True)]
    again = [b.inputs[0] for b in rows.epoch(4, 0, 5, shuffle=True)]
    assert all(map(torch.equal, first, again))


def test_the_same_bits_for_any_number_of_threads():
    fits = []
    for threads in (1, 2):
        with ep.config(n_jobs=threads):
            model = GPT(**{**QUICK, "d_model": 64, "batch_size": 64}, dropout=0.1).fit(markov_text(2000, 0)[0])
        assert model._training_options(TokenWindows([np.zeros(99, int)], 24)).parts > 1
        fits.append(model)
    for a, b in zip(*(fit._weights_.values() for fit in fits), strict=True):
        assert_array_equal(a, b)


def test_texts_held_out_end_the_fit_and_choose_the_weights():
    text = "".join(np.random.default_rng(0).choice(list("abcd"), 600))  # nothing to learn but the shares
    model = GPT(
        **SMALL, max_iter=30, steps_per_iteration=20, early_stopping=True, n_iter_no_change=3, learning_rate_init=0.01
    ).fit(text)
    losses = model.history_["validation_loss"]
    assert model.n_iter_ < 30
    held = TokenWindows([np.array([model.vocabulary_.index(c) for c in text[540:]])], 24)
    assert model._mean_loss(model.module_, held) == pytest.approx(losses.min(), rel=1e-6)
    assert losses.min() > math.log(4) - 0.05


def test_documents_held_out_are_whole():
    lines = copies(np.random.default_rng(0), 40)[1]
    model = GPT(**{**QUICK, "context_length": 16}, early_stopping=True).fit(lines)
    tokens = [np.r_[model.end_, model._codec().encode(line)] for line in lines]
    begins = 12 * np.arange(40)
    kept, held = model._hold_out(TokenWindows([np.r_[np.concatenate(tokens), model.end_]], 16, begins), 0)
    assert len(kept.tokens) + len(held.tokens) == 12 * 40 + 1 + 4
    assert kept.begins.tolist() == begins[:36].tolist()
    batch = next(iter(held.in_order(10)))
    assert_array_equal(batch.inputs[0], np.array(tokens[36:]))
    assert (batch.target[:, -1] == model.end_).all()
    expected = -model.score(lines[36:])
    assert model._mean_loss(model.module_, held) == pytest.approx(expected, rel=1e-5)


def test_a_second_fit_goes_on_with_the_vocabulary_of_the_first():
    text, _ = markov_text(3000, 0)
    model = GPT(**QUICK, warm_start=True).fit(text)
    fewer = text[:500].replace("f", "a")
    first = model.score(fewer)
    assert model.fit(fewer).score(fewer) > first + 0.05
    assert len(model.vocabulary_) == 6
    with pytest.raises(DataError, match="the character 'z' is not among the 6"):
        model.fit("abz")


def test_a_stream_of_texts_is_learnt_from_piece_by_piece():
    text, _ = markov_text(6000, 0)
    model = GPT(**{**SMALL, "learning_rate": "constant"}, steps_per_iteration=60, learning_rate_init=5e-3)
    scores = [model.partial_fit(text[i : i + 2000]).score(text[5000:]) for i in (0, 2000, 4000)]
    assert scores[0] < scores[1] < scores[2]
    assert model.history_.n_iter == 3
    with pytest.raises(DataError, match="2 documents, but the first fit had one"):
        model.partial_fit(["ab", "cd"])
    with pytest.raises(ParameterError, match="learning_rate='cosine' needs to know the number of steps"):
        GPT(**SMALL).partial_fit(text)


# --------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("X", "arguments", "error", "match"),
    [
        (["a", 3], {}, DataTypeError, "document 1 is of type int; expected str"),
        ([], {}, DataError, "no documents"),
        ("a", {}, DataError, "1 tokens; expected at least 2"),
        ("abc", {"tokenizer": None}, DataTypeError, "sequences of integers"),
        ([[0.5, 1.0]], {"tokenizer": None}, DataTypeError, "float64"),
        ([[0, -1]], {"tokenizer": None}, DataError, "the token -1"),
        ("abc", {"n_heads": 5}, ParameterError, "d_model=32, n_heads=5; expected heads|divide"),
        ("abc", {"d_model": 6, "positions": "rotary"}, ParameterError, "even size"),
        ("abc", {"tokenizer": "letters"}, ParameterError, "tokenizer='letters'"),
        ("abc", {"early_stopping": True}, DataError, "too few to hold some out"),
    ],
)
def test_what_cannot_be_learnt_from_is_named(X, arguments, error, match):
    with pytest.raises(error, match=match):
        GPT(**{**QUICK, **arguments}).fit(X)


def test_what_cannot_be_continued_is_named(learnt):
    with pytest.raises(DataError, match="nothing to continue"):
        learnt.generate()
    with pytest.raises(DataError, match="the character 'z'"):
        learnt.generate("z")
    with pytest.raises(ParameterError, match=r"temperature=-1; expected a real number >= 0"):
        learnt.generate("a", temperature=-1)
    with pytest.raises(ParameterError, match="top_k=0"):
        learnt.generate("a", top_k=0)
    with pytest.raises(ParameterError, match="top_p=0"):
        learnt.generate("a", top_p=0.0)
    with pytest.raises(DataError, match="expected 1 to context_length=24"):
        learnt.attention("a" * 30)
    with pytest.raises(DataError, match="at least 2 tokens"):
        learnt.score(["a"])
    with pytest.raises(NotFittedError, match="GPT"):
        GPT().generate("a")
