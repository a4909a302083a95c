"""Hold-out, k-fold, leave-one-out and nested selection: the planted best wins, the same for any number of threads."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression as SklearnLinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, TimeSeriesSplit, cross_val_predict, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import epicycle as ep
from epicycle import select
from epicycle.exceptions import DataError, ParameterError, ParameterTypeError


@pytest.fixture(scope="module")
def cubic():
    """A cubic with noise: lines are too poor, high degrees too rich."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(120, 1))
    return x, x[:, 0] ** 3 - 2 * x[:, 0] + 0.5 * rng.normal(size=120)


DEGREES = {f"degree {d}": ep.PolynomialRegression(degree=d) for d in (1, 3, 12)}


@pytest.mark.parametrize("procedure", [select.hold_out, select.k_fold, select.leave_one_out, select.nested])
def test_the_planted_best_model_is_picked(cubic, procedure):
    found = procedure(DEGREES, *cubic)
    assert found.best == "degree 3"
    assert found.columns["model"][0] == "degree 3"
    assert found.score > 0.8
    assert_allclose(found.model_.predict(cubic[0]), ep.PolynomialRegression(degree=3).fit(*cubic).predict(cubic[0]))
    assert found.table.shape[0] == 3
    assert "degree 3" in str(found)
    assert "degree 3" in found._repr_html_()
    assert json.dumps(found.to_dict())
    assert found.plot().get_xlabel()


def test_scores_are_those_of_scikit_learn(cubic):
    cv = KFold(4, shuffle=True, random_state=3)
    found = select.k_fold(DEGREES, *cubic, cv=cv, scoring="neg_mean_absolute_error")
    for name, model in DEGREES.items():
        expected = cross_val_score(model, *cubic, cv=cv, scoring="neg_mean_absolute_error")
        assert_allclose(found.scores[name], expected, rtol=1e-12)
    best = found.scores[found.best]
    assert found.score == best.mean()
    assert_allclose(found.std_error, best.std(ddof=1) / 2)


def test_differences_are_paired_and_corrected(cubic):
    cv = KFold(5)
    found = select.k_fold(DEGREES, *cubic, cv=cv)
    table = found.table.set_index("model")
    apart = found.scores["degree 3"] - found.scores["degree 1"]
    assert_allclose(table.loc["degree 1", "behind"], apart.mean())
    assert_allclose(table.loc["degree 1", "behind_error"], apart.std(ddof=1) * np.sqrt(1 / 5 + 1 / 4))
    assert not table.loc["degree 1", "within_noise"]


@pytest.mark.parametrize("procedure", [select.hold_out, select.k_fold, select.nested])
def test_the_same_bits_for_any_number_of_threads(cubic, procedure):
    models = {"forest": ep.RandomForestRegressor(n_estimators=5), "tree": ep.DecisionTreeRegressor(max_depth=3)}
    one, three = (procedure(models, *cubic, n_jobs=n) for n in (1, 3))
    for column in ("score", "std_error", "behind", "behind_error"):
        assert np.array_equal(one.columns[column], three.columns[column], equal_nan=True)
    assert np.array_equal(one.model_.predict(cubic[0]), three.model_.predict(cubic[0]))
    again = procedure(models, *cubic, random_state=1)
    assert not np.array_equal(one.columns["score"], again.columns["score"])


def test_a_grid_is_a_candidate_for_each_point(cubic):
    found = select.k_fold((ep.PolynomialRegression(), {"degree": [1, 3], "alpha": [0.0]}), *cubic, cv=4)
    assert found.best_params == {"alpha": 0.0, "degree": 3}
    assert len(found.columns["model"]) == 2
    assert found.model_.degree == 3


def test_lists_are_named_by_their_classes(cubic):
    pipeline = make_pipeline(StandardScaler(), ep.Ridge())
    found = select.k_fold([ep.Ridge(), ep.Ridge(alpha=10), pipeline], *cubic, cv=3)
    assert sorted(found.columns["model"]) == ["Ridge", "Ridge 2", "Ridge 3"]


