"""Candidates of the search: a table of methods, each with starting values and a search space.

A new method is added by a new row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.preprocessing import StandardScaler

from epicycle.core._exceptions import ParameterError
from epicycle.gp import GaussianProcessClassifier, GaussianProcessRegressor
from epicycle.kernel import KernelLogisticRegression, KernelRidge
from epicycle.linear import (
    ElasticNetCV,
    GeneralizedLinearModel,
    LogisticRegression,
    QuantileRegressor,
    RidgeCV,
    SGDClassifier,
)
from epicycle.neighbors import KNeighborsClassifier, KNeighborsRegressor
from epicycle.svm import SVC
from epicycle.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)


@dataclass(frozen=True)
class Axis:
    """Range of a hyperparameter: on a logarithmic or linear scale, integer or not, or a set of choices."""

    low: float = 0.0
    high: float = 1.0
    log: bool = False
    whole: bool = False
    choices: tuple[Any, ...] = ()

    def draw(self, rng: np.random.Generator) -> Any:
        if self.choices:
            return self.choices[int(rng.integers(len(self.choices)))]
        return self._at(float(rng.random()))

    def near(self, value: Any, rng: np.random.Generator, step: float) -> Any:
        if self.choices:
            return self.draw(rng) if rng.random() < step else value
        return self._at(float(np.clip(self._place(value) + step * rng.normal(), 0.0, 1.0)))

    def _place(self, value: float) -> float:
        if self.log:
            return float(np.log(value / self.low) / np.log(self.high / self.low))
        return float((value - self.low) / (self.high - self.low))

    def _at(self, u: float) -> Any:
        value = self.low * (self.high / self.low) ** u if self.log else self.low + (self.high - self.low) * u
        # Three digits are enough for a search, and are readable in the leaderboard and in train.py.
        return round(value) if self.whole else float(f"{value:.3g}")


@dataclass(frozen=True)
class Family:
    """A method: its constructor, the data that it suits, its starting values and its search space.

    form : encoding of its features, "trees", "linear", "compact" with factors of texts in the place of their terms, or
        "even" with one scale for all numbers.
    grows : exponent of rows in the time of a fit.
    rounds : whether the number of trees is found by early stopping where there are enough rows.
    target : "standard" where the fit depends on the unit of the target, which is then standardised before it; "log"
        where the logarithm of 1 + y is fitted.
    readable : whether a person can follow its predictions where its trees have few leaves; linear models are readable.
    """

    name: str
    task: str
    make: Callable[..., Any]
    form: str
    starts: tuple[Mapping[str, Any], ...]
    space: Mapping[str, Axis] = field(default_factory=dict)
    most_rows: int = 10**9
    grows: float = 1.0
    rounds: bool = False
    takes_weight: bool = True
    target: str = ""
    suits: Callable[[Any], bool] = lambda _: True
    readable: bool = False


@dataclass(frozen=True)
class Candidate:
    """A method with its hyperparameters."""

    family: Family
    settings: Mapping[str, Any]

    @property
    def name(self) -> str:
        settings = ", ".join(f"{key}={value!r}" for key, value in self.settings.items())
        return f"{self.family.name}({settings})"

    def build(self, seed: int, **more: Any) -> Any:
        """The estimator, with a fixed seed where it draws."""
        estimator = self.family.make(**self.settings)
        known = estimator.get_params(deep=False)
        if "random_state" in known:
            more = {"random_state": seed, **more}
        estimator.set_params(**{name: value for name, value in more.items() if name in known})
        if self.family.target == "standard":
            return TransformedTargetRegressor(estimator, transformer=StandardScaler(), check_inverse=False)
        if self.family.target == "log":
            return TransformedTargetRegressor(estimator, func=np.log1p, inverse_func=np.expm1, check_inverse=False)
        return estimator

    def seeded(self, seed: int) -> dict[str, Any]:
        """The hyperparameters, with the seed where the method draws."""
        settings = dict(self.settings)
        draws = "random_state" in self.family.make(**settings).get_params(deep=False)
        return {**settings, "random_state": seed} if draws else settings

    @property
    def is_readable(self) -> bool:
        """Whether a person can follow the predictions: a linear model, a sum of functions of one column, a small tree.

        A tree of up to 16 leaves fits on a page.
        """
        if self.family.form == "linear":
            return True
        leaves = self.settings.get("max_leaf_nodes")
        return self.family.readable and leaves is not None and int(leaves) <= _READABLE_LEAVES


#: Leaves of a tree that can be read.
_READABLE_LEAVES = 16
_LEAVES = Axis(4, 256, log=True, whole=True)
_FEW = Axis(1, 64, log=True, whole=True)
_BOOST_SPACE = {
    "learning_rate": Axis(0.01, 0.3, log=True),
    "max_leaf_nodes": _LEAVES,
    "min_samples_leaf": Axis(2, 128, log=True, whole=True),
    "l2_regularization": Axis(1e-3, 30.0, log=True),
    "subsample": Axis(0.5, 1.0),
    "max_features": Axis(0.3, 1.0),
}
_BOOST = ("learning_rate", "max_leaf_nodes", "min_samples_leaf", "l2_regularization", "subsample", "max_features")
_BOOST_STARTS = tuple(
    dict(zip(_BOOST, values, strict=True))
    for values in (
        (0.1, 31, 20, 0.1, 1.0, 1.0),
        (0.05, 15, 10, 1.0, 0.8, 0.7),
        (0.1, 6, 10, 1.0, 0.8, 0.7),
        (0.05, 100, 20, 5.0, 0.8, 0.5),
    )
)
_ADDITIVE_STARTS = tuple(
    {"learning_rate": rate, "max_leaf_nodes": 2, "min_samples_leaf": leaf, "l2_regularization": 1.0}
    for rate, leaf in ((0.1, 10), (0.3, 5))
)
_ADDITIVE_SPACE = {name: _BOOST_SPACE[name] for name in ("learning_rate", "min_samples_leaf", "l2_regularization")}
_FOREST_STARTS = ({"n_estimators": 200, "min_samples_leaf": 1}, {"n_estimators": 200, "min_samples_leaf": 5})
_MANY = Axis(100, 500, log=True, whole=True)
_FOREST_SPACE = {"min_samples_leaf": _FEW, "max_features": Axis(0.1, 1.0), "n_estimators": _MANY}
_TREE_STARTS = ({"max_leaf_nodes": 8, "min_samples_leaf": 5}, {"max_leaf_nodes": 32, "min_samples_leaf": 10})
_TREE_SPACE = {"max_leaf_nodes": _LEAVES, "min_samples_leaf": _FEW}
_KNN_STARTS = ({"n_neighbors": 5}, {"n_neighbors": 15, "weights": "distance"})
_KNN_SPACE = {"n_neighbors": Axis(1, 100, log=True, whole=True), "weights": Axis(choices=("uniform", "distance"))}

_TABLE = (
    # Terms of texts are many and of small weight: less shrinkage. Of many classes stochastic steps are the fastest.
    Family("SGDClassifier", "classification", SGDClassifier, "linear",
           tuple({"loss": "log_loss", "alpha": alpha} for alpha in (3e-6, 3e-5)),
           {"alpha": Axis(1e-7, 1e-3, log=True)}, suits=lambda facts: facts.texts),
    Family("LogisticRegression for texts", "classification", LogisticRegression, "linear",
           ({"C": 30.0, "tol": 1e-4}, {"C": 3.0, "tol": 1e-4}), {"C": Axis(1e-1, 1e3, log=True)},
           suits=lambda facts: facts.texts),
    # Linear models come first: they are fast, and a reference for the others.
    Family("LogisticRegression", "classification", LogisticRegression, "linear",
           ({"C": 1.0}, {"C": 0.05}, {"C": 0.1, "l1_ratio": 1.0}),
           {"C": Axis(1e-4, 1e3, log=True), "l1_ratio": Axis(choices=(0.0, 1.0))}),
    Family("RidgeCV", "regression", RidgeCV, "linear", ({},)),
    # Pixels, or readings of one instrument: distances between rows count every column by its own size.
    Family("KernelLogisticRegression of one scale", "classification", KernelLogisticRegression, "even",
           ({"C": 3000.0}, {"C": 30.0}), {"C": Axis(1e-1, 1e6, log=True), "gamma": Axis(1e-4, 1.0, log=True)},
           most_rows=1_500, grows=2.5, suits=lambda facts: facts.alike),
    Family("SVC of one scale", "classification", SVC, "even", ({"C": 5.0, "probability": "platt"},),
           {"C": Axis(1e-2, 1e3, log=True), "gamma": Axis(1e-4, 1.0, log=True)}, most_rows=10_000, grows=2.0,
           suits=lambda facts: facts.alike),
    Family("KNeighbors of one scale", "classification", KNeighborsClassifier, "even", _KNN_STARTS[::-1], _KNN_SPACE,
           most_rows=50_000, grows=1.8, takes_weight=False, suits=lambda facts: facts.alike),
    Family("KernelRidge of one scale", "regression", KernelRidge, "even",
           ({"kernel": "rbf", "alpha": 0.1, "fit_intercept": True},),
           {"alpha": Axis(1e-4, 1e2, log=True), "gamma": Axis(1e-4, 1.0, log=True)}, most_rows=3_000, grows=2.5,
           suits=lambda facts: facts.alike),
    Family("GradientBoosting", "classification", GradientBoostingClassifier, "trees", _BOOST_STARTS,
           _BOOST_SPACE, grows=0.8, rounds=True),
    Family("GradientBoosting", "regression", GradientBoostingRegressor, "trees", _BOOST_STARTS,
           _BOOST_SPACE, grows=0.8, rounds=True),
    # A tree of two leaves asks one column: their sum is a function of each column, added up (Lou et al. 2012).
    Family("AdditiveBoosting", "classification", GradientBoostingClassifier, "trees", _ADDITIVE_STARTS,
           _ADDITIVE_SPACE, grows=0.8, rounds=True, suits=lambda facts: facts.readable, readable=True),
    Family("AdditiveBoosting", "regression", GradientBoostingRegressor, "trees", _ADDITIVE_STARTS,
           _ADDITIVE_SPACE, grows=0.8, rounds=True, suits=lambda facts: facts.readable, readable=True),
    Family("RandomForest", "classification", RandomForestClassifier, "trees", _FOREST_STARTS,
           {**_FOREST_SPACE, "max_features": Axis(0.05, 0.8, log=True)}, grows=1.1),
    Family("RandomForest", "regression", RandomForestRegressor, "trees", _FOREST_STARTS, _FOREST_SPACE, grows=1.1),
    Family("ExtraTrees", "classification", ExtraTreesClassifier, "trees", _FOREST_STARTS[:1],
           {**_FOREST_SPACE, "max_features": Axis(0.05, 0.8, log=True)}, grows=1.1),
    Family("ExtraTrees", "regression", ExtraTreesRegressor, "trees", _FOREST_STARTS[:1], _FOREST_SPACE, grows=1.1),
    # With y twice as large the same alpha counts twice in its L2 part, against the L1 part and the errors.
    Family("ElasticNetCV", "regression", ElasticNetCV, "linear", ({"l1_ratio": 0.9, "n_alphas": 30},),
           {"l1_ratio": Axis(0.1, 1.0)}, target="standard"),
    Family("PoissonRegression", "regression", GeneralizedLinearModel, "linear", ({"family": "poisson", "alpha": 1e-3},),
           {"alpha": Axis(1e-6, 1.0, log=True)}, suits=lambda facts: facts.counts),
    Family("GradientBoosting for counts", "regression", GradientBoostingRegressor, "trees",
           tuple({"loss": "poisson", **start} for start in _BOOST_STARTS[:2]), _BOOST_SPACE, grows=0.8, rounds=True,
           suits=lambda facts: facts.counts),
    Family("RidgeCV of the logarithm", "regression", RidgeCV, "linear", ({},), target="log", suits=lambda f: f.skewed),
    Family("GradientBoosting of the logarithm", "regression", GradientBoostingRegressor, "trees", _BOOST_STARTS[:2],
           _BOOST_SPACE, grows=0.8, rounds=True, target="log", suits=lambda facts: facts.skewed),
    Family("DecisionTree", "classification", DecisionTreeClassifier, "trees", _TREE_STARTS, _TREE_SPACE, readable=True),
    Family("DecisionTree", "regression", DecisionTreeRegressor, "trees", _TREE_STARTS, _TREE_SPACE, readable=True),
    Family("KernelLogisticRegression", "classification", KernelLogisticRegression, "compact",
           ({"C": 3.0}, {"C": 300.0}),
           {"C": Axis(1e-2, 1e5, log=True), "gamma": Axis(1e-4, 1.0, log=True)}, most_rows=1_500, grows=2.5),
    Family("KernelRidge", "regression", KernelRidge, "compact",
           tuple({"kernel": "rbf", "alpha": alpha, "fit_intercept": True} for alpha in (0.1, 1.0)),
           {"alpha": Axis(1e-4, 1e2, log=True), "gamma": Axis(1e-4, 1.0, log=True)}, most_rows=3_000, grows=2.5),
    Family("GaussianProcess", "classification", GaussianProcessClassifier, "compact", ({},), most_rows=400, grows=3.0),
    Family("GaussianProcess", "regression", GaussianProcessRegressor, "compact", ({"normalize_y": True},),
           most_rows=1_000, grows=3.0),
    Family("SVC", "classification", SVC, "compact",
           ({"C": 1.0, "probability": "platt"}, {"C": 10.0, "probability": "platt"}),
           {"C": Axis(1e-2, 1e3, log=True), "gamma": Axis(1e-4, 1.0, log=True)}, most_rows=5_000, grows=2.0),
    Family("KNeighbors", "classification", KNeighborsClassifier, "compact", _KNN_STARTS, _KNN_SPACE, most_rows=20_000,
           grows=1.8, takes_weight=False),
    Family("KNeighbors", "regression", KNeighborsRegressor, "compact", _KNN_STARTS, _KNN_SPACE, most_rows=20_000,
           grows=1.8, takes_weight=False),
)  # fmt: skip


def families_for(facts: Any, asked: Any, seconds: float = 0.0) -> list[Family]:
    """Methods that suit the data; `asked` restricts them by (prefixes of) their names.

    Networks are among them where the search has enough `seconds`, or where they are asked for.
    """
    from epicycle.automl._net_candidates import net_families

    table = (*_TABLE, *net_families(facts, seconds, asked)) if facts.quantile is None else _of_quantile(facts.quantile)
    found = [family for family in table if family.task == facts.task]
    if asked is not None:
        asked = [asked] if isinstance(asked, str) else list(asked)
        for name in asked:
            if not isinstance(name, str) or not any(_called(family, name) for family in found):
                known = ", ".join(dict.fromkeys(family.name for family in found))
                raise ParameterError(f"models={name!r}: no such method for {facts.task}; there are {known}")
        # A beginning of a name means those that suit the data; a whole name is taken at its word.
        chosen = [
            family
            for family in found
            if family.name in asked or (family.suits(facts) and any(_called(family, name) for name in asked))
        ] or [family for family in found if any(_called(family, name) for name in asked)]
        if facts.weighted and (without := [family.name for family in chosen if not family.takes_weight]):
            raise ParameterError(f"models={without[0]!r}: takes no weights; leave it out, or the weights")
        return chosen
    found = [family for family in found if facts.n <= family.most_rows and family.suits(facts)]
    return [family for family in found if family.takes_weight or not facts.weighted]


def names_for(task: str, asked: Any) -> Any:
    """The names of `asked` without those of methods for the other task alone; of several targets one may need them."""
    if asked is None:
        return None
    named = [asked] if isinstance(asked, str) else list(asked)
    tasks = [{family.task for family in _TABLE if isinstance(name, str) and _called(family, name)} for name in named]
    return [name for name, found in zip(named, tasks, strict=True) if not found or task in found] or named


def _of_quantile(level: float) -> tuple[Family, ...]:
    """Methods that minimise the pinball loss."""
    tree = {"loss": "quantile", "quantile": level}

    def boosting(name: str, starts: tuple[Mapping[str, Any], ...], space: Mapping[str, Axis], **more: Any) -> Family:
        settings = tuple({**tree, **start} for start in starts)
        return Family(
            name, "regression", GradientBoostingRegressor, "trees", settings, space, grows=0.8, rounds=True, **more
        )

    return (
        Family("QuantileRegressor", "regression", QuantileRegressor, "linear",
               tuple({"quantile": level, "alpha": alpha} for alpha in (1e-6, 1e-3)),
               {"alpha": Axis(1e-6, 1.0, log=True)}, most_rows=200_000, target="standard"),
        boosting("GradientBoosting", _BOOST_STARTS, _BOOST_SPACE),
        boosting("AdditiveBoosting", _ADDITIVE_STARTS, _ADDITIVE_SPACE, suits=lambda f: f.readable, readable=True),
    )  # fmt: skip


def _called(family: Family, name: str) -> bool:
    wanted = name.replace("_", "").replace("-", "").lower()
    return wanted in (family.name.lower(), type_name(family).lower()) or (
        len(wanted) >= 3 and family.name.lower().startswith(wanted)
    )


def type_name(family: Family) -> str:
    """The class behind a method."""
    return str(getattr(family.make, "_script_name", None) or getattr(family.make, "__name__", family.name))
