"""Forests: many trees, each on rows and features of its own."""
