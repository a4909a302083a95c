"""Every solver reaches the optimum, says so truthfully, and says why when it does not."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from rows_objective import make_problem
from scipy.optimize import minimize

from epicycle.exceptions import ParameterError
from epicycle.optim import SOLVERS, FunctionObjective, Monitor, learning_rate_ladder, solve
from epicycle.optim.solvers._run import Run

STOCHASTIC = [name for name, info in SOLVERS.items() if info.stochastic]
DETERMINISTIC = [name for name in SOLVERS if name not in STOCHASTIC]


def reference(problem):
    """The optimum to the last digits, by SciPy's trust region from its own BFGS, with the plain Hessian."""
    x0 = minimize(problem.value_and_gradient, np.zeros(problem.size), jac=True, method="BFGS").x
    for _ in range(4):
        _, g, H = problem.second_order(x0)
        x0 = x0 - np.linalg.solve(H, g)
    assert np.abs(problem.value_and_gradient(x0)[1]).max() < 1e-13
    return x0, problem.value_and_gradient(x0)[0]


@pytest.mark.parametrize("kind", ["logistic", "squares"])
@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_reaches_the_optimum(name, kind):
    problem = make_problem(kind, seed=3)
    x, value = reference(problem)
    solution = solve(name, problem, np.zeros(problem.size), tol=1e-8, max_iter=500)
    assert solution.converged
    assert solution.certificate.holds
    assert 0 <= solution.value - value + 1e-15 <= 1e-8 * value
    assert_allclose(solution.x, x, atol=2e-4)
    assert solution.history.n_iter == solution.n_iter
    assert {"objective", "step", "gradient_norm", "seconds"} <= set(solution.history.columns)


@pytest.mark.parametrize("name", SOLVERS)
def test_tight_tolerances_can_be_reached(name):
    problem = make_problem("logistic", seed=5)
    x, _ = reference(problem)
    solution = solve(name, problem, np.ones(problem.size), tol=1e-13, max_iter=1000)
    assert solution.converged
    assert_allclose(solution.x, x, atol=1e-6)


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_without_strong_convexity_the_gradient_is_made_small(name):
    problem = make_problem("logistic", seed=4, certified=False)
    solution = solve(name, problem, np.zeros(problem.size), tol=1e-11, max_iter=2000)
    assert solution.converged
    assert solution.certificate.kind == "gradient norm"
    assert np.abs(problem.value_and_gradient(solution.x)[1]).max() <= 1e-11


@settings(max_examples=25)
@given(
    st.integers(0, 10_000),
    st.sampled_from(["logistic", "squares"]),
    st.sampled_from(sorted(SOLVERS)),
    st.sampled_from([1.0, 10.0]),
    st.sampled_from([1e-3, 1e-1, 1.0]),
    st.sampled_from([1e-3, 1e-6, 1e-10]),
)
def test_a_certificate_that_holds_is_true(seed, kind, name, spread, alpha, tol):
    problem = make_problem(kind, seed, n=60, d=4, spread=spread, alpha=alpha)
    _, value = reference(problem)
    solution = solve(name, problem, np.zeros(problem.size), tol=tol, max_iter=60)
    gap = (solution.value - value) / solution.value  # the scale that the certificate names
    assert gap <= solution.certificate.value + 1e-14  # also when it does not reach the tolerance
    assert solution.converged == solution.certificate.holds
    if solution.converged:
        assert gap <= tol + 1e-14


@pytest.mark.parametrize("name", SOLVERS)
def test_one_iteration_is_not_convergence(name):
    problem = make_problem("logistic", seed=1, spread=20.0)
    start = np.zeros(problem.size)
    solution = solve(name, problem, start, tol=1e-12, max_iter=1)
    assert (solution.reason, solution.n_iter, solution.converged) == ("max_iter", 1, False)
    assert not solution.certificate.holds
    assert "max_iter=1" in solution.message
    assert solution.value <= problem.value_and_gradient(start)[0]


