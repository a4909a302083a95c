"""Topics: the exact posterior by enumeration, the bound and its ascent, scikit-learn from the same start, engines."""

import itertools

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, minimize_scalar
from scipy.special import gammaln, logsumexp, psi
from sklearn import decomposition as peer

import epicycle as ep
from epicycle import LatentDirichletAllocation
from epicycle._native import decomposition as native
from epicycle.data import Batch
from epicycle.decomposition.topics import _gibbs as gibbs, _latent_dirichlet_allocation as module
from epicycle.decomposition.topics._priors import fixed_point, newton, symmetric_fixed_point, value
from epicycle.exceptions import ConvergenceWarning, DataError, DataTypeError, ParameterError

ignore_unconverged = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def planted(n=300, topics=4, each=6, length=60, seed=0):
    """(counts, topics) of documents whose topics have words of their own, and a few that all share."""
    rng = np.random.default_rng(seed)
    p = topics * each + 4
    phi = np.full((topics, p), 1e-3)
    for k in range(topics):
        phi[k, k * each : (k + 1) * each] = rng.gamma(5.0, size=each)
        phi[k, -4:] = 1.0
    phi /= phi.sum(axis=1, keepdims=True)
    theta = rng.dirichlet(np.full(topics, 0.2), n)
    return np.array([rng.multinomial(length, t @ phi) for t in theta]).astype(float), phi


DOCUMENTS, PHI = planted()


def dirichlet_divergence(posterior, prior):
    """KL(Dirichlet(posterior) || Dirichlet(prior)) of each row, from its definition."""
    a, b = np.broadcast_arrays(posterior, prior)
    of = gammaln(a.sum(axis=-1)) - gammaln(a).sum(axis=-1) - gammaln(b.sum(axis=-1)) + gammaln(b).sum(axis=-1)
    return of + np.sum((a - b) * (psi(a) - psi(a.sum(axis=-1, keepdims=True))), axis=-1)


def bound_of(X, gamma, lam, alpha, eta, v=1.0):
    """The bound at any gamma (n, k) and lambda (k, p), with the best shares."""
    theta = psi(gamma) - psi(gamma.sum(axis=1, keepdims=True))
    phi = psi(lam) - psi(lam.sum(axis=1, keepdims=True))
    words = np.array([x @ logsumexp(t[:, None] + phi, axis=0) for x, t in zip(X, theta, strict=True)])
    documents = words - dirichlet_divergence(gamma, alpha)
    return float(np.sum(v * documents) - np.sum(dirichlet_divergence(lam, eta)))


# ------------------------------------------------------------------------------------------------- enumeration

TOY = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0], [1.0, 0.0, 1.0]])
TOY_ALPHA, TOY_ETA = np.array([0.5, 1.2]), 0.4


def enumerated(tokens):
    """(all assignments of topics to the tokens of TOY, their log joint probabilities)."""
    z = np.array(list(itertools.product(range(2), repeat=len(tokens.words))))
    log_p = np.zeros(len(z))
    for k in range(2):
        of = np.array([((z == k) & (tokens.words == w)).sum(axis=1) for w in range(3)])
        log_p += gammaln(of + TOY_ETA).sum(axis=0) - 3 * gammaln(TOY_ETA)
        log_p += gammaln(3 * TOY_ETA) - gammaln(of.sum(axis=0) + 3 * TOY_ETA)
    for d in range(3):
        here = tokens.documents == d
        of = np.array([((z == k) & here).sum(axis=1) for k in range(2)])
        log_p += gammaln(of + TOY_ALPHA[:, None]).sum(axis=0) - gammaln(TOY_ALPHA).sum()
        log_p += gammaln(TOY_ALPHA.sum()) - gammaln(here.sum() + TOY_ALPHA.sum())
    return z, log_p


