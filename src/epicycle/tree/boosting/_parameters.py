"""Parameters of gradient boosting: docstring entries, types and defaults, domains."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Annotated, Any

import numpy as np

from epicycle.core._arguments import SharedArguments, defaults_of
from epicycle.core._docs import entries_of
from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import AnyOf, Boolean, Choice, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.tree._parameters import (
    GROWTH_DOMAINS,
    TREE_DOCS,
    TREE_DOMAINS,
    Share,
    feature_groups,
    min_rows,
    monotone_signs,
)
from epicycle.tree.boosting._growth import Growth

# Rows of a leaf by default, where they are at most a tenth of all.
_LEAST_ROWS = 20

BOOSTING_DOCS: dict[str, str] = {
    **TREE_DOCS,
    "categorical_features": TREE_DOCS["categorical_features"]
    + "\n    A split names at most 16 levels, each with as many rows as a leaf must have; all others go together.",
    **entries_of(
        r"""learning_rate : float, default=0.1
    :math:`\eta`. Steps are shortened where they might not lower the training loss, and halved where they do not.
max_leaf_nodes : int or None, default=31
    Maximum number of leaves of a tree.
max_depth : int or None, default=None
    Maximum depth of a tree.
min_samples_leaf : int, float or "auto", default="auto"
    Minimum number of rows of a leaf, whatever their weights; a float is a share of the rows. "auto" is 20, and a
    tenth of the rows where there are fewer than 200.
min_samples_split : int or float, default=2
    Minimum number of rows of a node that is split. With `max_leaf_nodes`, smaller nodes that were split become leaves
    again when the tree is grown.
min_weight_fraction_leaf : float, default=0.0
    Minimum share of the weight of all rows in a leaf. With `sample_weight`, splits that leave less to a child are
    undone when the tree is grown.
min_impurity_decrease : float, default=0.0
    Minimum decrease, by a split, of the mean squared error of the tree as a fit of the working response.
ccp_alpha : float, default=0.0
    Cost of a leaf in minimal cost-complexity pruning of every tree, in units of that mean squared error.
min_child_weight : float, default=1e-3
    Minimum curvature H of a leaf.
l2_regularization : float, default=0.0
    :math:`\lambda`.
min_split_gain : float, default=0.0
    A split must gain more than this.
max_bins : int, default=255
    Maximum number of bins of a feature, beside one for missing values. Edges are quantiles of all rows, or of a sample
    of 200,000.
subsample : float, default=1.0
    Share of the rows that a tree is grown from, drawn anew for every round.
sampling : {"uniform", "gradient"}, default="uniform"
    Distribution of the drawn rows. "gradient": rows with larger gradients are more likely, and each is weighted by the
    inverse of its probability, so that sums are unbiased. It keeps the quality with fewer rows (0.2 or 0.3 of them)
    where most rows are fitted well.
max_features : int, float, "sqrt", "log2" or None, default=1.0
    Number of features that a tree may use, or their share, drawn anew for every round; None means all.
order : {1, 2}, default=2
    Derivatives of the loss that trees are grown from. 2: Newton steps, as above. 1: a tree is fitted to the negative
    gradient by least squares, and its leaves take the best constant for the loss itself.
criterion : {"squared_error", "friedman_mse", "deprecated"}, default="deprecated"
    Accepted for compatibility; the solution does not depend on it. Any value but the default gives a FutureWarning.
init : estimator, "zero" or None, default=None
    Where the scores start: the predictions of an estimator, which is fitted first (for rows in memory), zero, or the
    best constant.
categorical_smoothing : float, default=20.0
    Added to the curvature of levels when they are ordered, and to :math:`\lambda` in the gain of such splits.
n_iter_no_change : int, optional
    Stop after a round whose loss of the validation set is not below the largest of so many rounds before it. All rounds
    up to there are kept.
validation_fraction : float, default=0.1
    Share of the rows that is held out as validation set, where `fit` is given no `X_val`: class by class, and up to a
    million rows those that ``train_test_split`` of scikit-learn draws with the same `random_state`.
keep_best : bool, default=False
    Whether early stopping counts from the best round: the fit then ends after `n_iter_no_change` rounds that do not
    lower the smallest loss of the validation set, by more than `tol` relative to it, and the rounds after that are
    dropped. Classes of a single row, which are refused otherwise, are then learnt from and not held out.
tol : float, default=1e-4
    Smallest decrease of the validation loss that counts, in the units of `train_score_`.
