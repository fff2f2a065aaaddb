"""A batch of Arrow rows that fits its table, its rows with their keys, and those of them that cannot be written.

Files and data frames bring columns of another type than the table's, with values that its type holds.
"""

import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as arrow

from hoodie.config.table import TableConfig
from hoodie.config.write import WriteOperation
from hoodie.errors import ColumnLeftOut, InvalidInput, SchemaMismatch
from hoodie.expressions.casts import kernel_of
from hoodie.keygen.arrow_keys import RowKeys, in_units_of, is_text, parts_of, require_order, type_at
from hoodie.keygen.generated_keys import MakeKeys, NewKeys, StoredKeys
from hoodie.keygen.keygen import KeyGenerator, refuse_lacking
from hoodie.merge.ordering import require_ordering
from hoodie.merge.rules import Survivor
from hoodie.model.meta import META_COLUMNS, PARTITION_PATH, RECORD_KEY
from hoodie.schema.conform import conform
from hoodie.schema.leaves import map_parts, with_leaves
from hoodie.schema.schema import stored_form, without_meta_fields
from hoodie.schema.types import is_list, spark_name, stored_type, widen
from hoodie.storage.protocol import Storage
from hoodie.table.partition_metadata import require_partition_paths
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, declared_schema, on_newest, writer_keygen
from hoodie.writing.operations import Combine
from hoodie.writing.write import Write, check, state_of_write

#: The greatest whole number up to which a floating type holds each one.
_WHOLE = {32: 2**24, 64: 2**53}


def peeked(source: pa.RecordBatchReader) -> tuple[pa.RecordBatch | None, pa.RecordBatchReader]:
    """The first batch that has rows, and the stream of those that have some, it included; None: there is none."""
    filled = (batch for batch in source if batch.num_rows)
    first = next(filled, None)
    return first, pa.RecordBatchReader.from_batches(source.schema, filled if first is None else chain([first], filled))


@dataclass(frozen=True, slots=True)
class BroughtColumns:
    """The columns of a batch in the types that they are written with.

    read_text  text is read as the dates, times and numbers of its column
    """

    schema: pa.Schema
    read_text: bool = False

    def applied(self, rows: pa.Table) -> pa.Table:
        """Rows with these columns, behind them the meta columns that they have.

        Raises SchemaMismatch naming the column, and a value that its type does not hold
        """
        for field in self.schema:
            at = rows.schema.get_field_index(field.name)
            column = rows.column(at)
            if column.type != field.type:
                chunks = [_converted(chunk, field.type, field.name, self.read_text) for chunk in column.chunks]
                rows = rows.set_column(at, field, pa.chunked_array(chunks, field.type))
        return rows.select([*self.schema.names, *(name for name in rows.schema.names if name in META_COLUMNS)])


def brought_columns(
    table: pa.Schema | None,
    batch: pa.Schema,
    first: pa.RecordBatch | None,
    pinned: Collection[str],
    *,
    read_text: bool = False,
) -> BroughtColumns:
    """How the columns of a batch are written; those of no type that the table lacks are left out.

    table   in stored form; None: it has no columns yet
    first   the first rows: whether numbers are whole, or fit, and whether a column has values at all, is seen there.
            Later rows that differ are refused once they are read
    pinned  columns that do not grow: whole numbers that fit are written as theirs
    """
    fields = []
    for field in batch:
        at = -1 if table is None else table.get_field_index(field.name)
        if at >= 0:
            assert table is not None
            kind = _written_type(table.field(at).type, field, first, read_text, pinned=field.name in pinned)
            fields.append(field.with_type(kind))
        elif not arrow.is_null(field.type):
            fields.append(field)
    return BroughtColumns(pa.schema(fields), read_text)


def note_left_out(table: str, batch: pa.Schema, written: pa.Schema) -> None:
    """Warns of columns that have no type, as none of their values tells one."""
    if names := [field.name for field in batch if field.name not in written.names]:
        warnings.warn(ColumnLeftOut(table, tuple(names)), stacklevel=2)


