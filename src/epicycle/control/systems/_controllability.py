"""`controllability`: the modes of a linear system that no control reaches."""

from __future__ import annotations

from typing import Any

import scipy.linalg

from epicycle.control.systems import _riccati as riccati


def controllability(A: Any, B: Any) -> list[complex]:
    """Modes of a system that no control reaches (eigenvalues at which [sI - A, B] loses rank).

    Parameters
    ----------
    A : array (n, n)
        Dynamics.
    B : array (n, m)
        Effect of the controls.

    Returns
    -------
    list of complex
        Empty for a controllable system.

    Examples
    --------
    >>> from epicycle.control import controllability
    >>> controllability([[2.0, 0.0], [0.0, 0.5]], [[0.0], [1.0]])
    [(2+0j)]
    """
    A = riccati.matrix("A", A)
    return [complex(s) for s in riccati.hidden_modes(A, riccati.matrix("B", B, len(A)), scipy.linalg.eigvals(A))]
