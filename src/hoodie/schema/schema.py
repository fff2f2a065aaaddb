"""The columns of a table: which a batch may have, and how a table's schema grows with it.

A schema is a `pyarrow.Schema` of the user's columns in *stored form*: 32 and 64 bit signed integers, timestamps in UTC
or without a zone, `decimal128`, plain lists, maps with string keys. Timestamps are microseconds, or milliseconds where
another writer declared the column so. Source: docs/format/base-files-and-bloom.md 3
and docs/design/types.md.
"""

import difflib
import json
import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hoodie.config.write import MissingColumns
from hoodie.errors import ColumnBecomesText, HudiCannotRead, InvalidInput, SchemaMismatch
from hoodie.model.meta import IS_DELETED, META_COLUMNS
from hoodie.schema.types import grown, is_list, list_of, map_of, read_by_spark, remedy, spark_name, stored_type, widen

#: Field metadata: the Avro default of a field that has one other than null, as JSON.
AVRO_DEFAULT = b"hoodie.avro.default"
#: Field metadata: the Avro logical type of a field, where its type alone does not say which of two it is.
AVRO_LOGICAL = b"hoodie.avro.logical"
LOCAL_MICROS = b"local-timestamp-micros"
VECTOR = b"vector"  # files have the numbers of such a list as bytes
#: Field metadata, in the schema of a read: files may hold the values of this column as text.
ALSO_TEXT = b"hoodie.also.text"
#: Field metadata: files may hold the values of this column in a type that Spark's own reader does not widen.
GROWN = b"hoodie.grown"
#: Field metadata: what the table's owner says of the column, Avro's `doc`.
COMMENT = b"hoodie.comment"
#: What to do about a column of type null.
UNTYPED = ", as all of its values are null: cast it, or leave it out"

_ALLOWED_RESERVED = frozenset({IS_DELETED, "_hoodie_operation"})


def with_meta_fields(schema: pa.Schema) -> pa.Schema:
    """The schema of base files: the five `_hoodie_*` columns, then the user's."""
    return pa.schema([*(pa.field(name, pa.string()) for name in META_COLUMNS), *without_meta_fields(schema)])


def without_meta_fields(schema: pa.Schema) -> pa.Schema:
    """The user's columns."""
    return pa.schema([field for field in schema if field.name not in META_COLUMNS])


def every_column(schema: pa.Schema, meta: bool) -> list[str]:
    """The columns that a read gives that names none. meta: those of the library as well"""
    return [name for name in schema.names if meta or name not in META_COLUMNS]


def with_comment(field: pa.Field, text: str) -> pa.Field:
    """The field with a comment; "": with none."""
    marks = {key: value for key, value in (field.metadata or {}).items() if key != COMMENT}
    if text:
        marks[COMMENT] = text.encode()
    return field.with_metadata(marks) if marks else field.remove_metadata()


def stored_form(schema: pa.Schema) -> pa.Schema:
    """The schema in which a table holds these columns: bytes and shorts are ints, timestamps are microseconds.

    schema   the user's columns, as Spark or Arrow has them; nullability and order are kept
    Raises   SchemaMismatch, one for all columns whose name or type a table cannot have
    """
    problems: list[str] = list(bad_names(schema.names, ""))
    fields = [_stored_field(field, field.name, problems) for field in schema]
    _refuse(problems, "These columns cannot be stored")
    return pa.schema(fields)


def reconcile(
    table: pa.Schema,
    incoming: pa.Schema,
    *,
    pinned: Collection[str] = (),
    optional: Collection[str] = (),
    refusal: str = "",
) -> pa.Schema:
    """The table's schema after a batch: its columns in order, types widened where that is safe, new columns appended.

    table     stored form, without meta fields
    incoming  the batch's columns; what it lacks is filled with null
    pinned    columns that keep their type: key, partition and ordering columns. Keys and partition paths are made of
              their text, and readers compare ordering values of one type only
    optional  columns that the batch may lack though they take no nulls: their stored values stay
    refusal   what else is wrong with the batch, to be named with the rest; "": nothing
    returns   a column is nullable if the table's or the batch's is; pinned ones keep the table's word
    Raises    SchemaMismatch, one for all columns, with types in Spark's words

    A column grows as Hudi lets it: int, bigint, float, double, string in this order; a narrower batch goes into a wider
    column. Digits may be lost. Structs, list elements and map values grow where no digit is lost: int to bigint, int to
    double, float to double. A decimal goes into one with at least its digits. Refused though Hudi may do it: wider
    decimals, string to binary.
    """
    batch = stored_form(incoming)
    problems = list(_bad_case(table.names, batch.names, ""))
    batch_and_kept = [*batch, *(field for field in table if field.name in optional and field.name not in batch.names)]
    fields = _merge_fields(list(table), batch_and_kept, "", frozenset(pinned), problems)
    problems += [refusal] if refusal else []
    _refuse(problems, "The batch does not fit the table's schema; nothing was written")
    return pa.schema(fields)


