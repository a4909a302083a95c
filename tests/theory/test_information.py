"""Identities of information, closed forms, and the error of an estimate."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import entropy as scipy_entropy, multivariate_normal

from epicycle.exceptions import DataError, ParameterError
from epicycle.theory import information


def table(seed, shape=(3, 4)):
    joint = np.random.default_rng(seed).exponential(size=shape)
    joint[0, 0] = 0.0
    return joint / joint.sum()


@settings(max_examples=50)
@given(seed=st.integers(0, 10**6))
def test_identities(seed):
    joint = table(seed)
    x, y = joint.sum(axis=1), joint.sum(axis=0)
    # Chain rule, and conditioning never adds.
    assert information.entropy(joint) == pytest.approx(information.entropy(x) + information.conditional_entropy(joint))
    assert information.conditional_entropy(joint) <= information.entropy(y) + 1e-12
    mutual = information.kl(joint, np.outer(x, y))
    assert mutual == pytest.approx(information.entropy(x) + information.entropy(y) - information.entropy(joint))
    assert mutual >= 0
    # The divergence is what coding for another distribution costs.
    p, q = joint.ravel(), table(seed + 1).ravel()
    assert information.kl(p, q) == pytest.approx(information.cross_entropy(p, q) - information.entropy(p))
    assert information.kl(p, q, direction="exclusive") == pytest.approx(information.kl(q, p))
    assert information.kl(p, q) == pytest.approx(scipy_entropy(p, q))
    assert information.kl(p, p) == 0.0
    js = information.jensen_shannon(p, q)
    assert js == pytest.approx(information.jensen_shannon(q, p))
    assert 0 <= js <= np.log(2)
    m = (p + q) / 2
    expected = information.entropy(m) - (information.entropy(p) + information.entropy(q)) / 2
    assert js == pytest.approx(expected, abs=1e-12)


def test_what_is_missed_costs_everything():
    assert information.kl([1.0, 0.0], [0.0, 1.0]) == np.inf
    assert information.cross_entropy([0.5, 0.5], [1.0, 0.0]) == np.inf
    assert information.cross_entropy([1.0, 0.0], [1.0, 0.0]) == 0.0
    assert information.entropy([1.0, 0.0]) == 0.0


def test_normal_distributions():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(2, 3, 3))
    S, T = A @ A.T + np.eye(3), B @ B.T + np.eye(3)
    m, k = rng.normal(size=(2, 3))
    p, q = multivariate_normal(m, S), multivariate_normal(k, T)
    assert information.gaussian_entropy(S) == pytest.approx(p.entropy())
    x = p.rvs(200_000, random_state=1)
    logs = p.logpdf(x) - q.logpdf(x)
    assert abs(information.gaussian_kl(m, S, k, T) - logs.mean()) < 5 * logs.std() / np.sqrt(len(logs))
    assert information.gaussian_kl(0.0, 1.0, 0.0, 1.0) == pytest.approx(0.0, abs=1e-15)
    assert information.gaussian_kl(1.0, 1.0, 0.0, 1.0, base=2) == pytest.approx(0.5 / np.log(2))


def test_mutual_information_of_a_sample_is_near_the_truth():
    """Over 300 samples the correction removes most of the bias, and the error is that of the spread."""
    joint = table(5, (4, 4))
    truth = information.kl(joint, np.outer(joint.sum(axis=1), joint.sum(axis=0)))
    rng = np.random.default_rng(0)
    found = []
    for _ in range(300):
        cell = rng.choice(16, 300, p=joint.ravel())
        found.append(information.mutual_information(cell // 4, cell % 4))
    plug_in, value = np.mean([f.plug_in for f in found]), np.mean([f.value for f in found])
    assert abs(value - truth) < 0.25 * abs(plug_in - truth)
    spread = np.std([f.value for f in found], ddof=1)
    assert np.mean([f.standard_error for f in found]) == pytest.approx(spread, rel=0.2)


def test_independent_columns_have_none():
    rng = np.random.default_rng(1)
    found = [information.mutual_information(rng.integers(0, 5, 400), rng.integers(0, 3, 400)) for _ in range(200)]
    assert np.mean([f.value for f in found]) < 0.006
    assert np.mean([f.plug_in for f in found]) == pytest.approx(8 / 800, rel=0.2)
    assert np.mean([f.value <= 3 * f.standard_error for f in found]) > 0.97


def test_labels_of_any_kind():
    x = np.array(["a", "b"] * 50)
    assert information.mutual_information(x, np.arange(100) % 2, base=2).plug_in == pytest.approx(1.0)


def correlated_normals(rng, n, rho):
    x, noise = rng.normal(size=(2, n))
    return x, rho * x + np.sqrt(1 - rho**2) * noise


@pytest.mark.parametrize("rho", [0.0, 0.6, 0.9])
def test_mutual_information_of_normal_columns_is_near_the_truth(rho):
    """For normal columns I = -log(1 - rho^2) / 2; continuous columns are no labels, which would give log(n)."""
    rng = np.random.default_rng(3)
    found = [information.mutual_information(*correlated_normals(rng, 500, rho)) for _ in range(40)]
    estimates = np.array([f.plug_in for f in found])
    truth = -np.log(1 - rho**2) / 2
    assert {f.estimator for f in found} == {"nearest neighbours"}
    assert estimates.mean() == pytest.approx(truth, abs=0.025)
    assert np.mean([f.standard_error for f in found]) == pytest.approx(estimates.std(ddof=1), rel=0.35)
    assert np.mean([abs(f.plug_in - truth) <= 3 * f.standard_error for f in found]) > 0.9
    assert all(f.value >= 0 for f in found)


def test_numbers_against_labels():
    """A label shifts a uniform number by half its range: I = log(2) / 2 (Ross 2014); and nothing where it does not."""
    rng = np.random.default_rng(4)
    label = rng.integers(0, 2, 2000)
    number = rng.random(2000) + 0.5 * label
    found = information.mutual_information(np.array(["a", "b"])[label], number)
    assert found.value == pytest.approx(np.log(2) / 2, abs=4 * found.standard_error)
    assert found.standard_error < 0.02
    assert information.mutual_information(number, label).plug_in == pytest.approx(found.plug_in, abs=1e-12)
    nothing = information.mutual_information(label, rng.random(2000))
    assert nothing.value <= 3 * nothing.standard_error


def test_columns_with_many_equal_numbers():
    """Half of the rows are zero: I(x; y) = log(2) where y tells which half, and zero where it tells nothing."""
    rng = np.random.default_rng(5)
    x = np.where(rng.random(3000) < 0.5, 0.0, rng.normal(size=3000))
    y = rng.normal(size=3000)
    nothing = information.mutual_information(x, y)
    assert nothing.value <= 3 * nothing.standard_error
    assert information.mutual_information(x, y + 20.0 * (x != 0)).value == pytest.approx(np.log(2), abs=0.04)
    assert information.mutual_information(np.full(3000, 0.5), y).value == pytest.approx(0.0, abs=1e-9)


def test_mutual_information_depends_on_the_order_of_numbers_alone():
    x, y = correlated_normals(np.random.default_rng(6), 300, 0.7)
    first = information.mutual_information(x, y)
    assert information.mutual_information(np.exp(50 * x), y**3) == first
    assert information.mutual_information(y, x).plug_in == pytest.approx(first.plug_in, abs=1e-12)
    assert information.mutual_information(x, y, base=2).value == pytest.approx(first.value / np.log(2))


def test_whole_numbers_are_labels_unless_said_otherwise():
    rng = np.random.default_rng(7)
    x, y = rng.integers(0, 1000, (2, 800))
    assert information.mutual_information(x.astype(float), y.astype(float)).estimator == "frequencies"
    numbers = information.mutual_information(x, y, labels=(False, False))
    assert numbers.estimator == "nearest neighbours"
    assert numbers.value <= 3 * numbers.standard_error


@pytest.mark.parametrize(
    ("call", "error", "name"),
    [
        (lambda: information.entropy([0.5, 0.6]), DataError, "p: probabilities add up"),
        (lambda: information.entropy([-0.5, 1.5]), DataError, "p"),
        (lambda: information.entropy([]), DataError, "p"),
        (lambda: information.entropy([0.5, 0.5], base=1.0), ParameterError, "base"),
        (lambda: information.kl([0.5, 0.5], [1.0]), DataError, "q"),
        (lambda: information.kl([0.5, 0.5], [0.5, 0.5], direction="both"), ParameterError, "direction"),
        (lambda: information.conditional_entropy([0.5, 0.5]), DataError, "joint"),
        (lambda: information.gaussian_entropy([[1.0, 2.0], [2.0, 1.0]]), DataError, "covariance"),
        (lambda: information.gaussian_entropy([[1.0, 2.0]]), DataError, "covariance"),
        (lambda: information.gaussian_kl([0.0, 0.0], np.eye(2), [0.0], np.eye(2)), DataError, "mean"),
        (lambda: information.mutual_information([1, 2], [1]), DataError, "x, y"),
        (
            lambda: information.mutual_information([0.5, np.nan], [0.5, 0.7], n_neighbors=1),
            DataError,
            "x: contains nan",
        ),
        (lambda: information.mutual_information(["a", "b"], [0.5, 0.7], n_neighbors=1), DataError, "x: no label"),
        (lambda: information.mutual_information(["a"], [0.5, 0.7]), DataError, "x, y"),
        (lambda: information.mutual_information([0.1, 0.2], [0.5, 0.7]), ParameterError, "n_neighbors"),
        (lambda: information.mutual_information([1, 2], [1, 2], labels="yes"), ParameterError, "labels"),
        (lambda: information.mutual_information(["a", "b"], [1, 2], labels=(False, True)), ParameterError, "n_neigh"),
        (
            lambda: information.mutual_information(list("abcde"), [1] * 5, labels=(False, True)),
            DataError,
            "x: expected",
        ),
    ],
)
def test_bad_arguments_are_named(call, error, name):
    with pytest.raises(error, match=name):
        call()
