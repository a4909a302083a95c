"""Boxes (left, top, right, bottom) in pixels: their overlap, the best of those that overlap, and how many are found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from epicycle.nets.vision._detections import Detections


def intersection_over_union(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Areas that boxes share, over those that they cover together: of shape (len(a), len(b))."""
    low, high = np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:], b[None, :, 2:])
    both = np.clip(high - low, 0, None).prod(axis=2)
    areas = [(boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]) for boxes in (a, b)]
    either = areas[0][:, None] + areas[1][None, :] - both
    return np.asarray(np.divide(both, either, out=np.zeros_like(both), where=either > 0))


def non_max_suppression(boxes: np.ndarray, scores: np.ndarray, labels: np.ndarray, threshold: float) -> np.ndarray:
    """Numbers of the boxes, best first, that overlap none of their label that is better and kept by more than this.

    One after the other, a box is kept unless a better one that is kept covers it. All boxes at once: whether a box is
    kept follows from the better ones, so when the first k answers are right, one step makes k + 1 of them right, and
    answers that a step does not change are all right.
    """
    order = np.argsort(-scores, kind="stable")
    sorted_boxes, sorted_labels = boxes[order], labels[order]
    covers = np.triu(intersection_over_union(sorted_boxes, sorted_boxes) > threshold, 1)
    covers &= sorted_labels[:, None] == sorted_labels
    kept: np.ndarray = np.ones(len(order), dtype=bool)
    while True:
        now = np.logical_not((covers & kept[:, None]).any(axis=0))
        if np.array_equal(now, kept):
            return np.asarray(order[kept])
        kept = now


def matched(boxes: np.ndarray, scores: np.ndarray, truth: np.ndarray, threshold: float) -> np.ndarray:
    """Whether each box is right: best first, each takes the true box that it overlaps most and nobody has taken."""
    right = np.zeros(len(boxes), dtype=bool)
    overlap = intersection_over_union(boxes, truth)
    for i in np.argsort(-scores, kind="stable"):
        if not overlap.shape[1]:
            break
        best = int(overlap[i].argmax())
        if overlap[i, best] >= threshold:
            right[i] = True
            overlap[:, best] = -1.0
    return right


def average_precision(right: np.ndarray, scores: np.ndarray, weight: np.ndarray, total: float) -> float:
    """The area under precision as a function of recall, each precision raised to the largest at a greater recall."""
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(weight[order] * right[order])
    precision = hits / np.cumsum(weight[order])
    recall = np.concatenate([[0.0], hits / total])
    best_after = np.maximum.accumulate(precision[::-1])[::-1]
    return float(np.diff(recall) @ best_after)


def average_precisions(
    truth: Sequence[tuple[np.ndarray, np.ndarray]],
    found: Sequence[Detections],
    classes: np.ndarray,
    threshold: float,
    weight: np.ndarray | None = None,
) -> np.ndarray:
    """The average precision of each class at an overlap of this; nan for a class without true boxes.

    Parameters
    ----------
    truth : sequence of (boxes, labels), one for each image
    found : sequence of Detections
    classes : ndarray
    threshold : float
    weight : ndarray, optional
        Of the images.
    """
    v = np.ones(len(truth)) if weight is None else weight
    result = np.full(len(classes), np.nan)
    for k, label in enumerate(classes):
        right, scores, weights, total = [], [], [], 0.0
        for v_i, (boxes, labels), detected in zip(v, truth, found, strict=True):
            mine, wanted = detected.labels == label, boxes[labels == label]
            total += v_i * len(wanted)
            right.append(matched(detected.boxes[mine], detected.scores[mine], wanted, threshold))
            scores.append(detected.scores[mine])
            weights.append(np.full(int(mine.sum()), v_i))
        if total > 0:
            # Images without weight are as good as not there, and so are the boxes that were found in them.
            w = np.concatenate(weights)
            keep = w > 0
            r, s = np.concatenate(right)[keep], np.concatenate(scores)[keep]
            result[k] = average_precision(r, s, w[keep], total)
    return result
