"""Pictures that an environment draws of an episode, as a GIF or one file each."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from epicycle.core._docs import documented
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Boolean, Integer, NoneOr, Real, check_parameter
from epicycle.core._random import seed_of
from epicycle.rl._interaction import Interaction

Array = np.ndarray
_COLOURS, _LAST = 64, 1500  # of a GIF; milliseconds of its last picture
_FPS = 20.0  # where the environment says nothing


class Frames:
    """Pictures of an episode; when there are more than `most`, every second one is left out.

    Parameters
    ----------
    env : environment
        With ``render`` and ``render_mode="rgb_array"``.
    most : int or None
        Pictures that are kept.
    """

    def __init__(self, env: Any, most: int | None) -> None:
        self.env, self.most, self.every, self.seen = env, most, 1, 0
        self.kept: list[Array] = []
        self.note: str | None = None
        self.draws = getattr(env, "render_mode", None) == "rgb_array"

    def take(self) -> None:
        """Ask for a picture of the present state; `note` says why there is none."""
        if not self.draws:
            return
        if self.seen % self.every == 0:
            try:
                picture = np.asarray(self.env.render())
            except Exception as error:  # a library that it draws with is missing, as a rule
                self._give_up(f"{type(error).__name__}: {error}")
                return
            if picture.ndim != 3 or picture.shape[2] != 3 or picture.dtype != np.uint8:
                self._give_up(f"render returned an array of shape {picture.shape} and type {picture.dtype}")
                return
            self.kept.append(picture)
            if self.most is not None and len(self.kept) > self.most:
                self.kept, self.every = self.kept[::2], 2 * self.every
        self.seen += 1

    def _give_up(self, why: str) -> None:
        self.draws, self.kept = False, []
        self.note = f"the environment drew no pictures ({why})"

    def milliseconds(self) -> float:
        """Time between two pictures."""
        fps = getattr(self.env, "metadata", {}).get("render_fps")
        return 1000 * self.every / (float(fps) if isinstance(fps, int | float) and fps > 0 else _FPS)


def animation(
    frames: list[Array], milliseconds: float, *, width: int | None = None, largest: int | None = None
) -> bytes:
    """An animated GIF of pictures (height, width, 3), at most so wide; pictures are left out while it is too large."""
    from PIL import Image

    height, given = frames[0].shape[:2]
    wide = given if width is None else min(given, width)
    size = (wide, max(round(height * wide / given), 1))
    pictures = [Image.fromarray(frame).resize(size).quantize(_COLOURS) for frame in frames]
    while True:
        file, shown = io.BytesIO(), int(np.clip(milliseconds, 20, 500))
        pictures[0].save(
            file,
            "GIF",
            save_all=True,
            append_images=pictures[1:],
            duration=[*[shown] * (len(pictures) - 1), _LAST],
            loop=0,
        )
        if largest is None or file.tell() <= largest or len(pictures) < 4:
            return file.getvalue()
        pictures, milliseconds = pictures[::2], 2 * milliseconds


#: Entries of the functions that record an episode.
VIDEO_DOCS = {
    "path": "path : str or path\n"
    "    Name of a file that ends with .gif; any other is a folder for files 0000.png, 0001.png and so on.",
    "deterministic": "deterministic : bool, default={default}\n"
    "    Whether to take the best actions, or those of learning.",
    "max_steps": "max_steps : int, default={default}\n    Steps after which the episode is left.",
    "max_frames": "max_frames : int or None, default={default}\n"
    "    Pictures that are kept, at equal distances; None for all.",
    "width": "width : int, optional\n    Largest width of the pictures of a GIF.",
    "fps": "fps : float, optional\n"
    "    Pictures a second of a GIF, by default so many that the time is that of the environment.",
}


@documented(VIDEO_DOCS)
def record_video(
    agent: Any,
    env: Any,
    path: Any,
    *,
    seed: int | None = None,
    deterministic: bool = True,
    max_steps: int = 1000,
    max_frames: int | None = 300,
    width: int | None = None,
    fps: float | None = None,
) -> Path:
    """Write the pictures of an episode that an agent plays, as a GIF or as a file for each.

    Parameters
    ----------
    agent : agent
        Anything with ``act(observation, deterministic)``.
    env : environment
        One that draws itself: with ``render``, made with ``render_mode="rgb_array"``.
    seed : int, optional
        Seed of the episode.
    """
    owner = "record_video"
    check_parameter(owner, "deterministic", deterministic, Boolean())
    check_parameter(owner, "max_steps", max_steps, Integer(minimum=1))
    check_parameter(owner, "max_frames", max_frames, NoneOr(Integer(minimum=1)))
    check_parameter(owner, "width", width, NoneOr(Integer(minimum=1)))
    check_parameter(owner, "fps", fps, NoneOr(Real(0, inclusive=False)))
    world, frames, target = Interaction(env, seed_of(seed)), Frames(env, max_frames), Path(path)
    if not frames.draws:
        raise DataError(
            f"env: its render_mode is {getattr(env, 'render_mode', None)!r}; expected an environment that draws "
            'itself, such as gymnasium.make(name, render_mode="rgb_array")'
        )
    observation, over, steps = world.reset(), False, 0
    frames.take()
    while not over and steps < max_steps and frames.draws:
        observation, _, terminated, cut = world.step(agent.act(observation, deterministic))
        over, steps = terminated or cut, steps + 1
        frames.take()
    if not frames.kept:
        raise DataError(f"env: {frames.note}")
    if target.suffix.lower() == ".gif":
        milliseconds = frames.milliseconds() if fps is None else 1000 / fps
        target.write_bytes(animation(frames.kept, milliseconds, width=width))
        return target
    from PIL import Image

    target.mkdir(parents=True, exist_ok=True)
    for i, frame in enumerate(frames.kept):
        Image.fromarray(frame).save(target / f"{i:04d}.png")
    return target
