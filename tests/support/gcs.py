"""Google Cloud Storage's JSON API on loopback: gcp-storage-emulator, from PyPI, with what it lacks and tables rest on.

Added are the condition `ifGenerationMatch=0` (412 where the object exists; of an upload in parts when it begins and
when it ends), and 416 for a range behind the end. One request is carried out at a time: looking and writing are one
step.
"""

import json
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import ThreadingHTTPServer
from io import BytesIO
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from hoodie.storage import FsspecStorage

# gcsfs asks a service beside the JSON API, which no endpoint_url moves, for the kind of a bucket. Workers inherit this.
os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")

_UPLOAD = re.compile(r"/upload/storage/v1/b/([^/]+)/o")
_DOWNLOAD = re.compile(r"/download/storage/v1/b/([^/]+)/o/(.+)")


@contextmanager
def running_gcs(bucket: str) -> Iterator[dict[str, Any]]:
    """An emulator with a bucket: the options of fsspec's driver for it."""
    objects = pytest.importorskip("gcp_storage_emulator.storage").Storage(use_memory_fs=True)
    objects._write_config_to_file = lambda: None  # all it knows, as JSON, after each write
    server = _Server(("127.0.0.1", 0), partial(_handler(), objects))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        options = {"token": "anon", "project": "contract", "endpoint_url": url}
        FsspecStorage(f"gs://{bucket}", options).fs.mkdir(bucket)
        yield options
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # gcsfs asks twice at once, and takes the first answer
            super().handle_error(request, client_address)


def _handler() -> Any:
    """The emulator's handler of requests with the additions."""
    handler = pytest.importorskip("gcp_storage_emulator.server").RequestHandler
    one_at_a_time = threading.Lock()

    class Handler(handler):  # type: ignore[misc, valid-type]
        def parse_request(self) -> bool:
            good: bool = super().parse_request()
            if good:
                self.path = self.path.replace(";", "%3B")  # it takes what follows for the parameters of an old URL
            return good

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            uri = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(uri.query).items()}
            upload = _UPLOAD.fullmatch(uri.path)
            with one_at_a_time:
                if upload and self._is_there(unquote(upload[1]), query, body):
                    self._refuse(412, "conditionNotMet")
                    return
                self.rfile = BytesIO(body)
                super().do_POST()

        def do_GET(self) -> None:
            download, begin = _DOWNLOAD.fullmatch(urlsplit(self.path).path), self.headers.get("Range")
            with one_at_a_time:
                found = download and self.storage.objects.get(unquote(download[1]), {}).get(unquote(download[2]))
                if found and begin and int(begin.removeprefix("bytes=").split("-")[0]) >= int(found["size"]):
                    self._refuse(416, "requestedRangeNotSatisfiable")
                else:
                    super().do_GET()

        def do_DELETE(self) -> None:
            with one_at_a_time:
                super().do_DELETE()

        def _is_there(self, bucket: str, query: dict[str, str], body: bytes) -> bool:
            if query.get("ifGenerationMatch") != "0":
                return False
            # Of an upload at once the name is in the JSON that goes before the bytes, between blank line and boundary.
            name = query.get("name") or json.loads(body.split(b"\n\n", 1)[1].partition(b"\n--")[0])["name"]
            return name in self.storage.objects.get(bucket, {})

        def _refuse(self, status: int, reason: str) -> None:
            told = json.dumps({"error": {"code": status, "message": reason, "errors": [{"reason": reason}]}}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

    return Handler
