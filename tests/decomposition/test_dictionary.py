"""Dictionaries: codes against other solvers of the same problem, a planted dictionary, descent, engines, weights."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls
from sklearn import decomposition as peer

import epicycle as ep
from epicycle import (
    DictionaryLearning,
    MiniBatchDictionaryLearning,
    SparseCoder,
    dict_learning,
    dict_learning_online,
    sparse_encode,
)
from epicycle._native import decomposition as native
from epicycle.exceptions import ConvergenceWarning, DataError, DataTypeError, ParameterError

RNG = np.random.default_rng(0)
ATOMS = RNG.normal(size=(8, 20))
ATOMS /= np.linalg.norm(ATOMS, axis=1, keepdims=True)
CODES = RNG.normal(size=(250, 8)) * (RNG.random((250, 8)) < 0.25)
X = CODES @ ATOMS + 0.01 * RNG.normal(size=(250, 20))


def objective(table, C, D, alpha, v=None):
    v = np.ones(len(table)) if v is None else v
    return v @ (0.5 * ((table - C @ D) ** 2).sum(axis=1) + alpha * np.abs(C).sum(axis=1))


@pytest.mark.parametrize("positive", [False, True])
def test_lasso_codes_satisfy_the_conditions_of_an_optimum(positive):
    alpha = 0.2
    for algorithm in ("lasso_lars", "lasso_cd"):
        C = sparse_encode(X, ATOMS, algorithm=algorithm, alpha=alpha, positive=positive)
        slope = (X - C @ ATOMS) @ ATOMS.T
        assert (np.abs(slope[C == 0]) if not positive else slope[C == 0]).max() <= alpha + 1e-4
        assert_allclose(slope[C != 0], alpha * np.sign(C[C != 0]), atol=1e-3)
        assert not positive or C.min() >= 0
    theirs = peer.sparse_encode(X, ATOMS, algorithm="lasso_cd", alpha=alpha, positive=positive)
    assert_allclose(C, theirs, atol=1e-3)
    assert objective(X, C, ATOMS, alpha) <= objective(X, theirs, ATOMS, alpha) * (1 + 1e-7)


@pytest.mark.parametrize("positive", [False, True])
def test_codes_of_atoms_that_resemble_each_other_take_few_sweeps(positive):
    rng = np.random.default_rng(3)
    table = 100 * rng.choice([-1.0, 1.0], size=(12, 40))
    atoms = np.abs(rng.normal(size=(60, 40))) + 0.5  # cosines of about 0.9, and more atoms than columns
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    squares, W = (table**2).sum(axis=1), np.zeros((12, 60))
    native.lasso_codes(atoms @ atoms.T, table @ atoms.T, squares, 1.0, positive, 200, 1e-8, W)
    rest = table - W @ atoms
    scale = np.minimum(
        1.0, 1.0 / np.maximum((rest @ atoms.T if positive else np.abs(rest @ atoms.T)).max(axis=1), 1e-9)
    )
    value = 0.5 * (rest**2).sum(axis=1) + np.abs(W).sum(axis=1)
    dual = 0.5 * squares - 0.5 * ((table - scale[:, None] * rest) ** 2).sum(axis=1)
    assert (value - dual <= 1.01e-8 * 0.5 * squares).all()
    assert not positive or W.min() >= 0


def test_positive_codes_without_a_penalty_are_non_negative_least_squares():
    C = sparse_encode(X[:30], ATOMS, algorithm="lasso_cd", alpha=0, positive=True, max_iter=5000)
    assert_allclose(C, [nnls(ATOMS.T, row)[0] for row in X[:30]], atol=1e-3)


@pytest.mark.parametrize("algorithm", ["omp", "lars", "threshold"])
def test_greedy_codes_are_those_of_scikit_learn(algorithm):
    for count in (1, 2, 3):
        options = {"alpha": 0.1 * count} if algorithm == "threshold" else {"n_nonzero_coefs": count}
        for table in (X, sp.csr_array(X)):
            found = sparse_encode(table, ATOMS, algorithm=algorithm, **options)
            assert_allclose(found, peer.sparse_encode(X, ATOMS, algorithm=algorithm, **options), atol=1e-9)
    given = sparse_encode(X, ATOMS, algorithm=algorithm, gram=ATOMS @ ATOMS.T, cov=ATOMS @ X.T, **options)
    assert_allclose(given, found, atol=1e-12)
    if algorithm != "threshold":  # with all atoms both end at least squares
        whole = sparse_encode(X, ATOMS, algorithm=algorithm, n_nonzero_coefs=8)
        assert_allclose(whole, np.linalg.lstsq(ATOMS.T, X.T)[0].T, atol=1e-9)


def test_a_planted_dictionary_is_found():
    model = DictionaryLearning(8, alpha=0.05, random_state=0, tol=1e-7, transform_algorithm="lasso_cd")
    C = model.fit_transform(X)
    likeness = np.abs(model.components_ @ ATOMS.T).max(axis=0)
    assert likeness.min() > 0.99
    assert np.linalg.norm(model.components_, axis=1).max() <= 1 + 1e-12
    assert model.error_[-1] == pytest.approx(objective(X, C, model.components_, 0.05), rel=1e-5)
    assert model.certificate_.holds
    assert "no proof of a global optimum" in model.certificate_.meaning
    assert_allclose(model.transform(X), C, atol=1e-3)
    assert_allclose(model.inverse_transform(C), C @ model.components_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "signs", [{}, {"positive_dict": True}, {"positive_code": True, "fit_algorithm": "cd"}], ids=str
)
def test_no_round_raises_the_objective(signs):
    table = np.abs(X) if "positive_dict" in signs else X
    model = DictionaryLearning(12, alpha=0.1, random_state=1, max_iter=40, tol=0, **signs)
    with ep.config(on_nonconvergence="ignore"):
        C = model.fit_transform(table)
    assert np.diff(model.error_).max() <= 1e-12 * model.error_[0]
    assert objective(table, C, model.components_, 0.1) <= model.error_[-1] * (1 + 1e-9)
    assert "positive_dict" not in signs or model.components_.min() >= 0
    assert "positive_code" not in signs or C.min() >= 0
    theirs = peer.dict_learning(
        table,
        12,
        alpha=0.1,
        max_iter=40,
        tol=0,
        random_state=1,
        method="cd",
        positive_dict="positive_dict" in signs,
        positive_code="positive_code" in signs,
    )
    assert model.error_[-1] <= 1.05 * theirs[2][-1]


def test_certificate_is_an_upper_bound_of_what_codes_could_gain():
    model = DictionaryLearning(4, alpha=0.3, random_state=0, max_iter=3, tol=0)
    with pytest.warns(ConvergenceWarning, match="duality gap and gain"):
        C = model.fit_transform(X)
    best = sparse_encode(X, model.components_, alpha=0.3, max_iter=10_000)
    now, least = (objective(X, A, model.components_, 0.3) for A in (C, best))
    assert now - least <= model.certificate_.value * now + 1e-9


def test_engines_threads_and_weights_agree(tmp_path):
    settings = {"alpha": 0.1, "random_state": 0, "tol": 1e-4}
    own = DictionaryLearning(5, **settings).fit(X)
    pd.DataFrame(X, columns=[f"c{j}" for j in range(20)]).to_parquet(tmp_path / "x.parquet")
    for source in (ep.scan(tmp_path / "x.parquet"), da.from_array(X, chunks=(70, 20)), sp.csr_array(X)):
        other = DictionaryLearning(5, **settings).fit(source)
        assert_allclose(other.components_, own.components_, atol=1e-6)
    assert np.asarray(own.transform(da.from_array(X, chunks=(70, 20)))).shape == (250, 5)
    times = RNG.integers(0, 3, 250)
    weighted = DictionaryLearning(3, **settings).fit(X, sample_weight=times)
    repeated = DictionaryLearning(3, **settings).fit(np.repeat(X, times, axis=0))
    assert_allclose(weighted.components_, repeated.components_, atol=1e-6)
    big = np.tile(X, (60, 1))
    fits = [DictionaryLearning(4, n_jobs=jobs, max_iter=2, **settings) for jobs in (1, 2, 4)]
    with ep.config(on_nonconvergence="ignore"):
        codes = [fit.fit_transform(big) for fit in fits]
    for fit, code in zip(fits[1:], codes[1:], strict=True):
        assert_array_equal(fit.components_, fits[0].components_)
        assert_array_equal(code, codes[0])


def test_mini_batches():
    settings = {"alpha": 0.05, "random_state": 0, "fit_algorithm": "cd"}
    once = {"batch_size": 25, "max_iter": 20, "tol": 0.0, "max_no_improvement": None, **settings}

    def reached(model):
        return objective(X, sparse_encode(X, model.components_, alpha=0.05), model.components_, 0.05)

    with ep.config(on_nonconvergence="ignore"):
        model = MiniBatchDictionaryLearning(8, **once).fit(X)
    assert reached(model) < 1.05 * reached(peer.MiniBatchDictionaryLearning(8, **once).fit(X))
    assert model.history_.n_iter == model.n_steps_ == 200
    ours, theirs = MiniBatchDictionaryLearning(8, **settings), peer.MiniBatchDictionaryLearning(8, **settings)
    for _ in range(10):
        for start in range(0, 250, 25):
            ours.partial_fit(X[start : start + 25])
            theirs.partial_fit(X[start : start + 25])
    assert ours.n_steps_ == 100
    assert reached(ours) < 1.05 * reached(theirs)
    code, D = dict_learning_online(X, 4, alpha=0.1, random_state=0, batch_size=50)
    assert code.shape == (250, 4)
    assert D.shape == (4, 20)
    with pytest.raises(DataTypeError, match="partial_fit takes a stream"):
        MiniBatchDictionaryLearning(4).fit(da.from_array(X))


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(2, 15),
    p=st.integers(1, 6),
    k=st.integers(1, 8),
    scale=st.sampled_from([1e-30, 1.0, 1e30]),
    ties=st.booleans(),
)
def test_any_rows(seed, n, p, k, scale, ties):
    rng = np.random.default_rng(seed)
    table = scale * (rng.integers(-1, 2, (n, p)).astype(float) if ties else rng.normal(size=(n, p)))
    with ep.config(on_nonconvergence="ignore"):
        model = DictionaryLearning(k, alpha=0.1 * scale, random_state=0, max_iter=10)
        C = model.fit_transform(table)
    assert np.isfinite(C).all()
    assert np.linalg.norm(model.components_, axis=1).max() <= 1 + 1e-9
    half = 0.5 * (table**2).sum()
    assert model.error_[-1] <= half * (1 + 1e-9)
    for algorithm in ("omp", "lars", "threshold"):
        found = SparseCoder(model.components_, transform_algorithm=algorithm).fit(table)
        assert np.isfinite(found.transform(table)).all()


def test_refusals_and_splits(tmp_path):
    coder = SparseCoder(ATOMS, transform_algorithm="lasso_cd", transform_alpha=0.1, split_sign=True)
    code = coder.fit(X).transform(X.astype(np.float32))
    assert code.dtype == np.float32
    assert code.min() >= 0
    assert_allclose(code[:, :8] - code[:, 8:], sparse_encode(X, ATOMS, alpha=0.1), atol=1e-4)
    assert_allclose(coder.inverse_transform(code), (code[:, :8] - code[:, 8:]) @ ATOMS, atol=1e-5)
    with pytest.warns(ConvergenceWarning, match="raise transform_max_iter"):
        SparseCoder(
            RNG.normal(size=(40, 20)), transform_algorithm="lasso_cd", transform_alpha=1e-3, transform_max_iter=1
        ).transform(X)
    with pytest.raises(ParameterError, match="Positive constraint not supported for 'omp'"):
        sparse_encode(X, ATOMS, algorithm="omp", positive=True)
    with pytest.raises(ParameterError, match="algorithm='ols'"):
        sparse_encode(X, ATOMS, algorithm="ols")
    with pytest.raises(DataError, match="different numbers of features"):
        SparseCoder(ATOMS).fit(X[:, :5])
    with pytest.raises(DataError, match="dict_init: shape"):
        DictionaryLearning(3, dict_init=np.ones((2, 20))).fit(X)
    with pytest.raises(DataError, match="X: a largest entry"):
        DictionaryLearning(3).fit(X * 1e150)
    with pytest.raises(DataError, match="sample_weight: a sum"):
        DictionaryLearning(3).fit(X, sample_weight=np.full(250, 1e100))
    with pytest.raises(MemoryError):
        DictionaryLearning(10**9).fit(X)
    C, D, errors, rounds = dict_learning(X, 3, alpha=0.1, random_state=0, tol=1e-4, return_n_iter=True)
    assert len(errors) == rounds
    start = DictionaryLearning(3, alpha=0.1, dict_init=D, code_init=C, tol=1e-4).fit(X)
    assert start.error_[0] <= errors[-1] * (1 + 1e-9)
    start.save(tmp_path / "d.epi")
    assert_array_equal(ep.load(tmp_path / "d.epi").transform(X), start.transform(X))
    with pytest.raises(ValueError, match="greedy_codes: expected"):
        native.greedy_codes(np.eye(2), np.ones((3, 2)), 3, False)
    with pytest.raises(ValueError, match="lasso_codes: expected"):
        native.lasso_codes(np.eye(2), np.ones((3, 2)), np.ones(2), 1.0, False, 5, 1e-6, np.zeros((3, 2)))
