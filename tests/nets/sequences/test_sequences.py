"""Networks that read sequences: against cells in NumPy, numerical gradients, baselines that cannot see order."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from gradient_of_module import check_module
from numpy.testing import assert_allclose, assert_array_equal
from sequence_samples import ragged, walks
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import cross_val_score

import epicycle as ep
from epicycle import SequenceClassifier, SequenceRegressor, SequenceTagger
from epicycle.exceptions import DataError, DataTypeError, ParameterError
from epicycle.nets.sequences._module import RecurrentNet
from epicycle.nets.training import _options
from epicycle.nets.training._batches import SequenceRows

SIZES = {"hidden_size": 5, "n_layers": 1, "bidirectional": False, "dropout": 0.0, "n_outputs": 3, "pooling": "last"}
NUMBERS = {**SIZES, "mean": [0.5, 0.0], "deviation": [2.0, 1.0]}


def network(cell="lstm", **changes):
    torch.manual_seed(0)
    net = RecurrentNet({**NUMBERS, "cell": cell, **changes})
    with torch.no_grad():  # biases and the last layer start at zero, which would hide them
        for weight in net.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return net.double().eval()


def padded(sequences, filler=0.0):
    lengths = torch.tensor([len(x) for x in sequences])
    table = torch.full((len(sequences), int(lengths.max()), sequences[0].shape[1]), filler, dtype=torch.float64)
    for row, x in zip(table, sequences, strict=True):
        row[: len(x)] = torch.from_numpy(x)
    return table, lengths


def sigmoid(u):
    return 1 / (1 + np.exp(-u))


def cell_by_hand(cell, layer, x, suffix=""):
    """The states after each step, by the formulas of the module's docstring."""
    names = (f"{name}_l0{suffix}" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    W, U, b, c = (getattr(layer, name).detach().numpy() for name in names)
    h, memory, states = np.zeros(U.shape[1]), np.zeros(U.shape[1]), []
    for step in x:
        a, r = W @ step + b, U @ h + c
        if cell == "rnn":
            h = np.tanh(a + r)
        elif cell == "gru":
            (ar, az, an), (rr, rz, rn) = np.split(a, 3), np.split(r, 3)
            reset, z = sigmoid(ar + rr), sigmoid(az + rz)
            h = (1 - z) * np.tanh(an + reset * rn) + z * h
        else:
            i, f, g, o = np.split(a + r, 4)
            memory = sigmoid(f) * memory + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(memory)
        states.append(h)
    return np.array(states)


@pytest.fixture(scope="module")
def some():
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n, 2)) for n in (4, 1, 7, 3)]


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_cells_are_those_of_the_formulas(cell, some):
    net = network(cell, pooling=None)
    found = net(*padded(some)).detach().numpy()
    for x, z in zip(some, found, strict=True):
        states = cell_by_hand(cell, net.recurrent.layers[0], (x - [0.5, 0]) / [2, 1])
        expected = states @ net.last.weight.detach().numpy().T + net.last.bias.detach().numpy()
        assert_allclose(z[: len(x)], expected, rtol=1e-5, atol=1e-7)  # the scale of the features is a float32


