"""Designs that replace an experiment: instruments, discontinuities, changes over time, synthetic controls."""
