"""Normal components: log densities, shares and sums against NumPy, and refusals at the boundary."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp, softmax

from epicycle._native import mixture


def by_hand(X, weight, constants, means, factors, diagonal):
    n, k = len(X), len(means)
    p = X.shape[1]
    joint = np.empty((n, k))
    for a in range(k):
        d = X - means[a]
        W = factors[min(a, len(factors) - 1)] if diagonal else factors.reshape(-1, p, p)[min(a, len(factors) // p - 1)]
        y = d * W if diagonal else d @ W.T
        joint[:, a] = constants[a] - 0.5 * (y**2).sum(axis=1)
    w = np.ones(n) if weight is None else weight
    r = softmax(joint, axis=1) * w[:, None]
    d = X[:, None] - means
    sums = np.einsum("ik,ikj->kj", r, d)
    scatter = np.einsum("ik,ikj->kj", r, d**2) if diagonal else np.einsum("ik,ikj,ikl->kjl", r, d, d)
    return joint, w @ logsumexp(joint, axis=1), r.sum(axis=0), sums, scatter


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "p", "k"), [(1, 1, 1), (300, 5, 4), (515, 16, 3), (90, 33, 2)])
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_sums_equal_those_by_hand(dtype, n, p, k, diagonal, shared):
    rng = np.random.default_rng(n)
    X = (rng.normal(size=(n, p)) + 30).astype(dtype)
    weight = None if k == 3 else rng.integers(0, 3, n) + 0.5
    means, constants = 30 + rng.normal(size=(k, p)), rng.normal(size=k)
    m = 1 if shared else k
    factors = rng.uniform(0.5, 2, (m, p)) if diagonal else np.tril(rng.normal(size=(m, p, p))).reshape(m * p, p)
    joint, value, counts, sums, scatter = by_hand(X.astype(float), weight, constants, means, factors, diagonal)
    for table in (X, np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]):
        assert_allclose(mixture.normal_log_joint(table, constants, means, factors, diagonal), joint, rtol=1e-10)
        found = mixture.normal_sums(table, weight, constants, means, factors, diagonal, False)
        assert_allclose(found[0], value, rtol=1e-12)
        for ours, theirs in zip(found[1:], (counts, sums, scatter.reshape(-1, p)), strict=True):
            assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
        if not diagonal:
            pooled = mixture.normal_sums(table, weight, constants, means, factors, False, True)[3]
            assert_allclose(pooled, scatter.sum(axis=0), rtol=1e-9, atol=1e-9)


def test_rows_far_from_every_component_have_shares_and_no_nan():
    X = np.array([[1e200], [1e8], [0.0]])
    one = np.ones((1, 1))
    value, counts, sums, scatter = mixture.normal_sums(
        X, np.array([0.0, 1.0, 1.0]), np.array([0.0, -np.inf]), np.zeros((2, 1)), one, False, False
    )
    assert value == pytest.approx(-0.5e16)
    assert counts.tolist() == [2.0, 0.0]
    assert np.isfinite(sums).all()
    assert np.isfinite(scatter).all()


def test_refusals():
    X, means, factors = np.ones((4, 2)), np.ones((3, 2)), np.ones((6, 2))
    for bad in (np.ones((5, 2)), np.ones((6, 3))):
        with pytest.raises(ValueError, match="factors"):
            mixture.normal_sums(X, None, np.ones(3), means, bad, False, False)
    with pytest.raises(ValueError, match="normal_sums"):
        mixture.normal_sums(X, np.ones(3), np.ones(3), means, factors, False, False)
    with pytest.raises(ValueError, match="normal_log_joint"):
        mixture.normal_log_joint(X, np.ones(2), means, factors, False)
    with pytest.raises(TypeError):
        mixture.normal_sums(X.astype(int), None, np.ones(3), means, factors, False, False)