def test_two_directions_are_two_passes_one_of_them_reversed(some):
    net = network("gru", bidirectional=True, pooling=None)
    states = net.recurrent(net.first(padded(some)[0]), padded(some)[1]).detach().numpy()
    last = network("gru", bidirectional=True, pooling="last")
    first, lengths = padded(some)
    z = last(first, lengths).detach().numpy()
    for i, x in enumerate(some):
        layer = net.recurrent.layers[0]
        u = (x - [0.5, 0]) / [2, 1]
        forward = cell_by_hand("gru", layer, u)
        backward = cell_by_hand("gru", layer, u[::-1], "_reverse")[::-1]
        assert_allclose(states[i, : len(x)], np.hstack([forward, backward]), rtol=1e-5, atol=1e-7)
        read = np.r_[forward[-1], backward[0]]
        expected = last.last.weight.detach().numpy() @ read + last.last.bias.detach().numpy()
        assert_allclose(z[i], expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("pooling", ["last", "mean", "max", None])
def test_padding_changes_nothing(pooling, some):
    net = network("lstm", n_layers=2, bidirectional=True, pooling=pooling)
    together = net(*padded(some, filler=7.0)).detach()
    for x, z in zip(some, together, strict=True):
        alone = net(*padded([x])).detach()[0]
        assert_allclose(z[: len(alone)] if pooling is None else z, alone, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("cell", "pooling"), [("rnn", "last"), ("lstm", "mean"), ("gru", "max")])
def test_gradients_of_whole_sequences(cell, pooling, some):
    model = SequenceClassifier(cell)
    model.classes_ = np.arange(3)
    rows = SequenceRows(some, np.array([0, 1, 2, 1]))
    net = network(cell, n_layers=2, bidirectional=True, pooling=pooling)
    assert check_module(net, model._row_losses(), rows, n_coordinates=15)


def test_gradients_of_steps_and_of_texts(some):
    tagger, regressor = SequenceTagger(), SequenceRegressor(per_step=True)
    tagger.architecture_ = regressor.architecture_ = {"mean_length": 3.0}
    labels = [np.arange(len(x)) % 3 for x in some]
    assert check_module(network(pooling=None), tagger._row_losses(), SequenceRows(some, labels), n_coordinates=12)
    scaled = network(pooling=None, target_mean=[1.0, 0.0, 2.0], target_deviation=[3.0, 1.0, 2.0])
    targets = [np.tile(x, 2)[:, :3] for x in some]
    assert check_module(scaled, regressor._row_losses(), SequenceRows(some, targets), n_coordinates=12)
    torch.manual_seed(0)
    texts = RecurrentNet({**SIZES, "cell": "gru", "n_tokens": 4, "embedding_size": 3})
    classifier = SequenceClassifier()
    classifier.classes_ = np.arange(3)
    rows = SequenceRows([np.array([3, 4, 6]), np.array([5]), np.array([1, 3])], np.array([0, 1, 2]))
    assert check_module(texts, classifier._row_losses(), rows, n_coordinates=15)


# --------------------------------------------------------------------------------------------- learning


def first_of_many(n, longest=30):
    """Noise of 10 to `longest` steps; the class is the sign of the first one."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(length, 1)) for length in rng.integers(10, longest + 1, n)]
    for x in X:
        x[0] = np.sign(x[0]) * (1 + abs(x[0]))
    return X, np.array(["minus", "plus"])[[int(x[0, 0] > 0) for x in X]]


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_the_first_step_is_remembered_to_the_end(cell):
    X, y = first_of_many(700)
    model = SequenceClassifier(cell, hidden_size=24, max_iter=25, learning_rate_init=0.01, random_state=0)
    assert model.fit(X[:500], y[:500]).score(X[500:], y[500:]) > 0.95
    means = np.array([[x.mean(), x.std(), x[-1, 0]] for x in X])  # what does not know the order
    assert ep.LogisticRegression().fit(means[:500], y[:500]).score(means[500:], y[500:]) < 0.75


def test_the_order_of_words_counts():
    rng = np.random.default_rng(0)
    fillers = np.array(["the", "cat", "dog", "sees", "and", "then", "runs"])
    X, y = [], []
    for _ in range(500):
        said = ["not", "good"] if rng.random() < 0.5 else ["good", "not"]
        X.append(" ".join([*rng.choice(fillers, rng.integers(1, 4)), *said, *rng.choice(fillers, rng.integers(1, 4))]))
        y.append("bad" if said[0] == "not" else "fine")
    model = SequenceClassifier("gru", hidden_size=16, embedding_size=8, max_iter=15, random_state=0)
    model.set_params(learning_rate_init=0.02).fit(X[:350], y[:350])
    assert model.score(X[350:], y[350:]) > 0.97
    bag = CountVectorizer().fit(X)
    counts = ep.LogisticRegression(max_iter=1000).fit(bag.transform(X[:350]), y[:350])
    assert counts.score(bag.transform(X[350:]), y[350:]) < 0.65
    assert "good" in model.vocabulary_
    tokens = [text.split() for text in X[350:]]
    assert_array_equal(model.predict(tokens), model.predict(X[350:]))  # lists of tokens are texts that were cut
    assert_array_equal(model.predict(pd.Series(X[350:])), model.predict(pl.DataFrame({"text": X[350:]})))
    assert np.isfinite(model.predict_proba(["utterly unheard of"])).all()


def adding(n, length=12):
    """Hochreiter's task: the sum of the two numbers that are marked."""
    rng = np.random.default_rng(0)
    X = np.zeros((n, length, 2))
    X[:, :, 0] = rng.random((n, length))
    for row in X:
        row[rng.choice(length, 2, replace=False), 1] = 1
    return X, 100 + 10 * (X[:, :, 0] * X[:, :, 1]).sum(axis=1)


def test_marked_numbers_are_added():
    X, y = adding(1100)
    settings = {"hidden_size": 32, "max_iter": 30, "learning_rate_init": 0.01, "random_state": 0}
    model = SequenceRegressor("gru", learning_rate="cosine", **settings).fit(X[:800], y[:800])
    linear = ep.Ridge().fit(X[:800].reshape(800, -1), y[:800])
    assert model.score(X[800:], y[800:]) > 0.95
    assert linear.score(X[800:].reshape(300, -1), y[800:]) < 0.5


def test_what_comes_next_needs_the_other_direction():
    rng = np.random.default_rng(0)
    X = [rng.integers(0, 3, n) for n in rng.integers(2, 10, 400)]
    y = [np.array(list("abc"))[np.r_[x[1:], 0]] for x in X]
    settings = {"hidden_size": 16, "max_iter": 12, "learning_rate_init": 0.02, "random_state": 0}
    both = SequenceTagger("gru", bidirectional=True, **settings).fit(X[:300], y[:300])
    one = SequenceTagger("gru", **settings).fit(X[:300], y[:300])
    assert both.score(X[300:], y[300:]) > 0.97
    assert one.score(X[300:], y[300:]) < 0.65
    found = both.predict(X[300:])
    right = np.mean(np.concatenate(found) == np.concatenate(y[300:]))
    assert both.score(X[300:], y[300:]) == pytest.approx(right)
    for x, p in zip(X[300:], both.predict_proba(X[300:]), strict=True):
        assert p.shape == (len(x), 3)
        assert_allclose(p.sum(axis=1), 1)


def test_a_number_for_each_step():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 1)) for n in rng.integers(3, 12, 400)]
    y = [5 + 3 * np.maximum.accumulate(x[:, 0]) for x in X]
    model = SequenceRegressor("gru", per_step=True, hidden_size=24, max_iter=15, learning_rate_init=0.01)
    model.set_params(random_state=0).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > 0.95
    now = ep.LinearRegression().fit(np.concatenate(X[:300]), np.concatenate(y[:300]))
    assert now.score(np.concatenate(X[300:]), np.concatenate(y[300:])) < 0.8
    assert [len(p) for p in model.predict(X[300:])] == [len(x) for x in X[300:]]
    table = np.array([x[:3] for x in X[300:]])
    assert model.predict(table).shape == (100, 3)
    assert_allclose(model.predict(table), np.array(model.predict(list(table))), rtol=1e-6)