def _written_type(
    kind: pa.DataType, field: pa.Field, first: pa.RecordBatch | None, read_text: bool, *, pinned: bool
) -> pa.DataType:
    have = field.type
    values = None if first is None else first.column(first.schema.get_field_index(field.name))
    if arrow.is_null(have) or arrow.is_nested(have):
        return type_as(have, kind, values)
    if pinned and arrow.is_signed_integer(have) and arrow.is_integer(kind):
        return kind if values is None or _narrow(values, kind).null_count == values.null_count else have
    if (number := _number_type(have, kind, values)) is not None:
        return number
    if read_text and is_text(have) and not is_text(kind) and kernel_of(pa.string(), kind) is not None:
        return kind
    stored = stored_type(have)
    fits = stored is not None and widen(kind, stored) == kind
    empty = values is not None and values.null_count == len(values)
    return kind if empty and not fits and not arrow.is_nested(kind) else have


def _number_type(have: pa.DataType, kind: pa.DataType, values: pa.Array | None) -> pa.DataType | None:
    """The type of floating numbers for a column of whole ones, or the reverse; None: they are no such numbers."""
    if arrow.is_floating(have) and arrow.is_integer(kind):
        return kind if values is None or _whole(values, kind).null_count == values.null_count else have
    return kind if arrow.is_integer(have) and arrow.is_floating(kind) else None


def type_as(have: pa.DataType, kind: pa.DataType, values: pa.Array | None) -> pa.DataType:
    """A type as the table has it where that needs no cast: lists that are all empty and fields that are all null,
    which have no type, and numbers whose values fit.

    values  of the first rows
    """
    if arrow.is_null(have):
        return kind
    if arrow.is_struct(have) and arrow.is_struct(kind):
        child_types = {child.name: child.type for child in kind}
        parts = [None] * have.num_fields if values is None else values.flatten()
        return pa.struct(
            child.with_type(type_as(child.type, child_types.get(child.name, child.type), part))
            for child, part in zip(have, parts, strict=True)
        )
    if is_list(have) and is_list(kind):
        elements = None if values is None else values.flatten()
        return pa.list_(have.value_field.with_type(type_as(have.value_type, kind.value_type, elements)))
    if arrow.is_map(have) and arrow.is_map(kind):
        _, keys, items = (None, None, None) if values is None else map_parts(values)
        item = have.item_field.with_type(type_as(have.item_type, kind.item_type, items))
        return pa.map_(have.key_field.with_type(type_as(have.key_type, kind.key_type, keys)), item)
    number = _number_type(have, kind, values)
    return have if number is None else number


