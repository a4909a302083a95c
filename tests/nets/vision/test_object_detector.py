"""Detection of drawn shapes; suppression against a loop, average precision against numbers worked out by hand."""

import numpy as np
import pytest
import torch
from gradient_of_module import check_module
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from shapes import drawn_shapes

import epicycle as ep
from epicycle import ObjectDetector
from epicycle.exceptions import DataError, DataTypeError, ParameterError
from epicycle.nets import Detections
from epicycle.nets.vision._boxes import (
    average_precision,
    average_precisions,
    intersection_over_union,
    matched,
    non_max_suppression,
)
from epicycle.nets.vision._heat_maps import Boxes, decoded

SETTINGS = {"channels": 8, "depth": 3, "max_iter": 40, "batch_size": 8, "learning_rate_init": 0.02, "random_state": 0}


@pytest.fixture(scope="module")
def shapes():
    X, targets, _ = drawn_shapes(240, 32)
    return X[:200], targets[:200], X[200:], targets[200:]


@pytest.fixture(scope="module")
def model(shapes):
    return ObjectDetector(**SETTINGS).fit(*shapes[:2])


def brute_force_suppression(boxes, scores, labels, threshold):
    kept = []
    for i in sorted(range(len(boxes)), key=lambda i: -scores[i]):
        covered = False
        for j in kept:
            width = min(boxes[i][2], boxes[j][2]) - max(boxes[i][0], boxes[j][0])
            height = min(boxes[i][3], boxes[j][3]) - max(boxes[i][1], boxes[j][1])
            both = max(width, 0) * max(height, 0)
            areas = [(b[2] - b[0]) * (b[3] - b[1]) for b in (boxes[i], boxes[j])]
            covered |= labels[i] == labels[j] and both / (sum(areas) - both) > threshold
        if not covered:
            kept.append(i)
    return kept


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 60), st.integers(1, 3), st.sampled_from([0.0, 0.3, 0.5, 0.9]))
def test_suppression_is_that_of_the_loop(seed, n, n_labels, threshold):
    rng = np.random.default_rng(seed)
    corner, size = rng.integers(0, 20, (n, 2)), rng.integers(1, 15, (n, 2))
    boxes = np.hstack([corner, corner + size]).astype(float)
    scores, labels = rng.integers(0, 9, n) / 10, rng.integers(0, n_labels, n)  # with ties
    found = non_max_suppression(boxes, scores, labels, threshold)
    assert found.tolist() == brute_force_suppression(boxes, scores, labels, threshold)


def test_overlaps_by_hand():
    a = np.array([[0.0, 0, 2, 2], [0, 0, 1, 1]])
    b = np.array([[1.0, 1, 3, 3], [0, 0, 2, 2], [5, 5, 6, 6]])
    assert_allclose(intersection_over_union(a, b), [[1 / 7, 1, 0], [0, 1 / 4, 0]])


def test_average_precision_by_hand():
    """Right, wrong, right, wrong, right of four: precision 1, 1/2, 2/3, 1/2, 3/5 at recall 1/4, 1/4, 2/4, 2/4, 3/4."""
    right, scores = np.array([1, 0, 1, 0, 1], dtype=bool), np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    expected = 0.25 * 1 + 0.25 * 2 / 3 + 0.25 * 3 / 5
    assert average_precision(right, scores, np.ones(5), 4) == pytest.approx(expected)
    shuffled = np.array([3, 1, 4, 0, 2])
    assert average_precision(right[shuffled], scores[shuffled], np.ones(5), 4) == pytest.approx(expected)
    assert average_precision(np.zeros(0, dtype=bool), np.zeros(0), np.zeros(0), 4) == 0.0


