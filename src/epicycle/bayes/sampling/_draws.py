"""Draws: what a sampler returns, by parameter, with the evidence for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from epicycle.bayes.sampling import _diagnostics as diagnostics
from epicycle.bayes.sampling._labels import indexed
from epicycle.bayes.sampling._sampling_certificate import MAX_R_HAT, MIN_ESS_PER_CHAIN, SamplingCertificate
from epicycle.core._checks import open_unit, optional_import
from epicycle.core._exceptions import ParameterError
from epicycle.core._saved import Saved
from epicycle.stats import Summary

if TYPE_CHECKING:
    from epicycle.bayes.sampling._draws_plot import DrawsPlot

Array = np.ndarray
#: Under which names ArviZ knows the statistics.
_ARVIZ = {
    "log_density": "lp",
    "acceptance": "acceptance_rate",
    "step_size": "step_size",
    "tree_depth": "tree_depth",
    "n_steps": "n_steps",
    "divergent": "diverging",
    "energy": "energy",
}


class Draws(Saved, Mapping[str, Array]):
    """Draws of a posterior: a mapping of names to arrays of shape (n_chains, n_draws, ...).

    Parameters
    ----------
    values : mapping of str to ndarray
        Parameters, then derived quantities.
    statistics : mapping of str to ndarray of shape (n_chains, n_draws)
        Of every draw its log-density, acceptance, step size, tree depth, steps, divergence and energy.
    method : str
        The sampler.
    checked : tuple of str
        The parameters that the certificate is about.
    step_sizes : ndarray of shape (n_chains,)
        What the warm-up ended with.
    metrics : ndarray of shape (n_chains, ...)
        The inverse metrics that the warm-up ended with: variances, or covariances.
    complete : bool
        Whether all draws that were asked for were made.
    message : str
        Why not.

    Attributes
    ----------
    certificate_ : SamplingCertificate
        Largest R-hat and smallest effective sample size, divergences and energies.
    plot : DrawsPlot
        Figures: ``plot.trace()``, ``plot.rank()``, ``plot.pair()``, ``plot.autocorrelation()``.
    """

    def __init__(
        self,
        values: Mapping[str, Array],
        statistics: Mapping[str, Array],
        *,
        method: str,
        checked: tuple[str, ...] | None = None,
        step_sizes: Array | None = None,
        metrics: Array | None = None,
        complete: bool = True,
        message: str = "",
    ) -> None:
        self._values = {name: np.asarray(x) for name, x in values.items()}
        shapes = {x.shape[:2] for x in self._values.values()}
        if len(shapes) != 1 or len(next(iter(shapes))) != 2:
            raise ParameterError(f"values: leading shapes {sorted(shapes)}; expected one (n_chains, n_draws) for all")
        self.n_chains, self.n_draws = next(iter(shapes))
        self.statistics = {name: np.asarray(x) for name, x in statistics.items()}
        self.method, self.complete, self.message = method, complete, message
        self.checked = tuple(self._values) if checked is None else tuple(checked)
        self.step_sizes = np.full(self.n_chains, np.nan) if step_sizes is None else np.asarray(step_sizes)
        self.metrics = np.empty((self.n_chains, 0)) if metrics is None else np.asarray(metrics)

    # ------------------------------------------------------------------------------------------------- mapping

    def __getitem__(self, name: str) -> Array:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        names = ", ".join(f"{name}{list(x.shape[2:]) or ''}" for name, x in self._values.items())
        return f"Draws({self.n_chains} chains x {self.n_draws} draws of {names}; {self.certificate_})"

    def stacked(self, name: str) -> Array:
        """All draws of a parameter, one chain behind the other: shape (n_chains * n_draws, ...)."""
        x = self[name]
        return x.reshape(-1, *x.shape[2:])

    # ------------------------------------------------------------------------------------------------- evidence

    @cached_property
    def _diagnosed(self) -> dict[str, tuple[Array, ...]]:
        """R-hat, bulk and tail effective sample sizes of every quantity."""
        return {name: diagnostics.diagnose(x) for name, x in self._values.items()}

    @cached_property
    def certificate_(self) -> SamplingCertificate:
        """Whether the chains have mixed."""
        # Entries that cannot vary, such as the diagonal of a correlation matrix, say nothing.
        varies = {name: ~_constant(self[name]) for name in self.checked}
        if any(v.any() for v in varies.values()):
            parts = [[d[varies[name]] for d in self._diagnosed[name]] for name in self.checked]
            r_hats, bulk, tail = (np.concatenate([p[k].ravel() for p in parts]) for k in range(3))
            r_hat = float(np.max(r_hats))  # nan, where one is, holds for nothing
            ess = float(np.min(np.concatenate([bulk, tail])))
        else:
            r_hat, ess = np.nan, 0.0
        energy = self.statistics["energy"]
        has_energy = self.method in ("nuts", "hmc") and self.n_draws > 3
        return SamplingCertificate(
            "R-hat",
            r_hat,
            MAX_R_HAT,
            "the chains agree with each other and are worth this many independent draws",
            ess=ess,
            min_ess=MIN_ESS_PER_CHAIN * self.n_chains,
            n_divergent=int(self.statistics["divergent"].sum()),
            bfmi=float(np.min(diagnostics.bfmi(energy))) if has_energy else float("nan"),
            complete=self.complete,
        )

    def summary(self, probability: float = 0.9) -> Summary:
        """A table with a row for every entry of every parameter.

        Parameters
        ----------
        probability : float, default=0.9
            Probability of the equal-tailed interval between the two outer quantiles.

        Returns
        -------
        Summary
            Columns ``mean``, ``sd``, ``mcse`` (of the mean), the quantiles, ``ess_bulk``, ``ess_tail`` and ``r_hat``.
        """
        tail = (1 - open_unit("probability", probability)) / 2
        levels = {f"{100 * p:g}%": p for p in (tail, 0.5, 1 - tail)}
        columns: dict[str, list[Array]] = {}
        rows: list[str] = []
        for name, x in self._values.items():
            rows += [label for label, _ in indexed(name, x)]
            flat = x.reshape(-1, *x.shape[2:])
            r_hat, bulk, tail_ess = self._diagnosed[name]
            found = {
                "mean": flat.mean(axis=0),
                "sd": flat.std(axis=0, ddof=1) if len(flat) > 1 else np.full(x.shape[2:], np.nan),
                "mcse": diagnostics.mcse(x),
                **{label: np.quantile(flat, p, axis=0) for label, p in levels.items()},
                "ess_bulk": bulk,
                "ess_tail": tail_ess,
                "r_hat": r_hat,
            }
            for label, column in found.items():
                columns.setdefault(label, []).append(np.ravel(column))
        facts = {"chains": float(self.n_chains), "draws of each": float(self.n_draws)}
        return Summary(
            f"{self.method}: {self.certificate_}",
            tuple(rows),
            {label: np.concatenate(parts) for label, parts in columns.items()},
            facts,
            self.message,
        )

    # ------------------------------------------------------------------------------------------------- other forms

    @property
    def plot(self) -> DrawsPlot:
        """Figures of the draws."""
        from epicycle.bayes.sampling._draws_plot import DrawsPlot

        return DrawsPlot(self)

    def to_arviz(self) -> Any:
        """The draws as ArviZ's ``InferenceData``; needs ArviZ."""
        arviz = optional_import("arviz", "Draws.to_arviz")
        statistics = {_ARVIZ[name]: x for name, x in self.statistics.items() if np.isfinite(x).all()}
        if "diverging" in statistics:
            statistics["diverging"] = statistics["diverging"].astype(bool)
        groups = {"posterior": dict(self._values), "sample_stats": statistics}
        # Since 1.0 the groups are one mapping; before that each is an argument.
        return arviz.from_dict(**groups) if arviz.__version__.startswith("0.") else arviz.from_dict(groups)

    def __epi_state__(self) -> dict[str, Any]:
        return {
            "values": dict(self._values),
            "statistics": dict(self.statistics),
            "method": self.method,
            "judged": self.checked,  # its name when the format of files was fixed
            "step_sizes": self.step_sizes,
            "metrics": self.metrics,
            "complete": self.complete,
            "message": self.message,
        }

    def __epi_restore__(self, state: dict[str, Any]) -> None:
        values, statistics = state.pop("values"), state.pop("statistics")
        checked = state.pop("judged")
        self.__init__(values, statistics, checked=checked, **state)  # type: ignore[misc]  # an object that was only allocated


def _constant(x: Array) -> Array:
    return np.asarray(np.ptp(x, axis=(0, 1)) <= 1e-14 * np.max(np.abs(x), axis=(0, 1), initial=0.0))
