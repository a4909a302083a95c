"""Kernels: values against formulas and scikit-learn, gradients against differences, feature maps, Mercer."""

import math
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from kernels_of_every_kind import COMPOSED, HISTOGRAMS, RNG, STRINGS, VECTORS, X, Z, every
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise

import epicycle as ep
from epicycle.exceptions import DataError, MemoryBudgetError, ParameterError, ParameterTypeError
from epicycle.kernel import (
    NNGP,
    ArcCosine,
    ChiSquare,
    FunctionKernel,
    Gaussian,
    HistogramIntersection,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Mismatch,
    NeuralTangent,
    Periodic,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Scaled,
    Sigmoid,
    Spectrum,
    Subsequence,
    is_mercer,
)
from epicycle.kernels._gram import kernel_product

# ------------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (Polynomial(3, gamma=0.5, c=2.0), lambda: pairwise.polynomial_kernel(X, Z, 3, 0.5, 2.0)),
        (Gaussian(0.7), lambda: pairwise.rbf_kernel(X, Z, 1 / (2 * 0.49))),
        (Laplacian(0.7), lambda: pairwise.laplacian_kernel(X, Z, 1 / 0.7)),
        (Sigmoid(gamma=0.3, c=0.1), lambda: pairwise.sigmoid_kernel(X, Z, 0.3, 0.1)),
        (Linear().normalized(), lambda: pairwise.cosine_similarity(X, Z)),
        (Gaussian((0.5, 1.0, 2.0)), lambda: np.exp(-(cdist(X / [0.5, 1, 2], Z / [0.5, 1, 2]) ** 2) / 2)),
        (Matern(0.6, nu=0.5), lambda: np.exp(-cdist(X, Z) / 0.6)),
        (RationalQuadratic(0.6, alpha=1.3), lambda: (1 + cdist(X, Z) ** 2 / (2 * 1.3 * 0.36)) ** -1.3),
        (
            Periodic(0.6, period=1.3),
            lambda: np.exp(-2 / 0.36 * (np.sin(np.pi * (X[:, None] - Z) / 1.3) ** 2).sum(axis=2)),
        ),
        (2.0 * Gaussian() * Linear() + 3.0, lambda: 2 * pairwise.rbf_kernel(X, Z, 0.5) * (X @ Z.T) + 3),
    ],
    ids=lambda value: repr(value) if isinstance(value, Kernel) else "",
)
def test_values(kernel, expected):
    assert_allclose(kernel(X, Z), expected(), rtol=1e-12, atol=1e-13)


def test_values_of_gaussian_process_kernels():
    from sklearn.gaussian_process import kernels as gp

    for nu in (1.5, 2.5):
        assert_allclose(Matern((0.5, 1.0, 2.0), nu=nu)(X, Z), gp.Matern([0.5, 1, 2], nu=nu)(X, Z), rtol=1e-12)
    assert_allclose(Periodic(0.6, period=1.3)(X[:, :1]), gp.ExpSineSquared(0.6, 1.3)(X[:, :1]), rtol=1e-9)


def test_values_of_histograms():
    h, g = np.abs(X), np.abs(Z)
    assert_allclose(ChiSquare(0.4)(h, g), pairwise.chi2_kernel(h, g, gamma=0.4), rtol=1e-12)
    assert ChiSquare().prepare(np.zeros((2, 0))).values.shape == (2, 0)  # places of rows that have no components
    assert_allclose(HistogramIntersection()(h, g), np.minimum(h[:, None], g).sum(axis=2), rtol=1e-12)
    assert ChiSquare()(np.zeros((2, 3)))[0, 1] == 1.0


def test_arc_cosine_by_random_networks():
    """E over normal w of step(w'x) (w'x)^n step(w'z) (w'z)^n, times two."""
    w = np.random.default_rng(1).normal(size=(400_000, 3))
    x, z = X[0], X[1]
    for order in (0, 1, 2):
        sample = 2 * (np.maximum(w @ x, 0) ** order * np.maximum(w @ z, 0) ** order * (w @ x > 0) * (w @ z > 0))
        error = sample.std() / math.sqrt(len(w))
        assert abs(float(ArcCosine(order)([x], [z])[0, 0]) - sample.mean()) < 4 * error


