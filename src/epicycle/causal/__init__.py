"""Causal learning: graphs, identification, structural models, effects of treatments."""

from epicycle.causal.graph._causal_graph import CausalGraph
from epicycle.causal.graph._instrument import Instrument
from epicycle.causal.graph._markov_equivalence import MarkovEquivalence
from epicycle.causal.graph._path import Path

__all__ = ["CausalGraph", "Instrument", "MarkovEquivalence", "Path"]
