"""A fit that was cut off goes on from its checkpoint as if nothing had happened."""

import numpy as np
import pytest
from gradient_toy import GradientRidge
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression as SklearnLogisticRegression
from sklearn.preprocessing import StandardScaler

import epicycle as ep
from epicycle import Checkpoint, EarlyStopping, TimeLimit
from epicycle.exceptions import ConvergenceWarning, DataError, ModelFormatError, ParameterError, ParameterTypeError


@pytest.mark.parametrize("solver", ["gradient", "stochastic"])
@pytest.mark.parametrize("random_state", [3, None])
def test_the_same_bits_as_an_uninterrupted_fit(problem, tmp_path, solver, random_state):
    X, y = problem
    file = tmp_path / "run.epi"
    with ep.config(on_nonconvergence="ignore"):
        whole = GradientRidge(solver=solver, max_iter=60, tol=0, random_state=random_state).set_callbacks(
            first := Checkpoint(tmp_path / "first.epi", every=25)
        )
        # the whole fit, its file kept from iteration 25, stands for the one that was interrupted
        first._write, written = (lambda fitted, write=first._write: written.append(fitted.n_iter_) or write(fitted)), []
        whole.fit(X, y)
        assert written == [25, 50, 60]

        cut = GradientRidge(solver=solver, max_iter=60, tol=0, random_state=random_state, fail_at=40)
        cut.set_callbacks(Checkpoint(file, every=10))
        with pytest.raises(KeyboardInterrupt):
            cut.fit(X, y)
        resumed = Checkpoint.resume(file)
        assert resumed.n_iter_ == 30
        assert resumed.history_.n_iter == 30
        resumed.set_params(fail_at=-1)
        seed = int(resumed.solver_state_["seed"])
        resumed.fit(X, y)
        if random_state is None:  # the seed was drawn, and it is in the file
            whole = GradientRidge(solver=solver, max_iter=60, tol=0, random_state=seed).fit(X, y)
    assert np.array_equal(resumed.coef_, whole.coef_)
    assert np.array_equal(resumed.history_.objective, whole.history_.objective)
    assert np.all(np.diff(resumed.history_.seconds) >= 0)
    assert resumed.n_iter_ == whole.n_iter_ == 60
    assert not hasattr(resumed, "solver_state_")


def test_a_checkpoint_predicts(problem, tmp_path):
    X, y = problem
    with pytest.raises(KeyboardInterrupt):
        GradientRidge(fail_at=21).set_callbacks(Checkpoint(tmp_path / "run.epi")).fit(X, y)
    model = ep.load(tmp_path / "run.epi")
    with ep.config(on_nonconvergence="ignore"):
        alone = GradientRidge(max_iter=20).fit(X, y)
    assert np.array_equal(model.predict(X), alone.predict(X))
    assert not model.converged_
    assert not model.certificate_.holds


def test_resume_after_a_time_limit(problem, tmp_path):
    X, y = problem
    file = tmp_path / "run.epi"
    limited = GradientRidge(pause=0.01).set_callbacks(Checkpoint(file, every=1000), TimeLimit(0.05))
    with pytest.warns(ConvergenceWarning, match="time limit"):
        limited.fit(X, y)
    model = Checkpoint.resume(file)  # written at the end, because the fit was not finished
    assert model.n_iter_ == limited.n_iter_
    assert np.array_equal(model.set_params(pause=0.0).fit(X, y).coef_, GradientRidge().fit(X, y).coef_)


def test_resume_with_more_iterations(problem, tmp_path):
    X, y = problem
    with pytest.warns(ConvergenceWarning):
        GradientRidge(max_iter=10).set_callbacks(Checkpoint(tmp_path / "run.epi", seconds=100)).fit(X, y)
    model = Checkpoint.resume(tmp_path / "run.epi").set_params(max_iter=2000)
    assert np.array_equal(model.fit(X, y).coef_, GradientRidge().fit(X, y).coef_)
    assert model.converged_


def test_a_finished_fit_leaves_the_finished_model(problem, tmp_path):
    X, y = problem
    model = GradientRidge().set_callbacks(Checkpoint(tmp_path / "run.epi", every=7)).fit(X, y)
    assert not hasattr(model, "solver_state_")
    loaded = Checkpoint.resume(tmp_path / "run.epi")
    assert loaded.converged_
    assert not hasattr(loaded, "solver_state_")
    assert np.array_equal(loaded.coef_, model.coef_)


def test_seconds_space_the_writes(problem, tmp_path):
    checkpoint = Checkpoint(tmp_path / "run.epi", seconds=1000)
    written = []
    checkpoint._write = lambda fitted: written.append(fitted.n_iter_)
    model = GradientRidge().set_callbacks(checkpoint).fit(*problem)
    assert written == [model.n_iter_]


def test_a_clone_starts_afresh(problem, tmp_path):
    X, y = problem
    with pytest.raises(KeyboardInterrupt):
        GradientRidge(fail_at=21).set_callbacks(Checkpoint(tmp_path / "run.epi")).fit(X, y)
    fresh = clone(Checkpoint.resume(tmp_path / "run.epi")).set_params(fail_at=-1).fit(X, y)
    assert fresh.history_.n_iter == fresh.n_iter_ == GradientRidge().fit(X, y).n_iter_


def test_a_resumed_fit_that_fails_can_be_resumed_again(problem, tmp_path):
    X, y = problem
    with pytest.raises(KeyboardInterrupt):
        GradientRidge(fail_at=21).set_callbacks(Checkpoint(tmp_path / "run.epi")).fit(X, y)
    model = Checkpoint.resume(tmp_path / "run.epi").set_params(fail_at=31)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.n_iter_ == 20
    assert np.array_equal(model.set_params(fail_at=-1).fit(X, y).coef_, GradientRidge().fit(X, y).coef_)


def test_early_stopping_and_checkpoint_together(problem, tmp_path):
    X, y = problem
    stopping = EarlyStopping(patience=2, min_delta=1e-3)
    model = GradientRidge().set_callbacks(stopping, Checkpoint(tmp_path / "run.epi", every=5)).fit(X, y)
    loaded = Checkpoint.resume(tmp_path / "run.epi")
    assert np.array_equal(loaded.coef_, model.coef_)
    assert np.array_equal(loaded.fit(X, y).coef_, GradientRidge().fit(X, y).coef_)


def test_other_data_is_refused(problem, tmp_path):
    X, y = problem
    with pytest.raises(KeyboardInterrupt):
        GradientRidge(fail_at=21).set_callbacks(Checkpoint(tmp_path / "run.epi")).fit(X, y)
    model = Checkpoint.resume(tmp_path / "run.epi").set_params(fail_at=-1)
    with pytest.raises(DataError, match="X has 3 features, but the checkpoint to resume from was written for 4"):
        model.fit(X[:, :3], y)


def test_where_it_cannot_work(problem, tmp_path):
    X, y = problem
    with pytest.raises(ParameterError, match="existing folder"):
        GradientRidge().set_callbacks(Checkpoint(tmp_path / "no" / "run.epi")).fit(X, y)
    with pytest.raises(ParameterTypeError, match="expected an epicycle estimator, got LogisticRegression"):
        SklearnLogisticRegression().set_callbacks(Checkpoint(tmp_path / "run.epi")).fit(X, y > 0)
    ep.save(StandardScaler().fit(X), tmp_path / "scaler.epi")
    with pytest.raises(ModelFormatError, match="StandardScaler"):
        Checkpoint.resume(tmp_path / "scaler.epi")