warm_start : bool, default=False
    Whether another `fit` adds rounds to the earlier ones, up to `n_estimators`.
random_state : int, Generator, RandomState or None, default=None
    Seed of the samples of rows and features, of the validation set, and of the rows that bins are made of where there
    are more than 200,000.
verbose : int, default=0
    With 1 a table on standard output has the training loss of some rounds and the time that remains, with 2 of all.
    Every round is logged."""
    ),
    "boosting_attributes": """trees_ : dict of ndarray
    The trees as arrays; see :mod:`epicycle.tree._ensemble`.
n_estimators_ : int
    Number of rounds that were kept. Rounds in which no split gains add trees of a single leaf, of value zero.
n_trees_per_iteration_ : int
    Trees of a round: one for each class where there are more than two.
train_score_ : ndarray of shape (n_estimators_,)
    Training loss after each round, as scikit-learn counts it: twice the mean loss for squared error and two classes.
oob_scores_, oob_improvement_ : ndarray of shape (n_estimators_,)
    The same loss of the rows that the round did not draw, after it, and how much the round lowered it; with
    `subsample` < 1 and uniform sampling in memory. Zero for rounds of an earlier fit without.
oob_score_ : float
    The last of `oob_scores_`.
estimators_ : ndarray of shape (n_estimators_, n_trees_per_iteration_)
    The trees as fitted regression trees, made anew on every access. Their impurities are not known (NaN).
init_ : estimator
    The fitted `init`, where it is an estimator.
max_features_ : int
    Number of features that a tree may use.
%(boosting_evidence)s""",
    "interaction_cst": """interaction_cst : {"pairwise", "no_interactions"} or list of groups of features, optional
    Features that share no group never occur on the same path; features in none of the groups form one more. The names
    stand for all pairs, and for every feature alone.""",
    "boosting_evidence": """%(categories_)s
feature_importances_ : ndarray of shape (n_features,)
    Share of every feature in the gain of the splits.
certificate_ : Certificate
    None: boosting is greedy. Its value is the largest rise of the training loss in any round.