def test_one_standard_error_takes_the_first_that_is_good_enough(cubic):
    order = {f"degree {d}": ep.PolynomialRegression(degree=d) for d in (1, 3, 4, 5, 6)}
    found = select.k_fold(order, *cubic, one_standard_error=True)
    assert found.best == "degree 3"


def test_groups_are_kept_together():
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(30), 5)
    X = np.column_stack([rng.normal(size=150), groups])
    y = rng.normal(size=30)[groups]  # nothing but the group decides
    tree = ep.DecisionTreeRegressor()
    assert select.k_fold(tree, X, y, cv=5).score > 0.6
    assert select.k_fold(tree, X, y, cv=5, groups=groups).score < 0.2
    assert select.hold_out(tree, X, y, groups=groups).score < 0.2
    by_hand = cross_val_score(tree, X, y, cv=GroupKFold(3), groups=groups)
    assert_allclose(select.k_fold(tree, X, y, cv=GroupKFold(3), groups=groups).score, by_hand.mean())


def test_rows_in_order_of_time(cubic):
    X, y = cubic
    found = select.k_fold(ep.Ridge(), X, y, cv=4, ordered=True)
    assert_allclose(found.score, cross_val_score(ep.Ridge(), X, y, cv=TimeSeriesSplit(4)).mean())
    last = select.hold_out(ep.Ridge(), X, y, ordered=True, test_size=0.25)
    assert_allclose(last.score, r2_score(y[90:], ep.Ridge().fit(X[:90], y[:90]).predict(X[90:])))


def test_classes_have_equal_shares():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [180, 20])
    seen = []
    X = rng.normal(size=(200, 2))

    def rate(model, X, y):
        seen.append(y.mean())
        return 0.0

    select.k_fold(ep.LogisticRegression(), X, y, cv=5, scoring=rate)
    assert seen == [0.1] * 5


@pytest.mark.parametrize("scoring", ["roc_auc", "neg_log_loss", "f1"])
def test_scorers_of_classifiers(scoring):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=40) > 0, "yes", "no")
    y = (y == "yes").astype(int) if scoring == "f1" else y
    models = {"good": ep.LogisticRegression(), "bad": ep.DecisionTreeClassifier(max_depth=1, max_features=1)}
    for found in (
        select.k_fold(models, X, y, cv=4, scoring=scoring),
        select.hold_out(models, X, y, scoring=scoring),
        select.leave_one_out({"good": ep.LogisticRegression()}, X, y, scoring=scoring),
    ):
        assert found.best == "good"
        assert np.isfinite(found.score)
        assert found.std_error > 0


