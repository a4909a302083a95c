"""Sparse codes in one call."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle import engine
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import Choice, Integer, NoneOr, Real
from epicycle.data import ArrayData, as_data
from epicycle.decomposition.dictionary._codes import (
    ALGORITHMS,
    codes_from,
    coding_of,
    plain_codes_of_batch,
    products_of,
    squares_of,
)

_DOMAINS = {
    "algorithm": Choice(*ALGORITHMS),
    "n_nonzero_coefs": NoneOr(Integer(minimum=1)),
    "alpha": NoneOr(Real(minimum=0)),
    "max_iter": Integer(minimum=0),
}


def sparse_encode(
    X: Any,
    dictionary: Any,
    *,
    gram: Any = None,
    cov: Any = None,
    algorithm: str = "lasso_lars",
    n_nonzero_coefs: int | None = None,
    alpha: float | None = None,
    copy_cov: bool = True,
    init: Any = None,
    max_iter: int = 1000,
    n_jobs: int | None = None,
    check_input: bool = True,
    verbose: int = 0,
    positive: bool = False,
) -> np.ndarray:
    """Sparse codes of rows for a dictionary, one row at a time.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows.
    dictionary : array-like of shape (n_components, n_features)
        Atoms as rows.
    gram : array-like of shape (n_components, n_components), optional
        Products of the atoms, where they are known.
    cov : array-like of shape (n_components, n_samples), optional
        Products of atoms and rows, where they are known.
    algorithm : {"lasso_lars", "lasso_cd", "lars", "omp", "threshold"}, default="lasso_lars"
        As in :class:`SparseCoder`.
    n_nonzero_coefs : int, optional
        Atoms of a code by "lars" or "omp"; a tenth of the features by default.
    alpha : float, optional
        Penalty of the lasso, or threshold; 1 by default.
    copy_cov : bool, default=True
        Accepted for compatibility; nothing that is given is written to.
    init : array-like of shape (n_samples, n_components), optional
        Codes that the lasso starts from.
    max_iter : int, default=1000
        Most sweeps for the code of a row.
    n_jobs : int, optional
        Threads, where neither `gram` nor `cov` nor `init` is given.
    check_input : bool, default=True
        Accepted for compatibility; input is always checked.
    verbose : int, default=0
        Accepted for compatibility.
    positive : bool, default=False
        Whether codes are at least 0.

    Returns
    -------
    ndarray of shape (n_samples, n_components)

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import sparse_encode
    >>> sparse_encode(np.array([[3.0, -0.5]]), np.eye(2), alpha=1.0)
    array([[2., 0.]])
    """
    del copy_cov, check_input, verbose
    given = {"algorithm": algorithm, "n_nonzero_coefs": n_nonzero_coefs, "alpha": alpha, "max_iter": max_iter}
    for name, value in given.items():
        if not _DOMAINS[name].accepts(value):
            raise ParameterError(f"{name}={value!r}; expected {_DOMAINS[name].describe()}")
    data = as_data(X, estimator_name="sparse_encode", accept_sparse=True)
    D = np.ascontiguousarray(dictionary, dtype=np.float64)
    if not isinstance(data, ArrayData):
        raise DataError(f"X: expected rows in memory, got {type(X).__name__}")
    if D.ndim != 2 or D.shape[1] != data.n_features or not np.isfinite(D).all():
        raise DataError(
            f"Dictionary and X have different numbers of features, or the dictionary is not finite: dictionary.shape: "
            f"{D.shape}, X.shape: {data.X.shape}"
        )
    coding = coding_of(algorithm, n_nonzero_coefs, alpha, (len(D), D.shape[1]), positive=positive, max_iter=max_iter)
    if gram is None and cov is None and init is None:
        return np.asarray(engine.map(plain_codes_of_batch, data, D, coding, n_jobs=n_jobs))
    G = D @ D.T if gram is None else np.ascontiguousarray(gram, dtype=np.float64)
    C = products_of(data.X, D) if cov is None else np.ascontiguousarray(np.asarray(cov, dtype=np.float64).T)
    if G.shape != (len(D), len(D)) or C.shape != (data.n_rows, len(D)):
        k = len(D)
        raise DataError(f"gram, cov: shapes {G.shape} and {C.T.shape}; expected {(k, k)} and {(k, data.n_rows)}")
    return codes_from(G, C, squares_of(data.X), coding, init)[0].astype(data.dtype)
