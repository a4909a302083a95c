"""The factors of a table in one call."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from epicycle.core._docs import documented
from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import Boolean
from epicycle.decomposition.nmf._base import NonNegativeFactors
from epicycle.decomposition.nmf._nmf import NMF


@documented(NonNegativeFactors._docs)
def non_negative_factorization(
    X: Any,
    W: Any = None,
    H: Any = None,
    n_components: int | str | None = "auto",
    *,
    init: str | None = None,
    update_H: bool = True,
    solver: str = "cd",
    beta_loss: str | float = "frobenius",
    tol: float = 1e-4,
    max_iter: int = 200,
    alpha_W: float = 0.0,
    alpha_H: float | str = "same",
    l1_ratio: float = 0.0,
    random_state: Any = None,
    verbose: int = 0,
    shuffle: bool = False,
) -> tuple[np.ndarray, np.ndarray, int]:
    """The non-negative factors of X, as :class:`NMF` finds them.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Rows in memory.
    update_H : bool, default=True
        Whether H is found too; otherwise it stays as it is given, and W is the best for it.
    solver : {"cd", "mu", "auto"}, default="cd"
        As in :class:`NMF`.
    tol : float, default=1e-4
        As in :class:`NMF`.
    shuffle : bool, default=False
        As in :class:`NMF`.

    Returns
    -------
    W : ndarray of shape (n_samples, n_components)
    H : ndarray of shape (n_components, n_features)
    n_iter : int
        Rounds; 1 for H that is given, where every row is solved by itself in one pass.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import non_negative_factorization
    >>> X = np.array([[1.0, 2.0], [2.0, 4.0], [0.0, 1.0]])
    >>> W, H, n_iter = non_negative_factorization(X, n_components=2, random_state=0, tol=1e-7, max_iter=9999)
    >>> bool(abs(X - W @ H).max() < 1e-3)
    True
    """
    model = NMF(
        n_components,
        init=init,
        solver=solver,
        beta_loss=beta_loss,
        tol=tol,
        max_iter=max_iter,
        random_state=random_state,
        alpha_W=alpha_W,
        alpha_H=alpha_H,
        l1_ratio=l1_ratio,
        verbose=verbose,
        shuffle=shuffle,
    )
    if not Boolean().accepts(update_H):
        raise ParameterError(f"update_H={update_H!r}; expected True or False")
    if update_H:
        found = model.fit_transform(X, W=W, H=H)
        return np.asarray(found), model.components_, model.n_iter_
    if W is not None:
        warnings.warn("When update_H=False, the provided initial W is not used.", RuntimeWarning, stacklevel=2)
    return model._factors_given(X, H)
