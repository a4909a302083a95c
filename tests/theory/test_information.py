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


@settings(max_examples=50, deadline=None, derandomize=True)
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
    ],
)
def test_bad_arguments_are_named(call, error, name):
    with pytest.raises(error, match=name):
        call()
