"""Jensen's bound on a log-likelihood:  log p(x) >= sum_z q(z) (log p(x, z) - log q(z)),  equal at q(z) = p(z | x)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import entr

from epicycle.core._exceptions import DataError
from epicycle.core.estimator._catalogue import in_catalogue


@in_catalogue("mixture", "E5", certificate="a lower bound")
def elbo(log_joint: Any, q: Any, sample_weight: Any = None) -> float:
    r"""The evidence lower bound of rows with a discrete latent variable.

    .. math:: \sum_i v_i \sum_z q_i(z) \bigl(\log p(x_i, z) - \log q_i(z)\bigr) \le \sum_i v_i \log p(x_i)

    An E-step makes the two sides equal, by :math:`q_i(z) = p(z \mid x_i)`; an M-step raises the left side, and the
    right side has to follow.

    Parameters
    ----------
    log_joint : array-like of shape (n, k)
        log p(x_i, z) for every row and every value of z.
    q : array-like of shape (n, k)
        A distribution of z for every row.
    sample_weight : array-like of shape (n,), optional
        v; a row of weight v counts as v rows.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.em import elbo
    >>> joint = np.array([[0.1, 0.3]])  # p(x, z) for z = 0 and 1, so that p(x) = 0.4
    >>> print(round(elbo(np.log(joint), [[0.5, 0.5]]), 4), round(elbo(np.log(joint), joint / 0.4), 4))
    -1.0601 -0.9163
    >>> print(round(float(np.log(0.4)), 4))
    -0.9163
    """
    L, Q = np.asarray(log_joint, dtype=np.float64), np.asarray(q, dtype=np.float64)
    if L.ndim != 2 or L.shape != Q.shape:
        raise DataError(f"q: shape {Q.shape}; expected that of log_joint, {L.shape}, with a row for each row")
    if (Q < 0).any() or not np.allclose(Q.sum(axis=1), 1.0, atol=1e-6):
        raise DataError("q: expected a distribution in every row, none negative and with sum 1")
    v = np.ones(len(L)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if v.shape != (len(L),):
        raise DataError(f"sample_weight: shape {v.shape}; expected ({len(L)},)")
    expected = np.multiply(Q, L, where=Q > 0, out=np.zeros_like(Q))  # 0 log 0 = 0
    return float(v @ (expected + entr(Q)).sum(axis=1))
