"""Segmentation of drawn shapes against a threshold for each pixel; overlaps and losses against sums by hand."""

import numpy as np
import pytest
import torch
from gradient_of_module import check_module
from numpy.testing import assert_allclose, assert_array_equal
from shapes import drawn_shapes

import epicycle as ep
from epicycle import Segmenter
from epicycle.exceptions import DataError, DataTypeError
from epicycle.nets.training._batches import MiniBatch
from epicycle.nets.vision._mask_losses import dice, mask_losses
from epicycle.nets.vision._segmenter import overlap
from epicycle.optim import Multinomial

SETTINGS = {"channels": 8, "depth": 2, "max_iter": 25, "batch_size": 4, "learning_rate_init": 0.01, "random_state": 0}


@pytest.fixture(scope="module")
def shapes():
    """Of three classes: the ground, discs and rectangles, triangles."""
    X, _, masks = drawn_shapes(160, 24)
    masks = np.array([0, 1, 1, 2])[masks]
    return X[:120], masks[:120], X[120:], masks[120:]


@pytest.fixture(scope="module")
def model(shapes):
    return Segmenter(**SETTINGS).fit(*shapes[:2])


def test_shapes_are_found_where_single_pixels_cannot_say(model, shapes):
    """A tree on the brightness of the pixel and of its eight neighbours is the baseline."""
    X, y, X_new, y_new = shapes

    def neighbours(images):
        padded = np.pad(images[..., 0], ((0, 0), (1, 1), (1, 1)), mode="edge")
        parts = [padded[:, i : i + 24, j : j + 24] for i in range(3) for j in range(3)]
        return np.stack(parts, axis=-1).reshape(-1, 9)

    tree = ep.DecisionTreeClassifier(max_leaf_nodes=50).fit(neighbours(X), y.ravel())
    baseline = np.nanmean(overlap([y_new], [tree.predict(neighbours(X_new)).reshape(y_new.shape)], 3, None))
    assert model.score(X_new, y_new) > 0.75
    assert model.score(X_new, y_new) > baseline + 0.2
    shares = model.predict_proba(X_new)
    assert shares.shape == (40, 24, 24, 3)
    assert_allclose(shares.sum(axis=-1), 1, rtol=1e-5)
    assert_array_equal(model.predict(X_new), shares.argmax(axis=-1))


def test_images_of_any_size_have_the_answer_that_they_have_alone(model):
    big, _, masks = drawn_shapes(3, 37, seed=5)
    images = [big[0], big[1][:21, :30], big[2][:, :19], big[0][:21, :30]]
    found = model.predict(images)
    assert [one.shape for one in found] == [image.shape[:2] for image in images]
    for image, one in zip(images, found, strict=True):
        assert_array_equal(model.predict(image[None])[0], one)
    assert np.mean((found[0] > 0) == (masks[0] > 0)) > 0.9


def test_images_of_several_sizes_are_learnt_from(shapes):
    X, y, X_new, y_new = shapes
    cut = [(image[: 20 + i % 5], mask[: 20 + i % 5]) for i, (image, mask) in enumerate(zip(X, y, strict=True))]
    found = Segmenter(**{**SETTINGS, "max_iter": 15}).fit([a for a, _ in cut], [b for _, b in cut])
    assert found.score(X_new, y_new) > 0.6


def test_overlap_by_hand():
    truth, found = np.array([[0, 0, 1], [1, 2, -1]]), np.array([[0, 1, 1], [1, 0, 2]])
    # 0: of (0,0), (0,1), (1,1) one is right; 1: two of three; 2: none of one; the last pixel is not looked at
    assert_allclose(overlap([truth], [found], 4, None), [1 / 3, 2 / 3, 0, np.nan])
    both = overlap([truth, truth], [found, truth], 3, np.array([1.0, 2.0]))
    assert_allclose(both, [(1 + 4) / (3 + 4), (2 + 4) / (3 + 4), 2 / 3])


def test_losses_by_hand():
    rng = np.random.default_rng(0)
    scores, target = rng.normal(size=(2, 3, 4, 5)), rng.integers(-1, 3, (2, 4, 5))
    factors = np.array([1.0, 0.5, 3.0])
    batch = MiniBatch((torch.from_numpy(scores),), torch.from_numpy(target))
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    found = mask_losses("cross_entropy", Multinomial(), factors)(lambda x: x, batch)
    overlaps = dice(torch.from_numpy(scores), torch.from_numpy(target))
    for i in range(2):
        known = target[i] >= 0
        y = target[i][known]
        share = p[i][:, known]
        assert float(found[i]) == pytest.approx(np.mean(-factors[y] * np.log(share[y, np.arange(len(y))])))
        parts = [
            (2 * share[k][y == k].sum() + 1) / (share[k].sum() + (y == k).sum() + 1) for k in range(3) if (y == k).any()
        ]
        assert float(overlaps[i]) == pytest.approx(1 - np.mean(parts))
    both = mask_losses("both", Multinomial(), factors)(lambda x: x, batch)
    assert_allclose(both, found + overlaps)


