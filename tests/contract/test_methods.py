"""What every method keeps, found by discovery: a new estimator is checked here from its first day."""

import inspect
import json
import re
from dataclasses import asdict
from functools import cache
from importlib import import_module

import numpy as np
import pytest
import scipy.sparse as sp
from net_samples import all_samples
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import epicycle as ep
from epicycle.core.estimator._estimator import Estimator
from epicycle.exceptions import NotFittedError
from epicycle.optim import SOLVERS

METHODS = ep.methods()
CLASSES = [getattr(ep, method.name) for method in METHODS]
#: A generative model that was fitted for a few epochs leaves parts of the data out, and says so.
pytestmark = pytest.mark.filterwarnings("ignore::epicycle.exceptions.CollapseWarning")
every = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)


#: Members that are quickly fitted, for ensembles.
FEW = {"classifier": [("logistic", ep.LogisticRegression()), ("tree", ep.DecisionTreeClassifier(max_depth=2))]}
FEW["regressor"] = [("ridge", ep.Ridge()), ("tree", ep.DecisionTreeRegressor(max_depth=2))]

#: Less work for the checks of scikit-learn, which fit every class some hundred times; it does the same for its own.
LIGHT = {
    "ElasticNetCV": {"n_alphas": 10, "cv": 3},
    "ExtraTreesClassifier": {"n_estimators": 10},
    "ExtraTreesRegressor": {"n_estimators": 10},
    "FilterSelection": {"cv": 3},
    "GradientBoostingClassifier": {"n_estimators": 20},
    "MixtureAnomalyDetector": {"n_components": 2},
    "GradientBoostingRegressor": {"n_estimators": 20},
    "HistGradientBoostingClassifier": {"max_iter": 20},
    "HistGradientBoostingRegressor": {"max_iter": 20},
    "IsolationForest": {"n_estimators": 10},
    "LassoCV": {"n_alphas": 10, "cv": 3},
    "LassoLarsIC": {"noise_variance": 1.0},  # least squares cannot estimate it where there are more features than rows
    "LogisticRegressionCV": {"Cs": 3, "cv": 3},
    "MultiTaskElasticNetCV": {"n_alphas": 10, "cv": 3},
    "MultiTaskLassoCV": {"n_alphas": 10, "cv": 3},
    "BisectingKMeans": {"n_clusters": 3},
    # Its default, five neighbours, is no connected graph of blobs, which is said in a warning.
    "Isomap": {"n_neighbors": None, "radius": float("inf")},
    "KMeans": {"n_clusters": 3},
    "KMedians": {"n_clusters": 3},
    "KMedoids": {"n_clusters": 3},
    # Where an estimator takes categories, a check has rows of two kinds.
    "KModes": {"n_clusters": 2},
    "KPrototypes": {"n_clusters": 2},
    # The check of sparse rows expects as many columns of probabilities as its target has classes, though none is used.
    "BayesianGaussianMixture": {"n_components": 4},
    "BernoulliMixture": {"n_components": 4},
    "GaussianMixture": {"n_components": 4},
    "MultinomialMixture": {"n_components": 4},
    "PoissonMixture": {"n_components": 4},
    "MiniBatchDictionaryLearning": {"n_components": 2, "batch_size": 100, "transform_algorithm": "lasso_lars"},
    "DictionaryLearning": {"n_components": 2, "tol": 1e-4, "transform_algorithm": "lasso_lars"},
    # As many components as features is the default; their factors are far from unique, and descents to them long.
    "MiniBatchNMF": {"n_components": 2, "tol": 1e-3, "fresh_restarts": True},
    "NMF": {"n_components": 2, "max_iter": 1000},
    "MiniBatchKMeans": {"n_clusters": 3, "batch_size": 50, "max_iter": 10},
    "MaxMarginClustering": {"n_init": 2},
    # As in scikit-learn a singular covariance is refused; the checks have classes of one row.
    "QuadraticDiscriminantAnalysis": {"variance_floor": 1e-3},
    "RANSACRegressor": {"min_samples": 5, "max_trials": 10_000},
    "RandomForestClassifier": {"n_estimators": 10},
    "RandomForestRegressor": {"n_estimators": 10},
    # Its default, neighbours, is no connected graph of so few rows, and equal rows are each other's neighbours.
    "SpectralEmbedding": {"affinity": "rbf"},
    "StackingClassifier": {"estimators": FEW["classifier"], "cv": 3},
    # Its default, RidgeCV, leaves out rows one by one, for which two equal rows are not one of weight 2.
    "StackingRegressor": {"estimators": FEW["regressor"], "cv": 3, "final_estimator": ep.Ridge()},
    # Its default perplexity is more than the checks have rows; scikit-learn does the same for its own.
    "SNE": {"perplexity": 2.0, "tol": 1e-4},  # the rows of a hundred drift apart for thousands of steps
    "TSNE": {"perplexity": 2.0},
    "VotingClassifier": {"estimators": FEW["classifier"]},
    "VotingRegressor": {"estimators": FEW["regressor"]},
}


