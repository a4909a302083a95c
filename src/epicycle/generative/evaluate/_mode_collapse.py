r"""Mode collapse: parts of the real distribution of which nothing is drawn, and rows that repeat each other.

The real rows are divided into modes, by labels or into regions by k-means. A mode with r of the n real rows and d of
the m drawn ones is *missing* where d/m is less than a quarter of r/n and chance does not explain it: were the r + d
rows real or drawn at random, d would be hypergeometric, and so few have a probability below 1% over the number of
modes. Rows *repeat* where the median distance to the nearest other drawn row is less than a quarter of that among as
many real rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import hypergeom

from epicycle.cluster import KMeans
from epicycle.core._checks import count
from epicycle.core._exceptions import DataError
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core._settings import config
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.generative.evaluate._features import FEATURE_DOCS, feature_pair, standardised
from epicycle.generative.evaluate._precision_recall import EUCLIDEAN, nearest_others
from epicycle.spatial._search import nearest

_LEVEL = 0.01  # of all modes together
_SHARE = 0.25  # of what is expected, below which a mode is missing and rows repeat
_ROWS_OF_A_REGION = 25
_MOST_REGIONS = 50
_MOST_ROWS = 5_000  # whose nearest others are looked for


@dataclass(frozen=True)
class ModeCollapse:
    """Result of :func:`mode_collapse`.

    Attributes
    ----------
    modes : ndarray of shape (n_modes,)
        The labels, or the numbers of the regions.
    real_shares, drawn_shares : ndarray of shape (n_modes,)
        Shares of the modes among the real and the drawn rows.
    missing : ndarray of bool of shape (n_modes,)
        Whether a mode is not drawn, or hardly.
    spread : float
        Median distance to the nearest other drawn row, over that among as many real rows; NaN where real rows repeat
        each other.
    labelled : bool
        Whether the modes are labels.
    collapsed : bool
        Whether a mode is missing or rows repeat.
    verdict : str
        The result in words.
    """

    modes: np.ndarray
    real_shares: np.ndarray
    drawn_shares: np.ndarray
    missing: np.ndarray
    spread: float
    labelled: bool

    @property
    def repeats(self) -> bool:
        """Whether drawn rows are nearly copies of each other."""
        return bool(self.spread < _SHARE)

    @property
    def collapsed(self) -> bool:
        """Whether a mode is missing or rows repeat."""
        return bool(self.missing.any()) or self.repeats

    @property
    def verdict(self) -> str:
        """The result in words."""
        n, lost = len(self.modes), int(self.missing.sum())
        kind = "modes" if self.labelled else "regions"
        found = []
        if lost:
            share = self.real_shares[self.missing].sum()
            named = f" ({', '.join(map(str, self.modes[self.missing][:6].tolist()))})" if self.labelled else ""
            found.append(f"{lost} of {n} {kind}{named} with {share:.0%} of the real rows are not drawn, or hardly")
        if self.repeats:
            found.append(
                f"drawn rows repeat each other: the nearest other is {self.spread:.2g} times as far as among real rows"
            )
        if found:
            return f"mode collapse: {'; '.join(found)}"
        return f"no mode collapse: rows of all {n} {kind} are drawn"

    def __str__(self) -> str:
        return self.verdict


@in_catalogue("generative", "F9", certificate="p-value", docs=FEATURE_DOCS)
def mode_collapse(
    real: Any,
    drawn: Any,
    labels: Any = None,
    *,
    n_regions: int | None = None,
    features: Any = None,
    random_state: Seed = 0,
    n_jobs: int | None = None,
) -> ModeCollapse:
    """Whether a generative model leaves out parts of the real distribution, or draws the same rows again and again.

    The real rows are divided into modes. One is missing where the share of drawn rows in it is less than a quarter of
    its share of the real rows, beyond what chance explains at a level of 1% for all modes together; the more rows are
    drawn, the smaller the modes whose loss is seen. Draw as many rows as there are real ones, or more.

    Parameters
    ----------
    labels : array of shape (n_real,), optional
        The modes of the real rows; a drawn row belongs to that of the nearest real one. By default regions are found by
        k-means.
    n_regions : int, optional
        Number of regions; by default one for each 25 real rows, 50 at most.
    random_state : int, Generator, RandomState or None, default=0
        Of k-means, and of which rows are compared.

    Returns
    -------
    ModeCollapse

    Notes
    -----
    Without `features`, the columns of tables are compared in units of their standard deviations.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.generative.evaluate import mode_collapse
    >>> rng = np.random.default_rng(0)
    >>> label = rng.integers(0, 4, 400)
    >>> real = 10.0 * label[:, None] + rng.normal(size=(400, 2))
    >>> print(mode_collapse(real, real[label < 3] + 0.1, label))
    mode collapse: 1 of 4 modes (3) with 29% of the real rows are not drawn, or hardly
    >>> print(mode_collapse(real, 10.0 * label[:, None] + rng.normal(size=(400, 2))))
    no mode collapse: rows of all 16 regions are drawn
    """
    X, Y = feature_pair(real, drawn, features, "mode_collapse")
    if features is None and np.ndim(real) == 2:
        X, Y = standardised(X, Y)
    seed = seed_of(random_state)
    if labels is None:
        most = min(_MOST_REGIONS, max(2, len(X) // _ROWS_OF_A_REGION))
        k = most if n_regions is None else count("n_regions", n_regions, low=1)
        k = min(k, len(np.unique(X, axis=0)))
        with config(on_nonconvergence="ignore", n_jobs=n_jobs):
            clusters = KMeans(k, n_init=1, max_iter=100, random_state=seed % 2**32).fit(X)
        of_real, of_drawn = clusters.labels_, clusters.predict(Y)
        modes = np.arange(k)
    else:
        names = np.asarray(labels)
        if names.shape != (len(X),):
            raise DataError(f"labels: have the shape {names.shape}; expected one for each of the {len(X)} real rows")
        modes, of_real = np.unique(names, return_inverse=True)
        of_drawn = of_real[nearest(X, Y, 1, EUCLIDEAN, "auto", n_jobs)[1][:, 0]]
    r, d = (np.bincount(which, minlength=len(modes)) for which in (of_real, of_drawn))
    return ModeCollapse(
        modes=modes,
        real_shares=r / len(X),
        drawn_shares=d / len(Y),
        missing=missing_modes(r, d),
        spread=relative_spread(X, Y, seed, n_jobs),
        labelled=labels is not None,
    )


def missing_modes(r: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Whether each mode is missing, with numbers r of real and d of drawn rows in the modes."""
    n, m = r.sum(), d.sum()
    by_chance = hypergeom.cdf(d, n + m, r + d, m)
    return np.asarray((d / m < _SHARE * r / n) & (by_chance < _LEVEL / len(r)))


def relative_spread(X: np.ndarray, Y: np.ndarray, seed: int, n_jobs: int | None) -> float:
    """Median distance to the nearest other row among drawn rows, over that among as many real ones."""
    n = min(len(X), len(Y), _MOST_ROWS)
    near = [
        float(np.median(nearest_others(rows[np.sort(stream(seed, name).permutation(len(rows))[:n])], 1, n_jobs)))
        for name, rows in (("real rows", X), ("drawn rows", Y))
    ]
    return near[1] / near[0] if near[0] > 0 else np.nan