def _whole(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Floating numbers as whole ones; null where one is none."""
    numbers = values.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False)
    limit = 2.0 ** (kind.bit_width - 1)
    with np.errstate(invalid="ignore"):
        fits = (np.trunc(numbers) == numbers) & (numbers >= -limit) & (numbers < limit)
    integers = np.where(fits, numbers, 0).astype(np.int64)
    return pa.array(integers, pa.int64(), mask=~fits | np.asarray(values.is_null())).cast(kind)


def _narrow(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Whole numbers in another type of them; null where it does not hold one."""
    narrow = values.cast(kind, safe=False)
    return pc.if_else(pc.equal(narrow.cast(values.type), values), narrow, pa.scalar(None, kind))


def _converted(values: pa.Array, kind: pa.DataType, name: str, read_text: bool) -> pa.Array:
    have = values.type
    if values.null_count == len(values):
        return pa.nulls(len(values), kind)
    if arrow.is_nested(have):
        return with_leaves(values, kind, name, lambda leaf, type_, path: _converted(leaf, type_, path, False))
    if arrow.is_floating(have) and arrow.is_integer(kind):
        return _refusing(values, _whole(values, kind), kind, name)
    if arrow.is_integer(have) and arrow.is_floating(kind):
        most = _WHOLE[kind.bit_width]
        numbers = values.fill_null(0).to_numpy(zero_copy_only=False)  # of Arrow's kernels none takes all of uint64
        large = pa.array((numbers > most) | (numbers < -most))
        return _refusing(values, pc.if_else(large, pa.scalar(None, have), values), kind, name).cast(kind, safe=False)
    if arrow.is_signed_integer(have) and arrow.is_integer(kind):
        return _refusing(values, _narrow(values, kind), kind, name)
    kernel = kernel_of(pa.string(), kind) if read_text and is_text(have) else None
    if kernel is None:
        raise _mismatch(values, values.is_valid(), kind, name)
    return _refusing(values, kernel(values.cast(pa.string())), kind, name)


def _refusing(values: pa.Array, fitting: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    if fitting.null_count > values.null_count:
        raise _mismatch(values, pc.and_(values.is_valid(), fitting.is_null()), kind, name)
    return fitting


def _mismatch(values: pa.Array, bad: pa.Array, kind: pa.DataType, name: str) -> SchemaMismatch:
    value, word = values.filter(bad)[0].as_py(), spark_name(kind)
    return SchemaMismatch(
        f"column {name} is {word} in the table, which does not hold the {spark_name(values.type)} value {value!r} of "
        f"the batch: cast the column to {word} first; nothing was written"
    )


#: What reads give rows, and says which row of the table one is.
KEYS = (RECORD_KEY, PARTITION_PATH)
#: The entry of the schema's metadata that names the index of the DataFrame that the rows were: it is left out.
INDEX_LEFT_OUT = b"hoodie.index.left.out"


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """The rows of a batch on their way to a table that they fit; they can be read once.

    source  the user's columns, as they came
    columns those that are written, in stored form; of a delete those of a compound key, which are compared with the
            stored rows'. None: the keys are taken alone
    make_keys  gives the rows record keys and partition paths, one part after the other
    deleting  the rows have columns beside `columns`: the path is made of them
    with_keys `make_keys` asks for the keys that rows bring
    brought  the user's columns in the types that they are written with; None: as they are, being those of the table
    """

    source: pa.RecordBatchReader
    columns: pa.Schema | None
    make_keys: MakeKeys
    deleting: bool = False
    with_keys: bool = False
    brought: BroughtColumns | None = None

    @property
    def schema(self) -> pa.Schema:
        """The schema of `batches`."""
        keys = [pa.field(name, pa.string()) for name in KEYS]
        return pa.schema([*(self.columns or ()), *keys])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows with record key and partition path, in batches of bounded size.

        Raises SchemaMismatch on values that their type or the table's cannot hold, InvalidInput as key generators
        """
        for batch in self.source:
            try:
                batch.validate(full=True)
            except pa.ArrowInvalid as problem:
                raise _invalid(batch, problem) from problem
            for rows in parts_of(pa.Table.from_batches([batch])):
                if self.brought is not None:
                    rows = self.brought.applied(rows)
                if self.columns is not None and not self.deleting:
                    rows = self._conformed(rows, self.columns)
                yield from self.make_keys(rows).cast(self.schema).to_batches()

    def _conformed(self, rows: pa.Table, columns: pa.Schema) -> pa.Table:
        """The user's columns as they are written, then the keys that rows have, if they are asked for."""
        user = conform(rows.select([n for n in rows.schema.names if n not in META_COLUMNS]), columns)
        if not self.with_keys:
            return user
        return pa.Table.from_arrays([*user.columns, *rows.select(KEYS).columns], [*user.schema.names, *KEYS])


def _invalid(batch: pa.RecordBatch, problem: pa.ArrowInvalid) -> SchemaMismatch:
    """What is wrong with values of which Arrow says by the number of their column that they are none of its type."""
    number, _, reason = str(problem).removeprefix("In column ").partition(": Invalid: ")
    column = batch.schema.names[int(number)] if number.isdigit() else ""
    advice = "Text is UTF-8: have other bytes decoded, or as binary; nothing was written"
    return SchemaMismatch(f"column {column}: {reason or problem}. {advice}")


def check_rows(
    storage: Storage,
    operation: WriteOperation,
    source: pa.RecordBatchReader,
    settings: Settings,
    new: TableState | None = None,
) -> tuple[Write, ArrowRows]:
    """See whether the table may be written and the batch fits it. No row is read yet.

    new     the table as it will be, when it is not made yet
    Raises  InvalidInput, SchemaMismatch, InvalidOption, TableMismatch, UnsupportedTable
    """
    schema = without_meta_fields(source.schema)
    has_keys = set(KEYS) <= set(source.schema.names)
    first, source = peeked(source)
    read_text = settings.brought.read_text

    def brought(declared: pa.Schema | None, config: TableConfig) -> BroughtColumns | None:
        if declared is not None and schema.equals(declared):
            return None
        return brought_columns(declared, schema, first, config.pinned_columns, read_text=read_text)

    def written_columns(declared: pa.Schema | None, config: TableConfig) -> pa.Schema:
        typed = brought(declared, config)
        return declared if typed is None else stored_form(typed.schema)

    def require(declared: pa.Schema | None, keygen: KeyGenerator, ordering: Sequence[str], config: TableConfig) -> None:
        # What replaces a whole table says its types itself: a file that came empty by mistake does not.
        changes_nothing = first is None and operation is not WriteOperation.INSERT_OVERWRITE_TABLE
        typed = brought(declared, config) if changes_nothing and declared is not None else None
        index = (source.schema.metadata or {}).get(INDEX_LEFT_OUT)
        require_columns(schema if typed is None else typed.schema, keygen, ordering, config.name, index=index)

    write = check_against(
        storage,
        operation,
        settings,
        new,
        columns=written_columns,
        require=require,
        has_keys=has_keys,
    )
    typed = brought(write.declared, write.state.config)
    if typed is not None and operation is not WriteOperation.DELETE:
        note_left_out(write.state.config.name, schema, typed.schema)
    if operation is WriteOperation.DELETE and write.keygen is not None and len(write.keygen.record_keys) > 1:
        parts = {name.partition(".")[0] for name in write.keygen.record_keys}
        fields = schema if typed is None else typed.schema
        columns = stored_form(pa.schema([field for field in fields if field.name in parts]))
        keys = RowKeys(tuple(columns.names), write.keygen)
        return write, ArrowRows(source, columns, keys, deleting=True, brought=typed)
    columns = write.columns
    make_keys = keys_for(write, () if columns is None else columns.names)
    if isinstance(make_keys, NewKeys):
        make_keys = make_keys.of_task(0)
    return write, ArrowRows(
        source,
        columns,
        make_keys,
        with_keys=write.updates_by_stored_keys,
        brought=None if write.keygen is None else typed,
    )


def keys_for(write: Write, columns: Sequence[str]) -> MakeKeys:
    """What gives the rows of a batch their keys. columns: of the rows that stay, before the keys"""
    keygen, names = write.keygen, tuple(columns)
    if keygen is None or not keygen.makes_new_keys:
        return RowKeys(names, keygen)
    by_stored = write.updates_by_stored_keys
    return NewKeys(StoredKeys(names, keygen, write.index.is_global) if by_stored else RowKeys(names, keygen))


def check_against(
    storage: Storage,
    operation: WriteOperation,
    settings: Settings,
    new: TableState | None,
    *,
    columns: Callable[[pa.Schema | None, TableConfig], pa.Schema],
    require: Callable[[pa.Schema | None, KeyGenerator, Sequence[str], TableConfig], None],
    has_keys: bool,
) -> Write:
    """See whether a table may be written and a batch of some columns fits it. Arguments and errors as `check_rows`.

    columns   gives the user's, by those that the table has (None: none yet) and its settings; not asked for a delete
    require   refuses a batch that lacks what a key generator, and ordering columns, need; before them the columns that
              the table has, last its settings
    has_keys  rows have record key and partition path: all that a delete needs
    """

    def look(state: TableState) -> Write:
        keygen = writer_keygen(state)
        deleting = operation is WriteOperation.DELETE
        if deleting and keygen.makes_new_keys and not has_keys:
            raise InvalidInput(
                f"{state.config.name} has no record key: rows to delete are named by {RECORD_KEY} and "
                f"{PARTITION_PATH}, as reads with meta=True have them, or by a condition"
            )
        only_new = keygen.makes_new_keys and not deleting and not (has_keys and operation is WriteOperation.UPSERT)
        declared = declared_schema(state)
        if not deleting:
            require(declared, keygen, state.config.ordering, state.config)
        batch_columns = None if deleting else columns(declared, state.config)
        write = check(state, operation, batch_columns, settings, only_new=only_new)
        if deleting and has_keys:
            return write
        if deleting:
            if write.index.is_global:  # the index says where the keys are
                keygen = replace(keygen, partition_fields=())
            try:
                require(declared, keygen, (), state.config)
            except SchemaMismatch as problem:
                raise SchemaMismatch(f"{problem} Or delete by a condition: delete(where=…).") from None
        return replace(write, keygen=in_units_of(keygen, write.schema))

    load = partial(state_of_write, storage, settings, new)
    return on_newest(load(), look, load)


def require_columns(
    schema: pa.Schema, keygen: KeyGenerator, ordering: Sequence[str], table: str, *, index: bytes | None = None
) -> None:
    """As `refuse_lacking`, and refuses an ordering column without an order. A column of no type has no value.

    index  names of a DataFrame's index, which is no column; None: it has none, or was no DataFrame
    """
    kinds = {name: type_at(schema, name) for name in (*keygen.columns, *ordering)}
    for name, kind in kinds.items():
        if kind is not None and pa.types.is_null(kind):
            raise SchemaMismatch(
                f"The batch does not fit table {table!r}: column {name!r} has no value, and is of its key, partition "
                "or ordering: fill it, or give the column a type if the batch has no rows"
            )
    present = {name for name, kind in kinds.items() if kind is not None}
    try:
        refuse_lacking(schema.names, present.__contains__, keygen, ordering, table)
    except SchemaMismatch as problem:
        if index is None:
            raise
        words = f"The DataFrame's index {index.decode()} is not written: bring it by frame.reset_index()."
        raise SchemaMismatch(f"{problem} {words}") from None
    for name in ordering:
        require_order(kinds[name], name)


def partitions_of(rows: pa.Table) -> frozenset[str]:
    """The partition paths of keyed rows."""
    return frozenset(rows.column(PARTITION_PATH).unique().to_pylist())


def check_keys(rows: pa.Table, config: TableConfig) -> None:
    """Refuse rows without a record key, a partition path, or a folder to be in. Raises InvalidInput saying how many."""
    refuse_bad_keys(rows.column(RECORD_KEY).null_count, rows.column(PARTITION_PATH).null_count, config)
    require_partition_paths(partitions_of(rows))


def refuse_bad_keys(keys: int, paths: int, config: TableConfig) -> None:
    """Raises InvalidInput, naming table and columns, unless both counts of bad rows are zero."""
    if keys:
        columns = ", ".join(config.record_key) or RECORD_KEY
        raise InvalidInput(
            f"{keys} rows have a record key that is null or empty: {columns} of table {config.name!r}. Filter them "
            "out, or fill the key columns."
        )
    if paths:
        raise InvalidInput(
            f"{paths} rows have a partition value that cannot be read as the time it should be, in table "
            f"{config.name!r}; see the formats in hoodie.keygen.timebased.input.dateformat."
        )


def sound_rows(rows: pa.Table, write: Write) -> pa.Table:
    """The keyed rows. Raises InvalidInput on some that cannot be written."""
    check_keys(rows, write.state.config)
    if ordered := ordering_needed(write):
        require_ordering(rows, ordered, RECORD_KEY)
    return rows


def ordering_needed(write: Write) -> Sequence[str]:
    """The ordering columns that must have a value in each row of the batch."""
    ordered = write.operation_rules.combine is Combine.ORDERED and write.rule.survivor is not Survivor.OLDEST
    return write.rule.ordering if ordered else ()
