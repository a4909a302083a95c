"""The EM driver: Jensen's bound, closed forms, monotone climbs, SQUAREM, restarts, engines, checkpoints, errors."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from latent_models import TwoCoins
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax

import epicycle as ep
from epicycle import em
from epicycle.core._monitor import Monitor
from epicycle.data import as_data
from epicycle.exceptions import ConvergenceError, ConvergenceWarning, DataError, ParameterError

START = {"p": np.array([0.4, 0.6]), "share": 0.5}


@pytest.fixture(scope="module")
def heads():
    rng = np.random.default_rng(2)
    p = np.where(rng.random(400) < 0.3, 0.35, 0.6)
    return rng.binomial(10, p)[:, None].astype(float)


@pytest.fixture(scope="module")
def plain(heads):
    return em.ExpectationMaximization(TwoCoins(), start=START, tol=1e-14, max_iter=20_000).fit(heads)


def test_jensens_bound_touches_after_the_e_step_and_only_then(heads):
    model, data = TwoCoins(), as_data(heads)
    joint = model.log_joint(heads[:, 0], START)
    posterior = softmax(joint, axis=1)
    found = model.expectation(data, START)
    assert em.elbo(joint, posterior) == pytest.approx(found.log_likelihood, rel=1e-13)
    other = softmax(joint + np.random.default_rng(0).normal(size=joint.shape), axis=1)
    assert em.elbo(joint, other) < found.log_likelihood - 1
    new = model.m_step(found.statistics, START)  # the M-step raises the bound, and L lies above it
    bound = em.elbo(model.log_joint(heads[:, 0], new), posterior)
    assert found.log_likelihood < bound < model.expectation(data, new).log_likelihood


def test_the_end_is_stationary_and_nothing_nearby_is_better(heads, plain):
    model, data = TwoCoins(), as_data(heads)
    assert plain.converged_
    assert plain.certificate_.kind == "stationarity"
    theta = plain.parameters_
    again = model.m_step(model.expectation(data, theta).statistics, theta)
    assert_allclose(model.to_vector(again), model.to_vector(theta), atol=1e-6)
    x, best = model.to_vector(theta), plain.log_likelihood_
    for direction in np.eye(3):
        for h in (-1e-3, 1e-3):
            assert model.expectation(data, model.from_vector(x + h * direction, theta)).log_likelihood < best
    assert plain.score(heads) == pytest.approx(best / len(heads))


def test_the_log_likelihood_never_falls(plain):
    L = plain.history_.log_likelihood
    assert len(L) == plain.n_iter_ > 100
    assert (np.diff(L) >= -1e-9 * np.abs(L[:-1])).all()
    assert_allclose(plain.history_.objective, -L / 400)


def test_squarem_needs_far_fewer_steps_for_the_same_end(heads, plain):
    fast = em.ExpectationMaximization(TwoCoins(), start=START, tol=1e-14, max_iter=20_000, accelerate=True).fit(heads)
    assert fast.converged_
    assert fast.n_iter_ * 4 < plain.n_iter_
    assert fast.history_.accelerated.any()
    assert (np.diff(fast.history_.log_likelihood) >= -1e-9 * np.abs(fast.log_likelihood_)).all()
    assert fast.log_likelihood_ >= plain.log_likelihood_ - 1e-9
    assert_allclose(fast.parameters_["p"], plain.parameters_["p"], atol=1e-4)


@given(seed=st.integers(0, 2**20), n=st.integers(1, 40), accelerate=st.booleans(), distinct=st.integers(1, 11))
def test_any_rows_climb_without_a_fall(seed, n, accelerate, distinct):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, distinct, n)[:, None].astype(float)
    X[0] = 5.0  # so that no coin is certain, and logarithms are finite
    theta = {"p": rng.uniform(0.05, 0.95, 2), "share": float(rng.uniform(0.05, 0.95))}
    with np.errstate(divide="ignore", invalid="ignore"):  # a share that falls to 0 has the logarithm -inf
        found = em.run_em(TwoCoins(), as_data(X), theta, max_iter=30, accelerate=accelerate)
    L = found.history.log_likelihood
    assert np.isfinite(L).all()
    assert (np.diff(L) >= -1e-9 * (np.abs(L[:-1]) + n)).all()


def test_safeguards_refuse_points_outside_the_set_and_falls(heads):
    class Narrow(TwoCoins):
        def feasible(self, theta):
            return False

    class Deceived(TwoCoins):
        """Its extrapolations always lie at a bad point."""

        def from_vector(self, vector, like):
            return super().from_vector(np.array([0.01, 0.99, 0.5]), like)

    without = em.run_em(TwoCoins(), as_data(heads), START, max_iter=30)
    for model in (Narrow(), Deceived()):
        found = em.run_em(model, as_data(heads), START, max_iter=30, accelerate=True)
        assert not found.history.accelerated.any()
        assert_array_equal(found.x, without.x)


def test_a_fall_is_an_error_that_names_iteration_and_sizes(heads):
    with pytest.raises(ConvergenceError, match=r"EM iteration 1: the log-likelihood fell from -\d.* to -\d.*TwoCoins"):
        em.ExpectationMaximization(TwoCoins(broken=True), start=START).fit(heads)


def test_a_start_of_probability_zero_is_refused(heads):
    impossible = {"p": np.array([1e-320, 1e-320]), "share": 0.5}
    with pytest.raises(ConvergenceError, match="log-likelihood of the start is"), np.errstate(all="ignore"):
        em.run_em(TwoCoins(), as_data(heads), {**impossible, "p": np.zeros(2)})


def test_restarts_keep_the_best_whatever_the_threads(heads):
    fits = [
        em.ExpectationMaximization(TwoCoins(), n_init=5, random_state=1, n_jobs=jobs, max_iter=40, tol=1e-3).fit(heads)
        for jobs in (1, 2)
    ]
    watched = em.ExpectationMaximization(TwoCoins(), n_init=5, random_state=1, verbose=1, max_iter=40, tol=1e-3)
    fits.append(watched.fit(heads))
    ends = [fits[0].history_.log_likelihood[fits[0].history_.start == i][-1] for i in range(5)]
    for model in fits:
        assert model.log_likelihood_ == max(ends)
        assert_array_equal(model.parameters_["p"], fits[0].parameters_["p"])
        assert_array_equal(model.history_.log_likelihood, fits[0].history_.log_likelihood)


def test_the_same_answer_from_files_and_dask_and_repeated_rows(heads, tmp_path):
    pd.DataFrame({"heads": heads[:, 0]}).to_parquet(tmp_path / "heads.parquet")
    model = em.ExpectationMaximization(TwoCoins(), start=START, tol=1e-9, max_iter=5000)
    whole = model.fit(heads).parameters_["p"]
    values, counts = np.unique(heads, return_counts=True)
    with ep.config(on_nonconvergence="ignore"):
        assert_allclose(model.fit(ep.scan(tmp_path / "heads.parquet")).parameters_["p"], whole, rtol=1e-9)
        assert_allclose(model.fit(da.from_array(heads, chunks=(90, 1))).parameters_["p"], whole, rtol=1e-9)
        assert_allclose(model.fit(values[:, None], sample_weight=counts).parameters_["p"], whole, rtol=1e-6)


def test_a_cut_off_fit_goes_on_from_its_state(heads):
    data, model, states = as_data(heads), TwoCoins(), []

    def begin(i):
        return model.start(data, np.random.default_rng(i))

    class Recorder(Monitor):
        def __call__(self, iteration, x, *, objective, state=None, **columns):
            states.append(dict(state()))
            return super().__call__(iteration, x, objective=objective, **columns)

    options = {"max_iter": 30, "tol": 0.0, "accelerate": True, "parallel": False}
    whole = em.run_starts(model, data, 3, begin, monitor=Recorder(), **options)
    for at in (12, 47, 80):
        rest = em.run_starts(model, data, 3, begin, monitor=Recorder(), state=states[at], **options)
        assert_array_equal(rest.x, whole.x)
        assert rest.log_likelihood == whole.log_likelihood
        assert (rest.n_iter, rest.start, rest.reason) == (whole.n_iter, whole.start, whole.reason)


def test_too_few_iterations_warn_and_a_missing_start_is_named(heads):
    with pytest.warns(ConvergenceWarning, match="did not converge in 3 iterations"):
        em.ExpectationMaximization(TwoCoins(), start=START, max_iter=3, tol=1e-12).fit(heads)

    class NoStart(TwoCoins):
        start = em.LatentModel.start

    with pytest.raises(ParameterError, match="NoStart has no method start"):
        em.ExpectationMaximization(NoStart()).fit(heads)
    with pytest.raises(DataError, match="q: shape"):
        em.elbo(np.zeros((2, 2)), np.zeros((2, 3)))
    with pytest.raises(DataError, match="sum 1"):
        em.elbo(np.zeros((2, 2)), np.ones((2, 2)))


def test_vectors_and_parameters_are_two_forms_of_the_same():
    model = TwoCoins()
    nest = {"a": np.arange(6.0).reshape(2, 3), "b": (1.5, [np.array([2.0])])}
    x = model.to_vector(nest)
    back = model.from_vector(x, nest)
    assert x.tolist() == [0, 1, 2, 3, 4, 5, 1.5, 2]
    assert_array_equal(back["a"], nest["a"])
    assert back["b"][0] == 1.5
    assert isinstance(back["b"], tuple)
