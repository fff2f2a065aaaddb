"""Which partitions of a metadata table writes keep: those that they do not are removed first, with a warning.

A partition that says nothing of a write hides its rows from Hudi, or gives it statistics that are no longer true.
"""

from __future__ import annotations

from hoodie.config.table import TableConfig
from hoodie.metadata.drop import drop_partitions, tell_of_drop
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.partitions.kinds import kinds_of
from hoodie.model.table_version import VERSIONS
from hoodie.storage.protocol import Storage


def not_kept(config: TableConfig) -> tuple[str, ...]:
    """The partitions of a table's metadata table that are not kept, those that were begun among them, sorted."""
    named = {*config.metadata_partitions, *config.metadata_inflight}
    whole = {str(kind.partition) for kind in kinds_of(config.metadata_partitions)} - {*config.metadata_inflight}
    if not VERSIONS[config.version].keeps_metadata:  # other partitions have another form there
        whole &= set() if was_upgraded(config) else {str(MetadataPartition.FILES)}
    return tuple(sorted(named - whole))


def was_upgraded(config: TableConfig) -> bool:
    """Whether the table began with an earlier form of its timeline. The metadata table that Hudi builds after such an
    upgrade may lack logs for good: those that were written behind the plan of a compaction."""
    began = config.properties.get("hoodie.table.initial.version", "")
    return began.isdigit() and int(began) in VERSIONS and VERSIONS[int(began)].layout < VERSIONS[config.version].layout


def drop_others(storage: Storage, config: TableConfig, names: tuple[str, ...]) -> TableConfig:
    """Remove what `not_kept` names; the table's settings afterwards. Warns MetadataTableDropped"""
    config = drop_partitions(storage, config, names)
    if str(MetadataPartition.FILES) in names and was_upgraded(config):
        problem = "the table was upgraded, and Hudi may have left log files of then out of the lists"
        tell_of_drop(storage, "the metadata table", problem)
        return config
    tell_of_drop(storage, f"of the metadata table: {', '.join(names)}", "such partitions are not kept here")
    return config
