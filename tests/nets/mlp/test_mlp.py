"""Multi-layer perceptrons against back-propagation by hand, scikit-learn's, numerical gradients and closed forms."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from gradient_of_module import check_module
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning
from sklearn.linear_model import LogisticRegression as SklearnLogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor as SklearnRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import epicycle as ep
from epicycle.exceptions import ConvergenceWarning, DataError, ParameterError
from epicycle.nets.mlp._backprop import CompiledGradients
from epicycle.nets.mlp._module import multi_layer_perceptron
from epicycle.nets.training._batches import ArrayRows, MiniBatch
from epicycle.nets.training._losses import loss_of_rows
from epicycle.optim import Logistic, Multinomial
from epicycle.optim._likelihoods import Poisson
from epicycle.optim._losses import Squared

ACTIVATIONS = ("identity", "logistic", "tanh", "relu", "gelu")
EPOCHS = {"tol": None, "random_state": 0}


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    scores = np.column_stack([X[:, 0] * X[:, 1], X[:, 2], -X[:, 3] + 0.5 * X[:, 4] ** 2])
    return X, np.array(["a", "b", "c"])[(scores + 0.3 * rng.normal(size=scores.shape)).argmax(axis=1)]


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=300)


def weights(model):
    return [*model.coefs_, *model.intercepts_]


def assert_same(first, second, **tolerance):
    for a, b in zip(weights(first), weights(second), strict=True):
        assert_allclose(a, b, **tolerance)


# --------------------------------------------------------------------------------------------- gradients


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("kind", ["classes", "two classes", "labels", "numbers", "counts"])
def test_back_propagation_by_hand_is_that_of_torch(activation, kind, classes, numbers, monkeypatch):
    """After 30 steps with momentum every weight agrees to 1e-10, whatever the loss, weights of rows among it.

    The same by the compiled kernel, which knows all activations but gelu.
    """
    X, y = numbers if kind in ("numbers", "counts") else classes
    v = np.random.default_rng(1).uniform(0.2, 3, len(y))
    make = ep.MLPRegressor if kind in ("numbers", "counts") else ep.MLPClassifier
    options = {"hidden_layer_sizes": (7, 5), "activation": activation, "batch_size": 50, "max_iter": 5, **EPOCHS}
    if kind == "counts":
        y, options["loss"] = np.floor(np.exp(np.clip(y, -2, 2))), "poisson"
    if kind == "two classes":
        y = y == "a"
    if kind == "labels":
        y = np.column_stack([y == "a", X[:, 0] > 0]).astype(int)
    if kind == "classes":
        options["label_smoothing"] = 0.1
    compiled = make(solver="sgd", **options).fit(X, y, sample_weight=v)
    by_hand = make(solver="backprop", **options).fit(X, y, sample_weight=v)
    monkeypatch.setattr(CompiledGradients, "know", staticmethod(lambda activation, loss: False))
    by_torch = make(solver="sgd", **options).fit(X, y, sample_weight=v)
    for model in (by_hand, compiled):
        assert_same(by_torch, model, rtol=0, atol=1e-10)
        assert_allclose(model.loss_curve_, by_torch.loss_curve_, rtol=1e-10)


@settings(max_examples=60)
@given(
    st.integers(1, 700),
    st.lists(st.integers(1, 70), min_size=2, max_size=4),
    st.sampled_from(["identity", "logistic", "tanh", "relu"]),
    st.sampled_from([Squared(), Poisson(), Logistic(), Multinomial()]),
    st.sampled_from(["float32", "float64"]),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_the_compiled_gradient_is_that_of_torch(n, sizes, activation, loss, dtype, weighted, seed):
    """For any number of rows and units."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    architecture = {"layers": sizes, "activation": activation, "dropout": 0.0, "dtype": dtype}
    module = multi_layer_perceptron(architecture)
    X = torch.from_numpy(rng.normal(size=(n, sizes[0])).astype(dtype))
    several = isinstance(loss, Multinomial)
    y = torch.from_numpy(rng.integers(0, sizes[-1] if several else 2, n if several else (n, sizes[-1])))
    batch = MiniBatch((X,), y if several else y.double(), torch.from_numpy(rng.random(n)) if weighted else None)
    smoothing = 0.2 if several else 0.0
    outputs = module(X)
    losses = loss_of_rows(loss, smoothing)(outputs, batch.target)
    expected = (losses if batch.weight is None else losses * batch.weight.to(losses)).sum() / (n * 1.5)
    gradient = [g.numpy() for g in torch.autograd.grad(expected, module.parameters())]
    expected = float(expected.detach())
    kernel = CompiledGradients(module, architecture, loss, 1.5, smoothing)
    value = float(kernel(batch, 0))
    eps = float(np.finfo(dtype).eps)
    # Residuals of good predictions cancel: their rounding is that of the outputs, times the units of a layer.
    size = float(outputs.detach().abs().max().exp() if isinstance(loss, Poisson) else outputs.detach().abs().max())
    rounding = 100 * eps * (1 + size) * max(1.0, float(X.abs().max()))
    assert value == pytest.approx(expected, rel=100 * eps, abs=10 * eps)
    for p, g in zip(module.parameters(), gradient, strict=True):
        assert_allclose(p.grad, g, rtol=0, atol=max(100 * eps * np.abs(g).max(), rounding))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_are_those_of_differences(activation, classes):
    X, y = classes
    model = ep.MLPClassifier((5, 4), activation=activation, max_iter=1, **EPOCHS).fit(X, y)
    batches = list(ArrayRows((X[:20],), (y[:20] == "b").astype(int) + 2 * (y[:20] == "c")).in_order(20))
    assert check_module(model.module_, model._row_losses(), batches)


