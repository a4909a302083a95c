"""Least angle regression and the exact lasso path: published paths, scikit-learn, conditions that define them, ties."""

import tracemalloc

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from lasso_reference import centred
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import linear_model as sk
from sklearn.datasets import load_diabetes
from sklearn.utils.estimator_checks import estimator_checks_generator

import epicycle as ep
from epicycle import Lars, Lasso, LinearRegression, Stagewise, lasso_path
from epicycle.exceptions import ConvergenceWarning, DataError, ParameterError
from epicycle.linear.lars import _angles as lars_angles

DIABETES = load_diabetes(return_X_y=True)  # columns of length one and mean zero, as in Efron et al. (2004)
# The columns age, sex, bmi, bp, s1 (tc), s2 (ldl), s3 (hdl), s4 (tch), s5 (ltg), s6 (glu).
ENTRIES = [2, 8, 3, 6, 1, 9, 4, 7, 5, 0]


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pair
        for model in (Lars("lasso"), Lars("lasso", alpha=0.05, positive=True), Lars(fit_intercept=False, n_jobs=2))
        for pair in estimator_checks_generator(model)
    ],
    ids=lambda part: part.func.__name__ if hasattr(part, "func") else str(part),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def problem(n, p, seed, density=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 2.0
    X[:, 1:] += 0.6 * X[:, :-1]
    X *= rng.random((n, p)) < density
    y = X[:, : min(p, 8)] @ rng.standard_normal(min(p, 8)) + rng.standard_normal(n) + 3.0
    return X, y, rng.uniform(0.3, 2.0, n)


# ---------------------------------------------------------------- published paths


def test_least_angle_regression_of_the_diabetes_data():
    """Ten features in the order of Efron et al. (2004), figure 3; the end is least squares."""
    X, y = DIABETES
    model = Lars().fit(X, y)
    assert model.history_.entered.astype(int).tolist() == ENTRIES
    assert np.isnan(model.history_.left).all()
    assert_array_equal(model.active_, ENTRIES)
    # The largest absolute correlations at the steps, as the authors' R package prints them from its own copy of the
    # data, which agrees with this one to about five digits.
    published = [949.435260, 889.315991, 452.900969, 316.074053, 130.130851, 88.782430, 68.965221, 19.981255, 5.477473]
    assert_allclose(model.alphas_[:9] * len(y), published, rtol=3e-5)
    assert_allclose(model.coef_, LinearRegression().fit(X, y).coef_, rtol=1e-9)
    least_squares = [-10.012, -239.819, 519.840, 324.390, -792.184, 476.746, 101.045, 177.064, 751.279, 67.625]
    assert_allclose(model.coef_, least_squares, rtol=0, atol=0.02)
    assert_allclose(model.coef_path_[[2], 1], [60.119], rtol=0, atol=0.02)
    assert_allclose(model.coef_path_[[2, 8], 2], [361.895, 301.775], rtol=0, atol=0.02)
    assert_allclose(model.coef_path_[[2, 8, 3], 3], [434.758, 374.916, 79.236], rtol=0, atol=0.02)


def test_the_lasso_of_the_diabetes_data_takes_twelve_steps():
    """As least angle regression, but hdl leaves after the tenth and comes back with the twelfth step."""
    X, y = DIABETES
    model = Lars("lasso").fit(X, y)
    assert model.n_iter_ == 12
    events = np.where(np.isnan(model.history_.left), model.history_.entered, -1 - model.history_.left).astype(int)
    assert events.tolist() == [*ENTRIES, -7, 6]
    assert_array_equal(model.active_, [2, 8, 3, 1, 9, 4, 7, 5, 0, 6])
    assert_allclose(model.alphas_[9:] * len(y), [5.089179, 2.182250, 1.310435, 0.0], rtol=3e-4)
    assert model.coef_path_[6, 11] == 0.0
    assert model.certificate_.kind == "duality gap"
    assert model.certificate_.holds


@pytest.mark.parametrize("method", ["lar", "lasso"])
def test_the_breakpoints_of_scikit_learn(method):
    X, y = DIABETES
    ours = Lars(method).fit(X, y)
    alphas, active, coefs = sk.lars_path(X - X.mean(axis=0), y - y.mean(), method=method)
    assert_allclose(ours.alphas_, alphas, rtol=0, atol=1e-10)
    assert_allclose(ours.coef_path_, coefs, rtol=0, atol=1e-10 * np.abs(coefs).max())
    assert_array_equal(ours.active_, active)


#: Prostate cancer, the 67 training rows of The Elements of Statistical Learning: correlations of lcavol, lweight, age,
#: lbph, svi, lcp, gleason and pgg45 (its table 3.1, below the diagonal), covariances with lpsa in standard deviations
#: of the columns, and these (columns were standardised over all 97 rows first).
CORRELATIONS = [
    [0.30023],
    [0.28632, 0.31672],
    [0.06317, 0.43704, 0.28735],
    [0.59295, 0.18105, 0.1289, -0.13915],
    [0.69204, 0.15683, 0.17295, -0.08853, 0.67124],
    [0.42641, 0.02356, 0.36592, 0.03299, 0.30688, 0.47644],
    [0.48316, 0.07417, 0.27581, -0.0304, 0.48136, 0.66253, 0.75706],
]
WITH_LPSA = [0.87888, 0.58166, 0.27289, 0.3152, 0.66758, 0.58644, 0.41049, 0.5371]
DEVIATIONS = [1.04637, 1.10415, 1.00012, 1.0013, 1.00688, 0.99427, 0.97427, 1.03114]


def test_the_prostate_table_of_the_elements_of_statistical_learning():
    """The columns of table 3.3 for least squares and for the lasso, whose bound is 0.375 of the norm of the former."""
    G = np.eye(8)
    for i, row in enumerate(CORRELATIONS, start=1):
        G[i, :i] = G[:i, i] = row
    X = np.sqrt(8) * np.linalg.cholesky(G).T  # eight rows with these second moments
    y = 8 * np.linalg.solve(X.T, WITH_LPSA)
    model = Lars("lasso", fit_intercept=False).fit(X, y)
    least_squares = [0.680, 0.263, -0.141, 0.210, 0.305, -0.288, -0.021, 0.267]
    assert_allclose(model.coef_ / DEVIATIONS, least_squares, rtol=0, atol=1e-3)
    bound = 0.375 * np.abs(model.coef_).sum()
    for coef in (model.at(bound=bound)[0], Lasso(bound=bound, fit_intercept=False).fit(X, y).coef_):
        assert_allclose(coef / DEVIATIONS, [0.533, 0.169, 0.0, 0.002, 0.094, 0.0, 0.0, 0.0], rtol=0, atol=1e-3)


# ---------------------------------------------------------------- what defines the paths


FORMS = {
    "F": np.asfortranarray,
    "C": np.ascontiguousarray,
    "csc": sp.csc_array,
    "csr": sp.csr_array,
    "float32": lambda X: X.astype(np.float32),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(200, 30), (30, 100), (60, 59)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("lazy", [False, True])
def test_every_breakpoint_of_the_lasso_is_optimal(form, shape, weighted, lazy, monkeypatch):
    """Breakpoints of scikit-learn's homotopy on rows times sqrt(v), and the conditions of optimality at each."""
    if lazy:
        monkeypatch.setattr(lars_angles, "SMALL", 0.0)
        monkeypatch.setattr(lars_angles, "FIRST_LOOK", 5)
        monkeypatch.setattr(lars_angles, "MAX_GRAM_IN_MEMORY", 0)
        monkeypatch.setattr("epicycle.linear.lasso._problem.FEW_FOR_PATH", 0)
    X, y, weight = problem(*shape, seed=1, density=0.5 if "cs" in form else 1.0)
    X = X.astype(np.float32).astype(np.float64) if form == "float32" else X
    weight = weight if weighted else None
    A, b, *_ = centred(X, y, weight)
    model = Lars("lasso", n_nonzero_coefs=25).fit(FORMS[form](X), y, weight)
    alphas, _, coefs = sk.lars_path(A, b, method="lasso", max_iter=model.n_iter_)
    assert_allclose(model.alphas_ * 1.0, alphas * len(y), rtol=0, atol=1e-10 * alphas[0] * len(y))
    digits = 1e-6 if form == "float32" else 1e-8  # coefficients are in the type of the data
    assert_allclose(model.coef_path_, coefs, rtol=0, atol=digits * np.abs(coefs).max())
    for alpha, w in zip(model.alphas_, model.coef_path_.T, strict=True):
        c = A.T @ (b - A @ w)
        slack = 1e-3 * digits * alphas[0] * len(y) * (1e3 if form == "float32" else 1.0)
        assert_allclose(c[w != 0], alpha * np.sign(w[w != 0]), rtol=0, atol=slack)
        assert np.abs(c).max() <= alpha + slack


@pytest.mark.parametrize("shape", [(300, 50), (40, 200)])
def test_correlations_are_equal_also_where_coefficients_change_their_sign(shape):
    """Least angle regression knows no signs: a coefficient that crosses zero leaves correlations as they are."""
    X, y, weight = problem(*shape, seed=2)
    A, b, *_ = centred(X, y, weight)
    model = Lars(n_nonzero_coefs=None if shape[0] > shape[1] else 35).fit(X, y, weight)
    path = model.coef_path_
    crossed = ((path[:, :-1] * path[:, 1:]) < 0).any()
    assert crossed
    for k, alpha in enumerate(model.alphas_):
        c = np.abs(A.T @ (b - A @ path[:, k]))
        active = model.history_.entered[:k].astype(int)
        assert_allclose(c[active], alpha, rtol=0, atol=1e-11 * model.alphas_[0])
        assert c.max() <= alpha * (1 + 1e-12) + 1e-11 * model.alphas_[0]


def test_the_path_between_breakpoints_is_that_of_the_lasso():
    X, y, weight = problem(60, 80, seed=3)
    model = Lars("lasso", alpha=0.01).fit(X, y, weight)
    assert model.alpha_ == 0.01
    assert model.alphas_[-1] == 0.01
    alphas = np.geomspace(0.9 * model.alphas_[0], 0.011, 7)
    path = lasso_path(X, y, sample_weight=weight, alphas=alphas, fit_intercept=True, tol=1e-14)
    for alpha, w, intercept in zip(path.alphas, path.coefs.T, path.intercepts, strict=True):
        coef, b = model.at(alpha)
        assert_allclose(coef, w, rtol=0, atol=1e-6 * np.abs(w).max())
        assert_allclose(b, intercept, rtol=1e-6)
    assert not model.at(2 * model.alphas_[0])[0].any()
    assert_allclose(model.at(bound=0.3 * np.abs(model.coef_).sum())[0].__abs__().sum(), 0.3 * np.abs(model.coef_).sum())
    with pytest.raises(ParameterError, match="the path ends"):
        model.at(0.001)
    with pytest.raises(ParameterError, match="at most"):
        model.at(bound=1e9)
    with pytest.raises(ParameterError, match="one of them"):
        model.at()


@pytest.mark.parametrize("shape", [(100, 12), (25, 70)])
def test_non_negative_coefficients(shape):
    X, y, weight = problem(*shape, seed=4)
    model = Lars("lasso", positive=True, alpha=0.02).fit(X, y, weight)
    lasso = Lasso(0.02, positive=True, tol=1e-14).fit(X, y, weight)
    assert (model.coef_path_ >= 0).all()
    assert_allclose(model.coef_, lasso.coef_, rtol=0, atol=1e-6 * lasso.coef_.max())
    assert model.certificate_.holds


# ---------------------------------------------------------------- ties and dependent columns


def degenerate(kind, seed):
    """Data on which events fall together or columns depend on each other."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((24, 8))
    y = X @ rng.standard_normal(8) + 0.3 * rng.standard_normal(24)
    if kind == "twins":
        X = np.column_stack([X, X[:, 2], -X[:, 5], X[:, 0]])
    elif kind == "sum":
        X = np.column_stack([X, X[:, 0] + X[:, 1], X[:, 2] - X[:, 3]])
    elif kind == "constant":
        X[:, [1, 4]] = 3.0
    elif kind == "orthogonal":  # all of equal correlation
        X = np.kron(np.eye(8), np.array([[1.0], [-1.0], [0.0]]))
        y = X.sum(axis=1)
    elif kind == "signs":  # few values: exact ties everywhere
        X = rng.integers(-1, 2, (24, 10)).astype(float)
        y = rng.integers(-2, 3, 24).astype(float)
    elif kind == "dummies":
        X = np.eye(6)[rng.integers(0, 6, 24)]
        X = np.column_stack([X, np.eye(4)[rng.integers(0, 4, 24)]])
        y = rng.integers(0, 4, 24).astype(float)
    elif kind == "interpolated":
        X = rng.integers(-2, 3, (7, 20)).astype(float)
        y = rng.integers(-2, 3, 7).astype(float)
    elif kind == "exact":
        y = X[:, 1] - 2 * X[:, 3]
    elif kind == "wild":
        X *= 10.0 ** rng.integers(-6, 7, 8)
    elif kind == "far":
        X += 1e6
    return X, y


KINDS = ["twins", "sum", "constant", "orthogonal", "signs", "dummies", "interpolated", "exact", "wild", "far"]


@settings(max_examples=250)
@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 10_000),
    method=st.sampled_from(["lar", "lasso"]),
    form=st.sampled_from(["F", "csc", "lazy"]),
    share=st.sampled_from([0.0, 0.1, 0.5]),
    positive=st.booleans(),
)
def test_ties_and_dependent_columns(kind, seed, method, form, share, positive):
    """No cycle, no crash; a certificate that holds is true, and the lasso's always holds."""
    X, y = degenerate(kind, seed)
    A, b, *_ = centred(X, y)
    first = np.abs(A.T @ b).max()
    positive = positive and method == "lasso"
    limit = lars_angles.SMALL
    try:
        lars_angles.SMALL = 0.0 if form == "lazy" else limit
        given = sp.csc_array(X) if form == "csc" else np.asfortranarray(X)
        with ep.config(on_nonconvergence="ignore"):
            model = Lars(method, alpha=share * first, positive=positive).fit(given, y)
    finally:
        lars_angles.SMALL = limit
    assert model.n_iter_ <= 200
    w, alpha = model.coef_, model.alpha_
    assert model.certificate_.holds
    assert (np.diff(model.alphas_) <= 0).all()
    c = A.T @ (b - A @ w)
    scale = np.linalg.norm(A, axis=0) * np.linalg.norm(b)
    if method == "lar":
        assert (np.abs(c) <= alpha + 1e-7 * scale + 1e-12 * first).all()
    elif alpha > 0:
        with ep.config(on_nonconvergence="ignore"):
            lasso = Lasso(alpha, positive=positive, tol=1e-10, max_iter=30).fit(X, y)
        loss = [((b - A @ v) ** 2).sum() / 2 + alpha * np.abs(v).sum() for v in (w, lasso.coef_)]
        assert loss[0] <= loss[1] + 2e-8 * (b @ b) / 2
    assert not positive or (w >= 0).all()
    if share == 0 and not positive and kind not in ("interpolated", "wild"):
        best = np.linalg.lstsq(A, b, rcond=None)[0]
        assert_allclose(np.linalg.norm(b - A @ w), np.linalg.norm(b - A @ best), rtol=1e-6, atol=1e-8)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(3, 30),
    p=st.integers(1, 40),
    method=st.sampled_from(["lar", "lasso"]),
    scale=st.sampled_from([1e-5, 1e6]),
)
def test_order_of_columns_and_rows_scale_and_repetition(seed, n, p, method, scale):
    X, y, weight = problem(n, p, seed)
    rng = np.random.default_rng(seed)
    few = max(1, min(n - 2, p, 8))
    model = Lars(method, n_nonzero_coefs=few).fit(X, y, weight)
    columns, rows = rng.permutation(p), rng.permutation(n)
    other = Lars(method, n_nonzero_coefs=few).fit(X[rows][:, columns], y[rows], weight[rows])
    first = model.alphas_[0]
    assert_allclose(other.alphas_, model.alphas_, rtol=0, atol=1e-9 * first)
    assert_allclose(other.coef_path_, model.coef_path_[columns], rtol=0, atol=1e-7 * np.abs(model.coef_path_).max())
    scaled = Lars(method, n_nonzero_coefs=few).fit(X, scale * y, 3.0 * weight)
    assert_allclose(scaled.alphas_, scale * model.alphas_, rtol=0, atol=1e-9 * scale * first)
    times = rng.integers(0, 4, n)
    times[0] += 1
    if np.count_nonzero(times) > 2:
        few = max(1, min(few, np.count_nonzero(times) - 2))  # beyond, residuals are rounding
        repeated = Lars(method, n_nonzero_coefs=few).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
        weighted = Lars(method, n_nonzero_coefs=few).fit(X, y, times.astype(float))
        assert_allclose(repeated.alphas_, weighted.alphas_, rtol=0, atol=1e-9 * weighted.alphas_[0])


@pytest.mark.serial
def test_no_copy_of_a_large_matrix():
    rng = np.random.default_rng(0)
    dense = np.asfortranarray(rng.standard_normal((500, 20_000)))  # 80 MB
    y = dense[:, :3].sum(axis=1) + rng.standard_normal(500)
    for X in (dense, sp.random_array((500, 40_000), density=0.2, format="csc", rng=rng)):
        size = X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes
        for model in (Lars("lasso", n_nonzero_coefs=15), Stagewise(alpha=0.3, max_iter=500, tol=1.0)):
            tracemalloc.start()
            model.fit(X, y)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 0.2 * size


def test_constant_target_and_one_row():
    X, _, _ = problem(30, 5, seed=0)
    for method in ("lar", "lasso"):
        model = Lars(method).fit(X, np.full(30, 2.0))
        assert not model.coef_.any()
        assert model.intercept_ == 2.0
        assert model.certificate_.holds
        assert len(model.active_) == 0
        one = Lars(method).fit(np.ones((1, 3)), [2.0])
        assert not one.coef_.any()
        assert not Lars(method, alpha=1e9).fit(X, X[:, 0]).coef_.any()


# ---------------------------------------------------------------- estimator


def test_how_far_the_path_goes():
    X, y, _ = problem(50, 30, seed=5)
    few = Lars(n_nonzero_coefs=4).fit(X, y)
    assert np.count_nonzero(few.coef_) == 4
    assert few.converged_
    whole = Lars().fit(X, y)
    assert_allclose(few.coef_, whole.coef_path_[:, 4])
    assert_allclose(Lars(alpha=whole.alphas_[4]).fit(X, y).coef_, few.coef_, rtol=1e-9, atol=1e-12)
    end = Lars(fit_path=False, n_nonzero_coefs=4).fit(X, y)
    assert_array_equal(end.coef_, few.coef_)
    assert_array_equal(end.alphas_, few.alphas_[-1:])
    assert not hasattr(end, "coef_path_")
    with pytest.raises(ParameterError, match="fit_path=True"):
        end.at(1.0)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        cut = Lars(max_iter=3).fit(X, y)
    assert not cut.converged_


def test_several_targets_weights_and_names():
    X, y, weight = problem(50, 10, seed=6)
    Y = np.column_stack([y, -y + X[:, 1], np.zeros(50)])
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(10)])
    model = Lars("lasso").fit(frame, Y, weight)
    assert model.coef_.shape == (3, 10)
    assert set(model.history_.target) == {0, 1}
    for t in range(3):
        single = Lars("lasso").fit(frame, Y[:, t], weight)
        assert_allclose(model.coef_[t], single.coef_, rtol=1e-9)
        assert_allclose(model.alphas_[t], single.alphas_, rtol=0, atol=1e-12)
        assert_allclose(model.coef_path_[t], single.coef_path_, rtol=0, atol=1e-11)
        alpha = single.alphas_[0] / 2
        assert_allclose(model.at(alpha, target=t)[0], single.at(alpha)[0], rtol=0, atol=1e-11)
    assert model.predict(frame).shape == (50, 3)
    repeated = np.repeat(np.arange(50), 3)
    assert_allclose(Lars().fit(X[repeated], y[repeated]).coef_path_, Lars().fit(X, y, np.full(50, 3.0)).coef_path_)


