"""Identification of effects: formulas, proofs, estimates."""
