"""Tables whose commits, file labels and footers say what they like about the unit of timestamps."""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.storage.protocol import Storage
from hoodie.testing.tables import ArrowTable
from support.trips import table_options

FIXTURES = Path(__file__).parents[1] / "fixtures" / "timestamps"

#: 2019-12-31 23:59:59.999 in milliseconds.
NUMBER = 1577836799999
OPTIONS = {
    **table_options("times", "id", partition="part"),
    "hoodie.table.precombine.field": "seq",
    "hoodie.parquet.small.file.limit": "0",
}
#: What the Avro schema of a column says -> its type there.
AVRO: dict[str, Any] = {
    "timestamp-millis": {"type": "long", "logicalType": "timestamp-millis"},
    "timestamp-micros": {"type": "long", "logicalType": "timestamp-micros"},
    "local-timestamp-millis": {"type": "long", "logicalType": "local-timestamp-millis"},
    "local-timestamp-micros": {"type": "long", "logicalType": "local-timestamp-micros"},
    "long": "long",
    "string": "string",
}
#: How a Parquet file labels a column -> the Arrow type that gives this label.
LABELS = {
    "millis": pa.timestamp("ms", "UTC"),
    "micros": pa.timestamp("us", "UTC"),
    "local millis": pa.timestamp("ms"),
    "local micros": pa.timestamp("us"),
    "none": pa.int64(),
}


@dataclass(frozen=True)
class Witnesses:
    """What one file says of the column `at`.

    label   one of LABELS
    footer  one of AVRO, or a text that is put there as it is; "": no Avro schema
    """

    label: str
    footer: str = ""


def unpacked(name: str, into: Path) -> Path:
    """A table of tests/fixtures/timestamps below a folder; the folder that holds its .hoodie."""
    with zipfile.ZipFile(FIXTURES / f"{name}.zip") as archive:
        archive.extractall(into)
    return min((path.parent for path in into.rglob(".hoodie")), key=lambda path: len(path.parts))


def make_table(storage: Storage, commit: str, files: Mapping[str, Witnesses], numbers: list[int | None]) -> None:
    """A Copy-on-Write table of one commit, which says `commit` of the column; a partition for each file.

    numbers  that the files hold, whatever is said of them
    """
    table = ArrowTable.create(storage, OPTIONS)
    ids = [f"{part}-{row}" for part in files for row in range(len(numbers))]
    parts = [part for part in files for _ in numbers]
    times = pa.array(numbers * len(files), pa.int64())
    table.insert(pa.table({"id": ids, "part": parts, "seq": [1] * len(ids), "at": times}))
    declare(storage, {"at": commit})
    for path in data_files(storage):
        relabel(storage, path, files[path.partition("/")[0]])


def old_rows(ids: list[str], seq: int, number: int = NUMBER) -> pa.Table:
    """Rows as Hudi 0.15 has them: milliseconds as microseconds, local times as plain longs."""
    numbers = pa.array([number] * len(ids), pa.int64())
    return pa.table(
        {
            "id": ids,
            "part": [each[0] for each in ids],
            "seq": [seq] * len(ids),
            "at": numbers.view(pa.timestamp("us", "UTC")),
            "here": numbers,
            "exact": pa.array([number * 1000 + 1] * len(ids), pa.int64()),
        }
    )


NEW_TYPES = {"at": "timestamp-millis", "here": "local-timestamp-millis", "exact": "local-timestamp-micros"}


def new_rows(ids: list[str], seq: int, micros: int) -> pa.Table:
    """Rows as Spark gives them: microseconds."""
    numbers = pa.array([micros] * len(ids), pa.int64())
    local = numbers.view(pa.timestamp("us"))
    rows = old_rows(ids, seq).set_column(3, "at", numbers.view(pa.timestamp("us", "UTC")))
    return rows.set_column(4, "here", local).set_column(5, "exact", local)


def data_files(storage: Storage) -> list[str]:
    return [path for path in files_of(storage) if path.endswith(".parquet") and not path.startswith(".hoodie")]


def files_of(storage: Storage) -> list[str]:
    """All files, the oldest instant's first: names end in the instant."""
    found = [f"{folder}/{entry.name}".lstrip("/") for folder, part in storage.list_tree("").items() for entry in part]
    return sorted(found, key=lambda path: (path.rpartition("_")[2], path))


def declare(storage: Storage, columns: Mapping[str, str]) -> None:
    """The newest commit says so of some columns."""
    newest = max(path for path in files_of(storage) if path.endswith(("commit", "deltacommit")) and "/2" in path)
    commit = json.loads(storage.read(newest))
    commit["extraMetadata"]["schema"] = _with(commit["extraMetadata"]["schema"], columns)
    storage.write(newest, json.dumps(commit).encode())


def declared(storage: Storage) -> dict[str, Any]:
    """What the newest commit says of each column."""
    newest = max(path for path in files_of(storage) if path.endswith(("commit", "deltacommit")) and "/2" in path)
    schema = json.loads(json.loads(storage.read(newest))["extraMetadata"]["schema"])
    return {field["name"]: _plain(field["type"]) for field in schema["fields"]}


def _plain(kind: Any) -> Any:
    if isinstance(kind, list):
        (kind,) = (branch for branch in kind if branch != "null")
    return kind.get("logicalType", kind["type"]) if isinstance(kind, dict) else kind


def _with(schema: str, columns: Mapping[str, str]) -> str:
    parsed = json.loads(schema)
    for field in parsed["fields"]:
        if field["name"] in columns:
            field["type"] = ["null", AVRO[columns[field["name"]]]]
    return json.dumps(parsed)


def relabel(storage: Storage, path: str, said: Witnesses, column: str = "at") -> None:
    """The file with the same numbers under another label, and another word about them in its footer."""
    file = pq.ParquetFile(io.BytesIO(storage.read(path)))
    rows = file.read()
    at = rows.schema.get_field_index(column)
    rows = rows.set_column(at, column, _numbers(rows.column(column)).view(LABELS[said.label]))
    footer = {key.decode(): value.decode() for key, value in file.metadata.metadata.items()}
    schema = footer.pop("parquet.avro.schema")
    if said.footer:
        footer["parquet.avro.schema"] = _with(schema, {column: said.footer}) if said.footer in AVRO else said.footer
    _store(storage, path, rows, footer)


def as_text(storage: Storage, path: str, column: str) -> None:
    """The file with the values of a column as text."""
    file = pq.ParquetFile(io.BytesIO(storage.read(path)))
    rows = file.read()
    rows = rows.set_column(rows.schema.get_field_index(column), column, rows.column(column).cast(pa.string()))
    footer = {key.decode(): value.decode() for key, value in file.metadata.metadata.items()}
    schema = footer.pop("parquet.avro.schema")
    _store(storage, path, rows, {**footer, "parquet.avro.schema": _with(schema, {column: "string"})})


def _store(storage: Storage, path: str, rows: pa.Table, footer: Mapping[str, str]) -> None:
    out = io.BytesIO()
    with pq.ParquetWriter(out, rows.schema, store_schema=False) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata(dict(footer))
    storage.write(path, out.getvalue())


def _numbers(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays([chunk.view(pa.int64()) for chunk in column.chunks])


def in_micros(rows: pa.Table, column: str) -> list[int | None]:
    """The times of a column as microseconds."""
    kind = rows.schema.field(column).type
    return rows.column(column).cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).to_pylist()


def label_of(storage: Storage, path: str, column: str) -> str:
    kind = pq.ParquetFile(io.BytesIO(storage.read(path))).schema_arrow.field(column).type
    return next(word for word, known in LABELS.items() if known == kind)
