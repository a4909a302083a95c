"""Baum and Welch's steps for many sequences, from the same start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

MEASURE = "log-likelihood a row, below the best"
STEPS = 10


def make(directory: Path, quick: bool) -> Data:
    sequences, length, k, p = (20, 100, 4, 3) if quick else (200, 500, 8, 6)
    rng = np.random.default_rng(71)
    move = 0.9 * np.eye(k) + 0.1 * rng.dirichlet(np.ones(k), size=k)
    means = 2 * rng.normal(size=(k, p))
    states = np.zeros((sequences, length), dtype=np.int64)
    u, reach = rng.random((sequences, length)), np.cumsum(move, axis=1)
    for t in range(1, length):
        states[:, t] = (u[:, t, None] >= reach[states[:, t - 1]]).sum(axis=1).clip(max=k - 1)
    X = means[states.ravel()] + rng.normal(size=(sequences * length, p))
    return {"X": X, "lengths": np.full(sequences, length), "means": means + 0.5 * rng.normal(size=means.shape)}


def setup(library: str) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        k, p = data["means"].shape
        start, move, covars = np.full(k, 1 / k), np.full((k, k), 1 / k), np.full((k, p), 3.0)
        if library == "epicycle":
            import epicycle as ep

            init = {"means": data["means"], "covars": covars}
            options = {"startprob_init": start, "transmat_init": move, "emission_init": init, "covars_prior": 0}

            def ours() -> Any:
                with ep.config(on_nonconvergence="ignore"):
                    model = ep.HiddenMarkovModel(k, tol=0, max_iter=STEPS, **options)
                    return model.fit(data["X"], lengths=data["lengths"])

            return ours
        import logging

        from hmmlearn.hmm import GaussianHMM

        logging.getLogger("hmmlearn").setLevel(logging.CRITICAL)

        def run() -> Any:
            model = GaussianHMM(
                k, "diag", covars_prior=0, n_iter=STEPS, tol=-np.inf, init_params="", implementation="scaling"
            )
            model.startprob_, model.transmat_, model.means_, model.covars_ = start, move, data["means"], covars
            return model.fit(data["X"], data["lengths"])

        return run

    return prepare


def fit(run: Callable[[], Any]) -> Solution:
    model = run()
    covars = np.asarray(model.covars_)
    variances = covars if covars.ndim == 2 else np.diagonal(covars, axis1=1, axis2=2)
    return {"start": model.startprob_, "move": model.transmat_, "means": model.means_, "covars": np.array(variances)}


def likelihoods(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """By one forward recursion over all sequences at once, which have equal lengths here."""
    length = int(data["lengths"][0])
    found = {}
    for name, s in solutions.items():
        d = data["X"][:, None] - s["means"]
        log_e = -0.5 * (d**2 / s["covars"] + np.log(2 * np.pi * s["covars"])).sum(axis=2)
        log_e = log_e.reshape(-1, length, len(s["start"]))
        total, a = 0.0, np.tile(s["start"], (len(log_e), 1))
        for t in range(length):
            most = log_e[:, t].max(axis=1, keepdims=True)
            a = (a if t == 0 else a @ s["move"]) * np.exp(log_e[:, t] - most)
            scale = a.sum(axis=1, keepdims=True)
            total += float((np.log(scale) + most).sum())
            a /= scale
        found[name] = total / len(data["X"])
    best = max(found.values())
    return {name: {MEASURE: best - value} for name, value in found.items()}


TASK = Task(
    name="hmm",
    title="HiddenMarkovModel, 200 sequences of 500 x 6, 8 states, 10 steps from the same start",
    description="""\
Normal states with independent columns. All take ten steps of Baum and Welch from the same start, hmmlearn by its faster
implementation ("scaling"); the mean log-likelihood of a row may be 1e-9 below the best.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", fit, setup=setup("epicycle")),
        Implementation("hmmlearn", "peer", fit, setup=setup("hmmlearn")),
    ),
    quality=likelihoods,
    tolerance=1e-9,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=3.0),),
)
