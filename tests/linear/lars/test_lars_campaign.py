"""Ten thousand random problems, drawn anew: paths end, and agree with coordinate descent and the Gram route."""

import os

import numpy as np
import pytest

from epicycle.data import as_data
from epicycle.engine import single_threaded_blas
from epicycle.linear.lars._knots import certify_path
from epicycle.linear.lars._path import PathOptions, follow
from epicycle.linear.lasso._duality import penalty_of
from epicycle.linear.lasso._problem import column_problem, moment_problem

PROBLEMS = 10_000
#: Knots below this share of the first alpha are left to the certificate: their alphas come close to rounding.
SMALLEST = 1e-6


@pytest.mark.slow
def test_random_paths_end_and_agree():
    seed = int(os.environ["EPICYCLE_HYPOTHESIS_SEED"])  # of the slow run
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    with single_threaded_blas():
        for number in range(PROBLEMS):
            n, p = int(rng.integers(2, 9)), int(rng.integers(1, 12))
            X, y = rng.normal(size=(n, p)), rng.normal(size=n)
            compare_routes(X, y, f"problem {number} of seed {seed}: {n} x {p}")


def compare_routes(X, y, name):
    n, p = X.shape
    data, options = as_data(X, y, target="numeric"), PathOptions(lasso=True, max_iter=500)
    (columns,), (moments,) = column_problem(data, True, 1).solvers, moment_problem(data, True, 1).solvers
    path, record, ending = follow(columns, options)
    _, other, other_ending = follow(moments, options)
    assert (ending, other_ending) == ("converged", "converged"), name
    certificate, _ = certify_path(path, columns, record, 1e-8)
    assert certificate.holds, name
    alphas, theirs = np.array(record.alphas), np.array(other.alphas)
    k = int(np.count_nonzero(alphas > SMALLEST * alphas[0]))
    assert np.abs(alphas[:k] - theirs[:k]).max() <= 1e-9 * alphas[0], name
    W, V = record.matrix(p).toarray(), other.matrix(p).toarray()
    assert np.abs(W[:, :k] - V[:, :k]).max() <= 1e-6 * max(np.abs(W[:, :k]).max(), 1e-300), name
    A, b = (X - X.mean(axis=0)) / np.sqrt(n), (y - y.mean()) / np.sqrt(n)
    descended = [columns.minimise(penalty_of(alpha, 1.0, np.ones(p), False), 1e-12, 100).x for alpha in alphas[:k]]
    for alpha, w, d in zip(alphas, W.T, descended, strict=False):
        value = [((b - A @ v) ** 2).sum() / 2 + alpha * np.abs(v).sum() for v in (w, d)]
        assert abs(value[0] - value[1]) <= 1e-10 * (b @ b), name


@pytest.mark.parametrize("shape", [(5, 8), (12, 4), (2, 1)])
def test_the_campaign_compares(shape):
    rng = np.random.default_rng(sum(shape))
    compare_routes(rng.normal(size=shape), rng.normal(size=shape[0]), "one problem")
