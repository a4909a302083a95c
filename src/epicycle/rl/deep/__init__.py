"""Agents with networks."""

from epicycle.rl.deep._actor_critic import ActorCritic
from epicycle.rl.deep._dqn import DQN
from epicycle.rl.deep._ppo import PPO

__all__ = ["DQN", "PPO", "ActorCritic"]
