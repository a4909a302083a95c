"""Agents with a table of values."""

from epicycle.rl.tabular._monte_carlo_control import MonteCarloControl
from epicycle.rl.tabular._planning import DynaQ, PrioritizedSweeping
from epicycle.rl.tabular._prediction import MonteCarloPrediction, TDPrediction
from epicycle.rl.tabular._q_learning import DoubleQLearning, QLearning
from epicycle.rl.tabular._sarsa import SARSA, ExpectedSARSA

__all__ = [
    "SARSA",
    "DoubleQLearning",
    "DynaQ",
    "ExpectedSARSA",
    "MonteCarloControl",
    "MonteCarloPrediction",
    "PrioritizedSweeping",
    "QLearning",
    "TDPrediction",
]
