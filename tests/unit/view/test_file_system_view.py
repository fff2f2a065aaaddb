"""Which files a reader and a writer see: each rule with values."""

import io
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.config.table import TableConfig
from hoodie.errors import CorruptFile, MetafileMissing
from hoodie.formats.timeline.commit_json import encode_commit
from hoodie.formats.timeline.plans import encode_compaction_plan, encode_replace_plan
from hoodie.model import plans
from hoodie.model.commit import CommitMetadata, Operation
from hoodie.model.files import FileGroupId, FileSlice, base_file_name, log_file_name, parse_data_file
from hoodie.model.instant import Action, Instant, State
from hoodie.testing.storage import CountingStorage, MemoryStorage
from hoodie.timeline.load import load_timeline
from hoodie.timeline.timeline import Timeline
from hoodie.view.load import build_view, discover_partitions, list_folders, load_view
from hoodie.view.slices import (
    committed_slices,
    latest_base_files,
    latest_slices,
    merged_slices,
)

V6 = TableConfig(name="t", version=6, layout=1)
F = FileGroupId("p", "f")
METAFILE = ".hoodie_partition_metadata"

commit = Action.COMMIT
delta = Action.DELTA_COMMIT
replaced = Action.REPLACE_COMMIT


def done(*times, action=commit, completed=None):
    return [Instant(time, action, State.COMPLETED, completed or "") for time in times]


def pending(*times, action=commit, state=State.INFLIGHT):
    return [Instant(time, action, state) for time in times]


def timeline(*instants, **more):
    return Timeline(tuple(sorted(instant for group in instants for instant in group)), **more)


def base(instant, file_id="f", token="0-0-0", partition="p"):
    return parse_data_file(partition, base_file_name(file_id, token, instant), 10)


def log(instant, version=1, file_id="f", suffix=""):
    return parse_data_file("p", log_file_name(file_id, instant, version, "0-0-0") + suffix, 10)


def compaction(time, *file_ids, state=State.REQUESTED):
    operations = tuple(
        plans.CompactionOperation(group=FileGroupId("p", file_id), base_instant="", base_file="", log_files=())
        for file_id in file_ids
    )
    return Instant(time, Action.COMPACTION, state), plans.CompactionPlan(operations=operations)


def clustering(time, *file_ids):
    slices = tuple(plans.ClusteringSlice(group=FileGroupId("p", file_id), base_file="") for file_id in file_ids)
    plan = plans.ReplacePlan(
        operation="CLUSTER", clustering=plans.ClusteringPlan(groups=(plans.ClusteringGroup(slices=slices),))
    )
    return Instant(time, replaced, State.INFLIGHT), plan


def replacing(time, *file_ids):
    metadata = CommitMetadata(operation=Operation.INSERT_OVERWRITE, replaced={"p": file_ids})
    return Instant(time, replaced, State.COMPLETED), metadata


def shown(slices):
    """{file id: (base instant, instant of the base file, versions of the logs)}"""
    return {
        group.file_id: (s.base_instant, s.base.instant if s.base else None, [found.version for found in s.logs])
        for group, s in slices.items()
    }


def instants(files):
    return {group.file_id: file.instant for group, file in files.items()}


# --- base files ---


def test_the_newest_committed_base_file_counts():
    view = build_view(timeline(done("1", "3"), pending("5")), [base("1"), base("3"), base("5")])
    assert instants(latest_base_files(view)) == {"f": "3"}
    assert shown(merged_slices(view)) == {"f": ("3", "3", [])}


def test_files_of_a_write_that_failed_within_the_timeline_are_hidden():
    view = build_view(timeline(done("1", "3")), [base("1"), base("2"), base("2", "g")])
    assert instants(latest_base_files(view)) == {"f": "1"}


def test_files_older_than_the_timeline_are_seen():
    view = build_view(timeline(done("5", "6")), [base("1"), base("2", "g"), base("6", "g")])
    assert instants(latest_base_files(view)) == {"f": "1", "g": "6"}


