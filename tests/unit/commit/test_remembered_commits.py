"""What a process remembers of a commit that it has published is what the file says to others."""

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.storage.local import LocalStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.load import COMMITS, read_commit
from support.trips import table_options

OPTIONS = {
    **table_options("t", "id", partition="p", ordering="ts"),
    "hoodie.table.services.enabled": "false",
    "hoodie.table.cdc.enabled": "true",
}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "p": [str(number % 2) for number in ids], "ts": [1] * len(ids)})


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_commit_is_remembered_as_its_file_has_it(tmp_path: Path, version: str, kind: str) -> None:
    options = {**OPTIONS, "hoodie.write.table.version": version, "hoodie.datasource.write.table.type": kind}
    table = ArrowTable.create(LocalStorage(tmp_path), options)
    table.upsert(rows(1, 2, 3))
    table.upsert(rows(2, 3, 4))
    table.delete(rows(1).select(["id", "p"]))
    table.insert_overwrite(rows(6))
    table.delete_partitions(["1"])
    timeline = table.state().timeline
    assert len(timeline.commits) == 5
    remembered = [COMMITS.get(table.storage, timeline, commit) for commit in timeline.commits]
    COMMITS.forget()
    assert remembered == [read_commit(table.storage, timeline, commit) for commit in timeline.commits]
