"""Predict, then learn: the error of every kind of stream, by hand."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import SGDClassifier as SklearnClassifier

import epicycle as ep
from epicycle import Perceptron, SGDClassifier, SGDRegressor
from epicycle.exceptions import DataError, ParameterError, ParameterTypeError
from epicycle.online import OnlineEvaluation, evaluate

mpl.use("Agg")


@pytest.fixture(scope="module")
def stream():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 4))
    y = np.digitize(X @ [1.0, -1.0, 0.5, 2.0] + 0.5 * rng.normal(size=900), [-1.0, 1.0])
    y[:200] = np.minimum(y[:200], 1)  # the third class comes late
    return X, y


def foreign():
    """A model of another library, that wants to know the classes first."""
    return SklearnClassifier(shuffle=False)


def by_hand(model, X, y, size=1, start=0, **first):
    wrong = []
    for i in range(start, len(y), size):
        if hasattr(model, "classes_"):
            wrong += (model.predict(X[i : i + size]) != y[i : i + size]).tolist()
        model.partial_fit(X[i : i + size], y[i : i + size], **(first if i == 0 else {}))
    return np.array(wrong, dtype=float)


MODELS = [SGDClassifier(), Perceptron(), SGDClassifier(average=True), Perceptron(variant="voted")]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("sparse", [False, True])
def test_row_by_row_in_compiled_code_is_row_by_row(stream, model, sparse):
    from sklearn.base import clone

    X, y = stream
    X, y = X[100:500], y[100:500]
    table = sp.csr_array(X) if sparse else X
    losses = by_hand(clone(model), table, y)
    result = evaluate(clone(model), table, y, window=100)
    assert result.n_rows == 400
    assert result.n_scored == 399
    assert result.n_mistakes == losses.sum() == result.total_error
    assert_allclose(result.windowed[:3], losses[:300].reshape(3, 100).mean(axis=1))
    assert_allclose(result.cumulative[-1], losses.mean())
    assert_array_equal(result.rows, [100, 200, 300, 399])


@pytest.mark.parametrize("size", [1, 7, 50])
def test_any_model_in_batches(stream, size):
    X, y = stream
    X, y = X[150:250], y[150:250]
    losses = by_hand(foreign(), X, y, size, classes=[0, 1, 2])
    result = evaluate(foreign(), X, y, batch_size=size)
    assert result.n_mistakes == losses.sum()
    assert result.n_scored == 100 - size
    assert "came before the first fit" in repr(result)
    frames = evaluate(foreign(), pd.DataFrame(X, columns=list("abcd")), pd.Series(y), batch_size=size)
    assert frames.n_mistakes == result.n_mistakes
    assert isinstance(frames, OnlineEvaluation)


def test_a_fitted_model_is_scored_from_its_first_row(stream):
    X, y = stream
    model = SklearnClassifier(random_state=0).fit(X[:100], y[:100])
    assert evaluate(model, X[100:], np.minimum(y[100:], 1), batch_size=50).n_scored == 800
    ours = SGDClassifier().partial_fit(X[:100], y[:100])
    assert evaluate(ours, X[100:], y[100:]).n_scored == 800


def test_iterators_and_scans(stream, tmp_path):
    X, y = stream
    batches = ((X[i : i + 30], y[i : i + 30]) for i in range(0, 900, 30))
    a = evaluate(foreign(), batches, classes=[0, 1, 2])
    b = evaluate(foreign(), X, y, batch_size=30)
    assert a.n_mistakes == b.n_mistakes
    assert a.rows.tolist() == [870]  # one window of up to a thousand
    pd.DataFrame(X, columns=list("abcd")).assign(y=y).to_parquet(tmp_path / "rows.parquet")
    scan = ep.scan(tmp_path / "rows.parquet", target="y", batch_rows=250)
    assert evaluate(SGDClassifier(), scan).n_mistakes == evaluate(SGDClassifier(), X, y).n_mistakes


def test_regression_and_metrics(stream):
    X, _ = stream
    y = X @ [1.0, 2.0, 3.0, 4.0]
    result = evaluate(SGDRegressor(), X, y)
    assert result.metric == "squared_error"
    assert result.windowed[-1] < 0.05 * result.windowed[0]
    absolute = evaluate(SGDRegressor(), X, y, metric="absolute_error")
    own = evaluate(SGDRegressor(), X, y, metric=lambda a, b: np.abs(a - b))
    assert own.total_error == absolute.total_error
    with pytest.raises(AttributeError, match="n_mistakes"):
        _ = result.n_mistakes
    averaged = evaluate(SGDRegressor(average=True), X, y, batch_size=10)
    assert averaged.n_scored == 890


def test_log_loss(stream):
    X, y = stream
    model = SGDClassifier(loss="log_loss")
    result = evaluate(model, X, y, metric="log_loss", batch_size=20)
    assert 0 < result.mean_error < 5
    assert result.metric == "log_loss"
    with pytest.raises(ParameterError, match="predict_proba"):
        evaluate(Perceptron(), X, y, metric="log_loss")


def test_late_labels(stream):
    X, y = stream
    late = evaluate(foreign(), X, y, batch_size=10, delay=3)
    assert late.n_scored == 900 - 40
    assert late.model.t_ == 901  # all of it is learnt in the end
    model, wrong, waiting = foreign(), 0, []
    for i in range(0, 900, 10):
        rows = slice(i, i + 10)
        if hasattr(model, "classes_"):
            wrong += int((model.predict(X[rows]) != y[rows]).sum())
        waiting.append(rows)
        if len(waiting) > 3:
            first = waiting.pop(0)
            model.partial_fit(X[first], y[first], classes=[0, 1, 2])
    assert late.n_mistakes == wrong


def test_perceptron_error_is_within_its_bound():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    X = X[np.abs(X[:, 0]) > 0.3]
    y = np.sign(X[:, 0])
    result = evaluate(Perceptron(), X, y)
    gamma, D = 0.3, np.sqrt((X**2).sum(axis=1).max() + 1)
    assert result.n_mistakes + 1 <= (D / gamma) ** 2  # the first row counts as a mistake of the zero vector
    assert result.model.n_mistakes_ <= (D / gamma) ** 2


def test_frame_and_plot(stream):
    import matplotlib.pyplot as plt

    X, y = stream
    result = evaluate(SGDClassifier(), X, y, window=50, verbose=1)
    frame = result.to_frame()
    assert list(frame.columns) == ["rows", "cumulative", "windowed"]
    assert len(frame) == 18
    axes = result.plot(label="hinge")
    assert axes.get_ylabel() == "mean error"
    assert_allclose(axes.lines[0].get_ydata(), result.cumulative)
    plt.close("all")


def test_bad_calls(stream):
    X, y = stream
    with pytest.raises(ParameterTypeError, match="partial_fit"):
        evaluate(ep.Lasso(), X, y)
    with pytest.raises(ParameterError, match="batch_size"):
        evaluate(SGDClassifier(), X, y, batch_size=0)
    with pytest.raises(ParameterError, match="did you mean 'log_loss'"):
        evaluate(SGDClassifier(), X, y, metric="logloss")
    with pytest.raises(DataError, match="y: is None"):
        evaluate(SGDClassifier(), X)
    with pytest.raises(DataError, match="900 rows and y has 5"):
        evaluate(SGDClassifier(), X, y[:5])
    with pytest.raises(DataError, match="pairs"):
        evaluate(SGDClassifier(), iter([X]))
    with pytest.raises(ParameterError, match="shape"):
        evaluate(SGDRegressor(), X, y, metric=lambda a, b: 0.0)
    with pytest.raises(ParameterError, match="classes"):
        evaluate(SGDRegressor(), X, y, classes=[0, 1])
