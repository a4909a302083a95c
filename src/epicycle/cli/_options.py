"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["Jobs", "Json", "Order", "Out", "Seed", "Target"]

Json = Annotated[bool, typer.Option("--json", help="Write JSON instead of text.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Fixes everything that is drawn at random.")]
Jobs = Annotated[int | None, typer.Option("--jobs", help="Threads; by default as many as the work is worth.")]
Target = Annotated[str | None, typer.Option("--target", metavar="COLUMN", help="The column to predict.")]
Order = Annotated[
    str,
    typer.Option("--order", metavar="COLUMN", help="A column of time; auto finds one, none takes rows at random."),
]
Out = Annotated[str | None, typer.Option("--out", metavar="PATH", help="Where to write; - is standard output.")]
