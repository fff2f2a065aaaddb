"""Every timeline file of the real tables reads, and what is written from it says the same."""

import io
import json
import zipfile
from functools import cache

import fastavro
import pytest

from hoodie.config.table import from_properties, require_readable
from hoodie.errors import CorruptFile, UnsupportedTable
from hoodie.formats.avro.container import is_container
from hoodie.formats.java.properties import parse_properties
from hoodie.formats.timeline import services
from hoodie.formats.timeline.commit_avro import decode_avro_commit
from hoodie.formats.timeline.commit_json import decode_commit, encode_commit, encode_inflight
from hoodie.formats.timeline.plans import (
    decode_compaction_plan,
    decode_replace_plan,
    encode_compaction_plan,
    encode_replace_plan,
)
from hoodie.model.instant import State
from hoodie.storage.local import LocalStorage
from hoodie.timeline.load import load_timeline, read_commit
from hoodie.timeline.timeline import parse_name
from support.oracles import TABLES, fixture_facts, fixture_names

# Avro files by the end of their name: reading, and writing with the base path that the file's paths begin with.
AVRO = {
    "clean.requested": (services.decode_clean_plan, services.encode_clean_plan),
    "clean.inflight": (services.decode_clean_plan, services.encode_clean_plan),
    "clean": (services.decode_clean_metadata, lambda value, root: services.encode_clean_metadata(value)),
    "rollback.requested": (services.decode_rollback_plan, services.encode_rollback_plan),
    "rollback": (services.decode_rollback_metadata, services.encode_rollback_metadata),
    "savepoint": (services.decode_savepoint, lambda value, root: services.encode_savepoint(value)),
    "compaction.requested": (
        decode_compaction_plan,
        lambda value, root: encode_compaction_plan(value),
    ),
    "replacecommit.requested": (decode_replace_plan, encode_replace_plan),
    "clustering.requested": (decode_replace_plan, encode_replace_plan),
}


@cache
def timeline_files():
    """(path, kind, content) of every instant file that is not empty, those of metadata tables included."""
    found = []
    for archive in sorted(TABLES.glob("*/*.zip")):
        with zipfile.ZipFile(archive) as file:
            for path in file.namelist():
                folder, _, name = path.rpartition("/")
                if not folder.endswith((".hoodie", ".hoodie/timeline")) or "__MACOSX" in folder:
                    continue
                if name[:1].isdigit() and (data := file.read(path)):
                    found.append((path, name.partition(".")[2], data))
    return found


def test_there_are_files_of_all_kinds():
    kinds = {kind for _, kind, data in timeline_files()}
    assert kinds >= {*AVRO, "commit", "deltacommit", "replacecommit", "inflight", "deltacommit.inflight"}
    assert len(timeline_files()) > 400


def test_every_name_is_an_instants():
    for path, _, _ in timeline_files():
        folder, _, name = path.rpartition("/")
        assert parse_name(name, 2 if folder.endswith("timeline") else 1, folder) is not None


def test_plans_and_results_say_the_same_after_writing():
    for path, kind, data in timeline_files():
        if kind in AVRO:
            decode, encode = AVRO[kind]
            before = record(data)
            value = decode(data, path)
            written = encode(value, root_of(before))
            assert decode(written, path) == value
            assert record(written) == before, path


def record(data):
    (found,) = fastavro.reader(io.BytesIO(data))
    return plain(found)


def plain(value):
    """Null, absent and empty are one, and a path is the same with its scheme or without: real files mix them."""
    if isinstance(value, dict):
        return {plain(key): said for key, found in value.items() if (said := plain(found)) not in ("", [], {})}
    if isinstance(value, list):
        return [plain(found) for found in value]
    if isinstance(value, str):
        return value.removeprefix("file:").removeprefix("//")
    return value if value is not None else ""


def root_of(value):
    """The base path of the machine that wrote absolute paths."""
    text = json.dumps(value)
    for start in ('"hdfs:/', '"/'):
        if start in text:
            path = text[text.index(start) + 1 :].partition('"')[0]
            partition = next((p for p in partitions_of(value) if f"/{p}/" in path), "")
            return path.rpartition("/")[0].removesuffix(f"/{partition}") if partition else path.rpartition("/")[0]
    return "/"


def partitions_of(value):
    if isinstance(value, dict):
        for key, found in value.items():
            if key == "partitionPath" and found:
                yield found
            elif key == "filePathsToBeDeletedPerPartition" and found:
                yield from found
            yield from partitions_of(found)
    elif isinstance(value, list):
        for found in value:
            yield from partitions_of(found)


