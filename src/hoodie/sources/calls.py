"""What is remembered of the calls on Spark's readers and writers, until one of them does something."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame

#: What takes the place of a method: it is called with the method, its object and the arguments.
Call = Callable[..., Any]
#: The names of the format, in small letters.
NAMES = ("hudi", "org.apache.hudi", "hoodie")

#: Those that this process answers.
CAUGHT: set[str] = set()


def recorded_calls(builder: Any) -> dict[str, Any]:
    """The settings of a reader or writer by its calls so far."""
    state = builder.__dict__.setdefault("_hoodie", {"format": "", "options": {}, "mode": "default", "by": []})
    assert isinstance(state, dict)
    return state


def ours(name: object) -> bool:
    return isinstance(name, str) and name.lower() in CAUGHT


def frame_of(writer: Any) -> DataFrame:
    """The rows of a writer."""
    if isinstance(writer._df, DataFrame):
        return writer._df
    from pyspark.sql.connect.dataframe import DataFrame as ConnectDataFrame

    return ConnectDataFrame(writer._df, writer._spark)


def names_in(*columns: Any) -> list[Any]:
    """The columns of a call that takes them one by one, or in one list."""
    return list(columns[0]) if len(columns) == 1 and isinstance(columns[0], (list, tuple)) else list(columns)


def columns_to_partition_by(columns: Any, recorded: dict[str, Any]) -> list[Any]:
    """The partition columns of a write: those of its last call, a name or several, else those of a call before."""
    return [columns] if isinstance(columns, str) else list(columns or recorded["by"])


def recorder(what: str, read: Callable[..., Any] = lambda value: value) -> Call:
    """In place of a method that says one thing, which is remembered under `what` as `read` gives it."""

    def say(original: Call, self: Any, /, *arguments: Any, **named: Any) -> Any:
        returned = original(self, *arguments, **named)
        recorded_calls(self)[what] = read(*arguments, *named.values())
        return returned

    return say


def note_option(original: Call, self: Any, /, key: str, value: Any) -> Any:
    recorded_calls(self)["options"][key] = value
    return original(self, key, value)


def note_options(original: Call, self: Any, /, **options: Any) -> Any:
    recorded_calls(self)["options"].update(options)
    return original(self, **options)


def load_by(answer: Callable[..., DataFrame]) -> Call:
    """In place of a reader's `load`.

    answer  called with the original, the reader, the session, the path, the options of `load` itself, and the schema,
            perhaps None
    """

    def load(
        original: Call,
        self: Any,
        /,
        path: Any = None,
        format: str | None = None,
        schema: Any = None,
        **options: Any,
    ) -> Any:
        recorded = recorded_calls(self)
        if not ours(format or recorded["format"]):
            return original(self, path, format, schema, **options)
        session = self._spark if hasattr(self, "_spark") else self._client
        requested_schema = schema if schema is not None else recorded.get("schema")
        return answer(original, self, session, path, options, requested_schema)

    return load


#: What readers and writers, of batches and of streams, are told alike.
SAID: dict[str, Call] = {"format": recorder("format"), "option": note_option, "options": note_options}
