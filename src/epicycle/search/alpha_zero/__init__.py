"""Learners of games with networks for policy and value."""

from epicycle.search.alpha_zero._alpha_go import AlphaGo
from epicycle.search.alpha_zero._alpha_zero import AlphaZero

__all__ = ["AlphaGo", "AlphaZero"]
