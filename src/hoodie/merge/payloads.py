"""The rules that tables name: payload classes, and the merge modes of table versions 8 and 9."""

import dataclasses
import json
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config.table import payload_name
from hoodie.errors import InvalidInput, InvalidOption, UnsupportedTable
from hoodie.merge.fields import merge_fields
from hoodie.merge.merger import MERGER, merger_rule, own_merger
from hoodie.merge.ordering import has_ordering, order_ranks
from hoodie.merge.rows import Mask, Positions, as_array, as_mask
from hoodie.merge.rules import (
    UNAVAILABLE,
    Choice,
    Choices,
    Combined,
    DeleteTest,
    Fill,
    MergeRule,
    Survivor,
    greater_or_equal,
    take_incoming,
    unless,
)
from hoodie.schema.schema import AVRO_DEFAULT

_MODEL = "org.apache.hudi.common.model."
OVERWRITE_WITH_LATEST = _MODEL + "OverwriteWithLatestAvroPayload"
DEFAULT = _MODEL + "DefaultHoodieRecordPayload"
EVENT_TIME = _MODEL + "EventTimeAvroPayload"
FIRST_VALUE = _MODEL + "FirstValueAvroPayload"
OVERWRITE_NON_DEFAULTS = _MODEL + "OverwriteNonDefaultsWithLatestAvroPayload"
PARTIAL_UPDATE = _MODEL + "PartialUpdateAvroPayload"
AWS_DMS = _MODEL + "AWSDmsAvroPayload"
MYSQL_DEBEZIUM = _MODEL + "debezium.MySqlDebeziumAvroPayload"
POSTGRES_DEBEZIUM = _MODEL + "debezium.PostgresDebeziumAvroPayload"
EMPTY = _MODEL + "EmptyHoodieRecordPayload"
_EXPRESSION = "org.apache.spark.sql.hudi.command.payload.ExpressionPayload"

EVENT_TIME_ORDERING = "EVENT_TIME_ORDERING"
COMMIT_TIME_ORDERING = "COMMIT_TIME_ORDERING"
CUSTOM = "CUSTOM"
_PAYLOAD_STRATEGY = "00000000-0000-0000-0000-000000000000"

_MODES_OF_STRATEGIES = {
    "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5": EVENT_TIME_ORDERING,
    "ce9acb64-bde0-424c-9b91-f6ebba25356d": COMMIT_TIME_ORDERING,
}
_MODES_OF_PAYLOADS = {
    DEFAULT: EVENT_TIME_ORDERING,
    EVENT_TIME: EVENT_TIME_ORDERING,
    OVERWRITE_WITH_LATEST: COMMIT_TIME_ORDERING,
}

_PARTIAL_MODES = {"IGNORE_DEFAULTS": Fill.DEFAULTS, "FILL_UNAVAILABLE": Fill.UNAVAILABLE}
_MERGE_PROPERTY = "hoodie.record.merge.property."
_DELETE_FIELD = "hoodie.payload.delete.field"
_DELETE_MARKER = "hoodie.payload.delete.marker"
_UNAVAILABLE_VALUE = "hoodie.write.partial.update.unavailable.value"


def rule_for(
    payload_class: str,
    ordering: tuple[str, ...] = (),
    properties: Mapping[str, str] | None = None,
) -> MergeRule:
    """The rule that a payload class stands for. The defaults of columns are null: see `with_defaults`.

    payload_class  the Java class, in full; packages of earlier releases are taken for today's
    ordering    the ordering (precombine) fields; () when the table has none: then arrival is the order
    properties  table and write properties; `hoodie.payload.delete.field` and `.marker` are read here
    Raises      UnsupportedTable for a class without a rule, naming it
    Source      Hudi 0.15's payload classes; pinned by tests/vectors/payload_merge.json
    """
    payload_class = payload_name(payload_class)
    make = _PAYLOADS.get(payload_class)
    if make is None:
        class_names = ", ".join(name.rpartition(".")[2] for name in _PAYLOADS)
        reason = " (it evaluates a MERGE INTO statement and needs Spark SQL)" if payload_class == _EXPRESSION else ""
        raise UnsupportedTable(
            f"no merge rule for the payload class {payload_class!r}{reason}. Known: {class_names}. "
            "A rule of your own: hoodie.merge.merger."
        )
    return make(MergeRule(payload_class, ordering), properties or {})


