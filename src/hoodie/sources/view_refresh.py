"""`hoodie.refresh_view`: have a view made by `USING hudi` show its table as it is now.

Spark plans the files of such a view once and keeps the plan. The view's options travel in its schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from hoodie.errors import InvalidInput

_KEY = "hoodie.view"


def with_source(schema: StructType, name: str, options: Mapping[str, str]) -> StructType:
    """The columns of a view, the first with a note of what the view is made of."""
    first, *others = schema.fields
    note = {_KEY: json.dumps({"format": name, "options": dict(options)})}
    return StructType([StructField(first.name, first.dataType, first.nullable, note), *others])


def refresh_view(session: SparkSession, name: str) -> None:
    """Have a temporary view, made by `CREATE TEMPORARY VIEW … USING hudi OPTIONS (…)`, show its table as it is now,
    with the columns that it has now. DataFrames made of the view before stay as they are.

    Raises InvalidInput when there is no such view, or it is another one
    """
    if not session.catalog.tableExists(name):
        raise InvalidInput(f"there is no view {name!r} in this session")
    fields = session.table(name).schema.fields
    note = fields[0].metadata.get(_KEY) if fields else None
    if note is None:
        raise InvalidInput(f"{name!r} is not a view made by CREATE TEMPORARY VIEW … USING hudi OPTIONS (path …)")
    source = json.loads(note)
    options = ", ".join(f"`{key}` '{_escaped(value)}'" for key, value in source["options"].items())
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW `{name}` USING `{source['format']}` OPTIONS ({options})")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
