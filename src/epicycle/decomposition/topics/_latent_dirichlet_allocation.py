r"""Latent Dirichlet allocation:  theta_d ~ Dirichlet(alpha), phi_k ~ Dirichlet(eta); z ~ theta_d, w ~ phi_z."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, DataTypeError, ParameterError
from epicycle.core._memory import require_memory
from epicycle.core._monitor import Monitor
from epicycle.core._parameters import AnyOf, ArrayLike, Choice, Domain, Integer, NoneOr, Real
from epicycle.core._random import seed_of, stream
from epicycle.core._solution import Solution
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData, DaskData, Data
from epicycle.decomposition._row_factors import RowFactors
from epicycle.decomposition.nmf._starts import Extent, extent_of
from epicycle.decomposition.topics import _gibbs as gibbs
from epicycle.decomposition.topics._inference import Effort
from epicycle.decomposition.topics._priors import LEAST, MOST
from epicycle.decomposition.topics._topic_model import TopicModel
from epicycle.decomposition.topics._variational import (
    Plan,
    State,
    climb,
    moved_share,
    perplexity_of,
    slices,
    step,
)

_ROUNDS = {"batch": 200, "online": 10, "gibbs": 200}
#: Steps of a document in a round. On press articles and newsgroups 5 ended in optima 2 to 4% worse, 13 in none better.
_STEPS_OF_A_ROUND = 10
_R_HAT = 1.1
_LOCAL = "a local optimum of the bound, no proof of a global one"


class LatentDirichletAllocation(TopicModel):
    r"""Topic model: documents as mixtures of topics, topics as distributions of words.

    .. math:: \theta_d \sim \mathrm{Dirichlet}(\alpha), \quad \phi_k \sim \mathrm{Dirichlet}(\eta), \quad
              z_{di} \sim \theta_d, \quad w_{di} \sim \phi_{z_{di}}

    Variational inference ("batch", "online") maximises a lower bound of the log probability of the documents over
    independent Dirichlet distributions of all :math:`\theta_d` and :math:`\phi_k`. In rounds over all documents the
    bound never falls. Gibbs sampling ("gibbs") draws the topic of every word from its exact posterior, and often ends
    with better topics.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics K.
    doc_topic_prior : float, array-like of shape (n_components,), "auto" or None, default=None
        alpha, for all topics alike or for each; "auto" learns one for each topic ("batch", "gibbs");
        None is 1 / K.
    topic_word_prior : float, "auto" or None, default=None
        eta; "auto" learns it ("batch", "gibbs"); None is 1 / K.
    learning_method : {"batch", "online", "gibbs"}, default="batch"
        Rounds over all documents; steps on mini-batches, for many documents; Gibbs sampling, for whole counts in
        memory.
    learning_decay : float, default=0.7
        The rate of step t of "online" is (learning_offset + t) ** -learning_decay.
    learning_offset : float, default=10.0
        Makes the first steps smaller.
    max_iter : int or None, default=None
        Most rounds of "batch" (None: 200), passes of "online" (10), or sweeps of "gibbs" (200), of which the second
        half is kept.
    batch_size : int, default=128
        Documents of a step of "online".
    evaluate_every : int, default=-1
        Rounds after which `perp_tol` is looked at; never where it is below 1.
    total_samples : float, default=1e6
        Documents in all, for `partial_fit`.
    perp_tol : float, default=0.1
        Change of the perplexity between two evaluations below which "batch" and "online" end.
    mean_change_tol : float, default=1e-3
        Mean change of a document's parameters at which it is done.
    max_doc_update_iter : int or None, default=None
        Most steps of a document in a round. None: 5 in rounds of "batch", where it goes on from the round before, and
        100 elsewhere.
    tol : float, default=1e-3
        Share of all words that a round moves between topics at which "batch" ends.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        lambda, the parameters of the topics' distributions: eta and the expected counts of words. A row over its sum is
        the mean of phi.
    exp_dirichlet_component_ : ndarray of shape (n_components, n_features)
        exp E log phi.
    doc_topic_prior_ : float or ndarray of shape (n_components,)
        alpha.
    topic_word_prior_ : float
        eta.
    bound_ : float
        The perplexity of the training documents, as `perplexity` gives it.
    n_batch_iter_ : int
        Steps of "online" and `partial_fit`, or rounds, and one.
    certificate_ : Certificate
        "batch", "online": the share of words that the last round over all documents moved between topics. A local
        optimum of the bound may be far from the best one. "gibbs": whether the two halves of the kept sweeps agree.
    history_ : History
        `objective` is minus the bound, or minus the log joint probability of words and topics.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import LatentDirichletAllocation
    >>> X = np.kron(np.eye(2, dtype=int), np.full((20, 3), 4))  # two groups of documents with words of their own
    >>> model = LatentDirichletAllocation(2, random_state=0).fit(X)
    >>> sorted(sorted(words) for words in model.top_words(["goal", "team", "match", "vote", "law", "party"], 3))
    [['goal', 'match', 'team'], ['law', 'party', 'vote']]
    >>> model.transform(X[:1]).max().round(2)
    np.float64(0.96)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_components": Integer(minimum=1),
        "doc_topic_prior": NoneOr(AnyOf(Choice("auto"), Real(LEAST, MOST), ArrayLike())),
        "topic_word_prior": NoneOr(AnyOf(Choice("auto"), Real(LEAST, MOST))),
        "learning_method": Choice("batch", "online", "gibbs"),
        "learning_decay": Real(0, 1),
        "learning_offset": Real(minimum=1),
        "max_iter": NoneOr(Integer(minimum=1)),
        "batch_size": Integer(minimum=1),
        "evaluate_every": Integer(),
        "total_samples": Real(minimum=0, inclusive=False),
        "perp_tol": Real(minimum=0),
        "mean_change_tol": Real(minimum=0),
        "max_doc_update_iter": NoneOr(Integer(minimum=1)),
        "tol": Real(minimum=0),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="decomposition",
        catalogue=("E14",),
        engines=("memory", "files", "dask"),
        certificate="moved share of words",
    )

    bound_: float
    n_batch_iter_: int

    @stores_arguments
    def __init__(
        self,
        n_components: int = 10,
        *,
        doc_topic_prior: Any = None,
        topic_word_prior: Any = None,
        learning_method: str = "batch",
        learning_decay: float = 0.7,
        learning_offset: float = 10.0,
        max_iter: int | None = None,
        batch_size: int = 128,
        evaluate_every: int = -1,
        total_samples: float = 1e6,
        perp_tol: float = 1e-1,
        mean_change_tol: float = 1e-3,
        max_doc_update_iter: int | None = None,
        tol: float = 1e-3,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None: ...

    n_components: int
    doc_topic_prior: Any
    topic_word_prior: Any
    learning_decay: float
    learning_offset: float
    max_iter: int | None
    batch_size: int
    evaluate_every: int
    perp_tol: float
    tol: float
    random_state: Any

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the topics of documents X, counts of words of which none is below zero."""
        data = self._fit_data(X, None, sample_weight, target="none")
        self._require_room(data)
        if self.learning_method == "online":
            self._require_given_priors()
        alpha, eta = self._priors()
        extent = extent_of(data, "LatentDirichletAllocation.fit", self.n_jobs)
        if self.learning_method == "gibbs":
            return self._fit_gibbs(X, data, alpha, eta)
        earlier = self._resume_state()
        if earlier is None:
            seed = seed_of(self.random_state)
            state = State(starting_topics(data.n_features, int(self.n_components), seed), alpha, eta)
        else:
            lam, seed = np.array(earlier["lambda"]), int(earlier["seed"])
            state = State(lam, np.array(earlier["alpha"]), float(earlier["eta"]), int(earlier["round"]))
            state.value, state.afresh = float(earlier["value"]), bool(earlier["afresh"])
        monitor = self._monitor(self._rounds(), lambda x: self._reconstructed(x, state))
        if self.learning_method == "batch":
            reason = self._fit_batch(data, extent, state, monitor, seed, earlier)
            self.n_batch_iter_ = state.round + 1
        else:
            reason = self._fit_online(data, extent, state, monitor, seed)
        self._publish(state.lam, state.alpha, state.eta, data)
        self.bound_ = perplexity_of(*self._bound_of(data))
        tolerance = float(self.tol) if self.learning_method == "batch" else float(np.sqrt(self.tol))
        words = f"share of all words that the last round over all documents moved between topics: {_LOCAL}"
        certificate = Certificate("moved share of words", state.moved, tolerance, words)
        if certificate.holds and reason == "max_iter":
            reason = "converged"
        history = monitor.history()
        self._conclude(Solution(state.lam.ravel(), -state.value, history, certificate, state.round, reason))
        return self

    def _fit_batch(
        self, data: Data, extent: Extent, state: State, monitor: Any, seed: int, earlier: Mapping[str, Any] | None
    ) -> str:
        gamma = np.zeros((extent.n_rows, len(state.alpha))) if earlier is None else np.array(earlier["gamma"])
        rows = RowFactors(data, gamma, self.n_jobs)

        def kept() -> Mapping[str, Any]:
            return {**_kept(state, seed), "gamma": rows.factors.copy()}

        most = _STEPS_OF_A_ROUND if self.max_doc_update_iter is None else int(self.max_doc_update_iter)
        plan = self._plan(Effort(float(self.mean_change_tol), most).of(data, len(state.alpha), self.n_jobs))
        on_cluster = isinstance(data, DaskData)
        return climb(rows, state, plan, (extent.weight, extent.total), monitor, None if on_cluster else kept)

    def _fit_online(self, data: Data, extent: Extent, state: State, monitor: Any, seed: int) -> str:
        """Passes in mini-batches, then one round over all documents that tells how much it would still move."""
        last, n = np.inf, extent.n_rows
        self.n_batch_iter_ = 1 + state.round * -(-n // int(self.batch_size))

        def kept() -> Mapping[str, Any]:
            return {**_kept(state, seed), "round": state.round}

        reason = "max_iter"
        while state.round < self._rounds():
            bound = total = 0.0
            for batch in slices(data, int(self.batch_size)):
                bound += self._step(batch, state, n / batch.n_rows) * batch.n_rows / n
                total += batch.n_rows / n
            state.round += 1
            state.value = bound / max(total, 1e-12)
            stop = monitor(state.round, state.lam.ravel(), objective=-state.value, state=kept)
            if stop:
                return "stopped"
            if self.evaluate_every > 0 and state.round % int(self.evaluate_every) == 0:
                perplexity = perplexity_of(state.value, extent.total)
                if abs(last - perplexity) < self.perp_tol:
                    reason = "converged"
                    break
                last = perplexity
        checked = State(state.lam.copy(), state.alpha, state.eta)
        rows = RowFactors(data, np.zeros((n, len(state.alpha))), self.n_jobs)
        plan = Plan(0.0, 1, self._effort().of(data, len(state.alpha), self.n_jobs), False, False, 0.0, 0, self.n_jobs)
        climb(rows, checked, plan, (extent.weight, extent.total), Monitor(), None)
        state.moved = checked.moved
        return reason

    def _step(self, batch: Any, state: State, ratio: float) -> float:
        rate = (float(self.learning_offset) + self.n_batch_iter_) ** -float(self.learning_decay)
        self.n_batch_iter_ += 1
        return step(batch, state, ratio, rate, self._effort(), self.n_jobs)

    def _fit_gibbs(self, X: Any, data: Data, alpha: np.ndarray, eta: float) -> Self:
        if not isinstance(data, ArrayData):
            raise DataTypeError(f"X: learning_method='gibbs' takes rows in memory, got {type(X).__name__}")
        tokens = gibbs.tokens_of(data.rows(0, data.n_rows))
        k, earlier = int(self.n_components), self._resume_state()
        if earlier is None:
            seed = seed_of(self.random_state)
            chain = gibbs.chain_of(tokens, k, alpha, eta, seed)
        else:
            seed = int(earlier["seed"])
            z = np.array(earlier["z"], dtype=np.int32)
            chain = gibbs.chain_of(tokens, k, np.array(earlier["alpha"]), float(earlier["eta"]), seed, z)
            chain.sweep, chain.kept = int(earlier["sweep"]), int(earlier["kept"])
            chain.mean, chain.traced = np.array(earlier["mean"]), [float(v) for v in earlier["traced"]]
        shown = State(np.zeros((0, 0)), alpha, eta)
        monitor = self._monitor(self._rounds(), lambda x: self._reconstructed(x, shown))

        def state() -> Mapping[str, Any]:
            now = {"z": chain.z.copy(), "alpha": chain.alpha.copy(), "eta": chain.eta, "sweep": chain.sweep}
            return {**now, "kept": chain.kept, "mean": chain.mean.copy(), "traced": list(chain.traced), "seed": seed}

        learn = (_learnt(self.doc_topic_prior), _learnt(self.topic_word_prior))
        reason = gibbs.run(tokens, chain, self._rounds(), learn, seed, self.n_jobs, monitor, state)
        counts = chain.mean / chain.kept if chain.kept else chain.counts[:, :k].astype(np.float64)
        self._publish(chain.eta + counts, chain.alpha, chain.eta, data)
        self.n_batch_iter_ = chain.sweep + 1
        self.bound_ = perplexity_of(*self._bound_of(data))
        disagreement = gibbs.split_r_hat(np.array(chain.traced))
        words = (
            "the two halves of the kept sweeps agree on the joint log probability (split R-hat); other runs may "
            "have settled on other topics"
        )
        certificate = Certificate("split R-hat", disagreement, _R_HAT, words)
        if reason == "converged" and not certificate.holds:
            reason = "max_iter"
        history = monitor.history()
        value = float(history.objective[-1])
        self._conclude(Solution(self._lambda().ravel(), value, history, certificate, chain.sweep, reason))
        return self

    @fitting(incremental=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Go on with documents X, in steps of "online" on mini-batches of them."""
        first = not hasattr(self, "components_")
        data = self._fit_data(X, None, sample_weight, target="none", reset=first)
        self._require_room(data)
        if first:
            self._require_given_priors()
        alpha, eta = self._priors()
        extent_of(data, "LatentDirichletAllocation.partial_fit", self.n_jobs)
        if first:
            self.n_batch_iter_ = 1
            lam = starting_topics(data.n_features, int(self.n_components), seed_of(self.random_state))
        else:
            lam, alpha, eta = self._lambda().copy(), self._alpha(), float(self.topic_word_prior_)
        state, before = State(lam, alpha, eta), lam.copy()
        for batch in slices(data, int(self.batch_size)):
            state.value = self._step(batch, state, float(self.total_samples) / batch.n_rows)
        self._publish(state.lam, alpha, eta, data)
        self.bound_ = perplexity_of(*self._bound_of(data))
        moved = moved_share(state.lam, before)
        words = "share of all words that this call moved between topics; no end is claimed"
        certificate = Certificate("moved share of words", moved, np.inf, words)
        steps = self.n_batch_iter_ - 1
        self._conclude_directly(certificate, x=state.lam.ravel(), objective=-state.value, n_iter=steps, moved=moved)
        return self

    # ------------------------------------------------------------------------------------------- parts of a fit

    def _rounds(self) -> int:
        return _ROUNDS[self.learning_method] if self.max_iter is None else int(self.max_iter)

    def _plan(self, effort: Effort) -> Plan:
        return Plan(
            float(self.tol),
            self._rounds(),
            effort,
            _learnt(self.doc_topic_prior),
            _learnt(self.topic_word_prior),
            float(self.perp_tol),
            int(self.evaluate_every),
            self.n_jobs,
        )

    def _require_given_priors(self) -> None:
        for name in ("doc_topic_prior", "topic_word_prior"):
            if _learnt(getattr(self, name)):
                raise ParameterError(
                    f"{name}='auto': priors are learnt with learning_method='batch' or 'gibbs'; expected numbers or "
                    "None for steps on mini-batches"
                )

    def _priors(self) -> tuple[np.ndarray, float]:
        """(alpha, eta) to begin with."""
        k = int(self.n_components)
        eta = 1.0 / k if self.topic_word_prior is None or _learnt(self.topic_word_prior) else self.topic_word_prior
        given = self.doc_topic_prior
        if given is None or _learnt(given):
            return np.full(k, 1.0 / k), float(eta)
        alpha = np.asarray(given, dtype=np.float64)
        if alpha.ndim > 0 and alpha.shape != (k,):
            raise DataError(f"doc_topic_prior: shape {alpha.shape}; expected ({k},), a number for each topic")
        if not ((alpha >= LEAST) & (alpha <= MOST)).all():
            raise DataError(f"doc_topic_prior: expected numbers from {LEAST:g} to {MOST:g}, got {alpha.min():g}")
        return np.full(k, alpha) if alpha.ndim == 0 else alpha.copy(), float(eta)

    def _require_room(self, data: Data) -> None:
        k, n = int(self.n_components), data.n_rows or 0
        require_memory(
            (5 * k * data.n_features + k * n) * 8,
            f"{k} topics of {data.n_features} words and {n} documents",
            "take fewer components",
        )

    def _reconstructed(self, x: np.ndarray, state: State) -> Mapping[str, Any]:
        k = int(self.n_components)
        lam = x.reshape(-1, k)
        return {
            "components_": np.ascontiguousarray(lam.T),
            "doc_topic_prior_": self._shown_alpha(state.alpha),
            "topic_word_prior_": state.eta,
        }

    def _shown_alpha(self, alpha: np.ndarray) -> Any:
        one = self.doc_topic_prior is None or isinstance(self.doc_topic_prior, int | float | np.number)
        return float(alpha[0]) if one else alpha.copy()

    def _publish(self, lam: np.ndarray, alpha: np.ndarray, eta: float, data: Data) -> None:
        dtype = np.float32 if data.dtype == np.float32 else np.float64
        self.components_ = np.ascontiguousarray(lam.T, dtype=dtype)
        self.doc_topic_prior_, self.topic_word_prior_ = self._shown_alpha(alpha), float(eta)


def _kept(s: State, seed: int) -> Mapping[str, Any]:
    """All of a state that a fit needs to go on."""
    now = {"lambda": s.lam.copy(), "alpha": s.alpha.copy(), "eta": s.eta, "seed": seed}
    return {**now, "value": s.value, "afresh": int(s.afresh)}


def _learnt(prior: Any) -> bool:
    return isinstance(prior, str)


def starting_topics(p: int, k: int, seed: int) -> np.ndarray:
    """lambda (p, k) near one everywhere, by random numbers that tell the topics apart."""
    return np.ascontiguousarray(stream(seed, "topics").gamma(100.0, 0.01, (k, p)).T)