# --------------------------------------------------------------------------------------------- scikit-learn's rules


def test_shapes_of_the_same_sequences_are_one():
    X, y = adding(120, 5)
    short = {"max_iter": 2, "hidden_size": 4, "random_state": 0}
    found = [SequenceRegressor(**short).fit(Z, y).predict(Z) for Z in (X, list(X), ragged(list(X)), X.astype("f4"))]
    for other in found[1:]:
        assert_allclose(other, found[0], rtol=1e-5)
    two = SequenceRegressor(**short).fit(X, np.column_stack([y, -y]))
    assert two.predict(X).shape == (120, 2)
    one = [SequenceRegressor(**short).fit(Z, y).predict(Z) for Z in (X[:, :, 0], X[:, :, :1], list(X[:, :, 0]))]
    assert_array_equal(one[1], one[0])
    assert_array_equal(one[2], one[0])


def test_sequences_of_weight_zero_are_not_there():
    X, y = walks(90)
    v = np.r_[np.ones(60), np.zeros(30)]
    short = SequenceClassifier(max_iter=3, hidden_size=6, random_state=0)
    found = clone(short).fit(X, y, sample_weight=v).predict_proba(X)
    assert_allclose(found, clone(short).fit(X[:60], y[:60]).predict_proba(X), atol=1e-5)
    texts = ["yes sir", "no sir"] * 20
    model = clone(short).fit([*texts, "unseen"], [*["y", "n"] * 20, "z"], sample_weight=[*[1.0] * 40, 0.0])
    assert model.vocabulary_ == ["no", "sir", "yes"]
    assert model.classes_.tolist() == ["n", "y"]


