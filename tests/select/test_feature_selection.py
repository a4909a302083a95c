"""Forward, backward and filter selection: planted features, the contract, and two roads to the same scores."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone, is_classifier
from sklearn.feature_selection import SequentialFeatureSelector, f_regression
from sklearn.linear_model import LinearRegression as SklearnLinearRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import epicycle as ep
from epicycle import BackwardSelection, FilterSelection, ForwardSelection, select
from epicycle.exceptions import DataError, DataTypeError, ParameterError
from epicycle.select._inputs import checked_rows
from epicycle.select._scorers import scorer_of
from epicycle.select._subset_scores import MomentScores, SubsetScores, subset_scores

PLANTED = [2, 5, 9]
SELECTORS = [ForwardSelection, BackwardSelection, FilterSelection]
every = pytest.mark.parametrize("cls", SELECTORS, ids=lambda cls: cls.__name__)


@pytest.fixture(scope="module")
def planted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 12))
    return X, X[:, PLANTED] @ [2.0, -1.5, 1.0] + rng.normal(size=250)


@pytest.fixture(scope="module")
def labelled(planted):
    X, y = planted
    return X, np.where(y > 0, "high", "low")


@every
def test_planted_features_are_found(cls, planted):
    number = {"k": 3} if cls is FilterSelection else {"n_features_to_select": 3}
    assert cls(**number).fit(*planted).get_support(indices=True).tolist() == PLANTED
    by_folds = cls(one_standard_error=True).fit(*planted)
    assert by_folds.get_support(indices=True).tolist() == PLANTED
    assert set(PLANTED) <= set(cls().fit(*planted).get_support(indices=True))


@every
def test_planted_features_of_classes_are_found(cls, labelled):
    number = {"k": 3} if cls is FilterSelection else {"n_features_to_select": 3}
    base = ep.LogisticRegression() if cls is not BackwardSelection else ep.DecisionTreeClassifier(max_depth=4)
    X, y = labelled
    model = cls(base, **number, cv=3).fit(X[:, :8] if cls is BackwardSelection else X, y)
    assert set(model.get_support(indices=True)) >= ({2, 5} if cls is BackwardSelection else set(PLANTED))
    assert is_classifier(model)
    assert model.classes_.tolist() == ["high", "low"]
    assert model.predict(X[:, :8] if cls is BackwardSelection else X).dtype.kind == "U"
    assert hasattr(model, "predict_proba")


def test_backward_keeps_features_that_help_only_together():
    """y = a - b with a and b nearly equal: alone they say nothing, which forward search and filters do not see."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=300)
    a, b = z + 0.1 * rng.normal(size=300), z + 0.1 * rng.normal(size=300)
    noise = rng.normal(size=(300, 6))
    X, y = np.column_stack([a, b, noise]), 10 * (a - b) + 0.2 * rng.normal(size=300)
    assert BackwardSelection(n_features_to_select=2).fit(X, y).get_support(indices=True).tolist() == [0, 1]


def test_floating_search_is_at_least_as_good(planted):
    X, y = planted
    rng = np.random.default_rng(3)
    X = np.column_stack([X, X[:, 2] - X[:, 5] + 0.3 * rng.normal(size=250)])  # looks best at first
    plain = ForwardSelection(patience=None).fit(X, y)
    floating = ForwardSelection(floating=True).fit(X, y)
    assert np.all(floating.path_scores_ >= plain.path_scores_ - 1e-12)
    assert floating.n_iter_ == floating.history_.n_iter > plain.n_iter_
    back = BackwardSelection(floating=True).fit(X, y)
    assert np.all(back.path_scores_ >= BackwardSelection().fit(X, y).path_scores_ - 1e-12)


def test_forward_search_is_scikit_learns(planted):
    X, y = planted
    cv = KFold(4)
    peer = SequentialFeatureSelector(SklearnLinearRegression(), n_features_to_select=4, cv=cv).fit(X, y)
    assert np.array_equal(ForwardSelection(n_features_to_select=4, cv=cv).fit(X, y).support_, peer.get_support())
    back = SequentialFeatureSelector(
        SklearnLinearRegression(), n_features_to_select=9, direction="backward", cv=cv
    ).fit(X, y)
    assert np.array_equal(BackwardSelection(n_features_to_select=9, cv=cv).fit(X, y).support_, back.get_support())


def test_scores_of_the_path_are_cross_validated_scores(planted):
    X, y = planted
    cv = KFold(5, shuffle=True, random_state=0)
    model = ForwardSelection(cv=cv, scoring="neg_mean_absolute_error").fit(X, y)
    best = model.path_scores_[list(model.path_n_features_).index(model.n_features_)]
    expected = cross_val_score(ep.LinearRegression(), X[:, model.support_], y, cv=cv, scoring="neg_mean_absolute_error")
    assert_allclose(best, expected.mean(), rtol=1e-10)
    assert_allclose(model.history_.objective, -model.history_["score"])


