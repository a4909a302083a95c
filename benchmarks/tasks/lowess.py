"""Robust local regression of one column, as lowess does it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

SPAN, ITERATIONS = 0.05, 3


def make(directory: Path, quick: bool) -> Data:
    n = 2_000 if quick else 50_000
    rng = np.random.default_rng(15)
    x = np.sort(rng.uniform(0, 20, n))
    y = np.sin(x) + 0.1 * x + 0.3 * rng.standard_t(3, n)
    return {"x": x, "y": y}


def epicycle_fit(data: Data) -> Solution:
    from epicycle import LocallyWeightedRegression

    model = LocallyWeightedRegression(span=SPAN, kernel="tricube", robust_iterations=ITERATIONS)
    return {"fit": model.fit(data["x"][:, None], data["y"]).fitted_values_}


def epicycle_interpolated(data: Data) -> Solution:
    from epicycle import LocallyWeightedRegression

    delta = 0.01 * float(np.ptp(data["x"]))
    model = LocallyWeightedRegression(span=SPAN, kernel="tricube", robust_iterations=ITERATIONS, delta=delta)
    return {"fit": model.fit(data["x"][:, None], data["y"]).fitted_values_}


def statsmodels_fit(data: Data) -> Solution:
    from statsmodels.nonparametric.smoothers_lowess import lowess

    fit = lowess(data["y"], data["x"], frac=SPAN, it=ITERATIONS, delta=0.0, is_sorted=True, return_sorted=False)
    return {"fit": fit}


def statsmodels_interpolated(data: Data) -> Solution:
    from statsmodels.nonparametric.smoothers_lowess import lowess

    delta = 0.01 * float(np.ptp(data["x"]))
    fit = lowess(data["y"], data["x"], frac=SPAN, it=ITERATIONS, delta=delta, is_sorted=True, return_sorted=False)
    return {"fit": fit}


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """The largest difference from lowess of statsmodels, asked for in the same way; of the spread of its fit."""
    found = {}
    for name, solution in solutions.items():
        peer = "statsmodels, interpolated" if "interpolated" in name else "statsmodels"
        reference = solutions.get(peer)
        if reference is None:
            continue
        apart = np.abs(solution["fit"] - reference["fit"]).max()
        found[name] = {"largest difference": float(apart / np.std(reference["fit"]))}
    return found


TASK = Task(
    name="lowess",
    title="Robust local lines, 50,000 points, 5 % in each neighbourhood, three robust iterations",
    description="""\
A sine on a slope with noise of Student's t with three degrees of freedom. Everybody fits all points with tricube
weights and reweights three times by the bisquare of the residuals. At equal quality no fitted value is further than
1e-8 of the standard deviation of the fit from that of statsmodels. "Interpolated" fits at points a hundredth of the
range apart and draws lines between them (statsmodels' delta); it is compared with statsmodels doing the same.""",
    make=make,
    implementations=(
        Implementation("statsmodels", "peer", statsmodels_fit),
        Implementation("epicycle", "epicycle", epicycle_fit),
        Implementation("statsmodels, interpolated", "baseline", statsmodels_interpolated),
        Implementation("epicycle, interpolated", "baseline", epicycle_interpolated),
    ),
    quality=quality,
    tolerance=1e-8,
    targets=(
        Target("speed against statsmodels", speedup_over_best_peer(), at_least=2.0),
        Target(
            "speed against statsmodels, both interpolated",
            lambda outcomes: outcomes["statsmodels, interpolated"].median / outcomes["epicycle, interpolated"].median,
            at_least=1.2,
        ),
    ),
)