#: Networks: their data, and arguments for fits of a few epochs, which are then all that was asked for.
NETS = all_samples()
LIGHT |= {name: sample.few if sample.light is None else sample.light for name, sample in NETS.items()}


def made(cls, **arguments):
    """With its defaults; a network for a few epochs."""
    few = NETS[cls.__name__].few if cls.__name__ in NETS else {}
    return cls(**{**few, **arguments})


LEARNERS = [cls(**LIGHT.get(cls.__name__, {})) for cls in CLASSES]
# scikit-learn has checks for tables; of what learns from documents its tests of text are run (tests/parity).
FROM_TABLES = [learner for learner in LEARNERS if get_tags(learner).input_tags.two_d_array]


@parametrize_with_checks(FROM_TABLES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
# Local outlier factors, of checks with ten rows and with equal ones.
@pytest.mark.filterwarnings("ignore:n_neighbors \\(20\\) is greater:UserWarning")
@pytest.mark.filterwarnings("ignore:Duplicate values are leading:UserWarning")
@pytest.mark.filterwarnings("ignore:The graph of n_neighbors")  # blobs, between which no neighbours are
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_the_list_is_complete():
    exported = {name: getattr(import_module(module), name) for name, module in ep._PUBLIC.items()}
    estimators = {n for n, obj in exported.items() if isinstance(obj, type) and issubclass(obj, Estimator)}
    assert {method.name for method in METHODS} == estimators
    assert {"LinearRegression", "LogisticRegression", "Ridge"} <= estimators


def test_the_list_can_be_filtered_and_written():
    families = {method.family for method in METHODS}
    assert sum(len(ep.methods(family=family)) for family in families) == len(METHODS)
    assert ep.methods(family="no such family") == []
    assert json.loads(json.dumps([asdict(method) for method in METHODS]))[0]["name"] == METHODS[0].name


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_every_card_is_filled_in(method):
    assert method.summary.endswith(".")
    assert all(re.fullmatch(r"[A-Z]\d+", row) for row in method.catalogue)
    assert method.catalogue
    assert method.engines
    assert method.certificate
    parameters = inspect.signature(getattr(ep, method.name)).parameters
    assert bool(method.solvers) == ("solver" in parameters)


@every
def test_every_parameter_has_a_domain_that_holds_its_default(cls):
    parameters = inspect.signature(cls).parameters
    assert set(cls._parameters) == set(parameters)
    for name, parameter in parameters.items():
        assert cls._parameters[name].accepts(parameter.default), name


@every
def test_every_parameter_and_result_is_documented(cls):
    for name in inspect.signature(cls).parameters:
        assert re.search(rf"^\s*(\w+, )*{name}(, \w+)* : ", cls.__doc__, re.M), name
    for name in vars(fitted(cls)):
        if name.endswith("_") and not name.startswith("_"):
            assert re.search(rf"\b{name}\b", cls.__doc__) or name in Estimator.__doc__, name


def documents(n):
    """Of five words each, from a vocabulary of thirty."""
    words = np.array([f"word{i}" for i in range(30)])
    drawn = np.random.default_rng(0).integers(0, 30, size=(n, 5))
    return np.array([" ".join(words[row]) for row in drawn], dtype=object)


def data(model, n=1200):
    rng = np.random.default_rng(0)
    sample = NETS.get(type(model).__name__)
    if sample is not None and sample.data is not None:
        return sample.data(n)
    if not get_tags(model).input_tags.two_d_array:
        return documents(1200), None
    X = rng.normal(size=(1200, 5))
    target = X @ [1.0, -1.0, 0.5, 0.0, 2.0] + rng.normal(size=1200)
    if get_tags(model).target_tags.positive_only:
        target = np.exp(target / 4)
    if get_tags(model).input_tags.positive_only or isinstance(model, ep.KModes):  # counts or codes
        X = np.floor(4 + X).clip(0)
    return X, np.where(target > 0, "yes", "no") if is_classifier(model) else target


@cache
def fitted(cls):
    """A fit that tests look at and none changes."""
    return made(cls).fit(*data(cls()))


def result(model, X):
    """What a model is for: predictions, the rows that a transformer makes of X, distances to neighbours, or labels."""
    for method in ("predict", "transform"):
        if hasattr(model, method):
            made = getattr(model, method)(X)
            if sp.issparse(made):  # a hash of terms has a million columns
                return made.toarray() if made.shape[1] < 10_000 else np.concatenate([made.indices, made.data])
            return made
    if hasattr(model, "kneighbors"):
        return model.kneighbors(X)[0]
    if hasattr(model, "score_samples"):
        return model.score_samples(X)
    if hasattr(model, "sample"):  # a generator draws, and says nothing of a row
        return model.sample(20, random_state=0)
    model._check_fitted()
    return model.embedding_ if hasattr(model, "embedding_") else model.labels_  # of the rows of the fit alone


@every
def test_evidence(cls):
    model = fitted(cls)
    assert isinstance(model.history_, ep.History)
    assert isinstance(model.certificate_, ep.Certificate)
    assert model.converged_ is True
    assert model.certificate_.holds
    assert model.certificate_.meaning
    assert str(model.certificate_) in model.describe()
    assert str(model.certificate_) in model._repr_html_()


def arrays_in(value):
    """Every array that an object holds, however deep."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict):
        yield from (array for item in value.values() for array in arrays_in(item))
    elif isinstance(value, list | tuple):
        yield from (array for item in value for array in arrays_in(item))
    elif hasattr(value, "__dict__"):
        yield from arrays_in(vars(value))


@every
def test_a_fitted_object_holds_no_training_data(cls):
    if cls._card.keeps_rows:  # the training data are the model: it has to say so
        assert re.search(r"keeps the training", cls.__doc__)
        return
    rows = 1117  # a number that nothing else in a fit is likely to have
    X, y = (None if a is None else a[:rows] for a in data(cls(), rows))
    model = made(cls).fit(X, y)
    # `estimators_samples_` of a forest needs the order in which rows are drawn: numbers of rows, and not in files.
    # The labels of the rows, how strongly they hold, and an order are the answers of clusterings.
    answers = [
        "_samples_",
        "labels_",
        "probabilities_",
        "reachability_",
        "ordering_",
        "core_distances_",
        "predecessor_",
    ]
    kept = {name: value for name, value in vars(model).items() if name not in answers}
    shapes = [array.shape for array in arrays_in(kept)]
    assert not [shape for shape in shapes if rows in shape or np.prod(shape) == X.size]


@every
def test_an_interrupted_fit_leaves_the_earlier_one(cls, monkeypatch):
    X, y = data(cls())
    model = fitted(cls)
    before = dict(vars(model))

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(cls, "_fit_data", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert vars(model) == before


@every
def test_save_and_load(cls, tmp_path):
    X, _ = data(cls())
    model = fitted(cls)
    model.save(tmp_path / "m.epi")
    loaded = ep.load(tmp_path / "m.epi")
    assert np.array_equal(result(loaded, X), result(model, X))
    assert loaded.get_params() == model.get_params()
    assert loaded.certificate_ == model.certificate_
    assert loaded.history_ == model.history_


@every
def test_not_fitted(cls):
    X = np.ones((2, 5)) if get_tags(cls()).input_tags.two_d_array else data(cls(), 2)[0][:2]
    if not get_tags(cls()).requires_fit:  # it has an answer before: the prior
        assert np.isfinite(result(cls(), X)).all()
        return
    with pytest.raises(NotFittedError, match=cls.__name__):
        result(cls(), X)


def solvers(cls):
    if cls.__name__ in NETS and NETS[cls.__name__].solvers is not None:
        return list(NETS[cls.__name__].solvers)
    domain = cls._parameters.get("solver")
    return [None] if domain is None else list(domain.names)


@pytest.mark.parametrize(("cls", "solver"), [(cls, s) for cls in CLASSES for s in solvers(cls)])
def test_a_checkpoint_resumes_every_solver(cls, solver, tmp_path):
    """Stopped half-way and resumed, a fit ends at the same optimum; a stochastic one in the same bits."""
    chosen = {} if solver is None else {"solver": solver}
    if "random_state" in inspect.signature(cls).parameters:
        chosen["random_state"] = 0
    X, y = data(cls())
    with ep.config(on_nonconvergence="ignore"):
        whole = made(cls, **chosen).fit(X, y)
        if whole.history_.n_iter < 2:
            return  # a direct solver has no half
        half = StopAt(whole.history_.n_iter // 2)
        clone(whole).set_callbacks(half, ep.Checkpoint(tmp_path / "run.epi")).fit(X, y)
        resumed = ep.Checkpoint.resume(tmp_path / "run.epi")
        assert resumed.history_.n_iter == whole.history_.n_iter // 2
        resumed.fit(X, y)
    assert resumed.converged_ == whole.converged_
    if np.isscalar(resumed.n_iter_):  # support vector classifiers count the steps of every function
        # Mini-batch k-means has epochs and steps, of which the history has a row each.
        assert resumed.history_.n_iter == getattr(resumed, "n_steps_", resumed.n_iter_)
    assert resumed.history_.objective[-1] == pytest.approx(
        whole.history_.objective[-1], rel=2 * (getattr(whole, "tol", None) or 1e-8)
    )
    if solver in SOLVERS and SOLVERS[solver].stochastic:
        if hasattr(whole, "coef_"):
            assert np.array_equal(resumed.coef_, whole.coef_)
        else:
            assert np.array_equal(result(resumed, X), result(whole, X))
        assert np.array_equal(resumed.history_.objective, whole.history_.objective)


class StopAt:
    """Asks to stop after so many iterations."""

    def __init__(self, n):
        self.n = n

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        return fitted_estimator is not None and np.max(fitted_estimator.n_iter_) >= self.n

    def teardown(self, estimator, context):
        pass


def test_functions_of_the_catalogue_are_listed_when_asked_for():
    listed = ep.methods(functions=True)
    assert listed[: len(METHODS)] == METHODS
    found = {m.name: m for m in listed[len(METHODS) :]}
    assert {row for m in listed for row in m.catalogue} >= {f"J{i}" for i in range(1, 8)}
    assert found["select.k_fold"].catalogue == ("J1",)
    rows = {"A2", "A3", "A13", "A16", "B8", *(f"I{i}" for i in range(1, 6))}
    assert {row for m in found.values() for row in m.catalogue} >= rows
    named = {"optim.check_gradient", "optim.kkt", "optim.conjugate", "optim.matrix_game", "online.evaluate"}
    named |= {"theory.rademacher", "theory.decompose", "theory.pac_bayes", "theory.test_bound"}
    assert named <= set(found)
    for package in ("theory.bounds", "theory.vc", "theory.information"):
        module = import_module(f"epicycle.{package}")
        functions = [n for n in module.__all__ if not isinstance(getattr(module, n), type)]
        assert {f"{package}.{name}" for name in functions} <= set(found)
    assert {m.name for m in ep.methods("diagnose", functions=True)} == {n for n in found if n.startswith("diagnose.")}
    assert all(m.summary.endswith(".") and m.engines and m.certificate for m in found.values())