def test_files_of_an_inflight_commit_are_hidden_even_when_it_is_the_oldest():
    view = build_view(timeline(pending("1"), done("2")), [base("1"), base("2", "g")])
    assert instants(latest_base_files(view)) == {"g": "2"}


def test_base_files_as_of_an_instant():
    view = build_view(timeline(done("1", "3", "5")), [base("1"), base("3"), base("5"), base("5", "g")])
    assert instants(latest_base_files(view, "4")) == {"f": "3"}
    assert instants(latest_base_files(view, "5")) == {"f": "5", "g": "5"}
    assert latest_base_files(view, "0") == {}


def test_of_two_attempts_at_one_file_the_choice_is_the_same_each_time():
    files = [base("1", token="0-0-1"), base("1", token="0-0-0")]
    for order in (files, files[::-1]):
        assert latest_base_files(build_view(timeline(done("1")), order))[F].token == "0-0-1"


# --- replaced groups ---


def test_replaced_groups_are_seen_only_before_they_were_replaced():
    view = build_view(
        timeline(done("1"), done("2", action=replaced), done("3")),
        [base("1"), base("2", "g")],
        replaces=[replacing("2", "f")],
    )
    assert instants(latest_base_files(view)) == instants(latest_base_files(view, "2")) == {"g": "2"}
    assert instants(latest_base_files(view, "1")) == {"f": "1"}
    assert shown(merged_slices(view)) == shown(latest_slices(view)) == {"g": ("2", "2", [])}
    assert shown(merged_slices(view, "1")) == {"f": ("1", "1", [])}
    assert committed_slices(view, F) == (FileSlice(F, "1", base("1")),)


def test_of_two_replacements_the_later_one_counts():
    view = build_view(
        timeline(done("1"), done("2", "4", action=replaced)),
        [base("1")],
        replaces=[replacing("4", "f"), replacing("2", "f")],
    )
    assert view.replaced == {F: "4"}
    assert instants(latest_base_files(view, "3")) == {"f": "1"}


# --- logs, up to version 6 ---


def test_logs_belong_to_the_base_instant_in_their_name():
    files = [base("1"), log("1", 2), log("1", 1), log("1", 10), base("3"), log("3")]
    view = build_view(timeline(done("1", "3"), done("2", "4", action=delta)), files)
    assert shown(merged_slices(view)) == {"f": ("3", "3", [1])}
    assert shown(merged_slices(view, "2")) == {"f": ("1", "1", [1, 2, 10])}


def test_logs_of_a_pending_delta_commit_are_left_to_the_log_reader():
    view = build_view(timeline(done("1", action=delta), pending("2", action=delta)), [base("1"), log("1")])
    assert shown(merged_slices(view)) == {"f": ("1", "1", [1])}


def test_a_log_from_before_a_downgrade_by_hudi_belongs_to_the_slice_before_its_delta_commit():
    """Hudi compacts before it changes the version, and leaves the names of logs as they are."""
    found = timeline(done("1", "2", "5", action=delta), done("3", "6"))
    view = build_view(found, [base("1"), log("2"), base("3"), log("5"), base("6")])
    assert [(s.base_instant, [own.base_instant for own in s.logs]) for s in committed_slices(view, F)] == [
        ("1", ["2"]),
        ("3", ["5"]),
        ("6", []),
    ]
    assert shown(merged_slices(view, "5")) == {"f": ("3", "3", [1])}


def test_a_slice_may_have_logs_only():
    view = build_view(timeline(done("1", action=delta)), [log("1"), log("1", 2), log("2", file_id="g")])
    assert shown(merged_slices(view)) == {"f": ("1", None, [1, 2])}
    assert latest_base_files(view) == {}


def test_change_data_is_beside_the_slices():
    view = build_view(timeline(done("1", "2")), [base("1"), base("2"), log("2", suffix=".cdc")])
    assert shown(merged_slices(view)) == {"f": ("2", "2", [])}
    assert [found.name for found in view.groups[F].changes] == [".f_2.log.1_0-0-0.cdc"]


# --- pending compactions ---


