"""Print what the named extras of pyproject.toml require, one requirement a line.

The Makefile installs these beside the package, so that asking for one more extra never builds the kernels again.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]


def requirements(extra: str) -> Iterator[str]:
    """Requirements of one extra; ``epicycle[other]`` inside it stands for those of the other."""
    for requirement in PROJECT["optional-dependencies"][extra]:
        own = re.fullmatch(rf"{PROJECT['name']}\[([\w, -]+)\]", requirement)
        if own is None:
            yield requirement
        else:
            for other in own.group(1).split(","):
                yield from requirements(other.strip())


if __name__ == "__main__":
    print("\n".join(dict.fromkeys(line for extra in sys.argv[1:] for line in requirements(extra))))
