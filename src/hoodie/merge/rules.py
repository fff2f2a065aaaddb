"""What a merge rule is: a value that tells, for two versions of a row, which one wins.

One rule serves the four places in which versions meet: duplicates within a batch and records of the log among
themselves (`precombine`), incoming rows and merged log records against stored rows (`combine`). Rows come in tables
that are aligned: row i of the one and row i of the other have the same key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidInput
from hoodie.merge.ordering import order_ranks, roots
from hoodie.merge.rows import Mask, RowAction, actions_of, as_array, as_mask, pick
from hoodie.model.meta import IS_DELETED

Choices = npt.NDArray[np.int8]

#: What Debezium writes for a value that Postgres did not send, being large and unchanged.
UNAVAILABLE = "__debezium_unavailable_value"


class Choice(IntEnum):
    """What becomes of a pair of versions."""

    KEEP = 0  # the older (stored) row, unchanged
    TAKE = 1  # the newer (incoming) row
    DELETE = 2  # neither
    MERGED = 3  # a row made of both


@dataclass(frozen=True, slots=True, eq=False)
class Combined:
    """What becomes of n pairs.

    choice  int8[n] of `Choice`
    merged  the rows of the pairs whose choice is MERGED, in the order of the pairs; None: there are none
    """

    choice: Choices
    merged: pa.Table | None = None

    def rows(self, older: pa.Table, newer: pa.Table) -> pa.Table:
        """Row i is what became of pair i; for a deleted pair the newer row, for its key."""
        count = older.num_rows
        if self.merged is None and (self.choice == Choice.KEEP).all():
            return older
        if self.merged is None and (self.choice != Choice.KEEP).all():
            return newer
        source = np.arange(count, dtype=np.int64)
        source[self.choice != Choice.KEEP] += count
        if self.merged is None:
            return pick([older, newer], source)
        merged_pairs = self.choice == Choice.MERGED
        source[merged_pairs] = 2 * count + np.arange(np.count_nonzero(merged_pairs))
        return pick([older, newer, self.merged], source)


class Survivor(Enum):
    """Which of the versions that arrived outlives the others, where no stored row is involved."""

    LATEST = "the greatest ordering value, of equals the one that came last"
    FIRST = "the greatest ordering value, of equals the one that came first"
    OLDEST = "the one that came first"
    MADE = "neither: a row is made of both"


class Fill(Enum):
    """Which values of the winning row give way to the other row's."""

    NULLS = "nulls"
    DEFAULTS = "values equal to the schema's default"
    UNAVAILABLE = "Debezium's placeholder for a value that it did not get"


@dataclass(frozen=True, slots=True)
class DeleteTest:
    """How a row says that its key is deleted. Without a test no row does, but those that a merge marks."""

    flag: bool = True  # `_hoodie_is_deleted` is true
    column: str = ""  # or: this column holds the marker, as text
    marker: str = ""
    ignore_case: bool = False
    required: bool = False  # the column must be there
    always: bool = False  # every row is a delete

    def __call__(self, rows: pa.Table) -> Mask:
        """bool[n]. Raises InvalidInput when a required column is absent."""
        flagged = np.full(rows.num_rows, self.always, np.bool_)
        if (actions := actions_of(rows)) is not None:
            flagged |= actions == RowAction.DELETE
        if self.flag and IS_DELETED in rows.column_names:
            flags = rows.column(IS_DELETED)
            if pa.types.is_boolean(flags.type):
                flagged |= as_mask(flags)
        if self.column:
            if self.column in rows.column_names:
                flagged |= as_mask(self._marked(rows.column(self.column)))
            elif self.required:
                raise InvalidInput(f"the column {self.column!r}, which tells deletes, is not in {rows.column_names}")
        return flagged

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the test may look at."""
        return ((IS_DELETED,) if self.flag else ()) + ((self.column,) if self.column else ())

    def _marked(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        text = values.cast(pa.string())
        return pc.equal(pc.utf8_upper(text), self.marker.upper()) if self.ignore_case else pc.equal(text, self.marker)


class Merger(Protocol):
    """A rule of the user's own: see `hoodie.merge.merger`."""

    def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table | tuple[pa.Table, object]: ...


Combine = Callable[["MergeRule", pa.Table, pa.Table], Combined]


