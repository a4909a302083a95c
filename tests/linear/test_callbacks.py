"""scikit-learn's callbacks and ours on the real estimators, in memory, over files and on a cluster's data."""

import time

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import epicycle as ep
from epicycle import Checkpoint, EarlyStopping, LinearRegression, LogisticRegression, Ridge, TimeLimit
from epicycle.exceptions import ConvergenceWarning

ENDLESS = {"solver": "gd", "solver_options": {"step": 1e-9}, "tol": 1e-300, "max_iter": 10**9}


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    return X, np.digitize(X @ [1.0, -1.0, 0.5, 0.0] + rng.logistic(size=400), [-1, 1])


def sources(X, y, folder):
    np.save(folder / "rows.npy", np.column_stack([X, y]))
    return {
        "memory": (X, y),
        "files": (ep.scan(folder / "rows.npy", target=4),),
        "dask": tuple(da.from_array(v, chunks=(150, *v.shape[1:])) for v in (X, y)),
    }


@pytest.mark.parametrize("model", [LinearRegression(), Ridge(), LogisticRegression()], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("solver", ["auto", "bfgs"])
def test_progress_bar(problem, capsys, model, solver):
    watched = type(model)(solver=solver).set_callbacks(ProgressBar()).fit(*problem)
    out = capsys.readouterr().out
    assert f"{type(model).__name__} - fit" in out
    assert "100%" in out
    assert_array_equal(watched.coef_, type(model)(solver=solver).fit(*problem).coef_)


@pytest.mark.parametrize("where", ["memory", "files", "dask"])
def test_time_limit(problem, tmp_path, where):
    model = LogisticRegression(**ENDLESS).set_callbacks(TimeLimit(0.2))
    began = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match=r"time limit of 0.2 s ran out"):
        model.fit(*sources(*problem, tmp_path)[where])
    assert time.perf_counter() - began < 3
    assert model.n_iter_ >= 1
    assert model.history_.n_iter == model.n_iter_
    assert not model.certificate_.holds
    assert np.isfinite(model.predict_proba(problem[0])).all()


def test_early_stopping_on_validation_data(problem):
    X, y = problem
    stopping = EarlyStopping(
        "validation score", patience=3, X_val=X[300:], y_val=y[300:], scoring="neg_log_loss", min_delta=1e-4
    )
    model = LogisticRegression(C=100.0, solver="gd", solver_options={"step": 1e-3}, max_iter=2000)
    model.set_callbacks(stopping).fit(X[:300], y[:300])
    full = LogisticRegression(C=100.0).fit(X[:300], y[:300])
    assert 3 < model.n_iter_ < 2000
    assert not model.converged_
    assert log_loss(y[300:], model.predict_proba(X[300:])) < log_loss(y[300:], full.predict_proba(X[300:])) + 0.02


@pytest.mark.parametrize("where", ["memory", "files"])
def test_a_checkpoint_over_files_resumes_to_the_same_bits(problem, tmp_path, where):
    data = sources(*problem, tmp_path)[where]
    chosen = {"solver": "adam", "solver_options": {"batch_size": 32}, "random_state": 7}
    with ep.config(on_nonconvergence="ignore"):
        whole = LogisticRegression(max_iter=12, **chosen).fit(*data)
        LogisticRegression(max_iter=5, **chosen).set_callbacks(Checkpoint(tmp_path / "run.epi")).fit(*data)
        resumed = Checkpoint.resume(tmp_path / "run.epi").set_params(max_iter=12)
        assert resumed.n_iter_ == 5
        resumed.fit(*data)
    assert_array_equal(resumed.coef_, whole.coef_)
    assert_array_equal(resumed.history_.objective, whole.history_.objective)


def test_scores_of_every_iteration(problem):
    X, y = problem
    monitor = ScoringMonitor(scoring="neg_log_loss")
    model = LogisticRegression(solver="newton").set_callbacks(monitor).fit(X, y)
    log = monitor.get_logs().data_as_pandas
    scores = log[log.task_name == "iteration"].sort_values("task_id").neg_log_loss.to_numpy()
    assert len(scores) == model.n_iter_
    assert (np.diff(scores) > -1e-9).all()
    assert scores[-1] == pytest.approx(-log_loss(y, model.predict_proba(X)), rel=1e-6)


def test_in_a_search_over_pipelines(problem, capsys):
    pipe = make_pipeline(StandardScaler(), LogisticRegression(solver="bfgs"))
    search = GridSearchCV(pipe, {"logisticregression__C": [0.1, 1.0]}, cv=2).set_callbacks(ProgressBar())
    assert search.fit(*problem).best_estimator_[-1].converged_
    assert "Pipeline - fit" in capsys.readouterr().out
    search = GridSearchCV(pipe[-1], {"C": [0.1, 1.0]}, cv=2).set_callbacks(ProgressBar()).fit(*problem)
    assert "LogisticRegression - fit" in capsys.readouterr().out


def test_verbose_logs_iterations(problem, caplog):
    with caplog.at_level("DEBUG", logger="epicycle"):
        model = LogisticRegression(solver="newton", verbose=2).fit(*problem)
    assert len([r for r in caplog.records if "objective" in r.getMessage()]) >= model.n_iter_
