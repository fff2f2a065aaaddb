"""What `hoodie.properties` of tables of versions 8 and 9 say otherwise than those of version 6.

Source: docs/format/table-versions-8-9.md 2; pinned by tests/vectors/v8-v9/merge_config_at_create.json.
"""

from collections.abc import Mapping

from hoodie.config.table import payload_name
from hoodie.errors import InvalidOption, UnsupportedTable
from hoodie.keygen.keygen import FieldKind, Kind, key_generator, stored_key_generator
from hoodie.model.table_version import VERSIONS, TableVersion

MODE, STRATEGY = "hoodie.record.merge.mode", "hoodie.record.merge.strategy.id"
PAYLOAD, LEGACY_PAYLOAD = "hoodie.compaction.payload.class", "hoodie.table.legacy.payload.class"
PRECOMBINE, ORDERING = "hoodie.table.precombine.field", "hoodie.table.ordering.fields"
KEYGEN_CLASS, KEYGEN_TYPE = "hoodie.table.keygenerator.class", "hoodie.table.keygenerator.type"
PARTIAL_MODE, MERGE_PROPERTY = "hoodie.table.partial.update.mode", "hoodie.record.merge.property."
_OLD_STRATEGY = "hoodie.compaction.record.merger.strategy"
_PARTITIONS = "hoodie.table.partition.fields"
_SINGLE_KEY = "hoodie.write.complex.keygen.new.encoding"
#: Where tables of version 6 have the partition columns of the CUSTOM key generator with their kinds.
_TYPED_PARTITIONS = "hoodie.datasource.write.partitionpath.field"
#: The Java classes of key generators; versions 8 and 9 have the word.
KEY_GENERATOR_CLASSES = {
    kind: f"org.apache.hudi.keygen.{name}KeyGenerator"
    for kind, name in {
        Kind.SIMPLE: "Simple",
        Kind.COMPLEX: "Complex",
        Kind.NON_PARTITION: "Nonpartitioned",
        Kind.TIMESTAMP: "TimestampBased",
        Kind.CUSTOM: "Custom",
        Kind.GLOBAL_DELETE: "GlobalDelete",
    }.items()
}

_EVENT_TIME, _COMMIT_TIME, _CUSTOM = "EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING", "CUSTOM"
STRATEGIES = {
    _EVENT_TIME: "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    _COMMIT_TIME: "ce9acb64-bde0-424c-9b91-f6ebba25356d",
    _CUSTOM: "00000000-0000-0000-0000-000000000000",
}
_MODE_OF_STRATEGY = {strategy: mode for mode, strategy in STRATEGIES.items()}

_MODEL = "org.apache.hudi.common.model."
_DEFAULT, _LATEST = f"{_MODEL}DefaultHoodieRecordPayload", f"{_MODEL}OverwriteWithLatestAvroPayload"
#: The payload class that means the same as a mode.
PAYLOAD_OF_MODE = {_EVENT_TIME: _DEFAULT, _COMMIT_TIME: _LATEST}
#: What version 8 makes of a payload class that it takes for a mode; of others it makes CUSTOM.
_MODE_OF_PAYLOAD = {_DEFAULT: _EVENT_TIME, f"{_MODEL}EventTimeAvroPayload": _EVENT_TIME, _LATEST: _COMMIT_TIME}

