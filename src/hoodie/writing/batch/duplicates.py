"""Rows whose key a table has: whether a write leaves them out."""

from __future__ import annotations

from hoodie.config.options import Options
from hoodie.config.write import DropOptions, DuplicatePolicy, WriteOperation, WriteOptions
from hoodie.errors import InvalidOption

DROP = "hoodie.datasource.write.insert.drop.duplicates"
POLICY = "hoodie.datasource.insert.dup.policy"
_COMBINE = "hoodie.combine.before.insert"


def drops_existing(operation: WriteOperation, options: Options) -> bool:
    """Whether the options ask a write to leave out rows whose key is there, and to combine those of one key.

    Raises InvalidOption on bulk_insert, which looks no key up: Hudi refuses that, too
    """
    drop = options.read(DropOptions).duplicates
    if drop and operation is WriteOperation.BULK_INSERT:
        raise InvalidOption(f"{DROP}=true: bulk_insert looks no key up; take the operation insert")
    if drop and operation in (WriteOperation.INSERT, WriteOperation.UPSERT):
        return True
    return operation is WriteOperation.INSERT and options.read(WriteOptions).duplicates is DuplicatePolicy.DROP


def once_dropped(options: Options) -> Options:
    """The options for the rows that are left."""
    return Options({**without_dropping(options), _COMBINE: "true"})


def without_dropping(options: Options) -> Options:
    """The options without those: of a write that says of each row what becomes of it."""
    return Options({key: value for key, value in options.items() if key not in (DROP, POLICY)})


def for_new_keys(options: Options) -> Options:
    """The options for a table without a record key, which has the key of no new row: no policy has anything to do."""
    return Options({key: value for key, value in options.items() if key != POLICY})


def refuse_dropping(operation: WriteOperation, options: Options) -> None:
    """Raises InvalidOption where rows are to be left out, and nobody has done it."""
    if drops_existing(operation, options):
        key = DROP if options.read(DropOptions).duplicates else POLICY
        raise InvalidOption(
            f"{key}={options.get(key)}: this call leaves out no rows; write with hoodie.hudi.write, table.insert or "
            "table.upsert, or filter the rows with HoodieReadClient.filter_exists"
        )
