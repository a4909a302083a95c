"""Synthetic tables: codes of columns, generators, what their rows are worth, and copies."""

import datetime as dt
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy.special import ndtr
from scipy.stats import ks_2samp, spearmanr

import epicycle as ep
from epicycle.automl.synthesis._fidelity import association
from epicycle.automl.synthesis._table_codes import code_of_column
from epicycle.cli import main
from epicycle.exceptions import DataError, ParameterError

pytest.importorskip("torch")


def people(n, seed):
    """Planted: hours fall with age, work follows from age, town and sex are on their own, income depends on all."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n)
    work = np.where(age > 65, "retired", rng.choice(["office", "field"], n))
    income = np.exp(9 + 0.02 * age + 0.8 * (work == "office") + 0.2 * rng.standard_t(3, n)).round(2)
    income[rng.random(n) < 0.15] = np.nan
    return pd.DataFrame(
        {
            "age": age,
            "work": work,
            "income": income,
            "hours": np.where(age > 65, 0, rng.normal(38, 4, n).round()).astype(np.int32),
            "owner": rng.random(n) < 1 / (1 + np.exp(-(age - 50) / 6)),
            "since": pd.Timestamp("2010-01-01") + pd.to_timedelta(rng.integers(0, 4000, n), "D"),
        }
    )


@pytest.fixture(scope="module")
def run():
    return ep.generate_table(people(1500, 0), 1500, model="flow", target="owner", progress=False)


# ------------------------------------------------------------------------------------------------ codes


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize(
    "values",
    [
        lambda rng, n: rng.standard_t(1, n),
        lambda rng, n: np.where(rng.random(n) < 0.6, 0.0, rng.exponential(3, n)),
        lambda rng, n: rng.poisson(40, n),
        lambda rng, n: 250 * rng.integers(0, 50, n),
        lambda rng, n: rng.choice(["a", "b", "c"], n, p=[0.7, 0.2, 0.1]),
        lambda rng, n: rng.random(n) < 0.2,
        lambda rng, n: rng.integers(0, 500, n).astype("M8[D]"),
        lambda rng, n: rng.normal(5, 1, n).round(1).astype(np.float32),
    ],
)
def test_codes_are_standard_normal_and_lead_back(values, missing):
    rng = np.random.default_rng(0)
    n = 4000
    column = pa.array(values(rng, n), mask=rng.random(n) < missing)
    code = code_of_column(column, "x")
    z = code.encode(column, rng)
    assert ks_2samp(z, rng.normal(size=100_000)).statistic < 0.03
    back = code.decode(ndtr(z), column.type)
    assert back.type == column.type
    assert back.is_null().equals(column.is_null())
    if code.kind == "category" or code.step:
        same = np.mean([a == b for a, b in zip(column.to_pylist(), back.to_pylist(), strict=True)])
        assert same > 0.98  # a rare number is rounded to a neighbour where its interval is short
    else:
        x, y = (np.asarray(c.drop_null().to_numpy(), np.float64) for c in (column, back))
        inner = np.abs(x) < np.quantile(np.abs(x), 0.98)
        assert_allclose(y[inner], x[inner], atol=0.02 * np.std(x[inner]))
    # New places give the same distribution, inside the range.
    drawn = code.decode(rng.random(n), column.type)
    if code.kind != "category":
        a, b = (c.drop_null().to_numpy(zero_copy_only=False).astype(np.float64) for c in (column, drawn))
        assert ks_2samp(a, b).statistic < 0.05
        assert a.min() <= b.min()
        assert b.max() <= a.max()
    assert drawn.null_count == pytest.approx(missing * n, abs=120)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6), st.integers(-5, 5).map(float)), min_size=5, max_size=80).filter(
        lambda values: any(v is not None for v in values)
    ),
    st.integers(0, 2**31),
)
def test_any_column_of_numbers_comes_back_within_its_range(values, seed):
    column = pa.array(values, pa.float64())
    code = code_of_column(column, "x")
    rng = np.random.default_rng(seed)
    z = code.encode(column, rng)
    assert np.isfinite(z).all()
    back = code.decode(ndtr(z), column.type)
    assert back.is_null().equals(column.is_null())
    known = [v for v in values if v is not None]
    assert all(min(known) <= v <= max(known) for v in code.decode(rng.random(50), column.type).drop_null().to_pylist())


@pytest.mark.parametrize(
    ("texts", "form"),
    [
        ([f"{d:02d}/{m:02d}/2020" for d in range(1, 28) for m in range(1, 13)], "%d/%m/%Y"),
        ([f"2019-{m:02d}" for m in range(1, 13)] * 5, "%Y-%m"),
    ],
)
def test_dates_in_texts_keep_their_form(texts, form):
    column = pa.array(texts)
    code = code_of_column(column, "when")
    drawn = code.decode(np.random.default_rng(0).random(200), column.type).to_pylist()
    dates = [dt.datetime.strptime(text, form) for text in drawn]
    known = [dt.datetime.strptime(text, form) for text in texts]
    assert min(known) <= min(dates) <= max(dates) <= max(known)


def test_associations():
    rng = np.random.default_rng(0)
    a, c = rng.normal(size=2000), rng.integers(0, 4, 2000)
    assert association(a, np.exp(a), False, False) == pytest.approx(1)
    assert association(c, c, True, True) == pytest.approx(1, abs=1e-3)
    assert association(c, rng.integers(0, 9, 2000), True, True) < 0.06
    assert association(c, a, True, False) == association(a, c, False, True) < 0.08
    assert association(c, c + 0.01 * a, True, False) > 0.95
    assert association(a, np.zeros(2000), False, False) == 0


# ------------------------------------------------------------------------------------------------ rows


def test_the_rows_have_the_columns_of_the_table(run):
    real, drawn = people(1500, 0), run.table.to_pandas()
    assert drawn.columns.tolist() == real.columns.tolist()
    for name in real:
        if name == "work":
            assert set(drawn[name]) <= {"retired", "office", "field"}
            continue
        assert drawn[name].min() >= real[name].min()
        assert drawn[name].max() <= real[name].max()
    assert drawn["age"].dtype.kind == "i"
    assert drawn["hours"].dtype == np.int32
    assert drawn["owner"].dtype == bool
    assert (drawn["since"] == drawn["since"].dt.normalize()).all()
    cents = drawn["income"].dropna() * 100
    assert_allclose(cents, cents.round(), atol=1e-6)
    assert drawn["income"].isna().mean() == pytest.approx(real["income"].isna().mean(), abs=0.04)


def test_marginals_and_planted_dependence_are_close(run):
    fresh, drawn = people(5000, 1), run.table.to_pandas()
    assert max(row["distance"] for row in run.marginals) < 0.08
    assert ks_2samp(fresh["age"], drawn["age"]).statistic < 0.07
    assert abs((fresh["work"] == "retired").mean() - (drawn["work"] == "retired").mean()) < 0.05
    for a, b in (("age", "hours"), ("age", "income")):
        real, found = (spearmanr(t[a], t[b], nan_policy="omit").statistic for t in (fresh, drawn))
        assert abs(real - found) < 0.2, (a, b)
    # Everyone above 65 has retired; of those drawn nearly everyone.
    assert (drawn.loc[drawn["age"] > 67, "work"] == "retired").mean() > 0.8
    assert (drawn.loc[drawn["age"] < 60, "work"] == "retired").mean() < 0.12
    # Columns drawn one by one would have none of it.
    assert np.mean([pair["difference"] for pair in run.pairs]) < 0.4 * np.mean(
        [abs(pair["real"]) for pair in run.pairs]
    )


def test_what_is_learnt_from_drawn_rows_is_near_what_is_learnt_from_real_ones(run):
    found = run.utility
    assert found["target"] == "owner"
    assert found["drawn"]["score"] > found["real"]["score"] - 0.06
    assert found["drawn"]["score"] > found["constant"] + 0.15
    assert run.candidates[0]["area"] < 0.7


def test_rows_of_a_fitted_generator_are_no_copies(run):
    assert run.privacy["copies"] == 0
    assert run.privacy["median"] > 0.8 * run.privacy["held_median"]
    assert not [issue for issue in run.warnings if "copies" in issue.kind]


def test_copies_are_counted_and_warned_about():
    table = pd.concat([people(30, 3)] * 10, ignore_index=True)
    table["income"] = table["age"] % 3  # thirty rows, which differ in columns of a few values alone
    table = table[["age", "work", "income"]]
    found = ep.generate_table(table, 300, model="vae", progress=False)
    lines = set(map(tuple, table.to_numpy().tolist()))
    drawn = list(map(tuple, found.table.to_pandas().to_numpy().tolist()))
    # Of the rows of the fit, which hold all thirty.
    assert found.privacy["copies"] == sum(row in lines for row in drawn) > 0
    assert found.privacy["held_copied"] == 1
    assert any(issue.kind == "copies" and issue.severity == "high" for issue in found.warnings)
    assert "equal a real row in every column" in str(found)


def test_rows_that_repeat_those_of_the_fit_are_found():
    from epicycle.automl.synthesis._generate_table import _copied
    from epicycle.automl.synthesis._use import privacy

    rng = np.random.default_rng(0)
    real, held = (pa.table({name: rng.normal(size=n) for name in "abcd"}) for n in (800, 200))
    near = pa.table({name: real[name].to_numpy() + 0.01 * rng.normal(size=800) for name in "abcd"})
    kinds = {issue.kind for issue in _copied(privacy(real, held, near, list("abcd")))}
    assert kinds == {"near copies"}
    assert not _copied(privacy(real, held, pa.table({name: rng.normal(size=800) for name in "abcd"}), list("abcd")))
    told = privacy(real, held, real, list("abcd"))
    assert (told["copies"], told["held_copied"]) == (800, 0)
    assert {issue.severity for issue in _copied(told)} == {"high"}


# ------------------------------------------------------------------------------------------------ generator


@pytest.mark.parametrize("model", ["flow", "vae"])
def test_the_same_seed_gives_the_same_rows_also_from_a_file(model, tmp_path):
    table = people(200, 0)
    first, second = (ep.TableGenerator(model, max_iter=3, random_state=1).fit(table) for _ in range(2))
    drawn = first.sample(50, random_state=2)
    assert isinstance(drawn, pd.DataFrame)
    assert drawn.dtypes.equals(table.dtypes)
    pd.testing.assert_frame_equal(drawn, second.sample(50, random_state=2))
    assert not drawn.equals(first.sample(50, random_state=3))
    first.save(tmp_path / "g.epi")
    pd.testing.assert_frame_equal(drawn, ep.load(tmp_path / "g.epi").sample(50, random_state=2))


def test_missing_levels_identifiers_and_texts():
    rng = np.random.default_rng(0)
    n = 400
    table = pa.table(
        {
            "id": np.arange(n) + 10,
            "note": [f"remark {i} of {rng.integers(9)}" for i in range(n)],
            "colour": pa.array(rng.choice(["red", "blue"], n), mask=rng.random(n) < 0.25).dictionary_encode(),
            "same": ["x"] * n,
            "none": pa.array([None] * n, pa.float64()),
            "null": pa.nulls(n),
            "many": rng.choice([f"town {k}" for k in range(80)], n),
        }
    )
    for model in ("flow", "vae"):
        made = ep.TableGenerator(model, max_iter=3, random_state=0).fit(table)
        assert list(made.left_out_) == ["note"]
        drawn = made.sample(200, random_state=0)
        assert drawn.schema.equals(table.drop_columns(["note"]).schema)
        assert drawn["id"].to_pylist() == list(range(10, 210))
        assert set(drawn["same"].to_pylist()) == {"x"}
        assert drawn["none"].null_count == 200
        assert drawn["colour"].null_count == pytest.approx(50, abs=25)
        assert set(drawn["many"].to_pylist()) <= set(table["many"].to_pylist())


def test_types_of_pandas_and_of_arrow_come_back():
    rng, n = np.random.default_rng(0), 120
    frame = pd.DataFrame(
        {
            "flag": pd.array([True, None, False] * 40, dtype="boolean"),
            "whole": pd.array([None, *range(n - 1)], dtype="Int64"),
            "kind": pd.Categorical(rng.choice(["a", "b"], n)),
            "when": pd.Series(
                pd.Timestamp("2020-01-01", tz="Europe/Rome") + pd.to_timedelta(rng.integers(0, 99, n), "D")
            ),
        }
    )
    drawn = ep.TableGenerator("vae", max_iter=2, random_state=0).fit(frame).sample(30, random_state=0)
    assert drawn.dtypes.equals(frame.dtypes)
    table = pa.table(
        {
            "price": pa.array([round(float(v), 2) for v in rng.normal(size=n)]).cast(pa.decimal128(10, 2)),
            "byte": rng.integers(0, 200, n).astype(np.uint8),
            "clock": pa.array(rng.integers(0, 86_400, n).astype(np.int32), pa.time32("s")),
            "taken": pa.array(rng.integers(0, 10**6, n), pa.duration("ms")),
            "at": pa.array(rng.integers(15 * 10**17, 16 * 10**17, n), pa.timestamp("ns")),
            "text": pa.array(rng.choice(["a", "b"], n), pa.large_string()),
            "large": rng.integers(-(2**62), 2**62, n),
            "huge": rng.integers(2**62, 2**63, n).astype(np.uint64) * 2,
            "half": rng.normal(size=n).astype(np.float16),
            "day": pa.array(86_400_000 * rng.integers(0, 900, n), pa.date64()),
        }
    )
    drawn = ep.TableGenerator("flow", max_iter=1, random_state=0).fit(table).sample(30, random_state=0)
    assert drawn.schema.equals(table.schema)
    assert not any(column.null_count for column in drawn.columns)


@pytest.mark.parametrize(
    ("made", "error", "said"),
    [
        (lambda: ep.TableGenerator("gan").fit(people(60, 0)), ParameterError, "model='gan'"),
        (lambda: ep.TableGenerator(max_iter=0).fit(people(60, 0)), ParameterError, "max_iter=0"),
        (lambda: ep.TableGenerator().sample(5), ep.exceptions.NotFittedError, "sample before fit"),
        (lambda: ep.TableGenerator().fit(people(20, 0)), DataError, "20 rows; expected at least 40"),
        (lambda: ep.TableGenerator().fit(pa.table({"t": [f"text {i}" for i in range(99)]})), DataError, "no column"),
        (lambda: ep.generate_table(people(30, 0)), DataError, "30 rows; expected at least 50"),
        (lambda: ep.generate_table(people(99, 0), 0), ParameterError, "rows=0"),
        (lambda: ep.generate_table(people(99, 0), model="gan"), ParameterError, "model='gan'"),
        (lambda: ep.generate_table(people(99, 0), target="y"), DataError, "target='y': the table has no such column"),
        (lambda: ep.generate_table(people(99, 0), drop="y"), DataError, "drop='y'"),
        (
            lambda: ep.generate_table(
                people(99, 0).assign(note=[f"a remark, number {i}" for i in range(99)]), model="vae", target="note"
            ),
            DataError,
            "target='note': left out",
        ),
    ],
)
def test_wrong_input_is_refused_in_words(made, error, said):
    with pytest.raises(error, match=said):
        made()


def test_the_command_writes_rows_and_page_and_repeats(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people(150, 0).to_csv("people.csv", index=False)
    asked = ["generate", "people.csv", "--rows", "70", "--model", "vae", "--target", "owner", "--seed", "4"]
    assert main([*asked, "--save", "g.epi"]) == 0
    said = capsys.readouterr().out
    assert "70 rows were drawn by a variational auto-encoder" in " ".join(said.split())
    drawn = pd.read_csv("people-synthetic.csv")
    assert drawn.shape == (70, 6)
    page = (tmp_path / "people-synthetic.html").read_text()
    for heading in ("Columns of real and drawn rows", "What can be learnt from the rows", "How near to real rows"):
        assert heading in page
    assert main([*asked, "--out", "again.csv", "--report", "again.html", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 70
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "people-synthetic.csv").read_bytes()
    assert (tmp_path / "again.html").read_bytes() == page.encode()
    assert main([*asked, "--out", "t.parquet"]) == 0
    assert pa.parquet.read_table("t.parquet").num_rows == 70
    assert ep.load("g.epi").sample(3, random_state=0).num_rows == 3
    capsys.readouterr()
    assert main([*asked, "--out", "t.html", "--report", "t.html"]) == 2
    assert "the same file" in capsys.readouterr().err


def test_files_of_a_run(run, tmp_path):
    folder = run.save(tmp_path / "o")
    assert sorted(path.name for path in folder.iterdir()) == ["model.epi", "synthetic.csv"]
    assert pd.read_csv(folder / "synthetic.csv").shape == (1500, 6)
    assert len(ep.report.html(run.record())) < 400_000
