"""Hypothesis strategies: tables of all shapes, their rows, and histories of writes that meet the same keys again.

What is drawn are values, to print and to run on any driver: `hoodie.testing.tables.ArrowTable` or Spark.
"""

import datetime as dt
import decimal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from hoodie.config.write import WriteOperation
from hoodie.model.meta import IS_DELETED
from hoodie.schema.types import TIMESTAMP, TIMESTAMP_NTZ, spark_name
from hoodie.testing.storage import Dying

Row = dict[str, Any]

_UTC = dt.UTC
_EPOCH = dt.datetime(1970, 1, 1)
_INT32, _INT64 = 2**31, 2**63

#: Values of the types that have no parameters: the ordinary and the outermost ones.
_VALUES: Mapping[pa.DataType, Sequence[Any]] = {
    pa.bool_(): (False, True),
    pa.int32(): (0, 1, -1, _INT32 - 1, -_INT32),
    pa.int64(): (0, 1, -1, _INT64 - 1, -_INT64),
    pa.float32(): (0.0, -0.0, 1.5, -2.25, float("nan"), float("inf"), 2.0**127),
    pa.float64(): (0.0, -0.0, 0.1, -1e300, float("nan"), float("-inf"), 5e-324),
    pa.string(): ("", "a", "b" * 40, "é", "日本", "😀", "a\x00b", "\n", "\uffff"),
    pa.binary(): (b"", b"a", bytes(range(256)), b"\xff\xfe"),
    pa.date32(): (dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(1, 1, 1), dt.date(9999, 12, 31)),
    TIMESTAMP_NTZ: (_EPOCH, dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1, 1, 1), dt.datetime.max),
}

LEAVES: tuple[pa.DataType, ...] = (*_VALUES, TIMESTAMP)


def leaf_types() -> st.SearchStrategy[pa.DataType]:
    """Types that are not nested, as a table stores them."""
    digits = st.integers(1, 38)
    decimals = digits.flatmap(lambda n: st.builds(pa.decimal128, st.just(n), st.integers(0, n)))
    return st.sampled_from(LEAVES) | decimals


def column_types() -> st.SearchStrategy[pa.DataType]:
    """Column types in stored form, nested ones among them."""
    return leaf_types() | leaf_types() | st.recursive(leaf_types(), _nest, max_leaves=4)


def _nest(kinds: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    inner = st.tuples(kinds, st.booleans())
    fields = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        inner.map(lambda each: pa.list_(pa.field("element", *each))),
        inner.map(lambda each: pa.map_(pa.string(), pa.field("value", *each))),
        fields.map(lambda found: pa.struct([pa.field(f"f{i}", *each) for i, each in enumerate(found)])),
    )


def stored_values(
    kind: pa.DataType, nullable: bool = True, leaf: Callable[[pa.DataType], st.SearchStrategy[Any]] | None = None
) -> st.SearchStrategy[Any]:
    """Python values of a stored type, as `pa.array` takes them.

    leaf  those of a type that is not nested; None: the least, the greatest and the odd ones of each
    """
    found: st.SearchStrategy[Any]
    if pa.types.is_list(kind):
        found = st.lists(stored_values(kind.value_type, kind.value_field.nullable, leaf), max_size=2)
    elif pa.types.is_map(kind):
        pairs = st.tuples(st.sampled_from("ab"), stored_values(kind.item_type, kind.item_field.nullable, leaf))
        found = st.lists(pairs, max_size=2, unique_by=lambda pair: pair[0])
    elif pa.types.is_struct(kind):
        found = st.fixed_dictionaries({child.name: stored_values(child.type, child.nullable, leaf) for child in kind})
    else:
        found = (leaf or _leaf_values)(kind)
    return st.none() | found if nullable else found


def _leaf_values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_decimal(kind):
        digits = (0, 1, 10**kind.precision - 1, 1 - 10**kind.precision)
        return st.sampled_from([decimal.Decimal(f"{number}E-{kind.scale}") for number in digits])
    if kind == TIMESTAMP:
        return st.sampled_from([moment.replace(tzinfo=_UTC) for moment in _VALUES[TIMESTAMP_NTZ]])
    return st.sampled_from(_VALUES[kind])


