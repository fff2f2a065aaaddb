"""CREATE TABLE, taken apart."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.errors import ParseException
from pyspark.sql.types import StructType

from hoodie.config.table import TableConfig
from hoodie.expressions.parser import DIALECT, OPTIONS, exp, parse
from hoodie.spark.names import PROVIDERS
from hoodie.statements.cutting import Name, Text

#: The types of a table, by Hudi's words in SQL.
TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
#: Hudi's properties, by small letters, as options of a write.
PROPERTIES = {
    "primarykey": "hoodie.datasource.write.recordkey.field",
    "precombinefield": "hoodie.datasource.write.precombine.field",
    "payloadclass": "hoodie.datasource.write.payload.class",
}


@dataclass(frozen=True, slots=True)
class Create:
    """schema  the columns that the statement names; None: it names none
    alike   options that make a table like the one behind LIKE, beside what the statement says
    """

    name: Name
    schema: StructType | None
    partitions: tuple[str, ...]
    location: str
    options: Mapping[str, str]
    query: str
    comment: str = ""
    alike: Mapping[str, str] = field(default_factory=dict)


def sql_properties(config: TableConfig) -> dict[str, str]:
    """What a table is, as Hudi's properties in SQL."""
    own = {
        "primaryKey": ",".join(config.record_key),
        "preCombineField": ",".join(config.ordering),
        "type": next(word for word, kind in TYPES.items() if kind == config.type.value),
    }
    return {key: value for key, value in own.items() if value}


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


_CLAUSES = "USING, PARTITIONED BY, LOCATION, COMMENT, OPTIONS and TBLPROPERTIES"
_KNOWN = (
    *(exp.FileFormatProperty, exp.PartitionedByProperty, exp.LocationProperty, exp.SchemaCommentProperty),
    OPTIONS,
)
#: A column of the table, and one that is declared in PARTITIONED BY.
_PARTITION = (exp.Identifier, exp.Column, exp.ColumnDef)


def read_create(text: Text, name: Name, at: int) -> Create:
    """The statement taken apart. Raises StatementError

    at  the place behind the name
    """
    schema = fields_of(text.inside(at)[0]) if text.word(at) == "(" else None
    tree = parse(str(text))
    _refuse_others(text, tree)
    options: dict[str, str] = {}
    location, comment, partitions = "", "", tuple[str, ...]()
    for item in tree.find_all(exp.Property):
        if isinstance(item, exp.LocationProperty):
            location = _literal(text, "LOCATION", item.this)
        elif isinstance(item, exp.SchemaCommentProperty):
            comment = _literal(text, "COMMENT", item.this)
        elif isinstance(item, exp.PartitionedByProperty):
            if other := [part for part in item.this.expressions if not isinstance(part, _PARTITION)]:
                what = other[0].sql(DIALECT)
                raise text.unreadable(f"PARTITIONED BY takes columns, and {what} is none: make a column of it")
            partitions = tuple(part.name for part in item.this.expressions)
        elif type(item) is exp.Property:
            options[_key(item)] = _literal(text, f"the value of {_key(item)}", item.args["value"])
    return Create(name, schema, partitions, location, options, _query(text), comment)


def _refuse_others(text: Text, tree: exp.Expr) -> None:
    """Raises StatementError on clauses that would have no effect, and on those that cannot be read."""
    if isinstance(tree, exp.Command):
        raise text.unreadable(f"expected no other clauses than {_CLAUSES}: leave the others out")
    properties = tree.args.get("properties")
    kinds: set[type[exp.Property]] = set()
    for item in properties.expressions if properties else ():
        if isinstance(item, exp.ClusteredByProperty | exp.ClusterProperty):
            raise text.unreadable(
                f"{item.sql(DIALECT)} would have no effect, in Hudi either: leave it out. A table of buckets has "
                "TBLPROPERTIES ('hoodie.index.type' = 'BUCKET', 'hoodie.bucket.index.num.buckets' = '…')"
            )
        stored_as = isinstance(item, exp.FileFormatProperty) and item.sql(DIALECT).startswith("STORED")
        if stored_as or not (isinstance(item, _KNOWN) or type(item) is exp.Property):
            raise text.unreadable(f"{item.sql(DIALECT)} would have no effect: expected {_CLAUSES}")
        if type(item) in kinds:
            raise text.unreadable(f"{item.sql(DIALECT)} is the second clause of its kind: leave one of them out")
        if type(item) is not exp.Property:
            kinds.add(type(item))


def _literal(text: Text, what: str, value: exp.Expr) -> str:
    if isinstance(value, exp.Boolean):
        return str(value.this).lower()
    if isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal):
        return f"-{value.this.name}"
    if not isinstance(value, exp.Literal | exp.RawString | exp.Var | exp.Column):
        raise text.unreadable(f"{what} is {value.sql(DIALECT)}: expected one literal, such as 'text', 7 or true")
    return value.name


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


def fields_of(columns: Text, *, before: str = "") -> StructType:
    """Columns as DDL has them. Raises StatementError on others

    before  text to put before them, such as the name of a column whose type they are
    """
    try:
        fields = StructType.fromDDL(f"{before}{columns}")
    except ParseException as problem:
        raise columns.unreadable(
            f"expected columns as name TYPE [NOT NULL] [COMMENT 'text'], without DEFAULT, GENERATED or constraints: "
            f"{str(problem).strip().splitlines()[0]}"
        ) from problem
    assert isinstance(fields, StructType)  # several columns are no single type
    if collated := [field.name for field in fields if " collate " in field.dataType.simpleString()]:
        raise columns.unreadable(
            f"a table has no collations: take STRING for {', '.join(collated)}, and say COLLATE in the query"
        )
    return fields
