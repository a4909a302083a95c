"""The module of a decoder whose codes are learnt with it:  z ~ N(0, I),  u = g(z) + s e,  e ~ N(0, I).

Entries of u that are NaN are missing, and leave the sums. The codes of the rows of the fit are Markov chains, kept as
a buffer; those of new rows are the modes of p(z | u), by Levenberg and Marquardt's method for all rows at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from epicycle.generative._scale import Scale
from epicycle.generative.autoencoders._coders import CodeDecoder
from epicycle.generative.energy._chains import move
from epicycle.nets.training._randomness import generator

_LOG_2PI = math.log(2 * math.pi)
#: Logarithm of the least deviation of an entry given its code.
_LEAST_NOISE = math.log(1e-3)
#: The deviation of entries at the start: with as much noise as there is spread, codes tell nothing, and learn nothing.
_START_NOISE = 0.3
#: The first step of the chains; it then follows the share of moves that are taken.
_STEP = 0.1
#: Codes from the prior, of which the likeliest is where the search for that of a row starts; and its steps at most.
_POOL, _SEARCH = 512, 100
#: Damping of the search: at first, factors after better and worse steps, and least and largest.
_DAMPING, _LESS, _MORE, _ENDS = 1.0, 0.2, 4.0, (1e-12, 1e12)


def factor_of_sum(J: torch.Tensor, ridge: torch.Tensor) -> torch.Tensor:
    """The lower L of each row with L L' = J'J + ridge I, for J of shape (n, p, k) and ridge of shape (n,).

    Where the squares of J leave no digit of the ridge, L is the triangular factor of J above sqrt(ridge) I itself. Its
    diagonal is the distance of each column from those before it, so at least sqrt(ridge).
    """
    eye = torch.eye(J.shape[2]).to(J)
    L, failed = torch.linalg.cholesky_ex(J.mT @ J + ridge[:, None, None] * eye)
    worst = (failed > 0) | ~L.flatten(1).isfinite().all(dim=1)
    if worst.any():
        root = ridge[worst].sqrt()[:, None]
        R = torch.linalg.qr(torch.cat([J[worst], root[:, :, None] * eye], dim=1), mode="r")[1]
        diagonal = R.diagonal(dim1=1, dim2=2)
        R = torch.where(diagonal < 0, -1.0, 1.0)[:, :, None] * R
        L[worst] = (R + torch.diag_embed(torch.maximum(diagonal.abs(), root) - diagonal.abs())).mT
    return L


class DecoderModule(nn.Module):  # type: ignore[misc]
    """Decoder, noise, and the codes of the rows of the fit.

    Parameters
    ----------
    architecture : mapping
        That of the coders, with "noise" and "n_rows".
    """

    #: Buffers that are the state of a process: training does not average them.
    states = ("codes", "step")

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        shape, self.n_codes, noise = architecture["shape"], architecture["n_codes"], architecture["noise"]
        self.scale = Scale(architecture["mean"], architecture["deviation"], shape)
        self.decoder = CodeDecoder(architecture)
        start = torch.full((shape[-1],), math.log(_START_NOISE if noise is None else noise))
        self.log_noise = nn.Parameter(start, requires_grad=noise is None)
        self.register_buffer("codes", torch.randn(architecture["n_rows"], self.n_codes))
        self.register_buffer("step", torch.tensor(_STEP))
        self.to(getattr(torch, architecture["dtype"]))

    # ------------------------------------------------------------------------------------------- the density

    def log_noise_of_rows(self) -> torch.Tensor:
        """log s of the columns or channels, in the shape that goes with rows."""
        found = self.log_noise.clamp(min=_LEAST_NOISE)
        return found[:, None, None] if self.scale.images else found

    def log_joint(self, u: torch.Tensor, z: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """log p(x, z) of every row, over the entries that are there and in the units of x."""
        log_noise = self.log_noise_of_rows()
        seen = ~u.isnan()
        r = (u.nan_to_num() - self.decoder(z, labels)) * torch.exp(-log_noise)
        entries = -0.5 * (r.square() + _LOG_2PI) - log_noise - self.scale.deviation.log()
        prior = -0.5 * (z.square().sum(1) + self.n_codes * _LOG_2PI)
        return torch.where(seen, entries, 0.0).flatten(1).sum(1) + prior

    def moved(self, u: torch.Tensor, labels: torch.Tensor | None, rows: torch.Tensor, n_moves: int) -> torch.Tensor:
        """The codes of rows of the fit after some moves of their chains towards p(z | x)."""
        chains = move(lambda z: self.log_joint(u, z, labels), self.codes[rows], self.step, n_moves, 1)
        self.codes[rows] = chains.u
        self.step.copy_(chains.step)
        return chains.u

    # ------------------------------------------------------------------------------------------- codes of new rows

    def modes(self, u: torch.Tensor, labels: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        """(z, L) of every row: the mode of p(z | x), and the Cholesky factor of J'J / s^2 + I there."""
        z = self._starts(u, labels)
        value = self.log_joint(u, z, labels)
        damping = torch.full_like(value, _DAMPING)
        precision_of_step = math.sqrt(torch.finfo(z.dtype).eps)
        active = torch.ones_like(value, dtype=torch.bool)  # rows stop on their own, whatever the others do
        slope, J = self._slope_and_jacobian(u, z, labels)
        for _ in range(_SEARCH):
            step = torch.cholesky_solve(slope[:, :, None], factor_of_sum(J, 1.0 + damping))[:, :, 0]
            new = torch.where(active[:, None], z + step, z)
            new_value = self.log_joint(u, new, labels)
            better = active & (new_value >= value)
            z, value = torch.where(better[:, None], new, z), torch.where(better, new_value, value)
            damping = (damping * torch.where(better, _LESS, _MORE)).clamp(*_ENDS)
            small = step.norm(dim=1) <= precision_of_step * (1 + z.norm(dim=1))
            active = active & ~small
            if not active.any():
                break
            slope, J = self._slope_and_jacobian(u, z, labels)
        return z, factor_of_sum(self._slope_and_jacobian(u, z, labels)[1], torch.ones_like(damping))

    def _slope_and_jacobian(
        self, u: torch.Tensor, z: torch.Tensor, labels: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(gradient of log p(x, z) in z, J / s of shape (n, p, n_codes))."""
        weight = torch.where(u.isnan(), 0.0, torch.exp(-self.log_noise_of_rows()))
        with torch.enable_grad():
            at = z.detach().requires_grad_()
            found = self.decoder(at, labels)
            v = torch.zeros_like(found, requires_grad=True)
            (slopes,) = torch.autograd.grad(found, at, v, create_graph=True)  # J'v, whose derivatives in v are J
            columns = [torch.autograd.grad(slopes[:, j].sum(), v, retain_graph=True)[0] for j in range(self.n_codes)]
        J = torch.stack([(column * weight).flatten(1) for column in columns], dim=2)  # (n, p, k), in units of s
        r = ((u.nan_to_num() - found.detach()) * weight).flatten(1)
        return (J * r[:, :, None]).sum(1) - z, J

    def _starts(self, u: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """For every row the likeliest code among zero and draws from the prior."""
        drawn = torch.randn(_POOL, self.n_codes, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        drawn[0] = 0.0
        pool = drawn.to(u)
        z = torch.empty(len(u), self.n_codes).to(u)
        weight = torch.where(u.isnan(), 0.0, torch.exp(-2 * self.log_noise_of_rows())).flatten(1)
        x = u.nan_to_num().flatten(1)
        which = torch.zeros(len(u), device=u.device) if labels is None else labels
        for label in which.unique():
            mine = which == label
            g = self.decoder(pool, None if labels is None else label.expand(_POOL)).flatten(1)
            squares = (weight[mine] * x[mine]) @ g.T - 0.5 * weight[mine] @ g.square().T - 0.5 * pool.square().sum(1)
            z[mine] = pool[squares.argmax(dim=1)]
        return z

    def log_weights(
        self, u: torch.Tensor, labels: torch.Tensor | None, z: torch.Tensor, L: torch.Tensor, e: torch.Tensor
    ) -> torch.Tensor:
        """log p(x, z) - log q(z | x) of draws z + L'^-1 e of q, normal around the mode with covariance (L L')^-1."""
        n = len(e)
        drawn = z + torch.linalg.solve_triangular(L.mT, e.movedim(0, -1), upper=True).movedim(-1, 0)
        log_q = L.diagonal(dim1=1, dim2=2).log().sum(1) - 0.5 * (e.square().sum(2) + self.n_codes * _LOG_2PI)
        repeated = None if labels is None else labels.repeat(n)
        wide = u.repeat(n, *[1] * (u.ndim - 1))
        return self.log_joint(wide, drawn.flatten(0, 1), repeated).view(n, -1) - log_q

    # ------------------------------------------------------------------------------------------- rows of codes

    def means(self, z: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """g(z) in the units and the layout of x."""
        return self.scale.inverse(self.decoder(z, labels))

    def draws(self, z: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """Draws from p(x | z)."""
        found = self.decoder(z, labels)
        e = torch.randn(found.shape, generator=generator(), device=found.device, dtype=found.dtype)
        return self.scale.inverse(found + torch.exp(self.log_noise_of_rows()) * e)
