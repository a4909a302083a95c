"""Sensitivity to hidden confounding, and tests that an estimate should pass."""