def test_cross_validation_and_early_stopping():
    X, y = walks(150)
    model = SequenceClassifier("gru", hidden_size=8, max_iter=15, learning_rate_init=0.02, random_state=0)
    assert cross_val_score(model, list(X), y, cv=3).mean() > 0.7
    stopped = clone(model).set_params(early_stopping=True, max_iter=40).fit(X, y)
    assert "validation_score" in stopped.history_
    assert "errors" in stopped.certificate_.meaning or stopped.certificate_.meaning
    table = np.random.default_rng(0).integers(0, 2, (100, 6)).astype(float)
    tagger = SequenceTagger("gru", hidden_size=8, early_stopping=True, max_iter=15, random_state=0)
    tagger.fit(table, table, sample_weight=np.arange(100) % 2)
    held = tagger.history_["validation_score"]
    assert held[-1] > 0.9
    per_step = SequenceRegressor("gru", per_step=True, hidden_size=8, early_stopping=True, max_iter=3, random_state=0)
    assert np.isfinite(per_step.fit(table, table).history_["validation_loss"]).all()


@pytest.mark.parametrize("model", [SequenceClassifier("gru", bidirectional=True), SequenceTagger()])
def test_the_same_bits_for_any_number_of_threads(model, monkeypatch):
    monkeypatch.setattr(_options, "_LARGE_STEP", 1.0)  # so that these small batches have four parts
    X, y = walks(70)
    if isinstance(model, SequenceTagger):
        y = [np.sign(x[:, 0]).astype(int) for x in X]
    model = clone(model).set_params(max_iter=2, hidden_size=8, dropout=0.3, n_layers=2, random_state=0)
    fits = []
    for threads in (1, 2):
        with ep.config(n_jobs=threads):
            fits.append(clone(model).fit(X, y))
    for a, b in zip(*(fit._weights_.values() for fit in fits), strict=True):
        assert_array_equal(a, b)


class Dies:
    """Ends the process, as far as the fit can see, after so many iterations."""

    def __init__(self, n):
        self.n = n

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        if fitted_estimator is not None and fitted_estimator.n_iter_ >= self.n:
            raise KeyboardInterrupt

    def teardown(self, estimator, context):
        pass


def test_a_fit_that_was_cut_off_ends_in_the_same_bits(tmp_path):
    texts = ["ab ba ab", "ba ab", "ab ab ab ba", "ba ba"] * 15
    y = ["x", "y", "x", "y"] * 15
    model = SequenceClassifier("lstm", hidden_size=6, dropout=0.2, n_layers=2, max_iter=6, average=0.9, random_state=0)
    whole = clone(model).fit(texts, y)
    for n in (1, 3, 5):
        file = tmp_path / f"{n}.epi"
        with pytest.raises(KeyboardInterrupt):
            clone(model).set_callbacks(ep.Checkpoint(file), Dies(n)).fit(texts, y)
        resumed = ep.Checkpoint.resume(file).fit(texts, y)
        for a, b in zip(whole._weights_.values(), resumed._weights_.values(), strict=True):
            assert_array_equal(a, b)
        assert_array_equal(whole.history_.objective, resumed.history_.objective)


# --------------------------------------------------------------------------------------------- bad input

Y = ["a", "b"]


