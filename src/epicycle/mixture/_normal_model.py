"""Normal components:  log p_k(x) = log |W_k| - (p log(2 pi) + |W_k (x - m_k)|^2) / 2  with  C_k^-1 = W_k'W_k.

The M-step takes the mean and covariance of the rows, weighted by their shares. Adding reg_covar to a covariance is no
part of the likelihood; where it would lower the expected log-likelihood, the component keeps the covariance that it
has, so that the likelihood never falls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from epicycle import _native
from epicycle.data import Batch
from epicycle.em._latent_model import ROUNDING
from epicycle.mixture import _covariances as cov
from epicycle.mixture._mixture_model import LEAST_SHARE, MixtureModel, dense_pieces, new_weights, shares
from epicycle.stats._missing import patterns

LOG_2PI = float(np.log(2 * np.pi))
#: Loss of expected log-likelihood, per unit of weight, up to which reg_covar is added as it is.
_LOSS = 1e-10


@dataclass(frozen=True)
class Normals:
    """Arrays of a pass over rows: c_k, m_k and W_k, and the covariances where entries are missing."""

    constants: np.ndarray
    means: np.ndarray
    factors: np.ndarray
    #: (k, p, p), for rows with missing entries; None where there are none.
    covariances: np.ndarray | None

    @property
    def arguments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
        """Those of the compiled kernels."""
        p = self.means.shape[1]
        return self.constants, self.means, np.ascontiguousarray(self.factors).reshape(-1, p), self.factors.ndim == 2


class NormalModel(MixtureModel):
    """A mixture of normal distributions."""

    def __init__(
        self, k: int, p: int, kind: str, reg_covar: float, names: Sequence[str], missing: bool = False
    ) -> None:
        super().__init__(k, p)
        self.kind, self.reg_covar, self.names, self.missing = kind, reg_covar, tuple(names), missing

    def n_parameters(self) -> int:
        return cov.n_parameters(self.kind, self.k, self.p) + self.k * self.p + self.k - 1

    def factors(self, C: np.ndarray) -> np.ndarray:
        return cov.factors_of(C, self.kind, self.p, self.names)

    def known_factors(self, parameters: Mapping[str, np.ndarray]) -> np.ndarray:
        """The factors of the covariances, computed unless they are given."""
        return parameters["factors"] if "factors" in parameters else self.factors(parameters["covariances"])

    def prepared(self, parameters: Mapping[str, np.ndarray]) -> Normals:
        W = self.known_factors(parameters)
        with np.errstate(divide="ignore"):  # a weight of 0
            constants = np.log(parameters["weights"]) + cov.log_determinants(W) - 0.5 * self.p * LOG_2PI
        matrices = cov.as_matrices(parameters["covariances"], self.kind, self.k, self.p) if self.missing else None
        return Normals(constants, np.ascontiguousarray(parameters["means"]), W, matrices)

    def feasible(self, parameters: Mapping[str, np.ndarray]) -> bool:
        C = parameters["covariances"]
        return super().feasible(parameters) and (self.kind in ("full", "tied") or bool((C > 0).all()))

    def rounding(self, parameters: Mapping[str, np.ndarray]) -> float:
        C = parameters["covariances"]
        return max(ROUNDING, 8 * float(np.finfo(np.float64).eps) / cov.least_pivot(C, self.factors(C)))

    # ------------------------------------------------------------------------------------------- E

    def e_step(self, batch: Batch, parameters: Any) -> tuple[Any, ...]:
        total: list[Any] | None = None
        for rows, X in dense_pieces(batch.X):
            weight = None if batch.weight is None else batch.weight[rows]
            if self.missing and np.isnan(X).any():
                found = self._incomplete_step(X, weight, parameters)
            else:
                constants, means, factors, diagonal = parameters.arguments
                value, counts, sums, scatter = _native.mixture.normal_sums(
                    X, weight, constants, means, factors, diagonal, self.kind == "tied"
                )
                found = value, counts, sums, scatter.reshape(self._scatter_shape())
            total = list(found) if total is None else [a + b for a, b in zip(total, found, strict=True)]
        assert total is not None
        return tuple(total)

    def _scatter_shape(self) -> tuple[int, ...]:
        return cov.shape_of("diag" if self.kind == "spherical" else self.kind, self.k, self.p)

    def log_joint(self, X: Any, prepared: Normals) -> np.ndarray:
        out = np.empty((X.shape[0], self.k))
        for rows, part in dense_pieces(X):
            if self.missing and np.isnan(part).any():
                for there, mine in patterns(np.isnan(part)):
                    found = [_marginal(part[np.ix_(mine, there)], there, a, prepared).density for a in range(self.k)]
                    out[rows][mine] = np.stack(found, axis=1)
            else:
                out[rows] = _native.mixture.normal_log_joint(part, *prepared.arguments)
        return out

    def _incomplete_step(self, X: np.ndarray, weight: np.ndarray | None, normals: Normals) -> tuple[Any, ...]:
        """The same for rows with missing entries, which are integrated out given the ones that are there."""
        k, p = self.k, self.p
        value, counts, sums, scatter = 0.0, np.zeros(k), np.zeros((k, p)), np.zeros((k, p, p))
        for there, rows in patterns(np.isnan(X)):
            gone = np.setdiff1d(np.arange(p), there)
            parts = [_marginal(X[np.ix_(rows, there)], there, a, normals) for a in range(k)]
            total, r = shares(np.stack([part.density for part in parts], axis=1))
            if weight is not None:
                r *= weight[rows, None]
                total = np.where(weight[rows] > 0, total * weight[rows], 0.0)
            value += float(total.sum())
            counts += r.sum(axis=0)
            for a, part in enumerate(parts):
                d = part.completed(p, there, gone)
                weighted = d * r[:, [a]]
                sums[a] += weighted.sum(axis=0)
                scatter[a] += weighted.T @ d
                scatter[a][np.ix_(gone, gone)] += r[:, a].sum() * part.uncertain(gone)
        if self.kind == "tied":
            return value, counts, sums, scatter.sum(axis=0)
        return value, counts, sums, scatter if self.kind == "full" else np.diagonal(scatter, axis1=1, axis2=2).copy()

    # ------------------------------------------------------------------------------------------- M

    def m_step(self, statistics: tuple[Any, ...], parameters: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        counts, sums, scatter = statistics
        alive = counts > LEAST_SHARE * counts.sum()
        counts_alive = np.where(alive, counts, 0.0)
        shift = np.where(alive[:, None], sums / np.where(alive, counts, 1.0)[:, None], 0.0)
        S = cov.estimated(scatter, counts_alive, shift, self.kind)
        new = {
            "weights": new_weights(counts),
            "means": parameters["means"] + shift,
            "covariances": cov.regularized(S, self.reg_covar, self.kind),
        }
        old = parameters["covariances"]
        if self.kind != "tied":
            new["covariances"][~alive] = old[~alive]
        elif not alive.any():
            new["covariances"] = old
        if self.reg_covar > 0:
            at_old = cov.estimated(scatter, counts_alive, np.zeros_like(shift), self.kind)
            self._undo_losses(counts_alive, S, at_old, new, parameters)
        return new

    def _undo_losses(
        self,
        counts: np.ndarray,
        S: np.ndarray,
        at_old: np.ndarray,
        new: dict[str, np.ndarray],
        parameters: Mapping[str, np.ndarray],
    ) -> None:
        """Put old covariances back where the expected log-likelihood would fall, which only reg_covar can bring about.

        S are covariances about the new means, `at_old` those about the old ones.
        """
        before, after = self.factors(parameters["covariances"]), self.factors(new["covariances"])
        alive = counts > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            weights = np.log(new["weights"][alive]) - np.log(parameters["weights"][alive])
        there, here = self._spread(at_old, before), self._spread(S, after)
        gain = float(counts[alive] @ weights) + 0.5 * float(np.broadcast_to(there - here, self.k) @ counts)
        if gain >= -_LOSS * counts.sum():
            return
        loses = here > self._spread(S, before)
        if self.kind == "tied":
            if loses[0]:
                new["covariances"] = parameters["covariances"]
        else:
            new["covariances"][loses] = parameters["covariances"][loses]

    def _spread(self, S: np.ndarray, W: np.ndarray) -> np.ndarray:
        """log det C + tr(C^-1 S): minus twice the expected log-likelihood of a row, but for a constant."""
        if W.ndim == 2:
            trace = ((S[:, None] if S.ndim == 1 else S) * W**2).sum(axis=1)
        else:
            trace = np.einsum("aij,aij->a", W @ S, W)
        return np.asarray(trace - 2 * cov.log_determinants(W))

    def moments_of(self, X: Any, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(total shares, means, covariances about them) of the components, for given shares."""
        counts = r.sum(axis=0)
        n = np.where(counts > 0, counts, 1.0)
        centre, sums = np.zeros(self.p), np.zeros((self.k, self.p))
        for rows, part in dense_pieces(X, always=True):
            centre += r[rows].sum(axis=1) @ np.asarray(part, dtype=np.float64)
        centre /= counts.sum()
        for rows, part in dense_pieces(X, always=True):
            sums += r[rows].T @ (part - centre)
        means, scatter = sums / n[:, None], np.zeros(self._scatter_shape())
        for rows, part in dense_pieces(X, always=True):
            for a in range(self.k):
                d = (part - centre) - means[a]
                if self.kind in ("diag", "spherical"):
                    scatter[a] += r[rows, a] @ d**2
                else:
                    (scatter if self.kind == "tied" else scatter[a])[...] += (d.T * r[rows, a]) @ d
        return counts, means + centre, cov.estimated(scatter, counts, np.zeros_like(means), self.kind)

    def from_shares(self, X: Any, r: np.ndarray) -> dict[str, np.ndarray]:
        counts, means, C = self.moments_of(X, r)
        empty = counts <= LEAST_SHARE * counts.sum()
        if empty.any():  # as wide as all rows, about their mean
            centre = counts @ means / counts.sum()
            means[empty] = centre
            if self.kind != "tied":
                C[empty] = C[~empty].mean(axis=0) + _between(means - centre, counts, self.kind)
            counts = np.where(empty, counts.sum() / (1 + len(r)), counts)
        return {
            "weights": new_weights(counts),
            "means": means,
            "covariances": cov.regularized(C, self.reg_covar, self.kind),
        }


