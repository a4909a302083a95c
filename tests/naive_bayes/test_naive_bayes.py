"""Naive Bayes against scikit-learn, by hand, and by the formula with entries left out."""

import itertools

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn import naive_bayes

import epicycle as ep
from epicycle.exceptions import DataError, ParameterError

DISCRETE = ["BernoulliNB", "CategoricalNB", "ComplementNB", "MultinomialNB"]
ALL = [*DISCRETE, "GaussianNB"]


def table(seed=0, n=300, p=5, classes=3):
    random = np.random.default_rng(seed)
    y = random.integers(0, classes, n)
    return (
        random.poisson(1 + y[:, None], size=(n, p)).astype(np.float64),
        y,
        random.integers(0, 4, n).astype(np.float64),
    )


# ------------------------------------------------------------------------------------------------ against references


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ALL)
def test_agrees_with_scikit_learn(name, weighted, dtype):
    X, y, w = table()
    labels = np.array(["a", "b", "c"])[y]
    w += 0.5  # scikit-learn counts the levels of rows without weight
    ours, theirs = (getattr(m, name)().fit(X.astype(dtype), labels, w if weighted else None) for m in (ep, naive_bayes))
    assert_array_equal(ours.classes_, theirs.classes_)
    assert_allclose(ours.class_count_, theirs.class_count_)
    tolerance = 1e-6 if dtype is np.float32 else 1e-8  # its var_smoothing takes the variance without weights
    assert_allclose(ours.predict_joint_log_proba(X), theirs.predict_joint_log_proba(X), rtol=tolerance)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.certificate_.holds


@pytest.mark.parametrize("name", ["BernoulliNB", "ComplementNB", "MultinomialNB"])
@pytest.mark.parametrize(
    "options",
    [{"alpha": 0.0}, {"alpha": [0.1, 1, 2, 3, 4]}, {"fit_prior": False}, {"class_prior": [0.2, 0.3, 0.5]}],
    ids=str,
)
def test_sparse_rows_and_options_agree(name, options):
    X, y, w = table(1)
    X[:, 0] *= y  # without smoothing an event has probability zero in class 0
    ours = getattr(ep, name)(**options).fit(sp.csr_array(X), y, w)
    dense = getattr(ep, name)(**options).fit(X, y, w)
    assert_allclose(ours.feature_log_prob_, dense.feature_log_prob_)
    probabilities = ours.predict_proba(sp.csr_array(X))
    assert_allclose(probabilities, dense.predict_proba(X), atol=1e-12)
    assert np.isfinite(probabilities).all()
    # Without smoothing scikit-learn's scores are 0 * inf; an alpha for each feature stops its BernoulliNB.
    if options.get("alpha") != 0.0 and (name != "BernoulliNB" or "alpha" not in options):
        theirs = getattr(naive_bayes, name)(**options).fit(X, y, w)
        assert_allclose(probabilities, theirs.predict_proba(X), rtol=1e-9, atol=1e-14)


def test_counts_by_hand():
    # Two texts of "spam" with words 3 + 1, one of "ham" with 1 + 1, vocabulary of two words, Laplace's rule.
    model = ep.MultinomialNB().fit([[2, 1], [1, 0], [1, 1]], ["spam", "spam", "ham"])
    assert_allclose(np.exp(model.feature_log_prob_), [[2 / 4, 2 / 4], [4 / 6, 2 / 6]])
    assert_allclose(np.exp(model.class_log_prior_), [1 / 3, 2 / 3])
    smoothed = ep.MultinomialNB(prior_alpha=1.0, alpha=[[0, 0], [1, 2]]).fit([[2, 1], [1, 0], [1, 1]], [1, 1, 0])
    assert_allclose(np.exp(smoothed.class_log_prior_), [2 / 5, 3 / 5])
    assert_allclose(np.exp(smoothed.feature_log_prob_), [[1 / 2, 1 / 2], [4 / 7, 3 / 7]])


# ------------------------------------------------------------------------------------------------ missing entries


