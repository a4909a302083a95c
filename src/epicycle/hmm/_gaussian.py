r"""States that emit normal rows, or mixtures of M normals.

Component c has mean m_c and a covariance C of one of four structures. Given weights r_ic of rows,

    m_c = sum_i r_ic x_i / n_c,    n_c = sum_i r_ic,
    C = (sum_i r_ic (x_i - m_c)(x_i - m_c)' + prior I) / n_c    (sums over all components that share C),

which maximises the expected log-likelihood less  prior/2 trace C^-1  for every C. Of a row with missing entries u the
others o have the marginal density, and statistics take E[x_u | x_o] = m_u + C_uo C_oo^-1 (x_o - m_o) with the
covariance C_uu - C_uo C_oo^-1 C_ou that is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from epicycle import _native
from epicycle.core._exceptions import ConvergenceError, ParameterError
from epicycle.hmm._emissions import Emission, Parameters, share
from epicycle.stats._missing import patterns

_LOG_2PI = float(np.log(2 * np.pi))
#: Below this weight a component keeps its mean and covariance: a step that changes nothing never lowers the likelihood.
_LEAST_WEIGHT = 1e-8
#: Standard deviations below this many roundings of the entries cannot be told from zero.
_ROUNDINGS = 64 * np.finfo(np.float64).eps


class Gaussian(Emission):
    """K states of M components each; M = 1 without weights is the plain normal state."""

    def __init__(self, n_states: int, covariance_type: str, prior: float, n_mix: int | None = None) -> None:
        super().__init__(n_states)
        self.kind, self.prior, self.n_mix = covariance_type, prior, n_mix
        self.names = ("means", "covars") if n_mix is None else ("weights", "means", "covars")
        self.n_components = n_states * (n_mix or 1)
        #: Which covariance a component has: its own, or one for all (of a state, where states are mixtures).
        self.group = np.arange(self.n_components)
        if covariance_type == "tied":
            self.group = np.zeros(n_states, dtype=np.int64) if n_mix is None else np.repeat(np.arange(n_states), n_mix)
        self.n_groups = int(self.group[-1]) + 1

    @property
    def diagonal(self) -> bool:
        """Whether columns are independent given the component."""
        return self.kind in ("diag", "spherical")

    def shapes(self, p: int) -> dict[str, tuple[int, ...]]:
        lead: tuple[int, ...] = (self.n_states,) if self.n_mix is None else (self.n_states, self.n_mix)
        tied = () if self.n_mix is None else (self.n_states,)
        covars = {"spherical": lead, "diag": (*lead, p), "full": (*lead, p, p), "tied": (*tied, p, p)}[self.kind]
        shapes = {"means": (*lead, p), "covars": covars}
        return shapes if self.n_mix is None else {"weights": lead, **shapes}

    def check(self, X: np.ndarray) -> None:
        """Every finite row has a density."""

    # ------------------------------------------------------------------------------------ parameters

    def _means(self, parameters: Parameters) -> np.ndarray:
        means = parameters["means"]
        return means.reshape(self.n_components, means.shape[-1])

    def _variances(self, parameters: Parameters) -> np.ndarray:
        """Of a diagonal structure: shape (components, p)."""
        p = parameters["means"].shape[-1]
        if self.kind == "diag":
            return parameters["covars"].reshape(self.n_components, p)
        return np.repeat(parameters["covars"].reshape(self.n_components, 1), p, axis=1)

    def _covariances(self, parameters: Parameters) -> np.ndarray:
        """Of the other structures: shape (groups, p, p)."""
        p = parameters["means"].shape[-1]
        return parameters["covars"].reshape(self.n_groups, p, p)

    def check_domain(self, given: Parameters) -> None:
        if "weights" in given and ((given["weights"] < 0).any() or not np.allclose(given["weights"].sum(axis=1), 1.0)):
            raise ParameterError("emission_init: weights; expected probabilities with sum 1 for every state")
        if "covars" in given and not self._positive(given["covars"]):
            raise ParameterError("emission_init: covars; expected positive variances, or positive definite matrices")

    def _positive(self, covars: np.ndarray) -> bool:
        if self.diagonal:
            return bool((covars > 0).all())
        C = covars.reshape(self.n_groups, *covars.shape[-2:])
        return bool(np.allclose(C, np.swapaxes(C, 1, 2)) and (np.linalg.eigvalsh(C) > 0).all())

    def feasible(self, parameters: Parameters) -> bool:
        return bool((parameters.get("weights", np.zeros(1)) >= 0).all() and self._positive(parameters["covars"]))

    def start(self, X: np.ndarray, label: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
        from epicycle.hmm._starts import k_means

        there = ~np.isnan(X)
        count = np.maximum(there.sum(axis=0), 1)
        center = np.where(there, X, 0.0).sum(axis=0) / count
        filled = np.where(there, X, center)
        lead, p = self.shapes(X.shape[1])["means"][:-1], X.shape[1]
        groups = [np.flatnonzero(label == k) for k in range(self.n_states)]
        if self.n_mix is None:
            means = [filled[rows].mean(axis=0) if len(rows) else center for rows in groups]
        else:
            means = []
            for rows in groups:
                inside = k_means(filled[rows] if len(rows) else filled, self.n_mix, rng)[0]
                means.extend(inside)
        D = filled - center
        C = D.T @ D / len(D)
        # Every component starts as wide as all rows: none is too narrow to be reached.
        spread = np.diagonal(C) + self.prior / len(D)
        floor = (_ROUNDINGS * np.abs(filled).max(axis=0)) ** 2
        if (spread <= floor).any():
            raise ConvergenceError(
                f"X: column {int(np.argmin(spread - floor))} is constant, and its variance would be zero everywhere; "
                "expected columns that vary, or covars_prior > 0"
            )
        C = C + np.eye(p) * (self.prior / len(D))
        shape = self.shapes(p)["covars"]
        if self.kind == "spherical":
            covars = np.full(shape, spread.mean())
        else:
            covars = np.broadcast_to(spread if self.kind == "diag" else self._shrunk(C), shape).copy()
        out = {"means": np.array(means).reshape(*lead, p), "covars": covars}
        return out if self.n_mix is None else {"weights": np.full(lead, 1.0 / self.n_mix), **out}

    @staticmethod
    def _shrunk(C: np.ndarray) -> np.ndarray:
        """A start that has an inverse, also where columns depend on each other."""
        return np.asarray(0.9 * C + 0.1 * np.diag(np.diagonal(C)))

    # ------------------------------------------------------------------------------------ E-step

    def log_density(self, X: np.ndarray, parameters: Parameters, out: np.ndarray) -> Any:
        if self.n_mix is None:
            self._log_components(X, parameters, out)
            return None
        by_component = np.empty((len(X), self.n_components))
        self._log_components(X, parameters, by_component)
        with np.errstate(divide="ignore"):
            by_component += np.log(parameters["weights"]).ravel()
        parts = by_component.reshape(len(X), self.n_states, self.n_mix)
        most = parts.max(axis=2)
        safe = np.where(np.isfinite(most), most, 0.0)
        total = np.exp(parts - safe[:, :, None])
        sums = total.sum(axis=2)
        with np.errstate(divide="ignore"):
            out[:] = safe + np.log(sums)
        return total / np.where(sums > 0, sums, 1.0)[:, :, None]

    def _log_components(self, X: np.ndarray, parameters: Parameters, out: np.ndarray) -> None:
        """log N(x; m_c, C_c) of every component, into `out`."""
        means = self._means(parameters)
        if self.diagonal:
            variance = np.ascontiguousarray(self._variances(parameters))
            _native.hmm.diagonal_scores(X, np.ascontiguousarray(means), variance, out)
            return
        covariances = self._covariances(parameters)
        absent = np.isnan(X)
        if not absent.any():
            _full_scores(X, means, covariances, self.group, out)
            return
        for there, rows in patterns(absent):
            part = np.zeros((len(rows), self.n_components))
            if len(there):
                blocks = covariances[:, there[:, None], there]
                _full_scores(X[np.ix_(rows, there)], means[:, there], blocks, self.group, part)
            out[rows] = part

    def statistics(self, X: np.ndarray, posterior: np.ndarray, kept: Any, parameters: Parameters) -> tuple[Any, ...]:
        """(n_c, sums of x - m_c, sums of their squares or products), about the present means m_c."""
        R = posterior if kept is None else (posterior[:, :, None] * kept).reshape(len(X), -1)
        means = self._means(parameters)
        if self.diagonal:
            variance = np.ascontiguousarray(self._variances(parameters))
            R, means = np.ascontiguousarray(R), np.ascontiguousarray(means)
            return _native.hmm.diagonal_moments(X, R, means, variance)
        absent = np.isnan(X)
        gaps = bool(absent.any())
        p = X.shape[1]
        weight, first = R.sum(axis=0), np.zeros((self.n_components, p))
        second = np.zeros((self.n_groups, p, p))
        pieces = patterns(absent) if gaps else [(np.arange(p), slice(None))]
        covariances = self._covariances(parameters)
        for there, rows in pieces:
            part, r = X[rows], R[rows]
            for c, g in enumerate(self.group):
                D = part - means[c]
                if len(there) < p:
                    left = _complete(D, there, covariances[g])
                    second[g] += r[:, c].sum() * left
                first[c] += r[:, c] @ D
                D *= np.sqrt(r[:, c])[:, None]
                second[g] += D.T @ D
        return weight, first, second

    # ------------------------------------------------------------------------------------ M-step

    def m_step(self, statistics: tuple[Any, ...], parameters: Parameters) -> dict[str, np.ndarray]:
        weight, first, second = statistics
        old, p = self._means(parameters), parameters["means"].shape[-1]
        alive = weight > _LEAST_WEIGHT
        safe = np.where(alive, weight, 1.0)
        moved = np.where(alive[:, None], first / safe[:, None], 0.0)
        means = old + moved
        if self.diagonal:
            # A component that stays where it is keeps its variance.
            scatter = second - safe[:, None] * moved**2
            if self.kind == "spherical":
                scatter = np.repeat(scatter.mean(axis=1, keepdims=True), p, axis=1)
            variance = np.where(alive[:, None], (scatter + self.prior) / safe[:, None], self._variances(parameters))
            covars = variance[:, 0] if self.kind == "spherical" else variance
        else:
            covars = self._new_covariances(weight, second, moved, alive, self._covariances(parameters))
        shapes = self.shapes(p)
        found = {"means": means.reshape(shapes["means"]), "covars": covars.reshape(shapes["covars"])}
        self._require_positive(found)
        if self.n_mix is None:
            return found
        counts = weight.reshape(self.n_states, self.n_mix)
        return {"weights": share(counts, 1.0, parameters["weights"]), **found}

    def _new_covariances(
        self, weight: np.ndarray, second: np.ndarray, moved: np.ndarray, alive: np.ndarray, old: np.ndarray
    ) -> np.ndarray:
        scatter, total = second.copy(), np.bincount(self.group, weights=weight, minlength=self.n_groups)
        for c in np.flatnonzero(alive):
            scatter[self.group[c]] -= weight[c] * np.outer(moved[c], moved[c])
        out = old.copy()
        for g in np.flatnonzero(total > _LEAST_WEIGHT):
            C = (scatter[g] + self.prior * np.eye(old.shape[1])) / total[g]
            out[g] = (C + C.T) / 2
        return out

    def _require_positive(self, found: Parameters) -> None:
        """Name the component and the columns where a variance has become zero."""
        means, p = self._means(found), found["means"].shape[-1]
        if self.diagonal:
            thin = self._variances(found) <= (_ROUNDINGS * np.abs(means)) ** 2 + np.finfo(float).tiny
            if not thin.any():
                return
            c, columns = int(np.argmax(thin.any(axis=1))), np.flatnonzero(thin.any(axis=0))
        else:
            c = -1
            for g, C in enumerate(self._covariances(found)):
                scale = np.sqrt(np.maximum(np.diagonal(C), np.finfo(float).tiny))
                values, vectors = np.linalg.eigh(C / np.outer(scale, scale))
                if values[0] <= p * _ROUNDINGS:
                    c = int(np.argmax(self.group == g))
                    columns = np.flatnonzero(np.abs(vectors[:, 0]) > 0.1)
                    break
            if c < 0:
                return
        state = f"state {c}" if self.n_mix is None else f"state {c // self.n_mix}, component {c % self.n_mix}"
        raise ConvergenceError(
            f"{state}: its covariance is singular in columns {columns.tolist()} (too few distinct rows, or columns "
            "that depend on each other), and the likelihood has no maximum; use fewer states, another covariance_type, "
            "or a larger covars_prior"
        )

    def log_prior(self, parameters: Parameters) -> float:
        if self.prior == 0:
            return 0.0
        if self.diagonal:
            return -0.5 * self.prior * float((1.0 / self._variances(parameters)).sum())
        return -0.5 * self.prior * sum(float(np.trace(np.linalg.inv(C))) for C in self._covariances(parameters))

    # ------------------------------------------------------------------------------------ use

    def draw(self, parameters: Parameters, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        component = states
        if self.n_mix is not None:
            cumulative = np.cumsum(parameters["weights"], axis=1)
            cumulative /= cumulative[:, -1:]
            inside = (rng.random(len(states))[:, None] >= cumulative[states]).sum(axis=1)
            component = states * self.n_mix + inside
        means = self._means(parameters)
        Z = rng.standard_normal((len(states), means.shape[1]))
        if self.diagonal:
            return np.asarray(means[component] + Z * np.sqrt(self._variances(parameters))[component])
        L = np.linalg.cholesky(self._covariances(parameters))
        return np.asarray(means[component] + np.einsum("ijk,ik->ij", L[self.group[component]], Z))

    def n_parameters(self, p: int) -> int:
        each = {"spherical": 1, "diag": p, "full": p * (p + 1) // 2, "tied": p * (p + 1) // 2}[self.kind]
        weights = 0 if self.n_mix is None else self.n_states * (self.n_mix - 1)
        groups = self.n_groups if self.kind == "tied" else self.n_components
        return self.n_components * p + groups * each + weights


def _full_scores(X: np.ndarray, means: np.ndarray, C: np.ndarray, group: np.ndarray, out: np.ndarray) -> None:
    """log N(x; m_c, C_g) of complete rows for every component, into `out`."""
    p = X.shape[1]
    L = np.linalg.cholesky(C)
    identity = np.eye(p)
    W = [np.ascontiguousarray(solve_triangular(lower, identity, lower=True).T) for lower in L]
    log_det = [2 * float(np.log(np.diagonal(lower)).sum()) for lower in L]
    for c, g in enumerate(group):
        Z = (X - means[c]) @ W[g]
        out[:, c] = -0.5 * (np.einsum("ij,ij->i", Z, Z) + (log_det[g] + p * _LOG_2PI))


def _complete(D: np.ndarray, there: np.ndarray, C: np.ndarray) -> np.ndarray:
    """Put the expectations of missing entries into rows x - m, in place; returns the covariance that is left."""
    p = len(C)
    gone = np.setdiff1d(np.arange(p), there)
    left = np.zeros((p, p))
    slope = np.linalg.solve(C[np.ix_(there, there)], C[np.ix_(there, gone)]) if len(there) else np.zeros((0, len(gone)))
    D[:, gone] = D[:, there] @ slope
    rest = C[np.ix_(gone, gone)] - C[np.ix_(gone, there)] @ slope
    left[np.ix_(gone, gone)] = (rest + rest.T) / 2
    return left
