"""`TreatmentEffect`: the average effect of a treatment, or its effects on rows, by the method of a name."""

from __future__ import annotations

from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle.causal.effects._balance import balance_columns, effective_sizes
from epicycle.causal.effects._effect_results import ESTIMANDS, EffectResults
from epicycle.causal.effects._estimate import Estimate, check_finite
from epicycle.causal.effects._methods import METHODS, Options, propensity_scores
from epicycle.causal.effects._nuisance import EFFECT, OUTCOME, PROPENSITY, quiet
from epicycle.causal.effects._overlap import crump_threshold, outside, overlap_facts
from epicycle.causal.effects._study import (
    Study,
    coded_treatment,
    require_squares,
    split_frame,
    split_position,
)
from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import DataError, DataTypeError, OverlapWarning, ParameterError
from epicycle.core._parameters import AnyOf, Boolean, Choice, Described, Domain, Integer, NoneOr, Real
from epicycle.core._random import seed_of
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData

#: The share of rows without a counterpart from which on a warning is given.
_WARN_ABOVE = 0.01


class TreatmentEffect(EffectResults):
    r"""The effect of a treatment on an outcome, given the covariates that confound them.

    .. math::

       \tau = \mathbb{E}\,[\,Y(1) - Y(0) \mid \text{target}\,], \qquad
       \tau(x) = \mathbb{E}\,[\,Y(1) - Y(0) \mid x\,]

    where Y(1) and Y(0) are the outcomes of a row with and without treatment, of which one is seen. Three things have to
    be true for an estimate to be the effect, and the first cannot be checked by data: all confounders are among the
    covariates, rows with the same covariates have a chance of both treatments (`overlap_`), and a row's outcome does
    not depend on the treatment of others.

    Parameters
    ----------
    estimand : {"ate", "att", "atc", "ato", "cate"}, default="ate"
        Whom the effect is averaged over: all rows, the treated, the controls, or the population e (1 - e) in which the
        arms overlap most (`method` "ipw" only). "cate" models the effects of rows as well, for :meth:`predict`.
    method : str, default="auto"
        "difference" of means; "regression" with interactions (Lin); "matching"; "strata" of the propensity score;
        inverse probability weights "ipw"; weights that balance the covariates exactly, "cbps" by a logistic propensity
        and "entropy" nearest to equal ones; doubly robust and cross-fitted "aipw" (the interactive model of double
        machine learning) and "tmle"; "dml", double machine learning of the partially linear model, for which the
        treatment may be numeric. For "cate": "regression" and the meta-learners "s_learner", "t_learner", "x_learner",
        "r_learner" and "dr_learner", and "causal_forest", whose trees are honest. "auto" is "aipw" for a treatment of
        two values ("ipw" for "ato", "regression" for "cate"), and "dml" for a numeric one, whose effect is that of one
        unit.
    treatment_column : int or str, default=-1
        The column of X that is the treatment where `fit` gets none: a position, or a name in a data frame.
    outcome_model : {"linear", "boosting", "forest", "logistic"} or estimator, optional
        Model of the outcome given the covariates; None is "linear". A classifier gives the probability of y = 1.
    propensity_model : {"logistic", "boosting", "forest"} or classifier, optional
        Model of the treatment given the covariates; None is "logistic", without a penalty. "boosting" ends when it no
        longer improves on a tenth of the rows. For a numeric treatment a regressor, by default "linear".
    effect_model : {"linear", "boosting", "forest"} or regressor, optional
        Model of the effects of rows of the X, R and DR learners; None is that of the outcome.
    n_folds : int, default=5
        Folds of cross-fitting: nuisance models predict rows that they were not fitted to. The fold of a row follows
        from its values, not from its place, so that a row of weight 2 is two rows.
    clip : float, default=0.01
        Propensities are kept within [clip, 1 - clip] in weights; for "att" only from above and for "atc" only from
        below, where weights grow.
    trim : {"crump"} or float, optional
        Leave out rows with a propensity outside [trim, 1 - trim], or outside the bounds of Crump et al., which give the
        smallest variance. The effect is then that of the rows that are left.
    stabilize : bool, default=True
        Whether "ipw" divides by the sum of the weights, and not by their expectation.
    n_strata : int, default=5
        Number of "strata", each with the same share of the target (for "att" of the treated).
    distance : {"mahalanobis", "euclidean", "propensity", "genetic", "exact"}, default="mahalanobis"
        Distance of "matching": of the covariates, whitened or each in standard deviations; of the logit of the
        propensity score; with weights of the covariates that an evolutionary search finds for balance; or "exact",
        which compares rows with all that have the same covariates.
    n_neighbors : int, default=1
        Matches of each row.
    replacement : bool, default=True
        Whether a row may be the match of several. Without, the closest pair is taken first ("att" and "atc" only).
    caliper : float, optional
        The largest distance of a match, in standard deviations. Rows without a match are left out, with a warning.
    exact : list of int or str, optional
        Covariates in which matches have to be equal.
    bias_correction : bool, default=True
        Whether outcomes of matches are moved to the covariates of the row by linear regression.

    n_estimators : int, default=500
        Trees of a "causal_forest", rounded up to whole groups of ten. Intervals of rows need four, and more make them
        narrower: those of 500 are up to a quarter wider than those of thousands.
    min_samples_leaf : int, default=5
        Least rows in a leaf of its trees, of those that choose splits and of those that give the leaves their values.

    Attributes
    ----------
    effect_ : float
        The average effect.
    standard_error_ : float
    interval_ : tuple of two floats
        95% confidence interval.
    method_ : str
        The method, also where it was "auto".
    treatment_levels_ : tuple
        The two values of the treatment, control first; empty for a numeric one.
    propensity_ : ndarray of shape (n_samples,) or None
        Estimated probabilities of treatment, before clipping; NaN for rows of weight zero, None where the method has no
        model of them.
    weights_ : ndarray of shape (n_samples,) or None
        Weights of the rows under which the arms are compared, beside `sample_weight`; 0 for rows that are left out.
    trimmed_ : float
        The share of the rows that `trim` left out.
    certificate_ : Certificate
        That the estimating equation is solved, or that the covariates are balanced. It says nothing about confounders
        that were not measured.

    Notes
    -----
    Standard errors come from influence functions, for random samples of a population. With a logistic propensity those
    of "ipw" include its estimation; other propensity models are cross-fitted and taken as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import TreatmentEffect
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> treated = rng.random(2000) < 1 / (1 + np.exp(-X[:, 0]))
    >>> y = 2.0 * treated + 3.0 * X[:, 0] + rng.normal(size=2000)
    >>> naive = TreatmentEffect(method="difference").fit(X, y, treatment=treated)
    >>> model = TreatmentEffect(method="aipw", random_state=0).fit(X, y, treatment=treated)
    >>> round(naive.effect_, 1), round(model.effect_, 1)
    (4.5, 2.1)
    """

    _parameters: ClassVar[dict[str, Domain]] = {
        "estimand": Choice(*ESTIMANDS),
        "method": Choice("auto", *METHODS),
        "treatment_column": AnyOf(Integer(), Described("a name", lambda value: isinstance(value, str))),
        "outcome_model": OUTCOME,
        "propensity_model": PROPENSITY,
        "effect_model": EFFECT,
        "n_folds": Integer(2),
        "clip": Real(0, 0.5, inclusive=(True, False)),
        "trim": NoneOr(AnyOf(Choice("crump"), Real(0, 0.5, inclusive=(False, False)))),
        "stabilize": Boolean(),
        "n_strata": Integer(1),
        "distance": Choice("mahalanobis", "euclidean", "propensity", "genetic", "exact"),
        "n_neighbors": Integer(1),
        "replacement": Boolean(),
        "caliper": NoneOr(Real(0, inclusive=False)),
        "exact": NoneOr(Described("a list of columns", lambda value: isinstance(value, list | tuple))),
        "bias_correction": Boolean(),
        "n_estimators": Integer(2),
        "min_samples_leaf": Integer(1),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="causal", catalogue=("H1", "H2"), engines=("memory",), certificate="moment condition or imbalance"
    )
    _takes_sparse = True

    @stores_arguments(tol=1e-8, max_iter=100, random_state=0, n_jobs=None, verbose=0)
    def __init__(
        self,
        estimand: str = "ate",
        method: str = "auto",
        *,
        treatment_column: int | str = -1,
        outcome_model: Any = None,
        propensity_model: Any = None,
        effect_model: Any = None,
        n_folds: int = 5,
        clip: float = 0.01,
        trim: float | str | None = None,
        stabilize: bool = True,
        n_strata: int = 5,
        distance: str = "mahalanobis",
        n_neighbors: int = 1,
        replacement: bool = True,
        caliper: float | None = None,
        exact: list[int | str] | None = None,
        bias_correction: bool = True,
        n_estimators: int = 500,
        min_samples_leaf: int = 5,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    estimand: str
    method: str
    treatment_column: int | str
    outcome_model: Any
    propensity_model: Any
    n_folds: int
    clip: float
    trim: float | str | None
    stabilize: bool
    n_strata: int
    effect_model: Any
    distance: str
    replacement: bool
    tol: float
    max_iter: int
    random_state: Any
    n_jobs: int | None

    propensity_: np.ndarray | None
    weights_: np.ndarray | None

    @fitting
    def fit(self, X: Any, y: Any = None, treatment: Any = None, sample_weight: Any = None) -> Self:
        """Estimate the effect of `treatment` on y.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            The covariates, with the treatment among them where it is a column.
        y : array-like of shape (n_samples,)
            The outcome.
        treatment : array-like of shape (n_samples,) or str, optional
            Two values, of which the larger is the treatment, or numbers; the name of a column of a data frame X. By
            default the column `treatment_column` of X.
        """
        study, kept = self._study(X, y, treatment, sample_weight)
        self.method_ = self._chosen(study)
        options = Options(**{name: getattr(self, name) for name in _OPTIONS}, seed=seed_of(self.random_state))
        inside = np.ones(study.n_rows, dtype=bool)
        first = None
        with quiet():
            if self.trim is not None:
                first = propensity_scores(study, options)
                threshold = crump_threshold(first, study.w) if self.trim == "crump" else float(self.trim)
                inside = ~outside(first, threshold)
                if len(np.unique(study.t[inside])) < 2:
                    raise DataError(f"trim={self.trim!r}: no rows of both arms have propensities within the bounds")
            used = study.taken(inside)
            estimate = METHODS[self.method_].run(used, options)
        check_finite(estimate)
        self._take(estimate, study, used)
        self.trimmed_ = 1 - used.size / study.size
        self.propensity_, self.weights_ = _on_all_rows(estimate, first, inside, kept)
        self._check_overlap(study, used, estimate, first)
        facts: dict[str, Any] = {"effect": self.effect_, "standard_error": self.standard_error_, **estimate.facts}
        self._run.notices.extend(estimate.notices)
        self._conclude_directly(estimate.certificate, x=np.array([self.effect_]), objective=estimate.variance, **facts)
        return self

    # ---------------------------------------------------------------- data

    def _study(self, X: Any, y: Any, treatment: Any, sample_weight: Any) -> tuple[Study, np.ndarray]:
        """The study, and which of the rows given are in it."""
        self._column_ = None
        if treatment is None:
            treatment = self.treatment_column
        if isinstance(treatment, str):
            self._column_ = treatment
            X, treatment = split_frame(X, treatment)
        data = self._fit_data(X, y, sample_weight, target="numeric")
        if not isinstance(data, ArrayData):
            raise DataTypeError(f"X: {type(self).__name__} is fitted in memory, got {type(X).__name__}")
        covariates, names = data.X, self._names()
        if isinstance(treatment, int | np.integer):
            covariates, treatment, self._column_ = split_position(data.X, int(treatment))
            names.pop(self._column_)
        self._covariates_ = names
        kept = np.ones(data.n_rows, dtype=bool) if data.weight is None else data.weight > 0
        if np.shape(treatment)[:1] == kept.shape:
            treatment = np.asarray(treatment)[kept]
        t, levels = coded_treatment(treatment, int(kept.sum()))
        self.treatment_levels_ = levels
        w = np.ones(len(t)) if data.weight is None else data.weight[kept]
        outcome = np.asarray(data.y, dtype=np.float64)[kept]
        rows = covariates if kept.all() else covariates[kept]
        require_squares(rows, names)
        return Study(rows, t, outcome, w, levels, tuple(names), data.weight is not None), kept

    def _chosen(self, study: Study) -> str:
        """The method, checked against the treatment, the estimand and the arguments that were set."""
        method = self.method
        if method == "auto":
            by_estimand = {"ato": "ipw", "cate": "regression"}
            method = by_estimand.get(self.estimand, "aipw") if study.binary else "dml"
        known = METHODS[method]
        if not study.binary and not known.numeric:
            raise DataError(
                f"treatment: has {len(np.unique(study.t))} values; method={method!r} compares two. "
                "A numeric treatment is taken by method='dml'"
            )
        if self.estimand not in known.estimands:
            raise ParameterError(
                f"estimand={self.estimand!r}: method={method!r} estimates {', '.join(known.estimands)}"
            )
        if method == "matching" and self.estimand == "ate" and not self.replacement:
            raise ParameterError("replacement=False: matches without replacement estimate att or atc, not ate")
        if self.trim is not None and not study.binary:
            raise ParameterError(f"trim={self.trim!r}: a numeric treatment has no propensity score")
        uses = set(known.uses)
        if method == "matching":
            uses = {"distance"} if self.distance == "exact" else uses
            uses -= {"propensity_model"} if self.distance != "propensity" else set()
        uses |= {"propensity_model"} if self.trim is not None else set()
        for name, default in _METHOD_ARGUMENTS.items():
            value = getattr(self, name)
            if name not in uses and value is not default and value != default:
                raise ParameterError(f"{name}={value!r:.60}: method={method!r} does not use it")
        return method

    # ---------------------------------------------------------------- results

    def _take(self, estimate: Estimate, study: Study, used: Study) -> None:
        self.effect_ = estimate.effect
        self.standard_error_ = float(np.sqrt(estimate.variance))
        self.interval_ = self._interval(0.95)
        self._effects_ = estimate.model
        self._balance_ = balance_columns(used, estimate.weights) if study.binary else {}
        self._sizes_ = effective_sizes(used, estimate.weights) if study.binary else {"n": used.size}

    def _check_overlap(self, study: Study, used: Study, estimate: Estimate, first: np.ndarray | None) -> None:
        """Describe the propensities, and warn where rows have no counterpart."""
        self._overlap_ = None
        e, rows = (first, study) if first is not None else (estimate.propensity, used)
        if e is None:
            return
        self._overlap_ = overlap_facts(rows, e, crump_threshold(e, rows.w))
        if first is not None or "clip" not in METHODS[self.method_].uses:
            return
        far = {"att": e > 1 - self.clip, "atc": e < self.clip, "ato": np.zeros(len(e), dtype=bool)}
        here = far.get(self.estimand, outside(e, self.clip))
        share = float(rows.w @ here) / rows.size
        if e[rows.t == 1].min() > e[rows.t == 0].max() or here.all():
            raise DataError(
                "treatment: the covariates tell treated from control rows, no row has a counterpart in the other arm; "
                "leave out covariates that determine the treatment"
            )
        if self.clip > 0 and share > _WARN_ABOVE:
            where = overlap_facts(rows, e, self.clip)["region"]
            self._run.notices.append(
                OverlapWarning(
                    f"{share:.1%} of the rows have a propensity outside [{self.clip:g}, {1 - self.clip:g}], mostly "
                    f"where {where}; restrict the question to rows that overlap: trim='crump', or another estimand"
                )
            )


_OPTIONS = (
    *("estimand", "outcome_model", "propensity_model", "effect_model", "n_folds", "clip", "stabilize", "n_strata"),
    *("distance", "n_neighbors", "replacement", "caliper", "exact", "bias_correction"),
    *("n_estimators", "min_samples_leaf"),
    *("tol", "max_iter", "n_jobs"),
)
#: Arguments that only some methods use, and their defaults.
_METHOD_ARGUMENTS: dict[str, Any] = {
    "outcome_model": None,
    "propensity_model": None,
    "effect_model": None,
    "n_folds": 5,
    "clip": 0.01,
    "stabilize": True,
    "n_strata": 5,
    "distance": "mahalanobis",
    "n_neighbors": 1,
    "replacement": True,
    "caliper": None,
    "exact": None,
    "bias_correction": True,
    "n_estimators": 500,
    "min_samples_leaf": 5,
}


def _on_all_rows(
    estimate: Estimate, first: np.ndarray | None, inside: np.ndarray, kept: np.ndarray
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Propensities and weights in the order of the rows that were given."""
    places = np.flatnonzero(kept)
    e = w = None
    if estimate.propensity is not None or first is not None:
        e = np.full(len(kept), np.nan)
        if first is not None:
            e[places] = first
        if estimate.propensity is not None:
            e[places[inside]] = estimate.propensity
    if estimate.weights is not None:
        w = np.zeros(len(kept))
        w[places[inside]] = estimate.weights
    return e, w
