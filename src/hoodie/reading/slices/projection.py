"""Which columns of a table a merge reads, and rows of its files brought into them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hoodie.index.stored_keys import record_key_arrow
from hoodie.keygen.keygen import KeyGenerator
from hoodie.merge.ordering import roots
from hoodie.merge.presence import add_presence, with_presence
from hoodie.merge.rows import nullable
from hoodie.merge.rules import MergeRule
from hoodie.model.meta import RECORD_KEY
from hoodie.schema.conform import conform


@dataclass(frozen=True, slots=True)
class MergeColumns:
    """The columns of a merge.

    stored  those that are read from files, in the table's types
    schema  those that are merged: `stored`, with the record key in front where rows do not store it, and last what
            columns a row holds, where the rule is about that (`hoodie.merge.presence`)
    keygen  makes such keys; None: rows store theirs
    """

    stored: pa.Schema
    schema: pa.Schema
    keygen: KeyGenerator | None = None
    partial: bool = False

    def bring(self, rows: pa.Table | pa.RecordBatch, held: Collection[str] | None = None) -> pa.Table:
        """Rows of a file in the columns of the merge.

        held    the columns that they hold; None: all, and null in those that the file lacks
        Raises  SchemaMismatch, InvalidInput on a key that is null
        """
        stored = self.stored if held is None else nullable(self.stored)
        return self.keyed(conform(rows, stored, drop_extra=True), held)

    def keyed(self, rows: pa.Table, held: Collection[str] | None = None) -> pa.Table:
        """Rows of `stored` in `schema`. held: as in `bring`"""
        columns = rows.columns
        if self.keygen is not None:
            columns = [pa.chunked_array([record_key_arrow(rows, self.keygen).cast(pa.string())]), *columns]
        elif not self.partial:
            return rows
        if self.partial:
            return add_presence(columns, self.schema if held is None else nullable(self.schema), held)
        return pa.Table.from_arrays(columns, schema=self.schema)


def merge_columns(
    schema: pa.Schema, rule: MergeRule, columns: Sequence[str] | None, keygen: KeyGenerator | None = None
) -> MergeColumns:
    """The columns that a merge needs to give `columns`: also what identifies rows and what the rule decides on.

    schema   of the table, meta columns included where it has them
    columns  None: all
    """
    names = schema.names
    columns_to_read = set(names if columns is None or rule.merger is not None else columns)
    columns_to_read |= {*roots(rule.ordering, names), *rule.deletes.columns, rule.sequence}
    columns_to_read |= {RECORD_KEY} if keygen is None else set(roots(keygen.record_keys, names))
    stored = pa.schema([field for field in schema if field.name in columns_to_read])
    merged = stored if keygen is None else pa.schema([pa.field(RECORD_KEY, pa.string()), *stored])
    return MergeColumns(stored, with_presence(merged) if rule.partial else merged, keygen, rule.partial)
