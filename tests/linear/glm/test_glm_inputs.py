"""Bad input is named before any work; every engine and every solver gives the same model."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from threadpoolctl import threadpool_limits

import epicycle as ep
from epicycle import GeneralizedLinearModel
from epicycle.exceptions import DataError, DataTypeError, ParameterError, ParameterTypeError, SeparationError
from epicycle.linear import families
from epicycle.optim import SOLVERS

N = 8000
MODELS = {
    "poisson": GeneralizedLinearModel("poisson", tol=1e-12),
    "gamma ridge": GeneralizedLinearModel("gamma", alpha=0.05, tol=1e-12),
    "poisson lasso": GeneralizedLinearModel("poisson", alpha=0.02, l1_ratio=1.0, tol=1e-12),
    "gamma inverse": GeneralizedLinearModel("gamma", link="inverse", tol=1e-12),
    "binomial net": GeneralizedLinearModel("binomial", alpha=0.02, l1_ratio=0.5, tol=1e-12),
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (N, 5))
    mu = np.exp(0.2 + X @ [0.3, -0.2, 0.1, 0.0, 0.2])
    columns = {f"x{j}": X[:, j] for j in range(5)}
    return pd.DataFrame(
        {
            **columns,
            "poisson": rng.poisson(mu).astype(float),
            "gamma": rng.gamma(2, mu / 2),
            "binomial": (rng.random(N) < 0.4) * 1.0,
            "w": rng.uniform(0.5, 2, N),
            "off": rng.normal(0, 0.05, N),
        }
    )


def parts(table, name):
    return table[[f"x{j}" for j in range(5)]], table[name.split()[0]], table["w"], table["off"]


@pytest.fixture(scope="module")
def in_memory(table):
    fits = {}
    for name, model in MODELS.items():
        X, y, w, offset = parts(table, name)
        fits[name] = clone(model).fit(X, y, w, offset=offset)
    return fits


def assert_same(model, expected):
    assert model.certificate_.holds
    assert_allclose(model.coef_, expected.coef_, rtol=1e-6, atol=2e-6)
    for name in ("deviance_", "null_deviance_", "log_likelihood_", "dispersion_"):
        assert_allclose(getattr(model, name), getattr(expected, name), rtol=2e-6)


@pytest.mark.parametrize("name", MODELS)
def test_files(table, in_memory, name, tmp_path):
    for i, rows in enumerate(np.split(np.arange(N), [37, 2000, 6001])):
        table.iloc[rows].to_parquet(tmp_path / f"{i}.parquet", index=False)
    X, _, _, offset = parts(table, name)
    source = ep.scan(tmp_path / "*.parquet", target=name.split()[0], weight="w", columns=[*X.columns, "off"])
    model = clone(MODELS[name]).fit(source, offset="off")
    assert_same(model, in_memory[name])
    assert_allclose(model.predict(source, offset="off"), in_memory[name].predict(X, offset=offset), rtol=1e-6)
    assert model.score(source, offset="off") == pytest.approx(
        in_memory[name].score(*parts(table, name)[:3], offset=offset)
    )


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", ["array", "frame"])
def test_dask(table, in_memory, name, kind):
    X, y, w, offset = parts(table, name)
    if kind == "array":
        X, y, w, offset = (da.from_array(a.to_numpy(), chunks=(3000, *a.shape[1:])) for a in (X, y, w, offset))
    else:
        frame = dd.from_pandas(table, npartitions=3)
        X, y, w, offset = parts(frame, name)
    model = clone(MODELS[name]).fit(X, y, w, offset=offset)
    assert_same(model, in_memory[name])
    lazy = model.predict(X, offset=offset)
    assert isinstance(lazy, da.Array)
    plain = parts(table, name)
    assert_allclose(lazy.compute(), in_memory[name].predict(plain[0], offset=plain[3]), rtol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_single_precision_sparse_layouts_and_threads(table, in_memory, name):
    X, y, w, offset = (np.asarray(a) for a in parts(table, name))
    small = clone(MODELS[name]).set_params(tol=1e-8).fit(X.astype(np.float32), y, w, offset=offset)
    assert small.coef_.dtype == small.predict(X.astype(np.float32)).dtype == np.float32
    assert_allclose(small.coef_, in_memory[name].coef_, rtol=1e-3, atol=1e-4)
    for other in (sp.csr_array(X), sp.csc_array(X), np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
        assert_same(clone(MODELS[name]).fit(other, y, w, offset=offset), in_memory[name])
    one = clone(MODELS[name]).set_params(n_jobs=1).fit(X, y, w, offset=offset)
    with threadpool_limits(1):
        two = clone(MODELS[name]).set_params(n_jobs=2).fit(X, y, w, offset=offset)
    assert_array_equal(one.coef_, two.coef_)


@pytest.mark.parametrize(
    "solver", ["irls", *(s for s, info in SOLVERS.items() if not info.stochastic and s != "gd-ladder")]
)
def test_every_solver_reaches_the_same_optimum(table, solver):
    X, y, w, _ = parts(table, "gamma")
    expected = GeneralizedLinearModel("gamma", alpha=0.1, tol=1e-12).fit(X, y, w)
    model = GeneralizedLinearModel("gamma", alpha=0.1, tol=1e-9, solver=solver, max_iter=5000).fit(X, y, w)
    assert model.certificate_.holds
    assert_allclose(model.coef_, expected.coef_, atol=1e-4)


# ------------------------------------------------------------------------------------------------ bad input

X3, Y3 = np.random.default_rng(0).random((20, 3)), np.random.default_rng(1).random(20) + 0.1


@pytest.mark.parametrize(
    ("family", "y", "message"),
    [
        ("poisson", Y3 - 1, r"family='poisson' expects responses in \[0, inf\)"),
        ("gamma", np.r_[0.0, Y3[1:]], r"'gamma' expects responses in \(0, inf\); row 0 has 0"),
        ("inverse_gaussian", np.r_[Y3[:-1], -1], "row 19 has -1"),
        ("binomial", Y3 * 3, r"'binomial' expects responses in \[0, 1\]"),
        (families.Tweedie(1.5), Y3 - 1, "tweedie"),
        ("poisson", np.zeros(20), "has no maximum"),
        ("binomial", np.column_stack([Y3, -Y3]), "negative count"),
    ],
)
def test_responses_outside_the_support(family, y, message):
    with pytest.raises(DataError, match=message):
        GeneralizedLinearModel(family).fit(X3, y)


def test_labels_all_of_one_kind():
    with pytest.raises(SeparationError, match="every response"):
        GeneralizedLinearModel("binomial").fit(X3, np.ones(20))


@pytest.mark.parametrize(
    ("keywords", "arguments", "error", "message"),
    [
        ({"family": "poison"}, {}, ParameterError, "did you mean 'poisson'"),
        ({"link": "loggit"}, {}, ParameterError, "did you mean 'logit'"),
        ({"alpha": -1.0}, {}, ParameterError, "alpha"),
        ({"family": "negative_binomial", "link": "canonical"}, {}, ParameterError, "canonical"),
        ({"alpha": 0.1, "l1_ratio": 1.0, "solver": "lbfgs"}, {}, ParameterError, "proximal Newton"),
        ({"solver_options": {"memory": 3}}, {}, ParameterError, "solver_options"),
        ({"family": "gaussian"}, {"exposure": np.ones(20)}, ParameterError, "link='log'"),
        ({"family": "poisson"}, {"exposure": np.zeros(20)}, DataError, "exposure"),
        ({"family": "poisson"}, {"offset": np.ones(3)}, DataError, "offset: has shape"),
        ({"family": "poisson"}, {"offset": np.full(20, np.nan)}, DataError, "offset"),
        ({"family": "poisson"}, {"offset": "column"}, DataTypeError, "names a column of files"),
        ({"family": "multinomial"}, {"offset": np.ones(20)}, ParameterError, "offset"),
        ({"family": "multinomial", "alpha": 1.0, "l1_ratio": 1.0}, {}, ParameterError, "multinomial"),
        ({"family": 3}, {}, ParameterTypeError, "family"),
        ({"penalty_weights": [1, 2, -1.0], "alpha": 1.0}, {}, ParameterError, "penalty_weights"),
    ],
)
def test_arguments(keywords, arguments, error, message):
    with pytest.raises(error, match=message):
        GeneralizedLinearModel(**keywords).fit(X3, Y3, **arguments)


def test_no_place_to_start_from():
    X = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    with pytest.raises(DataError, match="fit_intercept=True"):
        GeneralizedLinearModel("gamma", link="inverse", fit_intercept=False).fit(X, np.ones(4))


def test_step_halving_keeps_means_in_their_range():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (300, 2))
    X[0] = 0.0
    y = rng.poisson(0.3 + 3 * X[:, 0]).astype(float)
    y[0] = 1.0
    model = GeneralizedLinearModel("poisson", link="identity").fit(X, y)
    assert (model.predict(X) > 0).all()
    assert model.certificate_.holds


def test_residual_kinds():
    model = GeneralizedLinearModel("gamma").fit(X3, Y3)
    with pytest.raises(ParameterError, match="kind='pearsn'"):
        model.residuals(X3, Y3, "pearsn")
    with pytest.raises(DataError, match="3 features"):
        model.residuals(X3[:, :2], Y3)


def test_the_penalty_is_in_the_representation():
    model = GeneralizedLinearModel("gamma", alpha=0.5, l1_ratio=0.2).fit(X3, Y3)
    assert "0.5 (0.2 |w|_1 + 0.4 |w|^2)" in model.describe()


def test_rows_without_a_mean_are_refused():
    """A row of weight 0 holds nothing back: the reciprocal of its mean may come out below zero."""
    X = np.array([[0.0], [1.0], [2.0], [3.0], [9.0]])
    y, weight = np.array([1.0, 1.4, 1.9, 4.0, 1.0]), np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    model = GeneralizedLinearModel(family="gamma", link="inverse").fit(X, y, weight)
    assert model.predict_linear(X)[4] < 0 < model.predict_linear(X)[:4].min()
    assert (model.predict(X[:4]) > 0).all()
    with pytest.raises(DataError, match=r"1 of 5 rows .* link='inverse' .* row 4"):
        model.predict(X)
