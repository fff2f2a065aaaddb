"""Daft, which wants an older Arrow than the one here: in an environment of its own, the page's snippets for it."""

import json
import subprocess
import venv
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie

_IN_DAFT = """
import json, sys
import daft
import hoodie

rows = daft.from_arrow(hoodie.open_table(sys.argv[1]).snapshot(columns=["id", "city", "price"]).to_arrow())
uris = open(sys.argv[1] + "/.hoodie/absolute-path-manifest/latest-snapshot.csv").read().splitlines()
for frame in (rows, daft.read_parquet(uris)):
    print(json.dumps(frame.agg(daft.col("price").sum()).to_pydict()))
"""


@pytest.mark.nightly
def test_daft_reads_both_kinds_of_tables(tmp_path):
    python = tmp_path / "environment" / "bin" / "python"
    venv.create(tmp_path / "environment", with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "daft==0.7.26", "pyarrow==25.0.1"], check=True)
    (site,) = (tmp_path / "environment").glob("lib/python3*/site-packages")
    paths = [Path(hoodie.__file__).parents[1], Path(pa.__file__).parents[1]]
    (site / "others.pth").write_text("\n".join(map(str, paths)))  # after its own, so that its Arrow comes first
    for kind, in_files in (("COPY_ON_WRITE", 9.0), ("MERGE_ON_READ", 8.0)):
        path = str(tmp_path / kind)
        table = hoodie.create_table(
            path,
            name="trips",
            record_key="id",
            partition_by="city",
            ordering="ts",
            table_type=kind,
            options={"hoodie.sync.manifest": "csv"},
        )
        table.upsert(pa.table({"id": ["a", "b"], "city": ["oslo", "rome"], "ts": [1, 1], "price": [3.0, 5.0]}))
        table.upsert(pa.table({"id": ["a"], "city": ["oslo"], "ts": [2], "price": [4.0]}))
        done = subprocess.run([python, "-c", _IN_DAFT, path], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr[-3000:]
        assert [json.loads(line) for line in done.stdout.splitlines()] == [{"price": [9.0]}, {"price": [in_files]}]