def test_gibbs_draws_from_the_posterior_of_enumeration():
    tokens = gibbs.tokens_of(Batch(TOY))
    z, log_p = enumerated(tokens)
    p = np.exp(log_p - logsumexp(log_p))
    chain = gibbs.chain_of(tokens, 2, TOY_ALPHA, TOY_ETA, seed=3)
    draws = []
    for _ in range(12_000):
        gibbs.sweep(tokens, chain, 3, 1)
        draws.append(chain.z.copy())
    draws = np.array(draws)
    code = 2 ** np.arange(len(tokens.words))[::-1]
    seen = np.bincount(draws @ code, minlength=len(z)) / len(draws)
    # Marginals and pairs, within four errors of means of batches; the whole distribution in total variation.
    for statistic in (lambda a: a == 0, lambda a: a[:, :, None] == a[:, None, :]):
        expected = np.tensordot(p, statistic(z).astype(float), 1)
        batches = statistic(draws).astype(float).reshape(60, 200, *expected.shape).mean(axis=1)
        error = batches.std(axis=0, ddof=1) / np.sqrt(60)
        assert np.all(np.abs(batches.mean(axis=0) - expected) <= 4.2 * error + 1e-12)
    assert 0.5 * np.abs(seen - p).sum() < 0.05
    by_document = gibbs.counts_of_documents(tokens, chain)
    assert gibbs.log_joint(tokens, chain, by_document) == pytest.approx(log_p[int(chain.z @ code)], abs=1e-10)


def test_the_bound_is_below_the_evidence_of_enumeration():
    tokens = gibbs.tokens_of(Batch(TOY))
    _, log_p = enumerated(tokens)
    # Enumeration gives the probability of the tokens in their order, as the bound does.
    model = LatentDirichletAllocation(2, doc_topic_prior=TOY_ALPHA, topic_word_prior=TOY_ETA, random_state=0, tol=1e-9)
    model.set_params(max_iter=3000, mean_change_tol=1e-12).fit(TOY)
    gap = logsumexp(log_p) - model.score(TOY)
    assert 0 < gap < 3
    assert model.score(TOY) == pytest.approx(-model.history_.objective[-1], abs=1e-6)


# ------------------------------------------------------------------------------------------------- the bound


@ignore_unconverged
def test_the_score_is_the_bound_by_its_definition():
    alpha = np.array([0.2, 0.5, 1.0, 0.1])
    model = LatentDirichletAllocation(4, doc_topic_prior=alpha, topic_word_prior=0.3, max_iter=3, random_state=0)
    model.fit(DOCUMENTS).set_params(mean_change_tol=1e-12, max_doc_update_iter=5000)
    gamma = model.transform(DOCUMENTS, normalize=False)
    assert model.score(DOCUMENTS) == pytest.approx(bound_of(DOCUMENTS, gamma, model.components_, alpha, 0.3), rel=1e-12)
    better = [bound_of(DOCUMENTS, gamma * s, model.components_, alpha, 0.3) for s in (0.99, 1.01)]
    assert max(better) < model.score(DOCUMENTS)
    found = np.exp(psi(model.components_) - psi(model.components_.sum(axis=1, keepdims=True)))
    assert_allclose(model.exp_dirichlet_component_, found, rtol=1e-12)


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 25),
    p=st.integers(1, 12),
    k=st.integers(1, 9),
    scale=st.sampled_from([1e-6, 0.01, 1.0, 300.0, 1e9]),
    priors=st.sampled_from([(None, None), (1e-4, 1e-4), (5.0, 0.01), ("auto", "auto"), ("auto", 0.1)]),
    steps=st.sampled_from([1, 3, 50]),
    weighted=st.booleans(),
)
@ignore_unconverged
def test_the_bound_never_falls(seed, n, p, k, scale, priors, steps, weighted):
    rng = np.random.default_rng(seed)
    X = scale * rng.gamma(0.5, size=(n, p)) * (rng.random((n, p)) < 0.6)
    v = rng.integers(0, 4, n) + 0.25 if weighted else None
    model = LatentDirichletAllocation(
        k, doc_topic_prior=priors[0], topic_word_prior=priors[1], max_doc_update_iter=steps, max_iter=15, tol=0
    )
    if 0 < X.max() < 1e-70 or (scale < 1 and priors[0] == 1e-4):
        return  # shares of a word in all topics can fall below 1e-308 there, and the word is lost
    model.set_params(random_state=seed).fit(X, sample_weight=v)
    bound = -np.asarray(model.history_.objective)
    assert np.isfinite(bound).all()
    # Terms as large as the words times their logarithm cancel, in one topic nearly all of them.
    words = float((X.sum(axis=1) * (1.0 if v is None else v)).sum())
    rounding = 1e-12 * (n + k) * p + 1e-15 * words * np.log(words + 3)
    assert np.diff(bound).min(initial=0.0) >= -1e-10 * np.abs(bound).max() - rounding
    assert np.isfinite(model.components_).all()
    shares = model.transform(X)
    assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-9)
    assert shares.min() >= 0