def test_every_true_box_is_found_once():
    truth = np.array([[0.0, 0, 10, 10], [20, 0, 30, 10]])
    boxes = np.array([[0.0, 0, 10, 9], [0, 0, 10, 10], [20, 0, 30, 6], [50, 50, 60, 60]])
    assert matched(boxes, np.array([0.9, 0.8, 0.7, 0.6]), truth, 0.5).tolist() == [True, False, True, False]
    assert matched(boxes, np.array([0.8, 0.9, 0.7, 0.6]), truth, 0.5).tolist() == [False, True, True, False]
    assert matched(boxes, np.array([0.8, 0.9, 0.7, 0.6]), truth, 0.7).tolist() == [False, True, False, False]


def test_precisions_of_classes_and_weights_by_hand():
    truth = [(np.array([[0.0, 0, 10, 10]]), np.array(["a"])), (np.array([[0.0, 0, 10, 10]]), np.array(["a"]))]
    label = np.array(["a"])
    miss = Detections(np.array([[50.0, 50, 60, 60]]), label, np.array([0.9]))
    hit = Detections(np.array([[0.0, 0, 10, 10]]), label, np.array([0.8]))
    classes = np.array(["a", "b"])
    # the best box is wrong, the second finds one of two: precision 1/2 up to recall 1/2
    assert_allclose(average_precisions(truth, [miss, hit], classes, 0.5), [0.25, np.nan])
    weighted = average_precisions(truth, [miss, hit], classes, 0.5, np.array([1.0, 3.0]))
    repeated = average_precisions([truth[0], *[truth[1]] * 3], [miss, hit, hit, hit], classes, 0.5)
    assert_allclose(weighted, repeated)


