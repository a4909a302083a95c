"""Columns as people write them: numbers, dates, words for yes and no, names of things."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose

import epicycle as ep
from epicycle.automl.tables._columns import as_numbers, form_of, kind_of_column
from epicycle.automl.tables._dates import as_dates

NUMBERS = {
    "money": (["$5,123", "$1,000.50", "-$99", None], "number", [5123, 1000.5, -99, np.nan]),
    "euros": (["1.234,50 €", "99,9 €", "€ 7"], "number comma", [1234.5, 99.9, 7]),
    "code of a currency": (["USD 5", "12.5 EUR", "GBP 1,000"], "number", [5, 12.5, 1000]),
    "percent": (["12%", "5 %", "7.5%"], "number", [12, 5, 7.5]),
    "thousands": (["1,234,567", "12", "1,000"], "number", [1234567, 12, 1000]),
    "thousands by spaces": (["1 234", "12", "3\u00a0000 000"], "number", [1234, 12, 3000000]),
    "bookkeeping": (["(1,200)", "7", "\u22123"], "number", [-1200, 7, -3]),
    "decimal comma": (["1,5", "2,75", "1.000,25"], "number comma", [1.5, 2.75, 1000.25]),
    "unit": (["12 kg", "3kg", "4.5 KG"], "number unit", [12, 3, 4.5]),
    "words": (["yes", "No", "YES", None], "number truth", [1, 0, 1, np.nan]),
    "other words": (["ja", "nein", "nein"], "number truth", [1, 0, 0]),
    "a few that are none": (["$1"] * 30 + ["call us"], "number", [1.0] * 30 + [np.nan]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_as_people_write_them(name):
    texts, kind, expected = NUMBERS[name]
    found = kind_of_column(pa.array(texts), "x")
    assert found.kind == kind
    assert ("mixes" in found.warning) == (name == "a few that are none")
    assert_allclose(as_numbers(pa.array(texts), form_of(kind)), expected)


DATES = {
    "%Y-%m": (["1958-03", "1958-04", "1960-12"], dt.datetime(1958, 3, 1)),
    "week": (["2021-W01", "2020W53", "2024-W05-3"], dt.datetime(2021, 1, 4)),
    "quarter": (["2024Q2", "Q1 2023", "2023 Q4"], dt.datetime(2024, 4, 1)),
    "clock": (["14:35", "9:05", "23:59:59"], dt.datetime(1970, 1, 1, 14, 35)),
    "%b %d, %Y": (["Mar 9, 2022", "Jan 15, 2020", "Dec 31, 2021"], dt.datetime(2022, 3, 9)),
    "%b %Y": (["March 2020", "Apr 2021", "May 2021"], dt.datetime(2020, 3, 1)),
    "%m/%d/%Y %I:%M %p": (["01/02/2020 03:04 PM", "01/13/2020 11:00 AM"], dt.datetime(2020, 1, 2, 15, 4)),
    "%d/%m/%y": (["25/12/99", "01/02/20"], dt.datetime(1999, 12, 25)),
    "%d.%m.%Y %H:%M": (["25.12.1999 10:30", "01.02.2020 00:00"], dt.datetime(1999, 12, 25, 10, 30)),
    "%a, %d %b %Y %H:%M:%S": (
        ["Wed, 06 Sep 2017 00:01:05 +0200", "Thu, 07 Sep 2017 10:00:00 GMT"],
        dt.datetime(2017, 9, 5, 22, 1, 5),
    ),
    "digits": ([20240229, 20200101, 19991231], dt.datetime(2024, 2, 29)),
    "seconds": ([964982703, 964982703 + 86400, 1_500_000_000], dt.datetime(2000, 7, 30, 18, 45, 3)),
    "milliseconds": ([1_600_000_000_000, 1_600_000_500_000, 1_700_000_000_000], dt.datetime(2020, 9, 13, 12, 26, 40)),
}


@pytest.mark.parametrize("form", DATES)
def test_dates_in_common_forms(form):
    values, first = DATES[form]
    assert kind_of_column(pa.array(values * 4), "timestamp").kind == f"date {form}"
    dates = as_dates(pa.array(values), form).to_pylist()
    assert dates[0] == first
    assert None not in dates
    if isinstance(values[0], str):  # a text that is no date is missing
        assert as_dates(pa.array([*values, "nonsense"]), form).to_pylist()[-1] is None


def test_iso_weeks_are_those_of_the_standard():
    days = [dt.date(y, 1, 1) + dt.timedelta(days=7 * k) for y in range(1995, 2030) for k in range(52)]
    texts = [f"{year}-W{week:02d}-{day}" for year, week, day in (d.isocalendar() for d in days)]
    assert [d.date() for d in as_dates(pa.array(texts), "week").to_pylist()] == days


def test_numbers_that_are_no_dates_stay_numbers():
    for name, values in (
        ("price", [20240229, 20200101, 19991231]),  # not the name of a date
        ("date", [20240231, 20241350, 19991231]),  # not the digits of one
        ("time", [12, 15, 90]),  # minutes
    ):
        assert kind_of_column(pa.array(values * 4), name).kind == "number"
    assert as_dates(pa.array([20240231, 20240228]), "digits").to_pylist()[0] is None  # no such day


def test_names_of_things_are_no_numbers():
    for name, values in (("zip", [2139, 10001]), ("userId", [7, 9]), ("store_id", [1, 2]), ("postal code", [1, 5])):
        assert kind_of_column(pa.array(values * 10), name).kind == "category", name
    assert kind_of_column(pa.array(["02139", "10001"] * 10), "area").kind == "category"
    for name in ("width", "paid", "GrLivArea", "n_rooms", "humid"):
        assert kind_of_column(pa.array([1, 2] * 10), name).kind == "number", name
    mixed = kind_of_column(pa.array(["12 kg", "3 lb", "5 kg"] * 10), "weight")
    assert mixed.kind == "category"
    assert "bring them to one unit" in mixed.warning


def test_waves_of_dates_repeat_with_year_week_and_day():
    hours = np.arange("2020-01-01", "2023-01-01", dtype="M8[h]")[::7]
    table = pa.table({"when": hours.astype("M8[s]")})
    encoder = ep.TableEncoder({"when": "date"}, form="linear").fit(table)
    names, X = encoder.get_feature_names_out().tolist(), encoder.transform(table)
    for period, days in (("day", 1.0), ("week", 7.0), ("year", 365.2425)):
        angle = 2 * np.pi * (hours.astype("M8[h]").astype(float) / 24 / days)
        for wave, function in (("sine", np.sin), ("cosine", np.cos)):
            assert_allclose(X[:, names.index(f"when {wave} of the {period}")], function(angle), atol=1e-6)
    months = pa.table({"when": pa.array([f"{y}-{m:02d}" for y in range(1990, 1999) for m in range(1, 13)])})
    encoder = ep.TableEncoder(form="linear").fit(months)
    assert not any("of the day" in name for name in encoder.get_feature_names_out())


def test_a_table_of_written_numbers_trains_and_its_model_reads_a_file(tmp_path):
    rng = np.random.default_rng(0)
    x, yes = rng.uniform(500, 9000, 300), rng.random(300) < 0.5
    table = pa.table(
        {
            "income": [f"${v:,.2f}" for v in x],
            "share": [f"{v:.1f}%" for v in rng.uniform(0, 100, 300)],
            "member": np.where(yes, "yes", "no"),
            "price": [f"${v:,.0f}" for v in 1000 + 2 * x + 3000 * yes],
        }
    )
    run = ep.train(table, target="price", time=2, models=["ridge"], progress=False)
    assert run.task == "regression"
    assert run.test.score > 0.999
    kinds = {p.name: p.kind for p in run.profile}
    assert kinds == {"income": "number", "share": "number", "member": "number truth", "price": "target"}
    pa.csv.write_csv(table, tmp_path / "t.csv")
    run.model_.save(tmp_path / "m.epi")
    again = ep.load(tmp_path / "m.epi").predict(ep.training.read_table(tmp_path / "t.csv"))
    assert_allclose(again, run.model_.predict(table))


def test_words_for_yes_and_no_are_no_numbers_among_other_words():
    column = pa.chunked_array([["Y", "N", "P"] * 40 + ["Y"] * 200])
    assert kind_of_column(column, "drive").warning == ""
    mixed = pa.chunked_array([["12", "13", "A14", "B15"] * 60])
    assert "mixes numbers with text: 120 of 240" in kind_of_column(mixed, "drive").warning
