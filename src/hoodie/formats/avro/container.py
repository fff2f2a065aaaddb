"""An Avro object container that holds exactly one record: the form of plans and results on the timeline."""

import hashlib
import io
import json
import struct
from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from hoodie.errors import CorruptFile, InvalidInput

_MAGIC = b"Obj\x01"
#: What decoding bytes that are not Avro can raise; fastavro has no error class of its own for it.
MALFORMED = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    EOFError,
    StopIteration,
    OverflowError,
    MemoryError,
    RecursionError,
    AssertionError,
    struct.error,
    SchemaParseException,
    UnknownType,
    fastavro.read.SchemaResolutionError,
)


def is_container(data: bytes) -> bool:
    return data.startswith(_MAGIC)


def write_one(schema: Mapping[str, Any], record: Mapping[str, Any]) -> bytes:
    """A container of one record without compression; its header holds the schema and nothing else, as Hudi's.

    Equal records give equal bytes. Raises InvalidInput on text that has no bytes in UTF-8
    """
    text = json.dumps(schema, separators=(",", ":")).encode()
    body = io.BytesIO()
    try:
        fastavro.schemaless_writer(body, parsed_schema(text), record, strict=True)
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{error.object!r} is no Unicode text, and a file of the table would hold it") from None
    content = body.getvalue()
    sync = hashlib.md5(text + content, usedforsecurity=False).digest()
    key = b"avro.schema"
    header = _long(1) + _long(len(key)) + key + _long(len(text)) + text + _long(0)
    return _MAGIC + header + sync + _long(1) + _long(len(content)) + content + sync


def read_one(data: bytes, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The one record of a container, its fields as `schema` has them: missing ones by default, unknown ones left out.

    path    for errors
    Raises  CorruptFile on anything but a container with one record of that name
    """
    if not is_container(data):
        problem = "not an Avro file" if data else "empty, expected an Avro file: its writer died as it wrote it"
        raise CorruptFile(path, problem, advice="`hoodie check` says what to do about it.")
    try:
        reader = fastavro.reader(io.BytesIO(data), reader_schema=parsed_schema(json.dumps(schema).encode()))
        written = reader.writer_schema
        name = str(written.get("name")).rpartition(".")[2] if isinstance(written, dict) else str(written)
        if name != schema["name"]:
            raise CorruptFile(path, f"an Avro file of {name}, expected {schema['name']}")
        records = list(islice(reader, 2))
    except MALFORMED as error:
        raise CorruptFile(path, f"malformed Avro: {type(error).__name__}: {error}") from error
    if len(records) != 1 or not isinstance(records[0], dict):
        raise CorruptFile(path, f"an Avro file of {len(records)} records, expected one")
    return records[0]


@lru_cache(maxsize=64)
def parsed_schema(text: bytes | str) -> Any:
    """A schema as JSON, as fastavro takes it."""
    return fastavro.parse_schema(json.loads(text))


def _long(value: int) -> bytes:
    """Zigzag and base 128, as Avro writes a long; for values that are not negative."""
    value <<= 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
