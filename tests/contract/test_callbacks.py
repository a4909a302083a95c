"""scikit-learn's callbacks work on our fits, and ours do what they say."""

import gc
import pickle
import time
import warnings
import weakref

import numpy as np
import pytest
from gradient_toy import GradientRidge
from joblib import parallel_config
from sklearn.base import clone
from sklearn.callback import FitCallback, ProgressBar, ScoringMonitor
from sklearn.linear_model import LogisticRegression as SklearnLogisticRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import epicycle as ep
from epicycle import Checkpoint, EarlyStopping, TimeLimit
from epicycle.exceptions import ConvergenceError, ConvergenceWarning, ParameterError, ParameterTypeError


class Witness:
    """Writes down every event."""

    def __init__(self, *, stop_at=None, fail_at=None):
        self.stop_at = stop_at
        self.fail_at = fail_at
        self.events = []
        self.fitted = []
        self.sizes = []

    def setup(self, estimator, context):
        self.events.append("setup")

    def on_fit_task_begin(self, estimator, context, *, X=None):
        self.events.append(f"begin {context.task_name}")
        self.sizes.append(None if X is None else len(X))

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.events.append(f"end {context.task_name}")
        if context.task_name == "iteration" and fitted_estimator is not None:
            self.fitted.append(fitted_estimator)
            if len(self.fitted) == self.fail_at:
                raise ZeroDivisionError
        return len(self.fitted) == self.stop_at

    def teardown(self, estimator, context):
        self.events.append("teardown")


# ------------------------------------------------------------------- the protocol


def test_the_events_of_a_fit(problem):
    witness = Witness(stop_at=3)
    model = GradientRidge().set_callbacks(witness).fit(*problem)
    iteration = ["begin iteration", "end iteration"]
    assert witness.events == ["setup", "begin fit", *iteration * 3, "end fit", "teardown"]
    assert set(witness.sizes) == {200}
    assert model.n_iter_ == 3


def test_a_task_begun_is_ended(problem):
    witness = Witness()
    with pytest.warns(ConvergenceWarning):
        GradientRidge(max_iter=4).set_callbacks(witness).fit(*problem)
    assert witness.events.count("begin iteration") == witness.events.count("end iteration") == 4
    witness = Witness()
    model = GradientRidge().set_callbacks(witness).fit(*problem)
    assert len(witness.fitted) == model.n_iter_
    assert witness.events.count("begin iteration") == witness.events.count("end iteration")


def test_fitted_estimator_predicts_as_if_the_fit_had_stopped_there(problem):
    X, y = problem
    witness = Witness()
    GradientRidge().set_callbacks(witness).fit(X, y)
    early = witness.fitted[4]
    with ep.config(on_nonconvergence="ignore"):
        alone = GradientRidge(max_iter=5).fit(X, y)
    assert np.array_equal(early.predict(X), alone.predict(X))
    assert np.array_equal(early.history_.objective, alone.history_.objective)
    assert not early.converged_
    assert "still running" in str(early.certificate_)


def test_fitted_estimator_carries_no_data_and_can_be_pickled(problem):
    X, y = np.repeat(problem[0], 50, axis=0), np.repeat(problem[1], 50)
    witness = Witness(stop_at=2)
    GradientRidge().set_callbacks(witness).fit(X, y)
    early = witness.fitted[-1].set_callbacks()
    assert len(pickle.dumps(early)) < X.nbytes / 10
    assert np.array_equal(pickle.loads(pickle.dumps(early)).predict(X), early.predict(X))


def test_a_callback_that_fails_is_torn_down_and_leaves_no_fit(problem):
    witness = Witness(fail_at=2)
    model = GradientRidge().set_callbacks(witness)
    with pytest.raises(ZeroDivisionError):
        model.fit(*problem)
    assert witness.events[-1] == "teardown"
    assert set(vars(model)) == {*model.get_params(), "_skl_callbacks"}


def test_callbacks_see_a_fit_without_iterations(problem):
    witness = Witness()
    GradientRidge(solver="closed form").set_callbacks(witness, TimeLimit(10)).fit(*problem)
    assert witness.events == ["setup", "begin fit", "end fit", "teardown"]


def test_a_fit_without_callbacks_leaves_no_trace_of_them(problem):
    model = GradientRidge().fit(*problem)
    assert not [name for name in vars(model) if name.startswith("_")]


FAMILIES = [
    ep.LogisticRegression,
    ep.Lasso,
    ep.RandomForestClassifier,
    ep.GradientBoostingRegressor,
    ep.SVC,
    ep.Perceptron,
]


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_and_its_data_are_freed_when_the_last_name_goes(problem, family, watched):
    gc.collect()
    gc.disable()  # so that only counted references can free it
    try:
        X = problem[0].copy()
        model = family()
        if watched:
            model.set_callbacks(TimeLimit(60))
        model.fit(X, (problem[1] > 0).astype(int))
        left = weakref.ref(model), weakref.ref(X)
        del model, X
        assert left[0]() is None
        assert left[1]() is None
    finally:
        gc.enable()


