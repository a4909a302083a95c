"""Locally linear embeddings against scikit-learn, on a rolled sheet, and by what defines them."""

import numpy as np
import pytest
import scipy.linalg
import sklearn.manifold
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits, make_s_curve

import epicycle as ep
from epicycle.exceptions import DataError, ParameterError
from epicycle.manifold._local_geometry import quadratic_form

METHODS = ("standard", "modified", "hessian", "ltsa")
#: Neighbours with which scikit-learn's "hessian" is one too: with more it is "ltsa".
NEIGHBORS = {"standard": 10, "modified": 12, "hessian": 6, "ltsa": 10}


def form_of(X, near, d, method):
    return quadratic_form(X, near, d, method, reg=1e-3, hessian_tol=1e-4, modified_tol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("columns", [3, 30])  # fewer and more than neighbours
def test_equal_to_scikit_learn(method, columns, same_up_to_sign):
    rng = np.random.default_rng(0)
    X = make_s_curve(300, random_state=0)[0] @ rng.normal(size=(3, columns)) + 1e-3 * rng.normal(size=(300, columns))
    options = {"n_neighbors": NEIGHBORS[method], "method": method}
    theirs = sklearn.manifold.LocallyLinearEmbedding(eigen_solver="dense", **options).fit(X)
    for solver in "dense", "arpack":
        ours = ep.LocallyLinearEmbedding(eigen_solver=solver, random_state=0, **options).fit(X)
        signs = same_up_to_sign(ours.embedding_, theirs.embedding_, atol=2e-6)
        assert_allclose(ours.transform(X[:9] + 0.1) * signs, theirs.transform(X[:9] + 0.1), atol=2e-6)
        assert_allclose(ours.reconstruction_error_, theirs.reconstruction_error_, rtol=1e-4, atol=1e-12)
        assert ours.certificate_.holds


@pytest.mark.parametrize("method", METHODS)
def test_the_swiss_roll_is_unrolled(method, roll, distance_from):
    X, sheet = roll
    model = ep.LocallyLinearEmbedding(n_neighbors=12, method=method, random_state=0).fit(X)
    Z = model.embedding_
    assert_allclose(Z.T @ Z, np.eye(2), atol=1e-10)
    assert_allclose(Z.mean(axis=0), 0, atol=1e-12)
    # coordinates are found up to a linear map
    fitted = Z @ np.linalg.lstsq(Z, sheet - sheet.mean(axis=0))[0]
    assert distance_from(sheet, fitted) < (0.15 if method == "standard" else 0.005)
    assert model.trustworthiness_ > 0.99
    assert distance_from(fitted[::9], model.transform(X[::9] + 0.01)) < 1  # shapes agree
    assert_allclose(model.transform(X[::9] + 0.01), Z[::9], atol=0.02)


@pytest.mark.parametrize("method", METHODS)
def test_constants_and_flat_sheets_cost_nothing(method):
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(80, 2))
    X = flat @ scipy.linalg.orth(rng.normal(size=(5, 2))).T  # a plane in five dimensions
    near = ep.NearestNeighbors(n_neighbors=9).fit(X).kneighbors(return_distance=False)
    M = form_of(X, near, 2, method).toarray()
    assert_allclose(M, M.T, atol=1e-12)
    assert np.linalg.eigvalsh(M).min() > -1e-12
    assert_allclose(M @ np.ones(80), 0, atol=1e-10)
    if method in ("hessian", "ltsa"):  # linear functions of the plane too; weights with a ridge are a little off
        assert_allclose(M @ flat, 0, atol=1e-10)


@pytest.mark.parametrize("method", ["hessian", "ltsa"])
def test_rows_that_are_nobodys_neighbours_have_a_place(method):
    digits = load_digits()
    X = digits.data[digits.target == 0]
    near = ep.NearestNeighbors(n_neighbors=10).fit(X).kneighbors(return_distance=False)
    alone = np.setdiff1d(np.arange(len(X)), near)
    assert len(alone) > 1
    model = ep.LocallyLinearEmbedding(n_neighbors=10, method=method).fit(X)
    assert model.n_connected_components_ == 1
    assert np.square(model.embedding_[alone]).sum() < 0.5  # of 2; scikit-learn has a coordinate for one row
    theirs = sklearn.manifold.LocallyLinearEmbedding(n_neighbors=10, method=method, eigen_solver="dense").fit(X)
    assert np.square(theirs.embedding_[alone]).sum() > 1.0


