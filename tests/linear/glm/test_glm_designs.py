"""Columns of categories: the same model as with indicator columns, in a fraction of the memory."""

import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import epicycle as ep
from epicycle import GeneralizedLinearModel
from epicycle.exceptions import DataError, DataTypeError, ParameterError
from epicycle.linear.glm._design import Design


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 1500
    table = pd.DataFrame(
        {
            "a": rng.standard_normal(n),
            "c": pd.Categorical(rng.choice(list("xyzuv"), n)),
            "b": rng.standard_normal(n) + 3,
            "d": pd.Categorical(rng.choice([f"l{i:02d}" for i in range(20)], n)),
        }
    )
    effect = rng.standard_normal(20) / 3
    y = rng.poisson(np.exp(0.2 * table.a - 0.1 * table.b + effect[table.d.cat.codes]))
    return table, y.astype(float), rng.uniform(0.5, 2, n)


def indicators(table, drop):
    wide = pd.get_dummies(table, columns=["c", "d"], drop_first=drop, dtype=float)
    return wide, [f"{n[0]}[{n[2:]}]" if "_" in n else n for n in wide.columns]


@pytest.mark.parametrize("penalty", [(0.0, 0.0), (0.01, 0.0), (0.01, 0.5), (0.01, 1.0)])
@pytest.mark.parametrize("family", ["poisson", "gaussian"])
def test_codes_give_the_model_of_indicators(frame, penalty, family):
    table, y, w = frame
    keywords = {"family": family, "alpha": penalty[0], "l1_ratio": penalty[1], "tol": 1e-11}
    model = GeneralizedLinearModel(**keywords).fit(table, y, w)
    wide, names = indicators(table, drop=penalty[0] == 0)
    expected = GeneralizedLinearModel(**keywords).fit(wide, y, w)
    sparse = GeneralizedLinearModel(**keywords).fit(sp.csr_array(wide.to_numpy()), y, w)
    mine = dict(zip(model.coefficient_names_, model.coef_, strict=True))
    assert_allclose([mine[n] for n in names], expected.coef_, atol=1e-7)
    assert_allclose(sparse.coef_, expected.coef_, atol=1e-7)
    assert model.certificate_.holds
    assert_allclose(model.predict(table), expected.predict(wide), rtol=1e-6)
    assert_allclose(model.deviance_, expected.deviance_, rtol=1e-9)
    assert model.score(table, y, w) == pytest.approx(expected.score(wide, y, w))
    if penalty[0] == 0:
        errors = dict(zip(("intercept", *model.coefficient_names_), model.summary()["std err"], strict=True))
        assert_allclose([errors[n] for n in ("intercept", *names)], expected.summary()["std err"], rtol=1e-7)


def test_coefficients_stand_where_their_columns_do(frame):
    table, y, _ = frame
    model = GeneralizedLinearModel("poisson").fit(table, y)
    assert model.coefficient_names_[:6] == ["a", "c[v]", "c[x]", "c[y]", "c[z]", "b"]
    assert_array_equal(model.categories_[1], list("uvxyz"))
    assert GeneralizedLinearModel("poisson", drop=None, alpha=0.1).fit(table, y).coefficient_names_[1] == "c[u]"
    assert GeneralizedLinearModel("poisson", drop="first", alpha=0.1).fit(table, y).coefficient_names_[1] == "c[v]"


def test_penalty_weights_are_those_of_columns(frame):
    table, y, _ = frame
    model = GeneralizedLinearModel("poisson", alpha=0.5, l1_ratio=1.0, penalty_weights=[0, 1, 0, 0.1]).fit(table, y)
    coef = dict(zip(model.coefficient_names_, model.coef_, strict=True))
    assert coef["a"] != 0
    assert not any(coef[n] for n in coef if n.startswith("c["))
    with pytest.raises(ParameterError, match="penalty_weights has shape"):
        GeneralizedLinearModel(alpha=1.0, penalty_weights=[1.0]).fit(table, y)


@pytest.mark.parametrize("kind", ["polars", "polars enum", "arrow", "numbers", "array"])
def test_every_container(frame, kind):
    table, y, _ = frame
    expected = GeneralizedLinearModel("poisson").fit(table, y)
    asked = "from_dtype"
    if kind.startswith("polars"):
        values = {k: v.astype(str).tolist() if v.dtype == "category" else v.to_numpy() for k, v in table.items()}
        text = pl.DataFrame(values)
        c, d = (pl.Enum(sorted(set(values[k]))) if "enum" in kind else pl.Categorical for k in "cd")
        X = text.with_columns(pl.col("c").cast(c), pl.col("d").cast(d))
    elif kind == "arrow":
        X = pa.Table.from_pandas(table)
    else:
        X, asked = table.assign(c=table.c.cat.codes * 10.0, d=table.d.cat.codes + 0.5), ["c", "d"]
        if kind == "array":
            X, asked = X.to_numpy(), [False, True, False, True]
    model = GeneralizedLinearModel("poisson", categorical_features=asked).fit(X, y)
    assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    assert_allclose(model.predict(X), expected.predict(table), rtol=1e-9)