def test_steps_end_where_rounding_begins():
    X = np.random.default_rng(0).poisson(1.0, (3, 40))
    model = LatentDirichletAllocation(10, mean_change_tol=1e-300, max_doc_update_iter=10**9, max_iter=2, random_state=0)
    with ep.config(on_nonconvergence="ignore"):
        assert np.isfinite(model.fit(X).bound_)


def test_functions_of_dirichlet_parameters():
    x = np.concatenate([np.logspace(-5, 12, 400), np.linspace(0.5, 20, 200)])[:, None]
    b, shift, one = np.zeros((len(x), native.padded_topics(1))), np.zeros(len(x)), np.array([1.0])
    native.expected_topics(x, one, 0.3, True, b, shift, 1)
    assert_allclose(shift, psi(x[:, 0]) - psi(1.0), rtol=1e-13, atol=1e-13)
    for number in x[::40, 0]:
        found = native.expected_topics(np.array([[number]]), one, 0.3, True, np.zeros((1, 8)), np.zeros(1), 1)[0]
        expected = gammaln(number) + (0.3 - number) * psi(number)
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-13 * max(1.0, abs(gammaln(number))))


# ------------------------------------------------------------------------------------------------- peers


@ignore_unconverged
def test_batch_rounds_are_those_of_scikit_learn(monkeypatch):
    # A prior of one makes the parameters of a document unique, whatever they start from.
    theirs = peer.LatentDirichletAllocation(
        4, max_iter=6, mean_change_tol=1e-9, max_doc_update_iter=3000, random_state=5, doc_topic_prior=1.0
    )
    start = np.random.RandomState(5).gamma(100.0, 0.01, (4, DOCUMENTS.shape[1]))
    monkeypatch.setattr(module, "starting_topics", lambda p, k, seed: np.ascontiguousarray(start.T))
    ours = LatentDirichletAllocation(**{n: v for n, v in theirs.get_params().items() if n != "learning_method"})
    ours.fit(sp.csr_array(DOCUMENTS))
    theirs.fit(DOCUMENTS)
    assert_allclose(ours.components_, theirs.components_, rtol=2e-5)
    assert_allclose(ours.transform(DOCUMENTS), theirs.transform(DOCUMENTS), rtol=1e-4, atol=1e-6)
    assert ours.score(DOCUMENTS) == pytest.approx(theirs.score(DOCUMENTS), rel=1e-8)
    assert ours.bound_ == pytest.approx(theirs.bound_, rel=1e-7)
    sampled = [m.perplexity(DOCUMENTS, sub_sampling=True) for m in (ours, theirs)]
    assert sampled[0] == pytest.approx(sampled[1], rel=1e-7)


@ignore_unconverged
def test_online_steps_are_those_of_scikit_learn(monkeypatch):
    settings = {"learning_method": "online", "max_iter": 2, "batch_size": 40, "total_samples": 300, "random_state": 5}
    settings |= {"mean_change_tol": 1e-9, "max_doc_update_iter": 3000, "doc_topic_prior": 1.0}
    start = np.random.RandomState(5).gamma(100.0, 0.01, (4, DOCUMENTS.shape[1]))
    monkeypatch.setattr(module, "starting_topics", lambda p, k, seed: np.ascontiguousarray(start.T))
    theirs = peer.LatentDirichletAllocation(4, **settings).fit(DOCUMENTS)
    ours = LatentDirichletAllocation(4, **settings).fit(DOCUMENTS)
    assert_allclose(ours.components_, theirs.components_, rtol=1e-5)
    assert ours.n_batch_iter_ == theirs.n_batch_iter_
    streamed = LatentDirichletAllocation(4, **settings)
    for _ in range(2):
        for i in range(0, 300, 40):  # the last one has 20 rows, of which partial_fit takes total_samples / 20 times
            streamed.partial_fit(DOCUMENTS[i : i + 40])
    assert_allclose(streamed.components_, ours.components_, rtol=1e-9)


