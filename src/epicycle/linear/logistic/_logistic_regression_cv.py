"""Logistic regression with C (and l1_ratio) chosen by cross-validation along paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, Unpack

import numpy as np
import sklearn
from sklearn.metrics import check_scoring, get_scorer
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._checks import as_floats
from epicycle.core._exceptions import ParameterError
from epicycle.core._history import History
from epicycle.core._parameters import AnyOf, ArrayLike, Boolean, Callable, Choice, Domain, InstanceOf, Integer, NoneOr
from epicycle.core._plot_style import axes_of, band, ink, styled
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData, Data
from epicycle.linear._folds import Fold, count_rows, folds_of, report_folds
from epicycle.linear._scikit_learn import LOGISTIC_SOLVERS
from epicycle.linear._storage import stored_type
from epicycle.linear.logistic._base import LinearClassifier
from epicycle.linear.logistic._duality import penalty_in_words
from epicycle.linear.logistic._fold_rows import codes_in_order
from epicycle.linear.logistic._logistic_regression import LogisticRegression, with_constant
from epicycle.linear.logistic._paths import DIRECT, Paths, PathSettings, fold_paths, path_scores, summed_scores
from epicycle.stats._labels import class_weights, encode_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class LogisticRegressionCV(LinearClassifier):
    """Logistic regression with C and l1_ratio chosen by cross-validation along paths.

    Every fold follows a grid of C from the strongest penalty to the weakest, each solution started from the one before
    and certified; the folds run side by side and copy no rows. The model is :class:`LogisticRegression` with the C and
    l1_ratio of the best mean score on the held-out rows.

    Parameters
    ----------
    Cs : int or array-like, default=10
        How many values of C, evenly spaced on a log scale between 1e-4 and 1e4; or the values.
    l1_ratios : array-like, optional
        Shares of the L1 term to choose from; by default 0 alone, the L2 penalty.
    fit_intercept : bool, default=True
        Whether b is fitted or 0.
    cv : int, splitter or iterable of (train, test), optional
        Folds, as for scikit-learn; five, stratified, by default.
    dual : bool, default=False
        As for :class:`LogisticRegression`.
    penalty : {"auto", "l1", "l2", "elasticnet"}, default="auto"
        "l2" and "l1" are older names for `l1_ratios` of 0 and 1 alone; "auto" and "elasticnet" take `l1_ratios` as
        given.
    scoring : str, callable or None, default="auto"
        What is best, and what `score` gives: a scorer of scikit-learn or its name; None is the accuracy. "auto" chooses
        by the log loss, and `score` is the accuracy.
    solver : str, default="auto"
        "auto", or a solver of scikit-learn's, which stands for "auto"; "liblinear" penalises the intercept. All end at
        the same minima.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the classes.
    refit : bool, default=True
        Whether the model is fitted to all rows with what was chosen; otherwise the best coefficients of each fold are
        averaged, and C and l1_ratio too.
    tol : float, default=1e-8
        Bound on the distance of every objective from its minimum, relative to its value.
    max_iter : int, default=1000
        Iterations at most for each solution; 0 leaves it where it starts.
    n_jobs : int, optional
        Threads, one path each; None follows the processors. The result does not depend on it.
    verbose : int, default=0
        1 shows progress when the fit takes more than about two seconds, 2 logs every iteration of the last fit.
    intercept_scaling : float, default=1.0
        As for :class:`LogisticRegression`, with ``solver="liblinear"``.
    random_state : int, Generator, RandomState or None, default=None
        Accepted for compatibility: nothing is drawn. A splitter has a seed of its own.
    use_legacy_attributes : bool, default=False
        Whether `scores_` and `coefs_paths_` are dictionaries by class, with the axis of `l1_ratios` after that of `Cs`
        and only where they are given, `n_iter_` has that order too and a first axis of one, and `C_` and `l1_ratio_`
        are arrays with an entry for each row of `coef_`.

    Attributes
    ----------
    C_, l1_ratio_ : float
        What was chosen.
    Cs_, l1_ratios_ : ndarray
        The grids.
    scores_ : ndarray of shape (n_folds, n_l1_ratios, n_Cs)
        Scores on the held-out rows.
    coefs_paths_ : ndarray of shape (n_folds, n_l1_ratios, n_Cs, n_rows, n_features + 1)
        Coefficients of every fold, with the intercept last where there is one; one row for two classes, else one for
        each class.
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    solver_ : str
        The solver of the fit to all rows.
    certificate_ : Certificate
        Of the fit to all rows; without it, the worst of the fits that were averaged.
    n_iter_ : ndarray of shape (n_folds, n_l1_ratios, n_Cs)
        Iterations of every solution of the folds; each begins at the one before.

    See Also
    --------
    LogisticRegression : for one C.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from epicycle import LogisticRegressionCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegressionCV(Cs=[0.01, 0.1, 1.0], l1_ratios=[0.0, 1.0]).fit((X - X.mean(0)) / X.std(0), y)
    >>> model.scores_.shape
    (5, 2, 3)
    >>> model.C_, model.l1_ratio_
    (1.0, 0.0)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "Cs": AnyOf(Integer(minimum=1, maximum=100_000), ArrayLike()),
        "l1_ratios": NoneOr(ArrayLike()),
        "cv": NoneOr(InstanceOf(object)),
        "scoring": NoneOr(AnyOf(InstanceOf(str), Callable())),
        "class_weight": NoneOr(AnyOf(InstanceOf(dict), Choice("balanced"))),
        "refit": Boolean(),
        "dual": Boolean(),
        "penalty": Choice("auto", "l1", "l2", "elasticnet", "deprecated"),
        "solver": Choice("auto", "lbfgs", *LOGISTIC_SOLVERS),
        "intercept_scaling": LogisticRegression._parameters["intercept_scaling"],
        "use_legacy_attributes": Boolean(),
        "tol": LogisticRegression._parameters["tol"],
        "n_jobs": LogisticRegression._parameters["n_jobs"],
        "verbose": LogisticRegression._parameters["verbose"],
        "max_iter": LogisticRegression._parameters["max_iter"],
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear", catalogue=("A9", "A10"), engines=("memory", "files", "dask"), certificate="duality gap"
    )

    # Arrays and numbers, or with use_legacy_attributes dictionaries and arrays.
    scores_: Any
    coefs_paths_: Any
    C_: Any
    l1_ratio_: Any

    @stores_arguments(fit_intercept=True, tol=1e-8, max_iter=1000, n_jobs=None, verbose=0, random_state=None)
    def __init__(
        self,
        *,
        Cs: Any = 10,
        l1_ratios: Any = None,
        cv: Any = None,
        dual: bool = False,
        penalty: str = "auto",
        scoring: Any = "auto",
        solver: str = "auto",
        class_weight: Mapping[Any, float] | str | None = None,
        refit: bool = True,
        intercept_scaling: float = 1.0,
        use_legacy_attributes: bool = False,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting  # type: ignore[arg-type]  # mypy: `self` would have to be positional beside **params
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Choose C and l1_ratio by cross-validation and fit to all rows.

        Parameters
        ----------
        X : array, sparse matrix, data frame, Scan or Dask collection of shape (n_samples, n_features)
            The folds of files and collections are sums over their rows, with the labels in memory; their scores are the
            log loss or the accuracy.
        y : array-like of shape (n_samples,)
            Labels: numbers, booleans or strings. A scan brings its own.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, in training and in the scores.
        **params : dict
            Further arguments for the splitter and the scorer, by scikit-learn's metadata routing.
        """
        Cs, ratios = self._grids()
        for_split, for_score = self._routed("fit", sample_weight, params)
        for ratio in ratios:
            self._model(float(Cs[0]), float(ratio))._penalties()  # what the solver does not take
        labelled = self._fit_data(X, y, sample_weight, target="labels")
        self.classes_, totals, data = encode_labels(labelled, type(self).__name__, self.n_jobs)
        factors = class_weights(self.class_weight, self.classes_, totals, zero=True)
        folds = self._folds(labelled, data, for_split)
        intercept, design = self.fit_intercept, data
        penalised = self.solver == "liblinear" and self.fit_intercept
        if penalised:  # the coefficient of a constant feature
            scale = float(self.intercept_scaling)
            intercept, design = False, with_constant(data, scale)
        settings = PathSettings(Cs, ratios, len(self.classes_), intercept, factors, self.tol, self.max_iter)

        def plain(params: np.ndarray) -> np.ndarray:
            if not penalised:
                return params
            return np.concatenate([params[..., :-2], scale * params[..., -2:-1]], axis=-1)

        def score(test: np.ndarray, params: np.ndarray) -> np.ndarray:
            models = plain(params)
            if not (isinstance(data, ArrayData) and isinstance(labelled, ArrayData)):
                return summed_scores(self._scorer(), data, test, models, self.n_jobs)
            return path_scores(self._scorer(), self._at, labelled, data, test, models, self.classes_, for_score)

        paths = fold_paths(design, folds, settings, score, self.n_jobs)
        paths = replace(paths, params=plain(paths.params))
        self.Cs_, self.l1_ratios_, self.scores_ = Cs, ratios, paths.scores
        kept = paths.params if self.fit_intercept else paths.params[..., :-1]
        self.coefs_paths_ = kept.astype(data.dtype)
        if self.refit:
            self._fit_best(labelled)
        else:
            self._average(paths, data)
        self.n_iter_ = paths.n_iter
        if self.use_legacy_attributes:
            self._by_class()
        if paths.failed:
            report_folds(self, paths.failed, "iterations", "loosen tol, or scale the features")
        return self

    def _by_class(self) -> None:
        """The grids of scores and coefficients in dictionaries, one entry for each row of `coef_`."""
        labels = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        keys = labels.tolist()
        several = self.l1_ratios is not None
        scores, coefs = np.swapaxes(self.scores_, 1, 2), np.swapaxes(self.coefs_paths_, 1, 2)
        if not several:
            scores, coefs = scores[:, :, 0], coefs[:, :, 0]
        self.scores_ = {key: scores for key in keys}
        self.coefs_paths_ = {key: coefs[..., k, :] for k, key in enumerate(keys)}
        self.n_iter_ = np.swapaxes(self.n_iter_, 1, 2)[None]
        self.C_ = np.full(len(keys), self.C_)
        self.l1_ratio_ = np.full(len(keys), self.l1_ratio_)

    def _grids(self) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(self.Cs, int | np.integer):
            Cs = np.logspace(-4, 4, int(self.Cs))
        else:
            Cs = _numbers("Cs", self.Cs)
            if not (Cs > 0).all():
                raise ParameterError(f"Cs={self.Cs!r}; expected finite numbers > 0")
        if self.penalty == "elasticnet" and self.l1_ratios is None:
            raise ParameterError("l1_ratios=None; penalty='elasticnet' needs numbers between 0 and 1")
        ratios = np.zeros(1) if self.l1_ratios is None else _numbers("l1_ratios", self.l1_ratios)
        if self.penalty in ("l1", "l2"):
            named = np.array([float(self.penalty == "l1")])
            if self.l1_ratios is not None and not np.array_equal(ratios, named):
                raise ParameterError(
                    f"penalty={self.penalty!r} contradicts l1_ratios={self.l1_ratios!r}; leave one out"
                )
            ratios = named
        if not ((ratios >= 0) & (ratios <= 1)).all():
            raise ParameterError(f"l1_ratios={self.l1_ratios!r}; expected numbers between 0 and 1")
        return Cs, ratios

    def _scorer(self, automatic: str = "neg_log_loss") -> Any:
        if self.scoring is None or callable(self.scoring):
            return check_scoring(LogisticRegression(), scoring=self.scoring or "accuracy")
        try:
            return get_scorer(automatic if self.scoring == "auto" else self.scoring)
        except ValueError as error:
            raise ParameterError(f"scoring={self.scoring!r}: {error}") from None

    def score(self, X: Any, y: Any, **score_params: Any) -> float:
        """Score of the predictions for rows X with labels y, by `scoring`.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        **score_params : dict
            Arguments of the scorer: `sample_weight`, and others by scikit-learn's metadata routing.
        """
        _, given = self._routed("score", score_params.pop("sample_weight", None), score_params)
        return float(self._scorer("accuracy")(self, X, y, **given))

    def get_metadata_routing(self) -> MetadataRouter:
        """Targets of scikit-learn's metadata routing of the arguments of `fit` and `score`: splitter and scorer."""
        to_scorer = MethodMapping().add(caller="score", callee="score").add(caller="fit", callee="score")
        to_splitter = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(splitter=self.cv, method_mapping=to_splitter).add(
            scorer=self._scorer("accuracy"), method_mapping=to_scorer
        )

    def _routed(self, caller: str, sample_weight: Any, params: Mapping[str, Any]) -> tuple[Any, Any]:
        """Arguments of the splitter and of the scorer."""
        if sklearn.get_config()["enable_metadata_routing"]:
            weight = {} if sample_weight is None else {"sample_weight": sample_weight}
            routed = process_routing(self, caller, **weight, **params)
            return routed.splitter.split if caller == "fit" else {}, routed.scorer.score
        if params:
            raise ParameterError(
                f"{sorted(params)[0]}: an extra argument of {type(self).__name__}.{caller} is only supported if "
                "enable_metadata_routing=True in scikit-learn's configuration"
            )
        return {}, {} if sample_weight is None else {"sample_weight": sample_weight}

    def _folds(self, labelled: Data, data: Data, for_split: Mapping[str, Any]) -> list[Fold]:
        scorer = self._scorer()
        if isinstance(labelled, ArrayData) and isinstance(data, ArrayData):
            labels, codes = labelled.y, data.y
        else:
            count_rows(data)  # of a Dask collection the numbers of its batches follow from it
            codes = codes_in_order(data, self.n_jobs)
            labels = self.classes_[codes]
            if getattr(getattr(scorer, "_score_func", None), "__name__", "") not in DIRECT or scorer._kwargs:
                raise ParameterError(
                    f"scoring={self.scoring!r}: over files and Dask collections the log loss ('neg_log_loss') and the "
                    "accuracy ('accuracy') are summed; expected one of these, or X in memory"
                )
        # scikit-learn's splitters take no bytes; the codes of the classes are as good.
        y = codes if self.classes_.dtype.kind == "S" or isinstance(self.classes_[0], bytes) else labels
        return folds_of(self.cv, data, y, arguments=for_split)

    def _at(self, params: np.ndarray) -> LogisticRegression:
        """A fitted model with given parameters, for scorers."""
        model = LogisticRegression(n_jobs=1)
        model.classes_, model.n_features_in_ = self.classes_, self.n_features_in_
        model.coef_, model.intercept_ = params[:, :-1], params[:, -1]
        return model

    def _model(self, C: float, l1_ratio: float) -> LogisticRegression:
        """The model of one point of the grids."""
        return LogisticRegression(
            C=C,
            l1_ratio=l1_ratio,
            dual=self.dual,
            fit_intercept=self.fit_intercept,
            intercept_scaling=self.intercept_scaling,
            solver=self.solver,
            class_weight=self.class_weight,
            tol=self.tol,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
        )

    def _fit_best(self, data: Data) -> None:
        mean = self.scores_.mean(axis=0)
        r, c = np.unravel_index(int(np.argmax(mean)), mean.shape)
        self.C_, self.l1_ratio_ = float(self.Cs_[c]), float(self.l1_ratios_[r])
        last = self._model(self.C_, self.l1_ratio_)
        last.solver = "auto" if self.solver == "lbfgs" else self.solver
        solution = last._solve(data, self)
        for name in ("coef_", "intercept_", "solver_"):
            setattr(self, name, getattr(last, name))
        self._conclude(solution)

    def _average(self, paths: Paths, data: Data) -> None:
        """The mean of the best model of every fold."""
        flat = self.scores_.reshape(len(self.scores_), -1)
        r, c = np.unravel_index(flat.argmax(axis=1), self.scores_.shape[1:])
        each = np.arange(len(flat))
        params = paths.params[each, r, c].mean(axis=0)
        self.C_, self.l1_ratio_ = float(self.Cs_[c].mean()), float(self.l1_ratios_[r].mean())
        dtype = stored_type(data.dtype, params)
        self.coef_, self.intercept_ = params[:, :-1].astype(dtype), params[:, -1].astype(dtype)
        gaps = paths.gaps[each, r, c]
        worst = float(gaps.max())
        meaning = f"each of the averaged fits is at most {worst:.1e} of its objective above its minimum"
        self.certificate_ = Certificate("duality gap", worst, self.tol, meaning)
        self.history_ = History(score=flat.max(axis=1), gap=gaps)
        self.converged_ = self.certificate_.holds

    def _penalty_line(self) -> str:
        if not hasattr(self, "C_"):
            return ""
        C, l1_ratio = (float(np.atleast_1d(chosen)[0]) for chosen in (self.C_, self.l1_ratio_))
        return f"{penalty_in_words(C, l1_ratio)}, by cross-validation"

    @styled
    def plot(self, what: Literal["scores", "path"] = "scores", *, ax: Axes | None = None) -> Axes:
        """Draw the scores of cross-validation, or the coefficients, against C.

        Parameters
        ----------
        what : {"scores", "path"}
            Mean score with one standard error to each side, for every l1_ratio; or the coefficients of the chosen
            l1_ratio, averaged over the folds (for more than two classes, those of the first); the largest at the chosen
            C are named.
        """
        self._check_fitted()
        if self.use_legacy_attributes:
            raise ParameterError("plot(): draws the arrays of use_legacy_attributes=False")
        if what not in ("scores", "path"):
            raise ParameterError(f"what={what!r}; expected 'scores' or 'path'")
        ax = axes_of(ax)
        order = np.argsort(self.Cs_)
        Cs = self.Cs_[order]
        if what == "scores":
            self._draw_scores(ax, Cs, order)
        else:
            self._draw_path(ax, Cs, order)
        ax.axvline(
            self.C_, color=ink(ax, 0.7), ls="--", lw=1, label=f"chosen: C {self.C_:.3g}, l1_ratio {self.l1_ratio_:g}"
        )
        ax.set_xscale("log")
        ax.set_xlabel("C (weaker penalty to the right)")
        ax.legend()
        return ax

    def _draw_scores(self, ax: Axes, Cs: np.ndarray, order: np.ndarray) -> None:
        label = "neg_log_loss" if self.scoring == "auto" else self.scoring if isinstance(self.scoring, str) else "score"
        mean = self.scores_.mean(axis=0)[:, order]
        k = len(self.scores_)
        se = self.scores_.std(axis=0, ddof=1)[:, order] / np.sqrt(k) if k > 1 else np.zeros_like(mean)
        for ratio, m, s in zip(self.l1_ratios_, mean, se, strict=True):
            band(ax, Cs, m, s, colour=None, label=f"l1_ratio {ratio:g}")
        ax.set_ylabel(f"{label} on held-out rows")

    def _draw_path(self, ax: Axes, Cs: np.ndarray, order: np.ndarray) -> None:
        r = int(np.argmin(np.abs(self.l1_ratios_ - self.l1_ratio_)))
        W = self.coefs_paths_[:, r, :, 0].mean(axis=0)[order]
        W = W[:, :-1] if self.fit_intercept else W
        lines = ax.plot(Cs, W, lw=1.3)
        names = self._names()
        chosen = np.abs(W[int(np.argmin(np.abs(np.log(Cs / self.C_))))])
        for j in np.argsort(-chosen, kind="stable")[:8]:
            if chosen[j] > 0:
                lines[j].set_label(names[j])
        ax.axhline(0, color=ink(ax, 0.4), lw=0.8)
        ax.set_ylabel("coefficient, mean of the folds")


def _numbers(name: str, values: Any) -> np.ndarray:
    array = as_floats(values, ParameterError(f"{name}={values!r}; expected a list of numbers"))
    if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
        raise ParameterError(f"{name}={values!r}; expected a list of finite numbers")
    return array