def test_callbacks_do_not_change_the_result(problem):
    plain = GradientRidge().fit(*problem)
    watched = GradientRidge().set_callbacks(Witness(), TimeLimit(60)).fit(*problem)
    assert np.array_equal(plain.coef_, watched.coef_)
    assert np.array_equal(plain.history_.objective, watched.history_.objective)


# ------------------------------------------------------------------- scikit-learn's own


def test_progress_bar(problem, capsys):
    GradientRidge().set_callbacks(ProgressBar()).fit(*problem)
    out = capsys.readouterr().out
    assert "GradientRidge - fit" in out
    assert "100%" in out


def test_progress_bar_of_a_search(problem, capsys):
    search = GridSearchCV(GradientRidge(), {"alpha": [0.1, 0.2]}, cv=2).set_callbacks(ProgressBar())
    search.fit(*problem)
    assert "GradientRidge - fit" in capsys.readouterr().out


def test_scoring_monitor(problem):
    X, y = problem
    monitor, witness = ScoringMonitor(scoring="r2"), Witness(stop_at=6)
    GradientRidge().set_callbacks(monitor, witness).fit(X, y)
    log = monitor.get_logs().data_as_pandas
    scores = log[log.task_name == "iteration"].sort_values("task_id").r2
    assert scores.tolist() == pytest.approx([r2_score(y, m.predict(X)) for m in witness.fitted])


def test_scoring_monitor_with_weights(problem):
    X, y = problem
    s = np.linspace(0, 1, len(y))
    monitor = ScoringMonitor(scoring="r2")
    model = GradientRidge().set_callbacks(monitor).fit(X, y, sample_weight=s)
    log = monitor.get_logs().data_as_pandas
    assert log[log.task_name == "fit"].r2.item() == pytest.approx(r2_score(y, model.predict(X), sample_weight=s))


# ------------------------------------------------------------------- TimeLimit


def test_time_limit_stops_and_warns(problem):
    model = GradientRidge(pause=0.02).set_callbacks(TimeLimit(0.1))
    began = time.perf_counter()
    with pytest.warns(
        ConvergenceWarning, match=r"time limit of 0.1 s ran out.*gradient norm.*allow more time"
    ) as caught:
        model.fit(*problem)
    assert time.perf_counter() - began < 5
    assert len(caught) == 1
    assert 1 <= model.n_iter_ <= 6
    assert not model.converged_
    assert not model.certificate_.holds


def test_time_limit_obeys_on_nonconvergence(problem):
    model = GradientRidge(pause=0.02).set_callbacks(TimeLimit(0.05))
    with ep.config(on_nonconvergence="raise"), pytest.raises(ConvergenceError, match="time limit"):
        model.fit(*problem)


def test_a_fit_in_time_is_not_disturbed(problem):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert GradientRidge().set_callbacks(TimeLimit(60)).fit(*problem).converged_


def test_each_fit_has_its_own_time(problem):
    model = GradientRidge(pause=0.01, max_iter=10, tol=1.0).set_callbacks(TimeLimit(0.5))
    for _ in range(8):
        assert model.fit(*problem).converged_


# ------------------------------------------------------------------- EarlyStopping


def test_early_stopping_on_the_objective(problem):
    full = GradientRidge().fit(*problem)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a stop that was asked for gives no warning
        model = GradientRidge().set_callbacks(EarlyStopping(patience=3, min_delta=1e-3)).fit(*problem)
    objective, best, since, expected = full.history_.objective, np.inf, 0, None
    for k, value in enumerate(objective, start=1):  # the rule, written out once more
        best, since = (value, 0) if value < best - 1e-3 else (best, since + 1)
        if since == 3:
            expected = k
            break
    assert model.n_iter_ == expected < full.n_iter_
    assert model.converged_ is False
    assert not model.certificate_.holds


def test_early_stopping_is_no_error_under_raise(problem):
    with ep.config(on_nonconvergence="raise"):
        model = GradientRidge().set_callbacks(EarlyStopping(patience=1, min_delta=1.0)).fit(*problem)
    assert not model.converged_


@pytest.mark.parametrize("scoring", [None, "neg_mean_squared_error"])
def test_early_stopping_on_validation_data(problem, scoring):
    X, y = problem
    rng = np.random.default_rng(1)
    X_val, y_val = rng.normal(size=(50, 4)), rng.normal(size=50)  # nothing to learn: it soon gets worse
    witness = Witness()
    stopping = EarlyStopping("validation score", patience=2, X_val=X_val, y_val=y_val, scoring=scoring)
    model = GradientRidge(step=0.01).set_callbacks(stopping, witness).fit(X, y)
    errors = [np.square(m.predict(X_val) - y_val).mean() for m in witness.fitted]
    best = int(np.argmin(errors)) + 1
    assert model.n_iter_ == best + 2


