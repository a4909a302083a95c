"""Bounds hold as often as they say, follow from each other, and the counted one is exact."""

import numpy as np
import pytest
from scipy.stats import beta, binom

from epicycle import theory
from epicycle.exceptions import DataError, ParameterError, ParameterTypeError
from epicycle.theory import bounds


def test_any_one_follows_from_the_others():
    full = bounds.uniform_convergence(m=1000, delta=0.05, k=50)
    assert full.gamma == pytest.approx(np.sqrt(np.log(2 * 50 / 0.05) / 2000))
    assert bounds.uniform_convergence(m=1000, gamma=full.gamma, k=50).delta == pytest.approx(0.05)
    assert bounds.uniform_convergence(gamma=full.gamma * (1 + 1e-12), delta=0.05, k=50).m == 1000
    assert bounds.uniform_convergence(m=1000, gamma=full.gamma * (1 + 1e-12), delta=0.05).k == 50
    assert full.excess == 2 * full.gamma
    assert bounds.hoeffding(m=100, delta=0.1, sides=1).gamma == pytest.approx(np.sqrt(np.log(10) / 200))
    assert bounds.hoeffding(m=100, delta=0.1, span=3.0).gamma == pytest.approx(3 * np.sqrt(np.log(20) / 200))


def test_the_least_number_of_rows_is_the_least():
    m = bounds.uniform_convergence(gamma=0.04, delta=0.1, k=7).m
    assert bounds.uniform_convergence(m=m, gamma=0.04, k=7).delta <= 0.1
    assert bounds.uniform_convergence(m=m - 1, gamma=0.04, k=7).delta > 0.1


def test_uniform_convergence_covers():
    rng = np.random.default_rng(0)
    m, k, delta = 60, 10, 0.2
    gamma = bounds.uniform_convergence(m=m, delta=delta, k=k).gamma
    rate = rng.uniform(size=k)
    far = [(np.abs((rng.random((m, k)) < rate).mean(axis=0) - rate) > gamma).any() for _ in range(2000)]
    assert np.mean(far) <= delta


def test_the_union_bound_covers_dependent_events():
    rng = np.random.default_rng(0)
    u = rng.random(2000)
    events = np.stack([u < 0.1, u > 0.95, rng.random(2000) < 0.05])
    assert events.any(axis=0).mean() <= bounds.union([0.1, 0.05, 0.05]) + 3 * np.sqrt(0.2 * 0.8 / 2000)
    assert bounds.union([0.9, 0.8]) == 1.0


def test_counted_errors_have_the_exact_bound():
    for errors, n in ((0, 30), (3, 50), (50, 50), (120, 4000)):
        found = theory.test_bound(errors=errors, n=n, level=0.9)
        if errors < n:
            assert found.upper == pytest.approx(beta.ppf(0.9, errors + 1, n - errors))
            assert binom.cdf(errors, n, found.upper) == pytest.approx(0.1, rel=1e-6)
        else:
            assert found.upper == 1.0
    both = theory.test_bound(errors=3, n=50, level=0.9, sides=2)
    assert binom.sf(2, 50, both.lower) == pytest.approx(0.05, rel=1e-6)
    assert theory.test_bound([0, 1, 0, 0] * 5).upper == theory.test_bound(errors=5, n=20).upper


@pytest.mark.parametrize("rate", [0.02, 0.3])
@pytest.mark.parametrize("sides", [1, 2])
def test_counted_errors_cover(rate, sides):
    rng = np.random.default_rng(1)
    inside = []
    for errors in rng.binomial(200, rate, 2000):
        found = theory.test_bound(errors=int(errors), n=200, sides=sides)
        inside.append(found.lower <= rate <= found.upper)
    assert np.mean(inside) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 2000)


@pytest.mark.parametrize("method", ["bernstein", "hoeffding"])
def test_other_losses_cover(method):
    rng = np.random.default_rng(2)
    inside = [
        found.lower <= 2 / 7 <= found.upper
        for found in (theory.test_bound(rng.beta(2, 5, 100), sides=2, method=method) for _ in range(2000))
    ]
    assert np.mean(inside) >= 0.95


def test_bernstein_profits_from_a_small_variance():
    losses = np.full(2000, 0.1) + 0.01 * np.sin(np.arange(2000))
    assert theory.test_bound(losses).upper < theory.test_bound(losses, method="hoeffding").upper


def test_losses_on_another_scale():
    x = np.random.default_rng(0).uniform(-5, 5, 300)
    wide = theory.test_bound(x, bounds=(-5, 5), sides=2)
    unit = theory.test_bound((x + 5) / 10, sides=2)
    assert wide.upper == pytest.approx(10 * unit.upper - 5)
    assert wide.lower == pytest.approx(10 * unit.lower - 5)


