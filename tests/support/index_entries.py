"""The indexes there are, as tests of all of them see them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hoodie.testing.index_suite import Entry


@contextmanager
def hbase_table() -> Iterator[Mapping[str, str]]:
    """The options of an index in HBase: in the gateway that HOODIE_TEST_HBASE names, or a stand-in."""
    from hoodie.testing.hbase import gateway_for_tests  # tests run without the package, too

    with gateway_for_tests() as gateway:
        yield gateway.options(gateway.create_table())


INDEXES = [
    Entry("BLOOM", {"hoodie.index.type": "BLOOM"}),
    Entry("SIMPLE", {"hoodie.index.type": "SIMPLE"}),
    Entry("GLOBAL_BLOOM", {"hoodie.index.type": "GLOBAL_BLOOM"}, is_global=True),
    Entry("GLOBAL_SIMPLE", {"hoodie.index.type": "GLOBAL_SIMPLE"}, is_global=True),
    Entry("BUCKET", {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}),
    Entry("HBASE", {"hoodie.hbase.index.update.partition.path": "true"}, is_global=True, service=hbase_table),
    Entry(
        "RECORD_INDEX",
        {"hoodie.index.type": "RECORD_INDEX", "hoodie.record.index.update.partition.path": "true"},
        is_global=True,
    ),
    Entry("own", {"hoodie.index.class": "support.own_indexes:exact"}),
    Entry("own, global", {"hoodie.index.class": "support.own_indexes:exact_global"}, is_global=True),
]