def test_a_wrong_gradient_is_noticed(classes):
    """The check can fail: a module whose backward pass forgets a factor."""

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, upstream):
            return upstream

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(6, 3)

        def forward(self, x):
            return Wrong.apply(self.linear(x))

    X, _ = classes
    batches = list(ArrayRows((X[:20],), np.arange(20) % 3).in_order(20))
    losses = ep.MLPClassifier()
    losses.classes_, losses._multilabel_ = np.arange(3), False
    assert not check_module(Module(), losses._row_losses(), batches)


# --------------------------------------------------------------------------------------------- against others


@pytest.mark.parametrize("given", [{}, {"nesterovs_momentum": False}, {"solver": "adam", "epsilon": 1e-12}])
def test_the_steps_are_those_of_scikit_learn(given, numbers):
    """From the same weights over the same batches, ten epochs end in the same weights and losses."""
    X, y = numbers
    options = {"hidden_layer_sizes": (6,), "activation": "tanh", "solver": "sgd", "alpha": 0.7, **given}
    options |= {"batch_size": 50, "shuffle": False, "learning_rate_init": 0.02, "random_state": 0, "warm_start": True}
    start = SklearnRegressor(**options).partial_fit(X, y)
    W, b = [w.copy() for w in start.coefs_], [w.copy() for w in start.intercepts_]
    theirs = SklearnRegressor(**options, max_iter=10).partial_fit(X, y)
    theirs.coefs_, theirs.intercepts_ = W, b
    mine = ep.MLPRegressor(**options, max_iter=10).partial_fit(X, y)
    for layer in range(2):
        mine._weights_[f"{2 * layer}.weight"][...] = W[layer].T
        mine._weights_[f"{2 * layer}.bias"][...] = b[layer]
    with pytest.warns(SklearnConvergenceWarning):
        theirs.fit(X, y)
    with ep.config(on_nonconvergence="ignore"):
        mine.fit(X, y)
    # Adam divides by the root of a mean square, which magnifies the rounding of derivatives that are nearly zero.
    assert_same(mine, theirs, **({"rtol": 1e-5, "atol": 1e-7} if "solver" in given else {"rtol": 1e-8, "atol": 1e-10}))
    assert_allclose(mine.loss_curve_[1:], theirs.loss_curve_[2:], rtol=0.05)  # ours has the penalty of the last batch
    assert mine.loss_curve_[-1] < mine.loss_curve_[0]


