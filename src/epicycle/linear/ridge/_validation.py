"""The choice of alpha by cross-validation: the scores of every alpha, the best of them, and the fit with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer

from epicycle.core._checks import as_floats
from epicycle.core._exceptions import DataError, EpicycleWarning, ParameterError, ParameterTypeError
from epicycle.core._plot_style import Axes, axes_of, ink, styled
from epicycle.data import ArrayData, Data
from epicycle.linear._folds import folds_of
from epicycle.linear.least_squares._direct import LeastSquaresFit, fit_direct, settled_moments
from epicycle.linear.ridge._folds import PathProblem, fold_scores, scores_from_moments
from epicycle.linear.ridge._leave_one_out import gcv_errors, loo_predictions, loo_squared_errors, refuse_undefined
from epicycle.linear.ridge._spectrum import KernelSpectrum, Spectrum, fit_from_kernel, spectrum_of
from epicycle.optim._quadratic_penalty import QuadraticPenalty, quadratic_penalty
from epicycle.stats._class_scores import choose_class
from epicycle.stats._intervals import standard_error
from epicycle.stats._moments import Moments

#: Alphas of the grid that is made where none is given.
N_ALPHAS = 50


def fit_by_validation(model: Any, data: Data) -> None:
    """Choose alpha for a model, and fit it to all rows; a classifier has set `classes_` and gives its scores as y."""
    given = None if model.alphas is None else _checked_alphas(model.alphas, zero=model.cv is not None)
    scoring = _scoring_of(model, data)
    penalty = quadratic_penalty(np.ones(data.n_targets), data.n_features, model.penalty_weights, model.penalty_matrix)
    if data.n_rows == 1:
        raise DataError("X: has n_samples=1; choosing alpha needs rows to leave out, at least two")
    least = None if given is None or model.cv is not None else float(given.min())
    spectrum, moments = spectrum_of(data, penalty, least, intercept=model.fit_intercept, n_jobs=model.n_jobs)
    if spectrum.n_rows < 2:
        raise DataError("sample_weight: one row has a positive weight; choosing alpha needs at least two")
    model.alphas_ = spectrum.grid(N_ALPHAS) if given is None else given
    model.dof_path_ = spectrum.degrees_of_freedom(model.alphas_)
    if model.cv is None:
        scores = _scores_without_rows(model, data, spectrum, scoring)
    else:
        scores = _scores_of_folds(model, data, penalty, spectrum.n_rows, scoring)
    _choose(model, scores, by_target=model.alpha_per_target and not data.target_is_vector, warn=given is not None)
    chosen = penalty.with_alpha(np.broadcast_to(np.asarray(model.alpha_), (data.n_targets,)))
    model._conclude_direct(data, _last_fit(model, data, spectrum, moments, chosen))


# ------------------------------------------------------------------------------------------------ scorers


class _Predicted(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator for scorers: its predictions are its input."""

    def fit(self, X: Any, y: Any = None) -> _Predicted:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: np.ndarray) -> np.ndarray:
        return X


