"""Kernels: factors of users and items by alternating least squares and by stochastic gradients."""

import numpy as np

Array = np.ndarray

def grouped(codes: Array, n: int) -> tuple[Array, Array]: ...
def half_step(
    start: Array,
    at: Array,
    target: Array,
    curvature: Array | None,
    other: Array,
    bias: bool,
    base: Array,
    penalty: Array,
    scale: Array,
    x: Array,
    steps: int,
    threads: int,
) -> Array: ...
def row_losses(
    start: Array,
    at: Array,
    target: Array,
    curvature: Array | None,
    other: Array,
    bias: bool,
    x: Array,
    threads: int,
) -> tuple[Array, Array]: ...
def add_moments(
    own: Array,
    at: Array,
    target: Array,
    curvature: Array | None,
    other: Array,
    bias: bool,
    lo: int,
    out: Array,
) -> None: ...
def sgd_pass(
    order: Array,
    user: Array,
    item: Array,
    target: Array,
    curvature: Array | None,
    user_penalty: Array,
    item_penalty: Array,
    rate: float,
    users: Array,
    items: Array,
    bias: bool,
) -> None: ...
def bpr_pass(
    positive: Array,
    negative: Array,
    user: Array,
    item: Array,
    start: Array,
    seen: Array,
    penalty: float,
    rate: float,
    users: Array,
    items: Array,
    bias: bool,
) -> tuple[int, int]: ...
