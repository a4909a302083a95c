"""Least squares where the normal equations lose every digit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from benchmarks.task import Data, Implementation, Outcome, Quality, Solution, Target, Task
from benchmarks.tasks._linear import distances, epicycle_fit, intelex_fit, refined, sklearn_fit, sklearn_tight_fit

CONDITION = 1e10
REFERENCE = "SciPy lstsq (QR)"


def make(directory: Path, quick: bool) -> Data:
    n, p = (2_000, 20) if quick else (20_000, 50)
    rng = np.random.default_rng(1)
    ones = np.ones((n, 1))
    U = np.linalg.qr(np.hstack([ones, rng.standard_normal((n, p))]))[0][:, 1:]  # orthogonal to the intercept
    V = np.linalg.qr(rng.standard_normal((p, p)))[0]
    X = np.sqrt(n) * (U * np.geomspace(1.0, 1.0 / CONDITION, p)) @ V.T + rng.uniform(-1.0, 1.0, p)
    y = X @ rng.standard_normal(p) + 3.0 + 1e-8 * rng.standard_normal(n)
    return {"X": X, "y": y}


def lstsq(driver: str) -> Callable[[Data], Solution]:
    def run(data: Data) -> Solution:
        from scipy import linalg

        A = np.column_stack([np.ones(len(data["y"])), data["X"]])
        w = linalg.lstsq(A, data["y"], lapack_driver=driver)[0]
        return {"coef": w[1:], "intercept": w[:1]}

    return run


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    found = {name: distances(data, s, solutions["reference"]) for name, s in solutions.items()}
    reference = found.get(REFERENCE, {"coefficient error": np.nan})["coefficient error"]
    return {name: {"error / error of QR": q["coefficient error"] / reference, **q} for name, q in found.items()}


def error_against_qr(outcomes: Mapping[str, Outcome]) -> float:
    return outcomes["epicycle"].quality.get("error / error of QR", np.nan)


TASK = Task(
    name="linear_ill",
    title="LinearRegression, 20,000 x 50, condition number 1e10",
    description="""\
X = U S V' plus column means, with singular values from 1 to 1e-10 and U orthogonal to the intercept; noise of 1e-8, so
that the answer is determined to a few digits by a backward stable method and to none through X'X. The error is relative
to a solution refined in extended precision. At equal quality it is at most ten times that of SciPy's QR (gelsy).""",
    make=make,
    implementations=(
        Implementation("reference", "reference", refined),
        Implementation(REFERENCE, "peer", lstsq("gelsy")),
        Implementation("SciPy lstsq (SVD)", "peer", lstsq("gelsd")),
        Implementation("scikit-learn", "peer", sklearn_fit),
        Implementation("scikit-learn, tol=1e-14", "peer", sklearn_tight_fit),
        Implementation("scikit-learn-intelex", "peer", intelex_fit),
        Implementation("epicycle", "epicycle", epicycle_fit),
    ),
    quality=quality,
    tolerance=10.0,
    targets=(Target("error of the coefficients over that of a QR solve", error_against_qr, at_most=10.0),),
)
