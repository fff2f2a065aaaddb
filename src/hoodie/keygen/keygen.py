"""Which key generator a table has: its settings from properties, and partition paths as text in both directions."""

import dataclasses
import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import pyarrow as pa

from hoodie.config.keygen import KeyOptions, TimeOptions, TimestampType
from hoodie.config.options import declared, read_options
from hoodie.config.table import key_generator_name
from hoodie.errors import InvalidOption, SchemaMismatch
from hoodie.keygen.timebased import TimestampSettings, output_zone, timestamp_settings
from hoodie.model.table_version import VERSIONS
from hoodie.schema.types import TIMESTAMP_MILLIS, TIMESTAMP_NTZ_MILLIS

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"  # the path of a value that is null or empty
NULL_KEY_PART = "__null__"
EMPTY_KEY_PART = "__empty__"

_MILLIS = (TIMESTAMP_MILLIS, TIMESTAMP_NTZ_MILLIS)

ESCAPED_CHARACTERS = "%" + "".join(map(chr, range(0x20))) + "\x7f\"#'*/:=?\\{[]^"  # "%" first: it marks an escape
_ESCAPED = re.compile(f"[{re.escape(ESCAPED_CHARACTERS)}]")
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")


class Kind(StrEnum):
    """The key generators; the values are Hudi's type names."""

    SIMPLE = "SIMPLE"
    COMPLEX = "COMPLEX"
    NON_PARTITION = "NON_PARTITION"
    TIMESTAMP = "TIMESTAMP"
    CUSTOM = "CUSTOM"
    GLOBAL_DELETE = "GLOBAL_DELETE"


class FieldKind(StrEnum):
    """How one partition field becomes text."""

    SIMPLE = "SIMPLE"
    TIMESTAMP = "TIMESTAMP"
    UNKNOWN = "UNKNOWN"  # a stored CUSTOM table without the type; enough to read, not to write


@dataclass(frozen=True, slots=True)
class PartitionField:
    """A column, perhaps nested ("a.b"), and how it becomes a part of the partition path."""

    name: str
    kind: FieldKind = FieldKind.SIMPLE


@dataclass(frozen=True)
class KeyGenerator:
    """How rows get their record key and partition path.

    record_keys            none: the table makes keys itself (`keygen.generated_keys`)
    prefix_single_key      COMPLEX with one key field writes "id:4" (Hudi up to 0.14.0, and 1.1 on) instead of "4":
                           a table keeps what its rows have, see `following_stored_keys`
    timestamp              None where no field needs it, and in `stored_key_generator` where the table has no settings
    consistent_timestamps  timestamps as `yyyy-MM-dd HH:mm:ss.S` on the clocks of `zone` instead of numbers
    zone                   as `to_zone` takes it. The same in every process, or a row has two keys
    times                  columns of dates and times, with the types that they have in the table: keys and paths have
                           the numbers of that unit, and of rows with another kind of time none are made
    """

    kind: Kind
    record_keys: tuple[str, ...]
    partition_fields: tuple[PartitionField, ...] = ()
    hive_style: bool = False
    url_encode: bool = False
    prefix_single_key: bool = False
    timestamp: TimestampSettings | None = None
    consistent_timestamps: bool = False
    zone: str = "UTC"
    times: tuple[tuple[str, pa.DataType], ...] = ()

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """What keys and partition paths are made of, perhaps nested."""
        return (*self.record_keys, *(field.name for field in self.partition_fields))

    @cached_property
    def makes_new_keys(self) -> bool:
        """Whether keys are not made of columns: each new row gets one of its own."""
        return not self.record_keys

    @cached_property
    def writes_pairs(self) -> bool:
        """Whether a record key is `field:value,...` rather than the bare value of its one field."""
        if len(self.record_keys) > 1 or self.kind is Kind.GLOBAL_DELETE:
            return True
        return self.kind is Kind.COMPLEX and self.prefix_single_key

    @cached_property
    def in_millis(self) -> frozenset[str]:
        """The columns whose timestamps the table holds in milliseconds."""
        return frozenset(column for column, kind in self.times if kind in _MILLIS)