def test_network_kernels_by_a_wide_network():
    """One hidden layer: the covariance of outputs, and the inner product of gradients, at random weights."""
    rng = np.random.default_rng(2)
    width, w2, b2 = 400_000, 1.7, 0.3
    W, b = rng.normal(size=(width, 3)) * math.sqrt(w2 / 3), rng.normal(size=width) * math.sqrt(b2)
    a = rng.normal(size=width) * math.sqrt(w2 / width)  # of the output layer
    pre = [W @ x + b for x in X[:2]]
    hidden = [np.maximum(p, 0) for p in pre]
    covariance = w2 * (hidden[0] @ hidden[1]) / width + b2
    assert float(NNGP(1, w2, b2)(X[:1], X[1:2])[0, 0]) == pytest.approx(covariance, rel=0.01)
    # In the tangent parametrisation weights are unit normals times these factors.
    active = (pre[0] > 0) & (pre[1] > 0)
    inner = float((a**2)[active].sum()) * (w2 / 3 * float(X[0] @ X[1]) + b2)
    assert float(NeuralTangent(1, w2, b2)(X[:1], X[1:2])[0, 0]) == pytest.approx(covariance + inner, rel=0.01)


def integral(n, q, r, k):
    """E[relu(u)^n relu(v)^n] for normal (u, v) with variances q, r and covariance k, by quadrature over the angle.

    u = sqrt(q) rho cos(phi), v = sqrt(r) rho cos(phi - t): the radius integrates to 2^n n! / 2 pi.
    """
    t = math.acos(min(1.0, max(-1.0, k / math.sqrt(q * r))))
    both = quad(lambda phi: (math.cos(phi) * math.cos(phi - t)) ** n, t - math.pi / 2, math.pi / 2, epsabs=1e-13)[0]
    return (q * r) ** (n / 2) * 2**n * math.factorial(n) * both / (2 * math.pi)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_deep_arc_cosine_kernels_by_quadrature(order):
    for x, z in ((X[0], X[1]), (X[2], -X[2]), (X[3], X[3] + 1e-3)):
        q, r, k = x @ x, z @ z, x @ z
        for depth in range(1, 5):
            q, r, k = 2 * integral(order, q, q, q), 2 * integral(order, r, r, r), 2 * integral(order, q, r, k)
            assert float(ArcCosine(order, depth)([x], [z])[0, 0]) == pytest.approx(k, rel=1e-7)


def test_deep_network_kernels_by_quadrature():
    """The recursion of Jacot et al. (2018) in its plain form, each expectation an integral."""
    w, b = 1.7, 0.3
    for x, z in ((X[0], X[1]), (X[2], -X[2]), (X[4], 2 * X[4])):
        q, r, k = (w * u @ v / 3 + b for u, v in ((x, x), (z, z), (x, z)))
        tangent = k
        for depth in range(1, 6):
            slope = integral(0, q, r, k)
            q, r, k = (w * integral(1, *a) + b for a in ((q, q, q), (r, r, r), (q, r, k)))
            tangent = k + w * slope * tangent
            assert float(NNGP(depth, w, b)([x], [z])[0, 0]) == pytest.approx(k, rel=1e-7)
            assert float(NeuralTangent(depth, w, b)([x], [z])[0, 0]) == pytest.approx(tangent, rel=1e-6)


def test_a_deep_network_of_finite_width():
    """Three hidden layers: gradients by hand, of a network that is not infinitely wide."""
    rng = np.random.default_rng(7)
    width, w, found = 600, 2.0, []
    for _ in range(40):
        weights = [rng.normal(size=(m, n)) for m, n in ((width, 3), (width, width), (width, width), (1, width))]
        inputs, slopes = [], []
        for x in X[:2]:
            h, layers, ramps = x, [x], []
            for i, W in enumerate(weights):
                pre = math.sqrt(w / len(h)) * W @ h
                h = np.maximum(pre, 0) if i < 3 else pre
                layers.append(h)
                ramps.append(pre > 0)
            back, gradient = np.ones(1), []
            for i in reversed(range(4)):
                gradient.append((layers[i], back * math.sqrt(w / len(layers[i]))))
                back = math.sqrt(w / len(layers[i])) * weights[i].T @ back * (ramps[i - 1] if i else 1.0)
            inputs.append([g[0] for g in gradient])
            slopes.append([g[1] for g in gradient])
        found.append(sum((h @ g) * (u @ v) for h, g, u, v in zip(*inputs, *slopes, strict=True)))
    K = NeuralTangent(3, w, 0.0)(X[:2])
    assert abs(np.mean(found) - K[0, 1]) < 0.08 * math.sqrt(K[0, 0] * K[1, 1])


