"""Every split is the best of all: an exhaustive search in 1,000 random problems, at the root and below it."""

import numpy as np
import pytest
from every_split import best_gain, cost
from numpy.testing import assert_allclose

from epicycle import DecisionTreeClassifier, DecisionTreeRegressor

CRITERIA = ["squared_error", "absolute_error", "poisson", "gini", "entropy"]
CASES = {
    "plain": {},
    "weights": {"weighted": True},
    "missing": {"missing": 0.3},
    "many ties": {"levels": 3, "missing": 0.1},
    "few rows a leaf": {"min_leaf": 5, "weighted": True, "missing": 0.1},
    "little weight a leaf": {"min_weight": 0.2, "weighted": True},
    "categories": {"categorical": (0, 2), "levels": 5},
    "categories, missing, weights": {"categorical": (1,), "levels": 5, "missing": 0.3, "weighted": True},
}


def problem(seed, criterion, *, n=26, p=3, levels=9, missing=0.0, weighted=False, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, levels, size=(n, p)).astype(float)
    if levels > 5:
        X[:, 0] = rng.normal(size=n)
    y = rng.normal(size=n) + np.sin(X[:, 1]) + 0.2 * X[:, -1]
    if criterion in ("gini", "entropy"):
        y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    elif criterion == "poisson":
        y = rng.poisson(np.exp(np.clip(y, -2, 2))) + 0.1
    X[rng.random(X.shape) < missing] = np.nan
    return X, y, rng.uniform(0.2, 3.0, n) if weighted else np.ones(n)


def children(tree, node=0):
    left = tree.children_left[node]
    costs = tree.impurity * tree.weighted_n_node_samples
    return costs[node] - costs[left] - costs[left + 1]


def check(seed, criterion, classes, case):
    options = dict(CASES[case])
    rules = {name: options.pop(name) for name in ("min_leaf", "min_weight", "categorical") if name in options}
    X, y, w = problem(seed, criterion, classes=classes, **options)
    categorical = rules.get("categorical", ())
    make = DecisionTreeClassifier if criterion in ("gini", "entropy") else DecisionTreeRegressor
    share = rules.get("min_weight", 0.0)
    model = make(
        criterion=criterion,
        max_depth=2,
        min_samples_leaf=rules.get("min_leaf", 1),
        min_weight_fraction_leaf=share,
        categorical_features=list(categorical) or None,
    ).fit(X, y, sample_weight=w)
    tree, reached = model.tree_, model.decision_path(X).toarray().astype(bool)
    n_checked = 0
    for node in range(tree.node_count):
        rows = reached[:, node]
        assert_allclose(
            tree.impurity[node] * tree.weighted_n_node_samples[node], cost(y[rows], w[rows], criterion), atol=1e-9
        )
        if tree.is_leaf[node] and (tree.depth[node] == 2 or len(np.unique(y[rows])) == 1):
            continue
        best = best_gain(
            X[rows],
            y[rows],
            w[rows],
            criterion,
            categorical=categorical,
            min_leaf=rules.get("min_leaf", 1),
            min_weight=share * w.sum(),
        )
        if tree.is_leaf[node]:
            assert best == -np.inf
        else:
            assert children(tree, node) == pytest.approx(best, rel=1e-8, abs=1e-9)
            n_checked += 1
    return n_checked


# Medians have no order of levels that is optimal: their categories have a test of their own below.
PROBLEMS = [
    (criterion, classes, case)
    for criterion, classes in [*((c, 2) for c in CRITERIA), ("gini", 4), ("entropy", 3)]
    for case, options in CASES.items()
    if criterion != "absolute_error" or "categorical" not in options
]


@pytest.mark.parametrize(("criterion", "classes", "case"), PROBLEMS)
def test_the_split_of_an_exhaustive_search(criterion, classes, case, repetitions):
    problems = repetitions(20)
    assert sum(check(seed, criterion, classes, case) for seed in range(problems)) >= problems


@pytest.mark.parametrize("l2", [0.5, 5.0])
def test_ridge_on_leaf_values(l2):
    for seed in range(20):
        X, y, w = problem(seed, "squared_error", levels=5, missing=0.2, weighted=True)
        y = y + 2.0
        for categorical in ((), (0, 1)):
            model = DecisionTreeRegressor(max_depth=1, leaf_l2=l2, categorical_features=list(categorical) or None)
            tree = model.fit(X, y, sample_weight=w).tree_
            best = best_gain(X, y, w, "squared_error", categorical=categorical, l2=l2)
            if best <= 0:
                assert tree.node_count == 1
                continue
            assert children(tree) == pytest.approx(best, rel=1e-8)
            leaf = model.apply(X) == 1
            assert tree.value[1, 0] == pytest.approx((w[leaf] @ y[leaf]) / (w[leaf].sum() + l2))


def test_a_leaf_that_does_not_pay_its_cost_is_not_made():
    X, y, w = problem(0, "squared_error", n=60)
    best = best_gain(X, y, w, "squared_error")
    assert DecisionTreeRegressor(leaf_cost=best * 1.001).fit(X, y).get_n_leaves() == 1
    model = DecisionTreeRegressor(leaf_cost=best * 0.5).fit(X, y)
    assert model.get_n_leaves() > 1
    tree = model.tree_
    inner = np.flatnonzero(~tree.is_leaf)
    assert min(children(tree, node) for node in inner) > best * 0.5


def test_levels_of_absolute_error_are_cut_in_the_order_of_their_medians():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 6, 300)
    y = np.array([5.0, 0.0, 5.2, 0.3, 5.1, 0.1])[level] + 0.1 * rng.standard_t(2, size=300)
    model = DecisionTreeRegressor(criterion="absolute_error", max_depth=1, categorical_features=[0])
    model.fit(level[:, None].astype(float), y)
    assert set(model.tree_.left_levels(0)) in ({0, 2, 4}, {1, 3, 5})


def test_many_levels_of_many_classes_are_ordered_along_a_principal_component():
    rng = np.random.default_rng(1)
    level = rng.integers(0, 40, 4000)
    y = np.where(level % 2, rng.integers(0, 2, 4000), rng.integers(2, 4, 4000))  # two groups of classes
    model = DecisionTreeClassifier(max_depth=1, categorical_features=[0]).fit(level[:, None].astype(float), y)
    sides = set(model.tree_.left_levels(0).tolist())
    assert sides in (set(range(0, 40, 2)), set(range(1, 40, 2)))


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "poisson"])
def test_random_thresholds_lie_between_the_numbers_and_obey_the_rules(criterion):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(400, 4)), rng.gamma(2.0, size=400)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 3] = rng.integers(0, 5, 400)
    roots = set()
    for seed in range(8):
        model = DecisionTreeRegressor(
            criterion=criterion, splitter="random", min_samples_leaf=9, random_state=seed, categorical_features=[3]
        ).fit(X, y)
        assert model.tree_.n_node_samples.min() >= 9
        assert model.tree_.n_node_samples[model.tree_.is_leaf].sum() == 400
        roots.add(float(model.tree_.threshold[0]))
        assert model.fit(X, y).tree_.nodes.tobytes() == model.fit(X, y).tree_.nodes.tobytes()
    assert len(roots) > 3