@pytest.mark.parametrize("method", ["lar", "lasso"])
def test_files_dask_and_threads(tmp_path, method):
    import dask.array as da

    X, y, weight = problem(900, 40, seed=7)
    memory = Lars(method).fit(X, y, weight)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(40)]).assign(y=y, w=weight)
    frame.to_parquet(tmp_path / "d.parquet")
    scan = ep.scan(tmp_path / "d.parquet", target="y", weight="w", batch_rows=200)
    one, two = (Lars(method, n_jobs=jobs).fit(scan) for jobs in (1, 2))
    assert_array_equal(one.coef_path_, two.coef_path_)
    dask = Lars(method).fit(*(da.from_array(a, chunks=250) for a in (X, y, weight)))
    for model in (one, dask):
        assert_allclose(model.alphas_, memory.alphas_, rtol=0, atol=1e-11 * memory.alphas_[0])
        assert_allclose(model.coef_path_, memory.coef_path_, rtol=0, atol=1e-9)
        assert model.certificate_.holds
    wide = np.asfortranarray(problem(100, 4000, seed=8)[0])
    target = wide[:, :5].sum(axis=1)
    first, other = (Lars(n_nonzero_coefs=20, n_jobs=jobs).fit(wide, target) for jobs in (1, 3))
    assert_array_equal(first.coef_path_, other.coef_path_)