@every
def test_diagonal_symmetry_and_mercer(kernel):
    K = kernel(X)
    assert np.array_equal(K, K.T)
    assert_allclose(kernel.diagonal(X), np.diagonal(K), rtol=1e-12)
    assert_allclose(kernel(X, X), K, rtol=1e-9, atol=1e-12 * np.abs(K).max())
    assert is_mercer(kernel, X)


@every
def test_blocks_do_not_matter(kernel):
    rows = np.vstack([X] * 20)  # more than two tiles, with duplicates
    A = kernel.prepare(rows)
    assert_allclose(kernel(rows)[-30:], kernel.block(A.take(slice(570, 600)), A), rtol=1e-9, atol=1e-9)
    assert_allclose(kernel.block(A.take(np.array([3, 40])), A)[:, :30], kernel.block(A, A)[[3, 40], :30], atol=1e-9)


def test_any_number_of_threads_gives_the_same_bits():
    rows = RNG.normal(size=(700, 8))
    for kernel in (Gaussian(2.0), NeuralTangent(2), Laplacian()):
        assert np.array_equal(kernel(rows, n_jobs=1), kernel(rows, n_jobs=3))
        assert np.array_equal(kernel(rows, rows[:50], n_jobs=1), kernel(rows, rows[:50], n_jobs=3))


# ------------------------------------------------------------------- numbers


@pytest.mark.parametrize("offset", [1e4, 1e8])
@pytest.mark.parametrize("p", [2, 12])
def test_distances_survive_large_offsets(offset, p):
    rows = np.round(np.random.default_rng(3).normal(size=(60, p)), 6)
    moved = rows + offset
    exact = moved - offset  # what is left of the rows in float64
    for kernel in (Gaussian(1.5), Matern(1.5, nu=0.5), RationalQuadratic(), Laplacian(3.0), Periodic(1.0, period=7.0)):
        assert_allclose(kernel(moved), kernel(exact), rtol=1e-6, atol=1e-9)
        assert_allclose(kernel(moved[:20], moved[20:]), kernel(exact[:20], exact[20:]), rtol=1e-6, atol=1e-9)


def test_clusters_far_apart_keep_their_inner_distances():
    rng = np.random.default_rng(4)
    rows = np.vstack([rng.normal(size=(20, 9)) - 1e7, rng.normal(size=(20, 9)) + 1e7])
    assert_allclose(Gaussian(3.0)(rows), np.exp(-(cdist(rows, rows) ** 2) / 18), rtol=1e-9, atol=1e-300)


def test_float32_stays_float32():
    rows = (RNG.normal(size=(50, 6)) + 1e4).astype(np.float32)
    for kernel in (Gaussian(2.0), Laplacian(2.0), Linear(), NeuralTangent()):
        K = kernel(rows)
        assert K.dtype == np.float32
        assert_allclose(K, kernel(rows.astype(np.float64)), rtol=2e-7)
    assert Gaussian()(rows, rows.astype(np.float64)).dtype == np.float64


@pytest.mark.parametrize(
    "kernel",
    [k for k in [*VECTORS, *COMPOSED, Sigmoid()] if k.accepts_sparse],
    ids=repr,
)
def test_sparse_rows(kernel):
    rows = np.where(np.abs(X) > 0.7, X, 0.0)
    # Rows with one entry are parallel: an angle of zero is known to the root of the precision only.
    near = {"rtol": 1e-9, "atol": 1e-10} if not isinstance(kernel, ArcCosine | NeuralTangent) else {"atol": 1e-7}
    for make in (sp.csr_array, sp.csr_matrix):
        assert_allclose(kernel(make(rows)), kernel(rows), **near)
        assert_allclose(kernel(make(rows), Z), kernel(rows, Z), **near)
        assert_allclose(kernel(Z, make(rows)), kernel(Z, rows), **near)
    G = kernel.value_and_gradient(sp.csr_array(rows))[1]
    assert_allclose(G, kernel.value_and_gradient(rows)[1], rtol=1e-9, atol=1e-6)


