"""Causal graphs from data: constraint-based, score-based, continuous and non-Gaussian search."""
