"""Columns that a batch lacks: which they are, whether it is refused for them, or what its rows hold there."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hoodie.config.write import MissingColumns
from hoodie.model.meta import IS_DELETED
from hoodie.schema.types import is_list

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
            f"{_listed(names)} {'is' if len(names) == 1 else 'are'} {state}"
            for names, state in ((self.missing, "missing"), (self.new, "new"))
            if names
        ]
        if not parts:
            return ""
        noun = "column" if len(self.missing or self.new) == 1 else "columns"
        return f"{noun} {' and '.join(parts)}"

    def _hint(self) -> str:
        meant = [(name, near) for name in self.new if (near := self._near(name))]
        if not meant:
            return ""
        if len(self.new) == 1:
            return f" Did you mean {meant[0][1]!r}?"
        return f" Did you mean {', '.join(f'{near!r} by {name!r}' for name, near in meant)}?"

    def _near(self, name: str) -> str:
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
    missing = [(path, within) for path, within in _lacking(table, batch, "", False) if path != IS_DELETED]
    new = tuple(path for path, _ in _lacking(batch, table, "", False))
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
            f'{columns} missing="keep" cannot keep {_listed(columns.within)}: nothing tells which stored element of a '
            f"list, or value of a map, an incoming one is for. Give them whole; or {nulls}"
        )
    return ""


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def _lacking(
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
        yield from _lacking(whole, part, f"{path}.", within)
    elif is_list(whole) and is_list(part):
        yield from _lacking_in_type(whole.value_type, part.value_type, f"{path}.element", True)
    elif pa.types.is_map(whole) and pa.types.is_map(part):
        yield from _lacking_in_type(whole.item_type, part.item_type, f"{path}.value", True)
