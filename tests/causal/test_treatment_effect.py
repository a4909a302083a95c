"""Average effects: closed forms, estimating equations, coverage, and what every method keeps."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import brentq, minimize, root
from scipy.special import expit
from studies import KnownOutcome, KnownPropensity, sandwich, simulated

import epicycle as ep
from epicycle import TreatmentEffect
from epicycle.causal.effects._folds import content_folds, content_keys
from epicycle.causal.effects._methods import METHODS
from epicycle.causal.effects._overlap import crump_threshold, region_without_overlap
from epicycle.causal.effects._study import Study
from epicycle.exceptions import DataError, DataTypeError, OverlapWarning, ParameterError


@pytest.fixture(scope="module")
def study():
    return simulated()


def pairs(*methods):
    return [(m, e) for m in methods or METHODS for e in METHODS[m].estimands if e != "cate"]


# ---------------------------------------------------------------- closed forms and estimating equations


def test_difference_of_means(study):
    X, y, t, _ = study
    model = TreatmentEffect(method="difference").fit(X, y, treatment=t)
    assert_allclose(model.effect_, y[t == 1].mean() - y[t == 0].mean(), rtol=1e-13)
    error = np.sqrt(y[t == 1].var(ddof=1) / sum(t == 1) + y[t == 0].var(ddof=1) / sum(t == 0))
    assert_allclose(model.standard_error_, error, rtol=1e-12)
    assert_allclose(model.confidence_interval(0.9), model.effect_ + np.array([-1, 1]) * 1.6448536269514722 * error)


@pytest.mark.parametrize("estimand", ["ate", "att", "atc"])
def test_regression_with_interactions(study, estimand):
    X, y, t, _ = study
    model = TreatmentEffect(estimand, "regression").fit(X, y, treatment=t)
    rows = {"ate": t >= 0, "att": t == 1, "atc": t == 0}[estimand]
    C = X - X[rows].mean(0)
    Z = np.column_stack([np.ones(len(y)), t, C, C * t[:, None]])
    b = np.linalg.lstsq(Z, y, rcond=None)[0]
    assert_allclose(model.effect_, b[1], rtol=1e-10)

    def equations(theta):
        m, (a0, a1), (b0, b1) = theta[:3], theta[3:5], theta[5:].reshape(2, 3)
        inflation = np.where(t == 1, np.sqrt(sum(t == 1) / (sum(t == 1) - 4)), np.sqrt(sum(t == 0) / (sum(t == 0) - 4)))
        r = (y - np.where(t == 1, a1 + (X - m) @ b1, a0 + (X - m) @ b0)) * inflation
        D = np.column_stack([np.ones(len(y)), X - m])
        return np.column_stack([rows[:, None] * (X - m), D * ((1 - t) * r)[:, None], D * (t * r)[:, None]])

    theta = np.concatenate([X[rows].mean(0), [b[0], b[0] + b[1]], b[2:5], b[2:5] + b[5:]])
    # The inflation of residuals scales bread and meat alike: undo it in the bread.
    variance = sandwich_with(equations, theta, np.r_[np.full(4, sum(t == 0)), np.full(4, sum(t == 1))])
    assert_allclose(model.standard_error_, np.sqrt(variance * 400 / 399), rtol=1e-5)
    left = model.weights_[t == 1] @ X[t == 1] / model.weights_[t == 1].sum() - X[rows].mean(0)
    assert_allclose(left, 0, atol=1e-12)  # the implied weights balance exactly


def test_a_column_that_is_constant_in_an_arm_counts_for_nothing_there(study):
    """What the outcome of the treated would be elsewhere is not known; their mean is not split with the intercept."""
    X, y, t, _ = study
    only = np.where(t == 1, 3.0, np.random.default_rng(0).normal(size=len(y)))
    model = TreatmentEffect("cate", "regression").fit(np.c_[X, only], y, treatment=t)
    W = np.c_[np.ones(len(y)), X, only]
    treated = np.linalg.lstsq(W[t == 1][:, :4], y[t == 1], rcond=None)[0]
    control = np.linalg.lstsq(W[t == 0], y[t == 0], rcond=None)[0]
    assert_allclose(model.predict(np.c_[X, only]), W[:, :4] @ treated - W @ control, rtol=1e-8, atol=1e-8)


def sandwich_with(equations, theta, sizes):
    """Variance of theta[4] - theta[3] where rows of the bread were inflated by sqrt(n / (n - 4))."""
    g, n = equations(theta), 400
    J = np.empty((11, 11))
    for j in range(11):
        d = np.zeros(11)
        d[j] = 1e-6
        J[:, j] = (equations(theta + d).mean(0) - equations(theta - d).mean(0)) / 2e-6
    J[3:] /= np.sqrt(sizes / (sizes - 4))[:, None]
    inverse = np.linalg.inv(J)
    V = inverse @ (g.T @ g / n) @ inverse.T / n
    return V[3, 3] + V[4, 4] - 2 * V[3, 4]


def weights_of(estimand, e):
    h = {"ate": 1, "att": e, "atc": 1 - e, "ato": e * (1 - e)}[estimand]
    return h / e, h / (1 - e), h


@pytest.mark.parametrize("estimand", ["ate", "att", "atc", "ato"])
@pytest.mark.parametrize("stabilize", [True, False])
def test_inverse_probability_weights(study, estimand, stabilize):
    X, y, t, _ = study
    model = TreatmentEffect(estimand, "ipw", stabilize=stabilize).fit(X, y, treatment=t)
    Z = np.column_stack([np.ones(len(y)), X])

    def equations(theta):
        e = expit(Z @ theta[:4])
        w1, w0, h = weights_of(estimand, e)
        h = h * np.ones_like(e)
        if stabilize:
            rest = [t * w1 * (y - theta[4] - theta[5]), (1 - t) * w0 * (y - theta[5])]
        else:
            rest = [t * w1 * y - (1 - t) * w0 * y - theta[4] * h, np.zeros_like(y) + theta[5]]
        return np.column_stack([Z * (t - e)[:, None], *rest])

    solved = root(lambda theta: equations(theta).mean(0), np.zeros(6), tol=1e-13).x
    assert_allclose(model.effect_, solved[4], rtol=1e-7)
    assert_allclose(model.standard_error_, sandwich(equations, solved)[4] * np.sqrt(400 / 399), rtol=1e-4)


@pytest.mark.parametrize("estimand", ["ate", "att", "atc"])
def test_covariate_balancing_propensity(study, estimand):
    X, y, t, _ = study
    model = TreatmentEffect(estimand, "cbps").fit(X, y, treatment=t)
    Z = np.column_stack([np.ones(len(y)), X])

    def equations(theta):
        e = expit(Z @ theta[:4])
        w1, w0, _ = weights_of(estimand, e)
        moment = Z * (t * w1 - (1 - t) * w0)[:, None]
        return np.column_stack([moment, t * w1 * (y - theta[4] - theta[5]), (1 - t) * w0 * (y - theta[5])])

    start = np.r_[0, 0.6, -0.4, 0, 2.0, 1.0]
    solved = root(lambda theta: equations(theta).mean(0), start, tol=1e-13).x
    assert_allclose(model.effect_, solved[4], rtol=1e-6)
    assert_allclose(model.standard_error_, sandwich(equations, solved)[4] * np.sqrt(400 / 399), rtol=1e-4)
    assert_allclose(model.balance_["smd after"], 0, atol=1e-7)


def test_entropy_weights_are_nearest_to_equal_ones():
    """The primal problem by a general solver."""
    X, y, t, _ = simulated(60, 1, p=2)
    model = TreatmentEffect("att", "entropy").fit(X, y, treatment=t)
    C, m = X[t == 0], X[t == 1].mean(0)
    v = np.full(len(C), 1 / len(C))
    found = minimize(
        lambda v: v @ np.log(v),
        v,
        jac=lambda v: 1 + np.log(v),
        bounds=[(1e-9, 1)] * len(v),
        constraints=[{"type": "eq", "fun": lambda v: np.r_[v.sum() - 1, v @ (C - m)]}],
        options={"maxiter": 300, "ftol": 1e-13},
    )
    weights = model.weights_[t == 0]
    assert_allclose(weights / weights.sum(), found.x, atol=1e-5)


@pytest.mark.parametrize("estimand", ["ate", "att"])
def test_entropy_balancing(study, estimand):
    X, y, t, _ = study
    model = TreatmentEffect(estimand, "entropy").fit(X, y, treatment=t)
    target = t == 1 if estimand == "att" else t >= 0
    m = X[target].mean(0)
    v = model.weights_[t == 0]
    start = np.linalg.lstsq(np.c_[np.ones(len(v)), X[t == 0] - m], np.log(v), rcond=None)[0][1:]

    def equations(theta):  # m, beta of both arms, means of both arms
        m, b0, b1, (mu0, mu1) = theta[:3], theta[3:6], theta[6:9], theta[9:]
        D = X - m
        v0, v1 = (1 - t) * np.exp(D @ b0), t * np.exp(D @ b1)
        return np.column_stack([target[:, None] * D, v0[:, None] * D, v1[:, None] * D, v0 * (y - mu0), v1 * (y - mu1)])

    other = np.zeros(3) if estimand == "att" else -start
    start = np.r_[m, start, other, y[t == 0].mean(), y[t == 1].mean()]
    solved = root(lambda theta: equations(theta).mean(0), start, tol=1e-13).x
    assert_allclose(model.effect_, solved[10] - solved[9], rtol=1e-7)
    shifted = sandwich(lambda th: equations(np.r_[th[:10], th[9] + th[10]]), np.r_[solved[:10], solved[10] - solved[9]])
    assert_allclose(model.standard_error_, shifted[10] * np.sqrt(400 / 399), rtol=1e-4)


@pytest.mark.parametrize("estimand", ["ate", "att"])
def test_entropy_balancing_of_covariates_that_are_balanced(estimand):
    """All weights are 1: the effect is the difference of means, with the residuals of regressions as its noise."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(50, 2)), 2, axis=0)
    t = np.tile([0, 1], 50)
    y = X[:, 0] + t + rng.normal(size=100)
    model = TreatmentEffect(estimand, "entropy").fit(X, y, treatment=t)
    assert_allclose(model.weights_, model.weights_[0], rtol=1e-9)
    assert_allclose(model.effect_, y[t == 1].mean() - y[t == 0].mean(), rtol=1e-12)
    adjusted = TreatmentEffect(estimand, "regression").fit(X, y, treatment=t).standard_error_
    assert_allclose(model.standard_error_, adjusted, rtol=0.1)


