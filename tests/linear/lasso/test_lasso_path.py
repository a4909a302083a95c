"""Paths of the lasso and the elastic net: grids, warm starts, shapes, plots."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from lasso_reference import alpha_max, centred
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import linear_model as sk

from epicycle import ElasticNet, Lasso, MultiTaskLasso, enet_path, lasso_path
from epicycle.exceptions import DataError, ParameterError, ParameterTypeError


def problem(n=60, p=90, seed=0, density=1.0):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, p)) + 1.0) * (rng.random((n, p)) < density)
    y = X[:, :4] @ [3.0, -2.0, 1.0, 0.5] + 0.5 * rng.standard_normal(n) + 4.0
    return X, y, rng.uniform(0.5, 2.0, n)


@pytest.mark.parametrize("form", [np.asfortranarray, np.ascontiguousarray, sp.csc_array, sp.csr_array])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_every_point_is_that_of_the_estimator(form, l1_ratio):
    X, y, weight = problem(density=0.5 if "cs" in form.__name__ else 1.0)
    path = enet_path(form(X), y, l1_ratio=l1_ratio, n_alphas=12, sample_weight=weight, tol=1e-13, fit_intercept=True)
    assert path.converged.all()
    assert path.coefs.shape == (90, 12)
    for i in (0, 3, 11):
        model = ElasticNet(path.alphas[i], l1_ratio=l1_ratio, tol=1e-13).fit(form(X), y, weight)
        assert_allclose(path.coefs[:, i], model.coef_, rtol=0, atol=1e-6)
        assert_allclose(path.intercepts[i], model.intercept_, rtol=1e-5)
        assert_allclose(path.objectives[i], model.history_.objective[-1], rtol=1e-9)


def test_agrees_with_scikit_learn_on_centred_data():
    X, y, _ = problem()
    X, y = X - X.mean(axis=0), y - y.mean()
    alphas, coefs, gaps = lasso_path(X, y, n_alphas=20, eps=1e-2, tol=1e-12)
    their_alphas, their_coefs, _ = sk.lasso_path(X, y, alphas=alphas, tol=1e-12, max_iter=10**6)
    assert_allclose(alphas, their_alphas)
    assert_allclose(coefs, their_coefs, rtol=0, atol=1e-6)
    assert (gaps <= 1e-12 * y @ y).all()


def test_the_grid_begins_where_the_first_coefficient_leaves_zero():
    X, y, weight = problem()
    factors = np.linspace(0.5, 2.0, 90)
    factors[:2] = 0.0  # unpenalised: in the model from the beginning
    penalty = {"penalty_weights": factors, "fit_intercept": True}
    path = lasso_path(X, y, sample_weight=weight, n_alphas=30, eps=0.01, **penalty)
    assert_array_equal(np.flatnonzero(path.coefs[:, 0]), [0, 1])
    barely = Lasso(path.alphas[0] * 0.999, penalty_weights=factors, tol=1e-13).fit(X, y, weight)
    assert np.count_nonzero(barely.coef_) == 3
    assert_allclose(path.alphas[-1], 0.01 * path.alphas[0])
    plain = lasso_path(X, y, sample_weight=weight, n_alphas=1, fit_intercept=True)
    assert_allclose(plain.alphas, [alpha_max(*centred(X, y, weight)[:2])])


def test_objective_and_error_fall_along_the_path():
    X, y, _ = problem()
    path = lasso_path(X, y, fit_intercept=True)
    assert (np.diff(path.objectives) < 1e-12).all()  # P*(alpha) is concave and increasing in alpha
    errors = [((y - X @ w - b) ** 2).mean() for w, b in zip(path.coefs.T, path.intercepts, strict=True)]
    assert (np.diff(errors) < 1e-8).all()


def test_alphas_of_the_user_are_sorted():
    X, y, _ = problem()
    given = lasso_path(X, y, alphas=[0.1, 1.0, 0.5])
    assert_array_equal(given.alphas, [1.0, 0.5, 0.1])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n_targets", [None, 1, 3])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.6])
def test_paths_are_those_of_scikit_learn_without_an_intercept(form, n_targets, l1_ratio):
    """Of several targets, scikit-learn's functions follow the path of shared features."""
    X, y, weight = problem(density=0.5)
    Y = y if n_targets is None else np.column_stack([y, X[:, 3] - y, weight])[:, :n_targets]
    settings = {"l1_ratio": l1_ratio, "alphas": 8, "eps": 0.02}
    path = enet_path(form(X), Y, tol=1e-12, **settings)
    alphas, coefs, _ = sk.enet_path(X, Y, tol=1e-11, max_iter=10**6, **settings)
    assert_allclose(path.alphas, alphas)
    assert path.coefs.shape == coefs.shape
    assert_allclose(path.coefs, coefs, rtol=0, atol=1e-5 * np.abs(coefs).max())
    assert not path.intercepts.any()
    with pytest.raises(ParameterError, match="Unexpected parameters in params"):
        enet_path(X, Y, normalize=True)


