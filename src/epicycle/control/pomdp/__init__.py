"""Partially observed Markov decision processes and their planners."""

from epicycle.control.pomdp._heuristic_search import heuristic_search_value_iteration
from epicycle.control.pomdp._incremental_pruning import incremental_pruning
from epicycle.control.pomdp._informed_bound import fast_informed_bound
from epicycle.control.pomdp._online_search import OnlineSearchResult, online_search
from epicycle.control.pomdp._point_based import point_based_value_iteration
from epicycle.control.pomdp._pomdp import POMDP
from epicycle.control.pomdp._pomdp_solution import POMDPSolution
from epicycle.control.pomdp._qmdp import qmdp

__all__ = [
    "POMDP",
    "OnlineSearchResult",
    "POMDPSolution",
    "fast_informed_bound",
    "heuristic_search_value_iteration",
    "incremental_pruning",
    "online_search",
    "point_based_value_iteration",
    "qmdp",
]
