"""Games: rules, searches of their trees, equilibria."""

from epicycle.search.alpha_zero._alpha_go import AlphaGo
from epicycle.search.alpha_zero._alpha_zero import AlphaZero
from epicycle.search.equilibrium._cfr import CFR
from epicycle.search.equilibrium._self_play import SelfPlay
from epicycle.search.games._board_games import ConnectFour, Go, Othello, TicTacToe
from epicycle.search.games._game import Game
from epicycle.search.games._perft import perft
from epicycle.search.games._poker import KuhnPoker, LeducPoker
from epicycle.search.trees._mcts import MCTS, MCTSResult
from epicycle.search.trees._minimax import MinimaxResult, minimax
from epicycle.search.trees._play_match import MatchResult, play_match

__all__ = [
    "CFR",
    "MCTS",
    "AlphaGo",
    "AlphaZero",
    "ConnectFour",
    "Game",
    "Go",
    "KuhnPoker",
    "LeducPoker",
    "MCTSResult",
    "MatchResult",
    "MinimaxResult",
    "Othello",
    "SelfPlay",
    "TicTacToe",
    "minimax",
    "perft",
    "play_match",
]
