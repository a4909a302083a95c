"""Common parts of the tasks of sampling: seconds for a thousand effective draws, of each library by its own defaults.

Compilation happens before the clock starts: it is a call of its own in the set-up, and PyMC, which compiles in every
call, says itself how long it sampled. numpyro, nutpie and pymc are not
among the requirements of the benchmarks; where they are not installed their rows say so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.task import Data, Implementation, Measured, Quality, Solution

CHAINS, DRAWS, WARMUP = 4, 1000, 500
MEASURE = "largest difference of a posterior mean from that of a long run, in posterior standard deviations"

#: One call with a seed: draws by name, of shape (chains, draws, ...), and the seconds it took.
Sampler = Callable[[int], tuple[dict[str, np.ndarray], float]]


def threads() -> int:
    return int(os.environ.get("OMP_NUM_THREADS", "0")) or len(os.sched_getaffinity(0))


def timed(sampler: Callable[[int], dict[str, np.ndarray]]) -> Sampler:
    def clocked(seed: int) -> tuple[dict[str, np.ndarray], float]:
        began = time.perf_counter()
        draws = sampler(seed)
        return draws, time.perf_counter() - began

    return clocked


class Ready:
    """A sampler after its first call, which compiles it; every timed call has a seed of its own."""

    def __init__(self, sampler: Sampler) -> None:
        self.sampler, self.seed = sampler, 0
        self.sampler(self.seed)


def run(ready: Ready) -> Measured:
    from epicycle import bayes

    ready.seed += 1
    draws, seconds = ready.sampler(ready.seed)
    smallest = min(float(np.min(bayes.effective_sample_size(x))) for x in draws.values())
    means = np.concatenate([np.ravel(x.mean(axis=(0, 1))) for _, x in sorted(draws.items())])
    return Measured(1000 * seconds / smallest, {"means": means})


def epicycle(model: Callable[[Data], Any], **options: Any) -> Callable[[Data], Ready]:
    def setup(data: Data) -> Ready:
        import epicycle as ep
        from epicycle import bayes

        ep.config(on_nonconvergence="ignore")
        built = model(data)
        names = list(built.parameters.constraints)

        def sampler(seed: int) -> dict[str, np.ndarray]:
            draws = bayes.sample(
                built, draws=DRAWS, warmup=WARMUP, chains=CHAINS, random_state=seed, n_jobs=threads(), **options
            )
            return {name: draws[name] for name in names}

        return Ready(timed(sampler))

    return setup


def numpyro(model: Callable[[Data, Any, Any], Callable[[], None]], **options: Any) -> Callable[[Data], Ready]:
    """``model(data, numpyro, jax.numpy)`` gives the generative function; double precision, as everybody else."""

    def setup(data: Data) -> Ready:
        import jax
        import numpyro as library

        library.set_host_device_count(threads())
        library.enable_x64()
        mcmc = library.infer.MCMC(
            library.infer.NUTS(model(data, library, jax.numpy), **options),
            num_warmup=WARMUP,
            num_samples=DRAWS,
            num_chains=CHAINS,
            progress_bar=False,
            chain_method="parallel" if threads() >= CHAINS else "vectorized",
        )

        def sampler(seed: int) -> dict[str, np.ndarray]:
            mcmc.run(jax.random.PRNGKey(seed))
            return {name: np.asarray(x) for name, x in mcmc.get_samples(group_by_chain=True).items()}

        return Ready(timed(sampler))

    return setup


def nutpie(model: Callable[[Data, Any], None], names: tuple[str, ...]) -> Callable[[Data], Ready]:
    """``model(data, pymc)`` is called inside a model of PyMC, which nutpie compiles."""

    def setup(data: Data) -> Ready:
        import nutpie as library
        import pymc

        with pymc.Model() as built:
            model(data, pymc)
        compiled = library.compile_pymc_model(built)

        def sampler(seed: int) -> dict[str, np.ndarray]:
            trace = library.sample(compiled, draws=DRAWS, chains=CHAINS, cores=threads(), seed=seed, progress_bar=False)
            return {name: np.asarray(trace.posterior[name]) for name in names}

        return Ready(timed(sampler))

    return setup


def pymc(model: Callable[[Data, Any], None], names: tuple[str, ...]) -> Callable[[Data], Ready]:
    """PyMC's own sampler."""

    def setup(data: Data) -> Ready:
        import pymc as library

        with library.Model() as built:
            model(data, library)

        def sampler(seed: int) -> tuple[dict[str, np.ndarray], float]:
            trace = library.sample(
                DRAWS,
                tune=WARMUP,
                chains=CHAINS,
                cores=threads(),
                random_seed=seed,
                progressbar=False,
                compute_convergence_checks=False,
                model=built,
            )
            draws = {name: np.asarray(trace.posterior[name]) for name in names}
            return draws, float(trace.posterior.attrs["sampling_time"])

        return Ready(sampler)

    return setup


def implementations(
    model: Callable[[Data], Any],
    in_numpyro: Callable[[Data, Any, Any], Callable[[], None]],
    in_pymc: Callable[[Data, Any], None],
    names: tuple[str, ...],
    **options: Any,
) -> tuple[Implementation, ...]:
    return (
        Implementation("epicycle", "epicycle", run, setup=epicycle(model, **options)),
        Implementation("NumPyro", "peer", run, setup=numpyro(in_numpyro)),
        Implementation("nutpie", "peer", run, setup=nutpie(in_pymc, names)),
        Implementation("PyMC", "peer", run, setup=pymc(in_pymc, names)),
    )


def against_a_long_run(
    model: Callable[[Data], Any],
) -> Callable[[Data, Mapping[str, Solution]], dict[str, Quality]]:
    """Means against those of forty thousand draws by another sampler of ours (HMC)."""

    def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
        import epicycle as ep
        from epicycle import bayes

        built = model(data)
        with ep.config(on_nonconvergence="ignore"):
            draws = bayes.sample(built, "hmc", draws=5 * DRAWS, chains=8, random_state=99)
        names = sorted(built.parameters.constraints)
        mean = np.concatenate([np.ravel(draws[name].mean(axis=(0, 1))) for name in names])
        sd = np.concatenate([np.ravel(draws[name].std(axis=(0, 1))) for name in names])
        return {name: {MEASURE: float(np.max(np.abs(s["means"] - mean) / sd))} for name, s in solutions.items()}

    return quality
