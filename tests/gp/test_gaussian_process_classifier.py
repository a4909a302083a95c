"""Gaussian process classification: the mode, the evidence and its gradient, probabilities, against independent ways."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import scipy.special
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.gaussian_process import GaussianProcessClassifier as SklearnClassifier, kernels as sk

import epicycle as ep
from epicycle import GaussianProcessClassifier
from epicycle.exceptions import DataError, ParameterError
from epicycle.gp._latent import average_logistic, average_softmax
from epicycle.kernel import (
    NNGP,
    Constant,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Periodic,
    RationalQuadratic,
    Scaled,
    Spectrum,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(45, 2))
LABELS = {
    2: (X[:, 0] * X[:, 1] + 0.4 * RNG.normal(size=45) > 0).astype(int),
    3: np.digitize(X[:, 0] + 0.5 * RNG.normal(size=45), [-0.5, 0.5]),
}
NEW = RNG.normal(size=(9, 2))
KERNELS = [
    Gaussian((1.0, 2.0)),
    2.0 * Gaussian(0.8) + 0.5,
    Matern((0.5, 1.0), nu=2.5),
    Laplacian(1.5),
    3.0 * RationalQuadratic((0.5, 1.0), alpha=2.0),
    Gaussian(2.0) * Periodic(1.0, period=2.0) + 0.3 * Linear(),
    2.0 * NNGP(2, 1.5, 0.2) ** 2,
    Constant(2.0),
]


@pytest.mark.parametrize("k", [2, 3])
def test_gradients_of_the_evidence(k):
    weight = RNG.integers(1, 4, 45)
    for kernel in KERNELS:
        model = GaussianProcessClassifier(kernel, optimizer=None).fit(X, LABELS[k], weight)
        value, gradient = model.log_marginal_likelihood(model.theta_, eval_gradient=True)
        assert value == pytest.approx(model.log_marginal_likelihood_value_, rel=1e-9)
        for i, e in enumerate(np.eye(len(model.theta_))):
            up, down = (model.log_marginal_likelihood(model.theta_ + s * 1e-5 * e) for s in (1, -1))
            assert gradient[i] == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-6), kernel


def test_the_mode_and_the_evidence_of_several_classes_by_a_general_optimiser():
    """Maximise the posterior over all latent values at once, and take the determinant of its full curvature."""
    rows, y = X[:20], LABELS[3][:20]
    kernel = 1.5 * Gaussian(1.0)
    K = np.kron(np.eye(3), kernel(rows) + 1e-10 * np.eye(20))
    inverse = np.linalg.inv(K)
    one_hot = np.eye(3)[y].T.ravel()

    def negative(f):
        F = f.reshape(3, 20)
        p = scipy.special.softmax(F, axis=0).ravel()
        value = one_hot @ f - scipy.special.logsumexp(F, axis=0).sum() - 0.5 * f @ inverse @ f
        return -value, -(one_hot - p - inverse @ f)

    found = scipy.optimize.minimize(negative, np.zeros(60), jac=True, method="BFGS", options={"gtol": 1e-9})
    p = scipy.special.softmax(found.x.reshape(3, 20), axis=0)
    W = np.diag(p.ravel()) - np.block([[np.diag(p[c] * p[d]) for d in range(3)] for c in range(3)])
    evidence = -found.fun - 0.5 * np.linalg.slogdet(np.eye(60) + K @ W)[1]
    model = GaussianProcessClassifier(kernel, optimizer=None).fit(rows, y)
    assert model.log_marginal_likelihood_value_ == pytest.approx(evidence, abs=1e-6)
    order = np.array([np.flatnonzero((model.X_fit_ == row).all(axis=1))[0] for row in rows])
    assert_allclose(kernel(rows) @ model.dual_coef_[order], found.x.reshape(3, 20).T, atol=1e-5)
    covariance = np.linalg.inv(inverse + W)  # of the latent values at the rows themselves
    _, variance = model.latent_mean_and_variance(rows)
    assert_allclose(variance, np.diagonal(covariance).reshape(3, 20).T, atol=1e-6)
    assert model.certificate_.holds


def test_agrees_with_scikit_learn():
    for mine, theirs in (
        (2.0 * Gaussian(0.9), sk.ConstantKernel(2.0) * sk.RBF(0.9)),
        (Matern((0.5, 1.0), nu=1.5), sk.Matern([0.5, 1.0], nu=1.5)),
    ):
        ours = GaussianProcessClassifier(mine, optimizer=None).fit(X, LABELS[2])
        peer = SklearnClassifier(theirs, optimizer=None).fit(X, LABELS[2])
        assert ours.log_marginal_likelihood_value_ == pytest.approx(peer.log_marginal_likelihood_value_, rel=1e-8)
        slope = peer.log_marginal_likelihood(peer.kernel_.theta, eval_gradient=True)[1]
        assert_allclose(ours.log_marginal_likelihood(ours.theta_, True)[1], slope, rtol=1e-5)
        for a, b in zip(ours.latent_mean_and_variance(NEW), peer.latent_mean_and_variance(NEW), strict=True):
            assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        assert_allclose(ours.predict_proba(NEW), peer.predict_proba(NEW), atol=2e-3)  # theirs are five error functions
        learnt = GaussianProcessClassifier(mine).fit(X, LABELS[2])
        tuned = SklearnClassifier(theirs).fit(X, LABELS[2])
        assert learnt.log_marginal_likelihood_value_ >= tuned.log_marginal_likelihood_value_ - 1e-4
        assert learnt.certificate_.holds


@pytest.mark.parametrize("multi_class", ["one_vs_rest", "one_vs_one"])
def test_several_classes_in_parts(multi_class, tmp_path):
    kernel = sk.ConstantKernel(2.0) * sk.RBF(0.9)
    ours = GaussianProcessClassifier(kernel, multi_class=multi_class, optimizer=None).fit(X, LABELS[3])
    peer = SklearnClassifier(kernel, multi_class=multi_class, optimizer=None).fit(X, LABELS[3])
    assert ours.log_marginal_likelihood() == pytest.approx(peer.log_marginal_likelihood(), rel=1e-7)
    for theta in (kernel.theta + 0.2, np.tile(kernel.theta, 3) + np.linspace(0, 1, 6)):  # of all, of each
        value, gradient = ours.log_marginal_likelihood(theta, eval_gradient=True)
        assert value == pytest.approx(peer.log_marginal_likelihood(theta), rel=1e-7)
        steps = 1e-5 * np.eye(len(theta))
        differences = [
            (ours.log_marginal_likelihood(theta + e) - ours.log_marginal_likelihood(theta - e)) for e in steps
        ]
        assert_allclose(gradient, np.array(differences) / 2e-5, rtol=1e-5, atol=1e-6)
    assert ours.predict(X).tolist() == peer.predict(X).tolist()
    assert ours.decision_function(X).argmax(axis=1).tolist() == ours.predict(X).tolist()
    with pytest.raises(ParameterError, match="only supported for binary"):
        ours.latent_mean_and_variance(X)
    if multi_class == "one_vs_rest":
        assert_allclose(ours.predict_proba(NEW), peer.predict_proba(NEW), atol=2e-3)
    else:
        with pytest.raises(ParameterError, match="does not support predicting probability"):
            ours.predict_proba(NEW)
    learnt = GaussianProcessClassifier(multi_class=multi_class).fit(X, LABELS[3])
    assert learnt.certificate_.holds
    assert len(learnt.theta_) == sum(len(part.theta_) for part in learnt.estimators_) == 6
    learnt.save(tmp_path / "parts.epi")
    assert ep.load(tmp_path / "parts.epi").predict(NEW).tolist() == learnt.predict(NEW).tolist()
    # two classes are the same in every mode
    two = GaussianProcessClassifier(multi_class=multi_class, optimizer=None).fit(X, LABELS[2])
    assert_allclose(
        two.predict_proba(NEW), GaussianProcessClassifier(optimizer=None).fit(X, LABELS[2]).predict_proba(NEW)
    )


def test_parts_count_weights_as_repetitions():
    weight = RNG.integers(0, 3, 45)
    again = np.repeat(np.arange(45), weight)
    for multi_class in ("one_vs_rest", "one_vs_one"):
        weighted = GaussianProcessClassifier(Gaussian(0.9), multi_class=multi_class, optimizer=None)
        weighted.fit(X, LABELS[3], weight)
        repeated = GaussianProcessClassifier(Gaussian(0.9), multi_class=multi_class, optimizer=None)
        repeated.fit(X[again], LABELS[3][again])
        assert_allclose(weighted.decision_function(NEW), repeated.decision_function(NEW), atol=1e-7)


def test_averages_over_normal_latent_values():
    x = np.linspace(-15, 15, 301)
    assert_allclose(average_logistic(x, np.zeros(301)), scipy.special.expit(x), atol=3e-9)
    nodes, weights = np.polynomial.hermite_e.hermegauss(300)
    for mean, variance in ((0.3, 0.1), (-1.0, 4.0), (2.0, 30.0)):
        expected = weights @ scipy.special.expit(mean + np.sqrt(variance) * nodes) / weights.sum()
        assert average_logistic(np.array([mean]), np.array([variance]))[0] == pytest.approx(expected, abs=1e-7)
    rng = np.random.default_rng(1)
    mean = rng.normal(size=(4, 3))
    roots = rng.normal(size=(4, 3, 3))
    covariance = roots @ roots.transpose(0, 2, 1)
    drawn = mean[:, None] + np.einsum("sj,ikj->isk", rng.normal(size=(200_000, 3)), roots)
    expected = scipy.special.softmax(drawn, axis=2).mean(axis=1)
    assert_allclose(average_softmax(mean, covariance), expected, atol=4e-3)
    assert_allclose(average_softmax(mean, np.zeros((4, 3, 3))), scipy.special.softmax(mean, axis=1), rtol=1e-12)


def test_probabilities_are_calibrated():
    """Labels drawn from latent functions that are drawn from the prior: what is said with p happens with p."""
    rng = np.random.default_rng(2)
    kernel = 4.0 * Gaussian(1.0)
    rows = rng.uniform(-3, 3, size=(90, 1))
    L = np.linalg.cholesky(kernel(rows) + 1e-9 * np.eye(90))
    said, happened = [], []
    for _ in range(60):
        y = (rng.random(90) < scipy.special.expit(L @ rng.normal(size=90))).astype(int)
        if 0 < y[:50].sum() < 50:
            said.append(
                GaussianProcessClassifier(kernel, optimizer=None).fit(rows[:50], y[:50]).predict_proba(rows[50:])[:, 1]
            )
            happened.append(y[50:])
    said, happened = np.concatenate(said), np.concatenate(happened)
    for low in (0.0, 0.25, 0.5, 0.75):
        inside = (said >= low) & (said < low + 0.25)
        assert happened[inside].mean() == pytest.approx(said[inside].mean(), abs=0.07)


@settings(max_examples=8)
@given(st.integers(0, 10_000), st.sampled_from([2, 3]))
def test_weights_are_repetitions(seed, k):
    rng = np.random.default_rng(seed)
    rows, y, weight = rng.normal(size=(15, 2)), np.arange(15) % k, rng.integers(0, 4, 15)
    weight[:3] = 2
    repeated = np.repeat(np.arange(15), weight)
    for optimizer in (None, "bfgs"):
        kernel = Scaled(Gaussian(1.0, bounds={"length_scale": (0.1, 10.0)}), 2.0, bounds={"variance": (0.1, 50.0)})
        weighted = GaussianProcessClassifier(kernel, optimizer=optimizer).fit(rows, y, weight)
        longer = GaussianProcessClassifier(kernel, optimizer=optimizer).fit(rows[repeated], y[repeated])
        assert weighted.log_marginal_likelihood_value_ == pytest.approx(longer.log_marginal_likelihood_value_, rel=1e-7)
        assert_allclose(weighted.predict_proba(NEW), longer.predict_proba(NEW), atol=1e-5)


def test_iris_strings_sparse_and_files(tmp_path):
    rows, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = GaussianProcessClassifier().fit(rows[::2], names[::2])
    assert model.method_ == "exact"
    assert model.score(rows[1::2], names[1::2]) > 0.94
    P = model.predict_proba(rows[1::2])
    assert_allclose(P.sum(axis=1), 1.0)
    assert np.array_equal(model.classes_[P.argmax(axis=1)], model.predict(rows[1::2]))
    model.save(tmp_path / "gp.epi")
    assert np.array_equal(ep.load(tmp_path / "gp.epi").predict_proba(rows[:9]), model.predict_proba(rows[:9]))
    kernel = 3.0 * Gaussian(1.0)
    dense = GaussianProcessClassifier(kernel, optimizer=None).fit(X, LABELS[3])
    sparse = GaussianProcessClassifier(kernel, optimizer=None).fit(sp.csr_array(X), LABELS[3])
    assert_allclose(sparse.predict_proba(sp.csr_array(NEW)), dense.predict_proba(NEW), atol=1e-7)
    assert dense.predict_proba(NEW.astype(np.float32)).dtype == np.float32
    words = ["gattaca", "cattaga", "gattagat", "ccggcc", "ggccgg", "cgcgcg"]
    text = GaussianProcessClassifier(5.0 * Spectrum(2).normalized(), optimizer=None).fit(words, list("aaabbb"))
    assert text.predict(["gattac", "ccgg"]).tolist() == ["a", "b"]
    given_matrix = GaussianProcessClassifier("precomputed").fit(kernel(X), LABELS[2])
    plain = GaussianProcessClassifier(kernel, optimizer=None).fit(X, LABELS[2])
    assert_allclose(given_matrix.decision_function(kernel(NEW, X)), plain.decision_function(NEW), atol=1e-7)
    weight = np.arange(45) % 3
    given_matrix.fit(kernel(X), LABELS[2], weight)
    plain.fit(X, LABELS[2], weight)
    assert_allclose(given_matrix.decision_function(kernel(NEW, X)), plain.decision_function(NEW), atol=1e-7)


def test_separable_and_contradicting_labels():
    rows = np.linspace(-1, 1, 20)[:, None]
    y = (rows[:, 0] > 0).astype(int)
    with ep.config(on_nonconvergence="ignore"):
        model = GaussianProcessClassifier(1e4 * Gaussian(0.5), optimizer=None).fit(rows, y)
    assert model.certificate_.holds  # steps are shortened where Newton's would not rise
    assert model.score(rows, y) == 1.0
    both = GaussianProcessClassifier(10.0 * Gaussian(0.5), optimizer=None).fit(np.zeros((6, 1)), [0, 1, 0, 1, 0, 1])
    assert_allclose(both.predict_proba([[0.0]]), [[0.5, 0.5]], atol=1e-9)
    assert len(both.X_fit_) == 1


def _fitted():
    return GaussianProcessClassifier(optimizer=None).fit(X, LABELS[2])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: GaussianProcessClassifier().fit(X, np.zeros(45)), DataError, "only one class"),
        (lambda: GaussianProcessClassifier().fit([[np.nan], [1.0]], [0, 1]), DataError, "NaN"),
        (lambda: GaussianProcessClassifier(method="cg").fit(X, LABELS[2]), ParameterError, "method='cg'"),
        (lambda: GaussianProcessClassifier(Gaussian((1.0,) * 5)).fit(X, LABELS[2]), DataError, "length_scale"),
        (lambda: GaussianProcessClassifier(max_iter_predict=0).fit(X, LABELS[2]), ParameterError, "max_iter_predict"),
        (lambda: GaussianProcessClassifier().fit(X, LABELS[2]).log_marginal_likelihood([0.0]), ParameterError, "theta"),
        (
            lambda: (
                GaussianProcessClassifier(optimizer=None).fit(X, LABELS[2]).log_marginal_likelihood(eval_gradient=True)
            ),
            ParameterError,
            "evaluated for theta!=None",
        ),
        (lambda: GaussianProcessClassifier(multi_class="ovo").fit(X, LABELS[2]), ParameterError, "multi_class='ovo'"),
    ],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call()
