"""Random problems for all clusterings around centres: they end, without NaN, and nothing rises."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from epicycle import BisectingKMeans, KMeans, KMedians, KMedoids, KModes, KPrototypes, MiniBatchKMeans
from epicycle.exceptions import ConvergenceWarning

CLASSES = (KMeans, MiniBatchKMeans, BisectingKMeans, KMedians, KMedoids, KModes, KPrototypes)


@pytest.mark.slow
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 2**30),
    n=st.integers(1, 50),
    p=st.integers(1, 4),
    share=st.floats(0, 1),
    kind=st.sampled_from(["normal", "duplicates", "constant column", "one value", "line"]),
    scale=st.sampled_from([1e-12, 1e-6, 1.0, 1e6]),
    offset=st.sampled_from([0.0, 1.0, 1e8]),
    weighted=st.booleans(),
)
def test_five_hundred_problems(seed, n, p, share, kind, scale, offset, weighted):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    if kind == "duplicates":
        X = X[rng.integers(0, max(1, n // 4), n)]
    elif kind == "constant column":
        X[:, 0] = 3.0
    elif kind == "one value":
        X = np.full((n, p), 0.7)
    elif kind == "line":
        X = np.repeat(X[:, :1], p, axis=1)
    X = scale * (X + offset)
    k, weight = max(1, round(share * n)), rng.uniform(0.1, 3, n) if weighted else None
    for cls in CLASSES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
            model = cls(k, random_state=seed).fit(X, sample_weight=weight)
        assert model.labels_.shape == (n,)
        assert model.labels_.min() >= 0
        assert model.labels_.max() < k
        assert np.isfinite(model.inertia_)
        assert np.isfinite(model.transform(X)).all()
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        if cls is MiniBatchKMeans:  # a step sees some rows only
            continue
        objective = np.asarray(model.history_["objective"])
        start = np.asarray(model.history_["start"]) if "start" in model.history_.columns else np.zeros(len(objective))
        size = np.abs(X - X.mean(axis=0)).max() ** 2 * n * p * 3
        for number in set(start):
            assert (np.diff(objective[start == number]) <= 1e-9 * max(size, objective[0])).all()
