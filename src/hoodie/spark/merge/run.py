"""Merges, updates and deletes by condition: one batch and one commit, on the table that the rows came from."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from hoodie.conditional.by_key import ByKeyPlan, plan_by_key
from hoodie.conditional.clauses import Act, MergeRequest, When, check_names, with_names_of_one_side
from hoodie.conditional.keys import OLD_KEY, OLD_PATH, CertainKeys, MergedKeys
from hoodie.conditional.shape import TableShape, assigned_columns, check_request, equated, joined_schema
from hoodie.conditional.target import MergeTarget, keeping_columns, run_attempts
from hoodie.config.write import WriteOperation
from hoodie.errors import InvalidInput
from hoodie.expressions.text import tick
from hoodie.expressions.typed import quotes_hint
from hoodie.keygen.arrow_keys import RowKeys
from hoodie.keygen.generated_keys import NewKeys
from hoodie.merge.rows import ROW_ACTION, RowAction
from hoodie.model.meta import META_COLUMNS, PARTITION_PATH, RECORD_KEY
from hoodie.reading.filters.selection import condition_of
from hoodie.reading.scan import ScanPlan
from hoodie.reading.scan_plan import Read, plan_read
from hoodie.schema.schema import with_meta_fields
from hoodie.spark.columns import quoted
from hoodie.spark.keyed import KeyedFrame, keyed_rows, keys_of, require_frame_columns
from hoodie.spark.merge.assign import as_column, equal_after_cast, filter_of, first_that_holds, in_types, one_value
from hoodie.spark.merge.plan import join_rows, row_action
from hoodie.spark.merge.pruning import pruned_scan
from hoodie.spark.read.snapshot import scan_rows
from hoodie.spark.types import nullable_type, to_arrow, to_spark
from hoodie.spark.worker_errors import raise_worker_errors
from hoodie.spark.write.batch import acquire_frame
from hoodie.spark.write.run import incoming
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.table.state import TableState
from hoodie.writing.planning import HeldBatch
from hoodie.writing.result import Phases, WriteResult
from hoodie.writing.run import run
from hoodie.writing.write import Write, as_merge, as_update, check


@dataclass(frozen=True, slots=True)
class _Target(MergeTarget):
    """The table that a merge goes into, as it is now."""

    session: SparkSession

    def scan(self, conditions: Collection[str | Column | None], name: str) -> ScanPlan:
        """Its rows where one of the conditions can be true."""
        return pruned_scan(
            self.session, plan_read(self.write.state, Read(), self.write.settings.reading), conditions, name
        )


def _marked(act: Callable[..., WriteResult], session: SparkSession, target: MergeTarget, *of: Any) -> WriteResult:
    """What is done to the table. Raises the errors of Python workers as what they were there"""
    with raise_worker_errors():
        session_target = _Target(target.write, target.keygen, target.declared, target.shape, target.phases, session)
        return act(session_target, *of)


@contextmanager
def quotes_told(values: Iterable[Any]) -> Iterator[None]:
    """Raises InvalidInput where Spark cannot read a value that is words: how a text stands in quotes."""
    try:
        yield
    except AnalysisException as problem:
        message = str(problem)
        for value in values:
            hint = quotes_hint(value)
            if hint and (f"`{value.split()[0]}`" in message or f"\n{value}\n" in message):
                first = next(line for line in message.splitlines() if line)
                raise InvalidInput(f"{value!r}: {first.partition(' SQLSTATE')[0]} {hint}") from problem
        raise


def merge_with_spark(session: SparkSession, storage: Storage, request: MergeRequest, settings: Settings) -> WriteResult:
    """Carry a merge out, as one commit.

    returns  counts of rows: `inserted`, `updated`, `deleted`, and `copied` along in rewritten base files
    Raises   InvalidInput, SchemaMismatch, KeyMatchedTwice: nothing has changed; WriteConflict: another writer was
             faster; UnsupportedTable
    """
    if not isinstance(request.source, DataFrame):
        raise InvalidInput(
            f"the source of a merge is a Spark DataFrame, not {type(request.source).__name__}: spark.createDataFrame(…)"
        )
    check_names(request.columns, request.source_name)
    return run_attempts(storage, settings, lambda target: _marked(_merge, session, target, request))


def update_with_spark(
    session: SparkSession,
    storage: Storage,
    condition: str | Sequence[Any] | Column | None,
    values: Mapping[str, Any],
    settings: Settings,
    name: str = "target",
) -> WriteResult:
    """Set columns of the rows for which a condition holds; None: of all. Raises as `merge`."""
    if not values:
        raise InvalidInput("the update sets no column")
    return run_attempts(storage, settings, lambda target: _marked(_update, session, target, condition, values, name))


def delete_with_spark(
    session: SparkSession, storage: Storage, condition: Any, settings: Settings, name: str = "target"
) -> WriteResult:
    """Delete the rows for which a condition holds; None: all. Raises as `merge`."""
    return run_attempts(storage, settings, lambda target: _marked(_delete, session, target, condition, name))


# --- merge ---


def _merge(target: _Target, request: MergeRequest) -> WriteResult:
    request = with_names_of_one_side(request, (*META_COLUMNS, *target.shape.columns))
    with target.phases.time("check"):
        check_request(request, target.shape)
        plan = plan_by_key(request, target.shape, _same_where_equal(request, target.shape))
    if plan is not None:
        try:
            with target.phases.time("check"):
                rows = _keys_to_delete(target, request, plan) if plan.deletes else _rows_by_key(target, request, plan)
            by_key = replace(target, write=keeping_columns(target.write)) if plan.keeps else target
            return _run(by_key, *rows, adapt=partial(as_merge, keeps=plan.keeps), bring=_by_key)
        except _RowsRefused as refusal:  # in doubt, or bad: then the join has such rows, too
            if not plan.decides:
                raise refusal.problem from None
    with target.phases.time("check"):
        conditions = [clause.condition for clause in request.clauses_of(When.BY_SOURCE)]
        scan = target.scan([*conditions, request.condition], request.target_name)
        rows = _rows_by_join(target, request, scan)
    return _run(target, *rows, made_of=scan.state)


def _same_where_equal(request: MergeRequest, shape: TableShape) -> bool:
    """Whether the source's values that equal a row's make its key: 1.0 equals 1, and 1.5 does not."""
    source_types = {field.name.lower(): field.dataType for field in request.source.schema}
    types = {field.name.lower(): field.dataType for field in to_spark(shape.schema)}
    pairs = [(types.get(table), source_types.get(source)) for table, source in (equated(request, shape) or {}).items()]
    return all(
        column is None or value is None or column == value or equal_after_cast(column, value) for column, value in pairs
    )


class _RowsRefused(Exception):
    """Rows whose keys are looked up cannot be written, or are in doubt: nothing has begun."""

    def __init__(self, problem: InvalidInput) -> None:
        super().__init__(problem)
        self.problem = problem


def _by_key(session: SparkSession, rows: KeyedFrame, write: Write, phases: Phases) -> HeldBatch:
    """As `acquire`. Raises _RowsRefused"""
    try:
        return acquire_frame(session, rows, write, phases)
    except InvalidInput as problem:
        raise _RowsRefused(problem) from problem


def _rows_by_key(target: _Target, request: MergeRequest, plan: ByKeyPlan) -> tuple[KeyedFrame, pa.Schema | None]:
    names = list(plan.values)
    rows = _whole_rows(request.source, names) if plan.whole else _made_rows(request, plan, target.shape)
    typed, schema = _typed(target, rows, names)
    require_frame_columns(schema, target.keygen, (), target.write.state.config.name)
    columns = [*names, *([ROW_ACTION] if plan.decides else [])]
    if set(typed.columns) != set(columns):
        typed = typed.select(*map(quoted, columns))
    make_keys = RowKeys(tuple(columns), target.keygen)
    keyed = keyed_rows(typed, CertainKeys(make_keys) if plan.decides else make_keys, columns)
    return keyed, _columns(target, schema, names)


def _keys_to_delete(target: _Target, request: MergeRequest, plan: ByKeyPlan) -> tuple[KeyedFrame, None]:
    """The keys of the source rows that delete the row they match: a delete takes no other columns."""
    typed, schema = _typed(target, _made_rows(request, plan, target.shape), list(plan.values))
    # A global index says where the keys are.
    keygen = replace(target.keygen, partition_fields=()) if target.shape.is_global else target.keygen
    require_frame_columns(schema, keygen, (), target.write.state.config.name)
    if not plan.decides:
        return keys_of(typed, keygen), None
    return keyed_rows(typed, CertainKeys(RowKeys((), keygen)), ()), None


def _whole_rows(source: DataFrame, names: Collection[str]) -> DataFrame:
    """The source's rows with the table's names. Each frame more is a plan more that Spark analyses: none is made where
    the names are those."""
    if set(names) <= set(source.columns):
        return source
    source_names = {name.lower(): name for name in source.columns}
    return source.select(*(quoted(source_names[name.lower()]).alias(name) for name in names))


def _made_rows(request: MergeRequest, plan: ByKeyPlan, shape: TableShape) -> DataFrame:
    """The rows that the clauses make of the source's, and what each is for."""
    source: DataFrame = request.source.alias(request.source_name)
    values = [one_value(value, shape.types.get(name)).alias(name) for name, value in plan.values.items()]
    if not plan.decides:
        return source.select(*values)
    identity = {name: plan.values[name] for name in plan.identity}
    action = row_action(request, identity, shape, keeps=bool(plan.keeps))
    return source.select(*values, action.alias(ROW_ACTION)).where(quoted(ROW_ACTION).isNotNull())


