"""The prediction server: its answers are those of the model, and what does not fit is refused by name."""

import asyncio
import json
import math

import numpy as np
import pyarrow as pa
import pytest

import epicycle as ep
from epicycle.automl.diagnosis._contributions import contributions
from epicycle.automl.serving import Limits, PredictionApp
from epicycle.exceptions import ParameterError


class Client:
    """Requests to an application, without a network."""

    def __init__(self, app):
        self.app = app

    def __call__(self, method, path, body=b"", **headers):
        return asyncio.run(self.send(method, path, body, **headers))

    def post(self, content, path="/predict"):
        status, _, found = self("POST", path, json.dumps(content).encode())
        return status, json.loads(found)

    async def send(self, method, path, body=b"", **headers):
        given = {"host": "127.0.0.1:8000", "content_type": "application/json", **headers}
        pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()]
        messages = [{"type": "http.request", "body": body, "more_body": False}]
        sent = []

        async def receive():
            return messages.pop() if messages else {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": method, "path": path, "headers": pairs}
        await self.app(scope, receive, send)
        return sent[0]["status"], dict(sent[0]["headers"]), sent[1]["body"]


def mixed(n=300, seed=0):
    rng = np.random.default_rng(seed)
    size, colour = rng.normal(size=n), rng.choice(["red", "green", "blue"], n)
    day = np.datetime64("2024-01-01") + rng.integers(0, 300, n).astype("timedelta64[D]")
    return pa.table(
        {
            "size": pa.array(size, mask=rng.random(n) < 0.1),
            "rooms": rng.integers(1, 9, n),
            "colour": pa.array(colour.tolist(), mask=rng.random(n) < 0.05),
            "day": pa.array(day.astype("datetime64[s]")),
            "open": rng.random(n) < 0.5,
            "answer": np.where(size + (colour == "red") + 0.3 * rng.normal(size=n) > 0.4, "yes", "no"),
            "price": np.exp(size) + rng.integers(1, 9, n),
        }
    )


KINDS = {"size": "number", "rooms": "number", "colour": "category", "day": "date", "open": "category"}
COLUMNS = list(KINDS)


@pytest.fixture(scope="module", params=["boosting", "linear"])
def model(request):
    boosting = ep.GradientBoostingClassifier(n_estimators=30, random_state=0)
    estimator = boosting if request.param == "boosting" else ep.LogisticRegression()
    return ep.TableModel(estimator, {**KINDS, "answer": "target"}).fit(mixed())


@pytest.fixture
def client(model):
    return Client(PredictionApp(model))


def rows_of(table):
    found = []
    for row in table.select(COLUMNS).to_pylist():
        found.append({**row, "day": None if row["day"] is None else row["day"].isoformat()})
    return found


def test_answers_are_those_of_the_model(client, model):
    table = mixed(40, seed=1)
    rows = rows_of(table)
    p = model.predict_proba(table)
    for given in (rows, {"rows": rows}, [[row[name] for name in COLUMNS] for row in rows]):
        status, found = client.post(given)
        assert status == 200
        assert [one["prediction"] for one in found["predictions"]] == model.predict(table).tolist()
        assert [[one["probabilities"][c] for c in ("no", "yes")] for one in found["predictions"]] == p.tolist()
    # A date with an offset is the same moment.
    moved = [{**row, "day": row["day"] and row["day"] + "+00:00"} for row in rows]
    assert client.post(moved) == (200, found)


def test_a_regression_has_intervals(tmp_path):
    table = mixed().drop_columns(["answer"])
    run = ep.train(table, "price", time=1, models="ridge")
    client = Client(PredictionApp(run.model_))
    status, found = client.post(rows_of(table.slice(0, 5)))
    assert status == 200
    expected = run.model_.predict_interval(table.slice(0, 5), 0.9)
    for one, (low, high) in zip(found["predictions"], expected, strict=True):
        assert one["interval"] == {"level": 0.9, "lower": pytest.approx(low), "upper": pytest.approx(high)}
    status, found = client.post([[1e308, 1e308, None, None, None]])
    assert status in (200, 422)  # too large for the model, but no error of the server


ROW = {"size": 1.0, "rooms": 3, "colour": "red", "day": "2024-03-01", "open": True}


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"size": "1"}, "size", "the string '1'; expected a number or null"),
        ({"size": True}, "size", "a boolean; expected a number or null"),
        ({"rooms": [1]}, "rooms", "a list; expected a number or null"),
        ({"rooms": 10**400}, "rooms", "too large"),
        ({"colour": 3}, "colour", "the number 3; expected a string or null"),
        ({"colour": "\ud800"}, "colour", "surrogate"),
        ({"day": "1 March"}, "day", "'1 March' is no date"),
        ({"day": 5}, "day", "expected a date such as"),
        ({"open": "yes"}, "open", "expected true, false or null"),
        ({"open": 1}, "open", "expected true, false or null"),
        ({"garden": 1}, "garden", "unknown field 'garden'"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_name(client, change, field, said):
    status, found = client.post([ROW, {**ROW, **change}])
    assert status == 422
    assert found["error"]["field"] == field
    assert found["error"]["row"] == 1
    assert said in found["error"]["message"]


def test_a_missing_field_is_no_missing_value(client):
    assert client.post([dict.fromkeys(ROW)])[0] == 200
    status, found = client.post([{name: value for name, value in ROW.items() if name != "rooms"}])
    assert (status, found["error"]["field"]) == (422, "rooms")
    assert "null stands for an unknown value" in found["error"]["message"]
    assert client.post([[1.0, 2]])[1]["error"]["message"] == "rows[0]: 2 values; expected 5, one for each column"


def test_requests_that_are_none(client):
    for body, status in (
        (b"", 400),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"[" * 100_000, 400),
        (b"[[NaN, 1, null, null, null]]", 400),
        (b"[[Infinity, 1, null, null, null]]", 400),
        (b"[[1e999, 1, null, null, null]]", 422),
        (b"9" * 5_000, 400),
        (b"null", 422),
        (b"3", 422),
        (b"[]", 422),
        (b"[3]", 422),
        (b'{"rows": 3}', 422),
        (b'{"row": []}', 422),
    ):
        assert client("POST", "/predict", body)[0] == status, body[:40]
    assert client("GET", "/predict")[0] == 405
    assert client("GET", "/predict")[1][b"allow"] == b"POST"
    assert client("DELETE", "/")[0] == 405
    assert client("GET", "/admin")[0] == 404
    assert client("POST", "/predict", b"[]", content_type="text/plain")[0] == 415
    assert client("GET", "/", host="example.org")[0] == 421
    assert client("GET", "/", host="localhost")[0] == 200
    assert client("HEAD", "/health")[2] == b""


