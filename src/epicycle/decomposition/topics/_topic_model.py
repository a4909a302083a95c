"""Methods of a fitted topic model, however it was fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import psi

from epicycle import engine
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._random import stream
from epicycle.core.estimator._estimator import Estimator
from epicycle.data import ArrayData, Batch
from epicycle.decomposition._components import ComponentsOut
from epicycle.decomposition.topics._inference import (
    Effort,
    Topics,
    bound_statistic,
    converged_rows,
    expected_topics,
    mean_topics,
)
from epicycle.decomposition.topics._quality import MEASURES, coherence_of, log_probability, split_words, together
from epicycle.decomposition.topics._variational import perplexity_of


class TopicModel(ComponentsOut, Estimator):
    """Base of topic models: shares of topics, scores, words of topics."""

    _docs: ClassVar[Mapping[str, str]] = {
        "fit_transform_returns": "array of shape (n_samples, n_components)",
        "normalize": "normalize : bool, default=True\n    Whether shares add up to one; otherwise they are gamma.",
        "sub_sampling": "sub_sampling : bool, default=False\n    Whether X is a sample of `total_samples` documents.",
    }

    learning_method: str
    mean_change_tol: float
    max_doc_update_iter: int | None
    total_samples: float
    n_jobs: int | None

    doc_topic_prior_: Any
    topic_word_prior_: float
    _fixed_tags: ClassVar[Mapping[str, Any]] = {
        "input_tags.positive_only": True,
        "transformer_tags.preserves_dtype": ["float64", "float32"],
    }

    def _effort(self) -> Effort:
        """Of documents that begin with equal shares."""
        most = 100 if self.max_doc_update_iter is None else int(self.max_doc_update_iter)
        return Effort(float(self.mean_change_tol), most)

    def _effort_on(self, data: Any) -> Effort:
        return self._effort().of(data, len(self.components_), self.n_jobs)

    def _lambda(self) -> np.ndarray:
        return np.ascontiguousarray(self.components_.T, dtype=np.float64)

    def _alpha(self) -> np.ndarray:
        return np.ascontiguousarray(np.broadcast_to(self.doc_topic_prior_, len(self.components_)), dtype=np.float64)

    def _topics(self) -> Topics:
        """Topics for inference: by exp E log phi where q is variational, by the mean of phi where it was drawn."""
        lam, alpha = self._lambda(), self._alpha()
        if self.learning_method == "gibbs":
            return mean_topics(lam, alpha)
        return expected_topics(lam, alpha, self.topic_word_prior_, self.n_jobs)[0]

    @property
    def exp_dirichlet_component_(self) -> np.ndarray:
        """exp E log phi of every topic and word, array of shape (n_components, n_features)."""
        self._check_fitted()
        c = self.components_.astype(np.float64)
        return np.asarray(np.exp(psi(c) - psi(c.sum(axis=1, keepdims=True))), dtype=self.components_.dtype)

    # ------------------------------------------------------------------------------------------- shares and scores

    def transform(self, X: Any, *, normalize: bool = True) -> Any:
        """Shares of the topics in documents; a document's do not depend on the others."""
        data = self._predict_data(X)
        return engine.map(_shares, data, self._topics(), self._effort_on(data), bool(normalize), n_jobs=self.n_jobs)

    def fit_transform(self, X: Any, y: Any = None, *, normalize: bool = True, **fit_params: Any) -> Any:
        """Fit to documents X, and return their shares.

        Parameters
        ----------
        **fit_params
            Passed on to `fit`: sample_weight.
        """
        return self.fit(X, y, **fit_params).transform(X, normalize=normalize)

    def score(self, X: Any, y: Any = None) -> float:
        """The variational bound of the log probability of documents X, with the divergence of the topics."""
        return self._bound_of(self._predict_data(X))[0]

    def perplexity(self, X: Any, sub_sampling: bool = False) -> float:
        """exp(-score / words), an upper bound of the perplexity of documents X.

        The score holds the divergence of the topics from their prior, once for all documents: of a few documents it is
        a large part of it. To compare models on new documents use :meth:`held_out_perplexity`.
        """
        return perplexity_of(*self._bound_of(self._predict_data(X), bool(sub_sampling)))

    def _bound_of(self, data: Any, sub_sampling: bool = False) -> tuple[float, float]:
        """(bound, words)."""
        topics, part = expected_topics(self._lambda(), self._alpha(), self.topic_word_prior_, self.n_jobs)
        bound, words, _, n = engine.sum(_checked_bound, data, topics, self._effort_on(data), n_jobs=self.n_jobs)
        ratio = float(self.total_samples) / n if sub_sampling else 1.0
        return ratio * bound + part, ratio * words

    def held_out_perplexity(self, X: Any, held_out: Any = None, *, share: float = 0.5, random_state: Any = 0) -> float:
        r"""The perplexity of words of new documents, given the other words of the same documents.

        .. math:: \exp\Bigl(-\frac{1}{N} \sum_d \sum_{w \text{ held out}}
                  \log \sum_k E[\theta_{dk}]\, E[\phi_{kw}] \Bigr)

        Shares :math:`\theta_d` are inferred from the observed words alone (document completion: Wallach and others,
        2009), so that the figure does not fall because a document has seen its own words, and does not depend on how
        many documents there are.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Documents: whole counts; or their observed words, where `held_out` is given.
        held_out : array-like or sparse matrix of shape (n_samples, n_features), optional
            Words to predict.
        share : float, default=0.5
            The probability of every word of X to be observed.
        random_state : int, Generator, RandomState or None, default=0
            Seed of the split.
        """
        observed = self._whole(X, "X")
        if held_out is None:
            if not 0 < share < 1:
                raise ParameterError(f"share={share!r}; expected a number between 0 and 1")
            observed, hidden = split_words(observed, float(share), stream(random_state, "split"))
        else:
            hidden = self._whole(held_out, "held_out")
            if hidden.shape[0] != observed.shape[0]:
                raise DataError(f"held_out: {hidden.shape[0]} rows; expected {observed.shape[0]}, as many as X has")
        lam = self._lambda()
        means = lam / lam.sum(axis=0)
        effort = self._effort().shared(observed, len(self.components_), self.n_jobs)
        value, words = log_probability(Batch(observed), hidden, self._topics(), means, effort)
        if not words > 0:
            raise DataError("X: no words are held out; expected at least one")
        return float(np.exp(min(-value / words, 700.0)))

    def _whole(self, X: Any, name: str) -> Any:
        data = self._predict_data(X)
        if not isinstance(data, ArrayData):
            raise DataError(f"{name}: expected rows in memory, got {type(X).__name__}")
        batch = data.rows(0, data.n_rows)
        _require_non_negative(batch)
        return sp.csr_array(batch.X).astype(np.float64)

    # ------------------------------------------------------------------------------------------- words and documents

    def _vocabulary(self, vocabulary: Any) -> list[str]:
        if vocabulary is None:
            return self._names()
        names = [str(name) for name in vocabulary]
        if len(names) != self.n_features_in_:
            raise DataError(f"vocabulary: {len(names)} names; expected {self.n_features_in_}, one for each feature")
        return names

    def _best(self, n_words: int) -> np.ndarray:
        self._check_fitted()
        if not isinstance(n_words, int | np.integer) or isinstance(n_words, bool) or n_words < 1:
            raise ParameterError(f"n_words={n_words!r}; expected an integer of at least 1")
        return np.argsort(-self.components_, axis=1, kind="stable")[:, : int(n_words)]

    def top_words(self, vocabulary: Sequence[str] | None = None, n_words: int = 10) -> list[list[str]]:
        """The most probable words of every topic, the first one first.

        Parameters
        ----------
        vocabulary : sequence of str, optional
            Names of the features, such as `get_feature_names_out` of a vectoriser; by default those of the fit.
        n_words : int, default=10

        Returns
        -------
        list of lists of str
        """
        best = self._best(n_words)
        names = self._vocabulary(vocabulary)
        return [[names[w] for w in row] for row in best]

    def coherence(self, X: Any, measure: str = "npmi", n_words: int = 10) -> np.ndarray:
        r"""Coherence of the most probable words of each topic in the documents of X.

        The mean over pairs of words i before j, with P the share of documents that have a word or both:
        "npmi" :math:`\log \frac{P_{ij}}{P_i P_j} / (-\log P_{ij})`, from -1 to 1; "pmi" its numerator;
        "umass" :math:`\log \frac{D_{ij} + 1}{D_i}` with D documents (Mimno and others, 2011). Measures on sliding
        windows, such as c_v, need the order of words, which a table of counts does not have.

        Parameters
        ----------
        X : array-like, sparse matrix, files or Dask collection of shape (n_samples, n_features)
            Documents to count in.
        measure : {"npmi", "umass", "pmi"}, default="npmi"
        n_words : int, default=10

        Returns
        -------
        ndarray of shape (n_components,)
            nan where no two of the words occur in X.
        """
        best = self._best(n_words)
        if measure not in MEASURES:
            raise ParameterError(f"measure={measure!r}; expected one of {', '.join(map(repr, MEASURES))}")
        words, place = np.unique(best, return_inverse=True)
        place = place.reshape(best.shape)
        both, n = engine.sum(together, self._predict_data(X), words, n_jobs=self.n_jobs)
        return np.array([coherence_of(both[np.ix_(row, row)], float(n), measure) for row in place])

    def topics_over(self, X: Any, by: Any) -> tuple[np.ndarray, np.ndarray]:
        """Shares of the topics in groups of documents, such as years or sources, each document by its words.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Documents.
        by : array-like of shape (n_samples,)
            The group of each document.

        Returns
        -------
        groups : ndarray of shape (n_groups,)
            In their order.
        shares : ndarray of shape (n_groups, n_components)
            Each row adds up to one; nan where a group has no words.
        """
        rows = self._whole(X, "X")
        labels = np.asarray(by)
        if labels.shape != (rows.shape[0],):
            raise DataError(f"by: shape {labels.shape}; expected ({rows.shape[0]},), a group for each document")
        groups, group = np.unique(labels, return_inverse=True)
        counts = np.asarray(rows.sum(axis=1)).ravel()
        shares = np.asarray(self.transform(X), dtype=np.float64) * counts[:, None]
        of = sp.csr_array((np.ones(len(group)), (group, np.arange(len(group)))), shape=(len(groups), len(group)))
        totals = np.asarray(of @ counts)
        return groups, np.asarray(of @ shares) / np.where(totals > 0, totals, np.nan)[:, None]


def _require_non_negative(batch: Batch) -> None:
    values = batch.X.data if sp.issparse(batch.X) else batch.X
    if values.size and values.min() < 0:
        raise DataError(f"Negative values in data passed to LatentDirichletAllocation: X has {values.min():g}")


def _shares(batch: Batch, topics: Topics, effort: Effort, normalize: bool) -> np.ndarray:
    _require_non_negative(batch)
    gamma = converged_rows(batch, topics, effort)
    if normalize:
        gamma /= gamma.sum(axis=1, keepdims=True)
    return gamma.astype(batch.X.dtype)


def _checked_bound(batch: Batch, topics: Topics, effort: Effort) -> tuple[float, float, float, int]:
    _require_non_negative(batch)
    return bound_statistic(batch, topics, effort)
