"""The options of concurrent writers: which lock they take, what a conflict does, when a writer is considered dead."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from hoodie.config.options import above_zero, from_zero, millis_option, not_negative, option, positive
from hoodie.errors import InvalidOption

#: Hudi's package of lock providers; its classes are accepted by full or by short name.
_PACKAGE = "org.apache.hudi.client.transaction.lock."


class LockProvider(StrEnum):
    """The kind of lock. The value is the short name of Hudi's class."""

    ZOOKEEPER = "ZookeeperBasedLockProvider"
    ZOOKEEPER_IMPLICIT = "ZookeeperBasedImplicitBasePathLockProvider"
    FILE_SYSTEM = "FileSystemBasedLockProvider"
    STORAGE = "StorageBasedLockProvider"
    IN_PROCESS = "InProcessLockProvider"


class ConcurrencyMode(StrEnum):
    """How many writers a table may have at a time."""

    SINGLE_WRITER = "SINGLE_WRITER"
    OPTIMISTIC_CONCURRENCY_CONTROL = "OPTIMISTIC_CONCURRENCY_CONTROL"
    NON_BLOCKING_CONCURRENCY_CONTROL = "NON_BLOCKING_CONCURRENCY_CONTROL"


class FailedWrites(StrEnum):
    """Which pending writes of other writers are considered failed and rolled back."""

    EAGER = "EAGER"
    LAZY = "LAZY"
    NEVER = "NEVER"


#: Providers of Hudi that are not here: where their lock lies.
_ELSEWHERE = {
    "DynamoDBBasedLockProvider": "in a table of DynamoDB",
    "DynamoDBBasedImplicitPartitionKeyLockProvider": "in a table of DynamoDB",
    "HiveMetastoreBasedLockProvider": "in a Hive metastore",
    "NoopLockProvider": "nowhere",
}


def _provider_of(name: str) -> LockProvider | None:
    """The provider of a class name; None for an unknown one."""
    name = name.removeprefix(_PACKAGE)
    return next((provider for provider in LockProvider if provider.value == name), None)


def _is_provider(name: str) -> bool:
    """Raises InvalidOption on a provider of Hudi that is not here, which says what to take in its place."""
    short = name.rpartition(".")[2]
    if short == "NoopLockProvider":
        raise InvalidOption(
            f"hoodie.write.lock.provider={name!r} is no lock. For one writer leave it out, and "
            "hoodie.write.concurrency.mode as well; several writers take StorageBasedLockProvider"
        )
    if short in _ELSEWHERE:
        raise InvalidOption(
            f"hoodie.write.lock.provider={name!r} keeps its lock {_ELSEWHERE[short]}, which this library does not do. "
            "Where only this library writes the table, take StorageBasedLockProvider, whose lock lies beside the table "
            "(S3, GCS, Azure, HDFS, disks). Where Hudi writes it too, all its writers need one lock that both know: "
            "ZookeeperBasedLockProvider, or FileSystemBasedLockProvider"
        )
    return not name or _provider_of(name) is not None


@dataclass(frozen=True, kw_only=True)
class LockOptions:
    """The lock of a table."""

    provider: str = option(
        "hoodie.write.lock.provider",
        "",
        "The lock between writers, by full or short name of Hudi's class: " + ", ".join(LockProvider) + ". Without one "
        "it is ZookeeperBasedLockProvider if hoodie.write.lock.zookeeper.url is set, else with "
        "SINGLE_WRITER none, and with the other modes StorageBasedLockProvider.",
        expected=f"one of {', '.join(LockProvider)}",
        check=_is_provider,
    )
    wait: int = millis_option(
        "hoodie.write.lock.wait_time_ms", 60_000, "Milliseconds that one attempt to acquire the lock waits."
    )
    retries: int = from_zero("hoodie.write.lock.client.num_retries", 50, "Further attempts to acquire the lock.")
    retry_wait: int = millis_option(
        "hoodie.write.lock.client.wait_time_ms_between_retry", 5_000, "Milliseconds between two attempts."
    )
    connect_retries: int = from_zero(
        "hoodie.write.lock.num_retries", 15, "Further attempts of a provider to reach its server."
    )
    connect_wait: int = millis_option(
        "hoodie.write.lock.wait_time_ms_between_retry",
        1_000,
        "Milliseconds before the first of these; each waits twice as long as the one before.",
    )
    connect_longest_wait: int = millis_option(
        "hoodie.write.lock.max_wait_time_ms_between_retry", 16_000, "Milliseconds between them, at most."
    )
    zookeeper_url: str = option(
        "hoodie.write.lock.zookeeper.url", "", "ZooKeeper's servers: host:port, separated by commas."
    )
    zookeeper_port: int = option(
        "hoodie.write.lock.zookeeper.port",
        2181,
        "Port of servers whose address has none.",
        check=lambda value: 0 < value < 65536,
    )
    zookeeper_base_path: str = option(
        "hoodie.write.lock.zookeeper.base_path",
        "",
        "Path in ZooKeeper below which the lock is kept; the same for all writers of a table.",
        expected="an absolute path, such as /hudi",
        check=lambda value: not value or value.startswith("/"),
    )
    zookeeper_lock_key: str = option(
        "hoodie.write.lock.zookeeper.lock_key",
        "",
        "Name of the lock below the base path, such as the table's; the same for all writers of a table.",
        expected="a name without '/'",
        check=lambda value: "/" not in value,
    )
    zookeeper_session_timeout: int = millis_option(
        "hoodie.write.lock.zookeeper.session_timeout_ms",
        60_000,
        "Milliseconds without a sign of life after which ZooKeeper releases a writer's lock.",
        least=1,
    )
    zookeeper_connection_timeout: int = millis_option(
        "hoodie.write.lock.zookeeper.connection_timeout_ms",
        15_000,
        "Milliseconds to wait for a connection to ZooKeeper.",
        least=1,
    )
    filesystem_path: str = option(
        "hoodie.write.lock.filesystem.path",
        "",
        "FileSystemBasedLockProvider: folder of the lock file; by default the table's .hoodie.",
    )
    filesystem_expire: int = option(
        "hoodie.write.lock.filesystem.expire",
        0,
        "FileSystemBasedLockProvider: minutes after which the lock of a dead writer expires; 0: never.",
        expected="minutes, such as 10",
        check=not_negative,
    )
    storage_validity: int = option(
        "hoodie.write.lock.storage.validity.timeout.secs",
        300,
        "StorageBasedLockProvider: seconds after which the lock of a dead writer expires.",
        expected="seconds, such as 300",
        check=positive,
    )
    storage_renewal: int = option(
        "hoodie.write.lock.storage.renew.interval.secs",
        30,
        "StorageBasedLockProvider: seconds between renewals; a third of the validity, at most.",
        expected="seconds, such as 30",
        check=positive,
    )
    clock_skew: int = millis_option(
        "hoodie.time.generator.max_expected_clock_skew_ms",
        200,
        "Milliseconds by which the clocks of writers differ at most. On tables of versions 8 and 9 a commit keeps the "
        "lock until the clocks of all are past its completion: the next one has a later time then, and readers of "
        "changes miss none. Not with InProcessLockProvider, whose writers have one clock.",
    )

    @cached_property
    def named_provider(self) -> LockProvider | None:
        """The provider that is named, or None. What that means depends on the concurrency mode: `provider_for`."""
        if not self.provider and self.zookeeper_url:
            return LockProvider.ZOOKEEPER
        return _provider_of(self.provider) if self.provider else None