# ------------------------------------------------------------------- moments


@pytest.mark.parametrize("kind", ["dense", "sparse", "weighted", "shifted", "no intercept", "collinear", "float32"])
@pytest.mark.parametrize("metric", ["r2", "neg_mean_squared_error", "neg_root_mean_squared_error"])
def test_moments_give_the_scores_of_fits(planted, kind, metric):
    X, y = planted[0][:, :5].copy(), planted[1]
    model = ep.Ridge(alpha=2.0) if kind in ("dense", "no intercept") else ep.LinearRegression()
    model.set_params(fit_intercept=kind != "no intercept")
    weight = np.random.default_rng(0).uniform(size=len(y)) if kind == "weighted" else None
    if kind == "collinear":
        X[:, 4] = X[:, 0] - 2 * X[:, 1]
    X = X + 1e4 if kind == "shifted" else X
    X = sp.csr_array(X * (X > 0)) if kind == "sparse" else X.astype(np.float32) if kind == "float32" else X
    rows = checked_rows(X, y, weight)
    splits = list(KFold(3).split(np.zeros(len(y))))
    scorer, _ = scorer_of(metric, model)
    quick = subset_scores(model, rows, splits, scorer, metric, 5, 1)
    assert isinstance(quick, MomentScores)
    subsets = [frozenset(s) for s in ({0}, {1, 4}, {0, 2, 3}, {0, 1, 4}, {0, 1, 2, 3, 4})]
    plain = SubsetScores(model, rows, splits, scorer, 5, 1)
    assert_allclose(quick(subsets), plain(subsets), rtol=1e-5 if kind in ("float32", "shifted") else 1e-9)


def test_a_subset_is_fitted_once(planted):
    X, y = planted
    rows, splits = checked_rows(X, y), list(KFold(3).split(X))
    model = ep.DecisionTreeRegressor(max_depth=2)
    scores = SubsetScores(model, rows, splits, scorer_of(None, model)[0], 12, 1)
    calls = []
    compute = scores.compute
    scores.compute = lambda subsets: calls.extend(subsets) or compute(subsets)
    a, b = frozenset({1}), frozenset({1, 2})
    first = scores([a, b, a])
    assert np.array_equal(scores([b, a])[::-1], first[:2])
    assert calls == [a, b]
    again = SubsetScores(model, rows, splits, scorer_of(None, model)[0], 12, 1)
    again.restore(scores.state())
    assert again.known.keys() == scores.known.keys()


# ------------------------------------------------------------------- the contract beyond discovery


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_accepts_classifiers():
    check_estimator(ForwardSelection(ep.DecisionTreeClassifier(max_depth=3), cv=2, patience=1), on_fail="raise")


@every
def test_frames_keep_their_names(cls, planted):
    X, y = planted
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)])
    number = {"k": 3} if cls is FilterSelection else {"n_features_to_select": 3}
    model = cls(**number).fit(frame, y)
    assert model.get_feature_names_out().tolist() == ["c2", "c5", "c9"]
    assert model.estimator_.feature_names_in_.tolist() == ["c2", "c5", "c9"]
    out = model.set_output(transform="pandas").transform(frame)
    assert list(out.columns) == ["c2", "c5", "c9"]
    assert_allclose(model.predict(frame), cls(**number).fit(X, y).predict(X))
    import polars as pl

    table = pl.DataFrame({name: frame[name].to_numpy() for name in frame})
    assert clone(model).set_output(transform="polars").fit(table, y).transform(table).columns == ["c2", "c5", "c9"]


@every
def test_sparse_and_single_precision(cls, planted):
    X, y = planted
    number = {"k": 3} if cls is FilterSelection else {"n_features_to_select": 3}
    matrix = sp.csr_array(np.where(np.abs(X) > 0.2, X, 0))
    model = cls(**number).fit(matrix, y)
    assert sp.issparse(model.transform(matrix))
    assert model.get_support(indices=True).tolist() == PLANTED
    single = cls(**number).fit(X.astype(np.float32), y)
    assert single.transform(X.astype(np.float32)).dtype == np.float32


def test_columns_of_categories_go_to_trees():
    rng = np.random.default_rng(0)
    town = rng.choice(["a", "b", "c"], size=200)
    frame = pd.DataFrame({"n": rng.normal(size=200), "town": pd.Categorical(town), "m": rng.normal(size=200)})
    y = np.where(town == "b", 3.0, 0.0) + 0.1 * rng.normal(size=200)
    for cls in SELECTORS:
        number = {"k": 1} if cls is FilterSelection else {"n_features_to_select": 1}
        model = cls(ep.DecisionTreeRegressor(max_depth=2), **number, cv=3)
        if cls is FilterSelection:
            model.set_params(score_func="mutual_information")
        model.fit(frame, y)
        assert model.get_feature_names_out().tolist() == ["town"]
        assert model.score(frame, y) > 0.9
        assert model.transform(frame).shape == (200, 1)