def take_incoming(rule: MergeRule, stored: pa.Table, incoming: pa.Table) -> Combined:
    """The incoming row, whatever its ordering value."""
    return Combined(np.where(rule.is_delete(incoming), Choice.DELETE, Choice.TAKE).astype(np.int8))


def greater_or_equal(rule: MergeRule, stored: pa.Table, incoming: pa.Table) -> Combined:
    """The incoming row, a delete too, unless the stored one has the greater ordering value. Null stored: incoming."""
    ranks = order_ranks([stored, incoming], rule.ordering)
    return unless(ranks[: stored.num_rows] > ranks[stored.num_rows :], rule.is_delete(incoming))


def unless(keep: Mask, deletes: Mask) -> Combined:
    """The incoming row, unless the stored one is to be kept; a delete takes that away."""
    return Combined(np.where(keep, Choice.KEEP, np.where(deletes, Choice.DELETE, Choice.TAKE)).astype(np.int8))


@dataclass(frozen=True, slots=True)
class MergeRule:
    """Which version of a row wins. Picklable: the functions are module-level ones.

    name        the payload class, merge mode or import path that it stands for
    ordering    the ordering fields, compared one after the other; () when arrival is the order
    survivor    which version outlives the others before they meet the stored row
    deletes     how a row says that it is a delete
    combine_with     versions against stored rows
    precombine_with  versions among themselves, when a row is made of both (`survivor` MADE)
    sequence    a further column that `combine_with` compares
    fill        which values of the winner give way to the other row's
    defaults    (column, value) of the schema's defaults that are not null
    unavailable  what stands for a value that is not known (`Fill.UNAVAILABLE`)
    leader_meta  a row made of two has the meta columns of the one that leads, its commit time among them, and not the
                newer one's (partial updates of table version 9)
    ordered_deletes  a delete's ordering value also counts against stored rows and against later records (table
                version 8 and later in event-time mode); else a delete from the log wins over stored rows and any
                later record wins over it
    merger      the user's own
    keeps       columns that incoming rows say nothing of, nested ones dotted: stored values stay (`hoodie.merge.rules`)
    partial     rows may hold some columns only, as a column beside them says (`hoodie.merge.presence`): a column that
                the winner does not hold gives way to the other row's
    """

    name: str
    ordering: tuple[str, ...] = ()
    survivor: Survivor = Survivor.LATEST
    deletes: DeleteTest = DeleteTest()
    combine_with: Combine = take_incoming
    precombine_with: Combine | None = None
    sequence: str = ""
    fill: Fill | None = None
    defaults: tuple[tuple[str, object], ...] = ()
    unavailable: str = UNAVAILABLE
    leader_meta: bool = False
    ordered_deletes: bool = False
    merger: Merger | None = None
    keeps: tuple[str, ...] = ()
    partial: bool = False

    @property
    def takes_whole_rows(self) -> bool:
        """Whether what wins is one of the versions as it was written, not a row made of several."""
        return self.survivor is not Survivor.MADE and not self._sees_whole_rows

    @property
    def keeps_versions(self) -> bool:
        """Whether versions of a log meet the stored row one by one, as on Copy-on-Write. In a row made of them before,
        nothing tells a value that is older than the stored row from one that is newer."""
        return self.survivor is Survivor.MADE and self.merger is None and bool(self.ordering) and not self.leader_meta

    @property
    def replaces_all(self) -> bool:
        """Whether a row or a delete of the logs always wins over the stored row of its key, whatever that holds."""
        return self.combine_with is take_incoming and not self.ordered_deletes and self.takes_whole_rows

    def precombine(self, older: pa.Table, newer: pa.Table) -> Combined:
        """Two versions that both came in: `newer` came later, whatever its ordering value.

        A delete among them stays a row, so that it still meets the stored one. A null ordering value is less than any
        other; writes refuse it before (`hoodie.merge.ordering.require_ordering`).
        """
        if self.precombine_with is not None:
            return self.precombine_with(self, older, newer)
        if self.survivor is Survivor.OLDEST:
            return Combined(np.full(older.num_rows, Choice.KEEP, np.int8))
        ranks = order_ranks([older, newer], self.ordering)
        before, after = ranks[: older.num_rows], ranks[older.num_rows :]
        newer_wins = before < after if self.survivor is Survivor.FIRST else before <= after
        return Combined(np.where(newer_wins, Choice.TAKE, Choice.KEEP).astype(np.int8))

    def combine(self, stored: pa.Table, incoming: pa.Table) -> Combined:
        """Incoming rows (no tombstones) against the stored rows of the same keys."""
        return self.combine_with(self, stored, incoming)

    def is_delete(self, rows: pa.Table) -> Mask:
        """bool[n]: which rows say that their key is deleted."""
        return self.deletes(rows)

    @property
    def picks_rows(self) -> bool:
        """Whether `precombine` always answers with one of the two rows, decided by their ordering values alone."""
        return self.survivor is not Survivor.MADE

    def decides_on(self, columns: list[str]) -> list[str]:
        """Those of the columns that `combine` looks at: for a rule that makes rows, all."""
        if self._sees_whole_rows:
            return columns
        needed = {*roots(self.ordering, columns), *self.deletes.columns, self.sequence}
        return [name for name in columns if name in needed]

    @property
    def _sees_whole_rows(self) -> bool:
        return self.fill is not None or self.merger is not None or bool(self.keeps) or self.partial


