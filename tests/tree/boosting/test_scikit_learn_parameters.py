"""Parameters of boosting under scikit-learn's names, against its trees, sums by hand and the same engine."""

import numpy as np
import pandas as pd
import pytest
import sklearn.tree
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_friedman1, make_hastie_10_2
from sklearn.metrics import accuracy_score, log_loss

import epicycle as ep
from epicycle.exceptions import DataError, ParameterError, ParameterTypeError
from epicycle.tree.boosting._row_sampling import draw

X, Y = make_friedman1(200, noise=1.0, random_state=0)
LABELS = (np.median(Y) < Y).astype(int)
EXACT = {"n_estimators": 1, "learning_rate": 1.0, "min_samples_leaf": 1, "max_leaf_nodes": None, "max_depth": 6}


def leaf_counts(model):
    trees = model.estimators_.ravel()
    return [tree.tree_.n_node_samples[tree.tree_.children_left < 0] for tree in trees]


@pytest.mark.parametrize("alpha", [0.0, 0.02, 0.1, 0.5, 2.0, 100.0])
def test_pruning_is_that_of_a_tree_of_the_residuals(alpha):
    ours = ep.GradientBoostingRegressor(**EXACT, ccp_alpha=alpha).fit(X, Y)
    tree = sklearn.tree.DecisionTreeRegressor(max_depth=6, ccp_alpha=alpha).fit(X, Y - Y.mean())
    assert len(leaf_counts(ours)[0]) == tree.get_n_leaves()
    assert_allclose(ours.predict(X), Y.mean() + tree.predict(X), rtol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_leaves_have_their_share_of_the_weight(weighted):
    weight = np.random.default_rng(0).exponential(size=200) if weighted else None
    model = ep.GradientBoostingRegressor(n_estimators=5, min_samples_leaf=1, min_weight_fraction_leaf=0.1)
    leaves = model.fit(X, Y, sample_weight=weight).apply(X).astype(int)
    w = np.ones(200) if weight is None else weight
    shares = [np.bincount(column, w)[np.unique(column)] / w.sum() for column in leaves.T]
    assert min(share.min() for share in shares) >= 0.1
    assert max(len(share) for share in shares) > 2


@pytest.mark.parametrize("cls", [ep.GradientBoostingRegressor, ep.GradientBoostingClassifier])
def test_the_loss_of_rows_that_were_not_drawn(cls):
    y = Y if cls is ep.GradientBoostingRegressor else LABELS
    model = cls(n_estimators=6, subsample=0.6, random_state=3).fit(X, y)
    stages = list(model.staged_predict(X)) if y is Y else list(model.staged_predict_proba(X))
    for r in range(6):
        out = np.setdiff1d(np.arange(200), draw(model._seed_, r, 0.6, 0, 200).rows)
        loss = np.mean((stages[r][out] - y[out]) ** 2) if y is Y else 2 * log_loss(y[out], stages[r][out])
        assert model.oob_scores_[r] == pytest.approx(loss, rel=1e-6)
        if r:
            before = np.mean((stages[r - 1][out] - y[out]) ** 2) if y is Y else 2 * log_loss(y[out], stages[r - 1][out])
            assert model.oob_improvement_[r] == pytest.approx(before - loss, rel=1e-4, abs=1e-9)
    assert model.oob_score_ == model.oob_scores_[-1]
    assert not hasattr(cls(n_estimators=2).fit(X, y), "oob_scores_")


def test_a_monitor_sees_every_round_and_ends_the_fit():
    seen = []

    def monitor(number, model, variables):
        seen.append((number, len(model.estimators_), model.train_score_[-1]))
        return number == 4

    model = ep.GradientBoostingRegressor(n_estimators=20).fit(X, Y, monitor=monitor)
    assert [s[:2] for s in seen] == [(i, i + 1) for i in range(5)]
    assert len(model.estimators_) == 5
    assert_array_equal([s[2] for s in seen], model.train_score_)


def test_the_quantile_of_hubers_loss_follows_the_residuals():
    y = Y.copy()
    y[::20] += 1000.0
    clean = np.delete(np.arange(200), np.s_[::20])
    options = {"n_estimators": 60, "min_samples_leaf": 5}
    errors = {}
    for alpha in (0.8, 0.99):
        model = ep.GradientBoostingRegressor(loss="huber", alpha=alpha, **options).fit(X, y)
        errors[alpha] = np.abs(model.predict(X) - Y)[clean].mean()
    assert errors[0.8] < 2 < errors[0.99]  # one row in twenty is wrong: 0.99 takes it for an ordinary one
    # The threshold falls with the residuals, and in the end most rows are fitted exactly.
    exact = ep.GradientBoostingRegressor(loss="huber", alpha=0.8, n_estimators=300, min_samples_leaf=1).fit(X, Y)
    assert np.mean(np.abs(exact.predict(X) - Y) < 1e-3) > 0.7


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_no_interactions_is_a_sum_of_functions_of_one_feature(seed):
    a, b, c, d = np.random.default_rng(seed).random(4)
    X2, y2 = X[:, :2], X[:, 0] * X[:, 1]
    model = ep.HistGradientBoostingRegressor(interaction_cst="no_interactions", min_samples_leaf=5).fit(X2, y2)
    corners = model.predict([[a, b], [c, d], [a, d], [c, b]])
    assert corners[0] + corners[1] == pytest.approx(corners[2] + corners[3], abs=1e-9)


def test_pairs_of_features_interact_and_no_three():
    pairs = ep.GradientBoostingRegressor(interaction_cst="pairwise", n_estimators=20).fit(X, Y)
    for tree in pairs.estimators_.ravel():
        t = tree.tree_
        paths = tree.decision_path(X).toarray()
        for row in np.unique(paths, axis=0):
            inner = row.astype(bool) & (t.children_left >= 0)
            assert len(set(t.feature[inner])) <= 2


@pytest.mark.parametrize(
    ("groups", "words"),
    [([0, 1], "sequence of tuples or lists"), ([{0, 99}], r"= \[0, 9\]"), ([{0.5}], "integer indices")],
)
def test_groups_that_are_none(groups, words):
    with pytest.raises(ParameterError, match=words):
        ep.GradientBoostingRegressor(interaction_cst=groups).fit(X, Y)


def test_initial_estimators_that_are_none():
    for wrong in (ep.GradientBoostingRegressor, object(), ep.Ridge()):
        with pytest.raises(ParameterTypeError, match="'init' parameter"):
            ep.GradientBoostingClassifier(init=wrong).fit(X, LABELS)


def test_classes_that_cannot_be_held_out_and_learnt_are_reported():
    y = (np.arange(10) == 0).astype(int)
    model = ep.GradientBoostingClassifier(n_iter_no_change=3, validation_fraction=0.5)
    with pytest.raises(DataError, match="The least populated classes in y have only 1 member"):
        model.fit(X[:10], y)
    with pytest.raises(DataError, match="The training data after the early stopping split"):
        model.set_params(validation_fraction=0.8).fit(X[:10], (np.arange(10) < 2).astype(int))
    # Both rows of the small class of equal shares are drawn apart, whatever the seed.
    y = np.repeat([0, 1], [2, 8])
    model.set_params(validation_fraction=0.5)
    for seed in range(5):
        assert model.set_params(random_state=seed).fit(X[:10], y).n_classes_ == 2


def test_rare_classes_are_learnt_where_the_best_round_is_kept():
    options = {"n_estimators": 3, "n_iter_no_change": 2, "min_samples_leaf": 1, "random_state": 0}
    single = np.where(np.arange(200) == 7, 2, LABELS)
    many = np.repeat(np.arange(25), 8)  # more classes than rows in the validation set
    for y in (single, many):
        with pytest.raises(DataError, match="drawn class by class"):
            ep.GradientBoostingClassifier(**options).fit(X, y)
    model = ep.GradientBoostingClassifier(keep_best=True, **options).fit(X, single)
    assert model.classes_.tolist() == [0, 1, 2]
    assert len(ep.GradientBoostingClassifier(keep_best=True, **options).fit(X, many).classes_) == 25


def test_trees_remember_what_they_were_grown_with(tmp_path):
    model = ep.GradientBoostingRegressor(n_estimators=3, max_depth=1, learning_rate=0.5, warm_start=True).fit(X, Y)
    first = [tree.predict(X) for tree in model.estimators_[:, 0]]
    model.set_params(n_estimators=5, max_depth=2, learning_rate=0.1).fit(X, Y)
    model.save(tmp_path / "m.epi")
    for fitted in (model, ep.load(tmp_path / "m.epi")):
        assert [tree.max_depth for tree in fitted.estimators_[:, 0]] == [1, 1, 1, 2, 2]
        for tree, expected in zip(fitted.estimators_[:3, 0], first, strict=True):
            assert_array_equal(tree.predict(X), expected)


def test_verbose_prints_the_table_of_scikit_learn(capsys):
    for verbose, rounds in ((1, [*range(1, 11), 20, 30]), (2, [*range(1, 36)])):
        model = ep.GradientBoostingRegressor(n_estimators=35, subsample=0.5, random_state=0, verbose=verbose).fit(X, Y)
        header, *lines = capsys.readouterr().out.splitlines()
        assert header == f"{'Iter':>10} {'Train Loss':>16} {'OOB Improve':>16} {'Remaining Time':>16}"
        assert [int(line.split()[0]) for line in lines] == rounds
        shown = np.array([[float(word) for word in line.split()[1:3]] for line in lines])
        places = np.array(rounds) - 1
        assert_allclose(shown[:, 0], model.train_score_[places], atol=6e-5)
        assert_allclose(shown[:, 1], model.oob_improvement_[places], atol=6e-5)
        assert all(line.endswith("s") and len(line) == len(header) for line in lines)


@pytest.mark.parametrize("scale", [1e39, 1e300])
@pytest.mark.parametrize("options", [{}, {"loss": "huber", "alpha": 0.9}, {"subsample": 0.5}, {"loss": "poisson"}])
def test_targets_beyond_32_bits_are_refused_in_our_words(scale, options):
    with pytest.raises(DataError, match="y, sample_weight: the weighted gradients"):
        ep.GradientBoostingRegressor(**options).fit(X, Y**2 * scale / Y.max() ** 2)


@pytest.mark.parametrize("light", [0, 1])
@pytest.mark.parametrize("subsample", [0.9, 1.0])
def test_a_class_of_next_to_no_weight_has_finite_scores(light, subsample):
    weight = np.where(light == LABELS, 1e-300, 1.0)
    model = ep.GradientBoostingClassifier(n_estimators=5, subsample=subsample, random_state=0)
    model.fit(X, LABELS, sample_weight=weight)
    assert np.isfinite(model.decision_function(X)).all()
    assert (model.predict(X) == 1 - light).all()


LOSSES = [{}, {"loss": "absolute_error"}, {"order": 1, "loss": "poisson"}, {"loss": "huber"}]


@pytest.mark.parametrize("rate", [1e3, 1e20, 1e150, 1e300])
@pytest.mark.parametrize("options", LOSSES)
def test_learning_rates_of_any_size(rate, options):
    y = np.abs(Y) if options.get("loss") == "poisson" else Y
    model = ep.GradientBoostingRegressor(n_estimators=20, learning_rate=rate, **options).fit(X, y)
    # Steps that raise the loss are halved or taken back, and leave the scores as the trees give them.
    assert (np.diff(model.history_.objective) <= 0).all()
    assert_allclose(model._loss().row_values(y, model._scores(X)).mean(), model.history_.objective[-1], rtol=1e-6)
    for sampled in ({"subsample": 0.5}, {"max_features": 2}):
        model.set_params(**sampled, random_state=0)
        try:
            assert np.isfinite(model.fit(X, y).predict(X)).all()
        except ParameterError as error:
            assert f"learning_rate={rate:g}: the steps on samples" in str(error)  # noqa: PT017


@pytest.mark.parametrize("weight", [1e200, 1e307, 1e-200])
@pytest.mark.parametrize("cls", [ep.GradientBoostingRegressor, ep.HistGradientBoostingRegressor])
def test_weights_beyond_32_bits_are_refused_in_our_words(cls, weight):
    with pytest.raises(DataError, match="sample_weight: the weights add up to"):
        cls().fit(X, Y, sample_weight=np.full(200, weight))


def test_tiny_targets_of_a_logarithmic_link():
    with pytest.raises(DataError, match="y, sample_weight: the weighted gradients"):  # and no warning of NumPy's
        ep.GradientBoostingRegressor(loss="gamma", n_estimators=5).fit(X, 1e-300 * (Y + 1))


# ------------------------------------------------------------------------------------------- HistGradientBoosting


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "gamma", "poisson", "quantile"])
def test_the_engine_is_the_same(loss):
    quantile = {"quantile": 0.7} if loss == "quantile" else {}
    hist = ep.HistGradientBoostingRegressor(loss, max_iter=15, min_samples_leaf=10, **quantile).fit(X, Y + 1)
    same = ep.GradientBoostingRegressor(loss=loss, n_estimators=15, min_samples_leaf=10, **quantile).fit(X, Y + 1)
    assert_array_equal(hist.predict(X), same.predict(X))
    assert hist.n_iter_ == 15