@ignore_unconverged
@pytest.mark.parametrize("method", ["batch", "online", "gibbs"])
def test_planted_topics_are_recovered(method):
    settings = {"doc_topic_prior": 0.2, "topic_word_prior": 0.1, "learning_method": method, "batch_size": 30}
    # Starts are random, and the bound has local optima: the best of three by the bound.
    fits = [LatentDirichletAllocation(4, random_state=s, **settings).fit(DOCUMENTS) for s in range(3)]
    model = max(fits, key=lambda m: m.score(DOCUMENTS))
    phi = model.components_ / model.components_.sum(axis=1, keepdims=True)
    distance = 0.5 * np.abs(phi[:, None] - PHI[None]).sum(axis=2)
    assert sorted(distance.argmin(axis=1)) == [0, 1, 2, 3]
    assert distance.min(axis=1).max() < 0.08
    new, _ = planted(n=100, seed=1)
    best = LatentDirichletAllocation(4, doc_topic_prior=0.2, random_state=0)
    best.fit(DOCUMENTS)
    best.components_ = 1e6 * PHI  # the planted topics themselves
    assert model.held_out_perplexity(new) < 1.03 * best.held_out_perplexity(new)


# ------------------------------------------------------------------------------------------------- priors


def test_learnt_priors_are_optima():
    rng = np.random.default_rng(1)
    alpha = np.array([0.3, 2.0, 0.05])
    logs = np.log(rng.dirichlet(alpha, 4000)).sum(axis=0)
    found = newton(np.full(3, 1.0), 4000.0, logs)
    best = minimize(lambda x: -value(np.exp(x), 4000.0, logs), np.zeros(3), tol=1e-10)
    assert_allclose(found, np.exp(best.x), rtol=1e-4)
    assert_allclose(found, alpha, rtol=0.1)
    counts = np.array([rng.multinomial(50, t) for t in rng.dirichlet(alpha, 1500)])
    often = [np.bincount(c) for c in counts.T]

    def log_p(a):
        terms = gammaln(counts + a).sum() - len(counts) * gammaln(a).sum()
        return terms + len(counts) * (gammaln(a.sum()) - gammaln(50 + a.sum()))

    found = fixed_point(np.full(3, 1.0), often, np.bincount(counts.sum(axis=1)), steps=2000)
    best = minimize(lambda x: -log_p(np.exp(x)), np.zeros(3), tol=1e-10)
    assert_allclose(found, np.exp(best.x), rtol=1e-3)

    def log_q(eta):
        p = counts.shape[1]
        return (
            gammaln(counts + eta).sum()
            - counts.size * gammaln(eta)
            + len(counts) * (gammaln(p * eta) - gammaln(50 + p * eta))
        )

    found = symmetric_fixed_point(1.0, np.bincount(counts.ravel()), 3, counts.sum(axis=1).astype(float), steps=500)
    best = minimize_scalar(lambda x: -log_q(np.exp(x)), bracket=(-2, 1))
    assert found == pytest.approx(np.exp(best.x), rel=1e-4)


@ignore_unconverged
@pytest.mark.parametrize("method", ["batch", "gibbs"])
def test_frequent_topics_get_larger_priors(method):
    rng = np.random.default_rng(3)
    theta = rng.dirichlet([1.5, 0.3, 0.1], 400)
    phi = np.kron(np.eye(3), np.full((1, 5), 0.2))
    X = np.array([rng.multinomial(60, t @ phi) for t in theta])
    model = LatentDirichletAllocation(
        3, doc_topic_prior="auto", topic_word_prior="auto", learning_method=method, random_state=0
    ).fit(X)
    order = [int(np.argmax(model.components_[:, j * 5])) for j in range(3)]
    assert sorted(order) == [0, 1, 2]
    assert_allclose(model.doc_topic_prior_[order], [1.5, 0.3, 0.1], rtol=0.35)
    assert 0.5 < model.topic_word_prior_ * 5 < 1e7


# ------------------------------------------------------------------------------------------------- what is asked of it


