"""The zip around a model is one that other tools read, however large it gets."""

import io
import zipfile

import forge
import numpy as np
import pytest
import safetensors.numpy

from epicycle.io import _container as container, load, save


def test_other_tools_read_it(tmp_path):
    save({"w": np.arange(3.0)}, tmp_path / "m.epi")
    with zipfile.ZipFile(tmp_path / "m.epi") as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["manifest.json", "model.json", "arrays.safetensors"]
        arrays = safetensors.numpy.load(archive.read("arrays.safetensors"))
    np.testing.assert_array_equal(arrays["model['w']"], np.arange(3.0))


@pytest.mark.parametrize("limit", [0, 300, 800])
def test_sizes_beyond_32_bits(tmp_path, monkeypatch, limit):
    # Files beyond 4 GiB use the 64-bit fields; with a lower limit, small files do.
    monkeypatch.setattr(container, "_LIMIT_32", limit)
    save({"w": np.arange(100.0)}, tmp_path / "m.epi")
    content = (tmp_path / "m.epi").read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        assert archive.getinfo("arrays.safetensors").file_size == len(archive.read("arrays.safetensors"))
    np.testing.assert_array_equal(load(tmp_path / "m.epi")["w"], np.arange(100.0))


def test_taking_apart_and_putting_together(tmp_path):
    save({"w": np.arange(3.0)}, tmp_path / "m.epi")
    content = (tmp_path / "m.epi").read_bytes()
    assert forge.assemble(forge.parts_of(content)) == content


def test_memory_is_bounded_by_the_size_of_the_file(tmp_path):
    import tracemalloc

    save(np.zeros(2_000_000), tmp_path / "m.epi")  # 16 MB
    tracemalloc.start()
    load(tmp_path / "m.epi")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.5 * 16e6
