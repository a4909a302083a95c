"""Anomalies: rows that are unlike the others."""

from epicycle.anomaly._gaussian import GaussianAnomalyDetector
from epicycle.anomaly._isolation_forest import IsolationForest
from epicycle.anomaly._kernel_density import KernelDensityAnomalyDetector
from epicycle.anomaly._local_outlier_factor import LocalOutlierFactor
from epicycle.anomaly._mixture import MixtureAnomalyDetector
from epicycle.anomaly._pca import PCAAnomalyDetector

__all__ = [
    "GaussianAnomalyDetector",
    "IsolationForest",
    "KernelDensityAnomalyDetector",
    "LocalOutlierFactor",
    "MixtureAnomalyDetector",
    "PCAAnomalyDetector",
]
