"""Procedures that check a table, and repair it: metafiles of partitions, plans of cleans, properties, rows that came
twice.
"""

from dataclasses import replace

from pyspark.sql import Window, functions

from hoodie.config.table import from_properties, require_writable
from hoodie.errors import CorruptFile
from hoodie.formats.java.properties import parse_properties
from hoodie.formats.timeline.services import decode_clean_plan
from hoodie.merge.payloads import KNOWN_PAYLOADS
from hoodie.model.files import METAFILE
from hoodie.model.instant import Action, State
from hoodie.model.meta import META_COLUMNS
from hoodie.services.downgrade import downgrade
from hoodie.services.upgrade import upgrade
from hoodie.statements.procedures.procedure import Called, Rows
from hoodie.storage import storage_beside
from hoodie.table.partition_metadata import ensure_partition
from hoodie.table.properties import load_properties, update_properties
from hoodie.table.state import load_state
from hoodie.timeline.transition import remove_pending
from hoodie.view.load import list_folders


def properties(called: Called) -> Rows:
    return sorted(called.state.config.properties.items())


def validate_table(called: Called) -> Rows:
    findings = called.table.check(rows=called.get("rows"))
    return [(one.severity.name, one.fault.name, one.where, one.problem, one.advice) for one in findings]


def add_partition_meta(called: Called) -> Rows:
    """Write the metafiles that partitions have lost; only say which with `dry_run`, the default."""
    storage, dry_run = called.state.storage, called.get("dry_run")
    folders = list_folders(storage)
    instant = called.state.timeline.newest_commit
    for partition in sorted({*folders.marked, *folders.unmarked}):
        has_metafile = partition in folders.marked
        if not has_metafile and not dry_run:
            ensure_partition(storage, partition, instant)
        yield partition, "Yes" if has_metafile else "No", "None" if has_metafile or dry_run else "Repaired"


def migrate_partition_meta(called: Called) -> Rows:
    """Which partitions have which form of metafile. Raises StatementError without `dry_run`"""
    if not called.get("dry_run"):
        raise called.problem(
            "metafiles stay text, which every release of Hudi reads: there is nothing to migrate. dry_run => true lists"
        )
    for partition, entries in sorted(list_folders(called.state.storage).marked.items()):
        names = {entry.name for entry in entries}
        text = METAFILE in names
        base = any(name.startswith(f"{METAFILE}.") for name in names)
        yield (
            partition,
            "true" if text else "false",
            "true" if base else "false",
            "MIGRATE" if text and not base else "NONE",
        )


def corrupted_clean_files(called: Called) -> Rows:
    """Remove plans of pending cleans that cannot be read; the next clean plans anew."""
    storage = called.state.storage
    with called.write_settings.writers.lock_on(storage):
        state = load_state(storage)
        for instant in state.timeline.pending({Action.CLEAN}):
            path = state.layout.path(replace(instant, state=State.REQUESTED))
            try:
                decode_clean_plan(storage.read(path), path)
            except (CorruptFile, FileNotFoundError):
                remove_pending(storage, instant, state.layout)
    return [(True,)]


def overwrite_props(called: Called) -> Rows:
    """Put the settings of a file in place of the table's, if a table can have them. Raises as `require_writable`"""
    storage, path = called.state.storage, str(called.arguments["new_props_file_path"])
    folder, _, name = path.rpartition("/")
    new = parse_properties(storage_beside(storage, folder or "/").read(name), path)
    require_writable(from_properties(new, path), KNOWN_PAYLOADS)
    with called.write_settings.writers.lock_on(storage):
        old = load_properties(storage)
        written = update_properties(storage, {**dict.fromkeys(old), **new})
    return [(key, old.get(key), written.get(key)) for key in sorted({*old, *written})]


def deduplicate(called: Called) -> Rows:
    """Leave one row of each key in a partition: the newest. Its rows are written as Parquet to `repaired_output_path`;
    without `dry_run` they replace the partition's, by a commit."""
    partition, output = called.arguments["duplicated_partition_path"], called.arguments["repaired_output_path"]
    kind = called.get("dedupe_type")
    if kind not in ("insert_type", "update_type", "upsert_type"):
        raise called.problem(f"dedupe_type => {kind!r}: expected insert_type, update_type or upsert_type")
    if partition not in list_folders(called.state.storage).marked:
        raise called.problem(f"duplicated_partition_path => {partition!r}: there is no such partition")
    newest = Window.partitionBy("_hoodie_record_key").orderBy(
        functions.desc("_hoodie_commit_time"), functions.desc("_hoodie_commit_seqno")
    )
    rows = called.table.snapshot(partitions=[partition])
    ranked = rows.withColumn("_hoodie_rank", functions.row_number().over(newest))
    newest_rows = ranked.where("_hoodie_rank = 1").drop("_hoodie_rank")
    newest_rows.write.mode("overwrite").parquet(output)
    if called.get("dry_run"):
        return [(f"Deduplicated files placed in: {output}.",)]
    stored = called.session.read.schema(newest_rows.schema).parquet(output)
    called.table.insert_overwrite(stored.drop(*META_COLUMNS))
    return [(f"Deduplicated files placed in: {partition}.",)]


def upgrade_version(called: Called) -> Rows:
    """Give the table a later version of the format. Raises StatementError on an earlier one, and as `upgrade`"""
    number, current = _version(called), called.state.config.version
    if number < current:
        raise called.problem(f"the table has version {current}: CALL downgrade_table is for an earlier one")
    if number > current:
        upgrade(called.state.storage, called.write_settings, number)
    return [(True,)]


def downgrade_version(called: Called) -> Rows:
    """Give the table an earlier version of the format. Raises StatementError on a later one, and as `downgrade`"""
    number, current = _version(called), called.state.config.version
    if number > current:
        raise called.problem(f"the table has version {current}: CALL upgrade_table is for a later one")
    downgrade(called.state.storage, called.write_settings, number)
    return [(True,)]


def _version(called: Called) -> int:
    word = str(called.arguments["to_version"]).upper()
    number = _VERSIONS.index(word) if word in _VERSIONS else int(word) if word.isdigit() else -1
    if number < 0:
        raise called.problem(f"to_version => {word!r}: expected a number, or a word such as SIX")
    return number


_VERSIONS = ("ZERO", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE")
