"""DESCRIBE, SHOW CREATE TABLE, SHOW TBLPROPERTIES and SHOW COLUMNS of tables of ours: what the table itself says, and
its entry in Spark's catalog, if it has one.

Source: tests/vectors/sql_statements.json, the answers of the real Hudi.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from hoodie.api.table import HoodieTable
from hoodie.config.table import TableConfig
from hoodie.expressions.text import tick
from hoodie.model.meta import META_COLUMNS
from hoodie.schema.schema import without_meta_fields
from hoodie.spark.catalog import SESSION_CATALOG, CatalogTable, catalog_table
from hoodie.spark.entries import sql_text, sql_type
from hoodie.spark.names import qualified
from hoodie.spark.types import COMMENT, to_spark
from hoodie.statements.create_text import sql_properties
from hoodie.statements.cutting import Name, Text, rest_of
from hoodie.statements.names import table_if_ours
from hoodie.statements.partitions import named_partition
from hoodie.statements.rows import open_named, require_grammar, session_options, table_rows, with_tables
from hoodie.table.state import declared_schema, load_state

_COLUMNS = "col_name string, data_type string, comment string"
#: What Spark says of a column that nobody has computed statistics of.
_STATISTICS = ("min", "max", "num_nulls", "distinct_count", "avg_col_len", "max_col_len", "histogram")


@dataclass(frozen=True, slots=True)
class Described:
    """A table, as the statements of this module tell it.

    columns  the user's
    entry    in Spark's catalog; None: it has none
    """

    name: Name
    table: HoodieTable[DataFrame]
    config: TableConfig
    columns: StructType
    entry: CatalogTable | None

    @property
    def properties(self) -> dict[str, str]:
        """Hudi's of the table, and those that somebody gave its entry."""
        entry_properties = {} if self.entry is None else self.entry.properties
        return dict(sorted({**entry_properties, **sql_properties(self.config)}.items()))


def described(session: SparkSession, text: Text, parts: tuple[str, ...]) -> Described | None:
    """The table that a statement names; None: it is Spark's, or nobody's. Raises as `require_grammar`, `open_named`"""
    place = table_if_ours(session, parts)
    if place is None:
        return None
    require_grammar(session, text)
    name = Name(parts, parts[-1])
    table = open_named(session, name, place, session_options(session))
    state = load_state(table.storage)
    declared = declared_schema(state)
    columns = StructType() if declared is None else to_spark(without_meta_fields(declared))
    entry = catalog_table(session, qualified(session, parts)) if place.entry else None
    return Described(name, table, state.config, columns, entry)


def describe_from_statement(session: SparkSession, text: Text) -> DataFrame | None:
    """DESCRIBE of a table, a column or a query; None: it is Spark's."""
    text = rest_of(text)
    at = int(text.word(0) == "TABLE")
    extended = text.word(at) in ("EXTENDED", "FORMATTED")
    at += extended
    if text.word(0) == "QUERY" or text.word(0) in ("SELECT", "WITH", "FROM", "VALUES"):
        query = text.after(0) if text.word(0) == "QUERY" else text
        return with_tables(session, str(query), before="DESCRIBE QUERY ")
    if text.word(0) in ("DATABASE", "SCHEMA", "NAMESPACE", "FUNCTION", "CATALOG") and len(text.tokens) > 1:
        return None
    parts, behind = text.name(at)
    if text.words(behind + 2)[behind:] == ("AS", "JSON") and table_if_ours(session, parts) is not None:
        raise text.unreadable("DESCRIBE … AS JSON is not supported: leave AS JSON out", behind)
    description = described(session, text, parts)
    if description is None:
        return None
    if text.word(behind) == "PARTITION":
        partition = named_partition(description.table, text, behind)
        rows = [*_columns(description), *(_partition(description, *partition) if extended else ())]
        return table_rows(session, rows, _COLUMNS)
    if behind < len(text.tokens):
        return _column(session, description, text, behind, extended=extended)
    rows = [*_columns(description), *(_details(description) if extended else ())]
    return table_rows(session, rows, _COLUMNS)


def _column(session: SparkSession, description: Described, text: Text, at: int, *, extended: bool) -> DataFrame:
    parts, _ = text.name(at)
    name = parts[-1]
    fields = [field for field in description.columns.fields if field.name.lower() == name.lower()]
    if name in META_COLUMNS:
        rows = [("col_name", name), ("data_type", "string"), ("comment", "NULL")]
    elif len(parts) > 1 or not fields:
        names = ", ".join(description.columns.names)
        raise text.unreadable(f"{description.name} has no column {'.'.join(parts)}: there are {names}", at)
    else:
        comment = fields[0].metadata.get(COMMENT, "NULL")
        rows = [("col_name", fields[0].name), ("data_type", fields[0].dataType.simpleString()), ("comment", comment)]
    if extended:
        rows += [(what, "NULL") for what in _STATISTICS]
    return table_rows(session, rows, "info_name string, info_value string")


