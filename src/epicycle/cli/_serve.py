"""``epicycle serve``: a local prediction server for a model file."""

from __future__ import annotations

import ipaddress
import socket
import sys
from contextlib import suppress
from pathlib import Path

from epicycle.automl import TableModel
from epicycle.automl.serving import LOOPBACK, Limits, PredictionApp
from epicycle.core._checks import optional_import
from epicycle.core._exceptions import ParameterError
from epicycle.io import load

#: Seconds that requests in flight have to end after the server was asked to stop.
_GRACE = 10


def run_server(
    path: Path, *, host: str, port: int, max_rows: int, max_bytes: int, seconds: float, n_jobs: int | None = None
) -> None:
    """Serve until an interrupt, and end the requests that are in flight."""
    uvicorn = optional_import("uvicorn", "epicycle serve")
    if not seconds > 0:
        raise ParameterError(f"--time-limit {seconds:g}; expected seconds, more than 0")
    model = load(path)
    if n_jobs is not None and isinstance(model, TableModel) and "n_jobs" in model.model_.get_params(deep=False):
        model.model_.set_params(n_jobs=n_jobs)
    local = is_loopback(host)
    limits = Limits(max_bytes, max_rows, seconds)
    app = PredictionApp(model, name=path.name, limits=limits, hosts=LOOPBACK if local else None)
    with bound(host, port) as listener:
        name = f"[{host}]" if ":" in host else host
        print(f"serving {path} at http://{name}:{listener.getsockname()[1]}/ ; Ctrl-C stops", flush=True)
        if not local:
            print(
                f"epicycle: warning: --host {host}: anyone who reaches this address can use the model; there is no "
                "password and no encryption",
                file=sys.stderr,
            )
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                lifespan="on",
                timeout_graceful_shutdown=_GRACE,
                server_header=False,
                date_header=True,
                proxy_headers=False,
            )
        )
        with suppress(KeyboardInterrupt):  # comes again after the requests in flight have ended
            server.run(sockets=[listener])


def bound(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1_024)
    except OSError as error:
        raise ParameterError(f"--host {host} --port {port}: {error.strerror or error}") from None
    return listener


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
