"""Take model files apart and put them together again, wrongly."""

import hashlib
import io
import json
import zipfile
import zlib

from epicycle.io._container import MANIFEST, MEMBERS, MODEL, TENSORS, Member, framing


def parts_of(content):
    """The members of a model file, read with the standard library."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def sealed(parts):
    """The same members with a manifest whose sizes and checksums are right: what an attacker would send."""
    manifest = json.loads(parts[MANIFEST])
    for name in (MODEL, TENSORS):
        entry = {"bytes": len(parts[name]), "sha256": hashlib.sha256(parts[name]).hexdigest()}
        manifest["members"][name] = entry
    return {**parts, MANIFEST: json.dumps(manifest).encode()}


def assemble(parts):
    """A file with the layout of a model file around the given members."""
    members = [Member(name, zlib.crc32(parts[name]), len(parts[name])) for name in MEMBERS]
    heads, tail = framing(members)
    return b"".join(head + parts[name] for head, name in zip(heads, MEMBERS, strict=True)) + tail


def with_model(content, change):
    """A sealed file whose model.json was changed: ``change(tree)`` edits it or returns another."""
    parts = parts_of(content)
    tree = json.loads(parts[MODEL])
    tree = change(tree) or tree
    return assemble(sealed({**parts, MODEL: json.dumps(tree).encode()}))


def with_header(content, change):
    """A sealed file whose safetensors header was changed in the same way."""
    parts = parts_of(content)
    length = int.from_bytes(parts[TENSORS][:8], "little")
    header = json.loads(parts[TENSORS][8 : 8 + length])
    header = change(header) or header
    text = json.dumps(header).encode()
    tensors = len(text).to_bytes(8, "little") + text + parts[TENSORS][8 + length :]
    return assemble(sealed({**parts, TENSORS: tensors}))


def with_manifest(content, change):
    """A file whose manifest was changed."""
    parts = parts_of(content)
    manifest = json.loads(parts[MANIFEST])
    manifest = change(manifest) or manifest
    return assemble({**parts, MANIFEST: json.dumps(manifest).encode()})
