"""Kernels: stochastic gradients, one row at a time."""

import numpy as np
import scipy.sparse as sp

Array = np.ndarray
Rows = Array | sp.csr_array | sp.csr_matrix

class Rule:
    def __init__(
        self,
        *,
        loss: int,
        epsilon: float,
        schedule: int,
        eta0: float,
        exponent: float,
        offset: float,
        alpha: float,
        l2: float,
        l1: float,
        intercept: float,
        average_from: float,
        pull: float,
    ) -> None: ...

class State:
    def __init__(
        self,
        *,
        v: Array,
        b: Array,
        number: Array,
        a: Array | None,
        base: Array | None,
        b_sum: Array | None,
        q: Array | None,
    ) -> None: ...

def learn(
    X: Rows,
    rule: Rule,
    state: State,
    y: Array,
    positive: Array | None,
    order: Array | None,
    fraction: Array | None,
    dual: Array | None,
    scores: Array | None,
    mistakes: Array,
    one: bool,
) -> float: ...
def margin_pass(X: Rows, sign: Array, square: Array, intercept: bool, a: Array, w: Array) -> None: ...