@pytest.mark.parametrize(
    ("X", "y", "error", "match"),
    [
        ([np.zeros((3, 2)), np.zeros((0, 2))], Y, DataError, "sequence 1 is empty"),
        ([np.zeros((3, 2)), np.zeros((3, 4))], Y, DataError, "sequence 1 has 4 features; expected 2"),
        ([np.zeros((3, 2)), np.full((3, 2), np.nan)], Y, DataError, "NaN or infinity: sequence 1, step 0"),
        ([np.zeros((3, 2)), np.full((3, 2), 1e200)], Y, DataError, "too large for float32: sequence 1"),
        ([np.zeros((3, 2)), "text"], Y, DataTypeError, "sequence 1 has str"),
        ([np.zeros((3, 2)), np.zeros((1, 3, 2))], Y, DataError, r"sequence 1 has the shape \(1, 3, 2\)"),
        (np.zeros((2, 3, 4, 5)), Y, DataError, r"shape \(2, 3, 4, 5\)"),
        (np.zeros((2, 3, 2), dtype=complex), Y, DataTypeError, "complex128"),
        ([], [], DataError, "0 sample"),
        (None, Y, DataTypeError, "NoneType"),
        ("one text", Y, DataTypeError, "put a single text into a list"),
        (["text", 3], Y, DataTypeError, r"entry 1 is 3 \(int\)"),
        (["text", ["a", 3]], Y, DataTypeError, r"a list with 3 \(int\)"),
        (["text", "  "], Y, DataError, r"entry 1 is empty \('  '\)"),
        ([b"text", b"other"], Y, DataTypeError, "bytes"),
        (pd.DataFrame({"a": ["x", "y"], "b": ["x", "y"]}), Y, DataTypeError, "frame of 2 columns"),
        (["one", "two"], ["a", "a"], DataError, "one class"),
        (["one", "two"], ["a"], DataError, "inconsistent numbers of samples"),
        (["one", "two"], None, DataError, "requires y"),
    ],
)
def test_what_is_no_sequences_is_refused(X, y, error, match):
    with pytest.raises(error, match=match):
        SequenceClassifier().fit(X, y)


def test_what_does_not_fit_to_the_fit_is_refused():
    short = {"max_iter": 1, "hidden_size": 2}
    texts = SequenceClassifier(**short).fit(["one", "two"] * 4, Y * 4)
    tables = SequenceClassifier(**short).fit([np.ones((2, 3)), np.zeros((1, 3))] * 4, Y * 4)
    with pytest.raises(DataTypeError, match="sequences of numbers; SequenceClassifier was fitted to texts"):
        texts.predict([np.ones((2, 3))])
    with pytest.raises(DataTypeError, match="texts; SequenceClassifier was fitted to sequences of numbers"):
        tables.predict(["one"])
    with pytest.raises(DataError, match="has 2 features; expected 3"):
        tables.predict([np.ones((2, 2))])
    with pytest.raises(DataError, match="min_df"):
        SequenceClassifier(min_df=5).fit(["one", "two"], Y)
    with pytest.raises(ParameterError, match="cell"):
        SequenceClassifier("transformer").fit(["one", "two"], Y)
    with pytest.raises(ParameterError, match="no ONNX form"):
        texts.to_onnx("model.onnx", ["one"])


@pytest.mark.parametrize(
    ("y", "error", "match"),
    [
        ([[0, 1, 0], [0]], DataError, "1 values for sequence 1; SequenceTagger expects one for each of its 2 steps"),
        ([[0, 1, 0], 1], DataError, "one value for sequence 1"),
        ([[0, 1, 0]], DataError, "inconsistent numbers"),
        ([[0, 1, 0], [0, 0.5]], DataError, "Unknown label type"),
        ([[0, 1, 0], ["a", "b"]], DataTypeError, "both strings and other"),
        ([[0, 0, 0], [0, 0]], DataError, "one class"),
        ("text", DataTypeError, "got str"),
    ],
)
def test_labels_that_are_not_one_for_each_step_are_refused(y, error, match):
    with pytest.raises(error, match=match):
        SequenceTagger().fit([np.ones((3, 1)), np.ones((2, 1))], y)


def test_targets_that_are_no_numbers_are_refused():
    X = [np.ones((3, 1)), np.ones((2, 1))]
    with pytest.raises(DataError, match="too large for float32"):
        SequenceRegressor().fit(X, [1e30, 0.0])
    with pytest.raises(DataError, match="sequence 1 have the shape"):
        SequenceRegressor(per_step=True).fit(X, [np.ones(3), np.ones((2, 2))])
    with pytest.raises(DataError, match="NaN, infinity"):
        SequenceRegressor(per_step=True).fit(X, [np.ones(3), np.full(2, np.nan)])
