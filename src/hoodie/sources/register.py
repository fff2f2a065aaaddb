"""`hoodie.register`: format("hudi") of Spark's readers and writers is answered by this library.

Spark's Python data sources cannot carry a write by key, save modes or an error's class, and read slowly. So the calls
are caught at PySpark's reader and writer classes, of classic Spark and of Connect, before Spark sees them. What cannot
be caught, views made by SQL, goes to a data source of the same names. See docs/format/datasource.md.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hoodie.errors import InvalidInput, JarPresent
from hoodie.sources import answers
from hoodie.sources.views import SOURCES

#: The names of the format, in small letters.
NAMES = ("hudi", "org.apache.hudi", "hoodie")

_MARK = "_hoodie_original"
_CLASSES = ("pyspark.sql.readwriter", "pyspark.sql.connect.readwriter")
_caught: set[str] = set()


def register(session: SparkSession, *, shadow: bool = False) -> None:
    """Have `format("hudi")`, `format("org.apache.hudi")` and `format("hoodie")` of readers and writers answered by this
    library, in this Python process; and `CREATE TEMPORARY VIEW … USING hudi` in this session.

    shadow  also where a Hudi jar is on the class path; else its names stay the jar's, which is warned about, and only
            `hoodie` is answered
    Raises  InvalidInput when this PySpark's classes are not as expected; nothing is changed then

    `unregister` takes it back. Registering again changes nothing.
    """
    taken = [name for name in NAMES if not _register_source(session, name)]
    caught = set(NAMES) if shadow else set(NAMES) - set(taken)
    if taken and not shadow:
        warnings.warn(
            JarPresent(
                f"Spark knows the format {taken[0]!r} already: a Hudi jar is on its class path and keeps the name. "
                "format('hoodie') is this library; register(spark, shadow=True) takes the other names, too"
            ),
            stacklevel=2,
        )
    _patch()
    _caught.update(caught)


def unregister(session: SparkSession) -> None:
    """Give `format("hudi")` back to Spark, in this Python process. Views that were made stay, as does the data source
    of a session: Spark has no call to remove one."""
    _caught.clear()
    for module in _modules():
        for kind in ("DataFrameReader", "DataFrameWriter"):
            owner = getattr(module, kind)
            for name, member in list(vars(owner).items()):
                if hasattr(member, _MARK):
                    setattr(owner, name, getattr(member, _MARK))


def _register_source(session: SparkSession, name: str) -> bool:
    """Whether the session takes a data source of that name: not where a jar has it."""
    try:
        session.dataSource.register(SOURCES[name])
    except Exception as problem:  # Spark Connect's errors are of another base than classic Spark's
        if "DATA_SOURCE_ALREADY_EXISTS" in str(problem):
            return False
        raise
    return True


def _modules() -> list[Any]:
    found = []
    for name in _CLASSES:
        try:
            found.append(importlib.import_module(name))
        except ImportError:  # Spark Connect's packages are not installed
            continue
    return found


def _patch() -> None:
    modules = _modules()
    for module in modules:
        for kind, methods in (("DataFrameReader", _READER), ("DataFrameWriter", _WRITER)):
            missing = [name for name in methods if not hasattr(getattr(module, kind, None), name)]
            if missing:
                raise InvalidInput(
                    f"{module.__name__}.{kind} of this PySpark has no {', '.join(missing)}: use hoodie.read and "
                    "hoodie.write, which need nothing of it"
                )
    for module in modules:
        for kind, methods in (("DataFrameReader", _READER), ("DataFrameWriter", _WRITER)):
            owner = getattr(module, kind)
            for name, wrap in methods.items():
                original = vars(owner).get(name, getattr(owner, name))
                if hasattr(original, _MARK):
                    continue
                wrapped = functools.wraps(original)(wrap(original))
                setattr(wrapped, _MARK, original)
                setattr(owner, name, wrapped)


# --- what the wrapped methods remember ---


def _state(builder: Any) -> dict[str, Any]:
    """What was said to a reader or writer so far."""
    found = builder.__dict__.setdefault("_hoodie", {"format": "", "options": {}, "mode": "default", "by": []})
    assert isinstance(found, dict)
    return found


def _ours(name: object) -> bool:
    return isinstance(name, str) and name.lower() in _caught


def _format(original: Callable[..., Any]) -> Callable[..., Any]:
    def format(self: Any, source: str) -> Any:
        _state(self)["format"] = source
        return original(self, source)

    return format


def _option(original: Callable[..., Any]) -> Callable[..., Any]:
    def option(self: Any, key: str, value: Any) -> Any:
        _state(self)["options"][key] = value
        return original(self, key, value)

    return option


def _options(original: Callable[..., Any]) -> Callable[..., Any]:
    def options(self: Any, **options: Any) -> Any:
        _state(self)["options"].update(options)
        return original(self, **options)

    return options


def _mode(original: Callable[..., Any]) -> Callable[..., Any]:
    def mode(self: Any, saveMode: str | None) -> Any:
        if saveMode:
            _state(self)["mode"] = saveMode
        return original(self, saveMode)

    return mode


def _partition_by(original: Callable[..., Any]) -> Callable[..., Any]:
    def partitionBy(self: Any, *cols: Any) -> Any:
        _state(self)["by"] = list(cols[0]) if len(cols) == 1 and isinstance(cols[0], (list, tuple)) else list(cols)
        return original(self, *cols)

    return partitionBy


def _load(original: Callable[..., Any]) -> Callable[..., Any]:
    def load(self: Any, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> DataFrame:
        said = _state(self)
        if not _ours(format or said["format"]):
            return original(self, path, format, schema, **options)  # type: ignore[no-any-return]
        session = self._spark if hasattr(self, "_spark") else self._client
        frame = answers.load(session, path, {**said["options"], **options})
        if schema is None and said.get("schema") is None:
            return frame
        wanted = schema if schema is not None else said["schema"]
        names = wanted.names if hasattr(wanted, "names") else [field.strip().split()[0] for field in wanted.split(",")]
        return frame.select(*names)

    return load


def _schema(original: Callable[..., Any]) -> Callable[..., Any]:
    def schema(self: Any, schema: Any) -> Any:
        _state(self)["schema"] = schema
        return original(self, schema)

    return schema


def _save(original: Callable[..., Any]) -> Callable[..., Any]:
    def save(
        self: Any,
        path: str | None = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        said = _state(self)
        if not _ours(format or said["format"]):
            return original(self, path, format, mode, partitionBy, **options)  # type: ignore[no-any-return]
        by = [partitionBy] if isinstance(partitionBy, str) else list(partitionBy or said["by"])
        answers.save(_frame(self), path, mode or said["mode"], by, {**said["options"], **options})
        return None

    return save


def _save_as_table(original: Callable[..., Any]) -> Callable[..., Any]:
    def saveAsTable(self: Any, name: str, format: str | None = None, *arguments: Any, **options: Any) -> None:
        if _ours(format or _state(self)["format"]):
            raise InvalidInput(
                f"saveAsTable({name!r}) would make an entry of Spark's catalog that hands its path to nobody: "
                "save(path), then hoodie.register_table(spark, name, path); or CREATE TABLE … by hoodie.sql"
            )
        return original(self, name, format, *arguments, **options)  # type: ignore[no-any-return]

    return saveAsTable


def _frame(writer: Any) -> DataFrame:
    if isinstance(writer._df, DataFrame):
        return writer._df
    from pyspark.sql.connect.dataframe import DataFrame as ConnectDataFrame

    return ConnectDataFrame(writer._df, writer._spark)


_READER = {"format": _format, "option": _option, "options": _options, "schema": _schema, "load": _load}
_WRITER = {
    "format": _format,
    "option": _option,
    "options": _options,
    "mode": _mode,
    "partitionBy": _partition_by,
    "save": _save,
    "saveAsTable": _save_as_table,
}
