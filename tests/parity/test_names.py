"""Every parameter, method and fitted attribute of the scikit-learn class of the same name."""

import inspect
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import all_estimators, get_tags
from sklearn.utils._param_validation import Interval, Options

import epicycle

THEIRS = dict(all_estimators())
SHARED = sorted(set(THEIRS) & set(epicycle.__all__))

#: Parameters that a class cannot be built without, or that make fitted attributes appear.
ARGUMENTS = {
    "StackingClassifier": {"estimators": [("tree", DecisionTreeClassifier(max_depth=2))]},
    "StackingRegressor": {"estimators": [("line", LinearRegression())]},
    "VotingClassifier": {"estimators": [("tree", DecisionTreeClassifier(max_depth=2))]},
    "VotingRegressor": {"estimators": [("line", LinearRegression())]},
    **{
        f"{kind}{what}": {"oob_score": True, "bootstrap": True}
        for kind in ("RandomForest", "ExtraTrees", "Bagging")
        for what in ("Classifier", "Regressor")
    },
    "SparseCoder": {"dictionary": np.eye(4)},
}

#: Parameters that make attributes appear of which the docstring speaks.
MORE_ARGUMENTS = {
    **{name: {"compute_distances": True} for name in ("AgglomerativeClustering", "FeatureAgglomeration")},
    **{f"GradientBoosting{kind}": {"subsample": 0.5} for kind in ("Classifier", "Regressor")},
    "HDBSCAN": {"store_centers": "both"},
    "KernelPCA": {"fit_inverse_transform": True},
    **{f"{kind}DiscriminantAnalysis": {"store_covariance": True} for kind in ("Linear", "Quadratic")},
    **{name: {"kernel": "linear"} for name in ("SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM")},
    **{name: {"store_cv_results": True, "alphas": (0.1, 1.0, 10.0)} for name in ("RidgeCV", "RidgeClassifierCV")},
    "LogisticRegressionCV": {"use_legacy_attributes": False},
}

#: Parameters that ours do without, with the reason.
NOT_TAKEN = {("NuSVC", "class_weight"): "scikit-learn ignores it, and its own checks ask that weights have an effect"}

LINEAR = (
    *("ARDRegression", "BayesianRidge", "ElasticNet", "ElasticNetCV", "GammaRegressor", "HuberRegressor", "Lasso"),
    *("LassoCV", "LinearRegression", "LinearSVC", "LinearSVR", "LogisticRegression", "LogisticRegressionCV"),
    *("MultiTaskElasticNet", "MultiTaskElasticNetCV", "MultiTaskLasso", "MultiTaskLassoCV", "PoissonRegressor"),
    *("Ridge", "RidgeClassifier", "TheilSenRegressor", "TweedieRegressor"),
)
LOGISTIC = ("LogisticRegression", "LogisticRegressionCV")
GLMS = ("GammaRegressor", "PoissonRegressor", "TweedieRegressor")
BOOSTING = ("GradientBoostingClassifier", "GradientBoostingRegressor")
PATHS = ("ElasticNetCV", "LassoCV", "MultiTaskElasticNetCV", "MultiTaskLassoCV")

#: Parameters with another default, and the classes; docs/methods/solver_names.rst has the reasons.
OTHER_DEFAULTS = {
    "tol": (*LINEAR, "KernelPCA"),
    "max_iter": (
        *(*LOGISTIC, *GLMS, "HuberRegressor", "Ridge", "RidgeClassifier"),
        *("LassoLars", "LatentDirichletAllocation"),
    ),
    "max_doc_update_iter": ("LatentDirichletAllocation",),
    "solver": (*LOGISTIC, *GLMS, "QuantileRegressor"),
    "algorithm": ("KMeans",),
    "method": ("TSNE",),
    "n_iter": ("TruncatedSVD",),
    "init": ("MDS",),
    "random_state": ("NuSVC", "SVC"),
    "alphas": (*PATHS, "RidgeCV", "RidgeClassifierCV"),
    **{name: BOOSTING for name in ("min_samples_leaf", "max_depth", "max_features", "max_leaf_nodes")},
    "alpha": ("GaussianProcessRegressor", "GradientBoostingRegressor"),
    "optimizer": ("GaussianProcessClassifier", "GaussianProcessRegressor"),
    "multi_class": ("GaussianProcessClassifier",),
    "penalty": LOGISTIC,
    **{name: ("LogisticRegressionCV",) for name in ("l1_ratios", "scoring", "use_legacy_attributes")},
    "copy": ("HDBSCAN",),
    "estimators": ("StackingClassifier", "StackingRegressor", "VotingClassifier", "VotingRegressor"),
    "dictionary": ("SparseCoder",),
}

