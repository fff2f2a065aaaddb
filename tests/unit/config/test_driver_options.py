"""`hoodie.storage.*`: options of a storage's driver among those of a call."""

from pathlib import Path

import pytest

import hoodie
from hoodie.config.datasource import check_options
from hoodie.config.driver_options import driver_options, without_driver_options
from hoodie.errors import InvalidOption
from hoodie.storage import FsspecStorage, storage_at

GIVEN = {"hoodie.storage.key": "a", "hoodie.storage.anon": "true", "hoodie.storage.client_kwargs": '{"verify": false}'}


def test_they_are_told_from_the_others_and_have_the_driver_s_types() -> None:
    options = check_options({**GIVEN, "hoodie.bloom.index.prune.by.ranges": "true"})
    assert driver_options(options) == {"key": "a", "anon": True, "client_kwargs": {"verify": False}}
    assert list(without_driver_options(options)) == ["hoodie.bloom.index.prune.by.ranges"]
    assert "a'" not in repr(options)


def test_those_that_hudi_has_by_such_a_name_stay_hudi_s() -> None:
    assert driver_options(check_options({"hoodie.storage.class": "x.y.Z"})) == {}
    with pytest.raises(InvalidOption):
        check_options({"hoodie.storage.layout.partitioner.class": "x.y.Z"})


def test_storage_options_count_over_them() -> None:
    storage = storage_at("memory://t", {"hoodie.storage.asynchronous": "true"}, {"asynchronous": False})
    assert isinstance(storage, FsspecStorage)
    assert storage.options_for("memory://t") == {"asynchronous": False}


def test_a_table_neither_keeps_nor_records_them(tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path / "t", name="t", record_key="id", options=GIVEN)
    assert not [key for key in table.options if key.startswith("hoodie.storage.")]
    assert "hoodie.storage" not in (tmp_path / "t" / ".hoodie" / "hoodie.properties").read_text()
    with pytest.raises(InvalidOption, match=r"hoodie\.storage\.key: the storage is chosen when the table is opened"):
        table.upsert([], options={"hoodie.storage.key": "b"})