def test_strata_by_hand():
    t = np.array([0, 0, 1, 1, 0, 0, 1, 1, 1, 1, 1, 0])
    y = np.array([1.0, 3, 5, 6, 0, 1, 2, 4, 4, 7, 3, 2])
    x = np.repeat([0.0, 1.0], [4, 8])[:, None]
    expected = {}
    for s in (0.0, 1.0):
        a, b = y[(x[:, 0] == s) & (t == 1)], y[(x[:, 0] == s) & (t == 0)]
        expected[s] = a.mean() - b.mean(), a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b)
    for estimand, share in (("ate", 8 / 12), ("att", 5 / 7), ("atc", 3 / 5)):
        model = TreatmentEffect(estimand, "strata", n_strata=2).fit(x, y, treatment=t)
        shares = np.array([1 - share, share])
        differences = np.array([expected[0.0][0], expected[1.0][0]])
        assert_allclose(model.effect_, shares @ differences, rtol=1e-12)
        size = {"ate": 12, "att": 7, "atc": 5}[estimand]
        of_shares = shares @ (differences - model.effect_) ** 2 / size
        variance = shares**2 @ [expected[0.0][1], expected[1.0][1]] + of_shares
        assert_allclose(model.standard_error_**2, variance, rtol=1e-12)


def test_strata_have_equal_shares_of_the_target(study):
    X, _, t, e = study
    y = (np.searchsorted(np.quantile(e[t == 1], [0.25, 0.5, 0.75]), e) + 1) * t.astype(float)  # the stratum's effect
    chosen = {"propensity_model": KnownPropensity(), "n_strata": 4}
    n = t.sum()
    assert_allclose(TreatmentEffect("att", "strata", **chosen).fit(X, y, treatment=t).effect_, 2.5, atol=4 / n)
    of_all = TreatmentEffect("ate", "strata", **chosen).fit(X, y, treatment=t)
    assert of_all.effect_ < 2.4  # the treated have the higher scores


