"""Every method that takes threads gives the same bits on one, two and four of them."""

import inspect
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils import get_tags

import epicycle as ep
from epicycle.data import _array_data
from epicycle.recommend import CollaborativeFiltering

#: Methods to ask for beside the defaults, and less work for some.
LIGHT = {
    "AdaBoostClassifier": [{"n_estimators": 10}],
    "BaggingClassifier": [{"n_estimators": 3}],
    "BaggingRegressor": [{"n_estimators": 3}],
    "CollaborativeFiltering": [{"method": m} for m in ("als", "gradient", "implicit", "bpr")],
    "DictionaryLearning": [{"n_components": 3}],
    "ElasticNetCV": [{"n_alphas": 10}],
    "FastICA": [{}, {"algorithm": "deflation"}],
    "FilterSelection": [{"cv": 3}],
    "GaussianProcessClassifier": [{"optimizer": None}],
    "GaussianProcessRegressor": [{"optimizer": None}],
    "GloVe": [{"epochs": 3, "min_count": 1}],
    "GradientBoostingClassifier": [{"n_estimators": 10}],
    "GradientBoostingRegressor": [{"n_estimators": 10}],
    "ICA": [{}, {"solver": "stochastic", "max_iter": 3}],
    "IsolationForest": [{"n_estimators": 20}],
    "Isomap": [{"n_neighbors": 20}],
    "KMeans": [{"n_clusters": 4}],
    "LassoCV": [{"n_alphas": 10}],
    "LatentDirichletAllocation": [
        {"learning_method": "online", "max_iter": 3},
        *({"learning_method": m, "max_iter": 5, "doc_topic_prior": "auto"} for m in ("batch", "gibbs")),
    ],
    "LocallyLinearEmbedding": [{"n_neighbors": 12, "method": m} for m in ("standard", "modified", "hessian", "ltsa")],
    "LogisticRegressionCV": [{"Cs": 3}],
    "MDS": [{}, {"n_landmarks": 40}],
    "MaxMarginClustering": [{"n_init": 2}],
    "MiniBatchDictionaryLearning": [{"n_components": 3, "max_iter": 3}],
    "MiniBatchNMF": [{"n_components": 3, "max_iter": 5}],
    "MixtureAnomalyDetector": [{"n_components": 2}],
    "MultiTaskElasticNetCV": [{"n_alphas": 10}],
    "MultiTaskLassoCV": [{"n_alphas": 10}],
    "NMF": [{"n_components": 3}, {"n_components": 3, "solver": "mu", "beta_loss": "kullback-leibler"}],
    "NeighborEmbedding": [{"max_iter": 50, "method": m} for m in ("fft", "barnes_hut")],
    "PCA": [{"n_components": 2, "svd_solver": m} for m in ("full", "covariance_eigh", "randomized", "arpack")],
    "RandomForestClassifier": [{"n_estimators": 10}, {"n_estimators": 10, "oob_score": True}],
    "RandomForestRegressor": [{"n_estimators": 10}],
    "SNE": [{"max_iter": 20}],
    "SparseCoder": [{"dictionary": np.eye(6)}],
    "SpectralClustering": [{"n_clusters": 3}],
    "TSNE": [{"max_iter": 50, "method": m} for m in ("exact", "fft", "barnes_hut")],
    "Word2Vec": [
        {"epochs": 2, "min_count": 1, **more}
        for more in ({}, {"architecture": "cbow", "hierarchical": True, "negative": 0})
    ],
}
MEMBERS = {
    "StackingClassifier": [("a", ep.LogisticRegression()), ("b", ep.DecisionTreeClassifier(max_depth=2))],
    "StackingRegressor": [("a", ep.Ridge()), ("b", ep.DecisionTreeRegressor(max_depth=2))],
}
MEMBERS |= {"VotingClassifier": MEMBERS["StackingClassifier"], "VotingRegressor": MEMBERS["StackingRegressor"]}
METHODS = [CollaborativeFiltering, *(getattr(ep, method.name) for method in ep.methods())]
THREADED = [cls for cls in METHODS if "n_jobs" in inspect.signature(cls).parameters]
CASES = [(cls, more) for cls in THREADED for more in LIGHT.get(cls.__name__, [{}])]
#: Rows of a block of a pass, so that threads share even small tables.
BLOCK = 50
N = 300
COUNTS = ("LatentDirichletAllocation", "PoissonMixture", "MultinomialMixture", "BernoulliMixture", "CategoricalNB")
CLOCKS = ("seconds", "fit_seconds", "fit_seconds_", "score_time_", "n_jobs")
ANSWERS = ("predict", "predict_proba", "decision_function", "transform", "score_samples", "kneighbors")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(_array_data, "block_rows", lambda X: BLOCK)


