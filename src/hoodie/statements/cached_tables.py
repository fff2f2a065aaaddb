"""Tables that `CACHE TABLE` keeps in Spark's memory: the rows of a commit, taken anew after the next one."""

from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from hoodie.api.table import HoodieTable
from hoodie.model.instant import Instant
from hoodie.table.state import load_state


@dataclass(frozen=True, slots=True)
class _CachedTable:
    frame: DataFrame
    commits: tuple[Instant, ...]
    level: StorageLevel


def snapshot_of(session: SparkSession, table: HoodieTable[DataFrame]) -> DataFrame:
    """The rows of a table, from memory if they are kept there."""
    cached = _tables(session).get(table.storage.root)
    if cached is None:
        return table.snapshot()
    if cached.commits != load_state(table.storage).timeline.commits:
        return keep(session, table, cached.level)
    return cached.frame


def keep(session: SparkSession, table: HoodieTable[DataFrame], level: StorageLevel) -> DataFrame:
    """Have the rows of a table kept, in place of those that were. They are read by the first that needs them."""
    drop(session, table)
    commits = load_state(table.storage).timeline.commits
    frame = table.snapshot().persist(level)
    _tables(session)[table.storage.root] = _CachedTable(frame, commits, level)
    return frame


def drop(session: SparkSession, table: HoodieTable[DataFrame]) -> None:
    """Forget the rows of a table, if they are kept."""
    cached = _tables(session).pop(table.storage.root, None)
    if cached is not None:
        cached.frame.unpersist()


def drop_all(session: SparkSession) -> None:
    _tables(session).clear()  # Spark's CLEAR CACHE frees the memory


def _tables(session: SparkSession) -> dict[str, _CachedTable]:
    tables: dict[str, _CachedTable] = vars(session).setdefault("_hoodie_cached", {})
    return tables
