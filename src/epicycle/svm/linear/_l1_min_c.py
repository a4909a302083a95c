"""The smallest C at which an L1-penalised classifier has a coefficient.

At w = 0 the loss of C sum_i loss(y_i z_i) falls along feature j at the rate C s |sum_i y_i x_ij|, s the slope of the
loss at zero: 2 for the squared hinge, 1/2 for the logistic loss. The coefficient stays at zero while that is at most 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.data import ArrayData
from epicycle.data._as_data import as_data
from epicycle.stats._labels import encode_labels

#: Slopes of the losses at zero.
SLOPES = {"squared_hinge": 2.0, "log": 0.5}


def l1_min_c(
    X: Any, y: Any, *, loss: str = "squared_hinge", fit_intercept: bool = True, intercept_scaling: float = 1.0
) -> float:
    r"""The largest C at which an L1-penalised classifier is empty: all its coefficients, the intercept too, are zero.

    .. math:: C_{\min} = \Bigl( s \max_{j, k} \bigl| \sum_i y_{ik} x_{ij} \bigr| \Bigr)^{-1} ,
              \qquad s = 2 \text{ (squared hinge)}, \; \tfrac{1}{2} \text{ (logistic loss)}

    with :math:`y_{ik} = \pm 1` for class k against the rest.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Labels.
    loss : {"squared_hinge", "log"}, default="squared_hinge"
        That of :class:`~epicycle.LinearSVC`, or that of :class:`~epicycle.LogisticRegression`.
    fit_intercept : bool, default=True
        Whether there is a penalised intercept, as in ``LinearSVC`` and with ``solver="liblinear"``.
    intercept_scaling : float, default=1.0
        The constant feature of that intercept.

    Returns
    -------
    float

    Examples
    --------
    >>> from epicycle import LinearSVC
    >>> from epicycle.svm import l1_min_c
    >>> X, y = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 1]
    >>> C = l1_min_c(X, y)
    >>> [bool(LinearSVC("l1", C=factor * C).fit(X, y).coef_.any()) for factor in (0.99, 1.01)]
    [False, True]
    """
    if loss not in SLOPES:
        raise ParameterError(f"loss={loss!r}; expected one of {sorted(SLOPES)}")
    if not (np.isfinite(intercept_scaling) and intercept_scaling > 0):
        raise ParameterError(f"intercept_scaling={intercept_scaling!r}; expected a finite number > 0")
    classes, _, data = encode_labels(as_data(X, y, target="labels", estimator_name="l1_min_c"), "l1_min_c")
    if not isinstance(data, ArrayData):
        raise DataError(f"X: l1_min_c takes arrays and sparse matrices; got {type(X).__name__}")
    batch = data.rows(0, data.n_rows)
    ones = range(1, 2) if len(classes) == 2 else range(len(classes))
    Y = np.column_stack([np.where(batch.y == k, 1.0, -1.0) for k in ones])
    steepest = float(np.abs(np.asarray(batch.X.T @ Y)).max())
    if fit_intercept:
        steepest = max(steepest, float(intercept_scaling) * float(np.abs(Y.sum(axis=0)).max()))
    if steepest == 0.0:
        raise DataError("X: every column is orthogonal to the labels: an ill-posed l1_min_c, no C gives a coefficient")
    return 1.0 / (SLOPES[loss] * steepest)