def test_the_score_of_the_choice_itself():
    """Among many models of pure noise the best looks good; nested cross-validation is not fooled."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 20)), rng.normal(size=60)

    columns = {f"column {j}": make_pipeline(_Column(j), ep.LinearRegression()) for j in range(20)}
    found = select.nested(columns, X, y, cv=3, inner_cv=3, scoring="neg_mean_squared_error")
    baseline = -np.var(y)
    assert found.score > found.procedure_score
    assert found.procedure_score < baseline + found.procedure_std_error
    assert len(found.chosen) == 3
    assert "on rows that it has not seen" in found.verdict


class _Column:
    """Keeps one column; as a plain function it would not be cloned with its number."""

    def __init__(self, j=0):
        self.j = j

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X[:, [self.j]]

    def get_params(self, deep=True):
        return {"j": self.j}

    def set_params(self, **given):
        self.j = given.get("j", self.j)
        return self


@pytest.mark.parametrize("container", ["pandas", "polars", "sparse", "list"])
def test_containers(cubic, container):
    X, y = cubic
    if container == "pandas":
        table = pd.DataFrame(X, columns=["x"])
    elif container == "polars":
        import polars as pl

        table = pl.DataFrame({"x": X[:, 0]})
    else:
        table = sp.csr_array(X) if container == "sparse" else X.tolist()
    expected = select.k_fold(ep.Ridge(), X, y, cv=3)
    assert_allclose(select.k_fold(ep.Ridge(), table, y, cv=3).score, expected.score)


def test_weights_go_to_fits_and_scores(cubic):
    X, y = cubic
    w = np.random.default_rng(0).integers(1, 4, size=len(y)).astype(float)
    cv = [(np.arange(0, 80), np.arange(80, 120))]
    found = select.k_fold(make_pipeline(StandardScaler(), ep.Ridge()), X, y, sample_weight=w, cv=cv)
    model = make_pipeline(StandardScaler(), ep.Ridge()).fit(X[:80], y[:80], ridge__sample_weight=w[:80])
    assert_allclose(found.score, r2_score(y[80:], model.predict(X[80:]), sample_weight=w[80:]))
    with pytest.raises(ParameterError, match=r"sample_weight: KNN .KNeighborsRegressor. takes none"):
        select.k_fold({"KNN": KNeighborsRegressor()}, X, y, sample_weight=w)


def test_a_model_that_fails_does_not_stop_the_others(cubic):
    class Broken(DummyRegressor):
        def fit(self, X, y, sample_weight=None):
            raise RuntimeError("out of order")

    found = select.k_fold({"broken": Broken(), "ridge": ep.Ridge()}, *cubic, cv=3)
    assert found.best == "ridge"
    assert "out of order" in found.failures["broken"]
    assert "out of order" in str(found)
    with pytest.raises(DataError, match=r"every fit failed; the first, of 'broken', with RuntimeError: out of order"):
        select.k_fold({"broken": Broken()}, *cubic)


def test_fits_that_do_not_converge_are_counted(cubic):
    X, y = cubic
    model = ep.LogisticRegression(solver="gd", max_iter=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = select.k_fold({"hasty": model}, X, y > 0, cv=3, refit=False)
    assert "3 fits of hasty did not reach their tolerance" in str(found)


def test_every_score_is_told_in_order(cubic):
    told = []
    select.k_fold(DEGREES, *cubic, cv=3, n_jobs=2, on_score=lambda *news: told.append(news))
    assert [news[:2] for news in told] == [(name, j) for name in DEGREES for j in range(3)]


def test_one_split_does_not_claim_to_know_the_noise(cubic):
    models = {"a": ep.Ridge(), "b": ep.Ridge(alpha=100.0)}
    cv = [(np.arange(0, 80), np.arange(80, 120))]
    alone = lambda model, X, y: float(model.score(X, y))  # noqa: E731
    for found in (select.k_fold(models, *cubic, cv=cv), select.hold_out(models, *cubic, scoring=alone)):
        assert "not known" in found.verdict
        assert sorted(map(str, found.columns["within_noise"])) == ["None", "True"]
        assert np.isnan(found.std_error)


def test_rows_of_one_group_are_resampled_together():
    """Ten copies of every row say no more than one: the standard error must not shrink by the root of ten."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 1))
    y = x[:, 0] + rng.normal(size=80)
    groups = np.repeat(np.arange(80), 10)
    copies = select.hold_out(ep.Ridge(), np.repeat(x, 10, axis=0), np.repeat(y, 10), groups=groups)
    naive = select.hold_out(ep.Ridge(), np.repeat(x, 10, axis=0), np.repeat(y, 10))
    assert copies.std_error > 2 * naive.std_error


# ------------------------------------------------------------------- leave-one-out


@pytest.mark.parametrize(
    "model", [ep.LinearRegression(), ep.Ridge(alpha=3.0), ep.Ridge(alpha=2.0, fit_intercept=False)]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_closed_form_equals_a_fit_for_every_row(model, weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 4)) + 3
    y = X @ [1.0, -1.0, 2.0, 0.0] + rng.normal(size=25)
    w = rng.uniform(0.5, 2, size=25) if weighted else None
    predictions = []
    for train, test in LeaveOneOut().split(X):
        fitted = model.__class__(**model.get_params()).fit(X[train], y[train], None if w is None else w[train])
        predictions.append(fitted.predict(X[test])[0])
    found = select.leave_one_out(model, X, y, scoring="neg_mean_squared_error", sample_weight=w)
    expected = -np.average((y - predictions) ** 2, weights=w)
    assert_allclose(found.score, expected, rtol=1e-10)
    assert "exact" in found.notes[0]


