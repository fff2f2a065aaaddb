"""The JSON documents of commands as a JSON Schema, out of the types of their results: docs/cli.schema.json."""

import dataclasses
import types
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

from hoodie.cli import (
    about,
    compactor,
    compactor_plans,
    compactor_run,
    doctor,
    engines,
    exporting,
    index,
    look,
    metadata,
    read,
    recover,
    services,
    table_search,
)
from hoodie.cli.output import SCHEMA
from hoodie.facts import files, health, instants, metadata_table, summary

#: The result of each command, by its words.
RESULTS: Mapping[str, type] = {
    "ls": table_search.Listing,
    "info": summary.Summary,
    "history": instants.History,
    "files": files.Files,
    "stats": files.Stats,
    "metadata show": metadata.Metadata,
    "metadata stats": metadata_table.MetadataStats,
    "metadata list": metadata.MetadataRows,
    "metadata validate": metadata.MetadataValidated,
    "metadata create": metadata.MetadataCreated,
    "metadata drop": metadata.MetadataDropped,
    "report": look.Reported,
    "metrics": health.Health,
    "serve": health.Health,
    "query": read.Rows,
    "changes": read.Rows,
    "export": exporting.Exported,
    "clean": services.Cleaned,
    "archive": services.Archived,
    "expire": services.Expired,
    "upgrade": services.Upgraded,
    "downgrade": services.Upgraded,
    "compaction run": compactor_run.Runs,
    "compaction schedule": compactor.Scheduled,
    "compaction plan": compactor_plans.Plans,
    "compaction validate": compactor.PlanChecked,
    "compaction repair": compactor.PlanChecked,
    "compaction unschedule": compactor.Withdrawn,
    "savepoint create": recover.SavepointLine,
    "savepoint show": recover.Savepoints,
    "savepoint delete": recover.Deleted,
    "rollback": recover.RolledBack,
    "restore": recover.Restored,
    "sync": engines.Synced,
    "manifest": engines.Manifests,
    "check": doctor.Examined,
    "index rebuild": index.IndexRebuilt,
    "index show": index.IndexChosen,
    "completion": about.Script,
    "version": about.Version,
}

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}


def json_schema() -> dict[str, Any]:
    """The schema of every document: which result belongs to which command is in it."""
    types_: dict[str, Any] = {}
    for kind in RESULTS.values():
        _described(kind, types_)
    problem: dict[str, Any] = {"type": ["object", "null"], "properties": {"type": _text(), "message": _text()}}
    problem |= {"required": ["type", "message"], "additionalProperties": False}
    counts = {name: {"type": "integer"} for name in ("tables", "fine", "found", "failed")}
    table = _object(
        {
            "path": _text(),
            "status": {"enum": [0, 1, 2, 3]},
            "result": {"type": ["object", "null"]},
            "error": problem,
            "warnings": {"type": "array", "items": _text()},
        }
    )
    whole = {
        "schema": {"const": SCHEMA},
        "command": _text(),
        "status": {"enum": [0, 1, 2, 3]},
        "tables": {"type": "array", "items": table},
        "error": problem,
        "summary": _object({**counts, "seconds": {"type": "number"}}),
    }
    by_command = [
        {
            "if": {"properties": {"command": {"const": command}}},
            "then": {
                "properties": {
                    "tables": {
                        "items": {"properties": {"result": {"anyOf": [_reference(kind), {"type": "null"}]}}},
                    }
                }
            },
        }
        for command, kind in RESULTS.items()
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        **_object(whole),
        "allOf": by_command,
        "$defs": dict(sorted(types_.items())),
    }


def _described(kind: type, into: dict[str, Any]) -> None:
    """Add a result type, and those of its fields."""
    if kind.__name__ in into:
        return
    into[kind.__name__] = {}  # before its fields
    hints = get_type_hints(kind)
    properties = {field.name: _of(hints[field.name], into) for field in dataclasses.fields(kind)}
    first = (kind.__doc__ or "").strip().split("\n\n")[0]
    into[kind.__name__] = {"description": " ".join(first.split()), **_object(properties)}


def _of(hint: Any, into: dict[str, Any]) -> dict[str, Any]:
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        _described(hint, into)
        return _reference(hint)
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return {"anyOf": [{"type": "null"} if part is type(None) else _of(part, into) for part in parts]}
    if origin is tuple:
        if parts[-1] is Ellipsis:
            return {"type": "array", "items": _of(parts[0], into)}
        return {"type": "array", "prefixItems": [_of(part, into) for part in parts], "minItems": len(parts)}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _of(parts[1], into)}
    if hint is Any:
        return {}
    raise TypeError(f"{hint} has no form in JSON")


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


def _reference(kind: type) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _text() -> dict[str, Any]:
    return {"type": "string"}
