"""HBase refuses at every call there is: whatever was going on, no key is ever twice in the table afterwards."""

import copy
import warnings
from itertools import count

import pyarrow as pa
import pytest

from hoodie.errors import CorruptIndex, HoodieError, IndexOutOfDate, ServiceFailed
from hoodie.lookup.index_follow import rebuild_index
from hoodie.recovery.restore import restore
from hoodie.recovery.rollback import rollback
from hoodie.recovery.savepoint import make_savepoint
from hoodie.table.settings import Settings
from hoodie.testing.hbase import Faults, HBaseServer
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.hbase_parts import MOVES, TYPES, content, rows
from support.trips import TRIPS

pytestmark = pytest.mark.nightly


FIRST = (("a", "x", 1), ("b", "x", 1), ("c", "y", 1), ("d", "y", 1))


def delete(table):
    return table.delete(pa.table({"id": ["a", "d"], "city": ["x", "y"]})).instant


def moves(table):
    return table.upsert(rows(("a", "y", 2), ("b", "x", 2), ("n", "z", 2), ts=2)).instant


def nothing(table):
    """Before the act: the first rows are all there is."""


def doubles(table):
    """Two keys get rows in a second file group, as an earlier release left them."""
    stored = table.server.store.tables[table.index.encode()].rows
    for key in (b"a", b"b"):
        del stored[key]
    table.upsert(rows(("a", "y", 5), ("b", "z", 5), ts=5), options={"hoodie.parquet.small.file.limit": "0"})


def overwrites(table):
    table.insert_overwrite(rows(("a", "x", 3), ts=3))


ACTS = {
    "upsert": (nothing, moves),
    "insert": (nothing, lambda table: table.insert(rows(("n", "x", 2), ("m", "z", 2), ts=2))),
    "delete": (nothing, delete),
    "insert_overwrite": (nothing, overwrites),
    "rollback of moves": (moves, lambda table: rollback(table.storage, Settings.read(table.options))),
    "rollback of a delete": (delete, lambda table: rollback(table.storage, Settings.read(table.options))),
    "rollback of an overwrite": (overwrites, lambda table: rollback(table.storage, Settings.read(table.options))),
    "restore": (
        lambda table: (moves(table), delete(table)),
        lambda table: restore(table.storage, Settings.read(table.options), table.kept),
    ),
    "rebuild": (moves, lambda table: rebuild_index(table.storage, Settings.read(table.options))),
    "mend": (doubles, lambda table: rebuild_index(table.storage, Settings.read(table.options), mend_doubled=True)),
}
REFUSALS = {
    "one call fails": Faults(errors=1),
    "one answer is lost": Faults(hang_ups=1),
    "it is down from then on": Faults(errors=10**9),
}


@pytest.fixture(scope="module")
def server():
    with HBaseServer() as made:
        yield made


CASES = [
    (table_type, act, refusal)
    for table_type in TYPES
    for act in ACTS
    for refusal in REFUSALS
    # These make many calls, and care little for the table's type.
    if act not in ("rebuild", "mend") or (table_type == "COPY_ON_WRITE") == (refusal == "one call fails")
]


@pytest.mark.parametrize(("table_type", "act", "refusal"), CASES)
def test_no_key_is_doubled_whichever_call_hbase_refuses(server, table_type, act, refusal):
    before, acting = ACTS[act]
    table = made(server, table_type)
    before(table)
    storage, stored = table.storage, server.store.tables[table.index.encode()]
    entries = stored.rows
    failed = 0
    for call in count():
        table.storage, stored.rows = storage.copy(), copy.deepcopy(entries)
        fault = copy.copy(REFUSALS[refusal])
        fault.after = call
        server.faults = fault
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                acting(table)
            except HoodieError:
                failed += 1
        planned = REFUSALS[refusal]
        reached = (fault.errors, fault.hang_ups) != (planned.errors, planned.hang_ups)
        server.faults = Faults()
        assert {warning.category for warning in said} <= {IndexOutOfDate, ServiceFailed}
        require_no_doubled_keys(table, doubled_before=act == "mend", call=call)
        if not reached:
            break
    assert failed
    assert call > 2


def require_no_doubled_keys(table, doubled_before, call):
    there = content(table)
    if doubled_before:  # until it is mended: by calling it again
        rebuild_index(table.storage, Settings.read(table.options), mend_doubled=True)
        there = content(table)
    keys = [key for key, _, _ in there]
    assert len(keys) == len(set(keys)), call
    wanted = sorted({*keys, *"abcdmn"})
    again = rows(*((key, "x", 9) for key in wanted), ts=9)
    try:
        result = table.upsert(again)
    except CorruptIndex:
        rebuild_index(table.storage, Settings.read(table.options))
        result = table.upsert(again)
    assert content(table) == [(key, "x", 9) for key in wanted], call
    assert result.index.checked == len(wanted)
    if call % 7 == 0:  # what the index says is what the table has
        done = rebuild_index(table.storage, Settings.read(table.options))
        assert (done.doubled, done.entries) == ({}, len(wanted)), call


def made(server, table_type):
    name = server.create_table()
    given = {
        **TRIPS,
        "hoodie.datasource.write.table.type": table_type,
        **server.options(name),
        **MOVES,
        "hoodie.index.hbase.thrift.max.retries": "0",
        "hoodie.spark.driver.threads": "1",
    }
    table = ArrowTable.create(MemoryStorage(), given)
    table.server, table.index = server, name
    table.upsert(rows(*FIRST))
    table.kept = make_savepoint(table.storage, Settings.read(table.options), None).instant
    return table
