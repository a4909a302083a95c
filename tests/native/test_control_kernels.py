"""Sweeps over a decision process: against NumPy, and refusals at the boundary."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from epicycle._native import control


def process(index):
    rng = np.random.default_rng(0)
    first = np.array([0, 2, 3, 3, 6])  # the third state is terminal
    P = rng.dirichlet(np.ones(4), size=6) * (rng.random((6, 4)) > 0.3)
    matrix = sp.csr_array(P)
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    return P, matrix, rng.normal(size=6), first.astype(np.int64), rng.normal(size=4)


def backed_up(P, reward, first, v):
    q = reward + 0.9 * P @ v
    pairs = [a + int(np.argmax(q[a:b])) if b > a else -1 for a, b in itertools.pairwise(first)]
    return np.array([v[s] if k < 0 else q[k] for s, k in enumerate(pairs)]), np.array(pairs)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("threads", [1, 3])
def test_sweeps_are_bellmans_operator(index, threads):
    P, matrix, reward, first, v = process(index)
    expected, pairs = backed_up(P, reward, first, v)
    acts = pairs >= 0
    out, choice = np.empty(4), np.empty(4, dtype=np.int64)
    low, high = control.improve(matrix, reward, first, 0.9, v, out, choice, threads)
    assert_allclose(out, expected)
    assert_array_equal(choice, pairs)
    assert_allclose([low, high], [(expected - v)[acts].min(), (expected - v)[acts].max()])

    twice = backed_up(P, reward, first, expected)[0]
    values = v.copy()
    assert control.iterate(matrix, reward, first, 0.9, values, choice, 2, 1.0, 0.0, True, threads).shape == (2, 2)
    assert_allclose(values, twice)
    relaxed = v.copy()
    control.iterate(matrix, reward, first, 0.9, relaxed, choice, 1, 0.25, 0.0, True, threads)
    assert_allclose(relaxed, v + 0.25 * (expected - v))

    for sweeps in (0, 1, 2, 5):
        ours, theirs = v.copy(), v.copy()
        control.evaluate(matrix, reward, first, 0.9, pairs, ours, sweeps, threads)
        for _ in range(sweeps):
            theirs = np.where(acts, (reward + 0.9 * P @ theirs)[pairs], theirs)
        assert_allclose(ours, theirs)
    theirs, stop = v.copy(), 0.01
    for _ in range(200):
        before, theirs = theirs, np.where(acts, (reward + 0.9 * P @ theirs)[pairs], theirs)
        if np.ptp((theirs - before)[acts]) <= stop:
            break
    control.evaluate(matrix, reward, first, 0.9, pairs, ours := v.copy(), 200, threads, stop)
    assert_allclose(ours, theirs)


@given(st.integers(0, 2**32), st.sampled_from([0.3, 0.95, 1.0]), st.sampled_from([0.5, 1.0]), st.booleans())
def test_actions_left_out_for_a_while_change_no_bit(seed, discount, relax, ends):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    counts = rng.integers(0 if ends else 1, 6, size=n)
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    P = rng.exponential(size=(first[-1], n)) * (rng.random((first[-1], n)) < 0.3)
    P /= np.maximum(P.sum(axis=1, keepdims=True), 1e-300) * (rng.uniform(1, 1.1) if ends else 1)
    P[P.sum(axis=1) == 0, 0] = 1.0
    matrix = sp.csr_array(P)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    reward = rng.normal(size=first[-1]) * 10 ** rng.uniform(-3, 3)
    reward[rng.random(first[-1]) < 0.2] = 0.0  # ties
    start = rng.normal(size=n) if rng.random() < 0.5 else np.zeros(n)
    ours, theirs, out = start.copy(), start.copy(), np.empty(n)
    choice, expected = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    changes = control.iterate(matrix, reward, first, discount, ours, choice, 60, relax, -1.0, ends, 1)
    for low, high in changes:  # all actions in every sweep
        assert (low, high) == control.improve(matrix, reward, first, discount, theirs, out, expected, 1)
        theirs = out.copy() if relax == 1.0 else theirs + relax * (out - theirs)
    assert_array_equal(ours, theirs)
    assert_array_equal(choice, expected)


def test_in_place_and_by_priority():
    P, matrix, reward, first, v = process(np.int32)
    ours, theirs, choice = v.copy(), v.copy(), np.empty(4, dtype=np.int64)
    control.improve_in_place(matrix, reward, first, 0.9, ours, choice)
    for s in range(4):
        theirs[s] = backed_up(P, reward, first, theirs)[0][s]
    assert_allclose(ours, theirs)

    leads, owner = sp.csr_array(matrix.T), np.repeat(np.arange(4), np.diff(first))
    leads.indices, leads.indptr = leads.indices.astype(np.int32), leads.indptr.astype(np.int32)
    assert control.sweep_by_priority(matrix, reward, first, 0.9, leads, owner, v, 1e-12, 10_000) < 10_000
    assert_allclose(backed_up(P, reward, first, v)[0], v, atol=1e-11)


def test_wrong_shapes_are_refused():
    _, matrix, reward, first, v = process(np.int32)
    out, choice = np.empty(4), np.empty(4, dtype=np.int64)
    for bad in (first[:-1], first[::-1].copy(), first + 1):
        with pytest.raises(ValueError, match="improve: expected"):
            control.improve(matrix, reward, bad, 0.9, v, out, choice, 1)
    with pytest.raises(ValueError, match="improve: expected"):
        control.improve(matrix, reward, first, 0.9, v, v, choice, 1)
    with pytest.raises(ValueError, match="evaluate: expected"):
        control.evaluate(matrix, reward, first, 0.9, np.array([0, 1, 2, 6]), v, 1, 1)
    with pytest.raises(ValueError, match="sweep_by_priority: expected"):
        control.sweep_by_priority(matrix, reward, first, 0.9, matrix, np.zeros(6, np.int64), v, 0.1, 5)


def test_kalman_kernels_against_plain_formulas():
    rng = np.random.default_rng(4)
    n, p, T = 2, 2, 6
    A, C = rng.normal(size=(1, n, n)) / 2, rng.normal(size=(1, p, n))
    W, V, P = np.eye(n)[None], np.array([[[0.5, 0.2], [0.2, 0.4]]]), np.eye(n)
    y, a, c, x = rng.normal(size=(T, p)), rng.normal(size=(T, n)), rng.normal(size=(T, p)), np.zeros(n)
    y[2] = np.nan
    y[4, 0] = np.nan
    value, pm, pc, fm, fc, _ = control.kalman_filter(y, control.StateSpace(A, C, W, V, a, c, x, P), 2, 0)
    total = 0.0
    for t in range(T):
        assert_allclose(pm[t], x)
        assert_allclose(pc[t], P)
        seen = ~np.isnan(y[t])
        H, S = C[0][seen], C[0][seen] @ P @ C[0][seen].T + V[0][np.ix_(seen, seen)]
        e, K = (y[t] - c[t])[seen] - H @ x, np.linalg.solve(S, H @ P).T
        total -= 0.5 * (np.linalg.slogdet(2 * np.pi * S)[1] + e @ np.linalg.solve(S, e)) if seen.any() else 0.0
        x, P = x + K @ e, P - K @ H @ P
        assert_allclose(fm[t], x)
        assert_allclose(fc[t], P)
        x, P = A[0] @ x + a[t], A[0] @ P @ A[0].T + W[0]
    assert_allclose(value, total)
    mean, cov, lag = pm.copy(), pc.copy(), fc.copy()  # overwritten
    model = control.StateSpace(A, C, W, V, a, c, np.zeros(n), np.eye(n))
    control.kalman_smoother(y, model, mean, cov, lag, True)
    x, P = fm[-1], fc[-1]
    for t in reversed(range(T - 1)):  # Rauch, Tung and Striebel
        J = fc[t] @ A[0].T @ np.linalg.inv(pc[t + 1])
        assert_allclose(lag[t], P @ J.T)
        x, P = fm[t] + J @ (x - pm[t + 1]), fc[t] + J @ (P - pc[t + 1]) @ J.T
        assert_allclose(mean[t], x)
        assert_allclose(cov[t], P)
    for bad in (np.zeros((2, n, n)), np.zeros((1, n, n + 1))):
        with pytest.raises(ValueError, match="kalman: expected"):
            control.kalman_filter(y, control.StateSpace(bad, C, W, V, a, c, np.zeros(n), np.eye(n)), 2, 0)
    assert np.isnan(control.kalman_filter(y, control.StateSpace(A, C, W, 0 * V, a, c, np.zeros(n), np.eye(n)), 0, 0)[0])


LIMITS = (np.array([-1.0]), np.array([1.0]))


def rolled_out(**given):
    applied = {name: given.pop(name) for name in ("given", "gain", "offset", "lowest", "highest")}
    box = [given.pop(name) for name in ("box_low", "box_high")]
    paths = [given.pop(name) for name in ("states", "controls", "rewards")]
    records = {"controls": control.Controls(**applied), "box": control.Box(*box), "paths": control.Trajectories(*paths)}
    return control.rollout(**given, **records)


@pytest.mark.parametrize(
    "change",
    [
        {"system": 5},
        {"parameters": np.ones(4)},
        {"integrator": 3},
        {"start": np.zeros((2, 3))},
        {"given": np.zeros((3, 4, 1))},
        {"given": np.zeros((2, 5, 1))},
        {"given": None},
        {"gain": np.zeros((1, 1, 2)), "offset": np.zeros((1, 1))},  # both
        {"given": None, "gain": np.zeros((2, 1, 2)), "offset": np.zeros((2, 1))},  # neither one nor four
        {"given": None, "gain": np.zeros((1, 1, 2))},
        {"box_low": np.zeros(2)},
        {"lowest": np.zeros(2)},
        {"states": np.empty((2, 4, 2))},
        {"states": np.empty((2, 5, 2)), "controls": np.empty((2, 4, 1)), "rewards": np.empty((2, 3))},
        {"threads": 0},
    ],
)
def test_rollouts_refuse_what_does_not_fit(change):
    given = {
        "system": 1,
        "parameters": np.array([10.0, 1.0, 1.0, 0.0, 8.0]),
        "seconds": 0.05,
        "integrator": 1,
        "start": np.zeros((2, 2)),
        "steps": 4,
        "given": np.zeros((2, 4, 1)),
        "gain": None,
        "offset": None,
        "lowest": LIMITS[0],
        "highest": LIMITS[1],
        "box_low": None,
        "box_high": None,
        "states": None,
        "controls": None,
        "rewards": None,
        "threads": 1,
    }
    last, lengths = rolled_out(**given)
    assert last.shape == (2, 2)
    assert_array_equal(lengths, [4, 4])
    with pytest.raises((ValueError, TypeError)):
        rolled_out(**given | change)


def test_motions_and_expansions_refuse_what_does_not_fit():
    parameters = np.array([10.0, 1.0, 1.0, 0.0, 8.0])
    for call in (
        lambda: control.motion(1, parameters[:4], np.zeros((2, 2)), np.zeros((2, 1))),
        lambda: control.motion(1, parameters, np.zeros((2, 2)), np.zeros((1, 1))),
        lambda: control.expand(1, parameters, 0.1, 0, np.zeros((2, 3)), np.zeros((2, 1)), False),
    ):
        with pytest.raises(ValueError, match="expected"):
            call()
    assert control.expand(1, parameters, 0.1, 2, np.zeros((0, 2)), np.zeros((0, 1)), True)[0].shape == (0, 2)
