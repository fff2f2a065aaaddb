"""The index RECORD_INDEX: keys are looked up in the record index of the metadata table.

Where that is missing, out of date or damaged, keys are looked up in the base files of the whole table, as by
GLOBAL_SIMPLE: with a warning, and with the same hits. So the index is made for that (`hoodie.index.choose`), and gets
its kernel once the table's state is known.
Source: docs/format/indexing-and-write-path.md 1 and 2. Design: docs/design/indexes.md.
"""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config.metadata import RECORD_INDEX
from hoodie.config.write import IndexType
from hoodie.errors import CorruptFile, CorruptIndex, RecordIndexIgnored, UnsupportedTable
from hoodie.index.contract import ByFile, ByKey, Index, IndexContext, TagKeys, Tags
from hoodie.index.pruning import IndexStats
from hoodie.metadata.keys import FOLDER
from hoodie.metadata.locations import BY_PARTITION, RecordLocator, open_locator
from hoodie.storage.protocol import Storage
from hoodie.table.state import TableState


class KeyElsewhere(Exception):
    """A key has its entry in another partition than the one that is asked about. Hudi's writers have one entry for a
    key that two partitions hold: only the base files know."""


def with_record_index(index: Index, state: TableState) -> Index:
    """The index RECORD_INDEX with its kernel, where the table's record index can be used.

    Warns RecordIndexIgnored where it cannot
    """
    locator = open_locator(state.storage, state.config, state.timeline)
    if not isinstance(locator, str):
        return replace(index, look_up=ByKey(partial(_tagger, locator)))
    if state.config.was_upgraded:
        advice = "Name another index, such as hoodie.index.type=GLOBAL_SIMPLE."
        path = f"{state.storage.root.rstrip('/')}/{FOLDER}"
        problem = f"none is kept in a table that was upgraded to version {state.config.version}"
        warnings.warn(RecordIndexIgnored(path, problem, advice), stacklevel=2)
    elif state.timeline.commits:  # else there are no keys yet
        ignore_record_index(state.storage, locator)
    return by_files(index)


def for_reads(index: Index, state: TableState) -> Index:
    """An index that looks into base files, asking the table's record index instead where it has one; others as they
    are. Where keys are looked up by partition, one that has its entry in another raises `KeyElsewhere`.

    Warns RecordIndexIgnored where the record index is damaged, or out of date
    """
    if index.name == IndexType.RECORD_INDEX:
        return with_record_index(index, state)
    if not isinstance(index.look_up, ByFile) or RECORD_INDEX not in state.config.metadata_partitions:
        return index
    locator = open_locator(state.storage, state.config, state.timeline)
    if isinstance(locator, str):
        if locator != BY_PARTITION:
            ignore_record_index(state.storage, locator)
        return index
    return replace(index, look_up=ByKey(partial(_tagger, locator, is_global=index.is_global)))


def by_files(index: Index) -> Index:
    """The index as it is without a record index."""
    return replace(index, look_up=ByFile(pruned=False))


def uses_record_index(index: Index) -> bool:
    """Whether keys are looked up in the record index."""
    return index.name == IndexType.RECORD_INDEX and isinstance(index.look_up, ByKey)


def ignore_record_index(storage: Storage, problem: object) -> None:
    """Warn that a record index is not used."""
    warnings.warn(RecordIndexIgnored(f"{storage.root.rstrip('/')}/{FOLDER}", str(problem)), stacklevel=3)


def _tagger(locator: RecordLocator, context: IndexContext, *, is_global: bool = True) -> TagKeys:
    return partial(_tag, locator, is_global)


def _tag(locator: RecordLocator, is_global: bool, keys: pa.Array, partitions: pa.Array) -> Tags:
    """Where the keys are.

    is_global  the partitions of the batch do not matter; else Raises KeyElsewhere where one is not that of its key
    Raises     CorruptIndex where the record index is damaged: the keys have to be looked up in base files
    """
    try:
        paths, file_ids = locator.locate(keys)
    except (CorruptFile, UnsupportedTable, FileNotFoundError) as damage:
        raise CorruptIndex(f"the record index cannot be read: {damage}") from damage
    if not is_global and pc.any(pc.not_equal(paths, partitions)).as_py():
        raise KeyElsewhere("a key is in another partition than the one that is asked about")
    count = len(keys)
    hits = int(np.count_nonzero(np.asarray(pc.is_valid(file_ids))))
    return Tags(paths, file_ids, IndexStats(candidates=count, checked=count, hits=hits))
