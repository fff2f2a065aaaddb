"""Making a table, seeing that an existing one is what the caller takes it for, and what a write's options add.

Hudi leaves the settings of time-based partitions, the types of CUSTOM partition columns and, on Copy-on-Write tables,
the payload class to the options of each write; such a table of ours names the default class. An option may add what
the table leaves open, and change nothing.
"""

import dataclasses
import warnings
from collections.abc import Mapping

from hoodie.config.compaction import RECORDED
from hoodie.config.datasource import (
    DEFAULT_PAYLOAD,
    OF_TABLES,
    ChangeLogOptions,
    TableOptions,
    VersionOptions,
    overridden,
)
from hoodie.config.keygen import KeyOptions, TimeOptions, TimestampType
from hoodie.config.options import declared, group_keys, read_options
from hoodie.config.read import MergerOptions
from hoodie.config.services import RECORDED as RECORDED_HISTORY
from hoodie.config.services import kept_options
from hoodie.config.table import (
    CDC,
    CDC_MODE,
    PROPERTIES_FILE,
    TableConfig,
    TableType,
    from_properties,
    key_generator_name,
    payload_name,
    require_unicode,
)
from hoodie.errors import HudiCannotRead, InvalidOption, NoRecordKey, TableMismatch, TableNotFound
from hoodie.keygen.keygen import FieldKind, KeyGenerator, Kind, key_generator, stored_key_generator
from hoodie.keygen.time_units import UNIT
from hoodie.keygen.timebased import output_zone
from hoodie.merge.merger import MERGER, load_merger, names_event_time, own_merger, python_mergers, strategy_id
from hoodie.merge.payloads import DEFAULT as EVENT_TIME_PAYLOAD
from hoodie.merge.payloads import rule_for
from hoodie.model.table_version import VERSIONS, WRITTEN, TableVersion
from hoodie.storage.protocol import Storage
from hoodie.table.other_tables import other_table
from hoodie.table.properties import completed_commits, create_properties
from hoodie.table.recorded_index import recorded_index
from hoodie.table.state import TableState, load_state
from hoodie.table.version_properties import (
    KEY_GENERATOR_CLASSES,
    KEYGEN_CLASS,
    KEYGEN_TYPE,
    MODE,
    PRECOMBINE,
    as_version_6,
    of_version,
)
from hoodie.timeline.load import load_timeline

_KIND_OF = {name.rpartition(".")[2]: kind.value for kind, name in KEY_GENERATOR_CLASSES.items()}
_STRATEGY = "hoodie.compaction.record.merger.strategy"
#: What Hudi writes beside any payload class.
_DEFAULT_STRATEGY = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
_PAYLOAD = "hoodie.compaction.payload.class"
_KEY, _VERSION = "hoodie.table.recordkey.fields", "hoodie.table.version"
_TIMES = ("hoodie.keygen.timebased.", "hoodie.deltastreamer.keygen.timebased.", UNIT)

#: Table properties that a caller's settings are compared with; the rest does not change what the table is.
_COMPARED = (
    "hoodie.table.name",
    _VERSION,
    "hoodie.table.type",
    "hoodie.table.recordkey.fields",
    "hoodie.table.partition.fields",
    "hoodie.table.precombine.field",
    "hoodie.table.keygenerator.class",
    "hoodie.datasource.write.hive_style_partitioning",
    "hoodie.datasource.write.partitionpath.urlencode",
    _PAYLOAD,
    MERGER,
    UNIT,
    *RECORDED_HISTORY,
)


