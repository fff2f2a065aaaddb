"""ALTER TABLE of a table of ours: its name, its columns, its properties. Partitions are in `partitions`."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hoodie.api.table import HoodieTable
from hoodie.config.datasource import check_options, overridden, write_options
from hoodie.config.table import CDC, CDC_MODE
from hoodie.errors import StatementError
from hoodie.schema.by_id import Add, Change, Comment, Drop, Move, Position, Rename, Retype, TakeNulls
from hoodie.schema.schema import stored_form, with_comment
from hoodie.services.alter_columns import ON_READ, alter_columns
from hoodie.spark.catalog import catalog_table
from hoodie.spark.entries import comment_on_entry, rename_entry, set_properties, unset_properties
from hoodie.spark.names import PROVIDERS, named_table, qualified, register_table, registered_path, unregister_table
from hoodie.spark.types import to_arrow
from hoodie.statements.create_text import fields_of
from hoodie.statements.cutting import Name, Text
from hoodie.statements.entry import follow_columns, refuse_taken
from hoodie.statements.names import tables_of_column
from hoodie.statements.rows import empty_result, opened, require_grammar
from hoodie.storage import storage_for
from hoodie.table.change_logging import log_change_data
from hoodie.table.properties import update_properties
from hoodie.table.settings import Settings

_TABLE_NAME = "hoodie.table.name"
#: What a table is, which no statement changes.
_FIXED = frozenset({"primarykey", "precombinefield", "type", "payloadclass", "recordmergemode", "path", "provider"})


# --- columns ---


def alters_columns(text: Text, at: int) -> bool:
    """Whether what begins at a place behind ALTER TABLE name is about columns."""
    first, second = text.word(at), text.word(at + 1)
    if first in ("CHANGE", "ALTER"):
        return True
    return first in ("ADD", "DROP", "RENAME", "REPLACE") and second in ("COLUMN", "COLUMNS")


def alter_table_columns(
    session: SparkSession, table: HoodieTable[DataFrame], name: Name, text: Text, at: int
) -> DataFrame:
    """Carry a change of columns out. Raises StatementError, and as `alter_columns`"""
    changes = list(_changes(text.of_types(), at))
    on_read = str(session.conf.get(ON_READ, None) or session.conf.get(f"spark.{ON_READ}", None)).lower() == "true"
    if text.word(at) == "DROP" and text.words(at + 4)[at + 2 :] == ("IF", "EXISTS"):
        changes = [change for change in changes if _is_there(table, change)]
    require_grammar(session, text)
    if changes:
        _change_columns(session, table, name, changes, on_read=on_read)
    return empty_result(session)


def _change_columns(
    session: SparkSession, table: HoodieTable[DataFrame], name: Name, changes: Sequence[Change], *, on_read: bool
) -> None:
    settings = Settings.read(table.options)
    instant = alter_columns(table.storage, changes, settings, on_read=on_read, run=table.engine.run)
    if instant is not None:
        table.engine.after_commit(table.storage, settings, instant, None)
        follow_columns(session, name.parts)


def comment_on_column(session: SparkSession, text: Text) -> DataFrame | None:
    """COMMENT ON COLUMN table.column IS 'text'; None: the table is Spark's."""
    parts, at = text.name(3)
    for names in tables_of_column(parts):
        name = Name(names, names[-1])
        if (table := opened(session, name)) is not None:
            comment = _comment(text, at, "COMMENT ON COLUMN table.column IS 'text'")
            _change_columns(session, table, name, [Comment(parts[len(names) :], comment)], on_read=False)
            return empty_result(session)
    return None


def _comment(text: Text, at: int, form: str) -> str:
    """What stands behind IS, which ends the statement; "" for NULL."""
    if text.word(at) != "IS" or at + 2 != len(text.tokens):
        raise text.unreadable(f"expected {form}", at)
    return "" if text.word(at + 1) == "NULL" else text.tokens[at + 1].text


def _is_there(table: HoodieTable[DataFrame], change: Change) -> bool:
    schema: pa.DataType = pa.struct(list(to_arrow(table.snapshot().schema)))
    for part in change.path:
        names = {} if not pa.types.is_struct(schema) else {field.name.lower(): field for field in schema}
        if part.lower() not in names:
            return False
        schema = names[part.lower()].type
    return True


def _changes(text: Text, at: int) -> Iterator[Change]:
    match text.word(at):
        case "ADD":
            for item in _items(text, at + 2):
                yield _added_column(item)
        case "DROP":
            start = at + 2 + 2 * (text.words(at + 4)[at + 2 :] == ("IF", "EXISTS"))
            for item in _items(text, start):
                yield Drop(_path(item))
        case "RENAME":
            path, behind = text.name(at + 2)
            if text.word(behind) != "TO":
                raise text.unreadable("expected RENAME COLUMN name TO name", behind)
            (name,) = _path(text.after(behind))[-1:]
            yield Rename(path, name)
        case "REPLACE":
            raise text.unreadable(
                "REPLACE COLUMNS would drop all columns but those named: DROP COLUMN and ADD COLUMNS say which", at
            )
        case _:
            yield from _column_changes(text, at)