_DELETES = (f"{MERGE_PROPERTY}hoodie.payload.delete.field", f"{MERGE_PROPERTY}hoodie.payload.delete.marker")
_UNAVAILABLE = f"{MERGE_PROPERTY}hoodie.write.partial.update.unavailable.value"
#: How MySQL's changes are ordered: in version 9 by the two columns that the one is made of.
_BINLOG, _BINLOG_PARTS = "_event_seq", "_event_bin_file,_event_pos"
_CHANGE_TYPE = dict(zip(_DELETES, ("_change_operation_type", "d"), strict=True))
#: What version 9 has in place of the payload classes of old releases, the mode aside.
_OLD_PAYLOADS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    _DEFAULT: (_EVENT_TIME, {}),
    f"{_MODEL}EventTimeAvroPayload": (_EVENT_TIME, {}),
    _LATEST: (_COMMIT_TIME, {}),
    f"{_MODEL}OverwriteNonDefaultsWithLatestAvroPayload": (_COMMIT_TIME, {PARTIAL_MODE: "IGNORE_DEFAULTS"}),
    f"{_MODEL}PartialUpdateAvroPayload": (_EVENT_TIME, {PARTIAL_MODE: "IGNORE_DEFAULTS"}),
    f"{_MODEL}AWSDmsAvroPayload": (_COMMIT_TIME, dict(zip(_DELETES, ("Op", "D"), strict=True))),
    f"{_MODEL}debezium.PostgresDebeziumAvroPayload": (
        _EVENT_TIME,
        {
            PARTIAL_MODE: "FILL_UNAVAILABLE",
            _UNAVAILABLE: "__debezium_unavailable_value",
            **_CHANGE_TYPE,
            ORDERING: "_event_lsn",
        },
    ),
    f"{_MODEL}debezium.MySqlDebeziumAvroPayload": (
        _EVENT_TIME,
        {**_CHANGE_TYPE, ORDERING: _BINLOG_PARTS},
    ),
}


def merge_properties(
    version: TableVersion, *, mode: str = "", payload: str = "", strategy: str = "", ordering: str = ""
) -> dict[str, str]:
    """The properties of a new table that say which version of a row wins.

    mode, payload, strategy, ordering  as options name them; "": not named
    Raises InvalidOption where they contradict each other, and on a custom mode without what merges
    """
    if not (payload or strategy):
        base = mode or (_EVENT_TIME if ordering else _COMMIT_TIME)
        if base == _CUSTOM:
            raise InvalidOption(f"{MODE}=CUSTOM: expected a payload class or a merge strategy with it")
    else:
        base = _MODE_OF_STRATEGY.get(strategy, _CUSTOM) if strategy else _MODE_OF_PAYLOAD.get(payload, _CUSTOM)
    old = version.drops_old_payloads and not strategy and payload in _OLD_PAYLOADS
    contradiction = (mode and mode != base) or (strategy and payload and _MODE_OF_PAYLOAD.get(payload, _CUSTOM) != base)
    if contradiction and not old:
        raise InvalidOption(f"{MODE}={mode!r}, {PAYLOAD}={payload!r}, {STRATEGY}={strategy!r} contradict each other")
    if old:
        base, more = _OLD_PAYLOADS[payload]
        return {MODE: base, LEGACY_PAYLOAD: payload, **more}
    own_strategy = strategy and strategy not in _MODE_OF_STRATEGY
    if not version.drops_old_payloads:
        payload = payload or PAYLOAD_OF_MODE.get(base, _DEFAULT)
        return {MODE: base, PAYLOAD: payload, STRATEGY: strategy or STRATEGIES[base]}
    if own_strategy:
        return {MODE: base, STRATEGY: strategy}
    return {MODE: base, PAYLOAD: payload, STRATEGY: STRATEGIES[_CUSTOM]} if base == _CUSTOM else {MODE: base}


def _with_class(merging: dict[str, str], version: TableVersion) -> dict[str, str]:
    """With the payload class that a mode means: Hudi's downgrade takes it from there, and leaves none otherwise."""
    payload = PAYLOAD_OF_MODE.get(merging[MODE], "")
    return {LEGACY_PAYLOAD: payload, **merging} if version.drops_old_payloads and payload else merging


def _ordering(properties: Mapping[str, str]) -> str:
    """The ordering columns, by commas. Hudi 1.1 and later name them so in version 6, too."""
    return properties.get(ORDERING) or properties.get(PRECOMBINE) or ""


