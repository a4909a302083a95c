"""``python -m benchmarks.gpu FOLDER``: write the figures that the scripts left in a folder into RESULTS.md."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.report import RESULTS, markdown_table, update_results
from benchmarks.tasks import all_tasks

#: Entries of a file that say how its figures were made.
MADE_BY = ("command", "card", "seconds_in_all")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the scripts wrote their JSON")
    folder: Path = parser.parse_args().folder
    files = sorted(file for file in folder.glob("*.json") if (Path(__file__).parent / f"{file.stem}.py").is_file())
    if not files:
        parser.error(f"{folder}: no file of figures, such as networks.json")
    sections = {f"gpu_{file.stem}": section(file.stem, json.loads(file.read_text())) for file in files}
    update_results(RESULTS, sections, list(all_tasks()))


def section(name: str, found: dict[str, Any]) -> str:
    """The Markdown of one script: its docstring, its figures, command and card."""
    first, _, rest = (import_module(f"benchmarks.gpu.{name}").__doc__ or name).partition("\n")
    about = rest.split("\n\n    python")[0].strip()
    rows = [[key, value] for key, value in figures({k: v for k, v in found.items() if k not in MADE_BY})]
    made = f"Made by `{found['command']}` on {found['card']}, {found['seconds_in_all']:.0f} s in all."
    parts = [f"## gpu_{name}: {first.rstrip('.')}", about, markdown_table(["figure", "value"], rows), made]
    return "\n\n".join(part for part in parts if part) + "\n"


def figures(found: dict[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Names and values, those of groups with the name of the group before them; long lists by their last ten."""
    for key, value in found.items():
        name = f"{before}{key.replace('_', ' ')}"
        if isinstance(value, dict):
            yield from figures(value, f"{name}: ")
        elif isinstance(value, list):
            shown = [f"{v:.4g}" if isinstance(v, float) else str(v) for v in value]
            yield name, ("... " if len(shown) > 10 else "") + ", ".join(shown[-10:])
        elif isinstance(value, str):
            yield name, " ".join(value.split()).replace("|", "\\|")
        else:
            yield name, f"{value:.5g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
