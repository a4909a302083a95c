"""Importances and partial dependence: by definition, against scikit-learn, and where the answer is known."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.inspection import partial_dependence as sklearn_dependence, permutation_importance

from epicycle import (
    AdaBoostClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from epicycle.exceptions import DataError, DataTypeError, ParameterError
from epicycle.optim import _losses as losses
from epicycle.tree.boosting._losses import NativeLoss, classification_loss

matplotlib.use("Agg")

SMALL = {"n_estimators": 8, "random_state": 0}
MODELS = {
    "boosting": GradientBoostingRegressor(**SMALL),
    "poisson": GradientBoostingRegressor(**SMALL, loss="poisson"),
    "two classes": GradientBoostingClassifier(**SMALL),
    "three classes": GradientBoostingClassifier(**SMALL),
    "tree": DecisionTreeRegressor(max_depth=4),
    "tree of classes": DecisionTreeClassifier(max_depth=4),
    "forest": RandomForestRegressor(**SMALL, max_depth=5),
    "forest of classes": RandomForestClassifier(**SMALL, max_depth=5),
    "extra trees": ExtraTreesRegressor(**SMALL, max_depth=5),
    "stumps": AdaBoostClassifier(**SMALL),
    "stumps, three classes": AdaBoostClassifier(**SMALL),
}
every = pytest.mark.parametrize("name", MODELS)


def problem(name, n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[rng.random(n) < 0.1, 1] = np.nan
    score = 2 * np.sin(2 * X[:, 0]) + np.where(np.isnan(X[:, 1]), -1, X[:, 1]) + rng.normal(size=n) / 4
    X[:, 4] = 1.0
    if name == "poisson":
        return X, np.floor(np.exp(score / 2))
    if "three" in name:
        return X, np.digitize(score, [-1, 1])
    if "class" in name or name == "stumps":
        return X, (score > 0).astype(int)
    return X, score


def response(model, X):
    if not hasattr(model, "predict_proba"):
        return model.predict(X)[:, None]
    p = model.predict_proba(X)
    return p[:, 1:] if p.shape[1] == 2 else p


@every
def test_curves_are_predictions(name):
    X, y = problem(name)
    model = MODELS[name].fit(X, y)
    weight = np.random.default_rng(1).random(len(y))
    found = model.partial_dependence(X, 0, kind="individual", grid_resolution=7, sample_weight=weight)
    assert found.features == ("x0",)
    K = len(found.outputs)
    average = found.average.reshape(K, -1)
    individual = found.individual.reshape(K, len(X), -1)
    for g, value in enumerate(found.grid[0]):
        changed = X.copy()
        changed[:, 0] = value
        expected = response(model, changed)
        assert_allclose(individual[:, :, g], expected.T, rtol=1e-12)
        assert_allclose(average[:, g], np.average(expected, axis=0, weights=weight), rtol=1e-10)
    ax = found.plot(centred=K == 1)
    assert ax.get_xlabel() == "x0"
    matplotlib.pyplot.close(ax.figure)


@every
def test_scikit_learn_inspects(name):
    X, y = problem(name)
    X = np.nan_to_num(X)
    model = MODELS[name].fit(X, y)
    for features in ([0], [0, 1]):
        mine = model.partial_dependence(X, features if len(features) > 1 else features[0], grid_resolution=6)
        grid = dict(zip(features, mine.grid, strict=True))
        theirs = sklearn_dependence(model, X, features, custom_values=grid, kind="average", method="brute")
        assert_allclose(mine.average.reshape(theirs["average"].shape), theirs["average"], rtol=1e-10)
    result = permutation_importance(model, X, y, n_repeats=2, random_state=0)
    assert result.importances_mean.argmax() == 0


@pytest.mark.parametrize("name", ["boosting", "three classes", "forest", "tree of classes", "stumps"])
def test_recursion_of_independent_features(name):
    # On a full grid of independent features the shares in the nodes are those of the rows.
    side = np.arange(5.0)
    X = np.array(np.meshgrid(side, side, side, indexing="ij")).reshape(3, -1).T
    score = X[:, 0] * 2 + (X[:, 1] > 2) * X[:, 2]
    y = score
    if "class" in name or name == "stumps":
        y = np.digitize(score, [4, 8] if "three" in name else [5])
    options = {"min_samples_leaf": 1} if "boosting" in name or "three" in name else {}
    if name == "forest":
        options |= {"bootstrap": False, "max_features": 1.0}
    model = type(MODELS[name])(**{**MODELS[name].get_params(), **options}).fit(X, y)
    for features in (0, (1, 2)):
        recursive = model.partial_dependence(X, features, method="recursion")
        brute = model.partial_dependence(X, features)
        if name in ("boosting", "forest", "tree of classes"):
            assert_allclose(recursive.average, brute.average, rtol=1e-9)
            continue
        columns = np.atleast_1d(features)
        points = np.stack(np.meshgrid(*recursive.grid, indexing="ij"), axis=-1).reshape(-1, len(columns))
        scores = []
        for point in points:
            changed = X.copy()
            changed[:, columns] = point
            outputs = model.votes if hasattr(model, "votes") else model.decision_function
            scores.append(np.atleast_2d(outputs(changed).T).mean(axis=1))
        found = recursive.average.reshape(-1, len(points)).T
        assert_allclose(found, scores, rtol=1e-9, atol=1e-12)


def test_categories_and_names():
    rng = np.random.default_rng(0)
    words = np.array(["north", "south", "west", None], object)[rng.integers(0, 4, 500)]
    x = rng.normal(size=500)
    frame = pd.DataFrame({"x": x, "where": pd.Categorical(words)})
    y = x + 2.0 * (words == "west")
    model = GradientBoostingRegressor(n_estimators=60, learning_rate=0.3).fit(frame, y)
    found = model.partial_dependence(frame, "where")
    assert found.grid[0].tolist() == ["north", "south", "west"]
    assert_allclose(found.average - found.average[0], [0, 0, 2], atol=0.15)
    assert_allclose(model.partial_dependence(frame, "where", method="recursion").average, found.average, atol=0.2)
    assert model.partial_dependence(frame, ("x", "where"), grid_resolution=4).average.shape == (4, 3)
    for features in ("where", ("x", "where"), ("where", "x")):
        matplotlib.pyplot.close(model.partial_dependence(frame, features, grid_resolution=4).plot().figure)
    mean, _ = model.permutation_importances(frame, y)
    assert (mean > 0.3).all()


def test_bad_questions():
    X, y = problem("boosting")
    model = MODELS["boosting"].fit(X, y)
    for features in (9, "q", (0, 0), (0, 1, 2), 0.5, ()):
        with pytest.raises((ParameterError, TypeError)):
            model.partial_dependence(X, features)
    for options in (
        {"kind": "both"},
        {"method": "fast"},
        {"method": "recursion", "kind": "individual"},
        {"grid_resolution": 1},
        {"percentiles": (0.5, 0.2)},
    ):
        with pytest.raises(ParameterError, match=next(iter(options))):
            model.partial_dependence(X, 0, **options)
    with pytest.raises(ParameterError, match="no value"):
        model.partial_dependence(np.where(np.arange(5) == 2, np.nan, X), 2)
    with pytest.raises(ParameterError, match="n_repeats=0"):
        model.permutation_importances(X, y, n_repeats=0)
    with pytest.raises(ParameterError, match="kind='weight'"):
        model.importance("weight")
    with pytest.raises(DataError, match="the class 'a'"):
        MODELS["two classes"].fit(X, y > 0).permutation_importances(X, np.where(y > 0, "a", "b"))
    import scipy.sparse as sp

    with pytest.raises(DataTypeError, match="sparse"):
        model.permutation_importances(sp.csr_array(np.nan_to_num(X)), y)


# ------------------------------------------------------------------------------------------------ importances


@every
def test_importances_find_what_matters(name):
    X, y = problem(name)
    model = MODELS[name].fit(X, y)
    for kind in ("gain", "split"):
        shares = model.importance(kind)
        assert shares.sum() == pytest.approx(1.0)
        assert shares[4] == 0
    assert_array_equal(model.importance(), model.feature_importances_)
    options = {"out_of_bag": False} if "forest" in name or name == "extra trees" else {}
    X_new, y_new = problem(name, seed=1)
    mean, error = model.permutation_importances(X_new, y_new, **options)
    assert mean[0] > 4 * error[0] > 0
    assert mean[0] > np.abs(mean[2:]).max()
    assert mean[4] == error[4] == 0
    again = model.permutation_importances(X_new, y_new, **options)
    assert_array_equal(again[0], mean)
    assert (model.permutation_importances(X_new, y_new, random_state=1, **options)[0] != mean).any()


def test_the_standard_error_is_that_of_new_rows():
    X, y = problem("boosting", n=2000, seed=3)
    model = GradientBoostingRegressor(n_estimators=20).fit(X[:500], y[:500])
    found = [model.permutation_importances(*problem("boosting", n=150, seed=10 + i)) for i in range(40)]
    means, errors = np.array(found).transpose(1, 0, 2)
    assert_allclose(errors[:, :2].mean(axis=0), means[:, :2].std(axis=0), rtol=0.35)


def test_weights_and_the_loss_of_rows():
    rng = np.random.default_rng(0)
    y = rng.random(30) + 0.1
    rows = (
        losses.Squared(),
        losses.Absolute(),
        losses.Huber(0.4),
        losses.Quantile(0.3),
        losses.Poisson(),
        losses.Gamma(),
        losses.Tweedie(1.4),
        losses.Logistic(),
    )
    for loss in (*map(NativeLoss, rows), classification_loss(3)):
        score = rng.normal(size=(loss.n_outputs, 30))
        target = np.floor(y * loss.n_outputs) if loss.name == "multinomial" else (y > 0.5) * 1.0
        target = target if loss.name in ("logistic", "multinomial") else y
        target = np.minimum(target, max(loss.n_outputs - 1, target.max() if loss.n_outputs == 1 else 0))
        total = loss.evaluate(target, None, score, np.empty((loss.n_outputs, 30, 2), np.float32), 1).loss
        assert_allclose(loss.row_values(target, score.T).sum(), total, rtol=1e-6)
    X, y = problem("boosting")
    weight = rng.integers(0, 3, len(y)).astype(float)
    model = MODELS["boosting"].fit(X, y)
    mean, error = model.permutation_importances(X, y, weight)
    kept = weight > 0
    assert mean[0] > 0
    assert not np.array_equal(mean, model.permutation_importances(X, y)[0])
    assert np.isfinite(error).all()
    assert kept.any()