def test_limits_on_size_and_time(model):
    client = Client(PredictionApp(model, limits=Limits(max_bytes=600, max_rows=2, seconds=0.2)))
    assert client.post([ROW] * 2)[0] == 200
    assert client.post([ROW] * 3)[0] == 413
    assert client("POST", "/predict", b" " * 601)[0] == 413
    assert client("POST", "/predict", b"[]", content_length="99999999999999")[0] == 413

    async def never():
        await asyncio.sleep(60)

    async def slow_body():
        sent = []

        async def send(message):
            sent.append(message)

        headers = [(b"host", b"localhost")]
        await client.app({"type": "http", "method": "POST", "path": "/predict", "headers": headers}, never, send)
        return sent[0]["status"]

    assert asyncio.run(slow_body()) == 408


def test_requests_that_wait_are_one_batch_and_do_not_spoil_each_other(model):
    table = mixed(60, seed=2)
    rows, app = rows_of(table), PredictionApp(model)
    seen, real = [], app.batches._predict

    def predict(part):
        seen.append(part.num_rows)
        if 13.0 in part["size"].to_pylist():
            raise ValueError("an unlucky number")
        return real(part)

    app.batches._predict = predict
    client = Client(app)

    async def all_at_once():
        bad = {**rows[0], "size": 13.0}
        bodies = [json.dumps([row]).encode() for row in [*rows, bad]]
        return await asyncio.gather(*(client.send("POST", "/predict", body) for body in bodies))

    found = asyncio.run(all_at_once())
    assert [status for status, _, _ in found] == [200] * 60 + [422]
    said = [json.loads(body)["predictions"][0]["prediction"] for _, _, body in found[:-1]]
    assert said == model.predict(table).tolist()
    assert max(seen) > 10


def test_pages_and_figures(client, model):
    status, headers, page = client("GET", "/")
    assert status == 200
    assert b"script-src 'sha256-" in headers[b"content-security-policy"]
    for name in COLUMNS:
        assert name.encode() in page
    schema = json.loads(client("GET", "/schema")[2])
    row = schema["properties"]["rows"]["items"]["anyOf"][0]
    assert row["required"] == COLUMNS
    types = {name: one["type"][0] for name, one in row["properties"].items()}
    assert types == {"size": "number", "rooms": "number", "colour": "string", "day": "string", "open": "boolean"}
    assert set(row["properties"]["colour"]["examples"]) == {"red", "green", "blue"}
    assert json.loads(client("GET", "/health")[2])["status"] == "ok"
    client.post([ROW] * 3)
    client.post([3])
    client("GET", "/<script>")
    lines = client("GET", "/metrics")[2].decode().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert values['epicycle_requests_total{path="/predict",status="200"}'] == "1"
    assert values['epicycle_requests_total{path="/predict",status="422"}'] == "1"
    assert values['epicycle_requests_total{path="other",status="404"}'] == "1"
    assert values["epicycle_rows_total"] == "3"
    assert values['epicycle_request_seconds_bucket{le="+Inf"}'] == values["epicycle_request_seconds_count"]


