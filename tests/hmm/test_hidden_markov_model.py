"""Hidden Markov models: hmmlearn's fits from the same start, enumeration, planted chains, gaps, weights, bad input.

Chains themselves (posteriors, paths, likelihoods against all paths) are tested in tests/native/test_hmm_kernels.py.
"""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from hmmlearn_fits import COVARS, HMMLEARN, LENGTHS, MOVE, ROWS, START
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import logsumexp
from sklearn.base import clone

import epicycle as ep
from epicycle import HiddenMarkovModel
from epicycle.exceptions import ConvergenceError, ConvergenceWarning, DataError, DataTypeError, ParameterError

EMISSIONS = ["gaussian", "mixture", "categorical", "poisson"]


def begun(kind, **options):
    """A model with the start of the reference fits."""
    given = {"startprob_init": START, "transmat_init": MOVE, "covars_prior": 0.01, **options}
    if kind in COVARS:
        init = {"means": ROWS["gaussian"][[3, 15, 30]], "covars": COVARS[kind]}
        return HiddenMarkovModel(3, covariance_type=kind, emission_init=init, **given)
    if kind == "poisson":
        init = {"lambdas": [[1.0, 3.0], [5.0, 3.0], [3.0, 7.0]]}
    else:
        init = {"emissionprob": [[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]}
    return HiddenMarkovModel(3, emission=kind, emission_init=init, **given)


def learnt(model):
    names = ("means_", "covars_", "lambdas_", "emissionprob_")
    return [getattr(model, name).ravel() for name in names if hasattr(model, name)]


@pytest.mark.parametrize("kind", HMMLEARN)
def test_the_steps_are_those_of_hmmlearn(kind):
    X = ROWS.get(kind, ROWS["gaussian"])
    with ep.config(on_nonconvergence="ignore"):
        model = begun(kind, max_iter=15, tol=0).fit(X, lengths=LENGTHS)
    value, transmat, *others = HMMLEARN[kind]
    assert model.score(X, lengths=LENGTHS) == pytest.approx(value, rel=1e-10)
    assert_allclose(model.transmat_.ravel(), transmat, atol=1e-8)
    for mine, theirs in zip(learnt(model), others, strict=True):
        assert_allclose(mine, theirs, rtol=1e-8, atol=1e-8)


# ------------------------------------------------------------------------------------------------ likelihoods


def densities(model, X):
    """log p(x | state) by SciPy, entry by entry or by the marginal of what is there."""
    out = np.zeros((len(X), model.n_states))
    for i, k in itertools.product(range(len(X)), range(model.n_states)):
        there = ~np.isnan(X[i])
        x = X[i][there]
        if not there.any():
            continue
        if model.emission == "poisson":
            out[i, k] = stats.poisson.logpmf(x, model.lambdas_[k][there]).sum()
        elif model.emission == "categorical":
            first = np.concatenate([[0], np.cumsum(model.n_categories_)])[:-1]
            out[i, k] = np.log(model.emissionprob_[k, (first[there] + x).astype(int)]).sum()
        else:
            means, covars = np.atleast_2d(model.means_[k]), model.covars_
            weights = model.weights_[k] if model.emission == "mixture" else [1.0]
            parts = []
            for m, w in enumerate(weights):
                at = (k, m) if model.emission == "mixture" else (k,)
                C = covars[at[0]] if model.covariance_type == "tied" and len(at) == 2 else covars
                C = C if model.covariance_type == "tied" else covars[at]
                C = np.diag(np.broadcast_to(C, X.shape[1])) if np.ndim(C) < 2 else C
                parts.append(np.log(w) + stats.multivariate_normal.logpdf(x, means[m][there], C[np.ix_(there, there)]))
            out[i, k] = logsumexp(parts)
    return out


def all_paths(model, log_e):
    n, k = log_e.shape
    paths = np.array(list(itertools.product(range(k), repeat=n)))
    with np.errstate(divide="ignore"):
        q, A = np.log(model.startprob_), np.log(model.transmat_)
    return paths, q[paths[:, 0]] + log_e[np.arange(n), paths].sum(axis=1) + A[paths[:, :-1], paths[:, 1:]].sum(axis=1)


@pytest.mark.parametrize(
    ("emission", "covariance_type"),
    [*itertools.product(["gaussian", "mixture"], COVARS), ("categorical", "diag"), ("poisson", "diag")],
)
def test_likelihoods_paths_and_posteriors_by_enumeration(emission, covariance_type):
    X = ROWS[emission].astype(float)
    with ep.config(on_nonconvergence="ignore"):
        model = HiddenMarkovModel(
            3, emission=emission, covariance_type=covariance_type, n_mix=2, max_iter=3, random_state=1
        ).fit(X, lengths=LENGTHS)
    short = X[20:26].copy()
    short[1] = np.nan
    short[3, -1] = np.nan
    log_e = densities(model, short)
    paths, values = all_paths(model, log_e)
    assert model.score(short) == pytest.approx(logsumexp(values), rel=1e-11)
    assert model.score_samples(short).sum() == pytest.approx(logsumexp(values), rel=1e-11)
    share = np.exp(values - logsumexp(values))
    posterior = [[share[paths[:, t] == k].sum() for k in range(3)] for t in range(len(short))]
    assert_allclose(model.predict_proba(short), posterior, atol=1e-10)
    value, path = model.decode(short)
    assert value == pytest.approx(values.max(), rel=1e-11)
    assert_array_equal(path, paths[values.argmax()])
    assert_array_equal(model.set_params(algorithm="map").predict(short), np.argmax(posterior, axis=1))


def test_rows_before_explain_a_row():
    model = begun("diag").fit(ROWS["gaussian"])
    X = ROWS["gaussian"][:9]
    steps = model.score_samples(X)
    for t in range(1, 9):
        assert steps[:t].sum() == pytest.approx(model.score(X[:t]), rel=1e-12)


# ------------------------------------------------------------------------------------------------ fits


@pytest.mark.parametrize("emission", ["gaussian", "categorical", "poisson"])
def test_the_likelihood_never_falls_and_planted_chains_are_found(emission):
    truth = begun("full" if emission == "gaussian" else emission, random_state=3, max_iter=1)
    X = ROWS[emission]
    if emission == "categorical":  # states that can be told apart: every seventh code is another
        X = ((np.repeat([0, 1, 2, 0, 1], [12, 9, 14, 15, 10]) + (np.arange(60) % 7 == 0)) % 3)[:, None]
        truth.set_params(emission_init={"emissionprob": 0.05 + 0.85 * np.eye(3)})
    with ep.config(on_nonconvergence="ignore"):
        truth.fit(X, lengths=LENGTHS)
    planted, states = truth.sample(2500, random_state=4)
    model = HiddenMarkovModel(3, emission=emission, covariance_type="full", n_init=2, random_state=0, tol=1e-5)
    model.fit(planted)
    assert model.certificate_.holds
    for start in range(2):
        value = model.history_["log_likelihood"][model.history_["start"] == start]
        assert (np.diff(value) >= -1e-9 * abs(value[0])).all()
    assert model.score(planted) >= truth.score(planted)
    order = [int(np.bincount(model.predict(planted)[states == k]).argmax()) for k in range(3)]
    assert sorted(order) == [0, 1, 2]
    assert_allclose(model.transmat_[np.ix_(order, order)], truth.transmat_, atol=0.06)
    name = {"gaussian": "means_", "poisson": "lambdas_", "categorical": "emissionprob_"}[emission]
    assert_allclose(getattr(model, name)[order], getattr(truth, name), atol=0.3 if emission == "poisson" else 0.15)
    one = HiddenMarkovModel(1, emission=emission, covariance_type="full").fit(planted)
    assert model.bic(planted) < one.bic(planted)


@pytest.mark.parametrize("kind", COVARS)
def test_planted_mixtures_are_found(kind):
    rng = np.random.default_rng(0)
    states, component = np.repeat(np.arange(40) % 2, 30), rng.random(1200) < 0.3
    means = np.array([[[0.0, 0.0], [4.0, 4.0]], [[4.0, -4.0], [-4.0, -4.0]]])
    X = means[states, component.astype(int)] + 0.5 * rng.normal(size=(1200, 2))
    model = HiddenMarkovModel(2, emission="mixture", n_mix=2, covariance_type=kind, n_init=4, random_state=0).fit(X)
    path = model.predict(X)
    same = np.mean(path == states)
    assert max(same, 1 - same) > 0.98
    order = [0, 1] if same > 0.5 else [1, 0]
    for k in range(2):
        inside = np.argsort(-model.weights_[order[k]])
        assert_allclose(model.weights_[order[k]][inside], [0.7, 0.3], atol=0.05)
        assert_allclose(model.means_[order[k]][inside], means[k], atol=0.15)
    C = model.covars_.reshape(-1, 2, 2) if kind in ("full", "tied") else None
    assert_allclose(model.covars_ if C is None else np.diagonal(C, axis1=1, axis2=2), 0.25, atol=0.06)


@pytest.mark.parametrize("kind", [*COVARS, "poisson", "categorical"])
def test_acceleration_ends_at_the_same_maximum(kind):
    X = ROWS.get(kind, ROWS["gaussian"])
    plain = begun(kind, tol=1e-10).fit(X, lengths=LENGTHS)
    quick = begun(kind, tol=1e-10, accelerate=True).fit(X, lengths=LENGTHS)
    assert quick.log_likelihood_ == pytest.approx(plain.log_likelihood_, abs=1e-5)


@pytest.mark.parametrize("kind", COVARS)
def test_missing_entries_have_a_closed_form_for_one_state_and_independent_columns(kind):
    X = ROWS["gaussian"].copy()
    X[::3, 0] = np.nan
    X[5] = np.nan
    model = HiddenMarkovModel(1, covariance_type=kind, covars_prior=0, tol=1e-14, max_iter=5000).fit(X)
    if kind == "diag":
        assert_allclose(model.means_[0], np.nanmean(X, axis=0), atol=1e-5)
        assert_allclose(model.covars_[0], np.nanvar(X, axis=0), rtol=1e-5)
        return
    if kind == "spherical":
        assert_allclose(model.means_[0], np.nanmean(X, axis=0), atol=1e-5)
        assert_allclose(model.covars_[0], np.nanmean((X - np.nanmean(X, axis=0)) ** 2), rtol=1e-5)
        return
    # Monotone gaps: the column that is always there has its own moments, the other by regression (Anderson 1957)
    whole, full = X[~np.isnan(X).any(axis=1)], X[~np.isnan(X[:, 1])][:, 1]
    slope, cut = np.polyfit(whole[:, 1], whole[:, 0], 1)
    left = np.mean((whole[:, 0] - slope * whole[:, 1] - cut) ** 2)
    C = model.covars_[0] if kind == "full" else model.covars_
    assert_allclose(model.means_[0], [slope * full.mean() + cut, full.mean()], atol=1e-5)
    expected = [[left + slope**2 * full.var(), slope * full.var()], [slope * full.var(), full.var()]]
    assert_allclose(C, expected, rtol=1e-4)


def test_zeros_stay_zeros():
    move = np.array([[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.0, 0.0, 1.0]])
    X = np.concatenate([ROWS["gaussian"][:12], ROWS["gaussian"][12:21], ROWS["gaussian"][21:35]])
    model = HiddenMarkovModel(3, startprob_init=[1, 0, 0], transmat_init=move, random_state=0, n_init=5).fit(X)
    assert_array_equal(model.transmat_ == 0, move == 0)
    assert_array_equal(model.startprob_, [1, 0, 0])
    assert_array_equal(model.predict(X), np.repeat([0, 1, 2], [12, 9, 14]))
    assert model.n_parameters_ == 2 + 12
    prior = clone(model).set_params(transmat_prior=2.0).fit(X)
    assert_array_equal(prior.transmat_ == 0, move == 0)
    assert prior.transmat_[0, 1] > model.transmat_[0, 1]


# ------------------------------------------------------------------------------------------------ sequences, weights


def test_lists_lengths_and_groups_are_the_same():
    X = ROWS["gaussian"]
    model = begun("full").fit(X, lengths=LENGTHS)
    parts = [X[:25], X[25:]]
    turns = np.argsort(np.concatenate([np.arange(25) * 2, np.arange(35) * 2 + 1]), kind="stable")
    label = np.repeat(["first", "second"], LENGTHS)[turns]
    for other in (
        begun("full").fit(parts),
        begun("full").fit(X[turns], groups=label),
        begun("full").fit([pd.DataFrame(part, columns=["a", "b"]) for part in parts]),
    ):
        assert_allclose(other.means_, model.means_, rtol=1e-10)
        assert_allclose(other.transmat_, model.transmat_, atol=1e-10)
    assert model.score(parts) == pytest.approx(model.score(X[:25]) + model.score(X[25:]), rel=1e-12)
    assert_allclose(model.predict_proba(X[turns], groups=label), model.predict_proba(parts)[turns], atol=1e-12)
    assert_array_equal(model.predict(X[turns], groups=label), model.predict(X, LENGTHS)[turns])


@given(
    seed=st.integers(0, 2**20),
    emission=st.sampled_from(EMISSIONS),
    kind=st.sampled_from(list(COVARS)),
    k=st.integers(1, 4),
    gaps=st.booleans(),
)
def test_weights_are_repetitions_and_units_play_no_part(seed, emission, kind, k, gaps):
    rng = np.random.default_rng(seed)
    times = rng.integers(1, 4, 4)
    lengths = rng.integers(1, 12, 4)
    n = lengths.sum()
    X = rng.integers(0, 3, (n, 2)).astype(float) if emission in ("categorical", "poisson") else rng.normal(size=(n, 2))
    X[rng.random(X.shape) < 0.2 * gaps] = np.nan
    parts = np.split(X, np.cumsum(lengths)[:-1])
    options = {"emission": emission, "covariance_type": kind, "n_mix": 2, "max_iter": 4, "tol": 0, "random_state": seed}
    if emission == "categorical":
        options["n_categories"] = 3
    with ep.config(on_nonconvergence="ignore"):
        begin = HiddenMarkovModel(k, **{**options, "max_iter": 1}).fit(X)
        init = {
            name: getattr(begin, name + "_")
            for name in ("means", "covars", "weights", "lambdas", "emissionprob")
            if hasattr(begin, name + "_")
        }
        options |= {"startprob_init": begin.startprob_, "transmat_init": begin.transmat_, "emission_init": init}
        weighted = HiddenMarkovModel(k, **options).fit(parts, sequence_weight=times)
        repeated = HiddenMarkovModel(k, **options).fit([p for p, t in zip(parts, times, strict=True) for _ in range(t)])
    assert weighted.log_likelihood_ == pytest.approx(repeated.log_likelihood_, rel=1e-9)
    assert_allclose(weighted.transmat_, repeated.transmat_, atol=1e-8)
    P = weighted.predict_proba(parts)
    assert P.shape == (n, k)
    assert_allclose(P.sum(axis=1), 1.0, atol=1e-9)
    value = weighted.history_["log_likelihood"]
    assert (np.diff(value) >= -1e-9 * (abs(value[0]) + n)).all()
    if emission == "gaussian":
        scale = 2.0 ** rng.integers(-8, 9)
        init = {"means": 7 + scale * init["means"], "covars": scale**2 * init["covars"]}
        moved = {**options, "emission_init": init, "covars_prior": 0.01 * scale**2}
        with ep.config(on_nonconvergence="ignore"):
            other = HiddenMarkovModel(k, **moved).fit([7 + scale * p for p in parts], sequence_weight=times)
        assert_allclose(other.means_, 7 + scale * weighted.means_, rtol=1e-6, atol=1e-6 * scale)
        assert_array_equal(other.predict([7 + scale * p for p in parts]), weighted.predict(parts))


@given(
    seed=st.integers(0, 2**20),
    n=st.integers(1, 30),
    k=st.integers(1, 6),
    emission=st.sampled_from(EMISSIONS),
    kind=st.sampled_from(list(COVARS)),
    scale=st.sampled_from([1e-9, 1.0, 1e6]),
    offset=st.sampled_from([0.0, 1e5]),
    ties=st.booleans(),
    constant=st.booleans(),
    gone=st.booleans(),
)
def test_any_rows_give_finite_models(seed, n, k, emission, kind, scale, offset, ties, constant, gone):
    rng = np.random.default_rng(seed)
    whole = emission in ("categorical", "poisson")
    X = rng.integers(0, 3, (n, 2)).astype(float) if ties or whole else rng.normal(size=(n, 2))
    X = X if whole else scale * (X + offset)
    if constant:
        X[:, 0] = X[0, 0]
    X[rng.random(X.shape) < 0.3 * gone] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = HiddenMarkovModel(k, emission=emission, covariance_type=kind, n_mix=2, max_iter=30, random_state=seed)
        model.fit(X)
    assert np.isfinite(model.log_likelihood_)
    P = model.predict_proba(X)
    assert np.isfinite(P).all()
    assert set(model.predict(X)) <= set(range(k))
    value = model.history_["log_likelihood"]
    assert (np.diff(value) >= -1e-8 * (abs(value[:-1]) + n)).all()


# ------------------------------------------------------------------------------------------------ the house


def test_threads_types_files_and_seeds(tmp_path):
    rng = np.random.default_rng(0)
    X = np.concatenate([ROWS["gaussian"] + 0.1 * rng.normal(size=(60, 2)) for _ in range(90)])
    lengths = [60] * 90
    one, two = (
        HiddenMarkovModel(3, covariance_type="full", random_state=1, n_jobs=j).fit(X, lengths=lengths) for j in (1, 2)
    )
    for name in ("startprob_", "transmat_", "means_", "covars_", "log_likelihood_"):
        assert_array_equal(getattr(one, name), getattr(two, name))
    single = HiddenMarkovModel(3, random_state=1).fit(X.astype(np.float32), lengths=lengths)
    double = HiddenMarkovModel(3, random_state=1).fit(X, lengths=lengths)
    assert_allclose(single.means_, double.means_, atol=1e-4)
    one.save(tmp_path / "model.epi")
    loaded = ep.load(tmp_path / "model.epi")
    assert_array_equal(loaded.predict(X, lengths), one.predict(X, lengths))
    assert loaded.score(X, lengths=lengths) == one.score(X, lengths=lengths)
    assert_array_equal(one.sample(20, random_state=5)[0], loaded.sample(20, random_state=5)[0])
    coded = HiddenMarkovModel(2, emission="categorical", random_state=0, max_iter=300).fit(ROWS["categorical"])
    coded.save(tmp_path / "codes.epi")
    assert_array_equal(ep.load(tmp_path / "codes.epi").predict(ROWS["categorical"]), coded.predict(ROWS["categorical"]))


def test_a_fit_that_was_stopped_goes_on(tmp_path):
    X = ROWS["gaussian"]
    whole = HiddenMarkovModel(3, n_init=2, random_state=2).fit(X)
    file = tmp_path / "run.epi"
    with ep.config(on_nonconvergence="ignore"):
        clone(whole).set_callbacks(ep.Checkpoint(file), ep.TimeLimit(1e-9)).fit(X)
    second = ep.Checkpoint.resume(file).set_callbacks().fit(X)
    assert_allclose(second.means_, whole.means_, rtol=1e-8)
    assert second.log_likelihood_ == pytest.approx(whole.log_likelihood_, rel=1e-10)


def test_draws_have_the_moments_of_the_model():
    model = begun("full").fit(ROWS["gaussian"], lengths=LENGTHS)
    X, states = model.sample(20_000, random_state=0)
    share = model.get_stationary_distribution()
    assert_allclose(share @ model.transmat_, share, atol=1e-12)
    assert_allclose(np.bincount(states) / len(states), share, atol=0.05)
    for k in range(3):
        assert_allclose(X[states == k].mean(axis=0), model.means_[k], atol=0.06)
        assert_allclose(np.cov(X[states == k].T), model.covars_[k], atol=0.12)
    assert model.aic(X) == pytest.approx(2 * model.n_parameters_ - 2 * model.score(X))
    assert model.n_parameters_ == 2 + 6 + 6 + 9


def test_bad_input_is_refused_by_name():
    X = ROWS["gaussian"]
    model = begun("diag").fit(X)
    for call, error, words in (
        (lambda: model.fit(X, lengths=[10, 10]), DataError, "lengths: sum 20"),
        (lambda: model.fit(X, lengths=[30.0, 30.0]), DataTypeError, "lengths: float64"),
        (lambda: model.fit(X, [25, 35]), DataError, "y: 2 entries for 60 rows"),
        (lambda: model.score(X, [25, 35]), DataError, "y: 2 entries for 60 rows"),
        (lambda: model.fit(X, groups=[1, 2]), DataError, r"groups: shape \(2,\)"),
        (lambda: model.fit(X, groups=[1] * 60, lengths=[60]), DataError, "groups: lengths are given too"),
        (lambda: model.fit([X[:9], X[9:, :1]]), DataError, "X: a list of sequences with different numbers"),
        (lambda: model.fit(X, lengths=LENGTHS, sequence_weight=[1]), DataError, "sequence_weight: shape"),
        (lambda: model.fit(np.where(X > 2, np.inf, X)), DataError, "X contains infinity"),
        (lambda: model.fit(X * 1e200), DataError, "so large that squares overflow"),
        (lambda: HiddenMarkovModel(0).fit(X), ParameterError, "n_states=0"),
        (lambda: HiddenMarkovModel(2, transmat_init=np.eye(3)).fit(X), ParameterError, "transmat_init"),
        (lambda: HiddenMarkovModel(2, emission_init={"mean": 1}).fit(X), ParameterError, "'mean' is no parameter"),
        (lambda: HiddenMarkovModel(2, emission_init={"means": [1.0]}).fit(X), ParameterError, "means has shape"),
        (lambda: HiddenMarkovModel(2, emission="poisson").fit(X), DataError, "expected integers >= 0"),
        (lambda: HiddenMarkovModel(2, emission="categorical").fit(X), DataError, "codes of categories"),
        (
            lambda: HiddenMarkovModel(2, emission="categorical", n_categories=1).fit(ROWS["categorical"]),
            ParameterError,
            "n_categories: 1",
        ),
        (lambda: HiddenMarkovModel(1, covars_prior=0).fit(np.c_[X, np.ones(60)]), ConvergenceError, "column 2"),
    ):
        with pytest.raises(error, match=words):
            call()
    # Two equal rows take a state of their own, whose variance would be zero.
    twice = np.concatenate([X, [[50.0, 50.0], [50.0, 50.0]]])
    with pytest.raises(ConvergenceError, match=r"state \d: its covariance is singular in columns \[0, 1\]"):
        HiddenMarkovModel(4, covars_prior=0, random_state=0).fit(twice)
    coded = HiddenMarkovModel(1, emission="categorical").fit([[0], [1]])
    with pytest.raises(DataError, match="other categories than 0 to 1"):
        coded.predict([[2]])
    sure = HiddenMarkovModel(
        2,
        emission="categorical",
        startprob_init=[1, 0],
        transmat_init=np.eye(2),
        n_categories=2,
        emission_init={"emissionprob": [[1, 0], [0, 1]]},
    )
    assert sure.fit([[0], [0]]).score([[1], [1]]) == -np.inf
    with pytest.raises(DataError, match="sequence 0 has probability zero"):
        sure.predict([[1], [1]])
