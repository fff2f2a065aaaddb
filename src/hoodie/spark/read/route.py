"""Whether Spark's own readers reach the files of a table: its Java side needs a connector to the table's storage."""

import logging
import re
import threading
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from hoodie.config.read import ReadRoute
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Storage, redacted_path
from hoodie.storage.wrapped import innermost

_log = logging.getLogger("hoodie.storage")

#: Names of Java connectors for what a scheme names, the best first. The scheme's own: a vendor's Spark may have it.
_CONNECTORS = {"s3": ("s3", "s3a")}
#: What Hadoop says of a scheme that it has no class for, and of one whose class is not installed.
_NONE = re.compile(r"No FileSystem for scheme|ClassNotFoundException: Class \S+ not found")
_MOST_TOLD = 200


@dataclass(frozen=True, slots=True)
class Route:
    """Who reads base files for Spark.

    root  of the table, as Spark's own reader is to be given it; None: Python tasks read by the storage's driver
    why   they do
    """

    root: str | None
    why: str = ""

    def __str__(self) -> str:
        return "Spark" if self.root is not None else f"Python tasks ({self.why})"


_routes: WeakKeyDictionary[SparkSession, dict[str, Route]] = WeakKeyDictionary()  # by scheme and bucket; root: "scheme"
_lock = threading.Lock()


def route_to(session: SparkSession, storage: Storage, read_route: ReadRoute) -> Route:
    """Who reads the base files of a table for a session.

    read_route  by the options of the read or write

    A session looks once a bucket whether it has a connector, at the file that every table has: no job, no listing.
    """
    if read_route is ReadRoute.ARROW:
        return Route(None, "hoodie.spark.read.route=arrow")
    if isinstance(innermost(storage), LocalStorage):
        return Route(storage.root)
    scheme, _, path = storage.root.partition("://")
    with _lock:
        routes, bucket = _routes.setdefault(session, {}), f"{scheme}://{path.partition('/')[0]}"
        if bucket not in routes:
            routes[bucket] = _look(session, scheme, path)
        route = routes[bucket]
    if route.root is None and read_route is ReadRoute.AUTO:
        return route
    return Route(f"{route.root or scheme}://{path}")  # without a connector Spark's own error says what is missing


def _look(session: SparkSession, scheme: str, path: str) -> Route:
    """The scheme by which Spark reaches a table."""
    missing = Route(None, f"Spark's Java side has no connector for {scheme}://")
    for name in _CONNECTORS.get(scheme, (scheme,)):
        try:
            # Spark looks whether a path that is named exists when it plans the read: over Connect, once it is asked.
            session.read.schema("value string").text(f"{name}://{path}/.hoodie/hoodie.properties").schema  # noqa: B018
        except Exception as problem:  # Spark's errors have several bases, and each connector has its own
            if not _NONE.search(str(problem)):
                missing = Route(None, f"Spark cannot read {name}://: {_first_line(problem)}")
                _log.warning("%s. Python tasks read base files of %s://%s", missing.why, scheme, redacted_path(path))
        else:
            return Route(name)
    return missing


def _first_line(problem: Exception) -> str:
    line = next((line for line in str(problem).splitlines() if line.strip()), type(problem).__name__)
    return redacted_path(line.strip())[:_MOST_TOLD]
