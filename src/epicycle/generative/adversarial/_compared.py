"""Some real rows, and what is said of a generator by as many rows that it draws from codes that stay the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from epicycle.cluster import KMeans
from epicycle.core._random import stream
from epicycle.core._settings import config
from epicycle.generative.evaluate import ModeCollapse
from epicycle.generative.evaluate._mode_collapse import missing_modes, relative_spread
from epicycle.nets.training._torch import device_of

#: Rows that are compared, at most, and rows of each of the regions into which they are divided.
_MOST_ROWS, _ROWS_OF_A_REGION = 1000, 40


class Compared:
    """Real rows, in proportion to their weights, and codes for as many drawn ones.

    Parameters
    ----------
    module : torch.nn.Module
        With `scale`, `generator` and `n_codes`.
    rows : Rows
    """

    def __init__(self, module: Any, rows: Any) -> None:
        n, numbers = min(_MOST_ROWS, rows.n_rows), torch.Generator().manual_seed(0)
        batch = next(iter(rows.epoch(n, 0, 0, shuffle=True)))
        if batch.weight is not None:
            shares = batch.weight.double().numpy()
            chosen = torch.from_numpy(stream(0, "compared").choice(n, size=n, p=shares / shares.sum()))
            batch.inputs = (batch.inputs[0][chosen],)
            batch.target = None if batch.target is None else batch.target[chosen]
        self.codes, self.labels = torch.randn((n, module.n_codes), generator=numbers), batch.target
        with torch.no_grad():
            self.real = module.scale(batch.to(device_of(module)).inputs[0]).flatten(1).cpu().double()
        self._regions: KMeans | None = None

    def _drawn(self, module: Any) -> torch.Tensor:
        training, weight = module.training, next(module.parameters())
        labels = None if self.labels is None else self.labels.to(weight.device)
        module.eval()
        with torch.no_grad():
            drawn: torch.Tensor = module.generator(self.codes.to(weight), labels).flatten(1)
        module.train(training)
        return drawn.cpu().double()

    def _clusters(self) -> KMeans:
        """The regions into which the real rows are divided."""
        if self._regions is None:
            X = self.real.numpy()
            k = min(max(1, len(X) // _ROWS_OF_A_REGION), len(np.unique(X, axis=0)))
            with config(on_nonconvergence="ignore"):
                self._regions = KMeans(k, n_init=1, max_iter=100, random_state=0).fit(X)
        return self._regions

    def collapse(self, module: Any, *, repeats: bool = True) -> ModeCollapse:
        """Regions of the real rows in which nothing is drawn, and (with `repeats`) whether rows repeat each other."""
        X, Y = (u.numpy() for u in (self.real, self._drawn(module)))
        if len(X) < 2 or not np.isfinite(Y).all():
            share = np.ones(1)
            return ModeCollapse(np.zeros(1, dtype=int), share, share, np.zeros(1, dtype=bool), np.nan, False)
        clusters = self._clusters()
        k = len(clusters.cluster_centers_)
        r, d = (np.bincount(which, minlength=k) for which in (clusters.labels_, clusters.predict(Y)))
        spread = relative_spread(X, Y, 0, None) if repeats else np.nan
        return ModeCollapse(np.arange(k), r / len(X), d / len(Y), missing_modes(r, d), spread, False)

    def energy_distance(self, module: Any) -> float:
        """2 E|x - g| - E|x - x'| - E|g - g'|, which is zero for equal distributions (Szekely and Rizzo 2013)."""
        x, g = self.real, self._drawn(module)
        return float(2 * torch.cdist(x, g).mean() - torch.cdist(x, x).mean() - torch.cdist(g, g).mean())
