"""Search among policies."""

from epicycle.rl.policy_search._cross_entropy_method import CrossEntropyMethod
from epicycle.rl.policy_search._reinforce import Reinforce, gradient_variance

__all__ = ["CrossEntropyMethod", "Reinforce", "gradient_variance"]
