r"""Bayesian logistic regression:  P(y = 1) = 1 / (1 + exp(-w'x - b)) with normal priors of w and b.

The posterior exp(-F) has no closed form (`_logistic_posterior`). It is replaced by its mode, by Laplace's
approximation, by the normal distribution of the bound of Jaakkola and Jordan, or by draws: Polya-gamma Gibbs or NUTS.
Predictions are averages of P(y = 1) over it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np
from sklearn.base import ClassifierMixin

from epicycle import engine, optim
from epicycle._native import bayes as native
from epicycle.bayes._logistic_posterior import (
    PosteriorObjective,
    averaged_batch,
    bound_step,
    class_of_average,
    inverse_half,
    log_odds_of_average,
    loss_statistic,
    with_ones,
)
from epicycle.bayes.sampling._chains import Chain, run as run_chains
from epicycle.bayes.sampling._diagnostics import effective_sample_size, r_hat
from epicycle.bayes.sampling._native_models import LogisticModel
from epicycle.bayes.sampling._sample import sample
from epicycle.bayes.sampling._sampling_certificate import MAX_R_HAT, MIN_ESS_PER_CHAIN
from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._checks import open_unit
from epicycle.core._exceptions import DataError, DataTypeError, ParameterError
from epicycle.core._parameters import Choice, Domain, Integer, Real
from epicycle.core._random import seed_of, stream
from epicycle.core.estimator import Estimator, MethodCard, fitting
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.data import ArrayData, Data
from epicycle.stats import Summary
from epicycle.stats._distribution import normal
from epicycle.stats._labels import encode_labels

Array = np.ndarray
Method = Literal["map", "laplace", "variational", "gibbs", "nuts"]


_MOST_REPEATS = 1e7  # rows, with their repetitions, that a draw goes over


class BayesianLogisticRegression(ClassifierMixin, Estimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""Logistic regression of two classes with a normal prior, and predictions averaged over the posterior.

    .. math:: p(w, b \mid y) \propto \exp\Bigl(-\sum_i v_i \log(1 + e^{-s_i (w'x_i + b)})
              - \tfrac{\alpha}{2} \|w\|^2 - \tfrac{\alpha_b}{2} b^2\Bigr), \quad s_i = \pm 1, \qquad
              P(y = 1 \mid x) = E\Bigl[\frac{1}{1 + e^{-w'x - b}}\Bigr] .

    Parameters
    ----------
    method : {"map", "laplace", "variational", "gibbs", "nuts"}, default="laplace"
        The mode alone; the normal distribution at the mode; that of the bound of Jaakkola and Jordan; draws by Gibbs
        sampling with Polya-gamma variables, or by the no-U-turn sampler. The last two take rows in memory and
        whole numbers as weights.
    alpha : float, default=1.0
        Precision of the normal prior of every coefficient. The scale of features matters.
    intercept_alpha : float, default=0.01
        Precision of the normal prior of the intercept.
    n_draws : int, default=1000
        Draws of each chain that are kept, for "gibbs" and "nuts".
    n_warmup : int, default=500
        Draws before them.
    n_chains : int, default=4
        Number of chains.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    coef_ : ndarray of shape (1, n_features)
        Posterior means of the coefficients; with "map" and "laplace" the mode.
    intercept_ : ndarray of shape (1,)
    covariance_ : ndarray of shape (d, d)
        Posterior covariance of the coefficients, then the intercept; not with "map".
    draws_ : ndarray of shape (n_chains, n_draws, d)
        With "gibbs" and "nuts".
    log_evidence_ : float
        With "laplace" the estimate, with "variational" the lower bound of the log marginal likelihood.
    certificate_ : Certificate
        The distance of F from its minimum; of the bound, by how much a turn would raise it, relative; of draws, R-hat.
    history_ : History
        F at every step, for "variational" the negative bound, which never rises, for draws F at some of them.

    See Also
    --------
    LogisticRegression : the mode, with other penalties, solvers and many classes.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import BayesianLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> y = X[:, 0] + rng.normal(size=60) > 0
    >>> model = BayesianLogisticRegression().fit(X, y)
    >>> plug_in = BayesianLogisticRegression(method="map").fit(X, y)
    >>> far = [[5.0, 5.0]]  # far from all rows the posterior knows less than its mode pretends
    >>> print(model.predict_proba(far)[0, 1].round(2), plug_in.predict_proba(far)[0, 1].round(2))
    0.98 1.0
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "method": Choice("map", "laplace", "variational", "gibbs", "nuts"),
        "alpha": Real(minimum=0, inclusive=False),
        "intercept_alpha": Real(minimum=0, inclusive=False),
        "n_draws": Integer(minimum=4),
        "n_warmup": Integer(minimum=0),
        "n_chains": Integer(minimum=1),
    }
    _takes_sparse: ClassVar[bool] = True
    _card: ClassVar[MethodCard] = MethodCard("bayes", ("B5",), ("memory", "files", "dask"), "strong convexity")

    classes_: Array
    coef_: Array
    intercept_: Array
    covariance_: Array
    draws_: Array
    log_evidence_: float
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"classifier_tags.multi_class": False}

    @stores_arguments(fit_intercept=True, tol=1e-8, max_iter=1000, random_state=None, n_jobs=None, verbose=0)
    def __init__(
        self,
        method: Method = "laplace",
        *,
        alpha: float = 1.0,
        intercept_alpha: float = 0.01,
        n_draws: int = 1000,
        n_warmup: int = 500,
        n_chains: int = 4,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    # ------------------------------------------------------------ the fit

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with labels y of two classes."""
        data = self._fit_data(X, y, sample_weight, target="labels")
        self.classes_, _, data = encode_labels(data, type(self).__name__, self.n_jobs)
        if len(self.classes_) > 2:
            raise DataError(
                f"y: {len(self.classes_)} classes. Only binary classification is supported: "
                f"{type(self).__name__} has two classes; use OneVsRest or LogisticRegression for more"
            )
        precision = np.full(data.n_features, float(self.alpha))
        if self.fit_intercept:
            precision = np.append(precision, float(self.intercept_alpha))
        fits = {"variational": self._fit_bound, "gibbs": self._fit_gibbs, "nuts": self._fit_nuts}
        fits.get(self.method, self._fit_mode)(data, precision)
        return self

    def _set_mean(self, w: Array) -> None:
        p = self.n_features_in_
        self.coef_, self.intercept_ = w[None, :p].copy(), w[p:].copy() if len(w) > p else np.zeros(1)

    def _fit_mode(self, data: Data, precision: Array) -> None:
        objective = PosteriorObjective(data, precision, self.n_jobs)
        solution = self._mode(objective, self._monitor(self.max_iter, lambda w: {"coef_": w[None, : data.n_features]}))
        self._set_mean(solution.x)
        if self.method == "laplace":
            value, _, H = objective.second_order(solution.x)
            half = inverse_half(H)
            self.covariance_ = half @ half.T
            log_det = float(np.log(np.diagonal(half)).sum()) + float(np.log(precision).sum()) / 2
            self.log_evidence_ = -value + log_det
        self._conclude(solution)

    def _mode(self, objective: PosteriorObjective, monitor: optim.Monitor | None = None) -> optim.Solution:
        return optim.newton(
            objective,
            np.zeros(objective.size),
            tol=self.tol,
            max_iter=self.max_iter,
            monitor=monitor,
            state=self._resume_state() if monitor is not None else None,
        )

    def _fit_bound(self, data: Data, precision: Array) -> None:
        objective = PosteriorObjective(data, precision, self.n_jobs)
        m = self._mode(objective).x
        half = inverse_half(objective.second_order(m)[2])
        monitor = self._monitor(self.max_iter, lambda w: {"coef_": w[None, : data.n_features]})
        bound, gain, reason, turn = -np.inf, np.inf, "max_iter", 0
        for turn in range(1, self.max_iter + 1):
            m, half, new = bound_step(data, precision, m, half, self.n_jobs)
            gain, bound = (new - bound) / max(abs(new), 1.0), new
            if monitor(turn, m, objective=-bound):
                reason = "stopped"
                break
            if turn > 1 and gain <= self.tol:
                reason = "converged"
                break
        meaning = (
            f"another turn would raise the bound on the evidence by no more than about {max(gain, 0.0):.1e}, relative"
        )
        certificate = Certificate("gain of the bound", max(gain, 0.0), self.tol, meaning)
        self._set_mean(m)
        self.covariance_, self.log_evidence_ = half @ half.T, bound
        self._conclude(optim.Solution(m, -bound, monitor.history(), certificate, turn, reason))

    def _fit_gibbs(self, data: Data, precision: Array) -> None:
        X, y, repeats = self._rows(data)
        X = np.ascontiguousarray(X)
        kappa, seed = X.T @ (repeats * (y - 0.5)), seed_of(self.random_state)
        draws, stop = np.empty((self.n_chains, self.n_draws, len(precision))), np.zeros(1, dtype=np.int64)
        with np.errstate(over="ignore"):
            squares = repeats @ X**2
        if not np.isfinite(squares).all():
            raise DataError("X: sums of squares of its columns overflow; scale them down")
        spread = 1 / np.sqrt(precision + squares / repeats.sum())
        chains = []
        for k in range(self.n_chains):
            rng = stream(seed, "gibbs", k)
            chains.append(Chain(k, rng.standard_normal(len(precision)) * spread, rng, draws[k], np.empty((0, 0)), stop))

        def step(chain: Chain) -> None:
            state = chain.rng.integers(0, 2**64, size=4, dtype=np.uint64)
            native.logistic_gibbs(
                X, kappa, repeats, precision, chain.start, state, self.n_warmup, chain.draws, chain.progress, stop
            )

        threads = min(engine.n_threads(float("inf"), self.n_jobs), self.n_chains)
        outcome = run_chains(chains, step, threads=threads, n_iterations=self.n_warmup + self.n_draws, progress=None)
        if outcome.interrupted:
            raise KeyboardInterrupt
        if outcome.failure is not None:
            raise outcome.failure
        if not np.isfinite(draws).all():
            raise DataError("X: draws of the coefficients overflow; scale its columns to values near 1")
        self._conclude_draws(data, precision, draws, 0)

    def _fit_nuts(self, data: Data, precision: Array) -> None:
        X, y, repeats = self._rows(data, ones=False)
        scale = float(self.intercept_alpha) ** -0.5 if self.fit_intercept else None
        rows, labels = np.repeat(X, repeats, axis=0), np.repeat(y, repeats)
        model = LogisticModel(rows, labels, prior_scale=float(self.alpha) ** -0.5, intercept_scale=scale)
        found = sample(
            model,
            draws=self.n_draws,
            warmup=self.n_warmup,
            chains=self.n_chains,
            random_state=seed_of(self.random_state),
            n_jobs=self.n_jobs,
        )
        draws = found["coef"]
        if self.fit_intercept:
            draws = np.concatenate([draws, found["intercept"][..., None]], axis=-1)
        self._conclude_draws(data, precision, np.ascontiguousarray(draws), found.certificate_.n_divergent)

    def _rows(self, data: Data, *, ones: bool = True) -> tuple[Array, Array, Array]:
        """(X, y, repetitions) of rows in memory of positive weight."""
        if not isinstance(data, ArrayData):
            raise DataTypeError(f"X: method={self.method!r} takes rows in memory, got a {type(data).__name__}")
        batch = data.rows(0, data.n_rows)
        X = with_ones(batch.X, ones and self.fit_intercept)
        X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
        weight = np.ones(len(X)) if batch.weight is None else batch.weight
        repeats = weight.astype(np.intp)
        if (repeats != weight).any():
            raise DataError(
                f"sample_weight: holds {weight[repeats != weight][0]:g}; method={self.method!r} repeats rows, and "
                "takes whole numbers"
            )
        total = float(repeats.sum(dtype=np.float64))
        if total > _MOST_REPEATS:
            raise DataError(
                f"sample_weight: a sum of {total:.3g}; method={self.method!r} repeats rows, expected at most "
                f"{_MOST_REPEATS:.0e} in all. Take method='laplace' or 'variational' for larger weights"
            )
        kept = repeats > 0
        return X[kept], np.asarray(batch.y, dtype=np.float64)[kept], repeats[kept]

    def _conclude_draws(self, data: Data, precision: Array, draws: Array, n_divergent: int) -> None:
        flat = draws.reshape(-1, draws.shape[-1])
        self._set_mean(flat.mean(axis=0))
        self.draws_, self.covariance_ = draws, np.atleast_2d(np.cov(flat.T))
        monitor = self._monitor(self.n_draws, lambda _w: {})
        for t, w in enumerate(draws[0][:: max(1, self.n_draws // 50)], start=1):  # a pass over the rows for each
            loss = engine.sum(loss_statistic, data, w, n_jobs=self.n_jobs)[0]
            monitor(t, w, objective=loss + float(precision @ w**2) / 2)
        largest = float(np.max(r_hat(draws)))
        kinds: tuple[Any, ...] = ("bulk", "tail")
        ess = min(float(np.min(effective_sample_size(draws, kind))) for kind in kinds)
        enough = ess >= MIN_ESS_PER_CHAIN * self.n_chains and n_divergent == 0
        meaning = f"the chains agree, and are worth at least {ess:,.0f} independent draws; {n_divergent} diverged"
        certificate = Certificate("R-hat", largest if enough else np.inf, MAX_R_HAT, meaning)
        reason = "converged" if certificate.holds else "max_iter"
        history = monitor.history()
        self._conclude(optim.Solution(flat.mean(axis=0), 0.0, history, certificate, history.n_iter, reason))

    # ------------------------------------------------------------ predictions

    def _posterior(self) -> tuple[Array, Array | None, Array | None]:
        """(mean, factor of the covariance, draws) as predictions need them."""
        mean = np.append(self.coef_[0], self.intercept_)
        if not hasattr(self, "covariance_"):
            return mean, None, None
        mean = mean[: len(self.covariance_)]  # without the intercept where none was fitted
        if hasattr(self, "draws_"):
            return mean, None, self.draws_.reshape(-1, len(mean))
        return mean, _half_of(self.covariance_), None

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, averaged over the posterior; of the mode with ``method="map"``."""
        data = self._predict_data(X)
        return engine.map(averaged_batch, data, *self._posterior(), n_jobs=self.n_jobs)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def decision_function(self, X: Any) -> Any:
        """The log-odds of the second class, from the averaged probabilities."""
        data = self._predict_data(X)
        return engine.map(log_odds_of_average, data, *self._posterior(), n_jobs=self.n_jobs)

    def predict(self, X: Any) -> Any:
        """The class of larger averaged probability."""
        data = self._predict_data(X)
        return engine.map(class_of_average, data, *self._posterior(), self.classes_, n_jobs=self.n_jobs)

    def summary(self, level: float = 0.95) -> Summary:
        """Mean, standard deviation and credible interval of every coefficient, and the probability that it is positive.

        Parameters
        ----------
        level : float, default=0.95
            Probability of the intervals, equal-tailed.
        """
        self._check_fitted()
        outside = 1 - open_unit("level", level)
        mean, _, draws = self._posterior()
        if not hasattr(self, "covariance_"):
            raise ParameterError("method='map' has no posterior but its mode; use 'laplace', 'variational' or draws")
        deviation = np.sqrt(np.diagonal(self.covariance_))
        if draws is None:
            marginals = [normal(m, s**2) for m, s in zip(mean.tolist(), deviation.tolist(), strict=True)]
            ends = np.array([d.interval(1 - outside) for d in marginals])
            positive = np.array([1 - d.cdf(0.0) for d in marginals])
        else:
            ends = np.quantile(draws, [outside / 2, 1 - outside / 2], axis=0).T
            positive = (draws > 0).mean(axis=0)
        names = [*self._names(), "intercept"][: len(mean)]
        columns = {
            "mean": mean,
            "sd": deviation,
            f"{100 * outside / 2:g}%": ends[:, 0],
            f"{100 * (1 - outside / 2):g}%": ends[:, 1],
            "P(> 0)": positive,
        }
        facts = {"log evidence": self.log_evidence_} if hasattr(self, "log_evidence_") else {}
        return Summary(f"BayesianLogisticRegression, {self.method}", tuple(names), columns, facts)


def _half_of(C: Array) -> Array:
    """H with H H' = C; of a covariance that rounding has made indefinite without what is below zero."""
    try:
        return np.asarray(np.linalg.cholesky(C))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(C)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
