"""The procedures by name: parameters and columns as Hudi 0.15 has them, then those of later releases and of our own.

Source: tests/vectors/procedures.json.
"""

from collections.abc import Callable, Mapping

from hoodie.statements.procedures import (
    copies,
    files,
    history,
    metadata_table,
    recovery,
    repairs,
    services,
    timeline,
)
from hoodie.statements.procedures.procedure import Called, Procedure, Rows, procedure


def refuse_because(reason: str) -> Callable[[Called], Rows]:
    """A procedure that is refused, whatever its arguments."""

    def refuse(called: Called) -> Rows:
        raise called.problem(reason)

    return refuse


no_clustering = refuse_because(
    "this library plans and runs no clustering: bulk_insert with hoodie.bulkinsert.sort.mode writes rows sorted, "
    "and CALL show_clustering shows the plans of other writers"
)
no_bootstrap = refuse_because(
    "this library makes no table on top of Parquet files that stay where they are: CALL hdfs_parquet_import, or a "
    "bulk_insert of them, copies their rows into a table"
)
no_bootstrap_index = refuse_because("the table has no bootstrap index: its rows are all in its own files")
no_hive_server = refuse_because(
    "this library asks no HiveServer2: compare the counts of the two tables, and CALL hive_sync brings the entry up to "
    "date from a metastore"
)


_DISTRIBUTION = (
    "commit_time string, min long, `10th` double, `50th` double, avg double, `95th` double, max long, num_files int, "
    "std_dev double"
)
_SLICE = (
    "partition string, file_id string, base_instant string, data_file string, data_file_size long, "
    "num_delta_files long, total_delta_file_size long"
)
_SLICES_UP_TO = "max_instant string, include_max boolean = false"
_COPIED = "begin_instance_time string, end_instance_time string, as_of_instant string"
_COMPACTIONS = "timestamp string, operation_size int, state string"
_CLUSTERINGS = "timestamp string, input_group_size int, state string, involved_partitions string"