def of_version(properties: Mapping[str, str], version: TableVersion) -> dict[str, str]:
    """The properties of a new table of a version, from those of version 6. Raises as `merge_properties`."""
    if version.layout == 1:
        return dict(properties)
    keygen = stored_key_generator(properties)
    if any(field.kind is FieldKind.UNKNOWN for field in keygen.partition_fields):
        key_generator(properties)  # raises: it says what is missing
    # Hudi 1.x leaves the last three in tables of version 6 that it makes or downgrades.
    superseded = (KEYGEN_CLASS, PAYLOAD, PRECOMBINE, MODE, STRATEGY, ORDERING)
    rest = {key: value for key, value in properties.items() if key not in superseded}
    strategy = rest.pop(_OLD_STRATEGY, "")
    strategy = "" if strategy in _MODE_OF_STRATEGY else strategy
    payload, ordering = properties.get(PAYLOAD, ""), _ordering(properties)
    mode = {name: mode for mode, name in PAYLOAD_OF_MODE.items()}.get(payload, "")
    merging = merge_properties(
        version, mode="" if strategy else mode, payload="" if mode or strategy else payload, strategy=strategy,
        ordering=ordering,
    )  # fmt: skip
    new_properties = {
        **rest,
        "hoodie.table.version": str(version.number),
        "hoodie.table.initial.version": str(version.number),
        "hoodie.timeline.layout.version": str(version.layout),
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.archivelog.folder": "history",
        "hoodie.table.multiple.base.file.formats.enable": "false",
        KEYGEN_TYPE: keygen.kind.value,
    }
    if ordering:
        new_properties[ORDERING if version.drops_old_payloads else PRECOMBINE] = ordering
    if version.drops_old_payloads:
        new_properties["hoodie.table.format"] = "native"
    new_properties |= _with_class(merging, version)
    if version.prefixes_single_key:  # always: no option changes it
        new_properties.pop(_SINGLE_KEY, None)
    if any(field.kind is not FieldKind.SIMPLE for field in keygen.partition_fields) and keygen.kind.value == "CUSTOM":
        new_properties[_PARTITIONS] = ",".join(f"{field.name}:{field.kind}" for field in keygen.partition_fields)
    return new_properties


