"""Odd and bad data: what users of other libraries of trees expect, in every estimator of this one."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from epicycle import (
    AdaBoostClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from epicycle.exceptions import DataError, DataTypeError, EpicycleWarning, ParameterError

SMALL = {"n_estimators": 4, "random_state": 0}
REGRESSORS = {
    "boosting": lambda **o: GradientBoostingRegressor(**{**SMALL, "min_samples_leaf": 1, **o}),
    "tree": lambda **o: DecisionTreeRegressor(random_state=0, **o),
    "forest": lambda **o: RandomForestRegressor(**{**SMALL, **o}),
    "extra trees": lambda **o: ExtraTreesRegressor(**{**SMALL, **o}),
}
CLASSIFIERS = {
    "boosting, classes": lambda **o: GradientBoostingClassifier(**{**SMALL, "min_samples_leaf": 1, **o}),
    "tree, classes": lambda **o: DecisionTreeClassifier(random_state=0, **o),
    "forest, classes": lambda **o: RandomForestClassifier(**{**SMALL, **o}),
    "extra trees, classes": lambda **o: ExtraTreesClassifier(**{**SMALL, **o}),
}
TABULAR = REGRESSORS | CLASSIFIERS  # these take categories
ALL = {**TABULAR, "adaboost": lambda **o: AdaBoostClassifier(**{**SMALL, **o})}

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(float)
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": pd.Categorical(np.array(["u", "v", "w"])[np.arange(60) % 3])})

every = pytest.mark.parametrize("name", ALL)
tabular = pytest.mark.parametrize("name", TABULAR)


@every
def test_targets_that_are_no_numbers(name):
    for bad, words in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
        y = Y.copy()
        y[5] = bad
        with pytest.raises(DataError, match=f"y contains {words}"):
            ALL[name]().fit(X, y)
    with pytest.raises(DataError, match="y is None"):
        ALL[name]().fit(X, None)
    with pytest.raises(DataError, match="inconsistent"):
        ALL[name]().fit(X, Y[:-1])


@every
def test_weights(name):
    for bad, words in ((np.nan, "NaN"), (np.inf, "infinity"), (-1.0, "Negative")):
        weight = np.ones(60)
        weight[5] = bad
        with pytest.raises(DataError, match=f"sample_weight.*{words}"):
            ALL[name]().fit(X, Y, sample_weight=weight)
    with pytest.raises(DataError, match="every weight is zero"):
        ALL[name]().fit(X, Y, sample_weight=np.zeros(60))
    with pytest.raises(DataError, match="inconsistent"):
        ALL[name]().fit(X, Y, sample_weight=np.ones(59))
    # Rows without weight are not there, whatever is in them.
    strange = np.vstack([X, np.full((5, 3), 1e9)])
    weight = np.r_[np.ones(60), np.zeros(5)]
    alone = ALL[name]().fit(X, Y, sample_weight=np.ones(60))
    model = ALL[name]().fit(strange, np.r_[Y, np.ones(5)], sample_weight=weight)
    assert_array_equal(model.predict(X), alone.predict(X))


@every
def test_infinity_and_missing_numbers_are_values(name):
    signal = np.where(Y > 0, np.inf, np.where(np.arange(60) % 2, -np.inf, np.nan))
    table = np.column_stack([signal, X[:, 1]])
    # Forests try all features: a tree that tries the other one alone may split by it, and err on rows that it lacks.
    options = {"max_features": None} if "forest" in name else {}
    model = ALL[name](**options).fit(table, Y)
    assert_allclose(model.predict(table), Y, atol=0.8)
    assert np.isfinite(model.predict(np.full((2, 2), np.nan))).all()


@every
def test_columns_that_say_nothing(name):
    table = np.column_stack([X[:, 0], np.full(60, np.nan), np.full(60, 7.0)])
    model = ALL[name]().fit(table, Y)
    assert_array_equal(model.feature_importances_ > 0, [True, False, False])
    changed = table.copy()
    changed[:, 1:] = 3.0
    assert_array_equal(model.predict(changed), model.predict(table))
    nothing = ALL[name]().fit(table[:, 1:], Y) if name != "adaboost" else None
    if nothing is not None:
        assert len(set(nothing.predict(table[:, 1:]).tolist())) == 1


@pytest.mark.parametrize("name", REGRESSORS)
def test_one_value_or_one_row(name):
    constant = REGRESSORS[name]().fit(X, np.full(60, 0.1))
    assert_allclose(constant.predict(X), 0.1, rtol=1e-12)
    one = REGRESSORS[name]().fit([[1.0, 2.0]], [3.0])
    assert_allclose(one.predict([[5.0, np.nan]]), [3.0])
    assert not one.feature_importances_.any()


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_one_class(name):
    if name.startswith("boosting"):
        with pytest.raises(DataError, match="one class"):
            CLASSIFIERS[name]().fit(X, np.zeros(60))
        return
    assert_array_equal(CLASSIFIERS[name]().fit(X, np.full(60, 3)).predict(X), 3)


@every
def test_other_columns_in_prediction(name):
    model = ALL[name]().fit(X, Y)
    for width in (2, 4):
        with pytest.raises(DataError, match=f"X has {width} features"):
            model.predict(np.zeros((2, width)))
    frame = pd.DataFrame(X, columns=list("abc"))
    named = ALL[name]().fit(frame, Y)
    with pytest.raises(DataError, match="feature names"):
        named.predict(frame[list("cab")])
    twice = frame.set_axis(list("aab"), axis=1)
    with pytest.raises(DataError, match="several columns are named 'a'"):
        ALL[name]().fit(twice, Y)


@tabular
def test_levels(name):
    model = TABULAR[name]().fit(FRAME, Y)
    new = FRAME.assign(c=pd.Categorical(["x"] * 60))
    assert_array_equal(model.predict(new), model.predict(FRAME.assign(c=pd.Categorical([None] * 60))))
    with pytest.raises(DataError, match="'c' has levels that the fit did not see: 'x'"):
        model.set_params(handle_unknown="error").predict(new)
    with pytest.raises(DataTypeError, match="learnt categories from a frame"):
        model.predict(X)
    with pytest.raises(DataTypeError, match="levels at fit were str"):
        model.predict(FRAME.assign(c=pd.Categorical([1] * 60)))
    many = FRAME.assign(c=pd.Categorical([f"level {i}" for i in range(60)])).iloc[np.arange(600) % 60]
    many = many.assign(c=pd.Categorical([f"level {i % 300}" for i in range(600)]))
    with pytest.warns(EpicycleWarning, match="'c' has 300 levels; the 255 most frequent"):
        wide = TABULAR[name]().fit(many, np.tile(Y, 10))
    assert len(wide.categories_[2]) == 255
    assert np.isfinite(wide.predict(many)).all()
    for wrong, words in ((["z"], "'z'"), ([7], "column 7"), ([True], "mask"), ([0.5], "Expected names")):
        with pytest.raises((ParameterError, TypeError), match=words):
            TABULAR[name](categorical_features=wrong).fit(FRAME, Y)


@tabular
def test_constraints(name):
    with pytest.raises(ParameterError, match="categories have no order"):
        TABULAR[name](monotonic_cst={"c": 1}).fit(FRAME, Y)
    with pytest.raises(ParameterError, match="monotonic_cst contains 1 unexpected feature names: \\['q'\\]"):
        TABULAR[name](monotonic_cst={"q": 1}).fit(FRAME, Y)
    with pytest.raises(ParameterError, match="shape"):
        TABULAR[name](monotonic_cst=[1, 0]).fit(FRAME, Y)
    if name.startswith("boosting"):
        for wrong, words in (([["a", "q"]], "interaction_cst names 'q'"), ([[0, 9]], "interaction_cst: .*got 9")):
            with pytest.raises(ParameterError, match=words):
                TABULAR[name](interaction_cst=wrong).fit(FRAME, Y)


@pytest.mark.parametrize("name", ["boosting", "boosting, classes"])
def test_samples_without_a_row(name):
    for sampling in ("uniform", "gradient"):
        model = TABULAR[name](subsample=1e-9, sampling=sampling).fit(X, Y)
        assert np.isfinite(model.predict(X)).all()
        assert model.n_estimators_ == 4


@pytest.mark.parametrize("name", ["forest", "forest, classes", "extra trees"])
def test_samples_of_one_row(name):
    model = TABULAR[name](bootstrap=True, max_samples=1).fit(X, Y)
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("name", ["boosting", "boosting, classes"])
def test_validation_sets(name):
    model = TABULAR[name]()
    for options in ({"X_val": X}, {"y_val": Y}):
        with pytest.raises(DataError, match="one was given without the other"):
            model.fit(X, Y, **options)
    with pytest.raises(DataError, match="2 features"):
        model.fit(X, Y, X_val=X[:, :2], y_val=Y)
    with pytest.raises(DataError, match="feature names"):
        model.fit(FRAME, Y, X_val=FRAME[list("bac")], y_val=Y)
    with pytest.raises(DataError, match="inconsistent"):
        model.fit(X, Y, X_val=X, y_val=Y[:-1])
    with pytest.raises(DataError, match="NaN"):
        model.fit(X, Y, X_val=X, y_val=np.full(60, np.nan))
    if name.endswith("classes"):
        with pytest.raises(DataError, match="y_val: the class 2"):
            model.fit(X, Y, X_val=X, y_val=Y + 1)
        with pytest.raises(DataError, match="y_val: the class 'a'"):
            model.fit(X, Y, X_val=X, y_val=np.full(60, "a"))


@pytest.mark.parametrize("name", ["boosting", "forest", "tree"])
def test_nothing_of_a_failed_fit_is_left(name):
    model = TABULAR[name]().fit(X, Y)
    before = model.predict(X)
    with pytest.raises(DataError):
        model.fit(X[:, :2], np.full(60, np.nan))
    assert_array_equal(model.predict(X), before)
