"""Values that are linear in features."""

from epicycle.rl.linear._fourier_basis import FourierBasis
from epicycle.rl.linear._linear_sarsa import LinearQLearning, LinearSARSA
from epicycle.rl.linear._lstd import LSPI, LSTD
from epicycle.rl.linear._tile_coding import TileCoding

__all__ = ["LSPI", "LSTD", "FourierBasis", "LinearQLearning", "LinearSARSA", "TileCoding"]
