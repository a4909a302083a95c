"""The first member of a model file: which format it has, who wrote it, and the checksums of the rest."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

from epicycle.core._exceptions import ModelFormatError
from epicycle.io._container import MANIFEST, MODEL, TENSORS
from epicycle.io._json import Json, dumps, loads
from epicycle.io._limits import FORMAT_NAME, FORMAT_VERSION

__all__ = ["Manifest", "check_member", "current_versions", "read_manifest", "write_manifest"]

_PACKAGES = {"epicycle": "epicycle", "numpy": "numpy", "scipy": "scipy", "scikit-learn": "sklearn"}


@dataclass(frozen=True)
class Manifest:
    """What the writer says about the file."""

    version: int
    written_by: dict[str, str]
    members: dict[str, tuple[int, str]]


def current_versions() -> dict[str, str]:
    """The versions of what this process would write and read with."""
    versions = {name: str(import_module(module).__version__) for name, module in _PACKAGES.items()}
    return {"python": platform.python_version(), **versions}


def write_manifest(members: Mapping[str, bytes]) -> bytes:
    """The manifest for the given members."""
    written_by: dict[str, Json] = dict(current_versions())
    entries: dict[str, Json] = {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in members.items()
    }
    return dumps({"format": FORMAT_NAME, "version": FORMAT_VERSION, "written_by": written_by, "members": entries})


def read_manifest(content: bytes) -> Manifest:
    """Read a manifest; one of a later format is refused by its version alone."""
    manifest = loads(content, MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT_NAME:
        raise ModelFormatError(f"{MANIFEST} is not that of an epicycle model")
    version, written_by = manifest.get("version"), manifest.get("written_by")
    if type(version) is not int or version < 1:
        raise ModelFormatError(f"{MANIFEST} states the impossible format version {str(version)[:40]}")
    if version > FORMAT_VERSION:
        writer = written_by.get("epicycle") if isinstance(written_by, dict) else None
        raise ModelFormatError(
            f"written in format version {version} by epicycle {str(writer)[:40]}; "
            f"epicycle {current_versions()['epicycle']} reads versions up to {FORMAT_VERSION}: upgrade epicycle"
        )
    if manifest.keys() != {"format", "version", "written_by", "members"}:
        raise ModelFormatError(f"{MANIFEST} has unknown or missing fields: {str(sorted(manifest))[:200]}")
    if not isinstance(written_by, dict) or not {"python", *_PACKAGES} == written_by.keys():
        raise ModelFormatError(f"{MANIFEST} does not say which versions wrote the file")
    if not all(isinstance(text, str) and len(text) <= 100 for text in written_by.values()):
        raise ModelFormatError(f"{MANIFEST} states malformed versions")
    members = manifest["members"]
    if not isinstance(members, dict) or members.keys() != {MODEL, TENSORS}:
        raise ModelFormatError(f"{MANIFEST} lists other members than {MODEL} and {TENSORS}")
    return Manifest(
        version,
        {name: str(text) for name, text in written_by.items()},
        {name: _entry(name, entry) for name, entry in members.items()},
    )


def check_member(manifest: Manifest, name: str, content: bytes) -> None:
    """Hold a member against its size and checksum."""
    size, checksum = manifest.members[name]
    if len(content) != size or hashlib.sha256(content).hexdigest() != checksum:
        raise ModelFormatError(f"{name} is damaged: its checksum does not match")


def _entry(name: str, entry: Json) -> tuple[int, str]:
    if isinstance(entry, dict) and entry.keys() == {"bytes", "sha256"}:
        size, checksum = entry["bytes"], entry["sha256"]
        if type(size) is int and isinstance(checksum, str):
            return size, checksum
    raise ModelFormatError(f"{MANIFEST} has a malformed entry for {name}")
