"""Functions that Arrow has no kernel for, by DuckDB: each is one that gives what Spark's gives."""

import functools
from typing import Any

import pyarrow as pa

from hoodie.errors import InvalidInput, MissingPackage
from hoodie.expressions.terms import Term, computed, elementwise


def by_duckdb(name: str, kind: pa.DataType, sql: str, *of: Term) -> Term:
    """What SQL of DuckDB makes of values, `$1` for the first. Raises MissingPackage without DuckDB"""
    connection(name)
    return computed(kind, elementwise(lambda *values: _run(name, sql, kind, values)), *of, fails=True)


def connection(name: str) -> Any:
    """A database of this process's own. Raises MissingPackage naming the function that needs it"""
    try:
        return _database().cursor()
    except ModuleNotFoundError as missing:
        raise MissingPackage("duckdb", "duckdb", f"{name} of such arguments, without Spark,") from missing


@functools.cache
def _database() -> Any:
    import duckdb

    return duckdb.connect(":memory:", config={"threads": 1})


def _run(name: str, sql: str, kind: pa.DataType, values: tuple[pa.Array, ...]) -> pa.Array:
    import duckdb

    names = [f"v{place}" for place in range(1, len(values) + 1)]
    numbers = pa.array(range(len(values[0])), pa.int64())
    rows = pa.table([numbers, *values], names=["n", *names])
    for place in range(len(values), 0, -1):
        sql = sql.replace(f"${place}", f"v{place}")
    cursor = connection(name)
    try:
        cursor.register("hoodie_values", rows)
        result = cursor.sql(f"SELECT {sql} AS made FROM hoodie_values ORDER BY n").to_arrow_table()
    except duckdb.Error as problem:
        raise InvalidInput(f"{name}: {problem}") from problem
    finally:
        cursor.close()
    column = result.column(0).cast(kind)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, kind)
