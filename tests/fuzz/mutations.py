"""Ways to break a model file. Every mutant has to be refused: none is a valid file by construction.

Blind mutations change bytes and leave the checksums as they were. Informed ones change the structure and seal the
file again with right checksums, so that they reach the code behind the first line of defence.
"""

import json
import random
from collections.abc import Callable, Iterator, Sequence

import forge

FOREIGN = ["os.system", "subprocess.Popen", "builtins.eval", "sklearn.linear_model.SGDClassifier", "posix.system", ""]
HUGE = [2**70, -(2**70), 10**4000, 2**64]


def mutants(seeds: Sequence[bytes], n: int, random_state: int) -> Iterator[tuple[str, bytes]]:
    """`n` mutants with the names of what was done; about half of them sealed."""
    rng = random.Random(random_state)
    valid = set(seeds)
    made = 0
    while made < n:
        mutate = rng.choice(BLIND if made % 2 else INFORMED)
        content = mutate(rng.choice(seeds), rng, seeds)
        if content is not None and content not in valid:
            made += 1
            yield mutate.__name__, content


Mutation = Callable[[bytes, random.Random, Sequence[bytes]], bytes | None]


def flip_bits(content, rng, seeds):
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def truncate(content, rng, seeds):
    return content[: rng.randrange(len(content))]


def extend(content, rng, seeds):
    return content + rng.choice([b"\0", rng.randbytes(rng.randrange(1, 99)), content])


def cut_out(content, rng, seeds):
    start = rng.randrange(len(content))
    return content[:start] + content[start + rng.randrange(1, 64) :]


def insert(content, rng, seeds):
    start = rng.randrange(len(content))
    return content[:start] + rng.randbytes(rng.randrange(1, 64)) + content[start:]


def overwrite(content, rng, seeds):
    start, length = rng.randrange(len(content)), rng.randrange(1, 64)
    filling = rng.choice([bytes(length), b"\xff" * length, rng.randbytes(length)])
    return (content[:start] + filling + content[start + length :])[: len(content)]


def splice(content, rng, seeds):
    other = rng.choice(seeds)
    cut = rng.randrange(min(len(content), len(other)))
    return content[:cut] + other[cut:]


def swap_member(content, rng, seeds):
    """The model of one file with the arrays of another, checksums left alone."""
    name = rng.choice([forge.MODEL, forge.TENSORS])
    parts, other = forge.parts_of(content), forge.parts_of(rng.choice(seeds))
    return None if parts[name] == other[name] else forge.assemble({**parts, name: other[name]})


BLIND: list[Mutation] = [flip_bits, flip_bits, truncate, extend, cut_out, insert, overwrite, splice, swap_member]


def _nodes(tree, tag=None):
    """All tagged nodes of a tree, or those with one tag."""
    if isinstance(tree, dict):
        if isinstance(tree.get("$"), str) and tag in (None, tree["$"]):
            yield tree
        for child in tree.values():
            yield from _nodes(child, tag)
    elif isinstance(tree, list):
        for child in tree:
            yield from _nodes(child, tag)


def _on_node(content, rng, change, tag=None):
    """Apply ``change(node)`` to a random node; None if there is no such node."""
    found = []

    def apply(tree):
        nodes = list(_nodes(tree, tag))
        if nodes:
            node = rng.choice(nodes)
            change(node)
            found.append(node)

    changed = forge.with_model(content, apply)
    return changed if found else None


def foreign_class(content, rng, seeds):
    tag = rng.choice(["estimator", "object"])
    return _on_node(content, rng, lambda node: node.update({"class": rng.choice(FOREIGN)}), tag)


def foreign_name(content, rng, seeds):
    tag = rng.choice(["function", "type", "dtype"])
    return _on_node(content, rng, lambda node: node.update({"name": rng.choice(FOREIGN)}), tag)


def unknown_tag(content, rng, seeds):
    return _on_node(content, rng, lambda node: node.update({"$": rng.choice(["pickle", "", 3, None, ["array"]])}))


def drop_field(content, rng, seeds):
    return _on_node(content, rng, lambda node: node.pop(rng.choice(sorted(node))))


def add_field(content, rng, seeds):
    return _on_node(content, rng, lambda node: node.update({rng.choice(["__reduce__", "code", "x"]): "os.system"}))


def wrong_kind_of_field(content, rng, seeds):
    def change(node):
        texts = [key for key, value in node.items() if key != "$" and isinstance(value, str)]
        containers = [key for key, value in node.items() if key in ("shape", "items", "parameters", "fitted")]
        for key in texts[:1] or containers[:1] or ["$"]:
            node[key] = rng.choice([17, None, True, 1.5, "nonsense" if key not in texts else 3])

    return _on_node(content, rng, change)


def huge_number(content, rng, seeds):
    def change(node):
        key = rng.choice(sorted(node.keys() - {"$"}) or ["$"])
        node[key] = rng.choice(HUGE)

    return _on_node(content, rng, change)


def deep_nesting(content, rng, seeds):
    depth = rng.choice([65, 100, 250, 5000])
    text = forge.parts_of(content)[forge.MODEL]
    deep = rng.choice([b"[" * depth + text + b"]" * depth, b'{"$":"tuple","items":[' * depth + b"]}" * depth])
    return forge.assemble(forge.sealed({**forge.parts_of(content), forge.MODEL: deep}))