def _columns(description: Described) -> Iterator[tuple[str, str, str | None]]:
    for name in META_COLUMNS:
        yield name, "string", None
    for field in description.columns.fields:
        yield field.name, field.dataType.simpleString(), field.metadata.get(COMMENT)
    if not description.config.partition_columns:
        return
    yield "# Partition Information", "", ""
    yield "# col_name", "data_type", "comment"
    for name in description.config.partition_columns:
        own = description.columns[name] if name in description.columns.names else None
        kind = "string" if own is None else own.dataType.simpleString()
        yield name, kind, None if own is None else own.metadata.get(COMMENT)


def _details(description: Described) -> Iterator[tuple[str, str, str]]:
    yield "", "", ""
    yield "# Detailed Table Information", "", ""
    details: Mapping[str, str] = {"Table": str(description.name), "Type": "EXTERNAL", "Provider": "hudi"}
    if description.entry is not None:
        details = {"Catalog": SESSION_CATALOG, **description.entry.details}
    properties = ", ".join(f"{key}={value}" for key, value in description.properties.items())
    for key, value in {**details, "Table Properties": f"[{properties}]", "Location": _location(description)}.items():
        yield key, value, ""


def _partition(description: Described, path: str, values: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """What Spark says of a partition of its own tables, as far as one without an entry has it."""
    yield "", "", ""
    yield "# Detailed Partition Information", "", ""
    details = {} if description.entry is None else description.entry.details
    if "Database" in details:
        yield "Database", details["Database"], ""
    yield "Table", details.get("Table", str(description.name)), ""
    yield "Partition Values", f"[{', '.join(f'{name}={value}' for name, value in values.items())}]", ""
    yield "Location", f"{_location(description).rstrip('/')}/{path}", ""
    slices = description.table.file_slices(partitions=[path])
    size = sum(slice_.bytes for slice_ in slices)
    yield "Partition Statistics", f"{size} bytes, {len(slices)} file groups", ""


def _location(description: Described) -> str:
    return description.table.path if description.entry is None else description.entry.path


def show_create(session: SparkSession, text: Text) -> DataFrame | None:
    """SHOW CREATE TABLE: a statement that makes such a table by `spark.sql`. Hudi's own five columns stay out of it."""
    parts, at = text.name(2)
    description = described(session, text, parts)
    if description is None:
        return None
    if at < len(text.tokens):
        raise text.unreadable("AS SERDE is of tables of Hive: leave it out", at)
    name = (
        ".".join((SESSION_CATALOG, *map(_plain_name, qualified(session, parts))))
        if description.entry
        else str(description.name)
    )
    columns = ",\n".join(
        f"  {_plain_name(field.name)} {sql_type(field.dataType)}{'' if field.nullable else ' NOT NULL'}"
        + (f" COMMENT {sql_text(comment)}" if (comment := field.metadata.get(COMMENT)) else "")
        for field in description.columns.fields
    )
    properties = ",\n".join(f"  {sql_text(key)} = {sql_text(value)}" for key, value in description.properties.items())
    comment = description.entry.details.get("Comment", "") if description.entry else ""
    managed = description.entry is not None and description.entry.details.get("Type") == "MANAGED"
    partitions = ", ".join(map(_plain_name, description.config.partition_columns))
    clauses = [
        f"CREATE TABLE {name} (\n{columns})" if columns else f"CREATE TABLE {name}",
        "USING hudi",
        f"PARTITIONED BY ({partitions})" if partitions else "",
        f"COMMENT {sql_text(comment)}" if comment else "",
        "" if managed else f"LOCATION {sql_text(_location(description))}",
        f"TBLPROPERTIES (\n{properties})",
    ]
    return table_rows(session, [("\n".join(filter(None, clauses)) + "\n",)], "createtab_stmt string")


def _plain_name(name: str) -> str:
    return name if name.isidentifier() else tick(name)


def show_properties(session: SparkSession, text: Text) -> DataFrame | None:
    """SHOW TBLPROPERTIES t [('key')]"""
    parts, at = text.name(1)
    description = described(session, text, parts)
    if description is None:
        return None
    rows = list(description.properties.items())
    if text.word(at) == "(":
        key = "".join(token.text for token in text.inside(at)[0].tokens)
        missing = f"Table {description.name} does not have property: {key}"
        rows = [(key, description.properties.get(key, missing))]
    return table_rows(session, rows, "key string, value string")


def show_columns(session: SparkSession, text: Text) -> DataFrame | None:
    """SHOW COLUMNS IN t [IN database]"""
    if text.word(1) not in ("IN", "FROM"):
        return None
    parts, at = text.name(2)
    if text.word(at) in ("IN", "FROM") and len(parts) == 1:
        parts = (*text.name(at + 1)[0], *parts)
    description = described(session, text, parts)
    if description is None:
        return None
    return table_rows(session, [(name,) for name in (*META_COLUMNS, *description.columns.names)], "col_name string")