def test_strata_without_both_arms_are_left_out():
    X = np.r_[np.zeros(12), np.ones(4)][:, None]
    t = np.r_[np.tile([0, 1], 6), np.zeros(4)]
    y = np.arange(16.0)
    with pytest.warns(OverlapWarning, match=r"25\.0% of the target rows"):
        model = TreatmentEffect(method="strata", propensity_model=ep.DecisionTreeClassifier()).fit(X, y, treatment=t)
    assert_allclose(model.effect_, 1.0)
    assert (model.weights_[12:] == 0).all()


@pytest.mark.parametrize("estimand", ["ate", "att", "atc"])
def test_doubly_robust_moments_with_known_models(study, estimand):
    X, y, t, e = study
    chosen = {"outcome_model": KnownOutcome(), "propensity_model": KnownPropensity()}
    model = TreatmentEffect(estimand, "aipw", **chosen).fit(X, y, treatment=t)
    Q0, Q1 = 0.8 + X[:, 0], 2.9 + X[:, 0]
    n, share = len(y), {"ate": 1.0, "att": t.mean(), "atc": 1 - t.mean()}[estimand]
    scores = {
        "ate": Q1 - Q0 + t * (y - Q1) / e - (1 - t) * (y - Q0) / (1 - e),
        "att": t * (y - Q0) - (1 - t) * e / (1 - e) * (y - Q0),
        "atc": (1 - t) * (Q1 - y) + t * (1 - e) / e * (y - Q1),
    }[estimand]
    assert_allclose(model.effect_, scores.mean() / share, rtol=1e-12)
    inside = {"ate": 1.0, "att": t, "atc": 1 - t}[estimand]
    psi = (scores - model.effect_ * inside) / share
    assert_allclose(model.standard_error_, psi.std() / np.sqrt(n - 1), rtol=1e-12)
    targeted = TreatmentEffect(estimand, "tmle", **chosen).fit(X, y, treatment=t)
    low, span = y.min(), np.ptp(y)
    moved = []
    for arm, Q, H in ((0, Q0, {"ate": 1 / (1 - e), "att": e / (1 - e)}), (1, Q1, {"ate": 1 / e, "atc": (1 - e) / e})):
        if estimand not in H:
            moved.append(y)
            continue
        q, r = np.log((Q - low) / (span - Q + low)), t == arm
        eps = brentq(
            lambda a, q=q, r=r, H=H: H[estimand][r] @ ((y[r] - low) / span - expit(q[r] + a)), -9, 9, xtol=1e-14
        )
        moved.append(low + span * expit(q + eps))
    expected = np.average(moved[1] - moved[0], weights=np.broadcast_to(inside, n))
    assert_allclose(targeted.effect_, expected, rtol=1e-9)


