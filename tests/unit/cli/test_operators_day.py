"""A day of an operator: many tables, two of each kind of damage. The doctor finds all, and each way out works."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.storage.local import LocalStorage
from hoodie.table.properties import BACKUP, PROPERTIES
from support.compacting import fill
from support.lake import Terminal

#: How two tables of each kind are made: a Merge-on-Read one and a Copy-on-Write one.
TYPES = ("mor", "cow")
BY_DAY, AT_NIGHT = 42, 300


def build(folder: Path, version: int) -> None:
    """The tables of which all others are copies: three commits each, in two partitions at least."""
    if version == 6:
        fill(LocalStorage(folder / "mor"))
        build_one(folder / "cow", "COPY_ON_WRITE", 6)
        return
    build_one(folder / "mor", "MERGE_ON_READ", version)
    build_one(folder / "cow", "COPY_ON_WRITE", version)


def build_one(folder: Path, kind: str, version: int) -> None:
    options = {"hoodie.write.table.version": version}
    table = hoodie.create_table(
        folder, name="trips", record_key="id", partition_by="city", ordering="ts", table_type=kind, options=options
    )
    for ts, keys in enumerate((("a", "b", "c"), ("a", "d"), ("b",)), 1):
        cities = ["oslo" if key < "c" else "rome" for key in keys]
        table.upsert(pa.table({"id": list(keys), "city": cities, "ts": [ts] * len(keys), "note": ["x"] * len(keys)}))


# --- damage ---


def timeline(table: Path) -> Path:
    """The folder of the timeline, which tables of version 8 and 9 have to itself."""
    own = table / ".hoodie" / "timeline"
    return own if own.is_dir() else table / ".hoodie"


def completed(table: Path) -> list[Path]:
    """The completed files of commits, oldest first."""
    return sorted(path for path in timeline(table).iterdir() if path.suffix in (".commit", ".deltacommit"))


def base_file(table: Path) -> Path:
    """The base file of oslo that readers see."""
    return max((table / "oslo").glob("*.parquet"), key=lambda path: path.name.rpartition("_")[2])


def cut(path: Path, part: float) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)])


def empty_commit(table: Path) -> None:
    cut(completed(table)[-1], 0)


def half_commit(table: Path) -> None:
    cut(completed(table)[-1], 0.6)


def settings_cut_short(table: Path) -> None:
    shutil.copy(table / PROPERTIES, table / BACKUP)  # as a writer leaves it that dies while it changes them
    cut(table / PROPERTIES, 0.3)


def wrong_checksum(table: Path) -> None:
    text = (table / PROPERTIES).read_text()
    (table / PROPERTIES).write_text(re.sub(r"(hoodie.table.checksum=)", r"\g<1>9", text))


def settings_damaged(table: Path) -> None:
    (table / PROPERTIES).write_bytes(b"\0" * 40)


def dead_write(table: Path) -> None:
    ending = "inflight" if table.name.endswith("cow") else "deltacommit.inflight"
    action = "commit" if table.name.endswith("cow") else "deltacommit"
    for name in (f"{action}.requested", ending):
        (timeline(table) / f"20990101000000000.{name}").touch()


def lost_file(table: Path) -> None:
    base_file(table).unlink()


def file_cut_short(table: Path) -> None:
    cut(base_file(table), 0.5)


def bit_that_fell_over(table: Path) -> None:
    path = base_file(table)
    group = pq.ParquetFile(path).metadata.row_group(0)
    (column,) = (c for i in range(group.num_columns) if (c := group.column(i)).path_in_schema == "note")
    data = bytearray(path.read_bytes())
    data[(column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size - 2] ^= 1
    path.write_bytes(data)


def orphan(table: Path) -> None:
    path = base_file(table)
    shutil.copy(path, path.with_name(path.name.rpartition("_")[0] + "_20990101000000000.parquet"))


def no_metafile(table: Path) -> None:
    (table / "oslo" / ".hoodie_partition_metadata").unlink()


def strange_instant(table: Path) -> None:
    (timeline(table) / "20260101000000000.comit").write_text("{}")


def lost_completion(table: Path) -> None:
    completed(table)[0].unlink()


def settings_cut_for_good(table: Path) -> None:
    cut(table / PROPERTIES, 0.5)


def settings_without_checksum(table: Path) -> None:
    text = (table / PROPERTIES).read_text()
    (table / PROPERTIES).write_text(re.sub(r"hoodie.table.checksum=.*\n", "", text))


def empty_metafile(table: Path) -> None:
    (table / "oslo" / ".hoodie_partition_metadata").write_bytes(b"")


def zeroed_rollback(table: Path) -> None:
    for ending in ("rollback.requested", "rollback.inflight", "rollback"):  # as a loss of power leaves it
        (timeline(table) / f"20250101000000000.{ending}").touch()


def stray_file(table: Path) -> None:
    path = base_file(table)
    path.with_name("notes.txt").write_text("by hand")  # a note: nothing is wrong with the table


@dataclass(frozen=True, slots=True)
class Damage:
    """What is done to a table, what the doctor calls it, and what becomes of the rows once a way out is taken.

    back  the newest commit is rolled back
    """

    plant: Callable[[Path], None]
    fault: str
    back: bool = False


DAMAGES = (
    Damage(empty_commit, "0-byte instant", back=True),
    Damage(half_commit, "damaged instant", back=True),
    Damage(settings_cut_short, "leftover properties backup"),
    Damage(settings_damaged, "damaged properties"),
    Damage(wrong_checksum, "wrong checksum"),
    Damage(dead_write, "stale pending instant"),
    Damage(lost_file, "missing file"),
    Damage(file_cut_short, "damaged file"),
    Damage(bit_that_fell_over, "damaged file"),
    Damage(orphan, "orphan file"),
    Damage(no_metafile, "partition without metafile"),
    Damage(strange_instant, "unknown instant file"),
    Damage(lost_completion, "hollow instant"),
    Damage(settings_cut_for_good, "damaged properties"),
    Damage(settings_without_checksum, "wrong checksum"),
    Damage(empty_metafile, "partition without metafile"),
    Damage(zeroed_rollback, "0-byte instant"),
)


# --- the day ---


def rows(table: Path, back: bool = False) -> list[dict[str, object]]:
    """The rows as a reader sees them; back: without the newest commit."""
    opened = hoodie.open_table(table)
    commits = [instant.requested for instant, _ in opened.history()]
    frame = opened.as_of(commits[1]) if back else opened.snapshot()
    plain = frame.to_arrow().select(["id", "city", "ts", "note"])
    return plain.sort_by("id").to_pylist()


def follow(finding: dict[str, str], table: Path, whole: Path, hoodie: Terminal) -> None:
    """Do what the advice of a finding says that no repair does."""
    advice = finding["advice"]
    if command := re.search(r"`hoodie (rollback|savepoint delete) TABLE (\d+)`", advice):
        hoodie(*command[1].split(), table, command[2], "--yes")
    elif "repair with --checksum" in advice:
        hoodie("doctor", table, "--repair", "--checksum", "--yes", "--grace", "0")
    elif re.search("[Rr]estore it from a copy|[Rr]estore the file", advice):
        completions = [path for path in completed(whole) if path.name[:17] == Path(finding["where"]).name[:17]]
        for source in completions or [whole / finding["where"]]:
            shutil.copy(source, table / source.relative_to(whole))
    else:
        assert "move it away" in advice, advice
        (table / finding["where"]).rename(table.parent.parent / table.name)


@pytest.mark.parametrize(
    ("count", "version"),
    [
        pytest.param(BY_DAY, 6, id="day"),
        pytest.param(BY_DAY, 9, id="day of version 9"),
        pytest.param(BY_DAY, 8, id="day of version 8", marks=pytest.mark.nightly),
        pytest.param(AT_NIGHT, 6, id="night", marks=pytest.mark.nightly),
    ],
)
def test_the_doctor_finds_all_damage_and_each_way_out_it_names_works(
    count: int, version: int, tmp_path: Path, hoodie: Terminal
) -> None:
    whole, lake = tmp_path / "whole", tmp_path / "lake"
    build(whole, version)
    broken: dict[Path, tuple[Damage, str]] = {}
    for number in range(count):
        kind = TYPES[number % 2]
        table = lake / f"t{number:03}_{kind}"
        shutil.copytree(whole / kind, table)
        if number < 2 * len(DAMAGES):
            damage = DAMAGES[number // 2]
            damage.plant(table)
            broken[table] = damage, kind
    stray_file(lake / f"t{count - 1:03}_{TYPES[(count - 1) % 2]}")
    everything = ("doctor", f"{lake}/*", "--all-columns", "--grace", "0", "--jobs", "4")

    def look(status: int) -> dict[Path, list[dict[str, str]]]:
        """The findings that are more than notes, of each table with some."""
        tables = hoodie.document(*everything, status=status)["tables"]
        assert [table["path"] for table in tables] == sorted(map(str, lake.iterdir()))
        assert all(table["error"] is None for table in tables), json.dumps(tables)
        worse = {
            Path(table["path"]): [f for f in table["result"]["findings"] if f["severity"] != "NOTE"] for table in tables
        }
        return {table: findings for table, findings in worse.items() if findings}

    found = look(1)
    assert found.keys() == broken.keys()
    for table, (damage, _) in broken.items():
        assert damage.fault in {finding["fault"] for finding in found[table]}, (damage, found[table])
    lines = hoodie(*everything, "--where", "errors >= 1 or warnings >= 1", status=1)
    assert lines[-1].startswith(f"== {len(broken)} of {count} tables: 0 fine, {len(broken)} with findings (")

    hoodie(*everything, "--repair", "--yes", status=1)
    for table, findings in look(1).items():
        for finding in findings:
            if "missing" not in finding["problem"] or not (table / finding["where"]).exists():
                follow(finding, table, whole / broken[table][1], hoodie)
                break  # one thing after the other: the next look says what is left
    assert look(0) == {}

    for table, (damage, kind) in broken.items():
        expected = rows(whole / kind, damage.back)
        assert rows(table) == expected, damage
        new = {"id": "z", "city": "oslo", "ts": 9, "note": "later"}
        hoodie_upsert(table, new)
        assert rows(table) == [*expected, new], damage
    assert look(0) == {}


def hoodie_upsert(table: Path, row: dict[str, object]) -> None:
    hoodie.open_table(table).upsert(pa.table({name: [value] for name, value in row.items()}))