def other_shape(content, rng, seeds):
    def change(node):
        shape = node["shape"]
        node["shape"] = rng.choice([[*shape, 2], [7919, *shape], [-1], [2**60, 2**60], [1.5], None, [2**62], ["3"]])

    return _on_node(content, rng, change, rng.choice(["array", "objects", "sparse"]))


def other_dtype(content, rng, seeds):
    def change(node):
        node["dtype"] = rng.choice(
            ["<f16", "|V8", "|O", "<f8,<f8", "(2,)<f8", "<U999999", "|S0", ">f8", "float64", "<M9"]
        )

    return _on_node(content, rng, change, rng.choice(["array", "scalar"]))


def other_array(content, rng, seeds):
    return _on_node(content, rng, lambda node: node.update(name=rng.choice(["", "nowhere", "model"])), "array")


def other_order(content, rng, seeds):
    return _on_node(content, rng, lambda node: node.update(order=rng.choice(["K", "", "c"])), "array")


def other_attribute(content, rng, seeds):
    name = rng.choice(["__class__", "__init__", "transform", "fit", "get_params", "x", "_skl_callbacks", "no_such_"])
    return _on_node(content, rng, lambda node: node["fitted"].update({name: 1}), "estimator")


def other_parameter(content, rng, seeds):
    name = rng.choice(["__class__", "self", "no_such", "mean_", ""])
    return _on_node(content, rng, lambda node: node["parameters"].update({name: 1}), "estimator")


def header_entry(content, rng, seeds):
    found = []

    def apply(header):
        if not header:
            return
        entry = header[rng.choice(sorted(header))]
        key = rng.choice(["dtype", "shape", "data_offsets"])
        begin, end = entry["data_offsets"]
        size = end - begin
        entry[key] = {
            "dtype": lambda: rng.choice(["F8_E5M2", "BF16", "C64", "", None, 3]),
            "shape": lambda: rng.choice([[*entry["shape"], size + 2], [2**62, 4], [-1, -size], [0.5], "x", [2**63]]),
            "data_offsets": lambda: rng.choice(
                [[begin + 1, end + 1], [begin, end + 8], [-size, 0], [2**63, 2**63 + size], [end, begin - 1], [0], None]
            ),
        }[key]()
        found.append(key)

    changed = forge.with_header(content, apply)
    return changed if found else None


def header_names(content, rng, seeds):
    def apply(header):
        header[rng.choice(["__metadata__", "extra", ""])] = {"dtype": "F64", "shape": [0], "data_offsets": [0, 0]}

    return forge.with_header(content, apply)


def header_length(content, rng, seeds):
    parts = forge.parts_of(content)
    length = rng.choice([0, 1, 2**63, 2**64 - 1, len(parts[forge.TENSORS]), rng.randrange(2**40)])
    tensors = length.to_bytes(8, "little") + parts[forge.TENSORS][8:]
    return forge.assemble(forge.sealed({**parts, forge.TENSORS: tensors}))


def foreign_member(content, rng, seeds):
    """A pickle that would run a command, or noise, where a member belongs."""
    bomb = b"cos\nsystem\n(S'touch boom'\ntR."
    name = rng.choice([forge.MODEL, forge.TENSORS])
    filling = rng.choice([bomb, b"\x80\x04" + bomb, rng.randbytes(99), b""])
    return forge.assemble(forge.sealed({**forge.parts_of(content), name: filling}))


def other_manifest(content, rng, seeds):
    def apply(manifest):
        key = rng.choice(sorted(manifest))
        manifest[key] = rng.choice([None, 2, 10**30, [], {}, "x", -1, {"model.json": {"bytes": -1, "sha256": 0}}])

    changed = forge.with_manifest(content, apply)
    return changed


def broken_json(content, rng, seeds):
    text = forge.parts_of(content)[forge.MODEL]
    cut = rng.randrange(len(text))
    broken = rng.choice([text[:cut], text + b"]", text.replace(b":", b"=", 1), b"\xef\xbb\xbf" + text, b"\xff" + text])
    try:
        json.loads(broken)
    except ValueError:
        return forge.assemble(forge.sealed({**forge.parts_of(content), forge.MODEL: broken}))
    return None


INFORMED: list[Mutation] = [
    foreign_class,
    foreign_name,
    unknown_tag,
    drop_field,
    add_field,
    wrong_kind_of_field,
    huge_number,
    deep_nesting,
    other_shape,
    other_dtype,
    other_array,
    other_order,
    other_attribute,
    other_parameter,
    header_entry,
    header_names,
    header_length,
    foreign_member,
    other_manifest,
    broken_json,
]


def confused(seeds: Sequence[bytes], n: int, random_state: int) -> Iterator[bytes]:
    """Sealed files in which one well-formed value stands where another belongs.

    Such a file may well be loaded: which values an attribute may have is for the class to say. It must not crash.
    """
    rng = random.Random(random_state)
    for _ in range(n):
        content, donor = rng.choice(seeds), rng.choice(seeds)
        nodes = [
            node for node in _nodes(json.loads(forge.parts_of(donor)[forge.MODEL])) if not any(_nodes(node, "array"))
        ]
        replacement = rng.choice([*nodes, None, 0, -1, 2**62, 1e308, "text", [], [[]]])

        def change(tree, replacement=replacement):
            node = rng.choice(list(_nodes(tree)))
            held = [key for key in ("items", "parameters", "fitted", "state") if isinstance(node.get(key), list | dict)]
            holder = node[rng.choice(held)] if held else node
            if holder:
                holder[rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))] = replacement

        yield forge.with_model(content, change)