def test_partially_linear_model(study):
    X, y, _, _ = study
    rng = np.random.default_rng(3)
    dose = X[:, 0] + rng.normal(size=len(y))
    outcome = 1.7 * dose + X @ [1.0, 2.0, 0.0] + rng.normal(size=len(y))
    model = TreatmentEffect(method="dml").fit(X, outcome, treatment=dose)
    assert abs(model.effect_ - 1.7) < 3 * model.standard_error_ < 0.3
    known = TreatmentEffect(method="dml", outcome_model=KnownOutcome(), propensity_model=KnownOutcome())
    known.fit(X, outcome, treatment=dose)
    v, u = dose - 0.8 - X[:, 0], outcome - 0.8 - X[:, 0]
    tau = v @ u / (v @ v)
    assert_allclose(known.effect_, tau, rtol=1e-10)
    error = np.sqrt(np.sum(v**2 * (u - tau * v) ** 2)) / (v @ v)
    assert_allclose(known.standard_error_, error * np.sqrt(400 / 399), rtol=1e-10)
    with pytest.raises(AttributeError, match="numeric treatment"):
        _ = known.balance_


# ---------------------------------------------------------------- folds


class Witness(KnownOutcome):
    """Predicts only rows that it was not fitted to; the first column tells rows apart."""

    def fit(self, X, y, sample_weight=None):
        self.seen_ = set(X[:, 0])
        return super().fit(X, y)

    def predict(self, X):
        assert self.seen_.isdisjoint(X[:, 0])
        return super().predict(X)


