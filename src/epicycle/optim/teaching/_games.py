"""Two players, one gain: minimax values and saddle points.

In a matrix game one player picks row i, the other column j, and the row player receives A_ij from the column player.
With mixed strategies p and q (probabilities over rows and columns) von Neumann's theorem says

    max_p min_q p'Aq = min_q max_p p'Aq = v,

the value of the game. Each side is a linear program; the two optima meet, and their difference is the proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ConvergenceError, DataError
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.optim.teaching._conjugate import minimum

Array = np.ndarray


@dataclass(frozen=True)
class GameSolution:
    """The value of a matrix game and optimal mixed strategies.

    value : what the row player receives on average when both play optimally.
    row_strategy, column_strategy : probabilities of the rows and of the columns.
    certificate : the saddle-point gap max_i (A q)_i - min_j (p'A)_j, relative to the spread of A. Neither player can
        gain more than this by playing anything else, and the value is within it.
    """

    value: float
    row_strategy: Array
    column_strategy: Array
    certificate: Certificate


@in_catalogue("optim", "A16", certificate="saddle-point gap")
def matrix_game(A: Array) -> GameSolution:
    """Solve a zero-sum matrix game by linear programming.

    Parameters
    ----------
    A : array of shape (m, n)
        What the row player, who maximises, receives from the column player.

    Examples
    --------
    Rock, paper, scissors is fair, and each is played a third of the time:

    >>> from epicycle.optim import matrix_game
    >>> game = matrix_game([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])
    >>> game.certificate.holds, game.row_strategy.round(3).tolist()
    (True, [0.333, 0.333, 0.333])
    """
    A = np.asarray(A, dtype=np.float64)
    if A.ndim != 2 or not A.size:
        raise DataError(f"A must be a matrix with at least one row and one column, got shape {A.shape}")
    if not np.isfinite(A).all():
        raise DataError("A must be finite; it contains nan or inf")
    low, spread = float(A.min()), float(np.ptp(A)) or 1.0
    scaled = (A - low) / spread  # strategies are the same for a + b A; the solver sees numbers in [0, 1]
    p = _maximin(scaled)
    q = _maximin(1.0 - scaled.T)
    guaranteed, conceded = float((p @ A).min()), float((A @ q).max())
    gap = max(conceded - guaranteed, 0.0) / spread
    meaning = f"no other strategy gains either player more than {gap:.1e} of the spread of A"
    certificate = Certificate("saddle-point gap", gap, 1e-8, meaning)
    return GameSolution((guaranteed + conceded) / 2, p, q, certificate)


def _maximin(A: Array) -> Array:
    """p that maximises min_j (p'A)_j:  max v  subject to  v <= (p'A)_j for all j,  p a probability vector."""
    m, n = A.shape
    cost = np.append(np.zeros(m), -1.0)
    found = linprog(
        cost,
        A_ub=np.hstack([-A.T, np.ones((n, 1))]),
        b_ub=np.zeros(n),
        A_eq=np.append(np.ones(m), 0.0)[None, :],
        b_eq=[1.0],
        bounds=[(0, None)] * m + [(None, None)],
        method="highs",
    )
    if found.x is None:
        raise ConvergenceError(f"matrix_game: the linear program was not solved: {found.message}")
    p = np.maximum(found.x[:m], 0.0)
    return np.asarray(p / p.sum())


@dataclass(frozen=True)
class SaddlePoint:
    """The check of a saddle point; true when the gap is at most `tol`.

    value : F(x, y).
    gap : max_y' F(x, y') - min_x' F(x', y); zero exactly at a saddle point.
    """

    value: float
    gap: float
    tol: float

    @property
    def holds(self) -> bool:
        return self.gap <= self.tol

    def __bool__(self) -> bool:
        return self.holds


@in_catalogue("optim", "A16", certificate="saddle-point gap")
def saddle_point(function: Callable[[Array, Array], float], x: Array, y: Array, *, tol: float = 1e-6) -> SaddlePoint:
    """Check whether (x, y) is a saddle point of F: F(x, y') <= F(x, y) <= F(x', y) for all x' and y'.

    Parameters
    ----------
    function : callable
        (x, y) -> F(x, y), smooth, convex in x and concave in y.
    x, y : array
        The point; x minimises, y maximises.
    tol : float
        Largest gap that counts as zero.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.optim import saddle_point
    >>> saddle_point(lambda x, y: float(x @ x - y @ y), np.zeros(1), np.zeros(1)).holds
    True
    """
    x, y = np.atleast_1d(np.asarray(x, dtype=np.float64)), np.atleast_1d(np.asarray(y, dtype=np.float64))
    lowest = minimum(lambda u: float(function(u, y)), x)
    highest = minimum(lambda v: -float(function(x, v)), y)
    if lowest is None or highest is None:
        raise ConvergenceError("saddle_point: no best reply was found; is the function convex in x and concave in y?")
    return SaddlePoint(float(function(x, y)), max(-highest - lowest, 0.0), tol)
