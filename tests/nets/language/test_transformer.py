"""The encoder-decoder: sequences reversed and copied without a mistake; beams against all sequences there are."""

from itertools import product

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import epicycle as ep
from epicycle import Transformer
from epicycle.exceptions import DataError, DataTypeError, ParameterError
from epicycle.nets.language._beam_search import beam_search

SMALL = {"n_layers": 2, "n_heads": 2, "d_model": 32, "random_state": 0}


def words(n, seed=0, longest=6):
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list("abcde"), size=rng.integers(0, longest + 1))) for _ in range(n)]


@pytest.fixture(scope="module")
def reversing():
    sources = words(1500)
    return Transformer(**SMALL, max_iter=20, batch_size=32, learning_rate_init=5e-3).fit(
        sources, [s[::-1] for s in sources]
    )


def test_reversal_without_a_mistake(reversing):
    new = sorted(set(words(400, 1)) - set(words(1500)))
    assert len(new) > 100
    assert reversing.score(new, [s[::-1] for s in new]) == 1.0
    assert reversing.predict(["", "e", "abcde"]).tolist() == ["", "e", "edcba"]


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_copies_of_numbers_without_a_mistake(positions):
    rng = np.random.default_rng(0)
    sources = [rng.integers(0, 6, rng.integers(1, 6)) for _ in range(1200)]
    model = Transformer(None, **SMALL, positions=positions, max_iter=20, batch_size=32, learning_rate_init=5e-3).fit(
        sources[:1000], sources[:1000]
    )
    assert model.score(sources[1000:], sources[1000:]) == 1.0
    if positions == "learned":
        with pytest.raises(DataError, match="a source of 9 tokens"):
            model.predict([np.zeros(9, int)])


def test_it_looks_where_the_answer_is(reversing):
    """To write the mirrored word, place t of the target needs place n - 1 - t of the source."""
    weights = reversing.attention("abcde", "edcba")
    assert weights.shape == (2, 2, 6, 6)
    assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
    mirrored = weights[:, :, :5, :5][..., np.arange(5), 4 - np.arange(5)].mean(axis=-1)
    assert mirrored.max() > 0.5


def test_a_wide_beam_finds_the_most_probable_of_all_sequences():
    torch.manual_seed(1)
    a = {"n_tokens": 5, "n_layers": 1, "n_heads": 1, "d_model": 6, "dropout": 0.0, "positions": "rotary", "longest": 9}
    module = Transformer._build_module(a).double().eval()
    with torch.no_grad():
        for weight in module.parameters():
            weight.add_(torch.randn_like(weight))
    source, lengths = torch.tensor([[0, 1, 2], [2, 2, 0]]), torch.tensor([3, 2])
    with torch.no_grad():
        best = []
        for row in range(2):
            found = {}
            for n in range(4):
                for target in product(range(3), repeat=n):
                    goal = torch.tensor([[3, *target]])
                    z = module(source[row : row + 1], lengths[row : row + 1], goal)[0]
                    z[:, 3] = -torch.inf  # the beginning never follows
                    log_p = z.log_softmax(-1)
                    following = torch.tensor([*target, 4])
                    found[target] = float(log_p[torch.arange(n + 1), following].sum())
            best.append(max(found.items(), key=lambda item: item[1]))
        targets, values = beam_search(module, source, lengths, begin=3, end=4, most=4, width=200)
        greedy, lower = beam_search(module, source, lengths, begin=3, end=4, most=4, width=1)
    for row in range(2):
        if len(targets[row]) < 4:  # one that has ended
            assert tuple(targets[row]) == best[row][0]
            assert values[row] == pytest.approx(best[row][1], rel=1e-9)
        assert values[row] >= best[row][1] - 1e-9
        assert lower[row] <= values[row] + 1e-12
    assert len(greedy) == 2


def test_beams_and_greed_agree_where_it_is_sure(reversing, tmp_path):
    new = words(50, 2)
    reversing.save(tmp_path / "m.epi")
    wide = ep.load(tmp_path / "m.epi").set_params(beam_size=3)
    assert_array_equal(wide.predict(new), reversing.predict(new))


def test_the_same_bits_for_any_number_of_threads():
    fits, sources = [], words(200)
    for threads in (1, 2):
        with ep.config(n_jobs=threads):
            fits.append(
                Transformer(**{**SMALL, "d_model": 64}, max_iter=1, batch_size=100, dropout=0.1).fit(sources, sources)
            )
    for a, b in zip(*(fit._weights_.values() for fit in fits), strict=True):
        assert_array_equal(a, b)


def test_pairs_of_weight_zero_are_not_there():
    sources = words(60)
    v = np.r_[np.ones(40), np.zeros(20)]
    quick = {**SMALL, "max_iter": 2, "tokenizer": "bytes", "positions": "rotary"}
    found = Transformer(**quick).fit(sources, sources, sample_weight=v)
    kept = Transformer(**quick).fit(sources[:40], sources[:40])
    for a, b in zip(found._weights_.values(), kept._weights_.values(), strict=True):
        assert_allclose(a, b, atol=1e-6)


def test_pairs_held_out_end_the_fit():
    sources = words(300)
    rng = np.random.default_rng(0)
    model = Transformer(**SMALL, max_iter=40, early_stopping=True, n_iter_no_change=2, learning_rate_init=0.01).fit(
        sources, ["".join(rng.choice(list("xy"), 4)) for _ in sources]
    )  # targets without a rule
    assert model.n_iter_ < 40
    assert model.history_["validation_loss"].min() > 0.5


@pytest.mark.parametrize(
    ("X", "y", "arguments", "error", "match"),
    [
        (["a"], None, {}, DataError, "requires y"),
        (["a", "b"], ["a"], {}, DataError, "2 sources and 1 targets"),
        (["a"], [3], {}, DataTypeError, "y: document 0 is of type int"),
        (["a"], ["b"], {"n_heads": 3}, ParameterError, "d_model=32, n_heads=3"),
        (["a"], ["b"], {"beam_size": 0}, ParameterError, "beam_size=0"),
        ([[1.5]], [[1]], {"tokenizer": None}, DataTypeError, "float64"),
    ],
)
def test_what_cannot_be_learnt_from_is_named(X, y, arguments, error, match):
    with pytest.raises(error, match=match):
        Transformer(**{**SMALL, "max_iter": 1, **arguments}).fit(X, y)
