"""scikit-learn's names for solvers, and its arguments that the solution does not depend on.

A solver of scikit-learn's is accepted by its name and stands for the one here that ends at the same minimum; a fitted
attribute says which one ran (`algorithm_` of ridge regression, whose `solver_` is the name that was asked for, as
there). Arguments about copies and orders of work are checked and change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from epicycle.core._parameters import AnyOf, ArrayLike, Boolean, Choice, Domain

#: scikit-learn's solvers of ridge regression, and those that are used here.
RIDGE_SOLVERS: Mapping[str, str] = {
    "svd": "qr",
    "lsqr": "auto",
    "sparse_cg": "auto",
    "sag": "auto",
    "saga": "auto",
}
#: scikit-learn's solvers of logistic regression; "liblinear" also penalises the intercept.
LOGISTIC_SOLVERS: Mapping[str, str] = {
    "liblinear": "auto",
    "newton-cg": "auto",
    "newton-cholesky": "auto",
    "sag": "auto",
    "saga": "auto",
}
#: First words of the warning of a fit that ended at `max_iter`, by the name that was asked for: filters written for
#: scikit-learn's warnings go by them.
NOT_CONVERGED: Mapping[str, str] = {
    "lbfgs": "lbfgs failed to converge after {n} iteration(s).",
    "newton-cg": "newton-cg failed to converge after {n} iterations. Increase the number of iterations.",
    "newton-cholesky": "Newton solver did not converge after {n} iterations.",
    "liblinear": "Liblinear failed to converge, increase the number of iterations.",
    "sag": "The max_iter was reached which means the coef_ did not converge.",
    "saga": "The max_iter was reached which means the coef_ did not converge.",
}
#: Those of generalized linear models; "lbfgs" is one of ours too.
GLM_SOLVERS: Mapping[str, str] = {"newton-cholesky": "auto"}
#: Those of quantile regression.
QUANTILE_SOLVERS: Mapping[str, str] = {
    "highs": "auto",
    "highs-ds": "simplex",
    "highs-ipm": "interior-point",
    "revised simplex": "simplex",
}

#: Domains of arguments without effect on the solution.
COMPATIBILITY_PARAMETERS: Mapping[str, Domain] = {
    "copy_X": Boolean(),
    "precompute": AnyOf(Boolean(), Choice("auto"), ArrayLike()),
    "selection": Choice("cyclic", "random"),
}
COMPATIBILITY_DOCS: Mapping[str, str] = {
    "copy_X": "copy_X : bool, default={default}\n"
    "    Accepted for compatibility: X is never written to, whatever the value.",
    "precompute": 'precompute : bool, "auto" or array-like of shape (n_features, n_features), default={default}\n'
    "    Accepted for compatibility: whether second moments are formed follows from the size of the work, and a given\n"
    "    matrix is not read. The solution does not depend on it.",
    "selection": 'selection : {"cyclic", "random"}, default={default}\n'
    "    Accepted for compatibility: the order of coordinates; the solution does not depend on it.",
    "random_state": "random_state : int, Generator, RandomState or None, default={default}\n"
    "    Accepted for compatibility: nothing is drawn.",
}