def test_every_row_meets_models_that_did_not_see_it(study):
    X, y, t, _ = study
    TreatmentEffect(method="aipw", outcome_model=Witness(), propensity_model=KnownPropensity()).fit(X, y, treatment=t)


def test_folds_are_of_equal_size_and_split_equal_rows(study):
    X, y, t, _ = study
    s = Study(X, t.astype(float), y, np.ones(len(y)), (0, 1), ("a", "b", "c"), False)
    folds = content_folds(s, 5, 0)
    for arm in (0, 1):
        assert np.ptp(np.bincount(folds.number[t == arm])) <= 1
    assert (content_folds(s, 5, 1).number != folds.number).any()
    # Four kinds of rows, each many times: every fold has rows of each kind.
    kind = np.arange(80) % 4
    s = Study(
        np.zeros((80, 1)), (kind % 2).astype(float), (kind // 2).astype(float), np.ones(80), (0, 1), ("a",), False
    )
    folds = content_folds(s, 4, 0)
    assert (np.bincount(4 * folds.number + kind, minlength=16) == 5).all()
    heavy = Study(s.X[:4], s.t[:4], s.y[:4], np.full(4, 20.0), (0, 1), ("a",), True)
    pieces = content_folds(heavy, 4, 0)
    assert (np.bincount(4 * pieces.number + pieces.source, pieces.study.w, 16) == 5).all()
    assert_allclose(pieces.back(pieces.number.astype(float), 4), 1.5)


# ---------------------------------------------------------------- what every method keeps


def fitted(method, estimand, X, y, t, w=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverlapWarning)
        return TreatmentEffect(estimand, method).fit(X, y, treatment=t, sample_weight=w)


@pytest.mark.parametrize(("method", "estimand"), pairs())
@given(seed=st.integers(0, 10_000))
@settings(max_examples=3)
def test_weights_order_and_units(method, estimand, seed):
    """A row of weight 2 is two rows, the order of rows does not matter, and units go through."""
    X, y, t, _ = simulated(150, seed, p=2)
    if seed % 2:
        y = (y > 2).astype(float)  # many equal outcomes
    rng = np.random.default_rng(seed)
    w = rng.integers(0, 4, 150)
    weighted = fitted(method, estimand, X, y, t, w)
    assert weighted.predict(X).shape == (150,)
    order = rng.permutation(np.repeat(np.arange(150), w))
    repeated = fitted(method, estimand, X[order], y[order], t[order])
    assert_allclose(repeated.effect_, weighted.effect_, rtol=1e-6, atol=1e-8)
    assert_allclose(repeated.standard_error_, weighted.standard_error_, rtol=1e-5, atol=1e-10)
    scaled = fitted(method, estimand, X, 10 * y + 3, t, w)
    assert_allclose(scaled.effect_, 10 * weighted.effect_, rtol=1e-5, atol=1e-7)
    assert_allclose(scaled.standard_error_, 10 * weighted.standard_error_, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize(("method", "estimand"), pairs())
def test_other_forms_of_the_same_table(study, method, estimand):
    X, y, t, _ = study
    plain = fitted(method, estimand, X, y, t)
    assert plain.certificate_.holds
    assert plain.effect_ == pytest.approx(2.0 if estimand != "att" else 2.3, abs=2.0)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(drug=np.where(t == 1, "yes", "no"))
    named = fitted(method, estimand, frame, y, "drug")
    assert named.effect_ == plain.effect_
    assert named.treatment_levels_ == ("no", "yes")
    assert_allclose(named.predict(frame), named.predict(frame.drop(columns="drug")))
    inside = TreatmentEffect(estimand, method, treatment_column=1).fit(np.insert(X, 1, t, axis=1), y)
    assert inside.effect_ == plain.effect_
    assert inside.n_features_in_ == 4
    assert_allclose(fitted(method, estimand, sp.csr_array(X), y, t).effect_, plain.effect_, rtol=1e-9)
    single = fitted(method, estimand, X.astype(np.float32), y.astype(np.float32), t)
    assert_allclose(single.effect_, plain.effect_, rtol=1e-4)


def test_row_effects_of_the_regression(study, tmp_path):
    X, y, t, _ = study
    model = TreatmentEffect("cate").fit(X, y, treatment=t)
    each = [np.linalg.lstsq(np.c_[np.ones(sum(t == a)), X[t == a]], y[t == a], rcond=None)[0] for a in (0, 1)]
    assert_allclose(model.predict(X), np.c_[np.ones(400), X] @ (each[1] - each[0]), rtol=1e-9, atol=1e-9)
    assert_allclose(model.predict(X).mean(), model.effect_, rtol=1e-10)
    model.save(tmp_path / "model.epi")
    loaded = ep.load(tmp_path / "model.epi")
    assert_allclose(loaded.predict(X), model.predict(X), rtol=0)
    assert str(loaded.balance_) == str(model.balance_)


def test_models_that_are_fitted_side_by_side_have_the_same_bits():
    X, y, t, _ = simulated(3000, 3)
    chosen = {"outcome_model": "boosting", "propensity_model": "boosting", "n_folds": 2}
    found = {}
    for n_jobs in (1, 2, 4, None):
        model = TreatmentEffect(method="aipw", n_jobs=n_jobs, **chosen).fit(X, y, treatment=t)
        found[n_jobs] = (model.effect_, model.standard_error_, *model.propensity_)
    assert len(set(found.values())) == 1
    # An error in a thread comes to the caller.
    with pytest.raises(DataTypeError, match="outcome_model: is a classifier"):
        TreatmentEffect(method="aipw", outcome_model="logistic", n_jobs=2).fit(X, y, treatment=t)


def test_boosted_propensities_stop_and_weights_stay_small():
    """Scores of AIPW by hand with rounds chosen on a tenth of the rows; they vary less than those of all rounds."""
    X, y, t, e = simulated(1500, 4)
    chosen = {"method": "aipw", "n_folds": 2}
    model = TreatmentEffect(propensity_model="boosting", **chosen).fit(X, y, treatment=t)
    s = Study(X, t.astype(float), y, np.ones(len(y)), (0, 1), tuple("abc"), False)
    number, held = content_folds(s, 2, 0).number, content_keys(s, 0) % np.uint64(10) == 0
    assert 100 < held.sum() < 200
    expected = np.empty(len(y))
    for k in (0, 1):
        a, b = (number != k) & ~held, (number != k) & held
        boosting = ep.GradientBoostingClassifier(n_iter_no_change=10, keep_best=True, random_state=0)
        boosting.fit(X[a], t[a], X_val=X[b], y_val=t[b])
        expected[number == k] = boosting.predict_proba(X[number == k])[:, 1]
    assert_allclose(model.propensity_, expected, rtol=1e-12)
    every = TreatmentEffect(propensity_model=ep.GradientBoostingClassifier(random_state=0), **chosen)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverlapWarning)
        every.fit(X, y, treatment=t)
    assert np.mean((model.propensity_ - e) ** 2) < 0.7 * np.mean((every.propensity_ - e) ** 2)
    assert model.standard_error_ < 0.9 * every.standard_error_
    few = TreatmentEffect("ato", "ipw", propensity_model="boosting", n_folds=2)  # no tenth has both arms
    assert np.isfinite(few.fit(X[:14], y[:14], treatment=t[:14]).effect_)


def test_learners_by_name_and_by_object(study):
    X, y, t, _ = study
    for model in ("boosting", "forest"):
        found = TreatmentEffect(method="aipw", outcome_model=model, propensity_model=model, clip=0.05, n_folds=2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OverlapWarning)
            found.fit(X, y, treatment=t)
        assert abs(found.effect_ - 2) < 1
    outcome = (y > 2).astype(float)
    risk = TreatmentEffect(method="aipw", outcome_model="logistic").fit(X, outcome, treatment=t)
    assert -1 < risk.effect_ < 1
    with pytest.raises(DataTypeError, match="outcome_model: is a classifier"):
        TreatmentEffect(method="aipw", outcome_model="logistic").fit(X, y, treatment=t)
    weighted = TreatmentEffect(method="ipw", propensity_model=ep.LogisticRegression(C=0.1)).fit(X, y, treatment=t)
    assert abs(weighted.effect_ - 2) < 1


# ---------------------------------------------------------------- balance and overlap


def test_balance_by_hand(study):
    X, y, t, _ = study
    model = TreatmentEffect(method="ipw").fit(X, y, treatment=t)
    a, b, v = X[t == 1], X[t == 0], model.weights_
    scale = np.sqrt((a.var(0) + b.var(0)) / 2)
    assert_allclose(model.balance_["smd"], (a.mean(0) - b.mean(0)) / scale, rtol=1e-10)
    after = np.average(a, axis=0, weights=v[t == 1]) - np.average(b, axis=0, weights=v[t == 0])
    assert_allclose(model.balance_["smd after"], after / scale, rtol=1e-8, atol=1e-12)
    assert_allclose(model.balance_["var. ratio"], a.var(0) / b.var(0), rtol=1e-10)
    ess = v[t == 1].sum() ** 2 / np.sum(v[t == 1] ** 2)
    assert_allclose(model.balance_.facts["ess treated"], ess)
    assert "ess treated" in str(model.summary())


def test_crump_threshold_is_the_optimum():
    e = np.random.default_rng(0).beta(0.5, 0.8, 4000).clip(1e-4, 1 - 1e-4)
    a = crump_threshold(e, np.ones(4000))
    grid = np.linspace(0.001, 0.3, 3000)

    def variance(b):  # of the average over the rows that are kept, with equal noise
        kept = (e >= b) & (e <= 1 - b)
        return np.mean(np.where(kept, 1 / (e * (1 - e)), 0)) / np.mean(kept) ** 2

    assert abs(a - grid[np.argmin([variance(b) for b in grid])]) < 2e-3
    assert crump_threshold(np.full(9, 0.4), np.ones(9)) == 0


def test_a_violation_of_overlap_is_named_with_its_region():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.uniform(20, 60, 3000), "income": rng.normal(size=3000)})
    p = np.where(X.age > 50, 0.0, 0.5)
    t = rng.random(3000) < p
    y = X.age / 10 + t + rng.normal(size=3000)
    model = TreatmentEffect(method="aipw", propensity_model=ep.DecisionTreeClassifier(max_depth=2))
    with pytest.warns(OverlapWarning, match=r"age > (49\.\d+|50\.?\d*) \("):
        model.fit(X, y, treatment=t)
    trimmed = model.set_params(trim=0.1).fit(X, y, treatment=t)
    assert trimmed.trimmed_ == pytest.approx(np.mean(X.age > 50), abs=0.01)
    assert (trimmed.weights_[X.age > 50.2] == 0).all()
    assert trimmed.overlap_["outside"] == pytest.approx(trimmed.trimmed_, abs=0.01)
    assert abs(trimmed.effect_ - 1) < 3 * trimmed.standard_error_
    with pytest.raises(DataError, match="no row has a counterpart"):
        TreatmentEffect(method="ipw").fit(X, y, treatment=X.age > 40)
    with pytest.raises(DataError, match="do not overlap"):
        TreatmentEffect(method="entropy").fit(X, y, treatment=X.age > 40)
    with pytest.raises(DataError, match="balance the covariates"):
        TreatmentEffect(method="cbps").fit(X, y, treatment=X.age > 40)


