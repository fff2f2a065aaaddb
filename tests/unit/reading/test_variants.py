"""Columns of Hudi's type VARIANT: read as their two binaries, of base files and of logs, and not written."""

from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import UnsupportedTable
from hoodie.formats.avro import schema as avro
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.trips import TRIPS

BINARIES = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])


def batch(*values: bytes, ts: int) -> pa.Table:
    count = len(values)
    rows = {"id": [f"k{number}" for number in range(count)], "city": ["oslo"] * count, "ts": [ts] * count}
    variants = pa.array([{"metadata": b"\x01\x00\x00", "value": value} for value in values], BINARIES)
    return pa.table(rows).append_column("v", variants)


def marked(node: Any) -> Any:
    """An Avro schema whose records of the two binaries are variants, as Hudi 1.2 has them."""
    if isinstance(node, list):
        return [marked(inner) for inner in node]
    if not isinstance(node, dict):
        return node
    made = {name: marked(inner) for name, inner in node.items()}
    names = [field["name"] for field in made["fields"]] if made.get("type") == "record" else []
    return {**made, "logicalType": "variant"} if names == ["metadata", "value"] else made


@KINDS
def test_a_variant_has_its_two_binaries_and_is_not_written(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = avro._record

    def record(fields: list[pa.Field], name: str, namespace: str, path: str) -> dict[str, Any]:
        return dict(marked(plain(fields, name, namespace, path)))

    options = {**TRIPS, "hoodie.datasource.write.table.type": kind, "hoodie.write.table.version": "9"}
    monkeypatch.setattr("hoodie.writing.write.refuse_column_types", lambda state: None)  # as Hudi does
    monkeypatch.setattr(avro, "_record", record)
    table = ArrowTable.create(MemoryStorage(), options)
    table.upsert(batch(b"\x0c\x01", b"\x0c\x02", ts=1))
    table.upsert(batch(b"\x0c\x07", ts=2))
    monkeypatch.undo()
    files = table.storage.snapshot()  # type: ignore[attr-defined]
    written = [name for name in files if ".log." in name or name.endswith((".commit", ".deltacommit"))]
    assert len(written) == (3 if kind == "MERGE_ON_READ" else 2)
    assert all(b"variant" in files[name] for name in written)
    rows = table.snapshot()
    assert rows.schema.field("v").type.equals(BINARIES)
    assert sorted(row["value"] for row in rows["v"].to_pylist()) == [b"\x0c\x02", b"\x0c\x07"]
    assert {row["metadata"] for row in rows["v"].to_pylist()} == {b"\x01\x00\x00"}
    with pytest.raises(UnsupportedTable, match="VARIANT, which are read here and not written"):
        table.upsert(batch(b"\x0c\x09", ts=3))
    assert table.storage.snapshot() == files  # type: ignore[attr-defined]
