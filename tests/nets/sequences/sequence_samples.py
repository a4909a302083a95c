"""Small sequences for the networks that read them."""

import numpy as np
from net_samples import Sample


def ragged(parts):
    found = np.empty(len(parts), dtype=object)
    for i, part in enumerate(parts):
        found[i] = part
    return found


def walks(n):
    """Random walks of 4 to 9 steps with two coordinates: where they go."""
    rng = np.random.default_rng(0)
    lengths, steps = rng.integers(4, 10, n), rng.normal(size=(n, 9, 2))
    X = [table[:length].cumsum(axis=0) for table, length in zip(steps, lengths, strict=True)]
    y = np.arange(n) % 3 if n <= 3 else np.array([int(x[-1, 0] > 0) + int(x[-1, 1] > 0) for x in X])
    return ragged(X), np.array(["south", "level", "north"])[y]


def series(n):
    """Series of one length and their largest value."""
    X = np.random.default_rng(1).normal(size=(n, 6, 1))
    return X, X[:, :, 0].max(axis=1)


def ones(n):
    """Whether the number of ones so far is odd."""
    X = np.random.default_rng(2).integers(0, 2, (n, 7)).astype(float)
    return X, np.where(X.cumsum(axis=1) % 2, "odd", "even")


def words(n):
    """Words of two syllables."""
    drawn = np.random.default_rng(3).choice(["ba", "be", "di", "do", "ku"], (n, 2))
    return ragged([a + b for a, b in drawn]), None


FEW = {"hidden_size": 8, "max_iter": 2, "batch_size": 100}
SAMPLES = {
    "SequenceClassifier": Sample(walks, {**FEW, "cell": "gru", "bidirectional": True}, solvers=("adamw",)),
    "SequenceRegressor": Sample(series, {**FEW, "dropout": 0.2}, solvers=("adamw",)),
    "SequenceTagger": Sample(ones, {**FEW, "cell": "rnn", "n_layers": 2}, solvers=("adamw",)),
    "CharacterModel": Sample(words, {**FEW, "window": 10, "batch_size": 50, "dropout": 0.1}, solvers=("adamw",)),
}
