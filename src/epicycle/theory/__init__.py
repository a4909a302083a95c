"""Learning theory: bounds on errors, complexity of classes, decompositions of error, information.

Three modules (`bounds`, `vc`, `information`) and the functions `test_bound`, `rademacher`, `decompose`, `optimism`,
`pac_bayes` and `pac_bayes_linear`.
"""

from epicycle.theory import bounds, information, vc
from epicycle.theory._decomposition import Decomposition, Optimism, decompose, optimism
from epicycle.theory._pac_bayes import PacBayesBound, pac_bayes, pac_bayes_linear
from epicycle.theory._rademacher import RademacherEstimate, rademacher
from epicycle.theory._test_bound import TestBound, test_bound

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
