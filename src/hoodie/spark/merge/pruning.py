"""Which partitions a condition can be true in: Spark evaluates it on the values that their paths say. And which file
slices: comparisons with literals are tests of column statistics and of row groups."""

from collections.abc import Collection
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from hoodie.errors import InvalidInput
from hoodie.expressions.parser import exp
from hoodie.expressions.reader import tree_of
from hoodie.expressions.scope import Scope
from hoodie.expressions.text import columns_named, conjuncts, tick
from hoodie.keygen.keygen import NULL_PARTITION
from hoodie.reading.filters.condition import tests_of_sql
from hoodie.reading.filters.predicate import ANY, Test, Tests
from hoodie.reading.filters.selection import certain_tests
from hoodie.reading.scan import ScanPlan
from hoodie.reading.slices.column_types import mislabelled_files
from hoodie.spark.columns import quoted
from hoodie.spark.merge.assign import condition_holds
from hoodie.spark.read.snapshot import says_itself
from hoodie.spark.types import to_spark

_PATH = "_hoodie_path"


def pruned_scan(
    session: SparkSession, scan: ScanPlan, conditions: Collection[str | Column | None], name: str
) -> ScanPlan:
    """The scan without the partitions and file slices in which none of the conditions can be true, ready for Spark.

    scan        planned, but not for Spark
    conditions  SQL text is looked at; a Column, and None, can be true anywhere
    name        what the conditions call the table

    Costs no listing, and no job of Spark's: the partitions' values are rows at hand.
    """
    partitions: set[str] = set()
    for condition in conditions:
        possible_partitions = _possible(session, scan, condition, name)
        if possible_partitions is None:
            partitions = set(scan.partitions)
            break
        partitions |= possible_partitions
    slices = tuple(slice_ for slice_ in scan.slices if slice_.group.partition in partitions)
    reader = scan.reader if any(slice_.logs for slice_ in slices) else None
    scan = replace(scan, slices=slices, reader=reader).with_tests(_tests(scan, conditions, name))
    bases = scan.base_files
    return replace(scan, mislabelled=mislabelled_files(scan.state, bases, scan.schema, scan.read)) if bases else scan


def _possible(session: SparkSession, scan: ScanPlan, condition: str | Column | None, name: str) -> set[str] | None:
    """The partition paths in which a condition can be true; None: its text says nothing of them."""
    config = scan.state.config
    columns = config.partition_by
    if not isinstance(condition, str) or not columns or not _paths_say_values(scan, columns):
        return None
    about = [part for part in conjuncts(condition) if _is_about(part, columns, name)]
    if not about:
        return None
    unknown, rows = set[str](), []
    for path in scan.partitions:
        values = [part.partition("=")[2] if config.hive_style else part for part in path.split("/")]
        plain = len(values) == len(columns) and all(value and "%" not in value for value in values)
        if plain and NULL_PARTITION not in values:
            rows.append((path, *values))
        else:
            unknown.add(path)  # what the column holds is not known
    if not rows:
        return unknown
    schema = to_spark(pa.schema([scan.schema.field(column) for column in columns]))
    texts = session.createDataFrame(rows, ", ".join(f"{tick(column)} string" for column in (_PATH, *columns)))
    typed = texts.select(_PATH, *(quoted(f.name).try_cast(f.dataType).alias(f.name) for f in schema)).alias(name)
    possible = F.lit(True)
    for part in about:
        possible = possible & condition_holds(part)
    for column in columns:
        possible = possible | quoted(column).isNull()  # a text that is no such value
    return unknown | {row[0] for row in typed.where(possible).select(_PATH).collect()}


def _tests(scan: ScanPlan, conditions: Collection[str | Column | None], name: str) -> Tests:
    """Tests that rows pass for which one of the conditions is true."""
    clauses = tuple(_clause(scan, condition, name) for condition in conditions)
    return clauses if clauses and all(clauses) else ANY


def _clause(scan: ScanPlan, condition: str | Column | None, name: str) -> tuple[Test, ...]:
    """Tests of columns of the table that a condition implies; none: nothing is plain to see. Only literals are compared
    with: what Spark makes of a function may hang on its session."""
    if not isinstance(condition, str):
        return ()
    scope, tests = Scope({name: scan.schema}), list[Test]()
    for part in conjuncts(condition):
        try:
            if '"' in part:  # a text to Spark, and perhaps a column to us
                continue
            if all(isinstance(node, _PLAIN) for node in tree_of(part, scope).walk()):
                tests += certain_tests(tests_of_sql(part, scope, name), scan.schema)[
                    0
                ]  # of comparisons there is one clause
        except InvalidInput:  # names that are not the table's
            continue
    return tuple(tests)


#: What a comparison with literals is made of.
_PLAIN = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Neg, exp.Paren, exp.In, exp.Between),
    *(exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
)


def _paths_say_values(scan: ScanPlan, columns: Collection[str]) -> bool:
    """Whether a path of one folder for each column holds the columns' values as they are."""
    generator = scan.state.config.key_generator
    if "Timestamp" in generator or "Custom" in generator:
        return False
    return all(name in scan.schema.names and says_itself(scan.schema.field(name).type) for name in columns)


def _is_about(part: str, columns: Collection[str], name: str) -> bool:
    """Whether an expression names partition columns of the table, and no others."""
    column_names = {column.lower() for column in columns}
    named = columns_named(part)
    return bool(named) and all(
        parts[-1] in column_names and parts[:-1] in ((), (name.lower(),)) for parts in named or ()
    )
