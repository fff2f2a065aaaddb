"""How many requests whole operations make of an S3 server, by kind, and how many of them one after the other.

The table of docs/storage.md, which this holds. A table of 12 commits in one partition, written by this process.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hoodie
from bench.s3_server import BUCKET, RecordingServer, Requests
from bench.store_requests import KINDS, WITHOUT_SERVICES, cold, day_partitions, five_rows, made, plan
from hoodie.storage import FsspecStorage
from hoodie.testing.tables import ArrowTable
from support.nightly import nightly

DELAY = 0.25  # of each request: those that are made at once are seen to be, on a busy machine too

Cost = tuple[dict[str, int], int]

#: What each operation asks of the store: requests by kind, and at most so many in a row.
WRITE: Cost = ({"LIST": 6, "GET": 3, "PUT": 5, "DELETE": 1}, 11)
COSTS: dict[str, tuple[Cost, Cost]] = {
    "upsert of five rows": (WRITE, WRITE),
    "delete of two keys": (WRITE, WRITE),
    "upsert of five rows, cleaning included": (
        ({"LIST": 8, "GET": 4, "HEAD": 1, "PUT": 8, "DELETE": 2}, 20),
        ({"LIST": 8, "GET": 3, "PUT": 5, "DELETE": 1}, 13),
    ),
    "the same in a process that has not seen the commits": (
        ({"LIST": 8, "GET": 16, "HEAD": 1, "PUT": 8, "DELETE": 2}, 22),
        ({"LIST": 8, "GET": 15, "PUT": 5, "DELETE": 1}, 15),
    ),
    "open, and read two columns": (({"LIST": 4, "GET": 3}, 4), ({"LIST": 4, "GET": 18}, 7)),
}
#: The operation of which it is seen how many requests are made one after the other: that takes its time.
IN_A_ROW = "upsert of five rows"


@pytest.fixture(scope="module")
def server() -> Iterator[RecordingServer]:
    pytest.importorskip("moto.server")
    with RecordingServer() as started:
        # The first create of a process in a bucket is made twice: whether the store refuses the second.
        FsspecStorage(f"s3://{BUCKET}/first", started.options).create_new("create", b"")
        yield started


@pytest.fixture(scope="module", params=["COPY_ON_WRITE", nightly("MERGE_ON_READ")])
def counted(request: pytest.FixtureRequest, server: RecordingServer) -> tuple[int, dict[str, Requests]]:
    """The requests of each operation, and which column of COSTS they are compared with."""
    storage = FsspecStorage(f"s3://{BUCKET}/{request.param.lower()}", server.options)
    table = made(storage, request.param)
    quiet = ArrowTable(storage, {**table.options, **WITHOUT_SERVICES})
    calls: dict[str, Callable[[], Any]] = {
        "the same in a process that has not seen the commits": lambda: table.upsert(five_rows(20)),
        "upsert of five rows, cleaning included": lambda: table.upsert(five_rows(21)),
        "upsert of five rows": lambda: quiet.upsert(five_rows(22)),
        "delete of two keys": lambda: quiet.delete(five_rows(23).slice(0, 2)),
        "open, and read two columns": lambda: (
            hoodie.open_table(storage.root, storage_options=server.options).snapshot(columns=["id", "ts"]).to_arrow()
        ),
    }
    cold()
    found = {}
    for name, call in calls.items():
        with server.recorded(DELAY if name == IN_A_ROW else 0.0) as requests:
            call()
        found[name] = requests
    return int(request.param == "MERGE_ON_READ"), found


@pytest.mark.parametrize("operation", COSTS)
def test_an_operation_makes_these_requests_and_no_more(counted, operation):
    column, found = counted
    kinds, most = COSTS[operation][column]
    requests = [(round(r.begin, 3), round(r.end, 3), r.kind, r.path) for r in found[operation].made]
    assert dict(found[operation].kinds) == kinds, requests
    if operation == IN_A_ROW:
        assert found[operation].sequential <= most, requests


def test_a_snapshot_of_many_partitions_is_planned_with_few_listings(server: RecordingServer):
    storage = day_partitions(server, 60)
    with server.recorded() as requests:
        assert plan(storage) == 60
    assert requests.kinds["GET"] <= 2
    assert requests.kinds["HEAD"] == 0
    assert requests.kinds["LIST"] < 50


def test_the_table_of_the_page_has_these_numbers():
    page = (Path(__file__).parents[2] / "docs" / "storage.md").read_text().partition("on an object store\n")[2]
    for operation, costs in COSTS.items():
        row = next(line for line in page.splitlines() if line.startswith(f"| {operation} |"))
        for kinds, _ in costs:
            cell = ", ".join(f"{kinds[kind]} {kind}" for kind in KINDS if kinds.get(kind))
            assert re.search(rf"\| {re.escape(cell)} \(\d+\) \|", row), (cell, row)