def pending_compaction(*files, **more):
    plan = compaction("3", "f", **more)
    return build_view(
        timeline(done("1", "2", "4", action=delta), [plan[0]]), [base("1"), log("1"), *files], compactions=[plan]
    )


def test_a_pending_compaction_opens_an_empty_slice_for_writers():
    view = pending_compaction()
    assert shown(latest_slices(view)) == {"f": ("3", None, [])}
    assert shown(merged_slices(view)) == {"f": ("1", "1", [1])}


def test_readers_join_the_slice_of_a_pending_compaction_to_the_one_before():
    view = pending_compaction(log("3"))
    assert shown(latest_slices(view)) == {"f": ("3", None, [1])}
    (joined,) = merged_slices(view).values()
    assert (joined.base_instant, joined.base.instant) == ("1", "1")
    assert [found.base_instant for found in joined.logs] == ["1", "3"]
    assert shown(merged_slices(view, "2")) == {"f": ("1", "1", [1])}
    assert shown(merged_slices(view, "4")) == {"f": ("1", "1", [1, 1])}


def test_the_base_file_that_a_pending_compaction_is_writing_is_hidden():
    view = pending_compaction(base("3"), log("3"), state=State.INFLIGHT)
    assert instants(latest_base_files(view)) == {"f": "1"}
    assert shown(latest_slices(view)) == {"f": ("3", None, [1])}
    assert shown(merged_slices(view)) == {"f": ("1", "1", [1, 1])}


def test_the_compaction_of_one_group_leaves_others_alone():
    view = pending_compaction(base("1", "g"))
    assert shown(latest_slices(view))["g"] == ("1", "1", [])


def test_after_its_compaction_the_slice_is_one_like_others():
    view = build_view(
        timeline(done("1", "2", "4", action=delta), done("3")), [base("1"), log("1"), base("3"), log("3")]
    )
    assert shown(merged_slices(view)) == shown(latest_slices(view)) == {"f": ("3", "3", [1])}


def test_a_compaction_whose_input_is_gone_shows_no_half_written_file():
    plan = compaction("3", "f", state=State.INFLIGHT)
    view = build_view(timeline(done("1", action=delta), [plan[0]]), [base("3")], compactions=[plan])
    assert merged_slices(view) == latest_base_files(view) == {}
    assert shown(latest_slices(view)) == {"f": ("3", None, [])}


def test_a_group_in_two_pending_compactions_is_corrupt():
    with pytest.raises(CorruptFile, match=r"4\.compaction\.requested"):
        build_view(Timeline(), [], compactions=[compaction("3", "f"), compaction("4", "f")])


# --- pending clusterings ---


def test_files_of_a_pending_clustering_are_hidden_and_its_inputs_are_not():
    plan = clustering("3", "f")
    view = build_view(timeline(done("1", "4"), [plan[0]]), [base("1"), base("3", "new")], clusterings=[plan])
    assert instants(latest_base_files(view)) == {"f": "1"}
    assert shown(merged_slices(view)) == shown(latest_slices(view)) == {"f": ("1", "1", [])}
    assert view.clustering == {F: "3"}


def test_a_clustering_older_than_the_timeline_is_hidden_too():
    plan = clustering("1", "f")
    view = build_view(timeline([plan[0]], done("4")), [base("1", "new"), base("4")], clusterings=[plan])
    assert instants(latest_base_files(view)) == {"f": "4"}


@pytest.mark.parametrize(
    "plan",
    [plans.ReplacePlan(), plans.ReplacePlan(operation="CLUSTER"), replace(clustering("3", "f")[1], operation="INSERT")],
)
def test_a_pending_insert_overwrite_is_no_clustering(plan):
    overwrite = (Instant("3", replaced, State.INFLIGHT), plan)
    view = build_view(timeline(done("1"), [overwrite[0]]), [base("1"), base("3", "g")], clusterings=[overwrite])
    assert view.clustering == {}
    assert instants(latest_base_files(view)) == {"f": "1"}


# --- from version 8 on: a log's slice follows from completion times ---