def test_missing_numbers_are_integrated_out():
    random = np.random.default_rng(2)
    X, y = random.normal(size=(200, 3)), random.integers(0, 2, 200)
    X[random.random(X.shape) < 0.3] = np.nan
    model = ep.GaussianNB(var_smoothing=0).fit(X, y)
    for k in range(2):
        rows = X[y == k]
        assert_allclose(model.theta_[k], np.nanmean(rows, axis=0))
        assert_allclose(model.var_[k], np.nanvar(rows, axis=0))
    density = norm(model.theta_[:, None], np.sqrt(model.var_)[:, None]).logpdf(X)  # (class, row, feature)
    expected = np.nansum(density, axis=2).T + np.log(model.class_prior_)
    assert_allclose(model.predict_joint_log_proba(X), expected, rtol=1e-10)
    assert_allclose(model.predict_proba(np.full((1, 3), np.nan)), [model.class_prior_])


def test_missing_events_are_summed_out():
    random = np.random.default_rng(3)
    X, y = random.integers(0, 2, (60, 3)).astype(float), random.integers(0, 2, 60)
    X[random.random(X.shape) < 0.3] = np.nan
    row = np.array([[1.0, np.nan, np.nan]])
    for model in (ep.BernoulliNB().fit(X, y), ep.CategoricalNB().fit(X, y), ep.MixedNB().fit(X, y)):
        every = [np.concatenate([[1.0], rest]) for rest in itertools.product([0.0, 1.0], repeat=2)]
        summed = np.exp(model.predict_joint_log_proba(np.array(every))).sum(axis=0)
        assert_allclose(np.exp(model.predict_joint_log_proba(row)[0]), summed)
        known = ~np.isnan(X[:, 0])
        ones = [np.sum(X[known & (y == k), 0]) for k in range(2)]
        assert_allclose(
            np.exp(model.predict_joint_log_proba(row)[0] - model.class_log_prior_),
            [(ones[k] + 1) / (np.sum(known & (y == k)) + 2) for k in range(2)],
        )


def test_columns_far_from_zero_keep_their_digits():
    random = np.random.default_rng(4)
    noise, y = random.normal(size=(4000, 2)), random.integers(0, 2, 4000)
    X = 1e9 + np.round(1e3 * (noise + y[:, None])) / 1e3  # spacing of float64 there: 1e-7
    model = ep.GaussianNB(var_smoothing=0)
    for part in np.array_split(np.argsort(y, kind="stable"), 7):  # batches of one class
        model.partial_fit(X[part], y[part], classes=[0, 1])
    # Means are rounded to 1e-7; sums of squares about zero would be wrong by 1e2.
    assert_allclose(model.var_, [np.var(X[y == k] - 1e9, axis=0) for k in range(2)], rtol=1e-6)


# ------------------------------------------------------------------------------------------------ one statistic


