"""Hidden Markov chains: enumeration of all paths, numbers beyond the range of floating point, threads, refusals."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

from epicycle._native import hmm


def chain(rng, k, zeros=0.0):
    start, move = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k), size=k)
    move[(rng.random((k, k)) < zeros) & ~np.eye(k, dtype=bool)] = 0.0
    return start, move / move.sum(axis=1, keepdims=True)


def enumerated(start, move, log_e):
    """Likelihood, posteriors, counts of moves and the best path, from every path there is."""
    n, k = log_e.shape
    paths = np.array(list(itertools.product(range(k), repeat=n)))
    with np.errstate(divide="ignore"):
        log_start, log_move = np.log(start), np.log(move)
    value = log_start[paths[:, 0]] + log_e[np.arange(n), paths].sum(axis=1)
    value += log_move[paths[:, :-1], paths[:, 1:]].sum(axis=1)
    total = logsumexp(value)
    share = np.exp(value - total)
    posterior = np.stack([[share[paths[:, t] == j].sum() for j in range(k)] for t in range(n)])
    moves = np.zeros((k, k))
    for t in range(n - 1):
        np.add.at(moves, (paths[:, t], paths[:, t + 1]), share)
    return total, posterior, moves, value.max(), paths[value.argmax()]


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("spread", [1.0, 1e3])
@pytest.mark.parametrize("zeros", [0.0, 0.4])
def test_sums_over_all_paths(k, spread, zeros):
    rng = np.random.default_rng(k)
    for n in (1, 2, 5):
        start, move = chain(rng, k, zeros)
        # A spread of 1000 takes every second path below the smallest number.
        log_e = spread * rng.normal(size=(n, k))
        total, posterior, moves, best, path = enumerated(start, move, log_e)
        value, p, steps, first, counts = hmm.smooth(start, move, log_e, np.array([0, n]), None, True, True, 1)
        assert_allclose(value, total, rtol=1e-12, atol=1e-12)
        assert_allclose(p, posterior, atol=1e-11)
        assert_allclose(steps.sum(), total, rtol=1e-12, atol=1e-12)
        assert_allclose(first, posterior[0], atol=1e-11)
        assert_allclose(counts, moves, atol=1e-11)
        value, states = hmm.viterbi(start, move, log_e, np.array([0, n]), 1)
        assert_allclose(value, best, rtol=1e-12)
        assert_array_equal(states, path)


@pytest.mark.parametrize("k", [3, 7, 12, 20])
def test_many_states_against_the_plain_recursion(k):
    rng = np.random.default_rng(k)
    start, move = chain(rng, k)
    log_e = 3 * rng.normal(size=(40, k))
    forward = [start * np.exp(log_e[0])]
    for e in np.exp(log_e[1:]):
        forward.append((forward[-1] @ move) * e)
    backward = [np.ones(k)]
    for e in np.exp(log_e[:0:-1]):
        backward.insert(0, move @ (e * backward[0]))
    forward, backward = np.array(forward), np.array(backward)
    total = forward[-1].sum()
    value, p, steps, _, counts = hmm.smooth(start, move, log_e, np.array([0, 40]), None, True, True, 1)
    assert_allclose(value, np.log(total), rtol=1e-13)
    assert_allclose(p, forward * backward / total, atol=1e-13)
    assert_allclose(steps, np.diff(np.log(forward.sum(axis=1)), prepend=0), rtol=1e-10)
    xi = np.einsum("ti,ij,tj->ij", forward[:-1], move, np.exp(log_e[1:]) * backward[1:]) / total
    assert_allclose(counts, xi, rtol=1e-11)


def test_a_state_that_is_lost_at_first_and_needed_in_the_end():
    # From left to right: state 1 is never reached from 0, and only it explains the last 400 observations.
    start, move = np.array([0.5, 0.5]), np.eye(2)
    log_e = np.zeros((800, 2))
    log_e[:400, 1], log_e[400:, 0] = -5.0, -6.0
    value, p, steps, first, _ = hmm.smooth(start, move, log_e, np.array([0, 800]), None, True, True, 1)
    assert_allclose(value, np.log(0.5) - 2000, rtol=1e-14)
    assert_allclose(steps.sum(), value[0], rtol=1e-12)
    assert_allclose(p[:, 1], 1.0)
    assert_allclose(first, [0, 1], atol=1e-100)


def test_a_million_steps():
    rng = np.random.default_rng(0)
    start, move = np.array([0.4, 0.6]), np.array([[0.9, 0.1], [0.2, 0.8]])
    log_e = -50 + 5 * rng.normal(size=(1000, 2))
    short, p, _, _, counts = hmm.smooth(start, move, log_e, np.array([0, 1000]), None, True, False, 1)
    again = np.tile(log_e, (1000, 1))
    value, q, _, _, moves = hmm.smooth(start, move, again, np.array([0, 10**6]), None, True, False, 1)
    assert np.isfinite(value).all()
    assert_allclose(q.sum(axis=1), 1.0, rtol=1e-12)
    assert_allclose(moves.sum(), 10**6 - 1, rtol=1e-12)
    assert_allclose(q[:900], p[:900], atol=1e-12)  # the end of a thousand steps is forgotten within a hundred
    assert_allclose(value / 1000, short, rtol=1e-4)
    assert_allclose(moves / 1000, counts, atol=2)
    assert np.isfinite(hmm.viterbi(start, move, again, np.array([0, 10**6]), 1)[0]).all()


def test_sequences_weights_and_threads():
    rng = np.random.default_rng(3)
    start, move = chain(rng, 3)
    lengths = rng.integers(0, 9, 150)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    log_e, weight = rng.normal(size=(offsets[-1], 3)), rng.uniform(0, 2, 150)
    one = hmm.smooth(start, move, log_e, offsets, weight, True, True, 1)
    for threads in (2, 4):
        for a, b in zip(one, hmm.smooth(start, move, log_e, offsets, weight, True, True, threads), strict=True):
            assert_array_equal(a, b)
        for a, b in zip(*(hmm.viterbi(start, move, log_e, offsets, m) for m in (1, threads)), strict=True):
            assert_array_equal(a, b)
    first, counts = np.zeros(3), np.zeros((3, 3))
    for s, (a, b) in enumerate(itertools.pairwise(offsets)):
        value, p, _, f, c = hmm.smooth(start, move, log_e[a:b], np.array([0, b - a]), None, True, False, 1)
        assert_allclose(one[0][s], value[0], rtol=1e-14)
        assert_array_equal(one[1][a:b], p)
        first, counts = first + weight[s] * f, counts + weight[s] * c
    assert_allclose(one[3], first, rtol=1e-12)
    assert_allclose(one[4], counts, rtol=1e-12)


def test_what_cannot_happen():
    start, move = np.array([1.0, 0.0]), np.eye(2)
    log_e = np.array([[0.0, 0.0], [-np.inf, 0.0], [0.0, 0.0]])
    value, p, _, _, counts = hmm.smooth(start, move, log_e, np.array([0, 1, 3]), None, True, True, 1)
    assert value[0] == 0
    assert value[1] == -np.inf
    assert_array_equal(p[0], [1, 0])
    assert np.isnan(p[1:]).all()
    assert_array_equal(counts, 0)
    value, path = hmm.viterbi(start, move, log_e, np.array([0, 1, 3]), 1)
    assert value[1] == -np.inf
    assert_array_equal(path, [0, -1, -1])


def test_wrong_arguments_are_refused():
    start, move, log_e, offsets = np.ones(2) / 2, np.ones((2, 2)) / 2, np.zeros((4, 2)), np.array([0, 4])
    for bad in (
        (start[:1], move, log_e, offsets),
        (start, move[:1].copy(), log_e, offsets),
        (start, move, log_e[:, :1].copy(), offsets),
        (start, move, log_e, offsets[:1]),
        (start, move, log_e, np.array([0, 5])),
        (start, move, log_e, np.array([0, 3, 2, 4])),
        (-start, move, log_e, offsets),
        (start, move * np.nan, log_e, offsets),
        (start, move, log_e * np.nan, offsets),
        (start, move, log_e + np.inf, offsets),
    ):
        with pytest.raises(ValueError, match="smooth: expected"):
            hmm.smooth(*bad, None, True, False, 1)
        with pytest.raises(ValueError, match="viterbi: expected"):
            hmm.viterbi(*bad, 1)
    with pytest.raises(ValueError, match="smooth: expected"):
        hmm.smooth(start, move, log_e, offsets, np.ones(2), True, False, 1)


@pytest.mark.parametrize("k", [1, 5, 8, 11])
def test_normals_with_independent_columns(k):
    rng = np.random.default_rng(k)
    X, mean = rng.normal(size=(37, 3)), rng.normal(size=(k, 3))
    variance, R = rng.uniform(0.5, 2, size=(k, 3)), rng.random((37, k))
    X[rng.random(X.shape) < 0.2] = np.nan
    D = X[:, None] - mean
    scores, out = -0.5 * np.nansum(D**2 / variance + np.log(2 * np.pi * variance), axis=2), np.empty((37, k))
    hmm.diagonal_scores(X, mean, variance, out)
    assert_allclose(out, scores, rtol=1e-12)
    weight, first, second = hmm.diagonal_moments(X, R, mean, variance)
    assert_allclose(weight, R.sum(axis=0), rtol=1e-13)
    assert_allclose(first, np.einsum("ik,ikj->kj", R, np.nan_to_num(D)), rtol=1e-10, atol=1e-12)
    squares = np.where(np.isnan(D), np.broadcast_to(variance, D.shape), D**2)
    assert_allclose(second, np.einsum("ik,ikj->kj", R, squares), rtol=1e-12)
    with pytest.raises(ValueError, match="diagonal_scores: expected"):
        hmm.diagonal_scores(X, mean, variance, np.empty((36, k)))
    with pytest.raises(ValueError, match="diagonal_moments: expected"):
        hmm.diagonal_moments(X, R[:-1].copy(), mean, variance)