def test_checkpoint_and_file(tmp_path):
    X, y, _ = problem(60, 90, seed=9)
    whole = Lars("lasso", alpha=0.01).fit(X, y)
    with pytest.warns(ConvergenceWarning):
        Lars("lasso", alpha=0.01, max_iter=17).set_callbacks(ep.Checkpoint(tmp_path / "c.epi")).fit(X, y)
    resumed = ep.Checkpoint.resume(tmp_path / "c.epi").set_params(max_iter=None).fit(X, y)
    assert resumed.n_iter_ == whole.n_iter_
    assert_allclose(resumed.alphas_, whole.alphas_, rtol=0, atol=1e-11)
    assert_allclose(resumed.coef_path_, whole.coef_path_, rtol=0, atol=1e-9)
    whole.save(tmp_path / "m.epi")
    back = ep.load(tmp_path / "m.epi")
    assert_array_equal(back.coef_path_, whole.coef_path_)
    assert_array_equal(back.at(0.1)[0], whole.at(0.1)[0])
    assert back.history_ == whole.history_


def test_plot():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = Lars("lasso").fit(X, y)
    for against in ("alpha", "norm", "fraction"):
        ax = model.plot(against, labels=4)
        assert len(ax.texts) == 4
        assert {text.get_text() for text in ax.texts} <= set(X.columns)
        assert sum(len(line.get_xdata()) > 12 for line in ax.lines) == 10
        plt.close(ax.figure)
    with pytest.raises(ParameterError, match="against"):
        model.plot("lambda")


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (Lars("forward"), ParameterError, "method='forward'"),
        (Lars(alpha=-1.0), ParameterError, "alpha"),
        (Lars(n_nonzero_coefs=0), ParameterError, "n_nonzero_coefs"),
        (Lars(positive=True), ParameterError, "positive=True"),
        (Lars(eps=-1.0), ParameterError, "eps"),
        (Lars(max_iter=-1), ParameterError, "max_iter"),
    ],
)
def test_bad_parameters(model, error, message):
    X, y, _ = problem(20, 3, seed=0)
    with pytest.raises(error, match=message):
        model.fit(X, y)
    with pytest.raises(DataError, match="NaN"):
        Lars().fit(np.where(X > 3, np.nan, X), y)
