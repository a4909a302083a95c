"""The algebra of kernels, their place in model files, and what they refuse."""

import numpy as np
import pytest
import scipy.sparse as sp
from kernels_of_every_kind import COMPOSED, STRINGS, VECTORS, X, Z, every
from numpy.testing import assert_allclose

import epicycle as ep
from epicycle.exceptions import DataError, MemoryBudgetError, ParameterError, ParameterTypeError
from epicycle.kernel import (
    ArcCosine,
    ChiSquare,
    Constant,
    FunctionKernel,
    Gaussian,
    HistogramIntersection,
    Laplacian,
    Linear,
    Matern,
    Mismatch,
    NeuralTangent,
    Periodic,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Spectrum,
    Subsequence,
    Sum,
)


def test_kernels_are_values():
    assert Gaussian(1.0) == Gaussian(1) == Gaussian(np.float32(1.0))
    assert Gaussian([1.0, 2.0]) == Gaussian(np.array([1.0, 2.0]))
    assert Gaussian(1.0) != Gaussian(2.0)
    assert Gaussian(1.0) != Laplacian(1.0)
    assert hash(2.0 * Gaussian() + 1.0) == hash(2.0 * Gaussian() + 1.0)
    assert len({Linear(), Linear(), Polynomial(2)}) == 2
    with pytest.raises(AttributeError):
        Gaussian().length_scale = 3.0
    assert repr(2.0 * (Gaussian() + Linear()) ** 2) == "2.0 * (Gaussian(length_scale=1.0) + Linear()) ** 2"
    assert repr(Gaussian(bounds="fixed")) == "Gaussian(length_scale=1.0, bounds={'length_scale': 'fixed'})"


@every
def test_repr_builds_the_kernel_again(kernel):
    names = {name: getattr(ep.kernel, name) for name in ep.kernel.__all__}
    assert eval(repr(kernel), names) == kernel


def test_numbers_and_functions_stand_beside_kernels():
    def product(A, B):
        return A @ B.T

    assert_allclose((product + Gaussian())(X, Z), (Gaussian() + Linear())(X, Z))
    assert_allclose((Gaussian() * product)(X, Z), (Gaussian() * Linear())(X, Z))
    assert 1.0 + Linear() == Sum(Constant(1.0), Linear())
    assert_allclose((Spectrum(1) + 1.0)(STRINGS), Spectrum(1)(STRINGS) + 1)
    for wrong in ("rbf", None, [1.0]):
        with pytest.raises(TypeError, match="kernel"):
            Linear() + wrong


def test_functions_of_pairs():
    kernel = FunctionKernel(lambda x, z: float(x @ z), pairwise=True)
    assert_allclose(kernel(X, Z), X @ Z.T)
    assert_allclose(kernel.diagonal(X), (X**2).sum(axis=1))
    for function, words in (
        (lambda A, B: A @ A.T, "gave shape"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "NaN"),
        (lambda A, B: "no", "no numbers"),
    ):
        with pytest.raises(DataError, match=words):
            FunctionKernel(function)(X, Z)


@pytest.mark.parametrize("kernel", [*VECTORS, *COMPOSED, Spectrum(4), Mismatch(3, 1, "ACGT"), Subsequence()], ids=repr)
def test_kernels_in_model_files(kernel, tmp_path):
    model = ep.KernelRidge(kernel=kernel)
    ep.save(model, tmp_path / "m.epi")
    assert ep.load(tmp_path / "m.epi").kernel == kernel


