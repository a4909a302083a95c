"""Parameters that all forests share: docstring entries and domains."""

from __future__ import annotations

from epicycle.core._parameters import AnyOf, Boolean, Callable, Domain, Integer, NoneOr, Real
from epicycle.tree._parameters import GROWTH_DOCS, GROWTH_DOMAINS

FOREST_DOCS = {
    **GROWTH_DOCS,
    "n_estimators": "n_estimators : int, default={default}\n    Number of trees.",
    "bootstrap": "bootstrap : bool, default={default}\n    Whether every tree is grown on rows drawn with replacement.",
    "max_samples": "max_samples : int, float or None, default={default}\n"
    "    Number of rows drawn for a tree with `bootstrap`, or their share; None means as many as there are.",
    "oob_score": "oob_score : bool or callable, default={default}\n"
    "    Whether to predict every row by the trees that did not see it. A function ``(y, prediction) -> float``\n"
    "    gives `oob_score_`; of classifiers it gets numbers of classes, as positions in `classes_`.",
    "max_bins": "max_bins : int or None, default={default}\n"
    "    Maximum number of bins of a feature, with edges at quantiles; None tries every distinct number, which is\n"
    "    slower. Absolute error always does, and very sparse matrices.",
    "warm_start": "warm_start : bool, default={default}\n"
    "    Whether another `fit` adds trees to the earlier ones, up to `n_estimators`.",
    "random_state": "random_state : int, Generator, RandomState or None, default={default}\n"
    "    Seed of the samples of rows, features and thresholds.",
    "forest_attributes": "trees_ : dict of ndarray\n"
    "    The trees as arrays; see :mod:`epicycle.tree.forest._arrays`. ``tree(t)`` gives one as a decision tree.\n"
    "estimators_ : list\n"
    "    All trees as fitted decision trees, made anew on every access.\n"
    "estimator_ : decision tree\n"
    "    A tree of the forest before its fit.\n"
    "n_outputs_ : int\n"
    "    Number of columns of the target.\n"
    "estimators_samples_ : list of ndarray\n"
    "    Numbers of the rows that each tree was grown on, with their repetitions.\n"
    "%(categories_)s\n"
    "feature_importances_ : ndarray of shape (n_features,)\n"
    "    Share of every feature in the decrease of impurity, as the mean over trees.\n"
    "%(target_attributes)s\n"
    "certificate_ : Certificate\n"
    "    None: trees are greedy. It states among which splits each is the best.\n"
    "history_ : History\n"
    "    After every tree its leaves and depth, and as objective the out-of-bag error so far (with `oob_score`)\n"
    "    or the mean impurity of its leaves.",
}

FOREST_DOMAINS: dict[str, Domain] = {
    **GROWTH_DOMAINS,
    "n_estimators": Integer(1),
    "bootstrap": Boolean(),
    "max_samples": NoneOr(AnyOf(Integer(1), Real(0, inclusive=False))),
    "oob_score": AnyOf(Boolean(), Callable()),
    "max_bins": NoneOr(Integer(2, 255)),
}
