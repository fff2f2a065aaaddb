"""What the versions of the table format say to a writer, one value each: nothing else in the code asks for the number.

Source: docs/format/table-and-timeline.md 9; docs/format/table-versions-8-9.md.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVersion:
    """One version of the table format, as far as a writer has to know it.

    number           hoodie.table.version
    layout           of the timeline: 1 or 2, see `hoodie.timeline.timeline`
    written          whether this library writes such tables
    logs_of_writes   log files are named after the write that makes them, not after the slice that they belong to: a
                     rollback deletes them, their positions say which base file they are of, and a pending compaction
                     opens no slice for them
    clean_has_plan   an inflight clean holds its plan; else it is empty
    drops_old_payloads  payload classes of old releases stand as a merge mode with settings; ordering columns have
                     a name of their own
    default_ordering    the column that orders rows where a job of Hudi's data source names none and its rows have it;
                     empty: the last row wins
    orders_by_several   rows may be ordered by several columns
    prefixes_single_key  a single key field of the COMPLEX key generator is written `field:value`
    keys_hold_commas  in a bucket's hash a value of a compound key may hold commas, and a key without one is a value
    defines_indexes  a file of the table defines what its metadata table has statistics of; records of it are deleted by
                     their keys
    types_statistics  statistics of the metadata table say the types of their values
    local_times      times without a zone are local timestamps of Avro's, as Hudi 1.1 and later reads them; else a long
                     that only this library takes for times, which hudi-rs reads
    engines          what reads such a table, for people
    """

    number: int
    layout: int
    written: bool = True
    logs_of_writes: bool = False
    clean_has_plan: bool = True
    drops_old_payloads: bool = False
    default_ordering: str = "ts"
    orders_by_several: bool = False
    prefixes_single_key: bool = False
    keys_hold_commas: bool = False
    defines_indexes: bool = False
    types_statistics: bool = False
    local_times: bool = False
    engines: str = ""


_OLD = [TableVersion(number=number, layout=1, written=False) for number in (0, 1, 2, 3, 4, 5, 7)]

VERSIONS = {
    version.number: version
    for version in (
        *_OLD,
        TableVersion(number=6, layout=1, engines="Hudi 0.14 and later, hudi-rs, Trino, Presto"),
        TableVersion(
            number=8,
            layout=2,
            logs_of_writes=True,
            default_ordering="",
            keys_hold_commas=True,
            defines_indexes=True,
            local_times=True,
            engines="Hudi 1.0 and later, hudi-rs",
        ),
        TableVersion(
            number=9,
            layout=2,
            logs_of_writes=True,
            clean_has_plan=False,
            drops_old_payloads=True,
            default_ordering="",
            orders_by_several=True,
            prefixes_single_key=True,
            keys_hold_commas=True,
            defines_indexes=True,
            types_statistics=True,
            local_times=True,
            engines="Hudi 1.1 and later, hudi-rs",
        ),
    )
}

#: The version that tables get unless options name another: the most widely read.
DEFAULT_VERSION = 6
#: The versions that this library writes.
WRITTEN = tuple(number for number, version in VERSIONS.items() if version.written)
