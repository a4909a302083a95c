"""Reinforcement learning: agents that learn by acting, and bandits."""

from epicycle.rl._agent import Agent
from epicycle.rl._episodes import Episodes, record_episodes
from epicycle.rl._evaluation import Evaluation
from epicycle.rl._schedules import UCB, EpsilonGreedy, ExponentialDecay, LinearDecay, Softmax, VisitDecay
from epicycle.rl._video import record_video
from epicycle.rl.bandits._arms import BernoulliArms, LinearArms, NormalArms
from epicycle.rl.bandits._bandit import Bandit
from epicycle.rl.bandits._lin_ucb import LinUCB
from epicycle.rl.bandits._result import BanditResult
from epicycle.rl.deep._actor_critic import ActorCritic
from epicycle.rl.deep._dqn import DQN
from epicycle.rl.deep._ppo import PPO
from epicycle.rl.deep._sac import SAC
from epicycle.rl.deep._td3 import TD3
from epicycle.rl.imitation._behavior_cloning import BehaviorCloning
from epicycle.rl.imitation._dagger import DAgger
from epicycle.rl.inverse._inverse_rl import InverseRL
from epicycle.rl.linear._fourier_basis import FourierBasis
from epicycle.rl.linear._linear_sarsa import LinearQLearning, LinearSARSA
from epicycle.rl.linear._lstd import LSPI, LSTD
from epicycle.rl.linear._tile_coding import TileCoding
from epicycle.rl.offline._evaluate_offline import evaluate_offline
from epicycle.rl.offline._offline_evaluation import OfflineEvaluation
from epicycle.rl.policy_search._cross_entropy_method import CrossEntropyMethod
from epicycle.rl.policy_search._evolution_strategy import EvolutionStrategy
from epicycle.rl.policy_search._pegasus import Pegasus
from epicycle.rl.policy_search._reinforce import Reinforce, gradient_variance
from epicycle.rl.tabular._monte_carlo_control import MonteCarloControl
from epicycle.rl.tabular._planning import DynaQ, PrioritizedSweeping
from epicycle.rl.tabular._prediction import MonteCarloPrediction, TDPrediction
from epicycle.rl.tabular._q_learning import DoubleQLearning, QLearning
from epicycle.rl.tabular._sarsa import SARSA, ExpectedSARSA

__all__ = [
    "DQN",
    "LSPI",
    "LSTD",
    "PPO",
    "SAC",
    "SARSA",
    "TD3",
    "UCB",
    "ActorCritic",
    "Agent",
    "Bandit",
    "BanditResult",
    "BehaviorCloning",
    "BernoulliArms",
    "CrossEntropyMethod",
    "DAgger",
    "DoubleQLearning",
    "DynaQ",
    "Episodes",
    "EpsilonGreedy",
    "Evaluation",
    "EvolutionStrategy",
    "ExpectedSARSA",
    "ExponentialDecay",
    "FourierBasis",
    "InverseRL",
    "LinUCB",
    "LinearArms",
    "LinearDecay",
    "LinearQLearning",
    "LinearSARSA",
    "MonteCarloControl",
    "MonteCarloPrediction",
    "NormalArms",
    "OfflineEvaluation",
    "Pegasus",
    "PrioritizedSweeping",
    "QLearning",
    "Reinforce",
    "Softmax",
    "TDPrediction",
    "TileCoding",
    "VisitDecay",
    "evaluate_offline",
    "gradient_variance",
    "record_episodes",
    "record_video",
]
