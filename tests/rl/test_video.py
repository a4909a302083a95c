"""Episodes as GIFs and pictures."""

import numpy as np
import pytest
from deep_envs import Cart
from PIL import Image

from epicycle.exceptions import DataError, NotFittedError, ParameterError
from epicycle.rl import CrossEntropyMethod, record_video


class Drawn(Cart):
    """A cart whose picture has as many bright columns as steps were made, twice."""

    render_mode = "rgb_array"
    metadata = {"render_fps": 10}  # noqa: RUF012

    def render(self):
        picture = np.zeros((20, 40, 3), dtype=np.uint8)
        picture[:, : 2 * self.steps] = 255
        return picture


class Still:
    def act(self, observation, deterministic=True):
        return np.zeros(1)


def bright(picture):
    return int((np.asarray(picture.convert("L"))[0] > 128).sum())


def test_a_gif_shows_every_step(tmp_path):
    agent = CrossEntropyMethod(random_state=0).learn(Cart(), 200)
    path = agent.record(Drawn(), tmp_path / "episode.gif")
    seen, times = [], []
    with Image.open(path) as gif:
        assert gif.n_frames == 11
        assert gif.size == (40, 20)
        for i in range(gif.n_frames):
            gif.seek(i)
            seen.append(bright(gif))
            times.append(gif.info["duration"])
    assert seen == list(range(0, 22, 2))
    assert times[:-1] == [100] * 10
    small = record_video(Still(), Drawn(), tmp_path / "small.gif", width=20, fps=50, max_frames=6)
    with Image.open(small) as gif:
        assert gif.size == (20, 10)
        assert gif.n_frames == 6
        gif.seek(1)
        assert bright(gif) == 2  # every second picture, half as wide
        assert gif.info["duration"] == 20


def test_a_folder_has_a_file_for_each_picture(tmp_path):
    path = record_video(Still(), Drawn(), tmp_path / "a" / "frames", max_steps=4)
    assert [file.name for file in sorted(path.iterdir())] == [f"{i:04d}.png" for i in range(5)]
    assert [bright(Image.open(file)) for file in sorted(path.iterdir())] == [0, 2, 4, 6, 8]


def test_environments_that_do_not_draw(tmp_path):
    class Blind(Drawn):
        def render(self):
            raise ImportError("no library to draw with")

    class Flat(Drawn):
        def render(self):
            return np.zeros((3, 3))

    with pytest.raises(DataError, match="env: its render_mode is None; expected an environment that draws"):
        record_video(Still(), Cart(), tmp_path / "x.gif")
    with pytest.raises(DataError, match=r"drew no pictures \(ImportError: no library to draw with\)"):
        record_video(Still(), Blind(), tmp_path / "x.gif")
    with pytest.raises(DataError, match=r"render returned an array of shape \(3, 3\)"):
        record_video(Still(), Flat(), tmp_path / "x.gif")
    with pytest.raises(ParameterError, match="max_steps=0"):
        record_video(Still(), Drawn(), tmp_path / "x.gif", max_steps=0)
    with pytest.raises(NotFittedError):
        CrossEntropyMethod().record(Drawn(), tmp_path / "x.gif")
    assert not (tmp_path / "x.gif").exists()
