import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hoodie.errors import UnsupportedTable
from hoodie.formats.avro.rows import decode_rows
from hoodie.formats.log.blocks import BlockKind, BlockMap, HeaderKey, read_blocks
from hoodie.formats.log.delete_block import decode_deletes
from hoodie.merge.log_scan import Committed, Scanned, blocks_to_merge, blocks_to_merge_compacted

VECTOR = json.loads((Path(__file__).parents[2] / "vectors" / "log_scan.json").read_text())


@dataclass(frozen=True)
class Head:
    kind: BlockKind
    header: BlockMap


def data(instant: str, *compacted: str, kind: BlockKind = BlockKind.AVRO_DATA) -> Head:
    entries: tuple[tuple[int, str], ...] = ((HeaderKey.INSTANT_TIME, instant),)
    if compacted:
        entries += ((HeaderKey.COMPACTED_BLOCK_TIMES, ",".join(compacted)),)
    return Head(kind, BlockMap(entries))


def rollback(instant: str, target: str, command: str = "0") -> Head:
    words = ((HeaderKey.INSTANT_TIME, instant), (HeaderKey.TARGET_INSTANT_TIME, target))
    return Head(BlockKind.COMMAND, BlockMap((*words, (HeaderKey.COMMAND_BLOCK_TYPE, command))))


CORRUPT = Head(BlockKind.CORRUPT, BlockMap())


def committed(completed: Iterable[str] = "123456789", latest: str = "9", **more: Any) -> Committed:
    return Committed(completed=frozenset(completed), latest=latest, **more)


def instants(scanned: Scanned[Head]) -> str:
    return "".join(block.header.instant for block in scanned.blocks)


BOTH = pytest.mark.parametrize("scan", [blocks_to_merge, blocks_to_merge_compacted])


@pytest.mark.parametrize("case", VECTOR["scans"], ids=lambda case: case["payload"][:40])
@BOTH
def test_a_scan_comes_to_what_the_format_s_own_scanner_returns(case: dict[str, Any], scan: Any) -> None:
    completed = frozenset(case["completed"])
    seen = Committed(
        completed=completed,
        latest=case["latest_instant"],
        first_active=min(completed),
        inflight=frozenset(case["inflight"]),
    )
    scanned = scan(read_blocks(bytes.fromhex(VECTOR["file_hex"]), "log"), seen)
    merged: dict[str, Any] = {}
    for block in scanned.blocks:
        if block.kind is BlockKind.DELETE:
            for row in decode_deletes(block.content).to_pylist():
                stored = merged.get(row["record_key"])
                # The vector's ordering field is a long (class 3); only equal classes compare.
                comparable = isinstance(stored, int) and row["ordering_class"] == 3
                if not (comparable and stored > row["ordering_integer"]):
                    merged[row["record_key"]] = "deleted"
        else:
            for row in decode_rows(block.content, block.header.schema or "").to_pylist():
                stored = merged.get(row["_hoodie_record_key"])
                if not isinstance(stored, int) or row["ts"] >= stored:
                    merged[row["_hoodie_record_key"]] = row["ts"]
    assert merged == case["result"]


@BOTH
def test_blocks_of_completed_instants_count_in_their_order(scan: Any) -> None:
    scanned = scan([data("1"), data("3", kind=BlockKind.DELETE), data("2"), data("3")], committed("13"))
    assert sorted(instants(scanned)) == ["1", "3", "3"]
    assert instants(scanned)[0] == "1"
    assert scanned.hidden == 1


@BOTH
def test_a_block_older_than_the_timeline_counts_unless_it_is_inflight(scan: Any) -> None:
    blocks = [data("1"), data("2"), data("3")]
    assert instants(scan(blocks, committed("5", first_active="3"))) == "12"
    assert instants(scan(blocks, committed("5", first_active="3", inflight={"2"}))) == "1"
    assert instants(scan(blocks, committed("5"))) == ""


@BOTH
def test_an_inflight_instant_hides_its_blocks_even_if_completed(scan: Any) -> None:
    assert instants(scan([data("1"), data("2")], committed(inflight={"1"}))) == "2"