@pytest.mark.parametrize("name", [*ALL, "MixedNB"])
@settings(max_examples=40)
@given(data=st.data())
def test_repetition_order_and_batches(name, data):
    n, p = data.draw(st.integers(2, 25)), data.draw(st.integers(1, 4))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    X, y = random.integers(0, 4, (n, p)).astype(np.float64), random.integers(0, data.draw(st.integers(1, 4)), n)
    w = random.integers(0, 3, n)
    w[random.integers(n)] = 2
    make = getattr(ep, name)
    options = {"var_smoothing": 1e-3} if name in ("GaussianNB", "MixedNB") else {}
    if name == "MixedNB":
        options["kinds"] = dict.fromkeys(range(p), data.draw(st.sampled_from(["gaussian", "categorical", "bernoulli"])))
    weighted = make(**options).fit(X, y, w)
    order = random.permutation(np.repeat(np.arange(n), w))
    repeated = make(**options).fit(X[order], y[order])
    assert_array_equal(weighted.classes_, repeated.classes_)
    scores = repeated.predict_joint_log_proba(X)
    assert_allclose(weighted.predict_joint_log_proba(X), scores, rtol=1e-9, atol=1e-9)
    late = make(**options)
    for part in np.array_split(order, data.draw(st.integers(1, 3))):
        if len(part):
            late.partial_fit(X[part], y[part])  # classes appear as they come
    assert_array_equal(late.classes_, repeated.classes_)
    assert_allclose(late.predict_joint_log_proba(X), scores, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("make", [ep.GaussianNB, ep.LinearDiscriminantAnalysis])
def test_labels_outside_of_the_classes_that_a_call_names(make):
    X, y, _ = table(6, n=60)
    with pytest.raises(ValueError, match=r"classes: The target label.* in y do not exist in the initial classes"):
        make().partial_fit(X, y, classes=[y.max() + 1])


@pytest.mark.parametrize("name", [*ALL, "MixedNB"])
def test_files_and_clusters_give_the_same(name, tmp_path, client):
    X, y, w = table(5, n=2000)
    w += 0.5
    options = {"numeric": "binned", "n_bins": 4} if name == "MixedNB" else {}
    model = getattr(ep, name)(calibration="temperature", **options)
    inside = model.fit(X, y, w)
    scores, temperature = inside.predict_log_proba(X), inside.temperature_
    frame = pd.DataFrame(X, columns=list("abcde")).assign(y=y, w=w)
    frame.to_parquet(tmp_path / "rows.parquet")
    scan = ep.scan(tmp_path / "rows.parquet", target="y", weight="w", batch_rows=300)
    lazy = [da.from_array(a, chunks=(450, *a.shape[1:])) for a in (X, y, w)]
    for fitted in (model.fit(scan), model.fit(*lazy)):
        assert_allclose(fitted.temperature_, temperature, rtol=1e-8)
        values = X if fitted.n_features_in_ == 5 else None
        if hasattr(fitted, "feature_names_in_"):
            values = frame[list("abcde")]
        assert_allclose(fitted.predict_log_proba(values), scores, rtol=1e-8, atol=1e-10)
    assert_allclose(model.predict_proba(lazy[0]).compute(), np.exp(scores), rtol=1e-7)


def test_any_number_of_threads_gives_the_same_bits():
    X, y, w = table(6, n=20_000, p=40)
    for name, rows in itertools.product(["MultinomialNB", "GaussianNB"], [X, sp.csr_array(X)]):
        if name == "GaussianNB" and sp.issparse(rows):
            continue
        one, two = (getattr(ep, name)(n_jobs=k).fit(rows, y, w + 0.1) for k in (1, 2))
        assert_array_equal(one.predict_joint_log_proba(rows), two.predict_joint_log_proba(rows))


# ------------------------------------------------------------------------------------------------ mixed tables


def test_a_mixed_table_is_the_sum_of_its_parts():
    random = np.random.default_rng(7)
    n = 300
    y = random.integers(0, 2, n)
    frame = pd.DataFrame(
        {
            "size": random.normal(y, 1.0),
            "town": pd.Categorical(np.array(["x", "y", "z"])[random.integers(0, 2 + y)]),
            "yes": random.integers(0, 2, n),
            "w1": random.poisson(1 + y),
            "w2": random.poisson(2 - y),
        }
    )
    model = ep.MixedNB(kinds={"w1": "multinomial", 4: "multinomial"}).fit(frame, y)
    assert model.kinds_ == ["gaussian", "categorical", "bernoulli", "multinomial", "multinomial"]
    codes = frame["town"].cat.codes.to_numpy()[:, None]
    parts = [
        (naive_bayes.GaussianNB(), frame[["size"]].to_numpy()),
        (naive_bayes.CategoricalNB(), codes),
        (naive_bayes.BernoulliNB(), frame[["yes"]].to_numpy()),
        (naive_bayes.MultinomialNB(), frame[["w1", "w2"]].to_numpy()),
    ]
    prior = np.log(np.bincount(y) / n)
    total = prior + sum(part.fit(X, y).predict_joint_log_proba(X) - prior for part, X in parts)
    assert_allclose(model.predict_joint_log_proba(frame), total)
    odds = model.explain(frame.iloc[:5])
    assert_allclose(odds.total, total[:5, 1] - total[:5, 0])
    assert odds.names == list(frame.columns)


def test_bins_of_equal_weight():
    random = np.random.default_rng(8)
    X, y, w = random.normal(size=(400, 2)), random.integers(0, 2, 400), random.integers(1, 4, 400)
    X[:, 1] = np.round(X[:, 1])  # ties: fewer bins
    model = ep.MixedNB(numeric="binned", n_bins=5).fit(X, y, w)
    repeated = np.repeat(X, w, axis=0)
    for j in range(2):
        expected = np.unique(np.quantile(repeated[:, j], [0.2, 0.4, 0.6, 0.8], method="inverted_cdf"))
        assert_array_equal(model.bin_edges_[j], expected)
    binned = np.column_stack([np.searchsorted(model.bin_edges_[j], X[:, j]) for j in range(2)])
    theirs = naive_bayes.CategoricalNB().fit(binned, y, w)
    assert_allclose(model.predict_proba(X), theirs.predict_proba(binned))


def test_levels_are_found_by_value():
    frame = pd.DataFrame({"c": pd.Categorical(["b", "a", "b", "c"])})
    model = ep.CategoricalNB().fit(frame, [0, 1, 0, 1])
    other = pd.DataFrame({"c": pd.Categorical(["c", "a", "b"], categories=["c", "b", "a"])})
    assert_array_equal(model.predict(other), [1, 1, 0])
    unseen = pd.DataFrame({"c": pd.Categorical(["zebra"])})
    assert_allclose(model.predict_proba(unseen), [[0.5, 0.5]])  # left out: the prior alone
    with pytest.raises(DataError, match="zebra"):
        model.partial_fit(unseen, [0])


# ------------------------------------------------------------------------------------------------ what is said of it


@pytest.mark.parametrize("name", ALL)
def test_explanations_add_up_to_the_log_odds(name):
    X, y, _ = table(9)
    model = getattr(ep, name)().fit(X, y)
    for rows in [X[:20]] if name in ("GaussianNB", "CategoricalNB") else [X[:20], sp.csr_array(X[:20])]:
        odds = model.explain(rows, 2, 0)
        scores = model.predict_joint_log_proba(rows)
        assert_allclose(odds.total, scores[:, 2] - scores[:, 0], atol=1e-9)
        assert len(odds.top(0, 3)) == 3
        assert "against 0" in str(odds)
    with pytest.raises(ParameterError, match="positive=7"):
        model.explain(X, 7)


def test_temperature_minimises_the_loss_of_rows_left_out():
    random = np.random.default_rng(10)
    y = random.integers(0, 2, 600)
    x = random.normal(y[:, None], 2.0, size=(600, 1))
    X = np.repeat(x, 8, axis=1)  # eight copies of one feature: log-odds are eight times too large
    plain, model = ep.GaussianNB().fit(X, y), ep.GaussianNB(calibration="temperature").fit(X, y)
    assert model.temperature_ == pytest.approx(8, rel=0.5)
    assert_array_equal(model.predict(X), plain.predict(X))
    fresh_y = random.integers(0, 2, 4000)
    fresh = np.repeat(random.normal(fresh_y[:, None], 2.0, size=(4000, 1)), 8, axis=1)
    losses = [-np.mean(m.predict_log_proba(fresh)[np.arange(4000), fresh_y]) for m in (plain, model)]
    best = -np.mean(ep.GaussianNB().fit(x, y).predict_log_proba(fresh[:, :1])[np.arange(4000), fresh_y])
    assert losses[1] < best + 0.01 < losses[0]


@pytest.mark.parametrize(
    ("model", "X", "message"),
    [
        (ep.MultinomialNB(), [[-1.0], [1.0]], "Negative values"),
        (ep.MultinomialNB(alpha=[1, 2]), [[1.0], [1.0]], "n_features"),
        (ep.MultinomialNB(alpha=[-1.0]), [[1.0], [1.0]], "alpha"),
        (ep.MultinomialNB(class_prior=[1.0]), [[1.0], [1.0]], "Number of priors"),
        (ep.GaussianNB(priors=[0.5, 0.6]), [[1.0], [2.0]], "sum of the priors"),
        (ep.GaussianNB(), [[np.inf], [1.0]], "infinity"),
        (ep.GaussianNB(), [[1e300], [-1e300]], "overflow"),
        (ep.CategoricalNB(min_categories=[1, 2]), [[1.0], [1.0]], "min_categories"),
        (ep.CategoricalNB(), [[1e15], [1.0]], "levels of column 0"),
        (ep.MixedNB(kinds={"a": "gaussian"}), [[1.0], [2.0]], "'a'"),
        (ep.MixedNB(kinds={0: "normal"}), [[1.0], [2.0]], "'normal'"),
    ],
    ids=str,
)
def test_bad_requests_are_named(model, X, message):
    with pytest.raises((DataError, ParameterError, MemoryError), match=message):
        model.fit(np.repeat(X, 2, axis=0), [0, 0, 1, 1])
