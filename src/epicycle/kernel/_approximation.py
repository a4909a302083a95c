"""Features whose inner products are nearly a kernel: random Fourier features, and the Nystrom method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from epicycle import engine
from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ParameterError
from epicycle.core._memory import require_memory
from epicycle.core._parameters import AnyOf, Choice, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.core._random import seed_of, stream
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments
from epicycle.data import Batch
from epicycle.kernels._given import Entries
from epicycle.kernels._gram import kernel_product, low_rank_factor
from epicycle.kernels._kernel import Kernel
from epicycle.kernels._machine import KERNEL_DOCS, KERNEL_PARAMETERS, KernelMachine, as_kernel, select_rows


class KernelFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin):  # type: ignore[misc]  # untyped mixins
    """A transformer whose features have the type of the rows."""

    _fixed_tags: ClassVar[Mapping[str, Any]] = {"transformer_tags.preserves_dtype": ["float64", "float32"]}


class RandomFourierFeatures(KernelFeatures, Estimator):
    r"""Random cosines and sines whose inner products are a stationary kernel on average.

    .. math:: \varphi(x) = \sqrt{\tfrac{k(0)}{m}} \bigl(\cos w_1'x, \dots, \cos w_m'x, \sin w_1'x, \dots,
              \sin w_m'x\bigr), \qquad E\, \varphi(x)'\varphi(z) = k(x - z)

    with frequencies :math:`w` drawn from the spectral density of the kernel. A linear model of these features is a
    kernel machine whose cost is linear in the number of rows.

    Parameters
    ----------
    kernel : {"rbf", "gaussian", "laplacian"} or Kernel, default="rbf"
        A stationary kernel: Gaussian, Laplacian, Matern, RationalQuadratic, their products, sums, powers, multiples.
    n_components : int, default=100
        How many features: cosines and sines of half as many frequencies; of an odd number the last is a cosine with a
        random phase.
    random_state : int, Generator, RandomState or None, default=None
        The frequencies.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_components / 2, n_features)
    offset_ : ndarray of shape (n_features,)
        Subtracted from the rows first, so that large offsets cost no digits; the kernel does not see it.
    %(kernel_)s
    certificate_ : Certificate
        Nothing is optimised; it states the standard error of an inner product.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import RandomFourierFeatures
    >>> X = np.random.default_rng(0).normal(size=(5, 3))
    >>> Z = RandomFourierFeatures(n_components=200, random_state=0).fit_transform(X)
    >>> Z.shape, bool(np.allclose((Z**2).sum(axis=1), 1))
    ((5, 200), True)
    """

    _docs: ClassVar[Mapping[str, str]] = KERNEL_DOCS
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "kernel": AnyOf(Choice("rbf", "gaussian", "laplacian"), InstanceOf(Kernel)),
        "gamma": NoneOr(Real(minimum=0, inclusive=False)),
        "n_components": Integer(minimum=1),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="kernel", catalogue=("C2",), engines=("memory", "files", "dask"), certificate="closed form"
    )

    @stores_arguments(random_state=None, n_jobs=None)
    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: float | None = None,
        n_components: int = 100,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    _takes_sparse: ClassVar[bool] = True

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the frequencies for rows like those of X."""
        data = self._fit_data(X, None, target="none")
        p = data.n_features
        self.kernel_ = as_kernel(self.kernel, self.gamma, 3, 1.0, p)
        m = (self.n_components + 1) // 2
        require_memory(8.0 * m * p, f"{m:,} frequencies of {p} columns", "take a smaller n_components")
        rng = stream(seed_of(self.random_state), "frequencies")
        self.frequencies_ = self.kernel_.spectral_frequencies(p, m, rng)
        self._phase_ = float(rng.uniform(0, 2 * np.pi)) if self.n_components % 2 else None
        self.offset_ = np.zeros(p)
        if not sp.issparse(data.head().X):  # all rows, so that it does not depend on how they are cut into batches
            sums, n = engine.sum(_sum_statistic, data, n_jobs=self.n_jobs)
            self.offset_ = sums / n
        self._variance_ = float(self.kernel_.diagonal(np.zeros((1, p)))[0])
        # var cos <= 1, and at most 3/2 for the one with a random phase
        error = self._variance_ * np.sqrt(m + (0.5 if self.n_components % 2 else 0.0)) / m
        meaning = (
            f"nothing is optimised: inner products are the kernel on average, with standard error below {error:.2g}"
        )
        self._conclude_directly(Certificate("closed form", 0.0, 0.0, meaning))
        return self

    def transform(self, X: Any) -> Any:
        """The features of every row: shape (n_samples, n_components)."""
        data = self._predict_data(X)
        parts = self.frequencies_, self.offset_, self._variance_, self._phase_
        return engine.map(fourier_batch, data, *parts, n_jobs=self.n_jobs)

    @property
    def _n_features_out(self) -> int:
        return 2 * len(self.frequencies_) - (self._phase_ is not None)


