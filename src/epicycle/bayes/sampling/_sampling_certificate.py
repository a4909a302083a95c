"""The certificate of draws: whether the chains agree, and how many independent draws they are worth."""

from __future__ import annotations

from dataclasses import dataclass

from epicycle.core._certificate import Certificate

#: Vehtari et al. (2021): chains whose R-hat is larger differ by more than a hundredth of their spread.
MAX_R_HAT = 1.01
#: The same paper: with fewer effective draws for each chain the diagnostics themselves are noise.
MIN_ESS_PER_CHAIN = 100.0
#: Betancourt (2016): below it the energies, and with them the tails, are explored too slowly.
MIN_BFMI = 0.3


@dataclass(frozen=True)
class SamplingCertificate(Certificate):
    """Evidence that Markov chains have mixed: it holds if all of it is in order.

    Parameters
    ----------
    kind, value, tolerance, meaning
        As in :class:`~epicycle.Certificate`: the value is the largest R-hat.
    ess : float
        The smallest effective sample size, of bulk or tail.
    min_ess : float
        What it has to be at least: 100 for each chain.
    n_divergent : int
        Draws whose trajectory diverged; there may be none.
    bfmi : float
        The smallest fraction of missing information; at least 0.3, or nan where the sampler has no energy.
    complete : bool
        Whether all draws that were asked for were made.
    """

    ess: float = 0.0
    min_ess: float = 0.0
    n_divergent: int = 0
    bfmi: float = float("nan")
    complete: bool = True

    @property
    def holds(self) -> bool:
        """Whether R-hat, effective sample size, divergences and energies are all in order."""
        return super().holds and self.ess >= self.min_ess and self.n_divergent == 0 and not self.bfmi < MIN_BFMI

    def __str__(self) -> str:
        parts = [f"R-hat {self.value:.2f}" if self.holds else f"R-hat {self.value:.3f}", f"ESS {self.ess:,.0f}"]
        if self.n_divergent:
            parts.append(f"{self.n_divergent:,} divergent")
        if self.bfmi < MIN_BFMI:
            parts.append(f"BFMI {self.bfmi:.2f}")
        if not self.complete:
            parts.append("stopped early")
        return f"{', '.join(parts)}: {'holds' if self.holds else 'does not hold'}"