def test_there_are_enough_sparse_kernels():
    assert sum(k.accepts_sparse for k in VECTORS) >= 15


# ------------------------------------------------------------------- gradients


@pytest.mark.parametrize("kernel", [*VECTORS, *COMPOSED, Sigmoid(0.4, 0.2)], ids=repr)
def test_gradients_are_those_of_differences(kernel):
    check_gradient(kernel, X)


@pytest.mark.parametrize("kernel", [ChiSquare(0.7), 2.0 * ChiSquare() + HistogramIntersection()], ids=repr)
def test_gradients_of_histograms(kernel):
    check_gradient(kernel, HISTOGRAMS)


@pytest.mark.parametrize(
    "kernel",
    [
        Subsequence(2, 0.6),  # by words
        Subsequence(3, 0.9) ** 2,  # by pairs of strings, because words of three letters are more work here
        2.0 * Subsequence(3).normalized() + Spectrum(2),
        Subsequence(2) * (0.5 * Mismatch(2, 1) + 1.0),
    ],
    ids=repr,
)
def test_gradients_of_strings(kernel):
    check_gradient(kernel, STRINGS)


def check_gradient(kernel, rows, h=1e-5):
    theta = kernel.theta
    K, G = kernel.value_and_gradient(rows)
    assert_allclose(K, kernel(rows), rtol=1e-12)
    assert G.shape == (len(theta), len(K), len(K))
    for t in range(len(theta)):
        step = h * np.eye(len(theta))[t]
        numeric = (kernel.with_theta(theta + step)(rows) - kernel.with_theta(theta - step)(rows)) / (2 * h)
        assert_allclose(G[t], numeric, rtol=1e-6, atol=1e-7 * max(np.abs(K).max(), np.abs(G[t]).max()))
    every, some = np.arange(len(K)), np.arange(0, len(K), 2)
    W = np.random.default_rng(5).normal(size=(len(every), len(some)))
    A = kernel.prepare(np.asarray(rows, dtype=object) if isinstance(rows, list) else rows)
    close = {"rtol": 1e-8, "atol": 1e-8 * np.abs(G).max(initial=1)}
    assert_allclose(kernel.contract_between(A, every, some, W), np.einsum("ij,tij->t", W, G[:, :, some]), **close)
    assert_allclose(kernel.gradients_times(A, some, every, W), G[:, some] @ W, **close)


def test_theta_bounds_and_names():
    kernel = Scaled(Gaussian((1.0, 2.0), bounds={"length_scale": (0.1, 10.0)}), 3.0) + Periodic(
        bounds={"period": "fixed"}
    )
    assert [h.name for h in kernel.hyperparameters] == [
        "left.variance",
        "left.kernel.length_scale",
        "right.length_scale",
        "right.period",
    ]
    assert_allclose(np.exp(kernel.theta), [3.0, 1.0, 2.0, 1.0])
    assert_allclose(np.exp(kernel.theta_bounds), [[1e-5, 1e5], [0.1, 10], [0.1, 10], [1e-5, 1e5]])
    moved = kernel.with_theta(np.log([4.0, 5.0, 6.0, 7.0]))
    assert moved.left.variance == pytest.approx(4.0)
    assert moved.left.kernel.length_scale == pytest.approx((5.0, 6.0))
    assert moved.right == Periodic(moved.right.length_scale, bounds={"period": "fixed"})
    assert_allclose(moved.theta_bounds, kernel.theta_bounds)
    assert Polynomial(2, c=0.0).theta.shape == (1,)
    for wrong in ([1.0], np.full(4, np.nan), [[1.0] * 4]):
        with pytest.raises(ParameterError, match="theta="):
            kernel.with_theta(wrong)


# ------------------------------------------------------------------- feature maps


