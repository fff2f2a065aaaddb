"""The server of `hoodie serve`: looks at tables now and then, and answers with what it saw last."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import FrameType
from typing import Any

from hoodie.cli import output, secrets
from hoodie.cli.calls import Call, Target
from hoodie.cli.fleet.page import fleet_page
from hoodie.cli.output import plain
from hoodie.errors import HoodieError
from hoodie.facts.health import Health, health
from hoodie.metrics.text import exposition
from hoodie.report.page import make_report
from hoodie.storage.faults import typed_errors
from hoodie.table.state import load_state

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_HTML, _JSON = "text/html; charset=utf-8", "application/json"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"


@dataclass(slots=True)
class Fleet:
    """The tables of a call, as they were at the last look.

    grace  as the doctor takes it
    """

    call: Call
    grace: float
    looked: float = 0.0
    seconds: float = 0.0
    targets: list[Target] = field(default_factory=list)
    tables: list[tuple[str, Health]] = field(default_factory=list)

    def look(self) -> None:
        """Look at all tables; those that a glob matches now."""
        started = time.perf_counter()
        outcomes = self.call.run(lambda target: health(target.storage, target.settings, grace=self.grace))
        unknown = Health(error="Error", problem="it could not be looked at")
        tables = [(secrets.masked_path(outcome.path), outcome.result or unknown) for outcome in outcomes]
        targets = [Target(outcome.path, self.call.options, self.call.storage_options) for outcome in outcomes]
        self.targets, self.tables = targets, tables
        self.looked, self.seconds = time.time(), time.perf_counter() - started

    def document(self) -> dict[str, Any]:
        """What the page shows."""
        tables = [
            {**plain(health), "path": path, "worst": health.worst, "number": number}
            for number, (path, health) in enumerate(self.tables)
        ]
        return {"looked": self.looked, "seconds": round(self.seconds, 3), "tables": tables}

    def report(self, number: int) -> str:
        """The page of one table. Raises HoodieError, IndexError"""
        target = self.targets[number]
        with typed_errors():
            return make_report(load_state(target.storage), target.settings).html


class Handler(BaseHTTPRequestHandler):
    """Answers of one request. Only reads; the paths of tables come from the command line, never from a request."""

    server_version, sys_version = "hoodie", ""

    def __init__(self, fleet: Fleet, loopback: bool, *given: Any) -> None:
        self.fleet, self.loopback = fleet, loopback
        super().__init__(*given)

    def do_GET(self) -> None:
        host = self.headers.get("Host", "").rsplit(":", 1)[0].strip("[]")
        if self.loopback and host not in _LOOPBACK:  # a page elsewhere whose name was made to point here
            self._answer(HTTPStatus.FORBIDDEN, "text/plain", "this server is for this machine")
            return
        path = self.path.partition("?")[0]
        if path == "/":
            self._answer(HTTPStatus.OK, _HTML, fleet_page())
        elif path == "/tables.json":
            self._answer(HTTPStatus.OK, _JSON, json.dumps(self.fleet.document(), ensure_ascii=False))
        elif path == "/metrics":
            self._answer(HTTPStatus.OK, "text/plain; version=0.0.4; charset=utf-8", exposition(self.fleet.tables))
        elif path.startswith("/tables/") and path[8:].isdecimal() and int(path[8:]) < len(self.fleet.targets):
            self._report(int(path[8:]))
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", "there is /, /tables.json, /metrics and /tables/NUMBER")

    def _report(self, number: int) -> None:
        try:
            self._answer(HTTPStatus.OK, _HTML, self.fleet.report(number))
        except HoodieError as error:
            line = secrets.masked(" ".join(str(error).split()))
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain; charset=utf-8", f"There is no report: {line}")

    def _answer(self, status: HTTPStatus, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *given: Any) -> None:
        """Requests are not logged."""


def serving(fleet: Fleet, host: str, port: int, every: float) -> int:
    """Serve until a signal. Returns the exit status. Raises OSError when the port is taken"""
    fleet.look()
    with listening(fleet, host, port) as server:
        stop = threading.Event()
        looks = threading.Thread(target=_look_again, args=(fleet, every, stop), daemon=True)
        before = {number: signal.signal(number, _ends(server, stop)) for number in (signal.SIGINT, signal.SIGTERM)}
        looks.start()
        name = f"[{host}]" if ":" in host else host
        output.show([f"{len(fleet.tables)} tables at http://{name}:{server.server_address[1]}/ (Ctrl-C ends it)"])
        try:
            server.serve_forever()
        finally:
            stop.set()
            for number, handler in before.items():
                signal.signal(number, handler)
    return 0


def listening(fleet: Fleet, host: str, port: int) -> ThreadingHTTPServer:
    """The server, which listens already."""
    server = ThreadingHTTPServer((host, port), partial(Handler, fleet, host in _LOOPBACK))
    server.daemon_threads = True
    return server


def _look_again(fleet: Fleet, every: float, stop: threading.Event) -> None:
    while not stop.wait(every):
        try:
            fleet.look()
        except Exception as error:  # such as a glob whose store does not answer: what was seen stays, with its time
            output.complain(f"the tables could not be looked at: {error}")


def _ends(server: ThreadingHTTPServer, stop: threading.Event) -> Callable[[int, FrameType | None], None]:
    def end(number: int, frame: FrameType | None) -> None:
        stop.set()
        threading.Thread(target=server.shutdown, daemon=True).start()  # it waits for `serve_forever`, which we are in

    return end
