"""Rules of games."""

from epicycle.search.games._board_games import ConnectFour, Go, Othello, TicTacToe
from epicycle.search.games._game import Game
from epicycle.search.games._perft import perft
from epicycle.search.games._poker import KuhnPoker, LeducPoker

__all__ = ["ConnectFour", "Game", "Go", "KuhnPoker", "LeducPoker", "Othello", "TicTacToe", "perft"]
