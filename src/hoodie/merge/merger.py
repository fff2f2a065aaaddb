"""A merge rule of the user's own: a Python class with one vectorised method, named by its import path.

    class KeepHighest:
        def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:
            higher = pc.greater_equal(newer["price"], older["price"])
            ...

`merge` gets two tables of the same columns and number of rows; row i of both has the same key. `older` is the stored
row, or the one that arrived first; `newer` is the incoming one. It returns a table of the same columns and length,
row i being what becomes of pair i, or such a table and a mask (bool[n], true: the key is deleted). A row whose
`_hoodie_is_deleted` is true is a delete as well. The method may be called with any part of the rows, on several
machines, and with rows that an earlier call returned. Meta columns (`_hoodie_*`) are among the columns when rows are
merged with stored ones; those of the result are replaced by the newer row's.
"""

from collections.abc import Collection, Mapping
from typing import cast
from uuid import NAMESPACE_URL, uuid5

import numpy as np
import pyarrow as pa

from hoodie.config.import_path import imported
from hoodie.errors import InvalidInput, InvalidOption
from hoodie.merge.rows import Mask, as_mask
from hoodie.merge.rules import Choice, Combined, DeleteTest, Merger, MergeRule, Survivor
from hoodie.model.meta import META_COLUMNS

#: The table property that names the merger. A merger of this library is one by Python import path; Hudi has no such.
MERGER = "hoodie.compaction.record.merger.python.class"
_OPTION = "hoodie.datasource.write.record.merger.impls"

#: Hudi's merger by payload class, which is what happens without a merger of one's own.
_BY_PAYLOAD = "HoodieAvroRecordMerger"
#: Hudi's mergers by ordering value: what `DefaultHoodieRecordPayload` does. Tables that exist keep their own rule.
_EVENT_TIME = frozenset({"HoodieSparkRecordMerger", "DefaultSparkRecordMerger"})
_HUDI = "org.apache.hudi."


def strategy_id(path: str) -> str:
    """The merge strategy's UUID that a table with the merger carries: the same for the same import path."""
    return str(uuid5(NAMESPACE_URL, f"python:{path}"))


def python_mergers(names: Collection[str]) -> list[str]:
    """The import paths among the mergers that an option names.

    Raises InvalidOption on a Java class: there is nothing here to run it
    """
    paths = [name for name in names if _hudis(name) not in {_BY_PAYLOAD, *_EVENT_TIME}]
    java = [name for name in paths if ":" not in name]
    if java:
        raise InvalidOption(
            f"{_OPTION}: {', '.join(java)} cannot be run here. Expected an import path, 'package.module:Class', of a "
            "Python class; rules of Hudi's own are chosen by hoodie.datasource.write.payload.class"
        )
    return paths


def names_event_time(names: Collection[str]) -> bool:
    """Whether Hudi's merger by ordering value is among the mergers that an option names."""
    return any(_hudis(name) in _EVENT_TIME for name in names)


def _hudis(name: str) -> str:
    """A class of Hudi's without its package; others as they are."""
    return name.rpartition(".")[2] if name.startswith(_HUDI) else name


def own_merger(properties: Mapping[str, str], names: Collection[str]) -> str:
    """The import path of a table's merger, "" when payload class or merge mode decide.

    properties  the table's
    names       import paths that the caller's options allow to be loaded
    Raises      InvalidOption when the table's merger is not among them, or there is one and the table has none
    """
    allowed, path = python_mergers(names), properties.get(MERGER, "")
    if path and path not in allowed:
        raise InvalidOption(
            f"the table's rows are merged by the Python class {path!r}. Code is loaded only when the caller names it: "
            f"pass {_OPTION}={path}, if you trust it"
        )
    if allowed and not path:
        raise InvalidOption(
            f"{_OPTION} names {', '.join(allowed)}, but the table has no merger of its own: it is set when a table is "
            "created, as all its readers and writers must have the same"
        )
    return path


def load_merger(path: str) -> Merger:
    """The merger that an import path names: "package.module:Class", made without arguments.

    Raises InvalidOption when there is no such class, it needs arguments or has no method `merge`
    """
    attribute = imported(path, f"merger {path!r}", "Class")
    try:
        merger = attribute()
    except TypeError as problem:
        raise InvalidOption(f"merger {path!r} cannot be made without arguments: {problem}") from problem
    if not callable(getattr(merger, "merge", None)):
        raise InvalidOption(f"merger {path!r} has no method merge(older, newer)")
    return cast(Merger, merger)


def merger_rule(path: str, ordering: tuple[str, ...] = ()) -> MergeRule:
    """The rule of a user's merger, for all places in which versions of a row meet.

    ordering  the table's ordering fields: entries of delete blocks are compared by them
    """
    return MergeRule(
        path,
        ordering,
        survivor=Survivor.MADE,
        deletes=DeleteTest(),
        combine_with=apply_merger,
        precombine_with=apply_merger,
        merger=load_merger(path),
    )


def apply_merger(rule: MergeRule, older: pa.Table, newer: pa.Table) -> Combined:
    """Ask the rule's merger, and check what it answers.

    Raises InvalidInput naming the merger when its answer is no table, or of other rows or columns
    """
    assert rule.merger is not None, rule.name
    answer = rule.merger.merge(older, newer)
    rows, deleted = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, None)
    rows = _checked_rows(rule.name, rows, newer)
    deletes = rule.is_delete(rows)
    if deleted is not None:
        deletes = deletes | _checked_mask(rule.name, deleted, newer.num_rows)
    choice = np.where(deletes, Choice.DELETE, Choice.MERGED).astype(np.int8)
    return Combined(choice, rows.filter(pa.array(~deletes)) if deletes.any() else rows)


def _checked_rows(name: str, rows: object, like: pa.Table) -> pa.Table:
    if not isinstance(rows, pa.Table):
        raise InvalidInput(f"merger {name}: merge returned {type(rows).__name__}, expected a pyarrow.Table")
    if rows.num_rows != like.num_rows:
        raise InvalidInput(f"merger {name}: merge returned {rows.num_rows} rows for {like.num_rows} pairs")
    missing = [column for column in like.column_names if rows.column_names.count(column) != 1]
    extra = [column for column in rows.column_names if column not in like.column_names]
    if missing or extra:
        raise InvalidInput(f"merger {name}: merge returned other columns: missing {missing}, unexpected {extra}")
    columns = []
    for field in like.schema:
        values = like.column(field.name) if field.name in META_COLUMNS else rows.column(field.name)
        if values.type != field.type:
            raise InvalidInput(f"merger {name}: column {field.name!r} became {values.type}, expected {field.type}")
        columns.append(values)
    return pa.Table.from_arrays(columns, schema=like.schema)


def _checked_mask(name: str, mask: object, count: int) -> Mask:
    values = mask if isinstance(mask, (pa.Array, pa.ChunkedArray)) else pa.array(np.asarray(mask))
    if len(values) != count or not pa.types.is_boolean(values.type):
        raise InvalidInput(f"merger {name}: the delete mask is {values.type}[{len(values)}], expected bool[{count}]")
    return as_mask(values)
