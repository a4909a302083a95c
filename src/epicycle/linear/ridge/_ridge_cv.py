"""Ridge regression with alpha chosen by leave-one-out, generalised or k-fold cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, Unpack

from sklearn.base import MultiOutputMixin, RegressorMixin

from epicycle.core._arguments import SharedArguments
from epicycle.core._parameters import Boolean, Choice, Domain, NoneOr
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.linear.ridge._base import VALIDATION_PARAMETERS, BaseRidge
from epicycle.linear.ridge._validation import draw_scores, fit_by_validation

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class RidgeCV(MultiOutputMixin, RegressorMixin, BaseRidge):  # type: ignore[misc]
    r"""Ridge regression that chooses alpha by cross-validation, by default exact leave-one-out.

    .. math:: \min_{w, b} \; \tfrac12 \sum_i w_i \, (y_i - b - w'x_i)^2 + \tfrac{\alpha}{2} \, w'Dw

    One factorisation serves all alphas: the error of a row that is left out is :math:`r_i / (1 - h_i)` with residual
    and leverage of the fit to all rows, which is exact and takes one more pass over the rows.

    Parameters
    ----------
    criterion : {"loo", "gcv"}, default="loo"
        Leave-one-out, or generalised cross-validation, which needs no second pass; without `cv`.
    cv : int, splitter or iterable of (train, test), optional
        Folds instead of leave-one-out, as for scikit-learn. Files and Dask collections take a number of folds, which
        are runs of consecutive rows.
    scoring : str or callable, optional
        A scorer of scikit-learn's on predictions of rows that are left out; by default minus the (weighted) mean of
        squared errors.
    gcv_mode : {"auto", "svd", "eigen"}, optional
        Accepted for compatibility: which factorisation serves all alphas follows from the shape of X, and the errors do
        not depend on it.
    alpha_per_target : bool, default=False
        Whether every target gets an alpha of its own.
    store_cv_results : bool, default=False
        Whether `cv_results_` is kept, a number for each row and alpha; for leave-one-out.

    Attributes
    ----------
    alpha_ : float or ndarray of shape (n_targets,)
        What was chosen.
    best_score_ : float or ndarray of shape (n_targets,)
        Its score.
    %(grid)s
    scores_ : ndarray of shape (n_alphas,) or (n_targets, n_alphas)
        Score of every alpha, the larger the better; by target with `alpha_per_target`.
    fold_scores_ : ndarray of shape (n_alphas, n_folds) or (n_targets, n_alphas, n_folds)
        With `cv`: the score of every fold.
    cv_results_ : ndarray of shape (n_samples, n_alphas) or (n_samples, n_targets, n_alphas)
        With `store_cv_results`: squared errors of rows that are left out, times their weights; with `scoring` their
        predictions.
    effective_dof_ : float or ndarray of shape (n_targets,)
        Those of the chosen one; up to 2,000 features.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import RidgeCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RidgeCV().fit(X, y)
    >>> print(f"{model.alpha_:.4f} {model.effective_dof_:.2f} {-model.best_score_:.0f}")
    0.0039 10.60 3000
    >>> folds = RidgeCV(cv=5, scoring="r2").fit(X, y)
    >>> print(f"{folds.best_score_:.3f}", folds.fold_scores_.shape)
    0.482 (50, 5)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **VALIDATION_PARAMETERS,
        "criterion": Choice("loo", "gcv"),
        "gcv_mode": NoneOr(Choice("auto", "svd", "eigen")),
        "alpha_per_target": Boolean(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear", catalogue=("A6",), engines=("memory", "files", "dask"), certificate="newton decrement"
    )

    _flattens: ClassVar[bool] = True

    @stores_arguments(fit_intercept=True, tol=1e-10, n_jobs=None, verbose=0)
    def __init__(
        self,
        alphas: Any = None,
        *,
        criterion: Literal["loo", "gcv"] = "loo",
        cv: Any = None,
        scoring: Any = None,
        gcv_mode: Literal["auto", "svd", "eigen"] | None = None,
        alpha_per_target: bool = False,
        store_cv_results: bool = False,
        penalty_weights: Any = None,
        penalty_matrix: Any = None,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose alpha and fit to all rows.

        Parameters
        ----------
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, in fits and in scores. Leaving one out leaves a row out with all its weight.
        """
        data = self._training_data(X, y, sample_weight)
        if self.gcv_mode == "svd" and data.sparse:
            self._run.notices.append(
                FutureWarning(
                    "RidgeCV: gcv_mode='svd'. The 'svd' mode is not supported for sparse X, and another factorisation "
                    "is used; scikit-learn is going to refuse it. Leave gcv_mode out."
                )
            )
        fit_by_validation(self, data)
        return self

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the error against alpha, with the effective degrees of freedom along the top."""
        self._check_fitted()
        return draw_scores(self, ax)
