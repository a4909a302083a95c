"""Arrays of PyTorch in and out where scikit-learn's array_api_dispatch is on; SciPy reads its switch when imported."""

import os
import subprocess
import sys

import pytest

import epicycle as ep

PROGRAM = """
import warnings

import numpy as np
import sklearn
import torch
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import has_fit_parameter

import epicycle as ep

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X, w = rng.normal(size=(80, 4)), rng.uniform(0.5, 2, 80)
y = X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=80)
c = (y > 0).astype(int)
T = {"X": torch.tensor(X), "y": torch.tensor(y), "c": torch.tensor(c), "w": torch.tensor(w)}

CASES = [  # those that scikit-learn dispatches, and one that it does not
    (ep.Ridge(solver="svd"), "y", ["predict"]),
    (ep.PoissonRegressor(), "c", ["predict"]),
    (ep.LogisticRegression(), "c", ["predict", "decision_function", "predict_proba", "predict_log_proba"]),
    (ep.LinearDiscriminantAnalysis(), "c", ["predict", "decision_function", "predict_proba", "transform"]),
    (ep.GaussianNB(), "c", ["predict", "predict_proba"]),
    (ep.PCA(2), None, ["transform", "score_samples", "fit_transform"]),
    (ep.GaussianMixture(2, random_state=0), None, ["predict", "predict_proba", "score_samples"]),
    (ep.Nystroem(n_components=20, random_state=0), None, ["transform"]),
    (ep.KMeans(2, random_state=0, n_init=1), None, ["predict", "transform", "fit_predict"]),
]
for model, target, methods in CASES:
    mine, plain = sklearn.clone(model), sklearn.clone(model)
    of = {"y": y, "c": c}.get(target)
    plain.fit(X, of) if target else plain.fit(X)
    with sklearn.config_context(array_api_dispatch=True):
        mine.fit(T["X"], T[target]) if target else mine.fit(T["X"])
        for method in methods:
            answer = getattr(mine, method)(T["X"])
            assert isinstance(answer, torch.Tensor), (model, method, type(answer))
            assert answer.device == T["X"].device
            assert isinstance(getattr(mine, method)(X), np.ndarray)
            expected = getattr(plain, method)(X)
            assert str(answer.dtype) == f"torch.{expected.dtype}", (model, method, answer.dtype)
            np.testing.assert_array_equal(answer.numpy(), expected)
        if target:
            np.testing.assert_allclose(float(mine.score(T["X"], T[target])), plain.score(X, of), rtol=1e-6)
            if has_fit_parameter(model, "sample_weight"):
                weighted = sklearn.clone(model).fit(T["X"], T[target], sample_weight=T["w"])
                expected = sklearn.clone(model).fit(X, of, sample_weight=w).predict(X)
                np.testing.assert_array_equal(weighted.predict(T["X"]).numpy(), expected)
        assert not any(isinstance(value, torch.Tensor) for value in vars(mine).values())

assert isinstance(ep.Ridge().fit(T["X"], T["y"]).predict(T["X"]), np.ndarray)  # only where it was asked for
with sklearn.config_context(array_api_dispatch=True):
    back = ep.PCA(2).fit(T["X"])
    assert isinstance(back.inverse_transform(back.transform(T["X"])), torch.Tensor)
    pipe = make_pipeline(ep.PCA(2), ep.Ridge(solver="svd")).fit(T["X"], T["y"])
    assert isinstance(pipe.predict(T["X"]), torch.Tensor)
    words = np.array(["no", "yes"])[c]
    assert ep.LogisticRegression().fit(T["X"], words).predict(T["X"]).dtype.kind == "U"
print("all of them")
"""


def test_warnings_of_predictions_point_at_the_caller():
    model = ep.RadiusNeighborsRegressor(radius=0.1).fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.warns(UserWarning, match="predicting NaN") as caught:
        model.predict([[5.0]])
    assert caught[0].filename == __file__


def test_answers_are_arrays_of_the_library_of_x():
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "all of them", done.stderr[-2000:]