def test_containers_are_written_as_hudi_writes_them():
    for path, kind, data in timeline_files():
        if kind == "compaction.requested":
            written = encode_compaction_plan(decode_compaction_plan(data, path))
            reader = fastavro.reader(io.BytesIO(written))
            assert list(reader.metadata) == ["avro.schema"]
            schema = json.loads(reader.metadata["avro.schema"])
            assert (schema["namespace"], schema["name"]) == ("org.apache.hudi.avro.model", "HoodieCompactionPlan")


def test_commits_say_the_same_after_writing():
    for path, kind, data in timeline_files():
        if is_container(data):
            continue
        before = json.loads(data)
        metadata = decode_commit(data, path)
        after = json.loads(encode_inflight(metadata) if kind.endswith("inflight") else encode_commit(metadata))
        assert metadata == decode_commit(encode_commit(metadata), path)
        old = "stock_ticks" in path or "non_part_cow" in path  # versions 3 and 5 have other keys
        if not old:
            assert list(before) == list(after)
        for partition, stats in before["partitionToWriteStats"].items():
            for ours, theirs in zip(after["partitionToWriteStats"].pop(partition), stats, strict=True):
                if old:
                    assert {key: ours[key] for key in theirs} == theirs
                    continue
                assert list(ours) == list(theirs)
                theirs.pop("recordsStats", None)  # column ranges are not kept
                assert ours.pop("recordsStats", {"val": None}) == {"val": None}
                assert ours == theirs
        assert after.pop("partitionToWriteStats") == {}
        assert after == {key: before[key] for key in after}


def test_commits_of_later_versions_are_read():
    seen = 0
    for path, kind, data in timeline_files():
        if is_container(data) and kind in ("commit", "deltacommit", "replacecommit", "inflight"):
            metadata = decode_avro_commit(data, path, kind == "replacecommit")
            (before,) = fastavro.reader(io.BytesIO(data))
            stats = {
                p: [(s["path"], s["numWrites"]) for s in found] for p, found in before["partitionToWriteStats"].items()
            }
            assert {p: [(s.path, s.num_writes) for s in found] for p, found in metadata.stats.items()} == stats
            assert metadata.operation == before["operationType"]
            assert {p: list(ids) for p, ids in metadata.replaced.items()} == before.get("partitionToReplaceFileIds", {})
            seen += 1
    assert seen > 20


@pytest.mark.parametrize("name", fixture_names())
def test_the_timeline_of_a_real_table_loads(name, fixture_table):
    storage = LocalStorage(fixture_table(name))
    config = from_properties(parse_properties(storage.read(".hoodie/hoodie.properties"), name))
    require_readable(config)
    timeline = load_timeline(storage, config)
    for instant in timeline.commits:
        metadata = read_commit(storage, timeline, instant)
        for partition, stats in metadata.stats.items():
            for stat in stats:
                assert stat.partition == partition
                assert stat.path.startswith(f"{partition}/" if partition else "")
                if storage.exists(stat.path):  # not cleaned
                    assert storage.size(stat.path) == stat.file_size


@pytest.mark.parametrize("name", fixture_names("hudi-0.15"))
def test_completed_instants_are_those_that_hudi_reported(name, fixture_table):
    storage = LocalStorage(fixture_table(name))
    config = from_properties(parse_properties(storage.read(".hoodie/hoodie.properties"), name))
    timeline = load_timeline(storage, config)
    completed = [i.requested for i in timeline.commits]
    assert completed == fixture_facts(name)["completed_instants"]
    files = {timeline.path(i).removeprefix(".hoodie/") for i in timeline.instants}
    assert files <= set(fixture_facts(name)["timeline_files"])
    assert all(i.state is State.COMPLETED for i in timeline.commits)


def test_the_properties_of_metadata_tables_are_refused(fixture_table):
    path = ".hoodie/metadata/.hoodie/hoodie.properties"
    storage = LocalStorage(fixture_table("cow_metadata_table"))
    with pytest.raises(UnsupportedTable, match="HFILE"):
        from_properties(parse_properties(storage.read(path), path), path)


def test_one_kind_of_file_is_not_taken_for_another():
    first = {}
    for path, kind, data in timeline_files():
        if kind in AVRO:
            first.setdefault(kind.replace("inflight", "requested"), (path, data))
    for kind, (decode, _) in AVRO.items():
        for other, (path, data) in first.items():
            if AVRO[other][0] is not decode:
                with pytest.raises(CorruptFile):
                    decode(data, path)
        assert kind.replace("inflight", "requested") in first