def as_version_6(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of any table under the names of version 6, to compare with: which key generator, ordering columns
    and payload class it has."""
    comparable = dict(properties)
    if MODE in properties:  # else of version 6, which Hudi 1.1 and later make with the other names below
        payload = properties.get(PAYLOAD) or properties.get(LEGACY_PAYLOAD) or ""
        by_mode = PAYLOAD_OF_MODE.get(properties[MODE], "")
        comparable[PAYLOAD] = payload_name(payload) if payload else by_mode or _DEFAULT
    if ordering := _ordering(properties):
        comparable[PRECOMBINE] = _BINLOG if ordering == _BINLOG_PARTS else ordering
    if KEYGEN_CLASS not in properties and KEYGEN_TYPE in properties:
        comparable[KEYGEN_CLASS] = properties[KEYGEN_TYPE]
    if _PARTITIONS in properties:
        comparable[_PARTITIONS] = ",".join(field.partition(":")[0] for field in properties[_PARTITIONS].split(","))
    return comparable


def upgraded(properties: Mapping[str, str], version: TableVersion) -> dict[str, str]:
    """The properties of a table that gets a later version: it merges rows as before. Raises as `merge_properties`."""
    initial = properties.get("hoodie.table.initial.version") or properties["hoodie.table.version"]
    if VERSIONS[int(properties["hoodie.table.version"])].layout != version.layout:
        new_properties = of_version(properties, version)
    else:
        keys = (key for key in properties if key not in (MODE, STRATEGY, PAYLOAD, PRECOMBINE, _OLD_STRATEGY))
        new_properties = {key: properties[key] for key in keys}
        mode, payload = properties[MODE], properties.get(PAYLOAD, "")
        ordering = _ordering(properties)
        strategy = properties.get(STRATEGY, "")
        own = strategy if strategy not in _MODE_OF_STRATEGY else ""
        if mode != _CUSTOM:
            own, payload = "", ""
        new_properties |= {"hoodie.table.version": str(version.number), "hoodie.table.format": "native"}
        if ordering:
            new_properties[ORDERING] = ordering
        merging = merge_properties(
            version, mode=mode if not payload else "", payload="" if own else payload, strategy=own, ordering=ordering
        )
        new_properties |= _with_class(merging, version)
        if version.prefixes_single_key:
            new_properties.pop(_SINGLE_KEY, None)
    return {**new_properties, "hoodie.table.initial.version": initial}


#: What only versions 8 and 9 have, beside the settings that say which row wins.
_LATER_ONLY = ("hoodie.table.format", "hoodie.table.index.defs.path", "hoodie.table.multiple.base.file.formats.enable")


def downgraded(properties: Mapping[str, str], version: TableVersion) -> dict[str, str]:
    """The properties of a table of version 8 or 9 that gets an earlier one: it merges rows as before.

    Raises UnsupportedTable where the earlier version has no words for what the settings say
    """
    name, mode = properties.get("hoodie.table.name", ""), properties.get(MODE, "")
    payload, strategy = _payload_before(properties, version), properties.get(STRATEGY, "")
    dropped = (MODE, STRATEGY, PAYLOAD, LEGACY_PAYLOAD, PRECOMBINE, ORDERING, PARTIAL_MODE, _OLD_STRATEGY)
    new_properties = {
        key: value
        for key, value in properties.items()
        if key not in dropped and not key.startswith(MERGE_PROPERTY) and key != _LATER_ONLY[0]
    }
    new_properties["hoodie.table.version"] = str(version.number)
    new_properties["hoodie.timeline.layout.version"] = str(version.layout)
    ordering = [part.strip() for part in _ordering(properties).split(",")]
    if payload == f"{_MODEL}debezium.MySqlDebeziumAvroPayload":
        ordering = [_BINLOG]
    if len(ordering) > 1 and not version.orders_by_several:
        raise UnsupportedTable(
            f"{name}: rows are ordered by {', '.join(ordering)}, and a table of version {version.number} has one "
            "ordering column. Keep its version, or set hoodie.table.ordering.fields to one of them first"
        )
    if ordering[0]:
        new_properties[PRECOMBINE] = ordering[0]
    keygen = stored_key_generator(properties)
    single = keygen.kind is Kind.COMPLEX and len(keygen.record_keys) == 1
    if single and keygen.prefix_single_key and not version.prefixes_single_key:
        new_properties[_SINGLE_KEY] = "false"
    own = strategy if strategy not in _MODE_OF_STRATEGY else ""
    if version.layout == 2:
        by_payload = bool(payload) and payload not in PAYLOAD_OF_MODE.values()
        return new_properties | merge_properties(
            version,
            mode="" if by_payload or own else mode,
            payload=payload if by_payload and not own else "",
            strategy=own,
            ordering=ordering[0],
        )
    new_properties = {key: value for key, value in new_properties.items() if key not in _LATER_ONLY}
    new_properties[PAYLOAD] = payload or _DEFAULT
    new_properties[_OLD_STRATEGY] = own or STRATEGIES[_EVENT_TIME]  # beside any payload class
    if KEYGEN_CLASS not in new_properties:
        new_properties[KEYGEN_CLASS] = KEY_GENERATOR_CLASSES[keygen.kind]
    if _PARTITIONS in new_properties and ":" in new_properties[_PARTITIONS]:
        new_properties[_TYPED_PARTITIONS] = new_properties[_PARTITIONS]
        new_properties[_PARTITIONS] = ",".join(
            field.partition(":")[0] for field in new_properties[_PARTITIONS].split(",")
        )
    return new_properties


def _payload_before(properties: Mapping[str, str], version: TableVersion) -> str:
    """The payload class by which an earlier version merges as the settings say; "" when none is named and none needed.

    Raises UnsupportedTable when no class says it
    """
    mode, named = properties.get(MODE, ""), properties.get(PAYLOAD) or properties.get(LEGACY_PAYLOAD) or ""
    named = payload_name(named) if named else ""
    merge_settings = {key: value for key, value in properties.items() if key.startswith((MERGE_PROPERTY, PARTIAL_MODE))}
    if merge_settings:
        for payload, (of_payload, more) in _OLD_PAYLOADS.items():
            if of_payload == mode and {key: value for key, value in more.items() if key != ORDERING} == merge_settings:
                return payload
        raise UnsupportedTable(
            f"{properties.get('hoodie.table.name', '')}: {', '.join(sorted(merge_settings))}: a table of version "
            f"{version.number} merges by a payload class, and none merges so. Keep its version"
        )
    if mode == _CUSTOM:
        return named
    agrees = _MODE_OF_PAYLOAD.get(named) == mode or _OLD_PAYLOADS.get(named, ("",))[0] == mode
    return named if agrees and named else PAYLOAD_OF_MODE.get(mode, "")
