"""Asks the real Hudi 0.15 for its procedures, and what they say of a table of its own, which is kept, too.

PYTHONPATH=src:tests:. python -m engines.record_procedures
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from support.hudi_engine import HudiEngine, HudiFailed
from support.servers import running

RELEASE = "0.15.0"
VECTORS = Path(__file__).parents[1] / "vectors" / "procedures.json"
TABLE = Path(__file__).parents[1] / "fixtures" / "procedures.zip"

_MADE = (
    "SET hoodie.embed.timeline.server=false",
    "SET hoodie.write.markers.type=direct",
    "SET hoodie.index.type=SIMPLE",
    "SET hoodie.upsert.shuffle.parallelism=1",
    "SET hoodie.metadata.enable=true",
    "SET hoodie.keep.min.commits=4",
    "SET hoodie.keep.max.commits=5",
    "SET hoodie.cleaner.commits.retained=2",
    "SET hoodie.compact.inline.max.delta.commits=1",
    "CREATE TABLE trips (id INT, name STRING, ts BIGINT, city STRING) USING hudi PARTITIONED BY (city) "
    "TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts') LOCATION '{path}'",
    "INSERT INTO trips VALUES (1, 'a', 1, 'oslo'), (2, 'b', 1, 'rome'), (3, 'c', 1, 'oslo')",
    "UPDATE trips SET name = 'd', ts = 2 WHERE id = 1",
    "CALL run_compaction(op => 'schedule', table => 'trips')",
    "CALL run_compaction(op => 'run', table => 'trips')",
    "UPDATE trips SET name = 'e', ts = 3 WHERE id = 2",
    "INSERT INTO trips VALUES (4, 'f', 1, 'paris')",
    "UPDATE trips SET name = 'g', ts = 4 WHERE id = 3",
    "DELETE FROM trips WHERE id = 2",
    "UPDATE trips SET name = 'h', ts = 5 WHERE id = 1",
    "UPDATE trips SET name = 'i', ts = 6 WHERE id = 4",
    "CALL rollback_to_instant(table => 'trips', instant_time => '{newest}')",
    "CALL create_savepoint(table => 'trips', commit_time => '{newest}')",
    "CALL run_compaction(op => 'schedule', table => 'trips')",
)
#: What is asked of the table; `{newest}` is its newest commit, `{rollback}` its newest rollback.
ASKED = (
    "show_commits(table => 'trips', limit => 100)",
    "show_commits(table => 'trips', limit => 1)",
    "show_commits_metadata(table => 'trips', limit => 100)",
    "show_commit_extra_metadata(table => 'trips', instant_time => '{newest}')",
    "show_commit_files(table => 'trips', instant_time => '{newest}')",
    "show_commit_partitions(table => 'trips', instant_time => '{newest}')",
    "show_commit_write_stats(table => 'trips', instant_time => '{newest}')",
    "show_archived_commits(table => 'trips')",
    "show_archived_commits_metadata(table => 'trips')",
    "commits_compare(table => 'trips', path => '{path}')",
    "show_compaction(table => 'trips')",
    "show_clustering(table => 'trips')",
    "show_fsview_all(table => 'trips', path_regex => '*/')",
    "show_fsview_all(table => 'trips')",
    "show_fsview_latest(table => 'trips', partition_path => 'city=oslo')",
    "show_fsview_latest(table => 'trips', partition_path => 'city=rome', merge => false)",
    "show_logfile_metadata(table => 'trips', log_file_path_pattern => '{path}/city=oslo/.*')",
    "show_logfile_records(table => 'trips', log_file_path_pattern => '{path}/city=oslo/.*')",
    "show_logfile_records(table => 'trips', log_file_path_pattern => '{path}/city=oslo/.*', merge => true)",
    "show_metadata_table_files(table => 'trips', partition => 'city=oslo')",
    "show_metadata_table_partitions(table => 'trips')",
    "show_metadata_table_stats(table => 'trips')",
    "validate_metadata_table_files(table => 'trips')",
    "validate_metadata_table_files(table => 'trips', verbose => true)",
    "show_rollbacks(table => 'trips')",
    "show_rollback_detail(table => 'trips', instant_time => '{rollback}')",
    "show_savepoints(table => 'trips')",
    "show_table_properties(table => 'trips', limit => 50)",
    "stats_file_sizes(table => 'trips')",
    "stats_wa(table => 'trips')",
    "show_invalid_parquet(path => '{path}')",
    "show_fs_path_detail(path => '{path}')",
    "show_bootstrap_partitions(table => 'trips')",
    "show_bootstrap_mapping(table => 'trips')",
    "repair_add_partition_meta(table => 'trips')",
    "repair_migrate_partition_meta(table => 'trips')",
    "repair_corrupted_clean_files(table => 'trips')",
    "export_instants(table => 'trips', local_folder => '{folder}')",
    "copy_to_temp_view(table => 'trips', view_name => 'copied')",
    "copy_to_table(table => 'trips', new_table => 'copy_of_trips')",
    "delete_marker(table => 'trips', instant_time => '{newest}')",
    "run_clean(table => 'trips')",
)


def record() -> None:
    with tempfile.TemporaryDirectory() as folder, running(HudiEngine(RELEASE, Path(folder))) as hudi:

        def page(call: str) -> str:
            return "\n".join(row["result"] for row in hudi.sql(call))

        path = Path(folder, "trips")
        for statement in _MADE:
            print(statement)
            hudi.sql(_filled(statement, path))
        with zipfile.ZipFile(TABLE, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(path.rglob("*")):
                archive.write(file, file.relative_to(folder))
        answers = {call: _answer(hudi, _filled(call, path), path) for call in ASKED}
        VECTORS.write_text(json.dumps({**procedures(page), "answers": answers}, separators=(",", ":")) + "\n")


def _answer(hudi: HudiEngine, call: str, path: Path) -> object:
    try:
        text = json.dumps(hudi.sql(f"CALL {call}"))
    except HudiFailed as problem:
        return {"error": str(problem).splitlines()[0][:200]}
    return json.loads(text.replace(str(path), "$path").replace(str(path.parent), "$folder"))


def _filled(text: str, path: Path) -> str:
    newest, rollback = (max(_times(path, kind), default="") for kind in (("commit", "deltacommit"), ("rollback",)))
    return text.format(path=path, newest=newest, rollback=rollback, folder=path.parent)


def _times(path: Path, actions: tuple[str, ...]) -> Iterator[str]:
    folder = path / ".hoodie"
    names = [file.name for file in folder.iterdir()] if folder.exists() else []
    return (name.partition(".")[0] for name in names if name.partition(".")[2] in actions)


def procedures(page: Callable[[str], str]) -> dict[str, object]:
    """What `CALL help` says of each procedure: `parameters` in the order by place, each with its type, default and
    whether it is required; `columns` of the result, each with its type."""
    lines = page("CALL help()").partition("commands and description\n")[2].splitlines()
    names = sorted(line.split("\t")[1] for line in lines if line.startswith("\t"))
    note = f"Procedures of Hudi {RELEASE} on Spark 3.5.9: CALL help, and answers on tests/fixtures/procedures.zip."
    pages = {name: _described(page(f"CALL help(cmd => '{name}')")) for name in names}
    return {"note": f"{note} tests/engines/record_procedures.py makes both files.", "procedures": pages}


def _described(text: str) -> dict[str, object]:
    parameters, _, columns = text.partition("outputType:")
    return {"parameters": _rows(parameters), "columns": [row[:2] for row in _rows(columns)]}


def _rows(text: str) -> list[list[str]]:
    """Lines of a table, without its heading; an empty default leaves its cell out."""
    lines = [[cell.strip() for cell in line.split("\t")[1:]] for line in text.splitlines() if line.startswith("\t")]
    return [[cell for cell in cells if cell] for cells in lines[1:]]


if __name__ == "__main__":
    record()
