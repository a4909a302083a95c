"""Topics of documents at equal perplexity of held-out words."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task
from benchmarks.tasks._svm import shared

TOPICS, ALPHA = 50, 0.1
GIBBS_ETA, ETA = 0.05, 0.1
MEASURE = "perplexity of held-out words, above that of the reference"
#: Stopping tolerances are numbers of rounds, upside down: the fewest that reach the reference are timed.
SWEEPS = tuple(1 / n for n in (10, 20, 30, 50, 75, 100, 150, 200, 300))
ROUNDS = tuple(1 / n for n in (5, 10, 20, 40))


def planted() -> Any:
    rng = np.random.default_rng(0)
    phi = rng.dirichlet(np.full(800, 0.05), 10)
    return sp.csr_array(np.array([rng.multinomial(60, t @ phi) for t in rng.dirichlet(np.full(10, 0.1), 600)]))


def press(quick: bool) -> Any:
    """Associated Press, or planted topics."""
    file = shared("ap_bow.npz")
    if quick or file is None:
        return planted()
    with np.load(file, allow_pickle=False) as d:
        return sp.csr_array((d["data"], d["indices"], d["indptr"]), shape=tuple(d["shape"]))


def news(quick: bool) -> Any:
    """20 Newsgroups, training posts, words that occur in 5 posts and in at most half of them; or planted topics."""
    file = shared("20newsgroups_bydate.jsonl.xz")
    if quick or file is None:
        return planted()
    from epicycle import CountVectorizer

    with lzma.open(file, "rt", encoding="utf-8") as lines:
        posts = [post["text"] for post in map(json.loads, lines) if post["split"] == "train"]
    counted = CountVectorizer(min_df=5, max_df=0.5, stop_words="english", token_pattern=r"(?u)\b[^\W\d_]{3,}\b")
    return sp.csr_array(counted.fit_transform(posts))


def make_of(corpus: Callable[[bool], Any]) -> Callable[[Path, bool], Data]:
    def make(directory: Path, quick: bool) -> Data:
        """Nine documents in ten to learn from; the words of the others, observed and held out at random."""
        X = sp.csr_array(corpus(quick)).astype(np.int64)
        rng = np.random.default_rng(5)
        order = rng.permutation(X.shape[0])
        first = X.shape[0] // 10
        train, test = X[np.sort(order[first:])], X[order[:first]]
        seen = rng.binomial(test.data, 0.5)
        rows = {"": (train.data, train), "seen_": (seen, test), "hidden_": (test.data - seen, test)}
        found = {"shape": np.array([X.shape[1], 10 if X.shape[1] == 800 else TOPICS])}
        for name, (values, table) in rows.items():
            found |= {f"{name}data": values, f"{name}indices": table.indices, f"{name}indptr": table.indptr}
        return found

    return make


def rows(data: Data, name: str = "") -> Any:
    parts = (data[f"{name}data"].astype(float), data[f"{name}indices"], data[f"{name}indptr"])
    return sp.csr_array(parts, shape=(len(parts[2]) - 1, int(data["shape"][0])))


def epicycle_fit(method: str) -> Callable[..., Solution]:
    eta = GIBBS_ETA if method == "gibbs" else ETA

    def fit(data: Data, tol: float) -> Solution:
        from epicycle import LatentDirichletAllocation, config

        model = LatentDirichletAllocation(
            int(data["shape"][1]), doc_topic_prior=ALPHA, topic_word_prior=eta, learning_method=method, random_state=0
        )
        with config(on_nonconvergence="ignore"):
            model.set_params(max_iter=round(1 / tol), tol=0).fit(rows(data))
        return {"words": model.components_}

    return fit


def scikit_learn(method: str) -> Callable[..., Solution]:
    def fit(data: Data, tol: float = 1 / 20) -> Solution:
        from sklearn.decomposition import LatentDirichletAllocation

        model = LatentDirichletAllocation(
            int(data["shape"][1]), doc_topic_prior=ALPHA, topic_word_prior=ETA, learning_method=method, random_state=0
        )
        return {"words": model.set_params(max_iter=round(1 / tol), n_jobs=1).fit(rows(data)).components_}

    return fit


def gensim(data: Data, tol: float) -> Solution:
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    words = {j: str(j) for j in range(int(data["shape"][0]))}
    corpus = list(Sparse2Corpus(rows(data).T.tocsc()))
    model = LdaModel(
        corpus,
        int(data["shape"][1]),
        words,
        alpha=ALPHA,
        eta=ETA,
        passes=round(1 / tol),
        eval_every=None,
        random_state=0,
    )
    return {"words": model.state.get_lambda()}


def tomotopy_setup(workers: int) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        return data, workers

    return prepare


def tomotopy(state: Any, tol: float = 1 / 200) -> Solution:
    """Adding the documents is a part of the time, and a small one; a model is trained once only."""
    import tomotopy as tp

    data, workers = state
    X, k = rows(data), int(data["shape"][1])
    model = tp.LDAModel(k=k, alpha=ALPHA, eta=GIBBS_ETA, seed=1)
    model.optim_interval = 0
    names = np.array([str(j) for j in range(X.shape[1])])
    counts = X.data.astype(int)
    for i in range(X.shape[0]):
        part = slice(X.indptr[i], X.indptr[i + 1])
        model.add_doc(np.repeat(names[X.indices[part]], counts[part]).tolist())
    model.train(round(1 / tol), workers=workers)
    words = np.full((k, X.shape[1]), GIBBS_ETA)
    used = [int(name) for name in model.used_vocabs]
    lengths = model.get_count_by_topics()
    for t in range(k):
        words[t, used] = model.get_topic_word_dist(t) * (lengths[t] + GIBBS_ETA * len(used))
    return {"words": words}


def perplexity(data: Data, words: np.ndarray) -> float:
    """Of held-out words: the same inference for all, shares by 200 variational steps with the mean topics."""
    from scipy.special import digamma

    phi = words / words.sum(axis=1, keepdims=True)
    seen, hidden, k = rows(data, "seen_"), rows(data, "hidden_"), len(phi)
    total = 0.0
    for i in range(seen.shape[0]):
        a, b = seen.indptr[i], seen.indptr[i + 1]
        part, c = phi[:, seen.indices[a:b]], seen.data[a:b]
        gamma = np.full(k, ALPHA + c.sum() / k)
        for _ in range(200):
            t = np.exp(digamma(gamma) - digamma(gamma).max())
            new = ALPHA + t * (part @ (c / np.maximum(t @ part, 1e-300)))
            done = np.abs(new - gamma).mean() < 1e-4
            gamma = new
            if done:
                break
        p = (gamma / gamma.sum()) @ phi[:, hidden.indices[a:b]]
        total += float(hidden.data[a:b] @ np.log(p))
    return float(np.exp(-total / hidden.data.sum()))


def assessed(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    found = {name: perplexity(data, s["words"]) for name, s in solutions.items()}
    level = found["reference"]
    return {name: {MEASURE: value / level - 1, "perplexity": value} for name, value in found.items()}


def gibbs_task(name: str, title: str, corpus: Callable[[bool], Any]) -> Task:
    return Task(
        name=name,
        title=f"Topics of {title} by Gibbs sampling, 50 topics",
        description="The fewest sweeps are timed with which the perplexity of held-out words (document completion, the "
        "same inference for all) is at most 2% above that of 200 sweeps of tomotopy on one thread.",
        make=make_of(corpus),
        implementations=(
            Implementation("reference", "reference", tomotopy, setup=tomotopy_setup(1)),
            Implementation("epicycle", "epicycle", epicycle_fit("gibbs"), tolerances=SWEEPS),
            Implementation("tomotopy", "peer", tomotopy, setup=tomotopy_setup(2), tolerances=SWEEPS),
        ),
        quality=assessed,
        tolerance=0.02,
        targets=(Target("speed against tomotopy", speedup_over_best_peer(), at_least=1.0),),
    )


def variational_task(name: str, title: str, corpus: Callable[[bool], Any]) -> Task:
    return Task(
        name=name,
        title=f"Topics of {title} by variational inference, 50 topics",
        description="The fewest rounds or passes are timed with which the perplexity of held-out words is at most 2% "
        "above that of 20 rounds of scikit-learn's batch method.",
        make=make_of(corpus),
        implementations=(
            Implementation("reference", "reference", scikit_learn("batch")),
            Implementation("epicycle", "epicycle", epicycle_fit("batch"), tolerances=ROUNDS),
            Implementation("epicycle, online", "baseline", epicycle_fit("online"), tolerances=ROUNDS),
            Implementation("scikit-learn", "peer", scikit_learn("batch"), tolerances=ROUNDS),
            Implementation("scikit-learn, online", "peer", scikit_learn("online"), tolerances=ROUNDS),
            Implementation("gensim", "peer", gensim, tolerances=ROUNDS),
        ),
        quality=assessed,
        tolerance=0.02,
        targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=3.0),),
    )


TASKS = (
    gibbs_task("topics_gibbs_press", "Associated Press articles", press),
    gibbs_task("topics_gibbs_news", "20 Newsgroups", news),
    variational_task("topics_press", "Associated Press articles", press),
    variational_task("topics_news", "20 Newsgroups", news),
)
PRESS_GIBBS, NEWS_GIBBS, PRESS, NEWS = TASKS