def test_the_classifier_too():
    for y in (LABELS, np.digitize(Y, [10, 16])):
        hist = ep.HistGradientBoostingClassifier(max_iter=9, class_weight="balanced").fit(X, y)
        same = ep.GradientBoostingClassifier(n_estimators=9, min_samples_leaf=20, class_weight="balanced").fit(X, y)
        assert_array_equal(hist.predict_proba(X), same.predict_proba(X))
        assert len(list(hist.staged_predict(X))) == hist.n_iter_ == 9


def test_early_stopping_by_loss_and_by_score():
    A, b = make_hastie_10_2(600, random_state=0)
    A_val, b_val = make_hastie_10_2(300, random_state=1)
    options = {"max_iter": 300, "early_stopping": True, "n_iter_no_change": 5, "min_samples_leaf": 10, "tol": 1e-3}
    model = ep.HistGradientBoostingClassifier(**options).fit(A, b, X_val=A_val, y_val=b_val)
    losses = [log_loss(b_val, p) for p in model.staged_predict_proba(A_val)]
    assert_allclose(-model.validation_score_[1:], losses, rtol=1e-6)
    assert model.n_iter_ == len(losses) < 300
    reference = [losses[i - 5] for i in range(5, len(losses))]
    stale = [min(losses[i - 4 : i + 1]) >= r - 1e-3 for i, r in enumerate(reference, start=5)]
    assert stale[-1]
    assert not any(stale[:-1])
    for scoring in ("accuracy", None, lambda m, rows, y: accuracy_score(y, m.predict(rows))):
        model = ep.HistGradientBoostingClassifier(**options, scoring=scoring).fit(A, b, X_val=A_val, y_val=b_val)
        scores = [accuracy_score(b_val, p) for p in model.staged_predict(A_val)]
        assert_allclose(model.validation_score_[1:], scores)
        assert model.n_iter_ < 300


