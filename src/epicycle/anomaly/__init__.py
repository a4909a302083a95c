"""Anomalies: rows that are unlike the others."""

from epicycle.anomaly._isolation_forest import IsolationForest

__all__ = ["IsolationForest"]
