"""Fits of transformers that are cut off in the middle of an epoch, and go on from a checkpoint."""

import numpy as np
import pytest
from language_samples import SAMPLES
from numpy.testing import assert_array_equal

import epicycle as ep


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


@pytest.mark.parametrize("name", SAMPLES)
def test_a_fit_that_was_cut_off_ends_in_the_same_bits(name, tmp_path):
    sample = SAMPLES[name]
    arguments = {**sample.few, "max_iter": 3, "random_state": 0, "average": 0.9, "batch_size": 32}
    if name == "GPT":
        arguments |= {"early_stopping": True, "batch_size": 12}
    X, y = sample.data(150)
    whole = getattr(ep, name)(**arguments).fit(X, y)
    started = getattr(ep, name)(**arguments).set_callbacks(StopAt(1), ep.Checkpoint(tmp_path / "run.epi"))
    started.fit(X, y)
    resumed = ep.Checkpoint.resume(tmp_path / "run.epi").fit(X, y)
    assert resumed.n_iter_ == whole.n_iter_ == 3
    assert_array_equal(resumed.history_["objective"], whole.history_["objective"])
    for found, expected in zip(resumed._weights_.values(), whole._weights_.values(), strict=True):
        assert_array_equal(found, expected)
    rows = whole._example_inputs(X[:2])  # what ONNX traces the module with
    assert whole.module_(*rows).shape[0] == 2
