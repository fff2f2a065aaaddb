"""The keys of rows that a merge gives."""

import pickle

import pyarrow as pa
import pytest

from hoodie.conditional.keys import IN_DOUBT, OLD_KEY, OLD_PATH, CertainKeys, MergedKeys
from hoodie.errors import InvalidInput
from hoodie.keygen.arrow_keys import RowKeys
from hoodie.keygen.keygen import KeyGenerator, Kind, PartitionField
from hoodie.merge.rows import ROW_ACTION, RowAction

KEYGEN = KeyGenerator(Kind.SIMPLE, ("id",), (PartitionField("p"),))


def keys(*rows, sets_key=False, sets_path=False, is_global=False):
    """rows: id, p, what the row is for, and the key and path of the row of the table."""
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), (ROW_ACTION, pa.int8()), (OLD_KEY, pa.string()),
                        (OLD_PATH, pa.string())])  # fmt: skip
    table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
    make_keys = MergedKeys(("id", "p", ROW_ACTION), KEYGEN, sets_key, sets_path, is_global)
    keyed = pickle.loads(pickle.dumps(make_keys))(table)
    assert keyed.schema.names == ["id", "p", ROW_ACTION, "_hoodie_record_key", "_hoodie_partition_path"]
    return list(zip(*(column.to_pylist() for column in keyed.columns[-2:]), strict=True))


WRITE, DELETE = int(RowAction.WRITE), int(RowAction.DELETE)


def test_new_rows_have_the_key_of_their_values_and_others_that_of_the_table():
    rows = ("a", "x", WRITE, None, None), ("b", "y", WRITE, "b", "old"), (None, None, DELETE, "c", "z")
    assert keys(*rows) == [("a", "x"), ("b", "old"), ("c", "z")]
    assert keys() == []


def test_a_row_of_the_table_keeps_its_key():
    row = ("b", "y", WRITE, "a", "y")
    assert keys(row) == [("a", "y")]  # the clauses do not set it: both columns are the table's
    for changed in (row, (None, "y", WRITE, "a", "y")):
        with pytest.raises(InvalidInput, match="another record key"):
            keys(changed, sets_key=True)
    unchanged = ("a", "y", WRITE, "a", "y"), (None, None, DELETE, "c", "z"), ("d", "y", WRITE, None, None)
    assert keys(*unchanged, sets_key=True, sets_path=True) == [("a", "y"), ("c", "z"), ("d", "y")]


def test_a_row_changes_its_partition_with_a_global_index_only():
    rows = ("a", "new", WRITE, "a", "old"), ("b", "new", DELETE, "b", "old")
    assert keys(*rows, sets_path=True, is_global=True) == [("a", "new"), ("b", "old")]
    with pytest.raises(InvalidInput, match="another partition"):
        keys(*rows, sets_path=True)


@pytest.mark.parametrize("columns", [("id", "p", ROW_ACTION), ()])
def test_a_row_in_doubt_has_no_key_and_the_others_have_theirs(columns):
    actions = pa.array([WRITE, IN_DOUBT, DELETE], pa.int8())
    rows = pa.table({"id": ["a", "b", None], "p": ["x", "y", "z"], ROW_ACTION: actions})
    keyed = pickle.loads(pickle.dumps(CertainKeys(RowKeys(columns, KEYGEN))))(rows)
    assert keyed.schema.names == [*columns, "_hoodie_record_key", "_hoodie_partition_path"]
    assert keyed["_hoodie_record_key"].to_pylist() == ["a", None, None]
    assert keyed["_hoodie_partition_path"].to_pylist() == ["x", "y", "z"]
    assert keyed.schema.field("_hoodie_record_key").type == pa.string()