def table_properties(
    options: Mapping[str, str],
    *,
    own_call: bool = False,
    keep: str | int | None = None,
    version: TableVersion | None = None,
) -> dict[str, str]:
    """What `hoodie.properties` of a table with these options holds, checksum apart.

    own_call  of this library, none of Hudi's doors: where the options name an ordering column, and neither payload
              class nor merger, late rows lose; and the table keeps what they say about compaction
    keep      how much history cleaning keeps; as `kept_options` takes it
    version   None: as the options say
    Raises InvalidOption on a missing name, and what contradicts itself; UnsupportedTable on an unknown payload
    """
    chosen = read_options(TableOptions, options)
    change_logs = read_options(ChangeLogOptions, options)
    keygen = key_generator(options)
    if not chosen.name:
        raise InvalidOption("the table needs a name: hoodie.table.name")
    if chosen.type not in TableType.__members__:
        raise InvalidOption(f"hoodie.datasource.write.table.type={chosen.type!r}: expected {', '.join(TableType)}")
    merger = _merger(options)
    version = version or VERSIONS[read_options(VersionOptions, options).version]
    ordering = _ordering(chosen, version)
    payload = _payload(options, chosen, merger, by_default=own_call or version.layout == 2)
    rule_for(payload, ordering)
    partitions = [field.name for field in keygen.partition_fields]
    properties = {
        "hoodie.table.name": chosen.name,
        "hoodie.database.name": chosen.database,
        "hoodie.table.type": chosen.type,
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.table.base.file.format": "PARQUET",
        _KEY: ",".join(keygen.record_keys),
        "hoodie.table.partition.fields": ",".join(partitions),
        "hoodie.table.keygenerator.class": KEY_GENERATOR_CLASSES[keygen.kind],
        "hoodie.datasource.write.hive_style_partitioning": str(keygen.hive_style).lower(),
        "hoodie.datasource.write.partitionpath.urlencode": str(keygen.url_encode).lower(),
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.populate.meta.fields": "true",
        "hoodie.partition.metafile.use.base.format": "false",
        "hoodie.archivelog.folder": "archived",
        CDC: str(change_logs.enabled).lower(),
        _PAYLOAD: payload,  # on Copy-on-Write, too: Hudi 1.x takes a table without one for an event-time table
    }
    if change_logs.enabled:
        properties[CDC_MODE] = change_logs.images.value
    if ordering:
        properties[PRECOMBINE] = ",".join(ordering)
    if chosen.type == TableType.MERGE_ON_READ:
        properties[_STRATEGY] = _DEFAULT_STRATEGY
    if merger:
        properties |= {MERGER: merger, _STRATEGY: strategy_id(merger)}
    if not keygen.partition_fields:
        del properties["hoodie.table.partition.fields"]
    if keygen.makes_new_keys:
        del properties[_KEY]
    stored_options = _stored_options(options, keygen)
    if own_call and chosen.type == TableType.MERGE_ON_READ:
        stored_options |= {key: options[key] for key in RECORDED if key in options}
    properties |= stored_options | kept_options(keep) | recorded_index(options, properties)
    return of_version(properties, version)


def _ordering(chosen: TableOptions, version: TableVersion) -> tuple[str, ...]:
    """The ordering columns. Raises InvalidOption on more than tables of the version have"""
    ordering = tuple(name.strip() for name in chosen.ordering.split(",") if name.strip())
    if len(ordering) > 1 and not version.orders_by_several:
        able = next(number for number, other in VERSIONS.items() if other.orders_by_several)
        raise InvalidOption(
            f"{PRECOMBINE}={chosen.ordering!r}: a table of version {version.number} has one ordering column. Name one, "
            f"or set hoodie.write.table.version={able}"
        )
    return ordering


def _payload(options: Mapping[str, str], chosen: TableOptions, merger: str, *, by_default: bool) -> str:
    """The payload class.

    by_default  with an ordering column, and without a payload class or a merger, the greater value wins: with a merge
                mode in place of a payload class Hudi does so as well
    """
    by_ordering = (by_default and chosen.ordering and not merger) or names_event_time(_mergers(options))
    unnamed = _PAYLOAD not in named_settings(options)
    return EVENT_TIME_PAYLOAD if by_ordering and unnamed else payload_name(chosen.payload)