def test_which_rows_stop_a_fit():
    model = ep.HistGradientBoostingRegressor(max_iter=5).fit(X, Y)
    assert not model.do_early_stopping_
    assert len(model.train_score_) == len(model.validation_score_) == 0
    options = {"max_iter": 5, "early_stopping": True, "random_state": 0}
    on_training = ep.HistGradientBoostingRegressor(**options, validation_fraction=None).fit(X, Y)
    assert len(on_training.train_score_) == 6
    assert len(on_training.validation_score_) == 0
    assert_array_equal(on_training.predict(X), model.predict(X))
    assert ep.HistGradientBoostingRegressor(**options, validation_fraction=50).fit(X, Y).trees_["count"][0] == 150
    many = np.tile(X, (51, 1)), np.tile(Y, 51)
    assert ep.HistGradientBoostingRegressor(max_iter=1).fit(*many).do_early_stopping_
    with pytest.raises(ParameterError, match="early_stopping=False"):
        ep.HistGradientBoostingRegressor(early_stopping=False).fit(X, Y, X_val=X, y_val=Y)
    with pytest.raises(DataError, match="y_val is provided, but X_val was not"):
        ep.HistGradientBoostingRegressor().fit(X, Y, y_val=Y)
    with pytest.raises(ParameterError, match="quantile=None"):
        ep.HistGradientBoostingRegressor("quantile").fit(X, Y)


