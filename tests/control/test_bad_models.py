"""Models of any numbers: an error that names an argument, or a finite result; never a hang."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from epicycle.control import (
    LQG,
    LQR,
    MDP,
    POMDP,
    KalmanFilter,
    backward_induction,
    generalized_policy_iteration,
    heuristic_search_value_iteration,
    incremental_pruning,
    linear_program,
    modified_policy_iteration,
    point_based_value_iteration,
    policy_iteration,
    qmdp,
    value_iteration,
)
from epicycle.exceptions import ConvergenceWarning, DataError, EpicycleError

PLANNERS = {
    "value iteration": lambda m: value_iteration(m, max_iter=2000),
    "gauss-seidel": lambda m: value_iteration(m, method="gauss-seidel", max_iter=2000),
    "prioritized": lambda m: value_iteration(m, method="prioritized", max_iter=200),
    "policy iteration": lambda m: policy_iteration(m, max_iter=100),
    "modified": lambda m: modified_policy_iteration(m, max_iter=500),
    "generalized": lambda m: generalized_policy_iteration(m, max_iter=500),
    "linear program": linear_program,
    "backward induction": lambda m: backward_induction(m, 5),
}
POMDP_PLANNERS = {
    "exact": lambda p: incremental_pruning(p, horizon=3, max_vectors=2000),
    "hsvi": lambda p: heuristic_search_value_iteration(p, max_iter=20),
    "pbvi": lambda p: point_based_value_iteration(p, max_iter=20),
    "qmdp": qmdp,
}
SPECIAL = [0.0, -1.0, 1.0, 1e-300, 1e-9, 1e12, 1e300, np.nan, np.inf, -np.inf]
MESSAGE = re.compile(r"[a-zA-Z_]\w*")  # of an error: it begins with a name


def numbers(rng, shape, spoiled):
    """Normal numbers, some of them replaced by special ones."""
    x = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4)
    for _ in range(spoiled):
        if x.size:
            x.flat[rng.integers(x.size)] = SPECIAL[rng.integers(len(SPECIAL))]
    return x


def matrix_of_costs(rng, n, spoiled):
    """Positive, semidefinite with eigenvalues of very different sizes, indefinite, or of any numbers."""
    kind = rng.integers(7)
    if kind == 0:
        return numbers(rng, (n, n), spoiled)
    sizes = {1: [0.0, 1.0, 1e-12, 1e6], 2: [-1.0, 1.0]}.get(int(kind), [0.1, 1.0, 10.0])
    a = rng.normal(size=(n, n))
    out = a @ np.diag(rng.choice(sizes, size=n)) @ a.T
    return 0.5 * (out + out.T)


def probabilities(rng, shape, spoiled):
    p = rng.exponential(size=shape) * (rng.random(shape) < 0.6)
    total = p.sum(axis=-1, keepdims=True)
    p = np.divide(p, total, out=np.zeros_like(p), where=total > 0)
    if rng.random() < 0.8:  # rows without entries get one
        flat = p.reshape(-1, shape[-1])
        flat[flat.sum(axis=1) == 0, 0] = 1.0
    for _ in range(spoiled):
        p.flat[rng.integers(p.size)] = [*SPECIAL, 0.5, 1 + 1e-7][rng.integers(len(SPECIAL) + 2)]
    return p


def attempt(make, use):
    """The result, or None after an error that names what is wrong."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return use(make())
        except EpicycleError as error:
            if not MESSAGE.match(str(error)):
                pytest.fail(f"an error that names nothing: {error}")
            return None


def try_mdp(seed, planner):
    rng = np.random.default_rng(seed)
    n, m, spoiled = int(rng.integers(1, 6)), int(rng.integers(1, 4)), int(rng.choice([0, 0, 1, 3]))
    P = probabilities(rng, (n, m, n), spoiled)
    shape = [(n,), (n, m), (n, m, n)][rng.integers(3)]
    R = numbers(rng, shape, int(rng.choice([0, 0, 1])))
    terminal = np.flatnonzero(rng.random(n) < 0.4) if rng.random() < 0.5 else None
    discount = rng.choice([0.0, 0.5, 0.99, 1 - 1e-9, 1.0])
    criterion = rng.choice([None, None, "discounted", "total", "average"])
    solution = attempt(lambda: MDP(P, R, discount, terminal=terminal, criterion=criterion), PLANNERS[planner])
    if solution is None:
        return
    assert not np.isnan(solution.values).any()
    assert not solution.certificate.holds or np.isfinite(solution.values).all()
    if planner != "backward induction" and solution.lower is not None:
        assert (solution.lower <= solution.upper).all()


