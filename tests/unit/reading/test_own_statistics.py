"""Statistics that our writes made never leave out a file with a row that passes, whatever the values: each file holds
one or two edge values, and each is asked for."""

import datetime as dt
import itertools
import math
import warnings
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hoodie.config.metadata import MetadataOptions
from hoodie.config.read import ReadSettings
from hoodie.errors import MetadataTableIgnored
from hoodie.reading.filters.selection import kept_rows, read_filter
from hoodie.reading.snapshot import read_scan, read_table
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.nightly import by_day
from support.scans import plan_scan
from support.trips import table_options

OFF = ReadSettings(metadata=MetadataOptions(enable=False))
LONG = "x" * 5000  # longer than writers of Parquet keep in statistics
NAN, INF = math.nan, math.inf

#: The values of each file.
EDGES: Mapping[str, tuple[pa.DataType, Sequence[Sequence[Any]]]] = {
    "double": (pa.float64(), [[NAN], [NAN, 1.5], [-0.0], [0.0, 2.0], [INF], [-INF, None], [None], [5e-324], [-1.5]]),
    "float": (pa.float32(), [[NAN, None], [NAN, 1.5], [-0.0], [0.0], [0.1], [-INF], [None], [1e-45], [3e38, INF]]),
    "long": (pa.int64(), [[0], [2**53, 2**53 + 1], [-(2**63)], [2**63 - 1, None], [None], [-1]]),
    "int": (pa.int32(), [[0, 7], [-(2**31)], [2**31 - 1], [None]]),
    "text": (
        pa.string(),
        [[""], [LONG + "a"], [LONG + "b", "a"], ["\ud7ff", "\ue000"], ["\uffff"], ["\U0001f600", "a"], [None], ["é"]],
    ),
    "truth": (pa.bool_(), [[True], [False, None], [None], [True, False]]),
    "date": (
        pa.date32(),
        [[dt.date(1, 1, 1), dt.date(1970, 1, 1)], [dt.date(1969, 12, 31)], [dt.date(9999, 12, 31)], [None]],
    ),
    "decimal": (
        pa.decimal128(10, 2),
        [[Decimal("0.00")], [Decimal("-99999999.99")], [Decimal("99999999.99"), None], [None], [Decimal("0.01")]],
    ),
    "wide decimal": (
        pa.decimal128(38, 10),
        [[Decimal("0.0000000001")], [Decimal(-(10**20))], [None], [Decimal(10**27)]],
    ),
    "moment": (
        pa.timestamp("us", "UTC"),
        [
            [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC)],
            [dt.datetime(1970, 1, 1, tzinfo=dt.UTC)],
            [dt.datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=dt.UTC), None],
            [None],
            [dt.datetime(9999, 12, 31, tzinfo=dt.UTC)],
        ],
    ),
    "binary": (pa.binary(), [[b""], [b"\x00"], [b"\xff", b"a"], [None]]),
}
#: Columns that reads leave nothing out by.
NOT_USED = {"binary", "wide decimal"}
COMPARED = ("=", "!=", "<", "<=", ">", ">=")


def written(kind: str, column: pa.DataType, files: Sequence[Sequence[Any]]) -> ArrowTable:
    """A file group for each of the lists; in Merge-on-Read the last value of each comes by a log, after another."""
    table = ArrowTable.create(
        MemoryStorage(),
        {
            **table_options("edges", "id", partition="p", ordering="ts"),
            "hoodie.datasource.write.table.type": kind,
            "hoodie.metadata.index.column.stats.enable": "true",
            "hoodie.metadata.index.column.stats.column.list": "v",
            "hoodie.metadata.index.column.stats.file.group.count": "1",
            "hoodie.index.type": "SIMPLE",
        },
    )
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", column)])
    bases: list[dict[str, Any]] = []
    logs: list[dict[str, Any]] = []
    for number, values in enumerate(files):
        bases += [{"id": f"{number}-{at}", "p": str(number), "ts": 1, "v": value} for at, value in enumerate(values)]
        if kind == "MERGE_ON_READ":
            logs.append({**bases[-1], "ts": 2})
            bases[-1]["v"] = files[(number + 1) % len(files)][0]
    table.bulk_insert(pa.Table.from_pylist(bases, schema=schema))
    if logs:
        table.upsert(pa.Table.from_pylist(logs, schema=schema))
    return table


@pytest.mark.parametrize(
    ("name", "kind"),
    by_day(
        itertools.product(EDGES, ("COPY_ON_WRITE", "MERGE_ON_READ")),
        lambda case: (
            case[0] not in {"int", "truth", "date"}
            and (case[1] == "COPY_ON_WRITE") == (case[0] not in {*NOT_USED, "long", "decimal"})
        ),
    ),
)
@pytest.mark.filterwarnings("ignore::hoodie.errors.HudiCannotRead")
def test_no_row_is_lost_by_our_own_statistics(name: str, kind: str) -> None:
    column, files = EDGES[name]
    state = written(kind, column, files).state()
    rows = read_table(state, settings=OFF).sort_by("_hoodie_record_key")
    values = {repr(value): value for part in files for value in part if value is not None and value == value}
    ruled_out = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error", MetadataTableIgnored)
        # Each value with some of the operators, in turn: the more there are of either, the more reads.
        filters: list[Any] = [
            [("v", op, value)] for at, value in enumerate(values.values()) for op in COMPARED[at % 2 :: 2]
        ]
        filters += [[("v", "in", [value])] for value in values.values()]
        filters += ["v is null", "v is not null"]
        for filter_ in filters:
            rule = read_filter(filter_, rows.schema)
            passing = kept_rows(rows, rule.expression).column("_hoodie_record_key").to_pylist()
            scan = plan_scan(state, filters=filter_)
            read = read_scan(scan).sort_by("_hoodie_record_key")
            assert read.column("_hoodie_record_key").to_pylist() == passing, filter_
            ruled_out += len(scan.ruled_out)
    assert (ruled_out > 0) == (name not in NOT_USED), ruled_out
