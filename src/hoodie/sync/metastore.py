"""A connection to a Hive metastore: the calls that a sync makes, and their faults as typed errors.

The interface definition beside this module has the part of Hive's that is used; thriftpy2 makes the client of it.
"""

import getpass
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from hoodie.errors import InvalidOption, MetastoreUnavailable, SyncRefused, clause
from hoodie.sync.entry import SyncedEntry
from hoodie.sync.partitions import Values

_URIS = "hoodie.datasource.hive_sync.metastore.uris"
_CONNECT_MILLIS = 15_000
_UNKNOWN_METHOD = 1
#: What messages of the metastore have, its errors having no numbers.
_INCOMPATIBLE, _CAPABILITIES = "incompatible", "does not appear to support"


@cache
def interface() -> ModuleType:
    """The structs and the service of the metastore. Raises InvalidOption naming the extra that brings thriftpy2."""
    try:
        import thriftpy2
    except ImportError as missing:
        raise InvalidOption(
            f"a sync needs {missing.name or 'thriftpy2'} on the driver: pip install 'hoodie[hive]'"
        ) from missing
    path = Path(__file__).with_name("metastore.thrift")
    return thriftpy2.load(str(path), module_name="hoodie_metastore_thrift")


def user() -> str:
    """The name of the user of this process; "hoodie" where the system has none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's number without an entry
        return "hoodie"


@dataclass(frozen=True, slots=True)
class Metastore:
    """An open connection, for one thread.

    calls  how often each call was made
    """

    address: str
    _client: Any
    calls: Counter[str] = field(default_factory=Counter)

    def database_exists(self, name: str) -> bool:
        return self._call("get_database", name, absent=True) is not None

    def create_database(self, name: str) -> None:
        """Make a database; one that another sync has made meanwhile is as good."""
        database = interface().Database(name=name, description="automatically created by hoodie", parameters={})
        with suppress(interface().AlreadyExistsException):
            self._call("create_database", database, raises=("AlreadyExistsException",))

    def table(self, database: str, name: str) -> Any | None:
        """The entry; None: there is none."""
        request = interface().GetTableRequest(dbName=database, tblName=name)
        try:
            entry = self._call("get_table_req", request, absent=True, unknown=True)
        except _NotKnown:  # before Hive 2.2; from 4 on it is the other that is not known
            return self._call("get_table", database, name, absent=True)
        return None if entry is None else entry.table

    def create_table(self, table: Any) -> bool:
        """Whether it was made; False: another process has made one of that name."""
        try:
            self._call("create_table", table, raises=("AlreadyExistsException",))
        except interface().AlreadyExistsException:
            return False
        return True

    def alter_table(self, table: Any, *, cascade: bool) -> None:
        """
        cascade  partitions that are there get the table's columns, too
        Raises   ColumnsRefused: nothing of the entry has changed
        """
        hive = interface()
        context = hive.EnvironmentContext(properties={"CASCADE": "true"} if cascade else {})
        call = "alter_table_with_environment_context"
        try:
            self._call(*(call, table.dbName, table.tableName, table, context), raises=("InvalidOperationException",))
        except hive.InvalidOperationException as error:
            refusal = ColumnsRefused if _INCOMPATIBLE in error.message else SyncRefused
            problem = f"it refuses {call}: {' '.join(error.message.split())}"
            raise refusal(f"metastore {self.address}", problem) from error

    def partition_names(self, database: str, table: str) -> list[str]:
        return list(self._call("get_partition_names", database, table, -1))

    def partitions(self, database: str, table: str, names: Sequence[str], batch: int) -> list[Any]:
        """Those of the named partitions that are there."""
        listed: list[Any] = []
        for part in _batches(names, batch):
            listed += self._call("get_partitions_by_names", database, table, list(part))
        return listed

    def add_partitions(self, database: str, table: str, partitions: Sequence[Any], batch: int) -> None:
        """Those that are there already stay as they are."""
        for part in _batches(partitions, batch):
            request = interface().AddPartitionsRequest(
                dbName=database, tblName=table, parts=list(part), ifNotExists=True, needResult=False
            )
            self._call("add_partitions_req", request)

    def alter_partitions(self, database: str, table: str, partitions: Sequence[Any], batch: int) -> None:
        for part in _batches(partitions, batch):
            self._call("alter_partitions", database, table, list(part))

    def drop_partitions(self, database: str, table: str, names: Sequence[str], batch: int) -> None:
        """Forget partitions; their files stay. Missing ones are ignored."""
        for part in _batches(names, batch):
            request = interface().DropPartitionsRequest(
                dbName=database,
                tblName=table,
                parts=interface().RequestPartsSpec(names=list(part)),
                deleteData=False,
                ifExists=True,
                needResult=False,
            )
            self._call("drop_partitions_req", request)

    def _call(
        self, name: str, *values: Any, absent: bool = False, unknown: bool = False, raises: Sequence[str] = ()
    ) -> Any:
        """
        absent   the answer None for what does not exist
        unknown  raise _NotKnown when the server has no such call
        raises   names of exceptions that pass as they are
        """
        from thriftpy2.thrift import TApplicationException, TException

        hive = interface()
        self.calls[name] += 1
        try:
            return getattr(self._client, name)(*values)
        except hive.NoSuchObjectException as error:
            if absent:
                return None
            raise SyncRefused(f"metastore {self.address}", f"{error.message}: it went away; sync again") from error
        except (hive.AlreadyExistsException, hive.InvalidObjectException, hive.InvalidOperationException) as error:
            if type(error).__name__ in raises:
                raise
            raise SyncRefused(f"metastore {self.address}", f"it refuses {name}: {error.message}") from error
        except TApplicationException as error:
            if unknown and error.type == _UNKNOWN_METHOD:
                raise _NotKnown(name) from error
            raise MetastoreUnavailable(self.address, f"{name} failed: {error.message}") from error
        except hive.MetaException as error:
            if _CAPABILITIES in error.message:
                problem = (
                    f"it refuses this client: {clause(error.message)}. Set metastore.client.capability.check=false"
                )
                raise SyncRefused(
                    f"metastore {self.address}", f"{problem} in its hive-site.xml, or hive.in.test=false"
                ) from error
            raise MetastoreUnavailable(self.address, f"{name} failed: {error.message}") from error
        except (TException, OSError, EOFError) as error:
            problem = f"{name} got no answer: {type(error).__name__}: {error}"
            raise MetastoreUnavailable(self.address, problem) from error
        except Exception as error:
            if type(error).__module__.partition(".")[0] != "thriftpy2":
                raise
            # No subclass of TException: the compiled protocol's own, of bytes that are none of this protocol.
            problem = f"{name} got an answer in another protocol, as servers with SASL or TLS give: {error}"
            raise MetastoreUnavailable(self.address, problem) from error


class ColumnsRefused(SyncRefused):
    """The metastore takes no column of that type in the place of the one it has."""


class _NotKnown(Exception):
    """The server has no call of that name."""


@contextmanager
def connect(uris: Sequence[str], timeout: float) -> Iterator[Metastore]:
    """A connection to the first of some metastores that answers.

    uris     such as "thrift://host:9083"
    timeout  seconds that an answer may take
    Raises   InvalidOption on a malformed address, and as `interface`; MetastoreUnavailable when none of them answers
    """
    interface()
    addresses = [_address(uri) for uri in uris]
    if not addresses:
        raise InvalidOption(f"{_URIS} is empty: expected thrift://host:9083")
    problems = []
    for host, port in addresses:
        try:
            client = _open(host, port, timeout)
        except Exception as error:
            if not _is_network(error):
                raise
            problems.append(f"{type(error).__name__}: {error}")
            continue
        metastore = Metastore(f"thrift://{host}:{port}", client)
        try:
            metastore._call("set_ugi", user(), [])
            yield metastore
        finally:
            client.close()
        return
    raise MetastoreUnavailable(", ".join(uris), "; ".join(problems))


def _address(uri: str) -> tuple[str, int]:
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if host is None or port is None or parts.scheme != "thrift":
        raise InvalidOption(f"{_URIS}: {uri!r} is no address: expected thrift://host:9083")
    return host, port


def _open(host: str, port: int, timeout: float) -> Any:
    from thriftpy2.protocol import TBinaryProtocolFactory
    from thriftpy2.thrift import TClient
    from thriftpy2.transport import TBufferedTransportFactory, TSocket

    millis = int(timeout * 1000)
    socket = TSocket(host, port, socket_timeout=millis, connect_timeout=min(millis, _CONNECT_MILLIS))
    transport = TBufferedTransportFactory().get_transport(socket)
    client = TClient(interface().ThriftHiveMetastore, TBinaryProtocolFactory().get_protocol(transport))
    try:
        transport.open()
    except BaseException:
        transport.close()
        raise
    return client


def _is_network(error: Exception) -> bool:
    from thriftpy2.thrift import TException

    return isinstance(error, (TException, OSError))


def _batches(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def struct_columns(fields: Sequence[Any] | None) -> dict[str, str]:
    """name -> type of a struct's list of columns."""
    return {column.name: column.type for column in fields or ()}


