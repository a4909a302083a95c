"""Estimates from recorded episodes."""

from epicycle.rl.offline._evaluate_offline import evaluate_offline
from epicycle.rl.offline._offline_evaluation import OfflineEvaluation

__all__ = ["OfflineEvaluation", "evaluate_offline"]
