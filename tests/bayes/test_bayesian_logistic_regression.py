"""Bayesian logistic regression: five methods against quadrature, scikit-learn and each other."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import chisquare, norm
from sklearn.linear_model import LogisticRegression

import epicycle as ep
from epicycle import BayesianLogisticRegression
from epicycle._native import bayes as native
from epicycle.bayes import mcse
from epicycle.bayes._logistic_posterior import averaged_sigmoid, bound_step, inverse_half
from epicycle.data import as_data
from epicycle.exceptions import DataError, DataTypeError, NotFittedError, ParameterError

METHODS = ["map", "laplace", "variational", "gibbs", "nuts"]
FAST = {"n_draws": 400, "n_warmup": 100, "n_chains": 4, "random_state": 0}


def table(n=80, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, (rng.random(n) < expit(X @ np.linspace(1.5, -1, p) + 0.3)).astype(int)


class Posterior:
    """One feature and an intercept: the posterior on a grid."""

    def __init__(self, X, y, alpha=1.0, intercept_alpha=0.01):
        w, b = np.linspace(-3, 8, 401), np.linspace(-6, 6, 401)
        self.W, self.B = np.meshgrid(w, b, indexing="ij")
        z = self.W[..., None] * X[:, 0] + self.B[..., None]
        logs = (y * z - np.logaddexp(0, z)).sum(axis=-1) - alpha * self.W**2 / 2 - intercept_alpha * self.B**2 / 2
        logs += np.log(alpha * intercept_alpha) / 2 - np.log(2 * np.pi)
        area = (w[1] - w[0]) * (b[1] - b[0])
        self.log_evidence = np.log(np.exp(logs - logs.max()).sum() * area) + logs.max()
        self.weight = np.exp(logs - self.log_evidence) * area

    def mean(self, values):
        return float((self.weight * values).sum())

    def probability(self, x):
        return np.array([self.mean(expit(self.W * v + self.B)) for v in x])


# ---------------------------------------------------------------- the parts


@pytest.mark.parametrize("c", [0.0, 0.3, 1.0, 2.5, 3.5, 8.0, 40.0])
def test_polya_gamma_draws(c):
    """Mean, variance and Laplace transform E exp(-t w) = cosh(c/2) / cosh(sqrt(c^2/4 + t/2)) of PG(1, c)."""
    n = 100_000
    seed = np.arange(1, 5, dtype=np.uint64)
    x = native.polya_gamma(np.full(n, c), seed)
    mean = np.tanh(c / 2) / (2 * c) if c else 0.25
    e = np.exp(-c)  # (sinh c - c) / cosh(c/2)^2, without overflow
    variance = ((1 - e**2) - 2 * c * e) / (1 + e) ** 2 * 2 / (4 * c**3) if c else 1 / 24
    assert abs(x.mean() - mean) < 4.5 * np.sqrt(variance / n)
    squares = (x - mean) ** 2
    assert abs(squares.mean() - variance) < 4.5 * squares.std() / np.sqrt(n)
    for t in (0.5, 3.0):
        found = np.exp(-t * x)
        s = np.sqrt(c**2 / 4 + t / 2)
        expected = np.exp(c / 2 - s) * (1 + np.exp(-c)) / (1 + np.exp(-2 * s))
        assert abs(found.mean() - expected) < 4.5 * found.std() / np.sqrt(n)
    assert np.array_equal(x, native.polya_gamma(np.full(n, -c), seed))


def test_polya_gamma_of_huge_margins():
    """PG(1, c) tends to the constant 1 / (2 c), with the standard deviation 1 / sqrt(2 c^3)."""
    for c in (1e3, 1e6, 1e12):
        x = native.polya_gamma(np.full(1000, c), np.arange(1, 5, dtype=np.uint64))
        assert abs(x.mean() * 2 * c - 1) < 4.5 * np.sqrt(2 / c / 1000)
        assert np.all(x > 0)


def test_gibbs_agrees_with_nuts_and_has_the_same_bits_in_any_number_of_threads():
    X, y = table(60, 3, seed=8)
    options = {"n_draws": 2500, "n_warmup": 200, "random_state": 3}
    gibbs, nuts = (BayesianLogisticRegression(method, **options).fit(X, y) for method in ("gibbs", "nuts"))
    for draws, other in ((gibbs.draws_, nuts.draws_),):
        error = 4.5 * np.sqrt(mcse(draws) ** 2 + mcse(other) ** 2)
        assert np.all(np.abs(draws.mean(axis=(0, 1)) - other.mean(axis=(0, 1))) < error)
        assert_allclose(draws.std(axis=(0, 1)), other.std(axis=(0, 1)), rtol=0.06)
    again = BayesianLogisticRegression("gibbs", n_jobs=1, **options).fit(X, y)
    assert_array_equal(again.draws_, BayesianLogisticRegression("gibbs", n_jobs=4, **options).fit(X, y).draws_)
    assert_array_equal(again.draws_, gibbs.draws_)


@pytest.mark.parametrize("deviation", [0.01, 0.9, 1.1, 5.0, 80.0])
def test_averaged_sigmoid_by_quadrature(deviation):
    for mean in (-30.0, -3.0, 0.0, 0.4, 9.0):

        def integrand(u, mean=mean):
            return expit(mean + deviation * u) * np.exp(-u * u / 2) / np.sqrt(2 * np.pi)

        step = np.clip(-mean / deviation, -13, 13)
        expected = sum(quad(integrand, a, b, epsabs=1e-15, limit=300)[0] for a, b in ((-14, step), (step, 14)))
        found = averaged_sigmoid(np.array([mean]), np.array([deviation]))[0]
        assert found == pytest.approx(expected, abs=1e-9)
    assert averaged_sigmoid(np.zeros(1), np.full(1, deviation))[0] == pytest.approx(0.5, abs=1e-14)


# ---------------------------------------------------------------- against references


@pytest.mark.parametrize("weighted", [False, True])
def test_map_agrees_with_scikit_learn(weighted):
    X, y = table()
    v = np.random.default_rng(1).integers(0, 3, len(y)).astype(float) if weighted else None
    ours = BayesianLogisticRegression("map", alpha=0.5, fit_intercept=False).fit(X, y, v)
    theirs = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(X, y, v)
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-7)
    # An intercept with a prior is the coefficient of a constant: 10 for a precision of 1 / 100.
    ours = BayesianLogisticRegression("map", alpha=0.5, intercept_alpha=0.005).fit(X, y, v)
    theirs = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-12, max_iter=10_000)
    theirs.fit(np.column_stack([X, np.full(len(y), 10.0)]), y, v)
    assert_allclose(ours.coef_, theirs.coef_[:, :3], rtol=1e-5)
    assert_allclose(ours.intercept_, 10 * theirs.coef_[:, 3], rtol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_posterior_by_quadrature(method):
    X, y = table(n=40, p=1, seed=3)
    exact = Posterior(X, y)
    model = BayesianLogisticRegression(method, random_state=0, n_draws=1500, n_warmup=200).fit(X, y)
    assert model.certificate_.holds
    mean = np.array([exact.mean(exact.W), exact.mean(exact.B)])
    deviation = np.sqrt([exact.mean((exact.W - mean[0]) ** 2), exact.mean((exact.B - mean[1]) ** 2)])
    found = np.append(model.coef_[0], model.intercept_)
    grid = np.linspace(-3, 3, 7)
    probability = model.predict_proba(grid[:, None])[:, 1]
    # The predictive averages of all methods agree; only the plug-in of the mode is too sure far away.
    assert_allclose(probability, exact.probability(grid), atol=0.06 if method == "map" else 0.03)
    if method in ("gibbs", "nuts"):
        assert np.all(np.abs(found - mean) < 0.08 * deviation)  # five errors of 4000 effective draws
        assert_allclose(np.sqrt(np.diagonal(model.covariance_)), deviation, rtol=0.08)
        assert_allclose(probability, exact.probability(grid), atol=0.012)
        low, high = model.summary(0.9)["5%"], model.summary(0.9)["95%"]
        inside = exact.mean((low[0] < exact.W) & (high[0] > exact.W))
        assert inside == pytest.approx(0.9, abs=0.02)
    elif method == "laplace":
        assert model.log_evidence_ == pytest.approx(exact.log_evidence, abs=0.1)
        assert_allclose(np.sqrt(np.diagonal(model.covariance_)), deviation, rtol=0.15)
    elif method == "variational":
        assert model.log_evidence_ < exact.log_evidence
        assert model.log_evidence_ > exact.log_evidence - 0.7
        assert np.all(np.sqrt(np.diagonal(model.covariance_)) < deviation)  # the bound is too narrow, always


def test_laplace_covariance_is_the_inverse_hessian():
    X, y = table()
    model = BayesianLogisticRegression().fit(X, y)
    A = np.column_stack([X, np.ones(len(y))])
    p = expit(A @ np.append(model.coef_, model.intercept_))
    H = (A * (p * (1 - p))[:, None]).T @ A + np.diag([1, 1, 1, 0.01])
    assert_allclose(model.covariance_, np.linalg.inv(H), rtol=1e-6, atol=1e-9)


def test_the_bound_never_falls_and_ends_at_its_maximum():
    X, y = table(200, 4, seed=5)
    model = BayesianLogisticRegression("variational", tol=1e-13, max_iter=5000).fit(X, y)
    assert np.all(np.diff(model.history_.objective) <= 1e-9)
    assert model.history_.objective[-1] == -model.log_evidence_
    data = as_data(X, y.astype(float), target="numeric", estimator_name="test")
    precision = np.array([1, 1, 1, 1, 0.01])
    best = np.append(model.coef_, model.intercept_)
    half = np.linalg.cholesky(model.covariance_)
    top = bound_step(data, precision, best, half, None)[2]
    assert top == pytest.approx(model.log_evidence_, rel=1e-10)
    rng = np.random.default_rng(0)
    for _ in range(5):  # other points of expansion give lower bounds
        moved = bound_step(data, precision, best + 0.3 * rng.normal(size=5), half, None)[2]
        assert moved < top
    narrow = inverse_half(np.linalg.inv(model.covariance_) * 4)
    assert bound_step(data, precision, best, narrow, None)[2] < top


def test_predictions_agree_across_methods():
    X, y = table(300, 4, seed=8)
    options = {**FAST, "n_draws": 1000}  # a draw of Gibbs sampling is worth a quarter of an independent one
    found = {m: BayesianLogisticRegression(m, **options).fit(X, y).predict_proba(X)[:, 1] for m in METHODS}
    for name in METHODS:
        assert_allclose(found[name], found["nuts"], atol=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gibbs", "nuts", "laplace"])
def test_simulation_based_calibration(method):
    """Coefficients drawn from the prior have uniform ranks among the draws of the posterior of their own data."""
    repetitions, bins, rng = 200, 10, np.random.default_rng(23)
    ranks = np.empty((repetitions, 2))
    for i in range(repetitions):
        X = rng.normal(size=(100, 1))
        w, b = rng.normal(0, 1), rng.normal(0, 1)
        y = rng.random(100) < expit(X[:, 0] * w + b)
        if len(set(y.tolist())) < 2:  # so few that the histogram does not notice
            ranks[i] = rng.random(2)
            continue
        options = {"n_draws": 200, "n_warmup": 50, "n_chains": 1, "random_state": i, "intercept_alpha": 1.0}
        with ep.config(on_nonconvergence="ignore"):
            model = BayesianLogisticRegression(method, **options).fit(X, y)
        if method == "laplace":
            mean = np.append(model.coef_, model.intercept_)
            ranks[i] = norm.cdf(([w, b] - mean) / np.sqrt(np.diagonal(model.covariance_)))
        else:
            ranks[i] = (model.draws_.reshape(-1, 2) < [w, b]).mean(axis=0)
    for column in ranks.T:
        counts = np.histogram(column, bins, (0, 1))[0]
        assert chisquare(counts).pvalue > 1e-4, counts


# ---------------------------------------------------------------- weights, containers, engines, files


@pytest.mark.parametrize("method", METHODS)
def test_weights_repeat_rows(method):
    X, y = table(50, 2, seed=2)
    v = np.random.default_rng(4).integers(0, 4, len(y))
    options = {**FAST, "n_draws": 100} if method in ("gibbs", "nuts") else {}
    with ep.config(on_nonconvergence="ignore"):
        weighted = BayesianLogisticRegression(method, **options).fit(X, y, v)
        repeated = BayesianLogisticRegression(method, **options).fit(np.repeat(X, v, axis=0), np.repeat(y, v))
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-8)
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-7)
    if method != "map":
        assert_allclose(weighted.covariance_, repeated.covariance_, rtol=1e-5, atol=1e-8)


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6), method=st.sampled_from(["map", "laplace", "variational"]), scale=st.floats(0.01, 100)
)
def test_order_labels_and_units(seed, method, scale):
    X, y = table(60, 3, seed)
    if len(set(y)) < 2:
        return
    rng = np.random.default_rng(seed)
    model = BayesianLogisticRegression(method).fit(X, y)
    order = rng.permutation(len(y))
    assert_allclose(BayesianLogisticRegression(method).fit(X[order], y[order]).coef_, model.coef_, rtol=1e-5, atol=1e-6)
    # Other units with the prior in those units are the same model; other labels turn it round.
    scaled = BayesianLogisticRegression(method, alpha=scale**2).fit(X * scale, y)
    assert_allclose(scaled.coef_ * scale, model.coef_, rtol=1e-4, atol=1e-5)
    assert_allclose(scaled.predict_proba(X * scale), model.predict_proba(X), atol=1e-5)
    turned = BayesianLogisticRegression(method).fit(X, np.where(y == 1, "a", "b"))
    assert_allclose(turned.coef_, -model.coef_, rtol=1e-5, atol=1e-6)
    p = model.predict_proba(X)
    assert p.shape == (60, 2)
    assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    assert_array_equal(model.predict(X), model.classes_[(model.decision_function(X) > 0).astype(int)])


@pytest.mark.parametrize("method", METHODS)
def test_containers_and_files(method, tmp_path):
    X, y = table(60, 3)
    options = {**FAST, "n_draws": 100} if method in ("gibbs", "nuts") else {}
    with ep.config(on_nonconvergence="ignore"):
        model = BayesianLogisticRegression(method, **options).fit(X, y)
        for container in (pd.DataFrame(X, columns=list("abc")), sp.csr_array(X), X.astype(np.float32)):
            other = BayesianLogisticRegression(method, **options).fit(container, y)
            loose = 1e-12 if isinstance(container, pd.DataFrame) else 1e-8 if sp.issparse(container) else 1e-4
            if method not in ("gibbs", "nuts") or loose == 1e-12:  # draws drift apart by rounding
                assert_allclose(other.coef_, model.coef_, rtol=loose, atol=loose)
                assert_allclose(other.predict_proba(container), model.predict_proba(X), atol=loose)
    model.save(tmp_path / "model.epi")
    again = ep.load(tmp_path / "model.epi")
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert_array_equal(again.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("method", ["map", "laplace", "variational"])
def test_files_and_dask(method, tmp_path):
    X, y = table(400, 3)
    model = BayesianLogisticRegression(method).fit(X, y)
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=y)
    frame.to_parquet(tmp_path / "rows.parquet")
    from_file = BayesianLogisticRegression(method).fit(ep.scan(tmp_path / "rows.parquet", target="y"))
    lazy = da.from_array(X, chunks=(90, 3))
    on_dask = BayesianLogisticRegression(method).fit(lazy, da.from_array(y, chunks=90))
    for other in (from_file, on_dask):
        assert_allclose(other.coef_, model.coef_, rtol=1e-8)
    assert_allclose(on_dask.predict_proba(lazy).compute(), model.predict_proba(X), atol=1e-10)


# ---------------------------------------------------------------- randomness, summary, bad input


@pytest.mark.parametrize("method", ["gibbs", "nuts"])
def test_draws_repeat(method):
    X, y = table(40, 2)
    options = {**FAST, "n_draws": 50}
    with ep.config(on_nonconvergence="ignore"):
        a, b, c = (
            BayesianLogisticRegression(method, **{**options, "random_state": s}).fit(X, y).draws_ for s in (0, 0, 1)
        )
    assert a.shape == (4, 50, 3)
    assert_array_equal(a, b)
    assert not np.array_equal(a, c)


def test_few_draws_are_not_certified():
    X, y = table(40, 2)
    with pytest.warns(ep.exceptions.ConvergenceWarning):
        model = BayesianLogisticRegression("gibbs", n_draws=20, n_warmup=0, n_chains=2, random_state=0).fit(X, y)
    assert not model.certificate_.holds
    assert not model.converged_


def test_summary():
    X, y = table()
    model = BayesianLogisticRegression().fit(pd.DataFrame(X, columns=["age", "dose", "time"]), y)
    summary = model.summary(0.9)
    assert summary.rows == ("age", "dose", "time", "intercept")
    assert_allclose(summary["mean"], np.append(model.coef_, model.intercept_))
    assert_allclose(summary["95%"] - summary["5%"], 2 * 1.6448536 * np.sqrt(np.diagonal(model.covariance_)), rtol=1e-6)
    assert "log evidence" in str(summary)
    assert BayesianLogisticRegression(fit_intercept=False).fit(X, y).summary().rows == ("x0", "x1", "x2")
    with pytest.raises(ParameterError, match="method='map' has no posterior"):
        BayesianLogisticRegression("map").fit(X, y).summary()
    with pytest.raises(NotFittedError):
        BayesianLogisticRegression().summary()
    with pytest.raises(ParameterError, match="level"):
        model.summary(1.0)


def test_separable_classes_have_a_posterior():
    X = np.array([[-1.0], [-2.0], [1.0], [2.0]])
    y = [0, 0, 1, 1]
    models = [BayesianLogisticRegression(m).fit(X, y) for m in ("map", "laplace", "variational")]
    assert all(m.converged_ and 0 < m.coef_[0, 0] < 3 for m in models)
    # The average is less sure than the mode, and more so the further away.
    mode, average = (m.decision_function([[1.0], [50.0]]) for m in models[:2])
    assert np.all(average < mode)
    assert average[1] / mode[1] < average[0] / mode[0]


def test_bad_input():
    X, y = table()
    with pytest.raises(DataError, match=r"3 classes\. Only binary classification is supported"):
        BayesianLogisticRegression().fit(X, np.arange(len(y)) % 3)
    with pytest.raises(DataError, match="only one class"):
        BayesianLogisticRegression().fit(X, np.zeros(len(y)))
    with pytest.raises(DataError, match=r"sample_weight: holds 0\.5; method='gibbs' repeats rows"):
        BayesianLogisticRegression("gibbs").fit(X, y, np.full(len(y), 0.5))
    with pytest.raises(DataTypeError, match="method='gibbs' takes rows in memory"):
        BayesianLogisticRegression("gibbs").fit(da.from_array(X, chunks=(40, 3)), da.from_array(y, chunks=40))
    for options in ({"method": "exact"}, {"alpha": 0.0}, {"intercept_alpha": -1.0}, {"n_draws": 0}, {"n_chains": 0}):
        with pytest.raises(ParameterError, match=next(iter(options))):
            BayesianLogisticRegression(**options).fit(X, y)
