"""Gaussian processes with kernels of scikit-learn, against scikit-learn's own."""

import numpy as np
import pytest
import sklearn.gaussian_process as theirs
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    GenericKernelMixin,
    Hyperparameter,
    Kernel,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

import epicycle as ep
from epicycle import GaussianProcessClassifier, GaussianProcessRegressor
from epicycle.exceptions import DataError, NotFittedError, ParameterError, ParameterTypeError
from epicycle.kernel import Gaussian

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (25, 2))
NEW = RNG.uniform(-2, 2, (7, 2))
Y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RNG.normal(size=25)

KERNELS = [
    ConstantKernel(2.0) * RBF([1.0, 2.0], [(1e-2, 1e2), (1e-1, 1e3)]) + WhiteKernel(0.1),
    WhiteKernel(0.2, (1e-3, 1.0)) + Matern(1.5, nu=1.5),
    ConstantKernel(1.0, "fixed") * RationalQuadratic(1.2, 0.7, alpha_bounds="fixed") + WhiteKernel(0.1, "fixed"),
    RBF(2.0) * ExpSineSquared(4.0, 9.0) + WhiteKernel(0.5),
    Exponentiation(DotProduct(1.0), 2) + WhiteKernel(0.1),
    2.0 * Matern(1.5, nu=0.7) * (RBF(2.0) + WhiteKernel(0.5)),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_regression_is_that_of_scikit_learn(kernel):
    ours = GaussianProcessRegressor(kernel, optimizer=None).fit(X, Y)
    reference = theirs.GaussianProcessRegressor(kernel, optimizer=None).fit(X, Y)
    assert_allclose(ours.predict(NEW), reference.predict(NEW), rtol=1e-6, atol=1e-8)
    for option in ({"return_std": True}, {"return_cov": True}):
        assert_allclose(ours.predict(NEW, **option)[1], reference.predict(NEW, **option)[1], rtol=1e-6, atol=1e-8)
    theta = kernel.theta + 0.1
    value, gradient = ours.log_marginal_likelihood(theta, eval_gradient=True)
    expected_value, expected_gradient = reference.log_marginal_likelihood(theta, eval_gradient=True)
    assert_allclose(value, expected_value, rtol=1e-8)
    assert_allclose(gradient, expected_gradient, rtol=1e-5, atol=1e-6)
    assert_allclose(ours.X_train_, X)
    assert_allclose(ours.L_, reference.L_, atol=1e-8)
    assert_allclose(ours.alpha_, reference.alpha_, rtol=1e-5, atol=1e-7)
    assert_allclose(ours.y_train_, reference.y_train_)


@pytest.mark.parametrize("kernel", KERNELS[:3], ids=str)
def test_the_search_ends_no_lower_than_scikit_learns(kernel):
    ours = GaussianProcessRegressor(kernel).fit(X, Y)
    reference = theirs.GaussianProcessRegressor(kernel).fit(X, Y)
    assert ours.log_marginal_likelihood_value_ > reference.log_marginal_likelihood_value_ - 1e-5
    assert ours.certificate_.holds
    assert_allclose(ours.kernel_.bounds, kernel.bounds)
    assert [h.name for h in ours.kernel_.hyperparameters] == [h.name for h in kernel.hyperparameters]
    assert ours.kernel_.get_params().keys() == kernel.get_params().keys()


def test_equal_rows_have_a_noise_each():
    rows, targets = np.vstack([X, X[:5]]), np.concatenate([Y, Y[:5] + 1])
    kernel = RBF() + WhiteKernel(0.3)
    ours = GaussianProcessRegressor(kernel, optimizer=None).fit(rows, targets)
    reference = theirs.GaussianProcessRegressor(kernel, optimizer=None).fit(rows, targets)
    assert_allclose(ours.predict(NEW), reference.predict(NEW), rtol=1e-7)
    assert_allclose(ours.log_marginal_likelihood_value_, reference.log_marginal_likelihood_value_)
    labels = targets > 0.5
    classifier = GaussianProcessClassifier(kernel, optimizer=None).fit(rows, labels)
    reference = theirs.GaussianProcessClassifier(kernel, optimizer=None).fit(rows, labels)
    assert_allclose(classifier.log_marginal_likelihood_value_, reference.log_marginal_likelihood_value_, rtol=1e-6)
    assert_allclose(classifier.predict_proba(NEW), reference.predict_proba(NEW), atol=1e-4)
    value, gradient = classifier.log_marginal_likelihood(kernel.theta + 0.1, eval_gradient=True)
    expected, expected_gradient = reference.log_marginal_likelihood(kernel.theta + 0.1, eval_gradient=True)
    assert_allclose(value, expected, rtol=1e-6)
    assert_allclose(gradient, expected_gradient, rtol=1e-4, atol=1e-5)
    assert classifier.n_classes_ == 2
    assert classifier.base_estimator_ is classifier


def test_the_prior_before_fit():
    kernel = ConstantKernel(3.0) * RBF(0.7) + WhiteKernel(0.5)
    ours, reference = GaussianProcessRegressor(kernel), theirs.GaussianProcessRegressor(kernel)
    assert_allclose(ours.predict(NEW), np.zeros(7))
    assert_allclose(ours.predict(NEW, return_std=True)[1], reference.predict(NEW, return_std=True)[1])
    assert_allclose(ours.predict(NEW, return_cov=True)[1], reference.predict(NEW, return_cov=True)[1])
    draws = GaussianProcessRegressor(Gaussian(0.7)).sample_y(NEW, 20_000)
    assert_allclose(np.cov(draws), Gaussian(0.7)(NEW), atol=0.05)
    several = GaussianProcessRegressor(n_targets=3)
    assert several.predict(NEW).shape == (7, 3)
    assert several.predict(NEW, return_cov=True)[1].shape == (7, 7, 3)
    assert several.sample_y(NEW, 4).shape == (7, 3, 4)
    with pytest.raises(DataError, match="number of targets"):
        several.fit(X, Y)
    with pytest.raises(NotFittedError, match="mean"):
        GaussianProcessRegressor(mean="linear").predict(NEW)
    with pytest.raises(NotFittedError, match="noise"):
        GaussianProcessRegressor().predict(NEW, return_std=True, include_noise=True)


def test_a_column_of_targets_is_predicted_as_a_vector():
    model = GaussianProcessRegressor(RBF(), optimizer=None).fit(X, Y[:, None])
    assert model.predict(NEW).shape == (7,)
    assert model.sample_y(NEW, 2).shape == (7, 2)


def test_the_kernel_may_be_left_at_another_theta():
    model = GaussianProcessRegressor(RBF(1.0), optimizer=None).fit(X, Y)
    model.log_marginal_likelihood([0.5])
    assert_allclose(model.kernel_.theta, [0.0])
    model.log_marginal_likelihood([0.5], clone_kernel=False)
    assert_allclose(model.kernel_.theta, [0.5])
    assert_allclose(model.kernel_.length_scale, np.exp(0.5))


def test_names_of_classes():
    by_name = GaussianProcessRegressor("RBF", alpha=0.1, optimizer=None).fit(X, Y)
    by_object = GaussianProcessRegressor(RBF(), alpha=0.1, optimizer=None).fit(X, Y)
    assert np.array_equal(by_name.predict(NEW), by_object.predict(NEW))
    for name in ("WhiteKernel", "ConstantKernel", "DotProduct", "Matern", "RationalQuadratic"):
        assert GaussianProcessRegressor(name, alpha=0.5, optimizer=None).fit(X, Y).certificate_.holds
    assert GaussianProcessRegressor("ExpSineSquared", alpha=0.5, optimizer=None).fit(X[:, :1], Y).certificate_.holds


class SharedLetters(GenericKernelMixin, Kernel):
    """Similarity of strings, with a value for letters that differ."""

    def __init__(self, other=0.1, other_bounds=(1e-3, 0.9)):
        self.other = other
        self.other_bounds = other_bounds

    @property
    def hyperparameter_other(self):
        return Hyperparameter("other", "numeric", self.other_bounds)

    def __call__(self, X, Y=None, eval_gradient=False):
        Y = X if Y is None else Y
        same = np.array([[np.mean([a == b for a in x for b in y]) for y in Y] for x in X])
        K = same + self.other * (1 - same)
        return (K, self.other * (1 - same)[:, :, None]) if eval_gradient else K

    def diag(self, X):
        return np.array([self([x])[0, 0] for x in X])

    def is_stationary(self):
        return False


def test_strings_and_further_kernels():
    words = ["aab", "abb", "bbb", "aaa", "abab"]
    targets = np.array([1.0, 2.0, 3.0, 0.0, 1.5])
    ours = GaussianProcessRegressor(SharedLetters() + WhiteKernel(0.1), optimizer=None).fit(words, targets)
    reference = theirs.GaussianProcessRegressor(SharedLetters() + WhiteKernel(0.1), optimizer=None).fit(words, targets)
    assert_allclose(ours.predict(["ab", "ba", "b"]), reference.predict(["ab", "ba", "b"]), rtol=1e-6)


def test_files_and_other_machines(tmp_path):
    model = GaussianProcessRegressor(KERNELS[0], optimizer=None).fit(X, Y)
    model.save(tmp_path / "m.epi")
    again = ep.load(tmp_path / "m.epi")
    assert np.array_equal(again.predict(NEW), model.predict(NEW))
    assert again.kernel == KERNELS[0]
    ridge = ep.KernelRidge(kernel=RBF(1.5), alpha=0.1).fit(X, Y)
    assert_allclose(ridge.predict(NEW), ep.KernelRidge(kernel=Gaussian(1.5), alpha=0.1).fit(X, Y).predict(NEW))


def test_what_is_refused():
    with pytest.raises(ParameterError, match="CompoundKernel"):
        GaussianProcessClassifier(CompoundKernel([RBF(), RBF()])).fit(X, Y > 0)
    with pytest.raises(ParameterError, match="bounds are finite"):
        GaussianProcessRegressor(WhiteKernel(1.0, (1e-3, np.inf)), n_restarts_optimizer=2).fit(X, Y)
    with pytest.raises(ParameterTypeError, match="expected a kernel of"):
        GaussianProcessRegressor(KERNELS[0]).fit(X, Y).kernel_ + Gaussian()
    with pytest.raises(ParameterTypeError, match="expected a kernel of"):
        Gaussian() + RBF()
    with pytest.raises(ParameterError, match="method"):
        GaussianProcessRegressor(RBF(), method="inducing").fit(X, Y)
    with pytest.warns(ep.exceptions.ConvergenceWarning, match="close to the specified upper bound"):
        GaussianProcessRegressor(RBF(0.3, (1e-3, 0.4)), alpha=0.1).fit(X, Y)


def test_constant_targets_are_not_scaled_by_their_rounding():
    targets = np.ones(6)  # whose weighted mean is 1 less a rounding
    model = GaussianProcessRegressor(RBF(), optimizer=None, normalize_y=True).fit(np.arange(6.0)[:, None], targets)
    assert model._y_train_std == 1.0
    assert_allclose(model.predict([[2.5]]), 1.0)
