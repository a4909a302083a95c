"""The smallest regressor: it predicts the mean of what it saw, shifted by its one parameter."""

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from epicycle import Certificate


class MeanRegressor(RegressorMixin, BaseEstimator):
    """A user's own estimator, allowed in model files by `register`."""

    def __init__(self, shift=0.0):
        self.shift = shift

    def fit(self, X, y):
        self.mean_ = np.mean(y, axis=0)
        self.certificate_ = Certificate("gradient norm", 0.0, 1e-8, "the mean is exact")
        return self

    def predict(self, X):
        return np.full((len(X), *np.shape(self.mean_)), self.mean_) + self.shift
