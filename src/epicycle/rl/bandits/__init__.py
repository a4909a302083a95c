"""One decision, made again and again."""

from epicycle.rl.bandits._arms import BernoulliArms, LinearArms, NormalArms
from epicycle.rl.bandits._bandit import Bandit
from epicycle.rl.bandits._lin_ucb import LinUCB
from epicycle.rl.bandits._result import BanditResult

__all__ = ["Bandit", "BanditResult", "BernoulliArms", "LinUCB", "LinearArms", "NormalArms"]
