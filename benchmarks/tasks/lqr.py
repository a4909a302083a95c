"""Infinite-horizon regulator of a large linear system."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task


def make(directory: Path, quick: bool) -> Data:
    n, m = (40, 5) if quick else (200, 20)
    rng = np.random.default_rng(0)
    A = rng.normal(size=(n, n))
    A *= 1.05 / np.abs(np.linalg.eigvals(A)).max()
    return {"A": A, "B": rng.normal(size=(n, m)), "Q": np.eye(n), "R": np.eye(m)}


def epicycle_lqr(data: Data) -> Solution:
    from epicycle.control import LQR

    solution = LQR(data["A"], data["B"], data["Q"], data["R"]).solve()
    return {"P": solution.cost_matrix, "K": solution.gain}


def scipy_lqr(data: Data) -> Solution:
    from scipy.linalg import solve_discrete_are

    A, B, R = data["A"], data["B"], data["R"]
    P = solve_discrete_are(A, B, data["Q"], R)
    return {"P": P, "K": np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)}


def residual(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Residual of Riccati's equation, relative to the largest entry of P."""
    A, B, Q, R = (data[name] for name in "ABQR")
    out: dict[str, Quality] = {}
    for name, s in solutions.items():
        P = s["P"]
        gain = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
        left = A.T @ P @ (A - B @ gain) + Q - P
        out[name] = {"residual": float(np.abs(left).max() / np.abs(P).max())}
    return out


TASK = Task(
    name="lqr",
    title="Infinite-horizon regulator of 200 states with 20 controls",
    description="""\
A random system with spectral radius 1.05, unit costs. Feedback and cost to go; at equal quality the residual of
Riccati's equation is at most 1e-10 of the largest entry of P.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", epicycle_lqr),
        Implementation("SciPy", "peer", scipy_lqr),
    ),
    quality=residual,
    tolerance=1e-10,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.0),),
)
