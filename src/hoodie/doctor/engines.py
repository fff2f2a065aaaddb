"""What an engine would not read of a healthy table, or would change: asked before it is let in."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from hoodie.doctor.findings import Contents, Fault, Finding, Scene, Severity
from hoodie.errors import CorruptFile
from hoodie.formats.parquet.columns import open_parquet
from hoodie.model.files import BaseFile, LogFile
from hoodie.model.table_version import VERSIONS
from hoodie.table.properties import PROPERTIES
from hoodie.timeline.timeline import instant_file_name

#: A payload class that Hudi has in 0.15 and 1.0 alone.
_GONE = ".FirstValueAvroPayload"


def _finding(fault: Fault, where: str, problem: str, advice: str) -> Finding:
    return Finding(Severity.WARNING, fault, where, problem, advice)


def _hudi_1(scene: Scene, contents: Contents) -> Iterator[Finding]:
    """The first write of any Hudi 1.x, also of one that keeps the table's version."""
    config = scene.config
    if VERSIONS[config.version].layout == 2:
        return
    for instant in sorted(contents.compactions):
        problem = "a pending compaction: rows written behind its plan vanish for Hudi 1.x when it upgrades the table"
        advice = "Run it first: hoodie compaction run"
        yield _finding(
            Fault.PENDING, f"{scene.timeline.folder}/{instant_file_name(instant, config.layout)}", problem, advice
        )
    if config.ordering and not config.payload_class:
        problem = "no payload class: Hudi 1.x takes the greater ordering value, whichever row came last"
        advice = (
            "If that is the rule of the table let it in, else name the class in the table's properties "
            "(hoodie.compaction.payload.class)"
        )
        yield _finding(Fault.PAYLOAD, PROPERTIES, problem, advice)
    if config.payload_class.endswith(_GONE):
        problem = (
            "the payload class FirstValueAvroPayload: Hudi 1.1 and later lack it, and neither write nor merge logs"
        )
        yield _finding(Fault.PAYLOAD, PROPERTIES, problem, "Keep the table to Hudi 1.0 or earlier, and Hoodie")
    if config.cdc and config.merge_on_read:
        problem = "change data of a Merge-on-Read table of version 6: Hudi 1.x cannot read it"
        yield _finding(Fault.FOREIGN, PROPERTIES, problem, "Read change data by Hoodie; other reads are right")


def _trino(scene: Scene, contents: Contents) -> Iterator[Finding]:
    if any(isinstance(file, LogFile) for file in scene.files):
        problem = "rows in logs: Trino 476 reads base files alone, also by the names _rt and the table's own"
        yield _finding(Fault.FOREIGN, "", problem, "Compact first, or query _ro and expect its rows")


def _presto(scene: Scene, contents: Contents) -> Iterator[Finding]:
    if scene.config.merge_on_read and scene.config.payload_class.endswith(_GONE):
        problem = "the payload class FirstValueAvroPayload: Presto 0.287 lacks it, and merges no logs of the table"
        yield _finding(Fault.PAYLOAD, PROPERTIES, problem, "Compact first, and query _ro")
    connector = "Use its hive-hadoop2 connector with hive.parquet.use-column-names=true"
    if scene.config.merge_on_read:
        problem = "Merge-on-Read: Presto's hudi connector (0.287) gives wrong rows"
        yield _finding(Fault.FOREIGN, "", problem, connector)
    if len(scene.config.partition_by) > 1:
        problem = "several partition columns: Presto's hudi connector (0.287) finds nothing when one is filtered"
        yield _finding(Fault.FOREIGN, "", problem, connector)


def _hive(scene: Scene, contents: Contents) -> Iterator[Finding]:
    bases = [file for file in scene.files if isinstance(file, BaseFile)]
    if not bases:
        return
    newest = max(bases, key=lambda file: (file.instant, file.name))
    with suppress(CorruptFile, FileNotFoundError), scene.storage.open_input(newest.path, newest.size) as source:
        footer = open_parquet(source, newest.path).metadata
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        if any(group.column(column).compression == "ZSTD" for group in groups for column in range(footer.num_columns)):
            problem = "compressed with zstd: Hive reads it with Hadoop's native libraries alone"
            advice = "Where Hive has none, write with hoodie.parquet.compression.codec=snappy from now on"
            yield _finding(Fault.FOREIGN, newest.path, problem, advice)


#: What stands between a table and an engine; `hoodie check --for` takes its name.
ENGINES: Mapping[str, Callable[[Scene, Contents], Iterator[Finding]]] = {
    "hive": _hive,
    "hudi-1.x": _hudi_1,
    "presto": _presto,
    "trino": _trino,
}