def test_rows_of_hardly_any_weight_have_a_region_too():
    """Their share of the weight of every leaf of the tree is zero in double precision."""
    rng = np.random.default_rng(0)
    X, far = rng.normal(size=(20, 1)), rng.random(20) < 0.3
    w = np.where(far, 10.0 ** rng.integers(-300, -200, 20), 10.0 ** rng.integers(90, 100, 20))
    study = Study(X, np.tile([0.0, 1.0], 10), X[:, 0], w, (0, 1), ("a",), True)
    assert "(0% of" in region_without_overlap(study, far)


def test_trimming_by_the_rule_of_crump(study):
    X, y, _, _ = study
    t = np.random.default_rng(5).random(400) < expit(2.5 * X[:, 0])
    model = TreatmentEffect(method="ipw", trim="crump").fit(X, y, treatment=t)
    first = fitted("ipw", "ate", X, y, t)
    a = first.overlap_["threshold"]
    assert a > 0
    kept = (first.propensity_ >= a) & (first.propensity_ <= 1 - a)
    again = TreatmentEffect(method="ipw").fit(X[kept], y[kept], treatment=t[kept])
    assert_allclose(model.effect_, again.effect_, rtol=1e-9)
    assert_allclose(model.propensity_[~kept], first.propensity_[~kept])


