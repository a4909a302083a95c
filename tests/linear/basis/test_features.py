"""HingeFeatures and FourierFeatures: columns, names, frames, sparse results, pipelines."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline

import epicycle as ep
from epicycle.exceptions import DataError, ParameterError

X = np.random.default_rng(0).normal(size=(50, 2))


def test_hinges():
    knots = [[-0.5, 0.5], [0.0]]
    out = ep.HingeFeatures(knots=knots).fit_transform(X)
    expected = np.column_stack([X, np.maximum(0, X[:, 0] + 0.5), np.maximum(0, X[:, 0] - 0.5), np.maximum(0, X[:, 1])])
    assert_allclose(out, expected)
    bare = ep.HingeFeatures(knots=knots, linear=False, sparse_output=True).fit_transform(X)
    assert isinstance(bare, sp.csr_array)
    assert bare.nnz == np.count_nonzero(expected[:, 2:])
    assert_allclose(bare.toarray(), expected[:, 2:])
    sparse = ep.HingeFeatures(knots=knots, sparse_output=True).fit_transform(X.astype(np.float32))
    assert sparse.dtype == np.float32
    assert_allclose(sparse.toarray(), expected, atol=1e-6)


def test_fourier():
    out = ep.FourierFeatures(frequencies=[1.0, 2.5]).fit_transform(X)
    columns = [f(w * X[:, j]) for j in range(2) for w in (1.0, 2.5) for f in (np.sin, np.cos)]
    assert_allclose(out, np.column_stack(columns), atol=1e-15)
    by_period = ep.FourierFeatures(2, period=[2 * np.pi, np.pi]).fit(X)
    assert_allclose(by_period.frequencies_, [[1, 2], [2, 4]])
    own = ep.FourierFeatures(1).fit(X)
    assert_allclose(own.frequencies_[:, 0], 2 * np.pi / np.ptp(X, axis=0))


def test_names_and_frames():
    frame = pd.DataFrame(X, columns=["a", "b"])
    hinges = ep.HingeFeatures(knots=[0.25]).set_output(transform="pandas").fit(frame)
    assert hinges.transform(frame).columns.tolist() == ["a", "b", "(a - 0.25)+", "(b - 0.25)+"]
    waves = ep.FourierFeatures(1, period=2 * np.pi).set_output(transform="pandas").fit(frame)
    assert waves.transform(frame).columns.tolist() == ["sin(1 a)", "cos(1 a)", "sin(1 b)", "cos(1 b)"]
    assert ep.FourierFeatures(1, period=2 * np.pi).fit(X).get_feature_names_out(["u", "v"])[0] == "sin(1 u)"
    with pytest.raises(DataError, match="input_features"):
        waves.get_feature_names_out(["a"])


def test_in_a_pipeline_the_hinges_are_the_spline():
    y = np.sin(X[:, 0]) + X[:, 1]
    pipe = make_pipeline(ep.HingeFeatures(4), ep.LinearRegression()).fit(X, y)
    assert_allclose(pipe.predict(X), ep.LinearSpline(4).fit(X, y).predict(X), atol=1e-9)


@pytest.mark.parametrize(
    ("transformer", "words"),
    [
        (ep.FourierFeatures(period=-1.0), "period=-1"),
        (ep.FourierFeatures(period=[1.0, 2.0, 3.0]), "each of 2 columns"),
        (ep.FourierFeatures(period=1.0, frequencies=[1.0]), "both given"),
        (ep.FourierFeatures(frequencies=[np.nan]), "frequencies"),
        (ep.FourierFeatures(frequencies=[["a"]]), "frequencies"),
        (ep.FourierFeatures(0), "n_harmonics=0"),
        (ep.HingeFeatures(knots=[["a"]]), "knots"),
    ],
)
def test_bad_parameters(transformer, words):
    with pytest.raises(ParameterError, match=words):
        transformer.fit(X)


def test_no_functions_at_all():
    with pytest.raises(DataError, match="no column varies"):
        ep.HingeFeatures(linear=False).fit(np.ones((5, 2)))


def test_angles_beyond_floating_point_are_refused():
    X = np.array([[0.0], [1.0], [1e9]])
    with pytest.raises(DataError, match="longer period"):
        ep.FourierFeatures(period=1e-300).fit_transform(X)
    model = ep.FourierFeatures(period=1e-200).fit(X)
    assert np.isfinite(model.transform(X)).all()
    with pytest.raises(DataError, match="frequency"):
        model.transform([[1e200]])
