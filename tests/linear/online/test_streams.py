"""A batch is its rows one by one; classes may come later; weights are repetitions; nothing else matters."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import epicycle as ep
from epicycle import PassiveAggressiveClassifier, Perceptron, SGDClassifier, SGDRegressor
from epicycle.exceptions import ConvergenceError, DataError, ParameterError

quick = settings(max_examples=40)


def rows(seed, n=60, p=5, K=3, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, p)) < 0.4, 0.0, rng.normal(size=(n, p))).astype(dtype)
    return X, rng.integers(K, size=n)


def same(a, b):
    """Bit for bit."""
    assert_array_equal(a.coef_, b.coef_)
    assert_array_equal(a.intercept_, b.intercept_)
    assert a.t_ == b.t_
    for name in a._learner_:
        assert_array_equal(a._learner_[name], b._learner_[name])


MODELS = {
    "hinge": lambda: SGDClassifier(),
    "log, elastic net": lambda: SGDClassifier(loss="log_loss", penalty="elasticnet", alpha=0.02),
    "l1, averaged": lambda: SGDClassifier(penalty="l1", average=3, learning_rate="invscaling", eta0=0.1),
    "squared, averaged": lambda: SGDClassifier(loss="squared_hinge", average=True, alpha=0.5),
    "passive-aggressive": lambda: PassiveAggressiveClassifier(C=0.4),
    "perceptron": lambda: Perceptron(),
    "averaged perceptron": lambda: Perceptron(variant="averaged"),
    "voted perceptron": lambda: Perceptron(variant="voted"),
}


@quick
@given(
    name=st.sampled_from(sorted(MODELS)),
    seed=st.integers(0, 50),
    cuts=st.lists(st.integers(1, 59), max_size=8),
    layout=st.sampled_from(["dense", "fortran", "csr", "csr64", "float32"]),
    K=st.integers(1, 4),
    closed=st.booleans(),
    weighted=st.booleans(),
)
def test_a_batch_is_its_rows_one_by_one(name, seed, cuts, layout, K, closed, weighted):
    X, y = rows(seed, K=K)
    if layout == "float32":
        X = X.astype(np.float32)
    elif layout == "fortran":
        X = np.asfortranarray(X)
    elif layout.startswith("csr"):
        X = sp.csr_array(X)
        if layout == "csr64":
            X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    weight = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 2.0, 3.25], size=60) if weighted else None
    if weight is not None:
        weight[0] = 1.0
    classes = np.arange(max(K, 2)) if closed else None

    def learn(ends):
        model = MODELS[name]()
        for start, stop in zip([0, *ends], [*ends, 60], strict=True):
            v = None if weight is None else weight[start:stop]
            if v is not None and not v.any():
                continue  # rows that count for nothing
            model.partial_fit(X[start:stop], y[start:stop], classes=classes, sample_weight=v)
        return model

    whole, singles, cut = learn([]), learn(list(range(1, 60))), learn(sorted(set(cuts)))
    assert_array_equal(whole.predict(X), singles.predict(X))
    for other in (singles, cut):
        assert_array_equal(other.classes_, whole.classes_)
        same(whole, other)


@quick
@given(seed=st.integers(0, 50), cuts=st.lists(st.integers(1, 59), max_size=8), sparse=st.booleans())
def test_a_batch_of_a_regression_is_its_rows_one_by_one(seed, cuts, sparse):
    X, _ = rows(seed)
    y = X @ np.arange(5.0) + np.random.default_rng(seed).normal(size=60)
    given_X = sp.csr_array(X) if sparse else X
    models = []
    for ends in ([], list(range(1, 60)), sorted(set(cuts))):
        model = SGDRegressor(penalty="elasticnet", average=True)
        for start, stop in zip([0, *ends], [*ends, 60], strict=True):
            model.partial_fit(given_X[start:stop], y[start:stop])
        models.append(model)
    same(models[0], models[1])
    same(models[0], models[2])


@quick
@given(name=st.sampled_from(sorted(MODELS)), seed=st.integers(0, 50), K=st.integers(2, 5))
def test_a_late_class_is_as_if_it_had_been_known(name, seed, K):
    """In whatever order the classes come, the model is the one that learnt all rows with all classes known."""
    X, y = rows(seed, K=K)
    y = np.sort(y)[::-1] if seed % 2 else y
    late = MODELS[name]()
    for i in range(60):
        late.partial_fit(X[i : i + 1], y[i : i + 1])
    known = MODELS[name]().partial_fit(X, y, classes=np.unique(y)) if len(np.unique(y)) > 1 else late
    assert_array_equal(late.classes_, np.unique(y))
    assert_allclose(late.coef_, known.coef_, rtol=1e-9, atol=1e-12)
    assert_allclose(late.intercept_, known.intercept_, rtol=1e-9, atol=1e-12)


def test_a_single_class_is_a_model_too():
    model = SGDClassifier(loss="log_loss").partial_fit([[1.0, 0.0]], ["a"])
    assert model.predict([[5.0, 5.0]]).tolist() == ["a"]
    assert model.predict_proba([[5.0, 5.0]]).tolist() == [[1.0]]
    assert model.decision_function([[5.0, 5.0]]).shape == (1,)
    model.partial_fit([[0.0, 1.0]], ["longer label"])
    assert model.classes_.tolist() == ["a", "longer label"]


def test_declared_classes_are_closed():
    model = SGDClassifier().partial_fit([[1.0], [2.0]], [0, 1], classes=[0, 1])
    with pytest.raises(DataError, match="not among the classes"):
        model.partial_fit([[1.0]], [2])
    with pytest.raises(DataError, match="not the same as on last call"):
        model.partial_fit([[1.0]], [1], classes=[0, 1, 2])
    with pytest.raises(DataError, match="at least 2 classes"):
        SGDClassifier().partial_fit([[1.0]], [1], classes=[1])


def test_a_failed_batch_changes_nothing():
    X, y = rows(0)
    model = SGDClassifier().partial_fit(X, y)
    before = {name: array.copy() for name, array in model._learner_.items()}
    bad = X.copy()
    bad[40, 2] = np.nan
    for broken in (bad, sp.csr_array(bad), X[:, :4]):
        with pytest.raises(DataError):
            model.partial_fit(broken, y)
    wild = SGDClassifier(loss="hinge", learning_rate="constant", eta0=1e300, penalty=None)
    wild.partial_fit(X, y)
    with pytest.raises(ConvergenceError, match="nothing of this batch was learnt"):
        wild.partial_fit(1e200 * np.tile(X, (50, 1)), np.tile(y, 50))
    assert np.isfinite(wild.coef_).all()
    for name, array in before.items():
        assert_array_equal(model._learner_[name], array)
    assert model.t_ == 61.0


def test_malformed_sparse_rows_are_refused():
    X = sp.csr_array(np.eye(4))
    X.indices = X.indices.copy()
    X.indices[2] = 9
    model = SGDClassifier()
    with pytest.raises(ValueError):
        model.partial_fit(X, [0, 1, 0, 1])
    assert not hasattr(model, "classes_")


@quick
@given(
    seed=st.integers(0, 99),
    name=st.sampled_from(["hinge", "log, elastic net", "perceptron", "averaged perceptron"]),
    stream=st.booleans(),
    sparse=st.booleans(),
)
def test_weights_are_repetitions_and_zero_is_absent(seed, name, stream, sparse):
    X, y = rows(seed)
    weight = np.random.default_rng(seed + 1).integers(0, 4, size=60).astype(float)
    weight[:3] = 1.0
    y[:3] = [0, 1, 2]
    many = np.repeat(np.arange(60), weight.astype(int))
    table = sp.csr_array(X) if sparse else X
    with ep.config(on_nonconvergence="ignore"):
        if stream:
            a = MODELS[name]().partial_fit(table, y, sample_weight=weight)
            b = MODELS[name]().partial_fit(table[many], y[many])
        else:
            chosen = {"max_iter": 6, "random_state": 3}
            a = MODELS[name]().set_params(**chosen).fit(table, y, sample_weight=weight)
            b = MODELS[name]().set_params(**chosen).fit(table[many], y[many])
    assert_array_equal(a.coef_, b.coef_)
    assert_array_equal(a.intercept_, b.intercept_)


@quick
@given(seed=st.integers(0, 99), name=st.sampled_from(["hinge", "l1, averaged", "perceptron"]), sparse=st.booleans())
def test_the_order_in_which_rows_are_stored_does_not_matter(seed, name, sparse):
    X, y = rows(seed)
    order = np.random.default_rng(seed).permutation(60)
    table = sp.csr_array(X) if sparse else X
    with ep.config(on_nonconvergence="ignore"):
        chosen = {"max_iter": 5, "random_state": 0}
        a = MODELS[name]().set_params(**chosen).fit(table, y)
        b = MODELS[name]().set_params(**chosen).fit(table[order], y[order])
    assert_array_equal(a.coef_, b.coef_)


@quick
@given(seed=st.integers(0, 99), name=st.sampled_from(sorted(MODELS)), sparse=st.booleans())
def test_permuted_columns_permute_the_coefficients(seed, name, sparse):
    X, y = rows(seed)
    order = np.random.default_rng(seed).permutation(5)
    wrap = sp.csr_array if sparse else np.ascontiguousarray
    a = MODELS[name]().partial_fit(wrap(X), y)
    b = MODELS[name]().partial_fit(wrap(X[:, order]), y)
    assert_allclose(a.coef_[:, order], b.coef_, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["hinge", "log, elastic net", "perceptron", "voted perceptron"])
def test_labels_are_names_only(name):
    X, y = rows(1)
    numbers = MODELS[name]().partial_fit(X, y)
    words = MODELS[name]().partial_fit(X, np.array(["a", "b", "c"])[y])
    shifted = MODELS[name]().partial_fit(X, y.astype(float) * 10 - 5)
    for other in (words, shifted):
        assert_array_equal(numbers.coef_, other.coef_)
    assert_array_equal(words.predict(X), np.array(["a", "b", "c"])[numbers.predict(X)])
    two = MODELS[name]().fit(X, y > 0) if name != "hinge" else MODELS[name]().set_params(random_state=0).fit(X, y > 0)
    assert two.coef_.shape == (1, 5)


@pytest.mark.parametrize("cls", [SGDClassifier, SGDRegressor, Perceptron])
def test_dense_and_sparse_rows_give_the_same_model(cls):
    X, y = rows(3)
    chosen = {"max_iter": 4, "random_state": 0, **({} if cls is Perceptron else {"intercept_rate": 1.0})}
    with ep.config(on_nonconvergence="ignore"):
        a = cls(**chosen).fit(X, y)
        b = cls(**chosen).fit(sp.csr_array(X), y)
    assert_allclose(a.coef_, b.coef_, rtol=1e-9, atol=1e-12)
    assert_allclose(a.intercept_, b.intercept_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("cls", [SGDClassifier, SGDRegressor, Perceptron])
def test_files_in_their_order_are_memory(cls, tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    y = (X @ [1.0, 2.0, 0.5] + rng.normal(size=5000) > 0).astype(int)
    weight = rng.integers(0, 3, size=5000).astype(float)
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=y, w=weight)
    frame.to_parquet(tmp_path / "rows.parquet")
    scan = ep.scan(tmp_path / "rows.parquet", target="y", weight="w", batch_rows=700)
    chosen = {"max_iter": 3, "shuffle": False}
    with ep.config(on_nonconvergence="ignore"):
        a, b = cls(**chosen).fit(scan), cls(**chosen).fit(X, y, sample_weight=weight)
        shuffled = cls(max_iter=8, random_state=0).fit(scan)
    assert_array_equal(a.coef_, b.coef_)
    assert_array_equal(cls().partial_fit(scan).coef_, cls().partial_fit(X, y, sample_weight=weight).coef_)
    assert shuffled.score(frame[list("abc")], y) > (0.1 if cls is SGDRegressor else 0.75)


def test_balanced_weights_need_all_rows():
    with pytest.raises(ParameterError, match="balanced"):
        SGDClassifier(class_weight="balanced").partial_fit([[1.0], [2.0]], [0, 1])
    X, y = rows(0, K=2)
    a = SGDClassifier(class_weight={0: 2.0, 1: 1.0}).partial_fit(X, y)
    b = SGDClassifier().partial_fit(X, y, sample_weight=np.where(y == 0, 2.0, 1.0))
    assert_array_equal(a.coef_, b.coef_)


def test_optimal_steps_need_alpha():
    with pytest.raises(ParameterError, match="alpha"):
        SGDClassifier(alpha=0.0).fit([[1.0], [2.0]], [0, 1])


@pytest.mark.parametrize("cls", [SGDClassifier, SGDRegressor])
def test_early_stopping_and_warm_start(cls):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = (X[:, 0] + 0.3 * rng.normal(size=600) > 0).astype(int)
    model = cls(early_stopping=True, random_state=0).fit(X, y)
    assert len(model.history_.validation_score) == model.n_iter_
    assert "validation score" in model.certificate_.meaning
    cold = cls(max_iter=2, tol=None, random_state=0).fit(X, y)
    warm = cls(max_iter=2, tol=None, random_state=0, warm_start=True).fit(X, y).fit(X, y)
    given_start = cls(max_iter=2, tol=None, random_state=0).fit(
        X, y, coef_init=cold.coef_, intercept_init=cold.intercept_
    )
    assert_array_equal(warm.coef_, given_start.coef_)
    assert not np.array_equal(warm.coef_, cold.coef_)
    with pytest.raises(DataError, match="coef_init"):
        cls().fit(X, y, coef_init=np.zeros(7))


def test_save_and_go_on(tmp_path):
    X, y = rows(0)
    model = SGDClassifier(loss="log_loss", penalty="elasticnet", average=True).partial_fit(X[:30], y[:30])
    model.save(tmp_path / "m.epi")
    loaded = ep.load(tmp_path / "m.epi")
    same(loaded.partial_fit(X[30:], y[30:]), model.partial_fit(X[30:], y[30:]))
