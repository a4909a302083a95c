"""Attention by hand, by NumPy and by torch's fused kernel; positions; gradients of every architecture."""

import numpy as np
import pytest
import torch
from gradient_of_module import check_module
from numpy.testing import assert_allclose
from torch.nn import functional

from epicycle import BERT, GPT, BERTClassifier, Transformer
from epicycle.nets.language._attention import (
    MultiHeadAttention,
    attention,
    attention_weights,
    causal,
    present,
    rotated,
    sinusoids,
)
from epicycle.nets.language._blocks import Embedding
from epicycle.nets.language._masked_rows import MaskedRows
from epicycle.nets.language._pair_rows import PairRows
from epicycle.nets.language._token_windows import TokenWindows
from epicycle.nets.training._batches import SequenceRows

POSITIONS = ("learned", "sinusoidal", "rotary")
SIZES = {"n_tokens": 7, "n_layers": 2, "n_heads": 2, "d_model": 8, "dropout": 0.0, "context_length": 9, "longest": 9}


def by_numpy(q, k, v, allowed):
    out = np.zeros((len(q), v.shape[1]))
    for t in range(len(q)):
        scores = np.array([q[t] @ k[s] / np.sqrt(q.shape[1]) if allowed[t, s] else -np.inf for s in range(len(k))])
        share = np.exp(scores - scores.max())
        out[t] = share @ v / share.sum()
    return out


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 2e-6)])
def test_attention_is_that_of_numpy_and_of_torch(dtype, tolerance):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, n, 5, dtype=dtype) for n in (4, 6, 6))
    allowed = torch.rand(2, 3, 4, 6) < 0.6
    allowed[..., 0] = True
    for mask in (None, causal(4, 6), allowed):
        found = attention(q, k, v, mask)
        assert_allclose(found, functional.scaled_dot_product_attention(q, k, v, attn_mask=mask), rtol=0, atol=tolerance)
        full = torch.ones(2, 3, 4, 6, dtype=torch.bool) if mask is None else mask.expand(2, 3, 4, 6)
        expected = by_numpy(*(t[1, 2].double().numpy() for t in (q, k, v)), full[1, 2].numpy())
        assert_allclose(found[1, 2], expected, rtol=0, atol=tolerance)
    weights = attention_weights(q, k, allowed)
    assert_allclose(weights.sum(-1), 1, rtol=1e-5)
    assert not weights[~allowed].any()


def test_the_fused_way_and_the_written_one_are_the_same():
    torch.manual_seed(0)
    layer = MultiHeadAttention(8, 2, 0.0).double()
    x, other = torch.randn(3, 5, 8, dtype=torch.float64), torch.randn(3, 4, 8, dtype=torch.float64)
    lengths = torch.tensor([4, 1, 3])
    for arguments in ({"is_causal": True}, {}, {"other": other, "allowed": present(lengths, 4)}):
        seen = []
        assert_allclose(layer(x, **arguments).detach(), layer(x, seen=seen, **arguments).detach(), rtol=0, atol=1e-14)
        assert seen[0].shape == (3, 2, 5, 4 if "other" in arguments else 5)


def test_causal_masks_end_at_the_last_key():
    assert causal(2, 4).tolist() == [[True, True, True, False], [True, True, True, True]]


def test_rotary_products_depend_on_the_distance_alone():
    torch.manual_seed(0)
    q, k = torch.randn(2, 6, dtype=torch.float64)
    sin, cos = sinusoids(torch.arange(20), 6, torch.float64)

    def product(i, j):
        return float(rotated(q, sin[i], cos[i]) @ rotated(k, sin[j], cos[j]))

    assert product(3, 1) == pytest.approx(product(19, 17), rel=1e-12)
    assert product(3, 1) != pytest.approx(product(3, 2), rel=1e-3)
    assert product(5, 5) == pytest.approx(float(q @ k), rel=1e-12)


def test_waves_are_those_of_the_paper():
    embedding = Embedding(3, 6, 2, "sinusoidal", 10, 0.0).double()
    with torch.no_grad():
        embedding.tokens.weight.zero_()
    found = embedding(torch.zeros(1, 5, dtype=torch.long), start=2)[0].detach()
    for t in range(5):
        for i in range(3):
            angle = (t + 2) / 10000 ** (2 * i / 6)
            assert_allclose(found[t, 2 * i : 2 * i + 2], [np.sin(angle), np.cos(angle)], atol=1e-12)


# --------------------------------------------------------------------------------------------- gradients


