"""Search among policies."""

from epicycle.rl.policy_search._cross_entropy_method import CrossEntropyMethod
from epicycle.rl.policy_search._evolution_strategy import EvolutionStrategy
from epicycle.rl.policy_search._pegasus import Pegasus
from epicycle.rl.policy_search._reinforce import Reinforce, gradient_variance

__all__ = ["CrossEntropyMethod", "EvolutionStrategy", "Pegasus", "Reinforce", "gradient_variance"]