def _rows_by_join(target: _Target, request: MergeRequest, scan: ScanPlan) -> tuple[KeyedFrame, pa.Schema | None]:
    joined = join_rows(request, target.shape, scan_rows(target.session, scan))
    columns = list(target.shape.columns) or [n for n in request.columns if n not in META_COLUMNS]
    old = tick(request.target_name)
    old_values = {name: F.expr(f"{old}.{tick(name)}") for name in target.shape.columns}
    choices = [
        (joined.clause == number, _in_tables_types(target, joined.frame, assignments) if assignments else old_values)
        for number, assignments in enumerate(joined.values)
        if assignments or old_values
    ]
    if not target.shape.one_text:
        choices = [
            (clause, values if request.clauses[at].act is Act.INSERT else _equal_keys_kept(target, values, old_values))
            for at, (clause, values) in enumerate(choices)
        ]
    values = [first_that_holds([(holds_, row[name]) for holds_, row in choices]).alias(name) for name in columns]
    deletes = [n for n, clause in enumerate(request.clauses) if clause.act is Act.DELETE]
    action = F.when(joined.clause.isin(*deletes), int(RowAction.DELETE)) if deletes else None
    action = F.lit(int(RowAction.WRITE)) if action is None else action.otherwise(int(RowAction.WRITE))
    rows = joined.frame.select(
        *values,
        action.cast("byte").alias(ROW_ACTION),
        F.expr(f"{old}.{RECORD_KEY}").alias(OLD_KEY),
        F.expr(f"{old}.{PARTITION_PATH}").alias(OLD_PATH),
    )
    assigned = {name for clause in request.clauses if clause.act is not Act.DELETE for name in columns}
    return _keyed(target, rows, columns, assigned)


