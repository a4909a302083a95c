"""Equilibria of games: regret minimisation and other learners that play against each other."""

from epicycle.search.equilibrium._cfr import CFR
from epicycle.search.equilibrium._self_play import SelfPlay

__all__ = ["CFR", "SelfPlay"]