def sequences(rng, n, longest):
    return [rng.integers(0, 5, rng.integers(1, longest)) for _ in range(n)]


@pytest.mark.parametrize(
    ("model", "positions"),
    [(GPT, "learned"), (BERT, "sinusoidal"), (Transformer, "rotary"), (BERTClassifier, "rotary")],
)
def test_gradients_of_every_architecture(model, positions):
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    sources = sequences(rng, 5, 8)
    rows = {
        GPT: TokenWindows([rng.integers(0, 7, 30)], 9),
        BERT: MaskedRows(sources, 0.4, 5, 5),
        Transformer: PairRows(sources, [np.r_[5, s, 6] for s in sequences(rng, 5, 7)]),
        BERTClassifier: SequenceRows(sources, np.arange(5) % 3),
    }[model]
    unfitted = model()
    unfitted.label_smoothing, unfitted.classes_ = 0.0, np.arange(3)
    module = model._build_module({**SIZES, "positions": positions, "n_outputs": 3, "head_dropout": 0.0})
    with torch.no_grad():
        for weight in module.parameters():
            weight.add_(0.3 * torch.randn_like(weight))  # away from the small start, where all is nearly linear
    assert check_module(module, unfitted._row_losses(), rows, n_coordinates=12)


# --------------------------------------------------------------------------------------------- what is seen


@pytest.mark.parametrize("positions", POSITIONS)
def test_later_tokens_change_nothing_before_them(positions):
    torch.manual_seed(0)
    module = GPT._build_module({**SIZES, "positions": positions}).double().eval()
    tokens = torch.randint(0, 7, (2, 9))
    changed = tokens.clone()
    changed[:, 5:] = (tokens[:, 5:] + 1) % 7
    with torch.no_grad():
        one, two = module(tokens), module(changed)
    assert_allclose(one[:, :5], two[:, :5], rtol=0, atol=1e-12)
    assert (one[:, 5:] - two[:, 5:]).abs().amin() > 0
    pair = Transformer._build_module({**SIZES, "positions": positions}).double().eval()
    source, lengths = torch.randint(0, 7, (2, 4)), torch.tensor([4, 2])
    with torch.no_grad():
        assert_allclose(pair(source, lengths, tokens)[:, :5], pair(source, lengths, changed)[:, :5], atol=1e-12)


@pytest.mark.parametrize("positions", POSITIONS)
def test_padding_changes_nothing(positions):
    torch.manual_seed(0)
    a = {**SIZES, "positions": positions, "n_outputs": 2, "head_dropout": 0.0}
    text, lengths = torch.randint(0, 7, (3, 5)), torch.tensor([5, 2, 3])
    wide = torch.cat([text, torch.randint(0, 7, (3, 4))], dim=1)
    target = torch.randint(0, 7, (3, 4))
    for model, arguments in ((BERT, ()), (BERTClassifier, ()), (Transformer, (target,))):
        module = model._build_module(a).double().eval()
        with torch.no_grad():
            narrow, padded = module(text, lengths, *arguments), module(wide, lengths, *arguments)
            alone = module(text[1:2, :2], lengths[1:2], *(t[1:2] for t in arguments))
        if model is BERT:  # scores for every place: those of the text
            narrow, padded = narrow[1, :2], padded[1, :2]
            alone = alone[0]
        else:
            assert_allclose(narrow, padded, rtol=0, atol=1e-12)
            narrow, alone = narrow[1], alone[0]
        assert_allclose(narrow, alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("positions", POSITIONS)
def test_kept_keys_and_values_give_the_scores_of_the_whole(positions):
    torch.manual_seed(0)
    module = GPT._build_module({**SIZES, "positions": positions}).double().eval()
    tokens = torch.randint(0, 7, (2, 9))
    with torch.no_grad():
        whole, past = module(tokens), []
        pieces = [module(tokens[:, a:b], past) for a, b in ((0, 4), (4, 5), (5, 9))]
    assert_allclose(torch.cat(pieces, dim=1), whole, rtol=0, atol=1e-12)
    pair = Transformer._build_module({**SIZES, "positions": positions}).double().eval()
    source, lengths = torch.randint(0, 7, (2, 6)), torch.tensor([6, 3])
    with torch.no_grad():
        whole, past = pair(source, lengths, tokens), []
        encoded, allowed = pair.encode(source, lengths), present(lengths, 6)
        steps = [pair.decode(tokens[:, t : t + 1], encoded, allowed, past) for t in range(9)]
    assert_allclose(torch.cat(steps, dim=1), whole, rtol=0, atol=1e-12)
