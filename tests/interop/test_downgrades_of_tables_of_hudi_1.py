"""Tables that Hudi 1.x made get version 6: rows, changes and earlier states stay, or it says what would be lost."""

import itertools
from contextlib import suppress
from pathlib import Path

import pytest

import hoodie
from hoodie.errors import HistoryGone, InvalidInput, UnsupportedTable
from hoodie.model.instant import Action
from hoodie.storage.local import LocalStorage
from hoodie.table.state import load_state
from support.hudi_1_tables import Row, noting, sorted_rows, table_names, unpack
from support.nightly import nightly
from support.oracles import read_hudi_rs

#: What is refused, and what the error says.
REFUSED = {
    "hudi12_cow_blob": "BLOB",
    "hudi12_cow_vector": "VECTOR",
    "hudi12_mor_blob": "BLOB",
    "v8_cow_virtual_keys": "populate.meta.fields",
    "v8_mor_clustering_pending": "is pending",
    "v8_mor_merge_into_partial": "only some columns",
    "v9_mor_merge_into_partial": "only some columns",
    "v9_mor_merge_twice": "only some columns",
    "v9_mor_multi_ordering": "one ordering column",
}
#: Readers of versions 8 and 9 make a row of a range of the versions in it, readers of version 6 of all there are.
MADE_OF_A_RANGE = {"v9_mor_debezium_pg", "v9_mor_payload_partial"}
#: Logs that are not compacted are merged otherwise in version 6: a delete wins over a greater ordering value of the
#: base file, and versions of the payload class that lets defaults not overwrite are not combined among logs.
MERGED_OTHERWISE = {"v8_mor_payload_nondefaults", "v9_mor_soft_delete"}
BY_DAY = {
    "v8_cow_archived",
    "v8_mor_compaction_pending",
    "v9_cow_clustering",
    "v9_mor_cdc",
    "v9_mor_payload_dms",
    "v9_mor_upgraded",
}
DOWNGRADED = [name if name in BY_DAY else nightly(name) for name in table_names() if name not in REFUSED]
pytestmark = pytest.mark.filterwarnings("ignore::hoodie.errors.HoodieWarning")


def views(path: Path) -> dict[str, list[Row]]:
    table = hoodie.open_table(path)
    state = load_state(LocalStorage(path))
    writes = [c.requested for c in state.timeline.commits if c.action is not Action.COMMIT or not _logged(state)]
    made = {"snapshot": _rows(table.snapshot(meta=True))}
    for time in writes:
        with suppress(InvalidInput):  # its files were cleaned
            made[f"as of {time}"] = _rows(table.as_of(time))
    for a, b in itertools.pairwise(writes):
        with suppress(HistoryGone):
            made[f"{a} to {b}"] = _rows(table.changes(a, b))
    if state.config.cdc:
        made["change data"] = sorted_rows(table.changes("earliest", cdc=True).to_arrow().to_pylist())
    return made


def _logged(state) -> bool:
    return state.config.merge_on_read


def _rows(rows) -> list[Row]:
    return sorted_rows(noting(rows.to_arrow()))


@pytest.mark.parametrize("name", DOWNGRADED)
def test_every_view_is_as_before(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    before = views(path)
    table = hoodie.open_table(path)
    table.downgrade(6)
    assert (path / ".hoodie/hoodie.properties").read_text().count("hoodie.table.version=6\n") == 1
    after = views(path)
    same = [view for view in before if not (name in MADE_OF_A_RANGE and " to " in view)]
    same = [view for view in same if not (name in MERGED_OTHERWISE and view != "snapshot")]
    assert {view: after[view] for view in same} == {view: before[view] for view in same}
    table.upgrade(9)
    again = views(path)
    assert {view: again[view] for view in before} == before


@pytest.mark.parametrize("name", ["v8_mor_savepoint_restore", "v9_cow_clustering", "v9_mor_part"])
def test_hudi_rs_reads_the_rows_of_now_and_of_each_write(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    table = hoodie.open_table(path)
    table.downgrade(6)
    state = load_state(LocalStorage(path))
    for time in [c.requested for c in state.timeline.commits if c.action is not Action.COMMIT or not _logged(state)]:
        theirs = sorted_rows(noting(read_hudi_rs(path, as_of=time)))
        assert theirs == sorted_rows(noting(table.as_of(time, meta=True).to_arrow())), time
    assert sorted_rows(noting(read_hudi_rs(path))) == _rows(table.snapshot(meta=True))


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_would_be_lost_is_refused(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    with pytest.raises(UnsupportedTable, match=REFUSED[name]):
        hoodie.open_table(path).downgrade(6)
    assert "hoodie.table.version=6\n" not in (path / ".hoodie/hoodie.properties").read_text()


def test_a_table_with_rows_of_some_columns_is_compacted_and_cleaned_first(tmp_path: Path) -> None:
    path = unpack("v9_mor_merge_into_partial", tmp_path)
    table = hoodie.open_table(path, options={"hoodie.clean.commits.retained": "1", "hoodie.clean.automatic": "false"})
    rows = table.snapshot().to_arrow()
    table.schedule_compaction(options={"hoodie.compact.inline.max.delta.commits": "1"})
    table.compact()
    table.upsert(rows)
    table.schedule_compaction(options={"hoodie.compact.inline.max.delta.commits": "1"})
    table.compact()
    table.clean()
    table.downgrade(6)
    assert _rows(table.snapshot()) == sorted_rows(noting(rows))
