"""Fits of any network: memory that runs out, streams that keep a scale, what a progress line says, what is refused."""

import re

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from vision_samples import bars

import epicycle as ep
from epicycle.core._history import History
from epicycle.core.estimator._progress import FitMonitor, Run
from epicycle.exceptions import ConvergenceError, DataError, MissingDependencyError, ParameterError

LAYERS = [["conv", 4, 3], "relu", ["max_pool", 2], "flatten"]


def conv(**options):
    return ep.ConvNetClassifier(LAYERS, **{"max_iter": 3, "batch_size": 32, "random_state": 0, **options})


class OutOfMemory(torch.nn.Module):
    """A layer for which the allocator has no memory from the tenth batch on, as torch says it on the CPU."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls > 10:
            raise RuntimeError(
                "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried "
                "to allocate 80000000000 bytes. Error code 12 (Cannot allocate memory)"
            )
        return x


@pytest.mark.parametrize("error", ["cpu", "cuda"])
def test_out_of_memory_is_named_and_the_earlier_fit_stays(monkeypatch, error):
    X, y = bars(120)
    model = conv().fit(X, y)
    before, weights = model.predict_proba(X), {name: w.copy() for name, w in model._weights_.items()}
    build = ep.ConvNetClassifier._build_module

    def leaky(architecture):
        module = build(architecture)
        layer = OutOfMemory()
        if error == "cuda":
            layer.forward = lambda _x: (_ for _ in ()).throw(torch.OutOfMemoryError("CUDA out of memory. Tried 2 GiB"))
        module.append(layer)
        return module

    monkeypatch.setattr(ep.ConvNetClassifier, "_build_module", staticmethod(leaky))
    model.set_params(max_iter=20)
    with pytest.raises(MemoryError, match=r"the memory of the device.*smaller batch_size.*accumulate"):
        model.fit(X, y)
    monkeypatch.undo()
    assert_array_equal(model.predict_proba(X), before)
    assert all(np.array_equal(weights[name], w) for name, w in model._weights_.items())


def test_out_of_memory_leaves_the_last_checkpoint(monkeypatch, tmp_path):
    """What was learnt until then is in the file, and a fit with less memory at a time goes on from it."""
    X, y = bars(120)
    build = ep.ConvNetClassifier._build_module
    whole = conv(max_iter=6).fit(X, y)

    def leaky(architecture):
        module = build(architecture)
        module.append(OutOfMemory())
        return module

    monkeypatch.setattr(ep.ConvNetClassifier, "_build_module", staticmethod(leaky))
    model = conv(max_iter=6).set_callbacks(ep.Checkpoint(tmp_path / "run.epi"))
    with ep.config(n_jobs=1), pytest.raises(MemoryError):
        model.fit(X, y)
    monkeypatch.undo()
    resumed = ep.Checkpoint.resume(tmp_path / "run.epi")
    assert 0 < resumed.history_.n_iter < 6
    resumed.fit(X, y)
    assert_array_equal(resumed.predict_proba(X), whole.predict_proba(X))


def test_a_stream_keeps_the_scale_of_its_first_images():
    X, y = bars(200)
    model = conv(learning_rate="constant").partial_fit(X[:100], y[:100], classes=np.unique(y))
    first = dict(model.architecture_)
    model.partial_fit(10 * X[100:] + 5, y[100:])
    assert model.architecture_ == first
    assert_allclose(first["mean"], X[:100].mean(), rtol=1e-5)


def test_the_progress_line_shows_loss_rate_and_time_left(monkeypatch):
    said = []

    class Line:
        def update(self, done, *, total=None, note=""):
            said.append((done, total, note))

    run = Run("MLPClassifier", 0.0, progress=Line())
    monitor = FitMonitor(ep.MLPClassifier(), run, None, 10, lambda x: {})
    monitor._entered -= 8.0  # two iterations in eight seconds leave 32 for eight more
    monitor(2, np.zeros(1), objective=0.51234, learning_rate=0.0025)
    assert re.fullmatch(r"loss 0.5123, rate 0.0025, 0:3[23] left", said[0][2])
    resumed = FitMonitor(ep.MLPClassifier(), run, None, 10, lambda x: {})
    resumed.resume(History(objective=[1.0] * 6))
    resumed._entered -= 10.0  # since then one iteration
    resumed(7, np.zeros(1), objective=0.5, learning_rate=0.0025)
    assert re.search(r"0:3[01] left", said[1][2])
    monitor(3, np.zeros(1), objective=0.5)
    assert said[2][2] == "objective 0.5"


def test_rows_in_files_are_not_held_out(tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    pd.DataFrame({"a": rng.normal(size=50), "y": rng.normal(size=50)}).to_parquet(tmp_path / "t.parquet")
    model = ep.MLPRegressor(early_stopping=True)
    with pytest.raises(ParameterError, match="early_stopping=True holds rows out, which needs data in memory"):
        model.fit(ep.scan(str(tmp_path / "t.parquet"), target="y"))


def test_exploding_gradients_are_named_and_clipping_tames_them():
    X, y = bars(120)
    wild = {"solver": "sgd", "learning_rate_init": 1e12, "learning_rate": "constant"}
    with pytest.raises(ConvergenceError, match=r"first epoch.*clip_norm"):
        conv(**wild).fit(X, y)
    tame = conv(**{**wild, "learning_rate_init": 1.0}, clip_norm=0.1, max_iter=10).fit(X, y)
    assert np.isfinite(tame.history_.objective).all()
    assert tame.score(X, y) > 0.5


def test_accumulated_gradients_are_those_of_the_batch():
    X = np.random.default_rng(0).normal(size=(96, 5))
    y = (X @ [1.0, -2, 0.5, 0, 1] > 0).astype(int)
    settings = {"hidden_layer_sizes": 6, "max_iter": 4, "tol": None, "batch_size": 48, "random_state": 0}
    whole, parts = ep.MLPClassifier(**settings).fit(X, y), ep.MLPClassifier(accumulate=3, **settings).fit(X, y)
    for a, b in zip(whole.coefs_, parts.coefs_, strict=True):
        assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_label_smoothing_keeps_probabilities_off_the_corners():
    X, y = bars(200)
    longer = {"max_iter": 25, "learning_rate_init": 0.01}
    sharp, soft = conv(**longer).fit(X, y), conv(label_smoothing=0.3, **longer).fit(X, y)
    assert soft.predict_proba(X).max() < 0.95 < sharp.predict_proba(X).max()
    assert soft.score(X, y) > 0.8


def test_onnx_is_asked_for_by_name_or_written(tmp_path):
    X, y = bars(60)
    model = conv(max_iter=1).fit(X, y)
    assert [tuple(x.shape) for x in model._example_inputs(X)] == [(2, 8, 8, 1)]
    try:
        import onnx
        from onnx.reference import ReferenceEvaluator
    except ModuleNotFoundError:
        with pytest.raises(MissingDependencyError, match="to_onnx needs onnx"):
            model.to_onnx(tmp_path / "m.onnx", X)
        return
    model.to_onnx(tmp_path / "m.onnx", X)
    onnx.checker.check_model(onnx.load(tmp_path / "m.onnx"))
    (found,) = ReferenceEvaluator(str(tmp_path / "m.onnx")).run(None, {"input": X[:7, ..., None]})
    assert_allclose(found, model._scores(X[:7]), rtol=1e-4, atol=1e-5)


def test_one_class_and_no_rows_are_refused():
    X, y = bars(6)
    with pytest.raises(DataError, match="one class"):
        conv().fit(X, ["a"] * 6)
    with pytest.raises(DataError, match="0 sample"):
        conv().fit(X[:0], y[:0])