def _equal_keys_kept(
    target: _Target, values: Mapping[str, Column], old_values: Mapping[str, Column]
) -> dict[str, Column]:
    """The values of an update, those of key and partition as the row has them where they are equal: of 0.0 and -0.0
    the key has another text."""
    names = [name for name in target.shape.identity if name in values]
    same = {name: F.when(values[name] == old_values[name], old_values[name]).otherwise(values[name]) for name in names}
    return {**values, **same}


def _in_tables_types(target: _Target, joined: DataFrame, assigned: Mapping[str, Any]) -> dict[str, Column]:
    """What a clause assigns, in the table's types: a CASE of several types would take all values through a wider one,
    and lose digits of those that stay."""
    values = {name: as_column(value, target.shape.types.get(name)) for name, value in assigned.items()}
    if target.declared is None:
        return values
    column_types = to_spark(pa.schema([target.declared.field(name) for name in values]))
    value_types = joined.select(*(value.alias(name) for name, value in values.items())).schema
    return dict(zip(values, in_types(values, value_types, column_types), strict=True))


def _keyed(
    target: _Target, rows: DataFrame, columns: list[str], assigned: Collection[str]
) -> tuple[KeyedFrame, pa.Schema | None]:
    """Rows with their key: see `MergedKeys`.

    rows  columns, `ROW_ACTION`, and the key and partition path of the row of the table, null where it is a new one
    """
    typed, schema = _typed(target, rows, columns)
    require_frame_columns(schema, target.keygen, (), target.write.state.config.name)
    make_keys = MergedKeys.of(columns, target.keygen, target.shape, assigned)
    keys = NewKeys(make_keys) if target.keygen.makes_new_keys else make_keys
    return keyed_rows(typed, keys, make_keys.columns), _columns(target, schema, assigned)


