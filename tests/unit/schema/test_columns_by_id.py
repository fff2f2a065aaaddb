"""What ALTER TABLE does to columns with ids, beside the versions that the real Hudi made of the same statements."""

import itertools
import json
import re
import zipfile
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import SchemaMismatch
from hoodie.formats.avro.schema import from_avro, to_avro
from hoodie.schema.by_id import (
    Add,
    Change,
    Comment,
    Drop,
    Move,
    Position,
    Rename,
    Retype,
    TakeNulls,
    changed,
    columns_of_version,
    first_version,
    needs_ids,
)
from hoodie.schema.schema import COMMENT, without_meta_fields
from support.altered_tables import FOLDER

_TYPES = {
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "INT": pa.int32(),
    "DECIMAL(12,4)": pa.decimal128(12, 4),
}


def _change(text: str) -> Change | None:
    """The change that a statement of the fixtures asks for."""
    words = text.split()[3:]
    match words:
        case ["RENAME", "COLUMN", path, "TO", name]:
            return Rename(tuple(path.split(".")), name)
        case ["ALTER", "COLUMN", path, "TYPE", kind]:
            return Retype(tuple(path.split(".")), _TYPES[kind])
        case ["ALTER", "COLUMN", path, "AFTER", other]:
            return Move(tuple(path.split(".")), Position(after=other))
        case ["DROP", "COLUMN", path]:
            return Drop(tuple(path.split(".")))
        case ["ADD", "COLUMNS", *parts]:
            path, kind, *after = " ".join(parts).strip("()").split()
            position = Position(after=after[1]) if after else None
            return Add(tuple(path.split(".")), pa.field("", _TYPES[kind]), position)
    return None


@pytest.mark.parametrize("name", ["cow_types", "cow_columns", "mor_columns"])
def test_versions_are_those_of_the_real_hudi(name: str) -> None:
    steps = json.loads((FOLDER / f"{name}.json").read_text())["steps"]
    alters = [change for step in steps if step["sql"].startswith("ALTER") and (change := _change(step["sql"]))]
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as archive:
        files = sorted(file for file in archive.namelist() if file.endswith(".schemacommit"))
        history = json.loads(archive.read(files[-1]))["schemas"]
        commits = {
            match[1]: json.loads(archive.read(file))["extraMetadata"]
            for file in archive.namelist()
            if (match := re.search(r"/(\d+)\.(?:delta)?commit$", file))
        }
    versions: dict[int, Any] = {}
    for version in history:  # a write makes a version of the same columns
        versions.setdefault(version["version_id"], version)
    real = [versions[number] for number in sorted(versions)]
    first = min(commits)
    columns = without_meta_fields(from_avro(commits[first]["schema"], first))
    version = first_version(columns)
    assert version == real[0]
    for change, after in zip(alters, _different(real), strict=True):
        before, version = version, changed(version, change, ("id", "ts", "part"))
        assert {**version, "version_id": 0} == {**after, "version_id": 0}
        columns = columns_of_version(version, before, columns)
        said = commits[str(after["version_id"])]["schema"]
        assert columns == without_meta_fields(from_avro(said, "")), change


def _different(versions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those whose columns are others than of the one before."""
    return [after for before, after in itertools.pairwise(versions) if before["fields"] != after["fields"]]


COLUMNS = pa.schema(
    [
        pa.field("id", pa.string(), metadata={COMMENT: b"the key"}),
        pa.field("a", pa.int32(), nullable=False),
        pa.field("s", pa.struct([pa.field("x", pa.int32())])),
    ]
)


def _after(*changes: Change) -> pa.Schema:
    version, columns = first_version(COLUMNS), COLUMNS
    for change in changes:
        before, version = version, changed(version, change, ("id",))
        columns = columns_of_version(version, before, columns)
    return columns


def test_comments_are_of_the_column_and_go_with_it() -> None:
    columns = _after(Comment(("a",), "how many"), Comment(("id",), ""), Rename(("a",), "b"))
    assert columns.field("b").metadata == {COMMENT: b"how many"}
    assert columns.field("id").metadata is None
    again = from_avro(to_avro(columns, "t"), "")
    assert again.equals(columns, check_metadata=True)


def test_a_column_that_takes_nulls_does_so_for_good() -> None:
    assert _after(TakeNulls(("a",))).field("a").nullable


def test_a_column_that_has_the_type_already_stays_as_it_is() -> None:
    assert _after(Retype(("id",), pa.string()), Retype(("a",), pa.int32())).equals(COLUMNS, check_metadata=True)


def test_columns_are_added_before_those_of_the_partitions() -> None:
    version = changed(first_version(COLUMNS), Add(("b",), pa.field("", pa.int32())), (), last=("a", "s"))
    assert [column["name"] for column in version["fields"][5:]] == ["id", "b", "a", "s"]


def test_the_first_of_a_struct_may_be_new() -> None:
    columns = _after(Add(("s", "w"), pa.field("", pa.string()), Position(first=True)))
    assert [field.name for field in columns.field("s").type] == ["w", "x"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (Drop(("id",)), "record key"),
        (Rename(("id",), "key"), "record key"),
        (Drop(("nothing",)), "no column nothing: there are id, a, s"),
        (Drop(("_hoodie_commit_time",)), "no column"),
        (Drop(("s", "x")), "only field"),
        (Rename(("a",), "ID"), "has a column ID already"),
        (Add(("s", "x"), pa.field("", pa.int32())), "s.x already"),
        (Add(("a", "x"), pa.field("", pa.int32())), "a is no struct"),
        (Add(("b",), pa.field("", pa.int32()), Position(first=True)), "cannot be the first"),
        (Add(("b",), pa.field("", pa.timestamp("us"))), "timestamp_ntz"),
        (Move(("a",), Position(after="nothing")), "no column nothing"),
        (Retype(("a",), pa.bool_()), "is int and cannot become boolean"),
        (Retype(("s",), pa.string()), "fields"),
        (Retype(("id",), pa.binary()), "record key"),
    ],
)
def test_what_cannot_be_is_refused(change: Change, problem: str) -> None:
    with pytest.raises(SchemaMismatch, match=problem):
        changed(first_version(COLUMNS), change, ("id",))


def test_only_some_changes_ask_for_a_reader_of_ids() -> None:
    asks = [Drop(("a",)), Rename(("a",), "b"), Retype(("a",), pa.string()), Retype(("s", "x"), pa.int64())]
    asks += [Move(("a",), Position(after="s")), Add(("s", "y"), pa.field("", pa.int32()))]
    assert all(needs_ids(change, COLUMNS) for change in asks)
    plain = [Comment(("a",), "x"), TakeNulls(("a",)), Retype(("a",), pa.int64()), Add(("b",), pa.field("", pa.int32()))]
    assert not any(needs_ids(change, COLUMNS) for change in plain)
