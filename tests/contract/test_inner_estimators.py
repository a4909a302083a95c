"""An estimator inside another one: what is none is refused by name, wherever it is met first."""

import numpy as np
import pytest
from sklearn.utils import get_tags

import epicycle as ep
from epicycle.exceptions import ParameterTypeError


class NoEstimator:
    """Has the methods, but not those of scikit-learn's base class."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


@pytest.mark.parametrize("wrong", [object(), "ridge", 3, NoEstimator(), NoEstimator, ep.LogisticRegression])
@pytest.mark.parametrize(
    "cls",
    [
        ep.BaggingClassifier,
        ep.BaggingRegressor,
        ep.OneVsRest,
        ep.ForwardSelection,
        ep.BackwardSelection,
        ep.FilterSelection,
        ep.TableModel,
    ],
)
def test_what_is_no_estimator_is_named(cls, wrong):
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2
    for call in (lambda m: m.fit(X, y), get_tags):
        with pytest.raises(ParameterTypeError, match=rf"{cls.__name__}: estimator=.*; expected "):
            call(cls(wrong))
    repr(cls(wrong))


@pytest.mark.parametrize("wrong", [object(), "ridge", 3, NoEstimator(), NoEstimator, ep.LogisticRegression])
@pytest.mark.parametrize("cls", [ep.StackingClassifier, ep.StackingRegressor, ep.VotingClassifier, ep.VotingRegressor])
def test_what_is_no_estimator_among_several_is_named(cls, wrong):
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2
    given = {"estimators=": cls([("a", wrong)])}
    if "final_estimator" in cls._parameters:
        member = ep.LogisticRegression() if "Classifier" in cls.__name__ else ep.Ridge()
        given["final_estimator="] = cls([("a", member)], final_estimator=wrong)
    for name, model in given.items():
        with pytest.raises(ParameterTypeError, match=f"{cls.__name__}: {name.replace('estimators', 'a')}"):
            model.fit(X, y)
        repr(model)
        get_tags(model)


@pytest.mark.parametrize("wrong", [object(), 3, NoEstimator(), NoEstimator, ep.LogisticRegression])
@pytest.mark.parametrize("argument", ["outcome_model", "propensity_model"])
def test_what_is_no_model_of_an_effect_is_named(argument, wrong):
    X, t = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2
    with pytest.raises(ParameterTypeError, match=f"{argument}="):
        ep.TreatmentEffect(**{argument: wrong}).fit(X, X[:, 0], t)