@pytest.mark.parametrize("cell", [1, 2, 4])
def test_maps_of_true_boxes_give_them_back(cell):
    _, targets, _ = drawn_shapes(20, 37, most=4, seed=3)
    classes = np.array(["disc", "rectangle", "triangle"])
    coded = [(boxes, np.searchsorted(classes, labels)) for boxes, labels in targets]
    maps = Boxes(3, cell).encoded(coded, [(37, 37)] * 20, (40, 40))
    side = -(-37 // cell)
    for one, (boxes, labels) in zip(maps, targets, strict=True):
        assert (one[:3, side:] == -1).all()
        heat = np.log(
            np.clip(one[:3, :side, :side], 1e-6, 1 - 1e-6) / (1 - np.clip(one[:3, :side, :side], 1e-6, 1 - 1e-6))
        )
        found = decoded(np.concatenate([heat, one[3:7, :side, :side]]), (37, 37), classes, cell, 0.99, 0.5, 100)
        order = np.lexsort(boxes.T)
        mine = np.lexsort(found.boxes.round(3).T)
        assert_allclose(found.boxes[mine], boxes[order], atol=1e-3)
        assert_array_equal(found.labels[mine], labels[order])


def test_a_mirrored_box_is_that_of_the_mirrored_mask():
    _, targets, masks = drawn_shapes(10, 24)
    for (boxes, labels), mask in zip(targets, masks, strict=True):
        mirrored, same = Boxes(3, 4).mirrored((boxes, labels), 24)
        assert same is labels
        for left, top, right, bottom in mirrored.astype(int):
            inside = mask[:, ::-1][top:bottom, left:right]
            assert inside.any(axis=0).all()
            assert (inside > 0).mean() > 0.4


def test_shapes_are_found(model, shapes):
    _, _, X_new, y_new = shapes
    at_half, mean = model.score(X_new, y_new), model.score(X_new, y_new, iou="0.5:0.95")
    assert at_half > 0.45  # 0.55 to 0.65 by the machine
    assert at_half > mean > 0.2
    found = model.predict(X_new)
    assert found.shape == (40,)
    assert all(set(one.labels) <= set(model.classes_) and (np.diff(one.scores) <= 0).all() for one in found)
    by_hand = average_precisions(y_new, found, model.classes_, 0.5)
    assert np.mean(by_hand) == pytest.approx(at_half, abs=0.1)  # boxes of low scores are left out
    assert model.score(X_new, list(found)) > 0.95  # what it finds is a target as well
    heat = model.heat_maps(X_new[:2])
    assert heat[0].shape == (8, 8, 3)


def test_images_of_any_size_have_the_answer_that_they_have_alone(model):
    big, targets, _ = drawn_shapes(3, 45, seed=5, most=4)
    images = [big[0], big[1][:30, :37], big[2]]
    together = model.predict(images)
    for image, found in zip(images, together, strict=True):
        alone = model.predict(image[None])[0]
        assert_array_equal(alone.labels, found.labels)
        assert_allclose(alone.boxes, found.boxes, atol=1e-3)
        assert (found.boxes[:, 2] <= image.shape[1]).all()
        assert (found.boxes[:, 3] <= image.shape[0]).all()
    assert model.score([big[0], big[2]], [targets[0], targets[2]]) > 0.4


def test_gradients():
    X, targets, _ = drawn_shapes(3, 21, largest=9)
    fitted = ObjectDetector(channels=2, depth=2, cell=2)
    rows = fitted._training_rows(X.astype(np.float64), targets, None)
    torch.manual_seed(0)
    assert check_module(fitted._build_module(fitted._architecture(rows)), fitted._row_losses(), rows, n_coordinates=30)


def test_threads_weights_images_without_objects_and_early_stopping(shapes):
    X, y, _, _ = shapes
    short = {**SETTINGS, "max_iter": 2, "flip": True}
    y = [*y[:30], *[([], [])] * 10]
    fits = []
    for threads in (1, 2):
        with ep.config(n_jobs=threads):
            fits.append(ObjectDetector(**short).fit(X[:40], y, sample_weight=np.r_[np.ones(35), np.zeros(5)]))
    assert all(np.array_equal(a, b) for a, b in zip(*(f._weights_.values() for f in fits), strict=True))
    alone = ObjectDetector(**short).fit(X[:35], y[:35])
    for a, b in zip(alone.heat_maps(X[:3]), fits[0].heat_maps(X[:3]), strict=True):
        assert_allclose(a, b, atol=1e-5)
    held = ObjectDetector(early_stopping=True, **short).fit(X[:40], y)
    assert "validation_score" in held.history_.columns


@pytest.mark.parametrize(
    ("target", "error", "match"),
    [
        ([[0, 0, 1, 1]], DataTypeError, r"y\[1\]: ObjectDetector expects a pair \(boxes, labels\)"),
        (([[0, 0, 1]], ["a"]), DataError, r"y\[1\]: expected boxes of shape \(m, 4\) and m labels"),
        (([[0, 0, 1, 1]], ["a", "b"]), DataError, r"and \(2,\)"),
        (([[3, 0, 1, 1]], ["a"]), DataError, "left < right"),
        (([[0, 0, np.nan, 1]], ["a"]), DataError, "NaN"),
        (([[30, 0, 40, 5]], ["a"]), DataError, "outside of its image of width 16"),
        ((["box"], ["a"]), DataTypeError, "no numbers"),
    ],
)
def test_bad_boxes_are_named(target, error, match):
    with pytest.raises(error, match=match):
        ObjectDetector(depth=2, max_iter=1).fit(np.zeros((2, 16, 16)), [([[0, 0, 8, 8]], ["a"]), target])


def test_bad_arguments_are_named(model, shapes):
    _, _, X_new, y_new = shapes
    with pytest.raises(ParameterError, match="cell=8: the network halves the images 2 times"):
        ObjectDetector(8, depth=2).fit(np.zeros((1, 16, 16)), [([[0, 0, 8, 8]], ["a"])])
    with pytest.raises(ParameterError, match="iou=2"):
        model.score(X_new, y_new, iou=2)
    with pytest.raises(DataError, match="no image of positive weight"):
        ObjectDetector().fit(np.zeros((2, 16, 16)), [([], [])] * 2)
    with pytest.raises(DataError, match="average precision needs one"):
        model.score(X_new[:1], [([], [])])
    with pytest.raises(DataError, match="each of the 40 images; got 3"):
        model.score(X_new, y_new[:3])