def _items(text: Text, at: int) -> Iterator[Text]:
    if at >= len(text.tokens):
        raise text.unreadable("expected columns", at - 1)
    inner = text.inside(at)[0] if text.word(at) == "(" else text.part(text.tokens[at].start, text.end)
    yield from inner.split()


def _path(item: Text) -> tuple[str, ...]:
    path, behind = item.name()
    if behind < len(item.tokens):
        raise item.unreadable("unexpected text", behind)
    return path


def _added_column(item: Text) -> Add:
    path, behind = item.name()
    rest, comment, position = _tail(item, behind)
    if not rest:
        raise item.unreadable("expected name TYPE", behind)
    if rest.every("NOT", "DEFAULT"):
        raise rest.unreadable(
            "a column that older rows lack takes nulls, and has no default", rest.every("NOT", "DEFAULT")[0]
        )
    return Add(path, with_comment(pa.field(path[-1], _type(rest)), comment or ""), position)


def _column_changes(text: Text, at: int) -> Iterator[Change]:
    """ALTER COLUMN path …, or Hive's CHANGE COLUMN path path TYPE …"""
    start = at + 1 + (text.word(at + 1) == "COLUMN")
    path, behind = text.name(start)
    word = text.word(behind)
    if text.words(behind + 3)[behind:] == ("DROP", "NOT", "NULL"):
        yield TakeNulls(path)
        return
    if word == "SET":
        what = "its older rows may have nulls" if text.word(behind + 1) == "NOT" else "columns have no defaults"
        raise text.unreadable(f"column {'.'.join(path)} stays as it is: {what}", behind)
    if word == "DROP":
        raise text.unreadable("expected DROP NOT NULL", behind)
    if word not in ("TYPE", "COMMENT", "FIRST", "AFTER") and text.word(at) == "CHANGE":
        again, behind = text.name(behind)
        if again[-1].lower() != path[-1].lower():
            raise text.unreadable(f"ALTER TABLE … RENAME COLUMN {'.'.join(path)} TO {again[-1]} renames it", behind - 1)
    elif word == "TYPE":
        behind += 1
    rest, comment, position = _tail(text, behind)
    if not rest and comment is None and position is None:
        raise text.unreadable("expected TYPE, COMMENT, FIRST, AFTER or DROP NOT NULL", behind)
    if rest:
        yield Retype(path, _type(rest))
    if comment is not None:
        yield Comment(path, comment)
    if position is not None:
        yield Move(path, position)


def _tail(item: Text, at: int) -> tuple[Text, str | None, Position | None]:
    """What stands before COMMENT, FIRST and AFTER, and what these say."""
    ends = [place for place in item.every("COMMENT", "FIRST", "AFTER") if place >= at]
    comment, position = None, None
    for place in ends:
        word, follows = item.word(place), item.tokens[place + 1].text if place + 1 < len(item.tokens) else None
        if word == "FIRST":
            position = Position(first=True)
        elif follows is None:
            raise item.unreadable(f"expected something behind {word}", place)
        elif word == "AFTER":
            position = Position(after=item.name(place + 1)[0][-1])
        else:
            comment = follows
    start = item.tokens[at].start if at < len(item.tokens) else item.end
    end = item.tokens[ends[0]].start if ends else item.end
    return item.part(start, max(start, end)), comment, position


def _type(text: Text) -> pa.DataType:
    (field,) = stored_form(to_arrow(fields_of(text, before="column ")))
    return field.type


# --- name ---


