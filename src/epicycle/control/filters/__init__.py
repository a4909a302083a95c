"""Filters and smoothers of state-space models."""

from epicycle.control.filters._extended_kalman_filter import ExtendedKalmanFilter
from epicycle.control.filters._kalman_filter import KalmanFilter
from epicycle.control.filters._kalman_result import KalmanFilterResult, KalmanSmootherResult
from epicycle.control.filters._lqg import LQG, LQGSolution
from epicycle.control.filters._particle_filter import ParticleFilter
from epicycle.control.filters._unscented_kalman_filter import UnscentedKalmanFilter

__all__ = [
    "LQG",
    "ExtendedKalmanFilter",
    "KalmanFilter",
    "KalmanFilterResult",
    "KalmanSmootherResult",
    "LQGSolution",
    "ParticleFilter",
    "UnscentedKalmanFilter",
]