def test_pac_bayes_inverts_the_divergence():
    found = theory.pac_bayes(0.05, 8.0, 1000)
    q, p = 0.05, found.upper
    room = (8.0 + np.log(2 * np.sqrt(1000) / 0.05)) / 1000
    assert q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p)) == pytest.approx(room, rel=1e-9)
    assert found.upper <= found.mcallester
    assert theory.pac_bayes(0.0, 0.0, 100).upper == pytest.approx(-np.expm1(-np.log(2 * 10 / 0.05) / 100), rel=1e-9)
    assert theory.pac_bayes(1.0, 3.0, 100).upper == 1.0
    assert theory.pac_bayes(0.5, 1e9, 100).upper == 1.0


def test_pac_bayes_covers_a_learner_that_picks_the_best_of_many():
    """A uniform prior on k coins; the posterior is the one with fewest heads in the sample, so that KL = log k."""
    rng = np.random.default_rng(3)
    rates, n, k = rng.uniform(0.2, 0.6, 50), 80, 50
    inside = []
    for _ in range(2000):
        seen = rng.binomial(n, rates) / n
        best = int(np.argmin(seen))
        inside.append(rates[best] <= theory.pac_bayes(float(seen[best]), float(np.log(k)), n).upper)
    assert np.mean(inside) >= 0.95


def test_pac_bayes_of_a_linear_classifier_covers_its_gibbs_error():
    from scipy.special import ndtr

    rng = np.random.default_rng(4)

    def draw(n):
        y = rng.integers(0, 2, n)
        return rng.normal(size=(n, 4)) + 1.5 * (2 * y[:, None] - 1), y

    X_new, y_new = draw(20_000)
    for _ in range(20):
        X, y = draw(500)
        w = (X * (2 * y[:, None] - 1)).mean(axis=0)
        bound = theory.pac_bayes_linear(w, X, y)
        mu = np.sqrt(2 * bound.kl)
        size = np.sqrt((X_new**2).sum(axis=1) + 1) * np.linalg.norm(w)
        true = ndtr(-mu * (2 * y_new - 1) * (X_new @ w) / size).mean()
        assert true <= bound.upper < 0.3


@pytest.mark.parametrize(
    ("call", "error", "name"),
    [
        (lambda: bounds.uniform_convergence(m=10, gamma=0.1), ParameterError, "delta"),
        (lambda: bounds.uniform_convergence(m=10, gamma=0.1, delta=0.1, k=1), ParameterError, "none left out"),
        (lambda: bounds.hoeffding(m=10, delta=1.5), ParameterError, "delta"),
        (lambda: bounds.hoeffding(m=0, delta=0.5), ParameterError, "m=0"),
        (lambda: bounds.hoeffding(m=2.5, delta=0.5), ParameterTypeError, "m=2.5"),
        (lambda: bounds.hoeffding(gamma=np.nan, delta=0.5), ParameterError, "gamma"),
        (lambda: bounds.hoeffding(gamma=0.1, delta=0.5, sides=3), ParameterError, "sides"),
        (lambda: bounds.hoeffding(gamma=0.1, delta=0.5, span=0.0), ParameterError, "span"),
        (lambda: bounds.union([0.1, 1.2]), ParameterError, "probabilities"),
        (lambda: theory.test_bound(), ParameterError, "losses"),
        (lambda: theory.test_bound([]), DataError, "losses"),
        (lambda: theory.test_bound([0.5, np.nan]), DataError, "losses"),
        (lambda: theory.test_bound([0.5, 2.0]), DataError, "bounds"),
        (lambda: theory.test_bound([0.5], method="binomial"), DataError, "binomial"),
        (lambda: theory.test_bound([0.5], n=3), ParameterError, "errors and n"),
        (lambda: theory.test_bound(errors=5, n=3), ParameterError, "errors"),
        (lambda: theory.test_bound(errors=1, n=3, level=1.0), ParameterError, "level"),
        (lambda: theory.test_bound(errors=1, n=3, bounds=(1, 0)), ParameterError, "bounds"),
        (lambda: theory.test_bound(errors=1, n=3, method="exact"), ParameterError, "method"),
        (lambda: theory.pac_bayes(1.2, 1.0, 10), ParameterError, "error"),
        (lambda: theory.pac_bayes(0.2, -1.0, 10), ParameterError, "kl"),
        (lambda: theory.pac_bayes_linear([1.0], np.ones((3, 2)), [0, 1, 1]), DataError, "X"),
        (lambda: theory.pac_bayes_linear([1.0, 1.0], np.ones((3, 2)), [1, 1, 1]), DataError, "y"),
        (lambda: theory.pac_bayes_linear([0.0, 0.0], np.ones((3, 2)), [0, 1, 1]), DataError, "coef"),
    ],
)
def test_bad_arguments_are_named(call, error, name):
    with pytest.raises(error, match=name):
        call()


def test_words():
    assert "738 rows" in str(bounds.hoeffding(gamma=0.05, delta=0.05))
    assert "all 10 hypotheses" in str(bounds.uniform_convergence(m=5, delta=0.1, k=10))
    assert "at most" in str(theory.test_bound(errors=0, n=10))
    assert "prior" in str(theory.pac_bayes(0.1, 1.0, 100))
