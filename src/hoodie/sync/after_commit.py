"""What follows a commit: expiry, manifests, cleaning, archiving, compaction, the metastore. The commit stands if they
fail."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from functools import partial

from hoodie.config.options import Options
from hoodie.config.sync import ManifestOptions, sync_enabled
from hoodie.errors import ServiceFailed
from hoodie.services.after_commit import after_commit as clean_and_archive
from hoodie.services.compaction.inline import compact_inline
from hoodie.services.compaction.job import RunTasks
from hoodie.services.expiry import expire_inline
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage
from hoodie.sync.hive import sync_table
from hoodie.sync.manifest import write_manifests
from hoodie.table.state import TableState


def after_commit(
    storage: Storage,
    options: Options,
    instant: str,
    state: TableState | None = None,
    *,
    run_compaction: RunTasks | None = None,
    spark_version: str = "",
) -> None:
    """Run what the options of a write ask for after its commit, one after the other.

    instant         of the commit
    state           the table as the write saw it once it was published; None: it is loaded
    run_compaction  carries out the tasks of a compaction; None: threads of this process
    spark_version   as for `sync_table`
    A service that fails leaves what it can go on with, and a `ServiceFailed` warning: the write itself has succeeded.
    """
    if _guarded("deleting expired partitions", instant, partial(expire_inline, storage, options)) is not False:
        state = None  # the table is another one now, or may be
    # Before cleaning, which may delete what the last manifests name.
    _manifests(storage, options, instant, state=state)
    serviced = clean_and_archive(storage, options, instant, state)
    cleaned = serviced.cleaned
    compact = partial(compact_inline, storage, options, run_compaction, state or serviced.state)
    compacted = _guarded("compaction", instant, compact)
    removed = cleaned.partitions if cleaned else ()
    if removed or compacted is not False:  # one that failed may have carried out others before
        _manifests(storage, options, instant, removed=removed)
    if sync_enabled(options):
        advice = "The metastore shows the table as of the last sync; the next commit syncs again, as table.sync() does."
        sync = partial(sync_table, storage, options, spark_version=spark_version)
        _guarded("the sync to the metastore", instant, sync, advice)


def _manifests(
    storage: Storage,
    options: Options,
    instant: str,
    *,
    state: TableState | None = None,
    removed: Collection[str] = (),
) -> None:
    """Bring the manifests up to date that the options ask for. What fails is the warning ServiceFailed.

    instant         of the commit
    state, removed  as for `write_manifests`
    """
    if options.read(ManifestOptions).chosen:
        advice = "Engines go on reading the old lists; the next commit writes what is missing."
        write = partial(write_manifests, storage, options, removed=removed, state=state)
        _guarded("writing the manifests", instant, write, advice)


def _guarded(service: str, instant: str, run: Callable[[], object], advice: str = "") -> object:
    """What `run` returns; None when it fails, which is the warning ServiceFailed."""
    try:
        with typed_errors():
            return run()
    except Exception as error:  # whatever it is: raised, it would say that the write failed
        notes = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
        problem = f"{type(error).__name__}: {error}{notes} {advice}".rstrip()
        warnings.warn(ServiceFailed(service, instant, problem), stacklevel=3)
        return None
