"""AdaBoost.R2 against a plain transcription of Drucker's algorithm, and what it takes."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes
from sklearn.ensemble import AdaBoostRegressor as Peer

import epicycle as ep
from epicycle import AdaBoostRegressor, DecisionTreeClassifier, DecisionTreeRegressor, LinearRegression
from epicycle.exceptions import DataTypeError, ParameterTypeError


def problem(seed=0, n=200):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.2 * rng.normal(size=n)


@pytest.mark.parametrize("loss", ["linear", "square", "exponential"])
@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_weights_and_medians_are_those_of_the_formulas(loss, rate):
    X, y = problem()
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    model = AdaBoostRegressor(n_estimators=8, loss=loss, learning_rate=rate, random_state=0).fit(X, y, weight)
    D = weight / weight.sum()
    for member, error, beta_weight in zip(
        model.estimators_, model.estimator_errors_, model.estimator_weights_, strict=True
    ):
        e = np.abs(member.predict(X) - y)
        e = np.minimum(e / e[weight > 0].max(), 1)
        L = {"linear": e, "square": e**2, "exponential": 1 - np.exp(-e)}[loss]
        epsilon = np.sum(D * L)
        beta = epsilon / (1 - epsilon)
        assert error == pytest.approx(epsilon)
        assert beta_weight == pytest.approx(rate * np.log(1 / beta))
        D = D * beta ** (rate * (1 - L))
        D /= D.sum()
    values = np.column_stack([member.predict(X) for member in model.estimators_])
    for i in (0, 50, 199):
        order = np.argsort(values[i])
        sums = np.cumsum(model.estimator_weights_[order])
        assert model.predict(X)[i] == values[i, order[np.searchsorted(sums, sums[-1] / 2)]]
    assert_array_equal(list(model.staged_predict(X))[-1], model.predict(X))
    assert_allclose(model.history_["error"], model.estimator_errors_)


def test_as_accurate_as_scikit_learn():
    X, y = load_diabetes(return_X_y=True)
    ours, theirs = (
        np.mean([make(random_state=s).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) for s in range(6)])
        for make in (AdaBoostRegressor, Peer)
    )
    assert abs(ours - theirs) < 0.03


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_order_of_rows_does_not_matter(seed):
    X, y = problem(seed, n=40)
    order = np.random.default_rng(seed).permutation(40)
    model = AdaBoostRegressor(n_estimators=4, random_state=0).fit(X, y)
    other = AdaBoostRegressor(n_estimators=4, random_state=0).fit(X[order], y[order])
    assert_allclose(other.predict(X), model.predict(X), atol=1e-9)


def test_what_it_takes(tmp_path):
    X, y = problem()
    model = AdaBoostRegressor(n_estimators=5, random_state=0).fit(X, y)
    frame = AdaBoostRegressor(n_estimators=5, random_state=0).fit(pd.DataFrame(X, columns=list("abcd")), y)
    assert_array_equal(frame.predict(pd.DataFrame(X, columns=list("abcd"))), model.predict(X))
    zeros = np.where(np.abs(X) < 0.5, 0.0, X)
    dense, sparse = (AdaBoostRegressor(n_estimators=5, random_state=0).fit(Z, y) for Z in (zeros, sp.csr_array(zeros)))
    assert_allclose(sparse.predict(sp.csr_array(zeros)), dense.predict(zeros))
    missing = np.where(X > 1, np.nan, X)
    assert np.isfinite(AdaBoostRegressor(n_estimators=3, random_state=0).fit(missing, y).predict(missing)).all()
    model.save(tmp_path / "model.epi")
    assert_array_equal(ep.load(tmp_path / "model.epi").predict(X), model.predict(X))
    assert model.feature_importances_.sum() == pytest.approx(1)
    line = AdaBoostRegressor(LinearRegression(), random_state=0).fit(X, X[:, 0])
    assert line.n_estimators_ == 1  # without error after one round
    with pytest.raises(ParameterTypeError, match="classifier"):
        AdaBoostRegressor(DecisionTreeClassifier()).fit(X, y)
    with pytest.raises(DataTypeError, match="in memory"):
        AdaBoostRegressor().fit(ep.scan(_csv(tmp_path, X, y), target="y"))


def _csv(folder, X, y):
    pd.DataFrame(X, columns=list("abcd")).assign(y=y).to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def test_members_are_trees_of_depth_three():
    X, y = problem()
    model = AdaBoostRegressor(n_estimators=3, random_state=0).fit(X, y)
    assert isinstance(model.estimator_, DecisionTreeRegressor)
    assert {tree.get_depth() for tree in model.estimators_} == {3}
    assert len({tree.random_state for tree in model.estimators_}) == 3