#: Fitted attributes and methods that ours do without, with the reason.
NOT_HERE = {
    "init_": (
        "exists where `init` names an estimator; otherwise boosting starts at a constant",
        ("GradientBoostingClassifier", "GradientBoostingRegressor"),
    ),
    "eps_": (
        "the tolerance is relative to the objective of w = 0, and stands in the certificate",
        ("MultiTaskLasso", "MultiTaskElasticNet"),
    ),
    "path": (
        "lasso_path and enet_path fit several targets one by one",
        ("MultiTaskLasso", "MultiTaskElasticNet", "MultiTaskLassoCV", "MultiTaskElasticNetCV"),
    ),
    "random_state_": (
        "each piece of work has a stream of its own, named by the seed; no generator is left over",
        ("LatentDirichletAllocation",),
    ),
    "t_": ("rows that were seen: n_iter_ times those of an epoch", ("MLPClassifier", "MLPRegressor")),
    "one_hot_encoder_": ("indicators are written from the numbers of the leaves", ("RandomTreesEmbedding",)),
}

#: Fitted attributes of another form, with the reason.
OTHER_FORM = {
    ("ARDRegression", "scores_"): "an array in place of a list",
    ("BayesianRidge", "scores_"): "an array in place of a list",
    ("DictionaryLearning", "error_"): "an array in place of a list",
    ("OneClassSVM", "offset_"): "a number, as it is documented there",
    ("Ridge", "n_iter_"): "every fit here counts its iterations",
    ("RidgeClassifier", "n_iter_"): "every fit here counts its iterations",
    **{(name, "active_"): "an array in place of a list" for name in ("Lars", "LarsCV", "LassoLars", "LassoLarsCV")},
}

#: Of every class, and described in the guide.
OF_ALL = ("n_features_in_", "feature_names_in_")

#: Values that scikit-learn lists and ours refuse, with the reason; it does not answer for most of them either.
REFUSED = {
    ("tol", 0.0): "no computation in floating point reaches a tolerance of zero",
    ("gamma", 0.0): "the kernel would be the same for all pairs of rows",
    ("learning_rate", 0.0): "no tree would have an effect",
    ("alpha_init", 0.0): "a precision of zero is a variance without bound",
    ("lambda_init", 0.0): "a precision of zero is a variance without bound",
    ("noise_variance", 0.0): "the criteria divide by it",
    ("alpha", 0.0): "the inverse of a singular kernel matrix would be taken",
    ("doc_topic_prior", 0.0): "a Dirichlet distribution has positive parameters",
    ("topic_word_prior", 0.0): "a Dirichlet distribution has positive parameters",
    ("validation_fraction", 0.0): "nothing would be held out",
    ("kernel", "additive_chi2"): "no Mercer kernel: negative values on the diagonal are none of an inner product",
    ("metric", "wminkowski"): "scikit-learn refuses it at fit",
    (
        "metric",
        "matching",
    ): "hamming distances of booleans; most of scikit-learn's classes refuse it at fit",
    ("p", 0.0): "scikit-learn refuses it at fit",
    ("n_neighbors", None): "scikit-learn refuses it at fit or when it predicts",
    ("radius", None): "scikit-learn refuses it when it predicts, or finds no neighbours",
    ("max_iter", None): "scikit-learn refuses it at fit",
    ("max_iter", 0): "nothing would be fitted",
    ("max_doc_update_iter", 0): "nothing would be fitted",
}
MAX_ITER = {
    0: ["DictionaryLearning", "LatentDirichletAllocation"],
    None: ["ElasticNet", "Lasso", "MultiTaskElasticNet", "MultiTaskLasso"],
}


def listed(constraint):
    """The values that a constraint of scikit-learn names: options, None, and closed ends of intervals."""
    if isinstance(constraint, Options):
        return sorted(constraint.options, key=str)
    if constraint is None:
        return [None]
    if constraint == "boolean":
        return [True, False]
    if not isinstance(constraint, Interval):
        return []
    number = int if constraint.type.__name__ == "Integral" else float
    ends = [constraint.left] * (constraint.closed in ("left", "both"))
    ends += [constraint.right] * (constraint.closed in ("right", "both"))
    return [number(end) for end in ends if end is not None and np.isfinite(end)]


def documented(model):
    """Public methods and properties of the class, and fitted attributes, which end in an underscore."""
    attributes = {name for name in vars(model) if name.endswith("_")}
    methods = {name for name in dir(type(model)) if not isinstance(getattr(type(model), name), str | bool | int | dict)}
    return {name for name in attributes | methods if not name.startswith("_") and has(model, name)}


def in_the_docstring(cls):
    """Fitted attributes that the docstring of a class lists."""
    section = re.search(
        r"^Attributes\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}\n|\Z)", inspect.getdoc(cls), re.DOTALL | re.MULTILINE
    )
    heads = re.findall(r"^(\w+(?:, \w+)*) ?:", section[1], re.MULTILINE) if section else []
    return [name for head in heads for name in head.split(", ") if name.endswith("_")]


