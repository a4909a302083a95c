"""`topic_table`: from a column of texts to a topic model, its quality on new documents, and topics over time."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from epicycle.automl._messages import Messages
from epicycle.automl._output import TABLE_DOCS, check_folder
from epicycle.automl._train import check_seed
from epicycle.automl.tables._columns import decoded
from epicycle.automl.tables._tables import read_table, source_name
from epicycle.automl.topics._periods import Periods, periods_of
from epicycle.automl.topics._topic_run import TopicRun
from epicycle.core._checks import count
from epicycle.core._docs import documented
from epicycle.core._exceptions import ConvergenceWarning, DataError, ParameterError
from epicycle.core._random import stream
from epicycle.core._settings import config
from epicycle.decomposition import LatentDirichletAllocation
from epicycle.decomposition.topics._quality import split_words
from epicycle.text import CountVectorizer

TRIED = (5, 10, 20, 40)  # numbers of topics that "auto" compares
_FEWEST = 20  # documents with words, of which a fifth is held out
_TERMS = 20_000
_SWEEPS, _FINAL_SWEEPS = 80, 200
_WORSE = 0.02  # share of perplexity for which fewer topics are taken
_WORDS, _DISTINCTIVE, _EXAMPLES = 12, 6, 3
_RELEVANCE = 0.6  # weight of the probability beside the lift (Sievert and Shirley, 2014)
_LIKELY = 0.01  # least probability of a word that is shown, relative to that of the first
_SNIPPET = 160  # characters of a document
_STOP_WORDS = ("english", "none")


@documented(TABLE_DOCS)
def topic_table(
    data: Any,
    text: str,
    *,
    topics: int | str = "auto",
    time: str | None = None,
    stop_words: str = "english",
    header: bool = True,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: Any = None,
) -> TopicRun:
    """Find the topics of a column of texts, and show them: words, sizes, coherence, documents, and shares over time.

    Words are counted, without those in more than 80% of the documents or in very few; topics are found by Gibbs
    sampling with learnt priors. A fifth of the documents is held out, and half of the words of each of these is
    predicted from its other half, beside a prediction by the frequencies of words alone; the final model is fitted to
    all documents. The same seed gives the same files.

    Parameters
    ----------
    text : str
        The column of texts.
    topics : int or "auto", default="auto"
        Number of topics; "auto" compares 5, 10, 20 and 40 on the documents held out, and takes the least that is within
        2% of the best.
    time : str, optional
        A column by which shares of topics are shown: dates, numbers (years) or names of a few groups.
    stop_words : {"english", "none"}, default="english"
        Words that are left out before.
    out : str or path, optional
        A folder for topics.csv, documents.csv and model.epi.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa, epicycle as ep
    >>> rng = np.random.default_rng(0)
    >>> themes = [["goal", "team", "match", "league"], ["vote", "law", "party", "senate"]]
    >>> texts = [" ".join(rng.choice(themes[i % 2], 20)) for i in range(60)]
    >>> run = ep.topic_table(pa.table({"words": texts, "year": [2000 + i // 20 for i in range(60)]}), "words", topics=2)
    >>> sorted(sorted(topic["words"]) for topic in run.topics)
    [['goal', 'league', 'match', 'team'], ['law', 'party', 'senate', 'vote']]
    """
    folder = None if out is None else check_folder(out)
    check_seed(seed)
    if topics != "auto":
        topics = count("topics", topics, low=1)
    if stop_words not in _STOP_WORDS:
        raise ParameterError(f"stop_words={stop_words!r}; expected 'english' or 'none'")
    messages = Messages(progress, 60.0)
    say, seed = messages.line, int(seed)
    try:
        with config(on_nonconvergence="ignore", n_jobs=n_jobs), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            table, name = read_table(data, header=bool(header)), source_name(data)
            texts = _texts(table, text)
            periods = None if time is None else periods_of(table[_named(table, time, "time")], time)
            counter = _vectoriser(len(texts), stop_words)
            X = _counted(counter, texts, text)
            used = np.flatnonzero(np.asarray(X.sum(axis=1)).ravel() > 0)
            if len(used) < _FEWEST:
                raise DataError(f"text: {len(used)} documents of {text!r} have words; expected at least {_FEWEST}")
            say(f"{len(used):,} documents with {int(X.sum()):,} words of {X.shape[1]:,} terms")
            chosen = TRIED if topics == "auto" else (int(topics),)
            candidates, unigram = _compared(X[used], chosen, seed, messages)
            best = min(row["perplexity"] for row in candidates)
            k = next(row["topics"] for row in candidates if row["perplexity"] <= (1 + _WORSE) * best)
            messages.stage(f"fitting {k} topics")
            model = _model(k, seed, _FINAL_SWEEPS).fit(X[used])
            shares = np.full((len(texts), k), np.nan)
            shares[used] = model.transform(X[used])
            order = np.argsort(-_sizes(X[used], shares[used]), kind="stable")
            run = TopicRun(
                model=Pipeline([("counts", counter), ("topics", model)]),
                order=order,
                topics=_described(counter, model, X, shares, used, order, texts),
                shares=shares[:, order],
                candidates=candidates,
                unigram=unigram,
                over=None if periods is None or time is None else _over(X, shares[:, order], used, periods, time),
                columns={"text": text, "time": time},
                counts={
                    "documents": len(used),
                    "left_out": len(texts) - len(used),
                    "words": int(X.sum()),
                    "terms": int(X.shape[1]),
                },
                source=Path(name).name,
                seed=seed,
            )
    finally:
        messages.close()
    if folder is not None:
        run.save(folder)
    return run


# ---------------------------------------------------------------- the table


def _named(table: Any, column: str, argument: str) -> str:
    if column not in table.column_names:
        shown = ", ".join(map(repr, table.column_names[:12]))
        raise DataError(f"{argument}: the table has no column {column!r}; it has {shown}")
    return column


def _texts(table: Any, text: str) -> list[str]:
    column = decoded(table[_named(table, text, "text")])
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise DataError(f"text: column {text!r} holds {column.type}; expected texts")
    return ["" if value is None else value for value in column.to_pylist()]


def _vectoriser(n: int, stop_words: str) -> CountVectorizer:
    return CountVectorizer(
        stop_words="english" if stop_words == "english" else None,
        min_df=2 if n < 1000 else 5,
        max_df=0.8,
        max_features=_TERMS,
    )


def _counted(counter: CountVectorizer, texts: list[str], name: str) -> sp.csr_array:
    try:
        return sp.csr_array(counter.fit_transform(texts))
    except DataError as error:
        raise DataError(
            f"text: column {name!r} has no term that occurs in at least two documents and in at most 80% of them "
            f"({error})"
        ) from None


# ---------------------------------------------------------------- models


def _model(k: int, seed: int, sweeps: int) -> LatentDirichletAllocation:
    return LatentDirichletAllocation(
        k,
        learning_method="gibbs",
        doc_topic_prior="auto",
        topic_word_prior="auto",
        max_iter=sweeps,
        random_state=seed,
    )


def _compared(X: Any, tried: tuple[int, ...], seed: int, messages: Messages) -> tuple[list[dict[str, Any]], float]:
    """(perplexity and coherence of every number of topics; perplexity by the frequencies of words alone)."""
    n = X.shape[0]
    order = stream(seed, "documents").permutation(n)
    train, test = np.sort(order[n // 5 :]), np.sort(order[: n // 5])
    seen, hidden = split_words(sp.csr_array(X[test]).astype(np.float64), 0.5, stream(seed, "words"))
    if not hidden.sum() > 0:
        raise DataError("text: the documents are too short for some of their words to be held out")
    rows = []
    for k in tried:
        messages.stage(f"trying {k} topics")
        model = _model(k, seed, _SWEEPS).fit(X[train])
        perplexity = model.held_out_perplexity(seen, hidden)
        coherence = float(np.nan_to_num(model.coherence(X[train])).mean())
        rows.append({"topics": k, "perplexity": perplexity, "coherence": coherence})
        messages.line(f"  {k} topics: perplexity {perplexity:,.0f} of held-out words, coherence {coherence:.3f}")
    frequency = np.asarray(X[train].sum(axis=0), dtype=np.float64).ravel() + 1.0 / X.shape[1]
    often = np.asarray(hidden.sum(axis=0)).ravel()
    return rows, float(np.exp(-(often @ np.log(frequency / frequency.sum())) / often.sum()))


def _sizes(X: Any, shares: np.ndarray) -> np.ndarray:
    """The share of all words of every topic."""
    words = np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(words @ shares / words.sum())


def _described(
    counter: Any,
    model: LatentDirichletAllocation,
    X: Any,
    shares: np.ndarray,
    used: np.ndarray,
    order: np.ndarray,
    texts: list[str],
) -> list[dict[str, Any]]:
    """Words, size, coherence and documents of every topic, the largest topic first."""
    names = counter.get_feature_names_out()
    phi = model.components_ / model.components_.sum(axis=1, keepdims=True)
    lift = np.log(phi) - np.log(np.asarray(X.sum(axis=0), dtype=np.float64).ravel() / X.sum())
    relevance = _RELEVANCE * np.log(phi) + (1 - _RELEVANCE) * lift
    sizes, coherence = _sizes(X[used], shares[used]), model.coherence(X[used])
    lengths = np.asarray(X[used].sum(axis=1)).ravel()
    long = lengths >= np.median(lengths)  # the share of a document of few words says little
    main = shares[used].argmax(axis=1)
    found = []
    for k in order.tolist():
        likely = np.flatnonzero(phi[k] >= _LIKELY * phi[k].max())
        best = likely[np.argsort(-phi[k, likely], kind="stable")][:_WORDS]
        apart = likely[np.argsort(-relevance[k, likely], kind="stable")][:_DISTINCTIVE]
        first = used[long][np.argsort(-shares[used[long], k], kind="stable")[:_EXAMPLES]]
        found.append(
            {
                "words": [str(names[w]) for w in best],
                "probabilities": phi[k, best].tolist(),
                "distinctive": [str(names[w]) for w in apart],
                "share": float(sizes[k]),
                "coherence": float(coherence[k]),
                "documents": int((main == k).sum()),
                "examples": [
                    {"row": int(row), "share": float(shares[row, k]), "text": " ".join(texts[row].split())[:_SNIPPET]}
                    for row in first.tolist()
                ],
            }
        )
    return found


def _over(X: Any, shares: np.ndarray, used: np.ndarray, periods: Periods, name: str) -> dict[str, Any]:
    """Shares of the topics, by their words, in every period; none where a period has no documents."""
    words = np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
    rows = used[periods.group[used] >= 0]
    group, n = periods.group[rows], len(periods.labels)
    totals = np.bincount(group, words[rows], n)
    sums = np.array([np.bincount(group, words[rows] * shares[rows, k], n) for k in range(shares.shape[1])])
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.where(totals > 0, sums / totals, np.nan)
    return {
        "column": name,
        "in_time": periods.in_time,
        "labels": periods.labels,
        "documents": np.bincount(group, minlength=n).tolist(),
        "shares": found.tolist(),
        "missing": int((periods.group[used] < 0).sum()),
    }