#: Types of ordering columns, each with a few values in ascending order as Java compares them.
ORDERINGS: Mapping[pa.DataType, Sequence[Any]] = {
    pa.int32(): (-_INT32, -1, 0, 7),
    pa.int64(): (-1, 0, 1, _INT64 - 1),
    pa.float64(): (float("-inf"), -0.0, 0.0, 2.5, float("nan")),
    pa.string(): ("", "a", "b", "😀", "\uffff"),  # by UTF-16 units, in which the face comes first
    pa.decimal128(9, 2): tuple(map(decimal.Decimal, ("-9999999.99", "-0.01", "0.00", "10.00"))),
    # Delete blocks of the log hold 15 digits on either side of the point.
    pa.decimal128(38, 0): tuple(map(decimal.Decimal, (1 - 10**15, 0, 3, 10**15 - 1))),
    pa.date32(): (dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29)),
    TIMESTAMP_NTZ: (dt.datetime(1, 1, 1), _EPOCH, dt.datetime(2024, 1, 1, microsecond=1)),
    TIMESTAMP: tuple(moment.replace(tzinfo=_UTC) for moment in (dt.datetime(1969, 1, 1), _EPOCH, dt.datetime.max)),
}

_KEY_TEXTS = ("a", "b", "c", "d", "e", "A", "é", "a,b", "x:y", "10", "😀", "\uffff", " ", "a" * 60)
#: Partition values. Escaped in the path everything goes; else "/" makes folders, so none may be another's parent.
_PLAIN_PARTITIONS = ("x", "y", "x y", "é", "2024/01/17", "2024/01/18", "50%", "a=b", "", None)
_ESCAPED_PARTITIONS = ("x", "y", "x/y", "a b:c", "%2F", "/", "{}", "#?", "", None)

_WIDER: Mapping[pa.DataType, Sequence[pa.DataType]] = {
    pa.int32(): (pa.int64(), pa.float64()),
    pa.float32(): (pa.float64(),),
}


@dataclass(frozen=True, slots=True, repr=False)
class Shape:
    """What a table is made with.

    schema     the user's columns of its first batch
    keys       key columns; `partition`, `ordering` are columns too, "" for none
    domains    values to draw of key, partition and ordering columns: few, so that rows meet
    """

    schema: pa.Schema
    keys: tuple[str, ...]
    partition: str
    ordering: str
    domains: Mapping[str, Sequence[Any]]
    hive_style: bool = False
    url_encode: bool = False

    def __repr__(self) -> str:
        return f"Shape({columns_text(self.schema)}; {self.options})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))  # Hypothesis would print the fields of a dataclass

    @property
    def options(self) -> dict[str, str]:
        """What makes the table, by Hudi's names."""
        named = {
            "hoodie.table.name": "drawn",
            "hoodie.datasource.write.recordkey.field": ",".join(self.keys),
            "hoodie.datasource.write.partitionpath.field": self.partition,
            "hoodie.datasource.write.precombine.field": self.ordering,
            "hoodie.datasource.write.hive_style_partitioning": str(self.hive_style).lower(),
            "hoodie.datasource.write.partitionpath.urlencode": str(self.url_encode).lower(),
        }
        return {key: value for key, value in named.items() if value}


@dataclass(frozen=True, slots=True)
class WriteFault:
    """Where a write fails: `ArrowTable.fail_next`."""

    calls: int
    dying: Dying | None


