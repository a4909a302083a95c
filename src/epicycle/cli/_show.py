"""``epicycle show``: what a model file holds, told without building the model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from epicycle.core._memory import bytes_in_words
from epicycle.io import ModelDescription, describe

__all__ = ["print_model"]


def print_model(path: Path, *, as_json: bool) -> None:
    """Print the class, parameters, certificates and arrays of the model file `path`."""
    model = describe(path)
    if as_json:
        print(json.dumps(_document(model), indent=2, default=repr))
        return
    for title, lines in _sections(model):
        print(f"{title:<13}{lines[0]}")
        for line in lines[1:]:
            print(f"{'':<13}{line}")


def _document(model: ModelDescription) -> dict[str, Any]:
    document = asdict(model)
    for place, certificate in model.certificates.items():
        document["certificates"][place]["holds"] = bool(certificate.holds)
    return document


def _sections(model: ModelDescription) -> Iterator[tuple[str, list[str]]]:
    """Titles and their lines; a section without content is left out."""
    sections = {
        "model": [model.class_name],
        "parameters": [f"{name}={value!r}" for name, value in model.parameters.items()],
        "parts": _columns([(place, cls) for place, cls in model.parts.items()]),
        "certificate": _certificates(model),
        "fitted": _columns([(name,) for name in model.fitted]),
        "arrays": _columns(
            [(a.name, a.dtype, "x".join(map(str, a.shape)) or "scalar", bytes_in_words(a.nbytes)) for a in model.arrays]
        ),
        "file": [f"{model.path}, {bytes_in_words(model.file_bytes)}, format {model.format_version}"],
        "written by": [", ".join(f"{name} {version}" for name, version in model.versions.items())],
    }
    return ((title, lines) for title, lines in sections.items() if lines)


def _certificates(model: ModelDescription) -> list[str]:
    lines = []
    for place, certificate in model.certificates.items():
        lines.append(str(certificate) if place == "model" else f"{place}: {certificate}")
        if certificate.kind != "none" and certificate.holds and certificate.meaning:
            lines.append(f"  {certificate.meaning}")
    return lines


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    """Rows as lines with aligned columns."""
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
