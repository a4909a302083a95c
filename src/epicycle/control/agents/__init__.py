"""Agents that learn by acting, and processes to act in."""

from epicycle.control.agents._environment import MDPEnvironment
from epicycle.control.agents._model_based_agent import ModelBasedAgent

__all__ = ["MDPEnvironment", "ModelBasedAgent"]
