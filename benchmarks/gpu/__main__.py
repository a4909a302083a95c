"""``python -m benchmarks.gpu FOLDER [FOLDER ...]``: write the figures that the scripts left there into RESULTS.md.

A script that was run in parts, one after another and each into a folder of its own, has one section of all of them.
"""

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
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="where the scripts wrote their JSON")
    folders: list[Path] = parser.parse_args().folders
    found = read(folders)
    if not found:
        parser.error(f"{', '.join(map(str, folders))}: no file of figures, such as networks.json")
    sections = {f"gpu_{name}": section(name, figures) for name, figures in found.items()}
    update_results(RESULTS, sections, list(all_tasks()))


def read(folders: list[Path]) -> dict[str, dict[str, Any]]:
    """The figures of each script by its name, those of later folders in the place of earlier ones."""
    found: dict[str, dict[str, Any]] = {}
    for file in (file for folder in folders for file in sorted(folder.glob("*.json"))):
        if (Path(__file__).parent / f"{file.stem}.py").is_file():
            more, known = json.loads(file.read_text()), found.get(file.stem, {})
            made = {
                "command": "`, then `".join(dict.fromkeys(f["command"] for f in (known, more) if f)),
                "card": ", then ".join(dict.fromkeys(f["card"] for f in (known, more) if f)),
                "seconds_in_all": known.get("seconds_in_all", 0.0) + more["seconds_in_all"],
            }
            found[file.stem] = {**known, **more, **made}
    return dict(sorted(found.items()))


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