@pytest.mark.parametrize("name", SOLVERS)
def test_the_optimum_as_start_needs_no_iteration(name):
    problem = make_problem("squares", seed=2)
    x, _ = reference(problem)
    solution = solve(name, problem, x, tol=1e-10)
    assert (solution.reason, solution.n_iter) == ("converged", 0)
    assert np.array_equal(solution.x, x)


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_an_impossible_tolerance_ends_stalled_at_the_optimum(name):
    problem = make_problem("logistic", seed=6, certified=False)
    x, _ = reference(problem)
    solution = solve(name, problem, np.zeros(problem.size), tol=0.0, max_iter=100_000)
    assert solution.reason == "stalled"
    assert "double precision" in solution.message
    assert solution.n_iter < 3000
    assert_allclose(solution.x, x, atol=1e-8)


@pytest.mark.parametrize("kind", ["logistic", "squares"])
@pytest.mark.parametrize("name", ["gd", "sgd", "momentum"])
def test_a_diverging_step_is_reported(name, kind):
    problem = make_problem(kind, seed=1, alpha=1.0)
    options = {"step": 50.0} if name == "gd" else {"step": 50.0, "schedule": "constant", "variance_reduction": False}
    start = np.full(problem.size, 0.1)
    solution = solve(name, problem, start, max_iter=2000, options=options)
    assert solution.reason == "diverged"
    assert "step=50" in solution.message
    assert "smaller step" in solution.message
    assert np.isfinite(solution.x).all()
    assert solution.value <= problem.value_and_gradient(start)[0]


def test_overflow_is_divergence_and_the_best_iterate_is_kept():
    def steep(x):
        with np.errstate(over="ignore"):
            return float(np.exp(x).sum() + x @ x), np.exp(x) + 2 * x

    solution = solve("gd", FunctionObjective(steep, 2), np.full(2, 3.0), options={"step": 1e4})
    assert solution.reason == "diverged"
    assert np.isfinite(solution.x).all()


def test_a_start_without_value_is_reported():
    nowhere = FunctionObjective(lambda x: (np.nan, x), 2)
    solution = solve("bfgs", nowhere, np.zeros(2))
    assert solution.reason == "diverged"
    assert "start" in solution.message
    assert not solution.certificate.holds


def test_fixed_steps_that_descend_converge():
    problem = make_problem("squares", seed=2)
    L = np.linalg.eigvalsh(problem.second_order(np.zeros(problem.size))[2])[-1]
    solution = solve("gd", problem, np.zeros(problem.size), options={"step": 1 / L}, max_iter=1000)
    assert solution.converged
    assert np.all(np.diff(solution.history.objective) <= 1e-15)  # with steps below 2 / L every one descends
    assert np.all(solution.history.step == 1 / L)


