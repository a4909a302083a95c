"""Causal diagrams: separation, adjustment, projection, equivalence, pictures."""
