"""What is saved is what is loaded: values, arrays and random generators."""

import numpy as np
import pytest
import scipy.sparse
from equality import same
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.utils.validation import check_is_fitted

from epicycle import Certificate, History
from epicycle.exceptions import ParameterError, ParameterTypeError
from epicycle.io import load, save

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**200), 2**200),
    st.floats(),
    st.complex_numbers(),
    st.text(),
    st.binary(max_size=40),
    st.slices(10),
    st.builds(range, st.integers(-9, 9), st.integers(-9, 9), st.sampled_from([-2, 1, 3])),
    st.sampled_from(
        [float, str, np.float32, np.number, np.log1p, np.dtype("f4"), np.dtype(object), np.dtype("M8[ns]")]
    ),
)
dtypes = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="<"),
    hnp.unsigned_integer_dtypes(endianness="<"),
    hnp.floating_dtypes(endianness="<", sizes=(16, 32, 64)),
    hnp.complex_number_dtypes(endianness="<", sizes=(64, 128)),
    hnp.datetime64_dtypes(endianness="<"),
    hnp.timedelta64_dtypes(endianness="<"),
    hnp.unicode_string_dtypes(endianness="<"),
    hnp.byte_string_dtypes(endianness="<"),
)
shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
arrays = st.one_of(
    dtypes.flatmap(lambda dtype: hnp.arrays(dtype, shapes)),
    hnp.arrays(object, shapes, elements=scalars),
)
numpy_scalars = dtypes.flatmap(hnp.from_dtype).filter(lambda value: isinstance(value, np.generic))
keys = st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.tuples(st.integers(), st.text()))
values = st.recursive(
    st.one_of(scalars, arrays, numpy_scalars),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text(), inner, max_size=4),
        st.dictionaries(keys, inner, max_size=4),
        st.sets(keys, max_size=4),
        st.frozensets(keys, max_size=4),
    ),
    max_leaves=12,
)


def round_trip(value, folder):
    save(value, folder / "value.epi")
    return load(folder / "value.epi")


@given(values)
@settings(max_examples=300)
def test_any_tree_of_values(tmp_path_factory, value):
    assert same(round_trip(value, tmp_path_factory.getbasetemp()), value)


@pytest.mark.parametrize(
    "array",
    [
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.arange(12).reshape(3, 4)[::2, ::-1],
        np.broadcast_to(np.float32(2), (3, 2)),
        np.arange(6, dtype=">f8").reshape(2, 3),
        np.array([np.nan, -np.nan, -0.0, np.inf]),
        np.array(5.0),
        np.zeros((0, 7)),
    ],
    ids=["fortran", "strided", "broadcast", "big-endian", "special", "0-d", "empty"],
)
def test_array_layouts(tmp_path, array):
    back = round_trip({"a": array, "again": array}, tmp_path)["a"]
    np.testing.assert_array_equal(back, array)
    assert back.dtype == array.dtype.newbyteorder("=")
    assert back.flags.writeable
    assert back.flags.aligned
    if array.flags.f_contiguous and array.ndim == 2:
        assert back.flags.f_contiguous


def test_read_only_memory_map(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(8.0))
    back = round_trip(np.load(tmp_path / "a.npy", mmap_mode="r"), tmp_path)
    assert type(back) is np.ndarray
    assert same(back, np.arange(8.0))


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("make", ["csr_array", "csc_array", "csr_matrix", "csc_matrix"])
@pytest.mark.parametrize("shape", [(5, 3), (0, 4), (3, 0)])
def test_sparse(tmp_path, make, shape, index_type):
    dense = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 3
    matrix = getattr(scipy.sparse, make)(dense)
    matrix.indices, matrix.indptr = matrix.indices.astype(index_type), matrix.indptr.astype(index_type)
    back = round_trip(matrix, tmp_path)
    assert same(back, matrix)
    assert back.indices.dtype == index_type
    np.testing.assert_array_equal((back @ np.ones((shape[1], 1))), dense @ np.ones((shape[1], 1)))


