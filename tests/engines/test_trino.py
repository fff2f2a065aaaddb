"""Trino reads synced tables by name. It merges no logs: all entries of Merge-on-Read have the rows of base files."""

from pathlib import Path

import pyarrow as pa
import pytest

from support.engine_cases import CASES
from support.query_cases import DATABASE, differing, synced
from support.query_servers import QueryFailed, QueryServer


@pytest.mark.parametrize("name", CASES)
def test_trino_reads_the_newest_base_files_by_every_entry(
    trino: QueryServer, metastore: str, name: str, tmp_path: Path
) -> None:
    table = synced(CASES[name], tmp_path, metastore)

    def newest(entry: str) -> pa.Table:
        return table.read_optimized if table.case.merge_on_read else table.snapshot

    assert differing(table, lambda sql: trino.query(sql, "hudi", DATABASE), newest) == []


def test_the_hive_connector_sends_on_to_hudis_and_refuses_by_itself(
    trino: QueryServer, metastore: str, tmp_path: Path
) -> None:
    table = synced(CASES["cow_plain"], tmp_path, metastore, table="sent_on")
    count = "select count(*) from sent_on where city = 'rome'"
    rome = sum(city == "rome" for city in table.snapshot["city"].to_pylist())
    assert trino.query(count, "hive", DATABASE) == [(rome,)]
    with pytest.raises(QueryFailed, match="Cannot query Hudi table"):
        trino.query(count, "hiveonly", DATABASE)
