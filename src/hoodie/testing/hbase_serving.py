"""How the stand-in gateway speaks with a client: the transports and protocols that a real one has."""

import socket
import struct
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from typing import Any

from thriftpy2.protocol import TBinaryProtocol, TCompactProtocol
from thriftpy2.protocol.binary import TBinaryProtocol as BinaryInPython
from thriftpy2.thrift import TProcessor
from thriftpy2.transport import TBufferedTransport, TSocket
from thriftpy2.transport.base import readall
from thriftpy2.transport.buffered import TBufferedTransport as BufferedInPython
from thriftpy2.transport.framed import TFramedTransport
from thriftpy2.transport.memory import TMemoryBuffer

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
        self._rbuf = BytesIO(readall(self._trans.read, size))


class _Compact(TCompactProtocol):
    """Names of calls are text, whatever values are."""

    def read_message_begin(self) -> tuple[str, int, int]:
        name, kind, number = super().read_message_begin()  # type: ignore[no-untyped-call]
        return name.decode() if isinstance(name, bytes) else name, kind, number


def serve(client: socket.socket, processor: TProcessor, transport: str, protocol: str, max_frame: int) -> None:
    """Answer the calls of a connection until it breaks, which raises whatever broke it.

    transport  BUFFERED, FRAMED or HTTP; protocol: BINARY or COMPACT
    """
    speaks: Any = _Compact if protocol == "COMPACT" else BinaryInPython
    if transport == "HTTP":
        _serve_http(client, processor, speaks)
        return
    handle = TSocket()
    handle.set_handle(client)
    framing: Any
    if transport == "FRAMED":
        framing = _LimitedFrames(handle, max_frame)
    elif protocol == "COMPACT":
        framing = BufferedInPython(handle)
    else:
        speaks, framing = TBinaryProtocol, TBufferedTransport(handle)
    spoken = speaks(framing, decode_response=False)
    while True:
        processor.process(spoken, spoken)


def _serve_http(client: socket.socket, processor: TProcessor, speaks: Any) -> None:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            came = TMemoryBuffer(self.rfile.read(int(self.headers["Content-Length"])))
            goes = TMemoryBuffer()
            processor.process(speaks(came, decode_response=False), speaks(goes, decode_response=False))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-thrift")
            self.send_header("Content-Length", str(len(goes.getvalue())))
            self.end_headers()
            self.wfile.write(goes.getvalue())

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing."""

    Handler(client, ("127.0.0.1", 0), None)  # type: ignore[arg-type]  # it asks its server for nothing
