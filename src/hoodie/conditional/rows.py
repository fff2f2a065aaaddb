"""Rows of this process on their way to a write, each with the key of the row of the table that it stands for."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from hoodie.conditional.target import MergeTarget
from hoodie.config.write import WriteOperation
from hoodie.errors import InvalidInput, SchemaMismatch
from hoodie.expressions.reader import read_condition
from hoodie.expressions.scope import Scope
from hoodie.expressions.terms import Block, Term, literal, spread
from hoodie.expressions.typed import assigned_value, value_term
from hoodie.keygen.arrow_keys import parts_of
from hoodie.keygen.generated_keys import MakeKeys
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.reading.filters.condition import tests_of_sql
from hoodie.reading.filters.predicate import ANY
from hoodie.reading.scan import ScanPlan
from hoodie.reading.scan_plan import Read, plan_read
from hoodie.reading.stream import scan_batches
from hoodie.schema.conform import conform
from hoodie.schema.schema import stored_form
from hoodie.storage.protocol import Storage
from hoodie.table.state import TableState
from hoodie.writing.batch.arrow import type_as
from hoodie.writing.finish import AfterCommit
from hoodie.writing.local import acquire
from hoodie.writing.result import WriteResult
from hoodie.writing.run import IncomingBatch, run
from hoodie.writing.write import Write, as_merge, check

_Frames = Mapping[str, pa.Table]


@dataclass(frozen=True, slots=True)
class ComputedRows:
    """Rows that a condition made, as `ArrowRows`: they can be read once.

    keyed  the schema of the keyed rows
    """

    rows: Iterator[pa.Table]
    make_keys: MakeKeys
    keyed: pa.Schema

    @property
    def schema(self) -> pa.Schema:
        return self.keyed

    def batches(self) -> Iterator[pa.RecordBatch]:
        for table in self.rows:
            for part in parts_of(table):
                yield from self.make_keys(part).select(self.schema.names).cast(self.schema).to_batches()


@dataclass(frozen=True, slots=True)
class TableCall:
    """One call of a table's: where its rows go, and what ran besides it.

    frames  that subqueries may select from
    """

    storage: Storage
    after_commit: AfterCommit
    frames: _Frames

    def write(
        self,
        target: MergeTarget,
        rows: ComputedRows,
        columns: pa.Schema | None,
        made_of: TableState | None = None,
        adapt: Callable[[Write], Write] = as_merge,
    ) -> WriteResult:
        """One write of the rows, each with what it is for; without columns all are keys to delete."""
        operation = WriteOperation.DELETE if columns is None else WriteOperation.UPSERT
        with target.phases.time("check"):
            write = adapt(check(target.write.state, operation, columns, target.write.settings))
        acquired, after_commit = partial(acquire, rows), self.after_commit
        batch = IncomingBatch(write, acquired, after_commit, target.phases, adapt=adapt, alone=True)
        return run(batch, made_of=made_of)


def keyed_schema(columns: Sequence[pa.Field]) -> pa.Schema:
    """The schema of rows with these columns and their keys."""
    return pa.schema([*columns, *(pa.field(name, pa.string()) for name in (RECORD_KEY, PARTITION_PATH))])


def condition_term(condition: Any, scope: Scope) -> Term:
    """A condition; None: all rows. Raises InvalidInput"""
    if condition is None:
        return literal(True, pa.bool_())
    if not isinstance(condition, str):
        raise InvalidInput(
            f"a condition on a table without Spark is SQL text, not {type(condition).__name__}: 'price > 3'"
        )
    return read_condition(condition, scope)


def assigned_terms(values: Mapping[str, Any], columns: pa.Schema | None, scope: Scope) -> dict[str, Term]:
    """Column -> value, in the table's types. Raises SchemaMismatch, one for all columns that do not fit"""
    terms, problems = dict[str, Term](), list[str]()
    for name, value in values.items():
        if value is None and columns is not None:  # a column that an insert does not name
            terms[name] = literal(None, columns.field(name).type)
            continue
        fitting = value_term(value, scope) if columns is None else assigned_value(value, columns.field(name), scope)
        if isinstance(fitting, str):
            problems.append(fitting)
        else:
            terms[name] = fitting
    if problems:
        raise SchemaMismatch(f"Values do not fit the table: {'; '.join(problems)}. Cast them.")
    return terms


def column_values(term: Term, block: Block, field: pa.Field) -> pa.Array:
    """The values of a term as a column of the table has them."""
    values = spread(term.run(block), block.length)
    return values if values.type == field.type else values.cast(field.type)


def target_scan(
    target: MergeTarget, condition: Any, scope: Scope, name: str, columns: Collection[str] | None
) -> ScanPlan:
    """The rows of the table where a condition can be true.

    condition  a call has checked it; what is not text can be true anywhere
    name       what it calls the table
    columns    that are read beside the two keys; None: all
    """
    read_columns = None if columns is None else list(dict.fromkeys([*columns, RECORD_KEY, PARTITION_PATH]))
    tests = ANY
    if isinstance(condition, str):
        tests = tests_of_sql(condition, scope, name)
    return plan_read(target.write.state, Read(columns=read_columns), target.write.settings.reading, tests=tests)


def scanned_tables(scan: ScanPlan) -> Iterator[pa.Table]:
    """The rows of a scan, file by file."""
    for batch in scan_batches(scan):
        yield pa.Table.from_batches([batch])


def normal_frame(rows: pa.Table, table: pa.Schema | None = None) -> pa.Table:
    """Rows of others in the types that expressions know. Raises SchemaMismatch naming a column of another type

    table  nested columns of no type, such as lists that are all empty, are of the type of its columns of their names
    """
    fields = [_normal(field, table) for field in rows.schema]
    return conform(rows, pa.schema(fields))


def _normal(field: pa.Field, table: pa.Schema | None) -> pa.Field:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_null(kind):
        return field.with_type(kind)
    try:
        stored = stored_form(pa.schema([pa.field("value", field.type)])).field(0).type
    except SchemaMismatch as problem:
        if table is not None and field.name in table.names:
            typed = type_as(field.type, table.field(field.name).type, None)
            return _normal(field.with_type(typed), None)
        raise SchemaMismatch(f"column {field.name!r} is {field.type}, which no expression takes: cast it") from problem
    return pa.field(field.name, stored)
