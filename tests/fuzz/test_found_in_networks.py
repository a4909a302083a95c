"""What campaigns of random fits have found in networks: an answer, or an error in words."""

import numpy as np
import pytest

import epicycle as ep
from epicycle.exceptions import ConvergenceError, MemoryBudgetError

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("solver", ["sgd", "momentum", "adagrad", "adadelta", "rmsprop", "adam", "adamw"])
def test_steps_and_decays_beyond_single_precision_end_in_words(solver):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), np.arange(30) % 2
    given = {"learning_rate_init": 1e300, "alpha": 1e300}
    with pytest.raises(ConvergenceError, match=r"no number|no longer a number"):
        ep.MLPClassifier((5,), solver=solver, max_iter=2, **given).fit(X, y)
    model = ep.MLPClassifier((5,), solver=solver, max_iter=2, learning_rate_init=1e-300).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_chains_beyond_all_memory_are_refused_before_work():
    X = np.random.default_rng(0).normal(size=(20, 3))
    for n in (10**10, 2**62):
        with pytest.raises(MemoryBudgetError, match=f"n_annealed={n} would need"):
            ep.EnergyBasedModel(max_iter=1, n_annealed=n).fit(X)


@pytest.mark.parametrize(
    "given", [{"hidden_size": 2**62}, {"hidden_size": 2**62, "cell": "gru"}, {"embedding_size": 2**62}]
)
def test_layers_beyond_all_memory_are_refused_by_name(given):
    # torch says it as a TypeError, or a RuntimeError about storage
    with pytest.raises(MemoryBudgetError, match="CharacterModel: the memory"):
        ep.CharacterModel(max_iter=1, **given).fit(["abc", "acb"])


def test_codes_beyond_all_memory_are_refused_by_name():
    with pytest.raises(MemoryBudgetError, match="VAE: the memory"):
        ep.VAE(2**62, max_iter=1).fit(np.random.default_rng(0).normal(size=(20, 3)))


def test_a_power_beyond_all_numbers_ends_the_steps():
    X, y = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 2
    model = ep.MLPClassifier((5,), solver="sgd", learning_rate="invscaling", power_t=1e300, max_iter=2).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_codes_that_no_row_comes_back_from_are_told(monkeypatch):
    model = ep.NormalizingFlow(max_iter=1, random_state=0).fit(np.random.default_rng(0).normal(size=(30, 4)))
    Z = np.zeros((3, 4))
    assert np.isfinite(model.decode(Z)).all()
    monkeypatch.setattr(ep.NormalizingFlow, "_decoded", lambda self, module, z, classes: z / z)
    with pytest.raises(ConvergenceError, match="decoded 3 of 3 rows with values that are not finite"):
        model.decode(Z)


def test_rows_beyond_half_precision_end_at_its_largest_number(monkeypatch):
    X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float16)
    model = ep.NormalizingFlow(max_iter=1, random_state=0).fit(X)
    monkeypatch.setattr(ep.NormalizingFlow, "_decoded", lambda self, module, z, classes: 1e8 * z)
    drawn = model.decode(np.array([[1.0, -1.0, 0.0, 1e-8]]))
    assert drawn.dtype == np.float16
    assert drawn.tolist() == [[65504.0, -65504.0, 0.0, 1.0]]
