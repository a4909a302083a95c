"""Ridge regression with alpha chosen by leave-one-out, generalised or k-fold cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.metrics import get_scorer

from epicycle.core._exceptions import DataError, EpicycleWarning, ParameterError, ParameterTypeError
from epicycle.core._parameters import (
    AnyOf,
    ArrayLike,
    Boolean,
    Callable,
    Choice,
    Domain,
    InstanceOf,
    NoneOr,
    Real,
)
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData, Data
from epicycle.linear._folds import folds_of
from epicycle.linear.least_squares._direct import LeastSquaresFit, fit_direct, settled_moments
from epicycle.linear.ridge._base import BaseRidge, draw_scores, penalty_line
from epicycle.linear.ridge._folds import PathProblem, Scorer, as_scorer, fold_scores, scores_from_moments
from epicycle.linear.ridge._leave_one_out import gcv_errors, loo_predictions, loo_squared_errors, refuse_undefined
from epicycle.linear.ridge._spectrum import KernelSpectrum, Spectrum, fit_from_kernel, spectrum_of
from epicycle.optim._quadratic_penalty import QuadraticPenalty, quadratic_penalty
from epicycle.stats._moments import Moments

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Alphas of the grid that is made where none is given.
N_ALPHAS = 50


class RidgeCV(BaseRidge):
    r"""Ridge regression that chooses alpha by cross-validation, by default exact leave-one-out.

    .. math:: \min_{w, b} \; \tfrac12 \sum_i w_i \, (y_i - b - w'x_i)^2 + \tfrac{\alpha}{2} \, w'Dw

    One factorisation serves all alphas: the error of a row that is left out is :math:`r_i / (1 - h_i)` with residual
    and leverage of the fit to all rows, which is exact and takes one more pass over the rows.

    Parameters
    ----------
    alphas : array-like, optional
        What to choose from, above 0 (with `cv`, also 0). By default 50 values that reach from hardly any shrinkage to
        almost everything shrunk, along the spectrum of X.
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
    alphas_ : ndarray of shape (n_alphas,)
    scores_ : ndarray of shape (n_alphas,) or (n_targets, n_alphas)
        Score of every alpha, the larger the better; by target with `alpha_per_target`.
    fold_scores_ : ndarray of shape (n_alphas, n_folds) or (n_targets, n_alphas, n_folds)
        With `cv`: the score of every fold.
    cv_results_ : ndarray of shape (n_samples, n_alphas) or (n_samples, n_targets, n_alphas)
        With `store_cv_results`: squared errors of rows that are left out, or with `scoring` their predictions.
    dof_path_ : ndarray of shape (n_alphas,)
        Effective degrees of freedom of every alpha, the intercept among them.
    effective_dof_ : float or ndarray of shape (n_targets,)
        Those of the chosen one; up to 2,000 features.
    %(coef_)s
    %(solver_)s
    rank_ : int
        Rank of X'WX + alpha D.
    dependent_features_ : dict
        Features that others give and no penalty tells apart; for each the others and their factors.
    certificate_ : Certificate
        Newton decrement of the last fit, which for a quadratic is the exact distance from the minimum.
    history_ : History
    n_iter_ : int
    converged_ : bool

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
        "alphas": NoneOr(AnyOf(ArrayLike(), Real(minimum=0))),
        "criterion": Choice("loo", "gcv"),
        "gcv_mode": NoneOr(Choice("auto", "svd", "eigen")),
        "cv": NoneOr(InstanceOf(object)),
        "scoring": NoneOr(AnyOf(InstanceOf(str), Callable())),
        "alpha_per_target": Boolean(),
        "store_cv_results": Boolean(),
        "penalty_weights": NoneOr(ArrayLike()),
        "penalty_matrix": NoneOr(ArrayLike()),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear",
        catalogue=("A6",),
        engines=("memory", "files", "dask"),
        certificate="newton decrement",
    )

    @stores_arguments
    def __init__(
        self,
        alphas: Any = None,
        *,
        fit_intercept: bool = True,
        criterion: Literal["loo", "gcv"] = "loo",
        cv: Any = None,
        scoring: Any = None,
        gcv_mode: Literal["auto", "svd", "eigen"] | None = None,
        alpha_per_target: bool = False,
        store_cv_results: bool = False,
        penalty_weights: Any = None,
        penalty_matrix: Any = None,
        tol: float = 1e-10,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose alpha and fit to all rows.

        Parameters
        ----------
        %(targets)s
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, in fits and in scores. Leaving one out leaves a row out with all its weight.
        """
        given = None if self.alphas is None else _checked_alphas(self.alphas, zero=self.cv is not None)
        scorer = self._scorer()
        data = self._training_data(X, y, sample_weight)
        if self.gcv_mode == "svd" and data.sparse:
            self._run.notices.append(
                FutureWarning(
                    "RidgeCV: gcv_mode='svd'. The 'svd' mode is not supported for sparse X, and another factorisation "
                    "is used; scikit-learn is going to refuse it. Leave gcv_mode out."
                )
            )
        penalty = quadratic_penalty(np.ones(data.n_targets), data.n_features, self.penalty_weights, self.penalty_matrix)
        if data.n_rows == 1:
            raise DataError("X: has n_samples=1; choosing alpha needs rows to leave out, at least two")
        spectrum, moments = spectrum_of(
            data,
            penalty,
            None if given is None or self.cv is not None else float(given.min()),
            intercept=self.fit_intercept,
            n_jobs=self.n_jobs,
        )
        if spectrum.n_rows < 2:
            raise DataError("sample_weight: one row has a positive weight; choosing alpha needs at least two")
        self.alphas_ = spectrum.grid(N_ALPHAS) if given is None else given
        self.dof_path_ = spectrum.degrees_of_freedom(self.alphas_)
        if self.cv is None:
            scores = self._scores_without_rows(data, spectrum, scorer)
        else:
            scores = self._scores_of_folds(data, penalty, spectrum.n_rows, scorer)
        self._choose(scores, vector=data.target_is_vector, warn=given is not None)
        chosen = penalty.with_alpha(np.broadcast_to(np.asarray(self.alpha_), (data.n_targets,)))
        self._conclude_direct(data, self._last_fit(data, spectrum, moments, chosen))
        return self

    # ------------------------------------------------------------------------------------------- scores

    def _scorer(self) -> Scorer | None:
        if self.criterion == "gcv" and self.cv is None and (self.scoring is not None or self.store_cv_results):
            raise ParameterError("criterion='gcv': has a score of its own and none for each row; use criterion='loo'")
        if self.cv is not None and self.store_cv_results:
            raise ParameterError(
                "cv!=None and store_cv_results=True are incompatible: with cv there is fold_scores_, for every fold"
            )
        if self.scoring is None:
            return None
        if not isinstance(self.scoring, str):
            return as_scorer(self.scoring)
        try:
            return as_scorer(get_scorer(self.scoring))
        except ValueError as error:
            raise ParameterError(f"scoring={self.scoring!r}: {error}") from None

    def _scores_without_rows(self, data: Data, spectrum: Spectrum, scorer: Scorer | None) -> np.ndarray:
        """Of shape (k, n_alphas)."""
        alphas = self.alphas_
        if self.criterion == "gcv":
            return -gcv_errors(spectrum, alphas)
        if scorer is None and not self.store_cv_results:
            errors = loo_squared_errors(data, spectrum, alphas, self.n_jobs)
            refuse_undefined(errors)
            return -errors
        y, predictions, weight = loo_predictions(data, spectrum, alphas, self.n_jobs)
        refuse_undefined(predictions[weight > 0])
        if scorer is None:
            table = (y[:, :, None] - predictions) ** 2
            scores = -np.average(table, axis=0, weights=weight)
        else:
            table, k = predictions, y.shape[1]
            w = weight if data.has_weight else None
            scores = np.array([[scorer(y[:, t], p, w) for p in predictions[:, t].T] for t in range(k)])
        if self.store_cv_results:
            self.cv_results_ = table[:, 0] if data.target_is_vector else table
        return scores

    def _scores_of_folds(self, data: Data, penalty: QuadraticPenalty, n_rows: int, scorer: Scorer | None) -> np.ndarray:
        problem = PathProblem(penalty, self.alphas_, self.fit_intercept, self.n_jobs)
        if isinstance(data, ArrayData):
            scores = fold_scores(data, folds_of(self.cv, data), problem, scorer)
        else:
            if isinstance(self.cv, bool) or not hasattr(self.cv, "__index__") or not self.cv >= 2 or scorer is not None:
                raise ParameterError(
                    f"cv={self.cv!r}, scoring={self.scoring!r}: files and Dask collections take a number of folds, at "
                    "least 2, and squared errors"
                )
            rows = data.n_rows
            scores = scores_from_moments(data, int(self.cv), problem, n_rows if rows is None else rows)
        self.fold_scores_ = scores if self.alpha_per_target and not data.target_is_vector else scores.mean(axis=0)
        return np.asarray(scores.mean(axis=-1))

    def _choose(self, scores: np.ndarray, *, vector: bool, warn: bool) -> None:
        alphas = self.alphas_
        if self.alpha_per_target and not vector:
            self.scores_ = scores
            best = scores.argmax(axis=1)
            self.alpha_, self.best_score_ = alphas[best], scores[np.arange(len(best)), best]
        else:
            self.scores_ = scores.mean(axis=0)
            at = int(self.scores_.argmax())
            best = np.array([at])
            self.alpha_, self.best_score_ = float(alphas[at]), float(self.scores_[at])
        # A grid of one's own may miss the best alpha; the one that is made reaches as far as anything changes.
        if warn and len(alphas) > 2:
            for name, edge in (("smallest", alphas.min()), ("largest", alphas.max())):
                if (alphas[best] == edge).any():
                    where = "for some targets " if (alphas[best] != edge).any() else ""
                    self._run.notices.append(
                        EpicycleWarning(
                            f"{type(self).__name__}: {where}the {name} of alphas ({edge:g}) is the best, so a better "
                            "one may lie beyond; extend alphas, or leave them out for a grid that follows from X."
                        )
                    )

    # ------------------------------------------------------------------------------------------- the last fit

    def _last_fit(
        self, data: Data, spectrum: Spectrum, moments: Moments | None, penalty: QuadraticPenalty
    ) -> LeastSquaresFit:
        if isinstance(spectrum, KernelSpectrum) and (penalty.alpha > 0).all():
            fit = fit_from_kernel(spectrum, penalty)
            if fit.excess <= self.tol * fit.total:
                return fit
        if moments is None and data.sparse:
            moments = settled_moments(data, self.fit_intercept, self.n_jobs)
        return fit_direct(
            data,
            penalty,
            intercept=self.fit_intercept,
            solver="auto",
            inverse=False,
            n_jobs=self.n_jobs,
            moments=moments,
        )

    def _penalty(self, n_targets: int, n_features: int) -> QuadraticPenalty:
        alpha = np.broadcast_to(np.asarray(self.alpha_, dtype=np.float64), (n_targets,))
        return quadratic_penalty(alpha, n_features, self.penalty_weights, self.penalty_matrix)

    def _penalty_line(self) -> str:
        if not hasattr(self, "alpha_"):
            return ""
        alpha = f"{self.alpha_:g}" if np.ndim(self.alpha_) == 0 else str(self.alpha_)
        by = "leave-one-out" if self.criterion == "loo" else "generalised cross-validation"
        line = penalty_line(alpha, self.penalty_weights, self.penalty_matrix)
        return f"{line} by {by if self.cv is None else 'cross-validation'}"

    # ------------------------------------------------------------------------------------------- a picture

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the error against alpha, with the effective degrees of freedom along the top.

        Parameters
        ----------
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        self._check_fitted()
        return draw_scores(self, ax)


def _checked_alphas(alphas: Any, *, zero: bool) -> np.ndarray:
    for i, alpha in enumerate(alphas if isinstance(alphas, list | tuple) else ()):
        if isinstance(alpha, str):
            raise ParameterTypeError(f"alphas[{i}] must be an instance of float, not str; expected numbers")
    try:
        values = np.atleast_1d(np.array(alphas, dtype=np.float64))
    except (TypeError, ValueError):
        raise ParameterError(f"alphas={alphas!r}; expected numbers") from None
    if values.ndim != 1 or values.size == 0:
        raise ParameterError(f"alphas has shape {values.shape}; expected a list of numbers")
    expected = f"alphas: expected finite numbers {'>= 0' if zero else '> 0 (0 needs cv)'}"
    if not np.isfinite(values).all():
        raise ParameterError(expected)
    low = (values < 0) if zero else (values <= 0)
    if low.any():
        i = int(np.argmax(low))
        raise ParameterError(
            f"alphas[{i}] == {np.ravel(alphas)[i]}, must be {'>= 0.0' if zero else '> 0.0'}. {expected}"
        )
    return values
