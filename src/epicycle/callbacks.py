"""Callbacks for long fits, by the protocol of scikit-learn: ``model.set_callbacks(TimeLimit(60))``."""

from epicycle.core.estimator import Checkpoint, EarlyStopping, TimeLimit

__all__ = ["Checkpoint", "EarlyStopping", "TimeLimit"]
