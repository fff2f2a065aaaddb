"""INSERT, UPDATE, DELETE and MERGE on tables of ours, through the calls that Python has for them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import singledispatch

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from hoodie.api.table import HoodieTable
from hoodie.conditional.clauses import MergeClause, MergeRequest, column_of
from hoodie.config.datasource import sql_insert
from hoodie.config.write import WriteOperation
from hoodie.errors import InvalidInput, SchemaMismatch
from hoodie.keygen.arrow_keys import in_units_of, partition_path
from hoodie.keygen.keygen import FieldKind, PartitionField
from hoodie.model.meta import META_COLUMNS
from hoodie.reading.table_schema import read_schema
from hoodie.spark.columns import quoted
from hoodie.spark.keyed import to_arrow_table
from hoodie.spark.merge import run as merge_run
from hoodie.spark.merge.assign import in_types
from hoodie.spark.own_sql import spark_sql
from hoodie.spark.worker_errors import raise_worker_errors
from hoodie.statements.dml_text import Delete, Dml, Insert, Merge, Update, with_selected_nulls
from hoodie.statements.rows import views_of, with_tables
from hoodie.table.settings import Settings, without_dropping
from hoodie.table.state import load_state, table_keygen
from hoodie.writing.result import WriteResult


def run_dml(session: SparkSession, table: HoodieTable[DataFrame], statement: Dml) -> WriteResult:
    """Carry a statement out. Raises as the calls: `merge`, `update`, `delete`, `insert`, `insert_overwrite`"""
    with raise_worker_errors():
        return _run(statement, session, table)


@singledispatch
def _run(statement: Dml, session: SparkSession, table: HoodieTable[DataFrame]) -> WriteResult:
    raise NotImplementedError(type(statement))


@_run.register
def _update(statement: Update, session: SparkSession, table: HoodieTable[DataFrame]) -> WriteResult:
    with views_of(session, statement.where, *statement.values.values()) as (where, *values):
        new = dict(zip(statement.values, values, strict=True))
        return table.update(new, where, name=statement.table.alias)


@_run.register
def _delete(statement: Delete, session: SparkSession, table: HoodieTable[DataFrame]) -> WriteResult:
    with views_of(session, statement.where) as (where,):
        return table.delete(where="true" if where is None else where, name=statement.table.alias)


@_run.register
def _merge(statement: Merge, session: SparkSession, table: HoodieTable[DataFrame]) -> WriteResult:
    text = f"{statement.prefix}\nSELECT * FROM {statement.source}"
    source = with_tables(session, text)
    if source is None:
        source = spark_sql(session, text)
    texts: list[str | None] = [statement.condition]
    for clause in statement.clauses:
        values: Sequence[str] = [] if clause.values is None else list(clause.values.values())
        texts += [clause.condition if isinstance(clause.condition, str) else None, *values]
    with views_of(session, *texts) as bound:
        expressions = iter(bound)
        condition = next(expressions)
        clauses = [_rebound(clause, expressions) for clause in statement.clauses]
        request = MergeRequest(source, condition, tuple(clauses), statement.table.alias, statement.source_name)
        return merge_run.merge_with_spark(
            session, table.storage, request, Settings.read(without_dropping(table.options))
        )


def _rebound(clause: MergeClause, texts: Iterator[str | None]) -> MergeClause:
    """The clause with its condition and values as the next of the texts."""
    condition = next(texts)
    if clause.values is None:
        return replace(clause, condition=condition)
    values = {name: next(texts) for name in clause.values}
    return replace(clause, condition=condition, values=values)


@_run.register
def _insert(statement: Insert, session: SparkSession, table: HoodieTable[DataFrame]) -> WriteResult:
    _refuse_other_than_partitions(statement, table)
    return insert_rows(session, statement, table, _selected(session, statement.query), dynamic=is_dynamic(session))


def _selected(session: SparkSession, query: str) -> DataFrame:
    """The rows of a query. A DEFAULT that it selects is null, unless a column has that name."""
    try:
        frame = with_tables(session, query)
        rows = spark_sql(session, query) if frame is None else frame
        rows.schema  # noqa: B018 - Spark Connect looks at the query now
    except AnalysisException:
        plain = with_selected_nulls(query)
        if plain is None:
            raise
        return _selected(session, plain)
    return rows


def is_dynamic(session: SparkSession) -> bool:
    """Whether an overwrite in the session replaces the partitions that the rows are in."""
    return str(session.conf.get("spark.sql.sources.partitionOverwriteMode", "static")).lower() == "dynamic"


def insert_rows(
    session: SparkSession, statement: Insert, table: HoodieTable[DataFrame], rows: DataFrame, *, dynamic: bool
) -> WriteResult:
    """Insert rows as a statement says, whatever its query is.

    dynamic  an overwrite replaces the partitions that the rows are in, unless PARTITION says the value of each column;
             else the table, or the partitions that have the values of PARTITION
    """
    frame = _table_rows(statement, rows, _columns(table))
    operation, options = sql_insert(table.options, load_state(table.storage).config)
    calls = {
        WriteOperation.INSERT: table.insert,
        WriteOperation.UPSERT: table.upsert,
        WriteOperation.BULK_INSERT: table.bulk_insert,
    }
    if not statement.overwrite:
        return calls[operation](frame, options=options)
    config = load_state(table.storage).config
    fixed = {name.lower() for name, value in statement.partition.items() if value is not None}
    if not dynamic or len(fixed) == len(config.partition_by):
        if not fixed:
            return table.insert_overwrite_table(frame, options=options)
        return table.insert_overwrite(
            frame, partitions=_named_partitions(session, statement, table, frame.schema), options=options
        )
    return table.insert_overwrite(frame, options=options)


def _named_partitions(
    session: SparkSession, statement: Insert, table: HoodieTable[DataFrame], columns: StructType
) -> list[str]:
    """The paths of the partitions that have the values which a PARTITION clause says."""
    state = load_state(table.storage)
    fixed = {name.lower(): value for name, value in statement.partition.items() if value is not None}
    fields = [field for field in columns.fields if field.name.lower() in fixed]
    values = session.range(1).select(*(F.expr(fixed[field.name.lower()]).alias(field.name) for field in fields))
    schema = StructType(fields)
    values = _read(values, schema.names, schema)
    typed = values.select(*in_types({name: quoted(name) for name in schema.names}, values.schema, schema))
    row, stored = to_arrow_table(typed), read_schema(state)
    keygen = in_units_of(table_keygen(state), stored)  # Spark's types do not say milliseconds

    def pattern(field: PartitionField) -> str:
        if field.name.lower() in fixed:
            path: str = partition_path(row, replace(keygen, partition_fields=(field,)))[0].as_py()
            return re.escape(path)
        name = f"{re.escape(field.name)}=" if keygen.hive_style else ""
        return f"{name}.*" if name or field.kind is not FieldKind.SIMPLE else "[^/]*"

    named = re.compile("/".join(map(pattern, keygen.partition_fields)), re.DOTALL)
    return sorted(path for path in state.groups() if named.fullmatch(path))


def _refuse_other_than_partitions(statement: Insert, table: HoodieTable[DataFrame]) -> None:
    if not statement.partition:
        return
    columns = load_state(table.storage).config.partition_columns
    column_names = {name.lower() for name in columns}
    if others := [name for name in statement.partition if name.lower() not in column_names]:
        raise InvalidInput(
            f"PARTITION names {', '.join(others)}, and {statement.table} is partitioned by "
            f"{', '.join(columns) or 'nothing'}"
        )


def _columns(table: HoodieTable[DataFrame]) -> StructType | None:
    """The user's columns of a table; None: it has none yet."""
    fields = [field for field in table.snapshot().schema.fields if field.name not in META_COLUMNS]
    return StructType(fields) if fields else None


