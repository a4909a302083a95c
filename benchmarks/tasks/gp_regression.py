"""Gaussian process regression with its hyper-parameters by marginal likelihood."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task


def make(directory: Path, quick: bool) -> Data:
    n = 300 if quick else 1_500
    rng = np.random.default_rng(21)
    X = rng.uniform(size=(n, 5))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    y += rng.standard_normal(n)
    return {"X": X, "y": (y - y.mean()) / y.std()}


def epicycle(data: Data) -> Solution:
    from epicycle import GaussianProcessRegressor
    from epicycle.kernel import Gaussian, Scaled

    model = GaussianProcessRegressor(
        Scaled(Gaussian((1.0,) * 5), 1.0), noise=1.0, noise_bounds=(1e-5, 1e5), random_state=0
    )
    model.fit(data["X"], data["y"])
    return {"theta": model.theta_}


def scikit_learn(data: Data) -> Solution:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    kernel = ConstantKernel(1.0) * RBF([1.0] * 5) + WhiteKernel(1.0)
    model = GaussianProcessRegressor(kernel, alpha=0.0).fit(data["X"], data["y"])
    return {"theta": model.kernel_.theta}


def gpy(data: Data) -> Solution:
    import GPy

    kernel = GPy.kern.RBF(5, ARD=True)
    model = GPy.models.GPRegression(data["X"], data["y"][:, None], kernel, noise_var=1.0)
    model.optimize("lbfgs")
    found = [float(kernel.variance[0]), *np.asarray(kernel.lengthscale), float(model.likelihood.variance[0])]
    return {"theta": np.log(found)}


def likelihood(data: Data, theta: np.ndarray) -> float:
    """log N(y | 0, K + noise), written out."""
    X, y = data["X"] / np.exp(theta[1:6]), data["y"]
    squares = (X**2).sum(axis=1)
    distance = np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0.0)
    L = np.linalg.cholesky(np.exp(theta[0]) * np.exp(-0.5 * distance) + np.exp(theta[6]) * np.eye(len(y)))
    a = np.linalg.solve(L, y)
    return float(-0.5 * a @ a - np.log(np.diagonal(L)).sum() - 0.5 * len(y) * np.log(2 * np.pi))


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Distance of the likelihood below the best one found, for each observation."""
    found = {name: likelihood(data, s["theta"]) for name, s in solutions.items()}
    best = max(found.values())
    return {name: {"likelihood lost": (best - value) / len(data["y"])} for name, value in found.items()}


TASK = Task(
    name="gp_regression",
    title="Gaussian process regression, 1,500 x 5, a length scale for each column",
    description="""\
Friedman's function of five uniform columns with noise. A Gaussian kernel with a variance and five length scales, and
the noise variance, all learnt by marginal likelihood from ones, within the same bounds. At equal quality the log
marginal likelihood, computed once more by a formula, is within 1e-6 for each observation of the best that anybody
finds.""",
    make=make,
    implementations=(
        Implementation("scikit-learn", "peer", scikit_learn),
        *((Implementation("GPy", "peer", gpy),) if find_spec("GPy") else ()),
        Implementation("epicycle", "epicycle", epicycle),
    ),
    quality=quality,
    tolerance=1e-6,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=6.0),),
)
