"""Which column orders a table that a job of Hudi's makes without naming one."""

from uuid import uuid4

import pyarrow as pa
import pytest

import hoodie

JOB = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}


@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize(
    ("options", "ordering", "value"),
    [
        ({}, ("ts",), "newest"),
        ({"hoodie.datasource.write.precombine.field": "seq"}, ("seq",), "last"),
        ({"hoodie.datasource.write.precombine.field": ""}, (), "last"),
    ],
)
def test_a_column_ts_orders_the_table_unless_the_job_says_otherwise(
    mode: str, options: dict[str, str], ordering: tuple[str, ...], value: str
) -> None:
    path = f"memory://{uuid4().hex}/t"
    rows = pa.table({"id": ["a", "a"], "ts": [2, 1], "seq": [1, 2], "v": ["newest", "last"]})
    hoodie.hudi.write(rows, path, {**JOB, **options}, mode=mode)
    table = hoodie.open_table(path)
    assert table.info().ordering == ordering
    assert table.snapshot().to_arrow().column("v").to_pylist() == [value]


def test_a_table_without_a_column_ts_has_no_ordering_by_default() -> None:
    path = f"memory://{uuid4().hex}/t"
    hoodie.hudi.write(pa.table({"id": ["a"], "TS": [1]}), path, JOB)
    assert hoodie.open_table(path).info().ordering == ()
