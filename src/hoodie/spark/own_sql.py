"""Spark's own `sql` and `table`, past what `hoodie.register` puts in their place; and whether it has."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakSet

from pyspark.sql import DataFrame, SparkSession

#: What has a session know the data source `hudi`, while `spark.sql` takes our statements; empty while it does not.
_prepares: list[Callable[[SparkSession], None]] = []
_prepared: WeakSet[SparkSession] = WeakSet()

_handed_over = ContextVar("hoodie_handed_over", default=False)

#: Seconds for which a name stays another format's. If it becomes one of ours meanwhile, Spark fails on the statement,
#: and names are looked up again.
_LASTS = 60.0


def take_sql(prepare: Callable[[SparkSession], None]) -> None:
    """Have `spark.sql` take our statements, in this process.

    prepare  has a session know the data source, of which entries of its catalog are
    """
    _prepares[:] = [prepare]
    _prepared.clear()


def give_sql_back() -> None:
    _prepares.clear()


def takes_sql() -> bool:
    return bool(_prepares)


def prepare(session: SparkSession) -> None:
    """Have a session know the data source. Nothing, where `spark.sql` is Spark's."""
    if _prepares and session not in _prepared:
        _prepares[0](session)
        _prepared.add(session)


@contextmanager
def handed_over() -> Iterator[None]:
    """Calls of a session in the block are Spark's, whatever they name."""
    token = _handed_over.set(True)
    try:
        yield
    finally:
        _handed_over.reset(token)


def is_handed_over() -> bool:
    return _handed_over.get()


def spark_sql(session: SparkSession, text: str, args: Any = None, **frames: Any) -> DataFrame:
    """What Spark itself makes of a statement."""
    with handed_over():
        return session.sql(text, args, **frames) if args is not None or frames else session.sql(text)


def spark_table(session: SparkSession, name: str) -> DataFrame:
    """What Spark itself has by a name."""
    with handed_over():
        return session.table(name)


# --- names that are not ours ---


def seen_as_foreign(session: SparkSession, parts: Sequence[str]) -> bool:
    """Whether a look in the catalog has lately shown that the name is another format's."""
    return _foreign(session).get(_key(session, parts), 0.0) > time.monotonic()


def note_foreign(session: SparkSession, parts: Sequence[str]) -> None:
    _foreign(session)[_key(session, parts)] = time.monotonic() + _LASTS


def forget_foreign(session: SparkSession) -> bool:
    """Have names looked up again. Whether there were any that would not have been."""
    names = _foreign(session)
    had_some = bool(names)
    names.clear()
    return had_some


def _key(session: SparkSession, parts: Sequence[str]) -> tuple[str, ...]:
    plain = () if len(parts) > 1 else (session.catalog.currentCatalog(), session.catalog.currentDatabase())
    return tuple(part.lower() for part in (*plain, *parts))


def _foreign(session: SparkSession) -> dict[tuple[str, ...], float]:
    names: dict[tuple[str, ...], float] = vars(session).setdefault("_hoodie_foreign", {})
    return names
