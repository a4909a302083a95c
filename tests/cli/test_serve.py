"""The server as a command: a real port, many requests, a page in a browser, and an end without a lost answer."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest

import epicycle as ep
from epicycle.cli import main

pytest.importorskip("uvicorn")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    table = pa.table({"a": x[:, 0], "b": x[:, 1], "y": np.where(x[:, 0] > x[:, 1], "yes", "no")})
    path = tmp_path_factory.mktemp("serve") / "model.epi"
    kinds = {"a": "number", "b": "number", "y": "target"}
    ep.TableModel(ep.LogisticRegression(), kinds).fit(table).save(path)
    return path


@pytest.fixture(scope="module")
def server(model):
    command = [sys.executable, "-c", "import sys; from epicycle.cli import main; sys.exit(main())", "serve"]
    with subprocess.Popen([*command, str(model), "--port", "0"], stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        port = int(line.split("127.0.0.1:")[1].split("/")[0])
        yield port, process
        if process.poll() is None:
            process.kill()


def post(connection, rows):
    body = json.dumps({"rows": rows})
    connection.request("POST", "/predict", body, {"content-type": "application/json"})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def test_many_clients_at_once_on_connections_that_stay_open(server, model):
    port, _ = server
    expected = ep.load(model)
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(4, 50, 2))
    found, failures = {}, []

    def work(k):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            found[k] = [post(connection, [row.tolist()]) for row in rows[k]]
        except OSError as error:
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for k in range(4):
        table = pa.table({"a": rows[k][:, 0], "b": rows[k][:, 1]})
        assert [status for status, _ in found[k]] == [200] * 50
        assert [one["predictions"][0]["prediction"] for _, one in found[k]] == expected.predict(table).tolist()


def test_what_is_no_http_is_refused_and_the_server_goes_on(server):
    port, _ = server
    rng = np.random.default_rng(2)
    garbage = [
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: -5\r\n\r\n",
        b"POST /predict HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\n" + b"x: " + b"y" * 200_000 + b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        *(rng.bytes(200) for _ in range(10)),
    ]
    for content in garbage:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            try:
                answer = connection.recv(1_000)
            except ConnectionResetError:
                answer = b""
        assert not answer.startswith(b"HTTP/1.1 5")
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        assert post(connection, [[0.0, 1.0]])[0] == 200


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("n", [100, pytest.param(10_000, marks=pytest.mark.slow)])
def test_mutated_requests_are_never_an_error_of_the_server(server, n):
    """Requests with bytes changed, cut off, doubled or put in: every answer is below 500, and a right one follows."""
    port, _ = server
    rng = np.random.default_rng(n)
    body = json.dumps({"rows": [[1.0, 2.0]]}).encode()
    head = b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\n"
    valid = head + b"content-length: " + str(len(body)).encode() + b"\r\n\r\n" + body
    seen = set()
    for i in range(n):
        sent = bytearray(valid)
        if i % 4 == 0:  # a whole request with another body: other rows, or what is no JSON
            for at in rng.integers(len(valid) - len(body), len(valid), rng.integers(1, 3)):
                sent[at] = rng.choice(list(b'0123456789[]{}",.'))
        else:
            for at in rng.integers(0, len(valid), rng.integers(1, 5)):
                sent[at] = rng.integers(256)
            kind, at = rng.integers(4), int(rng.integers(len(sent)))
            part = bytes(sent[at : at + 40])
            sent = (sent, sent[:at], sent[:at] + part + sent[at:], sent[:at] + rng.bytes(20) + sent[at:])[kind]
        with closing(socket.create_connection(("127.0.0.1", port), timeout=60)) as connection:
            connection.sendall(bytes(sent))
            if i % 4:  # others wait for bytes that never come; a whole request may be dropped where its sender leaves
                connection.shutdown(socket.SHUT_WR)
            answer = b""
            try:
                while got := connection.recv(65_536):
                    answer += got
            except ConnectionError:  # what is no HTTP may be cut off
                pass
        statuses = [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3})", answer)]
        assert all(status < 500 for status in statuses), (bytes(sent), answer[:300])
        seen.update(statuses)
    assert {200, 400, 422} <= seen
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        assert post(connection, [[1.0, 2.0]])[0] == 200


def test_an_interrupt_stops_it(server):
    port, process = server
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        assert post(connection, [[0.0, 1.0]])[0] == 200
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(timeout=60) == 0


def test_bad_arguments(model, tmp_path, capsys):
    assert main(["serve", str(tmp_path / "none.epi")]) == 2
    assert main(["serve", str(model), "--host", "no.such.host.invalid"]) == 2
    assert "--host no.such.host.invalid" in capsys.readouterr().err
    ep.Ridge().fit([[0.0], [1.0]], [0.0, 1.0]).save(tmp_path / "ridge.epi")
    assert main(["serve", str(tmp_path / "ridge.epi")]) == 2
    assert "expected a model of a table" in capsys.readouterr().err