def form(value):
    """What code that reads an attribute relies on: shape and kind of an array, a number, or another object."""
    if isinstance(value, bool | int | float | np.number):
        return "number"
    return f"array {value.shape}" if isinstance(value, np.ndarray) else "list" if isinstance(value, list) else "object"


def fitted(cls, name, frame=False, **arguments):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.1, 1.0, size=(60, 4))
    arguments = {**ARGUMENTS.get(name, {}), **arguments}
    y = X @ [1.0, -1.0, 2.0, 0.5] + 3 + rng.normal(scale=0.1, size=60)
    if name.startswith("MultiTask"):
        y = np.column_stack([y, 2 * y])
    if is_classifier(getattr(epicycle, name)(**ARGUMENTS.get(name, {}))):
        y = (y > np.median(y)).astype(int)
    if name == "CategoricalNB":
        X = (X > 0.5).astype(int)
    if not get_tags(getattr(epicycle, name)(**ARGUMENTS.get(name, {}))).input_tags.two_d_array:
        X = ["one document", "another document"]
    elif frame:
        X = pd.DataFrame(X, columns=list("abcd"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cls(**arguments).fit(X, y)


def has(model, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return hasattr(model, name)
        except NotFittedError:
            return False


def test_there_are_shared_names():
    assert len(SHARED) >= 79


@pytest.mark.parametrize("name", SHARED)
def test_parameters(name):
    theirs = inspect.signature(THEIRS[name]).parameters
    ours = inspect.signature(getattr(epicycle, name)).parameters
    assert [p for p in theirs if p not in ours and (name, p) not in NOT_TAKEN] == []
    # Arguments that may be given by place are given in the same places.
    placed = [p.name for p in theirs.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert [p.name for p in ours.values() if p.kind is p.POSITIONAL_OR_KEYWORD][: len(placed)] == placed


def same_default(theirs, ours):
    if isinstance(theirs, bool | str | None) or isinstance(ours, bool | str | None):
        return theirs is ours or theirs == ours
    return ours == theirs if not isinstance(theirs, float) else ours == pytest.approx(theirs, rel=0.01)


@pytest.mark.parametrize("name", SHARED)
def test_defaults(name):
    theirs = inspect.signature(THEIRS[name]).parameters
    ours = inspect.signature(getattr(epicycle, name)).parameters
    other = {p for p in theirs if p in ours and not same_default(theirs[p].default, ours[p].default)}
    assert other == {p for p, names in OTHER_DEFAULTS.items() if name in names}


def test_other_defaults_are_told():
    page = (Path(__file__).resolve().parents[2] / "docs" / "methods" / "solver_names.rst").read_text(encoding="utf-8")
    told = page.partition("Other defaults")[2]
    assert [p for p in OTHER_DEFAULTS if f"``{p}" not in told] == []


@pytest.mark.parametrize("name", SHARED)
def test_values_of_parameters(name):
    domains, given = getattr(epicycle, name)._parameters, {}
    for parameter, constraints in THEIRS[name]._parameter_constraints.items():
        if parameter in domains and not isinstance(constraints, str):
            given[parameter] = [value for constraint in constraints for value in listed(constraint)]
    refused = [(p, value) for p, values in given.items() for value in values if not domains[p].accepts(value)]
    assert [entry for entry in refused if entry not in REFUSED] == []
    assert [value for p, value in refused if p == "max_iter" and name not in MAX_ITER[value]] == []


@pytest.mark.parametrize("name", SHARED)
def test_methods_and_fitted_attributes(name):
    theirs, ours = fitted(THEIRS[name], name), fitted(getattr(epicycle, name), name)
    excused = {entry for entry, (_, names) in NOT_HERE.items() if name in names}
    missing = {entry for entry in documented(theirs) if not has(ours, entry)}
    assert sorted(missing - excused) == []
    assert excused <= missing, "a row of NOT_HERE that is not needed any more"


@pytest.mark.parametrize("name", SHARED)
def test_attributes_of_the_docstring(name):
    arguments, cls = MORE_ARGUMENTS.get(name, {}), getattr(epicycle, name)
    theirs, ours = fitted(THEIRS[name], name, True, **arguments), fitted(cls, name, True, **arguments)
    listed_there = in_the_docstring(THEIRS[name])
    excused = {entry for entry, (_, names) in NOT_HERE.items() if name in names}
    assert [entry for entry in listed_there if not has(ours, entry) and entry not in excused] == []
    both = [entry for entry in listed_there if has(ours, entry) and has(theirs, entry)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of attributes that scikit-learn will drop
        other = {entry for entry in both if form(getattr(ours, entry)) != form(getattr(theirs, entry))}
    assert other == {entry for named, entry in OTHER_FORM if named == name}
    text = inspect.getdoc(cls)
    assert [entry for entry in both if not re.search(rf"\b{entry}\b", text) and entry not in OF_ALL] == []