def _refuse(problems: Iterable[str], opening: str) -> None:
    listed = list(problems)
    if listed:
        raise SchemaMismatch(f"{opening}: {'; '.join(listed)}.")


def bad_names(names: list[str], path: str) -> Iterator[str]:
    """What is wrong with the names of columns, or of the fields of a struct.

    path  before each name: of the struct, with a dot behind it; "": none
    """
    counts = Counter(name.lower() for name in names)
    for name in dict.fromkeys(names):
        dotted = f"{path}{name}"
        if counts[name.lower()] > 1:
            yield f"column {dotted} occurs more than once (names differ in case only, or not at all)"
        if (problem := name_problem(name)) is not None:
            yield f"column {dotted!r} {problem}"
        if not path and name.startswith("_hoodie_") and name not in _ALLOWED_RESERVED:
            yield f"column {dotted} has a name that is the table's own; drop it"


def _bad_case(table: list[str], batch: list[str], path: str) -> Iterator[str]:
    spellings = {name.lower(): name for name in table}
    for name in batch:
        if spellings.get(name.lower(), name) != name:
            yield f"column {path}{name} is {path}{spellings[name.lower()]} in the table; rename it"


def _stored_field(field: pa.Field, path: str, problems: list[str]) -> pa.Field:
    """The field in stored form; what cannot be stored is added to `problems`."""
    kind = field.type
    if pa.types.is_struct(kind):
        problems.extend(bad_names([child.name for child in kind], f"{path}."))
        if kind.num_fields == 0:
            problems.append(f"column {path} is a struct without fields: leave it out")
        stored = pa.struct([_stored_field(child, f"{path}.{child.name}", problems) for child in kind])
    elif is_list(kind):
        stored = list_of(_stored_field(kind.value_field, f"{path}.element", problems))
    elif pa.types.is_map(kind):
        if stored_type(kind.key_type) != pa.string():
            problems.append(f"column {path} is {spark_name(kind)}: the keys of a map must be strings: cast them")
        stored = map_of(_stored_field(kind.item_field, f"{path}.value", problems))
    else:
        storable = stored_type(kind)
        if storable is None:
            cast = remedy(kind)
            why = UNTYPED if pa.types.is_null(kind) else f": {cast}" if cast else ""
            problems.append(f"column {path} is {spark_name(kind)}{why}")
        stored = kind if storable is None else storable
    return field.with_type(stored)


def _merge_fields(
    table: list[pa.Field], batch: list[pa.Field], path: str, pinned: frozenset[str], problems: list[str]
) -> list[pa.Field]:
    """The table's fields, each merged with the batch's field of that name, and the batch's new ones."""
    by_name = {field.name: field for field in batch}
    merged = []
    for field in table:
        dotted = f"{path}{field.name}"
        if field.name in by_name:
            merged.append(_merge(field, by_name[field.name], dotted, dotted in pinned, pinned, problems))
            continue
        if not field.nullable and AVRO_DEFAULT not in (field.metadata or {}):
            problems.append(f"column {dotted} is missing in the batch and takes no nulls in the table")
        merged.append(field)
    table_names = {field.name for field in table}
    for field in batch:
        if field.name in table_names:
            continue
        merged.append(field.with_nullable(True))  # older rows have nulls there, whatever this batch has
    return merged


def _merge(
    table: pa.Field, batch: pa.Field, path: str, keep: bool, pinned: frozenset[str], problems: list[str]
) -> pa.Field:
    old, new = table.type, batch.type
    nested = "." in path
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        problems.extend(_bad_case([child.name for child in old], [child.name for child in new], f"{path}."))
        kind = pa.struct(_merge_fields(list(old), list(new), f"{path}.", pinned, problems))
    elif is_list(old) and is_list(new):
        kind = list_of(_merge(old.value_field, new.value_field, f"{path}.element", keep, pinned, problems))
    elif pa.types.is_map(old) and pa.types.is_map(new):
        kind = map_of(_merge(old.item_field, new.item_field, f"{path}.value", keep, pinned, problems))
    else:
        kind = widen(old, new) if nested or keep else grown(old, new)
        words = f"column {path} is {spark_name(old)} in the table and {spark_name(new)} in the batch"
        if kind is None:
            problems.append(f"{words}: cast it to {spark_name(old)}{_another_way(old, new, nested)}")
            kind = old
        elif keep and kind != old:
            problems.append(
                f"{words}; the type of a key, partition or ordering column stays: cast it to {spark_name(old)}"
            )
    merged = table.with_type(kind).with_nullable(table.nullable or (batch.nullable and not keep))
    if nested or pa.types.is_nested(kind) or kind == old or read_by_spark(old, kind):
        return merged
    marks = {**(table.metadata or {}), GROWN: b"true"}
    if kind == pa.string() and AVRO_DEFAULT in marks:
        marks[AVRO_DEFAULT] = json.dumps(marks[AVRO_DEFAULT].decode()).encode()
    return merged.with_metadata(marks)


