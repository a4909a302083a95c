"""What all generative networks share: rows of any form in, and out in the same form; labels, draws, pictures."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from gaussian_toy import NormalToy
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

import epicycle as ep
from epicycle.exceptions import ConvergenceError, DataError, NotFittedError, ParameterError, ParameterTypeError
from epicycle.generative._scale import scale_of
from epicycle.nets.training._batches import ArrayRows
from epicycle.nets.training._optimizers import make_optimizer, set_rates

LABELS = np.array(["left", "right"])


def table(n=400):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    return np.column_stack([3 + 2 * rng.normal(size=n) + 8 * y, 10 + 0.1 * rng.normal(size=n)]), LABELS[y]


def toy(**options):
    return NormalToy(**{"max_iter": 30, "batch_size": 100, "random_state": 0, **options})


def test_the_density_is_that_of_the_normal_distribution():
    X, _ = table()
    model = toy(max_iter=150).fit(X)
    expected = norm.logpdf(X, X.mean(axis=0), X.std(axis=0)).sum(axis=1)
    assert_allclose(model.score_samples(X), expected, atol=0.05)
    assert model.score(X) == pytest.approx(expected.mean(), abs=1e-3)
    assert model.score_samples(X).dtype == np.float64


def test_a_conditional_density_is_a_mixture_over_the_classes():
    X, y = table()
    model = toy(conditional=True, max_iter=150).fit(X, y)
    assert_array_equal(model.classes_, LABELS)
    assert_allclose(model.class_prior_, [np.mean(y == c) for c in LABELS])
    given = [model.score_samples(X, c) for c in LABELS]
    assert_allclose(model.score_samples(X), np.logaddexp(*(given + np.log(model.class_prior_)[:, None])), rtol=1e-12)
    assert_array_equal(model.score_samples(X, y), np.where(y == "left", given[0], given[1]))
    right = model.sample(500, random_state=0, y="right")
    assert right[:, 0].mean() == pytest.approx(X[y == "right", 0].mean(), abs=0.5)
    drawn = model.sample(4, random_state=0, y=["left", "right", "right", "left"])
    assert_array_equal(drawn[:, 0] > 7, [False, True, True, False])
    shares = model.sample(3000, random_state=1)[:, 0] > 7
    assert shares.mean() == pytest.approx(model.class_prior_[1], abs=0.05)


def test_rows_of_weight_two_count_twice():
    X, _ = table(60)
    v = np.arange(60) % 3
    weighted = toy(max_iter=200, batch_size=1000).fit(X, sample_weight=v)
    repeated = toy(max_iter=200, batch_size=1000).fit(np.repeat(X, v, axis=0))
    assert_allclose(weighted.score_samples(X), repeated.score_samples(X), atol=1e-6)


@pytest.mark.parametrize(
    "given",
    [
        lambda X: X,
        lambda X: X.astype(np.float32),
        lambda X: X.astype(np.int16),
        lambda X: X.tolist(),
        lambda X: pd.DataFrame(X, columns=["a", "b"]),
        lambda X: pl.DataFrame({"a": X[:, 0].astype(int), "b": X[:, 1] > 10}),
    ],
)
def test_samples_have_the_form_of_the_data(given):
    X = given(table(50)[0])
    drawn = toy(max_iter=2).fit(X).sample(7, random_state=0)
    if hasattr(X, "columns"):
        assert type(drawn) is type(X)
        assert list(drawn.columns) == list(X.columns)
        assert list(drawn.dtypes) == list(X.dtypes)
    else:
        assert drawn.dtype == np.asarray(X).dtype
    assert drawn.shape == (7, 2)


@pytest.mark.parametrize("shape", [(6, 5), (6, 5, 1), (6, 5, 3)])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_images_of_any_size(shape, dtype):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 255, (80, *shape)).astype(dtype)
    model = toy(max_iter=3).fit(X)
    drawn = model.sample(4, random_state=0)
    assert drawn.shape == (4, *shape)
    assert drawn.dtype == dtype
    assert model.row_shape_ == list(shape)
    assert model.score_samples(X).shape == (80,)
    assert model.latent_traversal(n_steps=5).shape == (10, 5, *shape)
    assert model.plot_samples(n=5, X=X).axes
    assert model.plot_latent_traversal([0, 3], n_steps=4).axes
    with pytest.raises(DataError, match="was fitted to"):
        model.score_samples(X[:, :-1])


def test_samples_follow_from_the_seed_and_not_from_the_threads():
    model = toy(max_iter=2).fit(table()[0])
    with ep.config(n_jobs=1):
        one = model.sample(3000, random_state=5)
    with ep.config(n_jobs=4):
        assert_array_equal(model.sample(3000, random_state=5), one)
    assert not np.array_equal(model.sample(3000, random_state=6), one)
    assert len(np.unique(one[:, 0])) == 3000  # blocks draw from streams of their own


def test_draws_that_are_not_finite_are_refused():
    X, _ = table(60)
    model = toy(max_iter=2).fit(X)
    with torch.no_grad():
        for weights in model.module_.parameters():
            weights.fill_(1e30)  # finite, as those of a fit whose steps were too long
    with pytest.raises(ConvergenceError, match=r"drew 5 of 5 rows with values that are not finite.*learning_rate_init"):
        model.sample(5, random_state=0)


def test_decoding_and_lines_between_codes():
    X, _ = table()
    model = toy(max_iter=5).fit(X)
    line = model.interpolate([0.0, 0.0], [1.0, -1.0], n_steps=3)
    assert_allclose(line, model.decode([[0, 0], [0.5, -0.5], [1, -1]]), rtol=1e-6)
    grid = model.latent_traversal([1], n_steps=3, extent=2.0, around=[0.5, 9.0])
    assert_allclose(grid[0], model.decode([[0.5, -2], [0.5, 0], [0.5, 2]]), rtol=1e-6)
    assert model.plot_latent_traversal().axes[0].get_xlabel() == "$z_{0}$"
    assert model.plot_samples(50, X=X).axes


def test_rows_of_files_are_those_of_memory(tmp_path):
    X, y = table()
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=y)
    frame.to_parquet(tmp_path / "t.parquet")
    for conditional, target in ((False, None), (True, "y")):
        scan = ep.scan(tmp_path / "t.parquet", target=target, columns=["a", "b"])
        model = toy(conditional=conditional, max_iter=100)
        in_files, in_memory = model.fit(scan).score(frame[["a", "b"]], y), model.fit(X, y).score(X, y)
        assert in_files == pytest.approx(in_memory, abs=0.01)


@pytest.mark.parametrize("weighted", [False, True])
def test_scales_of_columns_and_channels(weighted):
    rng = np.random.default_rng(0)
    v = rng.integers(1, 4, 30).astype(float) if weighted else None
    X = rng.normal(1e4, [1.0, 2.0, 0.0], (30, 3))
    mean, deviation = scale_of(ArrayRows((X,), None, v))
    expected = np.repeat(X, v.astype(int), axis=0) if weighted else X
    assert_allclose(mean, expected.mean(axis=0))
    assert_allclose(deviation, [*expected.std(axis=0)[:2], 1.0])
    images = rng.integers(0, 255, (30, 4, 5, 2), dtype=np.uint8)
    mean, deviation = scale_of(ArrayRows((images,), None, None, dtype=np.float32))
    assert_allclose(mean, images.mean(axis=(0, 1, 2)))
    assert_allclose(deviation, images.std(axis=(0, 1, 2)))


def test_held_out_rows_stop_a_fit_in_the_same_bits():
    X, _ = table()
    fits = [toy(early_stopping=True, n_iter_no_change=3, max_iter=200).fit(X) for _ in range(2)]
    assert fits[0].history_.n_iter < 200
    assert_array_equal(fits[0].history_["validation_loss"], fits[1].history_["validation_loss"])


def test_what_is_refused():
    X, y = table(50)
    with pytest.raises(DataError, match="y"):
        toy(conditional=True).fit(X)
    with pytest.raises(DataError, match="requires y"):
        toy(conditional=True).fit(np.zeros((5, 4, 4)))
    with pytest.raises(DataError, match="NaN"):
        toy().fit(np.where(np.arange(100).reshape(50, 2) == 7, np.nan, X))
    with pytest.raises(DataError, match="NaN"):
        toy().fit(np.full((5, 4, 4), np.nan))
    with pytest.raises(NotFittedError, match="NormalToy"):
        toy().sample()
    model = toy(max_iter=2).fit(X)
    for n in (0, -3):
        with pytest.raises(ParameterError, match=f"n={n}"):
            model.sample(n)
    with pytest.raises(ParameterTypeError, match=r"n=2\.5"):
        model.sample(2.5)
    with pytest.raises(DataError, match="fitted without labels"):
        model.sample(3, y="left")
    with pytest.raises(DataError, match="2 features"):
        model.score_samples(X[:, :1])
    with pytest.raises(DataError, match=r"Z: expected an array of shape \(n, 2\)"):
        model.decode(np.zeros((3, 5)))
    with pytest.raises(ParameterError, match="dimensions"):
        model.latent_traversal([2])
    named = toy(conditional=True, max_iter=2).fit(X, y)
    with pytest.raises(DataError, match="'up'; expected one of"):
        named.sample(3, y="up")
    with pytest.raises(DataError, match="conditional"):
        named.decode(np.zeros((3, 2)))


class TakingTurns(NormalToy):
    """Steps move the locations and the spreads by turns, the spreads at a tenth of the rate."""

    def _training_options(self, rows):
        return replace(super()._training_options(rows), rates=(("spread", 0.1),))

    def _own_gradients(self, module, rows):
        losses = self._row_losses()

        class Turns:
            def __call__(self, batch, step):
                loss = losses(module, batch).mean()
                part = module.location if step % 2 == 0 else module.spread
                module.location.grad = module.spread.grad = None
                (part.grad,) = torch.autograd.grad(loss, [part])
                seen.append([module.location.detach().clone(), module.spread.detach().clone()])
                return loss.detach()

            def columns(self):
                return {"steps_made": float(len(seen))}

        seen = self._seen_ = []
        return Turns()


def test_two_players_take_turns_at_rates_of_their_own():
    model = TakingTurns(max_iter=1, batch_size=100, random_state=0, solver="sgd", learning_rate="constant")
    model.fit(table()[0])
    assert model.history_["steps_made"][-1] == 4
    moved = [[not torch.equal(a, b) for a, b in zip(*pair, strict=True)] for pair in pairwise(model._seen_)]
    assert moved == [[True, False], [False, True], [True, False]]
    options = replace(model._training_options(None), weight_decay=0.1)
    optimizer = make_optimizer(model.module_, options)
    set_rates(optimizer, 0.5, 0.25)
    found = {id(p): (g["lr"], g["weight_decay"]) for g in optimizer.param_groups for p in g["params"]}
    assert found[id(model.module_.spread)] == (0.05, 0.25)
    assert found[id(model.module_.location)] == (0.5, 0.25)


def test_densities_that_overflow_are_refused():
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = ep.NormalizingFlow(max_iter=2, random_state=0).fit(X)
    with pytest.raises(ConvergenceError, match="3 of 4 rows is not finite: the rows are far beyond"):
        model.score_samples(np.vstack([X[:1], 1e200 * X[:3]]))