def rule_for_mode(
    mode: str,
    ordering: tuple[str, ...] = (),
    properties: Mapping[str, str] | None = None,
) -> MergeRule:
    """The rule of a merge mode of table versions 8 and 9.

    mode        EVENT_TIME_ORDERING or COMMIT_TIME_ORDERING; CUSTOM stands for a payload class or a merger
    properties  `hoodie.table.partial.update.mode`, its value for what is unavailable, and the delete key and marker are
                read here
    Raises      UnsupportedTable for another mode
    """
    properties = properties or {}
    deletes = _marked_deletes(properties, flag_too=True)
    if mode == EVENT_TIME_ORDERING:
        rule = MergeRule(mode, ordering, deletes=deletes, combine_with=greater_or_equal, ordered_deletes=True)
    elif mode == COMMIT_TIME_ORDERING:
        rule = MergeRule(mode, (), deletes=deletes)
    else:
        raise UnsupportedTable(f"no merge rule for hoodie.record.merge.mode={mode!r}")
    partial_mode = properties.get("hoodie.table.partial.update.mode", "")
    if not partial_mode:
        return rule
    if partial_mode not in _PARTIAL_MODES:
        raise UnsupportedTable(f"no merge rule for hoodie.table.partial.update.mode={partial_mode!r}")
    return dataclasses.replace(
        rule,
        survivor=Survivor.MADE,
        precombine_with=fill_precombine,
        combine_with=fill_combine,
        fill=_PARTIAL_MODES[partial_mode],
        unavailable=properties.get(_UNAVAILABLE_VALUE) or UNAVAILABLE,
        leader_meta=True,
    )


def table_rule(
    properties: Mapping[str, str], schema: pa.Schema | str | None = None, mergers: Collection[str] = ()
) -> MergeRule:
    """The rule of a table, from its `hoodie.properties`.

    Up to version 7 the payload class decides, and the strategy id stored beside it does not: such tables carry the
    event-time id whatever their class. From version 8 the merge mode decides, and the payload class only under CUSTOM.
    A merger of the user's own, a Python class, goes before all.

    mergers  import paths that may be loaded
    Raises   UnsupportedTable for a payload class, mode or merger without a rule; InvalidOption when the table has a
             merger that may not be loaded, or none and there is one
    """
    if (mergers or MERGER in properties) and (path := own_merger(properties, mergers)):
        return merger_rule(path, _ordering(properties))
    return with_defaults(_rule_of(frozenset(properties.items())), schema)


@lru_cache(maxsize=64)  # each write and read of a table asks by the same settings
def _rule_of(settings: frozenset[tuple[str, str]]) -> MergeRule:
    """The rule of a table without a merger of its own, which knows no defaults of its columns."""
    properties = dict(settings)
    ordering = _ordering(properties)
    payload = properties.get("hoodie.compaction.payload.class") or properties.get("hoodie.table.legacy.payload.class")
    version = properties.get("hoodie.table.version", "0")
    if not version.isdigit():
        raise InvalidOption(f"hoodie.table.version={version!r}: expected a whole number, such as 6")
    if int(version) < 8:
        return rule_for(payload or OVERWRITE_WITH_LATEST, ordering, properties)
    mode = properties.get("hoodie.record.merge.mode") or _mode_unsaid(properties, payload, ordering)
    if mode == CUSTOM:
        strategy = properties.get("hoodie.record.merge.strategy.id") or _PAYLOAD_STRATEGY
        if strategy != _PAYLOAD_STRATEGY or not payload:
            raise UnsupportedTable(f"the table's rows are merged by a class of its writer's own (strategy {strategy})")
        return _combining_in_logs(rule_for(payload, ordering, _merge_properties(properties)))
    return rule_for_mode(mode, ordering, _merge_properties(properties))


def _ordering(properties: Mapping[str, str]) -> tuple[str, ...]:
    return _names(properties.get("hoodie.table.ordering.fields") or properties.get("hoodie.table.precombine.field"))


def _combining_in_logs(rule: MergeRule) -> MergeRule:
    """The rule of a payload class in versions 8 and 9: rows of logs meet each other there as they meet stored ones.

    It makes a difference where the newer row always wins and the older one fills its gaps.
    """
    if rule.combine_with is not fill_all:
        return rule
    return dataclasses.replace(rule, ordering=(), survivor=Survivor.MADE, precombine_with=fill_precombine)


