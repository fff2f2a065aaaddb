"""Tables that Hudi bootstraps from Parquet files, and that the library and Hudi then write in turns.

`tests/fixtures/bootstrap` has such tables, for the tests without Hudi.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import UnsupportedTable
from support.engine_cases import COLUMNS, Step, comparable
from support.hudi_engine import HudiEngine

_TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
_WRITE = "hoodie.datasource.write."


def _options(kind: str, name: str) -> dict[str, str]:
    return {
        "hoodie.table.name": name,
        f"{_WRITE}table.type": _TYPES[kind],
        f"{_WRITE}recordkey.field": "id",
        f"{_WRITE}precombine.field": "ts",
        f"{_WRITE}partitionpath.field": "city",
        f"{_WRITE}hive_style_partitioning": "true",
        "hoodie.index.type": "SIMPLE",
        "hoodie.compact.inline": "false",
        "hoodie.metadata.enable": "false",
    }


def _bootstrap(hudi: HudiEngine, kind: str, mode: str, folder: Path) -> tuple[Path, dict[str, str]]:
    source, path, name = folder / "source", folder / "t", f"{kind}_{mode}_{hudi.version.replace('.', '_')}".lower()
    for number, city in enumerate(("oslo", "rome")):
        file = source / f"city={city}" / "p.parquet"
        file.parent.mkdir(parents=True)
        keys = [f"k{number}{key}" for key in range(5)]
        values = {"day": pa.array([20] * 5, pa.int32()), "ts": pa.array([1] * 5), "fare": [0.5] * 5}
        pq.write_table(pa.table({"id": keys, **values}), file)
    options = _options(kind, name)
    columns = {name: COLUMNS[name] for name in ("id", "day", "ts", "fare", "city")}
    nothing = ", ".join(f"CAST(NULL AS {column}) AS {name}" for name, column in columns.items())
    bootstrap = {
        "hoodie.table.type": _TYPES[kind],
        f"{_WRITE}operation": "bootstrap",
        "hoodie.bootstrap.base.path": str(source),
        "hoodie.bootstrap.mode.selector": f"org.apache.hudi.client.bootstrap.selector.{mode}BootstrapModeSelector",
        "hoodie.bootstrap.full.input.provider": "org.apache.hudi.bootstrap.SparkParquetBootstrapDataProvider",
        "hoodie.bootstrap.keygen.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
        "hoodie.bootstrap.parallelism": "1",
    }
    hudi.write(path, f"SELECT {nothing} WHERE false", {**options, **bootstrap}, "overwrite")
    return path, options


def _in_turns(hudi: HudiEngine, path: Path, options: dict[str, str]) -> None:
    for ts in (2, 4):
        for writer in (0, 1):
            rows = (("k01", "oslo", 20, ts + writer, 1.5), (f"n{ts}{writer}", "rome", 20, ts + writer, 2.5))
            step = Step("upsert", rows, columns=COLUMNS)
            if writer:
                hudi.write(path, step.sql(), {**options, f"{_WRITE}operation": "upsert"})
            else:
                hoodie.hudi.write(step.arrow(), str(path), {**options, f"{_WRITE}operation": "upsert"})
            own = comparable(hoodie.open_table(str(path)).snapshot(meta=True).to_arrow())
            assert own == comparable(hudi.snapshot(path))
            assert sum(f'"ts": {ts + writer}' in row for row in own) == 2
    table = hoodie.open_table(str(path))
    table.delete(pa.table({"id": ["k02"], "city": ["oslo"]}))
    assert comparable(table.changes("000", meta=True).to_arrow()) == comparable(hudi.changes(path, "000"))
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    rows = comparable(table.snapshot(meta=True).to_arrow())
    assert rows == comparable(hudi.snapshot(path))
    assert len(rows) == 10 + 4 - 1
    assert list(table.check()) == []


@pytest.mark.parametrize("kind", _TYPES)
def test_a_table_with_all_rows_is_written_in_turns(hudi: HudiEngine, kind: str, tmp_path: Path) -> None:
    path, options = _bootstrap(hudi, kind, "FullRecord", tmp_path)
    _in_turns(hudi, path, options)


@pytest.mark.parametrize("kind", _TYPES)
def test_the_way_out_of_a_table_with_keys_alone_is_one(hudi: HudiEngine, kind: str, tmp_path: Path) -> None:
    path, options = _bootstrap(hudi, kind, "MetadataOnly", tmp_path)
    name = options["hoodie.table.name"]
    hudi.sql(f"CREATE TABLE {name} USING hudi LOCATION '{path}'")
    for statement in (
        "",
        f"CALL run_clustering(table => '{name}')",
        f"CALL run_clean(table => '{name}', clean_policy => 'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 1)",
    ):
        if statement:
            with pytest.raises(UnsupportedTable, match="hold the keys of rows"):
                hoodie.open_table(str(path)).snapshot().to_arrow()
            hudi.sql(statement)
    _in_turns(hudi, path, options)
