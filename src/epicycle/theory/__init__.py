"""How far a score can be trusted: bounds, complexity of classes, decompositions of error, information.

Three modules (`bounds`, `vc`, `information`) and the functions `test_bound`, `rademacher`, `decompose`, `optimism`,
`pac_bayes` and `pac_bayes_linear`.
"""

from epicycle.theory import bounds, information, vc
from epicycle.theory.coin_flips import RademacherEstimate, rademacher
from epicycle.theory.error_parts import Decomposition, Optimism, decompose, optimism
from epicycle.theory.gibbs import PacBayesBound, pac_bayes, pac_bayes_linear
from epicycle.theory.held_out import TestBound, test_bound

__all__ = [
    "Decomposition",
    "Optimism",
    "PacBayesBound",
    "RademacherEstimate",
    "TestBound",
    "bounds",
    "decompose",
    "information",
    "optimism",
    "pac_bayes",
    "pac_bayes_linear",
    "rademacher",
    "test_bound",
    "vc",
]