def _mode_unsaid(properties: Mapping[str, str], payload: str | None, ordering: tuple[str, ...]) -> str:
    """The merge mode of a table that does not name its own: by the strategy, else by the payload class, else by whether
    there are ordering fields, as Hudi decides when it creates a table."""
    if strategy := properties.get("hoodie.record.merge.strategy.id"):
        return _MODES_OF_STRATEGIES.get(strategy, CUSTOM)
    if payload:
        return _MODES_OF_PAYLOADS.get(payload, CUSTOM)
    return EVENT_TIME_ORDERING if ordering else COMMIT_TIME_ORDERING


def by_ordering(rule: MergeRule) -> MergeRule:
    """The rule by which the rows of a MERGE meet stored ones: as given, but where that is what comes last, and there
    are ordering fields, the greater value of these wins.

    Source  Hudi 0.15's SQL on Copy-on-Write tables, whatever their payload class; tests/vectors/sql_merge.json
    """
    takes_last = rule.combine_with is take_incoming and rule.survivor is Survivor.LATEST and rule.takes_whole_rows
    return dataclasses.replace(rule, combine_with=greater_or_equal) if takes_last and rule.ordering else rule


def with_defaults(rule: MergeRule, schema: pa.Schema | str | None) -> MergeRule:
    """The rule as it goes by the defaults of a table's columns.

    schema  Avro JSON or Arrow, with the defaults in the fields' metadata; None: all are null
    Raises  as `schema_defaults`
    """
    return dataclasses.replace(rule, defaults=schema_defaults(schema)) if rule.fill is Fill.DEFAULTS else rule


def schema_defaults(schema: pa.Schema | str | None) -> tuple[tuple[str, object], ...]:
    """The defaults of a schema's fields that are not null, as JSON has them; nested ones as JSON text.

    Raises InvalidOption when a text is no Avro record schema
    """
    if not schema:
        return ()
    if isinstance(schema, pa.Schema):
        defaults = ((field.name, (field.metadata or {}).get(AVRO_DEFAULT)) for field in schema)
        return tuple((name, _hashable(json.loads(text))) for name, text in defaults if text is not None)
    try:
        fields = json.loads(schema)["fields"]
        return tuple((f["name"], _hashable(f["default"])) for f in fields if f.get("default") is not None)
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise InvalidOption(f"no Avro record schema: {schema[:80]!r}") from problem


# --- against stored rows ---


def greater(rule: MergeRule, stored: pa.Table, incoming: pa.Table) -> Combined:
    """The incoming row if its ordering value is strictly greater; also if there is none to compare with."""
    ranks = order_ranks([stored, incoming], rule.ordering)
    keep = ranks[: stored.num_rows] >= ranks[stored.num_rows :]
    keep &= has_ordering(stored, rule.ordering) if rule.ordering else False
    return unless(keep, rule.is_delete(incoming))


def delete_or_greater(rule: MergeRule, stored: pa.Table, incoming: pa.Table) -> Combined:
    """A delete always wins, a row as in `greater_or_equal`."""
    ranks = order_ranks([stored, incoming], rule.ordering)
    deletes = rule.is_delete(incoming)
    return unless((ranks[: stored.num_rows] > ranks[stored.num_rows :]) & ~deletes, deletes)


def later_binlog(rule: MergeRule, stored: pa.Table, incoming: pa.Table) -> Combined:
    """MySQL's position `<file>.<pos>`, both as numbers: the incoming row must be further on; null stored: incoming."""
    old, seen = _binlog_positions(stored, rule.sequence, required=False)
    new, _ = _binlog_positions(incoming, rule.sequence, required=True)
    behind = (new[0] < old[0]) | ((new[0] == old[0]) & (new[1] <= old[1]))
    return unless(behind & seen, rule.is_delete(incoming))


def later_lsn(rule: MergeRule, stored: pa.Table, incoming: pa.Table) -> Combined:
    """Postgres' log sequence number, ties to the incoming row; values that Debezium left out come from the stored."""
    old, seen = _numbers(stored, rule.sequence, required=False)
    new, _ = _numbers(incoming, rule.sequence, required=True)
    choice = unless((new < old) & seen, rule.is_delete(incoming)).choice
    return _fill_taken(rule, stored, incoming, choice)