PROCEDURES: Mapping[str, Procedure] = {
    **history.PROCEDURES,
    **timeline.PROCEDURES,
    # --- going back
    "rollback_to_instant": procedure(
        "table string, instant_time! string", "rollback_result boolean", recovery.rollback_to_instant, destructive=True
    ),
    "create_savepoint": procedure(
        "table string, commit_time string, user string, comments string",
        "create_savepoint_result boolean",
        recovery.create_savepoint,
    ),
    "delete_savepoint": procedure(
        "table string, instant_time string",
        "delete_savepoint_result boolean",
        recovery.run_delete_savepoint,
        destructive=True,
    ),
    "rollback_to_savepoint": procedure(
        "table string, instant_time string",
        "rollback_savepoint_result boolean",
        recovery.rollback_to_savepoint,
        destructive=True,
    ),
    "delete_marker": procedure(
        "table string, instant_time! string", "delete_marker_result boolean", recovery.delete_marker, destructive=True
    ),
    # --- services
    "archive_commits": procedure(
        "table string, path string, min_commits int, max_commits int, retain_commits int, enable_metadata boolean",
        "result int",
        services.archive_commits,
        destructive=True,
    ),
    "run_clean": procedure(
        "table string, skip_locking boolean = false, schedule_in_line boolean = true, clean_policy string, "
        "retain_commits int, hours_retained int, file_versions_retained int, trigger_strategy string, "
        "trigger_max_commits int, options string",
        "start_clean_time string, time_taken_in_millis long, total_files_deleted int, "
        "earliest_commit_to_retain string, bootstrap_part_metadata string, version int",
        services.run_clean,
        destructive=True,
    ),
    "run_compaction": procedure(
        "op! string, table string, path string, timestamp long, options string, instants string",
        _COMPACTIONS,
        services.run_compaction,
    ),
    "show_compaction": procedure("table string, path string, limit int = 20", _COMPACTIONS, services.show_compaction),
    "run_clustering": procedure(
        "table string, path string, predicate string, order string, show_involved_partition boolean = false, "
        "op string, order_strategy string, options string, instants string, selected_partitions string",
        _CLUSTERINGS,
        no_clustering,
    ),
    "show_clustering": procedure(
        "table string, path string, limit int = 20, show_involved_partition boolean = false",
        _CLUSTERINGS,
        services.show_clustering,
    ),
    "hive_sync": procedure(
        "table string, metastore_uri string, username string, password string, use_jdbc string, mode string, "
        "partition_fields string, partition_extractor_class string, strategy string, sync_incremental string",
        "result string",
        services.hive_sync,
    ),
    "sync_validate": procedure(
        "src_table! string, dst_table! string, mode! string, hive_server_url! string, hive_pass! string, "
        "src_db string = rawdata, target_db string = dwh_hoodie, partition_cnt int = 5, hive_user string",
        "result string",
        no_hive_server,
        of_table=False,
    ),
    # --- files
    "show_fsview_all": procedure(
        f"table string, {_SLICES_UP_TO}, include_in_flight boolean = false, exclude_compaction boolean = false, "
        "limit int = 10, path_regex string = */*/*",
        f"{_SLICE}, delta_files string",
        files.fsview_all,
    ),
    "show_fsview_latest": procedure(
        f"table string, {_SLICES_UP_TO}, include_inflight boolean = false, exclude_compaction boolean = false, "
        "limit int = 10, partition_path string, merge boolean = true",
        f"{_SLICE}, delta_size_compaction_scheduled long, delta_size_compaction_unscheduled long, "
        "delta_to_base_radio_compaction_scheduled double, delta_to_base_radio_compaction_unscheduled double, "
        "delta_files_compaction_scheduled string, delta_files_compaction_unscheduled string",
        files.fsview_latest,
    ),
    "stats_file_sizes": procedure(
        "table string, partition_path string, limit int = 10", _DISTRIBUTION, files.show_file_sizes
    ),
    "show_fs_path_detail": procedure(
        "path! string, is_sub boolean = false, sort boolean = true",
        "path_num long, file_num long, storage_size long, `storage_size(unit)` string, storage_path string, "
        "space_consumed long, quota long, space_quota long",
        files.path_detail,
        of_table=False,
    ),
    "show_invalid_parquet": procedure("path! string", "path string", files.invalid_parquet, of_table=False),
    "show_logfile_metadata": procedure(
        "table string, log_file_path_pattern! string, limit int = 10",
        "instant_time string, record_count int, block_type string, header_metadata string, footer_metadata string",
        files.logfile_metadata,
    ),
    "show_logfile_records": procedure(
        "table string, log_file_path_pattern! string, merge boolean = false, limit int = 10",
        "records string",
        files.logfile_records,
    ),
    "show_table_properties": procedure(
        "table string, path string, limit int = 10", "key string, value string", repairs.properties
    ),
    # --- the metadata table
    "create_metadata_table": procedure("table string", "result string", metadata_table.create_metadata),
    "init_metadata_table": procedure("table string, read_only boolean = false", "result string", metadata_table.init),
    "delete_metadata_table": procedure(
        "table string", "result string", metadata_table.delete_metadata, destructive=True
    ),
    "show_metadata_table_files": procedure(
        "table string, partition string", "file_path string", metadata_table.show_files
    ),
    "show_metadata_table_partitions": procedure(
        "table string", "partition string", metadata_table.show_metadata_partitions
    ),
    "show_metadata_table_stats": procedure(
        "table string", "stat_key string, stat_value string", metadata_table.show_stats
    ),
    "validate_metadata_table_files": procedure(
        "table string, verbose boolean = false",
        "partition string, file_name string, is_present_in_fs boolean, is_present_in_metadata boolean, fs_size long, "
        "metadata_size long",
        metadata_table.validate_files,
    ),
    # --- repairs
    "repair_add_partition_meta": procedure(
        "table string, dry_run boolean = true",
        "partition_path string, metadata_is_present string, action string",
        repairs.add_partition_meta,
        destructive=True,
    ),
    "repair_migrate_partition_meta": procedure(
        "table string, dry_run boolean = true",
        "partition_path string, text_metafile_present string, base_metafile_present string, action string",
        repairs.migrate_partition_meta,
        destructive=True,
    ),
    "repair_corrupted_clean_files": procedure(
        "table string", "result boolean", repairs.corrupted_clean_files, destructive=True
    ),
    "repair_deduplicate": procedure(
        "table string, duplicated_partition_path! string, repaired_output_path! string, dry_run boolean = true, "
        "dedupe_type string = insert_type",
        "result string",
        repairs.deduplicate,
        destructive=True,
    ),
    "repair_overwrite_hoodie_props": procedure(
        "table string, new_props_file_path! string",
        "property string, old_value string, new_value string",
        repairs.overwrite_props,
        destructive=True,
    ),
    "upgrade_table": procedure(
        "table string, to_version! string", "result boolean", repairs.upgrade_version, destructive=True
    ),
    "downgrade_table": procedure(
        "table string, to_version! string", "result boolean", repairs.downgrade_version, destructive=True
    ),
    # --- rows elsewhere
    "copy_to_table": procedure(
        f"table string, query_type string = snapshot, new_table! string, {_COPIED}, save_mode string = overwrite",
        "status int",
        copies.copy_to_table,
        destructive=True,
    ),
    "copy_to_temp_view": procedure(
        f"table string, query_type string = snapshot, view_name! string, {_COPIED}, replace boolean = false, "
        "global boolean = false",
        "status int",
        copies.copy_to_temp_view,
    ),
    "hdfs_parquet_import": procedure(
        "table! string, table_type! string, src_path! string, target_path! string, row_key! string, "
        "partition_key! string, schema_file_path string, format string = parquet, command string = insert, "
        "retry int = 0, parallelism int = 1, props_file_path string",
        "import_result int",
        copies.parquet_import,
        of_table=False,
    ),
    "run_bootstrap": procedure(
        "table! string, table_type! string, bootstrap_path! string, base_path! string, rowKey_field! string, "
        "base_file_format string = PARQUET, partition_path_field string, bootstrap_index_class string, "
        "selector_class string, key_generator_class string, full_bootstrap_input_provider string, "
        "schema_provider_class string, payload_class string, parallelism int = 1500, "
        "enable_hive_sync boolean = false, props_file_path string, bootstrap_overwrite boolean = false, options string",
        "status int",
        no_bootstrap,
        of_table=False,
    ),
    "show_bootstrap_mapping": procedure(
        "table string, partition_path string, file_ids string, limit int = 10, sort_by string = partition, "
        "desc boolean = false",
        "partition string, file_id string, source_base_path string, source_partition string, source_file string",
        no_bootstrap_index,
    ),
    "show_bootstrap_partitions": procedure("table string", "indexed_partitions string", no_bootstrap_index),
    # --- of releases 1.x
    "show_metadata_table_column_stats": procedure(
        "table string, partition string, targetColumns string, limit int = 10",
        "file_name string, column_name string, min_value string, max_value string, null_num long",
        metadata_table.show_column_stats,
    ),
    "run_ttl": procedure(
        "table string, ttl_policy string, retain_days int, options string",
        "deleted_partitions string",
        services.run_ttl,
        destructive=True,
    ),
    # --- our own
    "validate_table": procedure(
        "table string, path string, rows boolean = true",
        "severity string, fault string, where string, problem string, advice string",
        repairs.validate_table,
    ),
}
