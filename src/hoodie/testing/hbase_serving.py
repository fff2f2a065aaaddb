"""How the stand-in gateway speaks with a client: the transports and protocols that a real one has."""

from __future__ import annotations

import socket
import struct
from http.server import BaseHTTPRequestHandler
from typing import Any

from thriftpy2.protocol import TBinaryProtocolFactory, TCompactProtocolFactory
from thriftpy2.thrift import TProcessor
from thriftpy2.transport import TBufferedTransport, TFramedTransport, TMemoryBuffer, TSocket
from thriftpy2.transport.base import readall

from hoodie.testing.hbase_gateway import UnexpectedError

#: hbase.regionserver.thrift.framed.max_frame_size_in_mb
MAX_FRAME = 2 << 20


class _LimitedFrames(TFramedTransport):
    """Refuses frames that are too large, as the servers of the framed transport do."""

    def __init__(self, transport: Any, most: int) -> None:
        super().__init__(transport)  # type: ignore[no-untyped-call]
        self._most = most

    def read_frame(self) -> None:
        (size,) = struct.unpack("!i", readall(self._trans.read, 4))
        if not 0 <= size <= self._most:
            raise UnexpectedError(
                f"Read a frame size of {size}, which is bigger than the maximum allowable buffer size"
            )
        self._rbuf.seek(0)
        self._rbuf.truncate()
        self._rbuf.write(readall(self._trans.read, size))
        self._rbuf.seek(0)


def serve(client: socket.socket, processor: TProcessor, transport: str, protocol: str, max_frame: int) -> None:
    """Answer the calls of a connection until it breaks, which raises whatever broke it.

    transport  BUFFERED, FRAMED or HTTP; protocol: BINARY or COMPACT
    """
    factory = (TCompactProtocolFactory if protocol == "COMPACT" else TBinaryProtocolFactory)(decode_response=False)
    if transport == "HTTP":
        _serve_http(client, processor, factory)
        return
    handle = TSocket()
    handle.set_handle(client)
    framing = _LimitedFrames(handle, max_frame) if transport == "FRAMED" else TBufferedTransport(handle)
    spoken = factory.get_protocol(framing)  # type: ignore[no-untyped-call]
    while True:
        processor.process(spoken, spoken)


def _serve_http(client: socket.socket, processor: TProcessor, factory: Any) -> None:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            came = TMemoryBuffer(self.rfile.read(int(self.headers["Content-Length"])))
            goes = TMemoryBuffer()
            processor.process(factory.get_protocol(came), factory.get_protocol(goes))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-thrift")
            self.send_header("Content-Length", str(len(goes.getvalue())))
            self.end_headers()
            self.wfile.write(goes.getvalue())

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing."""

    Handler(client, ("127.0.0.1", 0), None)  # type: ignore[arg-type]  # it asks its server for nothing
