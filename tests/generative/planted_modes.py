"""Rows in the plane with parts that a generative model may leave out: (rows, number of the part of each row)."""

import numpy as np
from sklearn.datasets import make_moons


def eight_gaussians(n, seed=0):
    """Normal rows with deviation 0.1 around eight points on a circle."""
    rng = np.random.default_rng(seed)
    k = rng.integers(0, 8, n)
    angle = 2 * np.pi * k / 8
    return np.column_stack([np.cos(angle), np.sin(angle)]) * 2 + 0.1 * rng.normal(size=(n, 2)), k


def rings(n, seed=0):
    """Two circles in one another; the parts are their eighths."""
    rng = np.random.default_rng(seed)
    k, angle = rng.integers(0, 2, n), rng.uniform(0, 2 * np.pi, n)
    radius = 1.0 + k + 0.06 * rng.normal(size=n)
    part = (4 * angle / np.pi).astype(int) + 8 * k
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), part


def two_moons(n, seed=0):
    """Two half circles that reach into one another."""
    return make_moons(n, noise=0.06, random_state=seed)


PLANTED = {"eight gaussians": eight_gaussians, "rings": rings, "two moons": two_moons}
