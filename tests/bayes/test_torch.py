"""Functions and modules of torch as densities: the same gradients, the same posteriors, and torch only where asked."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import stats

import epicycle as ep
from epicycle import bayes
from epicycle.exceptions import DataError, MissingDependencyError

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 2))
Y = (RNG.random(40) < 1 / (1 + np.exp(-X @ [1.0, -0.5]))).astype(np.float64)


class Logistic(torch.nn.Module):
    """Logistic regression with the prior scales of our compiled model; a module with a constant of its own."""

    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor(2.5, dtype=torch.float64))

    def forward(self, coef, intercept, X, y):
        margin = X @ coef + intercept
        likelihood = torch.sum(y * margin - torch.nn.functional.softplus(margin))
        return likelihood - torch.sum((coef / self.scale) ** 2) / 2 - (intercept / 10) ** 2 / 2


def module_model():
    constraints = {"coef": bayes.Real(2), "intercept": bayes.Real()}
    return bayes.Model(Logistic(), constraints, gradient="torch", data={"X": X, "y": Y})


def gamma_density(x):
    """Gamma(3, 2) of a positive number and N(1, 0.5^2) of a vector, in a dict of tensors."""
    return 2 * torch.log(x["rate"]) - 2 * x["rate"] - 2 * torch.sum((x["mean"] - 1) ** 2)


START = {"rate": 1.0, "mean": np.zeros(2)}
CONSTRAINTS = {"rate": bayes.Positive()}


def test_autograd_equals_the_compiled_gradient():
    model, compiled = module_model(), bayes.LogisticModel(X, Y, prior_scale=2.5, intercept_scale=10.0)
    differences = []
    for u in RNG.normal(size=(5, 3)):
        value, gradient = model.value_and_gradient(u)
        by_name = dict(zip(("coef", "intercept"), (u[:2], u[2]), strict=True))
        expected, expected_gradient = compiled.value_and_gradient(compiled.parameters.unconstrain(by_name))
        where = compiled.parameters.slices
        assert_allclose(gradient[:2], expected_gradient[where["coef"]], rtol=1e-10)
        assert_allclose(gradient[2:], expected_gradient[where["intercept"]], rtol=1e-10)
        assert value == pytest.approx(model.value(u), rel=1e-14)
        differences.append(value - expected)
    assert_allclose(differences, differences[0], atol=1e-10)  # both up to a constant


def test_a_jacobian_is_added_to_the_gradient_of_torch():
    model = bayes.Model(
        lambda rate: 2 * torch.log(rate) - 2 * rate, {"rate": bayes.Positive()}, gradient="torch"
    )  # in t = log(rate): 3 t - 2 e^t
    for t in (-1.0, 0.3, 2.0):
        value, gradient = model.value_and_gradient(np.array([t]))
        assert value == pytest.approx(3 * t - 2 * np.exp(t))
        assert_allclose(gradient, [3 - 2 * np.exp(t)])


def test_a_sampled_module_has_the_moments_of_the_compiled_model():
    draws = bayes.sample(module_model(), draws=400, warmup=300, chains=2, random_state=0)
    compiled = bayes.LogisticModel(X, Y, prior_scale=2.5, intercept_scale=10.0)
    long = bayes.sample(compiled, draws=20_000, chains=2, random_state=1)
    for name in ("coef", "intercept"):
        sd = long[name].std(axis=(0, 1))
        error = np.abs(draws[name].mean(axis=(0, 1)) - long[name].mean(axis=(0, 1))) / sd
        assert np.max(error) < 4.5 / np.sqrt(np.min(bayes.effective_sample_size(draws[name])))
        assert_allclose(draws[name].std(axis=(0, 1)), sd, rtol=0.2)


def test_laplace_finds_the_mode_of_a_torch_density():
    fit = bayes.laplace(gamma_density, START, gradient="torch", constraints=CONSTRAINTS)
    # In t = log(rate): 3 t - 2 e^t has its maximum at rate 3/2, and second derivative -3 there.
    assert fit.mode["rate"] == pytest.approx(1.5, rel=1e-6)
    assert_allclose(fit.mode["mean"], 1, atol=1e-6)
    by_hand = bayes.laplace(
        lambda x: 2 * np.log(x["rate"]) - 2 * x["rate"] - 2 * np.sum((x["mean"] - 1) ** 2),
        START,
        gradient=lambda x: {"rate": 2 / x["rate"] - 2, "mean": -4 * (x["mean"] - 1)},
        constraints=CONSTRAINTS,
    )
    assert fit.log_evidence == pytest.approx(by_hand.log_evidence, abs=1e-8)


def test_a_vector_of_torch_without_names():
    fit = bayes.laplace(lambda u: -torch.sum((u - 1) ** 2), [0.0, 0.0], gradient="torch")
    assert_allclose(fit.mode, 1, atol=1e-6)


def test_variational_equals_the_one_with_a_gradient_by_hand():
    options = {"constraints": CONSTRAINTS, "random_state": 0, "n_samples": 4, "n_draws": 1000, "max_iter": 1000}

    def by_hand(x):
        return 2 * np.log(x["rate"]) - 2 * x["rate"] - 2 * np.sum((x["mean"] - 1) ** 2)

    def slope(x):
        return {"rate": 2 / x["rate"] - 2, "mean": -4 * (x["mean"] - 1)}

    with ep.config(on_nonconvergence="ignore"):  # k-hat of so few draws says little
        fit = bayes.variational(gamma_density, START, gradient="torch", **options)
        expected = bayes.variational(by_hand, START, gradient=slope, **options)
    assert fit.elbo == pytest.approx(expected.elbo, abs=1e-6)
    exact = stats.gamma(3, scale=0.5)
    drawn = fit.sample(20_000, random_state=1)
    assert drawn["rate"].mean() == pytest.approx(exact.mean(), rel=0.05)
    assert_allclose(drawn["mean"].std(axis=0), 0.5, rtol=0.05)


def test_a_parameter_that_the_density_leaves_out_has_no_slope():
    model = bayes.Model(lambda a, b: -(a**2), {"a": bayes.Real(), "b": bayes.Real()}, gradient="torch")
    assert_allclose(model.value_and_gradient(np.array([2.0, 1.0]))[1], [-4, 0])


def test_what_is_no_tensor_is_named():
    with pytest.raises(DataError, match="returned float; expected a tensor"):
        bayes.laplace(lambda u: 1.0, [0.0], gradient="torch")


def test_torch_is_asked_for_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    with pytest.raises(MissingDependencyError, match="gradient='torch' needs torch"):
        bayes.Model(lambda a: -(a**2), {"a": bayes.Real()}, gradient="torch")
    for approximation in (bayes.laplace, bayes.variational):
        with pytest.raises(MissingDependencyError, match="gradient='torch' needs torch"):
            approximation(lambda u: -(u**2).sum(), [0.0], gradient="torch")


def test_fits_and_chains_do_not_load_torch():
    code = (
        "import sys, numpy as np, epicycle as ep\n"
        "from epicycle import bayes\n"
        "X = np.random.default_rng(0).normal(size=(30, 2))\n"
        "for model in (ep.LinearRegression(), ep.BayesianRidge(), ep.GaussianNB()):\n"
        "    model.fit(X, X[:, 0].round())\n"
        "bayes.sample(bayes.NormalModel(np.zeros(2), np.eye(2)), draws=10, warmup=10)\n"
        "bayes.laplace(lambda u: -np.sum(u**2), [1.0])\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