def layout_two(*instants, history=None):
    return timeline(*instants, layout=2, folder=".hoodie/timeline", history=history or {})


def test_a_log_belongs_to_the_newest_slice_that_began_before_it_completed():
    found = layout_two(
        done("10", action=delta, completed="11"),
        done("20", action=delta, completed="35"),
        done("30", completed="40"),
        done("50", action=delta, completed="51"),
    )
    view = build_view(found, [base("10"), log("20"), base("30"), log("50", 1)])
    (slice_,) = merged_slices(view).values()
    assert slice_.base_instant == "30"
    assert [file.base_instant for file in slice_.logs] == ["20", "50"]
    assert shown(merged_slices(view, "20")) == {"f": ("10", "10", [1])}
    assert shown(merged_slices(view, "10")) == {"f": ("10", "10", [])}


def test_a_log_that_completed_as_a_slice_began_belongs_to_it():
    found = layout_two(done("10", "30", completed="31"), done("20", action=delta, completed="30"))
    assert shown(merged_slices(build_view(found, [base("10"), base("30"), log("20")]))) == {"f": ("30", "30", [1])}


def test_a_log_that_completed_before_all_slices_begins_its_own():
    found = layout_two(done("10", action=delta, completed="11"), done("20", action=delta, completed="21"))
    view = build_view(found, [log("10"), log("20")])
    assert shown(merged_slices(view)) == {"f": ("10", None, [1, 1])}
    older = layout_two(done("10", action=delta, completed="11"), done("20", completed="21"))
    assert [s.base_instant for s in committed_slices(build_view(older, [log("10"), base("20")]), F)] == ["10", "20"]


def test_logs_and_bases_of_pending_writes_are_left_out():
    found = layout_two(done("10", action=delta, completed="11"), pending("20", action=delta), pending("30"))
    view = build_view(found, [base("10"), log("20"), base("30")])
    assert shown(merged_slices(view)) == {"f": ("10", "10", [])}


def test_instants_that_left_the_timeline_count_by_the_history_only():
    found = layout_two(done("50", completed="51"), history={"10": "11", "30": "31"})
    view = build_view(found, [base("10"), log("30"), base("20", "rolled-back")])
    assert shown(merged_slices(view)) == {"f": ("10", "10", [1])}


def test_in_layout_two_too_a_pending_compaction_takes_new_logs():
    plan = compaction("30", "f")
    found = layout_two(done("10", action=delta, completed="11"), done("20", action=delta, completed="35"), [plan[0]])
    view = build_view(found, [base("10"), log("20")], compactions=[plan])
    assert shown(latest_slices(view)) == {"f": ("30", None, [1])}
    assert shown(merged_slices(view)) == {"f": ("10", "10", [1])}


def test_logs_of_version_6_behind_a_pending_compaction_belong_to_the_slice_that_it_opens():
    """An upgrade leaves the names as they are: they have the compaction's instant."""
    plan = compaction("30", "f")
    found = layout_two(done("10", action=delta, completed="11"), [plan[0]], done("50", action=delta, completed="51"))
    view = build_view(found, [base("10"), log("30"), log("50")], compactions=[plan])
    assert shown(latest_slices(view)) == {"f": ("30", None, [1, 1])}
    assert shown(merged_slices(view)) == {"f": ("10", "10", [1, 1])}


# --- gathering ---


def table(*names, **timeline_files):
    files = {f".hoodie/{name.replace('__', '.')[1:]}": data for name, data in timeline_files.items()}
    return MemoryStorage(files | dict.fromkeys(names, b"x" * 10))


def view_of(storage, partitions=None):
    return load_view(storage, load_timeline(storage, V6), V6, partitions)


def test_a_folder_with_a_metafile_is_a_partition():
    storage = table(
        f"2024/01/{METAFILE}",
        f"2024/02/{METAFILE}.parquet",
        f"2024/02/below/{METAFILE}",  # not looked into
        "2024/03/f_0-0-0_1.parquet",  # without metafile it counts only if commits name it
        f"a=1/{METAFILE}.orc",
        f"a=1 /{METAFILE}",
        f".hoodie/metadata/files/{METAFILE}",
    )
    found = list_folders(storage)
    assert sorted(found.marked) == ["2024/01", "2024/02", "a=1", "a=1 "]
    assert sorted(found.unmarked) == ["2024/03"]
    # Those who look for files of a failed write look into all.
    assert discover_partitions(storage) == ["2024/01", "2024/02", "2024/03", "a=1", "a=1 "]


