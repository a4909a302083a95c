"""`OfflineEvaluation`: the value of a policy from recorded episodes, with an interval."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class OfflineEvaluation:
    r"""Value of a policy from the episodes of another one.

    Attributes
    ----------
    mean : float
        The estimate of the expected discounted return.
    low, high : float
        Interval that holds it with probability `confidence`, where there are enough effective episodes.
    values : array (n_episodes,)
        Contribution of each episode to the estimate, of which it is the mean.
    weights : array (n_episodes,)
        Ratio of the probabilities of each episode under the two policies; 1 where they are not used.
    effective_episodes : float
        :math:`(\sum w)^2 / \sum w^2`: as many episodes of the policy itself would say as much.
    method : str
        How it was estimated.
    confidence : float
        Probability of the interval.
    """

    mean: float
    low: float
    high: float
    values: Array = field(repr=False)
    weights: Array = field(repr=False)
    effective_episodes: float
    method: str
    confidence: float

    def __str__(self) -> str:
        return (
            f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}] from {len(self.values)} episodes of another policy, "
            f"worth {self.effective_episodes:.3g} of its own ({self.method})"
        )