def test_an_explanation_adds_up(client, model):
    status, found = client.post([ROW], "/explain")
    assert status == 200
    made = found["explanation"]
    assert {one["field"] for one in made["contributions"]} == set(COLUMNS)
    total = made["start"] + sum(one["value"] for one in made["contributions"])
    assert total == pytest.approx(made["end"], abs=1e-9)
    label = found["prediction"]["prediction"]
    assert made["end"] == pytest.approx(found["prediction"]["probabilities"][label])
    assert client.post([ROW, ROW], "/explain")[0] == 422


def test_contributions_are_shapley_values():
    """Of a sum they are its terms; of a product of two columns, half of what both do together to each."""
    rng = np.random.default_rng(0)
    reference = pa.table({name: rng.normal(size=50) for name in "abc"})
    row = pa.table({"a": [2.0], "b": [3.0], "c": [5.0]})

    def total(table):
        return table["a"].to_numpy() + 10 * table["b"].to_numpy()

    found = contributions(total, row, reference.slice(0, 1))
    at = [reference[name][0].as_py() for name in "ab"]
    np.testing.assert_allclose(found.values, [2 - at[0], 10 * (3 - at[1]), 0.0], atol=1e-12)

    def product(table):
        return table["a"].to_numpy() * table["b"].to_numpy() + table["c"].to_numpy()

    found = contributions(product, row, reference, pairs=20_000)
    a, b, c = (reference[name].to_numpy() for name in "abc")
    exact = [((2 - a) * (3 + b) / 2).mean(), ((3 - b) * (2 + a) / 2).mean(), (5 - c).mean()]
    assert np.abs(found.values - exact).max() < 5 * found.errors.max()
    assert found.errors.max() < 0.05
    assert found.start + found.values.sum() == pytest.approx(found.end)


def test_only_models_of_tables_are_served():
    with pytest.raises(ParameterError, match="expected a model of a table"):
        PredictionApp(ep.Ridge())


def requests(n, seed):
    """Bad and odd requests: bodies that are valid, cut off, mutated, deep, huge, or of other types."""
    rng = np.random.default_rng(seed)
    odd = [None, True, -1, 0, 2**63, 10**30, 1e308, -1e308, 1e-320, "", "red", "\0", "2024-01-01", "x" * 5_000, [], {}]
    odd += ["\ud800", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", [[]], {"": {}}]
    names = [*COLUMNS, "", "rows", "__class__", "\u202e"]
    valid = json.dumps({"rows": [ROW]}).encode()
    for _ in range(n):
        kind = rng.integers(6)
        if kind == 0:
            row = {names[rng.integers(len(names))]: odd[rng.integers(len(odd))] for _ in range(rng.integers(8))}
            body = json.dumps({"rows": [{**ROW, **row} if rng.random() < 0.5 else row]}).encode()
        elif kind == 1:
            rows = [[odd[rng.integers(len(odd))] for _ in range(rng.integers(4, 7))] for _ in range(rng.integers(3))]
            body = json.dumps(rows).encode()
        elif kind == 2:
            body = valid[: rng.integers(len(valid))]
        elif kind == 3:
            changed = bytearray(valid)
            for at in rng.integers(0, len(valid), rng.integers(1, 6)):
                changed[at] = rng.integers(256)
            body = bytes(changed)
        elif kind == 4:
            body = rng.bytes(int(rng.integers(0, 300)))
        else:
            body = json.dumps(odd[rng.integers(len(odd))]).encode()
        method = ["POST", "POST", "POST", "GET", "PUT", "\u00e9"][rng.integers(6)]
        path = ["/predict", "/predict", "/explain", "/", "/metrics", "/..", "/predict/"][rng.integers(7)]
        yield method, path, body


@pytest.mark.parametrize("n", [400, pytest.param(10_000, marks=pytest.mark.slow)])
def test_no_bad_request_is_an_error_of_the_server(model, n):
    app = PredictionApp(model)
    client = Client(app)

    async def all_of_them():
        found = []
        for method, path, body in requests(n, seed=n):
            status, _, answer = await client.send(method, path, body)
            assert status < 500, (method, path, body[:200])
            if status >= 400 and method != "HEAD":
                assert json.loads(answer)["error"]["message"]
            if status == 200 and path == "/predict":
                for one in json.loads(answer)["predictions"]:
                    assert all(math.isfinite(p) for p in one["probabilities"].values())
            found.append(status)
        return found

    found = asyncio.run(all_of_them())
    assert {200, 400, 405, 422} <= set(found)
    assert Client(app).post([ROW])[0] == 200