def test_rows_that_cannot_be_treated_do_not_enter_the_effect_on_the_treated(study):
    """Controls far from all treated rows get no weight, also where their propensity is below the clip."""
    X, y, t, _ = study
    far = np.array([-60.0, 60.0, 0.0]) + np.random.default_rng(0).normal(size=(4000, 3))
    both = np.r_[X, far], np.r_[y, np.full(4000, 1e4)]
    model = TreatmentEffect("att", "ipw").fit(*both, treatment=np.r_[t, np.zeros(4000)])
    assert abs(model.effect_ - 2.3) < 1
    assert model.weights_[400:].max() < 1e-6


def test_figures(study):
    pytest.importorskip("matplotlib")
    X, y, t, _ = study
    model = TreatmentEffect(method="ipw").fit(pd.DataFrame(X, columns=["a", "b", "c"]), y, treatment=t)
    ax = model.plot_balance()
    assert [label.get_text() for label in ax.get_yticklabels()][-1] == "a"
    drawn = {line.get_label(): line.get_xdata() for line in ax.lines}
    assert drawn["after"].max() < drawn["before"].max()
    bars = model.plot_overlap().patches
    assert sum(bar.get_height() * bar.get_width() for bar in bars if bar.get_height() > 0) == pytest.approx(1)


