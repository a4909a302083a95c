"""Anomalies in a table: :func:`anomaly_table` and what it returns."""

from epicycle.automl.anomalies._anomaly_run import AnomalyRun
from epicycle.automl.anomalies._anomaly_table import anomaly_table

__all__ = ["AnomalyRun", "anomaly_table"]
