"""Metadata that names files outside the table, or code to run: refused, whatever the bytes say."""

import ast
import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.commit.markers import read_markers
from hoodie.commit.rollback_executor import resume_rollback
from hoodie.config.table import from_properties
from hoodie.doctor.examine import examine
from hoodie.errors import CorruptFile, InvalidInput, InvalidOption, TableMismatch, UnsupportedTable
from hoodie.formats.timeline import services
from hoodie.formats.timeline.commit_json import decode_commit
from hoodie.formats.timeline.plans import (
    decode_compaction_plan,
    decode_replace_plan,
    encode_compaction_plan,
    encode_replace_plan,
)
from hoodie.model import plans
from hoodie.model.files import FileGroupId
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage.local import LocalStorage
from hoodie.table.properties import PROPERTIES
from hoodie.table.settings import Settings
from hoodie.testing.storage import Crash, Dying, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.load import read_compaction_plan
from hoodie.timeline.timeline import LAYOUT_1
from support.trips import table_options

OPTIONS = table_options("t", "id", partition="p", ordering="ts")
MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
OUTSIDE = ("../victim", "a/../../victim", "/victim", "s3://bucket/victim", "file:///victim", "a//b", "a/./b", "..")

SOURCE = Path(__file__).parents[3] / "src" / "hoodie"


def rows(*keys: str, ts: int = 1) -> pa.Table:
    return pa.table({"id": list(keys), "p": ["x"] * len(keys), "ts": [ts] * len(keys)})


# --- paths ---


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_commit_that_names_a_path_outside_the_table_is_corrupt(path):
    stat = {"fileId": "f", "path": "x/f.parquet", "partitionPath": "x", "prevCommit": "null"}
    for part in (
        {"partitionToWriteStats": {path: [stat]}},
        {"partitionToWriteStats": {"x": [{**stat, "path": path}]}},
        {"partitionToWriteStats": {"x": [{**stat, "partitionPath": path}]}},
        {"partitionToWriteStats": {"x": [{**stat, "fileId": path}]}},
        {"partitionToWriteStats": {"x": [{**stat, "cdcStats": {path: 1}}]}},
        {"partitionToReplaceFileIds": {path: ["f"]}},
        {"partitionToReplaceFileIds": {"x": [path]}},
    ):
        with pytest.raises(CorruptFile):
            decode_commit(json.dumps(part).encode(), "c")


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_plan_for_a_partition_outside_the_table_is_corrupt(path):
    group = FileGroupId(path, "f")
    operation = plans.CompactionOperation(group=group, base_instant="1", base_file="f.parquet", log_files=())
    cluster = plans.ClusteringGroup(slices=(plans.ClusteringSlice(group=group, base_file="f.parquet"),))
    request = plans.RollbackRequest(partition=path, delete=("f.parquet",))
    replace = plans.ReplacePlan(operation="CLUSTER", clustering=plans.ClusteringPlan(groups=(cluster,)))
    for decode, data in (
        (decode_compaction_plan, encode_compaction_plan(plans.CompactionPlan(operations=(operation,)))),
        (decode_replace_plan, encode_replace_plan(replace, "/t")),
        (
            services.decode_clean_plan,
            services.encode_clean_plan(plans.CleanPlan(policy="P", files={path: ("f.parquet",)}), "/t"),
        ),
        (services.decode_clean_plan, services.encode_clean_plan(plans.CleanPlan(policy="P", partitions=(path,)), "/t")),
        (
            services.decode_clean_metadata,
            services.encode_clean_metadata(
                plans.CleanMetadata(start="1", partitions={path: plans.CleanedPartition(policy="P")})
            ),
        ),
        (
            services.decode_rollback_plan,
            services.encode_rollback_plan(
                plans.RollbackPlan(instant=plans.InstantRef("1", "commit"), requests=(request,)), "/t"
            ),
        ),
        (
            services.decode_rollback_metadata,
            services.encode_rollback_metadata(
                plans.RollbackMetadata(start="1", partitions={path: plans.RolledBackPartition()}), "/t"
            ),
        ),
        (
            services.decode_savepoint,
            services.encode_savepoint(plans.SavepointMetadata(by="", at=0, files={path: ("f.parquet",)})),
        ),
    ):
        with pytest.raises(CorruptFile):
            decode(data, "p")