def test_weights_are_the_best_of_sum_one():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 6))
    near = ep.NearestNeighbors(n_neighbors=4).fit(X).kneighbors(return_distance=False)
    M = quadratic_form(X, near, 2, "standard", reg=1e-12, hessian_tol=0, modified_tol=0)
    E = np.eye(40)
    for i in range(40):  # by least squares on differences from the last neighbour
        A, last = X[near[i]], X[near[i, -1]]
        w = np.linalg.lstsq((A[:-1] - last).T, X[i] - last)[0]
        E[i, near[i]] -= [*w, 1 - w.sum()]
    assert_allclose(M.toarray(), E.T @ E, atol=1e-8)


def test_the_hessian_is_that_of_quadratic_functions():
    """On a plane z'Mz is zero for linear functions, and for quadratic ones it is not; "ltsa" sees cubic ones too."""
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, size=(12, 2))
    near = np.tile(np.arange(12), (12, 1))
    H = form_of(X, near, 2, "hessian").toarray()
    T = form_of(X, near, 2, "ltsa").toarray()
    assert np.linalg.matrix_rank(H, tol=1e-9) == 3
    assert np.linalg.matrix_rank(T, tol=1e-9) == 9
    quadratic = X[:, 0] * X[:, 1]
    assert_allclose(quadratic @ H @ quadratic, quadratic @ T @ quadratic, rtol=1e-10)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1e-150, 1e-3, 1e3, 1e150]), st.sampled_from(METHODS))
def test_scale_and_order_of_the_rows(seed, scale, method):
    rng = np.random.default_rng(seed)
    X, order = rng.normal(size=(40, 3)), rng.permutation(40)
    model = ep.LocallyLinearEmbedding(n_neighbors=20, n_components=2, method=method)
    first = model.fit(X).eigenvalues_
    assert_allclose(model.fit(X * scale).eigenvalues_, first, rtol=1e-5, atol=1e-12)
    assert_allclose(model.fit(X[order] + 3.0).eigenvalues_, first, rtol=1e-5, atol=1e-12)


def test_the_function_and_its_searches(roll):
    X = roll[0][:150]
    places, error = ep.locally_linear_embedding(
        ep.NearestNeighbors().fit(X), n_neighbors=9, n_components=2, random_state=0
    )
    model = ep.LocallyLinearEmbedding(n_neighbors=9, random_state=0).fit(X)
    assert np.array_equal(places, model.embedding_)
    assert error == model.reconstruction_error_
    for jobs in (2, 4):
        again = ep.LocallyLinearEmbedding(n_neighbors=9, random_state=0, n_jobs=jobs, eigen_solver="arpack")
        one = ep.LocallyLinearEmbedding(n_neighbors=9, random_state=0, n_jobs=1, eigen_solver="arpack")
        assert np.array_equal(again.fit_transform(X), one.fit_transform(X))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_components": 4}, "n_components=4: output dimension"),
        ({"n_neighbors": 40}, "n_neighbors=40; Expected n_neighbors < n_samples"),
        ({"method": "hessian"}, "n_neighbors=5: for method='hessian'"),
        ({"method": "modified", "n_neighbors": 1}, "modified LLE requires n_neighbors >= n_components"),
    ],
)
def test_what_is_refused(options, words):
    with pytest.raises(ParameterError, match=words):
        ep.LocallyLinearEmbedding(**options).fit(np.random.default_rng(0).normal(size=(40, 3)))


def test_equal_rows_and_parts():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    for method in ("standard", "modified"):  # a ridge beyond measure: all weights are equal
        heavy = ep.LocallyLinearEmbedding(n_neighbors=8, method=method, reg=1e300).fit(X).eigenvalues_
        usual = ep.LocallyLinearEmbedding(n_neighbors=8, method=method, reg=1e6).fit(X).eigenvalues_
        assert_allclose(heavy, usual, rtol=1e-3)
    with pytest.raises(DataError, match="all 30 rows are equal"):
        ep.LocallyLinearEmbedding().fit(np.ones((30, 3)))
    for method in METHODS:
        model = ep.LocallyLinearEmbedding(n_neighbors=20, method=method)
        assert np.isfinite(model.fit_transform(np.repeat(rng.normal(size=(10, 3)), 4, axis=0))).all()
    apart = np.concatenate([rng.normal(size=(30, 3)), 100 + rng.normal(size=(30, 3))])
    with pytest.warns(UserWarning, match="has 2 parts"):
        model = ep.LocallyLinearEmbedding(n_neighbors=8, n_components=1).fit(apart)
    assert model.eigenvalues_[0] < 1e-12
    assert len(set(np.sign(model.embedding_[:30, 0]))) == 1
