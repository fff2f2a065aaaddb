"""An S3 over HTTP on loopback.

HOODIE_TEST_S3=http://key:secret@host:port names a server that runs already; without it there is an emulator.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from hoodie.storage import FsspecStorage


@contextmanager
def running_s3(bucket: str, key: str = "k", secret: str = "s") -> Iterator[dict[str, Any]]:
    """A bucket in an S3: the options of fsspec's driver for it."""
    if address := os.environ.get("HOODIE_TEST_S3"):
        parts = urlsplit(address)
        endpoint = {"endpoint_url": f"http://{parts.hostname}:{parts.port}"}
        options = {"key": parts.username, "secret": parts.password, "client_kwargs": endpoint}
        files = FsspecStorage(f"s3://{bucket}", options).fs
        if not files.exists(bucket):
            files.mkdir(bucket)
        yield options
        return
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    responses = pytest.importorskip("moto.s3.responses").S3Response
    put, one_at_a_time = responses._key_response_put, threading.Lock()

    def put_atomically(*arguments: Any, **named: Any) -> Any:
        with one_at_a_time:
            return put(*arguments, **named)

    responses._key_response_put = put_atomically  # moto looks and then writes; in S3 that is one step
    server.start()
    try:
        host, port = server.get_host_and_port()
        options = {"key": key, "secret": secret, "client_kwargs": {"endpoint_url": f"http://{host}:{port}"}}
        FsspecStorage(f"s3://{bucket}", options).fs.mkdir(bucket)
        yield options
    finally:
        server.stop()
        responses._key_response_put = put