@pytest.mark.parametrize("name", ["..", ".", "a/", "s3://bucket/"])
def test_a_plan_that_names_a_folder_instead_of_a_file_is_corrupt(name):
    for plan in (plans.CleanPlan(policy="P", files={"x": (name,)}),):
        with pytest.raises(CorruptFile):
            services.decode_clean_plan(services.encode_clean_plan(plan, "/t"), "p")


@pytest.mark.parametrize("folder", ["../elsewhere", "/elsewhere", "a/../../b"])
def test_settings_that_put_the_timeline_outside_the_table_are_corrupt(folder):
    found = {"hoodie.table.name": "t", "hoodie.table.version": "8", "hoodie.timeline.layout.version": "2"}
    for key in ("hoodie.timeline.path", "hoodie.timeline.history.path", "hoodie.archivelog.folder"):
        with pytest.raises(CorruptFile):
            from_properties({**found, key: folder})


def table_beside_a_victim(folder: Path, name: str = "f_0-0-0_20240101000000000.parquet") -> tuple[ArrowTable, Path]:
    """A table in whose timeline a write died, and a file outside that it has no business with."""
    (folder / "victim").mkdir()
    victim = folder / "victim" / name
    victim.write_bytes(b"precious")
    table = ArrowTable.create(LocalStorage(folder / "table"), OPTIONS)
    table.upsert(rows("a"))
    table.fail_next(4, Dying.BEFORE)
    with pytest.raises(Crash):
        table.upsert(rows("b"))
    return table, victim


def test_a_rollback_plan_does_not_delete_outside_the_table(tmp_path):
    table, victim = table_beside_a_victim(tmp_path)
    (failed,) = table.state().timeline.pending()
    request = plans.RollbackRequest(partition="../victim", delete=(victim.name,))
    plan = plans.RollbackPlan(instant=plans.InstantRef(failed.requested, failed.action), requests=(request,))
    path = ".hoodie/99990101000000000.rollback.requested"
    table.storage.create_new(path, services.encode_rollback_plan(plan, table.storage.root))
    (rollback,) = (i for i in table.state().timeline.instants if i.requested.startswith("9999"))
    with pytest.raises(CorruptFile, match="no path inside the table"):
        resume_rollback(table.storage, rollback, layout=LAYOUT_1)
    with pytest.raises(CorruptFile, match="no path inside the table"):
        table.upsert(rows("c"))
    assert victim.read_bytes() == b"precious"


