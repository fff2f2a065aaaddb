"""The doctor's reading of whole files: every column of every base file, with the checksums of its pages."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import partial

from hoodie.display.progress import counted
from hoodie.doctor.findings import Fault, Finding, Severity
from hoodie.errors import CorruptFile
from hoodie.formats.parquet.columns import damage_of, open_parquet
from hoodie.model.files import BaseFile
from hoodie.storage.protocol import Storage, in_threads

#: Rows that are in memory at a time, of each file.
_BATCH_ROWS = 65_536


def examine_columns(storage: Storage, files: Iterable[BaseFile]) -> Iterator[Finding]:
    """Findings about base files of which a page cannot be read, or is not what its checksum says."""
    bases = list(files)
    read = counted(partial(_read_all, storage), len(bases), "base file")
    for finding in in_threads(read, bases, os.cpu_count() or 1, "hoodie-doctor"):
        if finding is not None:
            yield finding


def _read_all(storage: Storage, file: BaseFile) -> Finding | None:
    try:
        with storage.open_listed(file.path, file.size) as source:
            parquet = open_parquet(source, file.path, checked=True)
            with damage_of(file.path):
                for _ in parquet.iter_batches(_BATCH_ROWS):
                    pass
    except CorruptFile as error:
        advice = error.advice.rstrip(".") or "Restore it from a copy of the table, or roll its commit back"
        return Finding(Severity.ERROR, Fault.DAMAGED, error.path, error.problem, advice)
    except FileNotFoundError:  # cleaned since it was listed, or there is a finding about it
        return None
    return None
