"""Matching pursuit, orthogonal and forward: the steps by hand, scikit-learn, any dictionary, every engine."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes
from sklearn.linear_model import OrthogonalMatchingPursuit
from sklearn.preprocessing import PolynomialFeatures

import epicycle as ep
from epicycle import MatchingPursuit
from epicycle.exceptions import DataError


def problem(seed, n=60, p=8):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * rng.uniform(0.5, 3, p) + rng.normal(size=p)
    return X, X @ np.where(rng.random(p) < 0.5, rng.normal(size=p), 0) + rng.normal(size=n), rng.integers(1, 4, n)


def by_hand(X, y, weight, method, steps, rate=1.0):
    """The definition, with residuals and LAPACK."""
    v = weight / weight.sum()
    X, y = X - v @ X, y - v @ y
    w, r, chosen = np.zeros(X.shape[1]), y.copy(), []
    for _ in range(steps):
        if method == "forward":
            losses = []
            for j in range(X.shape[1]):
                A = X[:, [*chosen, j]] * np.sqrt(v)[:, None]
                losses.append(np.inf if j in chosen else np.linalg.lstsq(A, y * np.sqrt(v))[1].sum())
            j = int(np.argmin(losses))
        else:
            score = np.abs((v * r) @ X) / np.sqrt(v @ X**2)
            if method == "orthogonal":
                score[chosen] = -1
            j = int(np.argmax(score))
        if method == "matching":
            w[j] += rate * ((v * r) @ X[:, j]) / (v @ X[:, j] ** 2)
        else:
            chosen.append(j)
            w[:] = 0
            w[chosen] = np.linalg.lstsq(X[:, chosen] * np.sqrt(v)[:, None], y * np.sqrt(v))[0]
        r = y - X @ w
    return w


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    steps=st.integers(1, 6),
    weighted=st.booleans(),
    method=st.sampled_from(["matching", "orthogonal", "forward"]),
    rate=st.sampled_from([1.0, 0.3]),
)
def test_the_steps_are_those_of_the_definition(seed, steps, weighted, method, rate):
    X, y, weight = problem(seed)
    weight = weight.astype(float) if weighted else np.ones(len(y))
    model = MatchingPursuit(8, method=method, learning_rate=rate, max_iter=steps)
    model.fit(X, y, sample_weight=weight if weighted else None)
    assert_allclose(model.coef_, by_hand(X, y, weight, method, steps, rate), rtol=1e-8, atol=1e-10)
    assert model.n_iter_ == steps
    residual = y - model.predict(X)
    assert model.history_.objective[-1] == pytest.approx(np.average(residual**2, weights=weight) / 2, rel=1e-8)


def test_orthogonal_equals_scikit_learn():
    X, y = load_diabetes(return_X_y=True)
    for k in (1, 4, 7):
        theirs = OrthogonalMatchingPursuit(n_nonzero_coefs=k).fit(X, y)
        mine = MatchingPursuit(k).fit(X, y)
        assert_allclose(mine.coef_, theirs.coef_, rtol=1e-7, atol=1e-7)
        assert mine.intercept_ == pytest.approx(theirs.intercept_)
        assert mine.certificate_.holds


def test_forward_selection_finds_what_orthogonal_pursuit_misses():
    """Two features whose difference is y: each alone hardly matches, and noise that resembles y matches better."""
    rng = np.random.default_rng(0)
    common, signal = rng.normal(size=(2, 400))
    X = np.column_stack([common + 0.1 * signal, common, 0.3 * signal + rng.normal(size=400)])
    forward = MatchingPursuit(3, method="forward", residual=1e-6).fit(X, signal)
    assert 1 - forward.score(X, signal) <= 1e-6
    assert forward.history_.objective[-1] <= MatchingPursuit(2).fit(X, signal).history_.objective[-1]


def test_it_stops_where_asked():
    X, y = load_diabetes(return_X_y=True)
    model = MatchingPursuit(residual=0.52).fit(X, y)
    assert 1 - model.score(X, y) <= 0.52
    assert 1 - MatchingPursuit(len(model.active_) - 1).fit(X, y).score(X, y) > 0.52
    assert len(MatchingPursuit().fit(X, y).active_) == 1
    short = MatchingPursuit(residual=0.0, method="matching", max_iter=3)
    with pytest.warns(ep.exceptions.ConvergenceWarning):
        short.fit(X, y)


def test_a_dictionary():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 3))
    y = 2 * X[:, 0] * X[:, 1] - X[:, 2] ** 2 + 0.5
    model = MatchingPursuit(2, dictionary=PolynomialFeatures(2, include_bias=False)).fit(X, y)
    names = model.dictionary_.get_feature_names_out()
    assert sorted(names[model.active_]) == ["x0 x1", "x2^2"]
    assert model.score(X, y) == pytest.approx(1.0)
    assert model.n_features_in_ == 3
    with pytest.raises(DataError, match="features"):
        model.predict(X[:, :2])


def test_a_dictionary_in_a_file(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    model = MatchingPursuit(5, dictionary=PolynomialFeatures(2, include_bias=False)).fit(X, y)
    model.save(tmp_path / "m.epi")
    assert_array_equal(ep.load(tmp_path / "m.epi").predict(X), model.predict(X))


@pytest.mark.parametrize("method", ["matching", "orthogonal", "forward"])
def test_engines_and_containers_agree(method, tmp_path):
    X, y, _ = problem(3, 900, 12)
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.5, 0.0, X)
    expected = MatchingPursuit(4, method=method).fit(X, y)
    np.save(tmp_path / "rows.npy", np.column_stack([X, y]))
    da = pytest.importorskip("dask.array")
    sources = [
        (sp.csr_array(X), y),
        (sp.csc_matrix(X), y),
        (np.asfortranarray(X), y),
        (ep.scan(tmp_path / "rows.npy", target=12, batch_rows=130), None),
        (da.from_array(X, chunks=(200, 12)), da.from_array(y, chunks=200)),
    ]
    for rows, target in sources:
        model = MatchingPursuit(4, method=method).fit(rows, target)
        assert_allclose(model.coef_, expected.coef_, rtol=1e-9, atol=1e-12)
    assert MatchingPursuit(4, method=method).fit(X.astype(np.float32), y).coef_.dtype == np.float32


def test_many_columns_and_repeated_ones():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 1500))
    X[:, 700] = X[:, 3]
    X[:, 5] = 1.0
    y = X[:, 3] * 5 - X[:, 40] * 3
    for method in ("matching", "orthogonal", "forward"):
        model = MatchingPursuit(10, method=method, max_iter=50).fit(X, y)
        assert model.score(X, y) > 0.999
        assert not {3, 700} <= set(model.active_.tolist()) or method == "matching"
        assert 5 not in model.active_


def test_more_features_than_there_are():
    X, y, _ = problem(0)
    with pytest.raises(DataError, match="n_nonzero_coefs=9"):
        MatchingPursuit(9).fit(X, y)


def test_a_constant_target_needs_nothing():
    X, _, _ = problem(0)
    model = MatchingPursuit(3).fit(X, np.full(60, 2.5))
    assert not model.coef_.any()
    assert model.intercept_ == pytest.approx(2.5)


def test_the_drawing(tmp_path):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    axes = MatchingPursuit(4).fit(X, y).plot()
    assert [text.get_text() for text in axes.texts][:2] == ["bmi", "s5"]