def try_pomdp(seed, planner):
    rng = np.random.default_rng(seed)
    n, m, k = int(rng.integers(1, 4)), int(rng.integers(1, 3)), int(rng.integers(1, 4))
    spoiled = int(rng.choice([0, 0, 1]))
    P, Z = probabilities(rng, (n, m, n), spoiled), probabilities(rng, (n, k), spoiled)
    R = numbers(rng, [(n,), (n, m)][rng.integers(2)], int(rng.choice([0, 0, 1])))
    start = None if rng.random() < 0.5 else probabilities(rng, (n,), spoiled)
    discount = rng.choice([0.0, 0.5, 0.95, 1.0])
    solution = attempt(lambda: POMDP(P, Z, R, discount, start=start), POMDP_PLANNERS[planner])
    if solution is None:
        return
    low, high = solution.bounds(np.full(n, 1 / n))
    assert not np.isnan(high)
    assert not np.isnan(low)
    assert low <= high or not solution.certificate.holds or np.isclose(low, high)


def try_regulator(seed, kind):
    rng = np.random.default_rng(seed)
    n, m, spoiled = int(rng.integers(1, 5)), int(rng.integers(1, 3)), int(rng.choice([0, 0, 1, 2]))
    A = numbers(rng, (n, n), spoiled)
    if rng.random() < 0.5:
        A /= max(np.abs(A[np.isfinite(A)]).max(initial=0), 1e-300)
    B = np.where(rng.random((n, m)) < 0.7, numbers(rng, (n, m), spoiled), 0.0)
    Q, R = matrix_of_costs(rng, n, spoiled), matrix_of_costs(rng, m, spoiled)
    horizon = None if rng.random() < 0.7 else int(rng.integers(1, 20))
    if kind == "lqg":
        C, W, V = numbers(rng, (m, n), 0), matrix_of_costs(rng, n, spoiled), matrix_of_costs(rng, m, spoiled)
        solution = attempt(lambda: LQG(A, B, C, Q, R, W, V), lambda model: model.solve(horizon))
    else:
        options = {"time": kind} if kind == "continuous" else {"discount": rng.choice([1.0, 0.9])}
        solution = attempt(lambda: LQR(A, B, Q, R, **options), lambda model: model.solve(horizon))
    if solution is not None:
        assert np.isfinite(solution.gain).all()


def try_filter(seed, form):
    rng = np.random.default_rng(seed)
    n, p, spoiled = int(rng.integers(1, 5)), int(rng.integers(1, 4)), int(rng.choice([0, 0, 1]))
    A = numbers(rng, (n, n), spoiled)
    A /= max(np.abs(A[np.isfinite(A)]).max(initial=0), 1e-300) * (1 if rng.random() < 0.3 else n)
    C, W, V = numbers(rng, (p, n), spoiled), matrix_of_costs(rng, n, spoiled), matrix_of_costs(rng, p, spoiled)
    options = [{}, {"diffuse": True}, {"covariance": matrix_of_costs(rng, n, spoiled)}][rng.integers(3)]
    y = rng.normal(size=(25, p)) * 10.0 ** rng.integers(-3, 4)
    y[rng.random(y.shape) < 0.2] = np.nan
    use = [
        lambda model: model.filter(y),
        lambda model: model.smooth(y),
        lambda model: model.fit(y, max_iter=3).smooth(y),
    ][rng.integers(3)]
    result = attempt(lambda: KalmanFilter(A, C, W, V, form=form, **options), use)
    if result is not None:
        assert np.isfinite(result.mean).all()
        assert "diffuse" in options or np.isfinite(result.covariance).all()  # infinite until a start is known


def test_a_total_reward_without_bound_is_named():
    # Staying pays, so that the best policy never ends.
    mdp = MDP(np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]), [[0.1, 1.0], [0, 0]], 1.0, terminal=[1])
    for planner in (policy_iteration, linear_program):
        with pytest.raises(DataError, match="the total reward has no upper bound"):
            planner(mdp)
    with pytest.warns(ConvergenceWarning):
        assert not value_iteration(mdp, max_iter=500).certificate.holds


def test_sizes_beyond_floating_point_are_named():
    P = np.array([[[0.5, 0.5]], [[0.0, 1.0]]])
    with pytest.raises(DataError, match="rewards: has an entry of size 1e\\+300"):
        MDP(P, [1e300, 0.0], 0.9)
    with pytest.raises(DataError, match="A: has an entry of size 1e\\+200"):
        LQR([[1e200]], [[1.0]], [[1.0]], [[1.0]])
    with pytest.raises(DataError, match="Riccati's equation has no solution in double precision"):
        LQR([[1e90]], [[0.0]], [[1.0]], [[1.0]]).solve(20)


TRIALS = {
    **{f"mdp, {name}": (try_mdp, name) for name in PLANNERS},
    **{f"pomdp, {name}": (try_pomdp, name) for name in POMDP_PLANNERS},
    **{f"regulator, {kind}": (try_regulator, kind) for kind in ("discrete", "continuous", "lqg")},
    **{f"filter, {form}": (try_filter, form) for form in ("covariance", "square_root", "information")},
}


@pytest.mark.parametrize("trial", TRIALS)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=10, deadline=None)
def test_any_numbers_are_planned_filtered_or_refused(trial, seed):
    run, what = TRIALS[trial]
    run(seed, what)


@pytest.mark.slow
@pytest.mark.parametrize("trial", TRIALS)
def test_many_more_of_them(trial):
    run, what = TRIALS[trial]
    for seed in range(200):
        run(seed, what)
