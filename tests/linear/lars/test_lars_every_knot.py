"""The path of the lasso by least angle regression on random problems: the optimality conditions at every knot."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from epicycle import Lars


def violation(model, X, y):
    """The largest violation of the lasso's optimality conditions over all knots, relative to the first alpha."""
    Xc, yc = X - X.mean(axis=0), y - y.mean()
    W, alphas = model.coef_path_, np.asarray(model.alphas_)
    c = Xc.T @ (yc[:, None] - Xc @ W) / len(y)
    too_large = np.max(np.abs(c) - alphas)
    wrong_sign = np.max(np.abs(np.where(W != 0, c - np.sign(W) * alphas, 0.0)))
    return max(too_large, wrong_sign, 0.0) / max(alphas[0], np.finfo(float).tiny)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.integers(1, 60))
def test_every_knot_is_optimal(seed, n, p):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, p)), rng.normal(size=n)
    model = Lars("lasso").fit(X, y)
    assert model.certificate_.holds
    assert violation(model, X, y) < 1e-9


@pytest.mark.parametrize(("seed", "n", "p"), [(475, 5, 8), (88, None, None)])
def test_columns_that_leave_at_full_rank(seed, n, p):
    # Correlations were not brought up to date by moves at full rank: paths were wrong, or never ended.
    rng = np.random.default_rng(seed)
    n, p = (n, p) if n else (rng.integers(4, 40), rng.integers(2, 60))
    X, y = rng.normal(size=(n, p)), rng.normal(size=n)
    model = Lars("lasso", max_iter=200).fit(X, y)
    assert model.converged_
    assert violation(model, X, y) < 1e-9
