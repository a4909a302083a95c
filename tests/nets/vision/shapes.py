"""Images of rectangles, discs and triangles with noise, whose boxes and masks are known."""

import numpy as np

KINDS = np.array(["disc", "rectangle", "triangle"])


def drawn_shapes(n, side=32, *, seed=0, noise=0.15, most=2, smallest=7, largest=12):
    """(images (n, side, side, 1), pairs (boxes, labels), masks: 0 where nothing is, else 1 + number of the kind).

    Up to `most` shapes of random places and sizes, which do not overlap, on a ground of slowly changing brightness: no
    single pixel says what it belongs to.
    """
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:side, :side] + 0.5
    images, targets, masks = [], [], np.zeros((n, side, side), dtype=int)
    for i in range(n):
        slope = rng.uniform(-0.5, 0.5, 2)
        image = slope[0] * rows / side + slope[1] * columns / side
        boxes, labels = [], []
        for _ in range(rng.integers(1, most + 1)):
            width, height = rng.integers(smallest, largest + 1, 2)
            kind = int(rng.integers(3))
            if kind == 0:
                height = width
            left, top = rng.integers(0, side - width + 1), rng.integers(0, side - height + 1)
            box = np.array([left, top, left + width, top + height])
            if any((box[:2] < other[2:] + 1).all() and (other[:2] < box[2:] + 1).all() for other in boxes):
                continue
            x, y = (columns - left) / width, (rows - top) / height
            inside = (x > 0) & (x < 1) & (y > 0) & (y < 1)
            if kind == 0:
                inside &= (x - 0.5) ** 2 + (y - 0.5) ** 2 < 0.25
            elif kind == 2:
                inside &= np.abs(x - 0.5) < y / 2
            image = image + np.where(inside, rng.choice([-1.0, 1.0]), 0.0)
            masks[i][inside] = 1 + kind
            boxes.append(box)
            labels.append(KINDS[kind])
        images.append(image + noise * rng.normal(size=(side, side)))
        targets.append((np.array(boxes, dtype=float), np.array(labels)))
    return np.array(images, dtype=np.float32)[..., None], targets, masks
