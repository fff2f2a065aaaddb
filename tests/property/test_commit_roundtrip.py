"""What is written to the timeline reads back as it was."""

from hypothesis import given
from hypothesis import strategies as st

from hoodie.formats.timeline import services
from hoodie.formats.timeline.commit_json import decode_commit, encode_commit
from hoodie.formats.timeline.plans import (
    decode_compaction_plan,
    decode_replace_plan,
    encode_compaction_plan,
    encode_replace_plan,
)
from hoodie.model import plans
from hoodie.model.commit import CommitMetadata, Operation, WriteStat
from hoodie.model.files import FileGroupId

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
segment = text.filter(lambda t: t not in ("", ".", "..") and "/" not in t and "\0" not in t)
partitions = st.lists(segment, max_size=3).map("/".join)
names = st.lists(segment, max_size=3).map(tuple)
counts = st.integers(0, 2**63 - 1)
ints = st.integers(0, 2**31 - 1)
texts = st.dictionaries(text, text, max_size=2)
sizes = st.dictionaries(segment, counts, max_size=2)
groups = st.builds(FileGroupId, partitions, segment)
metrics = st.dictionaries(text, st.floats(allow_nan=False), max_size=2)
strategies = st.none() | st.builds(plans.PlanStrategy, name=text, parameters=texts)
refs = st.builds(plans.InstantRef, text, text)

base_stats = st.fixed_dictionaries(
    {
        "file_id": segment | st.just(""),
        "path": partitions,
        "partition": st.none() | partitions,
        "prev_commit": text.filter(bool),
        **dict.fromkeys(
            (
                "num_writes",
                "num_deletes",
                "num_updates",
                "num_inserts",
                "total_write_bytes",
                "file_size",
                "write_errors",
                "log_records",
                "log_files_compacted",
                "log_size_compacted",
                "updated_records_compacted",
                "log_blocks",
                "corrupt_log_blocks",
                "rollback_blocks",
                "scan_time",
                "upsert_time",
                "create_time",
            ),
            counts,
        ),
        "min_event_time": st.none() | counts,
        "max_event_time": st.none() | counts,
        "cdc_stats": st.none() | st.dictionaries(segment, counts, max_size=2),
    }
)
log_parts = st.fixed_dictionaries(
    {"log_version": ints, "log_offset": counts, "base_file": segment | st.just(""), "log_files": names}
)
stats = st.builds(lambda base, log: WriteStat(**base, **log), base_stats, st.just({}) | log_parts)
commits = st.builds(
    CommitMetadata,
    operation=st.sampled_from(Operation),
    stats=st.dictionaries(partitions, st.lists(stats, max_size=3).map(tuple), max_size=3),
    replaced=st.dictionaries(partitions, names, max_size=2),
    extra=texts,
    compacted=st.booleans(),
)


@given(commits)
def test_commit_metadata_reads_back(metadata):
    assert decode_commit(encode_commit(metadata), "x") == metadata


compactions = st.builds(
    plans.CompactionPlan,
    operations=st.lists(
        st.builds(
            plans.CompactionOperation,
            group=groups,
            base_instant=text,
            base_file=segment | st.just(""),
            log_files=names,
            metrics=metrics,
        ),
        max_size=3,
    ).map(tuple),
    extra=texts,
    strategy=strategies,
    preserve_meta=st.booleans(),
)


@given(compactions)
def test_a_compaction_plan_reads_back(plan):
    assert decode_compaction_plan(encode_compaction_plan(plan), "x") == plan


clusterings = st.builds(
    plans.ClusteringPlan,
    groups=st.lists(
        st.builds(
            plans.ClusteringGroup,
            slices=st.lists(
                st.builds(plans.ClusteringSlice, group=groups, base_file=segment | st.just(""), log_files=names),
                max_size=2,
            ).map(tuple),
            metrics=metrics,
            outputs=ints,
            extra=texts,
        ),
        max_size=2,
    ).map(tuple),
    strategy=strategies,
    extra=texts,
    preserve_meta=st.booleans(),
)


@given(st.builds(plans.ReplacePlan, operation=text, clustering=st.none() | clusterings, extra=texts))
def test_a_replace_plan_reads_back(plan):
    assert decode_replace_plan(encode_replace_plan(plan, "s3://bucket/table"), "x") == plan


@given(
    st.builds(
        plans.CleanPlan,
        policy=text,
        earliest=st.none() | st.tuples(text, text, text),
        last_completed=text,
        files=st.dictionaries(partitions, names, max_size=2),
        partitions=st.lists(partitions, max_size=2).map(tuple),
        extra=texts,
    )
)
def test_a_clean_plan_reads_back(plan):
    assert services.decode_clean_plan(services.encode_clean_plan(plan, "/base"), "x") == plan


@given(
    st.builds(
        plans.CleanMetadata,
        start=text,
        millis=counts,
        earliest=text,
        last_completed=text,
        partitions=st.dictionaries(
            partitions,
            st.builds(
                plans.CleanedPartition, policy=text, planned=names, deleted=names, failed=names, removed=st.booleans()
            ),
            max_size=2,
        ),
        extra=texts,
    )
)
def test_clean_metadata_reads_back(metadata):
    assert services.decode_clean_metadata(services.encode_clean_metadata(metadata), "x") == metadata


@given(
    st.builds(
        plans.RollbackPlan,
        instant=refs,
        requests=st.lists(
            st.builds(
                plans.RollbackRequest,
                partition=partitions,
                file_id=text,
                base_instant=text,
                delete=names,
                log_blocks=sizes,
            ),
            max_size=2,
        ).map(tuple),
    )
)
def test_a_rollback_plan_reads_back(plan):
    assert services.decode_rollback_plan(services.encode_rollback_plan(plan, "hdfs://name/base/"), "x") == plan


rollbacks = st.builds(
    plans.RollbackMetadata,
    start=text,
    millis=counts,
    files_deleted=ints,
    commits=st.lists(text, max_size=2).map(tuple),
    partitions=st.dictionaries(
        partitions,
        st.builds(plans.RolledBackPartition, deleted=names, failed=names, command_logs=sizes, failed_logs=sizes),
        max_size=2,
    ),
    instants=st.lists(refs, max_size=2).map(tuple),
)


@given(rollbacks)
def test_rollback_metadata_reads_back(metadata):
    assert services.decode_rollback_metadata(services.encode_rollback_metadata(metadata, "/base"), "x") == metadata


@given(
    st.builds(
        plans.SavepointMetadata,
        by=text,
        at=counts,
        comments=text,
        files=st.dictionaries(partitions, names, max_size=2),
    )
)
def test_a_savepoint_reads_back(metadata):
    assert services.decode_savepoint(services.encode_savepoint(metadata), "x") == metadata


@given(st.builds(plans.RestorePlan, instants=st.lists(refs, max_size=2).map(tuple), savepoint=text))
def test_a_restore_plan_reads_back(plan):
    assert services.decode_restore_plan(services.encode_restore_plan(plan), "x") == plan


@given(
    st.builds(
        plans.RestoreMetadata,
        start=text,
        millis=counts,
        instants=st.lists(text, max_size=2).map(tuple),
        rollbacks=st.dictionaries(text, st.lists(rollbacks, max_size=2).map(tuple), max_size=2),
        refs=st.lists(refs, max_size=2).map(tuple),
    )
)
def test_restore_metadata_reads_back(metadata):
    assert services.decode_restore_metadata(services.encode_restore_metadata(metadata, "/base"), "x") == metadata
