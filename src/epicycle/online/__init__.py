"""Evaluation of online learning: every row of a stream is predicted before it is learnt."""

from epicycle.online._evaluate import OnlineEvaluation, evaluate

__all__ = ["OnlineEvaluation", "evaluate"]