_CLASSES = {
    "SimpleKeyGenerator": Kind.SIMPLE,
    "SimpleAvroKeyGenerator": Kind.SIMPLE,
    "ComplexKeyGenerator": Kind.COMPLEX,
    "ComplexAvroKeyGenerator": Kind.COMPLEX,
    "NonpartitionedKeyGenerator": Kind.NON_PARTITION,
    "NonpartitionedAvroKeyGenerator": Kind.NON_PARTITION,
    "GlobalDeleteKeyGenerator": Kind.GLOBAL_DELETE,
    "GlobalAvroDeleteKeyGenerator": Kind.GLOBAL_DELETE,
    "TimestampBasedKeyGenerator": Kind.TIMESTAMP,
    "TimestampBasedAvroKeyGenerator": Kind.TIMESTAMP,
    "CustomKeyGenerator": Kind.CUSTOM,
    "CustomAvroKeyGenerator": Kind.CUSTOM,
}
_PACKAGE = "org.apache.hudi.keygen."


def key_generator(properties: Mapping[str, str]) -> KeyGenerator:
    """The key generator that table properties and write options describe, complete enough to write with.

    Both spellings of a setting (the table's `hoodie.table.*` and the option `hoodie.datasource.write.*`) are read.
    Without a record key new rows get keys of their own.
    Raises InvalidOption where they differ, on an unknown generator, no record key for GLOBAL_DELETE, a number of fields
    that the generator cannot take, and timestamp settings that are missing or cannot be carried out.
    """
    keygen = stored_key_generator(properties)
    if keygen.makes_new_keys and keygen.kind is Kind.GLOBAL_DELETE:
        raise InvalidOption(f"no record key: set {_name('record_key')} to the columns that identify a row")
    for field in keygen.partition_fields:
        if field.kind is FieldKind.UNKNOWN:
            raise InvalidOption(
                f"{_name('partition')}: the CUSTOM key generator needs {field.name}:SIMPLE or {field.name}:TIMESTAMP"
            )
    if any(field.kind is FieldKind.TIMESTAMP for field in keygen.partition_fields) and keygen.timestamp is None:
        return dataclasses.replace(keygen, timestamp=timestamp_settings(properties))  # raises: it says what is missing
    return keygen


def stored_key_generator(properties: Mapping[str, str]) -> KeyGenerator:
    """As `key_generator`, for reading a table: settings that only writers need may be missing.

    Hudi leaves the time settings, and the types of CUSTOM fields, to the options of each write.
    """
    chosen = _agreed_options(properties)
    kind = _kind(chosen)
    fields = tuple(_partition_field(text, kind) for text in chosen.partition)
    if kind in (Kind.NON_PARTITION, Kind.GLOBAL_DELETE):
        fields = ()
    if kind in (Kind.SIMPLE, Kind.TIMESTAMP):
        if len(chosen.record_key) > 1:
            raise InvalidOption(
                f"{_name('record_key')}={','.join(chosen.record_key)!r}: the {kind} key generator takes one column; "
                "use COMPLEX"
            )
        if len(fields) != 1:
            raise InvalidOption(
                f"{_name('partition')}={','.join(chosen.partition)!r}: the {kind} key generator takes one column; "
                "use COMPLEX for more, NON_PARTITION for none"
            )
    times = read_options(TimeOptions, properties)
    zone = output_zone(properties) if times.zone or times.output_zone else ""
    keygen = KeyGenerator(
        kind, chosen.record_key, fields, chosen.hive_style, chosen.url_encode,
        prefix_single_key=not chosen.plain_single_key or _prefixed(properties),
        consistent_timestamps=chosen.consistent_timestamps, zone=zone or "UTC",
    )  # fmt: skip
    if any(field.kind is FieldKind.TIMESTAMP for field in fields) and times.type and times.output_format:
        return dataclasses.replace(keygen, timestamp=timestamp_settings(properties))
    return keygen


def _prefixed(properties: Mapping[str, str]) -> bool:
    """Whether the table's version has single COMPLEX keys as "id:4", whatever options say."""
    number = properties.get("hoodie.table.version") or properties.get("hoodie.write.table.version") or ""
    return number.isdigit() and int(number) in VERSIONS and VERSIONS[int(number)].prefixes_single_key


