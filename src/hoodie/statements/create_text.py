"""CREATE TABLE, taken apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlglot
from pyspark.sql.types import StructType
from sqlglot import exp

from hoodie.expressions.text import DIALECT
from hoodie.spark.names import PROVIDERS
from hoodie.statements.columns import fields_of
from hoodie.statements.cutting import Name, Text


@dataclass(frozen=True, slots=True)
class Create:
    """schema  the columns that the statement names; None: it names none"""

    name: Name
    schema: StructType | None
    partitions: tuple[str, ...]
    location: str
    options: Mapping[str, str]
    query: str
    comment: str = ""


def makes_ours(text: Text) -> bool:
    """Whether a statement makes a table of ours."""
    return text.word(0) == "CREATE" and "TABLE" in text.words(5) and format_of(text) in PROVIDERS


def like_what(text: Text) -> tuple[str, ...]:
    """The name behind `CREATE TABLE name LIKE`; (): the statement is another one."""
    if text.word(0) != "CREATE" or text.word(1) != "TABLE":
        return ()
    at = text.find("LIKE")
    return text.name(at + 1)[0] if 0 < at < len(text.tokens) - 1 and at < 12 else ()


def format_of(text: Text) -> str:
    """The format that USING names; "": none is named."""
    at = text.find("USING")
    return text.name(at + 1)[0][-1].lower() if at >= 0 and at + 1 < len(text.tokens) else ""


def read_create(text: Text, name: Name, at: int) -> Create:
    """The statement taken apart. Raises StatementError

    at  the place behind the name
    """
    schema = fields_of(text.inside(at)[0]) if text.word(at) == "(" else None
    tree = sqlglot.parse_one(str(text), read=DIALECT)
    options: dict[str, str] = {}
    location, comment, partitions = "", "", tuple[str, ...]()
    for item in tree.find_all(exp.Property):
        if isinstance(item, exp.LocationProperty):
            location = item.this.name
        elif isinstance(item, exp.SchemaCommentProperty):
            comment = item.this.name
        elif isinstance(item, exp.PartitionedByProperty):
            partitions = tuple(part.name for part in item.this.expressions)
        elif type(item) is exp.Property:
            value = item.args["value"]
            options[_key(item)] = str(value.this).lower() if isinstance(value, exp.Boolean) else value.name
    return Create(name, schema, partitions, location, options, _query(text), comment)


def _key(item: exp.Property) -> str:
    """The key of an option: 'a.b', or a.b without quotes."""
    if isinstance(item.this, str):
        return item.this
    return item.this.sql(dialect=DIALECT).replace("`", "") if isinstance(item.this, exp.Dot) else item.this.name


def _query(text: Text) -> str:
    """The query behind the other clauses, with or without an AS before it; "" for none."""
    at = text.find("AS", "SELECT", "WITH", "FROM", "VALUES", start=text.find("USING"))
    if at < 0:
        return ""
    return str(text.after(at) if text.word(at) == "AS" else text.part(text.tokens[at].start, text.end))
