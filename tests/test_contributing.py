"""The estimators that CONTRIBUTING.md writes down are real ones."""

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import check_estimator

from epicycle import optim
from epicycle.data import as_data

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
CLASSES = ["LogCoshRegressor", "MomentRidge", "ComponentwiseBoosting"]


@pytest.fixture(scope="module")
def recipes():
    """The modules of the three recipes, by the name of their class."""
    found = {}
    for code in re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL):
        (name,) = re.findall(r"^class (\w+)\(RegressorMixin", code, flags=re.MULTILINE)
        module = types.ModuleType(f"recipe_{name}")
        sys.modules[module.__name__] = module  # estimators are pickled by the name of their module
        exec(compile(code, "CONTRIBUTING.md", "exec"), module.__dict__)
        found[name] = module
    yield found
    for module in found.values():
        del sys.modules[module.__name__]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = X @ [0.5, -1.0, 0.0, 0.8] + rng.standard_t(2, size=300)
    return X, y, rng.uniform(0.5, 2.0, size=300)


def test_there_is_a_recipe_for_each_shape(recipes):
    assert list(recipes) == CLASSES


@pytest.mark.parametrize("name", CLASSES)
def test_scikit_learn_accepts_the_recipes(recipes, name):
    check_estimator(getattr(recipes[name], name)(), on_skip=None)


@pytest.mark.parametrize("solver", ["lbfgs", "bfgs", "cg"])
def test_the_smooth_objective_reaches_its_optimum(recipes, table, solver):
    X, y, v = table
    model = recipes["LogCoshRegressor"].LogCoshRegressor(alpha=0.5, solver=solver).fit(X, y, sample_weight=v)
    peer = minimize(lambda w: v @ np.log(np.cosh(y - X @ w)) + 0.25 * w @ w, np.zeros(4), options={"gtol": 1e-8})
    assert model.certificate_.holds
    np.testing.assert_allclose(model.coef_, peer.x, rtol=0, atol=1e-5)


def test_the_smooth_objective_has_the_right_gradient(recipes, table):
    X, y, v = table
    objective = recipes["LogCoshRegressor"].LogCoshObjective(as_data(X, y, v, target="numeric"), 0.5)
    assert optim.check_gradient(objective, np.array([0.1, -0.2, 0.3, 0.4])).holds


def test_the_closed_form_is_that_of_scikit_learn(recipes, table):
    X, y, v = table
    model = recipes["MomentRidge"].MomentRidge(alpha=2.0).fit(X, y, sample_weight=v)
    peer = Ridge(alpha=2.0, fit_intercept=False).fit(X, y, sample_weight=v)
    assert model.certificate_.holds
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=1e-9)
    r = y - X @ model.coef_
    assert model.history_.objective[-1] == pytest.approx((v @ r**2 + 2.0 * model.coef_ @ model.coef_) / 2)


def test_the_greedy_recipe_descends_to_least_squares(recipes, table):
    X, y, v = table
    model = recipes["ComponentwiseBoosting"].ComponentwiseBoosting(n_steps=2000).fit(X, y, sample_weight=v)
    assert np.all(np.diff(model.history_.objective) <= 1e-12 * model.history_.objective[0])
    np.testing.assert_allclose(model.coef_, Ridge(0.0, fit_intercept=False).fit(X, y, v).coef_, atol=1e-6)


@pytest.mark.parametrize("name", CLASSES)
def test_the_recipes_check_their_parameters(recipes, table, name):
    X, y, _ = table
    model = getattr(recipes[name], name)()
    parameter = next(iter(model._parameters))
    with pytest.raises(ValueError, match=parameter):
        model.set_params(**{parameter: -1.0 if parameter != "n_steps" else 0}).fit(X, y)


@pytest.mark.parametrize("command", re.findall(r"make ([a-z-]+)", TEXT))
def test_the_commands_exist(command):
    makefile = (Path(__file__).parents[1] / "Makefile").read_text()
    assert re.search(rf"^{command}:", makefile, flags=re.MULTILINE)
