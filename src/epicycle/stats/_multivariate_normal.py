r"""The multivariate normal distribution:  log p(x) = -(r log(2 pi) + log det S + (x - m)'S^-1 (x - m)) / 2.

For a singular S of rank r this is the density with respect to the r-dimensional volume of its support m + range(S),
with the pseudo-determinant and the pseudo-inverse; off the support there is none. Everything is computed from a factor
S = F F' (`_covariance_factors`): x = m + F z with z ~ N(0, I).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import qr, solve_triangular

from epicycle.core._checks import count
from epicycle.core._exceptions import DataError, ParameterError, ParameterTypeError
from epicycle.core._random import Seed, stream
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.data._matrix import as_matrix
from epicycle.data._target import as_weight
from epicycle.linalg._spectra import singular_vectors
from epicycle.stats._covariance_factors import (
    CovarianceFactor,
    LowRankFactor,
    PrecisionFactor,
    SingularFactor,
    TriangularFactor,
    factor_of_columns,
    factor_of_covariance,
    factor_of_precision,
)
from epicycle.stats._given_covariance import given_factor, low_rank_factor, numbers

Array = np.ndarray

#: A point is on the support of a singular covariance if it is no further from it than this, relative to its distance
#: from the mean and to the largest standard deviation.
_ON_SUPPORT = 1e-8
#: From this many rows per column on, the covariance of data is formed; below, the rows are its factor.
_ROWS_PER_COLUMN = 4


class NormalProduct(NamedTuple):
    """The product of two normal densities: exp(log_scale) times the density of `normal`."""

    normal: MultivariateNormal
    log_scale: float


@in_catalogue("bayes", "B7", certificate="closed form")
class MultivariateNormal:
    r"""The normal distribution of a vector.

    .. math:: p(x) = (2 \pi)^{-r/2} |S|^{-1/2} \exp\bigl(-\tfrac12 (x - m)' S^{-1} (x - m)\bigr)

    The covariance is given in one of four ways; each is kept as a factor and never inverted. A covariance of rank r < p
    is a distribution on the subspace :math:`m + \mathrm{range}(S)`: its density is taken with respect to volume there,
    with pseudo-inverse and pseudo-determinant, and is 0 elsewhere.

    Parameters
    ----------
    mean : array-like of shape (p,)
    covariance : array-like of shape (p, p), optional
        Symmetric and positive semi-definite.
    precision : array-like of shape (p, p), optional
        Its inverse, positive definite.
    cholesky : array-like of shape (p, p), optional
        A lower triangular factor with a positive diagonal: the covariance is cholesky @ cholesky.T.
    low_rank : array-like of shape (p, k), optional
        With `diagonal` of shape (p,), of numbers above 0: the covariance is low_rank @ low_rank.T + diag(diagonal), and
        nothing of size p by p is formed.
    diagonal : array-like of shape (p,), optional
        Without `low_rank` the covariance is diagonal.

    Attributes
    ----------
    mean : ndarray of shape (p,)
    covariance : ndarray of shape (p, p)
        Formed when it is asked for.
    variance : ndarray of shape (p,)
        Its diagonal.
    rank : int
        That of the covariance.

    Examples
    --------
    >>> from epicycle import MultivariateNormal
    >>> normal = MultivariateNormal([0.0, 1.0], [[2.0, 1.0], [1.0, 1.0]])
    >>> print(f"{normal.logpdf([0.5, 1.5]):.4f}")
    -1.9629
    >>> height_given_weight = normal.conditional([1], [2.0])
    >>> print(height_given_weight.mean, height_given_weight.covariance)
    [1.] [[1.]]
    >>> line = normal.affine([[1.0, 0.0], [1.0, 0.0]])  # both coordinates are the first: a line
    >>> print(line.rank, line.logpdf([1.0, 2.0]))
    1 -inf
    """

    def __init__(
        self,
        mean: Any,
        covariance: Any = None,
        *,
        precision: Any = None,
        cholesky: Any = None,
        low_rank: Any = None,
        diagonal: Any = None,
    ) -> None:
        self.mean = np.atleast_1d(numbers("mean", mean)).copy()
        if self.mean.ndim != 1 or not len(self.mean):
            raise ParameterError(f"mean: shape {self.mean.shape}; expected (p,)")
        self.mean.flags.writeable = False
        ways = {"covariance": covariance, "precision": precision, "cholesky": cholesky}
        given = [name for name, value in ways.items() if value is not None]
        if low_rank is not None or diagonal is not None:
            given.append("diagonal" if low_rank is None else "low_rank")
        if len(given) != 1:
            which = " and ".join(given) or "none of them"
            raise ParameterError(
                f"covariance, precision, cholesky, or low_rank with diagonal: got {which}; expected exactly one"
            )
        if given[0] in ways:
            self._factor = given_factor(given[0], ways[given[0]], len(self.mean))
        else:
            self._factor = low_rank_factor(low_rank, diagonal, len(self.mean))

    @classmethod
    def _of(cls, mean: Array, factor: CovarianceFactor) -> Self:
        new = cls.__new__(cls)
        new.mean, new._factor = np.array(mean, dtype=np.float64), factor
        new.mean.flags.writeable = False
        return new

    @classmethod
    def from_data(cls, X: Any, sample_weight: Any = None) -> Self:
        """The normal distribution under which the rows of X have the largest likelihood.

        Its mean and covariance are those of the rows, sums divided by the total weight. With fewer rows than columns
        the covariance is singular, and is kept as the rows: no matrix of p by p is formed.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
        sample_weight : array-like of shape (n,), optional
            A row of weight v counts as v rows.
        """
        table, _ = as_matrix(X, estimator_name=cls.__name__, accept_sparse=False)
        rows = np.asarray(table, dtype=np.float64)
        given = as_weight(sample_weight, len(rows))
        v = np.full(len(rows), 1 / len(rows)) if given is None else given / given.sum()
        mean = v @ rows
        away = (rows - mean) * np.sqrt(v)[:, None]
        n, p = away.shape
        if n < _ROWS_PER_COLUMN * p:
            return cls._of(mean, factor_of_columns(away.T))
        return cls._of(mean, factor_of_covariance(away.T @ away))

    # ------------------------------------------------------------ what it is

    @property
    def covariance(self) -> Array:
        """The covariance matrix."""
        return self._factor.dense()

    @property
    def variance(self) -> Array:
        """The variances of the coordinates."""
        return self._factor.diagonal()

    @property
    def rank(self) -> int:
        """The rank of the covariance: the dimension of the support."""
        return self._factor.rank

    @property
    def dimension(self) -> int:
        """The number p of coordinates."""
        return len(self.mean)

    def __repr__(self) -> str:
        singular = f" on a subspace of dimension {self.rank}" if self.rank < self.dimension else ""
        return f"MultivariateNormal of dimension {self.dimension}{singular}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MultivariateNormal):
            return NotImplemented
        mine, theirs = self.__epi_state__(), other.__epi_state__()
        return mine.keys() == theirs.keys() and all(np.array_equal(mine[key], theirs[key]) for key in mine)

    __hash__ = None  # type: ignore[assignment]

    def __epi_state__(self) -> dict[str, Any]:
        arrays = {key: value for key, value in vars(self._factor).items() if key in ("L", "Q", "R", "W", "d")}
        return {"kind": type(self._factor).__name__, "mean": self.mean, **arrays}

    def __epi_restore__(self, state: Mapping[str, Any]) -> None:
        arrays = dict(state)
        kinds = (TriangularFactor, PrecisionFactor, SingularFactor, LowRankFactor)
        kind = {k.__name__: k for k in kinds}[arrays.pop("kind")]
        self.mean = np.asarray(arrays.pop("mean"))
        self.mean.flags.writeable = False
        self._factor = kind(**arrays)

    # ------------------------------------------------------------ densities

    def logpdf(self, x: Any) -> Any:
        """Logarithm of the density at points along the last axis; -inf off the support."""
        r, shape = self._away(x)
        logs = -0.5 * (self.rank * np.log(2 * np.pi) + self._factor.log_det + self._squared(r))
        return logs.reshape(shape)[()]

    def pdf(self, x: Any) -> Any:
        """The density at points along the last axis; 0 off the support."""
        return np.exp(self.logpdf(x))

    def mahalanobis(self, x: Any) -> Any:
        """The distance of points from the mean in standard deviations; infinite off the support."""
        r, shape = self._away(x)
        return np.sqrt(self._squared(r)).reshape(shape)[()]

    def _away(self, x: Any) -> tuple[Array, tuple[int, ...]]:
        points = numbers("x", x, finite=False)
        if points.shape[-1:] != self.mean.shape:
            raise DataError(f"x: shape {points.shape}; expected {self.dimension} numbers along the last axis")
        return (points.reshape(-1, self.dimension) - self.mean).T, points.shape[:-1]

    def _squared(self, r: Array) -> Array:
        """Squared Mahalanobis distances; infinite off the support."""
        squares = (self._factor.half_solve(r) ** 2).sum(axis=0)
        if self.rank == self.dimension:
            return np.asarray(squares)
        scale = np.linalg.norm(r, axis=0) + np.sqrt(np.max(self.variance, initial=0.0))
        # What rounding leaves of x - m also lies off the support.
        scale = scale + 8 * np.finfo(float).eps / _ON_SUPPORT * np.linalg.norm(self.mean)
        return np.where(
            self._factor.outside(r) <= _ON_SUPPORT * scale, squares, np.where(np.isnan(squares), np.nan, np.inf)
        )

    def entropy(self) -> float:
        """The differential entropy in nats, on the support."""
        return 0.5 * (self.rank * (1 + float(np.log(2 * np.pi))) + self._factor.log_det)

    def kl(self, other: MultivariateNormal) -> float:
        """KL(self || other) in nats: infinite where the supports differ."""
        self._same_dimension(other)
        if other.rank != self.rank:
            return float("inf")
        away = float(other._squared((self.mean - other.mean)[:, None])[0])
        if self.rank < self.dimension and not np.isinf(away):
            F = self._factor.columns()
            sizes = np.linalg.norm(F, axis=0)
            if (other._factor.outside(F) > _ON_SUPPORT * sizes).any():
                return float("inf")
        if np.isinf(away):
            return away
        trace = other._factor.trace_of_solved(self._factor)
        return 0.5 * (trace + away - self.rank + other._factor.log_det - self._factor.log_det)

    def _same_dimension(self, other: MultivariateNormal) -> None:
        if not isinstance(other, MultivariateNormal):
            raise ParameterTypeError(f"other: expected a MultivariateNormal, got {type(other).__name__}")
        if other.dimension != self.dimension:
            raise ParameterError(f"other: is of dimension {other.dimension}; expected {self.dimension}")

    # ------------------------------------------------------------ new distributions from it

    def sample(self, n: int = 1, random_state: Seed = None) -> Array:
        """Array of n independent rows."""
        return np.asarray(self.mean + self._factor.draw(count("n", n), stream(random_state, "sample")))

    def marginal(self, coordinates: Any) -> MultivariateNormal:
        """The distribution of some of the coordinates, in the order in which they are given."""
        keep = self._coordinates(coordinates)
        return self._of(self.mean[keep], self._factor.marginal(keep))

    def conditional(self, coordinates: Any, values: Any) -> MultivariateNormal:
        r"""The distribution of the other coordinates, in their order, given the values of some.

        .. math:: x_A \mid x_B \sim N\bigl(m_A + S_{AB} S_{BB}^{-1} (x_B - m_B),
                  S_{AA} - S_{AB} S_{BB}^{-1} S_{BA}\bigr)

        With x = m + F z the values fix F_B z, and z keeps its freedom in the null space of F_B: that gives a factor of
        the new covariance without a difference of matrices.

        Parameters
        ----------
        coordinates : array-like of int
            Those that are known.
        values : array-like
            Their values. They have to be possible: on the support of these coordinates.
        """
        known = self._coordinates(coordinates)
        rest = np.setdiff1d(np.arange(self.dimension), known)
        x = np.atleast_1d(numbers("values", values))
        if x.shape != known.shape:
            raise DataError(f"values: shape {x.shape}; expected {known.shape}, one for each coordinate")
        if not len(rest):
            raise ParameterError("coordinates: all of them are known; nothing is left to describe")
        away, factor = x - self.mean[known], self._factor
        if isinstance(factor, PrecisionFactor):  # x_A | x_B has the precision P_AA and the mean m_A - P_AA^-1 P_AB away
            P = factor.R @ factor.R.T
            inner = factor_of_precision(P[np.ix_(rest, rest)])
            half = inner.columns()
            return self._of(self.mean[rest] - half @ (half.T @ (P[np.ix_(rest, known)] @ away)), inner)
        if isinstance(factor, LowRankFactor):
            seen, W = factor.marginal(known), factor.W[rest]
            assert isinstance(seen, LowRankFactor)
            mean = self.mean[rest] + W @ seen.latent(away[:, None])[:, 0]
            return self._of(mean, LowRankFactor(W @ seen.latent_columns(), factor.d[rest]))
        if len(known) and np.isinf(self.marginal(known)._squared(away[:, None])[0]):
            raise DataError("values: are not on the support of these coordinates: they have probability 0")
        F = factor.columns()
        mean, free = _conditioned(F, known, rest, away)
        return self._of(self.mean[rest] + mean, factor_of_columns(free, np.linalg.norm(F[rest], axis=1)))

    def affine(self, A: Any, b: Any = 0.0) -> MultivariateNormal:
        """The distribution of A x + b.

        Parameters
        ----------
        A : array-like of shape (q, p)
        b : array-like of shape (q,), default=0.0
        """
        M = np.atleast_2d(numbers("A", A))
        if M.shape[1] != self.dimension:
            raise ParameterError(f"A: shape {M.shape}; expected {self.dimension} columns")
        shift = numbers("b", b)
        if shift.shape not in ((), (1,), (len(M),)):
            raise ParameterError(f"b: shape {shift.shape}; expected ({len(M)},)")
        return self._of(M @ self.mean + shift, factor_of_columns(M @ self._factor.columns()))

    def product(self, other: MultivariateNormal) -> NormalProduct:
        r"""The product of two densities: a normal density times a constant.

        .. math:: N(x; a, A) \, N(x; b, B) = N(a; b, A + B) \; N\bigl(x; (A^{-1} + B^{-1})^{-1} (A^{-1} a + B^{-1} b),
                  (A^{-1} + B^{-1})^{-1}\bigr)

        One of the two may be singular. The result has the fields `normal` and `log_scale`, the log of the constant.

        Parameters
        ----------
        other : MultivariateNormal
        """
        self._same_dimension(other)
        if self.rank < self.dimension and other.rank < self.dimension:
            raise ParameterError("other: both covariances are singular; the product of their densities is not defined")
        # x = a + F z under one density, and z ~ N(0, I) is seen through the other: its precision is M = I + H'H with
        # |H z|^2 = z'F'B^-1 F z. No difference of matrices is taken, and the range of a singular F stays as it is.
        of, by = (self, other) if self.rank < self.dimension else (other, self)
        F = of._factor.columns()
        solved = by._factor.half_solve(np.column_stack([F, by.mean - of.mean]))
        H, h = solved[:, :-1], solved[:, -1]
        Q, R = qr(np.concatenate([H, np.eye(H.shape[1])]), mode="economic", check_finite=False)
        z = solve_triangular(R, Q[: len(H)].T @ h, check_finite=False)
        columns = solve_triangular(R, F.T, trans=1, check_finite=False).T
        squared = float(((h - H @ z) ** 2).sum() + (z**2).sum())
        log_det = by._factor.log_det + 2 * float(np.log(np.abs(np.diagonal(R))).sum())  # of A + B
        log_scale = -0.5 * (self.dimension * float(np.log(2 * np.pi)) + log_det + squared)
        return NormalProduct(self._of(of.mean + F @ z, factor_of_columns(columns)), log_scale)

    def _coordinates(self, coordinates: Any) -> Array:
        index = np.atleast_1d(np.asarray(coordinates))
        if index.size == 0:
            index = index.astype(np.intp)
        if index.ndim != 1 or index.dtype.kind not in "iu":
            raise ParameterTypeError(f"coordinates={coordinates!r:.80}; expected integers")
        wrong = (index < -self.dimension) | (index >= self.dimension)
        if wrong.any():
            raise ParameterError(f"coordinates: {index[wrong][0]} of a vector of {self.dimension}")
        index = index % self.dimension
        if len(set(index.tolist())) < len(index):
            raise ParameterError(f"coordinates={coordinates!r:.80}; some are given twice")
        return np.asarray(index)


def _conditioned(F: Array, known: Array, rest: Array, away: Array) -> tuple[Array, Array]:
    """Shift of the mean, and columns of the covariance, of F_A z given F_B z = away."""
    B = F[known]
    lengths = np.linalg.norm(B, axis=1)
    lengths = np.where(lengths > 0, lengths, 1.0)
    U, s, Vt = singular_vectors(B / lengths[:, None], full_matrices=True)
    cut = max(B.shape) * np.finfo(float).eps * 4 * np.max(s, initial=0.0)
    rank = int((s > cut).sum())
    z = Vt[:rank].T @ ((U[:, :rank].T @ (away / lengths)) / s[:rank])
    return F[rest] @ z, F[rest] @ Vt[rank:].T
