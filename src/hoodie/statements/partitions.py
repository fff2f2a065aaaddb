"""Partitions of tables of ours: ADD, DROP, TRUNCATE and SHOW."""

import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    FractionalType,
    IntegralType,
    StructField,
    TimestampNTZType,
    TimestampType,
)

from hoodie.api.table import HoodieTable
from hoodie.errors import PartitionsNotThere
from hoodie.keygen.arrow_keys import in_units_of, partition_path
from hoodie.keygen.keygen import (
    NULL_PARTITION,
    FieldKind,
    KeyGenerator,
    partition_texts,
    stored_key_generator,
    unescape_path,
)
from hoodie.reading.table_schema import read_schema
from hoodie.spark.keyed import to_arrow_table
from hoodie.statements.cutting import Name, Text
from hoodie.statements.rows import empty_result, opened, require_grammar, table_rows
from hoodie.table.state import load_state

#: Words before a literal's text, and the types whose values have several texts.
_TYPED = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")
_READ_BY_SPARK = (TimestampType, TimestampNTZType, FractionalType)


def truncate(session: SparkSession, text: Text) -> DataFrame | None:
    parts, at = text.name(2)
    table = opened(session, Name(parts, parts[-1]))
    if table is None:
        return None
    require_grammar(session, text)
    named = text.word(at) == "PARTITION"
    if paths := _partition_paths(table, text, at, quiet=True) if named else _paths(table):
        table.delete_partitions(paths)
    return empty_result(session)


def _paths(table: HoodieTable[DataFrame]) -> list[str]:
    """The partition paths that hold files."""
    return sorted({slice_.group.partition for slice_ in table.file_slices()})


def alter_partitions(session: SparkSession, table: HoodieTable[DataFrame], text: Text, at: int) -> DataFrame | None:
    """ADD and DROP PARTITION, and RECOVER PARTITIONS; None: it is another ALTER TABLE.

    A partition is there as long as it has rows: nothing is to be added or recovered.
    """
    word = text.word(at)
    if text.words(at + 2)[at:] == ("RECOVER", "PARTITIONS"):
        require_grammar(session, text)
        return empty_result(session)
    quiet = text.word(at + 1) == "IF"
    start = at + 1 + quiet * (2 + (word == "ADD"))
    if word not in ("ADD", "DROP") or text.word(start) != "PARTITION":
        return None
    require_grammar(session, text)
    if word == "ADD":
        for spec in _specs(text, start):
            _require_columns(table, spec, _clause_values(spec), whole=True)
    elif paths := _partition_paths(table, text, start, quiet):
        table.delete_partitions(paths)
    return empty_result(session)


def _specs(text: Text, at: int) -> Iterator[Text]:
    """What stands in the brackets of `PARTITION (…), PARTITION (…)`, and without commas between them."""
    while text.word(at) == "PARTITION":
        if text.word(at + 1) != "(":
            raise text.unreadable("expected PARTITION (column = value)", at)
        spec, closes = text.inside(at + 1)
        if text.word(closes + 1) == "LOCATION":
            raise text.unreadable("partitions stand in the folder of their table: leave LOCATION out", closes + 1)
        yield spec
        at = closes + 1 + (text.word(closes + 1) == ",")


def _partition_paths(table: HoodieTable[DataFrame], text: Text, at: int, quiet: bool = False) -> list[str]:
    """The paths of `PARTITION (dt = '2024-01-31')`, whose values are literals: all partitions that have them.

    at      the place of PARTITION
    quiet   nothing is told of a PARTITION that the table does not have; as in Hudi it is passed by
    Raises  StatementError
    """
    specs = {path: spec.items() for path, spec in _values(table).items()}
    paths: dict[str, None] = {}
    for part in _specs(text, at):
        values = _clause_values(part)
        _require_columns(table, part, values, whole=False)
        values = _as_in_paths(table, values)
        chosen = [path for path, spec in specs.items() if values.items() <= spec]
        if not chosen and not quiet:
            warnings.warn(PartitionsNotThere(load_state(table.storage).config.name, (str(part),)), stacklevel=2)
        paths |= dict.fromkeys(chosen)
    return list(paths)


def named_partition(table: HoodieTable[DataFrame], text: Text, at: int) -> tuple[str, dict[str, str]]:
    """The path of the one partition that `PARTITION (…)` names, and the values of its columns. Raises StatementError

    at  the place of PARTITION
    """
    if text.word(at + 1) != "(":
        raise text.unreadable("expected PARTITION (column = value)", at)
    part, closes = text.inside(at + 1)
    if closes + 1 < len(text.tokens):
        raise text.unreadable("unexpected text behind PARTITION (…)", closes + 1)
    values = _clause_values(part)
    _require_columns(table, part, values, whole=True)
    values = _as_in_paths(table, values)
    for path, spec in _values(table).items():
        if values == spec:
            return path, values
    raise part.unreadable(f"the table has no such partition; SHOW PARTITIONS lists those of {table.path}")


