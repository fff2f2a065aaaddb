"""A stand-in for HBase with a table `t`."""

from collections.abc import Iterator

import pytest

from hoodie.testing.hbase import HBaseServer


@pytest.fixture
def server() -> Iterator[HBaseServer]:
    with HBaseServer() as made:
        made.create_table("t")
        yield made