def _another_way(old: pa.DataType, new: pa.DataType, nested: bool) -> str:
    """How a cast is written in pandas, or left to the write; "": there is no more to say."""
    types = pa.types
    if types.is_timestamp(new) and types.is_date(old):
        return ", in pandas by .dt.date"
    if types.is_timestamp(new) and types.is_timestamp(old):
        return ", in pandas by .dt." + ("tz_localize(its zone)" if old.tz else "tz_convert(None)")
    if types.is_string(new) and not (nested or types.is_nested(old) or types.is_binary(old)):
        return ", or have its text read (not that of a Spark DataFrame): hoodie.write.read.text=true"
    return ""


# Avro's rule in the form that all readers keep: Java takes other letters too, hudi-rs does not.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LETTERS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss"})


def name_problem(name: str) -> str | None:
    """What is wrong with the name of a column or field, and a name that would do; None: nothing."""
    if _NAME.fullmatch(name):
        return None
    plain = _plain_name(name)
    rename = f"; rename it, such as to {plain!r}" if plain else ""
    return f"needs another name: letters A to Z, digits and underscores, not a digit first{rename}"


def refuse_names(columns: Iterable[str]) -> None:
    """Raises InvalidInput on columns, perhaps nested ("a.b"), that no table can have."""
    problems = [
        f"column {column!r} {problem}"
        for column in columns
        if (problem := next((fault for part in column.split(".") if (fault := name_problem(part))), None))
    ]
    if problems:
        raise InvalidInput("; ".join(problems))


def _plain_name(name: str) -> str:
    """A name like this one; "": there is no letter to make it of."""
    letters = unicodedata.normalize("NFKD", name.translate(_LETTERS)).encode("ascii", "ignore").decode()
    plain = re.sub(r"[^A-Za-z0-9]+", "_", letters).strip("_")
    return f"_{plain}" if plain[:1].isdigit() else plain


#: How alike two names are, of 1, for the one to be suggested for the other.
_CLOSE = 0.7


