r"""Weights of terms:  x_ij = tf_ij idf_j  over the norm of the row,  idf_j = 1 + log((1 + n) / (1 + n_j))."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import scipy.sparse as sp
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._sparse import _align_api_if_sparse

from epicycle import _native, engine
from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Boolean, Choice, Domain, NoneOr
from epicycle.core._threads import n_threads
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments
from epicycle.data import ArrayData, Batch

NORMS = (None, "l1", "l2")
WEIGHT_DOMAINS: dict[str, Domain] = {
    "norm": NoneOr(Choice("l1", "l2")),
    "use_idf": Boolean(),
    "smooth_idf": Boolean(),
    "sublinear_tf": Boolean(),
}
WEIGHT_DOCS: dict[str, str] = {
    "norm": 'norm : {"l1", "l2"} or None, default={default}\n    The norm of a row that becomes 1.',
    "use_idf": "use_idf : bool, default={default}\n    Whether terms are weighed by how few documents have them.",
    "smooth_idf": "smooth_idf : bool, default={default}\n"
    "    Whether document frequencies count one document more, which has every term.",
    "sublinear_tf": "sublinear_tf : bool, default={default}\n    Whether a frequency tf becomes 1 + log(tf).",
}


def inverse_frequencies(documents: np.ndarray, n: float, *, smooth: bool, dtype: Any) -> np.ndarray:
    """1 + log(n / n_j); a term of no document is as rare as one of one document."""
    frequency = np.asarray(documents, dtype=np.float64)
    held = frequency + 1.0 if smooth else np.where(frequency > 0, frequency, 1.0)
    # A difference of logarithms: quotients of weights may overflow.
    return np.asarray(np.log(n + float(smooth)) - np.log(held) + 1.0, dtype=dtype)


def weighed(
    X: Any, idf: np.ndarray | None, *, sublinear: bool, norm: str | None, n_jobs: int | None = None, copy: bool = True
) -> Any:
    """The rows of counts (CSR) with weights of terms, divided by their norm; X itself where no copy is asked for."""
    if sublinear and X.nnz and X.data.min() <= 0:
        X = X.copy() if copy else X
        X.eliminate_zeros()
        if X.nnz and X.data.min() <= 0:
            raise DataError(f"X: an entry of {X.data.min():g}; sublinear_tf=True takes logarithms: expected counts")
    out = np.empty_like(X.data) if copy else X.data
    weights = None if idf is None else np.ascontiguousarray(idf, dtype=X.dtype)
    threads = n_threads(10.0 * X.nnz, n_jobs)
    _native.text.weigh(X, out, weights, bool(sublinear), NORMS.index(norm), threads)
    return sp.csr_array((out, X.indices, X.indptr), shape=X.shape) if copy else X


class TfidfTransformer(OneToOneFeatureMixin, TransformerMixin, Estimator, auto_wrap_output_keys=None):  # type: ignore[misc]  # untyped
    r"""Counts of terms as weights: the rarer a term, the more it says about a document.

    .. math:: x_{ij} = \mathrm{tf}_{ij} \left(1 + \log \frac{1 + n}{1 + n_j}\right), \qquad x_i \leftarrow x_i / |x_i|

    with n documents, of which :math:`n_j` have term j.

    Attributes
    ----------
    idf_ : ndarray of shape (n_features,)
        Weights of the terms; only with ``use_idf=True``.

    Examples
    --------
    >>> from epicycle import TfidfTransformer
    >>> TfidfTransformer().fit_transform([[3, 0, 1], [2, 0, 0], [3, 0, 2]]).toarray().round(2)
    array([[0.92, 0.  , 0.39],
           [1.  , 0.  , 0.  ],
           [0.76, 0.  , 0.65]])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = WEIGHT_DOMAINS
    _docs: ClassVar[dict[str, str]] = WEIGHT_DOCS
    _card: ClassVar[MethodCard] = MethodCard("text", ("E8",), ("memory", "files", "dask"), "closed form")
    _takes_sparse = True

    norm: str | None
    use_idf: bool
    smooth_idf: bool
    sublinear_tf: bool
    n_jobs: int | None
    idf_: np.ndarray
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"transformer_tags.preserves_dtype": ["float64", "float32"]}

    @stores_arguments(n_jobs=None)
    def __init__(
        self,
        *,
        norm: str | None = "l2",
        use_idf: bool = True,
        smooth_idf: bool = True,
        sublinear_tf: bool = False,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the weights of terms from rows of counts."""
        data = self._fit_data(X, None, sample_weight, target="none")
        dtype = np.float32 if data.dtype == np.float32 else np.float64
        n, documents = engine.sum(document_frequencies, data, n_jobs=self.n_jobs)
        if self.use_idf:
            self.idf_ = inverse_frequencies(documents, n, smooth=self.smooth_idf, dtype=dtype)
        meaning = "document frequencies are sums over all rows"
        self._conclude_directly(Certificate("closed form", 0, 0, meaning), objective=float(n))
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn the weights of terms, and weigh the rows.

        Returns
        -------
        sparse matrix of shape (n_samples, n_features)
        """
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def transform(self, X: Any, copy: bool = True) -> Any:
        """Weigh rows of counts.

        Parameters
        ----------
        copy : bool, default=True
            Whether X stays as it is; otherwise a CSR matrix of floats is changed and returned.

        Returns
        -------
        sparse matrix of shape (n_samples, n_features)
            A dense array for scans and Dask collections.
        """
        data = self._predict_data(X)
        idf = getattr(self, "idf_", None)
        options: dict[str, Any] = {"sublinear": self.sublinear_tf, "norm": self.norm}
        if not copy and sp.issparse(X) and X.format == "csr" and X.dtype in (np.float32, np.float64):
            return _align_api_if_sparse(weighed(X, idf, n_jobs=self.n_jobs, copy=False, **options))
        if isinstance(data, ArrayData):
            return _align_api_if_sparse(weighed(csr_rows(data.X), idf, n_jobs=self.n_jobs, **options))
        return engine.map(_weighed_batch, data, idf, options, n_jobs=self.n_jobs)


def csr_rows(X: Any) -> sp.csr_array:
    """Rows as CSR of floats."""
    return sp.csr_array(X if X.dtype in (np.float32, np.float64) else X.astype(np.float64))


def _weighed_batch(batch: Batch, idf: np.ndarray | None, options: dict[str, Any]) -> np.ndarray:
    return np.asarray(weighed(csr_rows(batch.X), idf, n_jobs=1, **options).toarray())


def document_frequencies(batch: Batch) -> tuple[float, np.ndarray]:
    """(documents, documents that have each term), by weight."""
    X = batch.X
    w = np.ones(batch.n_rows) if batch.weight is None else batch.weight
    there = sp.csr_array((X.data != 0, X.indices, X.indptr), shape=X.shape) if sp.issparse(X) else X != 0
    return float(w.sum()), np.asarray(there.T.astype(np.float64) @ w).ravel()