def _between(means: np.ndarray, counts: np.ndarray, kind: str) -> Any:
    """Covariance of the means of the components."""
    B = (means.T * counts) @ means / counts.sum()
    return B if kind == "full" else np.diagonal(B) if kind == "diag" else np.trace(B) / len(B)


@dataclass(frozen=True)
class _Marginal:
    """One component seen through some columns o: z = L_o^-1 (x_o - m_o), and L_o^-1 C_ou for the columns u."""

    density: np.ndarray
    difference: np.ndarray
    z: np.ndarray
    L: np.ndarray
    C: np.ndarray
    there: np.ndarray

    def _half(self, gone: np.ndarray) -> np.ndarray:
        if not len(self.there) or not len(gone):
            return np.zeros((len(self.there), len(gone)))
        return np.asarray(solve_triangular(self.L, self.C[np.ix_(self.there, gone)], lower=True, check_finite=False))

    def completed(self, p: int, there: np.ndarray, gone: np.ndarray) -> np.ndarray:
        """x - m with expectations in place of what is missing."""
        out = np.empty((len(self.difference), p))
        out[:, there] = self.difference
        out[:, gone] = self.z.T @ self._half(gone)
        return out

    def uncertain(self, gone: np.ndarray) -> np.ndarray:
        """The covariance of what is missing, given the rest."""
        half = self._half(gone)
        return np.asarray(self.C[np.ix_(gone, gone)] - half.T @ half)


def _marginal(x: np.ndarray, there: np.ndarray, a: int, normals: Normals) -> _Marginal:
    assert normals.covariances is not None
    C = normals.covariances[a]
    p = len(C)
    # c_a without log |W| and the constant of p columns is log pi_a
    log_det = float(cov.log_determinants(normals.factors)[min(a, len(normals.factors) - 1)])
    log_weight = normals.constants[a] - log_det + 0.5 * p * LOG_2PI
    d = np.asarray(x, dtype=np.float64) - normals.means[a, there]
    if not len(there):
        return _Marginal(np.full(len(d), log_weight), d, np.zeros((0, len(d))), C, C, there)
    L = np.linalg.cholesky(C[np.ix_(there, there)])
    z = solve_triangular(L, d.T, lower=True, check_finite=False)
    half = float(np.log(np.diagonal(L)).sum()) + 0.5 * len(there) * LOG_2PI
    return _Marginal(log_weight - half - 0.5 * (z**2).sum(axis=0), d, z, L, C, there)
