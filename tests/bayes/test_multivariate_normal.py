"""The multivariate normal distribution against scipy, block formulas, brute force and Monte Carlo."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import multivariate_normal

import epicycle as ep
from epicycle import MultivariateNormal
from epicycle.exceptions import DataError, ParameterError, ParameterTypeError


def problem(seed, p=4, rank=None):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(p, rank or p + 2)) * np.exp(rng.uniform(-2, 2, (p, 1)))
    return rng.normal(size=p), F @ F.T, rng


def ways(seed):
    """The same distribution, given in four ways."""
    rng = np.random.default_rng(seed)
    mean, W, d = rng.normal(size=5), rng.normal(size=(5, 2)), rng.uniform(0.3, 2, 5)
    S = W @ W.T + np.diag(d)
    return (
        mean,
        S,
        [
            MultivariateNormal(mean, S),
            MultivariateNormal(mean, precision=np.linalg.inv(S)),
            MultivariateNormal(mean, cholesky=np.linalg.cholesky(S)),
            MultivariateNormal(mean, low_rank=W, diagonal=d),
        ],
        rng,
    )


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_every_way_of_giving_it_is_the_same(seed):
    mean, S, all_of_them, rng = ways(seed)
    x = rng.normal(size=(3, 2, 5))
    reference = multivariate_normal(mean, S)
    other = MultivariateNormal(mean + 0.3, S + np.eye(5))
    known, values = [3, 1], rng.normal(size=2)
    rest = [0, 2, 4]
    gain = S[np.ix_(rest, known)] @ np.linalg.inv(S[np.ix_(known, known)])
    for normal in all_of_them:
        np.testing.assert_allclose(normal.logpdf(x), reference.logpdf(x), rtol=1e-9)
        np.testing.assert_allclose(normal.pdf(x), reference.pdf(x), rtol=1e-9)
        np.testing.assert_allclose(normal.covariance, S, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(normal.variance, np.diagonal(S), rtol=1e-9)
        assert normal.entropy() == pytest.approx(reference.entropy(), rel=1e-9)
        squares = np.einsum("...i,ij,...j", x - mean, np.linalg.inv(S), x - mean)
        np.testing.assert_allclose(normal.mahalanobis(x) ** 2, squares, rtol=1e-8)
        # The formulas of blocks.
        part = normal.marginal([4, 0])
        np.testing.assert_allclose(part.mean, mean[[4, 0]])
        np.testing.assert_allclose(part.covariance, S[np.ix_([4, 0], [4, 0])], rtol=1e-9, atol=1e-12)
        given_two = normal.conditional(known, values)
        np.testing.assert_allclose(given_two.mean, mean[rest] + gain @ (values - mean[known]), rtol=1e-7, atol=1e-9)
        expected = S[np.ix_(rest, rest)] - gain @ S[np.ix_(known, rest)]
        np.testing.assert_allclose(given_two.covariance, expected, rtol=1e-7, atol=1e-9)
        # The chain rule: joint = marginal times conditional.
        point = rng.normal(size=5)
        point[known] = values
        chain = normal.marginal(known).logpdf(values) + given_two.logpdf(point[rest])
        assert normal.logpdf(point) == pytest.approx(chain, rel=1e-8)
        # Divergences, to and from it, against the formula with inverses.
        T, gap = S + np.eye(5), np.full(5, 0.3)
        kl = 0.5 * (np.trace(np.linalg.solve(T, S)) + gap @ np.linalg.solve(T, gap) - 5)
        kl += 0.5 * (np.linalg.slogdet(T)[1] - np.linalg.slogdet(S)[1])
        assert normal.kl(other) == pytest.approx(kl, rel=1e-8)
        back = 0.5 * (np.trace(np.linalg.solve(S, T)) + gap @ np.linalg.solve(S, gap) - 5)
        back += 0.5 * (np.linalg.slogdet(S)[1] - np.linalg.slogdet(T)[1])
        assert other.kl(normal) == pytest.approx(back, rel=1e-8)
        assert all(normal.kl(same) == pytest.approx(0, abs=1e-8) for same in all_of_them)
        # Maps and products.
        A, b = rng.normal(size=(3, 5)), rng.normal(size=3)
        image = normal.affine(A, b)
        np.testing.assert_allclose(image.mean, A @ mean + b)
        np.testing.assert_allclose(image.covariance, A @ S @ A.T, rtol=1e-8, atol=1e-10)
        both, log_scale = normal.product(other)
        logs = normal.logpdf(x) + other.logpdf(x)
        np.testing.assert_allclose(both.logpdf(x) + log_scale, logs, rtol=1e-7)


def test_draws():
    mean, _, all_of_them, _ = ways(1)
    singular = MultivariateNormal(mean, np.outer(mean, mean))
    for normal in (*all_of_them, singular):
        X = normal.sample(100_000, random_state=2)
        error = np.sqrt(normal.variance / len(X))
        assert np.all(np.abs(X.mean(axis=0) - mean) <= 5 * error)
        C = normal.covariance
        spread = np.sqrt((np.outer(np.diagonal(C), np.diagonal(C)) + C**2) / len(X))
        assert np.all(np.abs(np.cov(X.T, bias=True) - C) <= 5 * spread + 1e-12)
        assert np.array_equal(X, normal.sample(100_000, random_state=2))
        assert not np.array_equal(X[:5], normal.sample(5, random_state=3))
    # Monte Carlo: the conditional is what draws near the given value look like.
    X = all_of_them[0].sample(400_000, random_state=5)
    near = X[np.abs(X[:, 0] - mean[0] - 0.5) < 0.02]
    expected = all_of_them[0].conditional([0], [mean[0] + 0.5])
    error = np.sqrt(expected.variance / len(near))
    assert np.all(np.abs(near[:, 1:].mean(axis=0) - expected.mean) < 5 * error)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), rank=st.integers(1, 3))
def test_singular_covariance(seed, rank):
    mean, S, rng = problem(seed, 4, rank)
    normal = MultivariateNormal(mean, S)
    assert normal.rank == rank
    values, V = np.linalg.eigh(S)
    basis, values = V[:, -rank:], values[-rank:]
    on = mean + basis @ (rng.normal(size=rank) * np.sqrt(values))
    # In coordinates along the support it is an ordinary normal distribution.
    expected = multivariate_normal(np.zeros(rank), np.diag(values)).logpdf(basis.T @ (on - mean))
    assert normal.logpdf(on) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    off = on + 0.1 * np.sqrt(values[-1]) * V[:, 0]
    assert normal.logpdf(off) == -np.inf
    assert normal.pdf(off) == 0
    assert normal.mahalanobis(off) == np.inf
    assert normal.entropy() == pytest.approx(0.5 * (rank * (1 + np.log(2 * np.pi)) + np.log(values).sum()), rel=1e-6)
    X = normal.sample(5, random_state=0)
    assert np.isfinite(normal.logpdf(X)).all()
    # One known coordinate takes one dimension away; then the joint is the product of the two again.
    rest = normal.conditional([0], [on[0]])
    assert rest.rank == rank - 1
    # |range(S)| changes its volume when it is cut at a coordinate: compare through covariances instead.
    gain = S[1:, 0] / S[0, 0]
    np.testing.assert_allclose(rest.mean, mean[1:] + gain * (on[0] - mean[0]), rtol=1e-6, atol=1e-8)
    scale = np.sqrt(np.outer(np.diagonal(S)[1:], np.diagonal(S)[1:]))
    np.testing.assert_allclose(rest.covariance / scale, (S[1:, 1:] - np.outer(gain, S[0, 1:])) / scale, atol=1e-10)
    # Divergences.
    assert normal.kl(normal) == pytest.approx(0, abs=1e-7)
    wider = MultivariateNormal(mean, 2 * S)
    assert normal.kl(wider) == pytest.approx(0.5 * (rank / 2 - rank + rank * np.log(2)), rel=1e-6)
    assert normal.kl(MultivariateNormal(mean, S + np.eye(4))) == np.inf
    assert normal.kl(MultivariateNormal(off, S)) == np.inf


def test_singular_against_scipy():
    mean, S, _ = problem(3, 4, 2)
    normal = MultivariateNormal(mean, S)
    x = normal.sample(6, random_state=1)
    reference = multivariate_normal(mean, S, allow_singular=True)
    np.testing.assert_allclose(normal.logpdf(x), reference.logpdf(x), rtol=1e-6)


def test_singular_product_and_conditioning():
    mean, S, _ = problem(5, 3, 1)
    line, cloud = MultivariateNormal(mean, S), MultivariateNormal(np.zeros(3), np.diag([1.0, 2.0, 3.0]))
    both, log_scale = line.product(cloud)
    assert both.rank == 1
    x = line.sample(4, random_state=0)
    np.testing.assert_allclose(both.logpdf(x) + log_scale, line.logpdf(x) + cloud.logpdf(x), rtol=1e-8)
    again, same = cloud.product(line)
    assert same == pytest.approx(log_scale)
    np.testing.assert_allclose(again.covariance, both.covariance, rtol=1e-8, atol=1e-12)
    with pytest.raises(ParameterError, match="both covariances are singular"):
        line.product(line)
    twice = MultivariateNormal([0.0], [[1.0]]).affine([[1.0], [2.0], [3.0]])
    rest = twice.conditional([0], [0.5])
    np.testing.assert_allclose(rest.mean, [1.0, 1.5])
    assert rest.rank == 0
    assert rest.logpdf([1.0, 1.5]) == 0.0  # a point: probability one
    assert rest.logpdf([1.0, 1.6]) == -np.inf
    with pytest.raises(DataError, match="not on the support"):
        twice.conditional([0, 1], [0.5, 0.9])
    # A coordinate that is a copy of a known one is known, and a vague factor does not widen the support.
    copies = MultivariateNormal(np.zeros(2), np.eye(2) / 3).affine([[1.0, 0.3], [1.0, 0.3], [0.1, 2.0]])
    assert copies.conditional([0], [0.2]).rank == 1
    vague = MultivariateNormal(np.zeros(3), 1e12 * np.eye(3))
    assert line.product(vague).normal.rank == vague.product(line).normal.rank == 1


def test_units_do_not_change_the_rank():
    mean, S, _ = problem(7, 4)
    units = np.array([1e-9, 1.0, 1e9, 1e3])
    scaled = MultivariateNormal(mean * units, S * np.outer(units, units))
    assert scaled.rank == 4
    x = MultivariateNormal(mean, S).sample(3, random_state=0)
    expected = MultivariateNormal(mean, S).logpdf(x) - np.log(units).sum()
    np.testing.assert_allclose(scaled.logpdf(x * units), expected, rtol=1e-9)


def test_large_dimension_through_the_factor():
    """200,000 coordinates: a covariance matrix would take 320 GB."""
    p, k, rng = 200_000, 3, np.random.default_rng(0)
    W, d = rng.normal(size=(p, k)), rng.uniform(0.5, 2, p)
    normal = MultivariateNormal(np.zeros(p), low_rank=W, diagonal=d)
    x = normal.sample(3, random_state=0)
    # |z|^2 has mean p and variance 2 p.
    squares = normal.mahalanobis(x) ** 2
    assert np.all(np.abs(squares - p) < 6 * np.sqrt(2 * p))
    part = normal.marginal(np.arange(100))
    reference = multivariate_normal(np.zeros(100), W[:100] @ W[:100].T + np.diag(d[:100]))
    np.testing.assert_allclose(part.logpdf(x[:, :100]), reference.logpdf(x[:, :100]), rtol=1e-9)
    rest = normal.conditional(np.arange(100, p), x[0, 100:])
    assert rest.dimension == 100
    assert normal.kl(normal) == pytest.approx(0, abs=1e-5)
    assert np.isfinite(normal.entropy())


def test_maximum_likelihood():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 3)) + 5
    fitted = MultivariateNormal.from_data(X)
    np.testing.assert_allclose(fitted.mean, X.mean(axis=0))
    np.testing.assert_allclose(fitted.covariance, np.cov(X.T, bias=True), rtol=1e-10)
    best = fitted.logpdf(X).sum()
    for factor in (0.98, 1.02):
        assert best > MultivariateNormal(fitted.mean, factor * fitted.covariance).logpdf(X).sum()
        assert best > MultivariateNormal(factor * fitted.mean, fitted.covariance).logpdf(X).sum()
    weight = rng.integers(0, 4, 200)
    weighted = MultivariateNormal.from_data(X, sample_weight=weight)
    repeated = MultivariateNormal.from_data(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(weighted.mean, repeated.mean, rtol=1e-12)
    np.testing.assert_allclose(weighted.covariance, repeated.covariance, rtol=1e-10)
    frame = MultivariateNormal.from_data(pd.DataFrame(X.astype(np.float32), columns=list("abc")))
    np.testing.assert_allclose(frame.covariance, fitted.covariance, rtol=1e-4)


def test_maximum_likelihood_of_few_rows():
    X = np.random.default_rng(0).normal(size=(6, 5000))
    fitted = MultivariateNormal.from_data(X)
    assert fitted.rank == 5
    # Every row is as far away as any other: n - 1 squared deviations add up to n (n - 1).
    np.testing.assert_allclose(fitted.mahalanobis(X) ** 2, 5, rtol=1e-8)
    collinear = np.random.default_rng(1).normal(size=(500, 3)) @ np.array([[1, 0, 1], [0, 1, 1], [0, 0, 0.0]])
    assert MultivariateNormal.from_data(collinear).rank == 2


@pytest.mark.parametrize("kind", range(5))
def test_files(kind, tmp_path):
    mean, S, all_of_them, _ = ways(0)
    normal = [*all_of_them, MultivariateNormal(mean, np.outer(mean, mean))][kind]
    ep.save(normal, tmp_path / "normal.epi")
    again = ep.load(tmp_path / "normal.epi")
    assert again == normal
    x = normal.sample(3, random_state=0)
    assert np.array_equal(again.logpdf(x), normal.logpdf(x))
    assert again != MultivariateNormal(mean + 1, S)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: MultivariateNormal([0, 0]), ParameterError, "got none of them; expected exactly one"),
        (
            lambda: MultivariateNormal([0], [[1]], precision=[[1]]),
            ParameterError,
            "got covariance and precision; expected exactly one",
        ),
        (
            lambda: MultivariateNormal([0, 0], np.eye(3)),
            ParameterError,
            r"covariance: shape \(3, 3\); expected \(2, 2\)",
        ),
        (lambda: MultivariateNormal([0, 0], [[1, 0.5], [0, 1]]), ParameterError, "covariance: is not symmetric"),
        (lambda: MultivariateNormal([0, 0], [[1, 2], [2, 1]]), ParameterError, "covariance: is not positive semi-def"),
        (lambda: MultivariateNormal([0, 0], np.diag([1, -1])), ParameterError, "covariance: is not positive semi-def"),
        (lambda: MultivariateNormal([0, 0], precision=np.diag([1, 0])), ParameterError, "precision: is not positive"),
        (lambda: MultivariateNormal([0, 0], cholesky=[[1, 1], [0, 1]]), ParameterError, "not lower triangular"),
        (lambda: MultivariateNormal([0, 0], cholesky=np.diag([1, 0])), ParameterError, "cholesky: holds 0 on its dia"),
        (lambda: MultivariateNormal([0, 0], low_rank=np.ones((2, 1))), ParameterError, "diagonal: not given"),
        (lambda: MultivariateNormal([0, 0], diagonal=[1, 0]), ParameterError, "diagonal: holds 0"),
        (lambda: MultivariateNormal([0, 0], diagonal=[1]), ParameterError, r"diagonal: shape \(1,\)"),
        (lambda: MultivariateNormal([0, np.nan], np.eye(2)), ParameterError, "mean: holds NaN"),
        (lambda: MultivariateNormal("a", np.eye(2)), ParameterTypeError, "mean: expected an array of numbers"),
        (lambda: MultivariateNormal([0, 0], np.eye(2)).logpdf([1.0]), DataError, r"x: shape \(1,\); expected 2"),
        (
            lambda: MultivariateNormal([0, 0], np.eye(2)).marginal([2]),
            ParameterError,
            "coordinates: 2 of a vector of 2",
        ),
        (lambda: MultivariateNormal([0, 0], np.eye(2)).marginal([0, -2]), ParameterError, "given twice"),
        (lambda: MultivariateNormal([0, 0], np.eye(2)).marginal([0.5]), ParameterTypeError, "expected integers"),
        (lambda: MultivariateNormal([0, 0], np.eye(2)).conditional([0, 1], [0, 0]), ParameterError, "nothing is left"),
        (lambda: MultivariateNormal([0, 0], np.eye(2)).conditional([0], [0, 0]), DataError, "values: shape"),
        (lambda: MultivariateNormal([0, 0], np.eye(2)).affine([[1.0]]), ParameterError, "A: shape"),
        (lambda: MultivariateNormal([0, 0], np.eye(2)).affine(np.eye(2), [1, 2, 3]), ParameterError, "b: shape"),
        (lambda: MultivariateNormal([0, 0], np.eye(2)).kl(3), ParameterTypeError, "other: expected a MultivariateN"),
        (
            lambda: MultivariateNormal([0, 0], np.eye(2)).product(MultivariateNormal([0], [[1]])),
            ParameterError,
            "other: is of dimension 1; expected 2",
        ),
    ],
)
def test_bad_input(make, error, message):
    with pytest.raises(error, match=message):
        make()
