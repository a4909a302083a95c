"""Anomalies: rows that are unlike the others."""

from epicycle.anomaly._isolation_forest import IsolationForest
from epicycle.anomaly._local_outlier_factor import LocalOutlierFactor

__all__ = ["IsolationForest", "LocalOutlierFactor"]
