"""`storage_options`: what the fsspec driver of a table needs, taken by all that opens one and shown by nothing."""

from types import SimpleNamespace

import fsspec
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import hoodie
from hoodie.errors import InvalidOption, UnknownOptions
from hoodie.storage import storage_for
from hoodie.testing.tables import ArrowTable

TOKEN = {"token": "hush-hush"}
PATH = "guarded://bucket/t"
BY_KEY = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
SESSION = SimpleNamespace(createDataFrame=None, version="4.0.0")


class Guarded(MemoryFileSystem):
    """Files in memory for those who have the token."""

    protocol = "guarded"
    store: dict = {}  # noqa: RUF012
    pseudo_dirs: list = [""]  # noqa: RUF012

    def __init__(self, token=None, **options):
        if token != TOKEN["token"]:
            raise ValueError(f"the token {token!r} opens nothing")
        super().__init__(**options)


@pytest.fixture
def first():
    """The instant of a table of one row that only the token opens."""
    fsspec.register_implementation("guarded", Guarded, clobber=True)
    Guarded.store.clear()
    table = ArrowTable.create(storage_for(PATH, TOKEN), BY_KEY)
    return table.upsert(pa.table({"id": ["a"]})).instant


def begin_missing(**more):
    with pytest.raises(InvalidOption, match=r"begin\.instanttime"):  # the table is open by then
        hoodie.hudi.read(PATH, {"hoodie.datasource.query.type": "incremental"}, spark=SESSION, **more)


def test_all_that_opens_a_table_takes_the_options_of_its_driver(first):
    given = {"storage_options": TOKEN}
    assert hoodie.open_table(PATH, **given).snapshot(columns=["id"]).to_arrow().to_pydict() == {"id": ["a"]}
    assert hoodie.open_table(PATH, **given).changes("earliest", columns=["id"]).to_arrow().num_rows == 1
    assert hoodie.open_table(PATH, spark=SESSION, **given).history()[0][0].requested == first
    assert hoodie.create_table(PATH, spark=SESSION, name="t", record_key="id", **given).file_slices()[0].base
    assert hoodie.hudi.HoodieReadClient(PATH, spark=SESSION, **given).get_pending_compactions() == []
    assert hoodie.hudi.HoodieWriteClient(PATH, spark=SESSION, **given).start_commit() > first
    assert hoodie.hudi.write(SimpleNamespace(sparkSession=SESSION), PATH, BY_KEY, mode="ignore", **given) is None
    begin_missing(**given)


def test_their_values_are_in_no_repr_and_in_no_error(first):
    table = hoodie.open_table(PATH, spark=SESSION, storage_options=TOKEN)
    assert "hush" not in repr(table) + repr(table.storage) + str(table.path)
    with pytest.raises(InvalidOption, match="opens nothing") as raised:
        hoodie.open_table(PATH, storage_options={"token": "half-hush"}).snapshot().to_arrow()
    assert "hush" not in str(raised.value)
    with pytest.warns(UnknownOptions, match="token") as warned, pytest.raises(InvalidOption) as raised:
        hoodie.open_table(PATH, spark=SESSION, options=TOKEN)
    assert "hush" not in str(raised.value) + str(warned[0].message)


def test_partitions_of_an_arrow_read_are_those_of_a_snapshot(tmp_path):
    table = ArrowTable.create(
        storage_for(str(tmp_path)), {**BY_KEY, "hoodie.datasource.write.partitionpath.field": "city"}
    )
    table.upsert(pa.table({"id": ["a", "b"], "city": ["oslo", "rome"]}))
    for slice_ in table.slices():
        if slice_.group.partition == "rome":
            (tmp_path / slice_.base.path).write_bytes(b"damaged")
    assert hoodie.open_table(tmp_path).snapshot(partitions=["oslo"], columns=["id"]).to_arrow().to_pydict() == {
        "id": ["a"]
    }
