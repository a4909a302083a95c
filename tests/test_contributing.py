"""The estimator that CONTRIBUTING.md writes down is a real one."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import PoissonRegressor

from epicycle import optim
from epicycle.data import as_data

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()


@pytest.fixture(scope="module")
def example():
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    namespace = {"__name__": "contributing"}
    exec(compile(code, "CONTRIBUTING.md", "exec"), namespace)
    return namespace


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4)) / 2
    return X, rng.poisson(np.exp(X @ [0.5, -1.0, 0.0, 0.8])).astype(float), rng.uniform(0.5, 2.0, size=500)


@pytest.mark.parametrize("solver", ["lbfgs", "bfgs", "cg"])
def test_the_example_reaches_the_optimum(example, counts, solver):
    X, y, weight = counts
    model = example["PoissonRegressor"](alpha=0.5, solver=solver).fit(X, y, sample_weight=weight)
    # scikit-learn divides the sum by the total weight
    peer = PoissonRegressor(alpha=0.5 / weight.sum(), fit_intercept=False, tol=1e-12, solver="newton-cholesky")
    peer.fit(X, y, sample_weight=weight)
    assert model.certificate_.holds
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=0, atol=1e-6)
    np.testing.assert_allclose(model.predict(X), peer.predict(X), rtol=1e-5)


def test_the_example_has_the_right_gradient(example, counts):
    X, y, weight = counts
    objective = example["PoissonObjective"](as_data(X, y, weight, target="numeric"), 0.5)
    assert optim.check_gradient(objective, np.array([0.1, -0.2, 0.3, 0.4])).holds


def test_the_example_checks_its_parameters(example, counts):
    X, y, _ = counts
    with pytest.raises(ValueError, match="alpha"):
        example["PoissonRegressor"](alpha=-1.0).fit(X, y)


@pytest.mark.parametrize("command", re.findall(r"make ([a-z]+)", TEXT))
def test_the_commands_exist(command):
    makefile = (Path(__file__).parents[1] / "Makefile").read_text()
    assert re.search(rf"^{command}:", makefile, flags=re.MULTILINE)