def fill_all(rule: MergeRule, stored: pa.Table, incoming: pa.Table) -> Combined:
    """The incoming row, but where its value is missing (`Fill`) the stored one; ordering ignored."""
    return _fill_taken(rule, stored, incoming, np.where(rule.is_delete(incoming), 2, 1).astype(np.int8))


def fill_either(rule: MergeRule, stored: pa.Table, incoming: pa.Table) -> Combined:
    """The row with the greater ordering value, its missing values from the other; an incoming delete always wins."""
    deletes = rule.is_delete(incoming)
    ranks = order_ranks([stored, incoming], rule.ordering)
    incoming_leads = ranks[: stored.num_rows] <= ranks[stored.num_rows :]
    return merge_fields(rule, stored, incoming, incoming_leads, np.where(deletes, 2, 3).astype(np.int8))


def fill_combine(rule: MergeRule, stored: pa.Table, incoming: pa.Table) -> Combined:
    """As `fill_either`, but a delete is compared too: it loses to a stored row with a greater ordering value."""
    ranks = order_ranks([stored, incoming], rule.ordering)
    leads = ranks[: stored.num_rows] <= ranks[stored.num_rows :]
    deletes = rule.is_delete(incoming)
    choice = np.where(deletes, np.where(leads, Choice.DELETE, Choice.KEEP), Choice.MERGED)
    return merge_fields(rule, stored, incoming, leads, choice.astype(np.int8))


# --- versions among themselves ---


def fill_precombine(rule: MergeRule, older: pa.Table, newer: pa.Table) -> Combined:
    """The row with the greater ordering value, its missing values from the other; if it is a delete, as it is."""
    ranks = order_ranks([older, newer], rule.ordering)
    newer_leads = ranks[: older.num_rows] <= ranks[older.num_rows :]
    as_is = np.where(newer_leads, rule.is_delete(newer), rule.is_delete(older))
    choice = np.where(as_is, np.where(newer_leads, Choice.TAKE, Choice.KEEP), Choice.MERGED)
    return merge_fields(rule, older, newer, newer_leads, choice.astype(np.int8))


# --- parts ---


def _fill_taken(rule: MergeRule, stored: pa.Table, incoming: pa.Table, choice: Choices) -> Combined:
    choice = np.where(choice == Choice.TAKE, Choice.MERGED, choice).astype(np.int8)
    return merge_fields(rule, stored, incoming, np.ones(stored.num_rows, np.bool_), choice)


def _numbers(rows: pa.Table, name: str, *, required: bool) -> tuple[Positions, Mask]:
    """The whole numbers of a column, and which rows have one. Raises InvalidInput on a null if they are required."""
    column = _sequence(rows, name, required)
    if column is None:
        return np.zeros(rows.num_rows, np.int64), np.zeros(rows.num_rows, np.bool_)
    try:
        numbers = column.cast(pa.int64())
    except pa.ArrowInvalid as problem:
        raise InvalidInput(f"column {name!r}: {problem}") from problem
    return numbers.fill_null(0).to_numpy(), as_mask(numbers.is_valid())


def _binlog_positions(rows: pa.Table, name: str, *, required: bool) -> tuple[tuple[Positions, ...], Mask]:
    column = _sequence(rows, name, required)
    if column is None:
        nothing = np.zeros(rows.num_rows, np.int64)
        return (nothing, nothing), np.zeros(rows.num_rows, np.bool_)
    parts = pc.extract_regex(column.cast(pa.string()), r"^(?P<file>\d{1,18})\.(?P<pos>\d{1,18})$")
    read = as_mask(parts.is_valid())
    valid = as_mask(column.is_valid())
    if (valid & ~read).any():
        example = column[int(np.flatnonzero(valid & ~read)[0])].as_py()
        raise InvalidInput(f"column {name!r} holds {example!r}: expected <file>.<position>, such as '000002.1543'")
    positions = tuple(pc.struct_field(parts, i).cast(pa.int64()).fill_null(0).to_numpy() for i in range(2))
    return positions, valid


