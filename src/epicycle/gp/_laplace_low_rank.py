"""Laplace's approximation with m inducing rows:  f = V'w,  w ~ N(0, I),  V = Lm^-1 Kmn, for one latent value or more.

With H = I + Phi'W Phi, where Phi has a copy of V' for every latent value,

    log q = log p(N | f) - w'w / 2 - log det H / 2.

K^ = V'V stands for K; its derivative is A'dKmn + dKmn'A - A'dKmm A with A = Kmm^-1 Kmn, and with the weights T of the
exact gradient, tr(T dK^) = 2 tr(dKmn' A T) - tr(dKmm A T A'). V R = H^-1 (V W) keeps all of it at the size of m.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.linalg

from epicycle.core._exceptions import DataError
from epicycle.gp._inducing import choose_rows, inducing_factor
from epicycle.gp._laplace import Mode, find_mode
from epicycle.gp._observations import Counts
from epicycle.kernels._kernel import Kernel
from epicycle.linalg._cholesky import NotPositiveError

_BLOCK = 1024  # rows of a block of the kernel matrix: with up to some hundred inducing rows it stays in cache


class LowRankLaplace:
    """log q as a function of the kernel's theta; see :class:`~epicycle.gp._laplace.BinaryLaplace`."""

    def __init__(
        self,
        kernel: Kernel,
        obs: Counts,
        n_jobs: int | None,
        max_steps: int,
        n_rows: int,
        how: str,
        seed: int,
        exact: type,
    ) -> None:
        self.kernel, self.obs, self.n_jobs, self.max_steps = kernel, obs, n_jobs, max_steps
        self.n_rows, self.how, self.seed, self.exact = n_rows, how, seed, exact
        self.rows = np.empty(0, dtype=np.intp)
        self.w = np.zeros((0, obs.n_latent))
        self.scale, self.standard_error, self.evaluations = obs.scale, 0.0, 0
        self.decrement, self.newton_steps = np.inf, 0
        self.jitter = 0.0

    def subset(self, chosen: np.ndarray) -> Any:
        return self.exact(self.kernel, self.obs.take(chosen, self.kernel), self.n_jobs, self.max_steps)

    def start(self, theta: np.ndarray) -> None:
        kernel = self.kernel.with_theta(theta)
        self.rows = choose_rows(kernel, kernel.prepare(self.obs.rows), self.n_rows, self.how, self.seed)
        if not len(self.rows):
            raise DataError(f"kernel: {kernel!r:.80} is zero for all rows of X")
        self.w = np.zeros((len(self.rows), self.obs.n_latent))

    def state(self) -> dict[str, Any]:
        return {"rows": self.rows, "w": self.w}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.rows, self.w = np.asarray(state["rows"], dtype=np.intp), np.asarray(state["w"])

    def features(self, kernel: Kernel) -> tuple[Any, np.ndarray, np.ndarray]:
        """(prepared rows, Lm, V of shape (m, n))."""
        A = kernel.prepare(self.obs.rows)
        Z = A.take(self.rows)
        found, self.jitter = inducing_factor(kernel, A, self.rows)
        Lm = np.tril(found.L)
        V = np.empty((len(Lm), self.obs.n))
        for start in range(0, self.obs.n, _BLOCK):
            part = slice(start, min(start + _BLOCK, self.obs.n))
            V[:, part] = found.half_solve(kernel.block(Z, A.take(part)))
        return A, Lm, V

    def _factor(self, V: np.ndarray, W: np.ndarray) -> np.ndarray:
        """The lower factor of H."""
        m, k = len(V), W.shape[1]
        H = np.eye(m * k).reshape(k, m, k, m)
        for c in range(k):
            for d in range(c + 1):
                block = (V * W[:, c, d]) @ V.T
                H[c, :, d] += block
                if c != d:
                    H[d, :, c] += block.T
        try:
            return np.asarray(np.linalg.cholesky(H.reshape(m * k, m * k)))
        except np.linalg.LinAlgError:
            raise NotPositiveError("I + Phi'W Phi is not positive definite to working precision") from None

    def mode(self, V: np.ndarray) -> Mode:
        def newton(_w: np.ndarray, f: np.ndarray, p: np.ndarray) -> np.ndarray:
            W = self.obs.curvature(p)
            right = V @ (np.einsum("ikl,il->ik", W, f) + self.obs.gradient(p))
            found = scipy.linalg.cho_solve((self._factor(V, W), True), right.T.ravel())
            return np.asarray(found.reshape(right.shape[1], -1).T)

        mode = find_mode(
            self.obs, self.w, lambda w: V.T @ w, lambda w, _f: float(np.vdot(w, w)), newton, self.max_steps
        )
        self.w, self.decrement = mode.a, mode.decrement
        self.newton_steps += mode.n_steps
        return mode

    def value_and_gradient(self, theta: np.ndarray, gradient: bool = True) -> tuple[float, np.ndarray]:
        self.evaluations += 1
        kernel, obs = self.kernel.with_theta(theta), self.obs
        A, Lm, V = self.features(kernel)
        mode = self.mode(V)
        W = obs.curvature(mode.p)
        LH = self._factor(V, W)
        value = mode.value - float(np.log(np.diagonal(LH)).sum())
        if not gradient:
            return value, np.empty(0)
        m, k = len(V), obs.n_latent
        Hinv = scipy.linalg.cho_solve((LH, True), np.eye(m * k), check_finite=False).reshape(k, m, k, m)
        g = obs.gradient(mode.p)
        cov = np.empty((obs.n, k, k))
        VR = np.zeros_like(V)  # sum over c of V R_cc
        for c in range(k):
            for d in range(k):
                HV = Hinv[c, :, d] @ V
                cov[:, c, d] = np.einsum("ij,ij->j", V, HV)
                VR += HV * W[:, d, c]
        s = obs.third(mode.p, cov)
        solved = np.einsum("cidj,jd->ic", Hinv, V @ s, optimize=True)
        u = s - np.einsum("ikl,il->ik", W, V.T @ solved)
        Vg, Vu = V @ g, V @ u
        VT = Vg @ (g + u).T + Vu @ g.T - VR  # twice V T
        traced = sum(np.eye(m) - Hinv[c, :, c] for c in range(k))
        VTV = Vg @ (Vg + Vu).T + Vu @ Vg.T - traced
        back = scipy.linalg.solve_triangular(Lm, VTV, lower=True, trans=1)
        back = scipy.linalg.solve_triangular(Lm, back.T, lower=True, trans=1) / 2
        total = kernel.contract_between(A, self.rows, self.rows, -(back + back.T) / 2)
        P = scipy.linalg.solve_triangular(Lm, VT, lower=True, trans=1, check_finite=False)
        for start in range(0, obs.n, _BLOCK):
            some = np.arange(start, min(start + _BLOCK, obs.n))
            total = total + kernel.contract_between(A, self.rows, some, P[:, some])
        return value, total

    def conclude(self, theta: np.ndarray) -> tuple[Mode, dict[str, np.ndarray], float]:
        """(mode, arrays that prediction needs, log q)."""
        _, Lm, V = self.features(self.kernel.with_theta(theta))
        mode = self.mode(V)
        LH = self._factor(V, self.obs.curvature(mode.p))
        C = scipy.linalg.solve_triangular(Lm, mode.a, lower=True, trans=1)
        return mode, {"C": C, "Lm": Lm, "LH": LH}, mode.value - float(np.log(np.diagonal(LH)).sum())
