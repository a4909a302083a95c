"""The prediction server as an ASGI application: routes, limits, and answers in JSON.

Any ASGI server can run it; ``epicycle serve`` uses uvicorn, which speaks HTTP.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from sklearn.base import is_classifier

from epicycle.automl.diagnosis._contributions import contributions
from epicycle.automl.serving._batches import Batches, BusyError
from epicycle.automl.serving._figures import Figures
from epicycle.automl.serving._form_page import form_page
from epicycle.automl.serving._row_schema import RowError, RowSchema
from epicycle.automl.tables._table_model import TableModel, half_width, innermost
from epicycle.core._exceptions import DataError, EpicycleError, ParameterError

Scope: TypeAlias = "Mapping[str, Any]"
Receive: TypeAlias = "Callable[[], Awaitable[Mapping[str, Any]]]"
Send: TypeAlias = "Callable[[dict[str, Any]], Awaitable[None]]"

#: Names of this machine.
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
#: Order pairs of an explanation: the error of a contribution is then a few percent of the largest.
_PAIRS = 16
_LEVEL = 0.9


@dataclass(frozen=True)
class Limits:
    """Limits of a request.

    max_bytes : of the body.
    max_rows : rows of one request.
    seconds : for reading the body, and for the prediction.
    """

    max_bytes: int = 10_000_000
    max_rows: int = 10_000
    seconds: float = 30.0


class _RefusedError(Exception):
    """An answer with an error status."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(message)
        self.status, self.headers = status, dict(headers or {})
        self.content = {"error": {"message": message, **{k: v for k, v in more.items() if v is not None}}}


@dataclass(frozen=True)
class _Answer:
    status: int
    content: bytes
    type: str = "application/json"
    headers: Mapping[str, str] | None = None


