"""Records of the metadata table as Hudi writes them, with fastavro."""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fastavro

SCHEMA: str = json.loads((Path(__file__).parents[1] / "vectors" / "mdt_schema.json").read_text())["with_meta_fields"]
_PARSED = fastavro.parse_schema(json.loads(SCHEMA))


def record(kind: int, **content: Any) -> bytes:
    """A record in a log block."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, _PARSED, {"key": "", "type": kind, **content})
    return out.getvalue()


def file_list_record(kind: int, entries: Mapping[str, tuple[int, bool]]) -> bytes:
    """A list of files (2), or of partitions (1): size, and whether it is deleted."""
    infos = {name: {"size": size, "isDeleted": gone} for name, (size, gone) in entries.items()}
    return record(kind, filesystemMetadata=infos)
