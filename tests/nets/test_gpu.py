"""Networks on a GPU, where there is one: precision, compiled modules, determinism, memory, files and resumed fits."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import epicycle as ep
from epicycle.exceptions import MemoryBudgetError

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def problem(n=600):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 8)).astype(np.float32)
    return X, (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 0.5)


def perceptron(**options):
    fixed = {"learning_rate_init": 0.01, "max_iter": 20, "tol": None, "batch_size": 50, "random_state": 0}
    return ep.MLPClassifier((32, 32), **{**fixed, "device": "cuda", **options})


def test_the_gpu_ends_near_the_processor():
    X, y = problem()
    there, here = perceptron(max_iter=3).fit(X, y), perceptron(max_iter=3, device="cpu").fit(X, y)
    assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=2e-3)


@pytest.mark.parametrize("options", [{"precision": "bfloat16"}, {"precision": "float16"}, {"compile": True}])
def test_shorter_products_and_compiled_modules_learn_the_same(options):
    X, y = problem()
    assert perceptron(**options).fit(X, y).score(X, y) > perceptron().fit(X, y).score(X, y) - 0.05


def test_deterministic_fits_have_the_same_bits():
    X, y = problem()
    first, second = (perceptron(deterministic=True, dropout=0.2).fit(X, y) for _ in range(2))
    for a, b in zip(first.coefs_, second.coefs_, strict=True):
        assert_array_equal(a, b)


def test_the_generator_of_the_device_is_the_callers():
    X, y = problem()
    torch.cuda.manual_seed(5)
    expected = torch.rand(3, device="cuda")
    torch.cuda.manual_seed(5)
    perceptron(max_iter=2, dropout=0.5).fit(X, y)
    assert_array_equal(torch.rand(3, device="cuda").cpu(), expected.cpu())


def test_files_are_read_without_a_gpu(tmp_path):
    X, y = problem()
    model = perceptron().fit(X, y)
    model.save(tmp_path / "net.epi")
    loaded = ep.load(tmp_path / "net.epi").set_params(device="cpu")
    assert_allclose(loaded.predict_proba(X), model.predict_proba(X), atol=1e-5)


def test_too_large_a_network_is_named_and_leaves_the_card_usable():
    X, y = problem(64)
    limit = torch.cuda.mem_get_info()[0] / torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction(min(limit, 0.02))
    try:
        with pytest.raises(MemoryBudgetError, match="the memory of the device is not enough"):
            perceptron(hidden_layer_sizes=(40_000, 40_000)).fit(X, y)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert perceptron(max_iter=1).fit(X, y).n_iter_ == 1


def test_gpt_with_dropout_learns_on_fused_attention():
    text = "the cat sat on the mat and the dog sat on the log " * 40
    options = {"n_layers": 2, "d_model": 32, "context_length": 32, "max_iter": 2, "device": "cuda", "random_state": 0}
    model = ep.GPT(dropout=0.1, learning_rate_init=0.01, precision="bfloat16", compile=True, **options).fit(text)
    assert model.history_["objective"][-1] < 1.0
    assert len("".join(model.generate("the cat ", 10, temperature=0))) == 10