def test_the_base_path_is_the_partition_of_a_table_without():
    storage = table(METAFILE, "f_0-0-0_1.parquet", f"x/{METAFILE}", _1__commit=b"")
    assert discover_partitions(storage) == [""]
    (file,) = latest_base_files(view_of(storage)).values()
    assert (file.path, file.size, file.group) == ("f_0-0-0_1.parquet", 10, FileGroupId("", "f"))


def test_reading_n_partitions_lists_n_times():
    names = [f"{p}/{name}" for p in "abcd" for name in (METAFILE, f"f{p}_0-0-0_1.parquet")]
    storage = CountingStorage(table(*names, _1__commit=b""))
    found = load_timeline(storage, V6)
    storage.reset()
    view = load_view(storage, found, V6, ["a", "c", "missing"])
    assert sorted(group.partition for group in latest_base_files(view)) == ["a", "c"]
    assert storage.count() == storage.count("list") == 3
    storage.reset()
    assert len(latest_base_files(load_view(storage, found, V6))) == 4
    assert storage.count() == storage.count("list_tree") == 1


V8 = TableConfig(name="t", version=8, layout=2)


def table_with_history(*names: str) -> CountingStorage:
    """Files beside a timeline with instant 5 and a history with instant 1."""
    rows = io.BytesIO()
    pq.write_table(pa.table({"instantTime": ["1"], "completionTime": ["2"]}), rows)
    timeline = {
        ".hoodie/timeline/history/_version_": b"1",
        ".hoodie/timeline/history/manifest_1": b'{"files":[{"fileName":"1_1_0.parquet"}]}',
        ".hoodie/timeline/history/1_1_0.parquet": rows.getvalue(),
        ".hoodie/timeline/5_6.commit": b"",
    }
    return CountingStorage(MemoryStorage(dict.fromkeys(names, b"") | timeline))


def test_in_layout_two_the_history_is_read_for_files_that_are_older_than_the_timeline():
    names = [f"p/{METAFILE}", "p/f_0-0-0_1.parquet", "p/rolledback_0-0-0_2.parquet", "p/g_0-0-0_5.parquet"]
    storage, config = table_with_history(*names), V8
    view = load_view(storage, load_timeline(storage, config), config)
    assert instants(latest_base_files(view)) == {"f": "1", "g": "5"}
    assert view.timeline.history == {"1": "2"}
    storage.reset()
    storage.delete("p/f_0-0-0_1.parquet")
    storage.delete("p/rolledback_0-0-0_2.parquet")
    load_view(storage, load_timeline(storage, config), config)
    assert storage.count("read") == storage.count("open_input") == 0


def test_in_layout_two_a_folder_without_metafile_is_told_of_when_its_files_are_of_the_history():
    storage = table_with_history("p/f_0-0-0_1.parquet", "q/rolledback_0-0-0_2.parquet")
    with pytest.warns(MetafileMissing, match="it is not read") as told:
        assert load_view(storage, load_timeline(storage, V8), V8).groups == {}
    assert [str(warning.message).split(" has")[0] for warning in told] == ["partition 'p'"]


def test_a_partition_asked_for_without_metafile_is_none():
    storage = table("p/f_0-0-0_1.parquet", _1__commit=b"")
    with pytest.warns(MetafileMissing, match="it is not read"):
        assert view_of(storage, ["p"]).groups == {}