# ---------------------------------------------------------------- errors


def test_errors_name_what_is_wrong(study):
    X, y, t, _ = study
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    cases = [
        (dict(method="ipw"), dict(treatment=X[:, 0]), "method='ipw' compares two"),
        (dict(method="ipw"), dict(treatment=np.zeros(400)), "one value only"),
        (dict(method="ipw"), dict(treatment=t[:10]), r"shape \(10,\); expected \(400,\)"),
        (dict(method="ipw"), dict(treatment=np.where(t == 1, np.nan, 0)), "not finite"),
        (dict(method="ipw"), dict(treatment=np.array(["a", "b", "c"])[np.arange(400) % 3]), "3 values that are not"),
        (dict(), dict(treatment="d"), "X has no such column; it has 'a', 'b', 'c'"),
        (dict(treatment_column=7), dict(), "treatment_column=7: X has 3 columns"),
        (dict(method="aipw", estimand="ato"), dict(treatment=t), "'aipw' estimates ate, att, atc"),
        (dict(method="regression", clip=0.1), dict(treatment=t), "clip=0.1: method='regression' does not use it"),
        (dict(method="dml", trim=0.1), dict(treatment=X[:, 0]), "numeric treatment has no propensity"),
        (dict(method="aipw", propensity_model="linear"), dict(treatment=t), "expected one of logistic"),
    ]
    for arguments, given_, words in cases:
        with pytest.raises(ValueError, match=words):
            TreatmentEffect(**arguments).fit(frame, y, **given_)
    with pytest.raises(DataTypeError, match="needs X as a data frame"):
        TreatmentEffect().fit(X, y, treatment="a")
    told_apart = {"propensity_model": ep.DecisionTreeClassifier(), "clip": 0.0, "n_folds": 2}
    with pytest.raises(DataError, match=r"rows have an estimated propensity of 0 for their own arm.*set clip above 0"):
        TreatmentEffect(method="aipw", **told_apart).fit(X, y, treatment=t)
    with pytest.raises(DataError, match="determine it"):
        TreatmentEffect(method="dml").fit(X, y, treatment=X @ [1.0, 2.0, 3.0])
    model = ep.KNeighborsRegressor()
    with pytest.raises(ParameterError, match="takes no sample_weight"):
        TreatmentEffect(method="aipw", outcome_model=model).fit(X, y, treatment=t, sample_weight=np.ones(400))
    with pytest.raises(ParameterError, match="level"):
        TreatmentEffect().fit(X, y, treatment=t).confidence_interval(95)


def test_weights_do_not_allow_any_number_of_folds():
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(30, 2)), np.arange(30) % 2
    with pytest.raises(ParameterError, match="n_folds=1000000000: each fold is a fit; expected at most 1000"):
        TreatmentEffect("ate", "aipw", n_folds=10**9).fit(X, X[:, 0] + t, treatment=t, sample_weight=np.full(30, 1e100))
