"""Expectation maximisation for a model of the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle.core._arguments import SharedArguments
from epicycle.core._parameters import Boolean, Domain, InstanceOf, Real
from epicycle.core._random import seed_of, stream
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments
from epicycle.em._latent_model import LatentModel
from epicycle.em._run_em import fit_by_em


class ExpectationMaximization(Estimator):
    r"""Maximum likelihood for a model with latent variables.

    .. math:: \theta \leftarrow \arg\max_\theta \; \mathrm{E}[\log p(x, z; \theta) \mid x; \theta_{\mathrm{old}}]

    The model brings an E-step (expected statistics of a batch, which add up) and an M-step; this class brings passes
    over memory, files and Dask collections, restarts, acceleration, history and certificate, and checks that the
    log-likelihood never falls.

    Parameters
    ----------
    model : LatentModel
        Steps and starts.
    start : parameters of the model, optional
        Where to begin; by default ``model.start`` draws `n_init` starts.
    tol : float, default=1e-6
        Ends when two EM steps in a row raise the mean log-likelihood by at most `tol` each.
    accelerate : bool, default=False
        Whether to extrapolate steps by SQUAREM, with plain steps where that would lower the likelihood or leave the
        set of parameters.

    Attributes
    ----------
    parameters_ : parameters of the model
    log_likelihood_ : float
        Of all rows, with the logarithm of the prior where the model has one.
    certificate_ : Certificate
        Gain of the last step.
    history_ : History
        A row for each step: `log_likelihood`, which never falls within a start, the relative size of the `step`, and
        whether it was `accelerated`.

    Examples
    --------
    Times until failure, of which those above 2 were only seen to be above 2.

    >>> import numpy as np
    >>> from epicycle.em import ExpectationMaximization, LatentModel
    >>> class Censored(LatentModel):
    ...     def e_step(self, batch, mean):
    ...         t, censored = batch.X.T
    ...         value = -(1 - censored) @ (t / mean + np.log(mean)) - censored @ (t / mean)
    ...         return value, float((t + censored * mean).sum()), len(t)  # exponential times have no memory
    ...     def m_step(self, statistics, mean):
    ...         total, n = statistics
    ...         return total / n
    >>> t = np.random.default_rng(0).exponential(1.5, size=500)
    >>> X = np.column_stack([np.minimum(t, 2.0), t > 2.0])
    >>> em = ExpectationMaximization(Censored(), start=1.0, tol=1e-12).fit(X)
    >>> closed_form = X[:, 0].sum() / (1 - X[:, 1]).sum()
    >>> print(em.converged_, abs(em.parameters_ - closed_form) < 1e-5)
    True True
    """

    _docs: ClassVar[Mapping[str, str]] = {"fit_y": "%(ignored)s", "score_y": "%(ignored)s"}
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "model": InstanceOf(LatentModel),
        "tol": Real(minimum=0),
        "accelerate": Boolean(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="mixture", catalogue=("E5",), engines=("memory", "files", "dask"), certificate="stationarity"
    )
    _takes_sparse = True

    parameters_: Any
    log_likelihood_: float

    @stores_arguments(tol=1e-6, max_iter=1000, n_jobs=None, random_state=None, verbose=0)
    def __init__(
        self,
        model: LatentModel,
        *,
        start: Any = None,
        n_init: int = 1,
        accelerate: bool = False,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Climb to a maximum of the likelihood of rows X."""
        data = self._fit_data(X, None, sample_weight, target="none")
        state = self._resume_state()
        seed = seed_of(self.random_state) if state is None else int(state["seed"])
        starts = int(self.n_init) if self.start is None else 1

        def begin(i: int) -> Any:
            return self.model.start(data, stream(seed, "em", i), self.n_jobs) if self.start is None else self.start

        like = begin(0)

        def attributes(x: np.ndarray) -> dict[str, Any]:
            return {"parameters_": self.model.from_vector(x, like)}

        solution = fit_by_em(self, self.model, data, starts, begin, attributes, seed=seed, state=state)
        self.parameters_ = solution.parameters
        self.log_likelihood_ = solution.log_likelihood
        self._conclude(solution)
        return self

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of rows X."""
        found = self.model.expectation(self._predict_data(X), self.parameters_, self.n_jobs)
        return float(found.log_likelihood / found.weight)
