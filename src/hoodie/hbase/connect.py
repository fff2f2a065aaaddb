"""How HBase's Thrift gateway is spoken to: transport, protocol, TLS; and what the client's packages cannot do.

thriftpy2's own HTTP client is not used: it sets the default timeout of all sockets of the process while it calls.
"""

import re
import ssl
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from io import BytesIO
from types import ModuleType
from typing import Any

from hoodie.config.hbase import HBaseOptions, ThriftProtocol, ThriftTransport
from hoodie.errors import IndexUnavailable, InvalidOption

#: HBase keeps the name "zookeeper" to itself, in every namespace.
_TABLE_NAME = re.compile(r"(?:\w+:)?(?!zookeeper\Z)\w[\w.-]*")
TABLE_NAMES = "letters, digits, '_', '-' and '.', not beginning with '-' or '.', and not 'zookeeper'"


def require_happybase() -> ModuleType:
    """The module happybase. Raises InvalidOption naming the extra that brings it."""
    try:
        import happybase
        import tenacity  # noqa: F401
    except ImportError as missing:
        raise InvalidOption(
            f"hoodie.index.type=HBASE needs {missing.name or 'happybase'}: pip install 'hoodie[hbase]', for the "
            "driver's Python and for that of the executors"
        ) from missing
    return happybase  # type: ignore[no-any-return]  # untyped


def check_reachable(options: HBaseOptions) -> None:
    """Raises InvalidOption on a table name that HBase does not allow, and on connections that are not supported.

    The gateway answers an illegal name by closing the connection (HBase 1.4) or by an internal error (2.5), which looks
    like a failure that may pass.
    """
    if not _TABLE_NAME.fullmatch(options.table):
        raise InvalidOption(
            f"hoodie.index.hbase.table={options.table!r}: expected a table name of HBase's: {TABLE_NAMES}; in a "
            "namespace as namespace:table"
        )
    if transport_of(options) is ThriftTransport.SASL or options.authentication.lower() != "simple":
        raise InvalidOption(
            "a Thrift gateway of HBase that asks for SASL or Kerberos is not supported: the Thrift client (happybase, "
            "thriftpy2) cannot authenticate there. Run a gateway without it for this network, or one that speaks HTTP "
            "with TLS and asks for a client certificate: hoodie.index.hbase.thrift.transport=http, "
            "hoodie.index.hbase.thrift.ssl=true."
        )
    if (options.ssl_cert or options.ssl_ca or options.ssl_key) and not options.ssl:
        raise InvalidOption("hoodie.index.hbase.thrift.ssl.* files are given, but hoodie.index.hbase.thrift.ssl is off")
    if options.ssl_key and not options.ssl_cert:
        raise InvalidOption("hoodie.index.hbase.thrift.ssl.key.file needs hoodie.index.hbase.thrift.ssl.cert.file")


def transport_of(options: HBaseOptions) -> ThriftTransport:
    """The transport: `hoodie.index.hbase.thrift.framed` is the older way to say FRAMED.

    Raises InvalidOption when both are given and differ
    """
    if options.framed and options.transport not in (ThriftTransport.BUFFERED, ThriftTransport.FRAMED):
        raise InvalidOption(
            f"hoodie.index.hbase.thrift.framed=true contradicts hoodie.index.hbase.thrift.transport={options.transport}"
        )
    return ThriftTransport.FRAMED if options.framed else options.transport


@dataclass(frozen=True, slots=True)
class Channel:
    """An open connection. `client` has the calls of Thrift's interface as methods."""

    client: Any
    _transport: Any
    _socket: Any

    def set_timeout(self, seconds: float) -> None:
        """How long a call from now on may wait for the gateway."""
        self._socket.set_timeout(max(1, int(seconds * 1000)))

    def close(self) -> None:
        with suppress(OSError):
            self._transport.close()


def open_channel(options: HBaseOptions, seconds: float) -> Channel:
    """A new connection.

    seconds  that connecting and the first call may take; connecting no longer than its own option says
    Raises   InvalidOption on certificate files that cannot be read; OSError; TTransportException
    """
    require_happybase()  # its import makes Hbase_thrift
    from Hbase_thrift import Hbase
    from Hbase_thrift import IOError as HBaseIOError
    from thriftpy2.thrift import TClient, TType
    from thriftpy2.transport import TSocket, TSSLSocket

    # HBase 2 says in a second field whether a call may be repeated; the interface that happybase has is older.
    HBaseIOError.thrift_spec.setdefault(2, (TType.BOOL, "canRetry", False))
    millis = max(1, int(seconds * 1000))
    how = transport_of(options)
    if how is ThriftTransport.HTTP:
        socket = _http_transport(options, seconds)
    else:
        times = {"socket_timeout": millis, "connect_timeout": min(millis, options.connect_timeout)}
        if options.ssl:
            socket = TSSLSocket(options.host, options.port, ssl_context=tls_context(options), **times)
        else:
            socket = TSocket(options.host, options.port, **times)
    speaks, wraps = _protocol_classes(options.protocol, how)
    transport = wraps(socket)
    channel = Channel(TClient(Hbase, speaks(transport, decode_response=False)), transport, socket)
    try:
        transport.open()
    except BaseException:
        channel.close()
        raise
    return channel