@pytest.mark.parametrize(
    ("kernel", "rows", "others"),
    [
        (Linear(), X, Z),
        (Polynomial(2), X, Z),
        (Polynomial(4, gamma=0.3, c=0.7), X, Z),
        (Polynomial(3, c=0.0), X, Z),
        (Linear() ** 2 + 0.5, X, Z),
        (2.0 * Polynomial(2) * Linear(), X, Z),
        (Polynomial(2).normalized(), X, Z),
        (HistogramIntersection(), RNG.integers(0, 5, (9, 4)), RNG.integers(0, 5, (6, 4))),
        (Spectrum(2), STRINGS, ["gata", "xyz", "t"]),
        (Mismatch(3, 1), STRINGS, ["gata", "xyz", "t"]),
        (Spectrum(2) + 2.0 * Spectrum(3), STRINGS, ["gata", "ccc"]),
        (Spectrum(2).normalized(), STRINGS, ["gata", "ccc"]),
        (Spectrum(30), ["ab" * 20, "ba" * 20], ["ab" * 30]),
        (Spectrum(3), ["gattaca" * 40, "tac" * 70], ["gat" * 9, "x"]),  # a dense table
        (Subsequence(2, 0.7), STRINGS, ["gata", "xyz", "t"]),
        (Subsequence(3, 1.0), ["gattaca", "tagaca"], ["xgxaxtx", ""]),
        ((Subsequence(2) + 0.5 * Spectrum(2)).normalized(), STRINGS, ["gata", "ccc"]),
        (Mismatch(2, 1) * Spectrum(1), STRINGS, ["gata", "ccc"]),
        (HistogramIntersection() * Linear() + 1.0, RNG.integers(0, 4, (7, 3)), RNG.integers(0, 4, (5, 3))),
    ],
    ids=repr,
)
def test_feature_map_equals_the_kernel(kernel, rows, others):
    phi, psi = kernel.feature_map(rows, others)
    assert_allclose(dense(phi @ psi.T), kernel(rows, others), rtol=1e-11, atol=1e-11)
    own = kernel.feature_map(rows)
    assert_allclose(dense(own @ own.T), kernel(rows), rtol=1e-11, atol=1e-11)


def dense(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


def test_polynomial_of_degrees_beyond_factorials():
    X = np.array([[0.9], [0.3], [0.5]])
    for c in (0.0, 0.7):
        kernel = Polynomial(200, gamma=1.1, c=c)
        A = kernel.prepare(X)
        Z, _ = kernel.features(A, A)
        assert_allclose(Z @ Z.T, kernel(X), rtol=1e-10)
    for degree in (10**9, 2**62):
        kernel = Polynomial(degree)
        A = kernel.prepare(np.ones((3, 40)))
        with pytest.raises(MemoryBudgetError, match="monomials of 40 columns"):
            kernel.features(A, A)


def test_polynomial_has_all_monomials():
    assert Polynomial(3).feature_map(X).shape[1] == math.comb(3 + 3, 3)
    assert Polynomial(3, c=0.0).feature_map(X).shape[1] == math.comb(3 + 3 - 1, 3)


def test_feature_maps_that_are_not_finite_or_too_large():
    for kernel in (Gaussian(), Linear() + Gaussian(), ChiSquare(), NeuralTangent()):
        with pytest.raises(ParameterTypeError, match="no finite feature map"):
            kernel.feature_map(HISTOGRAMS)
    with ep.config(memory_limit=1 << 20), pytest.raises(MemoryBudgetError, match="words with gaps"):
        Subsequence(5).feature_map(["abcdefghijklmnopqrstuvwxyz"])
    with pytest.raises(DataError, match="whole numbers"):
        HistogramIntersection().feature_map(HISTOGRAMS)
    with ep.config(memory_limit=1 << 20), pytest.raises(MemoryBudgetError, match="monomials"):
        Polynomial(6).feature_map(np.ones((50, 40)))


# ------------------------------------------------------------------- Mercer


def test_a_kernel_that_is_none_is_caught_with_its_direction():
    rows = np.random.default_rng(6).normal(size=(20, 2))
    check = is_mercer(Sigmoid(gamma=2.0, c=-1.0), rows)
    assert not check
    K = Sigmoid(gamma=2.0, c=-1.0)(rows)
    assert_allclose(check.direction @ K @ check.direction, check.eigenvalue, rtol=1e-9)
    assert np.linalg.norm(check.direction) == pytest.approx(1.0)
    assert check.eigenvalue < -check.tolerance
    assert "not Mercer: the sum" in str(check)


def test_minus_one_and_an_asymmetric_function_are_caught():
    assert not is_mercer(lambda A, B: -np.ones((len(A), len(B))), X)  # k(x, x) = -1 is no square
    check = is_mercer(lambda A, B: np.add.outer(A[:, 0], 2 * B[:, 0]), X)
    assert not check
    i, j = check.rows
    assert check.asymmetry == pytest.approx(abs(X[i, 0] - X[j, 0]))
    assert "differ by" in str(check)


def test_a_matrix_may_be_checked():
    good = X @ X.T
    assert is_mercer(Precomputed(), good)
    assert not is_mercer(Precomputed(), good - 2 * np.eye(len(good)))


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 4))
def test_sums_products_and_powers_stay_mercer(seed, n, p):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, p)) * 10.0 ** rng.integers(-3, 3)
    pool = [Linear(), Gaussian(1.3), Laplacian(0.7), ArcCosine(1), Polynomial(2), NeuralTangent(2)]
    first, second = (pool[i] for i in rng.integers(0, len(pool), 2))
    for kernel in (first + second, first * second, 2.5 * first, first**3, (first + 1.0).normalized()):
        assert is_mercer(kernel, rows), kernel