def test_targets_that_share_their_features_have_the_intercepts_of_the_classes():
    X, y, weight = problem()
    Y = np.column_stack([y, X[:, 3] - y])
    path = lasso_path(X, Y, alphas=[1.0, 0.1], sample_weight=weight, fit_intercept=True, tol=1e-12)
    assert path.alphas.shape == path.dual_gaps.shape == path.objectives.shape == (2,)
    assert path.coefs.shape == (2, 90, 2)
    for i, alpha in enumerate(path.alphas):
        model = MultiTaskLasso(alpha, tol=1e-12).fit(X, Y, weight)
        assert_allclose(path.coefs[:, :, i], model.coef_, rtol=0, atol=1e-6)
        assert_allclose(path.intercepts[:, i], model.intercept_, rtol=1e-6)
    with pytest.raises(ParameterError, match="positive=True"):
        lasso_path(X, Y, positive=True)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_gram_matrix_that_is_given_is_compared_with_all_of_x(weighted, fit_intercept):
    X, y, weight = problem(p=20)
    weight = weight * (60 / weight.sum()) if weighted else np.ones(60)
    if fit_intercept:
        X = X - np.average(X, axis=0, weights=weight)
    G = X.T @ (weight[:, None] * X)
    arguments = {"fit_intercept": fit_intercept, "precompute": G}
    model = Lasso(0.1, **arguments).fit(X, y, weight if weighted else None)
    plain = Lasso(0.1, fit_intercept=fit_intercept).fit(X, y, weight if weighted else None)
    assert_array_equal(model.coef_, plain.coef_)
    for i, j in [(0, 0), (3, 17), (19, 2)]:
        wrong = G.copy()
        wrong[i, j] *= 1.01
        with pytest.raises(ParameterError, match="did not pass validation"):
            Lasso(0.1, **(arguments | {"precompute": wrong})).fit(X, y, weight if weighted else None)
    if fit_intercept:
        with pytest.warns(UserWarning, match="X was centered to fit intercept"):
            Lasso(0.1, precompute=G).fit(X + 1, y, weight if weighted else None)
        with pytest.raises(ParameterError, match="precompute: expected a matrix of shape"):
            Lasso(0.1, precompute=G[:5]).fit(X, y)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("shape", [(60, 90), (80, 12)])
def test_solutions_do_not_depend_on_how_the_columns_are_stored(seed, l1_ratio, shape):
    """Where the gap allows for 1e-5, the coefficients are still those of the minimum: dense, sparse, one by one."""
    X, y, weight = problem(*shape, seed=seed, density=0.3)
    forms = [np.asfortranarray(X), np.ascontiguousarray(X), sp.csc_array(X), sp.csr_array(X)]
    settings = {"n_alphas": 20, "l1_ratio": l1_ratio, "sample_weight": weight, "fit_intercept": True, "tol": 1e-5}
    paths = [enet_path(form, y, **settings).coefs for form in forms]
    scale = np.abs(paths[0]).max()
    for coefs in paths[1:]:
        assert_allclose(coefs, paths[0], rtol=0, atol=1e-10 * scale)
    strict = enet_path(X, y, **(settings | {"tol": 1e-14})).coefs
    assert_allclose(paths[0], strict, rtol=0, atol=1e-9 * scale)
    Y = np.column_stack([y, X @ np.ones(shape[1]) - y])
    several = [enet_path(form, Y, **settings).coefs for form in forms[::2]]
    assert_allclose(several[1], several[0], rtol=0, atol=1e-9 * np.abs(several[0]).max())


def test_constant_target():
    path = lasso_path(problem()[0], np.ones(60), n_alphas=4, fit_intercept=True)
    assert not path.coefs.any()
    assert path.converged.all()


def test_same_bits_for_any_number_of_threads():
    X, y, _ = problem(200, 4000)
    one, two = (lasso_path(X, y, n_alphas=10, n_jobs=jobs) for jobs in (1, 2))
    assert_array_equal(one.coefs, two.coefs)


def test_plot():
    X, y, _ = problem(p=6)
    path = lasso_path(pd.DataFrame(X, columns=list("abcdef")), y, n_alphas=20)
    for against in ("alpha", "norm"):
        ax = path.plot(against, labels=3)
        lines = [line for line in ax.lines if len(line.get_xdata()) == 20]
        assert len(lines) == np.count_nonzero(path.coefs.any(axis=1))
        assert {text.get_text() for text in ax.texts} <= set("abcdef")
        assert len(ax.texts) == 3
        plt.close(ax.figure)
    with pytest.raises(ParameterError, match="against"):
        path.plot("lambda")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"l1_ratio": 0.0}, ParameterError, "Please supply a grid"),
        ({"l1_ratio": 2.0}, ParameterError, "l1_ratio=2.0"),
        ({"eps": 0.0}, ParameterError, "eps"),
        ({"n_alphas": 0}, ParameterError, "n_alphas"),
        ({"n_alphas": "many"}, ParameterTypeError, "n_alphas"),
        ({"alphas": [-0.5, 1.0]}, ParameterError, "alphas"),
        ({"alphas": []}, ParameterError, "alphas"),
        ({"alphas": ["a"]}, ParameterError, "alphas"),
        ({"sample_weight": np.ones(3)}, DataError, "sample_weight"),
    ],
)
def test_bad_arguments(arguments, error, message):
    X, y, _ = problem()
    with pytest.raises(error, match=message):
        enet_path(X, y, **arguments)
