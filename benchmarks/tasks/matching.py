"""Pairs of treated and control rows on the propensity score or all columns, without replacement, within a caliper."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.arithmetic import median_of
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task


def make(directory: Path, quick: bool) -> Data:
    treated, controls = (500, 5_000) if quick else (100_000, 1_000_000)
    rng = np.random.default_rng(17)
    t = np.concatenate([np.ones(treated), np.zeros(controls)])
    X = rng.standard_normal((len(t), 10))
    X[:treated, 0] += 0.5
    return {"X": X, "t": t, "y": X[:, 0] + t + rng.standard_normal(len(t))}


def epicycle(data: Data) -> Solution:
    from epicycle import TreatmentEffect

    model = TreatmentEffect("att", "matching", distance="propensity", caliper=0.2, replacement=False)
    model.fit(data["X"], data["y"], treatment=data["t"])
    return {"effect": np.array([model.effect_, model.standard_error_])}


def mahalanobis(data: Data) -> Solution:
    from epicycle import TreatmentEffect

    model = TreatmentEffect("att", "matching", caliper=1.0, replacement=False)
    model.fit(data["X"], data["y"], treatment=data["t"])
    return {"effect": np.array([model.effect_, model.standard_error_])}


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Distance of the effect from the truth, 1, in standard errors."""
    return {name: {"distance": abs(float(s["effect"][0]) - 1) / float(s["effect"][1])} for name, s in solutions.items()}


TASK = Task(
    name="matching",
    title="Matching 100,000 treated rows with 1,000,000 controls, 10 columns",
    description="""\
Pairs by the logit of a logistic propensity score, the closest first, without replacement and within 0.2 standard
deviations; with bias correction and the variance of Abadie and Imbens. At equal quality the effect is within four
standard errors of the truth. Beside it pairs by Mahalanobis' distance in all columns, at most 1 apart.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", epicycle),
        Implementation("epicycle, Mahalanobis", "epicycle", mahalanobis),
    ),
    quality=quality,
    tolerance=4.0,
    cap=300.0,
    targets=(
        Target("seconds", median_of("epicycle"), at_most=60.0),
        Target("seconds by Mahalanobis' distance", median_of("epicycle, Mahalanobis"), at_most=60.0),
    ),
)