@pytest.mark.parametrize("loss", ["cross_entropy", "dice", "both"])
def test_gradients(loss):
    X, _, masks = drawn_shapes(2, 13, largest=9)
    fitted = Segmenter(loss, channels=2, depth=2)
    rows = fitted._training_rows(X.astype(np.float64), masks, None)
    torch.manual_seed(0)
    assert check_module(fitted._build_module(fitted._architecture(rows)), fitted._row_losses(), rows, n_coordinates=30)


def test_rare_classes_weigh_more_and_ignored_pixels_nothing(shapes):
    X, y, _, _ = shapes
    short = {**SETTINGS, "max_iter": 3}
    balanced = Segmenter(class_weight="balanced", **short).fit(X, y)
    shares = np.bincount(y.ravel()) / y.size
    assert_allclose(balanced.class_weight_, 1 / (3 * shares))
    plain = Segmenter(**short).fit(X, y)
    assert (balanced.predict(X) > 0).mean() > (plain.predict(X) > 0).mean()
    spoilt = y.copy()
    spoilt[:, :3] = 9
    unseen = Segmenter(ignore_label=9, **short).fit(X, spoilt)
    assert unseen.classes_.tolist() == [0, 1, 2]
    assert unseen.score(X, spoilt) == pytest.approx(
        np.nanmean(overlap(list(y[:, 3:]), list(unseen.predict(X)[:, 3:]), 3, None))
    )


def test_weights_threads_mirrors_and_early_stopping(shapes):
    X, y, X_new, y_new = shapes
    short = {**SETTINGS, "max_iter": 2, "flip": True}
    fits = []
    for threads in (1, 2):
        with ep.config(n_jobs=threads):
            fits.append(Segmenter(**short).fit(X[:40], y[:40], sample_weight=np.r_[np.ones(30), np.zeros(10)]))
    assert all(np.array_equal(a, b) for a, b in zip(*(f._weights_.values() for f in fits), strict=True))
    alone = Segmenter(**short).fit(X[:30], y[:30])
    assert_allclose(alone.predict_proba(X[:5]), fits[0].predict_proba(X[:5]), atol=1e-5)
    held = Segmenter(early_stopping=True, **short).fit(X, y)
    assert "validation_score" in held.history_.columns
    weighted = alone.score(X_new[:3], y_new[:3], sample_weight=[1, 2, 0])
    assert weighted == pytest.approx(alone.score(X_new[[0, 1, 1]], y_new[[0, 1, 1]]))


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        (lambda X, y: (X, y[:3]), DataError, "mask for each of the 4 images; got 3"),
        (lambda X, y: (X, y[:, :5]), DataError, r"y\[0\]: the mask has shape \(5, 12\), and its image \(12, 12\)"),
        (lambda X, y: (X, y * 0), DataError, "one class"),
        (lambda X, y: (X * np.nan, y), DataError, "NaN"),
        (lambda X, y: (X[0, :, 0], y), DataError, "expects images"),
        (lambda X, y: ([X[0], X[1][..., [0, 0]], X[2], X[3]], y), DataError, r"\[1, 2\] channels"),
        (lambda X, y: ([X[0], X[1, 0, 0], X[2], X[3]], y), DataTypeError, "expects arrays of shape"),
        (lambda X, y: (X, y + 0.5), DataError, "continuous"),
    ],
)
def test_bad_data_is_named(change, error, match):
    X, _, masks = drawn_shapes(4, 12, largest=8)
    with pytest.raises(error, match=match):
        Segmenter(max_iter=1, depth=1, channels=1).fit(*change(X, masks))


def test_other_channels_and_unknown_classes_are_refused(model):
    with pytest.raises(DataError, match="2 channels; Segmenter was fitted to 1"):
        model.predict(np.zeros((1, 8, 8, 2)))
    with pytest.raises(DataError, match="holds the class 7"):
        model.score(np.zeros((1, 8, 8)), np.full((1, 8, 8), 7))