def number_time_columns(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The partition columns whose values are numbers, or times, that the key generator prints as times in a pattern.

    Empty where it has no settings, and for columns of text (DATE_STRING, MIXED). Nothing is refused: reads of rows
    do not depend on the rest of the settings.
    """
    texts = (TimestampType.DATE_STRING, TimestampType.MIXED)
    if read_options(TimeOptions, properties).type.strip() not in set(TimestampType).difference(texts):
        return ()
    chosen = read_options(KeyOptions, {key: value for key, value in properties.items() if value.strip()})
    words = (chosen.generator_class.rpartition(".")[2], chosen.generator_type.strip().upper())
    if any(word.startswith(("Timestamp", "TIMESTAMP")) for word in words):
        return chosen.partition
    pairs = [text.partition(":") for text in chosen.partition]
    return tuple(name.strip() for name, _, kind in pairs if kind.strip().upper() == FieldKind.TIMESTAMP)


def following_stored_keys(keygen: KeyGenerator, stored_keys: Iterable[str]) -> KeyGenerator:
    """The generator that writes single COMPLEX keys as the table's rows have them, so that an update finds its row.

    stored_keys  a few of the table's record keys, such as the key ranges of its base files; none: nothing changes
    """
    keys = list(stored_keys)
    if not keys or keygen.kind is not Kind.COMPLEX or len(keygen.record_keys) != 1:
        return keygen
    prefixed = all(key.startswith(f"{keygen.record_keys[0]}:") for key in keys)
    return dataclasses.replace(keygen, prefix_single_key=prefixed)


def escape_path(value: str) -> str:
    """The value with the characters that Hive escapes in partition folders as "%" and two hex digits."""
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", value)


def unescape_path(value: str) -> str:
    """The value with each "%" and two hex digits turned back; any other "%" stays."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), value)


def partition_values(path: str, keygen: KeyGenerator) -> tuple[str | None, ...]:
    """The text of each partition field's value, parsed from a partition path: best effort.

    returns  one for each partition field. None: null or empty, the formatted time of a TIMESTAMP field (the column's
             value is lost), or ambiguous in the path. None never means that a value can be ruled out.
    """
    if not keygen.partition_fields:
        return ()
    texts = partition_texts(path, keygen)
    # Spark SQL escapes hive-style paths though the table says it does not: unescape those always.
    escaped = keygen.hive_style or keygen.url_encode
    return tuple(
        None
        if text is None or text == NULL_PARTITION or field.kind is not FieldKind.SIMPLE
        else (unescape_path(text) if escaped else text)
        for field, text in zip(keygen.partition_fields, texts, strict=True)
    )


def partition_texts(path: str, keygen: KeyGenerator) -> list[str | None]:
    """What a partition path says of each partition field, as it is written there; None: ambiguous."""
    names = [field.name for field in keygen.partition_fields]
    if not names:
        return []
    return _hive_style_texts(path, names) if keygen.hive_style else _plain_texts(path, names)


def _hive_style_texts(path: str, names: list[str]) -> list[str | None]:
    # A value that is not escaped may hold "/": it ends where the next field's "name=" begins.
    texts: list[str | None] = []
    rest = path
    for name, following_name in zip(names, [*names[1:], None], strict=True):
        if not rest.startswith(f"{name}="):
            return [None] * len(names)
        value = rest.removeprefix(f"{name}=")
        if following_name is None:
            texts.append(value)
            break
        value, separator, tail = value.partition(f"/{following_name}=")
        if not separator:
            return [None] * len(names)
        texts.append(value)
        rest = f"{following_name}={tail}"
    return texts


def _plain_texts(path: str, names: list[str]) -> list[str | None]:
    levels = path.split("/")
    if len(names) == 1:
        return [path]
    return [*levels] if len(levels) == len(names) else [None] * len(names)


def _name(field: str) -> str:
    return next(spec.keys[0] for option_field, spec in declared(KeyOptions) if option_field.name == field)


def _agreed_options(properties: Mapping[str, str]) -> KeyOptions:
    """The options on which table properties and write options agree; empty text counts as not set."""
    settings = {key: value for key, value in properties.items() if not isinstance(value, str) or value.strip()}
    chosen = read_options(KeyOptions, settings)
    for option_field, spec in declared(KeyOptions):
        keys = [key for key in spec.keys if key in settings]
        values = [getattr(read_options(KeyOptions, {key: settings[key]}), option_field.name) for key in keys]
        if len(values) < 2:
            continue
        if option_field.name == "partition":  # the table may have left the types of CUSTOM fields out
            values.sort(key=lambda value: sum(":" in text for text in value), reverse=True)
            chosen = dataclasses.replace(chosen, partition=values[0])
            values = [tuple(text.partition(":")[0] for text in value) for value in values]
        if option_field.name == "generator_class":
            values = [_kind_of_class(value) for value in values]
        if option_field.name == "generator_type":
            values = [_kind_of_type(value) for value in values]
        if values[0] != values[1]:
            raise InvalidOption(
                f"{keys[0]}={settings[keys[0]]!r} contradicts {keys[1]}={settings[keys[1]]!r}; "
                "a table keeps the key generator and columns that it was created with"
            )
    return chosen


def _kind(chosen: KeyOptions) -> Kind:
    by_class = _kind_of_class(chosen.generator_class) if chosen.generator_class else None
    by_type = _kind_of_type(chosen.generator_type) if chosen.generator_type else None
    if by_class and by_type and by_class is not by_type:
        raise InvalidOption(
            f"{_name('generator_class')}={chosen.generator_class!r} contradicts "
            f"{_name('generator_type')}={chosen.generator_type!r}"
        )
    if kind := by_class or by_type:
        return kind
    if not chosen.partition:
        return Kind.NON_PARTITION
    if any(":" in text for text in chosen.partition):
        return Kind.CUSTOM
    return Kind.SIMPLE if len(chosen.record_key) <= 1 and len(chosen.partition) == 1 else Kind.COMPLEX


def _kind_of_class(name: str) -> Kind:
    kind = _CLASSES.get(key_generator_name(name))
    if kind is None:
        class_names = ", ".join(key for key in _CLASSES if "Avro" not in key)
        raise InvalidOption(f"{_name('generator_class')}={name!r}: expected {_PACKAGE} and one of {class_names}")
    return kind


def _kind_of_type(name: str) -> Kind:
    text = name.strip().upper().removesuffix("_AVRO")
    if text not in Kind.__members__:
        raise InvalidOption(f"{_name('generator_type')}={name!r}: expected one of {', '.join(Kind)}")
    return Kind(text)


def _partition_field(text: str, kind: Kind) -> PartitionField:
    if kind is Kind.TIMESTAMP:
        return PartitionField(text, FieldKind.TIMESTAMP)
    if kind is not Kind.CUSTOM:
        return PartitionField(text)
    name, colon, type_name = (part.strip() for part in text.partition(":"))
    if not colon:
        return PartitionField(name, FieldKind.UNKNOWN)
    if type_name.upper() not in ("SIMPLE", "TIMESTAMP") or not name:
        raise InvalidOption(
            f"{_name('partition')}: {text!r} in a CUSTOM key generator: expected column:SIMPLE or column:TIMESTAMP"
        )
    return PartitionField(name, FieldKind(type_name.upper()))


def lacking_columns(
    names: Sequence[str], has: Callable[[str], bool], keygen: KeyGenerator, ordering: Sequence[str] = ()
) -> list[str]:
    """What rows lack of what keys, paths and ordering need: one line for each column, none if they have all.

    names  of the top-level columns, for a hint at another spelling
    has    whether there is a column of a name, perhaps within a struct
    """
    columns = [("record key", name) for name in keygen.record_keys]
    columns += [("partition", field.name) for field in keygen.partition_fields]
    columns += [("ordering", name) for name in ordering]
    return [f"{role} column {name!r} is missing{_like(name, names)}" for role, name in columns if not has(name)]


def _like(name: str, names: Sequence[str]) -> str:
    spellings = {column.lower(): column for column in names}
    near = difflib.get_close_matches(name.lower(), spellings, n=1)
    return f" (there is {spellings[near[0]]!r})" if near else ""


def refuse_lacking(
    names: Sequence[str], has: Callable[[str], bool], keygen: KeyGenerator, ordering: Sequence[str], table: str
) -> None:
    """Refuse a batch without what keys, partition paths and ordering are made of. Arguments as of `lacking_columns`.

    Raises  SchemaMismatch naming all columns that are missing or there more than once
    """
    counts = Counter(name.lower() for name in names)
    twice = [
        f"column {name!r} occurs more than once (names differ in case only, or not at all)"
        for name in dict.fromkeys(path.partition(".")[0] for path in (*keygen.columns, *ordering))
        if counts[name.lower()] > 1
    ]
    if problems := [*lacking_columns(names, has, keygen, ordering), *twice]:
        raise SchemaMismatch(f"The batch does not fit table {table!r}: {'; '.join(problems)}.")