history_ : History
    After every round the mean training loss, that of the validation set (``validation``), leaves, step and seconds.""",
    "monitor": "monitor : callable, optional\n"
    "    Called after every round as ``monitor(round, self, locals)``, with rounds counted from 0; True ends the fit.",
    "X_val": "X_val : as X, optional\n"
    "    Rows of a validation set, possibly of another kind than X. Its loss is recorded after every round, and\n"
    "    with `n_iter_no_change` ends the fit; it takes the place of `validation_fraction`.",
    "y_val": "y_val : as y, optional\n    Targets of the validation set.",
    "sample_weight_val": "sample_weight_val : as sample_weight, optional\n    Weights of the validation set.",
}


class BoostingArguments(SharedArguments, total=False):
    """Arguments of the constructors of gradient boosting, with their defaults."""

    learning_rate: Annotated[float, 0.1]
    n_estimators: Annotated[int, 100]
    max_leaf_nodes: Annotated[int | None, 31]
    max_depth: Annotated[int | None, None]
    min_samples_leaf: Annotated[float | str, "auto"]
    min_samples_split: Annotated[float, 2]
    min_weight_fraction_leaf: Annotated[float, 0.0]
    min_impurity_decrease: Annotated[float, 0.0]
    ccp_alpha: Annotated[float, 0.0]
    min_child_weight: Annotated[float, 1e-3]
    l2_regularization: Annotated[float, 0.0]
    min_split_gain: Annotated[float, 0.0]
    max_bins: Annotated[int, 255]
    subsample: Annotated[float, 1.0]
    sampling: Annotated[str, "uniform"]
    max_features: Annotated[float | str | None, 1.0]
    order: Annotated[int, 2]
    criterion: Annotated[str, "deprecated"]
    init: Annotated[Any, None]
    categorical_features: Annotated[Any, "from_dtype"]
    categorical_smoothing: Annotated[float, 20.0]
    handle_unknown: Annotated[str, "missing"]
    monotonic_cst: Annotated[Any, None]
    interaction_cst: Annotated[Any, None]
    n_iter_no_change: Annotated[int | None, None]
    validation_fraction: Annotated[float, 0.1]
    keep_best: Annotated[bool, False]


BOOSTING_DEFAULTS: Mapping[str, Any] = defaults_of(
    BoostingArguments, tol=1e-4, warm_start=False, random_state=None, n_jobs=None, verbose=0
)

BOOSTING_DOMAINS: dict[str, Domain] = {
    **TREE_DOMAINS,
    "learning_rate": Real(0, inclusive=False),
    "n_estimators": Integer(1),
    "max_leaf_nodes": NoneOr(Integer(2)),
    "max_depth": NoneOr(Integer(1)),
    "min_samples_leaf": AnyOf(Integer(1), Share(0, 1, inclusive=False), Choice("auto")),
    "min_samples_split": GROWTH_DOMAINS["min_samples_split"],
    "min_impurity_decrease": Real(0),
    "min_weight_fraction_leaf": GROWTH_DOMAINS["min_weight_fraction_leaf"],
    "ccp_alpha": GROWTH_DOMAINS["ccp_alpha"],
    "criterion": Choice("squared_error", "friedman_mse", "deprecated"),
    "init": NoneOr(AnyOf(Choice("zero"), InstanceOf(object))),
    "min_child_weight": Real(0),
    "l2_regularization": Real(0),
    "min_split_gain": Real(0),
    "max_bins": Integer(2, 255),
    "subsample": Real(0, 1, inclusive=(False, True)),
    "sampling": Choice("uniform", "gradient"),
    "max_features": GROWTH_DOMAINS["max_features"],
    "order": Integer(1, 2),
    "categorical_smoothing": Real(0),
    "interaction_cst": NoneOr(AnyOf(Choice("pairwise", "no_interactions"), InstanceOf(list, tuple))),
    "n_iter_no_change": NoneOr(Integer(1)),
    "validation_fraction": Real(0, 1, inclusive=False),
    "keep_best": Boolean(),
    "tol": Real(0),
}


def interaction_groups(asked: Any, p: int) -> Any:
    """Groups of features that may interact, by names or numbers; "pairwise" and "no_interactions" spelt out."""
    if isinstance(asked, str):
        return list(combinations(range(p), min(2 if asked == "pairwise" else 1, p)))
    for group in asked or ():
        if not isinstance(group, list | tuple | set | frozenset | np.ndarray):
            raise ParameterError(
                f"interaction_cst: Interaction constraints must be a sequence of tuples or lists, got: {asked!r:.80}"
            )
        for feature in group:
            if isinstance(feature, str):
                continue
            if not isinstance(feature, int | np.integer) or not 0 <= feature < p:
                raise ParameterError(
                    "interaction_cst: Interaction constraints must consist of integer indices in [0, n_features - 1] = "
                    f"[0, {p - 1}], specifying the position of features, or of names; got {feature!r}"
                )
    return asked


def growth_of(model: Any, edges: list[np.ndarray], n_rows: int | None) -> Growth:
    """The rules of growth that the parameters of a model say, for these bins and so many rows."""
    p = len(edges)
    least, split = model.min_samples_leaf, model.min_samples_split
    if n_rows is None and any(isinstance(value, float) for value in (least, split)):
        raise ParameterError(
            "min_samples_leaf, min_samples_split: a share needs data whose rows are counted; give a number of rows"
        )
    if least == "auto":
        least = _LEAST_ROWS if n_rows is None else max(1, min(_LEAST_ROWS, n_rows // 10))
    categorical = np.zeros(p, np.uint8)
    categorical[list(model.categories_)] = 1
    names = getattr(model, "feature_names_in_", None)
    return Growth(
        n_bins=np.array([len(e) + 1 for e in edges], np.int32),
        categorical=categorical,
        max_leaf_nodes=model.max_leaf_nodes or 0,
        max_depth=model.max_depth or 0,
        min_samples_leaf=min_rows(float(least) if isinstance(least, float) else int(least), n_rows or 0, 1),
        min_samples_split=min_rows(split, n_rows or 0, 2),
        min_decrease=float(model.min_impurity_decrease),
        min_weight_fraction=float(getattr(model, "min_weight_fraction_leaf", 0.0)),  # some classes have none
        ccp_alpha=float(model.ccp_alpha),
        min_child_weight=float(model.min_child_weight),
        l2=float(model.l2_regularization),
        min_gain=float(model.min_split_gain),
        smoothing=float(model.categorical_smoothing),
        monotone=monotone_signs(model.monotonic_cst, p, names, categorical, type(model).__name__, boosting=True),
        groups=feature_groups(interaction_groups(model.interaction_cst, p), p, names),
    )