def _protocol_classes(protocol: ThriftProtocol, transport: ThriftTransport) -> tuple[Any, Any]:
    """The classes of thriftpy2 for a protocol and a transport. Those in C serve the binary protocol only."""
    if protocol is ThriftProtocol.BINARY:
        from thriftpy2.protocol import TBinaryProtocol
        from thriftpy2.transport import TBufferedTransport, TFramedTransport

        return TBinaryProtocol, TFramedTransport if transport is ThriftTransport.FRAMED else TBufferedTransport
    from thriftpy2.protocol import TCompactProtocol
    from thriftpy2.transport.buffered import TBufferedTransport as Buffered
    from thriftpy2.transport.framed import TFramedTransport as Framed

    return TCompactProtocol, Framed if transport is ThriftTransport.FRAMED else Buffered


def tls_context(options: HBaseOptions) -> ssl.SSLContext:
    """TLS as the options say: the gateway's certificate is checked, by the system's authorities or by those in a file.

    Raises InvalidOption naming a file that cannot be read
    """
    try:
        context = ssl.create_default_context(cafile=options.ssl_ca or None)
        if options.ssl_cert:
            context.load_cert_chain(options.ssl_cert, options.ssl_key or None)
    except (OSError, ssl.SSLError) as problem:
        raise InvalidOption(
            f"hoodie.index.hbase.thrift.ssl.*: the certificate files cannot be read: {problem}"
        ) from problem
    return context


def _http_transport(options: HBaseOptions, seconds: float) -> Any:
    """Calls as the bodies of HTTP requests on one connection that is kept."""
    from thriftpy2.transport import TTransportException
    from thriftpy2.transport.base import TTransportBase

    class HttpTransport(TTransportBase):
        def __init__(self) -> None:
            self._sent, self._answer = BytesIO(), BytesIO()
            self._seconds = seconds
            self._connection: HTTPConnection | None = None

        def open(self) -> None:
            waits = min(self._seconds, options.connect_timeout / 1000)
            if options.ssl:
                connection: HTTPConnection = HTTPSConnection(
                    options.host, options.port, timeout=waits, context=tls_context(options)
                )
            else:
                connection = HTTPConnection(options.host, options.port, timeout=waits)
            connection.connect()
            self._connection = connection
            self._limit()

        def is_open(self) -> bool:
            return self._connection is not None

        def close(self) -> None:
            if self._connection is not None:
                self._connection.close()

        def set_timeout(self, millis: int) -> None:
            self._seconds = millis / 1000
            self._limit()

        def _limit(self) -> None:
            connection = self._connection
            if connection is None:
                return
            connection.timeout = self._seconds
            if connection.sock is not None:
                connection.sock.settimeout(self._seconds)

        def write(self, data: bytes) -> None:
            self._sent.write(data)

        def flush(self) -> None:
            body, self._sent = self._sent.getvalue(), BytesIO()
            assert self._connection is not None
            try:
                self._connection.request(
                    "POST",
                    options.http_path,
                    body,
                    {"Content-Type": "application/x-thrift", "Accept": "application/x-thrift"},
                )
                response = self._connection.getresponse()
                answer = response.read()
            except HTTPException as problem:
                raise TTransportException(message=f"no answer of HTTP: {problem!r}") from problem
            if response.status in (401, 403):
                raise IndexUnavailable(
                    f"HBase at {options.host}:{options.port} answers {response.status} {response.reason}: a gateway "
                    "that asks for authentication by HTTP (Kerberos) is not supported."
                )
            if response.status == 413:
                raise IndexUnavailable(
                    f"HBase at {options.host}:{options.port} answers 413 {response.reason}: lower "
                    "hoodie.index.hbase.thrift.max.message.bytes."
                )
            if response.status != 200:
                raise TTransportException(message=f"HTTP {response.status} {response.reason}")
            self._answer = BytesIO(answer)

        def read(self, size: int) -> bytes:
            data = self._answer.read(size)
            if not data:
                raise TTransportException(type=TTransportException.END_OF_FILE, message="the answer ends too early")
            return data

    return HttpTransport()