@pytest.mark.parametrize("content", [b"", b"{}"])
def test_an_empty_replace_commit_is_refused_where_rows_that_it_may_have_replaced_would_be_read_again(content: bytes):
    files = [f"p/{METAFILE}", "p/f_0-0-0_1.parquet", "p/g_0-0-0_2.parquet", f"q/{METAFILE}", "q/h_0-0-0_2.parquet"]
    storage = table(*files, _1__commit=b"", _2__replacecommit=content)
    for partitions in (None, ["p"]):
        with pytest.raises(CorruptFile, match=r"2\.replacecommit: it is empty, so .* p/f_0-0-0_1\.parquet"):
            view_of(storage, partitions)
    assert instants(latest_base_files(view_of(storage, ["q"]))) == {"h": "2"}


def test_an_empty_clustering_replaced_what_its_plan_names_but_the_file_groups_that_it_wrote():
    groups = [plans.ClusteringSlice(group=FileGroupId("p", name), base_file="x") for name in ("f", "g")]
    plan = plans.ReplacePlan(
        operation="CLUSTER", clustering=plans.ClusteringPlan(groups=(plans.ClusteringGroup(slices=tuple(groups)),))
    )
    requested = encode_replace_plan(plan, "/base")
    files = [f"p/{METAFILE}", *(f"p/{name}_0-0-0_1.parquet" for name in "fgh"), "p/g_0-0-0_2.parquet"]
    storage = table(*files, _1__commit=b"", _2__replacecommit__requested=requested, _2__replacecommit=b"")
    assert instants(latest_base_files(view_of(storage))) == {"g": "2", "h": "1"}


def test_a_table_after_crashes_shows_what_was_committed():
    """Files older than the timeline, a crashed write, a pending commit, a pending and a completed replace commit."""
    replaced_by = encode_commit(CommitMetadata(operation=Operation.INSERT_OVERWRITE, replaced={"p": ("gone",)}))
    clusters = plans.ClusteringPlan(
        groups=(plans.ClusteringGroup(slices=(plans.ClusteringSlice(group=F, base_file="x"),)),)
    )
    storage = table(
        f"p/{METAFILE}",
        "p/old_0-0-0_1.parquet",
        "p/f_0-0-0_3.parquet",
        "p/f_0-0-0_4.parquet",  # crashed, and nothing of it is left on the timeline
        "p/gone_0-0-0_3.parquet",
        "p/f_0-0-0_6.parquet",  # pending commit
        "p/new_0-0-0_7.parquet",  # pending clustering
        "p/over_0-0-0_8.parquet",  # pending insert overwrite
        "p/.old_1.log.1_0-0-0",
        "p/.old_9.log.1_0-0-0",  # after the pending compaction
        _3__commit=b"",
        _3__inflight=b"",
        _5__replacecommit=replaced_by,
        _6__inflight=b"",
        _7__replacecommit__requested=encode_replace_plan(
            plans.ReplacePlan(operation="CLUSTER", clustering=clusters), "/base"
        ),
        _8__replacecommit__requested=b"",
        _8__replacecommit__inflight=b"",
        _9__compaction__requested=encode_compaction_plan(
            plans.CompactionPlan(
                operations=(
                    plans.CompactionOperation(
                        group=FileGroupId("p", "old"), base_instant="1", base_file="", log_files=()
                    ),
                )
            )
        ),
    )
    view = view_of(storage)
    assert shown(merged_slices(view)) == {"old": ("1", "1", [1, 1]), "f": ("3", "3", [])}
    assert shown(latest_slices(view)) == {"old": ("9", None, [1]), "f": ("3", "3", [])}
    assert shown(merged_slices(view, "3")) == {
        "old": ("1", "1", [1]),
        "f": ("3", "3", []),
        "gone": ("3", "3", []),
    }
    assert (view.compacting, view.clustering) == ({FileGroupId("p", "old"): "9"}, {F: "7"})
    assert view.partitions == ("p",)


@pytest.mark.parametrize(
    "files", [{"_1__compaction__requested": b""}, {"_1__replacecommit": b"{"}, {"_1__replacecommit__requested": b"{}"}]
)
def test_a_plan_that_cannot_be_read_is_not_passed_over(files):
    with pytest.raises(CorruptFile, match=r"\.hoodie/1\."):
        view_of(table(f"p/{METAFILE}", **files))
