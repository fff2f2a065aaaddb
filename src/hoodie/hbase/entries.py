"""The rows of an HBase index: row keys, cells, which entry counts, and verified writes of entries.

An entry is three cells of family `_s`, as Hudi has them. A key that moves to another partition gets its new entry first
beside the old one, in three cells of its own that Hudi does not read: should the write fail, or its process die before
the old entry is replaced, a reader still knows which of the two counts, as the new one's instant is valid or is not.

Source: docs/format/indexing-and-write-path.md 5.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptIndex, IndexUnavailable, InvalidInput
from hoodie.formats.java.strings import string_hashes
from hoodie.hbase.client import Cells, HBaseClient
from hoodie.timeline.timeline import Visible

#: The cells of an entry: instant that inserted the key, file id (not a file name), partition path; UTF-8.
ENTRY = (b"_s:commit_ts", b"_s:file_name", b"_s:partition_path")
#: Those of the entry that replaces it once its instant is published.
NEXT = (b"_s:next_commit_ts", b"_s:next_file_name", b"_s:next_partition_path")
#: The longest row key of HBase, bytes.
_MAX_KEY = 32_767
#: How far HBase's clock may be ahead of this machine's without hiding what is put, ms.
_AHEAD = 1000
#: For `put_entries`: an instant after all others.
NO_LATER = b"~"
_REBUILD = "Rebuild the index: hoodie index rebuild <path of the table>."


class KeyEntry(NamedTuple):
    """Where a key is, as in the cells."""

    commit: bytes
    file_id: bytes
    partition: bytes


@dataclass(frozen=True, slots=True)
class Validity:
    """Which entries count.

    undone    instants that a rollback or restore of the active timeline rolled back; older than it, they would look
              archived
    replaced  (partition path, file id) of file groups that an instant of the active timeline replaced -> whether their
              rows were removed too (an overwrite, a delete of partitions) or are in other groups now (a clustering)
    """

    visible: Visible
    undone: frozenset[str]
    replaced: Mapping[tuple[str, str], bool]

    def counts(self, commit: str) -> bool:
        """Whether an instant is completed, or older than the active timeline."""
        return self.visible.committed(commit) and commit not in self.visible.open and commit not in self.undone

    def without(self, undone: Collection[str]) -> Validity:
        """The same once further instants were rolled back."""
        return replace(self, undone=self.undone.union(undone))

    def has_published(self, commit: str) -> bool:
        """Whether an instant is certainly completed: of one older than the active timeline this is no longer known."""
        return commit in self.visible.completed


def row_keys(keys: pa.Array, buckets: int) -> list[bytes]:
    """The HBase row of each record key.

    keys     string[n], no nulls
    buckets  0: rows are the keys; else they have a prefix by the key's hash, as the rebalancing index of Hudi's
    Raises   InvalidInput on a key that is longer than HBase's rows may be
    """
    if buckets:
        prefixes = pa.array([_prefix(code, buckets) for code in string_hashes(keys).tolist()], pa.string())
        keys = pc.binary_join_element_wise(prefixes, keys.cast(pa.string()), "")
    rows: list[bytes] = keys.cast(pa.binary()).to_pylist()
    longest = pc.max(pc.binary_length(keys)).as_py() if len(keys) else 0
    if longest > _MAX_KEY:
        first = next(row for row in rows if len(row) > _MAX_KEY)
        raise InvalidInput(
            f"the record key that begins {first[:40]!r} has {len(first)} bytes: rows of HBase have at most {_MAX_KEY}. "
            "Use another index, or a shorter key."
        )
    return rows


def _prefix(code: int, buckets: int) -> str:
    width = len(str(buckets - 1))
    rest = abs(code) % buckets
    if code == -(2**31):  # Java has no positive of it: its remainder is not positive either
        rest = -(2**31 % buckets)
    return f"{rest:0{width}d}"


def find_entries(client: HBaseClient, rows: Sequence[bytes], validity: Validity) -> list[KeyEntry | None]:
    """The authoritative entry of each row, whether it counts or not; None where there is none.

    Raises CorruptIndex on a row with some of the cells only
    """
    cells = client.get(rows, (*ENTRY, *NEXT))
    return [_entry(row, cells[row], validity) if row in cells else None for row in rows]


def _entry(row: bytes, cells: Cells, validity: Validity) -> KeyEntry | None:
    if len(cells) == len(ENTRY) and all(name in cells for name in ENTRY):  # nearly always
        return KeyEntry(cells[ENTRY[0]].value, cells[ENTRY[1]].value, cells[ENTRY[2]].value)
    now, after = _cells(row, cells, ENTRY), _cells(row, cells, NEXT)
    if after is None or (now is not None and now.commit >= after.commit):
        return now
    return after if validity.has_published(after.commit.decode(errors="replace")) else now


def _cells(row: bytes, cells: Cells, names: Sequence[bytes]) -> KeyEntry | None:
    missing = [name.decode() for name in names if name not in cells]
    if len(missing) == len(names):
        return None
    if missing:
        raise CorruptIndex(f"HBase row {row!r} has no {', '.join(missing)}. {_REBUILD}")
    return KeyEntry(*(cells[name].value for name in names))


def entry_locations(
    rows: Sequence[bytes], entries: Sequence[KeyEntry | None], validity: Validity, where: str
) -> tuple[pa.Array, pa.Array]:
    """Partition path and file id of each row whose entry counts, null for others: string[n], string[n].

    where   the index, for errors
    Raises  CorruptIndex naming the first row with cells of the wrong form, or with a file group that was replaced
    """
    columns = [
        pa.array([None if entry is None else entry[part] for entry in entries], pa.binary()).dictionary_encode()
        for part in range(3)
    ]
    try:
        commits, files, partitions = (
            pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(pa.string())) for column in columns
        )
    except pa.ArrowInvalid:
        bad = next(r for r, entry in zip(rows, entries, strict=True) if entry is not None and not _is_utf8(entry))
        raise CorruptIndex(f"{where}: the cells of row {bad!r} are not UTF-8. {_REBUILD}") from None
    for column, pattern, name in ((commits, r"^[0-9]{14,}$", "commit_ts"), (files, r"^[^/_]+$", "file_name")):
        wrong = pc.invert(pc.match_substring_regex(column.dictionary, pattern))
        if pc.any(wrong).as_py():
            code = pc.index(wrong, True).as_py()
            row = rows[pc.index(column.indices, code).as_py()]
            raise CorruptIndex(
                f"{where}: row {row!r} has {name}={column.dictionary[code].as_py()!r}, which is no "
                f"{'instant' if column is commits else 'file id'}. {_REBUILD}"
            )
    counting = pa.array([validity.counts(text) for text in commits.dictionary.to_pylist()], pa.bool_())
    valid = pc.fill_null(counting.take(commits.indices), False)
    nothing = pa.scalar(None, pa.string())
    partition_paths = pc.if_else(valid, partitions.cast(pa.string()), nothing)
    file_ids = pc.if_else(valid, files.cast(pa.string()), nothing)
    if validity.replaced:
        file_ids, partition_paths = _without_replaced(rows, file_ids, partition_paths, validity, where)
    return partition_paths, file_ids


def _without_replaced(
    rows: Sequence[bytes], file_ids: pa.Array, partitions: pa.Array, validity: Validity, where: str
) -> tuple[pa.Array, pa.Array]:
    codes = file_ids.dictionary_encode()
    ids = {file_id: number for number, file_id in enumerate(codes.dictionary.to_pylist())}
    for (partition, file_id), rows_gone in validity.replaced.items():
        if file_id not in ids:
            continue
        hit = pc.and_(pc.equal(codes.indices, ids[file_id]), pc.equal(partitions, partition))
        if not pc.any(hit).as_py():
            continue
        if not rows_gone:
            raise CorruptIndex(
                f"{where}: the entry of row {rows[pc.index(hit, True).as_py()]!r} points to file group {file_id} of "
                f"partition {partition!r}, which a clustering replaced. {_REBUILD}"
            )
        nothing = pa.scalar(None, pa.string())
        file_ids, partitions = pc.if_else(hit, nothing, file_ids), pc.if_else(hit, nothing, partitions)
    return file_ids, partitions


def _is_utf8(entry: KeyEntry) -> bool:
    try:
        b"".join(entry).decode()
    except UnicodeDecodeError:
        return False
    return True


def put_entries(
    client: HBaseClient,
    rows: Sequence[bytes],
    entries: Sequence[KeyEntry],
    timestamp: int,
    columns: Sequence[bytes] = ENTRY,
    *,
    last: bytes | None = None,
) -> None:
    """Put an entry for each row, and verify that it is stored.

    timestamp  ms since 1970, of all cells: later than that of any earlier mutation of the rows
    last       an entry of an instant later than this is kept: it is another writer's. None: later
               than the entry's own instant; NO_LATER: none is
    Raises     IndexUnavailable when HBase took the entries but does not show them
    """
    entry_of = dict(zip(rows, entries, strict=True))

    def put(part: Sequence[bytes], timestamp: int) -> None:
        client.put(part, [list(zip(columns, entry_of[row], strict=True)) for row in part], timestamp)

    def differs(row: bytes, cells: Cells | None) -> bool:
        if cells is None or any(name not in cells for name in columns):
            return True
        if cells[columns[0]].value > (entry_of[row][0] if last is None else last):
            return False
        return any(cells[name].value != value for name, value in zip(columns, entry_of[row], strict=True))

    _until_kept(client, list(entry_of), columns, timestamp, put, differs, "put")


def delete_rows(client: HBaseClient, rows: Sequence[bytes], timestamp: int, instant: str) -> None:
    """Delete rows, and verify that they are deleted. Raises as `put_entries`.

    instant  entries of later ones are another writer's, and stay
    """

    def delete(part: Sequence[bytes], timestamp: int) -> None:
        client.delete(part, [b"_s"], timestamp)

    def exists(row: bytes, cells: Cells | None) -> bool:
        return cells is not None and (ENTRY[0] not in cells or cells[ENTRY[0]].value <= instant.encode())

    _until_kept(client, list(dict.fromkeys(rows)), (*ENTRY, *NEXT), timestamp, delete, exists, "delete")


def _until_kept(
    client: HBaseClient,
    rows: Sequence[bytes],
    columns: Sequence[bytes],
    timestamp: int,
    mutate: Callable[[Sequence[bytes], int], None],
    missed: Callable[[bytes, Cells | None], bool],
    word: str,
) -> None:
    """Mutate rows, read them back, and mutate those that missed once more, later than all that was seen.

    A mutation has no effect, without an error of HBase's, where another writer's clock ran ahead: newer cells, or a
    newer tombstone, hide what is put.
    """
    remaining = rows
    for _ in range(2):
        mutate(remaining, timestamp)
        cells = client.get(remaining, columns)
        remaining = [row for row in remaining if missed(row, cells.get(row))]
        if not remaining:
            return
        seen = [cell.timestamp for row in remaining for cell in cells.get(row, {}).values()]
        timestamp = max([timestamp, time.time_ns() // 1_000_000 + _AHEAD, *seen]) + 1
    raise IndexUnavailable(
        f"{client.where} acknowledged a {word} of {len(rows)} entries, but {len(remaining)} are not stored as written, "
        f"such as row {remaining[0]!r}. Check its logs and the clocks of its region servers."
    )
