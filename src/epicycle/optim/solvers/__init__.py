"""Solvers by name."""