def keeping(rule: MergeRule, missing: Sequence[str]) -> MergeRule:
    """The rule for a batch that lacks columns: incoming rows get the stored values there before they are compared, so
    that what wins, and a row made of two, is a whole row.

    missing  of the table's columns, nested ones dotted, none in lists or maps; none: the rule as it is
    Raises   InvalidInput for a rule that decides by one of them, keeps no row, or is the user's own
    """
    if not missing:
        return rule
    if rule.merger is not None:
        raise InvalidInput(
            f'missing="keep" has no meaning here: the merger {rule.name} makes each value of a stored and an incoming '
            "one. Give the batch all columns of the table"
        )
    if rule.deletes.always:
        raise InvalidInput(f'missing="keep" keeps nothing here: {rule.name} deletes every row that it meets')
    events = [rule.sequence, *([rule.deletes.column] if rule.deletes.required else [])]
    if lacking := [name for name in events if name in missing]:
        raise InvalidInput(
            f'missing="keep" cannot keep {", ".join(map(repr, lacking))}: by it {rule.name} decides what a row is, and '
            "the stored value is an older event's. Give the batch the column"
        )
    return replace(rule, keeps=tuple(missing), combine_with=partial(_keep, rule.combine_with))


def _keep(combine: Combine, rule: MergeRule, stored: pa.Table, incoming: pa.Table) -> Combined:
    whole = with_stored_columns(stored, incoming, rule.keeps)
    outcome = combine(rule, stored, whole)
    taken = outcome.choice == Choice.TAKE
    if not taken.any():
        return outcome
    choice = np.where(taken, Choice.MERGED, outcome.choice).astype(np.int8)
    return Combined(choice, outcome.rows(stored, whole).filter(pa.array(choice == Choice.MERGED)))


def with_stored_columns(stored: pa.Table, incoming: pa.Table, paths: Sequence[str]) -> pa.Table:
    """The incoming rows, with the values of the stored ones in some columns.

    stored  aligned with `incoming`, row by row, and of the same column types
    paths   columns, those within structs dotted. A struct that is null in either row keeps nothing
    """
    columns = []
    for field in incoming.schema:
        below = _below(field.name, paths)
        if field.name in paths:
            columns.append(stored.column(field.name))
        elif below:
            columns.append(
                _kept_fields(as_array(stored.column(field.name)), as_array(incoming.column(field.name)), below)
            )
        else:
            columns.append(incoming.column(field.name))
    return pa.Table.from_arrays(columns, schema=incoming.schema)


def _kept_fields(stored: pa.StructArray, incoming: pa.StructArray, paths: Sequence[str]) -> pa.StructArray:
    children = []
    for position, field in enumerate(incoming.type):
        before, after, below = pc.struct_field(stored, field.name), incoming.field(position), _below(field.name, paths)
        if field.name in paths:
            children.append(before)
        else:
            children.append(_kept_fields(before, after, below) if below else after)
    return pa.StructArray.from_arrays(children, fields=list(incoming.type), mask=incoming.is_null())


def _below(name: str, paths: Sequence[str]) -> list[str]:
    return [path.removeprefix(f"{name}.") for path in paths if path.startswith(f"{name}.")]