def _require_columns(table: HoodieTable[DataFrame], spec: Text, values: Mapping[str, str], *, whole: bool) -> None:
    """Raises StatementError where a PARTITION clause names other columns than those of the partitions, or not all."""
    columns = [name.lower() for name in load_state(table.storage).config.partition_columns]
    others, missing = values.keys() - set(columns), set(columns) - values.keys()
    if others or (whole and missing) or not values:
        raise spec.unreadable(f"the table is partitioned by {', '.join(columns) or 'nothing'}")


def _clause_values(spec: Text) -> dict[str, str]:
    """What `dt = '2024-01-31', city = 'oslo'` says: column in lower case -> text of the value."""
    values = {}
    for item in spec.split():
        parts, behind = item.name()
        value = _literal(item, behind + 1) if item.word(behind) == "=" else None
        if value is None:
            raise item.unreadable("expected partition column = value")
        values[parts[-1].lower()] = value
    return values


def _literal(item: Text, at: int) -> str | None:
    """The text of a literal that ends an item: '2024-01-31', DATE '2024-01-31', 7, 7L, -7, 1.5BD or NULL, which has
    the partition of the empty text; None: it is none."""
    end = len(item.tokens) - 2 * (item.word(-2) == "::")  # what is behind 7 in 7L
    before, last = item.word(at), item.tokens[end - 1]
    is_value = not item.is_quoted(end - 1)
    if end == at + 1:
        return NULL_PARTITION if before == "NULL" or not last.text else last.text
    if end != at + 2:
        return None
    if before == "-" and is_value:
        return f"-{last.text}"
    return last.text if before in _TYPED and not is_value else None


def _as_in_paths(table: HoodieTable[DataFrame], values: Mapping[str, str]) -> dict[str, str]:
    """The values of a PARTITION clause as paths have them: Spark reads TRUE, 007 and '2024-1-5' as values of the type
    of the column. Fields that a format makes, such as `yyyy/MM`, are compared as texts."""
    state = load_state(table.storage)
    schema = read_schema(state)
    keygen = in_units_of(stored_key_generator(state.config.properties), schema)
    plain = {field.name.lower() for field in keygen.partition_fields if field.kind is FieldKind.SIMPLE}
    columns = {field.name.lower(): field for field in table.snapshot().schema.fields}
    texts = dict(values)
    for name, text in values.items():
        if name not in plain or name not in columns or text == NULL_PARTITION:
            continue
        column = columns[name]
        if isinstance(column.dataType, _READ_BY_SPARK):
            texts[name] = _text_of_value(table.session, text, column, keygen)
        else:
            texts[name] = _path_text(text, column.dataType)
    return texts


def _text_of_value(session: SparkSession, text: str, column: StructField, keygen: KeyGenerator) -> str:
    """The text in paths of a value that Spark reads; the text itself where it reads none, as it is one of a path."""
    row = to_arrow_table(session.range(1).select(F.lit(text).try_cast(column.dataType).alias(column.name)))
    if row.column(0).null_count:
        return text
    fields = tuple(field for field in keygen.partition_fields if field.name == column.name)
    path: str = partition_path(row, replace(keygen, partition_fields=fields, hive_style=False, url_encode=False))[
        0
    ].as_py()
    return path


def _path_text(text: str, data_type: DataType) -> str:
    if isinstance(data_type, BooleanType):
        return text.lower() if text.lower() in ("true", "false") else text
    if isinstance(data_type, IntegralType) and re.fullmatch("[+-]?[0-9]+", text):
        return str(int(text))
    if isinstance(data_type, DateType) and (date := re.fullmatch("([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})", text)):
        return f"{date[1]}-{date[2]:0>2}-{date[3]:0>2}"
    return text


def _values(table: HoodieTable[DataFrame]) -> dict[str, dict[str, str]]:
    """The values of each partition path that holds files, by column in lower case; {}: slashes in values, as they are,
    leave open which belongs to which."""
    state = load_state(table.storage)
    keygen = stored_key_generator(state.config.properties)
    names = [field.name.lower() for field in keygen.partition_fields]
    values_by_path: dict[str, dict[str, str]] = {}
    for path in _paths(table):
        texts = [text for text in partition_texts(path, keygen) if text is not None]
        texts = [*map(unescape_path, texts)] if keygen.url_encode else texts
        values_by_path[path] = dict(zip(names, texts, strict=True)) if len(texts) == len(names) else {}
    return values_by_path


def show_partitions(session: SparkSession, text: Text) -> DataFrame | None:
    parts, at = text.name(1)
    table = opened(session, Name(parts, parts[-1]))
    if table is None:
        return None
    require_grammar(session, text)
    values: dict[str, str] = {}
    if text.words(at + 2)[at:] == ("PARTITION", "("):
        spec, at = text.inside(at + 1)
        values = _clause_values(spec)
        _require_columns(table, spec, values, whole=False)
        values, at = _as_in_paths(table, values), at + 1
    if at < len(text.tokens):
        raise text.unreadable("SHOW PARTITIONS … AS JSON is not supported: leave AS JSON out", at)
    names = load_state(table.storage).config.partition_columns
    specs = {path: spec for path, spec in _values(table).items() if path}
    rows = [
        ("/".join(f"{name}={value}" for name, value in zip(names, spec.values(), strict=False)) or path,)
        for path, spec in specs.items()
        if values.items() <= spec.items()
    ]
    return table_rows(session, rows, "partition string")