def _sum_statistic(batch: Batch) -> tuple[np.ndarray, int]:
    return batch.X.sum(axis=0, dtype=np.float64), batch.n_rows


def fourier_batch(
    batch: Batch, frequencies: np.ndarray, offset: np.ndarray, variance: float, phase: float | None
) -> np.ndarray:
    """Cosines and sines of a batch, in the type of its rows; with a phase the last cosine stands for both."""
    m = len(frequencies)
    pairs = m if phase is None else m - 1
    out = np.empty((batch.n_rows, m + pairs), dtype=batch.X.dtype)
    rows = max(256, (1 << 18) // m)
    scale = np.sqrt(variance / m)
    for start in range(0, batch.n_rows, rows):
        X = batch.X[start : start + rows]
        angle = (
            np.asarray(X @ frequencies.T) - offset @ frequencies.T if sp.issparse(X) else (X - offset) @ frequencies.T
        )
        out[start : start + rows, :pairs] = scale * np.cos(angle[:, :pairs])
        out[start : start + rows, pairs : 2 * pairs] = scale * np.sin(angle[:, :pairs])
        if phase is not None:
            out[start : start + rows, -1] = scale * np.sqrt(2) * np.cos(angle[:, -1] + phase)
    return out


class Nystroem(KernelFeatures, KernelMachine):
    r"""Features from the kernel with a few landmark rows, of any kernel.

    .. math:: \varphi(x) = K_{LL}^{-1/2} \, k_L(x), \qquad \varphi(x)'\varphi(z) = k_L(x)' K_{LL}^{-1} k_L(z)

    for landmarks L among the rows of the fit: the kernel restricted to the span of their features. It is exact on the
    landmarks themselves, and never too large: :math:`K - \Phi \Phi'` is positive semi-definite, with a trace that is
    known.

    Parameters
    ----------
    degree : float, optional
        Degree of the kernel "poly"; default: 3.
    coef0 : float, optional
        Constant of the kernels "poly" and "sigmoid"; default: 1.
    n_components : int, default=100
        Landmarks; as many features, fewer where the kernel has a lower rank.
    landmarks : {"pivoted", "uniform"}, default="pivoted"
        "pivoted" takes the row that the landmarks so far explain least, step by step; "uniform" draws them.
    random_state : int, Generator, RandomState or None, default=None
        For "uniform".

    Attributes
    ----------
    components_ : the landmarks, rows of X
    component_indices_ : ndarray of int
        Which rows they are.
    normalization_ : ndarray of shape (n_landmarks, n_features_out)
        The matrix that makes features of kernel values.
    %(kernel_)s
    certificate_ : Certificate
        The trace of K less that of the features' inner products on the rows of the fit, relative to that of K: the
        sum of all eigenvalues that are missing.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import Nystroem
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = Nystroem(n_components=60).fit(X)
    >>> model.transform(X).shape, model.certificate_.value < 1e-3
    ((300, 60), True)
    """

    _docs: ClassVar[Mapping[str, str]] = KERNEL_DOCS
    _parameters: ClassVar[Mapping[str, Domain]] = {
        **KERNEL_PARAMETERS,
        "degree": NoneOr(KERNEL_PARAMETERS["degree"]),
        "coef0": NoneOr(KERNEL_PARAMETERS["coef0"]),
        "kernel_params": NoneOr(InstanceOf(dict)),
        "n_components": Integer(minimum=1),
        "landmarks": Choice("pivoted", "uniform"),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="kernel", catalogue=("C2",), engines=("memory",), certificate="trace error"
    )

    @stores_arguments(random_state=None, n_jobs=None)
    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: float | None = None,
        degree: float | None = None,
        coef0: float | None = None,
        kernel_params: dict[str, Any] | None = None,
        n_components: int = 100,
        landmarks: str = "pivoted",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the landmarks among the rows of X.

        Parameters
        ----------
        X : array, sparse matrix, data frame of shape (n_samples, n_features), or sequence of strings
        """
        given = [name for name in ("gamma", "coef0", "degree") if getattr(self, name) is not None]
        by_name = isinstance(self.kernel, str) and self.kernel != "precomputed"
        if given and not by_name and not isinstance(self.kernel, Kernel):
            raise ParameterError(
                f"Nystroem: {given[0]}={getattr(self, given[0])!r} with kernel={self.kernel!r:.40}. Don't pass gamma, "
                "coef0 or degree to Nystroem if using a function or a precomputed kernel; expected None"
            )
        _, rows = self._intake(X, None, None, target="none")
        n = int(rows.shape[0])
        A = self.kernel_.prepare(rows)
        m = min(self.n_components, n)
        if self.landmarks == "pivoted":
            chosen = low_rank_factor(self.kernel_, A, m)[0]
            chosen = chosen if len(chosen) else np.zeros(1, dtype=np.intp)
        else:
            chosen = stream(seed_of(self.random_state), "landmarks").permutation(n)[:m]
        self.component_indices_ = chosen
        self.components_ = select_rows(rows, self.kernel_, chosen)
        B = A.take(chosen) if self.kernel_.takes == "precomputed" else self._kept()
        K = self.kernel_.block(B, B)
        self._require_finite(K)
        self._require_mercer(K)
        values, vectors = np.linalg.eigh((K + K.T) / 2)
        good = values > max(float(values[-1]), 0.0) * len(values) * np.finfo(np.float64).eps
        if not good.any():
            good[-1] = True
            values = np.ones_like(values)
        self.normalization_ = vectors[:, good] / np.sqrt(values[good])
        self._certify(A)
        return self

    def _certify(self, A: Any) -> None:
        trace = float(self.kernel_.prepared_diagonal(A).sum())
        features = kernel_product(self.kernel_, A, A.take(self.component_indices_), self.normalization_)
        missing = max(trace - float(np.square(features).sum()), 0.0)
        error = missing / trace if trace > 0 else 0.0
        meaning = f"all eigenvalues of the kernel matrix that the features miss add up to {error:.1e} of its trace"
        if not self.kernel_.mercer:
            meaning += ", if this is a Mercer kernel, of which only the landmarks are known"
        self._conclude_directly(Certificate("trace error", error, 1.0, meaning), objective=missing)

    def _kept(self) -> Any:
        if self.kernel_.takes == "precomputed":
            return Entries(None, self.component_indices_)
        return self.kernel_.prepare(self.components_)

    def transform(self, X: Any) -> Any:
        """The features of every row: shape (n_samples, n_features_out)."""
        self._check_fitted()
        return self._combine(X, self.normalization_, np.zeros(self.normalization_.shape[1]))

    @property
    def _n_features_out(self) -> int:
        return int(self.normalization_.shape[1])
