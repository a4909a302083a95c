"""Options and arguments that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A CSV, Parquet, Arrow or JSON file, a folder or pattern in quotes ('data/*.csv'), a spreadsheet, a table "
        "of a database (file.db::table), - for standard input, or a data set such as iris.",
    ),
]
NoHeader = Annotated[
    bool, typer.Option("--no-header", help="The first line of a CSV file is a row; columns are called x0, x1, ...")
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON instead of text.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of all random numbers.")]
Jobs = Annotated[int | None, typer.Option("--jobs", help="Number of threads; by default by the size of the work.")]
Target = Annotated[str | None, typer.Option("--target", metavar="COLUMN", help="The column to predict.")]
Order = Annotated[
    str,
    typer.Option(
        "--time-column", "--order", metavar="COLUMN", help="A column of time; auto finds one, none splits at random."
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="COLUMN", help="Leave it out; may be given more than once."),
]
Models = Annotated[
    str | None,
    typer.Option("--models", help="Methods to try, separated by commas; by default all that suit."),
]
Pdf = Annotated[bool, typer.Option("--pdf", help="Print the report to report.pdf too, by Chromium or Chrome.")]
Model = Annotated[Path, typer.Argument(metavar="MODEL.epi", help="A file that train or save() wrote.")]


def folder(name: str) -> Any:
    """The option of a command that writes a folder, by default that of the name."""
    return typer.Option("--out", metavar="DIR", help=f"Where to write; by default epicycle-{name} in this folder.")


def names_of(models: str | None) -> list[str] | None:
    """Names that are separated by commas."""
    return None if models is None else [m.strip() for m in models.split(",") if m.strip()]
