"""Pre-commit validators: queries on the rows before a commit and on those that it would make visible."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from hoodie.commit.preview import preview
from hoodie.commit.transaction import Transaction
from hoodie.config.read import ReadSettings
from hoodie.config.validators import TABLE, Check, Validation, validations
from hoodie.errors import ValidationFailed
from hoodie.model.commit import CommitMetadata
from hoodie.reading.scan_plan import Read, plan_read
from hoodie.spark.columns import quoted
from hoodie.spark.read.snapshot import scan_rows
from hoodie.spark.types import all_nullable
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.table.state import load_state

#: Rows of a result that an error shows.
_SHOWN = 5


def validate(session: SparkSession, transaction: Transaction, metadata: CommitMetadata, settings: Settings) -> None:
    """Run the queries that the options name, before a commit is published.

    metadata  what the commit would say
    Raises    ValidationFailed naming query and results: the write is to be rolled back
    """
    after = _rows(session, preview(transaction, metadata), settings.reading)
    before = _with_columns(_rows(session, transaction.state.storage, settings.reading), after.schema)
    with _view(before) as old, _view(after) as new:
        for validation in validations(settings.validators):
            try:
                _check(session, validation, old, new)
            except PySparkException as problem:
                message = str(problem).strip().splitlines()[0]
                raise ValidationFailed(validation.query, f"the query failed: {message}") from problem


def _rows(session: SparkSession, storage: Storage, settings: ReadSettings) -> DataFrame:
    return scan_rows(session, plan_read(load_state(storage), Read(), settings, for_spark=True))


def _with_columns(rows: DataFrame, schema: StructType) -> DataFrame:
    """The rows with the columns that a commit adds, null: a query may name them."""
    columns = [
        quoted(field.name) if field.name in rows.columns else F.lit(None).cast(field.dataType).alias(field.name)
        for field in all_nullable(schema)
    ]
    return rows.select(*columns)


@contextmanager
def _view(rows: DataFrame) -> Iterator[str]:
    """A name for the rows that is there in the block only."""
    name = f"_hoodie_{uuid4().hex}"
    rows.createOrReplaceTempView(name)
    try:
        yield name
    finally:
        rows.sparkSession.catalog.dropTempView(name)


def _check(session: SparkSession, validation: Validation, old: str, new: str) -> None:
    after = session.sql(validation.query.replace(TABLE, new))
    if validation.check is Check.SINGLE:
        first = F.coalesce(quoted(after.columns[0]).cast("string"), F.lit("null"))
        values = [row[0] for row in after.select(first).limit(2).collect()]
        if values != [validation.value]:
            raise ValidationFailed(
                validation.query,
                f"expected the value {validation.value}, and the commit would give {_first_rows(after)}",
            )
        return
    before = session.sql(validation.query.replace(TABLE, old))
    same = len(before.columns) == len(after.columns) and not (
        before.exceptAll(after).limit(1).count() or after.exceptAll(before).limit(1).count()
    )
    if validation.check is Check.EQUAL and not same:
        raise ValidationFailed(
            validation.query,
            f"expected the result of before, {_first_rows(before)}, and the commit would give {_first_rows(after)}",
        )
    if validation.check is Check.UNEQUAL and same:
        raise ValidationFailed(
            validation.query, f"expected another result than before, and both are {_first_rows(after)}"
        )


def _first_rows(rows: DataFrame) -> str:
    """The first rows of a result, for an error."""
    shown_rows = [tuple(row) for row in rows.limit(_SHOWN + 1).collect()]
    more = ", …" if len(shown_rows) > _SHOWN else ""
    return f"[{', '.join(map(str, shown_rows[:_SHOWN]))}{more}]"