@pytest.mark.parametrize("kernel", [NeuralTangent(2), NNGP(3), ArcCosine(0), ArcCosine(1, 2)], ids=repr)
def test_rows_on_one_line_have_exact_angles(kernel):
    for seed in range(50):
        rng = np.random.default_rng(seed)
        line = rng.normal(size=(1, 3))
        assert is_mercer(kernel, rng.normal(size=(9, 1)))
        x, same, opposite = line, 3.7 * line, -0.3 * line
        scale = np.sqrt(kernel(x)[0, 0] * kernel(same)[0, 0])
        assert kernel(x, same)[0, 0] == pytest.approx(scale, rel=1e-13)
        if kernel == ArcCosine(0):
            assert kernel(x, opposite)[0, 0] == 0.0


def test_kernels_know_whether_they_are_mercer():
    for kernel in [*VECTORS, *COMPOSED, ChiSquare(), HistogramIntersection(), Spectrum(), Mismatch(), Subsequence()]:
        assert kernel.mercer
    for kernel in (Sigmoid(), FunctionKernel(np.dot), Precomputed()):
        assert not kernel.mercer
        assert not (2.0 * (kernel + 1.0)).mercer
    assert not (Linear() * Sigmoid()).normalized().mercer


def test_histogram_and_string_kernels_are_mercer():
    rng = np.random.default_rng(8)
    for kernel in (ChiSquare(0.3), HistogramIntersection(), ChiSquare(2.0) + HistogramIntersection()):
        assert is_mercer(kernel, rng.gamma(1.0, size=(40, 6)))
    strings = ["".join(rng.choice(list("ACGT"), rng.integers(0, 15))) for _ in range(40)]
    for kernel in (Spectrum(2), Mismatch(3, 1), Subsequence(3, 0.4), Spectrum(3).normalized()):
        assert is_mercer(kernel, strings)


def test_an_asymmetric_function_is_no_kernel_matrix():
    with pytest.raises(DataError, match=r"not symmetric: k\(x, z\)"):
        FunctionKernel(lambda A, B: np.add.outer(A[:, 0], 2 * B[:, 0]))(X)


# ------------------------------------------------------------------- memory


@pytest.mark.parametrize("kernel", [Gaussian(2.0), 2.0 * Matern(1.5) * Linear() + 1.0, NeuralTangent(2)], ids=repr)
def test_nothing_is_held_beside_the_result(kernel):
    rows = np.random.default_rng(9).normal(size=(1000, 12))

    def peak(work):
        tracemalloc.start()
        work()
        measured = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return measured

    whole, beside = 8 * 1000**2, 24 * 8 * 256**2 + 8 * rows.nbytes  # some tiles, and rows as they are compared
    assert peak(lambda: kernel(rows, n_jobs=1)) < whole + beside
    assert peak(lambda: kernel(rows.astype(np.float32), n_jobs=1)) < whole / 2 + beside
    blocks = 12 * 8 * 2**18  # of a matrix of 32 MB
    assert peak(lambda: kernel(np.vstack([rows] * 4), rows, n_jobs=1)) < 4 * whole + blocks
    many, some = kernel.prepare(np.vstack([rows] * 4)), kernel.prepare(rows)
    assert peak(lambda: kernel_product(kernel, many, some, np.ones((1000, 1)))) < blocks
    assert peak(lambda: kernel.diagonal(rows)) < beside
