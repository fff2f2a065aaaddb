"""Records of the timeline's Avro files, described once: a field's name and type in Hudi's schema, and what it is here.

A `Form` is of one class of `hoodie.model.plans`. It makes the schema, and writes and reads the values of the class.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from hoodie.errors import CorruptFile
from hoodie.formats.avro.container import read_one, write_one
from hoodie.formats.timeline.schemas import Schema, avro_array, avro_map, record
from hoodie.model.files import absolute_path, file_name, inside

T = TypeVar("T")


class Place(NamedTuple):
    """Where a record is: the table's base path, where it is written; the file, for errors, where it is read; and the
    partition that its files are in, to which absolute paths go."""

    root: str = ""
    path: str = ""
    partition: str = ""


class Coder(Protocol):
    """A type of fields: its Avro schema, and values to and from what a record has. A null is the empty value."""

    @property
    def schema(self) -> Any: ...
    def encode(self, value: Any, place: Place) -> Any: ...
    def decode(self, value: Any, place: Place) -> Any: ...


@dataclass(frozen=True, slots=True)
class PlainType:
    """A type whose values are made by two functions."""

    schema: Any
    encode: Callable[[Any, Place], Any] = lambda value, place: value
    decode: Callable[[Any, Place], Any] = lambda value, place: value


TEXT = PlainType("string", decode=lambda text, place: text or "")
INT, LONG = PlainType("int"), PlainType("long")
FLAG = PlainType("boolean", decode=lambda flag, place: bool(flag))
#: A path below the table's folder.
INSIDE = PlainType("string", decode=lambda text, place: inside(text or "", place.path))
#: The name of a file, and as Hudi's plans of clustering have it: its absolute path, of which only the name is read.
NAME = PlainType("string", decode=lambda text, place: file_name(text, place.path) if text else "")
PATH = PlainType("string", lambda name, place: name and absolute_path(place.root, place.partition, name), NAME.decode)
#: A file that must have a name.
FILE = PlainType("string", PATH.encode, lambda text, place: file_name(text or "", place.path))


def _file_id(text: str | None, place: Place) -> str:
    if not text or "/" in text:
        raise CorruptFile(place.path, f"a plan with file id {text!r}")
    return inside(text, place.path)


FILE_ID = PlainType("string", decode=_file_id)


def tuple_of(item: Coder, schema: Any = None) -> PlainType:
    """A tuple. schema: of the items, where it is told elsewhere"""
    return PlainType(
        avro_array(item.schema if schema is None else schema),
        lambda values, place: [item.encode(value, place) for value in values],
        lambda values, place: tuple(item.decode(value, place) for value in values or () if value is not None),
    )


def mapped(item: Coder) -> PlainType:
    """A mapping from text."""
    return PlainType(
        avro_map(item.schema),
        lambda values, place: {key: item.encode(value, place) for key, value in values.items()},
        lambda values, place: {key: item.decode(value, place) for key, value in (values or {}).items()},
    )


def of_partitions(item: Coder) -> PlainType:
    """A mapping from partition paths, where the files of each value are."""
    return PlainType(
        avro_map(item.schema),
        lambda values, place: {key: item.encode(value, place._replace(partition=key)) for key, value in values.items()},
        lambda values, place: {
            inside(key, place.path): item.decode(value, place) for key, value in (values or {}).items()
        },
    )


NAMES = PlainType(avro_array("string"), lambda names, place: list(names), tuple_of(FILE).decode)
PATHS = tuple_of(FILE)
TEXTS = mapped(TEXT)
#: Log files and sizes.
SIZES = PlainType(
    avro_map("long"),
    lambda sizes, place: {absolute_path(place.root, place.partition, name): size for name, size in sizes.items()},
    lambda sizes, place: {file_name(name, place.path): size for name, size in (sizes or {}).items()},
)
METRICS = mapped(PlainType("double"))


class Field(NamedTuple):
    """A field of a record.

    schema    with its name
    take      what a value has of it; the place says in which partition
    argument  of the class of values; "": it is not read
    """

    schema: Schema
    kind: Coder
    take: Callable[[Any, Place], Any]
    argument: str = ""


def attribute_field(name: str, kind: Coder, attribute: str, **default: Any) -> Field:
    """attribute: of the value, perhaps one of an attribute ("group.partition"), whose last name is the argument"""
    get = attrgetter(attribute)
    argument = attribute.rpartition(".")[2]
    return Field({"name": name, "type": kind.schema, **default}, kind, lambda value, place: get(value), argument)


def nullable_field(name: str, kind: Coder, attribute: str, *, empty: bool = True) -> Field:
    """A field that may be null, as None is. empty: other empty values are written as they are; False: as null"""

    def encode(value: Any, place: Place) -> Any:
        return None if value is None or not (empty or value) else kind.encode(value, place)

    return attribute_field(name, PlainType(["null", kind.schema], encode, kind.decode), attribute, default=None)


def unread_field(name: str, schema: Any, value: Any = None, **default: Any) -> Field:
    """A field of Hudi's that says nothing here."""
    return Field({"name": name, "type": schema, **default}, PlainType(schema), lambda owner, place: value)


def version_field(number: int = 1, default: int = 1) -> Field:
    return unread_field("version", ["int", "null"], number, default=default)


#: The partition of a record that a mapping has for a partition.
OWN_PARTITION = Field({"name": "partitionPath", "type": "string"}, TEXT, lambda value, place: place.partition)


class Form(Generic[T]):
    """A record of Hudi's, and the values that it is of.

    make       takes the arguments of the fields
    partition  of a value, for the absolute paths in it; None: that of the record around it
    """

    def __init__(
        self, name: str, make: Callable[..., T], *fields: Field, partition: Callable[[T], str] | None = None
    ) -> None:
        self.name, self.make, self.fields, self.partition = name, make, fields, partition

    @cached_property
    def schema(self) -> Schema:
        """The schema of the record within another."""
        return record(self.name, *(field.schema for field in self.fields))

    @cached_property
    def document(self) -> Schema:
        """The schema of a file with this record alone."""
        return record(self.name, *(field.schema for field in self.fields), top=True)

    def encode(self, value: T, place: Place) -> Mapping[str, Any]:
        if self.partition is not None:
            place = place._replace(partition=self.partition(value))
        return {field.schema["name"]: field.kind.encode(field.take(value, place), place) for field in self.fields}

    def decode(self, record: Mapping[str, Any] | None, place: Place) -> Any:
        """The value; of null None."""
        return record and self.make(
            **{
                field.argument: field.kind.decode(record[field.schema["name"]], place)
                for field in self.fields
                if field.argument
            }
        )

    def write(self, value: T, root: str = "") -> bytes:
        """The content of a file. root: the table's base path, where Hudi stores absolute paths"""
        return write_one(self.document, self.encode(value, Place(root)))

    def read(self, data: bytes, path: str) -> T:
        """The value of a file, at a path for errors.

        Raises CorruptFile on anything but one record of the name, and on a path that leaves the table
        """
        value: T = self.decode(self.parse(data, path), Place(path=path))
        return value

    def parse(self, data: bytes, path: str) -> dict[str, Any]:
        """The record of a file as it is. Raises CorruptFile"""
        return read_one(data, self.document, path)