def test_a_function_has_no_place_in_a_model_file(tmp_path):
    with pytest.raises(ParameterTypeError, match="kernel"):
        ep.save(ep.KernelRidge(kernel=FunctionKernel(np.dot)), tmp_path / "m.epi")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Gaussian(0.0), ["Gaussian", "length_scale"]),
        (lambda: Gaussian(np.inf), ["Gaussian", "length_scale"]),
        (lambda: Gaussian([1.0, -1.0]), ["Gaussian", "length_scale"]),
        (lambda: Gaussian("1"), ["Gaussian", "length_scale"]),
        (lambda: Gaussian([[1.0]]), ["Gaussian", "length_scale"]),
        (lambda: Gaussian(bounds={"scale": (1, 2)}), ["Gaussian", "bounds", "scale"]),
        (lambda: Gaussian(bounds={"length_scale": (2, 1)}), ["Gaussian", "bounds", "length_scale"]),
        (lambda: Gaussian(bounds=3), ["Gaussian", "bounds"]),
        (lambda: Subsequence(bounds={"decay": (0.1, 2.0)}), ["Subsequence", "decay", "<= 1"]),
        (lambda: Polynomial(-1), ["Polynomial", "degree"]),
        (lambda: Polynomial(np.nan), ["Polynomial", "degree"]),
        (lambda: Polynomial(c=-1.0), ["Polynomial", "c="]),
        (lambda: Matern(nu=1.0), ["Matern", "nu", "0.5, 1.5 or 2.5"]),
        (lambda: RationalQuadratic(alpha=0), ["RationalQuadratic", "alpha"]),
        (lambda: Periodic(period=-1), ["Periodic", "period"]),
        (lambda: ChiSquare(0), ["ChiSquare", "gamma"]),
        (lambda: Spectrum(0), ["Spectrum", "k="]),
        (lambda: Mismatch(3, 3), ["Mismatch", "m="]),
        (lambda: Mismatch(3, 1, ""), ["Mismatch", "alphabet"]),
        (lambda: Subsequence(decay=1.5), ["Subsequence", "decay"]),
        (lambda: ArcCosine(3), ["ArcCosine", "order"]),
        (lambda: NeuralTangent(0), ["NeuralTangent", "depth"]),
        (lambda: -1.0 * Linear(), ["Scaled", "variance"]),
        (lambda: Linear() + -1.0, ["Constant", "value"]),
        (lambda: Linear() ** 0, ["Power", "exponent"]),
        (lambda: Linear() ** 0.5, ["Power", "exponent"]),
        (lambda: Linear() + Spectrum(), ["Sum", "strings", "vectors"]),
        (lambda: FunctionKernel(3), ["FunctionKernel", "function"]),
    ],
)
def test_parameters_that_are_refused(make, words):
    with pytest.raises(ParameterError) as caught:
        make()
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Gaussian()(X, Z[:, :2]), ["columns", "expected 2"]),
        (lambda: Gaussian((1.0, 2.0))(X), ["3 columns", "length_scale has 2"]),
        (lambda: Gaussian()(np.full((2, 2), np.nan)), ["X", "NaN"]),
        (lambda: Gaussian()(X, np.full((2, 3), np.nan)), ["Z", "NaN"]),
        (lambda: Gaussian()(["a", "b"]), ["X"]),
        (lambda: ChiSquare()(X), ["X", "histograms", "below 0"]),
        (lambda: HistogramIntersection()(-np.abs(X)), ["X", "row", "column"]),
        (lambda: Laplacian()(sp.csr_array(X)), ["Sparse data"]),
        (lambda: Spectrum()("abc"), ["X", "sequence of strings"]),
        (lambda: Spectrum()(["a", 3]), ["X", "row 1"]),
        (lambda: Spectrum()([]), ["X", "no rows"]),
        (lambda: Spectrum()(X), ["X"]),
        (lambda: Precomputed()(X), ["square"]),
        (lambda: Precomputed()(np.triu(np.ones((3, 3)))), ["not symmetric", "X[0, 1]"]),
    ],
)
def test_rows_that_are_refused(call, words):
    with pytest.raises(DataError) as caught:
        call()
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_matrix_that_is_too_large_is_refused_before_any_work():
    with ep.config(memory_limit=1 << 25), pytest.raises(MemoryBudgetError, match="Nystroem"):
        Gaussian()(np.zeros((5000, 1)))