@dataclass(frozen=True, kw_only=True)
class ConcurrencyOptions:
    """Concurrent writers of one table."""

    mode: ConcurrencyMode = option(
        "hoodie.write.concurrency.mode",
        ConcurrencyMode.SINGLE_WRITER,
        "SINGLE_WRITER: one at a time. OPTIMISTIC_CONCURRENCY_CONTROL: several, with a lock; of two that change the "
        "same file groups one fails. NON_BLOCKING_CONCURRENCY_CONTROL: several, with a lock, that add to the logs of "
        "one file group without a conflict: Merge-on-Read tables of version 8 or 9 with the index BUCKET.",
    )
    conflict_retries: int = from_zero(
        "hoodie.write.num.retries.on.conflict.failures",
        3,
        "How often a write that lost a conflict is retried, on the table as it is then. Hudi's default is 0.",
    )
    failed_writes: FailedWrites = option(
        "hoodie.cleaner.policy.failed.writes",
        FailedWrites.EAGER,
        "Which pending writes a writer rolls back: EAGER all, before its own, which suits a single writer; LAZY those "
        "whose heartbeat expired; NEVER none. With a mode for several writers, EAGER means LAZY.",
        aliases=("hoodie.clean.failed.writes.policy",),
    )
    heartbeat_interval: int = millis_option(
        "hoodie.client.heartbeat.interval_in_ms",
        60_000,
        "Milliseconds between heartbeats of a writer (policy LAZY). All writers of a table need the same.",
        least=100,
    )
    heartbeat_misses: int = above_zero(
        "hoodie.client.heartbeat.tolerable.misses",
        2,
        "A writer is considered dead once this many heartbeats are missing.",
    )

    @property
    def several(self) -> bool:
        """Whether other writers may be at work."""
        return self.mode is not ConcurrencyMode.SINGLE_WRITER

    @cached_property
    def non_blocking(self) -> bool:
        return self.mode is ConcurrencyMode.NON_BLOCKING_CONCURRENCY_CONTROL

    @cached_property
    def policy(self) -> FailedWrites:
        """The effective policy: EAGER is for a single writer."""
        if self.several and self.failed_writes is FailedWrites.EAGER:
            return FailedWrites.LAZY
        return self.failed_writes

    @property
    def heartbeat_expiry(self) -> int:
        """Milliseconds without a heartbeat after which a writer is considered dead."""
        return self.heartbeat_interval * self.heartbeat_misses


def provider_for(lock: LockOptions, concurrency: ConcurrencyOptions) -> LockProvider | None:
    """The lock provider of a writer; None: it has no lock. Several writers that name none take one that every storage
    has which can be written."""
    return lock.named_provider or (LockProvider.STORAGE if concurrency.several else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """Which batch of which application a write is, so that one that is sent again is not written twice."""

    application: str = option(
        "hoodie.datasource.write.streaming.checkpoint.identifier",
        "",
        "Name of the application that sends batches, one for each of its streams into the table.",
    )
    batch: int = option(
        "hoodie.datasource.write.streaming.batch.id",
        -1,
        "Number of the batch from 0 on, greater with each batch of its application; -1: it has none. One that was "
        "written is recognised and not written again. Not an option of Hudi.",
        expected="a whole number, such as 17",
        check=lambda value: value >= -1,
    )


LOCK_GROUPS = (LockOptions, ConcurrencyOptions, BatchOptions)