def test_rows_that_decide_their_own_prediction_are_left_out_for_real():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=12), np.eye(12)[:, 3]])  # row 3 has a column of its own
    y = rng.normal(size=12)
    found = select.leave_one_out(ep.LinearRegression(), X, y, scoring="neg_mean_absolute_error")
    expected = cross_val_predict(SklearnLinearRegression(), X, y, cv=LeaveOneOut())
    assert_allclose(found.score, -np.abs(y - expected).mean(), rtol=1e-8)


def test_leave_one_out_by_fits():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.random.default_rng(1).normal(size=20)
    tree = ep.DecisionTreeRegressor(max_depth=2)
    expected = r2_score(y, cross_val_predict(tree, X, y, cv=LeaveOneOut()))
    assert_allclose(select.leave_one_out(tree, X, y).score, expected)
    by_rows = select.leave_one_out(tree, X, y, scoring=lambda m, X, y: -abs(float(m.predict(X)[0] - y[0])))
    assert_allclose(by_rows.score, -np.abs(y - cross_val_predict(tree, X, y, cv=LeaveOneOut())).mean())


# ------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"models": {}}, ParameterError, "models: none given"),
        ({"models": "ridge"}, ParameterTypeError, "models='ridge'; expected"),
        ({"models": [3]}, ParameterTypeError, "expected an estimator"),
        ({"models": {"a": ep.Ridge}}, ParameterTypeError, "models: 'a' is"),
        ({"models": (ep.Ridge(), {"alfa": [1]})}, ParameterError, "the grid of 'Ridge'"),
        ({"models": [ep.Ridge(), ep.LogisticRegression()]}, ParameterError, "classifiers and regressors"),
        ({"scoring": "r22"}, ParameterError, "scoring='r22'.*did you mean 'r2'"),
        ({"scoring": 3}, ParameterTypeError, "scoring=3"),
        ({"cv": 1}, ParameterError, "cv=1; expected at least 2"),
        ({"cv": 500}, DataError, "120 samples; expected at least as many as folds"),
        ({"cv": "five"}, ParameterTypeError, "cv='five'"),
        ({"cv": [([], [1])]}, DataError, "no rows to train on"),
        ({"y": np.zeros(3)}, DataError, "y: 3 values; X has 120 rows"),
        ({"y": None}, DataError, "y=None"),
        ({"groups": np.zeros(5)}, DataError, r"groups: shape \(5,\)"),
        ({"sample_weight": -np.ones(120)}, DataError, "sample_weight: Negative values"),
        ({"level": 95}, ParameterError, "level=95"),
        ({"test": np.zeros(3)}, ParameterTypeError, "test: expected a pair"),
        ({"test": (np.zeros((5, 2)), np.zeros(5))}, DataError, "test: rows of"),
        ({"on_score": 3}, ParameterTypeError, "on_score=3"),
        ({"random_state": -1}, ParameterTypeError, "random_state=-1"),
    ],
)
def test_bad_input(cubic, change, error, message):
    given = {"models": ep.Ridge(), "X": cubic[0], "y": cubic[1], **change}
    with pytest.raises(error, match=message):
        select.k_fold(given.pop("models"), given.pop("X"), given.pop("y"), **given)


def test_files_are_refused_by_name(cubic, tmp_path):
    pd.DataFrame({"x": cubic[0][:, 0], "y": cubic[1]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="X: Scan; expected data in memory"):
        select.k_fold(ep.Ridge(), ep.scan(tmp_path / "a.parquet", target="y"), cubic[1])
