"""What a table and the options of a write say together: an option may add what the table leaves open, change nothing.

Hudi leaves the settings of time-based partitions, the types of CUSTOM partition columns and, on Copy-on-Write tables,
the payload class to the options of each write; such a table of ours names the default class.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from hoodie.config.datasource import DEFAULT_PAYLOAD
from hoodie.config.java_names import payload_name
from hoodie.config.keygen import KeyOptions, TimeOptions
from hoodie.config.options import declared, read_options
from hoodie.config.table import TableType
from hoodie.errors import InvalidOption, TableMismatch
from hoodie.keygen.keygen import KeyGenerator, stored_key_generator
from hoodie.table.create import named_settings, require_same
from hoodie.table.state import TableState

_PAYLOAD = ("hoodie.compaction.payload.class", "hoodie.table.legacy.payload.class")
_KEYS = frozenset(key for group in (KeyOptions, TimeOptions) for _, spec in declared(group) for key in spec.keys)


def completed(state: TableState, options: Mapping[str, str]) -> TableState:
    """The state with what the options of a write add to the table's properties, to check and write with.

    Raises TableMismatch when options name other settings than the table has, InvalidOption on a malformed one
    """
    there = state.config.properties
    named = named_settings(options)
    added = {key: value for key, value in options.items() if key in _KEYS}
    if (
        state.config.type is TableType.COPY_ON_WRITE
        and not state.config.merge_mode
        and payload_name(state.config.payload_class or DEFAULT_PAYLOAD) == DEFAULT_PAYLOAD
    ):
        added |= {key: named.pop(key) for key in _PAYLOAD if key in named}
    require_same(state, named)
    _refuse_other_keys(state, added)
    return dataclasses.replace(state, config=dataclasses.replace(state.config, properties={**there, **added}))


def _refuse_other_keys(state: TableState, options: Mapping[str, str]) -> None:
    there = state.config.properties
    problems = []
    for _, spec in declared(TimeOptions):
        stored, given = ([group[key] for key in spec.keys if key in group] for group in (there, options))
        if stored and given and stored[0] != given[0]:
            problems.append(f"{spec.keys[0]} is {stored[0]!r} in the table, not {given[0]!r}")
    if options:
        read_options(KeyOptions, options)  # malformed is another error than different
        try:
            before, after = stored_key_generator(there), stored_key_generator({**there, **options})
        except InvalidOption as problem:
            raise TableMismatch(f"{state.storage.root}: {problem}") from problem
        problems += [
            f"{what} is {had!r} in the table, not {wants!r}"
            for (what, had), wants in zip(_identity(before).items(), _identity(after).values(), strict=True)
            if had != wants
        ]
        if before.consistent_timestamps:  # only tables of ours say so, and those keep to the zone of their first rows
            if not after.consistent_timestamps:
                problems.append("its keys have timestamps as text, not as numbers")
            elif before.zone != after.zone:
                problems.append(f"the zone of timestamps in keys is {before.zone!r} in the table, not {after.zone!r}")
    if problems:
        raise TableMismatch(
            f"{state.storage.root} holds a table with other settings: {'; '.join(problems)}. "
            "Leave these options out: the table says."
        )


def _identity(keygen: KeyGenerator) -> dict[str, object]:
    """What all writers of a table must have in common, but for what the table may leave open."""
    return {
        "the key generator": keygen.kind.value,
        "the record key": ",".join(keygen.record_keys),
        "the partition path": ",".join(field.name for field in keygen.partition_fields),
        "hoodie.datasource.write.hive_style_partitioning": keygen.hive_style,
        "hoodie.datasource.write.partitionpath.urlencode": keygen.url_encode,
    }
