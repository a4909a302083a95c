"""Files that are damaged, foreign or made to do harm get a clear error, and nothing else happens."""

import io
import json
import os
import pickle
import zipfile

import forge
import joblib
import numpy as np
import pytest
import scipy.sparse
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from epicycle import Certificate
from epicycle.exceptions import DataFileError, ModelFormatError, ParameterTypeError
from epicycle.io import load, save

X = np.arange(12.0).reshape(6, 2)


@pytest.fixture
def scaler(tmp_path):
    return saved(StandardScaler().fit(X), tmp_path)


def saved(model, folder):
    save(model, folder / "good.epi")
    return (folder / "good.epi").read_bytes()


def refuse(folder, content, match):
    path = folder / "bad.epi"
    path.write_bytes(content)
    with pytest.raises(ModelFormatError, match=match) as caught:
        load(path)
    assert "bad.epi" in str(caught.value)


class Bomb:
    """Pickled, it would create a file on loading."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickles(tmp_path, protocol):
    refuse(tmp_path, pickle.dumps(Bomb(tmp_path / "boom"), protocol), "a pickle")
    assert not (tmp_path / "boom").exists()


@pytest.mark.parametrize("compress", [0, 3, ("gzip", 3), ("bz2", 3), ("xz", 3)])
def test_joblib_files(tmp_path, compress):
    joblib.dump(Bomb(tmp_path / "boom"), tmp_path / "model.joblib", compress=compress)
    refuse(tmp_path, (tmp_path / "model.joblib").read_bytes(), r"pickle")
    assert not (tmp_path / "boom").exists()


def test_zip_with_a_pickle(tmp_path, scaler):
    for names in (["data.pkl"], [*forge.MEMBERS, "extra.pkl"]):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for name in names:
                archive.writestr(name, forge.parts_of(scaler).get(name, pickle.dumps(Bomb(tmp_path / "boom"))))
        refuse(tmp_path, file.getvalue(), rf"a zip with a pickle inside.*'{names[-1]}'")
    assert not (tmp_path / "boom").exists()


def test_pickle_in_place_of_a_member(tmp_path, scaler):
    bomb = pickle.dumps(Bomb(tmp_path / "boom"))
    for member, match in ((forge.MODEL, "not valid JSON"), (forge.TENSORS, "header")):
        refuse(tmp_path, forge.assemble(forge.sealed({**forge.parts_of(scaler), member: bomb})), match)
    assert not (tmp_path / "boom").exists()


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "empty"),
        (b"hello", "starts with b'hello'"),
        (b"\x93NUMPY\x01\x00", "NumPy array file"),
        (b"PAR1" + bytes(20), "Parquet"),
        (b"PK\x03\x04", "cut short or not a model file"),
        (b"PK\x05\x06" + bytes(18), "cut short or not a model file"),
    ],
)
def test_other_files(tmp_path, content, match):
    refuse(tmp_path, content, match)


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "subprocess.Popen",
        "builtins.eval",
        "sklearn.linear_model.SGDClassifier",
        "sklearn.preprocessing._data.StandardScaler",
        "epicycle.scan",
        "epicycle.config",
        "epicycle.Checkpoint",
        "epicycle.io.load",
        "__main__.Bomb",
        "",
    ],
)
def test_foreign_classes(tmp_path, scaler, name):
    def rename(tree):
        tree["class"] = name

    refuse(tmp_path, forge.with_model(scaler, rename), rf"names '{name}', which is not a class")


def test_foreign_functions_and_types(tmp_path):
    content = saved({"f": np.log1p, "t": float}, tmp_path)

    def rename(key, name):
        def change(tree):
            tree["items"][key]["name"] = name

        return change

    for name in ("os.system", "numpy.load", "numpy.fromfile", "builtins.exec"):
        refuse(tmp_path, forge.with_model(content, rename("f", name)), f"names '{name}', which is not a function")
        refuse(tmp_path, forge.with_model(content, rename("t", name)), f"names '{name}', which is not a type")


@pytest.mark.parametrize(
    "name", ["transform", "__class__", "__dict__", "get_params", "_check_mean", "_skl_callbacks", "a b", "_é", "mean"]
)
def test_attributes_that_no_file_may_set(tmp_path, scaler, name):
    def add(tree):
        tree["fitted"][name] = 1

    refuse(tmp_path, forge.with_model(scaler, add), "StandardScaler")


def test_unknown_parameters_are_named(tmp_path, scaler):
    def add(tree):
        tree["parameters"]["with_colour"] = True

    refuse(tmp_path, forge.with_model(scaler, add), r"unknown parameters of .*StandardScaler: \['with_colour'\]")


def test_a_cache_directory_is_refused(tmp_path):
    def add(tree):
        tree["parameters"]["memory"] = str(tmp_path)

    refuse(tmp_path, forge.with_model(saved(Pipeline([("s", StandardScaler())]), tmp_path), add), "cache directory")


def test_small_objects_with_another_state(tmp_path):
    content = saved(Certificate("none", 0.0, 0.0), tmp_path)

    def add(tree):
        tree["state"]["colour"] = 1

    def as_estimator(tree):
        return {"$": "estimator", "class": tree["class"], "parameters": {}, "fitted": {}, "requests": None}

    refuse(tmp_path, forge.with_model(content, add), "colour")
    refuse(tmp_path, forge.with_model(content, as_estimator), "not stored as an estimator")


def test_later_format(tmp_path, scaler):
    def later(manifest):
        manifest["version"] = 2
        manifest["written_by"] = {"epicycle": "7.0"}
        manifest["members"] = {"something": "else"}

    refuse(tmp_path, forge.with_manifest(scaler, later), r"format version 2 by epicycle 7\.0.*upgrade epicycle")


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other model"},
        {"version": 0},
        {"version": "1"},
        {"version": True},
        {"version": None},
        {"members": {}},
        {"members": []},
        {"written_by": None},
        {"written_by": {"epicycle": "1"}},
        {"surprise": 1},
    ],
    ids=str,
)
def test_malformed_manifests(tmp_path, scaler, change):
    refuse(tmp_path, forge.with_manifest(scaler, lambda manifest: manifest.update(change)), r"manifest\.json")


def test_wrong_checksum(tmp_path, scaler):
    parts = forge.parts_of(scaler)
    for member in (forge.MODEL, forge.TENSORS):
        refuse(tmp_path, forge.assemble({**parts, member: parts[member] + b" "}), f"{member} is damaged: its checksum")


@pytest.mark.parametrize("depth", [201, 500_000])
def test_deep_nesting(tmp_path, scaler, depth):
    for text in (b"[" * depth, b"[" * depth + b"]" * depth, b'{"a":' * depth):
        parts = forge.sealed({**forge.parts_of(scaler), forge.MODEL: text})
        refuse(tmp_path, forge.assemble(parts), "nested more than 200 levels")
    for member in (forge.MANIFEST, forge.TENSORS):
        text = b"[" * 201 if member == forge.MANIFEST else (201).to_bytes(8, "little") + b"[" * 201
        parts = forge.parts_of(scaler)
        parts = {**parts, member: text} if member == forge.MANIFEST else forge.sealed({**parts, member: text})
        refuse(tmp_path, forge.assemble(parts), "nested more than 200 levels")


def test_nodes_nested_too_deep(tmp_path, scaler):
    def bury(tree):
        for _ in range(64):
            tree = [tree]
        return tree

    refuse(tmp_path, forge.with_model(scaler, bury), "nested more than 64 levels")


@pytest.mark.parametrize(
    "text",
    [
        b'{"a": 1, "a": 2}',
        b"NaN",
        b"Infinity",
        b"1e999",
        b"9" * 5000,
        b"18446744073709551616",
        b"\xff\xfe",
        b"",
        b"[1,]",
        b'{"$": "sorcery"}',
        b'{"$": ["array"]}',
        b'{"items": []}',
        b'{"$": "tuple"}',
        b'{"$": "tuple", "items": 3}',
        b'{"$": "tuple", "items": [], "more": 1}',
        b'{"$": "pairs", "items": [[1]]}',
        b'{"$": "pairs", "items": [[[1], 2]]}',
        b'{"$": "pairs", "items": [[1, 2], [1, 3]]}',
        b'{"$": "set", "items": [1, 1]}',
        b'{"$": "int", "hex": "0xzz"}',
        b'{"$": "int", "hex": "0x' + b"f" * 1025 + b'"}',
        b'{"$": "float", "value": "1.0"}',
        b'{"$": "complex", "real": "a", "imag": 1.0}',
        b'{"$": "bytes", "base64": "?"}',
        b'{"$": "range", "start": 0, "stop": 9, "step": 0}',
        b'{"$": "dtype", "name": "<f16"}',
        b'{"$": "dtype", "name": "V9999999999"}',
        b'{"$": "scalar", "dtype": "<f8", "hex": "00"}',
        b'{"$": "scalar", "dtype": "|b1", "hex": "02"}',
        b'{"$": "scalar", "dtype": "<U1", "hex": "ffffffff"}',
        b'{"$": "scalar", "dtype": "O", "hex": "0000000000000000"}',
        b'{"$": "objects", "shape": [1000000000000], "items": [1]}',
        b'{"$": "objects", "shape": [-1], "items": []}',
        b'{"$": "objects", "shape": [0, 281474976710656, 281474976710656, 281474976710656], "items": []}',
        b'{"$": "array", "name": "a", "dtype": "<f8", "shape": [1], "order": "C"}',
        b'{"$": "seed_sequence", "entropy": 1, "spawn_key": {"$": "tuple", "items": []}, '
        b'"pool_size": 1000000000000, "n_children_spawned": 0}',
        b'{"$": "seed_sequence", "entropy": -1, "spawn_key": {"$": "tuple", "items": []}, '
        b'"pool_size": 4, "n_children_spawned": 0}',
        b'{"$": "generator", "bit_generator": "PCG64", "state": {"$": "dict", "items": {}}, "seed_sequence": null}',
        b'{"$": "random_state", "bit_generator": "eval", "state": {"$": "dict", "items": {}}}',
    ],
    ids=lambda text: text[:50].decode("latin-1"),
)
def test_malformed_trees(tmp_path, text):
    parts = forge.parts_of(saved(None, tmp_path))
    refuse(tmp_path, forge.assemble(forge.sealed({**parts, forge.MODEL: text})), r"bad\.epi: ")


def test_too_many_values(tmp_path):
    text = b"[" + b"0," * 33_000_000 + b"0]"
    parts = forge.parts_of(saved(None, tmp_path))
    refuse(tmp_path, forge.assemble(forge.sealed({**parts, forge.MODEL: text})), "holds more than")


NAME = "model.mean_"


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"dtype": "F32"}, "expected 8"),
        ({"dtype": "I64"}, "described as <f8"),
        ({"dtype": "F8_E4M3"}, "unknown type"),
        ({"dtype": None}, "unknown type"),
        ({"shape": [3]}, "expected 24"),
        ({"shape": [2, 1]}, "described as <f8"),
        ({"shape": [2**62]}, "impossible shape"),
        ({"shape": [2**40, 2**40]}, "expected"),
        ({"shape": [-2]}, "impossible shape"),
        ({"shape": [2.0]}, "impossible shape"),
        ({"shape": [True, 2]}, "impossible shape"),
        ({"shape": [1] * 33 + [2]}, "impossible shape"),
        ({"shape": "ab"}, "impossible shape"),
        ({"data_offsets": [8, 24]}, "starts at byte|has"),
        ({"data_offsets": [-16, 0]}, "starts at byte"),
        ({"data_offsets": [2**63, 2**63 + 16]}, "starts at byte"),
        ({"data_offsets": [16]}, "malformed offsets"),
        ({"data_offsets": [0.0, 16.0]}, "malformed offsets"),
        ({"surprise": 1}, "malformed"),
    ],
    ids=str,
)
def test_malformed_headers(tmp_path, scaler, change, match):
    refuse(tmp_path, forge.with_header(scaler, lambda header: header[NAME].update(change)), match)


def test_headers_that_do_not_match_the_model(tmp_path, scaler):
    def drop(header):
        del header[NAME]

    def swap(header):
        header[NAME], header["other"] = header["model.var_"], header[NAME]

    def overlap(header):
        header[NAME]["data_offsets"] = header["model.var_"]["data_offsets"]

    refuse(tmp_path, forge.with_header(scaler, drop), "starts at byte|arrays end at")
    refuse(tmp_path, forge.with_header(scaler, swap), "starts at byte|do not hold the same arrays")
    refuse(tmp_path, forge.with_header(scaler, overlap), "starts at byte")
    refuse(tmp_path, forge.with_header(scaler, lambda header: {"__metadata__": {"a": "b"}, **header}), "malformed")
    refuse(tmp_path, forge.with_header(scaler, lambda header: [1]), "not a JSON object")
    parts = forge.parts_of(scaler)
    for tensors in (b"", b"1234567", b"\xff" * 8 + b"{}", (3).to_bytes(8, "little") + b"{}"):
        refuse(tmp_path, forge.assemble(forge.sealed({**parts, forge.TENSORS: tensors})), "header|short")


def test_one_array_used_twice(tmp_path, scaler):
    def twice(tree):
        tree["fitted"]["var_"] = tree["fitted"]["mean_"]

    refuse(tmp_path, forge.with_model(scaler, twice), "do not hold the same arrays")


@pytest.mark.parametrize(
    ("part", "values"),
    [
        ("indices", [0, 99, 1]),
        ("indices", [0, -1, 1]),
        ("indptr", [0, 1, 2, 4]),
        ("indptr", [0, 3, 2, 3]),
        ("indptr", [1, 1, 2, 3]),
        ("indptr", [0, 1, 2**31 - 1, 3]),
    ],
    ids=str,
)
def test_sparse_indices_out_of_range(tmp_path, part, values):
    matrix = scipy.sparse.csr_array(np.eye(3))
    setattr(matrix, part, np.array(values, dtype=np.int32))
    refuse(tmp_path, saved(matrix, tmp_path), "inconsistent indices")


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [("MT19937", "pos", 700), ("MT19937", "pos", -1), ("Philox", "buffer_pos", 9), ("PCG64", "has_uint32", 2)],
)
def test_generator_positions_out_of_range(tmp_path, name, field, value):
    content = saved(np.random.Generator(getattr(np.random, name)(0)), tmp_path)

    def change(tree):
        state = tree["state"]["items"]
        (state if field in state else state["state"]["items"])[field] = value

    refuse(tmp_path, forge.with_model(content, change), f"'{field}' in the state of {name} is out of its range")


def test_booleans_other_than_0_and_1(tmp_path):
    parts = forge.parts_of(saved(np.array([True, False]), tmp_path))
    tensors = parts[forge.TENSORS][:-2] + b"\x02\x00"
    refuse(tmp_path, forge.assemble(forge.sealed({**parts, forge.TENSORS: tensors})), "other than 0 and 1")


def test_characters_beyond_unicode(tmp_path):
    parts = forge.parts_of(saved(np.array(["a"]), tmp_path))
    tensors = parts[forge.TENSORS][:-4] + b"\xff\xff\xff\x7f"
    refuse(tmp_path, forge.assemble(forge.sealed({**parts, forge.TENSORS: tensors})), "no character")


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressed_bombs(tmp_path, scaler, compression):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in forge.parts_of(scaler).items():
            archive.writestr(name, content + b" " * 5_000_000 if name == forge.MODEL else content)
    refuse(tmp_path, file.getvalue(), "compressed, encrypted or damaged")


def test_other_zip_layouts(tmp_path, scaler):
    def zipped(members, comment=b""):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in members:
                archive.writestr(name, content)
            archive.comment = comment
        return file.getvalue()

    members = list(forge.parts_of(scaler).items())
    refuse(tmp_path, zipped(members[::-1]), r"expected the member manifest\.json")
    refuse(tmp_path, zipped(members[1:]), r"expected the member manifest\.json")
    refuse(tmp_path, zipped([("../evil", b"x")]), r"a zip of something else: '\.\./evil'")
    refuse(tmp_path, scaler + b"tail", "what follows the last member|cut short")
    refuse(tmp_path, b"head" + scaler, "starts with b'head")
    refuse(tmp_path, scaler[:-22], "what follows the last member")
    with pytest.warns(UserWarning, match="Duplicate"):
        refuse(tmp_path, zipped([*members, members[0]]), "epi: ")


def test_member_that_claims_more_than_there_is(tmp_path, scaler):
    for size in (2**31, 2**32 - 2):
        forged = forge.Member(forge.MANIFEST, 0, size).local_header() + scaler[43:]
        refuse(tmp_path, forged, "claims")
    huge = forge.Member(forge.MANIFEST, 0, 2**60).local_header()
    refuse(tmp_path, huge + scaler, "claims 1152921504606846976 bytes")


def test_missing_and_unreadable_files(tmp_path):
    for path in (tmp_path / "gone.epi", str(tmp_path / "gone.epi"), tmp_path / "no" / "folder.epi"):
        with pytest.raises(DataFileError, match=r"\.epi: cannot read the model: no such file") as caught:
            load(path)
        assert isinstance(caught.value, FileNotFoundError)
    with pytest.raises(DataFileError, match="a directory"):
        load(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(DataFileError, match="not a regular file"):
        load(tmp_path / "fifo")
    for path in (None, 3, b"m.epi", ""):
        with pytest.raises(ParameterTypeError, match="path must"):
            load(path)


def test_harmless_changes_are_accepted(tmp_path):
    model = MinMaxScaler().fit(X)
    content = saved(model, tmp_path)
    (tmp_path / "good.epi").write_bytes(forge.with_model(content, lambda tree: None))  # other white space
    assert json.loads(forge.parts_of(content)[forge.MODEL])["class"] == "sklearn.preprocessing.MinMaxScaler"
    np.testing.assert_array_equal(load(tmp_path / "good.epi").transform(X), model.transform(X))
