"""The server of `hoodie serve`: looks at tables now and then, and answers with what it saw last."""

import json
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from types import FrameType
from typing import Any

from hoodie.cli import output, secrets
from hoodie.cli.calls import Call, Target
from hoodie.cli.fleet.page import fleet_page
from hoodie.cli.output import Outcome, Problem, json_value
from hoodie.config.options import Options
from hoodie.display.progress import OPTION
from hoodie.errors import HoodieError, InvalidInput
from hoodie.facts.health import Health, health
from hoodie.metrics.text import exposition
from hoodie.report.page import make_report
from hoodie.storage.faults import typed_errors
from hoodie.table.state import load_state

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_HTML, _JSON = "text/html; charset=utf-8", "application/json"
#: Seconds that a look at the tables has to end, once the server is to.
_PATIENCE = 2.0
_TABLE = re.compile(r"/tables/([0-9]{1,9})")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"


@dataclass(frozen=True, slots=True)
class SeenTable:
    """A table at the last look.

    path  as it is shown
    """

    target: Target
    path: str
    health: Health


@dataclass(slots=True)
class Fleet:
    """The tables of a call, as they were at the last look.

    grace    as the doctor takes it
    tables   by number. A path keeps its number while the server runs: a page that is open may have links to it
    numbers  of all paths that were ever seen
    """

    call: Call
    grace: float
    looked: float = 0.0
    seconds: float = 0.0
    tables: dict[int, SeenTable] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)

    def look(self) -> None:
        """Look at all tables; those that a glob matches now."""
        started = time.perf_counter()
        outcomes = self.call.run(lambda target: health(target.storage, target.settings, grace=self.grace))
        self.tables = {
            self.numbers.setdefault(outcome.path, len(self.numbers)): SeenTable(
                Target(outcome.path, self.call.options, self.call.storage_options),
                secrets.masked_path(outcome.path),
                seen_health(outcome),
            )
            for outcome in outcomes
        }
        self.looked, self.seconds = time.time(), time.perf_counter() - started

    def lose(self, kind: str, problem: str) -> None:
        """No table can be looked at, for a reason that is not a table's: all of the last look are down."""
        down = Health(error=kind, problem=problem)
        self.tables = {
            number: replace(table, health=replace(down, name=table.health.name, type=table.health.type))
            for number, table in self.tables.items()
        }
        self.looked = time.time()

    def document(self) -> dict[str, Any]:
        """What the page shows."""
        tables = [
            {**json_value(table.health), "path": json_value(table.path), "worst": table.health.worst, "number": number}
            for number, table in self.tables.items()
        ]
        return {"looked": self.looked, "seconds": round(self.seconds, 3), "tables": tables}

    def metrics(self) -> str:
        """What Prometheus scrapes."""
        return exposition([(table.path, table.health) for table in self.tables.values()])

    def report(self, number: int) -> str:
        """The page of one table. Raises HoodieError, KeyError"""
        target = self.tables[number].target
        with typed_errors():
            return make_report(load_state(target.storage), target.settings).html


def seen_health(outcome: Outcome[Health]) -> Health:
    """What came of a look at a table, as a table that is down where there was an error."""
    if outcome.result is not None:
        return outcome.result
    error = outcome.error or Problem("Error", "it could not be looked at")
    return Health(error=error.type, problem=error.message)


class Handler(BaseHTTPRequestHandler):
    """Answers of one request. Only reads; the paths of tables come from the command line, never from a request."""

    server_version, sys_version = "hoodie", ""
    timeout = 60  # seconds for a client that sends nothing, or takes nothing of an answer

    def __init__(self, fleet: Fleet, loopback: bool, *arguments: Any) -> None:
        self.fleet, self.loopback = fleet, loopback
        super().__init__(*arguments)

    def do_HEAD(self) -> None:
        self.do_GET()

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
            self._answer(HTTPStatus.OK, "text/plain; version=0.0.4; charset=utf-8", self.fleet.metrics())
        elif number := _TABLE.fullmatch(path):
            self._report(int(number[1]))
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", "there is /, /tables.json, /metrics and /tables/NUMBER")

    def _report(self, number: int) -> None:
        try:
            self._answer(HTTPStatus.OK, _HTML, self.fleet.report(number))
        except KeyError:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", "there is no such table, or no longer")
        except HoodieError as error:
            line = secrets.masked(" ".join(str(error).split()))
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain; charset=utf-8", f"There is no report: {line}")

    def _answer(self, status: HTTPStatus, kind: str, text: str) -> None:
        data = text.encode(errors="backslashreplace")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Requests are not logged."""


class Server(ThreadingHTTPServer):
    """A server of threads, at an address of either family."""

    daemon_threads = True
    request_queue_size = 128

    def server_bind(self) -> None:
        """Without the search of HTTPServer for the name of the address, which may take seconds."""
        TCPServer.server_bind(self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no error of the server; what else goes wrong is one line."""
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):
            output.complain(f"a request failed: {type(error).__name__}: {error}")


def serve_fleet(fleet: Fleet, host: str, port: int, every: float) -> int:
    """Serve until a signal. Returns the exit status. Raises InvalidInput when the port is taken"""
    with listening_server(fleet, host, port) as server:
        fleet.look()
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
        looks.join(_PATIENCE)
        if looks.is_alive():  # in a store that does not answer; nothing is written that it could leave half done
            sys.stdout.flush()
            os._exit(0)
    return 0


def listening_server(fleet: Fleet, host: str, port: int) -> ThreadingHTTPServer:
    """The server, which listens already. Raises InvalidInput"""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        kind = type("Server", (Server,), {"address_family": family})
        server: ThreadingHTTPServer = kind(address[:2], partial(Handler, fleet, host in _LOOPBACK))
    except OSError as error:
        raise InvalidInput(
            f"no server can listen at --host {host} --port {port}: {error.strerror}. "
            "Give another port (0: a free one), or an address of this machine"
        ) from error
    return server


def _look_again(fleet: Fleet, every: float, stop: threading.Event) -> None:
    # A look that takes seconds would write lines about itself to a log for as long as the server runs.
    fleet.call = replace(fleet.call, options=Options({**fleet.call.options, OPTION: "false"}))
    while not stop.wait(every):
        try:
            fleet.look()
        except Exception as error:
            problem = secrets.masked(f"the tables could not be looked at: {' '.join(str(error).split())}")
            fleet.lose(type(error).__name__, problem)
            output.complain(problem)


def _ends(server: ThreadingHTTPServer, stop: threading.Event) -> Callable[[int, FrameType | None], None]:
    def end(number: int, frame: FrameType | None) -> None:
        stop.set()
        threading.Thread(target=server.shutdown, daemon=True).start()  # it waits for `serve_forever`, which we are in

    return end
