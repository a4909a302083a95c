"""`sample`: draws from a model's posterior by Markov chain Monte Carlo."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from epicycle._native import bayes as native
from epicycle.bayes.sampling._chains import STATISTICS, Chain, Outcome, rectangle, run
from epicycle.bayes.sampling._draws import Draws
from epicycle.bayes.sampling._model import Model
from epicycle.bayes.sampling._native_models import NativeModel
from epicycle.core._exceptions import ConvergenceError, ConvergenceWarning, EpicycleWarning, ParameterError
from epicycle.core._parameters import SHARED_PARAMETERS, Choice, InstanceOf, Integer, NoneOr, Real, check_parameter
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core._settings import get_config
from epicycle.core._threads import n_threads
from epicycle.core.estimator import in_catalogue
from epicycle.core.estimator._progress import ProgressLine

Array = np.ndarray
METHODS = ("nuts", "hmc", "metropolis", "gibbs", "slice")
_DOMAINS = {
    "model": InstanceOf(Model),
    "method": Choice(*METHODS),
    "draws": Integer(minimum=1),
    "warmup": Integer(minimum=0),
    "chains": Integer(minimum=1),
    "thin": Integer(minimum=1),
    "metric": NoneOr(Choice("diagonal", "dense")),
    "target_accept": Real(0, 1, inclusive=False),
    "max_depth": Integer(1, 20),
    "integration_time": Real(0, inclusive=False),
    "step_size": NoneOr(Real(0, inclusive=False)),
    **{name: SHARED_PARAMETERS[name] for name in ("random_state", "n_jobs", "verbose")},
}
_INITIAL_TRIES = 100


@in_catalogue("bayes", "B6", certificate="R-hat and effective sample size")
def sample(
    model: Model,
    method: str = "nuts",
    *,
    draws: int = 1000,
    warmup: int = 1000,
    chains: int = 4,
    thin: int = 1,
    initial: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    metric: str | None = None,
    target_accept: float = 0.8,
    max_depth: int = 10,
    integration_time: float = np.pi / 2,
    step_size: float | None = None,
    random_state: Seed = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Draws:
    """Draw from the posterior of a model by Markov chain Monte Carlo.

    Ctrl-C ends the chains and gives back what was drawn; so does a density that raises an exception, with a warning.
    A density of nan counts as zero density, and is reported.

    Parameters
    ----------
    model : Model
        A log-density of one's own (:class:`Model`), or one of the compiled models.
    method : {"nuts", "hmc", "metropolis", "gibbs", "slice"}, default="nuts"
        The no-U-turn sampler, Hamiltonian Monte Carlo over a fixed time, a random walk that learns its proposal, the
        model's full conditionals in turn, or slices through one coordinate at a time. The first two need a gradient.
    draws : int, default=1000
        Draws of each chain that are kept.
    warmup : int, default=1000
        Iterations before, which adapt the sampler and are not kept.
    chains : int, default=4
        Number of chains.
    thin : int, default=1
        Iterations for every draw that is kept.
    initial : mapping or sequence of mappings, optional
        Parameters to start from, for all chains or one for each. By default unconstrained coordinates are uniform in
        [-2, 2].
    metric : {"diagonal", "dense"}, optional
        Whether the warm-up learns variances or the covariance; by default variances, and for ``"metropolis"`` the
        covariance.
    target_accept : float, default=0.8
        Mean acceptance that the step size is adapted to.
    max_depth : int, default=10
        Trajectories of ``"nuts"`` have at most ``2**max_depth`` steps.
    integration_time : float, default=pi/2
        Length of a trajectory of ``"hmc"``, in units of the metric.
    step_size : float, optional
        Where the adaptation starts; the step itself with ``warmup=0``. By default it is looked for.
    n_jobs : int, optional
        Number of threads; None runs compiled models in as many as there are processors and chains, and functions of
        Python one after the other. The result does not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import bayes
    >>> model = bayes.NormalModel(mean=[1.0, -1.0], covariance=[[1.0, 0.8], [0.8, 1.0]])
    >>> draws = bayes.sample(model, random_state=0)
    >>> bool(abs(np.corrcoef(draws.stacked("x").T)[0, 1] - 0.8) < 0.05)
    True
    >>> draws.certificate_.holds
    True
    """
    given = {name: value for name, value in locals().items() if name in _DOMAINS}
    for name, domain in _DOMAINS.items():
        check_parameter("sample", name, given[name], domain)
    _check_method(model, method)
    seed, size = seed_of(random_state), model.parameters.size
    stop = np.zeros(1, dtype=np.int64)
    with np.errstate(all="ignore"):
        starts = _starting_points(model, method, initial, chains, seed)
        if method in ("nuts", "hmc") and not isinstance(model, NativeModel):
            _check_gradient(model, starts[0])
    n_nan = model.n_nan
    running = [
        Chain(k, starts[k], stream(seed, "chain", k), np.empty((draws, size)), np.empty((draws, len(STATISTICS))), stop)
        for k in range(chains)
    ]
    dense = metric == "dense" or (metric is None and method == "metropolis")
    density = model.density()
    options = None
    if method != "gibbs":
        options = native.ChainOptions(
            sampler=method,
            warmup=warmup,
            thin=thin,
            dense=dense,
            target_accept=target_accept,
            step_size=step_size or 0.0,
            max_depth=max_depth,
            integration_time=integration_time,
        )

    def step(chain: Chain) -> None:
        if options is None:
            return run_gibbs(model, chain, warmup, thin)
        words = chain.rng.integers(2**64, size=4, dtype=np.uint64)
        output = (chain.draws, chain.statistics, chain.progress, chain.stop)
        with np.errstate(all="ignore"):  # of the user's function: far out it may overflow
            chain.step_size, chain.metric = native.sample_chain(density, options, chain.start, words, *output)

    if isinstance(model, NativeModel) and method != "gibbs":
        threads = min(n_threads(np.inf, n_jobs), chains)
    else:
        threads = 1 if n_jobs is None else min(n_threads(np.inf, n_jobs), chains)
    line = ProgressLine(f"sample ({method})") if verbose else None
    try:
        outcome = run(running, step, threads=threads, n_iterations=warmup + draws * thin, progress=line)
    finally:
        if line is not None:
            line.close()
    found = _collect(model, method, running, outcome, draws, dense)
    _report(found, outcome, model.n_nan - n_nan)
    return found


def _check_method(model: Model, method: str) -> None:
    if method == "gibbs":
        check_blocks(model)
    elif method in ("nuts", "hmc") and not model.has_gradient:
        raise ParameterError(
            f"method={method!r}: the model has no gradient; give Model(gradient=...), or take 'metropolis' or 'slice'"
        )


# ------------------------------------------------------------------------------------------------- beginning


def _starting_points(model: Model, method: str, initial: Any, chains: int, seed: int) -> list[Array]:
    if initial is None:
        return [_random_start(model, method, stream(seed, "start", k)) for k in range(chains)]
    points = [initial] * chains if isinstance(initial, Mapping) else list(initial)
    if len(points) != chains or not all(isinstance(point, Mapping) for point in points):
        raise ParameterError(f"initial: expected a mapping by name, or {chains} of them, one for each chain")
    return [_given_start(model, method, point) for point in points]


def _given_start(model: Model, method: str, point: Mapping[str, Any]) -> Array:
    constraints = model.parameters.constraints
    if point.keys() != constraints.keys():
        raise ParameterError(f"initial: has {sorted(point)!r}; expected {sorted(constraints)!r}")
    for name, constraint in constraints.items():
        value = np.asarray(point[name], dtype=np.float64)
        if value.shape != constraint.shape:
            raise ParameterError(f"initial: shape {value.shape} for {name!r}; expected {constraint.shape}")
        if not constraint.contains(value):
            raise ParameterError(f"initial: {name}={point[name]!r:.60} lies outside of {constraint!r}")
    u = model.parameters.unconstrain(point)
    if method != "gibbs" and not _proper(model, method, u):
        raise ParameterError(f"initial: log_density or its gradient is not finite there ({model.value(u):g})")
    return u


def _random_start(model: Model, method: str, rng: np.random.Generator) -> Array:
    for _ in range(_INITIAL_TRIES):
        u = rng.uniform(-2, 2, model.parameters.size)
        if method == "gibbs" or _proper(model, method, u):
            return u
    value = model.value(u)
    raise ParameterError(
        f"log_density: {value:g} at the last of {_INITIAL_TRIES} random points, none of them finite; "
        "check the function, or give initial=..."
    )


def _proper(model: Model, method: str, u: Array) -> bool:
    """Whether the density, and the gradient where it is needed, are finite."""
    if method in ("nuts", "hmc"):
        value, gradient = model.value_and_gradient(u)
        return bool(np.isfinite(value) and np.isfinite(gradient).all())
    return bool(np.isfinite(model.value(u)))


def _check_gradient(model: Model, u: Array) -> None:
    """Compare the gradient with central differences, in every coordinate or, where there are many, in some."""
    value, gradient = model.value_and_gradient(u)
    rng = np.random.default_rng(0)
    some = np.arange(len(u)) if len(u) <= 50 else rng.choice(len(u), 50, replace=False)
    for i in some:
        h = 6e-6 * max(1.0, abs(u[i]))  # the cube root of the rounding error
        ahead, behind = u.copy(), u.copy()
        ahead[i] += h
        behind[i] -= h
        above, below = model.value(ahead), model.value(behind)
        difference = (above - below) / (2 * h)
        # What a step of h cannot see: rounding of the values, and a kink, where the two sides differ by themselves.
        rounding = 1e-12 * max(abs(above), abs(below), 1.0) / h
        kink = abs(above - 2 * value + below) / h
        allowed = 1e-3 * max(abs(difference), abs(gradient[i])) + rounding + kink
        if np.isfinite(difference) and not abs(gradient[i] - difference) <= allowed:
            raise ParameterError(
                f"gradient: {gradient[i]:.6g} for {model.parameters.coordinate(int(i))}, but differences of "
                f"log_density give {difference:.6g} (both in unconstrained coordinates)"
            )


# ------------------------------------------------------------------------------------------------- ending


def _collect(model: Model, method: str, running: list[Chain], outcome: Outcome, draws: int, dense: bool) -> Draws:
    kept, n = rectangle(running)
    if n == 0:
        if outcome.failure is not None:
            raise outcome.failure
        raise KeyboardInterrupt
    message = _reason(running, outcome, draws)
    values = model.parameters.constrain(np.stack([chain.draws[:n] for chain in kept]))
    statistics = np.stack([chain.statistics[:n] for chain in kept])
    size = model.parameters.size
    # A chain that was stopped has not returned what it learnt.
    shape = (size, size) if dense and method in ("nuts", "hmc", "metropolis") else (size,)
    metrics = [chain.metric.reshape(shape) if chain.metric.size else np.full(shape, np.nan) for chain in kept]
    return Draws(
        {**values, **model.derived(values)},
        {name: statistics[..., i] for i, name in enumerate(STATISTICS)},
        method=method,
        checked=tuple(values),
        step_sizes=np.array([chain.step_size for chain in kept]),
        metrics=np.stack(metrics),
        complete=not message,
        message=message,
    )


def _reason(running: list[Chain], outcome: Outcome, draws: int) -> str:
    lengths = [chain.n_drawn for chain in running]
    drawn = f"drawn were {lengths} of {draws}"
    if outcome.failure is not None:
        error = outcome.failure
        return f"chain {outcome.failed_chain} raised {type(error).__name__}: {error}; {drawn}"
    return f"interrupted; {drawn}" if outcome.interrupted else ""


def _report(found: Draws, outcome: Outcome, n_nan: int) -> None:
    if n_nan:
        text = f"sample: log_density gave nan {n_nan} times, which was taken for zero density"
        warnings.warn(text, EpicycleWarning, stacklevel=3)
    if outcome.failure is not None:
        warnings.warn(f"sample: log_density or a conditional failed: {found.message}", EpicycleWarning, stacklevel=3)
    mode, certificate = get_config().on_nonconvergence, found.certificate_
    if certificate.holds or mode == "ignore":
        return
    advice = _advice(found)
    text = f"sample: {certificate}; {advice}"
    if mode == "raise":
        raise ConvergenceError(text)
    warnings.warn(text, ConvergenceWarning, stacklevel=3)


def _advice(found: Draws) -> str:
    certificate = found.certificate_
    if certificate.n_divergent:
        return "raise target_accept, or write the model in a form without narrow necks (non-centred)"
    if not certificate.value <= certificate.tolerance:
        return "the chains differ: raise warmup and draws, or look for several modes in plot.trace()"
    return "raise draws"


# Gibbs sampling: every block of parameters in turn from its distribution given all others.


def check_blocks(model: Model) -> None:
    """Every parameter has to be in a block."""
    if not model.conditionals:
        raise ParameterError("method='gibbs': the model has no conditionals; give Model(conditionals=...)")
    drawn = {name for names in model.conditionals for name in names}
    if missing := [name for name in model.parameters.constraints if name not in drawn]:
        raise ParameterError(f"method='gibbs': conditionals leave out {missing!r}")


def run_gibbs(model: Model, chain: Chain, warmup: int, thin: int) -> None:
    """One chain; draws are written in unconstrained coordinates, as by the other samplers."""
    x = model.parameters.constrain(chain.start)
    for iteration in range(warmup + len(chain.draws) * thin):
        if chain.stop[0]:
            return
        for names, draw in model.conditionals.items():
            given = {name: np.array(value) for name, value in x.items()}
            drawn = draw(chain.rng, **given, **model.data)
            x.update(_checked(model, names, (drawn,) if len(names) == 1 else drawn))
        row, rest = divmod(iteration - warmup + 1, thin)
        if iteration >= warmup and rest == 0:
            u = model.parameters.unconstrain(x)
            chain.draws[row - 1] = u
            # Conditionals define the distribution alone: the model's density is not asked for.
            chain.statistics[row - 1] = [np.nan, 1.0, np.nan, 0.0, len(model.conditionals), 0.0, np.nan]
            chain.progress[1] = row
        chain.progress[0] = iteration + 1


def _checked(model: Model, names: tuple[str, ...], drawn: Any) -> Mapping[str, Array]:
    if len(drawn) != len(names):
        raise ParameterError(f"conditionals: {len(drawn)} values for {names!r}; expected {len(names)}")
    values = {name: np.asarray(value, dtype=np.float64) for name, value in zip(names, drawn, strict=True)}
    for name, value in values.items():
        constraint = model.parameters.constraints[name]
        if value.shape != constraint.shape:
            raise ParameterError(f"conditionals: shape {value.shape} for {name!r}; expected {constraint.shape}")
        with np.errstate(all="ignore"):
            inside = np.isfinite(constraint.unconstrain(value)).all()
        if not inside:
            raise ParameterError(f"conditionals: {name}={value!r:.60} left its constraint {constraint!r}")
    return values
