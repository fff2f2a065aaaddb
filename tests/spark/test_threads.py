"""Threads of one process that write through Spark at once: right tables, right routes, and the process's own output."""

import contextlib
import io
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest

import hoodie
from hoodie.spark.plan_size import estimated_bytes

LOCKED = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    "hoodie.write.num.retries.on.conflict.failures": 10,
}


def rows(spark, low, high, version):
    return spark.range(low, high).selectExpr(
        "concat('k', id) as id", "cast(id % 2 as string) as p", f"{version}L as ts", f"id * {version} as v"
    )


def test_the_estimate_is_what_explain_prints_and_prints_nothing(spark):
    frame = rows(spark, 0, 1000, 1)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        frame.explain(mode="cost")
    assert "sizeInBytes=" in printed.getvalue()
    quiet = io.StringIO()
    with contextlib.redirect_stdout(quiet):
        size = estimated_bytes(frame)
    assert quiet.getvalue() == ""
    assert size is not None
    assert 8_000 < size < 80_000
    assert (estimated_bytes(frame.limit(1)) or 0) < size


def test_an_estimate_leaves_the_frame_in_sparks_cache(spark):
    frame = rows(spark, 0, 10, 1).persist()
    frame.count()
    estimated_bytes(frame)
    assert "InMemory" in str(_plan(frame))
    frame.unpersist()


def _plan(frame) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        frame.explain()
    return printed.getvalue()


def test_threads_get_the_estimates_of_their_own_frames(spark):
    frames = [spark.range(10**n) for n in range(1, 9)]
    expected = [8 * 10**n for n in range(1, 9)]
    before = sys.stdout
    with ThreadPoolExecutor(8) as pool:
        found = [list(pool.map(estimated_bytes, frames)) for _ in range(10)]
    assert found.count(found[0]) == 10
    for size, right in zip(found[0], expected, strict=True):  # the text of a plan rounds
        assert size is not None
        assert abs(size - right) <= right / 5
    assert sys.stdout is before


@pytest.mark.parametrize("shared", [False, True], ids=["a table each", "one table"])
def test_threads_that_write_at_once_keep_their_output_and_their_rows(spark, tmp_path, shared):
    def table(name: str) -> hoodie.HoodieTable:
        return hoodie.create_table(
            str(tmp_path / name),
            spark=spark,
            name="t",
            record_key="id",
            partition_by="p",
            ordering="ts",
            options=LOCKED if shared else {},
        )

    count, before = 4, sys.stdout
    if shared:
        table("0")
    failures: list[str] = []

    def work(number: int) -> None:
        try:
            mine = table("0" if shared else str(number))
            mine.upsert(rows(spark, 100 * number, 100 * number + 10, 1))
            mine.upsert(rows(spark, 100 * number, 100 * number + 5, 2))
        except Exception:
            failures.append(traceback.format_exc())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert failures == []
    assert sys.stdout is before
    found: dict[str, int] = {}
    for name in {"0" if shared else str(number) for number in range(count)}:
        read = hoodie.open_table(str(tmp_path / name)).snapshot(meta=True).to_arrow().to_pylist()
        assert not found.keys() & {row["id"] for row in read}
        found |= {row["id"]: row["v"] for row in read}
    numbers = [100 * number + n for number in range(count) for n in range(10)]
    expected = {f"k{n}": n * (2 if n % 100 < 5 else 1) for n in numbers}
    assert found == expected