def test_the_ladder_keeps_the_largest_step_that_descends():
    # F = 10 x^2 / 2 descends for steps below 2 / 10.
    bowl = FunctionObjective(lambda x: (5 * float(x @ x), 10 * x), 1)
    ladder = learning_rate_ladder(bowl, np.ones(1))
    assert ladder.step == 0.1
    assert ladder.steps == (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
    assert ladder.descends == (True, True, True, True, True, False)
    steep = FunctionObjective(lambda x: (5e6 * float(x @ x), 1e7 * x), 1)
    assert learning_rate_ladder(steep, np.ones(1)).step == 1e-7


@pytest.mark.parametrize("name", ["gd", "cg", "bfgs", "lbfgs", *STOCHASTIC])
def test_the_metric_makes_bad_scales_harmless(name):
    problem = make_problem("logistic", seed=7, spread=1e4, alpha=1e-6)
    x, value = reference(problem)
    solution = solve(name, problem, np.zeros(problem.size), tol=1e-6, max_iter=400, options={"precondition": True})
    assert solution.converged
    assert solution.value - value <= 1e-6 * value
    plain = solve("cg", problem, np.zeros(problem.size), tol=1e-6, max_iter=solution.n_iter)
    assert not plain.converged  # the problem is hard without it
    assert_allclose(solution.x * problem.X.std(axis=0), x * problem.X.std(axis=0), atol=1e-2)


def test_linear_conjugate_gradients_end_after_as_many_steps_as_dimensions():
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    H = (Q * np.linspace(1, 30, 12)) @ Q.T
    c = rng.normal(size=12)
    x = np.linalg.solve(H, c)
    bowl = FunctionObjective(
        lambda x: (float(x @ H @ x / 2 - c @ x), H @ x - c), 12, hessian=lambda x: H, strong_convexity=1, quadratic=True
    )
    solution = solve("cg", bowl, np.zeros(12), tol=1e-16)
    assert solution.converged
    assert solution.n_iter <= 13
    assert_allclose(solution.x, x, rtol=1e-7)
    assert_allclose(solution.value, -c @ x / 2, rtol=1e-14)


@pytest.mark.parametrize("capability", ["hessian", "hessian_product"])
def test_newton_on_a_singular_problem(capability):
    problem = make_problem("logistic", seed=8, alpha=0.0, certified=False)
    problem.X = np.hstack([problem.X, problem.X[:, :2]])  # two columns twice
    problem.size += 2
    problem.capabilities = frozenset({capability})
    solution = solve("newton", problem, np.zeros(problem.size), tol=1e-10)
    assert solution.converged
    assert solution.n_iter < 15
    assert_allclose(solution.x[:2], solution.x[-2:], atol=1e-6)  # the flat directions were left alone


def test_newton_survives_a_region_without_curvature():
    # sqrt(1 + x^2): the full Newton step goes to -x^3 and diverges beyond 1.
    def bend(x):
        r = np.sqrt(1 + x * x)
        return float(r.sum()), x / r

    objective = FunctionObjective(bend, 2, hessian=lambda x: np.diag((1 + x * x) ** -1.5))
    solution = solve("newton", objective, np.array([10.0, -3.0]), tol=1e-12)
    assert solution.converged
    assert_allclose(solution.x, 0, atol=1e-11)


@pytest.mark.parametrize("schedule", ["constant", "inverse", "inverse-scaling", "1/sqrt"])
@pytest.mark.parametrize("average", [False, True])
def test_textbook_schedules_come_close_and_do_not_pretend(schedule, average):
    problem = make_problem("squares", seed=9, n=400, alpha=0.5)
    _, value = reference(problem)
    step = {"constant": 0.02, "inverse": 2.0, "inverse-scaling": 2.0, "1/sqrt": 0.1}[schedule]
    options = {"schedule": schedule, "step": step, "offset": 10.0, "average": average, "batch_size": 8}
    options["variance_reduction"] = False
    solution = solve("sgd", problem, np.zeros(problem.size), tol=1e-12, max_iter=20, options=options)
    assert solution.reason == "max_iter"
    assert not solution.converged
    assert 0 < (solution.value - value) / value < 1e-2


def test_averaging_takes_out_the_noise():
    problem = make_problem("squares", seed=9, n=400, alpha=0.5)
    _, value = reference(problem)
    gaps = {}
    for average in (False, True):
        options = {"schedule": "constant", "step": 0.05, "batch_size": 1, "variance_reduction": False}
        solution = solve(
            "sgd", problem, np.zeros(problem.size), tol=1e-12, max_iter=10, options={**options, "average": average}
        )
        gaps[average] = np.median(solution.history.objective[-5:]) - value
    assert gaps[True] < 0.2 * gaps[False]


def test_pure_stochastic_steps_converge():
    problem = make_problem("logistic", seed=11, n=80)
    solution = solve("sgd", problem, np.zeros(problem.size), tol=1e-8, max_iter=200, options={"batch_size": 1})
    assert solution.converged


class _Recorder(Monitor):
    """Keeps the state of every iteration, and stops at one of them."""

    def __init__(self, stop_at=None):
        super().__init__()
        self.states, self.points, self.stop_at = {}, {}, stop_at

    def __call__(self, iteration, x, *, objective, state=None, **columns):
        super().__call__(iteration, x, objective=objective, state=state, **columns)
        self.states[iteration] = dict(state())
        self.points[iteration] = x.copy()
        return iteration == self.stop_at


@pytest.mark.parametrize("precondition", [False, True])
@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "newton"])
def test_a_stopped_run_resumes(name, precondition):
    problem = make_problem("logistic", seed=12, spread=3.0)
    start = np.zeros(problem.size)
    options = {"precondition": precondition}
    whole_monitor = _Recorder()
    whole = solve(name, problem, start, tol=1e-9, max_iter=300, monitor=whole_monitor, options=options)
    assert whole.converged
    recorder = _Recorder(stop_at=3)
    part = solve(name, problem, start, tol=1e-9, max_iter=300, monitor=recorder, options=options)
    assert (part.reason, part.n_iter) == ("stopped", 3)
    assert all(isinstance(v, np.ndarray | str | int | float) for v in recorder.states[3].values())
    for state in (recorder.states[3], part.state):
        resumed = solve(name, problem, start, tol=1e-9, max_iter=300, state=state, options=options)
        assert resumed.converged
        if name in STOCHASTIC:
            assert np.array_equal(resumed.x, whole.x)
            assert (resumed.value, resumed.n_iter) == (whole.value, whole.n_iter)
        else:
            assert abs(resumed.value - whole.value) <= 1e-9 * whole.value


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("name", STOCHASTIC)
def test_textbook_runs_resume_to_the_same_bits(name, average):
    problem = make_problem("logistic", seed=13)
    start = np.zeros(problem.size)
    options = {"schedule": "1/sqrt", "step": 0.05, "average": average, "variance_reduction": False}
    whole = solve(name, problem, start, tol=1e-12, max_iter=9, options=options)
    part = solve(name, problem, start, tol=1e-12, max_iter=4, options=options)
    resumed = solve(name, problem, start, tol=1e-12, max_iter=9, options=options, state=part.state)
    assert np.array_equal(resumed.x, whole.x)
    assert np.array_equal(resumed.history.objective, whole.history.objective[4:])


