"""`hoodie.register`: format("hudi") of Spark's readers and writers, and SQL on tables of ours, are answered here.

Spark's Python data sources cannot carry a write by key, save modes or an error's class, and read slowly. So the calls
are caught at PySpark's reader and writer classes, of classic Spark and of Connect, before Spark sees them. What cannot
be caught, views made by SQL, goes to a data source of the same names; it is caught when a query names such a view,
so that it shows its table as it is now. See docs/format/datasource.md.
"""

import importlib
import warnings
from collections.abc import Iterator, Mapping

from pyspark.sql import SparkSession

from hoodie.errors import HudiSettings, InvalidInput, JarPresent
from hoodie.sources.batch_calls import READER, WRITER
from hoodie.sources.calls import CAUGHT, NAMES, Call
from hoodie.sources.sql_calls import CATALOG, FRAME, SESSION, TABLE_READER, caught
from hoodie.sources.stream_calls import QUERY, STREAM_READER, STREAM_WRITER
from hoodie.sources.table_calls import WRITER_BY_NAME, WRITER_V2
from hoodie.sources.views import register_source
from hoodie.spark.own_sql import give_sql_back, take_sql
from hoodie.spark.session import require_session
from hoodie.spark.workers import take_own_python

_MARK = "_hoodie_original"
#: The methods that are wrapped, by module and class; classic Spark's and Spark Connect's are of the same names.
_WRAPPED: Mapping[str, Mapping[str, Mapping[str, Call]]] = {
    "session": {"SparkSession": SESSION},
    "catalog": {"Catalog": CATALOG},
    "dataframe": {"DataFrame": FRAME},
    "classic.dataframe": {"DataFrame": FRAME},
    "readwriter": {
        "DataFrameReader": {**READER, **TABLE_READER},
        "DataFrameWriter": {**WRITER, **WRITER_BY_NAME},
        "DataFrameWriterV2": WRITER_V2,
    },
    "streaming.readwriter": {"DataStreamReader": STREAM_READER, "DataStreamWriter": STREAM_WRITER},
    "streaming.query": {"StreamingQuery": QUERY},
}


def register(session: SparkSession, *, shadow: bool = False, sql: bool = True) -> None:
    """Have `format("hudi")`, `format("org.apache.hudi")` and `format("hoodie")` of readers and writers answered by this
    library, and what `spark.sql` and Spark's calls by a table's name do to tables of Hudi, in this Python process; and
    `CREATE TEMPORARY VIEW … USING hudi` in this session.

    shadow  also where a Hudi jar is on the class path; else its names stay the jar's, which is warned about, and only
            `hoodie` is answered, and no SQL
    sql     whether `spark.sql` takes the statements of `hoodie.spark.sql`, and tables made by them are entries of
            Spark's catalog
    Raises  InvalidInput when this PySpark's classes are not as expected; nothing is changed then

    Workers of a `local` master run this Python, unless PYSPARK_PYTHON names another.
    Without a jar HoodieCatalog is no longer the session's catalog, and HudiSettings warns of settings that need one.
    `unregister` takes the names back. Registering again changes nothing.
    """
    require_session(session, "register")
    for flag, value in (("shadow", shadow), ("sql", sql)):
        if not isinstance(value, bool):
            raise InvalidInput(f"{flag}={value!r}: expected True or False")
    take_own_python(session)
    taken = [name for name in NAMES if not register_source(session, name)]
    caught = set(NAMES) if shadow else set(NAMES) - set(taken)
    if taken and not shadow:
        warnings.warn(
            JarPresent(
                f"Spark knows the format {taken[0]!r} already: a Hudi jar is on its class path and keeps the name. "
                "format('hoodie') is this library; register(spark, shadow=True) takes the other names, too"
            ),
            stacklevel=2,
        )
    if not taken:
        unset_settings(session)
    _patch()
    CAUGHT.update(caught)
    if sql and (shadow or not taken):
        take_sql(_prepare)
    else:
        give_sql_back()


def _prepare(session: SparkSession) -> None:
    """Have a session, such as one of `newSession`, know the data source."""
    for name in CAUGHT:
        register_source(session, name)


def unregister(session: SparkSession) -> None:
    """Give `format("hudi")` and `spark.sql` back to Spark, in this Python process. Views and entries that were made
    stay, as does the data source of a session: Spark has no call to remove one."""
    CAUGHT.clear()
    give_sql_back()
    for owner, _ in _classes():
        for name, member in list(vars(owner).items()):
            if hasattr(member, _MARK):
                setattr(owner, name, getattr(member, _MARK))


def _classes() -> Iterator[tuple[type, Mapping[str, Call]]]:
    for package in ("pyspark.sql", "pyspark.sql.connect"):
        for name, classes in _WRAPPED.items():
            try:
                module = importlib.import_module(f"{package}.{name}")
            except ImportError:  # Spark Connect's packages are not installed
                continue
            for kind, methods in classes.items():
                owner = getattr(module, kind, None)
                missing = [method for method in methods if not hasattr(owner, method)]
                if missing or owner is None:
                    raise InvalidInput(
                        f"{module.__name__}.{kind} of this PySpark has no {', '.join(missing)}: use hoodie.hudi.read, "
                        "hoodie.hudi.write and table.stream_upsert, which need nothing of it"
                    )
                yield owner, methods


def _patch() -> None:
    for owner, methods in list(_classes()):
        for name, call in methods.items():
            original = vars(owner).get(name, getattr(owner, name))
            if not hasattr(original, _MARK):
                method = caught(original, call)
                setattr(method, _MARK, original)
                setattr(owner, name, method)


# --- settings of a session that Hudi's pages tell people to make, and that need the jar which is not there ---

_CATALOG = "spark.sql.catalog.spark_catalog"
_REGISTRATOR = "spark.kryo.registrator"
_EXTENSIONS = "spark.sql.extensions"
_PACKAGES = ("org.apache.spark.sql.hudi.", "org.apache.hudi.", "org.apache.spark.Hoodie")


def unset_settings(session: SparkSession) -> None:
    """Unset what a session can unset, and name the lines to remove of what it cannot. Warns HudiSettings"""
    if _of_hudi(session, _CATALOG):
        session.conf.unset(_CATALOG)
    consequences = {
        _REGISTRATOR: "each job of this session fails, and a session cannot unset it",
        _EXTENSIONS: "Spark leaves the class out",
    }
    settings = {key: named for key in consequences if (named := _of_hudi(session, key))}
    if settings:
        warnings.warn(HudiSettings({key: (value, consequences[key]) for key, value in settings.items()}), stacklevel=3)


def _of_hudi(session: SparkSession, key: str) -> str:
    """The classes of Hudi's that a setting names; "" for none."""
    names = (session.conf.get(key, "") or "").split(",")
    return ",".join(name.strip() for name in names if name.strip().startswith(_PACKAGES))