def _stored_options(options: Mapping[str, str], keygen: KeyGenerator) -> dict[str, str]:
    """The options that a table keeps of its key generator: later writes must make the same keys."""
    stored = {key: value for key, value in options.items() if key.startswith(_TIMES)}
    if keygen.kind is Kind.CUSTOM:  # readers take partition.fields for column names; the types stand apart
        typed = ",".join(f"{field.name}:{field.kind}" for field in keygen.partition_fields)
        stored["hoodie.datasource.write.partitionpath.field"] = typed
    if keygen.consistent_timestamps:
        stored["hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"] = "true"
        # Key generators of Hudi that print no times pass it by; of those that do it may be the zone of the text.
        if not output_zone(options) and all(field.kind is FieldKind.SIMPLE for field in keygen.partition_fields):
            stored["hoodie.keygen.timebased.output.timezone"] = keygen.zone
    if keygen.prefix_single_key:
        stored["hoodie.write.complex.keygen.new.encoding"] = "false"
    return stored


def _merger(options: Mapping[str, str]) -> str:
    """The import path of the user's own merger, "" for none. Raises InvalidOption unless it can be loaded."""
    paths = python_mergers(_mergers(options))
    if len(paths) > 1:
        raise InvalidOption(f"a table has one merger, not {len(paths)}: {', '.join(paths)}")
    for path in paths:
        load_merger(path)
    return paths[0] if paths else ""


def _mergers(options: Mapping[str, str]) -> tuple[str, ...]:
    return read_options(MergerOptions, options).mergers


def create(
    storage: Storage, options: Mapping[str, str], *, own_call: bool = False, keep: str | int | None = None
) -> TableState:
    """Make the table, or open it if it is there with the same settings.

    own_call, keep  as of `table_properties`
    Raises TableNotFound where the path is a file;
           InvalidInput on a path or a setting that is no Unicode text;
           TableMismatch naming each setting that differs, or where the folder holds Parquet files, or a table of Delta
           or Iceberg
    """
    properties = table_properties(options, own_call=own_call, keep=keep)
    require_unicode("the table's path", storage.root)
    for key, value in properties.items():
        require_unicode(key, value)
    try:
        empty = not storage.list(".hoodie")
    except NotADirectoryError:
        raise TableNotFound(storage.root, is_file=True) from None
    if empty and (kind := other_table(storage)):
        raise TableMismatch(
            f"{storage.root} holds {kind}, and is no Hudi table. Choose an empty folder, and write their rows to it; "
            "nothing has changed."
        )
    if not storage.exists(PROPERTIES_FILE):
        warn_of_new_table(properties)
        if not empty:
            _require_layout(storage, properties)
    try:
        create_properties(storage, properties)
    except FileExistsError:
        state = load_state(storage)
        named = named_settings(options)
        properties = as_version_6(properties)
        for key in (_PAYLOAD, _VERSION):
            if key not in named:
                del properties[key]
        require_same(state, properties)
        return state
    return load_state(storage)


def _require_layout(storage: Storage, properties: Mapping[str, str]) -> None:
    """Refuse settings that hide the commits of a table which lost its own. Raises TableMismatch"""
    commits = completed_commits(storage)
    layout = int(properties["hoodie.timeline.layout.version"])
    if any(commits) and not commits[layout - 1]:
        versions = " or ".join(str(number) for number in WRITTEN if VERSIONS[number].layout != layout)
        raise TableMismatch(
            f"{storage.root} holds {sum(commits)} commits of a table that lost its settings, and they lie where "
            f"version {properties[_VERSION]} does not look for them. Set hoodie.write.table.version={versions}, as the "
            "table had it; nothing has changed."
        )


def warn_of_new_table(properties: Mapping[str, str]) -> None:
    """A table that is about to be made without a record key may have been meant to have one, and one of version 6 to be
    written by Hudi before 1.0. Warns NoRecordKey, HudiCannotRead"""
    name = properties["hoodie.table.name"]
    if _KEY not in properties:
        warnings.warn(NoRecordKey(name), stacklevel=3)
    kind = read_options(TimeOptions, properties).type
    if kind == TimestampType.EPOCHMICROSECONDS and VERSIONS[int(properties[_VERSION])].layout == 1:
        problem = (
            f"table {name!r} has partitions of {kind}, which Hudi before 1.0 does not know: it cannot write the table. "
            "SCALAR, with MICROSECONDS for its unit, makes the same partitions, and Hudi 0.15 has it."
        )
        warnings.warn(HudiCannotRead(problem), stacklevel=3)