@pytest.mark.parametrize("name", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_generators_go_on_where_they_were(tmp_path, name):
    generator = np.random.Generator(getattr(np.random, name)(7))
    generator.integers(10, size=3, dtype=np.int32)  # leaves half of a word behind
    back = round_trip(generator, tmp_path)
    np.testing.assert_array_equal(back.normal(size=5), generator.normal(size=5))
    np.testing.assert_array_equal(back.spawn(2)[1].normal(size=5), generator.spawn(2)[1].normal(size=5))


def test_random_state_and_seed_sequence(tmp_path):
    state = np.random.RandomState(3)
    state.normal()  # one of a pair: the other is kept for the next call
    sequence = np.random.SeedSequence([1, 2**70], spawn_key=(4,))
    sequence.spawn(2)
    back_state, back_sequence = round_trip((state, sequence), tmp_path)
    np.testing.assert_array_equal(back_state.normal(size=3), state.normal(size=3))
    np.testing.assert_array_equal(back_sequence.spawn(1)[0].generate_state(4), sequence.spawn(1)[0].generate_state(4))


def test_certificate_and_history(tmp_path):
    certificate = Certificate("duality gap", float("nan"), 1e-8, "no meaning")
    history = History(objective=[3.0, 2.0, np.nan], seconds=[0.0, 0.1, 0.2])
    back = round_trip([certificate, history], tmp_path)
    assert repr(back[0]) == repr(certificate)
    assert back[1] == history


def test_pandas_missing_value(tmp_path):
    pd = pytest.importorskip("pandas")
    assert round_trip([pd.NA], tmp_path)[0] is pd.NA


def test_same_model_same_bytes(tmp_path):
    value = {"set": {"b", "a", "c"}, "array": np.arange(3)}
    save(value, tmp_path / "1.epi")
    save({"set": {"c", "b", "a"}, "array": np.arange(3)}, tmp_path / "2.epi")
    assert (tmp_path / "1.epi").read_bytes() == (tmp_path / "2.epi").read_bytes()


def test_deepest_tree_that_is_allowed(tmp_path):
    tree = [1]
    for _ in range(63):
        tree = {1: tree}
    assert same(round_trip(tree, tmp_path), tree)
    with pytest.raises(ParameterError, match="nested more than 64 levels"):
        save([tree], tmp_path / "deep.epi")
    assert not (tmp_path / "deep.epi").exists()


class Stranger:
    def __repr__(self):
        return "stranger"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Stranger(), r"cannot hold .*Stranger, found at model\['here'\]"),
        (lambda x: x, r"cannot hold .*<lambda>, found at model\['here'\]"),
        (print, r"cannot hold builtins\.print"),
        (Stranger, r"cannot hold .*Stranger, found"),
        (np.ma.masked_array([1.0]), "MaskedArray"),
        (np.zeros(2, dtype=[("a", int)]), r"model\['here'\] has the NumPy type"),
        (np.zeros(2, dtype=np.longdouble), r"NumPy type float128|longdouble"),
        (scipy.sparse.coo_array(np.eye(2)), "CSR or CSC"),
        ("\ud800", "not valid Unicode"),
        (2**5000, "5001 bits"),
        (bytes(17 * 1024**2), "limit"),
        ({"a": [Stranger()]}, r"model\['here'\]\['a'\]\[0\]"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_what_cannot_be_stored_is_named_with_its_place(tmp_path, value, message):
    with pytest.raises(ParameterError, match=message):
        save({"here": value}, tmp_path / "x.epi")
    assert list(tmp_path.iterdir()) == []


def test_cycles_are_refused(tmp_path):
    loop = [1]
    loop.append({"again": loop})
    with pytest.raises(ParameterError, match="contains itself"):
        save(loop, tmp_path / "x.epi")


def test_foreign_estimators_are_refused(tmp_path):
    from sklearn.linear_model import SGDClassifier

    with pytest.raises(ParameterTypeError, match=r"SGDClassifier, found at model\[0\]"):
        save([SGDClassifier()], tmp_path / "x.epi")


def test_unfitted_estimators_stay_unfitted(tmp_path):
    from sklearn.exceptions import NotFittedError
    from sklearn.preprocessing import StandardScaler

    with pytest.raises(NotFittedError):
        check_is_fitted(round_trip(StandardScaler(with_mean=False), tmp_path))
