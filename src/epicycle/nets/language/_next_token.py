"""The choice of a token from scores: by chance, the most probable ones only, or the best."""

from __future__ import annotations

import numpy as np

from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import Integer, NoneOr, Real


def check_sampling(temperature: float, top_k: int | None, top_p: float | None, n_tokens: int) -> None:
    """Raise unless the arguments of `generate` are what they have to be."""
    domains = {
        "temperature": (Real(0), temperature),
        "top_k": (NoneOr(Integer(1)), top_k),
        "top_p": (NoneOr(Real(0, 1, inclusive=(False, True))), top_p),
        "n_tokens": (Integer(0), n_tokens),
    }
    for name, (domain, value) in domains.items():
        if not domain.accepts(value):
            raise ParameterError(f"generate: {name}={value!r}; expected {domain.describe()}")


def probabilities(
    scores: np.ndarray, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> np.ndarray:
    """softmax(scores / temperature), of the `top_k` best tokens, or of the fewest whose shares add up to `top_p`.

    Tokens with the score of the last one that is kept are kept too. A temperature of 0 leaves the best token alone.
    """
    z = np.asarray(scores, dtype=np.float64)
    z = z - z.max()
    if temperature == 0:
        p = np.zeros(len(z))
        p[z.argmax()] = 1.0
        return p
    with np.errstate(over="ignore"):
        p = np.exp(z / temperature)
    p /= p.sum()
    if top_k is not None and top_k < len(p):
        p[p < np.partition(p, -top_k)[-top_k]] = 0.0
        p /= p.sum()
    if top_p is not None and top_p < 1:
        ranked = np.sort(p)[::-1]
        last = int(np.searchsorted(np.cumsum(ranked), top_p))
        p[p < ranked[min(last, len(p) - 1)]] = 0.0
        p /= p.sum()
    return np.asarray(p)


def chosen(p: np.ndarray, rng: np.random.Generator) -> int:
    """A token drawn by its probability."""
    total = np.cumsum(p)
    return int(min(np.searchsorted(total, rng.random() * total[-1], side="right"), np.flatnonzero(p)[-1]))
