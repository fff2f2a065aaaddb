"""What a writer does for its table after a commit: the services that its options turn on, one after the other."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from pyspark.sql import SparkSession

from hoodie.config.compaction import inline_compaction
from hoodie.config.options import Options
from hoodie.errors import ServiceFailed
from hoodie.services.after_commit import after_commit as clean_and_archive
from hoodie.spark.compaction import compact_inline
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage
from hoodie.sync.after_commit import manifests_after_commit, sync_after_commit
from hoodie.table.state import TableState

#: Looks at its options itself, and does nothing unless they ask for it.
Service = Callable[[SparkSession, Storage, Options], None]

#: By the name that a warning has for it, in the order in which they run.
SERVICES: tuple[tuple[str, Service], ...] = (("compaction", compact_inline),)


def after_commit(
    session: SparkSession,
    storage: Storage,
    options: Options,
    instant: str,
    state: TableState | None = None,
) -> None:
    """Run the services after a commit that is published.

    options  of the write
    instant  of the commit
    state    the table as the write saw it once it was published; None: it is loaded
    A service that fails leaves what it can go on with, and a `ServiceFailed` warning: the write itself has succeeded.
    """
    # Before cleaning, which may delete what the last manifests name.
    manifests_after_commit(storage, options, instant, state=state)
    serviced = clean_and_archive(storage, options, instant, state)
    for name, service in SERVICES:
        try:
            with typed_errors():
                service(session, storage, options)
        except Exception as error:  # whatever it is: raised, it would say that the write failed
            notes = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
            problem = f"{type(error).__name__}: {error}{notes}"
            warnings.warn(ServiceFailed(name, instant, problem), stacklevel=2)
    removed = serviced.cleaned.partitions if serviced.cleaned else ()
    if removed or inline_compaction(options).run:
        manifests_after_commit(storage, options, instant, removed=removed)
    sync_after_commit(storage, options, instant, session.version)