def test_early_stopping_ignores_nan(problem):
    stopping = EarlyStopping(patience=2)
    stopping.setup(model := GradientRidge(), context=None)
    best = stopping._state(model)
    for value in (np.nan, np.nan, 1.0, np.nan):
        best.update(value, 0.0)
    assert (best.value, best.since) == (1.0, 1)


def test_early_stopping_watches_scikit_learns_own(problem):
    X, y = problem
    stopping = EarlyStopping("validation score", patience=1, X_val=X, y_val=y > 0)
    SklearnLogisticRegression(max_iter=5, tol=1e-1).set_callbacks(stopping).fit(X, y > 0)
    with pytest.raises(ParameterTypeError, match="records no history_"):
        SklearnLogisticRegression().set_callbacks(EarlyStopping()).fit(X, y > 0)


# ------------------------------------------------------------------- all of them


def callbacks(tmp_path):
    return [TimeLimit(60), EarlyStopping(patience=100), Checkpoint(tmp_path / "run.epi")]


def test_they_follow_the_protocol_and_survive_pickle(tmp_path):
    for callback in callbacks(tmp_path):
        assert isinstance(callback, FitCallback)
        twin = pickle.loads(pickle.dumps(callback))
        assert repr(twin) == repr(callback)


def test_several_at_once_in_a_search_on_threads(problem, tmp_path):
    model = make_pipeline(StandardScaler(), GradientRidge(tol=1e-6).set_callbacks(*callbacks(tmp_path)))
    search = GridSearchCV(model, {"gradientridge__alpha": [0.1, 0.3, 1.0]}, cv=3, n_jobs=3)
    with parallel_config(backend="threading"):  # one callback object, many fits at the same time
        search.fit(*problem)
    assert search.best_estimator_[-1].converged_
    assert clone(model)[-1]._skl_callbacks is model[-1]._skl_callbacks
    assert all(callback._running == {} for callback in model[-1]._skl_callbacks)


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: TimeLimit(0), "seconds=0"),
        (lambda: TimeLimit(-1.0), "seconds=-1.0"),
        (lambda: TimeLimit(np.nan), "seconds=nan"),
        (lambda: TimeLimit("1 min"), "seconds='1 min'"),
        (lambda: EarlyStopping("loss"), "monitor='loss'"),
        (lambda: EarlyStopping(patience=0), "patience=0"),
        (lambda: EarlyStopping(min_delta=-1e-3), "min_delta=-0.001"),
        (lambda: EarlyStopping("validation score"), "X_val is missing"),
        (lambda: EarlyStopping(X_val=[[1.0]]), "X_val was given"),
        (lambda: EarlyStopping(scoring=3), "scoring=3"),
        (lambda: Checkpoint(3), "path=3"),
        (lambda: Checkpoint("a.epi", every=0), "every=0"),
        (lambda: Checkpoint("a.epi", seconds=-1), "seconds=-1"),
    ],
)
def test_bad_arguments(make, argument):
    with pytest.raises(ParameterError) as caught:
        make()
    assert argument in str(caught.value)
    assert "expected" in str(caught.value)


def test_a_class_is_no_callback():
    with pytest.raises(TypeError, match="instances"):
        GradientRidge().set_callbacks(TimeLimit)


# ------------------------------------------------------------------- verbose


def test_verbose_logs_every_iteration_and_prints_nothing(problem, caplog, capsys):
    with caplog.at_level("INFO", logger="epicycle"):
        model = GradientRidge(verbose=2).fit(*problem)
    lines = [r.message for r in caplog.records if "iteration" in r.message]
    assert len(lines) == model.n_iter_
    assert lines[0].startswith("GradientRidge iteration 1: objective ")
    assert capsys.readouterr() == ("", "")


def test_a_quiet_fit_logs_nothing(problem, caplog):
    with caplog.at_level("INFO", logger="epicycle"):
        GradientRidge().fit(*problem)
    assert not caplog.records


def test_progress_line_appears_only_when_the_work_lasts(capsys):
    from epicycle.core.estimator._progress import ProgressLine

    short = ProgressLine("short", total=3)
    short.update(1, note="objective 1")
    short.close()
    long = ProgressLine("a long fit", total=3, delay=0.05)
    long.update(2, note="objective 0.5")
    deadline = time.monotonic() + 5
    while not long.visible and time.monotonic() < deadline:
        time.sleep(0.01)
    long.update(3, note="objective 0.25")
    long.close()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "short" not in captured.err
    for part in ("a long fit", "3/3", "objective 0.25"):
        assert part in captured.err


def test_progress_line_of_a_slow_fit(problem, capsys, monkeypatch):
    monkeypatch.setattr("epicycle.core.estimator._progress.PATIENCE_SECONDS", 0.05)
    with ep.config(on_nonconvergence="ignore"):
        GradientRidge(verbose=1, pause=0.02, max_iter=15).fit(*problem)
    assert "GradientRidge" in capsys.readouterr().err
