"""The penalty of logistic regression from its parameters, and in words."""

from __future__ import annotations

import numpy as np

from epicycle.core._exceptions import ParameterError

__all__ = ["penalties", "penalty_in_words"]


def l1_share(l1_ratio: float, penalty: str | None) -> float:
    """The share of the L1 term; a name of the penalty has to agree with `l1_ratio`."""
    named = {"l1": 1.0, "l2": 0.0}.get(penalty or "")
    if named is None:
        return float(l1_ratio)
    if l1_ratio not in (0.0, named):
        raise ParameterError(
            f"penalty={penalty!r} contradicts l1_ratio={l1_ratio!r}; leave penalty out, or expected l1_ratio={named:g}"
        )
    return named


def penalties(C: float, l1_ratio: float, penalty: str | None = "auto") -> tuple[float, float]:
    """(l1, l2) of the objective: (l1_ratio |W|_1 + (1 - l1_ratio)/2 |W|^2) / C."""
    share = l1_share(l1_ratio, penalty)
    if penalty is None or np.isinf(C):
        return 0.0, 0.0
    return share / C, (1 - share) / C


def penalty_in_words(C: float, l1_ratio: float, penalty: str | None = "auto") -> str:
    """One line that names the penalty and its strength."""
    share = l1_share(l1_ratio, penalty)
    if penalty is None or np.isinf(C):
        return "no penalty"
    if share == 0:
        return f"L2 penalty ||W||^2 / (2 C), C={C:g}"
    if share == 1:
        return f"L1 penalty ||W||_1 / C, C={C:g}"
    return f"elastic net penalty ({share:g} ||W||_1 + {(1 - share) / 2:g} ||W||^2) / C, C={C:g}"
