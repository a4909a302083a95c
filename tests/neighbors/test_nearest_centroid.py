"""Nearest centroids against scikit-learn and by hand."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import neighbors
from sklearn.datasets import load_iris

from epicycle import NearestCentroid
from epicycle.exceptions import DataError, ParameterError


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
@pytest.mark.parametrize("options", [{}, {"shrink_threshold": 0.5}, {"priors": [0.2, 0.3, 0.5]}], ids=str)
@pytest.mark.parametrize("sparse", [False, True])
def test_agrees_with_scikit_learn(metric, options, sparse):
    X, y = load_iris(return_X_y=True)
    theirs = neighbors.NearestCentroid(metric, **options).fit(X, y)
    given = sp.csr_array(X) if sparse else X
    ours = NearestCentroid(metric, **options).fit(given, y)
    assert_allclose(ours.centroids_, theirs.centroids_)
    assert_allclose(ours.deviations_, theirs.deviations_)
    assert_allclose(ours.within_class_std_dev_, theirs.within_class_std_dev_)
    assert_array_equal(ours.predict(given), theirs.predict(X))
    if metric == "euclidean":
        assert_allclose(ours.predict_proba(given), theirs.predict_proba(X), atol=1e-12)
        assert_allclose(ours.decision_function(given), theirs.decision_function(X))
    else:
        assert not hasattr(ours, "predict_proba")


def test_shrunken_centroids_of_pamr():
    X, y = [[0, 1], [1, 0], [1, 1], [2, 0], [6, 8]], [1, 1, 2, 2, 2]  # values of R's pamr
    model = NearestCentroid(shrink_threshold=0.1).fit(X, y)
    assert_allclose(model.centroids_, [[0.7787310, 0.8545292], [2.814179, 2.763647]], rtol=1e-6)


def test_columns_without_spread_within_classes():
    X, y = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 1.0], [1.0, 1.0]]), [0, 0, 1, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = NearestCentroid(shrink_threshold=0.5).fit(X, y)
    assert_array_equal(model.centroids_, [[0.0, 1.0], [1.0, 1.0]])
    assert_array_equal(model.predict(X), y)


def test_bad_requests_are_named():
    X, y = np.eye(4), [0, 0, 1, 1]
    with pytest.raises(ParameterError, match="priors"):
        NearestCentroid(priors=[0.5, 0.2, 0.3]).fit(X, y)
    with pytest.raises(ParameterError, match="non-negative"):
        NearestCentroid(priors=[-2, 4]).fit(X, y)
    with pytest.warns(UserWarning, match="sum to 1"):
        assert_allclose(NearestCentroid(priors=[1, 3]).fit(X, y).class_prior_, [0.25, 0.75])
    with pytest.raises(DataError, match="zero variance"):
        NearestCentroid().fit(np.ones((4, 2)), y)
    with pytest.raises(DataError, match="greater than one"):
        NearestCentroid().fit(X, [1, 1, 1, 1])
