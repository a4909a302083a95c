"""Whether what a program printed is what the text shows, up to the rounding of another machine.

Words have to be the same, whitespace is free, and ``...`` stands for anything. Whole numbers have to be equal; others
agree to three digits. A number below 1e-6 stands for "next to nothing": how little exactly depends on the processor.
"""

import doctest
import math
import re

NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?(?![\w])")
SMALL = 1e-6


def agrees(want: str, got: str) -> bool:
    """Whether the output `got` is what the text shows."""
    pattern, numbers = _pattern(" ".join(want.split()))
    match = re.fullmatch(pattern, " ".join(got.split()), flags=re.DOTALL)
    return match is not None and all(_close(a, b) for a, b in zip(numbers, match.groups(), strict=True))


def _pattern(want: str) -> tuple[str, list[str]]:
    """A pattern with a group for every number of the text, and those numbers."""
    numbers = NUMBER.findall(want)
    words = [_words(part) for part in NUMBER.split(want)]
    return f"({NUMBER.pattern})".join(words), numbers


def _words(text: str) -> str:
    # Arrays pad their numbers to a common width, so that blanks before or after a number are free.
    parts = [r"\s*".join(re.escape(word) for word in re.split(r"\s+", part)) for part in text.split("...")]
    return ".*?".join(parts)


def _close(want: str, got: str) -> bool:
    a, b = float(want), float(got)
    if want.lstrip("+-").isdigit():
        return a == b
    return math.isclose(a, b, rel_tol=2e-3) or (abs(a) < SMALL and abs(b) < SMALL)


class Checker(doctest.OutputChecker):
    """The same for doctests."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return super().check_output(want, got, optionflags) or agrees(want, got)
