"""Options by another of their names, through each door that takes them."""

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.cli.main import main
from hoodie.errors import InvalidOption
from hoodie.storage import LocalStorage
from hoodie.table.properties import load_properties

FEW, MANY = {"hoodie.cleaner.commits.retained": 1}, {"hoodie.clean.commits.retained": 30}
OFF = {"hoodie.clean.automatic": False}
TWO = {**FEW, **MANY}
KEY = {"hoodie.datasource.write.recordkey.field": "id"}


def test_a_call_retains_what_it_names_by_another_name_than_the_table(tmp_path: Path) -> None:
    path = str(tmp_path / "trips")
    table = hoodie.create_table(path, name="trips", record_key="id", options={**FEW, **OFF})
    for value in range(4):
        table.upsert(pa.table({"id": ["a"], "v": [value]}))
    for door in (table, hoodie.open_table(path, options=FEW)):
        assert door.clean(dry_run=True).files
        assert not door.clean(options=MANY, dry_run=True).files


def test_two_names_of_one_option_with_two_values_are_refused_at_each_door(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "trips")
    rows = pa.table({"id": ["a"], "v": [1]})
    doors = (
        lambda: hoodie.create_table(path, name="trips", record_key="id", options=TWO),
        lambda: hoodie.hudi.write(rows, path, {**KEY, **TWO}),
    )
    both = r"hoodie\.cleaner\.commits\.retained='1' and hoodie\.clean\.commits\.retained='30'"
    for door in doors:
        with pytest.raises(InvalidOption, match=both):
            door()
    assert not (tmp_path / "trips").exists()
    table = hoodie.create_table(path, name="trips", record_key="id")
    for later in (
        lambda: table.upsert(rows, options=TWO),
        lambda: hoodie.open_table(path, options=TWO),
        lambda: hoodie.hudi.HoodieWriteClient(path, TWO),
        lambda: hoodie.hudi.HoodieReadClient(path, TWO),
        lambda: hoodie.hudi.read(path, TWO),
    ):
        with pytest.raises(InvalidOption, match=both):
            later()
    words = [word for key, value in TWO.items() for word in ("--option", f"{key}={value}")]
    assert main(["doctor", path, *words]) == 2
    assert "give one of them" in capsys.readouterr().err


def test_a_table_that_a_write_makes_has_the_name_that_any_of_the_options_gives(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"], "v": [1]})
    hoodie.hudi.write(rows, str(tmp_path / "folder"), {**KEY, "hoodie.datasource.write.table.name": "trips"})
    assert load_properties(LocalStorage(tmp_path / "folder"))["hoodie.table.name"] == "trips"
