"""Arguments and files that the scripts share."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any


def arguments(description: str) -> argparse.ArgumentParser:
    """--data, --out and --quick."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(), help="folder of the data sets")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for figures and pictures")
    parser.add_argument("--quick", action="store_true", help="sizes for a run of seconds, on the CPU if need be")
    return parser


def card() -> str:
    """Name of the device, and of torch."""
    import torch

    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    return f"{name}, torch {torch.__version__}"


def device() -> str:
    """The GPU where there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


class Figures:
    """Figures that are printed and written as they come, so that a run that is cut off leaves what it has."""

    def __init__(self, out: Path, name: str) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self.path, self.began = out / f"{name}.json", time.perf_counter()
        self.found: dict[str, Any] = {"command": " ".join(["python", "-m", f"benchmarks.gpu.{name}", *sys.argv[1:]])}
        self.found["card"] = card()

    def add(self, **figures: Any) -> None:
        """Keep figures by name."""
        self.found |= figures
        self.found["seconds_in_all"] = round(time.perf_counter() - self.began, 1)
        self.path.write_text(json.dumps(self.found, indent=1))
        print(figures, flush=True)
