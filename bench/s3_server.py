"""An S3 emulator on loopback (moto) that records each request, and may take longer for it, as a distant store does."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote

BUCKET = "tables"


@dataclass(frozen=True, slots=True)
class Request:
    """One request, as the server saw it.

    kind  LIST, GET, HEAD, PUT (a part of an upload included), POST (begin or end of an upload) or DELETE
    path  bucket and key; of a LIST the prefix
    """

    kind: str
    path: str
    begin: float  # seconds, monotonic
    end: float


@dataclass(slots=True)
class Requests:
    """The requests of one operation."""

    made: list[Request] = field(default_factory=list)

    @property
    def kinds(self) -> Counter[str]:
        return Counter(request.kind for request in self.made)

    @property
    def sequential(self) -> int:
        """The most requests of which each began after the one before had ended: what the operation waits for."""
        count, free = 0, 0.0
        for request in sorted(self.made, key=lambda request: request.end):
            if request.begin >= free:
                count, free = count + 1, request.end
        return count


class RecordingServer:
    """The emulator, started and stopped by `with`.

    delay  seconds that each request takes longer
    """

    def __init__(self, delay: float = 0.0) -> None:
        self.delay = delay
        self._recording: Requests | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> RecordingServer:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=_quiet_handler())
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.file_system().mkdir(BUCKET)
        return self

    def __exit__(self, *raised: object) -> None:
        self._server.shutdown()

    @property
    def options(self) -> dict[str, Any]:
        """fsspec options of a client."""
        url = f"http://127.0.0.1:{self._server.server_address[1]}"
        return {"key": "k", "secret": "s", "client_kwargs": {"endpoint_url": url}}

    def file_system(self) -> Any:
        import s3fs

        return s3fs.S3FileSystem(**self.options)

    @contextmanager
    def recorded(self, delay: float | None = None) -> Iterator[Requests]:
        """The requests that are made within the block.

        delay  as the server's, within the block
        """
        before, self._recording = self.delay, Requests()
        self.delay = before if delay is None else delay
        try:
            yield self._recording
        finally:
            self.delay, self._recording = before, None

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        begin = time.monotonic()
        if self.delay:
            time.sleep(self.delay)
        try:
            return list(self._app(environ, start))
        finally:
            end = time.monotonic()
            if (recording := self._recording) is not None:
                with self._lock:
                    recording.made.append(Request(*_kind(environ), begin, end))


def _kind(environ: dict[str, Any]) -> tuple[str, str]:
    method, path = environ["REQUEST_METHOD"], unquote(environ["PATH_INFO"])
    query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    if method == "GET" and "list-type" in query:
        return "LIST", f"{path}/{query.get('prefix', [''])[0]}"
    if method == "POST" and "delete" in query:
        return "DELETE", path
    return method, path


def _quiet_handler() -> type:
    from werkzeug.serving import WSGIRequestHandler

    class Quiet(WSGIRequestHandler):
        def log(self, *_: object) -> None:
            """Say nothing."""

    return Quiet
