"""Properties of characters in the running Python, as a table for the compiled tokeniser.

Unicode grows with each release of Python. The table is read off from Python's own regular expressions and `str.lower`,
so that the tokeniser agrees with them whatever the release.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from epicycle import _native

_SIZE, _PAGE = 0x110000, 256
_WORD, _SPACE, _CASED, _IGNORABLE = (1 << bit for bit in range(24, 28))
_DOTTED, _SIGMA = 0x130, 0x3A3  # lower case of the first is two characters, of the second it depends on its neighbours


@cache
def character_table(sigma: bool) -> tuple[_native.text.Characters, bool]:
    """The table, with what the lower case of a capital sigma depends on if asked for; and whether it knows lower case.

    It does not where letters other than I with a dot become several in lower case, which they do in no Unicode so far.
    """
    everything = "".join(map(chr, range(_SIZE)))
    lower = _lower_case(everything)
    entries = np.zeros(_SIZE, dtype=np.uint32) if lower is None else lower
    for flag, pattern in ((_WORD, r"\w+"), (_SPACE, r"\s+")):
        for run in re.finditer(pattern, everything):
            entries[run.start() : run.end()] |= np.uint32(flag)
    if sigma:
        entries |= _sigma_flags(everything)
    numbers: dict[bytes, int] = {}  # most pages are alike, for they say how far the lower case is
    page = [numbers.setdefault(piece.tobytes(), len(numbers)) for piece in entries.reshape(-1, _PAGE)]
    known = np.frombuffer(b"".join(numbers), dtype=np.uint32)
    return _native.text.Characters(np.array(page, dtype=np.uint16), known), lower is not None


def _code_points(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def _lower_case(everything: str) -> np.ndarray | None:
    """Distance of every character to its lower case, in 24 bits."""
    lower = _code_points(everything.replace(chr(_DOTTED), "i").lower())
    if len(lower) != _SIZE:
        return None
    distance: np.ndarray = (lower - np.arange(_SIZE, dtype=np.uint32)) & np.uint32((1 << 24) - 1)
    return distance


def _sigma_flags(everything: str) -> np.ndarray:
    """Which characters are cased, and which are passed over, where Python looks around a capital sigma.

    Behind one character alone a sigma is final if the character is cased; between it and a cased letter a
    case-ignorable character changes nothing.
    """
    final = 0x3C2
    # A line break is neither cased nor passed over: the lines do not see each other.
    plain = everything.replace(chr(_DOTTED), "I")
    alone = _code_points("".join(f"\n{c}\u03a3" for c in plain).lower())[2::3]
    behind = _code_points("".join(f"\nA{c}\u03a3" for c in plain).lower())[3::4]
    return np.where(alone == final, _CASED, np.where(behind == final, _IGNORABLE, 0)).astype(np.uint32)