class PredictionApp:
    """The application.

    Parameters
    ----------
    model : TableModel
        Fitted, as ``epicycle train`` writes them.
    name : str
        Shown on the page.
    limits : Limits
    hosts : tuple of str, optional
        Names of the host that requests may give; by default those of the loopback interface, so that no page of another
        site reaches the server by a name that points here. None takes all.
    """

    def __init__(
        self,
        model: Any,
        *,
        name: str = "model",
        limits: Limits | None = None,
        hosts: tuple[str, ...] | None = LOOPBACK,
    ) -> None:
        if not isinstance(model, TableModel):
            raise ParameterError(
                f"{name}: a {type(model).__name__}; expected a model of a table, as epicycle train writes it"
            )
        self.model, self.name, self.limits, self.hosts = model, name, limits or Limits(), hosts
        self.schema = RowSchema(model)
        self.figures = Figures()
        self.batches = Batches(self._predict, on_batch=self.figures.batch)
        self.classes: list[Any] | None = None
        if is_classifier(model):
            self.classes = np.asarray(model.classes_).tolist()
        self._with_probabilities = self.classes is not None and hasattr(model, "predict_proba")
        residuals = getattr(model, "residuals_", np.empty(0))
        half = half_width(residuals, _LEVEL) if len(residuals) else np.inf
        self.half_width = float(half) if np.isfinite(half) else None
        self._routes: dict[str, tuple[str, Callable[[bytes], Awaitable[_Answer]]]] = {
            "/": ("GET", self._page),
            "/schema": ("GET", self._schema),
            "/health": ("GET", self._health),
            "/metrics": ("GET", self._metrics),
            "/predict": ("POST", self._predictions),
            "/explain": ("POST", self._explanation),
        }

    # ---------------------------------------------------------------------------------------------- ASGI

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or the messages of the server's start and end."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:  # no websockets
            await send({"type": "websocket.close", "code": 1000})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                self.batches.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        path = scope["path"]
        self.figures.in_flight += 1
        status = 499  # the client has gone before there was an answer
        try:
            try:
                answer = await self._answer(scope, receive)
            except _RefusedError as refused:
                answer = _json(refused.status, refused.content, refused.headers)
            status = answer.status
            headers = {"content-type": answer.type, "content-length": str(len(answer.content)), **_SAFE}
            headers.update(answer.headers or {})
            pairs = [(key.encode(), value.encode()) for key, value in headers.items()]
            await send({"type": "http.response.start", "status": status, "headers": pairs})
            body = b"" if scope["method"] == "HEAD" else answer.content
            await send({"type": "http.response.body", "body": body})
        finally:
            self.figures.in_flight -= 1
            self.figures.request(path if path in self._routes else "other", status, time.perf_counter() - began)

    async def _answer(self, scope: Scope, receive: Receive) -> _Answer:
        headers = {key.lower(): value for key, value in scope["headers"]}
        self._check_host(headers.get(b"host", b""))
        if scope["path"] not in self._routes:
            known = ", ".join(self._routes)
            raise _RefusedError(404, f"no such page; there are {known}")
        method, work = self._routes[scope["path"]]
        given = "GET" if scope["method"] == "HEAD" else scope["method"]
        if given != method:
            raise _RefusedError(405, f"{scope['method']:.20}: expected {method}", {"allow": method})
        if method == "GET":
            return await work(b"")
        kind = headers.get(b"content-type", b"application/json").split(b";")[0].strip().lower()
        if kind != b"application/json":
            raise _RefusedError(415, "content-type: expected application/json")
        try:
            body = await asyncio.wait_for(self._body(headers, receive), self.limits.seconds)
        except TimeoutError:
            raise _RefusedError(408, f"the body took longer than {self.limits.seconds:g} s") from None
        try:
            return await asyncio.wait_for(work(body), self.limits.seconds)
        except TimeoutError:
            raise _RefusedError(503, f"no answer within {self.limits.seconds:g} s; send fewer rows") from None
        except BusyError as error:
            raise _RefusedError(503, f"{error}; try again", {"retry-after": "1"}) from None

    def _check_host(self, given: bytes) -> None:
        host = given.decode("latin-1").strip().lower()
        name, colon, port = host.rpartition(":")
        name = name if colon and port.isdigit() else host
        if self.hosts is not None and name not in self.hosts:
            raise _RefusedError(421, f"host {name!r:.60}: expected {' or '.join(self.hosts)}")

    async def _body(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        most = self.limits.max_bytes
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > most:
            raise _RefusedError(413, f"a body of {int(length):,} bytes; expected at most {most:,}")
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _RefusedError(400, "the body is incomplete")
            part = message.get("body", b"")
            size += len(part)
            if size > most:
                raise _RefusedError(413, f"a body of more than {most:,} bytes")
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)

    # ---------------------------------------------------------------------------------------------- pages

    async def _page(self, _: bytes) -> _Answer:
        page, policy = form_page(self.name, self.schema, getattr(self.model, "target", None))
        return _Answer(200, page.encode(), "text/html; charset=utf-8", {"content-security-policy": policy})

    async def _schema(self, _: bytes) -> _Answer:
        return _json(200, self.schema.json_schema(self.limits.max_rows))

    async def _health(self, _: bytes) -> _Answer:
        return _json(200, {"status": "ok", "model": self.name, "method": type(innermost(self.model.model_)).__name__})

    async def _metrics(self, _: bytes) -> _Answer:
        return _Answer(200, self.figures.text().encode(), "text/plain; version=0.0.4; charset=utf-8")

    # ---------------------------------------------------------------------------------------------- predictions

    async def _predictions(self, body: bytes) -> _Answer:
        table = self._rows(body)
        try:
            found = await self.batches.predict(table)
        except (EpicycleError, pa.ArrowException, ValueError, OverflowError) as error:
            raise _RefusedError(422, " ".join(str(error).split())[:300]) from None
        self.figures.rows += len(found)
        return _json(200, {"predictions": found})

    async def _explanation(self, body: bytes) -> _Answer:
        """The prediction of one row, and what each column adds to it."""
        table = self._rows(body)
        if table.num_rows != 1:
            raise _RefusedError(422, f"rows: {table.num_rows} rows; expected one to explain")
        try:
            prediction = (await self.batches.predict(table))[0]
            loop = asyncio.get_running_loop()
            made = await loop.run_in_executor(None, self._contributions, table, prediction)
        except (EpicycleError, pa.ArrowException, ValueError, OverflowError) as error:
            raise _RefusedError(422, " ".join(str(error).split())[:300]) from None
        return _json(200, {"prediction": prediction, "explanation": made})

    def _contributions(self, table: pa.Table, prediction: Mapping[str, Any]) -> dict[str, Any]:
        """Contributions against a typical row: to the number, or to the probability of the predicted class."""
        label = prediction["prediction"]
        at = self.classes.index(label) if self.classes is not None else 0

        def predict(rows: pa.Table) -> np.ndarray:
            if self._with_probabilities:
                return np.asarray(self.model.predict_proba(rows))[:, at]
            found = np.asarray(self.model.predict(rows))
            return found if self.classes is None else (found == self.classes[at]).astype(float)

        with np.errstate(all="ignore"):
            found = contributions(predict, table, self.schema.typical_row(), pairs=_PAIRS)
        _finite(found.values)
        order = np.argsort(-np.abs(found.values), kind="stable")
        return {
            "of": f"p({label})" if self.classes is not None else "prediction",
            "start": found.start,
            "end": found.end,
            "meaning": "what each column adds, from a row of medians to this one (Shapley values by sampled orders)",
            "contributions": [{"field": found.names[j], "value": float(found.values[j])} for j in order],
        }

    def _rows(self, body: bytes) -> pa.Table:
        try:
            given = json.loads(body, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise _RefusedError(400, f"the body is no JSON: {str(error)[:120]}") from None
        rows = given
        if isinstance(given, dict):
            if unknown := sorted(given.keys() - {"rows"}):
                raise _RefusedError(422, f"unknown field {unknown[0]!r:.80}; expected rows", field=unknown[0][:80])
            rows = given.get("rows")
        if not isinstance(rows, list):
            raise _RefusedError(422, "rows: expected a list of rows", field="rows")
        if not rows:
            raise _RefusedError(422, "rows: is empty; expected at least one row", field="rows")
        if len(rows) > self.limits.max_rows:
            raise _RefusedError(413, f"rows: {len(rows):,} of them; expected at most {self.limits.max_rows:,}")
        try:
            return self.schema.table(rows)
        except RowError as error:
            raise _RefusedError(422, str(error), field=error.field, row=error.row) from None

    def _predict(self, table: pa.Table) -> list[dict[str, Any]]:
        """The entries of an answer, one for each row."""
        with np.errstate(all="ignore"):  # whether all is finite is looked at after it
            return self._entries(table)

    def _entries(self, table: pa.Table) -> list[dict[str, Any]]:
        if self._with_probabilities:
            assert self.classes is not None
            p = _finite(self.model.predict_proba(table))
            names = [str(label) for label in self.classes]
            return [
                {"prediction": self.classes[k], "probabilities": dict(zip(names, row, strict=True))}
                for k, row in zip(p.argmax(axis=1), p.tolist(), strict=True)
            ]
        predicted = np.asarray(self.model.predict(table))
        found = (predicted if self.classes is not None else _finite(predicted)).tolist()
        if self.half_width is None:
            return [{"prediction": value} for value in found]
        half = self.half_width
        return [{"prediction": v, "interval": {"level": _LEVEL, "lower": v - half, "upper": v + half}} for v in found]


#: Headers of every answer: nothing guesses types, frames the page or keeps the answer.
_SAFE = {"x-content-type-options": "nosniff", "x-frame-options": "DENY", "cache-control": "no-store"}


def _finite(values: Any) -> np.ndarray:
    """Predictions as an array, checked: JSON has no infinities."""
    found = np.asarray(values)
    if not np.isfinite(found).all():
        raise DataError("rows: the prediction is not a finite number; expected smaller values")
    return found


def _json(status: int, content: Any, headers: Mapping[str, str] | None = None) -> _Answer:
    return _Answer(status, json.dumps(content, allow_nan=False).encode(), headers=headers)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
