"""Matching against searches by brute force and the formulas of Abadie and Imbens."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from studies import simulated

from epicycle import LogisticRegression, TreatmentEffect, _native
from epicycle.exceptions import DataError, OverlapWarning, ParameterError


@pytest.fixture(scope="module")
def study():
    return simulated(150, 4)[:3]


def distances(X):
    """Mahalanobis distances of all pairs."""
    S = np.linalg.inv(np.cov(X.T, bias=True))
    D = X[:, None] - X[None]
    return np.sqrt(np.einsum("ijk,kl,ijl->ij", D, S, D))


def brute_force(X, y, t, estimand, M, bias_correction=False):
    """Effect and variance, row by row as in the paper."""
    D, n = distances(X), len(y)
    partners, K = {}, np.zeros(n)
    for i in range(n):
        if estimand == "ate" or (estimand == "att") == (t[i] == 1):
            other = np.flatnonzero(t != t[i])
            partners[i] = other[np.argsort(D[i, other])[:M]]
            K[partners[i]] += 1
    slopes = {}
    for arm in (0, 1):
        rows = (t == arm) & (K > 0)
        Z = np.column_stack([np.ones(rows.sum()), X[rows]]) * np.sqrt(K[rows])[:, None]
        slopes[arm] = np.linalg.lstsq(Z, y[rows] * np.sqrt(K[rows]), rcond=None)[0][1:] if rows.any() else 0
    tau_i = {}
    for i, found in partners.items():
        shift = (X[i] - X[found]) @ slopes[1 - t[i]] if bias_correction else 0.0
        tau_i[i] = (2 * t[i] - 1) * (y[i] - np.mean(y[found] + shift))
    tau = np.mean(list(tau_i.values()))
    total = sum((v - tau) ** 2 for v in tau_i.values())
    for i in range(n):
        own = np.flatnonzero((t == t[i]) & (np.arange(n) != i))
        near = own[np.argsort(D[i, own])[:2]]
        noise = 2 / 3 * (y[i] - y[near].mean()) ** 2
        if estimand == "ate":
            total += ((K[i] / M) ** 2 + (2 * M - 1) / M * K[i] / M) * noise
        else:
            total += K[i] * (K[i] - 1) / M**2 * noise
    return tau, np.sqrt(total) / len(partners)


@pytest.mark.parametrize("estimand", ["ate", "att", "atc"])
@pytest.mark.parametrize("M", [1, 3])
@pytest.mark.parametrize("bias_correction", [False, True])
def test_matches_and_variance_by_brute_force(study, estimand, M, bias_correction):
    X, y, t = study
    model = TreatmentEffect(estimand, "matching", n_neighbors=M, bias_correction=bias_correction)
    model.fit(X, y, treatment=t)
    effect, error = brute_force(X, y, t, estimand, M, bias_correction)
    assert_allclose(model.effect_, effect, rtol=1e-9)
    assert_allclose(model.standard_error_, error, rtol=1e-9)


@pytest.mark.parametrize("caliper", [None, 0.8])
@pytest.mark.parametrize("M", [1, 2])
def test_without_replacement_the_closest_pair_comes_first(study, caliper, M):
    X, y, t = study
    X, y, t = X[:90], y[:90], t[:90]
    keep = np.r_[np.flatnonzero(t == 1)[:15], np.flatnonzero(t == 0)]
    X, y, t = X[keep], y[keep], t[keep]
    D = distances(X)
    D[:, t == 1] = np.inf
    D[t == 0] = np.inf
    if caliper is not None:
        D[caliper < D] = np.inf
    left, pairs = D.copy(), {}
    while np.isfinite(left).any():
        i, j = np.unravel_index(left.argmin(), left.shape)
        pairs.setdefault(i, []).append(j)
        left[:, j] = np.inf
        if len(pairs[i]) == M:
            left[i] = np.inf
    effects = [y[i] - y[js].mean() for i, js in pairs.items() if len(js) == M]
    model = TreatmentEffect("att", "matching", replacement=False, caliper=caliper, n_neighbors=M, bias_correction=False)
    if len(effects) == 15:
        model.fit(X, y, treatment=t)
    else:
        with pytest.warns(OverlapWarning, match="no match"):
            model.fit(X, y, treatment=t)
    assert_allclose(model.effect_, np.mean(effects), rtol=1e-10)
    assert model.history_["matched"][0] == len(effects)


def test_propensity_and_exact_columns(study):
    X, y, t = study
    group = np.arange(150) % 2
    frame = pd.DataFrame(np.c_[X, group], columns=["a", "b", "c", "group"])
    arguments = {"distance": "propensity", "exact": ["group"], "bias_correction": False}
    model = TreatmentEffect("att", "matching", **arguments).fit(frame, y, treatment=t)
    e = LogisticRegression(penalty=None).fit(frame, t).predict_proba(frame)[:, 1]
    score, effects = np.log(e / (1 - e)), []
    for i in np.flatnonzero(t == 1):
        pool = np.flatnonzero((t == 0) & (group == group[i]))
        effects.append(y[i] - y[pool[np.abs(score[pool] - score[i]).argmin()]])
    assert_allclose(model.effect_, np.mean(effects), rtol=1e-10)
    with pytest.raises(ParameterError, match="no covariate 'colour'"):
        TreatmentEffect("att", "matching", exact=["colour"]).fit(frame, y, treatment=t)


def test_exact_matching_compares_equal_rows():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(200, 2)).astype(float)
    t = (rng.random(200) < 0.3 + 0.2 * X[:, 0]).astype(int)
    y = X @ [1.0, 2.0] + t + rng.normal(size=200)
    model = TreatmentEffect("att", "matching", distance="exact").fit(X, y, treatment=t)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "t": t, "y": y})
    means = frame[t == 0].groupby(["a", "b"]).y.mean()
    paired = frame[t == 1].apply(lambda r: r.y - means[r.a, r.b], axis=1)
    assert_allclose(model.effect_, paired.mean(), rtol=1e-10)


def test_genetic_weights_improve_the_balance(study):
    X, y, t = study
    X = np.c_[X, np.random.default_rng(0).normal(size=(150, 4))]  # columns that do not matter
    model = TreatmentEffect("att", "matching", distance="genetic").fit(X, y, treatment=t)
    plain = TreatmentEffect("att", "matching", distance="euclidean").fit(X, y, treatment=t)
    worst = np.abs(model.balance_["smd after"]).max()
    assert worst < 0.8 * np.abs(plain.balance_["smd after"]).max()
    assert_allclose(model.history_["largest_imbalance"][0], worst)


def test_errors(study):
    X, y, t = study
    with pytest.raises(ParameterError, match="att or atc, not ate"):
        TreatmentEffect(method="matching", replacement=False).fit(X, y, treatment=t)
    with pytest.raises(DataError, match="no row has a match"):
        TreatmentEffect(method="matching", caliper=1e-9).fit(X, y, treatment=t)
    with pytest.raises(DataError, match="whole numbers"):
        TreatmentEffect(method="matching").fit(X, y, treatment=t, sample_weight=np.full(150, 0.5))
    with pytest.raises(DataError, match="rows to match; expected at most 100,000,000"):
        TreatmentEffect(method="matching").fit(X, y, treatment=t, sample_weight=np.full(150, 1e9))
    with pytest.raises(ParameterError, match=r"caliper=1\.0"):
        TreatmentEffect(method="matching", distance="exact", caliper=1.0).fit(X, y, treatment=t)


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 5))
@settings(max_examples=25)
def test_nearest_rows_of_a_tree_by_brute_force(seed, k, p):
    """Ties go to the row that comes first, the bound is inclusive, and the bits are the same for any threads."""
    rng = np.random.default_rng(seed)
    P, Q = rng.integers(0, 4, size=(90, p)).astype(float), rng.integers(0, 4, size=(40, p)).astype(float)
    tree = _native.neighbors.PointTree(P)
    D = np.sqrt(((Q[:, None] - P[None]) ** 2).sum(-1))
    for bound in (np.inf, 1.0, 0.0):
        distances, rows = _native.neighbors.nearest_rows(tree, Q, k, bound, 1)
        order = np.argsort(D, axis=1, kind="stable")[:, :k]
        nearest = np.take_along_axis(D, order, axis=1)
        inside = nearest <= bound
        assert_allclose(distances, np.where(inside, nearest, np.inf))
        assert np.array_equal(rows, np.where(inside, order, 90))
        for threads in (2, 4):
            again = _native.neighbors.nearest_rows(tree, Q, k, bound, threads)
            assert np.array_equal(again[0], distances)
            assert np.array_equal(again[1], rows)
    with pytest.raises(ValueError, match="nearest_rows: expected Q"):
        _native.neighbors.nearest_rows(tree, Q, 91, 1.0, 1)
    with pytest.raises(ValueError, match="PointTree: expected X"):
        _native.neighbors.PointTree(P[:0])