@every
def test_inside_pipelines_and_searches(cls, planted, tmp_path):
    X, y = planted
    name = "k" if cls is FilterSelection else "n_features_to_select"
    step = cls.__name__.lower()
    pipeline = make_pipeline(StandardScaler(), cls(**{name: 2}), ep.LinearRegression())
    search = GridSearchCV(pipeline, {f"{step}__{name}": [1, 3]}, cv=3).fit(X, y)
    assert search.best_params_ == {f"{step}__{name}": 3}
    honest = select.k_fold({"searched": cls(**{name: 3})}, X, y, cv=3)
    assert honest.score > 0.8
    ep.save(search.best_estimator_, tmp_path / "p.epi")
    assert_allclose(ep.load(tmp_path / "p.epi").predict(X), search.predict(X), rtol=0, atol=0)


@every
def test_the_same_for_any_number_of_threads(cls, planted):
    base = ep.DecisionTreeRegressor(max_depth=3)
    X, y = planted[0][:, :6], planted[1]
    one, two = (cls(base, n_jobs=n, cv=3).fit(X, y) for n in (1, 2))
    assert np.array_equal(one.path_scores_, two.path_scores_)
    assert np.array_equal(one.support_, two.support_)


@every
def test_weights_are_repetitions(cls, planted):
    X, y = planted
    w = np.random.default_rng(0).integers(0, 3, size=len(y))
    groups = np.arange(len(y)) % 3
    repeat = np.repeat(np.arange(len(y)), w)
    splits = [(np.flatnonzero(groups != g), np.flatnonzero(groups == g)) for g in range(3)]
    repeated = [(np.flatnonzero(groups[repeat] != g), np.flatnonzero(groups[repeat] == g)) for g in range(3)]
    a = cls(cv=splits).fit(X, y, sample_weight=w)
    b = cls(cv=repeated).fit(X[repeat], y[repeat])
    assert np.array_equal(a.support_, b.support_)
    assert_allclose(a.path_scores_, b.path_scores_, rtol=1e-8)


@settings(max_examples=15)
@given(seed=st.integers(0, 1000), p=st.integers(1, 6), scale=st.floats(1e-3, 1e3))
def test_order_of_columns_and_scale_do_not_matter(seed, p, scale):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, p))
    y = X[:, 0] + 0.5 * rng.normal(size=40)
    order = rng.permutation(p)
    a = ForwardSelection(cv=4).fit(X, y)
    b = ForwardSelection(cv=4).fit(X[:, order] * scale, y * scale)
    assert np.array_equal(a.support_[order], b.support_)
    assert_allclose(a.path_scores_, b.path_scores_, rtol=1e-6, atol=1e-9)


@every
def test_evidence_and_plot(cls, planted):
    model = cls().fit(*planted)
    assert model.certificate_.kind == "none"
    assert "normal equations" in model.certificate_.meaning or "holds" in model.certificate_.meaning
    assert model.n_iter_ == model.history_.n_iter
    assert model.plot().get_ylabel() == "r2"
    if cls is FilterSelection:
        assert "correlation" in FilterSelection(k=2).fit(*planted).plot().get_xlabel()


def test_patience_ends_the_search(planted):
    full = ForwardSelection().fit(*planted)
    short = ForwardSelection(patience=2).fit(*planted)
    assert full.n_iter_ == 12
    assert short.n_iter_ < 12
    assert np.array_equal(short.path_scores_, full.path_scores_[: short.n_iter_])


def test_groups_reach_the_folds(planted):
    X, y = planted
    groups = np.arange(len(y)) // 25
    assert ForwardSelection(n_features_to_select=3).fit(X, y, groups=groups).n_features_ == 3
    with pytest.raises(DataTypeError, match="groups: shape"):
        ForwardSelection().fit(X, y, groups=groups[:3])


# ------------------------------------------------------------------- rankings


def test_correlations_and_ratios_by_hand(planted):
    X, y = planted
    scores = FilterSelection(k=3).fit(X, y).scores_
    assert_allclose(scores, [abs(np.corrcoef(X[:, j], y)[0, 1]) for j in range(12)], rtol=1e-10)
    labels = np.digitize(y, [-2, 0, 2])
    ratio = FilterSelection(ep.LogisticRegression(), k=3).fit(X, labels).scores_
    for j in (0, 2):
        groups = [X[labels == c, j] for c in np.unique(labels)]
        between = sum(len(g) * (g.mean() - X[:, j].mean()) ** 2 for g in groups)
        assert_allclose(ratio[j], np.sqrt(between / ((X[:, j] - X[:, j].mean()) ** 2).sum()), rtol=1e-10)


