"""INSERT, UPDATE, DELETE and MERGE, taken apart: names, clauses, and the slices of text that Spark evaluates."""

from dataclasses import dataclass, field

from hoodie.conditional.clauses import Act, MergeClause, When
from hoodie.statements.cutting import Name, Text


@dataclass(frozen=True, slots=True)
class Insert:
    """partition  column -> SQL text of its value; None: the query gives it
    columns    that the query gives; () for all"""

    table: Name
    query: str
    overwrite: bool = False
    partition: dict[str, str | None] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    by_name: bool = False


@dataclass(frozen=True, slots=True)
class Update:
    table: Name
    values: dict[str, str]
    where: str | None


@dataclass(frozen=True, slots=True)
class Delete:
    table: Name
    where: str | None


@dataclass(frozen=True, slots=True)
class Merge:
    """source  text of a FROM item, its own alias included"""

    table: Name
    source: str
    source_name: str
    condition: str
    clauses: tuple[MergeClause, ...]
    prefix: str = ""  # WITH …


Dml = Insert | Update | Delete | Merge


def dml(text: Text) -> Dml | None:
    """The statement, if it is one of these four. Raises StatementError, naming the place, where it cannot be read."""
    prefix = ""
    if text.word(0) == "WITH":
        at = text.find("MERGE", "INSERT", "UPDATE", "DELETE", "SELECT", "FROM", "VALUES", "TABLE")
        if at < 0 or text.word(at) not in ("MERGE", "INSERT", "UPDATE", "DELETE"):
            return None
        prefix, text = str(text.before(at)), text.part(text.tokens[at].start, text.end)
        if text.word(0) in ("UPDATE", "DELETE"):
            text = _with_in_subqueries(text, prefix)
    match text.word(0):
        case "INSERT":
            return _insert(text, prefix)
        case "UPDATE":
            return _update(text)
        case "DELETE":
            return _delete(text)
        case "MERGE":
            return _merge(text, prefix)
    return None


def _with_in_subqueries(text: Text, prefix: str) -> Text:
    """The statement, each of whose subqueries begins with the WITH that stands before it: the names are theirs only."""
    starts = [
        token.start for at, token in enumerate(text.tokens) if text.word(at) == "SELECT" and text.word(at - 1) == "("
    ]
    return Text.of(text.with_spans((start, start, f"{prefix}\n") for start in starts))


def _insert(text: Text, prefix: str) -> Insert:
    overwrite = text.word(1) == "OVERWRITE"
    at = 2 + (text.word(2) == "TABLE")
    if not overwrite and text.word(1) != "INTO":
        raise text.unreadable("expected INSERT INTO or INSERT OVERWRITE", 1)
    parts, at = text.name(at)
    partition: dict[str, str | None] = {}
    if text.word(at) == "PARTITION" and text.word(at + 1) == "(":
        inner, closes = text.inside(at + 1)
        for item in inner.split():
            column, behind = item.name()
            if column[-1].lower() in map(str.lower, partition):
                raise item.unreadable(f"column {column[-1]!r} is given twice")
            has_value = behind < len(item.tokens)
            partition[column[-1]] = str(item.after(behind)) if has_value else None
        at = closes + 1
    by_name = text.words(at + 2)[at:] == ("BY", "NAME")
    at += 2 * by_name
    columns: tuple[str, ...] = ()
    if text.word(at) == "(" and text.word(at + 1) not in ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "("):
        inner, closes = text.inside(at)
        columns = tuple(item.name()[0][-1] for item in inner.split())
        at = closes + 1
    if text.word(at) in ("REPLACE", "IF"):
        raise text.unreadable(f"INSERT with {text.word(at)} is not supported: use DELETE and INSERT INTO, or MERGE", at)
    if at >= len(text.tokens):
        raise text.unreadable("expected a query or VALUES", at)
    query = _without_defaults(text.part(text.tokens[at].start, text.end))
    return Insert(Name(parts, parts[-1]), f"{prefix}\n{query}".strip(), overwrite, partition, columns, by_name)


def _update(text: Text) -> Update:
    at = text.find("SET")
    if at < 0:
        raise text.unreadable("UPDATE without SET")
    where = text.find("WHERE", start=at)
    end = where if where >= 0 else len(text.tokens)
    return Update(text.between(0, at).table(), _set_list(text.between(at, end)), _condition(text, where))


def _delete(text: Text) -> Delete:
    if text.word(1) != "FROM":
        raise text.unreadable("expected DELETE FROM", 1)
    where = text.find("WHERE")
    end = where if where >= 0 else len(text.tokens)
    return Delete(text.between(1, end).table(), _condition(text, where))


def _condition(text: Text, at: int) -> str | None:
    if at < 0:
        return None
    condition = text.after(at)
    if not condition:
        raise text.unreadable("WHERE without a condition", at)
    return str(condition)


def _set_list(text: Text) -> dict[str, str]:
    values: dict[str, str] = {}
    for item in text.split():
        if not item:
            raise text.unreadable("expected column = value")
        parts, at = item.name()
        if item.word(at) != "=" or not (value := item.after(at)):
            raise item.unreadable("expected column = value")
        name = ".".join(parts)
        if name in values:
            raise item.unreadable(f"column {name!r} is set twice")
        values[name] = _value(value)
    return values


def _value(text: Text) -> str:
    """The SQL text of a value. DEFAULT is null: columns of ours have no other default."""
    return "NULL" if _is_default(text) else str(text)