def problem(model):
    """Rows and targets that the estimator takes, and a treatment where it asks for one."""
    rng = np.random.default_rng(0)
    tags, takes = get_tags(model), inspect.signature(model.fit).parameters
    if isinstance(model, CollaborativeFiltering):
        u, i = np.divmod(rng.choice(40 * 30, N, replace=False), 30)
        return (np.column_stack([u, i]), rng.integers(1, 6, N).astype(float)), {}
    if tags.input_tags.string and not tags.input_tags.two_d_array:
        return ([" ".join(f"w{j}" for j in rng.zipf(1.5, 12) % 50) for _ in range(N)],), {}
    centre = 3.0 * rng.integers(0, 3, N)
    X = rng.normal(size=(N, 6)) + centre[:, None] * [1, 0, 1, 0, 0.5, 0]
    if tags.input_tags.positive_only or tags.input_tags.categorical or type(model).__name__ in COUNTS:
        X = np.abs(np.round(X))
    y = X @ [1.0, -0.5, 0.0, 0.3, 0.0, 0.2] + rng.normal(size=N)
    if type(model).__name__.startswith("MultiTask"):
        y = np.column_stack([y, y**2])
    elif tags.estimator_type == "classifier":
        y = (centre / 3).astype(int) if tags.classifier_tags.multi_class else (centre > 0).astype(int)
    elif tags.target_tags.positive_only or "Regressor" in type(model).__name__:
        y = np.exp(0.1 * y)
    needs_y = tags.estimator_type in ("classifier", "regressor") or tags.target_tags.required or "treatment" in takes
    given = {"treatment": rng.integers(0, 2, N)} if "treatment" in takes else {}
    return ((X, y) if needs_y else (X,)), given


def parts(value, name="model"):
    """The numbers that an object holds, by the way to them; clocks aside."""
    if sp.issparse(value):
        value = sp.coo_array(value)
        yield from parts([value.data, *value.coords], name)
    elif isinstance(value, np.ndarray) and value.dtype.kind != "O":
        yield name, value
    elif isinstance(value, bool | int | float | complex | str | np.generic):
        yield name, np.asarray(value)
    elif isinstance(value, list | tuple | np.ndarray):
        for i, part in enumerate(value):
            yield from parts(part, f"{name}[{i}]")
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from parts(part, f"{name}[{key!r}]")
    elif isinstance(value, ep.History):
        yield from parts([value[c] for c in value.columns if c not in CLOCKS], name)
    elif hasattr(value, "__dict__") and type(value).__module__.startswith("epicycle"):
        for key, part in vars(value).items():
            if key not in CLOCKS:
                yield from parts(part, f"{name}.{key}")


@pytest.mark.parametrize(("cls", "more"), CASES, ids=[f"{cls.__name__}-{more}" for cls, more in CASES])
def test_the_same_bits_on_any_number_of_threads(cls, more):
    names = inspect.signature(cls).parameters
    fixed = {"random_state": 0} if "random_state" in names else {}
    if cls.__name__ in MEMBERS:
        fixed["estimators"] = MEMBERS[cls.__name__]
    found = []
    for n_jobs in (1, 2, 4):
        model = cls(**fixed, **more).set_params(n_jobs=n_jobs)
        data, given = problem(model)
        with warnings.catch_warnings(), ep.config(on_nonconvergence="ignore"):
            warnings.simplefilter("ignore")
            model.fit(*data, **given)
            fitted = dict(parts(model.set_params(n_jobs=None)))
            for method in ANSWERS:
                if hasattr(model, method):
                    fitted |= parts(getattr(model.set_params(n_jobs=n_jobs), method)(data[0]), method)
        found.append(fitted)
    first, *others = found
    assert len(first) > 3
    for other in others:
        assert other.keys() == first.keys()
        for name, value in first.items():
            assert value.dtype == other[name].dtype, name
            assert value.tobytes() == other[name].tobytes(), name