class _Scored(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier for scorers: its scores are its input."""

    def __init__(self, classes: np.ndarray, multilabel: bool) -> None:
        self.classes, self.multilabel = classes, multilabel
        self.classes_ = classes

    def fit(self, X: Any, y: Any = None) -> _Scored:
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return X[:, 0] if X.shape[1] == 1 else X

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(X > 0, dtype=np.int64) if self.multilabel else choose_class(X, self.classes_)


@dataclass(frozen=True)
class Scoring:
    """A scorer of scikit-learn's on predictions: of all targets together, or `by_target` of each."""

    scorer: Any
    estimator: Any
    by_target: bool
    vector: bool

    def __call__(self, y: np.ndarray, predictions: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Scores of shape (1,) or (k,) for targets and predictions of shape (n, k)."""
        extra = {} if weight is None else {"sample_weight": weight}
        if isinstance(self.estimator, _Scored):
            pairs = [(self.estimator.predict(y), predictions)]  # the sign of a target is that of its class
        elif self.by_target or self.vector:
            pairs = [(y[:, t], predictions[:, t]) for t in range(y.shape[1])]
        else:
            pairs = [(y, predictions)]
        return np.array([float(self.scorer(self.estimator, shown, wanted, **extra)) for wanted, shown in pairs])


def _scoring_of(model: Any, data: Data) -> Scoring | None:
    """The scorer that was asked for; None for squared errors."""
    if model.criterion == "gcv" and model.cv is None and (model.scoring is not None or model.store_cv_results):
        raise ParameterError("criterion='gcv': has a score of its own and none for each row; use criterion='loo'")
    if model.cv is not None and model.store_cv_results:
        raise ParameterError(
            "cv!=None and store_cv_results=True are incompatible: with cv there is fold_scores_, for every fold"
        )
    classes = getattr(model, "classes_", None)
    scoring = model.scoring
    if scoring is None and classes is not None and model.cv is not None and isinstance(data, ArrayData):
        scoring = "accuracy"
    if scoring is None:
        return None
    if isinstance(scoring, str):
        try:
            scoring = get_scorer(scoring)
        except ValueError as error:
            raise ParameterError(f"scoring={model.scoring!r}: {error}") from None
    estimator = _Predicted() if classes is None else _Scored(classes, model._multilabel_)
    return Scoring(scoring, estimator, model.alpha_per_target, data.target_is_vector)


# ------------------------------------------------------------------------------------------------ scores


def _scores_without_rows(model: Any, data: Data, spectrum: Spectrum, scoring: Scoring | None) -> np.ndarray:
    """Of shape (k, n_alphas), or (1, n_alphas) where a scorer sees all targets."""
    alphas = model.alphas_
    if model.criterion == "gcv":
        return -gcv_errors(spectrum, alphas)
    if scoring is None and not model.store_cv_results:
        errors = loo_squared_errors(data, spectrum, alphas, model.n_jobs)
        refuse_undefined(errors)
        return -errors
    y, predictions, weight = loo_predictions(data, spectrum, alphas, model.n_jobs)
    refuse_undefined(predictions[weight > 0])
    if scoring is None:
        # As in scikit-learn, an error in the table is multiplied by the weight of its row.
        table = weight[:, None, None] * np.where(weight[:, None, None] > 0, y[:, :, None] - predictions, 0.0) ** 2
        scores = np.asarray(-table.sum(axis=0) / weight.sum())
    else:
        table, w = predictions, weight if data.has_weight else None
        scores = np.stack([scoring(y, predictions[:, :, a], w) for a in range(len(alphas))], axis=-1)
    if model.store_cv_results:
        model.cv_results_ = table[:, 0] if data.target_is_vector else table
    return scores


def _scores_of_folds(
    model: Any, data: Data, penalty: QuadraticPenalty, n_rows: int, scoring: Scoring | None
) -> np.ndarray:
    problem = PathProblem(penalty, model.alphas_, model.fit_intercept, model.n_jobs)
    if isinstance(data, ArrayData):
        labels = scoring.estimator.predict(data.y) if scoring and isinstance(scoring.estimator, _Scored) else None
        scores = fold_scores(data, folds_of(model.cv, data, labels), problem, scoring)
    else:
        number = hasattr(model.cv, "__index__") and not isinstance(model.cv, bool) and model.cv >= 2
        if not number or scoring is not None:
            raise ParameterError(
                f"cv={model.cv!r}, scoring={model.scoring!r}: files and Dask collections take a number of folds, at "
                "least 2, and squared errors"
            )
        scores = scores_from_moments(data, int(model.cv), problem, n_rows if data.n_rows is None else data.n_rows)
    by_target = model.alpha_per_target and not data.target_is_vector
    model.fold_scores_ = scores if by_target else scores.mean(axis=0)
    return np.asarray(scores.mean(axis=-1))


def _choose(model: Any, scores: np.ndarray, *, by_target: bool, warn: bool) -> None:
    alphas = model.alphas_
    if by_target:
        model.scores_ = scores
        best = scores.argmax(axis=1)
        model.alpha_, model.best_score_ = alphas[best], scores[np.arange(len(best)), best]
    else:
        model.scores_ = scores.mean(axis=0)
        best = np.array([int(model.scores_.argmax())])
        model.alpha_, model.best_score_ = float(alphas[best[0]]), float(model.scores_[best[0]])
    # A grid of one's own may miss the best alpha; the one that is made reaches as far as anything changes.
    if warn and len(alphas) > 2:
        for name, edge in (("smallest", alphas.min()), ("largest", alphas.max())):
            if (alphas[best] == edge).any():
                where = "for some targets " if (alphas[best] != edge).any() else ""
                model._run.notices.append(
                    EpicycleWarning(
                        f"{type(model).__name__}: {where}the {name} of alphas ({edge:g}) is the best, so a better "
                        "one may lie beyond; extend alphas, or leave them out for a grid that follows from X."
                    )
                )


def _last_fit(
    model: Any, data: Data, spectrum: Spectrum, moments: Moments | None, penalty: QuadraticPenalty
) -> LeastSquaresFit:
    intercept, n_jobs = model.fit_intercept, model.n_jobs
    if isinstance(spectrum, KernelSpectrum) and (penalty.alpha > 0).all():
        fit = fit_from_kernel(spectrum, penalty)
        if fit.excess <= model.tol * fit.total:
            return fit
    if moments is None and data.sparse:
        moments = settled_moments(data, intercept, n_jobs)
    return fit_direct(data, penalty, intercept=intercept, solver="auto", inverse=False, n_jobs=n_jobs, moments=moments)


def _checked_alphas(alphas: Any, *, zero: bool) -> np.ndarray:
    for i, alpha in enumerate(alphas if isinstance(alphas, list | tuple) else ()):
        if isinstance(alpha, str):
            raise ParameterTypeError(f"alphas[{i}] must be an instance of float, not str; expected numbers")
    values = np.array(as_floats(alphas, ParameterError(f"alphas={alphas!r}; expected numbers")), ndmin=1)
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


# --------------------------------------------------------------------------------------------------------------------
# The picture of a choice of alpha: error against alpha, degrees of freedom along the top.


@styled
def draw_scores(model: Any, ax: Axes | None) -> Axes:
    """Draw the scores of every alpha on `ax`, or on axes of their own."""
    ax = axes_of(ax)
    order = np.argsort(model.alphas_)
    order = order[model.alphas_[order] > 0]
    alphas, sign = model.alphas_[order], 1 if model.scoring is not None else -1
    curves = sign * np.atleast_2d(model.scores_)[:, order]
    for t, curve in enumerate(curves):
        label = {"loo": "leave-one-out", "gcv": "generalised"}[model.criterion] if model.cv is None else "mean of folds"
        ax.plot(alphas, curve, lw=1.6, label=label if len(curves) == 1 else f"target {t}")
    if hasattr(model, "fold_scores_") and model.fold_scores_.ndim == 2 and model.fold_scores_.shape[1] > 1:
        se = standard_error(model.fold_scores_[order])
        ax.fill_between(alphas, curves[0] - se, curves[0] + se, alpha=0.2, lw=0, label="± standard error")
    for t, alpha in enumerate(np.atleast_1d(model.alpha_)):
        ax.axvline(alpha, color=ink(ax, 0.7), ls="--", lw=1, label=f"chosen: alpha {alpha:.3g}" if t == 0 else None)
    ax.set_xscale("log")
    ax.set_xlabel(r"$\alpha$")
    ax.set_ylabel("mean squared error of rows left out" if model.scoring is None else "score of rows left out")
    ax.legend()
    _mark_degrees(ax, alphas, model.dof_path_[order])
    return ax


def _mark_degrees(ax: Axes, alphas: np.ndarray, dof: np.ndarray) -> None:
    if len(alphas) < 2:
        return
    shown = np.unique(np.linspace(0, len(alphas) - 1, 6).round().astype(int))
    top = ax.secondary_xaxis("top")
    top.set_xticks(alphas[shown], [f"{dof[i]:.3g}" for i in shown])
    top.set_xticks([], minor=True)
    top.set_xlabel("effective degrees of freedom")
