"""Searches of game trees."""

from epicycle.search.trees._mcts import MCTS, MCTSResult
from epicycle.search.trees._minimax import MinimaxResult, minimax
from epicycle.search.trees._play_match import MatchResult, play_match

__all__ = ["MCTS", "MCTSResult", "MatchResult", "MinimaxResult", "minimax", "play_match"]
