"""The options of the HBase index: where HBase is, which table holds the index, how large its requests are."""

from dataclasses import dataclass
from enum import StrEnum

from hoodie.config.options import MiB, above_zero, from_zero, option, positive


class ThriftTransport(StrEnum):
    """How messages to the Thrift gateway are framed."""

    BUFFERED = "BUFFERED"
    FRAMED = "FRAMED"
    HTTP = "HTTP"
    SASL = "SASL"  # not supported; named so that the error can say so


class ThriftProtocol(StrEnum):
    """How messages to the Thrift gateway are encoded."""

    BINARY = "BINARY"
    COMPACT = "COMPACT"


@dataclass(frozen=True, slots=True, kw_only=True)
class HBaseOptions:
    """The HBase index, reached by a Thrift gateway (`hbase thrift start`)."""

    host: str = option(
        "hoodie.index.hbase.thrift.host",
        "",
        "Host of HBase's Thrift gateway; drivers and executors connect to it. Hudi has no such option: it asks "
        "ZooKeeper, which needs HBase's Java client.",
    )
    port: int = above_zero("hoodie.index.hbase.thrift.port", 9090, "Its port.")
    framed: bool = option(
        "hoodie.index.hbase.thrift.framed",
        False,
        "Whether the gateway speaks the framed transport, as it does with -nonblocking, -hsha or -threadedselector.",
    )
    transport: ThriftTransport = option(
        "hoodie.index.hbase.thrift.transport",
        ThriftTransport.BUFFERED,
        "The gateway's transport: BUFFERED, FRAMED (as thrift.framed=true), HTTP. SASL is not supported.",
    )
    protocol: ThriftProtocol = option(
        "hoodie.index.hbase.thrift.protocol",
        ThriftProtocol.BINARY,
        "The gateway's protocol: BINARY, or COMPACT, as it is with -compact.",
    )
    http_path: str = option(
        "hoodie.index.hbase.thrift.http.path", "/", "Path of the gateway's URL, with the transport HTTP."
    )
    ssl: bool = option(
        "hoodie.index.hbase.thrift.ssl",
        False,
        "Speak TLS with the gateway; its certificate is checked against its host name.",
    )
    ssl_ca: str = option(
        "hoodie.index.hbase.thrift.ssl.ca.file",
        "",
        "PEM file of the authorities that the gateway's certificate may be signed by; empty: those of the system.",
    )
    ssl_cert: str = option(
        "hoodie.index.hbase.thrift.ssl.cert.file",
        "",
        "PEM file of a client certificate, where the gateway asks for one.",
    )
    ssl_key: str = option(
        "hoodie.index.hbase.thrift.ssl.key.file", "", "PEM file of its private key; empty: it is in the cert.file."
    )
    max_message: int = option(
        "hoodie.index.hbase.thrift.max.message.bytes",
        MiB,
        "A batch of gets or puts is cut where its message would be larger. A framed gateway refuses messages above "
        "hbase.regionserver.thrift.framed.max_frame_size_in_mb, 2 MB by default.",
        expected="bytes, such as 1048576",
        check=positive,
    )
    authentication: str = option(
        "hoodie.index.hbase.security.authentication", "simple", "Only simple is supported: no Kerberos."
    )
    retries: int = from_zero(
        "hoodie.index.hbase.thrift.max.retries",
        5,
        "How often a call that failed is repeated on a new connection, after 0.1 s, 0.2 s, 0.4 s and so on, within the "
        "time for a call (zk.session_timeout_ms). Permanent errors are not repeated.",
    )
    table: str = option(
        "hoodie.index.hbase.table",
        "",
        "HBase table that holds the index of this table alone. It must exist, with the column family `_s`.",
    )
    get_batch: int = above_zero(
        "hoodie.index.hbase.get.batch.size",
        100,
        "Keys looked up in one request. A task sends at most ten batches a second, as Hudi's do: raise it for more.",
    )
    put_batch: int = above_zero(
        "hoodie.index.hbase.put.batch.size",
        100,
        "Entries written in one request. A task sends at most one batch a second, as Hudi's do: raise it for more.",
    )
    put_autocompute: bool = option(
        "hoodie.index.hbase.put.batch.size.autocompute",
        False,
        "Derive the put batch from qps.fraction, max.qps.per.region.server and the number of region servers.",
    )
    qps_fraction: float = option(
        "hoodie.index.hbase.qps.fraction",
        0.5,
        "The share of HBase's requests per second that one write may take, with put.batch.size.autocompute.",
        expected="a share, such as 0.5",
        check=lambda value: 0 < value <= 1,
    )
    region_server_qps: int = above_zero(
        "hoodie.index.hbase.max.qps.per.region.server",
        1000,
        "Assumed requests per second of a region server, with put.batch.size.autocompute.",
    )
    call_timeout: int = above_zero(
        "hoodie.index.hbase.zk.session_timeout_ms",
        60_000,
        "Milliseconds that one call may take, its repetitions included.",
    )
    connect_timeout: int = above_zero(
        "hoodie.index.hbase.zk.connection_timeout_ms", 15_000, "Milliseconds that connecting may take."
    )
    moves: bool = option(
        "hoodie.hbase.index.update.partition.path",
        False,
        "A record with another partition path than the stored one is deleted there and inserted in the new partition; "
        "off: it is updated where it is.",
    )
    rollback_sync: bool = option(
        "hoodie.index.hbase.rollback.sync",
        False,
        "A rollback removes its commit's entries, which takes a scan of the index. They do not count either way.",
    )
    offline: bool = option(
        "hoodie.index.hbase.rollback.offline",
        False,
        "Roll back or restore although the index cannot be reached, or is not named by the options. The table "
        "remembers that its index is out of date; the next write with the index brings it up to date.",
    )
    buckets: int = above_zero(
        "hoodie.index.hbase.bucket.number",
        8,
        "Prefixes of row keys, with hoodie.index.class=org.apache.hudi.index.hbase.RebalancedSparkHoodieHBaseIndex.",
    )
    quorum: str = option("hoodie.index.hbase.zkquorum", "", "For Hudi's own writers; not used.")
    zk_port: str = option("hoodie.index.hbase.zkport", "", "For Hudi's own writers; not used.")
    zk_node: str = option("hoodie.index.hbase.zknode.path", "", "For Hudi's own writers; not used.")
