"""Effects of rows by meta-learners: their definitions by hand, truth on simulated studies, files."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from studies import KnownOutcome, KnownPropensity, simulated

import epicycle as ep
from epicycle import TreatmentEffect

LEARNERS = ["s_learner", "t_learner", "x_learner", "r_learner", "dr_learner"]


@pytest.fixture(scope="module")
def study():
    return simulated(500, 2)


def least_squares(X, y, w=1.0):
    Z, v = np.column_stack([np.ones(len(X)), X]), np.sqrt(w * np.ones(len(X)))
    return np.linalg.lstsq(Z * v[:, None], y * v, rcond=None)[0]


def line(b, X):
    return b[0] + X @ b[1:]


def by_hand(learner, X, y, t, e):
    arms = [least_squares(X[t == a], y[t == a]) for a in (0, 1)]
    if learner == "s_learner":
        return np.full(len(y), least_squares(np.c_[X, t], y)[-1])
    if learner == "t_learner":
        return line(arms[1], X) - line(arms[0], X)
    first = least_squares(X[t == 1], y[t == 1] - line(arms[0], X[t == 1]))
    other = least_squares(X[t == 0], line(arms[1], X[t == 0]) - y[t == 0])
    return e * line(other, X) + (1 - e) * line(first, X)


@pytest.mark.parametrize("learner", ["s_learner", "t_learner", "x_learner"])
def test_learners_of_outcomes(study, learner):
    X, y, t, e = study
    chosen = {"propensity_model": KnownPropensity()}
    model = TreatmentEffect("cate", learner, **chosen).fit(X, y, treatment=t)
    assert_allclose(model.predict(X), by_hand(learner, X, y, t, e), rtol=1e-8, atol=1e-8)


def test_learners_of_pseudo_outcomes(study):
    X, y, t, e = study
    chosen = {"outcome_model": KnownOutcome(), "propensity_model": KnownPropensity(), "effect_model": "linear"}
    Q0, Q1 = 0.8 + X[:, 0], 2.9 + X[:, 0]
    model = TreatmentEffect("cate", "dr_learner", **chosen).fit(X, y, treatment=t)
    scores = Q1 - Q0 + t * (y - Q1) / e - (1 - t) * (y - Q0) / (1 - e)
    assert_allclose(model.predict(X), line(least_squares(X, scores), X), rtol=1e-9)
    assert_allclose(model.predict(X).mean(), model.effect_)
    model = TreatmentEffect("cate", "r_learner", **chosen).fit(X, y, treatment=t)
    m = e * Q1 + (1 - e) * Q0
    Z = np.column_stack([np.ones(500), X]) * (t - e)[:, None]  # the loss itself, without division
    assert_allclose(model.predict(X), line(np.linalg.lstsq(Z, y - m, rcond=None)[0], X), rtol=1e-9)


@pytest.mark.parametrize("learner", [*LEARNERS, "causal_forest"])
def test_the_average_effect_is_that_of_the_efficient_scores(study, learner):
    """So that its interval covers as that of AIPW does, of which 500 studies show it."""
    X, y, t, _ = study
    model = TreatmentEffect("cate", learner, n_folds=2).fit(X, y, treatment=t)
    aipw = TreatmentEffect("ate", "aipw", n_folds=2).fit(X, y, treatment=t)
    assert (model.effect_, model.interval_) == (aipw.effect_, aipw.interval_)


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner(study, learner, tmp_path):
    X, y, t, _ = study
    model = TreatmentEffect("cate", learner).fit(X, y, treatment=t)
    truth = 2 + X[:, 0]
    error = np.sqrt(np.mean((model.predict(X) - truth) ** 2))
    assert error < (1.1 if learner == "s_learner" else 0.35)  # a linear S learner has one effect for all
    model.save(tmp_path / "m.epi")
    assert_allclose(ep.load(tmp_path / "m.epi").predict(X), model.predict(X), rtol=0)
    w = np.random.default_rng(0).integers(0, 3, 500)
    rows = np.repeat(np.arange(500), w)
    weighted = TreatmentEffect("cate", learner).fit(X, y, treatment=t, sample_weight=w)
    repeated = TreatmentEffect("cate", learner).fit(X[rows][::-1], y[rows][::-1], treatment=t[rows][::-1])
    assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-6, atol=1e-8)
    sparse = TreatmentEffect("cate", learner).fit(sp.csr_array(X), y, treatment=t)
    assert_allclose(sparse.predict(sp.csr_array(X)), model.predict(X), rtol=1e-7, atol=1e-9)


def test_learners_with_boosting(study):
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, size=(3000, 3))
    t = rng.random(3000) < 0.5
    truth = np.where(X[:, 0] > 0, 3.0, 1.0)
    y = X[:, 1] ** 2 + truth * t + rng.normal(size=3000)
    learner = ep.GradientBoostingRegressor(n_estimators=40, max_depth=3)
    model = TreatmentEffect("cate", "x_learner", outcome_model=learner, n_folds=2).fit(X, y, treatment=t)
    assert np.sqrt(np.mean((model.predict(X) - truth) ** 2)) < 0.35
    assert abs(model.effect_ - 2) < 3 * model.standard_error_ < 0.3