@BOTH
def test_the_scan_stops_at_the_first_block_of_a_later_instant(scan: Any) -> None:
    def blocks() -> Iterator[Head]:
        yield from (data("1"), data("7"))
        raise AssertionError("a block was read after the one that stops the scan")

    assert instants(scan(blocks(), committed(latest="5"))) == "1"
    assert instants(scan([data("1"), CORRUPT, rollback("7", "1"), data("2")], committed(latest="5"))) == "1"


@BOTH
def test_a_range_leaves_out_instants_up_to_its_start(scan: Any) -> None:
    assert instants(scan([data("1"), data("2"), data("3")], committed(after="2"))) == "3"


@BOTH
def test_a_rollback_takes_away_every_block_of_its_target(scan: Any) -> None:
    blocks = [data("1"), data("2"), data("1"), CORRUPT, data("3"), rollback("4", "1")]
    scanned = scan(blocks, committed("123"))
    assert instants(scanned) == "23"
    assert (scanned.corrupt, scanned.rollbacks) == (1, 1)


def test_a_rollback_takes_away_corrupt_blocks_before_it() -> None:
    scanned = blocks_to_merge([CORRUPT, data("2"), CORRUPT, rollback("4", "3"), CORRUPT], committed("2"))
    assert (instants(scanned), scanned.corrupt, scanned.rolled_back) == ("2", 3, 2)


@BOTH
def test_a_rollback_without_its_target_changes_nothing(scan: Any) -> None:
    assert instants(scan([rollback("4", "3"), data("1"), rollback("4", "3")], committed("1"))) == "1"


def test_blocks_written_after_the_rollback_of_their_instant_count() -> None:
    assert instants(blocks_to_merge([data("1"), rollback("2", "1"), data("1")], committed("1"))) == "1"


@BOTH
def test_an_unknown_command_is_refused(scan: Any) -> None:
    with pytest.raises(UnsupportedTable, match="no rollback"):
        scan([rollback("4", "3", command="1")], committed())


@BOTH
def test_a_change_log_among_the_logs_is_refused(scan: Any) -> None:
    with pytest.raises(UnsupportedTable, match=r"\.cdc"):
        scan([data("1", kind=BlockKind.CDC_DATA)], committed())


@BOTH
def test_no_blocks_come_to_nothing(scan: Any) -> None:
    assert scan([], committed()) == Scanned(())


def test_a_compacted_block_stands_for_the_blocks_it_was_made_of() -> None:
    blocks = [data("1"), data("2"), data("3"), data("4", "1", "2"), data("5")]
    assert instants(blocks_to_merge_compacted(blocks, committed())) == "435"


def test_a_compacted_block_is_at_its_own_place_where_its_sources_are_not_seen() -> None:
    blocks = [data("1"), data("2"), data("3"), data("4", "1", "2"), data("5")]
    assert instants(blocks_to_merge_compacted(blocks, committed("345"))) == "345"
    again = [*blocks, data("6", "4")]
    assert instants(blocks_to_merge_compacted(again, committed("356"))) == "356"
    assert instants(blocks_to_merge_compacted(again, committed("3456"))) == "365"


def test_a_compacted_block_may_be_compacted_again() -> None:
    blocks = [data("1"), data("2"), data("3", "1", "2"), data("4"), data("5", "3", "4"), data("6")]
    assert instants(blocks_to_merge_compacted(blocks, committed())) == "56"


def test_a_compacted_block_that_was_rolled_back_leaves_its_sources() -> None:
    blocks = [data("1"), data("2"), data("3", "1", "2"), rollback("4", "3"), data("5")]
    scanned = blocks_to_merge_compacted(blocks, committed())
    assert (instants(scanned), scanned.rolled_back) == ("125", 1)


def test_blocks_of_one_instant_keep_their_order_beside_compacted_ones() -> None:
    second = data("3", kind=BlockKind.DELETE)
    scanned = blocks_to_merge_compacted([data("1"), data("2", "1"), data("3"), second], committed())
    assert instants(scanned) == "233"
    assert scanned.blocks[2] is second