def _typed(target: _Target, rows: DataFrame, columns: list[str]) -> tuple[DataFrame, StructType]:
    """The rows with `columns` in the table's types, and these; their other columns stay."""
    value_types = rows.schema
    if target.declared is None:
        return rows, StructType([value_types[name] for name in columns])
    types = to_spark(pa.schema([target.declared.field(name) for name in columns]))
    if all(nullable_type(value_types[field.name].dataType) == nullable_type(field.dataType) for field in types):
        return rows, types
    others = [quoted(name) for name in rows.columns if name not in columns]
    return rows.select(*in_types({name: quoted(name) for name in columns}, value_types, types), *others), types


def _columns(target: _Target, schema: StructType, assigned: Collection[str]) -> pa.Schema | None:
    declared = joined_schema(target.declared, list(assigned), schema.names)
    return to_arrow(schema) if declared is None else declared


def _run(
    target: _Target,
    rows: KeyedFrame,
    columns: pa.Schema | None,
    made_of: TableState | None = None,
    adapt: Callable[[Write], Write] = as_merge,
    bring: Callable[..., HeldBatch] = acquire_frame,
) -> WriteResult:
    """One write of the rows, each with what it is for; without columns all are keys to delete.

    bring  `acquire`, or what calls it
    """
    operation = WriteOperation.DELETE if columns is None else WriteOperation.UPSERT
    with target.phases.time("check"):
        write = adapt(check(target.write.state, operation, columns, target.write.settings))
    batch = incoming(target.session, write, partial(bring, target.session, rows), target.phases)
    return run(replace(batch, adapt=adapt), made_of=made_of)


# --- update and delete ---


def _update(target: _Target, condition: Any, values: Mapping[str, Any], name: str) -> WriteResult:
    condition = condition_of(condition, with_meta_fields(target.declared or pa.schema([])), nulls=False)
    columns = list(target.shape.columns)
    assigned = assigned_columns(values, target.shape, name)
    scan = target.scan([condition], name)
    table = scan_rows(target.session, scan).alias(name).where(filter_of(condition))
    types = target.shape.types
    values = {column: one_value(value, types[column]) for column, value in assigned.items()}
    rows = table.select(
        *(values.get(column, quoted(column)).alias(column) for column in columns),
        F.lit(int(RowAction.WRITE)).cast("byte").alias(ROW_ACTION),
        F.col(RECORD_KEY).alias(OLD_KEY),
        F.col(PARTITION_PATH).alias(OLD_PATH),
    )
    return _run(target, *_keyed(target, rows, columns, set(assigned)), made_of=scan.state, adapt=as_update)


def _delete(target: _Target, condition: Any, name: str) -> WriteResult:
    # A table without columns, whatever the condition names, has no row that it holds for.
    schema = with_meta_fields(target.declared or pa.schema([]))
    condition = "false" if target.declared is None else condition_of(condition, schema)
    scan = target.scan([condition], name)
    keys = scan_rows(target.session, scan).alias(name).where(filter_of(condition)).select(RECORD_KEY, PARTITION_PATH)
    if target.write.index.is_global:
        keys = keys.withColumn(PARTITION_PATH, F.lit(""))
    return _run(target, keys_of(keys, None), None, scan.state, lambda write: write)
