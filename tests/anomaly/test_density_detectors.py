"""Detectors by densities and components: closed forms, transforms, labels, engines, p-values, explanations."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2, multivariate_normal, norm
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.mixture import GaussianMixture as PeerMixture

import epicycle as ep
from epicycle import GaussianAnomalyDetector, IsolationForest, MixtureAnomalyDetector, PCAAnomalyDetector
from epicycle.anomaly._threshold import benjamini_hochberg, f1_threshold, share_threshold
from epicycle.exceptions import DataError, NotFittedError, ParameterError

RNG = np.random.default_rng(0)
MIX = RNG.normal(size=(4, 4))
X = RNG.normal(size=(500, 4)) @ MIX + [1.0, -5.0, 1e4, 0.0]
ODD = np.concatenate([X[:40], X[:10] + 8 * X.std(axis=0) * np.where(np.arange(4) == 2, 1, 0)])
LABEL = np.arange(50) >= 40
DETECTORS = [
    GaussianAnomalyDetector(),
    GaussianAnomalyDetector(covariance="multivariate", transforms="auto"),
    MixtureAnomalyDetector(2, random_state=0),
    PCAAnomalyDetector(2),
    PCAAnomalyDetector(0.8, statistic="residual", scale=False),
    PCAAnomalyDetector(2, statistic="hotelling"),
]
every = pytest.mark.parametrize("model", DETECTORS, ids=lambda m: f"{type(m).__name__}-{getattr(m, 'statistic', '')}")


def test_densities_in_closed_form():
    mean, half = (
        X.mean(axis=0),
        (X.max(axis=0) - X.min(axis=0)) / 2,
    )  # densities are of columns in halves of their range
    single = norm(mean, X.std(axis=0)).logpdf(X).sum(axis=1) + np.log(half).sum()
    assert_allclose(GaussianAnomalyDetector().fit(X).score_samples(X), single, atol=1e-9)
    joint = multivariate_normal(mean, np.cov(X.T, bias=True)).logpdf(X) + np.log(half).sum()
    model = GaussianAnomalyDetector(covariance="multivariate", shrinkage=0.0).fit(X)
    assert_allclose(model.score_samples(X), joint, atol=1e-9)
    assert model.certificate_.holds
    # and the squared distances add up from the columns
    D = X - mean
    distance = np.einsum("ij,jk,ik->i", D, np.linalg.inv(np.cov(X.T, bias=True)), D)
    assert_allclose(model.explain(X).sum(axis=1), distance / 2, rtol=1e-8)


@pytest.mark.parametrize(
    ("draw", "exponent"),
    [
        (lambda r, n: r.normal(size=n), 1.0),
        (lambda r, n: r.lognormal(0, 1, n), 0.0),
        (lambda r, n: r.chisquare(1, n) ** 2, 0.25),
    ],
    ids=["normal", "lognormal", "fourth power"],
)
def test_transforms_are_chosen_by_normality(draw, exponent):
    column = draw(np.random.default_rng(3), 3000)[:, None]
    model = GaussianAnomalyDetector(transforms="auto", contamination=0.01).fit(column)
    assert model.exponent_[0] == pytest.approx(exponent, abs=0.26 if exponent == 0.25 else 0)
    assert (model.transforms_ == {}) == (exponent == 1.0)
    skew = lambda t: abs(np.mean(((t - t.mean()) / t.std()) ** 3))  # noqa: E731
    assert skew(model._columns().standardised(column)) <= skew(column) + 1e-12
    below = np.array([[column.min() - 5 * column.std()]])  # out of reach of a logarithm: unusual, and no error
    assert model.predict(below) == -1


def test_principal_components_by_the_svd():
    Y = (X - X.mean(axis=0)) / X.std(axis=0)
    _, s, axes = np.linalg.svd(Y, full_matrices=False)
    variances = s**2 / len(Y)
    Z = Y @ axes[:2].T
    T2, Q = (Z**2 / variances[:2]).sum(axis=1), ((Y - Z @ axes[:2]) ** 2).sum(axis=1)
    for name, expected in {"hotelling": T2, "residual": Q, "both": T2 + Q / variances[2:].mean()}.items():
        model = PCAAnomalyDetector(2, statistic=name).fit(X)
        assert_allclose(model.score_samples(X), -expected / 2, rtol=1e-7)
        assert_allclose(model.explain(X).sum(axis=1), expected / 2, rtol=1e-7)
    raw = (X - X.mean(axis=0)) / np.sqrt(X.var(axis=0).mean())
    _, s, axes = np.linalg.svd(raw, full_matrices=False)
    lost = ((raw - raw @ axes[:1].T @ axes[:1]) ** 2).sum(axis=1)
    assert_allclose(
        PCAAnomalyDetector(1, statistic="residual", scale=False).fit(X).score_samples(X), -lost / 2, rtol=1e-6
    )


def test_mixture_is_that_of_scikit_learn():
    table = load_iris().data
    model = MixtureAnomalyDetector(random_state=0, tol=1e-9).fit(table)
    peers = {k: PeerMixture(k, tol=1e-9, max_iter=500, random_state=0).fit(table).bic(table) for k in (1, 2, 3)}
    assert model.n_components_ == min(peers, key=peers.get) == 2
    peer = PeerMixture(2, tol=1e-9, max_iter=500, random_state=0).fit(table)
    assert_allclose(model.score_samples(table), peer.score_samples(table), atol=1e-3)
    one = MixtureAnomalyDetector(1, reg_covar=0.0).fit(table)
    joint = GaussianAnomalyDetector(covariance="multivariate", shrinkage=0.0).fit(table)
    assert_allclose(one.explain(table), joint.explain(table), rtol=1e-6, atol=1e-9)


@every
def test_engines_weights_and_the_column_to_blame(model, tmp_path, client):
    found = model.fit(X)
    if not isinstance(model, PCAAnomalyDetector):  # a space of few axes spreads a column over the others
        assert_array_equal(found.explain(ODD)[40:].argmax(axis=1), 2)
    assert (found.predict(X) == -1).sum() == 50
    scores = found.score_samples(X)
    pd.DataFrame(X).to_csv(tmp_path / "rows.csv", index=False)
    if isinstance(model, MixtureAnomalyDetector):
        return
    files = clone(model).fit(ep.scan(tmp_path / "rows.csv"))
    assert_allclose(files.score_samples(ep.scan(tmp_path / "rows.csv")), scores, rtol=1e-9)
    lazy = clone(model).fit(da.from_array(X, chunks=(120, 4)))
    assert_allclose(lazy.score_samples(X), scores, rtol=1e-9)
    assert_allclose(lazy.offset_, found.offset_, rtol=1e-9)
    weight = RNG.integers(0, 3, 500)
    weighted, repeated = clone(model).fit(X, sample_weight=weight), clone(model).fit(np.repeat(X, weight, axis=0))
    assert_allclose(weighted.score_samples(X), repeated.score_samples(X), rtol=1e-7, atol=1e-9)
    assert_allclose(weighted.offset_, repeated.offset_, rtol=1e-7)
    assert_allclose(clone(model).fit(sp.csr_array(X)).score_samples(X), scores, rtol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        GaussianAnomalyDetector(covariance="multivariate", transforms="auto"),
        PCAAnomalyDetector(2),
        MixtureAnomalyDetector(2, random_state=0),
    ],
    ids=["gaussian", "components", "mixture"],
)
def test_threads_give_the_same_bits(model):
    many = np.tile(X, (300, 1)) + RNG.normal(size=(150_000, 4))  # some blocks
    scores = [clone(model).set_params(n_jobs=jobs).fit(many).score_samples(many) for jobs in (1, 2, 4)]
    assert_array_equal(scores[1], scores[0])
    assert_array_equal(scores[2], scores[0])


@every
def test_labels_choose_the_threshold(model):
    table, label = np.concatenate([X, ODD[40:]]), np.arange(510) >= 500
    by_truth = clone(model).fit(table, label)
    by_sign = clone(model).fit(table, np.where(label, -1, 1))
    assert_array_equal(by_truth.score_samples(table), by_sign.score_samples(table))
    normal = clone(model).fit(X)
    assert_allclose(by_truth.score_samples(table), normal.score_samples(table), rtol=1e-9)
    flagged = by_truth.predict(table) == -1
    hits = (flagged & label).sum()
    assert by_truth.f1_ == pytest.approx(2 * hits / (flagged.sum() + 10))
    assert by_truth.precision_ == pytest.approx(hits / flagged.sum())
    assert clone(model).fit(X, np.arange(500) % 3).offset_ == normal.offset_  # no labels of anomalies: not looked at
    with pytest.raises(DataError, match="y: holds 0, 1, 2"):
        clone(model).set_params(threshold="f1").fit(X, np.arange(500) % 3)
    with pytest.raises(DataError, match="y: is None"):
        clone(model).set_params(threshold="f1").fit(X)


def test_the_threshold_of_the_largest_f1_by_trying_all():
    def f1_of(scores, anomaly, t):
        return 2 * ((scores < t) & anomaly).sum() / ((scores < t).sum() + anomaly.sum())

    rng = np.random.default_rng(1)
    for _ in range(30):
        scores, anomaly = rng.integers(0, 8, 25).astype(float), rng.random(25) < 0.3
        anomaly[0] = True
        best = f1_threshold(scores, anomaly)
        assert best.f1 == pytest.approx(max(f1_of(scores, anomaly, t) for t in np.arange(-1, 10, 0.5)))
        assert f1_of(scores, anomaly, best.offset) == pytest.approx(best.f1)
        weight = rng.integers(1, 4, 25)
        repeated = f1_threshold(np.repeat(scores, weight), np.repeat(anomaly, weight))
        assert f1_threshold(scores, anomaly, weight.astype(float)) == repeated
        assert share_threshold(scores, weight.astype(float), 0.3) == pytest.approx(
            np.quantile(np.repeat(scores, weight), 0.3)
        )


def test_p_values_are_valid_and_discoveries_mostly_true():
    rng = np.random.default_rng(5)
    model = IsolationForest(n_estimators=30, random_state=0).fit(rng.normal(size=(500, 2)))
    with pytest.raises(NotFittedError, match="calibrate"):
        model.p_values(X[:, :2])
    p, false = [], []
    for _ in range(60):
        model.calibrate(rng.normal(size=(199, 2)))
        rows = np.concatenate([rng.normal(size=(180, 2)), rng.normal(size=(20, 2)) + 6])
        p.append(model.p_values(rows)[:180])
        found = model.detect(rows, fdr=0.2) == -1
        false.append(found[:180].sum() / max(found.sum(), 1))
    for level in (0.05, 0.2, 0.5):
        assert np.mean(np.array(p) <= level) <= level + 0.02
    assert np.mean(false) <= 0.2 + 3 * np.std(false) / np.sqrt(60)
    assert np.mean(false) > 0.05  # it is not silent
    # Benjamini and Hochberg's own example (1995, section 3.2): four of fifteen
    given_p = [
        0.0001,
        0.0004,
        0.0019,
        0.0095,
        0.0201,
        0.0278,
        0.0298,
        0.0344,
        0.0459,
        0.3240,
        0.4262,
        0.5719,
        0.6528,
        0.7590,
        1.0,
    ]
    assert benjamini_hochberg(np.array(given_p), 0.05).sum() == 4
    labelled = GaussianAnomalyDetector().fit(X).calibrate(ODD, LABEL)
    assert len(labelled.calibration_scores_) == 40
    assert labelled.f1_ > 0.9
    with pytest.raises(ParameterError, match="fdr"):
        labelled.detect(X, fdr=1.5)


def test_normal_rows_have_the_distances_of_theory():
    table = np.random.default_rng(2).normal(size=(4000, 3))
    distance = 2 * GaussianAnomalyDetector(covariance="multivariate").fit(table).explain(table).sum(axis=1)
    assert abs((distance > chi2(3).ppf(0.95)).mean() - 0.05) < 0.015


@given(
    scale=st.sampled_from([1e-150, 1e-3, 1.0, 1e6, 1e150]),
    n=st.integers(1, 12),
    constant=st.booleans(),
    seed=st.integers(0, 5),
)
@settings(deadline=None)
def test_any_scale_gives_the_same_answer_and_no_nan(scale, n, constant, seed):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n, 3))
    if constant:
        table[:, 1] = 7.0
    for model in (
        GaussianAnomalyDetector(transforms="auto"),
        GaussianAnomalyDetector(covariance="multivariate"),
        PCAAnomalyDetector(1),
    ):
        with np.errstate(all="raise", under="ignore"):
            base, scaled = model.fit(table).score_samples(table), model.fit(scale * table).score_samples(scale * table)
        assert np.isfinite(base).all()
        assert np.isfinite(scaled).all()
        assert np.isfinite(model.score_samples(np.full((1, 3), 1e300))).all()
        if n > 8 and not constant:
            assert_allclose(scaled, base, rtol=1e-5, atol=1e-5)


@every
def test_files(model, tmp_path):
    fitted = model.fit(X, np.arange(500) < 5)
    fitted.calibrate(X[5:])
    fitted.save(tmp_path / "model.epi")
    again = ep.load(tmp_path / "model.epi")
    assert_array_equal(again.decision_function(X), fitted.decision_function(X))
    assert_array_equal(again.p_values(X), fitted.p_values(X))