def test_newton_resumes():
    problem = make_problem("logistic", seed=12, spread=3.0)
    part = solve("newton", problem, np.zeros(problem.size), tol=1e-12, monitor=_Recorder(stop_at=2))
    assert part.reason == "stopped"
    resumed = solve("newton", problem, np.zeros(problem.size), tol=1e-12, state=part.state)
    assert resumed.converged
    assert resumed.history.n_iter == resumed.n_iter - 2


def test_a_state_of_another_solver_is_refused():
    problem = make_problem("logistic")
    state = solve("gd", problem, np.zeros(problem.size), tol=1e-14, max_iter=1).state
    with pytest.raises(ParameterError, match=r"'cg'.*'gd'"):
        solve("cg", problem, np.zeros(problem.size), state=state)
    with pytest.raises(ParameterError, match="metric"):
        solve("gd", problem, np.zeros(problem.size), state=state, options={"precondition": True})


@pytest.mark.parametrize("name", SOLVERS)
def test_an_interrupt_passes_through(name):
    problem = make_problem("logistic")
    plain = problem._part

    def interrupted(X, y, x):
        if x.any():
            raise KeyboardInterrupt
        return plain(X, y, x)

    problem._part = interrupted
    with pytest.raises(KeyboardInterrupt):
        solve(name, problem, np.zeros(problem.size))


@pytest.mark.parametrize("name", SOLVERS)
def test_seeds_and_repetition(name):
    problem = make_problem("logistic", seed=14)
    twice = [solve(name, problem, np.zeros(problem.size), tol=1e-8).x for _ in range(2)]
    assert np.array_equal(*twice)
    if name in STOCHASTIC:
        other = solve(name, problem, np.zeros(problem.size), tol=1e-8, options={"seed": 1}).x
        assert not np.array_equal(other, twice[0])