def new_state(storage: Storage, options: Mapping[str, str]) -> TableState:
    """The table that `create` would make, to check a first batch against. Raises as `table_properties`."""
    config = from_properties(table_properties(options))
    return TableState(storage, config, load_timeline(storage, config))


def require_same(state: TableState, settings: Mapping[str, str]) -> None:
    """Refuse a table whose settings differ from those named. Settings that are not named agree with any.

    Raises TableMismatch naming them all
    """
    properties, settings = as_version_6(state.config.properties), as_version_6(settings)
    defaults = {_PAYLOAD: DEFAULT_PAYLOAD}
    classes = [key_generator_name(group.get(KEYGEN_CLASS, "")) for group in (settings, properties)]
    if [name in ("NonpartitionedKeyGenerator", "NON_PARTITION") for name in classes] == [True, False]:
        settings["hoodie.table.partition.fields"] = ""  # said before the class: users name columns
    problems = [
        f"{key} is {properties.get(key, defaults.get(key, ''))!r} in the table, not {settings[key]!r}"
        for key in _COMPARED
        if key in settings and _text(properties.get(key, defaults.get(key, ""))) != _text(settings[key])
    ]
    problems += _change_logs_wanted(state.config, settings)
    if problems:
        changed = _VERSION in settings and _text(properties[_VERSION]) != _text(settings[_VERSION])
        advice = "Leave hoodie.write.table.version unset: the table may have been upgraded or downgraded. "
        raise TableMismatch(
            f"{state.storage.root} holds a table with other settings: {'; '.join(problems)}. "
            f"{advice if changed else ''}Open it as it is, or choose another path."
        )


def _change_logs_wanted(config: TableConfig, settings: Mapping[str, str]) -> list[str]:
    """What a caller who asks for change data would not get: the table's own settings decide."""
    if settings.get(CDC) != "true":
        return []
    if not config.cdc:
        return [f"{CDC} is 'false' in the table, not 'true'"]
    images = settings.get(CDC_MODE, config.logged_images.value)
    if images == config.logged_images:
        return []
    return [f"{CDC_MODE} is {config.logged_images.value!r} in the table, not {images!r}"]


def _text(value: str) -> str:
    """Settings as compared: classes by the names that they have now, key generators by their kind, fields without
    blanks."""
    name = value.rpartition("keygen.")[2]
    if name in _KIND_OF or name in list(Kind):
        return _KIND_OF.get(name, name)
    return ",".join(part.strip() for part in payload_name(name).split(","))


def named_settings(options: Mapping[str, str]) -> dict[str, str]:
    """The table properties that options of a write name, by their name in `hoodie.properties`."""
    read = {}
    for option, spec in declared(TableOptions):
        keys = [key for key in spec.keys if key in options]
        if keys:
            read[option.name] = options[keys[0]]
    if "payload" in read:
        read["payload"] = payload_name(read["payload"])
    if not _VERSION_KEYS.isdisjoint(options):
        read["version"] = str(read_options(VersionOptions, options).version)
    names = {
        "name": "hoodie.table.name",
        "type": "hoodie.table.type",
        "ordering": "hoodie.table.precombine.field",
        "payload": _PAYLOAD,
        "version": _VERSION,
    }
    return {names[field]: value for field, value in read.items() if field in names} | _named_change_logs(options)


def _named_change_logs(options: Mapping[str, str]) -> dict[str, str]:
    read = read_options(ChangeLogOptions, options)
    if not read.enabled:
        return {}
    return {CDC: "true"} | ({CDC_MODE: read.images.value} if CDC_MODE in options else {})


_PAYLOADS = ("hoodie.compaction.payload.class", "hoodie.table.legacy.payload.class")