@dataclass(frozen=True, slots=True)
class ColumnDifference:
    """How the columns of a batch differ from those of its table, by name. Nested ones are dotted, `element` and
    `value` standing for what is in lists and maps.

    missing  in the order of the table
    new      in the order of the batch
    within   those of the missing that are in elements of lists, or in values of maps
    """

    missing: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    within: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As "column 'fare' is missing and 'fares' is new. Did you mean 'fare'?"; "" where there is none."""
        return f"{self.summary}.{self._hint()}" if self.summary else ""

    @property
    def summary(self) -> str:
        """As "column 'fare' is missing and 'fares' is new"; "" where there is no difference."""
        parts = [
            f"{_names_text(names)} {'is' if len(names) == 1 else 'are'} {state}"
            for names, state in ((self.missing, "missing"), (self.new, "new"))
            if names
        ]
        if not parts:
            return ""
        noun = "column" if len(self.missing or self.new) == 1 else "columns"
        return f"{noun} {' and '.join(parts)}"

    def _hint(self) -> str:
        meant = [(name, near) for name in self.new if (near := self._close_name(name))]
        if not meant:
            return ""
        if len(self.new) == 1:
            return f" Did you mean {meant[0][1]!r}?"
        return f" Did you mean {', '.join(f'{near!r} by {name!r}' for name, near in meant)}?"

    def _close_name(self, name: str) -> str:
        """The missing column, beside this one, whose name is close; "": there is none."""
        parent, _, last = name.rpartition(".")
        beside = {m.rpartition(".")[2].lower(): m for m in self.missing if m.rpartition(".")[0] == parent}
        near = difflib.get_close_matches(last.lower(), beside, n=1, cutoff=_CLOSE)
        return beside[near[0]] if near else ""


#: The columns are the same, or there is no batch to compare.
NO_DIFFERENCE = ColumnDifference()


def column_difference(table: pa.Schema, batch: pa.Schema) -> ColumnDifference:
    """The columns that a batch lacks, and those that it brings, at any depth; both schemas in stored form.

    Names that differ in case only are neither: `reconcile` refuses them. The flag of deletes is never missing: rows
    without it are none, and no stored row has it set.
    Source: Hudi 0.15 counts nested fields, those within lists and maps too (MissingSchemaFieldException).
    """
    missing = [(path, within) for path, within in _missing_fields(table, batch, "", False) if path != IS_DELETED]
    new = tuple(path for path, _ in _missing_fields(batch, table, "", False))
    return ColumnDifference(tuple(path for path, _ in missing), new, tuple(path for path, within in missing if within))


def refusal(columns: ColumnDifference, policy: MissingColumns, operation: str, *, keeps: bool) -> str:
    """Why rows that lack columns are not written, naming every missing and every new column, and the ways to go on; "":
    they are written.

    operation  the write's, in words
    keeps      it looks stored rows up, whose values can stay
    """
    if not columns.missing or policy is MissingColumns.NULL:
        return ""
    nulls = 'have nulls written there, with missing="null" or hoodie.write.set.null.for.missing.columns=true'
    if policy is MissingColumns.REFUSE:
        keep = 'upsert with missing="keep" (hoodie.write.missing.columns=keep): stored values stay'
        return f"{columns} Give the batch all columns of the table; or {nulls}; or {keep}"
    if not keeps:
        return (
            f'{columns} missing="keep" keeps the values of stored rows, and {operation} replaces none of them by key: '
            f"upsert; or give the batch all columns of the table; or {nulls}"
        )
    if columns.within:
        return (
            f'{columns} missing="keep" cannot keep {_names_text(columns.within)}: nothing tells which stored element '
            f"of a list, or value of a map, an incoming one is for. Give them whole; or {nulls}"
        )
    return ""


def _names_text(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def _missing_fields(
    whole: Iterable[pa.Field], part: Iterable[pa.Field], path: str, within: bool
) -> Iterator[tuple[str, bool]]:
    """The fields of the one that the other has not, and whether they are in lists or maps."""
    fields = {field.name.lower(): field for field in part}
    for field in whole:
        other = fields.get(field.name.lower())
        if other is None:
            yield f"{path}{field.name}", within
        else:
            yield from _lacking_in_type(field.type, other.type, f"{path}{field.name}", within)


def _lacking_in_type(whole: pa.DataType, part: pa.DataType, path: str, within: bool) -> Iterator[tuple[str, bool]]:
    if pa.types.is_struct(whole) and pa.types.is_struct(part):
        yield from _missing_fields(whole, part, f"{path}.", within)
    elif is_list(whole) and is_list(part):
        yield from _lacking_in_type(whole.value_type, part.value_type, f"{path}.element", True)
    elif pa.types.is_map(whole) and pa.types.is_map(part):
        yield from _lacking_in_type(whole.item_type, part.item_type, f"{path}.value", True)


def warn_of_columns(table: str, before: pa.Schema | None, after: pa.Schema, *, local_times: bool) -> None:
    """What a write that gives a table these columns tells: ColumnBecomesText; HudiCannotRead of times without a zone.

    before       None: the table has none yet
    local_times  its version has these as Hudi 1.1 knows them
    """
    for column in before or ():
        if column.type != pa.string() and after.field(column.name).type == pa.string():
            warnings.warn(ColumnBecomesText(table, column.name, spark_name(column.type)), stacklevel=3)
    earlier_paths = set() if before is None else set(_times_without_zone(before, ""))
    if new := [path for path in _times_without_zone(after, "") if path not in earlier_paths]:
        who = "Hudi before 1.1 and hudi-rs" if local_times else "Hudi (but 1.1 and later in a table of version 8 or 9)"
        problem = (
            f"table {table!r} gets columns of type timestamp_ntz: {', '.join(new)}. {who} cannot read a table that has "
            "one; cast them to timestamp if it is to."
        )
        warnings.warn(HudiCannotRead(problem), stacklevel=3)


def _times_without_zone(fields: Iterable[pa.Field], path: str) -> Iterator[str]:
    """The columns, nested ones dotted, that are times without a zone."""
    for column in fields:
        kind, name = column.type, f"{path}{column.name}"
        if pa.types.is_timestamp(kind) and kind.tz is None:
            yield name
        elif pa.types.is_struct(kind):
            yield from _times_without_zone(kind, f"{name}.")
        elif pa.types.is_list(kind):
            yield from _times_without_zone([kind.value_field], f"{name}.")
        elif pa.types.is_map(kind):
            yield from _times_without_zone([kind.item_field], f"{name}.")