def test_held_out_words_coherence_and_groups():
    model = LatentDirichletAllocation(4, random_state=0, tol=1e-2).fit(DOCUMENTS)
    rng = np.random.default_rng(0)
    seen = rng.binomial(DOCUMENTS[:40].astype(int), 0.5).astype(float)
    hidden = DOCUMENTS[:40] - seen
    theta, phi = model.transform(seen), model.components_ / model.components_.sum(axis=1, keepdims=True)
    expected = np.exp(-(hidden * np.log(theta @ phi)).sum() / hidden.sum())
    assert model.held_out_perplexity(sp.csr_array(seen), hidden) == pytest.approx(expected, rel=1e-12)
    assert model.held_out_perplexity(DOCUMENTS) == model.held_out_perplexity(sp.csr_array(DOCUMENTS))
    # It does not depend on how many documents there are, as the perplexity of the bound does.
    few, many = (model.held_out_perplexity(seen[:n], hidden[:n]) for n in (10, 40))
    assert few == pytest.approx(many, rel=0.3)

    has = DOCUMENTS > 0
    for measure in ("umass", "pmi", "npmi"):
        found = model.coherence(sp.csr_array(DOCUMENTS), measure=measure, n_words=5)
        for k, top in enumerate(np.argsort(-model.components_, axis=1)[:, :5]):
            pairs = []
            for i, j in itertools.combinations(range(5), 2):
                a, b = has[:, top[i]], has[:, top[j]]
                both = (a & b).sum()
                log = np.log((both / 300 + 1e-12) / (a.mean() * b.mean()))
                values = {"umass": np.log((both + 1) / a.sum()), "pmi": log}
                values["npmi"] = log / -np.log(both / 300 + 1e-12)
                pairs.append(values[measure])
            assert found[k] == pytest.approx(np.mean(pairs), rel=1e-9)

    groups, shares = model.topics_over(DOCUMENTS, np.repeat(["b", "a", "c"], 100))
    assert_array_equal(groups, ["a", "b", "c"])
    lengths = DOCUMENTS[100:200].sum(axis=1)
    assert_allclose(shares[0], lengths @ model.transform(DOCUMENTS[100:200]) / lengths.sum(), rtol=1e-12)
    names = [f"w{j}" for j in range(DOCUMENTS.shape[1])]
    assert model.top_words(names, 3)[2] == [names[j] for j in np.argsort(-model.components_[2])[:3]]
    assert LatentDirichletAllocation(2, tol=1.0).fit(pd.DataFrame(DOCUMENTS[:, :2], columns=["x", "y"])).top_words(
        n_words=1
    ) in ([["x"], ["y"]], [["y"], ["x"]], [["x"], ["x"]], [["y"], ["y"]])


@ignore_unconverged
@pytest.mark.parametrize("method", ["batch", "online", "gibbs"])
def test_threads_give_the_same_bits(method):
    rng = np.random.default_rng(0)
    X = sp.random_array(
        (3000, 150), density=0.3, rng=1, format="csr", data_sampler=lambda size: rng.integers(1, 4, size)
    )
    fits = [
        LatentDirichletAllocation(20, learning_method=method, max_iter=2, random_state=4, n_jobs=jobs).fit(X)
        for jobs in (1, 2, 4)
    ]
    for fit in fits[1:]:
        assert_array_equal(fit.components_, fits[0].components_)
        assert fit.bound_ == fits[0].bound_
        assert_array_equal(fit.transform(X[:50]), fits[0].transform(X[:50]))


@ignore_unconverged
def test_weights_are_repetitions_and_rows_have_no_order():
    rng = np.random.default_rng(2)
    times = rng.integers(0, 4, 80)
    settings = {"n_components": 3, "random_state": 0, "max_iter": 20, "tol": 0}
    weighted = LatentDirichletAllocation(**settings).fit(DOCUMENTS[:80], sample_weight=times)
    repeated = LatentDirichletAllocation(**settings).fit(np.repeat(DOCUMENTS[:80], times, axis=0))
    assert_allclose(weighted.components_, repeated.components_, rtol=1e-7)
    assert weighted.bound_ == pytest.approx(repeated.bound_, rel=1e-10)
    order = rng.permutation(80)
    moved = LatentDirichletAllocation(**settings).fit(DOCUMENTS[:80][order], sample_weight=times[order])
    assert_allclose(moved.components_, weighted.components_, rtol=1e-7)
    drawn = [
        LatentDirichletAllocation(3, learning_method="gibbs", max_iter=5, random_state=0).fit(X, sample_weight=v)
        for X, v in ((DOCUMENTS[:80], times), (np.repeat(DOCUMENTS[:80], times, axis=0), None))
    ]
    assert_array_equal(drawn[0].components_, drawn[1].components_)
    single = LatentDirichletAllocation(**settings).fit(DOCUMENTS[:80].astype(np.float32), sample_weight=times)
    assert single.components_.dtype == single.transform(DOCUMENTS[:3].astype(np.float32)).dtype == np.float32
    assert_allclose(single.components_, weighted.components_, rtol=1e-5)


