"""Agents with networks."""

from epicycle.rl.deep._actor_critic import ActorCritic
from epicycle.rl.deep._dqn import DQN
from epicycle.rl.deep._ppo import PPO
from epicycle.rl.deep._sac import SAC
from epicycle.rl.deep._td3 import TD3

__all__ = ["DQN", "PPO", "SAC", "TD3", "ActorCritic"]
