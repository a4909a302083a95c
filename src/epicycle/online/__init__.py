"""Learning from a stream, judged as it goes: every row is predicted before its label is learnt."""

from epicycle.online._evaluate import evaluate
from epicycle.online._result import OnlineEvaluation

__all__ = ["OnlineEvaluation", "evaluate"]
