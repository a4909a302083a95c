"""Pictures of five reports for the documentation: train on the tables, look at the pages in Chromium, write WebP files.

    python tools/report_pictures.py DATA [--runs FOLDER] [--time 90]

DATA is a folder with titanic_train.csv.gz, ames_housing.csv.gz, bike_sharing_hour.csv.gz, wine_quality.csv.gz and
sms_spam.tsv.gz, as they are published (docs/guide/reports.rst says where). A run that is in FOLDER already is not
trained again: its report is made anew from report.json. Needs Chromium, and Pillow for WebP.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

from epicycle import report

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "report"))

import chromium  # noqa: E402

OUT = ROOT / "docs" / "_static" / "reports"
RUNS = {
    "titanic": ("titanic_train.csv.gz", "--target", "Survived", "--group-report", "Sex"),
    "ames": ("ames_housing.csv.gz", "--target", "SalePrice", "--drop", "Order", "--drop", "PID"),
    "bike": ("bike_sharing_hour.csv.gz", "--target", "cnt", "--drop", "casual", "--drop", "registered"),
    "wine": ("wine_quality.csv.gz", "--target", "quality", "--task", "classification"),
    "sms": ("sms_spam.tsv.gz", "--no-header", "--target", "x0"),
}
#: Name of the picture, run, first and last element of the part of the page (None: from the top), width, colours, media.
PICTURES = (
    ("titanic", "titanic", None, "#next", 1280, "light", "screen"),
    ("titanic_groups", "titanic", "#groups", "#groups", 1280, "light", "screen"),
    ("titanic_tree", "titanic", "h3:has(+ p + .tree)", ".tree", 1280, "light", "screen"),
    ("titanic_phone", "titanic", None, "#next", 390, "dark", "screen"),
    ("ames", "ames", "[data-figure=predicted]", "[data-figure=residuals]", 1280, "light", "screen"),
    ("ames_rows", "ames", "[data-figure=row-1]", "[data-figure=row-2]", 1280, "light", "screen"),
    ("bike_dependence", "bike", "[data-figure=dependence-0]", "[data-figure=dependence-1]", 1280, "light", "screen"),
    ("bike_slices", "bike", "#fails", "[data-figure=slices]", 1280, "light", "screen"),
    ("wine", "wine", "[data-figure=calibration]", "[data-figure=confusion]", 1280, "dark", "screen"),
    ("wine_curve", "wine", "#limits", "[data-figure=learning_curve]", 1280, "light", "screen"),
    ("sms", "sms", "[data-figure=roc]", "[data-figure=precision_recall]", 1280, "light", "screen"),
    ("sms_print", "sms", None, "#data", 760, "light", "print"),
)
#: The part of the page from the first to the last element, with a margin.
PART = """((first, last) => {
  const box = selector => document.querySelector(selector).getBoundingClientRect();
  const a = first ? box(first) : {left: 0, top: -16, right: innerWidth}, b = box(last);
  const left = first ? Math.min(a.left, b.left) - 16 : 0, right = first ? Math.max(a.right, b.right) + 16 : innerWidth;
  return {x: left + scrollX, y: a.top - 16 + scrollY + (first ? 0 : 32), width: right - left,
          height: b.bottom - a.top + (first ? 32 : 0), scale: 1};
})(%s, %s)"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--runs", type=Path, help="where the runs are, or will be; by default a folder that is removed")
    parser.add_argument("--time", type=float, default=90.0, help="seconds of each training run")
    given = parser.parse_args()
    executable = chromium.found()
    if executable is None:
        parser.error(f"no browser: none of {', '.join(chromium.NAMES)} is in PATH")
    with tempfile.TemporaryDirectory() as name:
        runs = given.runs or Path(name)
        runs.mkdir(parents=True, exist_ok=True)
        pages = {run: page_of(run, given.data, runs, given.time) for run in RUNS}
        OUT.mkdir(exist_ok=True)
        with chromium.browser(executable, Path(name)) as browser:
            sizes = [draw(browser, pages, *picture) for picture in PICTURES]
    print(f"{len(sizes)} pictures, {sum(sizes) / 1e3:.0f} kB, in {OUT}")
    return 0


def page_of(run: str, data: Path, runs: Path, seconds: float) -> Path:
    """The report of a run, trained where it is not there, as a page of the present form."""
    folder = runs / run
    if not (folder / "report.json").exists():
        file, *options = RUNS[run]
        command = [sys.executable, "-m", "epicycle", "train", str(data / file), *options]
        subprocess.run([*command, "--time", str(seconds), "--out", str(folder), "--force"], check=True)
    record = json.loads((folder / "report.json").read_text("utf-8"))
    report.write(record, folder / "report.html")
    return folder / "report.html"


def draw(browser: Any, pages: dict[str, Path], name: str, run: str, *part: Any) -> int:
    """Write one picture; returns its bytes."""
    first, last, width, colours, medium = part
    browser.show(pages[run].resolve(), width=width, dark=colours == "dark")
    browser.media(dark=colours == "dark", kind=medium)
    clip = browser.ask(PART % (json.dumps(first), json.dumps(last)))
    shot = browser.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
    image = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
    path = OUT / f"{name}.webp"
    image.save(path, quality=82, method=6)
    print(f"{path.name}: {image.width} x {image.height}, {path.stat().st_size / 1e3:.0f} kB")
    return path.stat().st_size


if __name__ == "__main__":
    raise SystemExit(main())
