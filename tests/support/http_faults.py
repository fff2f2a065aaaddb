"""An HTTP proxy on loopback that passes requests on, or fails them as it is told: what a network does to a store."""

from __future__ import annotations

import http.client
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class Fault(Enum):
    """What becomes of a request."""

    BUSY = "503, and nothing happens"
    ERROR = "500, and nothing happens"
    CUT = "the connection breaks, and nothing happens"
    LOST = "it happens, and the connection breaks before the answer"
    HANG = "it happens, and the answer does not come in time: see `times_out`"
    DENIED = "403, as to a user without the right to do it"
    EXPIRED = "400, as to a token that is no longer valid"
    UNKNOWN = "401, as to someone that the store does not know"
    MOVED = "301, as from a bucket of another region"
    MISSIGNED = "400, as to a signature for another region"


#: Says for each request, by method and path with query, which fault it meets; None: none.
Choose = Callable[[str, str], Fault | None]

_BUSY = b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>ServiceUnavailable</Code><Message>busy</Message></Error>'
_NO = b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>no</Message></Error>'
#: Of the buckets that say which one they are in.
REGION = "eu-south-2"
_MISSIGNED = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>AuthorizationHeaderMalformed</Code>'
    b"<Message>the region 'us-east-1' is wrong; expecting 'eu-south-2'</Message><Region>eu-south-2</Region></Error>"
)
_ERROR = b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>InternalError</Code><Message>oops</Message></Error>'


#: The header of an answer for which the client is to take that it waited too long.
TOO_LATE = "X-Too-Late"


def times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have S3's client take answers that are too late for a time-out of its own, without anybody waiting."""
    from aiobotocore.httpsession import AIOHTTPSession
    from botocore.exceptions import ReadTimeoutError

    send = AIOHTTPSession.send

    async def sent(self: AIOHTTPSession, request: Any) -> Any:
        answer = await send(self, request)
        if TOO_LATE in answer.headers:
            raise ReadTimeoutError(endpoint_url=request.url)
        return answer

    monkeypatch.setattr(AIOHTTPSession, "send", sent)


class FaultyProxy:
    """Between a client and the server at `host`:`port`. `choose` may be replaced at any time."""

    def __init__(self, host: str, port: int) -> None:
        self.target = (host, port)
        self.choose: Choose = lambda method, path: None
        self.dropped: frozenset[str] = frozenset()  # headers of requests, in lower case, that are not passed on
        self.met: Counter[Fault] = Counter()
        self.requests: Counter[str] = Counter()
        self._counting = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": self}))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def fault_for(self, method: str, path: str) -> Fault | None:
        with self._counting:
            self.requests[method] += 1
            fault = self.choose(method, path)
            if fault:
                self.met[fault] += 1
            return fault

    @contextmanager
    def faults(self, choose: Choose) -> Iterator[Counter[Fault]]:
        """Fail requests as chosen within the block; the faults that were met."""
        self.met = met = Counter()
        self.choose = choose
        try:
            yield met
        finally:
            self.choose = lambda method, path: None

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: FaultyProxy

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.proxy.fault_for(self.command, self.path)
        if fault in (Fault.BUSY, Fault.ERROR):
            self._answer(503 if fault is Fault.BUSY else 500, [], _BUSY if fault is Fault.BUSY else _ERROR)
            return
        if fault is Fault.MOVED:
            self._answer(301, [("x-amz-bucket-region", REGION)], _NO % b"PermanentRedirect")
            return
        if fault is Fault.MISSIGNED:
            self._answer(400, [("x-amz-bucket-region", REGION)], _MISSIGNED)
            return
        if fault is Fault.UNKNOWN:
            self._answer(401, [], b"")
            return
        if fault in (Fault.DENIED, Fault.EXPIRED):
            denied = fault is Fault.DENIED
            self._answer(403 if denied else 400, [], _NO % (b"AccessDenied" if denied else b"ExpiredToken"))
            return
        if fault is not Fault.CUT:
            connection = http.client.HTTPConnection(*self.proxy.target, timeout=30)
            headers = {
                key: value
                for key, value in self.headers.items()
                if key.lower() not in {"expect", "connection", *self.proxy.dropped}
            }
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            if fault is None:
                self._answer(answer.status, answer.getheaders(), content)
                return
            if fault is Fault.HANG:
                self._answer(answer.status, [*answer.getheaders(), (TOO_LATE, "1")], content)
                return
        self.close_connection = True

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        length = None
        for key, value in headers:
            if key.lower() == "content-length":
                length = value
            elif key.lower() not in ("transfer-encoding", "connection"):
                self.send_header(key, value)
        # The length in the answer to a HEAD is that of the file.
        self.send_header("Content-Length", length if self.command == "HEAD" and length else str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass_on


def every(step: int, *faults: Fault) -> Choose:
    """One request of each `step` fails, by the faults in turn."""
    seen = 0

    def choose(method: str, path: str) -> Fault | None:
        nonlocal seen
        seen += 1
        return faults[seen // step % len(faults)] if seen % step == 0 else None

    return choose


def first(count: int, fault: Fault, method: str = "", part: str = "") -> Choose:
    """The first requests fail that have a method and a part in their path."""
    left = count

    def choose(called: str, path: str) -> Fault | None:
        nonlocal left
        if left == 0 or method not in ("", called) or part not in path:
            return None
        left -= 1
        return fault

    return choose