def _without_defaults(query: Text) -> str:
    """The query; each DEFAULT among its VALUES is null."""
    if query.word(0) != "VALUES":
        return str(query)
    before, behind = ("(", ","), (")", ",")
    defaults = [
        token
        for at, token in enumerate(query.tokens)
        if query.word(at) == "DEFAULT" and query.word(at - 1) in before and query.word(at + 1) in behind
    ]
    return query.with_spans((token.start, token.end + 1, "NULL") for token in defaults).strip()


def with_selected_nulls(query: str) -> str | None:
    """A query that selects DEFAULT with null in its place; None: it selects none."""
    text = Text.of(query)
    if text.word(0) != "SELECT":
        return None
    start = 0 if text.word(1) not in ("ALL", "DISTINCT") else 1
    end = text.find("FROM", "WHERE", "UNION", "INTERSECT", "EXCEPT", "MINUS", "ORDER", "LIMIT")
    items = list(text.between(start, end if end >= 0 else len(text.tokens)).split())
    if not any(map(_is_default, items)):
        return None
    selected = ", ".join("NULL" if _is_default(item) else str(item) for item in items)
    behind = text.whole[items[-1].end : text.end]
    return f"{text.before(start + 1)} {selected} {behind}".strip()


def _is_default(item: Text) -> bool:
    return len(item.tokens) == 1 and item.word(0) == "DEFAULT"


def _merge(text: Text, prefix: str) -> Merge:
    if text.word(1) == "WITH":
        raise text.unreadable("MERGE WITH SCHEMA EVOLUTION is not supported: ALTER TABLE … ADD COLUMNS first", 1)
    using = text.find("USING")
    on = text.find("ON", start=max(using, 0))
    whens = text.every("WHEN")
    if text.word(1) != "INTO" or using < 0 or on < 0 or not whens:
        raise text.unreadable("expected MERGE INTO table USING source ON condition WHEN …")
    source = text.between(using, on)
    ends = [*whens[1:], len(text.tokens)]
    clauses = tuple(_clause(text.between(when, end)) for when, end in zip(whens, ends, strict=True))
    return Merge(
        text.between(1, using).table(),
        str(source),
        _source_name(source),
        str(text.between(on, whens[0])),
        clauses,
        prefix,
    )


def _source_name(source: Text) -> str:
    """The alias of a FROM item."""
    if not source:
        raise source.unreadable("USING without a source")
    if source.word(0) != "(":
        return source.table().alias
    _, closes = source.inside(0)
    at = closes + 1 + (source.word(closes + 1) == "AS")
    return source.name(at)[0][-1] if at < len(source.tokens) else "source"


def _clause(text: Text) -> MergeClause:
    """What stands behind a WHEN."""
    then = text.find("THEN")
    if then < 0:
        raise text.unreadable("WHEN without THEN")
    head, action = text.before(then), text.after(then)
    words = head.words(5)
    if words[:1] == ("MATCHED",):
        when, at = When.MATCHED, 1
    elif words[:2] == ("NOT", "MATCHED"):
        by = words[3] if words[2] == "BY" else ""
        when, at = (When.BY_SOURCE if by == "SOURCE" else When.NOT_MATCHED), 4 if by else 2
    else:
        raise head.unreadable("expected MATCHED or NOT MATCHED")
    condition: str | None = None
    if at < len(head.tokens):
        if head.word(at) != "AND":
            raise head.unreadable("expected AND or THEN", at)
        condition = str(head.after(at))
    act = {"UPDATE": Act.UPDATE, "DELETE": Act.DELETE, "INSERT": Act.INSERT}.get(action.word(0))
    if act is None or (act is Act.INSERT) is not (when is When.NOT_MATCHED):
        raise action.unreadable(f"WHEN {when.value.upper()} cannot do that")
    if act is Act.DELETE:
        if len(action.tokens) > 1:
            raise action.unreadable("unexpected text behind DELETE", 1)
        return MergeClause(when, act, condition)
    values = _updated(action) if act is Act.UPDATE else _inserted(action)
    if values is None and when is When.BY_SOURCE:
        raise action.unreadable("there is no source row for SET *")
    return MergeClause(when, act, condition, values)


def _updated(action: Text) -> dict[str, str] | None:
    if action.word(1) != "SET":
        raise action.unreadable("expected UPDATE SET", 1)
    if action.words(3)[2] == "*" and len(action.tokens) == 3:
        return None
    return _set_list(action.after(1))


def _inserted(action: Text) -> dict[str, str] | None:
    if action.word(1) == "*" and len(action.tokens) == 2:
        return None
    if action.word(1) != "(":
        raise action.unreadable("expected INSERT * or INSERT (columns) VALUES (values)", 1)
    names, closes = action.inside(1)
    if action.words(closes + 3)[closes + 1 :] != ("VALUES", "("):
        raise action.unreadable("expected VALUES (…)", closes)
    values_text, end = action.inside(closes + 2)
    if end + 1 < len(action.tokens):
        raise action.unreadable("unexpected text", end + 1)
    columns = [".".join(item.name()[0]) for item in names.split()]
    values = [_value(item) for item in values_text.split()]
    if len(columns) != len(values):
        raise action.unreadable(f"{len(columns)} columns and {len(values)} values")
    if len({column.lower() for column in columns}) < len(columns):
        raise names.unreadable("a column is named twice")
    return dict(zip(columns, values, strict=True))
