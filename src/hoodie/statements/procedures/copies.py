"""Procedures that bring rows of a table elsewhere, or Parquet files into one."""

from pyspark.sql import DataFrame

from hoodie.api.table import create_table, open_table
from hoodie.errors import TableNotFound
from hoodie.statements.procedures.procedure import Called, Rows

_NO_BEGIN = "needs begin_instance_time => … with query_type => 'incremental'"


def copy_to_table(called: Called) -> Rows:
    """Into a table of Spark's default format, as Hudi does."""
    mode = str(called.get("save_mode")).lower()
    if mode not in ("append", "overwrite", "ignore", "errorifexists"):
        raise called.problem(f"save_mode => {mode!r}: expected append, overwrite, ignore or errorifexists")
    _rows(called).write.mode(mode).saveAsTable(called.arguments["new_table"])
    return [(0,)]


def copy_to_temp_view(called: Called) -> Rows:
    rows, name, replace = _rows(called), called.arguments["view_name"], called.get("replace")
    if called.get("global"):
        (rows.createOrReplaceGlobalTempView if replace else rows.createGlobalTempView)(name)
    else:
        (rows.createOrReplaceTempView if replace else rows.createTempView)(name)
    return [(0,)]


def _rows(called: Called) -> DataFrame:
    """The rows that `query_type`, `as_of_instant`, `begin_instance_time` and `end_instance_time` name."""
    table, kind = called.table, str(called.get("query_type")).lower()
    if kind == "snapshot":
        return table.snapshot(as_of=called.get("as_of_instant") or None)
    if kind == "read_optimized":
        return table.snapshot(optimized=True)
    if kind != "incremental":
        raise called.problem(f"query_type => {kind!r}: expected snapshot, read_optimized or incremental")
    if not called.get("begin_instance_time"):
        raise called.problem(_NO_BEGIN)
    return table.changes(called.arguments["begin_instance_time"], called.get("end_instance_time") or None)


def parquet_import(called: Called) -> Rows:
    """Make a table at `target_path` of the Parquet files at `src_path`, or upsert them into one. The schema is that of
    the files."""
    command, target = str(called.get("command")).lower(), str(called.arguments["target_path"])
    if command not in ("insert", "bulkinsert", "bulk_insert", "upsert"):
        raise called.problem(f"command => {command!r}: expected insert, bulkinsert or upsert")
    if str(called.get("format")).lower() != "parquet":
        raise called.problem(f"format => {called.get('format')!r}: expected parquet")
    try:
        table = open_table(target, spark=called.session, options=called.options)
    except TableNotFound:
        table = create_table(
            target,
            spark=called.session,
            name=called.arguments["table"],
            record_key=called.arguments["row_key"],
            partition_by=called.arguments["partition_key"],
            table_type=called.arguments["table_type"],
            options=called.options,
        )
    else:
        if command != "upsert":
            raise called.problem(f"target_path => {target!r} has a table: command => 'upsert' adds to it")
    rows = called.session.read.parquet(called.arguments["src_path"])
    write = {"insert": table.insert, "upsert": table.upsert}.get(command, table.bulk_insert)
    write(rows)
    return [(0,)]
