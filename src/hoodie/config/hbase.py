"""The options of the HBase index: where HBase is, which table holds the index, how much is asked of it at a time."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.config.options import option


def _positive(value: int | float) -> bool:
    return value > 0


def _not_negative(value: int) -> bool:
    return value >= 0


def _fraction(value: float) -> bool:
    return 0 < value <= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HBaseOptions:
    """The HBase index, reached by a Thrift gateway (`hbase thrift start`)."""

    host: str = option(
        "hoodie.index.hbase.thrift.host",
        "",
        "Host of HBase's Thrift gateway; drivers and executors connect to it. Hudi has no such option: it asks "
        "ZooKeeper, which needs HBase's Java client.",
    )
    port: int = option("hoodie.index.hbase.thrift.port", 9090, "Its port.", check=_positive)
    framed: bool = option(
        "hoodie.index.hbase.thrift.framed",
        False,
        "Whether the gateway speaks the framed transport, as it does with -nonblocking, -hsha or -threadedselector.",
    )
    retries: int = option(
        "hoodie.index.hbase.thrift.max.retries",
        5,
        "How often a call that failed is repeated on a new connection, after 0.1 s, 0.2 s, 0.4 s and so on.",
        check=_not_negative,
    )
    table: str = option(
        "hoodie.index.hbase.table",
        "",
        "HBase table that holds the index of this table alone. It must exist, with the column family `_s`.",
    )
    get_batch: int = option(
        "hoodie.index.hbase.get.batch.size",
        100,
        "Keys asked for at once. A task asks for at most ten batches a second, as Hudi's do: raise it for more.",
        check=_positive,
    )
    put_batch: int = option(
        "hoodie.index.hbase.put.batch.size",
        100,
        "Entries written at once. A task writes at most one batch a second, as Hudi's do: raise it for more.",
        check=_positive,
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
        check=_fraction,
    )
    region_server_qps: int = option(
        "hoodie.index.hbase.max.qps.per.region.server",
        1000,
        "Requests per second that a region server is taken to serve, with put.batch.size.autocompute.",
        check=_positive,
    )
    call_timeout: int = option(
        "hoodie.index.hbase.zk.session_timeout_ms",
        60_000,
        "Milliseconds that one call may take.",
        check=_positive,
    )
    connect_timeout: int = option(
        "hoodie.index.hbase.zk.connection_timeout_ms",
        15_000,
        "Milliseconds that connecting may take.",
        check=_positive,
    )
    moves: bool = option(
        "hoodie.hbase.index.update.partition.path",
        False,
        "A record that comes with another partition path is deleted where it is and inserted where it says; off: it "
        "is updated where it is.",
    )
    rollback_sync: bool = option(
        "hoodie.index.hbase.rollback.sync",
        False,
        "A rollback removes its commit's entries, which takes a scan of the index. They do not count either way.",
    )
    buckets: int = option(
        "hoodie.index.hbase.bucket.number",
        8,
        "Prefixes of row keys, with hoodie.index.class=org.apache.hudi.index.hbase.RebalancedSparkHoodieHBaseIndex.",
        check=_positive,
    )
    quorum: str = option("hoodie.index.hbase.zkquorum", "", "Of Hudi's own writers; not used.")
    zk_port: str = option("hoodie.index.hbase.zkport", "", "Of Hudi's own writers; not used.")
    zk_node: str = option("hoodie.index.hbase.zknode.path", "", "Of Hudi's own writers; not used.")


HBASE_GROUPS = (HBaseOptions,)
