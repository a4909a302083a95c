"""AdaBoost: the best stump by exhaustive search, the bound on the training error, and parity with scikit-learn."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import AdaBoostClassifier as Peer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import epicycle as ep
from epicycle import AdaBoostClassifier
from epicycle.exceptions import DataTypeError, ParameterError, ParameterTypeError
from epicycle.tree.adaboost._stumps import SortedColumns


def problem(seed, n=60, p=3, K=2, *, missing=False, ties=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    if ties:
        X = np.round(X)
    if missing:
        X[rng.random(X.shape) < 0.3] = np.nan
    D = rng.exponential(size=n)
    return X, rng.integers(0, K, n), D / D.sum()


def merit(totals, criterion):
    """What a stump is chosen by, from the weights of the classes on its two sides."""
    if criterion == "error":
        return totals.max(axis=1).sum()
    if criterion == "confidence":
        return -np.sqrt(totals.prod(axis=1)).sum()
    return sum((t @ t) / t.sum() for t in totals if t.sum() > 0)


def best_by_hand(X, y, D, K, criterion):
    best = merit(np.array([np.bincount(y, D, K), np.zeros(K)]), criterion)
    for j in range(X.shape[1]):
        for threshold in [*np.unique(X[:, j][~np.isnan(X[:, j])]), np.inf]:
            for missing_left in (False, True):
                left = (X[:, j] <= threshold) | (np.isnan(X[:, j]) & missing_left)
                totals = np.array([np.bincount(y[side], D[side], K) for side in (left, ~left)])
                best = max(best, merit(totals, criterion))
    return best


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 400),
    K=st.sampled_from([2, 2, 3]),
    missing=st.booleans(),
    ties=st.booleans(),
    sparse=st.booleans(),
    confidence=st.booleans(),
    float32=st.booleans(),
)
def test_the_stump_is_the_best_of_all(seed, n, K, missing, ties, sparse, confidence, float32):
    X, y, D = problem(seed, n, 3, K, missing=missing, ties=ties)
    X = X.astype(np.float32 if float32 else np.float64)
    criterion = "gini" if K > 2 else "confidence" if confidence else "error"
    columns = SortedColumns(sp.csc_array(X) if sparse else X, None)
    if K > 2:
        stump = columns.best(D, y.astype(np.int32), K, confidence=False)
    else:
        stump = columns.best(D * (2.0 * y - 1), None, 2, confidence=confidence)
    right = stump.right(X)
    totals = np.array([np.bincount(y[side], D[side], K) for side in (~right, right)])
    assert merit(totals, criterion) == pytest.approx(best_by_hand(X, y, D, K, criterion), abs=1e-5)


@pytest.mark.parametrize("algorithm", ["discrete", "real"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_training_error_is_under_the_product(algorithm, weighted):
    X, y = load_breast_cancer(return_X_y=True)
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float) if weighted else None
    model = AdaBoostClassifier(n_estimators=60, algorithm=algorithm).fit(X, y, sample_weight=weight)
    history = model.history_
    sign, w = 2.0 * y - 1, np.ones(len(y)) if weight is None else weight
    for m, F in enumerate(model.staged_votes(X)):
        assert history["training_error"][m] == pytest.approx(np.average(sign * F <= 0, weights=w), abs=1e-12)
        assert history["bound"][m] == pytest.approx(np.average(np.exp(-sign * F), weights=w), rel=1e-9)
        assert history["training_error"][m] <= history["bound"][m]
    if algorithm == "discrete":
        eps = model.estimator_errors_
        assert_allclose(history["bound"], np.cumprod(2 * np.sqrt(eps * (1 - eps))), rtol=1e-9)
        assert_allclose(model.estimator_weights_, np.log((1 - eps) / eps) / 2, rtol=1e-9)
        assert (eps < 0.5).all()
    assert (np.diff(history.objective) < 0).all()


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), K=st.integers(2, 4), algorithm=st.sampled_from(["discrete", "real"]))
def test_the_bound_holds_for_any_labels(seed, K, algorithm):
    X, y, _ = problem(seed, 80, 2, K)
    if len(np.unique(y)) < 2:
        return
    model = AdaBoostClassifier(n_estimators=15, algorithm=algorithm).fit(X, y)
    assert (model.history_["training_error"] <= model.history_["bound"] + 1e-12).all()


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris, load_wine])
def test_equals_scikit_learn_with_the_same_members(load):
    X, y = load(return_X_y=True)
    member = DecisionTreeClassifier(max_depth=1, random_state=0)
    mine = AdaBoostClassifier(member, n_estimators=20).fit(X, y)
    theirs = Peer(member, n_estimators=20).fit(X, y)
    K = len(mine.classes_)
    assert_allclose(mine.estimator_errors_, theirs.estimator_errors_, rtol=1e-6)
    assert_allclose(mine.estimator_weights_ * (2 if K == 2 else 1), theirs.estimator_weights_, rtol=1e-6)
    assert_array_equal(mine.predict(X), theirs.predict(X))


def test_quality_is_that_of_scikit_learn():
    X, y = load_breast_cancer(return_X_y=True)
    right = {"discrete": 0, "real": 0, "theirs": 0}
    for fold in range(3):
        held = np.arange(len(y)) % 3 == fold
        models = {a: AdaBoostClassifier(n_estimators=50, algorithm=a) for a in ("discrete", "real")}
        for name, model in {**models, "theirs": Peer(n_estimators=50)}.items():
            right[name] += int((model.fit(X[~held], y[~held]).predict(X[held]) == y[held]).sum())
    assert min(right["discrete"], right["real"]) >= right["theirs"] - 6


def test_members_with_probabilities():
    X, y = load_wine(return_X_y=True)
    member = DecisionTreeClassifier(max_depth=2)
    model = AdaBoostClassifier(member, n_estimators=20, algorithm="real", random_state=0).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.9
    again = AdaBoostClassifier(member, n_estimators=20, algorithm="real", random_state=0).fit(X[::2], y[::2])
    assert_array_equal(model.predict_proba(X), again.predict_proba(X))
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.feature_importances_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("algorithm", ["discrete", "real"])
def test_containers_and_threads_give_the_same(algorithm, tmp_path):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((3000, 6)) < 0.6, 0.0, rng.normal(size=(3000, 6)))
    y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.3, "yes", "no")
    options = {"n_estimators": 15, "algorithm": algorithm}
    expected = AdaBoostClassifier(**options).fit(X, y).decision_function(X)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    for other in (frame, np.asfortranarray(X), sp.csr_array(X), sp.csc_matrix(X)):
        assert_allclose(AdaBoostClassifier(**options).fit(other, y).decision_function(other), expected, rtol=1e-9)
    for n_jobs in (1, 2, 3):
        assert_array_equal(AdaBoostClassifier(n_jobs=n_jobs, **options).fit(X, y).decision_function(X), expected)
    model = AdaBoostClassifier(**options).fit(X, y)
    model.save(tmp_path / "m.epi")
    assert_array_equal(ep.load(tmp_path / "m.epi").predict(X), model.predict(X))
    np.save(tmp_path / "X.npy", X)
    assert_array_equal(model.predict(ep.scan(tmp_path / "X.npy", batch_rows=500)), model.predict(X))


def test_weights_are_repetitions():
    X, y, _ = problem(7, 200)
    weight = np.random.default_rng(1).integers(0, 4, 200)
    weighted = AdaBoostClassifier(n_estimators=10).fit(X, y, sample_weight=weight)
    repeated = AdaBoostClassifier(n_estimators=10).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-7)


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
def test_decision_functions_are_those_of_scikit_learn(load):
    X, y = load(return_X_y=True)
    ours = AdaBoostClassifier(n_estimators=8).fit(X, y)
    theirs = Peer(n_estimators=8)
    # scikit-learn's sums over our members, with its weights, which for two classes are twice ours.
    theirs.estimators_, theirs.classes_, theirs.n_classes_ = ours.estimators_, ours.classes_, len(ours.classes_)
    theirs.estimator_weights_ = ours.estimator_weights_ * (2 if theirs.n_classes_ == 2 else 1)
    theirs.n_features_in_ = X.shape[1]
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-12)
    staged = zip(ours.staged_decision_function(X), theirs.staged_decision_function(X), strict=True)
    for stage, expected in staged:
        assert_allclose(stage, expected, atol=1e-12)
    for algorithm in ("discrete", "real"):
        model = AdaBoostClassifier(n_estimators=8, algorithm=algorithm).fit(X, y)
        scores = model.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        assert_array_equal(model.classes_[chosen], model.predict(X))


def test_shapley_values_of_votes():
    X, y = load_iris(return_X_y=True)
    model = AdaBoostClassifier(n_estimators=30).fit(X, y)
    phi = model.shap_values(X)
    assert_allclose(phi.sum(axis=1) + model.average_score_, model.votes(X), atol=1e-10)


def test_a_perfect_member_ends_the_fit():
    X = np.arange(20.0)[:, None]
    model = AdaBoostClassifier().fit(X, X[:, 0] > 9)
    assert model.n_estimators_ == 1
    assert model.score(X, X[:, 0] > 9) == 1.0
    assert np.isfinite(model.decision_function(X)).all()


def test_features_that_say_nothing_leave_the_larger_class():
    X, y = np.ones((9, 2)), np.array([0, 1, 1, 1, 1, 1, 0, 0, 1])
    assert (AdaBoostClassifier().fit(X, y).predict(X) == 1).all()
    assert AdaBoostClassifier().fit(X[:8], np.arange(8) % 2).n_estimators_ == 0


def test_bad_members_and_bad_data(tmp_path):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ParameterTypeError, match="sample_weight"):
        AdaBoostClassifier(KNeighborsClassifier()).fit(X, y)
    from sklearn.linear_model import Perceptron

    with pytest.raises(ParameterError, match="predict_proba"):
        AdaBoostClassifier(Perceptron(), algorithm="real").fit(X, y)
    with pytest.raises(ParameterTypeError, match="estimator"):
        AdaBoostClassifier("stump").fit(X, y)
    da = pytest.importorskip("dask.array")
    with pytest.raises(DataTypeError, match="memory"):
        AdaBoostClassifier().fit(da.from_array(X), da.from_array(y))
    pd.DataFrame(X, columns=list("abcd")).assign(y=y).to_csv(tmp_path / "iris.csv", index=False)
    with pytest.raises(DataTypeError, match="memory"):
        AdaBoostClassifier().fit(ep.scan(tmp_path / "iris.csv", target="y"))


@pytest.mark.parametrize("algorithm", ["discrete", "real"])
@pytest.mark.parametrize("K", [2, 3])
def test_categories_are_divided_in_sets_of_levels(algorithm, K):
    rng = np.random.default_rng(0)
    level = rng.integers(0, 6, 300)
    label = np.array([0, 1, 2, 1, 0, 2])[level] % K
    frame = pd.DataFrame({"a": pd.Categorical(np.array(list("uvwxyz"))[level]), "b": rng.normal(size=300)})
    model = AdaBoostClassifier(n_estimators=20, algorithm=algorithm).fit(frame, label)
    assert model.score(frame, label) == 1.0
    assert model.categories_[0].tolist() == list("uvwxyz")
    # Numbers of levels say the same, and no order of theirs separates the classes by one threshold.
    codes = np.column_stack([level, frame["b"]]).astype(float)
    told = AdaBoostClassifier(n_estimators=20, algorithm=algorithm, categorical_features=[0]).fit(codes, label)
    assert_array_equal(told.predict(codes), label)
    assert model.estimators_[0].get_depth() == 1
    # Levels that the fit did not see count as missing.
    new = frame.head(2).assign(a=pd.Categorical(["q", "u"]))
    assert np.isfinite(model.predict_proba(new)).all()
    if K == 2:
        assert model.n_estimators_ == 1


def test_a_first_member_no_better_than_chance_is_refused():
    X, y = np.ones((4, 2)), np.array([0, 1, 2, 3])
    with pytest.raises(ParameterError, match="worse than random"):
        AdaBoostClassifier(DecisionTreeClassifier()).fit(X, y)
