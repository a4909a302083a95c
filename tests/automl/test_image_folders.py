"""Folders of images: tables of pixels, the network for them, new images of another size, and what cannot be read."""

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image

import epicycle as ep
from epicycle.automl.images._image_folder import pixel_names, places_of, shape_of
from epicycle.automl.tables._streams import blocks_of
from epicycle.exceptions import DataError, DataFileError
from epicycle.training import PixelNetClassifier, read_table, train


def bars(n, side=10, seed=0):
    """Bright bars at random places, lying and standing: no pixel by itself says which."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 60, (n, side, side))
    labels = np.array(["lying", "standing"])[rng.integers(0, 2, n)]
    for image, label in zip(images, labels, strict=True):
        i, j = rng.integers(0, side), rng.integers(0, side - 4)
        view = image if label == "lying" else image.T
        view[i, j : j + 5] = 200
    return images.astype(np.uint8), labels


@pytest.fixture
def folder(tmp_path):
    images, labels = bars(24)
    write(tmp_path / "photos", images, labels)
    return tmp_path / "photos"


def write(folder, images, labels, **options):
    for i, (image, label) in enumerate(zip(images, labels, strict=True)):
        (folder / label).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image, **options).save(folder / label / f"{i:03}.png")


def test_a_row_for_each_image_and_a_column_for_each_pixel(folder):
    (folder / ".hidden").mkdir()
    (folder / "notes.md").write_text("not an image")
    table = read_table(folder)
    images, labels = bars(24)
    order = [i for label in ("lying", "standing") for i in np.flatnonzero(labels == label)]
    assert table.column_names[-1] == "folder"
    assert table["folder"].to_pylist() == labels[order].tolist()
    pixels = np.column_stack([table[name].to_numpy() for name in table.column_names[:-1]])
    assert_array_equal(pixels.reshape(-1, 10, 10), images[order])
    assert shape_of(table.column_names) == (10, 10, 1)
    assert read_table(folder / "lying").column_names == table.column_names[:-1]  # images without folders


def test_names_tell_places():
    for shape in ((2, 3, 1), (3, 2, 3)):
        names = pixel_names(shape)
        assert shape_of(names) == shape
        assert places_of(names) == list(range(np.prod(shape)))
        assert places_of(names[3:1:-1]) == [3, 2]
    assert shape_of(["pixel", "size"]) is None
    assert places_of(["pixel 0,0 of 2 x 2", "size"]) is None


def test_images_of_several_sizes_and_colours_are_scaled(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "a").mkdir()
    Image.fromarray(np.full((40, 50), 90, dtype=np.uint8)).save(tmp_path / "a" / "grey.png")
    Image.fromarray(np.full((12, 9, 3), [10, 20, 30], dtype=np.uint8)).save(tmp_path / "a" / "colour.jpg")
    table = read_table(tmp_path)
    assert shape_of(table.column_names) == (32, 32, 3)
    rows = np.column_stack([table[name].to_numpy() for name in table.column_names[:-1]]).reshape(2, 32, 32, 3)
    assert_allclose(rows[1], 90)
    assert_allclose(rows[0].mean(axis=(0, 1)), [10, 20, 30], atol=3)  # colour.jpg comes first
    deep = rng.integers(0, 65536, (6, 6)).astype(np.uint16)
    (tmp_path / "b").mkdir()
    Image.fromarray(deep).save(tmp_path / "b" / "deep.png")
    found = read_table(tmp_path / "b")
    assert_allclose([found[name][0].as_py() for name in found.column_names], deep.ravel() / 257, atol=0.51)


def test_new_images_are_scaled_to_those_of_the_fit(folder, tmp_path):
    table = read_table(folder)
    net = PixelNetClassifier((10, 10, 1), max_iter=2, batch_size=8, random_state=0)
    kinds = {**dict.fromkeys(table.column_names, "number"), "folder": "target"}
    del kinds["pixel 0,0 of 10 x 10"]  # as columns that never vary
    model = ep.TableModel(net, kinds, form="linear", scale="common").fit(table)
    assert model.model_.places == list(range(1, 100))
    assert model.model_.image_shape_ == [10, 10, 1]
    (tmp_path / "new").mkdir()
    for i, image in enumerate(bars(3, seed=1)[0]):
        Image.fromarray(image).convert("RGB").resize((20, 30)).save(tmp_path / "new" / f"{i}.png")
    (block,) = blocks_of(tmp_path / "new", model.encoder_.types_)
    assert len(model.predict(block)) == 3
    model.save(tmp_path / "model.epi")
    assert_array_equal(ep.load(tmp_path / "model.epi").predict_proba(table), model.predict_proba(table))
    with pytest.raises(DataError, match="rows of 99 pixels"):
        model.model_.predict(np.zeros((2, 100)))


def test_what_is_no_image_is_named(folder, tmp_path):
    (folder / "lying" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n and then nothing")
    with pytest.raises(DataFileError, match=r"broken\.png: cannot be read as an image"):
        read_table(folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataFileError, match="directory without tables"):
        read_table(tmp_path / "empty")


def test_tables_in_a_folder_are_tables_still(folder):
    (folder / "table.csv").write_text("a,b\n1,2\n3,4\n")
    assert read_table(folder).equals(pa.table({"a": [1, 3], "b": [2, 4]}))


@pytest.mark.slow
def test_the_network_wins_where_no_pixel_says_anything_by_itself(tmp_path):
    images, labels = bars(400)
    write(tmp_path / "photos", images, labels)
    run = train(tmp_path / "photos", "folder", time=40, models="ConvNet", out=tmp_path / "run")
    assert "training.PixelNetClassifier" in run.script
    assert run.test.score > 0.9
    linear = ep.LogisticRegression().fit(images[:320].reshape(320, -1) / 255, labels[:320])
    assert linear.score(images[320:].reshape(80, -1) / 255, labels[320:]) < 0.8
