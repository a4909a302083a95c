"""Small tasks with known answers: reversed texts, pictures of shapes, stories of people who walk about."""

import numpy as np
from net_samples import Sample

COLOURS = {"red": (1, 0, 0), "green": (0, 1, 0), "blue": (0, 0, 1)}
PLACES = ["kitchen", "garden", "office", "hall"]
PEOPLE = ["Mary", "John", "Ann"]


def ragged(parts):
    found = np.empty(len(parts), dtype=object)
    for i, part in enumerate(parts):
        found[i] = part
    return found


def reversals(n, longest=6, seed=0):
    rng = np.random.default_rng(seed)
    X = ["".join(rng.choice(list("abcde"), rng.integers(1, longest + 1))) for _ in range(n)]
    return ragged(X), [text[::-1] for text in X]


def shape(image, kind, colour, top, left):
    """Draw a square, a cross or a bar of 4 x 4 pixels."""
    mask = np.zeros((4, 4))
    if kind == "square":
        mask[:] = 1
    elif kind == "cross":
        mask[1:3] = mask[:, 1:3] = 1
        mask[1:3, 1:3] = 0
    else:
        mask[:, 1:3] = 1
    image[top : top + 4, left : left + 4] += mask[:, :, None] * np.array(COLOURS[colour])


def captions(n, seed=0):
    """A picture of one shape in a corner, and its description."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(0, 0.05, (n, 12, 12, 3)).astype(np.float32), []
    for image in X:
        kind, colour = rng.choice(["square", "cross", "bar"]), rng.choice(list(COLOURS))
        top, left = rng.integers(0, 2, 2)
        shape(image, kind, colour, 7 * top + 1, 7 * left + 1)
        y.append(f"a {colour} {kind} {['above', 'below'][top]} on the {['left', 'right'][left]}")
    return X, y


def pictures(n, seed=0):
    """Pictures of one to four shapes, with questions on colours, shapes and numbers, and their answers."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for i in range(n):
        image = rng.normal(0, 0.05, (12, 12, 3)).astype(np.float32)
        places = rng.permutation(4)[: rng.integers(1, 5)]
        kinds, colours = rng.choice(["square", "cross", "bar"], len(places)), rng.choice(list(COLOURS), len(places))
        for place, kind, colour in zip(places, kinds, colours, strict=True):
            shape(image, kind, colour, 6 * (place // 2) + 1, 6 * (place % 2) + 1)
        at = rng.integers(len(places))
        alone = (kinds == kinds[at]).sum() == 1
        if i % 2 and alone:
            X.append((image, f"what colour is the {kinds[at]}?"))
            y.append(str(colours[at]))
        else:
            asked = rng.choice(list(COLOURS))
            X.append((image, f"how many are {asked}?"))
            y.append(str((colours == asked).sum()))
    return ragged(X), np.array(y)


def stories(n, seed=0, n_moves=6):
    """Where somebody is, after several moves of several people: the last one counts (task 1 of bAbI)."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        moves = [(rng.choice(PEOPLE), rng.choice(PLACES)) for _ in range(rng.integers(2, n_moves + 1))]
        who = moves[rng.integers(len(moves))][0]
        X.append(([f"{person} went to the {place}." for person, place in moves], f"Where is {who}?"))
        y.append(str([place for person, place in moves if person == who][-1]))
    return ragged(X), np.array(y)


def carried(n, seed=0):
    """Where a thing is: who took it, and where that person went afterwards (task 2 of bAbI, two supporting facts)."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        holder, story = rng.choice(PEOPLE), []
        for person in rng.permutation(PEOPLE):
            story.append(f"{person} went to the {rng.choice(PLACES)}.")
        story.insert(int(rng.integers(0, 4)), f"{holder} took the ball.")
        where = next(s.split()[-1][:-1] for s in reversed(story) if s.startswith(f"{holder} went"))
        X.append((story, "Where is the ball?"))
        y.append(where)
    return ragged(X), np.array(y)


SMALL = {"hidden_size": 8, "embedding_size": 4, "max_iter": 2, "batch_size": 100}
WRITERS = {**SMALL, "n_beams": 1}
SAMPLES = {
    "Seq2Seq": Sample(lambda n: reversals(n, 4), WRITERS, solvers=("adamw",)),
    "ImageCaptioner": Sample(captions, {**WRITERS, "channels": [4], "dropout": 0.1}, solvers=("adamw",)),
    "VisualQA": Sample(pictures, {**SMALL, "channels": [4, 4], "dropout": 0.1}, solvers=("adamw",)),
    "MemoryQA": Sample(stories, {"embedding_size": 8, "max_iter": 2, "batch_size": 100}, solvers=("adamw",)),
}
