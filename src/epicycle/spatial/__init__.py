"""Distances by name, and exact search for near rows."""
