"""Fits of networks with codes that are cut off in the middle of an epoch, or killed, and go on from a checkpoint."""

import multiprocessing
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from coder_samples import SAMPLES
from numpy.testing import assert_array_equal

import epicycle as ep

NAMES = [name for name in SAMPLES if "max_iter" in SAMPLES[name].few and name != "StyleTransfer"]


class StopAt:
    """Asks to stop after so many iterations."""

    def __init__(self, n):
        self.n = n

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        return fitted_estimator is not None and np.max(fitted_estimator.n_iter_) >= self.n

    def teardown(self, estimator, context):
        pass


def made(name, **further):
    return getattr(ep, name)(**{**SAMPLES[name].few, "random_state": 0, "average": 0.9, **further})


@pytest.mark.parametrize("further", [{}, {"early_stopping": True}, {"conditional": True}])
@pytest.mark.parametrize("name", NAMES)
def test_a_fit_that_was_cut_off_ends_in_the_same_bits(name, further, tmp_path):
    X, _ = SAMPLES[name].data(150)
    y = np.arange(150) % 2 if "conditional" in further else None
    arguments = {"max_iter": 3, "batch_size": 40, **further}
    whole = made(name, **arguments).fit(X, y)
    made(name, **arguments).set_callbacks(StopAt(1), ep.Checkpoint(tmp_path / "run.epi")).fit(X, y)
    resumed = ep.Checkpoint.resume(tmp_path / "run.epi").fit(X, y)
    assert resumed.n_iter_ == whole.n_iter_ == 3
    assert_array_equal(resumed.history_["objective"], whole.history_["objective"])
    assert resumed._weights_.keys() == whole._weights_.keys()
    for found, expected in zip(resumed._weights_.values(), whole._weights_.values(), strict=True):
        assert_array_equal(found, expected)
    assert_array_equal(resumed.sample(5, random_state=0), whole.sample(5, random_state=0))


def fit(name, file):
    """Begin, or go on from the checkpoint."""
    started = ep.Checkpoint.resume(file) if Path(file).exists() else made(name, max_iter=60)
    started.set_callbacks(ep.Checkpoint(file, every=3)).fit(SAMPLES[name].data(100)[0])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_a_fit_that_is_killed_ends_in_the_same_bits(name, tmp_path):
    file = str(tmp_path / "run.epi")
    for _ in range(3):
        process = multiprocessing.get_context("spawn").Process(target=fit, args=(name, file))
        process.start()
        before = Path(file).stat().st_mtime_ns if Path(file).exists() else None
        while process.is_alive() and (not Path(file).exists() or Path(file).stat().st_mtime_ns == before):
            time.sleep(0.01)
        if process.pid is not None and process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
        process.join()
    fit(name, file)
    X = SAMPLES[name].data(100)[0]
    whole, resumed = made(name, max_iter=60).fit(X), ep.load(file)
    assert resumed.n_iter_ == 60
    assert_array_equal(resumed.history_["objective"], whole.history_["objective"])
    assert_array_equal(resumed.sample(5, random_state=0), whole.sample(5, random_state=0))
