"""`Refutation` and `Refutations`: outcomes of tests in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Refutation:
    """One test of an estimate.

    Attributes
    ----------
    name : str
        The test.
    estimates : array (repeats,)
        Effects that the estimator found in the changed data.
    expected : float
        What they should be.
    passed : bool
        Whether they are, as far as can be told.
    verdict : str
        The outcome in words.
    """

    name: str
    estimates: Array
    expected: float
    passed: bool
    verdict: str

    def __str__(self) -> str:
        return f"{'passed' if self.passed else 'FAILED'}  {self.name}: {self.verdict}"


@dataclass(frozen=True)
class Refutations:
    """All tests of an estimate.

    Attributes
    ----------
    effect, standard_error : float
        The estimate.
    tests : tuple of Refutation
        In the order asked for.
    """

    effect: float
    standard_error: float
    tests: tuple[Refutation, ...]

    @property
    def passed(self) -> bool:
        """Whether no test failed."""
        return all(test.passed for test in self.tests)

    def __getitem__(self, name: str) -> Refutation:
        return next(test for test in self.tests if test.name == name)

    def __str__(self) -> str:
        head = f"effect {self.effect:.4g} (standard error {self.standard_error:.3g})"
        return "\n".join([head, *(f"  {test}" for test in self.tests)])
