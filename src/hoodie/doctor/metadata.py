"""Files that another writer's metadata table does not list: readers that list by it lose their rows.

The first write of any Hudi 1.x builds that table. It leaves out log files whose name has the instant of a compaction
that is pending then, and nothing adds them later. Source: tests/fixtures/upgrades, pending_upgraded_by_1.2.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hoodie.doctor.findings import Contents, Fault, Finding, Mend, Remedy, Scene, Severity
from hoodie.model.files import LogFile
from hoodie.model.instant import Action, State
from hoodie.storage.protocol import join
from hoodie.table.metadata_table import METADATA

_FILES = "files"
_INSTANT = re.compile(r"(\d{17})\d*\.", re.ASCII)


def unlisted_logs(scene: Scene, contents: Contents) -> Iterator[Finding]:
    """The metadata table of a Merge-on-Read table that hides logs which were written behind a compaction's plan."""
    config = scene.config
    if not config.merge_on_read or _FILES not in config.metadata_partitions:
        return
    instants = _compactions(scene, contents)
    logs = sorted(
        join(file.group.partition, file.name)
        for file in scene.files
        if isinstance(file, LogFile) and file.base_instant in instants
    )
    if logs:
        more = f" and {len(logs) - 1} more" if len(logs) > 1 else ""
        problem = f"the metadata table that Hudi 1.x built does not list {logs[0]}{more}: its readers lack these rows"
        advice = "--repair removes the metadata table: Hudi then lists folders, and its next write builds it again"
        remedy = Remedy(Mend.METADATA, METADATA)
        yield Finding(Severity.ERROR, Fault.UNLISTED, METADATA, problem, advice, remedy)


def _compactions(scene: Scene, contents: Contents) -> set[str]:
    """The instants whose logs the metadata table lacks.

    From version 8 on a log has the instant of the write that made it: one with that of a compaction is from before the
    upgrade. In version 6 such names are the rule, and only a metadata table that is younger than a pending plan, which
    Hudi 0.15 does not build, lacks them.
    """
    if scene.timeline.layout == 2:
        kinds = (Action.COMPACTION, Action.COMMIT)  # a compaction is a commit when it is completed
        return {instant.requested for instant in scene.timeline.instants if instant.action in kinds}
    names = (entry.name for entry in scene.storage.list(f"{METADATA}/.hoodie"))
    begun = min((match[1] for name in names if (match := _INSTANT.match(name))), default="")
    pending = (i.requested for i in contents.compactions if i.state is not State.COMPLETED)
    return {requested for requested in pending if requested < begun}