def rename_table(session: SparkSession, name: Name, text: Text, at: int) -> DataFrame:
    """ALTER TABLE a RENAME TO b. A table without a location of its own moves to the folder of its new name."""
    parts, _ = text.name(at + 2)
    require_grammar(session, text)
    if name.parts[0].lower() in PROVIDERS:
        raise text.unreadable(
            "a path is no name: a table's name, which has an entry or is registered, can be another", 2
        )
    old = qualified(session, name.parts)
    new = (old[0], *parts) if len(parts) == 1 and len(old) == 2 else qualified(session, parts)
    if len(new) == 2 and len(old) == 2 and new[0].lower() != old[0].lower():
        raise text.unreadable(f"a table stays in its database, {old[0]}", at + 2)
    refuse_taken(session, Name(tuple(parts), parts[-1]), new)
    if (other := named_table(session, new)) is not None:
        raise StatementError(f"[TABLE_OR_VIEW_ALREADY_EXISTS] {'.'.join(parts)} is a table of Hudi, at {other.path}")
    table = named_table(session, name.parts)
    if table is not None and table.entry:
        rename_entry(session, old, new)
        entry = catalog_table(session, new)
        path = table.path if entry is None else entry.path
        update_properties(storage_for(path), {_TABLE_NAME: new[-1]})
        follow_columns(session, new)
        return empty_result(session)
    path_of_name = registered_path(session, ".".join(old))
    if path_of_name is None:
        raise text.unreadable(
            f"{name} is the name of the table's folder. With an entry in Spark's catalog a table can be renamed: "
            "hoodie.register(spark), then CREATE TABLE name USING hudi LOCATION '…'",
            at,
        )
    unregister_table(session, ".".join(old))
    register_table(session, ".".join(new), path_of_name)
    update_properties(storage_for(path_of_name), {_TABLE_NAME: new[-1]})
    return empty_result(session)


# --- properties ---


def set_table_properties(
    session: SparkSession, table: HoodieTable[DataFrame], name: Name, text: Text, at: int
) -> DataFrame:
    """SET TBLPROPERTIES (…): change data is turned on; others are kept in the table's entry, and `hoodie.*` among them
    are options of statements on the table."""
    settings = dict(_pairs(text.inside(at)[0]))
    require_grammar(session, text)
    change_data = {key: value for key, value in settings.items() if key in (CDC, CDC_MODE)}
    others = {key: value for key, value in settings.items() if key not in change_data}
    if fixed := [key for key in others if key.lower() in _FIXED or key.startswith("hoodie.table.")]:
        raise text.unreadable(f"{', '.join(fixed)}: what a table is stays so. CREATE TABLE makes another one", at)
    if change_data and change_data.get(CDC, "").lower() != "true":
        raise text.unreadable(f"expected {CDC} = true: change data can be turned on, not off", at)
    checked = check_options({key: value for key, value in others.items() if key.startswith("hoodie.")})
    Settings.read(overridden(table.options, write_options(checked)))  # a value that cannot be read would lock the table
    if others:
        _require_entry(session, name, text, at)
    if change_data:
        log_change_data(table.storage, Settings.read(table.options).writers, change_data.get(CDC_MODE, "").upper())
    if others:
        set_properties(session, qualified(session, name.parts), others)
    return empty_result(session)


def unset_table_properties(session: SparkSession, name: Name, text: Text, at: int) -> DataFrame:
    """UNSET TBLPROPERTIES [IF EXISTS] (…)"""
    quiet = text.words(at + 2)[at:] == ("IF", "EXISTS")
    at += 2 * quiet
    require_grammar(session, text)
    keys = ["".join(token.text for token in item.tokens) for item in text.inside(at)[0].split()]
    _require_entry(session, name, text, at)
    parts = qualified(session, name.parts)
    entry = catalog_table(session, parts)
    properties = {} if entry is None else entry.properties
    if not quiet and (missing := [key for key in keys if key not in properties]):
        raise text.unreadable(f"{name} has no properties {', '.join(missing)}: IF EXISTS passes those by", at)
    if named_keys := [key for key in keys if key in properties]:
        unset_properties(session, parts, named_keys)
    return empty_result(session)


def comment_on_table(session: SparkSession, text: Text) -> DataFrame | None:
    """COMMENT ON TABLE name IS 'text'; None: the table is Spark's."""
    parts, at = text.name(3)
    name = Name(parts, parts[-1])
    if opened(session, name) is None:
        return None
    comment = _comment(text, at, "COMMENT ON TABLE name IS 'text'")
    _require_entry(session, name, text, at)
    comment_on_entry(session, qualified(session, parts), comment)
    return empty_result(session)


def _require_entry(session: SparkSession, name: Name, text: Text, at: int) -> None:
    table = named_table(session, name.parts)
    if table is None or not table.entry:
        raise text.unreadable(
            f"{name} has no entry in Spark's catalog that could keep this. After hoodie.register(spark), CREATE TABLE "
            "name USING hudi LOCATION '…' gives it one; SET hoodie.… says an option for the session",
            at,
        )


def _pairs(inner: Text) -> Iterator[tuple[str, str]]:
    for item in inner.split():
        equals = item.find("=")
        names: Sequence[str] = [token.text for token in item.tokens[: max(equals, 1)]]
        if equals < 0:  # 'key' 'value'
            equals = 0 if len(item.tokens) == 2 else -1
        if equals < 0 or len(item.tokens) != equals + 2:
            raise item.unreadable("expected 'property' = 'value'")
        yield "".join(names), item.tokens[equals + 1].text
