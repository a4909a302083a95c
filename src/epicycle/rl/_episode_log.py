"""Records of episodes that never outgrow the memory: when there are many, rows become means of several episodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._history import History

Array = np.ndarray


class EpisodeLog:
    """Rows of numbers, at most `most` of them; when they are full, each two become one.

    The first column is that of the last episode of a row, all others are means.
    What a row holds depends on the episodes alone, not on how many of them come at once.
    """

    most = 4096

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns
        self.rows = np.zeros((0, len(columns)))
        self.waiting = np.zeros((0, len(columns)))  # episodes that do not yet fill a row
        self.width = 1  # episodes in a row
        self.n_episodes = 0

    def extend(self, episodes: Array) -> None:
        """Add episodes, one in each row."""
        self.n_episodes += len(episodes)
        waiting = np.concatenate([self.waiting, episodes])
        while True:
            full = min(len(waiting) // self.width, self.most - len(self.rows))
            taken = full * self.width
            self.rows = np.concatenate([self.rows, _merged(waiting[:taken], self.width)])
            waiting = waiting[taken:]
            if len(self.rows) < self.most:
                break
            self.rows, self.width = _merged(self.rows, 2), 2 * self.width
        self.waiting = waiting

    def history(self) -> History:
        """All rows, and what waits as the last one."""
        rows = self.rows
        if len(self.waiting):
            rows = np.concatenate([rows, _merged(self.waiting, len(self.waiting))])
        return History(**{name: rows[:, j].copy() for j, name in enumerate(self.columns)})

    def state(self) -> dict[str, Any]:
        """The content of a file."""
        return {"rows": self.rows, "waiting": self.waiting, "width": self.width, "n_episodes": self.n_episodes}

    def restore(self, state: dict[str, Any]) -> None:
        """Take the content of a file."""
        self.rows, self.waiting = np.asarray(state["rows"]), np.asarray(state["waiting"])
        self.width, self.n_episodes = int(state["width"]), int(state["n_episodes"])


def _merged(rows: Array, width: int) -> Array:
    if width == 1 or not len(rows):
        return rows
    parts = rows.reshape(-1, width, rows.shape[1])
    merged = parts.mean(axis=1)
    merged[:, 0] = parts[:, -1, 0]
    return np.asarray(merged)
