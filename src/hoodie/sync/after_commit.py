"""What follows a commit for other engines: manifests, then the metastore. The commit stands if they fail."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from functools import partial

from hoodie.config.compaction import inline_compaction
from hoodie.config.options import Options
from hoodie.config.sync import ManifestOptions, sync_enabled
from hoodie.errors import ServiceFailed
from hoodie.services.after_commit import Serviced
from hoodie.services.after_commit import after_local_commit as run_services
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage
from hoodie.sync.hive import sync_table
from hoodie.sync.manifest import write_manifests
from hoodie.table.state import TableState


def with_engines(
    storage: Storage,
    options: Options,
    instant: str,
    state: TableState | None,
    services: Callable[[], Serviced],
    spark_version: str = "",
) -> None:
    """Run the services of a table after a commit, and what the options ask for other engines around them. What of it
    fails is the warning ServiceFailed.

    instant        of the commit
    state          the table as the write saw it once it was published; None: it is loaded
    services       cleaning and so on
    spark_version  as for `sync_table`
    """
    # Before cleaning, which may delete what the last manifests name.
    _manifests(storage, options, instant, state=state)
    cleaned = services().cleaned
    removed = cleaned.partitions if cleaned else ()
    if removed or inline_compaction(options).run:
        _manifests(storage, options, instant, removed=removed)
    if sync_enabled(options):
        advice = "The metastore shows the table as of the last sync; the next commit syncs again, as table.sync() does."
        sync = partial(sync_table, storage, options, spark_version=spark_version)
        _guarded("the sync to the metastore", instant, advice, sync)


def after_local_commit(storage: Storage, options: Options, instant: str, state: TableState | None = None) -> None:
    """All that follows a commit of a writer without Spark."""
    with_engines(storage, options, instant, state, partial(run_services, storage, options, instant, state))


def _manifests(
    storage: Storage,
    options: Options,
    instant: str,
    *,
    state: TableState | None = None,
    removed: Collection[str] = (),
) -> None:
    if options.read(ManifestOptions).chosen:
        advice = "Engines go on reading the old lists; the next commit writes what is missing."
        write = partial(write_manifests, storage, options, removed=removed, state=state)
        _guarded("writing the manifests", instant, advice, write)


def _guarded(service: str, instant: str, advice: str, run: Callable[[], object]) -> None:
    try:
        with typed_errors():
            run()
    except Exception as error:  # whatever it is: raised, it would say that the write failed
        notes = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
        problem = f"{type(error).__name__}: {error}{notes} {advice}"
        warnings.warn(ServiceFailed(service, instant, problem), stacklevel=3)