def field_schemas(columns: Mapping[str, str], comments: Mapping[str, str]) -> list[Any]:
    """The structs of columns; comments by name in lower case."""
    make = interface().FieldSchema
    return [make(name=name, type=kind, comment=comments.get(name.lower(), "")) for name, kind in columns.items()]


# --- entries and partitions as the structs of the metastore's interface ---


def new_table(entry: SyncedEntry) -> Any:
    kind = "VIRTUAL_VIEW" if entry.query else "MANAGED_TABLE" if entry.managed else "EXTERNAL_TABLE"
    return interface().Table(
        tableName=entry.name,
        dbName=entry.database,
        owner=user(),
        createTime=int(time.time()),
        lastAccessTime=0,
        retention=0,
        sd=_storage(entry, entry.location or None),
        partitionKeys=field_schemas(entry.keys, {}),
        parameters=dict(entry.properties),
        viewOriginalText=entry.query or None,
        viewExpandedText=entry.query or None,
        tableType=kind,
    )


def new_partition(entry: SyncedEntry, values: Values, location: str) -> Any:
    return interface().Partition(
        values=list(values),
        dbName=entry.database,
        tableName=entry.name,
        createTime=int(time.time()),
        lastAccessTime=0,
        sd=_storage(entry, location),
        parameters={},
    )


def _storage(entry: SyncedEntry, location: str | None) -> Any:
    hive = interface()
    return hive.StorageDescriptor(
        cols=field_schemas(entry.columns, entry.comments),
        location=location,
        inputFormat=entry.input_format,
        outputFormat=entry.output_format,
        compressed=False,
        numBuckets=0,
        serdeInfo=hive.SerDeInfo(serializationLib=entry.serde_class, parameters=dict(entry.serde)),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


def texts_of(table: Any) -> tuple[object, ...]:
    """What of a metastore's entry a sync changes, to compare."""
    columns = tuple((column.name, column.type, column.comment or "") for column in table.sd.cols)
    formats = (table.sd.inputFormat, table.sd.outputFormat, table.sd.serdeInfo.serializationLib)
    parameters = dict(table.parameters or {}), dict(table.sd.serdeInfo.parameters or {})
    return columns, formats, parameters, table.viewExpandedText or ""
