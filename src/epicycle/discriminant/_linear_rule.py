"""Classes that share a covariance: the posterior is a logistic regression.

log P(c | x) = b_c + x'a_c + const  with  a_c = C^-1 m_c  and  b_c = log P(c) - m_c'C^-1 m_c / 2.  With W'CW = I, C^-1
is W W'. The differences of the a_c do not change when the means are taken about a common point, which keeps digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._history import History
from epicycle.linear import LogisticRegression


def linear_rule(means: np.ndarray, centre: np.ndarray, W: np.ndarray, priors: np.ndarray) -> tuple[Any, Any]:
    """(coefficients of shape (K, p), intercepts) from the whitened means about `centre`."""
    Z = (means - centre) @ W
    with np.errstate(divide="ignore"):
        intercept = np.log(priors) - 0.5 * np.sum(Z * Z, axis=1)
    coef = Z @ W.T
    return coef, intercept - coef @ centre


def reported(coef: np.ndarray, intercept: np.ndarray, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """One row, the difference, for two classes; in the type of X."""
    if len(coef) == 2:
        with np.errstate(invalid="ignore"):
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
    with np.errstate(over="ignore"):
        coef, intercept = coef.astype(dtype), intercept.astype(dtype)
    if not np.isfinite(coef).all():
        raise DataError(
            f"X: varies so little within classes that coefficients are beyond {np.dtype(dtype).name}; scale its columns"
        )
    return coef, intercept


def as_logistic(model: Any) -> LogisticRegression:
    """The logistic regression with the posterior of a fit in which the classes share a covariance."""
    if len(model.classes_) < 2:
        raise DataError("as_logistic needs two classes; the fit saw one")
    out = LogisticRegression(penalty=None, n_jobs=model.n_jobs)
    for name in ("n_features_in_", "feature_names_in_", "classes_", "coef_", "intercept_"):
        if hasattr(model, name):
            setattr(out, name, getattr(model, name))
    out.history_ = History(objective=[])
    meaning = f"the coefficients are those of {type(model).__name__}, which maximises the joint likelihood"
    out.certificate_ = Certificate("none", 0.0, 0.0, meaning)
    out.n_iter_, out.converged_, out.solver_ = np.zeros(1, dtype=np.int64), True, "none"
    return out