def test_mutual_information_by_hand():
    """Four cells: p(x, y) = (0.4, 0.1; 0.1, 0.4), less the bias of 1 / 2n."""
    x = np.repeat([0, 0, 1, 1], [40, 10, 10, 40]).astype(float)
    y = np.repeat([0, 1, 0, 1], [40, 10, 10, 40])
    expected = 2 * 0.4 * np.log(0.4 / 0.25) + 2 * 0.1 * np.log(0.1 / 0.25) - 1 / 200
    model = FilterSelection(ep.LogisticRegression(), score_func="mutual_information", k=1)
    assert_allclose(model.fit(x[:, None], y).scores_[0], expected, rtol=1e-10)
    assert_allclose(model.fit(sp.csr_array(x[:, None]), y).scores_[0], expected, rtol=1e-10)


def test_mutual_information_sees_what_correlation_does_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 6))
    y = np.cos(2 * X[:, 4]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=500)
    assert FilterSelection(k=1, score_func="mutual_information").fit(X, y).get_support(indices=True).tolist() == [4]
    assert FilterSelection(k=1).fit(X, y).get_support(indices=True).tolist() == [1]


def test_functions_of_scikit_learn_rank(planted, tmp_path):
    X, y = planted
    model = FilterSelection(score_func=f_regression, k=3).fit(X, y)
    assert_allclose(model.scores_, f_regression(X, y)[0])
    model.save(tmp_path / "m.epi")
    assert np.array_equal(ep.load(tmp_path / "m.epi").support_, model.support_)


@pytest.mark.slow
def test_ranking_inside_the_folds_does_not_flatter():
    """400 columns of noise: ranked on all rows, the best few predict well in cross-validation; ranked inside, not."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 400)), rng.normal(size=60)
    model = FilterSelection(score_func="correlation").fit(X, y)
    top = np.argsort(model.ranking_)[:5]
    flattered = cross_val_score(ep.LinearRegression(), X[:, top], y, cv=KFold(5, shuffle=True, random_state=0)).mean()
    assert model.path_scores_[4] < 0 < 0.1 < flattered


# ------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ForwardSelection(n_features_to_select=13), "n_features_to_select=13; X has 12 features"),
        (ForwardSelection(n_features_to_select=0), "n_features_to_select=0"),
        (ForwardSelection(cv=1), "cv=1"),
        (ForwardSelection(patience=0), "patience=0"),
        (ForwardSelection(tol=-1), "tol=-1"),
        (ForwardSelection(scoring="mse"), "scoring='mse'"),
        (ForwardSelection(estimator=3), "estimator=3"),
        (BackwardSelection(cv=400), "250 samples; expected at least as many as folds"),
        (FilterSelection(k=13), "k=13; X has 12 features"),
        (FilterSelection(k="all"), "k='all'"),
        (FilterSelection(score_func="corelation"), "did you mean 'correlation'"),
        (FilterSelection(score_func=lambda X, y: np.zeros(3), k=2), r"score: gave shape \(3,\)"),
    ],
)
def test_bad_arguments(model, message, planted):
    with pytest.raises(ParameterError if "samples" not in message else DataError, match=message):
        model.fit(*planted)


def test_weights_that_a_model_cannot_take(planted):
    from sklearn.neighbors import KNeighborsRegressor

    X, y = planted
    with pytest.raises(ParameterError, match=r"sample_weight: estimator .KNeighborsRegressor. takes none"):
        ForwardSelection(KNeighborsRegressor()).fit(X, y, sample_weight=np.ones(len(y)))


def test_a_scan_is_refused(planted, tmp_path):
    pd.DataFrame(planted[0], columns=[f"c{j}" for j in range(12)]).assign(y=planted[1]).to_parquet(
        tmp_path / "a.parquet"
    )
    with pytest.raises(DataTypeError, match="takes data in memory"):
        ForwardSelection().fit(ep.scan(tmp_path / "a.parquet", target="y"))


@pytest.mark.parametrize("cls", [ep.BackwardSelection, ep.ForwardSelection, ep.FilterSelection])
@pytest.mark.parametrize(("x_unit", "y_unit"), [(1e100, 1.0), (1.0, 1e100), (1e155, 1.0), (1.0, 1e200), (1e150, 1e150)])
def test_huge_values_are_selected_from_or_refused_by_name(cls, x_unit, y_unit):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    y = 2 * X[:, 0] + 0.1 * rng.normal(size=30)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        if max(x_unit, y_unit) > 1e150:  # their models are least squares, which refuse
            with pytest.raises(DataError, match="overflow"):
                cls().fit(X * x_unit, y * y_unit)
        else:
            assert cls().fit(X * x_unit, y * y_unit).get_support()[0]
