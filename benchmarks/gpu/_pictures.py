"""Pictures by the standard library alone, for machines without matplotlib."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np


def write_png(path: Path, images: np.ndarray, columns: int) -> None:
    """Grey images of shape (n, height, width) with values from 0 to 1 as one picture, by the standard library alone."""
    n, height, width = images.shape
    rows = -(-n // columns)
    sheet = np.zeros((rows * (height + 1) - 1, columns * (width + 1) - 1), dtype=np.uint8)
    for i, image in enumerate(images):
        top, left = i // columns * (height + 1), i % columns * (width + 1)
        sheet[top : top + height, left : left + width] = np.rint(255 * np.clip(image, 0, 1))
    lines = b"".join(b"\0" + line.tobytes() for line in sheet)  # each line without a filter

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", sheet.shape[1], sheet.shape[0], 8, 0, 0, 0, 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    )