def _table_rows(statement: Insert, rows: DataFrame, columns: StructType | None) -> DataFrame:
    """The query's rows as rows of the table: by position, or by name, with the values of a PARTITION clause.

    Raises SchemaMismatch when there are more or fewer than the table asks for
    """
    query_columns = rows.columns
    rows = rows.toDF(*(f"_{place}" for place in range(len(query_columns))))  # the query may call two columns alike
    rows = rows.select(*(f"_{place}" for place, name in enumerate(query_columns) if name not in META_COLUMNS))
    query_columns = [name for name in query_columns if name not in META_COLUMNS]
    named_by = statement.columns
    if not named_by and (statement.by_name or columns is None):
        named_by = tuple(query_columns)
    names = columns.names if columns is not None else list(dict.fromkeys([*named_by, *statement.partition]))
    fixed = {
        column_of(name, names, statement.table.alias): value
        for name, value in statement.partition.items()
        if value is not None
    }
    if named_by:
        targets = [column_of(name, names, statement.table.alias) for name in named_by]
        if twice := sorted({name for name in [*targets, *fixed] if [*targets, *fixed].count(name) > 1}):
            raise InvalidInput(f"{', '.join(twice)} of {statement.table} is given twice")
    else:
        targets = [name for name in names if name not in fixed]
    if len(targets) != len(query_columns):
        raise SchemaMismatch(
            f"the query has {len(query_columns)} columns, and {statement.table} takes {len(targets)}: "
            f"{', '.join(targets)}"
        )
    named = rows.toDF(*targets)
    whole = named.select(
        *(quoted(name) if name in targets else F.expr(fixed.get(name, "NULL")).alias(name) for name in names)
    )
    if columns is None:
        return whole
    whole = _read(whole, list(fixed), columns)
    values = {name: quoted(name) for name in names}
    return whole.select(*in_types(values, whole.schema, columns, fields_by_name=statement.by_name))


def _read(rows: DataFrame, fixed: Sequence[str], columns: StructType) -> DataFrame:
    """The rows with the values of a PARTITION clause that are texts read as values of their columns, as Spark does."""
    kinds = rows.schema
    texts = {name for name in fixed if isinstance(kinds[name].dataType, StringType)}
    if not texts:
        return rows
    return rows.select(
        *(
            quoted(name).cast(columns[name].dataType).alias(name) if name in texts else quoted(name)
            for name in kinds.names
        )
    )