@ignore_unconverged
@pytest.mark.parametrize("method", ["batch", "online"])
def test_engines_agree(method, tmp_path):
    settings = {"n_components": 3, "learning_method": method, "random_state": 0, "max_iter": 10, "batch_size": 100}
    own = LatentDirichletAllocation(**settings).fit(DOCUMENTS)
    table = pd.DataFrame(DOCUMENTS, columns=[f"c{j}" for j in range(DOCUMENTS.shape[1])])
    table.to_parquet(tmp_path / "x.parquet")
    for source in (ep.scan(tmp_path / "x.parquet"), da.from_array(DOCUMENTS, chunks=(100, DOCUMENTS.shape[1]))):
        other = LatentDirichletAllocation(**settings).fit(source)
        assert_allclose(other.components_, own.components_, rtol=1e-8)
        assert_allclose(np.asarray(other.transform(source)), own.transform(DOCUMENTS), rtol=1e-7)
        assert other.bound_ == pytest.approx(own.bound_, rel=1e-10)
        assert_allclose(other.coherence(source), own.coherence(DOCUMENTS), rtol=1e-9)
    with pytest.raises(DataTypeError, match="gibbs"):
        LatentDirichletAllocation(2, learning_method="gibbs").fit(da.from_array(DOCUMENTS))


def test_certificates_and_files(tmp_path):
    model = LatentDirichletAllocation(4, random_state=0).fit(DOCUMENTS)
    assert model.certificate_.holds
    assert model.history_["moved"][-1] == model.certificate_.value <= 1e-3
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        short = LatentDirichletAllocation(4, random_state=0, max_iter=2).fit(DOCUMENTS)
    assert not short.certificate_.holds
    model.save(tmp_path / "m.epi")
    again = ep.load(tmp_path / "m.epi")
    assert_array_equal(again.transform(DOCUMENTS), model.transform(DOCUMENTS))
    assert again.held_out_perplexity(DOCUMENTS) == model.held_out_perplexity(DOCUMENTS)
    assert gibbs.split_r_hat(np.random.default_rng(0).normal(size=400)) < 1.05
    assert gibbs.split_r_hat(np.arange(400.0)) > 1.5
    assert np.isinf(gibbs.split_r_hat(np.ones(3)))


def test_bad_input_is_named():
    model = LatentDirichletAllocation(2)
    with pytest.raises(DataError, match="Negative values in data passed"):
        model.fit(-DOCUMENTS)
    with pytest.raises(DataError, match=r"doc_topic_prior: shape \(3,\); expected \(2,\)"):
        model.set_params(doc_topic_prior=[1, 2, 3]).fit(DOCUMENTS)
    for method, step in (("online", "fit"), ("batch", "partial_fit")):
        learnt = LatentDirichletAllocation(2, learning_method=method, topic_word_prior="auto")
        with pytest.raises(ParameterError, match="topic_word_prior='auto': priors are learnt with"):
            getattr(learnt, step)(DOCUMENTS)
    with pytest.raises(DataError, match="doc_topic_prior: expected numbers"):
        model.set_params(doc_topic_prior=[1, -1]).fit(DOCUMENTS)
    model.set_params(doc_topic_prior=None)
    with pytest.raises(DataError, match=r"X: 0\.5; expected whole numbers"):
        model.set_params(learning_method="gibbs").fit(DOCUMENTS / 2)
    with pytest.raises(DataError, match=r"sample_weight: 0\.5; expected whole"):
        model.fit(DOCUMENTS, sample_weight=np.full(300, 0.5))
    with pytest.raises(DataError, match=r"words in .* documents, each taken as often as its weight"):
        model.fit(DOCUMENTS, sample_weight=np.full(300, 1e15))
    model.set_params(learning_method="batch").fit(DOCUMENTS)
    with pytest.raises(DataError, match="Negative values"):
        model.transform(-DOCUMENTS)
    with pytest.raises(DataError, match="X: expected whole counts"):
        model.held_out_perplexity(DOCUMENTS / 2)
    with pytest.raises(DataError, match="held_out: 2 rows; expected 300"):
        model.held_out_perplexity(DOCUMENTS, DOCUMENTS[:2])
    with pytest.raises(DataError, match="no words are held out"):
        model.held_out_perplexity(DOCUMENTS, 0 * DOCUMENTS)
    with pytest.raises(ParameterError, match="share="):
        model.held_out_perplexity(DOCUMENTS, share=1.0)
    with pytest.raises(ParameterError, match="measure='c_v'"):
        model.coherence(DOCUMENTS, measure="c_v")
    with pytest.raises(DataError, match="vocabulary: 1 names; expected 28"):
        model.top_words(["a"])
    with pytest.raises(ParameterError, match="n_words=0"):
        model.top_words(n_words=0)
    with pytest.raises(DataError, match="by: shape"):
        model.topics_over(DOCUMENTS, [1])
