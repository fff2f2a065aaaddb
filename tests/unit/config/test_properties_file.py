"""Options in properties files: read as Hudi does, below those of the call, with typed errors."""

from pathlib import Path

import pytest

from hoodie.config.datasource import door_options
from hoodie.config.properties_file import read_properties_file
from hoodie.errors import InvalidOption


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_pairs_are_apart_by_equals_or_blanks(tmp_path: Path) -> None:
    text = "# defaults\n\nhoodie.table.name = trips\n  hoodie.index.type\t BLOOM \nhoodie.database.name=\n_q=a=b c\n"
    assert read_properties_file(write(tmp_path / "p", text)) == {
        "hoodie.table.name": "trips",
        "hoodie.index.type": "BLOOM",
        "hoodie.database.name": "",
        "_q": "a=b c",
    }


def test_a_file_includes_another(tmp_path: Path) -> None:
    write(tmp_path / "base", "hoodie.index.type=BLOOM\nhoodie.table.name=a\n")
    path = write(tmp_path / "job", "include=base\nhoodie.table.name=b\n")
    assert read_properties_file(str(path)) == {"hoodie.index.type": "BLOOM", "hoodie.table.name": "b"}
    assert read_properties_file(f"file://{path}")["hoodie.table.name"] == "b"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("hoodie.table.name=a\nhoodie.index.type\n", r"p, line 2: 'hoodie.index.type' has no value"),
        ("=a\n", "line 1"),
        ("include=none\n", "none cannot be read"),
        ("include=p\n", "includes itself"),
    ],
)
def test_a_malformed_file_is_refused_by_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InvalidOption, match=told):
        door_options({}, props=write(tmp_path / "p", text))


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match=r"cannot be read: .*No such file"):
        door_options({}, props=tmp_path / "none")
    with pytest.raises(InvalidOption, match="cannot be read"):
        door_options({}, props=tmp_path)
    with pytest.raises(InvalidOption, match="cannot be read"):
        door_options({}, props="nothing://bucket/p")
    (tmp_path / "p").write_bytes(b"hoodie.table.name=\xff")
    with pytest.raises(InvalidOption, match="byte 18 is not UTF-8"):
        door_options({}, props=tmp_path / "p")


def test_options_of_the_call_override_the_file_which_overrides_the_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "hoodie.clean.commits.retained 1\nhoodie.keep.min.commits 2\nhoodie.index.type BLOOM\n"
    write(tmp_path / "hudi-defaults.conf", text)
    monkeypatch.setenv("HUDI_CONF_DIR", str(tmp_path))
    assert door_options(None)["hoodie.clean.commits.retained"] == "1"
    props = write(tmp_path / "job", "hoodie.cleaner.commits.retained=5\nhoodie.index.type=SIMPLE\n")
    used = door_options({"hoodie.index.type": "BUCKET"}, props=props)
    assert used == {
        "hoodie.cleaner.commits.retained": "5",  # by its other name
        "hoodie.keep.min.commits": "2",
        "hoodie.index.type": "BUCKET",
    }


def test_an_error_names_the_file_that_an_option_is_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "hudi-defaults.conf", "hoodie.metrics.on true\nhoodie.upsert.shuffle.parallelism 2\n")
    monkeypatch.setenv("HUDI_CONF_DIR", str(tmp_path))
    with pytest.raises(InvalidOption, match=rf"hoodie.metrics.on='true'.*Options of {path} are among them"):
        door_options({})
    assert door_options({"hoodie.metrics.on": False}) == {}


def test_a_conf_dir_without_the_file_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUDI_CONF_DIR", str(tmp_path / "none"))
    assert door_options({"hoodie.index.type": "BLOOM"}) == {"hoodie.index.type": "BLOOM"}