def test_certificates_are_asked_for_rarely():
    problem = make_problem("logistic", seed=15, spread=20.0)
    calls = []
    certify = problem.certify
    problem.certify = lambda *args: calls.append(1) or certify(*args)
    solution = solve("cg", problem, np.zeros(problem.size), tol=1e-10, max_iter=2000)
    assert solution.converged
    assert solution.n_iter > 30
    assert len(calls) <= 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "simplex"}, "solver must be one of"),
        ({"start": np.zeros(3)}, "start must have shape"),
        ({"start": np.array([0, 0, np.nan, 0, 0])}, "start must be finite"),
        ({"tol": -1.0}, "tol"),
        ({"tol": np.nan}, "tol must be finite"),
        ({"tol": "small"}, "tol must be a number"),
        ({"max_iter": -1}, "max_iter"),
        ({"max_iter": 2.5}, "max_iter must be an integer"),
        ({"options": {"step": -1.0}}, "step"),
        ({"options": {"step": "fast"}}, "step must be one of"),
        ({"options": {"stride": 1.0}}, "no option 'stride'"),
        ({"name": "sgd", "options": {"schedule": "never"}}, "schedule must be one of"),
        ({"name": "sgd", "options": {"batch_size": 0}}, "batch_size"),
        ({"name": "sgd", "options": {"average": True}}, "average"),
        ({"name": "adam", "options": {"rule": "sgd"}}, "no option 'rule'"),
        ({"name": "lbfgs", "options": {"memory": 0}}, "memory"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    given = {"name": "gd", "start": np.zeros(5), **arguments}
    with pytest.raises(ParameterError, match=message):
        solve(given.pop("name"), make_problem("logistic"), given.pop("start"), **given)


@pytest.mark.parametrize(("name", "missing"), [("newton", "hessian"), ("adam", "minibatches")])
def test_missing_capabilities_are_named(name, missing):
    bare = FunctionObjective(lambda x: (float(x @ x), 2 * x), 2)
    with pytest.raises(ParameterError, match=rf"'{name}'.*'{missing}'"):
        solve(name, bare, np.ones(2))
    with pytest.raises(ParameterError, match="metric"):
        solve("cg", bare, np.ones(2), options={"precondition": True})


@pytest.mark.parametrize("name", ["gd", "cg", "bfgs", "lbfgs", "gd-ladder"])
@pytest.mark.parametrize("offset", [0.0, 1e13, -1e13])
def test_a_function_without_a_minimum_is_never_certified(name, offset):
    slope = FunctionObjective(lambda x: (offset - float(x.sum()), -np.ones(3)), 3)
    solution = solve(name, slope, np.zeros(3))
    assert not solution.converged
    assert not solution.certificate.holds


@pytest.mark.parametrize("step", ["auto", 0.1, 0.3, 1.0])
@pytest.mark.parametrize("start", [1.0, 0.5, -1e-6, -1.0])
def test_no_certificate_holds_where_the_iteration_diverged(step, start):
    cubic = FunctionObjective(lambda x: (float((x**3).sum()), 3 * x**2), 1)
    options = {} if step == "auto" else {"step": step}
    with np.errstate(over="ignore", invalid="ignore"):
        solution = solve("gd", cubic, np.array([start]), options=options)
    if solution.reason == "diverged":
        assert not solution.certificate.holds
    else:  # it may rest at the point of inflection, where the derivative is zero; no bound is claimed there
        assert solution.certificate.kind == "gradient norm"
        assert "minimum" not in solution.certificate.meaning


def test_diverging_from_a_flat_start_proves_nothing():
    cubic = FunctionObjective(lambda x: (-float((x**3).sum()), -3 * x**2), 1)
    run = Run("gd", cubic, np.array([1e-6]), tol=1e-8, max_iter=10, monitor=None, state=None)
    run.begin(*cubic.value_and_gradient(run.x))
    run.end("diverged", "as a solver says it")
    assert not run.solution().certificate.holds


def test_a_lower_bound_makes_the_gradient_relative_to_the_objective():
    def bowl(x):
        return 1e6 * (1 + float(x @ x)), 2e6 * x

    x = np.array([1e-9])
    assert not FunctionObjective(bowl, 1).certify(x, 1e-8).holds
    assert FunctionObjective(bowl, 1, lower_bound=0.0).certify(x, 1e-8).holds
    assert not FunctionObjective(bowl, 1, lower_bound=1e6).certify(x, 1e-8).holds