def _sequence(rows: pa.Table, name: str, required: bool) -> pa.Array | None:
    column = as_array(rows.column(name)) if name in rows.column_names else None
    missing = rows.num_rows if column is None else column.null_count
    if required and missing:
        raise InvalidInput(f"column {name!r} is null or absent in {missing} of {rows.num_rows} incoming rows")
    return column


def _marked_deletes(properties: Mapping[str, str], *, flag_too: bool = False) -> DeleteTest:
    """The delete test that properties set: a column and its marker, which replaces `_hoodie_is_deleted`."""
    column, marker = properties.get(_DELETE_FIELD, ""), properties.get(_DELETE_MARKER, "")
    if not column:
        return DeleteTest()
    if not marker:
        raise InvalidOption(f"{_DELETE_FIELD}={column!r} needs {_DELETE_MARKER}: the value that marks a delete")
    return DeleteTest(flag=flag_too, column=column, marker=marker)


def _merge_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties, with those under `hoodie.record.merge.property.` also by their own names."""
    own = {k.removeprefix(_MERGE_PROPERTY): v for k, v in properties.items() if k.startswith(_MERGE_PROPERTY)}
    return {**properties, **own}


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def _hashable(value: object) -> object:
    return json.dumps(value) if isinstance(value, (dict, list)) else value


def _event_time(rule: MergeRule, properties: Mapping[str, str], **how: object) -> MergeRule:
    return dataclasses.replace(rule, deletes=_marked_deletes(properties), **how)  # type: ignore[arg-type]


def _with(rule: MergeRule, properties: Mapping[str, str], **how: object) -> MergeRule:
    return dataclasses.replace(rule, **how)  # type: ignore[arg-type]


_DEBEZIUM_DELETE = DeleteTest(column="_change_operation_type", marker="d", ignore_case=True)

_Make = Callable[[MergeRule, Mapping[str, str]], MergeRule]
_PAYLOADS: dict[str, _Make] = {
    OVERWRITE_WITH_LATEST: _with,
    DEFAULT: partial(_event_time, combine_with=greater_or_equal),
    EVENT_TIME: partial(_with, combine_with=delete_or_greater),
    FIRST_VALUE: partial(_event_time, combine_with=greater, survivor=Survivor.FIRST),
    OVERWRITE_NON_DEFAULTS: partial(_with, combine_with=fill_all, fill=Fill.DEFAULTS),
    PARTIAL_UPDATE: partial(
        _with, survivor=Survivor.MADE, precombine_with=fill_precombine, combine_with=fill_either, fill=Fill.NULLS
    ),
    AWS_DMS: partial(_with, deletes=DeleteTest(column="Op", marker="D", ignore_case=True, required=True)),
    MYSQL_DEBEZIUM: partial(_with, combine_with=later_binlog, deletes=_DEBEZIUM_DELETE, sequence="_event_seq"),
    POSTGRES_DEBEZIUM: partial(
        _with, combine_with=later_lsn, deletes=_DEBEZIUM_DELETE, sequence="_event_lsn", fill=Fill.UNAVAILABLE
    ),
    EMPTY: partial(_with, survivor=Survivor.OLDEST, deletes=DeleteTest(always=True)),
}

#: Full names of the payload classes that have a rule.
KNOWN_PAYLOADS = frozenset(_PAYLOADS)


def partial_rule(rule: MergeRule, where: str) -> MergeRule:
    """The merge rule for logs in which rows hold some columns only: `IS_PARTIAL` blocks, as MERGE of Hudi 1.x has them.
    The row that wins by the table's rule keeps the columns that it has, and the other one gives the rest.

    where   one of the blocks, for errors
    Raises  UnsupportedTable for a rule that is not one of the merge modes: Hudi writes such rows with these only
    Source  docs/format/table-versions-8-9.md 9.4; tests/fixtures/hudi-1.x, `merge_into_partial`
    """
    if rule.name not in (EVENT_TIME_ORDERING, COMMIT_TIME_ORDERING):
        raise UnsupportedTable(
            f"{where}: a block of partial updates, which the rule {rule.name} cannot merge. "
            "Compact the table with the Hudi that wrote it."
        )
    return dataclasses.replace(
        rule,
        survivor=Survivor.MADE,
        precombine_with=fill_precombine,
        combine_with=fill_combine,
        leader_meta=True,
        partial=True,
    )
