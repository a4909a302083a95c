"""Kernel ridge regression: closed form, the primal, leave one out by leaving out, interpolation, bad matrices."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge
from sklearn.model_selection import cross_val_score

import epicycle as ep
from epicycle import KernelRidge, Ridge
from epicycle.exceptions import ConvergenceError, DataError, MemoryBudgetError, ParameterError
from epicycle.kernel import Gaussian, Linear, Matern, Polynomial, Spectrum
from epicycle.linalg._cholesky import factor_repaired
from epicycle.linalg._shifted_systems import solve_shifted

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=80)
NEW = RNG.normal(size=(20, 3))


@pytest.mark.parametrize(
    ("kernel", "more"),
    [
        ("linear", {}),
        ("rbf", {"gamma": 0.3}),
        ("rbf", {}),
        ("poly", {"degree": 2, "coef0": 0.5}),
        ("laplacian", {}),
        ("cosine", {}),
        ("sigmoid", {"gamma": 1e-3}),
    ],
)
def test_agrees_with_scikit_learn(kernel, more):
    weight = RNG.uniform(0.5, 2, 80)
    for w in (None, weight):
        mine = KernelRidge(0.7, kernel=kernel, **more).fit(X, Y, sample_weight=w)
        theirs = SklearnKernelRidge(0.7, kernel=kernel, **more).fit(X, Y, sample_weight=w)
        assert_allclose(mine.predict(NEW), theirs.predict(NEW), rtol=1e-8, atol=1e-9)
        assert mine.certificate_.holds
        # the tangent of an inner product is no Mercer kernel: its equations are solved, but nothing is minimal
        assert mine.certificate_.kind == ("equation residual" if kernel == "sigmoid" else "duality gap")


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_linear_kernel_equals_the_primal(fit_intercept):
    weight = RNG.uniform(0.5, 2, 80)
    shifted = X + 3
    dual = KernelRidge(0.7, kernel="linear", fit_intercept=fit_intercept).fit(shifted, Y, sample_weight=weight)
    primal = Ridge(0.7, fit_intercept=fit_intercept).fit(shifted, Y, sample_weight=weight)
    assert_allclose(dual.dual_coef_ @ shifted, primal.coef_, rtol=1e-8)
    assert_allclose(dual.intercept_, primal.intercept_, rtol=1e-8, atol=1e-12)
    assert_allclose(dual.predict(NEW), primal.predict(NEW), rtol=1e-8)


def test_polynomial_kernel_equals_ridge_on_its_features():
    kernel = Polynomial(2, c=0.5)
    phi, new = kernel.feature_map(X), kernel.feature_map(NEW)
    primal = Ridge(0.3, fit_intercept=False).fit(phi, Y)
    assert_allclose(KernelRidge(0.3, kernel=kernel).fit(X, Y).predict(NEW), primal.predict(new), rtol=1e-7)


def test_interpolation_limit():
    kernel = Matern(0.5, nu=1.5)
    exact = np.linalg.solve(kernel(X), Y)
    for alpha in (1e-8, 1e-12, 0.0):
        model = KernelRidge(alpha, kernel=kernel).fit(X, Y)
        assert_allclose(model.predict(X), Y, atol=1e3 * max(alpha, 1e-13))
        assert_allclose(model.predict(NEW), kernel(NEW, X) @ exact, atol=1e-4 if alpha > 1e-10 else 1e-8)
        assert model.certificate_.holds
    sizes = [KernelRidge(a, kernel=kernel).fit(X, Y).dual_coef_ for a in (1e-3, 1e-6, 1e-9)]
    errors = [np.abs(kernel(X) @ c - Y).max() for c in sizes]
    assert errors[0] > 100 * errors[1] > 1000 * errors[2]


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_is_what_leaving_out_gives(fit_intercept, weighted):
    rows, y = X[:25], Y[:25]
    weight = RNG.uniform(0.3, 3, 25) if weighted else None
    options = {"kernel": Gaussian(1.2), "fit_intercept": fit_intercept}
    model = KernelRidge([0.1, 1.0], **options).fit(rows, y, sample_weight=weight)
    for alpha, error in zip(model.alphas_, model.loo_errors_[:, 0], strict=True):
        left_out = np.empty(25)
        for i in range(25):
            keep = np.arange(25) != i
            part = None if weight is None else weight[keep]
            left_out[i] = y[i] - KernelRidge(alpha, **options).fit(rows[keep], y[keep], part).predict(rows[[i]])[0]
        assert np.average(left_out**2, weights=weight) == pytest.approx(error, rel=1e-8)
        if alpha == model.alpha_:
            assert_allclose(model.loo_residuals_, left_out, rtol=1e-7)
    assert_allclose(
        model.predict(NEW), KernelRidge(model.alpha_, **options).fit(rows, y, weight).predict(NEW), rtol=1e-8
    )


def test_the_search_finds_the_bottom_of_the_valley():
    model = KernelRidge("loo", kernel=Gaussian(1.0)).fit(X, Y)
    fine = KernelRidge(model.alpha_ * np.geomspace(0.5, 2, 21), kernel=Gaussian(1.0)).fit(X, Y)
    assert model.loo_errors_.min() <= fine.loo_errors_.min() * (1 + 1e-4)
    assert 1e-6 < model.alpha_ < 10
    folds = -cross_val_score(
        KernelRidge(model.alpha_, kernel=Gaussian(1.0)), X, Y, cv=len(X), scoring="neg_mean_squared_error"
    )
    assert folds.mean() == pytest.approx(model.loo_errors_.min(), rel=1e-7)


def test_several_targets_with_penalties_of_their_own():
    targets = np.column_stack([Y, RNG.normal(size=80), X[:, 0]])
    alphas = [0.1, 5.0, 0.1]
    together = KernelRidge(alphas, kernel="rbf", alpha_per_target=True).fit(X, targets)
    for t, alpha in enumerate(alphas):
        alone = KernelRidge(alpha, kernel="rbf").fit(X, targets[:, t])
        assert_allclose(together.predict(NEW)[:, t], alone.predict(NEW), rtol=1e-9)
    chosen = KernelRidge("loo", kernel="rbf", alpha_per_target=True).fit(X, targets)
    assert chosen.alpha_[1] > 10 * chosen.alpha_[2]  # noise is shrunk, a signal is not
    one = KernelRidge("loo", kernel="rbf").fit(X, targets)
    assert len(set(one.alpha_.tolist())) == 1
    assert one.loo_residuals_.shape == targets.shape


@settings(max_examples=25)
@given(st.integers(0, 1000), st.integers(1, 30), st.booleans(), st.booleans())
def test_weights_are_repetitions_and_the_order_does_not_matter(seed, n, intercept, linear):
    rng = np.random.default_rng(seed)
    rows, y, weight = rng.normal(size=(n, 2)), rng.normal(size=n), rng.integers(0, 3, n)
    weight[0] = 2
    options = {"kernel": "linear" if linear else Gaussian(1.0), "fit_intercept": intercept}
    weighted = KernelRidge(0.4, **options).fit(rows, y, sample_weight=weight)
    repeated = KernelRidge(0.4, **options).fit(np.repeat(rows, weight, axis=0), np.repeat(y, weight))
    assert_allclose(weighted.predict(NEW[:, :2]), repeated.predict(NEW[:, :2]), rtol=1e-8, atol=1e-10)
    order = rng.permutation(n)
    turned = KernelRidge(0.4, **options).fit(rows[order], y[order], sample_weight=weight[order])
    assert_allclose(weighted.predict(NEW[:, :2]), turned.predict(NEW[:, :2]), rtol=1e-8, atol=1e-10)
    assert weighted.certificate_.holds


def test_a_factor_in_float32_gives_the_digits_of_float64():
    rng = np.random.default_rng(1)
    rows, y = rng.normal(size=(700, 6)), rng.normal(size=700)
    for alpha in (10.0, 1.0, 1e-2, 1e-5, 1e-9):  # the last two are beyond float32
        model = KernelRidge(alpha, kernel=Gaussian(2.0)).fit(rows, y)
        K = Gaussian(2.0)(rows)
        c = np.linalg.solve(K + alpha * np.eye(700), y)
        assert_allclose(K @ model.dual_coef_, K @ c, rtol=1e-7, atol=1e-8)
        assert model.certificate_.value < 1e-12
        assert model.jitter_ == 0


def test_any_number_of_threads_gives_the_same_bits():
    rng = np.random.default_rng(2)
    rows, y = rng.normal(size=(1200, 4)), rng.normal(size=(1200, 2))
    models = [KernelRidge(kernel="rbf", n_jobs=n).fit(rows, y) for n in (1, 2, 3)]
    assert np.array_equal(models[0].dual_coef_, models[1].dual_coef_)
    assert np.array_equal(models[0].dual_coef_, models[2].dual_coef_)
    assert np.array_equal(models[0].predict(rows), models[2].predict(rows))


def test_a_singular_kernel_gets_the_smallest_jitter_and_says_so():
    rows = np.repeat(X[:20], 3, axis=0)
    model = KernelRidge(0.0, kernel=Gaussian(5.0)).fit(rows, np.repeat(Y[:20], 3))
    assert 0 < model.jitter_ < 1e-8
    assert "on its diagonal" in model.certificate_.meaning
    assert model.certificate_.holds
    assert_allclose(model.predict(rows), np.repeat(Y[:20], 3), atol=1e-2)


def test_a_certificate_that_does_not_hold_says_so():
    rows, y = X[:40], Y[:40]
    with ep.config(on_nonconvergence="ignore"):
        model = KernelRidge(1e-15, kernel=Gaussian(30.0), tol=1e-30).fit(rows, y)
    assert not model.converged_
    assert not model.certificate_.holds
    with pytest.warns(ep.exceptions.ConvergenceWarning, match="KernelRidge"):
        KernelRidge(1e-15, kernel=Gaussian(30.0), tol=1e-30).fit(rows, y)


def test_the_gap_is_the_distance_to_the_minimum():
    """P(c) - min P <= sum of squares of the residual of the linear system, with equality far from nothing."""
    K, alpha = Gaussian(1.0)(X), 0.5
    best = np.linalg.solve(K + alpha * np.eye(80), Y)

    def objective(c):
        return np.square(Y - K @ c).sum() + alpha * c @ K @ c

    for size in (1e-3, 1e-1, 1.0):
        c = best + size * RNG.normal(size=80)
        gap = np.square(Y - K @ c - alpha * c).sum()
        assert objective(c) - objective(best) <= gap * (1 + 1e-9)


def test_rows_of_every_kind():
    import pandas as pd

    dense = KernelRidge(kernel="rbf").fit(X, Y).predict(NEW)
    sparse = KernelRidge(kernel="rbf").fit(sp.csr_array(X), Y)
    assert_allclose(sparse.predict(sp.csr_array(NEW)), dense, rtol=1e-9)
    assert_allclose(sparse.predict(NEW), dense, rtol=1e-9)
    assert_allclose(KernelRidge(kernel="rbf").fit(X, Y).predict(sp.csr_array(NEW)), dense, rtol=1e-9)
    frame = pd.DataFrame(X, columns=list("abc"))
    assert_allclose(KernelRidge(kernel="rbf").fit(frame, Y).predict(pd.DataFrame(NEW, columns=list("abc"))), dense)
    single = KernelRidge(kernel="rbf").fit(X.astype(np.float32), Y)
    assert single.predict(NEW.astype(np.float32)).dtype == np.float32
    assert_allclose(single.predict(NEW.astype(np.float32)), dense, atol=1e-5)
    K = Gaussian((2 / 3) ** -0.5)(X)
    given = KernelRidge(kernel="precomputed").fit(K, Y)
    assert_allclose(given.predict(Gaussian((2 / 3) ** -0.5)(NEW, X)), dense, rtol=1e-9)
    assert_allclose(
        KernelRidge(kernel=lambda A, B: A @ B.T).fit(X, Y).predict(NEW), KernelRidge().fit(X, Y).predict(NEW)
    )


def test_rows_without_a_weight_leave_no_trace_in_a_given_matrix():
    weight = np.where(np.arange(80) % 4 == 0, 0.0, 1.0)
    vectors = KernelRidge(0.3, kernel=Gaussian(1.0)).fit(X, Y, weight)
    matrix = KernelRidge(0.3, kernel="precomputed").fit(Gaussian(1.0)(X), Y, weight)
    assert_allclose(matrix.predict(Gaussian(1.0)(NEW, X)), vectors.predict(NEW), rtol=1e-9)


def test_offsets_do_not_matter():
    plain = KernelRidge(kernel=Gaussian(1.0)).fit(X, Y).predict(NEW)
    moved = KernelRidge(kernel=Gaussian(1.0)).fit(X + 1e8, Y).predict(NEW + 1e8)
    assert_allclose(moved, plain, atol=1e-6)


def test_strings(tmp_path):
    strings = ["".join(RNG.choice(list("ACGT"), 12)) for _ in range(40)]
    y = np.array([s.count("AC") for s in strings], dtype=float)
    model = KernelRidge(0.01, kernel=Spectrum(2)).fit(strings, y)
    assert_allclose(model.predict(["ACACAC", "GGGG", ""]), [3, 0, 0], atol=0.1)
    model.save(tmp_path / "m.epi")
    assert_allclose(ep.load(tmp_path / "m.epi").predict(["ACACAC"]), model.predict(["ACACAC"]), rtol=0)
    with pytest.raises(DataError, match="X"):
        model.predict([[1.0]])


def test_too_many_rows_are_refused_with_the_alternative():
    with ep.config(memory_limit=1 << 27), pytest.raises(MemoryBudgetError, match=r"KernelRidge.*Nystroem"):
        KernelRidge(kernel="rbf").fit(np.zeros((5000, 2)), np.zeros(5000))


def test_no_mercer_kernel_at_all():
    with pytest.raises(ConvergenceError, match="is_mercer"):
        KernelRidge(0.1, kernel=lambda A, B: -np.exp(-np.square(A[:, None] - B).sum(axis=2))).fit(X, Y)


def test_kernels_that_are_none_get_no_claim_of_a_minimum():
    K = Gaussian(1.0)(X) - 0.3 * np.eye(80)
    model = KernelRidge(1.0, kernel="precomputed").fit(K, Y)
    assert_allclose(model.dual_coef_, np.linalg.solve(K + np.eye(80), Y), rtol=1e-8)
    assert model.certificate_.kind == "equation residual"
    assert "eigenvalue -3.0e-01" in model.certificate_.meaning
    with pytest.raises(DataError, match="no Mercer kernel"):
        KernelRidge("loo", kernel="precomputed").fit(K, Y)
    K[2, 7] += 1.0
    with pytest.raises(DataError, match=r"not symmetric: X\[2, 7\]"):
        KernelRidge(1.0, kernel="precomputed").fit(K, Y)
    with pytest.raises(DataError, match="NaN"):
        KernelRidge().fit(np.full((3, 2), np.nan), [0.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"alpha": -1.0}, "alpha"),
        ({"alpha": [1.0, -1.0]}, "alpha"),
        ({"alpha": [0.0, 1.0]}, "alpha"),
        ({"alpha": "gcv"}, "alpha"),
        ({"alpha": [1.0, 2.0], "alpha_per_target": True}, "alpha"),
        ({"kernel": "rbff"}, "did you mean 'rbf'"),
        ({"kernel": 3}, "kernel"),
        ({"gamma": 0.0}, "gamma"),
        ({"gamma": np.inf}, "gamma"),
        ({"degree": -1}, "degree"),
        ({"tol": 0}, "tol"),
    ],
)
def test_parameters_that_are_refused(parameters, words):
    with pytest.raises(ParameterError, match=words):
        KernelRidge(**parameters).fit(X, Y)


def test_one_row_and_equal_rows():
    assert_allclose(KernelRidge(1.0).fit([[2.0]], [3.0]).predict([[2.0]]), [3 * 4 / 5])
    model = KernelRidge(1.0, kernel="rbf").fit(np.ones((4, 2)), [0.0, 1.0, 0.0, 1.0])
    assert_allclose(model.predict(np.ones((1, 2))), [2 / 5])


def test_a_linear_kernel_object_is_the_name():
    assert_allclose(KernelRidge(kernel=Linear()).fit(X, Y).dual_coef_, KernelRidge().fit(X, Y).dual_coef_)


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::epicycle.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("kernel", "size"), [("linear", 1e160), ("poly", 1e150), ("poly", 1e160)])
def test_values_that_overflow_are_refused(kernel, size):
    rows = size * np.array([[1.0, 2.0], [2.0, -1.0], [0.5, 0.5]])
    with pytest.raises(DataError, match="not finite"):
        KernelRidge(kernel=kernel).fit(rows, [1.0, 2.0, 3.0])
    assert np.isfinite(KernelRidge().fit(rows * (1e140 / size), [1.0, 2.0, 3.0]).predict(rows * 1e-100)).all()


def test_no_jitter_helps_a_matrix_that_overflowed():  # loops that end only when a finite comparison holds
    K = np.full((3, 3), np.inf)
    with pytest.raises(ConvergenceError, match="not positive semi-definite"):
        solve_shifted(K, np.ones(3), np.ones((3, 1)))
    with pytest.raises(ConvergenceError, match="not positive semi-definite"):
        factor_repaired(K, np.ones(3), 1)
