"""What the base class promises of every fit, shown on a small estimator with a hand-written loop."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from gradient_toy import GradientRidge, RunningMean
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import epicycle as ep
from epicycle.exceptions import ConvergenceError, ConvergenceWarning, DataError, DataTypeError, NotFittedError


def closed_form(X, y, alpha=0.1):
    return np.linalg.solve(X.T @ X / len(y) + alpha * np.eye(X.shape[1]), X.T @ y / len(y))


def test_a_converged_fit_and_its_evidence(problem):
    X, y = problem
    model = GradientRidge().fit(X, y)
    assert_allclose(model.coef_, closed_form(X, y), atol=1e-9)
    assert model.converged_ is True
    assert model.certificate_.holds
    assert model.n_iter_ == model.history_.n_iter
    assert np.all(np.diff(model.history_.objective) <= 1e-12)
    assert np.all(np.diff(model.history_.seconds) >= 0)
    assert 0 < model.fit_seconds_ < 60


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")  # the array API is not installed
def test_scikit_learn_accepts_it():
    # the solver that no scale of the data can upset
    check_estimator(GradientRidge(solver="closed form"), on_fail="raise")


# ------------------------------------------------------------------- never half-fitted


def test_a_failed_fit_leaves_nothing_behind(problem):
    model = GradientRidge(fail_at=3, keep_extra=True)
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit(*problem)
    assert vars(model) == before
    with pytest.raises(NotFittedError):
        model.predict(problem[0])


@pytest.mark.parametrize("change", [{"fail_at": 3}, {"alpha": -1.0}], ids=["interrupted", "bad parameter"])
def test_a_failed_fit_leaves_the_earlier_one(problem, change):
    X, y = problem
    model = GradientRidge().fit(X, y)
    predicted, history = model.predict(X), model.history_
    model.set_params(**change)
    with pytest.raises(KeyboardInterrupt if "fail_at" in change else ValueError):
        model.fit(X[:, :2], y)
    assert np.array_equal(model.predict(X), predicted)
    assert model.history_ is history
    assert model.n_features_in_ == 4


def test_bad_data_leaves_the_earlier_fit(problem):
    X, y = problem
    model = GradientRidge().fit(X, y)
    with pytest.raises(DataError):
        model.fit(np.full_like(X, np.nan), y)
    assert_allclose(model.coef_, closed_form(X, y), atol=1e-9)


def test_a_new_fit_starts_clean(problem):
    X, y = problem
    model = GradientRidge(keep_extra=True).fit(pd.DataFrame(X, columns=list("abcd")), y)
    assert hasattr(model, "extra_")
    model.set_params(keep_extra=False).fit(X, y)
    assert not hasattr(model, "extra_")
    assert not hasattr(model, "feature_names_in_")


def test_a_warning_made_an_error_leaves_the_earlier_fit(problem):
    model = GradientRidge().fit(*problem)
    coef = model.coef_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConvergenceWarning):
            model.set_params(max_iter=2).fit(*problem)
    assert model.coef_ is coef
    assert model.converged_


# ------------------------------------------------------------------- partial_fit


def test_partial_fit_adds_up_and_fit_starts_anew(problem):
    X, _ = problem
    model = RunningMean().partial_fit(X[:30]).partial_fit(X[30:130]).partial_fit(X[130:])
    assert_allclose(model.mean_, X.mean(axis=0), rtol=1e-12)
    assert_allclose(model.fit(X[:10]).mean_, X[:10].mean(axis=0), rtol=1e-12)
    assert_allclose(model.partial_fit(X[10:20]).mean_, X[:20].mean(axis=0), rtol=1e-12)


def test_a_failed_partial_fit_adds_nothing(problem):
    X, _ = problem
    model = RunningMean(limit=100).partial_fit(X[:60])
    with pytest.raises(OverflowError):
        model.partial_fit(X[60:150])
    assert model.n_ == 60
    assert_allclose(model.partial_fit(X[60:100]).mean_, X[:100].mean(axis=0), rtol=1e-12)


def test_partial_fit_compares_the_features(problem):
    X, _ = problem
    model = RunningMean().partial_fit(pd.DataFrame(X, columns=list("abcd")))
    with pytest.raises(DataError, match="feature names should match"):
        model.partial_fit(pd.DataFrame(X, columns=list("abce")))
    with pytest.raises(DataError, match="X has 3 features, but RunningMean is expecting 4"):
        RunningMean().partial_fit(X).partial_fit(X[:, :3])
    assert model.n_features_in_ == 4


# ------------------------------------------------------------------- features


def test_not_fitted(problem):
    with pytest.raises(NotFittedError, match="GradientRidge instance is not fitted yet"):
        GradientRidge().predict(problem[0])


def test_wrong_number_of_features_in_scikit_learns_words(problem):
    X, y = problem
    model = GradientRidge().fit(X, y)
    with pytest.raises(DataError) as caught:
        model.predict(X[:, :3])
    assert str(caught.value) == "X has 3 features, but GradientRidge is expecting 4 features as input."


def frames():
    import polars as pl
    import pyarrow as pa

    return {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": lambda columns: pa.table(columns)}


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_feature_names(problem, kind):
    X, y = problem
    make = frames()[kind]
    table = make({name: X[:, i] for i, name in enumerate("abcd")})
    model = GradientRidge().fit(table, y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert_allclose(model.predict(table), X @ closed_form(X, y), atol=1e-8)
    with pytest.raises(DataError, match=r"(?s)feature names should match.*Feature names unseen at fit time:\n- e"):
        model.predict(make({name: X[:, i] for i, name in enumerate("abce")}))
    with pytest.raises(DataError, match="must be in the same order"):
        model.predict(make({name: X[:, i] for i, name in enumerate("bacd")}))
    with pytest.warns(UserWarning, match="X does not have valid feature names, but GradientRidge was fitted with"):
        model.predict(X)
    nameless = GradientRidge().fit(X, y)
    with pytest.warns(UserWarning, match="X has feature names, but GradientRidge was fitted without feature names"):
        nameless.predict(table)


def test_a_scan_brings_names_and_target(problem, tmp_path):
    X, y = problem
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    frame.to_parquet(tmp_path / "train.parquet")
    scan = ep.scan(tmp_path / "train.parquet", target="y")
    model = GradientRidge().fit(scan)
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert_allclose(model.predict(scan), X @ closed_form(X, y), atol=1e-8)
    frame.rename(columns={"d": "e"}).to_parquet(tmp_path / "new.parquet")
    with pytest.raises(DataError, match=r"(?s)feature names should match.*Feature names unseen at fit time:\n- e"):
        model.predict(ep.scan(tmp_path / "new.parquet", target="y"))
    with pytest.raises(DataError, match="y: a scan brings its own"):
        GradientRidge().fit(scan, y)
    with pytest.raises(DataError, match="target"):
        GradientRidge().fit(ep.scan(tmp_path / "train.parquet"))


def test_column_names_of_mixed_type(problem):
    X, y = problem
    with pytest.raises(DataTypeError, match="Feature names are only supported if all input features have string names"):
        GradientRidge().fit(pd.DataFrame(X, columns=["a", 1, "c", 2]), y)


# ------------------------------------------------------------------- convergence


def test_an_unconverged_fit_warns_once_and_points_at_the_caller(problem):
    with pytest.warns(ConvergenceWarning) as caught:
        model = GradientRidge(max_iter=3).fit(*problem)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    message = str(caught[0].message)
    for part in (
        "GradientRidge(solver='gradient')",
        "3 iterations",
        "gradient norm",
        "tolerance 1.00e-10",
        "raise max_iter",
    ):
        assert part in message
    assert model.converged_ is False
    assert not model.certificate_.holds


def test_on_nonconvergence_raise(problem):
    model = GradientRidge(max_iter=3)
    with ep.config(on_nonconvergence="raise"), pytest.raises(ConvergenceError, match="raise max_iter"):
        model.fit(*problem)
    assert not hasattr(model, "coef_")


def test_on_nonconvergence_ignore(problem):
    with ep.config(on_nonconvergence="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GradientRidge(max_iter=3).fit(*problem)
    assert not model.converged_


def test_divergence_is_called_by_its_name(problem):
    with np.errstate(all="ignore"), pytest.warns(ConvergenceWarning, match=r"diverged.*learning rate"):
        model = GradientRidge(step=10.0).fit(*problem)
    assert not model.converged_


def test_coefficients_that_are_not_finite_are_never_handed_out(problem):
    X, y = problem
    with np.errstate(all="ignore"), ep.config(on_nonconvergence="ignore"), pytest.raises(ConvergenceError):
        GradientRidge(step=1e308).fit(X * 1e3, y)


# ------------------------------------------------------------------- what is left of a fit


def test_no_training_data_is_held(problem):
    X, y = np.repeat(problem[0], 50, axis=0), np.repeat(problem[1], 50)
    model = GradientRidge().fit(X, y)
    assert model.fitted_nbytes < X.nbytes / 10
    assert len(pickle.dumps(model)) < X.nbytes / 10
    assert not any(np.shares_memory(X, value) for value in vars(model).values() if isinstance(value, np.ndarray))


def test_size_counts_arrays_in_full(problem):
    model = GradientRidge().fit(*problem)
    without = model.fitted_nbytes
    model.extra_ = np.zeros(1000)
    assert 8000 <= model.fitted_nbytes - without <= 8200
    model.extra_ = {"a": [np.zeros(1000)], "same": None}
    model.extra_["same"] = model.extra_["a"]
    assert 8000 <= model.fitted_nbytes - without <= 9000


def test_representations(problem):
    model = GradientRidge(alpha=0.2)
    assert repr(model) == "GradientRidge(alpha=0.2)"
    assert model.describe().splitlines() == ["GradientRidge(alpha=0.2)", "  not fitted"]
    assert "epicycle-evidence" not in model._repr_html_()
    model.fit(*problem)
    assert repr(model) == "GradientRidge(alpha=0.2)"
    text, html = model.describe(), model._repr_html_()
    for shown in (text, html):
        assert str(model.certificate_) in shown
        assert "0.1 ||w||^2" in shown
        assert str(model.n_iter_) in shown
        assert "KiB" in shown
    assert "sk-top-container" in html  # scikit-learn's diagram is there too
    assert html.rstrip().endswith("</body>")
    assert model._repr_mimebundle_()["text/html"].count("epicycle-evidence") == 1


def test_html_escapes_what_it_shows(problem):
    model = GradientRidge().fit(*problem)
    model._penalty_line = lambda: "<script>alert(1)</script>"
    assert "<script>alert(1)" not in model._repr_html_()


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_predict_alike(problem, duplicate):
    model = GradientRidge().fit(*problem)
    assert np.array_equal(duplicate(model).predict(problem[0]), model.predict(problem[0]))


def test_clone_is_unfitted(problem):
    model = GradientRidge(alpha=0.3).fit(*problem)
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "coef_")


def test_inside_pipeline_and_search(problem):
    X, y = problem
    search = GridSearchCV(make_pipeline(StandardScaler(), GradientRidge()), {"gradientridge__alpha": [1e-3, 2.0]}, cv=3)
    assert search.fit(X, y).best_params_ == {"gradientridge__alpha": 1e-3}
    assert search.best_estimator_[-1].certificate_.holds


def test_save_and_load(problem, tmp_path):
    model = GradientRidge().fit(*problem)
    model.save(tmp_path / "m.epi")
    loaded = ep.load(tmp_path / "m.epi")
    assert np.array_equal(loaded.predict(problem[0]), model.predict(problem[0]))
    assert loaded.certificate_ == model.certificate_
    assert loaded.history_ == model.history_
