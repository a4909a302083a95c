"""Folders of images as tables: a column for each pixel, and the name of the folder that an image is in.

``photos/cat/1.jpg`` is a row with the folder "cat". Images of one size, up to 3,072 numbers each, stay as they are;
others are scaled to 32 x 32. They are grey where all of them are. The columns say where a pixel is and of which size
the images are, so that a model scales new images to the same.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from epicycle.automl.tables._files import TABLES
from epicycle.core._checks import optional_import
from epicycle.core._exceptions import DataFileError
from epicycle.core._memory import require_memory

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
#: The column with the name of the folder.
FOLDER = "folder"
#: Numbers of an image at most, and the side of images that are scaled.
_MOST, _SIDE = 3072, 32
_COLOURS = ("red", "green", "blue")
_GREY_MODES = ("1", "L", "LA", "I;16", "I", "F")
_PIXEL = re.compile(r"(pixel|red|green|blue) (\d+),(\d+) of (\d+) x (\d+)")

Shape = tuple[int, int, int]


def image_files(source: Any) -> list[Path] | None:
    """The images in a folder and in the folders in it; None where it holds tables, no images, or is no folder."""
    if not isinstance(source, str | os.PathLike) or not os.path.isdir(source):
        return None
    inside = [path for path in sorted(Path(source).iterdir()) if not path.name.startswith(".")]
    if any(path.is_file() and path.suffix.lower() in TABLES for path in inside):
        return None
    deeper = [(sorted(path.iterdir()) if path.is_dir() else [path]) for path in inside]
    found = [path for paths in deeper for path in paths if path.is_file() and path.suffix.lower() in IMAGES]
    return [path for path in found if not path.name.startswith(".")] or None


def image_table(files: list[Path], root: str | os.PathLike[str], shape: Shape | None = None) -> pa.Table:
    """The images as rows; `shape` is that of the images that a model was fitted to."""
    images = optional_import("PIL.Image", "reading images")
    if shape is None:
        shape = _common_shape(files, images)
    height, width, channels = shape
    require_memory(4.0 * len(files) * height * width * channels, "the pixels of the images", "take fewer images")
    rows = np.empty((len(files), height * width * channels), dtype=np.float32)
    for row, file in zip(rows, files, strict=True):
        with _opened(file, images) as image:
            plain = _converted(image, channels)
            if plain.size != (width, height):
                plain = plain.resize((width, height), images.Resampling.BILINEAR)
            row[:] = np.asarray(plain, dtype=np.float32).reshape(-1)
    columns: dict[str, Any] = {name: rows[:, j] for j, name in enumerate(pixel_names(shape))}
    if any(file.parent != Path(root) for file in files):
        columns[FOLDER] = [None if file.parent == Path(root) else file.parent.name for file in files]
    return pa.table(columns)


def pixel_names(shape: Shape) -> list[str]:
    """Names of the columns, in the order of the pixels."""
    height, width, channels = shape
    kinds = ("pixel",) if channels == 1 else _COLOURS
    places = ((i, j, kind) for i in range(height) for j in range(width) for kind in kinds)
    return [f"{kind} {i},{j} of {height} x {width}" for i, j, kind in places]


def shape_of(names: Iterable[str]) -> Shape | None:
    """(height, width, channels) of the images that columns of these names are of; None of other tables."""
    for name in names:
        if (found := _PIXEL.fullmatch(name)) is not None:
            return int(found[4]), int(found[5]), 1 if found[1] == "pixel" else 3
    return None


def places_of(names: Iterable[str]) -> list[int] | None:
    """Numbers of the pixels that columns of these names are, in the order of `pixel_names`; None of other columns."""
    places = []
    for name in names:
        found = _PIXEL.fullmatch(name)
        if found is None:
            return None
        first = int(found[2]) * int(found[5]) + int(found[3])
        places.append(first if found[1] == "pixel" else 3 * first + _COLOURS.index(found[1]))
    return places


def _common_shape(files: list[Path], images: Any) -> Shape:
    sizes, grey = set(), True
    for file in files:
        with _opened(file, images) as image:
            sizes.add(image.size)
            grey &= image.mode in _GREY_MODES
    channels = 1 if grey else 3
    (width, height), *others = sizes
    if others or height * width * channels > _MOST:
        width = height = _SIDE
    return height, width, channels


def _converted(image: Any, channels: int) -> Any:
    """A grey image or one of three colours, with values up to 255."""
    if image.mode in ("I", "I;16", "F"):  # of more than eight bits
        numbers = np.asarray(image, dtype=np.float64)
        top = 255.0 if numbers.max(initial=0) <= 255 else 65535.0
        image = _of_bytes(np.clip(255 * numbers / top, 0, 255))
    return image.convert("L" if channels == 1 else "RGB")


def _of_bytes(numbers: np.ndarray) -> Any:
    return optional_import("PIL.Image", "reading images").fromarray(np.rint(numbers).astype(np.uint8))


class _opened:  # noqa: N801 - called like a function
    """An image whose content is read within the block; what cannot be read is an error that names the file."""

    def __init__(self, file: Path, images: Any) -> None:
        self.file, self.images = file, images

    def __enter__(self) -> Any:
        try:
            self.image = self.images.open(self.file)
            self.image.load()
        except (OSError, ValueError, SyntaxError, EOFError, self.images.DecompressionBombError) as error:
            words = " ".join(str(error).split())
            raise DataFileError(f"{self.file}: cannot be read as an image: {words[:200]}") from None
        return self.image

    def __exit__(self, *_: object) -> None:
        self.image.close()
