"""What follows a commit for other engines: manifests, then the metastore. The commit stands if they fail."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from functools import partial

from hoodie.config.compaction import inline_compaction
from hoodie.config.options import Options
from hoodie.config.sync import ManifestOptions, sync_enabled
from hoodie.errors import ServiceFailed
from hoodie.services.after_commit import after_commit, compact_after_commit
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage
from hoodie.sync.hive import sync_table
from hoodie.sync.manifest import write_manifests
from hoodie.table.state import TableState


def manifests_after_commit(
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
        _guarded(
            "writing the manifests",
            instant,
            advice,
            partial(write_manifests, storage, options, removed=removed, state=state),
        )


def sync_after_commit(storage: Storage, options: Options, instant: str, spark_version: str = "") -> None:
    """Sync the metastore if the options ask for it. What fails is the warning ServiceFailed.

    instant        of the commit
    spark_version  as for `sync_table`
    """
    if sync_enabled(options):
        advice = "The metastore shows the table as of the last sync; the next commit syncs again, as table.sync() does."
        run = partial(sync_table, storage, options, spark_version=spark_version)
        _guarded("the sync to the metastore", instant, advice, run)


def after_local_commit(storage: Storage, options: Options, instant: str, state: TableState | None = None) -> None:
    """All services after a commit of a writer without Spark, in the order in which `spark.after_commit` runs them.

    options  of the write
    instant  of the commit
    state    the table as the write saw it once it was published; None: it is loaded
    """
    manifests_after_commit(storage, options, instant, state=state)
    serviced = after_commit(storage, options, instant, state)
    compact_after_commit(storage, options, instant)
    removed = serviced.cleaned.partitions if serviced.cleaned else ()
    if removed or inline_compaction(options).run:
        manifests_after_commit(storage, options, instant, removed=removed)
    sync_after_commit(storage, options, instant)


def _guarded(service: str, instant: str, advice: str, run: Callable[[], object]) -> None:
    try:
        with typed_errors():
            run()
    except Exception as error:  # whatever it is: raised, it would say that the write failed
        notes = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
        problem = f"{type(error).__name__}: {error}{notes} {advice}"
        warnings.warn(ServiceFailed(service, instant, problem), stacklevel=3)
