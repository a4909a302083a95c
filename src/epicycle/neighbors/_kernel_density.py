r"""Kernel density:  f(x) = 1 / (W h^p Z) sum_i w_i k(d(x, x_i) / h)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln, logsumexp
from sklearn.neighbors import BallTree, KDTree

from epicycle import _native
from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._checks import count
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._memory import require_memory
from epicycle.core._parameters import AnyOf, Boolean, Choice, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.core._random import Seed, stream
from epicycle.core._threads import n_threads
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments
from epicycle.data import ArrayData
from epicycle.engine._ordered import in_order
from epicycle.neighbors._likeliest_bandwidth import likeliest_bandwidth
from epicycle.spatial._metric import COSINE, Metric
from epicycle.spatial._metrics import has_tree, resolve
from epicycle.spatial._options import SEARCH_DOCS
from epicycle.spatial._search import distance_block, power_overflows, to_unit

#: Kernels of densities, as native code numbers them.
KERNELS = ("gaussian", "tophat", "epanechnikov", "exponential", "linear", "cosine")
#: Those that are above zero everywhere: their densities have logarithms.
REACHING_KERNELS = ("gaussian", "exponential")
_METRICS = sorted({*KDTree.valid_metrics, *BallTree.valid_metrics})
# Relative error of a sum, beyond which nothing is gained: below the unit of rounding.
_ROUNDING = 1e-16
_OPERATIONS = 4.0  # for a point and a column, an exponential among them
_QUERIES = 256  # of a block of distances


class KernelDensity(Estimator):
    r"""Kernel density estimate: a small bump at every row, and their mean.

    .. math:: f(x) = \frac{1}{W h^p Z} \sum_i w_i\, k\!\left(\frac{d(x, x_i)}{h}\right), \qquad
              |\hat f(x) - f(x)| \le \mathrm{atol} + \mathrm{rtol} \cdot f(x)

    Sums run over a tree: nodes whose kernels differ by less than the tolerances allow are taken as a whole, and the
    bound holds for every x. With both at zero the result is exact to rounding, and what cannot change the last digit
    is left out. Far from all rows the logarithm is exact too, where the density itself is no number any more. A
    fitted object keeps the training rows.

    Parameters
    ----------
    bandwidth : float, "scott", "silverman" or "likelihood", default=1.0
        h; :math:`n^{-1/(p+4)}`, or :math:`(n (p + 2) / 4)^{-1/(p+4)}`, with n the sum of the weights, for rows of unit
        variance; "likelihood" takes the h of the largest mean log-density of rows by the others, at any scale (Gaussian
        and exponential kernels, Euclidean distance).
    algorithm : {"auto", "kd_tree", "ball_tree"}, default="auto"
        The result is the same; the metric has to have such a tree.
    kernel : {"gaussian", "tophat", "epanechnikov", "exponential", "linear", "cosine"}, default="gaussian"
        k.
    metric : str, default="euclidean"
        Distance d; the density integrates to one for the Euclidean alone.
    atol, rtol : float, default=0
        Allowed error of the density.
    breadth_first : bool, default=True
        Accepted for compatibility; near nodes always come first.
    leaf_size : int, default=40
        Accepted for compatibility; the result does not depend on it.

    Attributes
    ----------
    bandwidth_ : float
        h.
    X_fit_ : ndarray of shape (n_samples, n_features)
        Rows of positive weight.
    weight_ : ndarray of shape (n_samples,) or None
        Their weights; None where all are one.
    tree_ : KDTree or BallTree
        scikit-learn's tree of the rows, made anew on every access.
    certificate_ : Certificate
        The allowed error: the bound is kept by every sum.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import KernelDensity
    >>> X = np.random.default_rng(0).normal(size=(1000, 1))
    >>> model = KernelDensity(bandwidth=0.3).fit(X)
    >>> np.exp(model.score_samples([[0.0], [3.0]])).round(3)
    array([0.389, 0.004])
    """

    _docs: ClassVar[Mapping[str, str]] = {
        "metric_params": SEARCH_DOCS["metric_params"],
        "X": "X : array, sparse matrix or data frame of shape (n_samples, n_features)",
        "fit_y": "%(ignored)s",
        "score_y": "%(ignored)s",
    }
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "bandwidth": AnyOf(Real(minimum=0, inclusive=False), Choice("scott", "silverman", "likelihood")),
        "algorithm": Choice("auto", "kd_tree", "ball_tree"),
        "kernel": Choice(*KERNELS),
        "metric": Choice(*_METRICS),
        "atol": Real(minimum=0),
        "rtol": Real(minimum=0),
        "breadth_first": Boolean(),
        "leaf_size": Integer(minimum=1),
        "metric_params": NoneOr(InstanceOf(dict)),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="kernel", catalogue=("E16",), engines=("memory",), certificate="error bound", keeps_rows=True
    )
    _takes_sparse = True

    bandwidth_: float
    X_fit_: np.ndarray
    weight_: np.ndarray | None

    @stores_arguments(n_jobs=None)
    def __init__(
        self,
        *,
        bandwidth: float | str = 1.0,
        algorithm: str = "auto",
        kernel: str = "gaussian",
        metric: str = "euclidean",
        atol: float = 0,
        rtol: float = 0,
        breadth_first: bool = True,
        leaf_size: int = 40,
        metric_params: dict[str, Any] | None = None,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Keep the rows of X, and choose the bandwidth."""
        self._check_metric()
        data = self._fit_data(X, None, sample_weight, target="none")
        if not isinstance(data, ArrayData):
            raise DataError("X: KernelDensity keeps its rows and needs them in memory; collect them first")
        rows = _dense(data.X)
        weight = data.weight
        if weight is not None:
            if not (weight > 0).any():
                raise DataError("sample_weight: no row of positive weight is left to learn from")
            rows, weight = rows[weight > 0], weight[weight > 0]
            weight = None if bool((weight == 1).all()) else weight
        self.X_fit_, self.weight_ = np.array(rows, dtype=np.float64, order="C"), weight
        self.__dict__.pop("_tree", None)
        self.bandwidth_ = self._bandwidth()
        meaning = "every density is within atol + rtol times itself of the sum over all rows"
        allowed = max(float(self.atol), float(self.rtol))
        self._conclude_directly(Certificate("error bound", allowed, allowed, meaning))
        return self

    def _check_metric(self) -> None:
        for name in ("kd_tree", "ball_tree"):
            if self.algorithm == name and not has_tree(self.metric, name):
                raise ParameterError(
                    f"algorithm={name!r}: invalid metric {self.metric!r} for it; expected algorithm='auto'"
                )
        if self.bandwidth == "likelihood" and (self.metric != "euclidean" or self.kernel not in REACHING_KERNELS):
            raise ParameterError(
                f"bandwidth='likelihood': has no maximum for kernel={self.kernel!r} and metric={self.metric!r}; "
                "expected a kernel that reaches every row ('gaussian', 'exponential') and 'euclidean', for which "
                "densities integrate to one"
            )

    def _bandwidth(self) -> float:
        n, p = self._total(), self.X_fit_.shape[1]
        if self.bandwidth == "likelihood":
            return likeliest_bandwidth(self.X_fit_, self.weight_, self._log_densities)
        if self.bandwidth == "scott":
            return float(n ** (-1 / (p + 4)))
        if self.bandwidth == "silverman":
            return float((n * (p + 2) / 4) ** (-1 / (p + 4)))
        return float(self.bandwidth)

    def _total(self) -> float:
        return float(len(self.X_fit_)) if self.weight_ is None else float(self.weight_.sum())

    # ------------------------------------------------------------------------------------------- densities

    def score_samples(self, X: Any) -> np.ndarray:
        """The logarithm of the density at every row; minus infinity where no kernel reaches.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        data = self._predict_data(X)
        if not isinstance(data, ArrayData):
            raise DataError("X: queries have to be in memory; collect them first")
        return self._log_densities(np.ascontiguousarray(_dense(data.X), dtype=np.float64), self.bandwidth_)

    def _log_densities(self, Q: np.ndarray, h: float, left_out: float = 0.0) -> np.ndarray:
        """log f at rows Q, from which up to this weight of the rows that equal the query is left out."""
        normaliser = log_normaliser(self.kernel, self.X_fit_.shape[1], h)
        return self._log_means(Q, h, normaliser, left_out) - normaliser

    def _log_means(self, Q: np.ndarray, h: float, normaliser: float, left_out: float) -> np.ndarray:
        metric = resolve(
            2 if self.metric_params is None else self.metric_params.get("p", 2), self.metric, self.metric_params
        )
        if metric.native is None or metric.native.kind == COSINE or metric.native.power < 1:
            return self._in_blocks(metric, Q, h, left_out)
        X, S = metric.scaled(self.X_fit_), metric.scaled(Q)
        if power_overflows(X, S, metric.native):
            X, S, exponent = to_unit(X, S)
            if power_overflows(X, S, metric.native):
                return self._in_blocks(metric, Q, h, left_out)
            tree, h = (
                _native.neighbors.WeightedTree(X, self.weight_),
                float(np.clip(np.ldexp(h, -exponent), 1e-300, 1e300)),
            )
            return self._over(tree, S, metric.native, h, normaliser, left_out)
        if "_tree" not in vars(self):  # is not part of the model: it is dropped from copies and files
            self._tree = _native.neighbors.WeightedTree(np.ascontiguousarray(X, dtype=np.float64), self.weight_)
        return self._over(self._tree, S, metric.native, h, normaliser, left_out)

    def _over(
        self, tree: Any, Q: np.ndarray, metric: Metric, h: float, normaliser: float, left_out: float
    ) -> np.ndarray:
        threads = n_threads(_OPERATIONS * len(Q) * self.X_fit_.size, self.n_jobs)
        log_atol = math.log(self.atol) + normaliser if self.atol > 0 else -math.inf
        rate = min(1 / h, 1e300)
        rtol = max(float(self.rtol), _ROUNDING)
        Q, which = np.ascontiguousarray(Q, dtype=np.float64), KERNELS.index(self.kernel)
        kind, power = metric.kind, metric.power
        return _native.neighbors.log_kernel_means(tree, Q, kind, power, which, rate, log_atol, rtol, left_out, threads)

    def _in_blocks(self, metric: Any, Q: np.ndarray, h: float, left_out: float) -> np.ndarray:
        """The same from all distances, for metrics without a tree of boxes."""
        X, out = metric.scaled(self.X_fit_), np.empty(len(Q))
        in_threads = metric.blocks is None or metric.blocks.in_threads

        def work(start: int) -> None:
            part = metric.scaled(Q[start : start + step])
            D = distance_block(metric.native, part, X) if metric.blocks is None else metric.blocks.block(part, X)
            left, taken = weights_left(D, self.weight_, left_out)
            with np.errstate(over="ignore"):
                logs = values(self.kernel, D / h)
            with np.errstate(divide="ignore"):  # no kernel reaches the query: the logarithm of zero
                sums = logsumexp(logs, axis=1, b=left)
                total = np.maximum(self._total() - taken, np.exp(np.minimum(sums, 0.0)))
                out[start : start + step] = np.where(sums == -np.inf, sums, sums - np.log(total))

        step = max(1, min(_QUERIES, (1 << 21) // len(X)))
        threads = n_threads(_OPERATIONS * len(Q) * self.X_fit_.size, self.n_jobs) if in_threads else 1
        in_order(range(0, len(Q), step), work, None, threads)
        return out

    def score(self, X: Any, y: Any = None) -> float:
        """The sum of the logarithms of the densities of rows X."""
        return float(np.sum(self.score_samples(X)))

    # ------------------------------------------------------------------------------------------- draws

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> np.ndarray:
        """Draw rows: one of the fit, and a step from its kernel (Euclidean for every metric).

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        self._check_fitted()
        n, p = count("n_samples", n_samples, low=1), self.X_fit_.shape[1]
        require_memory(24.0 * n * p, f"{n:,} rows of {p} columns", "draw fewer at a time")
        rng = stream(random_state, "sample")
        ends = np.arange(1.0, len(self.X_fit_) + 1) if self.weight_ is None else np.cumsum(self.weight_)
        rows = np.minimum(np.searchsorted(ends, rng.random(n) * ends[-1], side="right"), len(ends) - 1)
        steps = rng.normal(size=(n, p))
        if self.kernel != "gaussian":
            length = np.linalg.norm(steps, axis=1, keepdims=True)
            steps *= draw_radii(self.kernel, n, p, rng)[:, None] / np.where(length > 0, length, 1.0)
        return np.asarray(self.X_fit_[rows] + self.bandwidth_ * steps)

    @property
    def tree_(self) -> Any:
        self._check_fitted()
        box = has_tree(self.metric, "kd_tree") and self.algorithm != "ball_tree"
        options = self.metric_params or {}
        return (KDTree if box else BallTree)(
            self.X_fit_, leaf_size=self.leaf_size, metric=self.metric, sample_weight=self.weight_, **options
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_tree"}


def _dense(X: Any) -> np.ndarray:
    if not sp.issparse(X):
        return np.asarray(X)
    require_memory(8.0 * X.shape[0] * X.shape[1], "sparse rows made dense", "reduce the columns first")
    return np.asarray(X.toarray())


# Kernels of densities that depend on the distance alone:  k(r),  r = d / h,  with k(0) = 1.
#
# The density of one point is k(d / h) / (h^p Z) with ``Z = S_p integral_0^inf k(r) r^(p-1) dr`` and S_p the surface of
# the unit ball in p dimensions, 2 pi^(p/2) / Gamma(p/2).

_MAX_TRIALS = 10_000  # of the cosine's rejection, of which four in five or more are taken


def log_normaliser(kernel: str, p: int, h: float) -> float:
    """log(h^p Z): of the integral of the kernel over Euclidean space."""
    if kernel == "gaussian":
        return p * (math.log(2 * math.pi) / 2 + math.log(h))
    log_surface = math.log(2.0) + p / 2 * math.log(math.pi) - float(gammaln(p / 2))
    integral = {
        "tophat": -math.log(p),
        "epanechnikov": math.log(2.0) - math.log(p) - math.log(p + 2),
        "exponential": float(gammaln(p)),
        "linear": -math.log(p) - math.log(p + 1),
    }
    radial = integral[kernel] if kernel in integral else _log_cosine_integral(p)
    return log_surface + radial + p * math.log(h)


def _log_cosine_integral(p: int) -> float:
    """log of the integral of cos(pi r / 2) r^(p-1) over [0, 1], by the series of the cosine."""
    terms = [
        (-1) ** k * math.exp(2 * k * math.log(math.pi / 2) - math.lgamma(2 * k + 1)) / (p + 2 * k) for k in range(16)
    ]
    return math.log(math.fsum(terms))


def values(kernel: str, r: np.ndarray) -> np.ndarray:
    """log k(r), minus infinity where the kernel does not reach."""
    if kernel == "gaussian":
        return np.asarray(-0.5 * np.minimum(r, 1e150) ** 2)
    if kernel == "exponential":
        return np.asarray(-r)
    inside = np.where(r < 1, r, 1.0)
    shape = {
        "tophat": np.ones_like(inside),
        "epanechnikov": 1 - inside**2,
        "linear": 1 - inside,
        "cosine": np.cos(math.pi / 2 * inside),
    }[kernel]
    with np.errstate(divide="ignore"):
        return np.where(r < 1, np.log(shape), -np.inf)


def weights_left(D: np.ndarray, weight: np.ndarray | None, left_out: float) -> tuple[np.ndarray, np.ndarray]:
    """(weights of the rows for queries at distances D, without up to `left_out` of equal rows; how much that is)."""
    w = np.ones(D.shape[1]) if weight is None else weight
    taken = np.minimum(np.where(D == 0, w, 0.0).cumsum(axis=1), left_out)  # so far
    return w - np.diff(taken, axis=1, prepend=0.0), taken[:, -1]


def draw_radii(kernel: str, n: int, p: int, rng: np.random.Generator) -> np.ndarray:
    """Distances r of n points drawn from the kernel in p dimensions."""
    if kernel == "tophat":
        return np.asarray(rng.random(n) ** (1 / p))
    if kernel == "epanechnikov":
        return np.asarray(np.sqrt(rng.beta(p / 2, 2.0, n)))
    if kernel == "exponential":
        return np.asarray(rng.gamma(p, size=n))
    if kernel == "linear":
        return np.asarray(rng.beta(p, 2.0, n))
    # cos(pi r / 2) <= (pi / 2) (1 - r): proposals of the linear kernel.
    found, trials = np.empty(0), 0
    while len(found) < n and trials < _MAX_TRIALS:
        r, trials = rng.beta(p, 2.0, n), trials + 1
        keep = rng.random(n) * (math.pi / 2) * (1 - r) < np.cos(math.pi / 2 * r)
        found = np.concatenate([found, r[keep]])
    return found[:n]
