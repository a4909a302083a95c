"""Cross-fitted doubly robust average effect with boosting as nuisance models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task


def make(directory: Path, quick: bool) -> Data:
    n = 4_000 if quick else 500_000
    rng = np.random.default_rng(16)
    X = rng.standard_normal((n, 30))
    e = 1 / (1 + np.exp(-(0.6 * X[:, 0] - 0.4 * np.abs(X[:, 1]))))
    t = (rng.random(n) < e).astype(np.float64)
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + t * (2 + X[:, 2]) + rng.standard_normal(n)
    return {"X": X, "y": y, "t": t}


def epicycle(data: Data) -> Solution:
    from epicycle import TreatmentEffect

    model = TreatmentEffect("ate", "aipw", outcome_model="boosting", propensity_model="boosting", n_folds=2)
    model.fit(data["X"], data["y"], treatment=data["t"])
    return {"effect": np.array([model.effect_, model.standard_error_])}


def econml(data: Data) -> Solution:
    from econml.dr import LinearDRLearner
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    model = LinearDRLearner(
        model_propensity=HistGradientBoostingClassifier(early_stopping=False),
        model_regression=HistGradientBoostingRegressor(early_stopping=False),
        cv=2,
        min_propensity=0.01,
        random_state=0,
    )
    model.fit(data["y"], data["t"], X=None, W=data["X"])
    found = model.intercept__inference(T=1)
    return {"effect": np.array([float(found.point_estimate), float(found.stderr)])}


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Distance of the effect from the truth, 2, in multiples of the least standard error."""
    least = min(float(s["effect"][1]) for s in solutions.values())
    return {name: {"distance": abs(float(s["effect"][0]) - 2) / least} for name, s in solutions.items()}


TASK = Task(
    name="doubly_robust",
    title="Doubly robust average effect, 500,000 x 30, boosting in two folds",
    description="""\
Normal covariates, a propensity and outcomes that are not linear in them. AIPW with 100 rounds of boosting for the
outcome and the propensity, cross-fitted in two folds. At equal quality the effect is within four standard errors of the
truth.""",
    make=make,
    implementations=(
        Implementation("EconML", "peer", econml),
        Implementation("epicycle", "epicycle", epicycle),
    ),
    quality=quality,
    tolerance=4.0,
    cap=600.0,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=2.0),),
)