def test_rounds_are_added():
    options = {"min_samples_leaf": 5, "early_stopping": True, "n_iter_no_change": 100, "random_state": 1}
    whole = ep.HistGradientBoostingRegressor(max_iter=30, **options).fit(X, Y)
    grown = ep.HistGradientBoostingRegressor(max_iter=12, warm_start=True, **options).fit(X, Y)
    grown.set_params(max_iter=30).fit(X, Y)
    assert_array_equal(grown.predict(X), whole.predict(X))
    assert_allclose(grown.validation_score_, whole.validation_score_)
    with pytest.raises(ParameterError, match="max_iter=5 must be larger than or equal to n_iter_=30"):
        grown.set_params(max_iter=5).fit(X, Y)


@pytest.mark.parametrize("cls", [ep.HistGradientBoostingClassifier, ep.HistGradientBoostingRegressor])
def test_levels_of_the_histogram_classes(cls):
    rng = np.random.default_rng(0)
    level = rng.integers(-2, 5, 300)
    target = (level % 2 == 0).astype(int)
    options = {"max_iter": 5, "min_samples_leaf": 5, "categorical_features": [0], "max_bins": 5}
    column = level[:, None].astype(float)
    missing = np.where(level[:, None] < 0, np.nan, level[:, None])
    model, expected = cls(**options).fit(column, target), cls(**options).fit(missing, target)
    assert model.categories_[0].tolist() == [0, 1, 2, 3, 4]
    assert_array_equal(model.predict(column), expected.predict(missing))
    options["max_bins"] = 4
    with pytest.raises(DataError, match=r"at index 0 is expected to have a cardinality <= 4 .* cardinality of 5"):
        cls(**options).fit(column, target)
    frame = pd.DataFrame({"f": pd.Categorical(level.astype(str))})
    with pytest.raises(DataError, match=r"feature 'f' is expected to have a cardinality <= 4 .* cardinality of 7"):
        cls(max_bins=4).fit(frame, target)


def test_categories_and_files(tmp_path):
    columns = np.column_stack([X[:, 0], np.random.default_rng(0).integers(0, 4, 200)])
    target = (columns[:, 1] % 2 == 0).astype(float)
    model = ep.HistGradientBoostingRegressor(categorical_features=[1], max_iter=30).fit(columns, target)
    assert_array_equal(model.is_categorical_, [False, True])
    assert ep.HistGradientBoostingRegressor(max_iter=1).fit(X, Y).is_categorical_ is None
    model.save(tmp_path / "m.epi")
    assert_array_equal(ep.load(tmp_path / "m.epi").predict(columns), model.predict(columns))
    assert model.certificate_.kind == "none"
