"""Presto reads synced tables by name: by its `hive` connector with columns by name; what it does otherwise."""

from contextlib import suppress
from pathlib import Path

import pyarrow.compute as pc
import pytest

from support.engine_cases import CASES
from support.query_cases import DATABASE, differing, synced
from support.query_servers import QueryFailed, QueryServer

#: Dates and instants in time: see the tests of them.
_TIMES = ("d", "at")
#: Its payload class came with Hudi 0.15, and Presto has Hudi 0.14 inside.
_UNKNOWN_PAYLOAD = "mor_first_value"


@pytest.mark.parametrize("name", [name for name in CASES if name != _UNKNOWN_PAYLOAD])
def test_presto_merges_logs_by_its_hive_connector(
    presto: QueryServer, metastore: str, name: str, tmp_path: Path
) -> None:
    table = synced(CASES[name], tmp_path, metastore)
    entries = table.entries()
    assert differing(table, lambda sql: presto.query(sql, "hive", DATABASE), lambda entry: entries[entry], _TIMES) == []


def test_logs_of_a_payload_class_that_presto_lacks_fail(presto: QueryServer, metastore: str, tmp_path: Path) -> None:
    table = synced(CASES[_UNKNOWN_PAYLOAD], tmp_path, metastore)
    keys = sorted(table.read_optimized["id"].to_pylist())
    assert sorted(key for (key,) in presto.query(f"select id from {table.entry}_ro", "hive", DATABASE)) == keys
    with pytest.raises(QueryFailed, match="FirstValueAvroPayload"):
        presto.query(f"select id from {table.entry}_rt", "hive", DATABASE)


def test_dates_are_right_in_base_files_and_fail_where_logs_are_merged(
    presto: QueryServer, metastore: str, tmp_path: Path
) -> None:
    """Hudi 0.15's own table of the same writes fails alike."""
    table = synced(CASES["mor_typed"], tmp_path, metastore, table="dates", support_timestamp="true")
    dates = sorted(str(day) for day in table.read_optimized["d"].to_pylist())
    assert sorted(str(day) for (day,) in presto.query("select d from dates_ro", "hive", DATABASE)) == dates
    for column in _TIMES:
        with pytest.raises(QueryFailed, match=r"NullPointerException|Internal error"):
            presto.query(f"select {column} from dates_rt", "hive", DATABASE)


def test_an_instant_that_is_a_number_is_milliseconds_in_base_files_and_microseconds_in_logs(
    presto: QueryServer, metastore: str, tmp_path: Path
) -> None:
    """Hudi 0.15's own table of the same writes gives the same."""
    synced(CASES["mor_typed"], tmp_path, metastore, table="times")
    sql = "select id, at from {} where id in ('a', 'b')"
    assert presto.query(sql.format("times_ro"), "hive", DATABASE) == [("a", 1709209800123), ("b", None)]
    assert presto.query(sql.format("times_rt"), "hive", DATABASE) == [("a", -1), ("b", 1709209800123456)]


def test_columns_by_position_compare_another_column(presto: QueryServer, metastore: str, tmp_path: Path) -> None:
    table = synced(CASES["cow_plain"], tmp_path, metastore, table="positions")
    sql = "select count(*) from positions where day = 20"
    right = sum(day == 20 for day in table.snapshot["day"].to_pylist())
    assert presto.query(sql, "hive", DATABASE) == [(right,)]
    with suppress(QueryFailed):
        assert presto.query(sql, "positions", DATABASE) != [(right,)]


def test_the_hudi_connector_finds_nothing_by_one_of_two_partition_columns(
    presto: QueryServer, metastore: str, tmp_path: Path
) -> None:
    table = synced(CASES["cow_complex_keys"], tmp_path, metastore, table="two")
    rome = table.snapshot.filter(pc.equal(table.snapshot["city"], "rome")).num_rows
    assert rome
    sql = "select count(*) from two where city = 'rome'"
    assert presto.query(sql, "hive", DATABASE) == [(rome,)]
    assert presto.query(sql, "hudi", DATABASE) == [(0,)]