def test_levels_are_found_by_value_and_unknown_ones_named(frame, tmp_path):
    table, y, _ = frame
    model = GeneralizedLinearModel("poisson", alpha=0.01).fit(table, y)
    model.save(tmp_path / "m.epi")
    model = ep.load(tmp_path / "m.epi")
    other = table.assign(c=pd.Categorical(table.c.astype(str), categories=list("zyxvuq")), d=table.d.astype(str))
    assert_allclose(model.predict(other), model.predict(table), rtol=1e-12)
    new = other.assign(c=["new", *other.c.astype(str)[1:]])
    with pytest.raises(DataError, match="column 'c' has levels that the fit did not see: 'new'"):
        model.predict(new)
    ignoring = clone(model).set_params(handle_unknown="ignore").fit(table, y)
    effect = dict(zip(ignoring.coefficient_names_, ignoring.coef_, strict=True))[f"c[{table.c[0]}]"]
    assert_allclose(ignoring.predict(new)[0], ignoring.predict(table)[0] / np.exp(effect))
    with pytest.raises(DataError, match="missing level in row 0"):
        GeneralizedLinearModel().fit(table.assign(c=pd.Categorical([None, *table.c[1:]])), y)
    with pytest.raises(ParameterError, match="It names 'q'"):
        GeneralizedLinearModel(categorical_features=["q"]).fit(table, y)
    with pytest.raises(DataTypeError, match="sparse"):
        GeneralizedLinearModel(categorical_features=[0]).fit(sp.eye_array(5).tocsr(), np.ones(5))


def test_float32_stays_and_files_give_the_answer_of_memory(frame, tmp_path):
    table, y, w = frame
    small = table.astype({"a": np.float32, "b": np.float32})
    model = GeneralizedLinearModel("poisson").fit(small, y)
    assert model.coef_.dtype == model.predict(small).dtype == np.float32
    numbers = table.assign(c=table.c.cat.codes.astype(float), d=table.d.cat.codes.astype(float), y=y, w=w)
    numbers.to_parquet(tmp_path / "t.parquet")
    for keywords in ({}, {"alpha": 0.01, "l1_ratio": 0.5}):
        model = GeneralizedLinearModel("poisson", categorical_features=["c", "d"], tol=1e-12, **keywords)
        files = clone(model).fit(ep.scan(tmp_path / "t.parquet", target="y", weight="w"))
        memory = clone(model).fit(numbers[["a", "c", "b", "d"]], y, w)
        assert_allclose(files.coef_, memory.coef_, rtol=1e-9, atol=1e-12)
        assert_allclose(
            files.predict(ep.scan(tmp_path / "t.parquet", columns=["a", "c", "b", "d"])),
            memory.predict(numbers[["a", "c", "b", "d"]]),
            rtol=1e-9,
        )


@pytest.mark.slow
def test_a_million_rows_with_three_thousand_levels():
    """Never densified: indicators would take 24 GB; the sparse reference is fitted to a part of the rows."""
    rng = np.random.default_rng(0)
    n, counts = 1_000_000, (2000, 900, 100)
    codes = [rng.integers(0, k, n) for k in counts]
    X = np.column_stack([rng.standard_normal((n, 3)), *codes])
    eta = 0.2 * X[:, 0] - 0.1 * X[:, 1] + sum(rng.standard_normal(k)[c] / 5 for k, c in zip(counts, codes, strict=True))
    y = rng.poisson(np.exp(eta - 1)).astype(float)
    model = GeneralizedLinearModel("poisson", alpha=1e-3, categorical_features=[3, 4, 5])
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    hessian = 8 * len(model.coef_) ** 2
    assert model.certificate_.holds
    assert len(model.coef_) == 3003
    assert peak < 16 * hessian + X.nbytes  # a few Hessians at a time, no copy of the rows
    part = slice(0, 20_000)
    keep = [c < k for c, k in zip(codes, (50, 30, 20), strict=True)]
    rows = np.flatnonzero(np.logical_and.reduce(keep))[part]
    ones, ends = np.ones(len(rows)), np.arange(len(rows) + 1)
    blocks = [sp.csr_array((ones, X[rows, j].astype(int), ends)) for j in (3, 4, 5)]
    wide = sp.hstack([sp.csr_array(X[rows, :3]), *blocks], format="csr")
    small = clone(model).set_params(tol=1e-11).fit(X[rows], y[rows])
    expected = GeneralizedLinearModel("poisson", alpha=1e-3, tol=1e-11).fit(wide, y[rows])
    assert_allclose(small.predict(X[rows]), expected.predict(wide), rtol=1e-6)


def test_a_design_knows_its_columns():
    rng = np.random.default_rng(0)
    design = Design(4, {1: np.arange(3.0), 3: np.arange(2.0)}, drop=True)
    X = np.column_stack([rng.random(6), rng.integers(0, 3, 6), rng.random(6), rng.integers(0, 2, 6)])
    expanded = design.columns(X, np.arange(design.size))
    w = rng.random(design.size)
    assert_allclose(design.predictor(X, w), expanded @ w)
    assert design.names(list("pqrs")) == ["p", "q[1.0]", "q[2.0]", "r", "s[1.0]"]
    assert_array_equal(design.per_coefficient(np.arange(4)), [0, 2, 1, 1, 3])
    assert_array_equal(design.reported(), [0, 2, 3, 1, 4])