_TIME_KEYS, _VERSION_KEYS = group_keys(TimeOptions), group_keys(VersionOptions)
_OF_KEYS = group_keys(KeyOptions) | _TIME_KEYS
_MERGE_KEYS = group_keys(TableOptions, "payload", "merge_mode")
_GENERATOR_KEYS = group_keys(KeyOptions, "generator_class", "generator_type")
_RECORD_KEYS, _PATH_KEYS = group_keys(KeyOptions, "record_key"), _GENERATOR_KEYS | group_keys(KeyOptions, "partition")


def options_of(properties: Mapping[str, str], named: Mapping[str, str]) -> dict[str, str]:
    """The options that make a table like one that is there.

    properties  of that table
    named       options of the new table: they count before those of the old one, whose times and key generator do not
                count beside partition columns named here
    Raises InvalidOption when the table's rows are merged by a class of the user's own that `named` does not name
    """
    stored = as_version_6(properties)
    options = {key: value for key, value in stored.items() if value and key in OF_TABLES}
    typed = "hoodie.datasource.write.partitionpath.field" in options
    superseded = {MODE, KEYGEN_CLASS if KEYGEN_TYPE in stored else KEYGEN_TYPE}
    superseded |= {"hoodie.table.partition.fields"} if typed else set()
    if not _PATH_KEYS.isdisjoint(named):
        superseded |= _PATH_KEYS | _TIME_KEYS
    elif not _RECORD_KEYS.isdisjoint(named) and stored_key_generator(stored).kind not in (Kind.TIMESTAMP, Kind.CUSTOM):
        superseded |= _GENERATOR_KEYS
    mergers = _mergers(named)
    if MERGER in stored:
        own_merger(stored, mergers)
    if mergers or not _MERGE_KEYS.isdisjoint(named):
        superseded |= _MERGE_KEYS
    return dict(overridden({key: value for key, value in options.items() if key not in superseded}, named))


def with_write_options(state: TableState, options: Mapping[str, str]) -> TableState:
    """The state with what the options of a write add to the table's properties, to check and write with.

    Raises TableMismatch when options name other settings than the table has, InvalidOption on a malformed one
    """
    named = named_settings(options)
    added = {key: value for key, value in options.items() if key in _OF_KEYS}
    if (
        state.config.type is TableType.COPY_ON_WRITE
        and not state.config.merge_mode
        and payload_name(state.config.payload_class or DEFAULT_PAYLOAD) == DEFAULT_PAYLOAD
    ):
        added |= {key: named.pop(key) for key in _PAYLOADS if key in named}
    if not named and not added:
        return state
    require_same(state, named)
    _refuse_other_keys(state, added)
    properties = {**state.config.properties, **added}
    return dataclasses.replace(state, config=dataclasses.replace(state.config, properties=properties))


def with_path_options(state: TableState, options: Mapping[str, str]) -> TableState:
    """The state with what options say of partition paths and Hudi's tables may leave to them: how times are printed,
    and the kinds of CUSTOM partition columns. Raises as `with_write_options`"""
    left_open = {*_TIME_KEYS} - state.config.properties.keys()
    if any(field.kind is FieldKind.UNKNOWN for field in stored_key_generator(state.config.properties).partition_fields):
        left_open.add("hoodie.datasource.write.partitionpath.field")
    return with_write_options(state, {key: value for key, value in options.items() if key in left_open})


def _refuse_other_keys(state: TableState, options: Mapping[str, str]) -> None:
    properties = state.config.properties
    problems = []
    for _, spec in declared(TimeOptions):
        stored, named = ([group[key] for key in spec.keys if key in group] for group in (properties, options))
        if stored and named and stored[0] != named[0]:
            problems.append(f"{spec.keys[0]} is {stored[0]!r} in the table, not {named[0]!r}")
    if options:
        read_options(KeyOptions, options)  # malformed is another error than different
        try:
            before, after = stored_key_generator(properties), stored_key_generator({**properties, **options})
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