def test_markers_do_not_delete_outside_the_table(tmp_path):
    table, victim = table_beside_a_victim(tmp_path)
    (failed,) = table.state().timeline.pending()
    folder = tmp_path / "table" / ".hoodie" / ".temp" / failed.requested
    (folder / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
    (folder / "MARKERS0").write_text(f"../victim/{victim.name}.marker.CREATE\n")
    with pytest.raises(CorruptFile, match="no path inside the table"):
        read_markers(table.storage, failed.requested)
    table.upsert(rows("c"))  # markers that cannot be read are no plan: what the write left is looked for
    assert victim.read_bytes() == b"precious"
    assert sorted(table.snapshot()["id"].to_pylist()) == ["a", "c"]
    assert examine(table.storage, grace=0) == ()


def test_a_link_among_the_markers_does_not_lead_outside_the_table(tmp_path):
    table, victim = table_beside_a_victim(tmp_path, "f_0-0-0_20240101000000000.parquet.marker.CREATE")
    (failed,) = table.state().timeline.pending()
    (tmp_path / "table" / ".hoodie" / ".temp" / failed.requested / "link").symlink_to(victim.parent)
    table.upsert(rows("c"))
    assert victim.read_bytes() == b"precious"


@pytest.mark.parametrize("path", [path for path in OUTSIDE if path != "a/./b"])
def test_storage_itself_refuses_to_leave_the_table(tmp_path, path):
    for storage in (MemoryStorage(), LocalStorage(tmp_path)):
        for act in (storage.read, storage.delete, storage.delete_tree, storage.size, storage.exists):
            with pytest.raises(InvalidInput):
                act(path)


# --- code ---

EVIL = "hoodie_test_evil"


@pytest.fixture
def evil(tmp_path, monkeypatch):
    """A module that must not be imported."""
    (tmp_path / f"{EVIL}.py").write_text("class Thing:\n    def merge(self, older, newer):\n        return newer\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    assert EVIL not in sys.modules


@pytest.mark.usefixtures("evil")
@pytest.mark.parametrize(
    "key",
    [
        "hoodie.compaction.record.merger.python.class",
        "hoodie.datasource.write.record.merger.impls",
        "hoodie.compaction.payload.class",
        "hoodie.table.keygenerator.class",
        "hoodie.record.merge.strategy.id",
        "hoodie.compaction.strategy",
        "hoodie.index.class",
    ],
)
def test_code_that_the_settings_of_a_table_name_is_not_imported(key):
    table = ArrowTable.create(MemoryStorage(), {**OPTIONS, **MERGE_ON_READ})
    table.upsert(rows("a"))
    table.upsert(rows("a", ts=2))
    kept = [line for line in table.storage.read(PROPERTIES).splitlines() if not line.startswith(f"{key}=".encode())]
    table.storage.write(PROPERTIES, b"\n".join([*kept, f"{key}={EVIL}\\:Thing".encode(), b""]))
    for act in (
        table.snapshot,
        lambda: table.upsert(rows("a", ts=3)),
        lambda: schedule_compaction(
            table.storage, Settings.of({**table.options, "hoodie.compact.inline.max.delta.commits": "1"})
        ),
        lambda: compact(table.storage, Settings.read(table.options)),
    ):
        try:
            act()
        except (InvalidOption, TableMismatch, UnsupportedTable, CorruptFile) as error:
            assert EVIL in str(error)  # noqa: PT017


@pytest.mark.usefixtures("evil")
def test_code_that_a_plan_names_is_not_imported():
    table = ArrowTable.create(MemoryStorage(), {**OPTIONS, **MERGE_ON_READ})
    table.upsert(rows("a"))
    table.upsert(rows("a", ts=2))
    at = schedule_compaction(
        table.storage, Settings.of({**table.options, "hoodie.compact.inline.max.delta.commits": "1"})
    )
    state = table.state()
    plan = read_compaction_plan(table.storage, state.timeline, state.timeline.pending_compactions[0])
    named = plans.CompactionPlan(operations=plan.operations, strategy=plans.PlanStrategy(name=f"{EVIL}:Thing"))
    table.storage.write(f".hoodie/{at}.compaction.requested", encode_compaction_plan(named))
    compact(table.storage, Settings.read(table.options))
    assert table.snapshot().num_rows == 1


#: Where names become code: mergers, strategies and indexes that the caller's options name, and what loads them; the
#: package's own modules.
LOADERS = {
    "__init__.py", "spark/__init__.py", "config/import_path.py", "index/own.py", "merge/merger.py",
    "plan/compaction_strategies.py", "cli/main.py", "sources/register.py",
    "statements/parameters.py", "index/choose.py",
}  # fmt: skip  # the last ones load names out of tables of the library, none that a user or a table gives


LOADING = ("eval", "exec", "compile", "__import__", "load", "loads", "import_module", "imported")


def last_name(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def test_names_become_code_in_a_few_places_only_and_bytes_nowhere():
    loaders = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not last_name(node.func).endswith(LOADING):
                continue
            called = ast.unparse(node.func)
            assert called not in {"eval", "exec", "compile", "__import__", "yaml.load", "marshal.loads"}, path
            if called.endswith(("import_module", "imported")):
                loaders.add(str(path.relative_to(SOURCE)))
            if called.startswith("pickle.load"):  # tasks on their way from driver to executor, and suites that try it
                assert path.relative_to(SOURCE).parts[0] in {"spark", "testing"}, path
    assert loaders <= LOADERS
