"""`HypothesisTest`: a test with its outcome in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HypothesisTest:
    """A test with its outcome in words.

    Attributes
    ----------
    name : str
        The test.
    statistic : float
        Value of the test statistic.
    p_value : float
        Probability of a value at least as extreme under the hypothesis.
    hypothesis : str
        What is tested.
    """

    name: str
    statistic: float
    p_value: float
    hypothesis: str

    def __str__(self) -> str:
        verdict = "rejected" if self.p_value < 0.05 else "not rejected"
        return f"{self.name}: {self.statistic:.3f}, p = {self.p_value:.3g}: {verdict} at 5% ({self.hypothesis})"
