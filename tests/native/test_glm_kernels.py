"""The passes of generalized linear models against plain NumPy: every family, layout and design, and bad calls."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from epicycle import _native
from epicycle.linear import families
from epicycle.linear.glm._response import response_of

FAMILIES = [
    families.Gaussian(),
    families.Binomial(),
    families.Poisson(),
    families.Gamma(),
    families.Tweedie(1.3),
    families.NegativeBinomial(0.6),
]


def family_of(response, expected=False):
    return _native.glm.Family(kind=response.native, a=response.a, b=response.b, expected=expected)


def layouts(X):
    wide = np.zeros((X.shape[0] * 2, X.shape[1] * 3), X.dtype)
    wide[::2, ::3] = X
    return [np.ascontiguousarray(X), np.asfortranarray(X), wide[::2, ::3]]


def lower(H):
    return np.tril(H)


@settings(max_examples=80)
@given(
    family=st.sampled_from(FAMILIES),
    n=st.integers(0, 600),
    p=st.integers(0, 35),
    k=st.integers(0, 3),
    seed=st.integers(0, 99),
    weighted=st.booleans(),
    with_offset=st.booleans(),
    expected=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_a_pass_is_what_numpy_adds_up(family, n, p, k, seed, weighted, with_offset, expected, dtype):
    rng = np.random.default_rng(seed)
    response = response_of(family, "auto")
    X = (rng.standard_normal((n, p)) * 0.3).astype(dtype)
    levels = rng.integers(1, 6, k)
    skip = rng.integers(0, 2, k)
    codes = np.column_stack([rng.integers(-1, count + 1, n) for count in levels] or [np.empty((n, 0))]).astype(dtype)
    first = p + np.concatenate([[0], np.cumsum(levels - skip)])[:k]
    d = p + int((levels - skip).sum()) + 1
    columns = [X.astype(float)]
    for c in range(k):
        columns.append((codes[:, [c]] == np.arange(skip[c], levels[c])).astype(float))
    shift = rng.standard_normal(p)
    A = np.column_stack([*columns, np.ones(n)]).reshape(n, d)
    A[:, :p] -= shift
    coef, b = rng.standard_normal(d - 1) * 0.3, 0.2
    offset = rng.standard_normal(n) * 0.1 if with_offset else None
    eta = A @ np.append(coef, b) + (0 if offset is None else offset)
    y = rng.gamma(2.0, 1.0, n) if family.name != "binomial" else rng.integers(0, 2, n) * 1.0
    weight = rng.integers(0, 3, n).astype(float) if weighted else None
    w = np.ones(n) if weight is None else weight
    terms = response.terms(y, eta)
    h = w * (terms.e if expected else terms.h)
    metric = rng.random(d)
    categories = (codes, first.astype(np.int64), levels.astype(np.int64), skip.astype(np.int64))
    scale = 1e-9 * max(
        1.0, float(np.abs(A).max(initial=0.0)) ** 2 * max(float(np.abs(h).sum()), float(np.abs(w * terms.r).sum()))
    )
    for layout in layouts(X):
        given_y, family = (y, weight, offset, shift, coef, b), family_of(response, expected)
        loss, pearson, least, reach, g, H = _native.glm.evaluate(layout, categories, *given_y, metric, family, True)
        assert_allclose(loss, w @ (terms.loss - response.constant(y)), rtol=1e-9, atol=1e-9 * max(n, 1))
        assert_allclose(pearson, np.sum(w * terms.r**2 / terms.e), rtol=1e-8, atol=1e-12)
        assert_allclose(least, h[w > 0].min(initial=np.inf), rtol=1e-9)
        assert_allclose(reach, (A**2 @ metric)[h > 0].max(initial=0.0), rtol=1e-9)
        assert_allclose(g, A.T @ (w * terms.r), rtol=1e-8, atol=scale)
        assert_allclose(lower(H), lower(A.T @ (h[:, None] * A)), rtol=1e-8, atol=scale)
        *_, g1, nothing = _native.glm.evaluate(layout, categories, *given_y, None, family, False)
        assert nothing.shape == (0, 0)
        assert_allclose(g1, g, rtol=1e-8, atol=scale)
    *_, g2, H2 = _native.glm.accumulate(X, categories, shift, w * terms.r, h, None)
    assert_allclose(g2, g, rtol=1e-7, atol=scale)
    assert_allclose(lower(H2), lower(H), rtol=1e-8, atol=scale)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_sparse_rows(family, dtype, index):
    rng = np.random.default_rng(0)
    n, p = 300, 12
    X = sp.random_array((n, p), density=0.2, format="csr", rng=rng).astype(dtype)
    response = response_of(family, "auto")
    y = rng.gamma(2.0, 1.0, n) if family.name != "binomial" else rng.integers(0, 2, n) * 1.0
    coef, offset, weight = rng.standard_normal(p), rng.standard_normal(n) * 0.1, rng.integers(0, 3, n) * 1.0
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    A = np.column_stack([X.toarray(), np.ones(n)]).astype(float)
    terms = response.terms(y, A @ np.append(coef, 0.3) + offset)
    metric = rng.random(p + 1)
    shift = np.zeros(p)
    how = (y, weight, offset, shift, coef, 0.3, metric, family_of(response))
    loss, _, least, reach, g, H = _native.glm.evaluate(X, None, *how, True)
    assert_allclose(loss, weight @ (terms.loss - response.constant(y)), rtol=1e-10)
    assert_allclose(least, (weight * terms.h)[weight > 0].min(), rtol=1e-10)
    assert_allclose(reach, (A**2 @ metric)[weight > 0].max(), rtol=1e-6)
    assert_allclose(g, A.T @ (weight * terms.r), rtol=1e-6, atol=1e-6)
    expected = lower(A.T @ ((weight * terms.h)[:, None] * A))
    assert_allclose(lower(H), expected, rtol=1e-6, atol=1e-6)
    *_, g2, H2 = _native.glm.accumulate(X, None, shift, weight * terms.r, weight * terms.h, metric)
    assert_allclose(g2, g, rtol=1e-9, atol=1e-9)
    assert_allclose(lower(H2), lower(H), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("eta", [-800.0, -300.0, 0.0, 300.0, 800.0])
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_extreme_predictors_do_not_poison_what_is_finite(family, eta):
    response = response_of(family, "auto")
    one = np.ones((1, 1))
    arguments = (one, None, np.ones(1), None, np.array([eta]), np.zeros(1), np.zeros(1), 0.0, None)
    loss, _, _, _, g, _ = _native.glm.evaluate(*arguments, family_of(response), False)
    assert not np.isnan(loss)
    with np.errstate(over="ignore"):
        expected = response.terms(np.ones(1), np.array([eta])).loss[0] - response.constant(np.ones(1))[0]
    if np.isfinite(expected) and abs(eta) < 700:
        assert_allclose(loss, expected, rtol=1e-10)
        assert np.isfinite(g).all()


@pytest.mark.parametrize(
    "change",
    [
        {"codes": np.zeros((4, 1))},
        {"first": np.array([5])},
        {"levels": np.array([-1])},
        {"skip": np.array([9])},
        {"y": np.zeros(4)},
        {"weight": np.zeros(4)},
        {"offset": np.zeros(4)},
        {"shift": np.zeros(3)},
        {"coef": np.zeros(9)},
        {"metric": np.zeros(2)},
        {"kind": 8},
        {"kind": -1},
    ],
    ids=str,
)
def test_shapes_are_checked_at_the_boundary(change):
    good = {
        "X": np.zeros((5, 2)),
        "codes": np.zeros((5, 1)),
        "first": np.array([2]),
        "levels": np.array([3]),
        "skip": np.array([1]),
        "y": np.zeros(5),
        "weight": None,
        "offset": None,
        "shift": np.zeros(2),
        "coef": np.zeros(4),
        "intercept": 0.0,
        "metric": None,
        "kind": 0,
        "a": 0.0,
        "b": 0.0,
        "expected": False,
        "hessian": True,
    }

    def evaluate(given):
        family = _native.glm.Family(**{name: given.pop(name) for name in ("kind", "a", "b", "expected")})
        categories = tuple(given.pop(name) for name in ("codes", "first", "levels", "skip"))
        _native.glm.evaluate(**given, categories=categories, family=family)

    evaluate({**good})
    with pytest.raises(ValueError, match=r"glm\.evaluate: expected"):
        evaluate({**good, **change})


def test_malformed_sparse_matrices():
    X = sp.csr_array(np.eye(2, 3))
    shift, two = np.zeros(3), np.ones(2)
    with pytest.raises(ValueError, match=r"glm\.accumulate: expected"):
        _native.glm.accumulate(X, None, shift, two, None, np.ones(9))
    with pytest.raises(ValueError, match=r"glm\.accumulate: expected"):
        _native.glm.accumulate(X, None, shift + 1.0, two, None, None)  # sparse rows are not shifted
    X.indices[1] = 7
    with pytest.raises(ValueError, match="well-formed"):
        _native.glm.accumulate(X, None, shift, two, None, None)