@dataclass(frozen=True, slots=True, repr=False)
class Step:
    """One write of a history.

    rows        in the order of the batch, each with all of `schema`; of a delete its keys and partitions
    partitions  partition values whose paths a delete_partition names
    options     of this write
    """

    operation: WriteOperation
    schema: pa.Schema
    rows: tuple[Row, ...] = ()
    partitions: tuple[Any, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    fault: WriteFault | None = None

    def __repr__(self) -> str:
        """Values in the order of the columns: what is drawn is to be read when it fails."""
        lines = [f"\n    {tuple(row[name] for name in self.schema.names)!r}" for row in self.rows]
        what = [repr(each) for each in (self.partitions, self.options, self.fault) if each]
        return f"\n  {self.operation} {columns_text(self.schema)} {' '.join(what)}{''.join(lines)}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    @property
    def table(self) -> pa.Table:
        return pa.Table.from_pylist(list(self.rows), schema=self.schema)


def columns_text(schema: pa.Schema) -> str:
    """A schema in one line, types in Spark's words."""
    return ", ".join(f"{f.name} {spark_name(f.type)}{'' if f.nullable else ' not null'}" for f in schema)


@st.composite
def shapes(draw: st.DrawFn, types: st.SearchStrategy[pa.DataType] | None = None) -> Shape:
    """Tables: keys of text, whole numbers or both; with and without partitions, ordering and delete flag.

    types  of the one to five columns that are none of these; default: all stored types
    """
    domains: dict[str, Sequence[Any]] = {}
    columns = []
    keys = draw(st.sampled_from([("id",), ("n",), ("id", "n")]))
    if "id" in keys:
        columns.append(pa.field("id", pa.string()))
        texts = draw(st.lists(st.sampled_from(_KEY_TEXTS), min_size=1, max_size=4 // len(keys), unique=True))
        domains["id"] = [*texts, None, ""] if len(keys) > 1 else texts  # parts of a key may be missing
    if "n" in keys:
        columns.append(pa.field("n", draw(st.sampled_from([pa.int32(), pa.int64()])), nullable=draw(st.booleans())))
        domains["n"] = draw(st.sampled_from([(-1, 0), (0, 1, 2)] if len(keys) > 1 else [(-1, 0, 1), tuple(range(8))]))
    partition = draw(st.sampled_from(["part", "part", ""]))
    url_encode = draw(st.booleans())
    if partition:
        columns.append(pa.field("part", pa.string()))
        pool = _ESCAPED_PARTITIONS if url_encode else _PLAIN_PARTITIONS
        domains["part"] = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=2, unique=True))
    ordering = draw(st.sampled_from(["ts", "ts", "ts", ""]))
    if ordering:
        kind = draw(st.sampled_from(list(ORDERINGS)))
        columns.append(pa.field("ts", kind))
        domains["ts"] = ORDERINGS[kind]
    kinds = draw(st.lists(column_types() if types is None else types, min_size=1, max_size=5))
    columns += [pa.field(f"v{number}", kind, draw(st.booleans())) for number, kind in enumerate(kinds)]
    if draw(st.booleans()):
        columns.append(pa.field(IS_DELETED, pa.bool_()))
        domains[IS_DELETED] = (None, False, False, True)
    order = draw(st.permutations(columns))
    return Shape(pa.schema(order), keys, partition, ordering, domains, draw(st.booleans()), url_encode)


def rows(shape: Shape, schema: pa.Schema, most: int = 8, unordered: bool = False) -> st.SearchStrategy[tuple[Row, ...]]:
    """Rows of a batch, up to `most`; keys occur more than once in it.

    unordered  some have no ordering value
    """
    columns = {}
    for found in schema:
        domain = shape.domains.get(found.name)
        if domain is not None and unordered and found.name == shape.ordering:
            domain = [None, *domain]
        columns[found.name] = stored_values(found.type, found.nullable) if domain is None else st.sampled_from(domain)
    one = st.fixed_dictionaries(columns).filter(lambda row: any(row[key] not in (None, "") for key in shape.keys))
    # Sizes are drawn evenly: left to themselves, lists stay short, and rows of several batches do not meet.
    return st.integers(0, most).flatmap(lambda size: st.lists(one, min_size=size, max_size=size)).map(tuple)


#: The operations of a history, each as often as it is to be drawn.
OPERATIONS = (
    *(WriteOperation.UPSERT,) * 10,
    *(WriteOperation.INSERT,) * 2,
    *(WriteOperation.DELETE,) * 3,
    WriteOperation.BULK_INSERT,
    WriteOperation.INSERT_OVERWRITE,
    WriteOperation.INSERT_OVERWRITE_TABLE,
    WriteOperation.DELETE_PARTITION,
)
#: Those of a table whose keys are to be in one partition each.
ONE_PLACE = (
    *(WriteOperation.UPSERT,) * 10,
    *(WriteOperation.DELETE,) * 3,
    WriteOperation.DELETE_PARTITION,
)
#: Those that need no ordering value, as long as they do not combine duplicates.
_UNCOMBINED = (
    WriteOperation.INSERT,
    WriteOperation.BULK_INSERT,
    WriteOperation.INSERT_OVERWRITE,
    WriteOperation.INSERT_OVERWRITE_TABLE,
)


def indexes() -> st.SearchStrategy[dict[str, str]]:
    """Options that choose an index for a table."""
    moves = st.sampled_from(["true", "false"])
    return st.one_of(
        st.fixed_dictionaries({"hoodie.index.type": st.sampled_from(["SIMPLE", "BLOOM"])}),
        st.fixed_dictionaries(
            {"hoodie.index.type": st.just("GLOBAL_SIMPLE"), "hoodie.simple.index.update.partition.path": moves}
        ),
        st.fixed_dictionaries(
            {"hoodie.index.type": st.just("GLOBAL_BLOOM"), "hoodie.bloom.index.update.partition.path": moves}
        ),
        st.fixed_dictionaries(
            {
                "hoodie.index.type": st.just("BUCKET"),
                "hoodie.bucket.index.num.buckets": st.sampled_from(["1", "2", "3"]),
            }
        ),
    )


def operations_with(index: Mapping[str, str]) -> Sequence[WriteOperation]:
    """The operations of a history, by the index of its table. With a global one none brings a key in twice."""
    return ONE_PLACE if index["hoodie.index.type"].startswith(("GLOBAL_", "RECORD_")) else OPERATIONS


@st.composite
def histories(
    draw: st.DrawFn,
    shape: Shape,
    least: int = 1,
    most: int = 8,
    faults: bool = True,
    operations: Sequence[WriteOperation] = OPERATIONS,
) -> tuple[Step, ...]:
    """Writes to one table, one after the other. Columns are added and widened on the way; batches of older writers,
    without the new ones, come in between.

    least, most  writes
    faults       whether some of them fail
    operations   each as often as it is to be drawn
    """
    steps = []
    newest = shape.schema
    for _ in range(draw(st.integers(least, most))):
        newest = draw(_grown(shape, newest))
        operation = draw(st.sampled_from(operations))
        fault = draw(_faults()) if faults else None
        options = draw(_write_options(operation))
        step = Step(operation, newest, options=options, fault=fault)
        if operation is WriteOperation.DELETE_PARTITION:
            pool = shape.domains.get(shape.partition, ("",))
            step = replace(
                step, partitions=tuple(draw(st.lists(st.sampled_from(pool), min_size=1, max_size=2, unique=True)))
            )
        else:
            schema = draw(_batch_schema(shape, newest, operation))
            unordered = operation in _UNCOMBINED and not options
            step = replace(step, schema=schema, rows=draw(rows(shape, schema, unordered=unordered)))
        steps.append(step)
    return tuple(steps)


def _faults() -> st.SearchStrategy[WriteFault | None]:
    """Mostly none. A write of few rows makes 10 to 30 mutating calls."""
    one = st.builds(WriteFault, st.integers(0, 30), st.sampled_from([*Dying, None]))
    return st.integers(0, 3).flatmap(lambda number: st.none() if number else one)


def _write_options(operation: WriteOperation) -> st.SearchStrategy[dict[str, str]]:
    """Options that change what a write means."""
    if operation is WriteOperation.UPSERT:
        return st.sampled_from([{}, {}, {}, {"hoodie.combine.before.upsert": "false"}])
    if operation in (WriteOperation.INSERT, WriteOperation.INSERT_OVERWRITE):
        return st.sampled_from([{}, {"hoodie.combine.before.insert": "true"}])
    return st.just({})


@st.composite
def _grown(draw: st.DrawFn, shape: Shape, schema: pa.Schema) -> pa.Schema:
    """The schema after an evolution step, or as it is."""
    number = draw(st.integers(0, 9))
    if number == 0:
        kind = draw(leaf_types())
        return schema.append(pa.field(f"v{len(schema)}", kind))
    wider = [i for i, found in enumerate(schema) if found.type in _WIDER and found.name not in shape.domains]
    if number == 1 and wider:
        at = draw(st.sampled_from(wider))
        found = schema.field(at)
        return schema.set(at, found.with_type(draw(st.sampled_from(_WIDER[found.type]))))
    return schema


@st.composite
def _batch_schema(draw: st.DrawFn, shape: Shape, newest: pa.Schema, operation: WriteOperation) -> pa.Schema:
    """The columns of one batch: those of the newest schema; sometimes without some that may be null, or of the types
    that they had at first."""
    identity = (*shape.keys, *filter(None, [shape.partition]))
    if operation is WriteOperation.DELETE:
        return pa.schema([newest.field(name) for name in identity])
    older = {found.name: found.type for found in shape.schema}
    optional = [f.name for f in newest if f.nullable and f.name not in (*identity, shape.ordering)]
    if draw(st.integers(0, 3)) or not optional:
        return newest
    if draw(st.booleans()):
        return pa.schema([found.with_type(older.get(found.name, found.type)) for found in newest])
    dropped = draw(st.sets(st.sampled_from(optional), min_size=1, max_size=2))
    return pa.schema([found for found in newest if found.name not in dropped])
