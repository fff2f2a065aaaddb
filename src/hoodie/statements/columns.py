"""Columns and types as statements have them."""

from __future__ import annotations

from pyspark.errors import ParseException
from pyspark.sql.types import StructType

from hoodie.statements.cutting import Text


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