def test_without_hidden_layers_it_is_logistic_regression(classes):
    """A convex problem: L-BFGS and Adam end where the linear model does."""
    X, y = classes
    alpha = 3.0
    exact = SklearnLogisticRegression(C=1 / alpha, tol=1e-10, max_iter=1000).fit(X, y)
    model = ep.MLPClassifier((), solver="lbfgs", alpha=alpha, tol=1e-8, max_iter=1000, random_state=0).fit(X, y)
    assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=1e-6)
    assert model.certificate_.kind == "gradient norm"
    assert model.certificate_.holds
    assert "not convex" in model.certificate_.meaning
    adam = ep.MLPClassifier((), alpha=alpha, batch_size=300, learning_rate_init=0.05, max_iter=400, **EPOCHS).fit(X, y)
    assert_allclose(adam.predict_proba(X), exact.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize("solver", ["adam", "adamw", "sgd", "momentum", "rmsprop", "adagrad", "adadelta", "lbfgs"])
def test_digits_are_learnt_as_well_as_by_scikit_learn(solver):
    X, y = load_digits(return_X_y=True)
    X = X / 16
    rate = {"sgd": 0.1, "momentum": 0.1, "adagrad": 0.05, "adadelta": 2.0}.get(solver, 0.003)
    options = {"hidden_layer_sizes": (50,), "learning_rate_init": rate, "max_iter": 30, "random_state": 0}
    with ep.config(on_nonconvergence="ignore"):
        score = ep.MLPClassifier(**options, solver=solver).fit(X[:1200], y[:1200]).score(X[1200:], y[1200:])
    assert score > 0.9  # scikit-learn's: 0.92 to 0.94 with its three solvers; chance is 0.1


# --------------------------------------------------------------------------------------------- data of all kinds


@settings(max_examples=30)
@given(
    n=st.integers(12, 40),
    p=st.integers(1, 5),
    k=st.integers(1, 3),
    hidden=st.lists(st.integers(1, 6), max_size=2),
    activation=st.sampled_from(ACTIVATIONS),
    single=st.booleans(),
    seed=st.integers(0, 100),
)
def test_shapes_weights_as_repetitions_and_the_order_of_rows(n, p, k, hidden, activation, single, seed):
    """On whole batches a row of weight 2 is two rows, and the order of the rows does not matter."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).astype(np.float32 if single else np.float64)
    y = rng.normal(size=(n, k)) if k > 1 else rng.normal(size=n)
    v = rng.integers(0, 3, n)
    v[0] = 2
    make = ep.MLPRegressor(
        hidden_layer_sizes=hidden, activation=activation, batch_size=10_000, max_iter=5, tol=None, random_state=seed
    )
    weighted = clone(make).fit(X, y, sample_weight=v)
    repeated = clone(make).fit(np.repeat(X, v, axis=0), np.repeat(y, v, axis=0))
    order = rng.permutation(n)
    permuted = clone(make).fit(X[order], y[order], sample_weight=v[order])
    tolerance = {"rtol": 1e-2, "atol": 2e-3} if single else {"rtol": 1e-6, "atol": 1e-8}
    predicted = weighted.predict(X)
    assert predicted.shape == y.shape
    assert predicted.dtype == X.dtype
    assert_allclose(predicted, repeated.predict(X), **tolerance)
    assert_allclose(predicted, permuted.predict(X), **tolerance)
    assert [W.shape for W in weighted.coefs_] == list(zip([p, *hidden], [*hidden, k], strict=True))


def test_sparse_rows_give_the_same_bits_as_dense_ones(classes):
    X, y = classes
    X = np.where(np.abs(X) > 0.8, X, 0.0)
    dense = ep.MLPClassifier(10, max_iter=3, **EPOCHS).fit(X, y)
    sparse = ep.MLPClassifier(10, max_iter=3, **EPOCHS).fit(sp.csr_array(X), y)
    assert_same(dense, sparse, rtol=0, atol=0)
    assert np.array_equal(dense.predict_proba(X), sparse.predict_proba(sp.csr_array(X)))


def test_wide_sparse_rows_are_never_dense_at_once(classes):
    """20,000 columns: all rows together would be 1.3 GB."""
    rng = np.random.default_rng(0)
    X = sp.random_array((8_000, 20_000), density=5e-4, rng=rng, format="csr", dtype=np.float64)
    y = np.asarray(X[:, :10_000].sum(axis=1) > X[:, 10_000:].sum(axis=1)).ravel()
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = ep.MLPClassifier(2, max_iter=1, batch_size=400, learning_rate_init=0.02, **EPOCHS).fit(X, y)
    assert model.score(X[:2000], y[:2000]) > 0.6
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 0.6e6  # KiB


def test_dask_and_frames(numbers):
    import dask.dataframe as dd
    import pandas as pd

    X, y = numbers
    frame = pd.DataFrame(X, columns=list("abcd"))
    options = {"hidden_layer_sizes": 5, "max_iter": 3, "shuffle": False, **EPOCHS}
    memory = ep.MLPRegressor(**options).fit(frame, y)
    assert memory.feature_names_in_.tolist() == list("abcd")
    cluster = ep.MLPRegressor(**options).fit(
        dd.from_pandas(frame, npartitions=3), dd.from_pandas(pd.Series(y), npartitions=3)
    )
    assert_same(memory, cluster, rtol=1e-12)
    assert_allclose(cluster.predict(dd.from_pandas(frame, npartitions=2)).compute(), memory.predict(frame), rtol=1e-12)


def test_a_stream_learns_and_its_file_goes_on(classes, tmp_path):
    X, y = classes
    stream = ep.MLPClassifier(20, learning_rate_init=0.02, random_state=0)
    for _ in range(20):
        stream.partial_fit(X, y, classes=["a", "b", "c"])
    assert stream.score(X, y) > 0.75
    assert stream.history_.n_iter == 20
    stream.save(tmp_path / "stream.epi")
    loaded = ep.load(tmp_path / "stream.epi")
    assert_same(loaded.partial_fit(X, y), stream.partial_fit(X, y), rtol=0, atol=0)


def test_pipelines_and_searches(classes):
    X, y = classes
    pipe = make_pipeline(StandardScaler(), ep.MLPClassifier(8, max_iter=5, tol=None, random_state=0))
    search = GridSearchCV(pipe, {"mlpclassifier__learning_rate_init": [1e-5, 0.05]}, cv=2).fit(X, y)
    assert search.best_params_ == {"mlpclassifier__learning_rate_init": 0.05}


def test_a_residual_layer_adds_to_the_one_before(classes):
    X, y = classes
    model = ep.MLPClassifier((8, 8, 4), "tanh", residual=True, max_iter=3, **EPOCHS).fit(X, y)
    (W1, W2, W3, W4), (b1, b2, b3, b4) = model.coefs_, model.intercepts_
    z = np.tanh(X @ W1 + b1)
    z = z + np.tanh(z @ W2 + b2)
    z = np.tanh(z @ W3 + b3)  # of another size: as without
    scores = z @ W4 + b4
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert_allclose(model.predict_proba(X), shares, rtol=1e-9)
    deep = {
        "hidden_layer_sizes": (16,) * 12,
        "activation": "tanh",
        "learning_rate_init": 0.003,
        "max_iter": 30,
        **EPOCHS,
    }
    plain, residual = (ep.MLPClassifier(residual=r, **deep).fit(X, y) for r in (False, True))
    assert residual.loss_ < plain.loss_


def test_several_labels_and_two_classes(classes):
    X, y = classes
    table = np.column_stack([y == "a", X[:, 0] > 0, y != "b"]).astype(int)
    model = ep.MLPClassifier(30, learning_rate_init=0.02, max_iter=60, **EPOCHS).fit(X, table)
    assert model.predict(X).shape == (300, 3)
    assert model.out_activation_ == "logistic"
    assert (model.predict(X) == table).mean() > 0.9
    assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    two = ep.MLPClassifier(30, max_iter=5, **EPOCHS).fit(X, y == "a")
    assert two.coefs_[-1].shape == (30, 1)
    assert_allclose(two.predict_proba(X).sum(axis=1), 1)


# --------------------------------------------------------------------------------------------- files and errors


def test_the_file_holds_the_architecture_and_the_weights(classes, tmp_path):
    X, y = classes
    model = ep.MLPClassifier((8, 4), max_iter=3, **EPOCHS).fit(X, y)
    model.save(tmp_path / "m.epi")
    loaded = ep.load(tmp_path / "m.epi")
    assert (
        loaded.architecture_
        == model.architecture_
        == {
            "layers": [6, 8, 4, 3],
            "activation": "relu",
            "dropout": 0.0,
            "residual": False,
            "dtype": "float64",
        }
    )
    assert isinstance(loaded.module_, torch.nn.Sequential)
    assert not loaded.module_.training
    with torch.no_grad():
        z = loaded.module_(torch.from_numpy(X)).numpy()
    assert_allclose(np.exp(z) / np.exp(z).sum(axis=1, keepdims=True), model.predict_proba(X), rtol=1e-12)


def test_lbfgs_goes_on_from_its_checkpoint(classes, tmp_path):
    """Without hidden layers the problem is convex: the resumed fit ends at the same optimum."""
    options = {"hidden_layer_sizes": (), "solver": "lbfgs", "alpha": 3.0, "tol": 1e-7, "random_state": 0}
    whole = ep.MLPClassifier(**options, max_iter=1000).fit(*classes)
    cut = ep.MLPClassifier(**options, max_iter=whole.n_iter_ // 2).set_callbacks(ep.Checkpoint(tmp_path / "run.epi"))
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        cut.fit(*classes)
    resumed = ep.Checkpoint.resume(tmp_path / "run.epi").set_params(max_iter=1000)
    assert resumed.n_iter_ == whole.n_iter_ // 2
    assert np.array_equal(resumed.predict_proba(classes[0]), cut.predict_proba(classes[0]))
    resumed.fit(*classes)
    assert resumed.converged_
    assert_allclose(resumed.predict_proba(classes[0]), whole.predict_proba(classes[0]), atol=1e-6)


def test_weights_that_do_not_fit_the_architecture_are_refused(classes):
    X, y = classes
    model = ep.MLPClassifier(8, max_iter=1, **EPOCHS).fit(X, y)
    model.architecture_ = {**model.architecture_, "layers": [6, 9, 3]}
    del model._built
    with pytest.raises(ep.exceptions.ModelFormatError, match="another architecture"):
        model.predict(X)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"hidden_layer_sizes": (5, 0)}, "hidden_layer_sizes"),
        ({"hidden_layer_sizes": "wide"}, "hidden_layer_sizes"),
        ({"activation": "softmax"}, "activation"),
        ({"solver": "newton"}, "solver"),
        ({"device": "tpu"}, "device"),
        ({"device": "cuda"}, "no CUDA device|CUDA"),
        ({"solver": "lbfgs", "dropout": 0.5}, "lbfgs"),
        ({"solver": "backprop", "dropout": 0.5}, "backprop"),
        ({"solver": "lbfgs", "early_stopping": True}, "early_stopping"),
    ],
)
def test_bad_arguments_are_named(classes, change, match):
    if change.get("device") == "cuda" and torch.cuda.is_available():
        pytest.skip("a GPU is here")
    with pytest.raises((ParameterError, TypeError), match=match):
        ep.MLPClassifier(**change).fit(*classes)


def test_bad_data_is_named(classes):
    X, y = classes
    with pytest.raises(DataError, match="only one class"):
        ep.MLPClassifier().fit(X, np.zeros(300))
    with pytest.raises(ParameterError, match="early_stopping"):
        ep.MLPClassifier(early_stopping=True).partial_fit(X, y, classes=["a", "b", "c"])
    with pytest.raises(ValueError, match="classes"):
        ep.MLPClassifier().partial_fit(X, y)
    model = ep.MLPClassifier(4, max_iter=2, **EPOCHS, warm_start=True).fit(X, y)
    with pytest.raises(DataError, match="warm_start"):
        model.set_params(hidden_layer_sizes=5).fit(X, y)
    with pytest.raises(DataError, match="validation_fraction"):
        ep.MLPClassifier(early_stopping=True, validation_fraction=0.001).fit(X, y)


def test_a_fit_that_still_improves_warns(classes):
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = ep.MLPClassifier(5, max_iter=3, random_state=0).fit(*classes)
    assert not model.converged_
    assert not model.certificate_.holds
    assert "no proof of optimality" in model.certificate_.meaning
